// SPDX-License-Identifier: Apache-2.0
#include "cql/schema/partition_key_text.h"

#include "cql/types/literal.h"
#include "partitioner/token.h"

namespace tetrad::cql {

namespace {

/// Cut at colons that no backslash stands before, without those backslashes.
std::vector<std::string> split_key(std::string_view text) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escapes = text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ':';
    if (text[i] == ':')
      parts.emplace_back();
    else
      parts.back() += escapes ? text[++i] : text[i];
  }
  return parts;
}

}  // namespace

Result<Bytes> partition_key_of_text(const TableSchema& table, std::string_view text) {
  const auto columns = table.partition_key();
  // A key of one column is not cut: its text may have colons.
  const std::vector<std::string> parts =
      columns.size() == 1 ? std::vector<std::string>{std::string(text)} : split_key(text);
  if (parts.size() != columns.size())
    return fail(ErrorCode::kInvalid,
                "the partition key of {} has {} columns, '{}' has {} values (with ':' between)",
                table.qualified_name(), columns.size(), text, parts.size());
  std::vector<Bytes> values;
  for (size_t i = 0; i < parts.size(); ++i) {
    TETRAD_TRY(values.emplace_back(), from_string(*columns[i].type, parts[i]));
  }
  const std::vector<BytesView> views(values.begin(), values.end());
  Bytes key;
  TETRAD_TRY_VOID(partitioner::append_partition_key(key, views));
  return key;
}

}  // namespace tetrad::cql
