// SPDX-License-Identifier: Apache-2.0
#include "cql/prepare/storage_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "cql/types/number.h"

namespace tetrad::cql {

namespace {

template <class Number>
std::optional<Number> whole(std::string_view text) {
  Number value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// A value of an option that is there.
std::optional<std::string> value_of(const OptionMap& options, const std::string& name) {
  const auto found = options.find(name);
  if (found == options.end()) return std::nullopt;
  return found->second;
}

Result<int64_t> number_of(const std::string& name, const std::string& text) {
  const auto value = whole<int64_t>(text);
  if (!value) {
    return fail(ErrorCode::kConfig, "{} is not a parsable int (base10) for {}", text, name);
  }
  return *value;
}

/// A size in bytes as people write it: 512KiB, 1.5GiB. With a unit B unless it may be left out.
std::optional<double> size_of(const std::string& text) {
  static const std::map<std::string, double> units = {
      {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776}};
  const size_t end = text.find_first_not_of("+-.0123456789");
  const auto value = whole<double>(std::string_view(text).substr(0, end));
  if (!value) return std::nullopt;
  if (end == std::string::npos) return *value;
  const auto unit = units.find(text.substr(end));
  if (unit == units.end()) return std::nullopt;
  return *value * unit->second;
}

std::string size_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.3f}{}", bytes, kUnits[unit]);
}

Result<double> size_at_least_mib(const std::string& name, const std::string& text) {
  if (!text.ends_with('B')) {
    return fail(ErrorCode::kConfig, "{} {} is not a valid size in bytes: {} does not end in unit B",
                name, text, text);
  }
  const auto size = size_of(text);
  if (!size) return fail(ErrorCode::kConfig, "{} {} is not a valid size in bytes", name, text);
  if (*size < 1048576) {
    return fail(ErrorCode::kConfig, "{} {} is not acceptable, size must be at least 1.000MiB", name,
                text);
  }
  return *size;
}

bool is_boolean(const std::string& text) {
  const std::string word = lower(text);
  return word == "true" || word == "false";
}

// --- what all strategies have ---

Result<void> check_tombstones(const OptionMap& options) {
  if (const auto text = value_of(options, "tombstone_threshold")) {
    const auto threshold = whole<float>(*text);
    if (!threshold) {
      return fail(ErrorCode::kConfig, "{} is not a parsable int (base10) for tombstone_threshold",
                  *text);
    }
    if (*threshold < 0) {
      return fail(ErrorCode::kConfig, "tombstone_threshold must be greater than 0, but was {:.6f}",
                  *threshold);
    }
  }
  if (const auto text = value_of(options, "tombstone_compaction_interval")) {
    TETRAD_TRY(const int64_t interval, number_of("tombstone_compaction_interval", *text));
    if (interval < 0) {
      return fail(ErrorCode::kConfig,
                  "tombstone_compaction_interval must be greater than 0, but was {}", interval);
    }
  }
  if (const auto text = value_of(options, "unchecked_tombstone_compaction");
      text && !is_boolean(*text)) {
    return fail(ErrorCode::kConfig,
                "'unchecked_tombstone_compaction' should be either 'true' or 'false', not '{}'",
                *text);
  }
  if (const auto text = value_of(options, "log_all"); text && !is_boolean(*text)) {
    return fail(ErrorCode::kConfig, "'log_all' should either be 'true' or 'false', not {}", *text);
  }
  if (const auto text = value_of(options, "enabled"); text && !is_boolean(*text)) {
    return fail(ErrorCode::kConfig, "enabled should either be 'true' or 'false', not {}", *text);
  }
  return {};
}

/// Of Cassandra's CompactionParams, before the strategy looks at its own.
Result<void> check_thresholds(const OptionMap& options) {
  if (const auto text = value_of(options, "provide_overlapping_tombstones")) {
    const std::string word = upper(*text);
    if (word != "NONE" && word != "ROW" && word != "CELL") {
      return fail(ErrorCode::kConfig,
                  "Invalid value {} for 'provide_overlapping_tombstones' compaction sub-option - "
                  "must be one of the following [NONE, ROW, CELL].",
                  word);
    }
  }
  return {};
}

Result<void> check_counts(const OptionMap& options) {
  int64_t counts[] = {4, 32};
  for (const size_t i : {0, 1}) {
    const std::string name = i == 0 ? "min_threshold" : "max_threshold";
    const auto text = value_of(options, name);
    if (!text) continue;
    const auto count = all_digits(*text) ? whole<int32_t>(*text) : std::nullopt;
    if (!count) {
      return fail(ErrorCode::kConfig,
                  "Invalid value {} for '{}' compaction sub-option - must be an integer", *text,
                  name);
    }
    counts[i] = *count;
  }
  const auto [least, most] = counts;
  if (least <= 0 || most <= 0) {
    return fail(ErrorCode::kConfig,
                "Disabling compaction by setting compaction thresholds to 0 has been removed, set "
                "the compaction option 'enabled' to false instead.");
  }
  if (least <= 1) {
    return fail(ErrorCode::kConfig, "Min compaction threshold cannot be less than 2 (got {})",
                least);
  }
  if (least > most) {
    return fail(ErrorCode::kConfig,
                "Min compaction threshold (got {}) cannot be greater than max compaction threshold "
                "(got {})",
                least, most);
  }
  return {};
}

// --- each strategy ---

Result<void> check_size_tiered(const OptionMap& options) {
  if (const auto text = value_of(options, "min_sstable_size")) {
    TETRAD_TRY(const int64_t size, number_of("min_sstable_size", *text));
    if (size < 0) {
      return fail(ErrorCode::kConfig, "min_sstable_size must be non negative: {}", size);
    }
  }
  double buckets[] = {0.5, 1.5};
  for (const size_t i : {0, 1}) {
    const std::string name = i == 0 ? "bucket_low" : "bucket_high";
    const auto text = value_of(options, name);
    if (!text) continue;
    const auto bucket = whole<double>(*text);
    if (!bucket) return fail(ErrorCode::kConfig, "{} is not a parsable float for {}", *text, name);
    buckets[i] = *bucket;
  }
  if (buckets[1] <= buckets[0]) {
    return fail(ErrorCode::kConfig,
                "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
                double_to_text(buckets[1]), double_to_text(buckets[0]));
  }
  return {};
}

Result<void> check_leveled(const OptionMap& options) {
  for (const std::string name : {"sstable_size_in_mb", "fanout_size"}) {
    const auto text = value_of(options, name);
    if (!text) continue;
    TETRAD_TRY(const int64_t size, number_of(name, *text));
    if (size < 1)
      return fail(ErrorCode::kConfig, "{} must be larger than 0, but was {}", name, size);
  }
  return {};
}

Result<void> check_time_window(const OptionMap& options) {
  if (const auto text = value_of(options, "timestamp_resolution")) {
    static const std::set<std::string> known = {"SECONDS", "MILLISECONDS", "MICROSECONDS",
                                                "NANOSECONDS"};
    if (!known.contains(*text)) {
      return fail(ErrorCode::kConfig, "{} is not valid for timestamp_resolution", *text);
    }
  }
  if (const auto text = value_of(options, "compaction_window_unit");
      text && *text != "MINUTES" && *text != "HOURS" && *text != "DAYS") {
    return fail(ErrorCode::kConfig, "{} is not valid for compaction_window_unit", *text);
  }
  if (const auto text = value_of(options, "compaction_window_size")) {
    TETRAD_TRY(const int64_t size, number_of("compaction_window_size", *text));
    if (size < 1) {
      return fail(ErrorCode::kConfig, "{} must be greater than 1 for compaction_window_size", size);
    }
  }
  if (const auto text = value_of(options, "expired_sstable_check_frequency_seconds")) {
    TETRAD_TRY(const int64_t seconds, number_of("expired_sstable_check_frequency_seconds", *text));
    if (seconds < 0) {
      return fail(ErrorCode::kConfig,
                  "expired_sstable_check_frequency_seconds must not be negative, but was {}",
                  seconds);
    }
  }
  if (const auto text = value_of(options, "unsafe_aggressive_sstable_expiration")) {
    if (!is_boolean(*text)) {
      return fail(ErrorCode::kConfig,
                  "unsafe_aggressive_sstable_expiration is not 'true' or 'false' ({})", *text);
    }
    if (lower(*text) == "true") {
      return fail(
          ErrorCode::kConfig,
          "unsafe_aggressive_sstable_expiration is requested but not allowed, restart cassandra "
          "with -Dcassandra.allow_unsafe_aggressive_sstable_expiration=true to allow it");
    }
  }
  return check_size_tiered(options);
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// N, L or T with digits, or a whole number.
bool is_scaling_parameter(std::string_view text) {
  if (text == "N") return true;
  if (!text.empty() && std::string_view("LT+-").find(text[0]) != std::string_view::npos)
    text.remove_prefix(1);
  return is_digits(text);
}

Result<void> check_scaling(const std::string& text) {
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, comma - begin);
    begin = comma + 1;
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    if (!is_scaling_parameter(part)) {
      return fail(ErrorCode::kConfig,
                  "Scaling parameter {} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+", part);
    }
    if (part[0] != 'T' && part[0] != 'L') continue;
    const auto factor = whole<int32_t>(std::string_view(part).substr(1));
    if (!factor || *factor < 2) {
      return fail(ErrorCode::kConfig, "Fan factor cannot be lower than 2 in {}", part);
    }
  }
  return {};
}

