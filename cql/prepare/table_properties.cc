// SPDX-License-Identifier: Apache-2.0
// What WITH says of tables and keyspaces. Values and error texts are Cassandra's; properties that
// begin with tetrad_ are this server's own. An unknown name is kSyntax, a value that may not be is
// kConfig. The parser has refused a name that is written twice.
#include "cql/prepare/table_properties.h"

#include <charconv>
#include <cmath>

#include "cql/prepare/storage_options.h"
#include "cql/prepare/throughput_properties.h"
#include "cql/types/number.h"

namespace tetrad::cql {
namespace {

using Map = std::map<std::string, std::string>;

/// A string, number or other constant as text. Errors: kSyntax, it is a map.
Result<std::string> simple_value(const ast::Property& property) {
  if (const auto* literal = std::get_if<ast::Literal>(&property.value.value)) return literal->text;
  return fail(ErrorCode::kSyntax, "Invalid value for property '{}'. It should be a string",
              property.name.text);
}

/// A map; of a key that is written twice the last value stays. Errors: kSyntax.
Result<Map> map_value(const ast::Property& property) {
  const auto* entries = std::get_if<ast::PropertyValue::Map>(&property.value.value);
  if (entries == nullptr) {
    return fail(ErrorCode::kSyntax, "Invalid value for property '{}'. It should be a map.",
                property.name.text);
  }
  Map out;
  for (const auto& [key, value] : *entries) out[key.text] = value.text;
  return out;
}

// The number must be the whole text. Errors: kSyntax, as Cassandra has them.
Result<int32_t> integer(std::string_view name, const std::string& text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::kSyntax, "Invalid integer value {} for '{}'", text, name);
  }
  return value;
}

Result<double> real(std::string_view name, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::kSyntax, "Invalid double value {} for '{}'", text, name);
  }
  return value;
}

/// The words of Cassandra's PropertyDefinitions, in any case.
Result<bool> boolean(std::string_view name, const std::string& text) {
  const std::string word = lower(text);
  if (word == "1" || word == "true" || word == "yes") return true;
  if (word == "0" || word == "false" || word == "no") return false;
  return fail(ErrorCode::kSyntax,
              "Invalid boolean value {} for '{}'. Positive values can be '1', 'true' or 'yes'. "
              "Negative values can be "
              "'0', 'false' or 'no'.",
              text, name);
}

/// Errors: kConfig, less than `least`; kSyntax, no number.
Result<int32_t> integer_at_least(const ast::Property& property, int32_t least) {
  TETRAD_TRY(const std::string text, simple_value(property));
  TETRAD_TRY(const int32_t value, integer(property.name.text, text));
  if (value < least) {
    return fail(ErrorCode::kConfig, "{} must be greater than or equal to {} (got {})",
                property.name.text, least, value);
  }
  return value;
}

}  // namespace

// What DESCRIBE shows for a table without WITH: Cassandra's defaults.
TableOptions default_table_options() {
  TableOptions options;
  options.caching = {{"keys", "ALL"}, {"rows_per_partition", "NONE"}};
  options.compaction = {
      {"class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"},
      {"max_threshold", "32"},
      {"min_threshold", "4"}};
  options.compression = {{"chunk_length_in_kb", "16"},
                         {"class", "org.apache.cassandra.io.compress.LZ4Compressor"}};
  return options;
}

void follow_compaction(const ast::Properties& properties, TableOptions& options) {
  const auto compaction = options.compaction.find("class");
  if (compaction == options.compaction.end() ||
      !compaction->second.ends_with("LeveledCompactionStrategy") ||
      std::ranges::any_of(properties, [](const ast::Property& property) {
        return property.name.text == "bloom_filter_fp_chance";
      }))
    return;
  options.bloom_filter_fp_chance = 0.1;
}

