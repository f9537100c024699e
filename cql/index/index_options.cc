// SPDX-License-Identifier: Apache-2.0
#include "cql/index/index_options.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cql/grammar/ast_print.h"
#include "cql/types/keyword.h"

namespace tetrad::cql {

namespace {

constexpr std::string_view kSaiClass = "org.apache.cassandra.index.sai.StorageAttachedIndex";
constexpr std::string_view kSasiClass = "org.apache.cassandra.index.sasi.SASIIndex";

constexpr std::array<std::string_view, 3> kAnalysisOptions = {"normalize", "case_sensitive",
                                                              "ascii"};
constexpr std::array<std::string_view, 4> kVectorOptions = {
    "maximum_node_connections", "construction_beam_width", "similarity_function", "optimize_for"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

/// Unset: the option is not there.
Result<std::optional<bool>> truth_of(const IndexOptions& options, std::string_view name) {
  const auto found = options.find(std::string(name));
  if (found == options.end()) return std::nullopt;
  const std::string value = lower(found->second);
  if (value == "true") return true;
  if (value == "false") return false;
  if (value.empty()) {
    return fail(ErrorCode::kInvalid, "Empty value for boolean option '{}'", name);
  }
  return fail(ErrorCode::kInvalid, "Illegal value for boolean option '{}': {}", name,
              found->second);
}

template <size_t n>
bool has_any(const IndexOptions& options, const std::array<std::string_view, n>& names) {
  return std::ranges::any_of(
      options, [&](const auto& option) { return std::ranges::count(names, option.first) != 0; });
}

bool is_text(const DataType& type) {
  return type.kind() == TypeKind::kText || type.kind() == TypeKind::kAscii;
}

/// The native types that SAI knows.
bool is_sai_type(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kAscii:
    case TypeKind::kBigint:
    case TypeKind::kBoolean:
    case TypeKind::kDate:
    case TypeKind::kDecimal:
    case TypeKind::kDouble:
    case TypeKind::kFloat:
    case TypeKind::kInet:
    case TypeKind::kInt:
    case TypeKind::kSmallint:
    case TypeKind::kText:
    case TypeKind::kTime:
    case TypeKind::kTimestamp:
    case TypeKind::kTimeuuid:
    case TypeKind::kTinyint:
    case TypeKind::kUuid:
    case TypeKind::kVarint:
      return true;
    default:
      return false;
  }
}

Result<void> check_analysis(const ColumnSchema& column, IndexTarget target,
                            const IndexOptions& options) {
  if (!has_any(options, kAnalysisOptions)) return {};
  if (column.is_primary_key()) {
    std::string found;
    for (const auto& [name, value] : options) {
      if (std::ranges::count(kAnalysisOptions, name) == 0) continue;
      found += fmt::format("{}{}: {}", found.empty() ? "" : ", ", ast::quote_string(name),
                           ast::quote_string(value));
    }
    return fail(ErrorCode::kInvalid,
                "Analysis options are not supported on primary key columns, but found {{{}}}",
                found);
  }
  const TypePtr type = indexed_type(*column.type, target);
  if (type == nullptr) {
    return fail(
        ErrorCode::kInvalid,
        "CQL type 'org.apache.cassandra.db.marshal.CompositeType({},{})' cannot be analyzed.",
        column.type->key()->class_name(), column.type->value()->class_name());
  }
  if (!is_text(*type)) {
    return fail(ErrorCode::kInvalid, "CQL type {} cannot be analyzed.", type->cql_text());
  }
  TETRAD_TRY([[maybe_unused]] const TextAnalysis analysis, text_analysis(options));
  return {};
}

/// Vectors are looked up by distance, which no index here does yet.
Result<void> check_vector_options(const DataType& type, const IndexOptions& options) {
  if (type.kind() != TypeKind::kVector) {
    if (!has_any(options, kVectorOptions)) return {};
    return fail(ErrorCode::kInvalid, "CQL type {} cannot have vector options", type.cql_text());
  }
  if (options.contains("maximum_node_connections")) {
    return fail(ErrorCode::kInvalid,
                "Maximum node connections cannot be set without enabling "
                "SAI_VECTOR_ALLOW_CUSTOM_PARAMETERS");
  }
  if (options.contains("construction_beam_width")) {
    return fail(ErrorCode::kInvalid,
                "Construction beam width cannot be set without enabling "
                "SAI_VECTOR_ALLOW_CUSTOM_PARAMETERS");
  }
  std::string similarity = "COSINE";
  const auto upper = [](std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return text;
  };
  if (const auto named = options.find("similarity_function"); named != options.end()) {
    similarity = upper(named->second);
    if (similarity != "EUCLIDEAN" && similarity != "DOT_PRODUCT" && similarity != "COSINE") {
      return fail(ErrorCode::kInvalid,
                  "Similarity function {} was not recognized for index null. Valid values are: "
                  "EUCLIDEAN, DOT_PRODUCT, COSINE",
                  similarity);
    }
  }
  if (const auto named = options.find("optimize_for"); named != options.end()) {
    const std::string goal = upper(named->second);
    if (goal != "LATENCY" && goal != "RECALL") {
      return fail(ErrorCode::kInvalid,
                  "optimize_for '{}' was not recognized for index null. Valid values are: "
                  "LATENCY, RECALL",
                  goal);
    }
  }
  if (type.element()->kind() != TypeKind::kFloat) {
    return fail(ErrorCode::kInvalid,
                "SAI ANN indexes are only allowed on vector columns with float elements");
  }
  if (type.dimension() == 1 && similarity == "COSINE") {
    return fail(ErrorCode::kInvalid,
                "Cosine similarity is not supported for single-dimension vectors");
  }
  return fail(ErrorCode::kInvalid, "not supported yet: storage-attached indexes on vectors (ANN)");
}

}  // namespace

std::optional<IndexClass> index_class_named(std::string_view name) {
  const std::string small = lower(name);
  if (small == "sai" || small == "storageattachedindex" || name == kSaiClass) {
    return IndexClass::kSai;
  }
  if (name == kSasiClass) return IndexClass::kSasi;
  return std::nullopt;
}

TypePtr indexed_type(const DataType& column_type, IndexTarget target) {
  switch (target) {
    case IndexTarget::kKeys:
      return column_type.key();
    case IndexTarget::kValues:
      return column_type.kind() == TypeKind::kMap ? column_type.value() : column_type.element();
    case IndexTarget::kEntries:
      return nullptr;
    case IndexTarget::kSimple:
    case IndexTarget::kFull:
      break;
  }
  // Types are shared: this is the column's own.
  return std::shared_ptr<const DataType>(std::shared_ptr<void>(), &column_type);
}

bool is_literal_term(const DataType* type) {
  if (type == nullptr) return true;
  if (type->kind() == TypeKind::kVector) return false;
  return is_text(*type) || type->kind() == TypeKind::kBoolean || !type->is_native();
}

Result<TextAnalysis> text_analysis(const IndexOptions& options) {
  TextAnalysis analysis;
  TETRAD_TRY(const auto normalize, truth_of(options, "normalize"));
  TETRAD_TRY(const auto case_sensitive, truth_of(options, "case_sensitive"));
  TETRAD_TRY(const auto ascii, truth_of(options, "ascii"));
  analysis.normalize = normalize.value_or(analysis.normalize);
  analysis.case_sensitive = case_sensitive.value_or(analysis.case_sensitive);
  analysis.ascii = ascii.value_or(analysis.ascii);
  return analysis;
}

Result<void> check_sai_index(const TableSchema& table, const ColumnSchema& column,
                             IndexTarget target, const IndexOptions& options) {
  std::string foreign;
  for (const auto& [name, value] : options) {
    if (std::ranges::count(kAnalysisOptions, name) + std::ranges::count(kVectorOptions, name) != 0)
      continue;
    foreign += (foreign.empty() ? "" : ", ") + name;
  }
  if (!foreign.empty()) {
    return fail(ErrorCode::kConfig,
                "Properties specified [{}] are not understood by StorageAttachedIndex", foreign);
  }
  for (const IndexSchema& other : table.indexes) {
    if (other.index_class != IndexClass::kSai || other.column != column.name ||
        other.target != target) {
      continue;
    }
    return fail(ErrorCode::kInvalid,
                "Cannot create more than one storage-attached index on the same column: {}",
                column.name);
  }
  TETRAD_TRY_VOID(check_analysis(column, target, options));
  const bool is_element = target != IndexTarget::kSimple && target != IndexTarget::kFull;
  if (!is_element) TETRAD_TRY_VOID(check_vector_options(*column.type, options));
  std::vector<TypePtr> types;
  if (target == IndexTarget::kEntries) {
    types = {column.type->key(), column.type->value()};
  } else {
    types = {indexed_type(*column.type, target)};
  }
  for (const TypePtr& type : types) {
    if (is_sai_type(*type) || (!type->is_native() && type->is_frozen())) continue;
    return fail(ErrorCode::kInvalid, "Unsupported type: {}", type->cql_text());
  }
  return {};
}

std::string target_text(IndexTarget target, std::string_view column) {
  constexpr std::array<std::string_view, 5> kNames = {"", "keys", "values", "entries", "full"};
  const std::string name = quote_identifier(column);
  if (target == IndexTarget::kSimple) return name;
  return fmt::format("{}({})", kNames[static_cast<size_t>(target)], name);
}

}  // namespace tetrad::cql
