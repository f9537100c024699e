// SPDX-License-Identifier: Apache-2.0
#include "server/config/guardrails.h"

#include <algorithm>
#include <cctype>

namespace tetrad::server {

namespace {

/// "b, A" as {"a", "b"}, or {"A", "B"}.
std::vector<std::string> names_in(const std::string& text, bool wants_upper) {
  std::vector<std::string> out;
  std::string name;
  for (const char c : text + ",") {
    if (c == ',') {
      if (!name.empty()) out.push_back(name);
      name.clear();
    } else if (c != ' ') {
      const auto byte = static_cast<unsigned char>(c);
      name.push_back(static_cast<char>(wants_upper ? std::toupper(byte) : std::tolower(byte)));
    }
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> properties(const std::string& text) { return names_in(text, false); }
std::vector<std::string> levels(const std::string& text) { return names_in(text, true); }

}  // namespace

void append_guardrail_options(std::vector<OptionEntry>& table) {
  using Number = uint64_t Options::*;
  using Unit = OptionUnit;
  constexpr uint64_t kMost = 1'000'000'000;
  const auto limits = [&](const std::string& name, const std::string& what, Number warn,
                          Number fail_at, Unit unit = Unit::kNone, const char* beyond = "beyond") {
    const uint64_t most = unit == Unit::kBytes ? uint64_t{1} << 40 : kMost;
    const auto add = [&](const char* end, Number target, const char* effect) {
      table.push_back({name + end,
                       target,
                       0,
                       most,
                       {},
                       fmt::format("Guardrail: {} {} which {}; 0: no limit.", what, beyond, effect),
                       unit});
    };
    add("_warn_threshold", warn, "clients are warned");
    add("_fail_threshold", fail_at, "statements are refused");
  };
  const auto text = [&](const char* name, std::string Options::*target, const char* sentence) {
    table.push_back(
        {name, target, 0, 0, {}, fmt::format("Guardrail: {}, with commas between.", sentence)});
  };
  const auto flag = [&](const char* name, bool Options::*target, const char* sentence) {
    table.push_back({name, target, 0, 0, {}, fmt::format("Guardrail: {}.", sentence)});
  };
  limits("keyspaces", "keyspaces", &Options::keyspaces_warn_threshold,
         &Options::keyspaces_fail_threshold);
  limits("tables", "tables", &Options::tables_warn_threshold, &Options::tables_fail_threshold);
  limits("columns_per_table", "columns of a table", &Options::columns_per_table_warn_threshold,
         &Options::columns_per_table_fail_threshold);
  limits("fields_per_udt", "fields of a user type", &Options::fields_per_udt_warn_threshold,
         &Options::fields_per_udt_fail_threshold);
  limits("vector_dimensions", "dimensions of a vector", &Options::vector_dimensions_warn_threshold,
         &Options::vector_dimensions_fail_threshold);
  limits("items_per_collection", "items of a collection",
         &Options::items_per_collection_warn_threshold,
         &Options::items_per_collection_fail_threshold);
  limits("collection_size", "bytes of a collection", &Options::collection_size_warn_threshold,
         &Options::collection_size_fail_threshold, Unit::kBytes);
  limits("column_value_size", "bytes of a column's value",
         &Options::column_value_size_warn_threshold, &Options::column_value_size_fail_threshold,
         Unit::kBytes);
  limits("page_size", "rows of a page", &Options::page_size_warn_threshold,
         &Options::page_size_fail_threshold);
  limits("partition_keys_in_select", "partition keys of a SELECT",
         &Options::partition_keys_in_select_warn_threshold,
         &Options::partition_keys_in_select_fail_threshold);
  limits("in_select_cartesian_product", "combinations of IN values of a SELECT",
         &Options::in_select_cartesian_product_warn_threshold,
         &Options::in_select_cartesian_product_fail_threshold);
  limits("minimum_replication_factor", "replication factor",
         &Options::minimum_replication_factor_warn_threshold,
         &Options::minimum_replication_factor_fail_threshold, Unit::kNone, "below");
  limits("maximum_replication_factor", "replication factor",
         &Options::maximum_replication_factor_warn_threshold,
         &Options::maximum_replication_factor_fail_threshold);
  limits("maximum_timestamp", "seconds of a write's timestamp ahead of the clock",
         &Options::maximum_timestamp_warn_threshold, &Options::maximum_timestamp_fail_threshold,
         Unit::kSeconds);
  limits("minimum_timestamp", "seconds of a write's timestamp behind the clock",
         &Options::minimum_timestamp_warn_threshold, &Options::minimum_timestamp_fail_threshold,
         Unit::kSeconds);
  text("table_properties_warned", &Options::table_properties_warned,
       "table properties that clients are warned of");
  text("table_properties_ignored", &Options::table_properties_ignored,
       "table properties that have no effect");
  text("table_properties_disallowed", &Options::table_properties_disallowed,
       "table properties that are refused");
  text("write_consistency_levels_warned", &Options::write_consistency_levels_warned,
       "consistency levels of writes that clients are warned of");
  text("write_consistency_levels_disallowed", &Options::write_consistency_levels_disallowed,
       "consistency levels of writes that are refused");
  text("read_consistency_levels_warned", &Options::read_consistency_levels_warned,
       "consistency levels of reads that clients are warned of");
  text("read_consistency_levels_disallowed", &Options::read_consistency_levels_disallowed,
       "consistency levels of reads that are refused");
  flag("user_timestamps_enabled", &Options::user_timestamps_enabled,
       "allows timestamps given in statements");
  flag("group_by_enabled", &Options::group_by_enabled, "allows GROUP BY");
  flag("allow_filtering_enabled", &Options::allow_filtering_enabled, "allows ALLOW FILTERING");
  flag("drop_truncate_table_enabled", &Options::drop_truncate_table_enabled,
       "allows DROP TABLE and TRUNCATE");
  flag("drop_keyspace_enabled", &Options::drop_keyspace_enabled, "allows DROP KEYSPACE");
  flag("alter_table_enabled", &Options::alter_table_enabled, "allows ALTER TABLE of columns");
  flag("read_before_write_list_operations_enabled",
       &Options::read_before_write_list_operations_enabled,
       "allows operations on lists that read before they write");
  flag("simplestrategy_enabled", &Options::simplestrategy_enabled, "allows SimpleStrategy");
  flag("uncompressed_tables_enabled", &Options::uncompressed_tables_enabled,
       "allows tables without compression");
  flag("compact_tables_enabled", &Options::compact_tables_enabled,
       "allows new tables WITH COMPACT STORAGE");
  flag("drop_compact_storage_enabled", &Options::drop_compact_storage_enabled,
       "allows DROP COMPACT STORAGE");
  flag("zero_ttl_on_twcs_enabled", &Options::zero_ttl_on_twcs_enabled,
       "allows TimeWindowCompactionStrategy without a default_time_to_live");
  flag("zero_ttl_on_twcs_warned", &Options::zero_ttl_on_twcs_warned,
       "warns of TimeWindowCompactionStrategy without a default_time_to_live");
}

cql::Guardrails guardrails_of(const Options& options) {
  cql::Guardrails out;
  out.keyspaces = {options.keyspaces_warn_threshold, options.keyspaces_fail_threshold};
  out.tables = {options.tables_warn_threshold, options.tables_fail_threshold};
  out.columns_per_table = {options.columns_per_table_warn_threshold,
                           options.columns_per_table_fail_threshold};
  out.fields_per_udt = {options.fields_per_udt_warn_threshold,
                        options.fields_per_udt_fail_threshold};
  out.vector_dimensions = {options.vector_dimensions_warn_threshold,
                           options.vector_dimensions_fail_threshold};
  out.items_per_collection = {options.items_per_collection_warn_threshold,
                              options.items_per_collection_fail_threshold};
  out.page_size = {options.page_size_warn_threshold, options.page_size_fail_threshold};
  out.partition_keys_in_select = {options.partition_keys_in_select_warn_threshold,
                                  options.partition_keys_in_select_fail_threshold};
  out.in_select_cartesian_product = {options.in_select_cartesian_product_warn_threshold,
                                     options.in_select_cartesian_product_fail_threshold};
  out.minimum_replication_factor = {options.minimum_replication_factor_warn_threshold,
                                    options.minimum_replication_factor_fail_threshold};
  out.maximum_replication_factor = {options.maximum_replication_factor_warn_threshold,
                                    options.maximum_replication_factor_fail_threshold};
  out.collection_size_bytes = {options.collection_size_warn_threshold,
                               options.collection_size_fail_threshold};
  out.column_value_size_bytes = {options.column_value_size_warn_threshold,
                                 options.column_value_size_fail_threshold};
  out.maximum_timestamp_s = {options.maximum_timestamp_warn_threshold,
                             options.maximum_timestamp_fail_threshold};
  out.minimum_timestamp_s = {options.minimum_timestamp_warn_threshold,
                             options.minimum_timestamp_fail_threshold};
  out.table_properties = {properties(options.table_properties_warned),
                          properties(options.table_properties_ignored),
                          properties(options.table_properties_disallowed)};
  out.write_consistency_levels = {levels(options.write_consistency_levels_warned),
                                  {},
                                  levels(options.write_consistency_levels_disallowed)};
  out.read_consistency_levels = {levels(options.read_consistency_levels_warned),
                                 {},
                                 levels(options.read_consistency_levels_disallowed)};
  out.user_timestamps = options.user_timestamps_enabled;
  out.group_by = options.group_by_enabled;
  out.allow_filtering = options.allow_filtering_enabled;
  out.drop_truncate_table = options.drop_truncate_table_enabled;
  out.drop_keyspace = options.drop_keyspace_enabled;
  out.alter_table = options.alter_table_enabled;
  out.read_before_write_list_operations = options.read_before_write_list_operations_enabled;
  out.simplestrategy = options.simplestrategy_enabled;
  out.compact_tables = options.compact_tables_enabled;
  out.drop_compact_storage = options.drop_compact_storage_enabled;
  out.uncompressed_tables = options.uncompressed_tables_enabled;
  out.zero_ttl_on_twcs = options.zero_ttl_on_twcs_enabled;
  out.zero_ttl_on_twcs_warned = options.zero_ttl_on_twcs_warned;
  return out;
}

}  // namespace tetrad::server
