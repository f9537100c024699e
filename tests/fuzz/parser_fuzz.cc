// SPDX-License-Identifier: Apache-2.0
// Fuzzes the CQL parser: the first byte picks what is read, the rest is the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cql/grammar/ast_print.h"
#include "cql/grammar/parser.h"

namespace {

// What is printed must be read again, and print the same.
void check_type(std::string_view text) {
  const auto type = tetrad::cql::parse_type(text);
  if (!type) return;
  const std::string printed = tetrad::cql::ast::to_string(*type);
  if (type->kind == tetrad::cql::ast::CqlType::Kind::kCustom ||
      printed.find('\'') != std::string::npos) {
    return;  // class names print without doubled quotes
  }
  const auto again = tetrad::cql::parse_type(printed);
  if (!again || tetrad::cql::ast::to_string(*again) != printed) std::abort();
}

void check_statement(std::string_view text) {
  const auto statement = tetrad::cql::parse_statement(text);
  if (!statement) {
    if (statement.error().message.empty() || statement.error().message.size() > 20000) std::abort();
    return;
  }
  const tetrad::cql::ast::Statement copy = *statement;
  if (const auto* select = std::get_if<tetrad::cql::ast::Select>(&copy)) {
    for (const auto& item : select->items) (void)tetrad::cql::ast::to_string(item.selector);
    for (const auto& relation : select->where) (void)tetrad::cql::ast::to_string(relation);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      check_type(text);
      break;
    case 1:
      (void)tetrad::cql::parse_term(text);
      break;
    case 2:
      (void)tetrad::cql::parse_where(text);
      break;
    default:
      check_statement(text);
  }
  return 0;
}