Result<void> check_unified(const OptionMap& options) {
  if (const auto text = value_of(options, "scaling_parameters")) {
    TETRAD_TRY_VOID(check_scaling(*text));
  }
  if (const auto text = value_of(options, "base_shard_count")) {
    TETRAD_TRY(const int64_t count, number_of("base_shard_count", *text));
    if (count <= 0) {
      return fail(ErrorCode::kConfig,
                  "Invalid configuration, base_shard_count should be positive: {}", count);
    }
  }
  double target = 1073741824;
  if (const auto text = value_of(options, "target_sstable_size")) {
    TETRAD_TRY(target, size_at_least_mib("target_sstable_size", *text));
  }
  if (const auto text = value_of(options, "flush_size_override")) {
    TETRAD_TRY_VOID(size_at_least_mib("flush_size_override", *text));
  }
  if (const auto text = value_of(options, "sstable_growth")) {
    const auto growth = whole<double>(*text);
    if (!growth) {
      return fail(ErrorCode::kConfig,
                  "sstable_growth is not a valid number between 0 and 1: For input string: \"{}\"",
                  *text);
    }
    if (*growth < 0 || *growth > 1) {
      return fail(ErrorCode::kConfig, "sstable_growth {} must be between 0 and 1", *text);
    }
  }
  if (const auto text = value_of(options, "min_sstable_size")) {
    const auto size = text->ends_with('B') ? size_of(*text) : std::nullopt;
    if (!size) {
      return fail(ErrorCode::kConfig, "{} is not a valid size in bytes for min_sstable_size",
                  *text);
    }
    if (*size < 0) {
      return fail(ErrorCode::kConfig,
                  "Invalid configuration, min_sstable_size should be greater than or equal to 0 "
                  "(zero)");
    }
    if (*size > target * 0.7) {
      return fail(ErrorCode::kConfig,
                  "Invalid configuration, min_sstable_size ({}) should be less than 70% of the "
                  "targetSSTableSize ({})",
                  size_text(*size), size_text(target));
    }
  }
  if (const auto text = value_of(options, "expired_sstable_check_frequency_seconds")) {
    TETRAD_TRY(const int64_t seconds, number_of("expired_sstable_check_frequency_seconds", *text));
    if (seconds <= 0) {
      return fail(
          ErrorCode::kConfig,
          "Invalid configuration, expired_sstable_check_frequency_seconds should be positive: {}",
          seconds);
    }
  }
  if (const auto text = value_of(options, "unsafe_aggressive_sstable_expiration");
      text && !is_boolean(*text)) {
    return fail(ErrorCode::kConfig,
                "unsafe_aggressive_sstable_expiration should either be 'true' or 'false', not {}",
                *text);
  }
  if (const auto text = value_of(options, "max_sstables_to_compact")) {
    TETRAD_TRY_VOID(number_of("max_sstables_to_compact", *text));
  }
  if (const auto text = value_of(options, "overlap_inclusion_method")) {
    const std::string word = upper(*text);
    if (word != "NONE" && word != "SINGLE" && word != "TRANSITIVE") {
      return fail(
          ErrorCode::kConfig,
          "Invalid overlap inclusion method {}. The valid options are [NONE, SINGLE, TRANSITIVE].",
          *text);
    }
  }
  return {};
}

