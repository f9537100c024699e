// SPDX-License-Identifier: Apache-2.0
// The checks of guardrails that are more than a comparison with two limits.
//
// A text is always "Guardrail NAME violated: MESSAGE", and says which threshold was passed:
// "failure" in an error, "warning" in a warning.
#include "cql/prepare/guardrails.h"

#include <algorithm>

namespace tetrad::cql {

namespace {

std::string joined(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

/// Those of `names` that are in `limits`, in the order of `names`. Both are in one case
/// (guardrails.h).
std::vector<std::string> common(std::span<const std::string> names,
                                std::span<const std::string> limits) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (std::ranges::find(limits, name) != limits.end()) out.push_back(name);
  }
  return out;
}

}  // namespace

std::string guardrail_text(std::string_view guardrail, std::string_view message) {
  return fmt::format("Guardrail {} violated: {}", guardrail, message);
}

bool is_guardrail_text(std::string_view message) { return message.starts_with("Guardrail "); }

Result<void> check_enabled(bool enabled, std::string_view guardrail, std::string_view what,
                           std::string_view reason) {
  if (enabled) return {};
  return fail(ErrorCode::kInvalid, "{} is not allowed{}{}", guardrail_text(guardrail, what),
              reason.empty() ? "" : ". ", reason);
}

// A refused name is reported before anything is added to the warnings.
Result<std::vector<std::string>> check_names(const NameLimits& limits,
                                             std::span<const std::string> names,
                                             std::string_view guardrail, std::string_view what,
                                             Warnings& warnings) {
  if (const auto disallowed = common(names, limits.disallowed); !disallowed.empty()) {
    return fail(ErrorCode::kInvalid, "{}",
                guardrail_text(guardrail,
                               fmt::format("Provided values [{}] are not allowed for {} "
                                           "(disallowed values are: [{}])",
                                           joined(disallowed), what, joined(limits.disallowed))));
  }
  std::vector<std::string> ignored = common(names, limits.ignored);
  if (!ignored.empty()) {
    warnings.push_back(guardrail_text(
        guardrail, fmt::format("Ignoring provided values [{}] as they are not supported for {} "
                               "(ignored values are: [{}])",
                               joined(ignored), what, joined(limits.ignored))));
  }
  if (const auto warned = common(names, limits.warned); !warned.empty()) {
    warnings.push_back(guardrail_text(
        guardrail,
        fmt::format("Provided values [{}] are not recommended for {} (warned values are: [{}])",
                    joined(warned), what, joined(limits.warned))));
  }
  return ignored;
}

// The usual case has no lists, and no string is made for it.
Result<void> check_consistency(const NameLimits& limits, ConsistencyLevel level, bool is_write,
                               Warnings& warnings) {
  if (limits.warned.empty() && limits.disallowed.empty()) return {};
  const std::array names{std::string(base::name_of(level))};
  TETRAD_TRY(
      const auto ignored,
      check_names(limits, names, is_write ? "write_consistency_levels" : "read_consistency_levels",
                  is_write ? "write consistency levels" : "read consistency levels", warnings));
  (void)ignored;
  return {};
}

Result<void> check_vectors(const Guardrails& guardrails, const DataType& type,
                           std::string_view column, Warnings& warnings) {
  if (!guardrails.vector_dimensions.is_on()) return {};
  if (type.kind() == TypeKind::kVector) {
    TETRAD_TRY_VOID(check_threshold(
        guardrails.vector_dimensions, type.dimension(), "vector_dimensions", warnings,
        [&](uint64_t limit, bool fails) {
          return fmt::format(
              "Column {} has a vector of {} dimensions, this exceeds the {} threshold of {}.",
              column, type.dimension(), fails ? "failure" : "warning", limit);
        }));
  }
  // Collections, tuples and user types may contain vectors, and vectors others.
  for (const TypePtr& part : type.components()) {
    TETRAD_TRY_VOID(check_vectors(guardrails, *part, column, warnings));
  }
  return {};
}

// The two thresholds are distances from now: ahead of the clock, a row that later writes cannot
// replace; behind it, a write that an older one hides.
Result<void> check_timestamp(const Guardrails& guardrails, int64_t timestamp_us, int64_t now_us,
                             std::string_view table, Warnings& warnings) {
  const auto check = [&](const Threshold& threshold, bool is_maximum) -> Result<void> {
    const auto bound = [&](uint64_t seconds) {
      const int64_t distance_us = static_cast<int64_t>(seconds) * 1'000'000;
      return is_maximum ? now_us + distance_us : now_us - distance_us;
    };
    const auto is_beyond = [&](uint64_t seconds) {
      if (seconds == 0) return false;
      return is_maximum ? timestamp_us > bound(seconds) : timestamp_us < bound(seconds);
    };
    const auto text = [&](uint64_t seconds, const char* word) {
      return guardrail_text(
          is_maximum ? "maximum_timestamp" : "minimum_timestamp",
          fmt::format("The modification to table {} has a timestamp {} {} allowable {} threshold "
                      "{}. {}",
                      table, timestamp_us, is_maximum ? "after the maximum" : "before the minimum",
                      word, bound(seconds),
                      is_maximum ? "Timestamps too far in the future can lead to data that can't "
                                   "be easily overwritten"
                                 : "Timestamps too far in the past can cause writes can be "
                                   "unexpectedly lost"));
    };
    if (is_beyond(threshold.fail)) {
      return std::unexpected(Error(ErrorCode::kInvalid, text(threshold.fail, "failure")));
    }
    if (is_beyond(threshold.warn)) warnings.push_back(text(threshold.warn, "warning"));
    return {};
  };
  TETRAD_TRY_VOID(check(guardrails.maximum_timestamp_s, true));
  return check(guardrails.minimum_timestamp_s, false);
}

// Called for each value of each write when the guardrail is on (Guardrails::on_values).
Result<void> ValueGuard::check_size(std::string_view column, uint64_t bytes) const {
  return check_threshold(
      guardrails.column_value_size_bytes, bytes, "column_value_size", warnings,
      [&](uint64_t limit, bool fails) {
        return fmt::format("Value of column '{}' has size {}, this exceeds the {} threshold of {}.",
                           column, bytes, fails ? "failure" : "warning", limit);
      });
}

Result<void> ValueGuard::check_collection(std::string_view column, uint64_t bytes,
                                          uint64_t items) const {
  TETRAD_TRY_VOID(check_threshold(
      guardrails.collection_size_bytes, bytes, "collection_size", warnings,
      [&](uint64_t limit, bool fails) {
        return fmt::format(
            "Detected collection {} of size {}, this exceeds the {} threshold of {}.", column,
            bytes, fails ? "failure" : "warning", limit);
      }));
  return check_threshold(guardrails.items_per_collection, items, "items_per_collection", warnings,
                         [&](uint64_t limit, bool fails) {
                           return fmt::format(
                               "Detected collection {} with {} items, this exceeds the {} "
                               "threshold of {}.",
                               column, items, fails ? "failure" : "warning", limit);
                         });
}

}  // namespace tetrad::cql
