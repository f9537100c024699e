// SPDX-License-Identifier: Apache-2.0
// Options of SAI and SASI indexes: checked when the index is made, read again wherever it is used.
// Names, values and error texts are Cassandra's. Options are kept as they were written; what reads
// them must not fail for what a check has accepted.
//
// An index on a vector with SAI is the index for ORDER BY … ANN OF. SAI can analyze texts; SASI
// knows prefix, contains and sparse, and of words those between delimiters, with the mode prefix.
#include "cql/index/index_options.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cql/grammar/ast_print.h"
#include "cql/types/keyword.h"
#include "storage/row/read_command.h"

namespace tetrad::cql {

namespace {

constexpr std::string_view kSaiClass = "org.apache.cassandra.index.sai.StorageAttachedIndex";
constexpr std::string_view kSasiClass = "org.apache.cassandra.index.sasi.SASIIndex";

constexpr std::string_view kNonTokenizing =
    "org.apache.cassandra.index.sasi.analyzer.NonTokenizingAnalyzer";
constexpr std::string_view kDelimiter =
    "org.apache.cassandra.index.sasi.analyzer.DelimiterAnalyzer";

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

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
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
// No blob, counter or duration, as in Cassandra; frozen types are told apart by the caller.
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

// "for index null" is Cassandra's: it does not know the name there yet.
Result<void> check_vector_options(const DataType& type, const IndexOptions& options) {
  if (type.kind() != TypeKind::kVector) {
    if (!has_any(options, kVectorOptions)) return {};
    return fail(ErrorCode::kInvalid, "CQL type {} cannot have vector options", type.cql_text());
  }
  // Cassandra takes these two only with a property of the JVM that is off by default.
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
  // Tetrad's own bound, which the index on the disk has.
  constexpr size_t kDimensionMax = storage::kNearestVectorBytesMax / sizeof(float);
  if (type.dimension() > kDimensionMax) {
    return fail(ErrorCode::kInvalid, "Vectors of {} dimensions cannot be indexed, {} at most",
                type.dimension(), kDimensionMax);
  }
  return {};
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
  // It owns nothing: valid as long as the column's type.
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

bool is_vector_index(const IndexSchema& index, const DataType& column_type) {
  return index.index_class == IndexClass::kSai && index.target == IndexTarget::kSimple &&
         column_type.kind() == TypeKind::kVector;
}

storage::Similarity vector_similarity(const IndexSchema& index) {
  const auto named = index.options.find("similarity_function");
  const std::string name = named == index.options.end() ? std::string() : upper(named->second);
  if (name == "EUCLIDEAN") return storage::Similarity::kEuclidean;
  if (name == "DOT_PRODUCT") return storage::Similarity::kDotProduct;
  return storage::Similarity::kCosine;
}

bool favours_recall(const IndexSchema& index) {
  const auto named = index.options.find("optimize_for");
  return named != index.options.end() && upper(named->second) == "RECALL";
}

Result<void> check_vector(storage::Similarity similarity, BytesView vector) {
  switch (storage::fault_of(similarity, vector)) {
    case storage::VectorFault::kNone:
      return {};
    case storage::VectorFault::kNotFinite:
      return fail(ErrorCode::kInvalid, "Vectors with NaN or Infinity cannot be indexed or queried");
    case storage::VectorFault::kZero:
      break;
  }
  return fail(ErrorCode::kInvalid,
              "Zero vectors cannot be indexed or queried with cosine similarity");
}

bool limits_values(const IndexSchema& index) {
  if (index.index_class == IndexClass::kLegacy) return true;
  if (index.index_class == IndexClass::kSasi) {
    const auto analyzer = index.options.find("analyzer_class");
    return analyzer != index.options.end() && analyzer->second == kDelimiter;
  }
  const auto analysis = text_analysis(index.options);
  return analysis && !analysis->does_nothing();
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

namespace {

/// In UTF-8. One that takes two of Java's characters is none, as in Cassandra.
Result<std::array<char, 4>> delimiter_of(std::string_view text) {
  const auto is_first = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  std::array<char, 4> out = {};
  if (std::ranges::count_if(text, is_first) != 1 || text.size() >= out.size() || text[0] == 0) {
    return fail(ErrorCode::kConfig, "Only single character delimiters supported, was {}", text);
  }
  std::ranges::copy(text, out.begin());
  return out;
}

}  // namespace

Result<SasiOptions> sasi_options(const DataType& type, const IndexOptions& options) {
  SasiOptions out;
  const auto given = [&](const char* name) {
    const auto found = options.find(name);
    return found == options.end() ? std::nullopt : std::optional(lower(found->second));
  };
  if (const auto mode = given("mode")) {
    if (*mode == "contains") {
      out.mode = SasiMode::kContains;
    } else if (*mode == "sparse") {
      out.mode = SasiMode::kSparse;
    } else if (*mode != "prefix") {
      return fail(ErrorCode::kConfig, "Incorrect index mode: {}", options.at("mode"));
    }
  }
  const auto literal = given("is_literal");
  out.is_literal = literal ? *literal == "true" : is_text(type);
  const auto analyzer = options.find("analyzer_class");
  const bool folds = analyzer != options.end() && analyzer->second == kNonTokenizing;
  // As Java reads a boolean, whatever is not true is false.
  const auto is_false = [&](const char* name) { return given(name).value_or("true") != "true"; };
  const auto is_true = [&](const char* name) { return given(name).value_or("") == "true"; };
  if (folds && is_text(type)) {
    out.analysis.case_sensitive = !(is_false("case_sensitive") || is_true("normalize_lowercase") ||
                                    is_true("normalize_uppercase"));
  }
  if (analyzer != options.end() && analyzer->second == kDelimiter && !is_false("analyzed")) {
    const auto delimiter = options.find("delimiter");
    TETRAD_TRY(out.analysis.delimiter,
               delimiter_of(delimiter == options.end() ? "," : delimiter->second));
  }
  return out;
}

namespace {

Result<void> check_analyzer(const DataType& type, const IndexOptions& options) {
  const auto named = options.find("analyzer_class");
  if (named == options.end()) {
    const auto analyzed = options.find("analyzed");
    if (analyzed == options.end() || lower(analyzed->second) != "true") return {};
    return fail(ErrorCode::kInvalid, "not supported yet: SASI indexes on the words of texts");
  }
  constexpr std::string_view kAnalyzers = "org.apache.cassandra.index.sasi.analyzer.";
  const std::string& name = named->second;
  if (name == fmt::format("{}NoOpAnalyzer", kAnalyzers)) return {};
  if (name == fmt::format("{}StandardAnalyzer", kAnalyzers)) {
    return fail(ErrorCode::kInvalid, "not supported yet: SASI indexes on the words of texts");
  }
  if (name == kDelimiter && is_text(type)) return {};
  if (name == kDelimiter) {
    return fail(ErrorCode::kConfig, "DelimiterAnalyzer does not support type {}", type.cql_text());
  }
  if (name != kNonTokenizing) {
    return fail(ErrorCode::kConfig, "Unable to find analyzer class '{}'", name);
  }
  if (options.contains("case_sensitive") &&
      (options.contains("normalize_lowercase") || options.contains("normalize_uppercase"))) {
    return fail(ErrorCode::kConfig,
                "case_sensitive option cannot be specified together with either "
                "normalize_lowercase or normalize_uppercase");
  }
  if (is_text(type)) return {};
  return fail(ErrorCode::kConfig, "NonTokenizingAnalyzer does not support type {}",
              type.cql_text());
}

}  // namespace

Result<void> check_sasi_index(const TableSchema& table, const ColumnSchema& column,
                              const IndexOptions& options) {
  const DataType& type = *column.type;
  if (type.is_multi_cell()) {
    return fail(ErrorCode::kConfig, "complex columns are not yet supported by SASI");
  }
  if (column.kind == ColumnKind::kPartitionKey) {
    return fail(ErrorCode::kConfig, "partition key columns are not yet supported by SASI");
  }
  TETRAD_TRY_VOID(check_analyzer(type, options));
  TETRAD_TRY(const SasiOptions sasi, sasi_options(type, options));
  if (sasi.mode == SasiMode::kSparse && sasi.is_literal) {
    return fail(ErrorCode::kConfig, "SPARSE mode is only supported on non-literal columns.");
  }
  if (sasi.mode == SasiMode::kSparse && options.contains("analyzer_class")) {
    return fail(ErrorCode::kConfig, "SPARSE mode doesn't support analyzers.");
  }
  if (sasi.analysis.has_words() && (sasi.mode != SasiMode::kPrefix || !sasi.is_literal)) {
    return fail(ErrorCode::kInvalid,
                "not supported yet: SASI indexes on the words of texts but in the mode PREFIX");
  }
  // Cassandra fails with a Java exception here, and then at each change of the schema.
  if (sasi.is_literal && !is_text(type)) {
    return fail(ErrorCode::kConfig, "is_literal is for texts, not for the type {}",
                type.cql_text());
  }
  for (const IndexSchema& other : table.indexes) {
    if (other.index_class != IndexClass::kSasi || other.column != column.name) continue;
    return fail(ErrorCode::kInvalid,
                "Cannot create more than one SASI index on the same column: {}", column.name);
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
