// SPDX-License-Identifier: Apache-2.0
// Courses of events that random faults hardly ever make, each in full: what must not come of them.
#pragma once

#include <span>
#include <string>

namespace tetrad::simulation {

/// One course of events on a cluster of its own.
struct ConditionalScenario {
  const char* name;
  /// "" or what went wrong.
  std::string (*run)();
};

std::span<const ConditionalScenario> conditional_scenarios();

}  // namespace tetrad::simulation
