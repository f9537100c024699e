// SPDX-License-Identifier: Apache-2.0
// Options of SAI and SASI indexes: checked when the index is made, read again wherever it is used.
// Names, values and error texts are Cassandra's. Options are kept as they were written; what reads
// them must not fail for what a check has accepted.
//
// An index on a vector with SAI is the index for ORDER BY … ANN OF. SAI can analyze texts; SASI
// knows prefix, contains and sparse, words between delimiters and words by the rules of Unicode, of
// which it leaves out stop words or keeps the stems in English.
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
constexpr std::string_view kStandard = "org.apache.cassandra.index.sasi.analyzer.StandardAnalyzer";

// The languages for which Cassandra's StandardAnalyzer does something: it looks at two letters.
constexpr std::string_view kStopWordLanguages[] = {"ar", "bg", "cs", "de", "en", "es", "fi", "fr",
                                                   "hi", "hu", "it", "pl", "pt", "ro", "ru", "sv"};
constexpr std::string_view kStemLanguages[] = {"da", "de", "en", "es", "fl", "fr", "hu", "it",
                                               "nl", "no", "pt", "ro", "ru", "sv", "tr"};
constexpr size_t kLanguageBytes = 2;
constexpr std::string_view kEnglish = "en";

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

std::optional<size_t> written_bytes_max(const IndexSchema& index, const DataType& column_type) {
  if (index.index_class == IndexClass::kLegacy) return kIndexedBytesMax;
  if (index.index_class == IndexClass::kSasi) {
    const auto options = sasi_options(column_type, index.options);
    return options ? sasi_words_bytes_max(*options) : std::nullopt;
  }
  const auto analysis = text_analysis(index.options);
  if (!analysis || analysis->does_nothing()) return std::nullopt;
  return kIndexedBytesMax;
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
  if (target != IndexTarget::kEntries)
    TETRAD_TRY_VOID(check_vector_options(*indexed_type(*column.type, target), options));
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

namespace {

/// As Java reads a boolean: whatever is not true is false.
bool is_true(const IndexOptions& options, const char* name, bool otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : lower(found->second) == "true";
}

/// The class that is used for a column of texts; empty: none.
std::string_view analyzer_of(const IndexOptions& options) {
  const auto named = options.find("analyzer_class");
  if (named == options.end()) return is_true(options, "analyzed", false) ? kStandard : "";
  // NonTokenizingAnalyzer, which folds only, is used with `analyzed` false too.
  if (named->second != kNonTokenizing && !is_true(options, "analyzed", true)) return "";
  return named->second;
}

/// Empty: the index names none, so that nothing of a language is done.
std::string language_of(const IndexOptions& options) {
  const auto locale = options.find("tokenization_locale");
  return locale == options.end() ? std::string() : lower(locale->second).substr(0, kLanguageBytes);
}

void set_standard(const IndexOptions& options, TextAnalysis& analysis) {
  analysis.has_standard_words = true;
  analysis.normalize = true;
  if (is_true(options, "tokenization_normalize_lowercase", false))
    analysis.word_case = WordCase::kLower;
  if (is_true(options, "tokenization_normalize_uppercase", false))
    analysis.word_case = WordCase::kUpper;
  if (language_of(options) != kEnglish) return;
  analysis.skips_stop_words = is_true(options, "tokenization_skip_stop_words", false);
  analysis.stems = is_true(options, "tokenization_enable_stemming", false);
}

Result<void> check_standard(const IndexOptions& options) {
  if (is_true(options, "tokenization_normalize_lowercase", false) &&
      is_true(options, "tokenization_normalize_uppercase", false)) {
    return fail(
        ErrorCode::kConfig,
        "Options to normalize terms cannot be both uppercase and lowercase at the same time");
  }
  const auto locale = options.find("tokenization_locale");
  if (locale == options.end()) return {};
  const bool skips = is_true(options, "tokenization_skip_stop_words", false);
  const bool stems = is_true(options, "tokenization_enable_stemming", false);
  const std::string language = language_of(options);
  if (language.size() < kLanguageBytes && (skips || stems)) {
    return fail(ErrorCode::kConfig, "tokenization_locale '{}' names no language", locale->second);
  }
  const char* option = nullptr;
  if (stems && std::ranges::count(kStemLanguages, language) != 0)
    option = "tokenization_enable_stemming";
  if (skips && std::ranges::count(kStopWordLanguages, language) != 0)
    option = "tokenization_skip_stop_words";
  if (option == nullptr || language == kEnglish) return {};
  return fail(ErrorCode::kInvalid, "not supported yet: {} with the tokenization_locale '{}'",
              option, locale->second);
}

}  // namespace

Result<SasiOptions> sasi_options(const DataType& type, const IndexOptions& options) {
  SasiOptions out;
  if (const auto found = options.find("mode"); found != options.end()) {
    const std::string mode = lower(found->second);
    if (mode == "contains") {
      out.mode = SasiMode::kContains;
    } else if (mode == "sparse") {
      out.mode = SasiMode::kSparse;
    } else if (mode != "prefix") {
      return fail(ErrorCode::kConfig, "Incorrect index mode: {}", found->second);
    }
  }
  out.is_literal = is_true(options, "is_literal", is_text(type));
  const std::string_view analyzer = is_text(type) ? analyzer_of(options) : "";
  if (analyzer == kNonTokenizing) {
    out.analysis.case_sensitive = is_true(options, "case_sensitive", true) &&
                                  !is_true(options, "normalize_lowercase", false) &&
                                  !is_true(options, "normalize_uppercase", false);
  } else if (analyzer == kDelimiter) {
    const auto delimiter = options.find("delimiter");
    TETRAD_TRY(out.analysis.delimiter,
               delimiter_of(delimiter == options.end() ? "," : delimiter->second));
  } else if (analyzer == kStandard) {
    set_standard(options, out.analysis);
  }
  return out;
}

std::optional<size_t> sasi_words_bytes_max(const SasiOptions& options) {
  if (!options.is_literal || !options.analysis.has_words()) return std::nullopt;
  return options.mode == SasiMode::kContains ? kSasiPartsBytesMax : kSasiWordsBytesMax;
}

bool serves_like(const SasiOptions& options, bool is_open_before, bool is_open_behind) {
  const bool finds_parts = options.mode == SasiMode::kContains;
  if (is_open_before) return finds_parts;
  // As in Cassandra, although the index could.
  return !is_open_behind || !finds_parts || !options.analysis.has_words();
}

namespace {

Result<void> check_analyzer(const DataType& type, const IndexOptions& options) {
  const auto named = options.find("analyzer_class");
  if (analyzer_of(options) == kStandard && is_text(type)) TETRAD_TRY_VOID(check_standard(options));
  if (named == options.end()) return {};
  constexpr std::string_view kAnalyzers = "org.apache.cassandra.index.sasi.analyzer.";
  const std::string& name = named->second;
  if (name == fmt::format("{}NoOpAnalyzer", kAnalyzers)) return {};
  if (name != kNonTokenizing && name != kDelimiter && name != kStandard) {
    return fail(ErrorCode::kConfig, "Unable to find analyzer class '{}'", name);
  }
  if (name == kNonTokenizing && options.contains("case_sensitive") &&
      (options.contains("normalize_lowercase") || options.contains("normalize_uppercase"))) {
    return fail(ErrorCode::kConfig,
                "case_sensitive option cannot be specified together with either "
                "normalize_lowercase or normalize_uppercase");
  }
  if (is_text(type)) return {};
  return fail(ErrorCode::kConfig, "{} does not support type {}", name.substr(kAnalyzers.size()),
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
  if (sasi.analysis.has_words() && !sasi.is_literal) {
    return fail(ErrorCode::kInvalid,
                "not supported yet: SASI indexes on the words of texts with is_literal false");
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