struct Strategy {
  std::set<std::string> options;
  Result<void> (*check)(const OptionMap&);
  bool counts = true;  // has min_threshold and max_threshold
};

const std::map<std::string, Strategy>& strategies() {
  static const std::map<std::string, Strategy> known = {
      {"SizeTieredCompactionStrategy",
       {{"min_sstable_size", "bucket_low", "bucket_high", "min_threshold", "max_threshold"},
        check_size_tiered}},
      {"LeveledCompactionStrategy",
       {{"sstable_size_in_mb", "single_sstable_uplevel", "fanout_size", "min_sstable_size",
         "bucket_low", "bucket_high", "min_threshold", "max_threshold"},
        check_leveled}},
      {"TimeWindowCompactionStrategy",
       {{"compaction_window_unit", "compaction_window_size", "timestamp_resolution",
         "expired_sstable_check_frequency_seconds", "unsafe_aggressive_sstable_expiration",
         "min_sstable_size", "bucket_low", "bucket_high", "min_threshold", "max_threshold"},
        check_time_window}},
      {"UnifiedCompactionStrategy",
       {{"scaling_parameters", "min_sstable_size", "target_sstable_size", "base_shard_count",
         "sstable_growth", "flush_size_override", "max_sstables_to_compact",
         "overlap_inclusion_method", "expired_sstable_check_frequency_seconds",
         "unsafe_aggressive_sstable_expiration"},
        check_unified,
        false}}};
  return known;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string full_class(std::string_view package, const std::string& name) {
  return name.find('.') == std::string::npos ? std::string(package) + name : name;
}

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
    value = word == "0" ? "NONE" : word;
  }
  caching.try_emplace("keys", "NONE");
  caching.try_emplace("rows_per_partition", "NONE");
  return {};
}

