// SPDX-License-Identifier: Apache-2.0
// The options of Cassandra's compaction strategies.
// They are checked as Cassandra does, in its order and with its texts, and stored for DESCRIBE.
// check_compaction() is the entry: the class, what all strategies have, the strategy's own, then
// unknown options. `{:.6f}` and `double_to_text` print numbers as Java does.
#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "cql/prepare/option_values.h"
#include "cql/prepare/storage_options.h"
#include "cql/types/number.h"

namespace tetrad::cql {

namespace {

// Java's Long.parseLong; the text of the error says int, as Cassandra's does.
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

/// "1.500GiB": as Cassandra's FBUtilities prints sizes.
std::string size_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.3f}{}", bytes, kUnits[unit]);
}

/// A size in bytes with its unit. Errors: kConfig, not of that form, or less than 1 MiB.
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

/// In any case, as Java compares; 1, yes and the like are refused, unlike in table properties.
bool is_boolean(const std::string& text) {
  const std::string word = lower(text);
  return word == "true" || word == "false";
}

// --- what all strategies have ---

// Cassandra's AbstractCompactionStrategy.validateOptions. `enabled` stands here since it is an
// option of the map like the others.
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
Result<void> check_overlapping_tombstones(const OptionMap& options) {
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

/// min_threshold and max_threshold: how many files of a size are compacted together.
Result<void> check_counts(const OptionMap& options) {
  // Cassandra's defaults: a statement that sets one of the two is checked against the default of
  // the other.
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

/// bucket_low and bucket_high: files count as of one size between these parts of the average.
Result<void> check_size_tiered(const OptionMap& options) {
  if (const auto text = value_of(options, "min_sstable_size")) {
    TETRAD_TRY(const int64_t size, number_of("min_sstable_size", *text));
    if (size < 0) {
      return fail(ErrorCode::kConfig, "min_sstable_size must be non negative: {}", size);
    }
  }
  // Cassandra's defaults of bucket_low and bucket_high.
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

/// Sizes of files, and how much larger each level is.
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

/// One window of time for each group of files.
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
    // Cassandra allows it only with a property of the JVM, which nobody can set here.
    if (lower(*text) == "true") {
      return fail(
          ErrorCode::kConfig,
          "unsafe_aggressive_sstable_expiration is requested but not allowed, restart cassandra "
          "with -Dcassandra.allow_unsafe_aggressive_sstable_expiration=true to allow it");
    }
  }
  // Within a window Cassandra compacts by size.
  return check_size_tiered(options);
}

/// N, L or T with digits, or a whole number.
bool is_scaling_parameter(std::string_view text) {
  if (text == "N") return true;
  if (!text.empty() && std::string_view("LT+-").find(text[0]) != std::string_view::npos)
    text.remove_prefix(1);
  return all_digits(text);
}

/// scaling_parameters: a list such as "T4, N, L8", one for each level. T tiered, L leveled, N
/// between.
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

// One list: each option with its check, in Cassandra's order, which decides between two errors.
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
  // 1 GiB, Cassandra's default, which min_sstable_size is compared with.
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

/// A strategy's own options and how they are checked; those that all strategies have are not here.
struct Strategy {
  std::set<std::string> options;
  Result<void> (*check)(const OptionMap&);
  bool counts = true;  // has min_threshold and max_threshold
};

// By the name of the class without its package. A function and not a constant: the maps are made
// when the first statement needs them.
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

// Numbers of files are checked last and then filled in, because DESCRIBE of a new table shows them.
Result<void> check_compaction(OptionMap& compaction) {
  const auto found = compaction.find("class");
  if (found == compaction.end()) {
    return fail(ErrorCode::kConfig, "Missing sub-option 'class' for the 'compaction' option");
  }
  constexpr std::string_view package = "org.apache.cassandra.db.compaction.";
  // Stored with the full name, as DESCRIBE shows it.
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
  TETRAD_TRY_VOID(check_overlapping_tombstones(compaction));
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

}  // namespace tetrad::cql