// One list: each property with its check, in one piece, so that a property is found by its name.
Result<void> apply_table_properties(const ast::Properties& properties, TableOptions& options,
                                    std::optional<Uuid>& id) {
  for (const ast::Property& property : properties) {
    const std::string& name = property.name.text;
    if (name == "comment") {
      TETRAD_TRY(options.comment, simple_value(property));
    } else if (name == "default_time_to_live") {
      TETRAD_TRY(options.default_time_to_live_s, integer_at_least(property, 0));
      // 20 years of 365 days, Cassandra's longest TTL.
      constexpr int32_t kTtlMax = 630'720'000;
      if (options.default_time_to_live_s > kTtlMax) {
        return fail(ErrorCode::kConfig,
                    "default_time_to_live must be less than or equal to {} (got {})", kTtlMax,
                    options.default_time_to_live_s);
      }
    } else if (name == "gc_grace_seconds") {
      TETRAD_TRY(options.gc_grace_seconds, integer_at_least(property, 0));
    } else if (name == "tetrad_max_partition_mb") {
      TETRAD_TRY(const int32_t mb, integer_at_least(property, 1));
      options.max_partition_mb = static_cast<uint32_t>(mb);
    } else if (name == "tetrad_initial_partitions") {
      constexpr int32_t kInitialPartitionsMax = 1024;
      TETRAD_TRY(const int32_t count, integer_at_least(property, 0));
      if (count > kInitialPartitionsMax) {
        return fail(ErrorCode::kConfig, "{} must be less than or equal to {} (got {})", name,
                    kInitialPartitionsMax, count);
      }
      options.initial_partitions = static_cast<uint32_t>(count);
    } else if (name == "bloom_filter_fp_chance") {
      TETRAD_TRY(const std::string text, simple_value(property));
      TETRAD_TRY(options.bloom_filter_fp_chance, real(name, text));
      // The smallest chance that Cassandra's filters can have. Written so that NaN fails.
      if (!(options.bloom_filter_fp_chance > 6.71e-5 && options.bloom_filter_fp_chance <= 1.0)) {
        return fail(ErrorCode::kConfig,
                    "bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to "
                    "1.0 (got {})",
                    float_to_text(static_cast<float>(options.bloom_filter_fp_chance)));
      }
    } else if (name == "crc_check_chance") {
      TETRAD_TRY(const std::string text, simple_value(property));
      TETRAD_TRY(options.crc_check_chance, real(name, text));
      if (!(options.crc_check_chance >= 0 && options.crc_check_chance <= 1.0)) {
        return fail(ErrorCode::kConfig,
                    "crc_check_chance must be larger than or equal to 0 and smaller than or equal "
                    "to 1.0 (got {})",
                    double_to_text(options.crc_check_chance));
      }
    } else if (name == "cdc") {
      TETRAD_TRY(const std::string text, simple_value(property));
      TETRAD_TRY(options.cdc, boolean(name, text));
    } else if (name == "allow_auto_snapshot" || name == "incremental_backups") {
      TETRAD_TRY(const std::string text, simple_value(property));
      auto& target =
          name == "incremental_backups" ? options.incremental_backups : options.allow_auto_snapshot;
      TETRAD_TRY(target, boolean(name, text));
    } else if (name == "min_index_interval") {
      TETRAD_TRY(options.min_index_interval, integer_at_least(property, 1));
    } else if (name == "max_index_interval") {
      TETRAD_TRY(const std::string text, simple_value(property));
      TETRAD_TRY(options.max_index_interval, integer(name, text));
    } else if (name == "memtable_flush_period_in_ms") {
      TETRAD_TRY(options.memtable_flush_period_in_ms, integer_at_least(property, 0));
    } else if (name == "speculative_retry" || name == "additional_write_policy") {
      TETRAD_TRY(const std::string text, simple_value(property));
      auto& target =
          name == "speculative_retry" ? options.speculative_retry : options.additional_write_policy;
      // Cassandra names this option in the errors of both.
      TETRAD_TRY(target, speculative_policy("speculative_retry", text));
    } else if (name == "read_repair") {
      TETRAD_TRY(std::string text, simple_value(property));
      text = lower(text);
      if (text != "blocking" && text != "none") {
        return fail(
            ErrorCode::kConfig,
            "Invalid value {} for option 'read_repair': only 'BLOCKING' and 'NONE' are allowed",
            text);
      }
      options.read_repair = text == "none" ? "NONE" : "BLOCKING";
    } else if (name == "memtable") {
      TETRAD_TRY(const std::string text, simple_value(property));
      if (text != "default")
        return fail(ErrorCode::kConfig, "Memtable configuration \"{}\" not found.", text);
    } else if (name == "caching") {
      TETRAD_TRY(Map caching, map_value(property));
      TETRAD_TRY_VOID(check_caching(caching));
      options.caching = std::move(caching);
    } else if (name == "compaction") {
      TETRAD_TRY(Map compaction, map_value(property));
      TETRAD_TRY_VOID(check_compaction(compaction));
      options.compaction = std::move(compaction);
    } else if (name == "compression") {
      TETRAD_TRY(Map compression, map_value(property));
      TETRAD_TRY_VOID(check_compression(compression));
      options.compression = std::move(compression);
    } else if (name == "extensions") {
      // Cassandra takes any value and keeps none.
    } else if (name == "id") {
      TETRAD_TRY(const std::string text, simple_value(property));
      id = Uuid::parse(text);
      if (!id) return fail(ErrorCode::kConfig, "Invalid table id");
    } else if (name.starts_with("cosmosdb_cell_level_")) {
      TETRAD_TRY(const std::string text, simple_value(property));
      TETRAD_TRY_VOID(boolean(name, text));  // timestamps and TTLs are always kept by cell
    } else if (!is_throughput_property(name)) {
      return fail(ErrorCode::kSyntax, "Unknown property '{}'", name);
    }
  }
  TETRAD_TRY_VOID(apply_throughput(properties, options.throughput));
  // Last: the statement may set both, in any order.
  if (options.max_index_interval < options.min_index_interval) {
    return fail(
        ErrorCode::kConfig,
        "max_index_interval must be greater than or equal to min_index_interval ({}) (got {})",
        options.min_index_interval, options.max_index_interval);
  }
  return {};
}