Result<void> check_compaction(OptionMap& compaction) {
  const auto found = compaction.find("class");
  if (found == compaction.end()) {
    return fail(ErrorCode::kConfig, "Missing sub-option 'class' for the 'compaction' option");
  }
  constexpr std::string_view package = "org.apache.cassandra.db.compaction.";
  found->second = full_class(package, found->second);
  const std::string name =
      found->second.starts_with(package) ? found->second.substr(package.size()) : "";
  const auto strategy = strategies().find(name);
  if (strategy == strategies().end()) {
    return fail(ErrorCode::kConfig, "Unable to find compaction strategy class '{}'", found->second);
  }
  static const std::set<std::string> common = {"class",
                                               "enabled",
                                               "tombstone_threshold",
                                               "tombstone_compaction_interval",
                                               "unchecked_tombstone_compaction",
                                               "only_purge_repaired_tombstones",
                                               "log_all",
                                               "provide_overlapping_tombstones"};
  TETRAD_TRY_VOID(check_thresholds(compaction));
  TETRAD_TRY_VOID(check_tombstones(compaction));
  TETRAD_TRY_VOID(strategy->second.check(compaction));
  std::string unknown;
  for (const auto& [option, value] : compaction) {
    if (!common.contains(option) && !strategy->second.options.contains(option)) {
      unknown += (unknown.empty() ? "" : ", ") + option;
    }
  }
  if (!unknown.empty()) {
    return fail(ErrorCode::kConfig, "Properties specified [{}] are not understood by {}", unknown,
                name);
  }
  if (!strategy->second.counts) return {};
  TETRAD_TRY_VOID(check_counts(compaction));
  compaction.try_emplace("max_threshold", "32");
  compaction.try_emplace("min_threshold", "4");
  return {};
}

Result<void> check_compression(OptionMap& compression) {
  if (compression.empty()) {
    compression = {{"enabled", "false"}};
    return {};
  }
  if (const auto enabled = value_of(compression, "enabled")) {
    compression.erase("enabled");
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
  const auto chunk = value_of(compression, "chunk_length_in_kb");
  int32_t chunk_kb = 16;
  if (chunk) {
    const auto parsed = whole<int32_t>(*chunk);
    if (!parsed) return fail(ErrorCode::kConfig, "Invalid value for chunk_length_in_kb");
    if (*parsed > std::numeric_limits<int32_t>::max() / 1024) {
      return fail(ErrorCode::kConfig, "Value of chunk_length_in_kb is too large ({})", *parsed);
    }
    chunk_kb = *parsed;
  }
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
  if (!is_digits(digits) || number.back() == '.') return std::nullopt;
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

Result<std::string> speculative_policy(std::string_view option, const std::string& text) {
  const auto invalid = [&] {
    return fail(ErrorCode::kConfig, "Invalid value {} for option '{}'", text, option);
  };
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
