// SPDX-License-Identifier: Apache-2.0
// Guardrails are Cassandra's, with its names in cassandra.yaml. Each table below is the one place
// of its kind: append_guardrail_options() makes options of it, guardrails_of() copies their values
// to what statements look at. To add a guardrail, add a member to Options and to cql::Guardrails,
// and a line here; the check itself is in room cql.
#include "server/config/guardrails.h"

#include <algorithm>

#include "base/consistency_level.h"
#include "server/config/name_list.h"

namespace tetrad::server {

namespace {

/// A guardrail with a number that is warned of and one that is refused.
struct NumberRail {
  const char* name;
  const char* what;
  uint64_t Options::*warn;
  uint64_t Options::*fail;
  cql::Threshold cql::Guardrails::*target;
  OptionUnit unit = OptionUnit::kNone;
  // The side on which the limit lies: "beyond" or "below".
  const char* beyond = "beyond";
};
// A line for each: the option's name without its ending, what is counted, the two options, and
// where the values go.
constexpr NumberRail kNumberRails[] = {
    {"keyspaces", "keyspaces", &Options::keyspaces_warn_threshold,
     &Options::keyspaces_fail_threshold, &cql::Guardrails::keyspaces},
    {"tables", "tables", &Options::tables_warn_threshold, &Options::tables_fail_threshold,
     &cql::Guardrails::tables},
    {"columns_per_table", "columns of a table", &Options::columns_per_table_warn_threshold,
     &Options::columns_per_table_fail_threshold, &cql::Guardrails::columns_per_table},
    {"secondary_indexes_per_table", "indexes of a table",
     &Options::secondary_indexes_per_table_warn_threshold,
     &Options::secondary_indexes_per_table_fail_threshold,
     &cql::Guardrails::secondary_indexes_per_table},
    {"materialized_views_per_table", "materialized views of a table",
     &Options::materialized_views_per_table_warn_threshold,
     &Options::materialized_views_per_table_fail_threshold,
     &cql::Guardrails::materialized_views_per_table},
    {"fields_per_udt", "fields of a user type", &Options::fields_per_udt_warn_threshold,
     &Options::fields_per_udt_fail_threshold, &cql::Guardrails::fields_per_udt},
    {"vector_dimensions", "dimensions of a vector", &Options::vector_dimensions_warn_threshold,
     &Options::vector_dimensions_fail_threshold, &cql::Guardrails::vector_dimensions},
    {"items_per_collection", "items of a collection", &Options::items_per_collection_warn_threshold,
     &Options::items_per_collection_fail_threshold, &cql::Guardrails::items_per_collection},
    {"collection_size", "bytes of a collection", &Options::collection_size_warn_threshold,
     &Options::collection_size_fail_threshold, &cql::Guardrails::collection_size_bytes,
     OptionUnit::kBytes},
    {"column_value_size", "bytes of a column's value", &Options::column_value_size_warn_threshold,
     &Options::column_value_size_fail_threshold, &cql::Guardrails::column_value_size_bytes,
     OptionUnit::kBytes},
    {"page_size", "rows of a page", &Options::page_size_warn_threshold,
     &Options::page_size_fail_threshold, &cql::Guardrails::page_size},
    {"partition_keys_in_select", "partition keys of a SELECT",
     &Options::partition_keys_in_select_warn_threshold,
     &Options::partition_keys_in_select_fail_threshold, &cql::Guardrails::partition_keys_in_select},
    {"in_select_cartesian_product", "combinations of IN values of a SELECT",
     &Options::in_select_cartesian_product_warn_threshold,
     &Options::in_select_cartesian_product_fail_threshold,
     &cql::Guardrails::in_select_cartesian_product},
    {"minimum_replication_factor", "replication factor",
     &Options::minimum_replication_factor_warn_threshold,
     &Options::minimum_replication_factor_fail_threshold,
     &cql::Guardrails::minimum_replication_factor, OptionUnit::kNone, "below"},
    {"maximum_replication_factor", "replication factor",
     &Options::maximum_replication_factor_warn_threshold,
     &Options::maximum_replication_factor_fail_threshold,
     &cql::Guardrails::maximum_replication_factor},
    {"maximum_timestamp", "seconds of a write's timestamp ahead of the clock",
     &Options::maximum_timestamp_warn_threshold, &Options::maximum_timestamp_fail_threshold,
     &cql::Guardrails::maximum_timestamp_s, OptionUnit::kSeconds},
    {"minimum_timestamp", "seconds of a write's timestamp behind the clock",
     &Options::minimum_timestamp_warn_threshold, &Options::minimum_timestamp_fail_threshold,
     &cql::Guardrails::minimum_timestamp_s, OptionUnit::kSeconds},
};

/// A guardrail that allows or forbids.
struct SwitchRail {
  const char* name;
  const char* sentence;
  bool Options::*source;
  bool cql::Guardrails::*target;
};
// Name, what it allows, the option, where its value goes.
constexpr SwitchRail kSwitchRails[] = {
    {"user_timestamps_enabled", "allows timestamps given in statements",
     &Options::user_timestamps_enabled, &cql::Guardrails::user_timestamps},
    {"group_by_enabled", "allows GROUP BY", &Options::group_by_enabled, &cql::Guardrails::group_by},
    {"allow_filtering_enabled", "allows ALLOW FILTERING", &Options::allow_filtering_enabled,
     &cql::Guardrails::allow_filtering},
    {"drop_truncate_table_enabled", "allows DROP TABLE and TRUNCATE",
     &Options::drop_truncate_table_enabled, &cql::Guardrails::drop_truncate_table},
    {"drop_keyspace_enabled", "allows DROP KEYSPACE", &Options::drop_keyspace_enabled,
     &cql::Guardrails::drop_keyspace},
    {"alter_table_enabled", "allows ALTER TABLE of columns", &Options::alter_table_enabled,
     &cql::Guardrails::alter_table},
    {"read_before_write_list_operations_enabled",
     "allows operations on lists that read before they write",
     &Options::read_before_write_list_operations_enabled,
     &cql::Guardrails::read_before_write_list_operations},
    {"simplestrategy_enabled", "allows SimpleStrategy", &Options::simplestrategy_enabled,
     &cql::Guardrails::simplestrategy},
    {"uncompressed_tables_enabled", "allows tables without compression",
     &Options::uncompressed_tables_enabled, &cql::Guardrails::uncompressed_tables},
    {"compact_tables_enabled", "allows new tables WITH COMPACT STORAGE",
     &Options::compact_tables_enabled, &cql::Guardrails::compact_tables},
    {"drop_compact_storage_enabled", "allows DROP COMPACT STORAGE",
     &Options::drop_compact_storage_enabled, &cql::Guardrails::drop_compact_storage},
    {"zero_ttl_on_twcs_enabled",
     "allows TimeWindowCompactionStrategy without a default_time_to_live",
     &Options::zero_ttl_on_twcs_enabled, &cql::Guardrails::zero_ttl_on_twcs},
    {"zero_ttl_on_twcs_warned",
     "warns of TimeWindowCompactionStrategy without a default_time_to_live",
     &Options::zero_ttl_on_twcs_warned, &cql::Guardrails::zero_ttl_on_twcs_warned},
    {"secondary_indexes_enabled", "allows CREATE INDEX", &Options::secondary_indexes_enabled,
     &cql::Guardrails::secondary_indexes},
    {"sasi_indexes_enabled", "allows indexes of the class SASIIndex",
     &Options::sasi_indexes_enabled, &cql::Guardrails::sasi_indexes},
};

/// Names that are warned of, ignored or refused.
struct NamesRail {
  const char* name;
  const char* sentence;
  std::string Options::*source;
  cql::NameLimits cql::Guardrails::*target;
  std::vector<std::string> cql::NameLimits::*list;
  bool in_upper_case;
};
// Three lists of one NameLimits may be options of their own.
constexpr NamesRail kNamesRails[] = {
    {"table_properties_warned", "table properties that clients are warned of",
     &Options::table_properties_warned, &cql::Guardrails::table_properties,
     &cql::NameLimits::warned, false},
    {"table_properties_ignored", "table properties that have no effect",
     &Options::table_properties_ignored, &cql::Guardrails::table_properties,
     &cql::NameLimits::ignored, false},
    {"table_properties_disallowed", "table properties that are refused",
     &Options::table_properties_disallowed, &cql::Guardrails::table_properties,
     &cql::NameLimits::disallowed, false},
    {"write_consistency_levels_warned", "consistency levels of writes that clients are warned of",
     &Options::write_consistency_levels_warned, &cql::Guardrails::write_consistency_levels,
     &cql::NameLimits::warned, true},
    {"write_consistency_levels_disallowed", "consistency levels of writes that are refused",
     &Options::write_consistency_levels_disallowed, &cql::Guardrails::write_consistency_levels,
     &cql::NameLimits::disallowed, true},
    {"read_consistency_levels_warned", "consistency levels of reads that clients are warned of",
     &Options::read_consistency_levels_warned, &cql::Guardrails::read_consistency_levels,
     &cql::NameLimits::warned, true},
    {"read_consistency_levels_disallowed", "consistency levels of reads that are refused",
     &Options::read_consistency_levels_disallowed, &cql::Guardrails::read_consistency_levels,
     &cql::NameLimits::disallowed, true},
};

// Not of kNumberRails: their percentages have another bound, and replicas look at them.
void append_disk_options(std::vector<OptionEntry>& table) {
  const auto add_percentage = [&](const char* end, uint64_t Options::*target, const char* effect) {
    table.push_back({std::string("data_disk_usage_percentage") + end,
                     target,
                     0,
                     100,
                     {},
                     fmt::format("Guardrail: percentage used of the disk under data_directory, "
                                 "beyond which {}; 0: no limit.",
                                 effect)});
  };
  add_percentage("_warn_threshold", &Options::data_disk_usage_percentage_warn_threshold,
                 "clients that write to the node are warned");
  add_percentage("_fail_threshold", &Options::data_disk_usage_percentage_fail_threshold,
                 "all nodes refuse what clients write to the node");
  table.push_back({"data_disk_usage_max_disk_size",
                   &Options::data_disk_usage_max_disk_size,
                   0,
                   uint64_t{1} << 60,
                   {},
                   "Guardrail: bytes that count as the whole disk for data_disk_usage_percentage; "
                   "0: what data_directory has and what is left on its disk.",
                   OptionUnit::kBytes});
}

// Found by sweeps over what is stored, so they are logged and refuse nothing.
void append_partition_options(std::vector<OptionEntry>& table) {
  const auto add = [&](const char* name, uint64_t Options::*target, uint64_t most, const char* what,
                       const char* level, OptionUnit unit) {
    table.push_back({name,
                     target,
                     0,
                     most,
                     {},
                     fmt::format("Guardrail: {} of a logical partition beyond which {} is logged "
                                 "when a sweep comes by, every half hour at most, where something "
                                 "has changed; 0: no limit.",
                                 what, level),
                     unit});
  };
  constexpr uint64_t kBytesMax = uint64_t{1} << 40;
  constexpr uint64_t kTombstonesMax = 1'000'000'000;
  add("partition_size_warn_threshold", &Options::partition_size_warn_threshold, kBytesMax,
      "bytes, as stored,", "a warning", OptionUnit::kBytes);
  add("partition_size_fail_threshold", &Options::partition_size_fail_threshold, kBytesMax,
      "bytes, as stored,", "an error", OptionUnit::kBytes);
  add("partition_tombstones_warn_threshold", &Options::partition_tombstones_warn_threshold,
      kTombstonesMax, "tombstones", "a warning", OptionUnit::kNone);
  add("partition_tombstones_fail_threshold", &Options::partition_tombstones_fail_threshold,
      kTombstonesMax, "tombstones", "an error", OptionUnit::kNone);
}

}  // namespace

void append_guardrail_options(std::vector<OptionEntry>& table) {
  for (const NumberRail& rail : kNumberRails) {
    // 1 TiB, or a thousand million of what is counted: only so that sums cannot overflow.
    const uint64_t most =
        rail.unit == OptionUnit::kBytes ? uint64_t{1} << 40 : uint64_t{1'000'000'000};
    const auto add = [&](const char* end, uint64_t Options::*target, const char* effect) {
      table.push_back(
          {std::string(rail.name) + end,
           target,
           0,
           most,
           {},
           fmt::format("Guardrail: {} {} which {}; 0: no limit.", rail.what, rail.beyond, effect),
           rail.unit});
    };
    add("_warn_threshold", rail.warn, "clients are warned");
    add("_fail_threshold", rail.fail, "statements are refused");
  }
  append_disk_options(table);
  append_partition_options(table);
  for (const NamesRail& rail : kNamesRails)
    table.push_back({rail.name,
                     rail.source,
                     0,
                     0,
                     {},
                     fmt::format("Guardrail: {}, with commas between.", rail.sentence),
                     OptionUnit::kNone,
                     true});
  for (const SwitchRail& rail : kSwitchRails)
    table.push_back(
        {rail.name, rail.source, 0, 0, {}, fmt::format("Guardrail: {}.", rail.sentence)});
}

Result<void> check_guardrails(const Options& options) {
  for (const NumberRail& rail : kNumberRails) {
    const uint64_t warn = options.*rail.warn, refuse = options.*rail.fail;
    // A warning comes before a refusal: for a least number the warning is the higher one.
    const bool is_least = std::string_view(rail.beyond) == "below";
    if (warn == 0 || refuse == 0 || (is_least ? warn >= refuse : warn <= refuse)) continue;
    return fail(ErrorCode::kConfig,
                "{0}_warn_threshold: {1} warns of what {0}_fail_threshold, {2}, refuses", rail.name,
                warn, refuse);
  }
  std::vector<std::string> levels;
  for (uint16_t i = 0; i <= static_cast<uint16_t>(ConsistencyLevel::kLocalOne); ++i)
    levels.emplace_back(name_of(static_cast<ConsistencyLevel>(i)));
  for (const NamesRail& rail : kNamesRails) {
    if (!rail.in_upper_case) continue;
    for (const std::string& name : names_in(options.*rail.source, Letters::kUpper)) {
      if (std::ranges::find(levels, name) != levels.end()) continue;
      return fail(ErrorCode::kConfig, "{}: '{}' is none of {}", rail.name, name,
                  fmt::join(levels, ", "));
    }
  }
  return {};
}

cql::Guardrails guardrails_of(const Options& options) {
  cql::Guardrails out;
  for (const NumberRail& rail : kNumberRails)
    out.*rail.target = {options.*rail.warn, options.*rail.fail};
  for (const NamesRail& rail : kNamesRails)
    out.*rail.target.*rail.list =
        names_in(options.*rail.source, rail.in_upper_case ? Letters::kUpper : Letters::kLower);
  for (const SwitchRail& rail : kSwitchRails) out.*rail.target = options.*rail.source;
  return out;
}

replication::DiskUsageLimits disk_usage_limits_of(const Options& options) {
  return {options.data_disk_usage_percentage_warn_threshold,
          options.data_disk_usage_percentage_fail_threshold, options.data_disk_usage_max_disk_size};
}

replication::PartitionThresholds partition_thresholds_of(const Options& options) {
  return {options.partition_size_warn_threshold, options.partition_size_fail_threshold,
          options.partition_tombstones_warn_threshold, options.partition_tombstones_fail_threshold};
}

}  // namespace tetrad::server