namespace {

/// What Cassandra takes for a number: digits, with a sign of either kind.
Result<int32_t> factor_number(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  int32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size())
    return fail(ErrorCode::kConfig, "For input string: \"{}\"", text);
  return number;
}

/// A replication factor: a number, 0 included. "4/1" would have a transient replica, which
/// Cassandra does not take by default; "4/0" is 4.
Result<int32_t> parse_factor(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view transient = slash == std::string_view::npos ? "0" : text.substr(slash + 1);
  if (transient.empty() || transient.find('/') != std::string_view::npos) {
    return fail(ErrorCode::kConfig,
                "Replication factor format is <replicas> or <replicas>/<transient>");
  }
  TETRAD_TRY(const int32_t factor, factor_number(text.substr(0, slash)));
  TETRAD_TRY(const int32_t transients, factor_number(transient));
  if (transients != 0)
    return fail(ErrorCode::kConfig, "Transient replication is not enabled on this node");
  if (factor < 0)
    return fail(ErrorCode::kConfig, "Replication factor must be non-negative, found {}", factor);
  return factor;
}

/// Refuses what is none of the options that the strategy has.
Result<void> check_options(const std::string& keyspace, std::string_view strategy,
                           const Map& options, const std::set<std::string>& known) {
  for (const auto& [option, value] : options) {
    if (known.contains(option)) continue;
    return fail(ErrorCode::kConfig,
                "Unrecognized strategy option {{{}}} passed to {} for keyspace {}", option,
                strategy, keyspace);
  }
  return {};
}

std::unexpected<Error> names_no_data_center() {
  return fail(ErrorCode::kConfig, "Configuration for at least one datacenter must be present");
}

const std::string kFactor = "replication_factor";

std::string default_factor() { return std::to_string(kDefaultReplicationFactor); }

