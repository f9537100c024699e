// SPDX-License-Identifier: Apache-2.0
// Options of tables that describe files of Cassandra: caching, compression, speculative retry. Each
// check has the order and the texts of Cassandra, fills in its defaults, and leaves what DESCRIBE
// shows.
#include "cql/prepare/storage_options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>

#include "cql/prepare/option_values.h"
#include "cql/types/number.h"

namespace tetrad::cql {

// ASCII only: names of options and classes have no other letters.
std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// A name with a dot is taken as it stands.
std::string full_class(std::string_view package, const std::string& name) {
  return name.find('.') == std::string::npos ? std::string(package) + name : name;
}

// caching = {'keys': 'ALL' | 'NONE', 'rows_per_partition': 'ALL' | 'NONE' | n}, words in any case.
Result<void> check_caching(OptionMap& caching) {
  std::string unknown;
  for (const auto& [name, value] : caching) {
    if (name != "keys" && name != "rows_per_partition")
      unknown += (unknown.empty() ? "" : ", ") + name;
  }
  if (!unknown.empty()) {
    return fail(
        ErrorCode::kConfig,
        "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
        unknown);
  }
  for (auto& [name, value] : caching) {
    const std::string word = upper(value);
    if (word != "ALL" && word != "NONE") {
      if (name == "keys") {
        return fail(
            ErrorCode::kConfig,
            "Invalid value '{}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed",
            value);
      }
      if (!all_digits(value) || !whole<int32_t>(value)) {
        return fail(ErrorCode::kConfig,
                    "Invalid value '{}' for caching sub-option 'rows_per_partition': only 'ALL', "
                    "'NONE', and integer "
                    "values are allowed",
                    value);
      }
    }
    // No rows are none.
    value = word == "0" ? "NONE" : word;
  }
  caching.try_emplace("keys", "NONE");
  caching.try_emplace("rows_per_partition", "NONE");
  return {};
}

namespace {

/// The size of a compressed chunk as written; its range is checked later, as in Cassandra.
Result<int32_t> chunk_kb_of(const OptionMap& compression) {
  const auto chunk = value_of(compression, "chunk_length_in_kb");
  // Cassandra's default; a power of 2.
  int32_t chunk_kb = 16;
  if (chunk) {
    const auto parsed = whole<int32_t>(*chunk);
    if (!parsed) return fail(ErrorCode::kConfig, "Invalid value for chunk_length_in_kb");
    if (*parsed > std::numeric_limits<int32_t>::max() / 1024) {
      return fail(ErrorCode::kConfig, "Value of chunk_length_in_kb is too large ({})", *parsed);
    }
    chunk_kb = *parsed;
  }
  return chunk_kb;
}

/// The options that one compressor has and others do not.
Result<void> check_compressor_options(const OptionMap& compression) {
  if (const auto type = value_of(compression, "lz4_compressor_type");
      type && *type != "fast" && *type != "high") {
    return fail(ErrorCode::kConfig,
                "Invalid compressor type '{}' specified for LZ4 parameter 'lz4_compressor_type'. "
                "Valid options are [high, fast].",
                *type);
  }
  if (const auto text = value_of(compression, "lz4_high_compressor_level")) {
    const auto level = whole<int32_t>(*text);
    if (!level || *level < 1 || *level > 17) {
      return fail(ErrorCode::kConfig,
                  "Invalid value [{}] for parameter 'lz4_high_compressor_level'. Value must be "
                  "between 1 and 17.",
                  *text);
    }
  }
  if (const auto text = value_of(compression, "compression_level")) {
    const auto level = whole<int32_t>(*text);
    if (!level) {
      return fail(ErrorCode::kConfig,
                  "ZstdCompressor.create() threw an error: java.lang.NumberFormatException For "
                  "input string: \"{}\"",
                  *text);
    }
    if (*level < -131072 || *level > 22) {
      return fail(ErrorCode::kConfig,
                  "ZstdCompressor.create() threw an error: java.lang.IllegalArgumentException "
                  "compression_level={} is invalid",
                  *level);
    }
  }
  return {};
}

}  // namespace

// 1. An empty map, or enabled: false, is no compression. 2. The class, and the values that all
// classes have.
// 3. Unknown options, the compressor's own, then ranges. The last order is Cassandra's: a bad
// number is reported before an unknown option, a bad range after it.
Result<void> check_compression(OptionMap& compression) {
  if (compression.empty()) {
    compression = {{"enabled", "false"}};
    return {};
  }
  if (const auto enabled = value_of(compression, "enabled")) {
    compression.erase("enabled");
    // As Java reads a boolean: all but true is false.
    if (lower(*enabled) != "true") {
      if (!compression.empty()) {
        return fail(ErrorCode::kConfig,
                    "If the 'enabled' option is set to false no other options must be specified");
      }
      compression = {{"enabled", "false"}};
      return {};
    }
  }
  const auto found = compression.find("class");
  if (found == compression.end()) {
    return fail(ErrorCode::kConfig, "Missing sub-option 'class' for the 'compression' option.");
  }
  if (found->second.empty()) {
    return fail(ErrorCode::kConfig,
                "The 'class' option must not be empty. To disable compression use 'enabled' : "
                "false");
  }
  constexpr std::string_view package = "org.apache.cassandra.io.compress.";
  found->second = full_class(package, found->second);
  static const std::map<std::string, std::set<std::string>> known = {
      {"LZ4Compressor", {"lz4_compressor_type", "lz4_high_compressor_level"}},
      {"SnappyCompressor", {}},
      {"DeflateCompressor", {}},
      {"ZstdCompressor", {"compression_level"}},
      {"NoopCompressor", {}}};
  const std::string name =
      found->second.starts_with(package) ? found->second.substr(package.size()) : "";
  const auto compressor = known.find(name);
  TETRAD_TRY(const int32_t chunk_kb, chunk_kb_of(compression));
  const auto ratio = value_of(compression, "min_compress_ratio");
  double least = 0;
  if (ratio) {
    const auto parsed = whole<double>(*ratio);
    if (!parsed) return fail(ErrorCode::kConfig, "Invalid value {} for min_compress_ratio", *ratio);
    least = *parsed;
  }
  if (compressor == known.end()) {
    return fail(ErrorCode::kConfig, "Could not create Compression for type {}", found->second);
  }
  for (const auto& [option, value] : compression) {
    if (option != "class" && option != "chunk_length_in_kb" && option != "min_compress_ratio" &&
        !compressor->second.contains(option)) {
      return fail(ErrorCode::kConfig, "Unknown compression options {}", option);
    }
  }
  TETRAD_TRY_VOID(check_compressor_options(compression));
  if (chunk_kb <= 0) return fail(ErrorCode::kConfig, "Invalid negative or null chunk_length_in_kb");
  if ((chunk_kb & (chunk_kb - 1)) != 0) {
    return fail(ErrorCode::kConfig, "chunk_length_in_kb must be a power of 2");
  }
  compression["chunk_length_in_kb"] = fmt::format("{}", chunk_kb);
  if (least < 0) return fail(ErrorCode::kConfig, "Invalid negative min_compress_ratio");
  if (least > 0 && least < 1) {
    return fail(ErrorCode::kConfig,
                "min_compress_ratio can either be 0 or greater than or equal to 1");
  }
  if (ratio) compression["min_compress_ratio"] = double_to_text(least);
  return {};
}

namespace {

/// One policy of speculative_retry, and how Cassandra writes it.
struct Policy {
  enum class Kind { kAlways, kNever, kPercentile, kFixed };
  Kind kind;
  std::string text;
};

/// The digits with at most one point before a suffix in any case; unset: another form.
std::optional<std::string> number_before(const std::string& word, std::string_view suffix) {
  if (!word.ends_with(suffix)) return std::nullopt;
  std::string number = word.substr(0, word.size() - suffix.size());
  std::string digits = number;
  if (const size_t point = digits.find('.'); point != std::string::npos) digits.erase(point, 1);
  if (!all_digits(digits) || number.back() == '.') return std::nullopt;
  return number;
}

/// Unset: not of any form; an error: of one, with a value that may not be.
Result<std::optional<Policy>> simple_policy(std::string_view option, const std::string& whole_text,
                                            const std::string& text) {
  const std::string word = lower(text);
  if (word == "always") return Policy{Policy::Kind::kAlways, "ALWAYS"};
  if (word == "never" || word == "none") return Policy{Policy::Kind::kNever, "NEVER"};
  auto percentile = number_before(word, "p");
  if (!percentile) percentile = number_before(word, "percentile");
  if (percentile) {
    const double value = whole<double>(*percentile).value_or(0);
    if (value <= 0 || value >= 100) {
      return fail(ErrorCode::kConfig,
                  "Invalid value {} for PERCENTILE option '{}': must be between (0.0 and 100.0)",
                  whole_text, option);
    }
    std::string shown = double_to_text(value);
    if (shown.ends_with(".0")) shown.resize(shown.size() - 2);
    return Policy{Policy::Kind::kPercentile, shown + "p"};
  }
  if (const auto fixed = number_before(word, "ms")) {
    const double value = whole<double>(*fixed).value_or(0);
    return Policy{Policy::Kind::kFixed, fmt::format("{:.0f}ms", std::floor(value))};
  }
  return std::nullopt;
}

/// MIN(a, b) or MAX(a, b): a and b; unset: another form.
std::optional<std::array<std::string, 2>> two_arguments(const std::string& text) {
  const std::string name = lower(text.substr(0, 4));
  if ((name != "min(" && name != "max(") || !text.ends_with(')')) return std::nullopt;
  const std::string inside = text.substr(4, text.size() - 5);
  const size_t comma = inside.find(',');
  if (comma == std::string::npos) return std::nullopt;
  const size_t second = inside.find_first_not_of(' ', comma + 1);
  if (second == std::string::npos) return std::nullopt;
  std::array<std::string, 2> arguments = {inside.substr(0, comma), inside.substr(second)};
  for (const std::string& argument : arguments)
    if (argument.empty() || argument.find_first_of(",() ") != std::string::npos)
      return std::nullopt;
  return arguments;
}

}  // namespace

// policy := ALWAYS | NEVER | NONE | <x>p | <x>percentile | <n>ms | MIN(a,b) | MAX(a,b)
//
// a and b are one percentile and one fixed time, in any order; the percentile is shown first.
Result<std::string> speculative_policy(std::string_view option, const std::string& text) {
  const auto invalid = [&] {
    return fail(ErrorCode::kConfig, "Invalid value {} for option '{}'", text, option);
  };
  // No policy is as long; the text stands in errors and in the schema.
  constexpr size_t kTextMax = 200;
  if (text.size() > kTextMax) return invalid();
  const auto found = two_arguments(text);
  if (!found) {
    TETRAD_TRY(const auto policy, simple_policy(option, text, text));
    if (!policy) return invalid();
    return policy->text;
  }
  std::vector<Policy> parts;
  for (const std::string& argument : *found) {
    const auto part = simple_policy(option, text, argument);
    if (!part || !*part) return invalid();
    if ((*part)->kind != Policy::Kind::kPercentile && (*part)->kind != Policy::Kind::kFixed) {
      return invalid();
    }
    parts.push_back(**part);
  }
  if (parts[0].kind == parts[1].kind) {
    return fail(ErrorCode::kConfig,
                "Invalid value {} for option '{}': MIN()/MAX() arguments should be of different "
                "types, but both are of type {}",
                text, option, parts[0].kind == Policy::Kind::kFixed ? "FIXED" : "PERCENTILE");
  }
  if (parts[0].kind == Policy::Kind::kFixed) std::swap(parts[0], parts[1]);
  return fmt::format("{}({},{})", upper(text.substr(0, 3)), parts[0].text, parts[1].text);
}

}  // namespace tetrad::cql
