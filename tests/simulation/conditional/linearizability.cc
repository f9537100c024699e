// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/conditional/linearizability.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace tetrad::simulation {
namespace {

constexpr size_t kPlacesMax = 3'000'000;

using Kind = RowOperation::Kind;
using Outcome = RowOperation::Outcome;

/// Whether its condition holds, and what the row becomes.
std::optional<RowState> after(const RowOperation& operation, const RowState& row) {
  switch (operation.kind) {
    case Kind::kInsert:
      if (row) return std::nullopt;
      return RowState(operation.value);
    case Kind::kCompare:
    case Kind::kBatch:
      if (row != operation.expected) return std::nullopt;
      return RowState(operation.value);
    case Kind::kIncrement:
      if (!row) return std::nullopt;
      return RowState(*row + 1);
    case Kind::kDelete:
      if (!row) return std::nullopt;
      return RowState();
    case Kind::kFollows:
    case Kind::kPlain:
      return RowState(operation.value);
    case Kind::kTruncate:
      return RowState();
    case Kind::kSerialRead:
    case Kind::kQuorumRead:
      return row;
  }
  return std::nullopt;
}

/// What may be after it; none: it cannot be here.
std::vector<RowState> steps(const RowOperation& operation, const RowState& row) {
  const std::optional<RowState> changed = after(operation, row);
  switch (operation.outcome) {
    case Outcome::kApplied:
      if (!changed || (operation.is_serial() && operation.seen != row)) return {};
      return {*changed};
    case Outcome::kNotApplied:
      if (changed || operation.seen != row) return {};
      return {row};
    case Outcome::kRead:
      if (operation.seen != row) return {};
      return {row};
    default:
      if (!changed || *changed == row) return {row};
      return {*changed, row};
  }
}

struct Search {
  Search(std::vector<RowOperation> of, bool is_strict)
      : operations(std::move(of)), strict(is_strict) {
    std::ranges::sort(operations, {}, &RowOperation::begun);
    taken.resize(operations.size());
  }

  static uint64_t end_of(const RowOperation& operation) {
    return operation.is_certain() ? operation.ended : RowOperation::kNever;
  }
  /// It was unknown, has not happened, and never will.
  bool is_settled(const RowOperation& operation, uint64_t settled_by) const {
    return strict && !operation.is_certain() && operation.is_serial() &&
           operation.ended < settled_by;
  }

  /// A place is what was taken and what the row is. `settled_by`: the latest beginning of a certain
  /// SERIAL or conditional operation among what was taken.
  bool go(size_t first, const RowState& row, uint64_t settled_by) {
    while (first < operations.size() && taken[first]) ++first;
    if (first == operations.size()) return true;
    if (!seen.insert({taken, row}).second) return false;
    if (seen.size() > kPlacesMax) return false;
    for (size_t i = first; i < operations.size() && operations[i].begun < settled_by; ++i) {
      if (taken[i] || !is_settled(operations[i], settled_by)) continue;
      taken[i] = true;
      const bool found = go(first, row, settled_by);
      taken[i] = false;
      return found;
    }
    // What begins after one of the others has ended cannot be before that.
    uint64_t ends = RowOperation::kNever;
    for (size_t i = first; i < operations.size() && operations[i].begun < ends; ++i)
      if (!taken[i]) ends = std::min(ends, end_of(operations[i]));
    for (size_t i = first; i < operations.size() && operations[i].begun < ends; ++i) {
      if (taken[i]) continue;
      const RowOperation& operation = operations[i];
      const bool settles = operation.is_serial() && operation.is_certain();
      const uint64_t later = settles ? std::max(settled_by, operation.begun) : settled_by;
      for (const RowState& next : steps(operation, row)) {
        taken[i] = true;
        longest = std::max(longest, static_cast<size_t>(std::ranges::count(taken, true)));
        if (go(first, next, later)) return true;
        taken[i] = false;
      }
    }
    return false;
  }

  std::vector<RowOperation> operations;
  const bool strict;
  std::vector<bool> taken;
  std::set<std::pair<std::vector<bool>, RowState>> seen;
  size_t longest = 0;
};

}  // namespace

std::string RowOperation::text() const {
  static constexpr const char* kKinds[] = {"insert",      "compare",    "increment", "delete",
                                           "batch",       "of batch",   "plain",     "truncate",
                                           "serial read", "quorum read"};
  static constexpr const char* kOutcomes[] = {"pending", "applied", "not applied",
                                              "read",    "unknown", "nothing"};
  const auto of = [](const RowState& row) { return row ? std::to_string(*row) : "none"; };
  return fmt::format("[{}..{}] node {} {} {}->{}: {} saw {}", begun,
                     ended == kNever ? "" : std::to_string(ended), node + 1,
                     kKinds[static_cast<int>(kind)], of(expected), value,
                     kOutcomes[static_cast<int>(outcome)], of(seen));
}

std::vector<RowOperation> operations_of(
    const std::vector<std::unique_ptr<RowOperation>>& operations, int row) {
  std::vector<RowOperation> out;
  for (const auto& operation : operations) {
    if (!operation->is_of(row)) continue;
    RowOperation& of_row = out.emplace_back(*operation);
    if (of_row.kind != Kind::kBatch || of_row.key == row) continue;
    of_row.key = row;
    of_row.value = of_row.other_value;
    of_row.seen = of_row.other_seen;
    of_row.kind = Kind::kFollows;
    if (of_row.outcome != Outcome::kNotApplied) continue;
    of_row.kind = Kind::kSerialRead;  // the condition was another row's
    of_row.outcome = Outcome::kRead;
  }
  return out;
}

std::string check_linearizable(const std::vector<RowOperation>& operations, bool strict) {
  std::vector<RowOperation> counted;
  for (const RowOperation& operation : operations)
    if (operation.outcome != Outcome::kNothing &&
        (operation.is_write() || operation.outcome == Outcome::kRead))
      counted.push_back(operation);
  Search search(counted, strict);
  if (search.go(0, RowState(), 0)) return "";
  if (search.seen.size() > kPlacesMax) return "the search for an order takes too long";
  std::string text = fmt::format("no order of its {} operations, {} of them at most{}",
                                 counted.size(), search.longest, strict ? ", strictly" : "");
  return text;
}

}  // namespace tetrad::simulation
