// SPDX-License-Identifier: Apache-2.0
// Limits that whoever runs the server puts on what clients may do: Cassandra 5.0's guardrails, with
// its names, warnings and errors. All are off unless the configuration says otherwise.
//
// A guardrail below its failure limit only adds a warning to the answer. Texts are Cassandra's,
// exactly. The values come from the options (server/config/guardrails.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/consistency_level.h"
#include "base/result.h"
#include "cql/types/data_type.h"

namespace tetrad::cql {

/// A number that is warned of above one limit and refused above another; 0: no limit.
struct Threshold {
  // Passed when the value is above (check_threshold) or below (check_minimum), never when equal.
  uint64_t warn = 0, fail = 0;
  bool is_on() const { return warn != 0 || fail != 0; }
};

/// Names that give a warning, are ignored, or are refused.
struct NameLimits {
  // Properties can be ignored, consistency levels cannot.
  std::vector<std::string> warned, ignored, disallowed;
};

/// What an operator allows statements to do, by the names of Cassandra's guardrails. Part of the
/// settings, which are replaced as a whole.
struct Guardrails {
  // Numbers of schema objects: checked by the plans of schema statements (plan_*.cc).
  Threshold keyspaces, tables, columns_per_table, fields_per_udt, vector_dimensions;
  Threshold secondary_indexes_per_table;
  Threshold materialized_views_per_table;
  // Sizes of values: checked by ValueGuard when cells are made.
  Threshold collection_size_bytes, items_per_collection, column_value_size_bytes;
  // What one SELECT asks for: checked when it is bound.
  Threshold page_size, partition_keys_in_select, in_select_cartesian_product;
  Threshold minimum_replication_factor, maximum_replication_factor;
  Threshold maximum_timestamp_s, minimum_timestamp_s;            // ahead of and behind the clock
  NameLimits table_properties;                                   // in lower case
  NameLimits write_consistency_levels, read_consistency_levels;  // in upper case
  // Features: false refuses the statement, whatever its values are.
  bool user_timestamps = true, group_by = true, allow_filtering = true;
  bool drop_truncate_table = true, drop_keyspace = true, alter_table = true;
  bool read_before_write_list_operations = true, simplestrategy = true;
  bool compact_tables = true, drop_compact_storage = true, uncompressed_tables = true;
  bool zero_ttl_on_twcs = true, zero_ttl_on_twcs_warned = false;
  bool secondary_indexes = true, sasi_indexes = false;

  /// Whether values must be looked at when they are written.
  bool on_values() const {
    return collection_size_bytes.is_on() || items_per_collection.is_on() ||
           column_value_size_bytes.is_on();
  }
};

/// What guardrails add to the answer of a request.
using Warnings = std::vector<std::string>;

// Checks. Errors: kInvalid. What only warns adds its text to `warnings`.

/// "Guardrail NAME violated: WHAT is not allowed", and a reason if there is one.
Result<void> check_enabled(bool enabled, std::string_view guardrail, std::string_view what,
                           std::string_view reason = {});
/// Warns with or fails with the text that `text(limit, fails)` gives.
template <class Text>
Result<void> check_threshold(const Threshold& threshold, uint64_t value, std::string_view guardrail,
                             Warnings& warnings, Text text);
/// As check_threshold(), where less is worse.
template <class Text>
Result<void> check_minimum(const Threshold& threshold, uint64_t value, std::string_view guardrail,
                           Warnings& warnings, Text text);
/// `names` against the three lists: an error for a name of `disallowed`, a warning for the others.
/// Returns the names that the caller must leave out, those of `ignored`.
Result<std::vector<std::string>> check_names(const NameLimits& limits,
                                             std::span<const std::string> names,
                                             std::string_view guardrail, std::string_view what,
                                             Warnings& warnings);
/// Of the level that the client asked for. Errors: kInvalid.
Result<void> check_consistency(const NameLimits& limits, ConsistencyLevel level, bool is_write,
                               Warnings& warnings);
/// The dimensions of vectors in a column, at any depth.
Result<void> check_vectors(const Guardrails& guardrails, const DataType& type,
                           std::string_view column, Warnings& warnings);
/// Of USING TIMESTAMP; `now_us` of the wall clock.
Result<void> check_timestamp(const Guardrails& guardrails, int64_t timestamp_us, int64_t now_us,
                             std::string_view table, Warnings& warnings);

/// What is looked at when values are written.
struct ValueGuard {
  // Of the request; both outlive the making of its cells.
  const Guardrails& guardrails;
  Warnings& warnings;

  /// Of one value or element. Errors: kInvalid.
  Result<void> check_size(std::string_view column, uint64_t bytes) const;
  /// Of a collection that one statement writes. Errors: kInvalid.
  Result<void> check_collection(std::string_view column, uint64_t bytes, uint64_t items) const;
};

// --- the inside of a template ---

// The text of a warning or error, and whether a text is one.
std::string guardrail_text(std::string_view guardrail, std::string_view message);
bool is_guardrail_text(std::string_view message);

/// The failure limit first: what is refused is not warned of as well.
template <class IsBeyond, class Text>
Result<void> check_limits(const Threshold& threshold, IsBeyond is_beyond,
                          std::string_view guardrail, Warnings& warnings, Text text) {
  if (threshold.fail != 0 && is_beyond(threshold.fail)) {
    return std::unexpected(
        Error(ErrorCode::kInvalid, guardrail_text(guardrail, text(threshold.fail, true))));
  }
  if (threshold.warn != 0 && is_beyond(threshold.warn)) {
    warnings.push_back(guardrail_text(guardrail, text(threshold.warn, false)));
  }
  return {};
}

template <class Text>
Result<void> check_threshold(const Threshold& threshold, uint64_t value, std::string_view guardrail,
                             Warnings& warnings, Text text) {
  return check_limits(
      threshold, [value](uint64_t limit) { return value > limit; }, guardrail, warnings, text);
}

template <class Text>
Result<void> check_minimum(const Threshold& threshold, uint64_t value, std::string_view guardrail,
                           Warnings& warnings, Text text) {
  return check_limits(
      threshold, [value](uint64_t limit) { return value < limit; }, guardrail, warnings, text);
}

}  // namespace tetrad::cql