// `replication_factor` stands for the data centres of the cluster that neither the statement nor
// `old` names, and is not stored. Cassandra passes over one that is no factor: what the statement
// and `old` name is taken as it is. Otherwise a data centre with factor 0 is not stored.
Result<Map> expand_factor(const std::string& keyspace, Map options,
                          const std::set<std::string>& data_centers, const Map& old) {
  if (options.empty())
    options[kFactor] = old.contains(kFactor) ? old.at(kFactor) : default_factor();
  bool keeps_zeros = false;
  if (const auto found = options.find(kFactor); found != options.end()) {
    const Result<int32_t> factor = parse_factor(found->second);
    options.erase(found);
    for (const auto& [option, value] : old)
      if (option != kFactor && option != "class") options.emplace(option, value);
    keeps_zeros = !factor;
    if (factor)
      for (const auto& data_center : data_centers)
        options.emplace(data_center, std::to_string(*factor));
  }
  if (!keeps_zeros) std::erase_if(options, [](const auto& entry) { return entry.second == "0"; });
  bool has_rows = false;
  for (const auto& [option, value] : options) {
    TETRAD_TRY(const int32_t factor, parse_factor(value));
    has_rows = has_rows || factor != 0;
  }
  if (options.empty()) return names_no_data_center();
  TETRAD_TRY_VOID(check_options(keyspace, "NetworkTopologyStrategy", options, data_centers));
  if (!has_rows) return names_no_data_center();  // "00": Cassandra takes it, and has no replicas
  return options;
}

// The replication map as it is stored: the full name of the class, and
//
// 1. SimpleStrategy: replication_factor; without one that of `old`, or 1.
// 2. NetworkTopologyStrategy: a factor for each data centre. At least one must not be 0.
// 3. LocalStrategy and unknown ones are refused.
//
// `old` is the map before ALTER, null for CREATE. Errors: kConfig.
Result<Map> check_replication(const std::string& keyspace, Map given,
                              const std::set<std::string>& data_centers, const Map* old) {
  const auto found = given.find("class");
  if (found == given.end()) return fail(ErrorCode::kConfig, "Missing replication strategy class");
  constexpr std::string_view package = "org.apache.cassandra.locator.";
  const std::string name = full_class(package, found->second);
  given.erase(found);
  const Map before = old != nullptr ? *old : Map();
  if (name == std::string(package) + "SimpleStrategy") {
    given.emplace(kFactor, before.contains(kFactor) ? before.at(kFactor) : default_factor());
    TETRAD_TRY_VOID(parse_factor(given.at(kFactor)));
    TETRAD_TRY_VOID(check_options(keyspace, "SimpleStrategy", given, {kFactor}));
  } else if (name == std::string(package) + "NetworkTopologyStrategy") {
    TETRAD_TRY(given, expand_factor(keyspace, std::move(given), data_centers, before));
  } else if (name == std::string(package) + "LocalStrategy") {
    return fail(ErrorCode::kConfig,
                "Unable to use given strategy class: LocalStrategy is reserved for internal use.");
  } else {
    return fail(ErrorCode::kConfig, "Unable to find replication strategy class '{}'", name);
  }
  given.emplace("class", name);
  return given;
}

}  // namespace

// Throughputs are read together at the end: the two options exclude each other.
Result<KeyspaceProperties> read_keyspace_properties(const std::string& keyspace,
                                                    const ast::Properties& properties,
                                                    const std::set<std::string>& data_centers,
                                                    const Map* old) {
  KeyspaceProperties out;
  for (const ast::Property& property : properties) {
    const std::string& name = property.name.text;
    if (name == "replication") {
      TETRAD_TRY(Map given, map_value(property));
      TETRAD_TRY(out.replication, check_replication(keyspace, std::move(given), data_centers, old));
    } else if (name == "durable_writes") {
      TETRAD_TRY(const std::string text, simple_value(property));
      TETRAD_TRY(out.durable_writes, boolean(name, text));
    } else if (is_throughput_property(name)) {
      if (!out.throughput) out.throughput.emplace();
    } else {
      return fail(ErrorCode::kSyntax, "Unknown property '{}'", name);
    }
  }
  if (out.throughput) TETRAD_TRY_VOID(apply_throughput(properties, *out.throughput));
  return out;
}

}  // namespace tetrad::cql
