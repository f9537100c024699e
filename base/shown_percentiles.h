// SPDX-License-Identifier: Apache-2.0
// The percentiles that operators are shown of a latency, and their names in JSON.
#pragma once

#include <utility>

namespace tetrad::base {

/// By name the part of the values that lies at or below; 0 and 1: the least and the largest.
inline constexpr std::pair<const char*, double> kShownPercentiles[] = {
    {"p50_us", 0.5},  {"p75_us", 0.75}, {"p95_us", 0.95}, {"p98_us", 0.98},
    {"p99_us", 0.99}, {"min_us", 0.0},  {"max_us", 1.0}};

}  // namespace tetrad::base
