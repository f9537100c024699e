// SPDX-License-Identifier: Apache-2.0
// Whether a history of one row, which conditional statements change and SERIAL and QUORUM reads
// look at, has an order in which each operation takes effect at one moment between its beginning
// and its end, and answers what the row is then (Wing and Gong, with the places of a search
// remembered).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tetrad::simulation {

/// Of the one row; unset: there is none.
using RowState = std::optional<int64_t>;

struct RowOperation {
  enum class Kind : uint8_t {
    kInsert,     // IF NOT EXISTS: becomes `value`
    kCompare,    // IF the row is `expected`: becomes `value`
    kIncrement,  // IF EXISTS: one more than it is
    kDelete,     // IF EXISTS
    kBatch,      // IF the row is `expected`: becomes `value`, and another row `other_value`
    kFollows,    // becomes `value`: that other row, of an operation of its own
    kPlain,      // becomes `value`, by a plain write at QUORUM
    kTruncate,   // of the table
    kSerialRead,
    kQuorumRead,
  };
  enum class Outcome : uint8_t { kPending, kApplied, kNotApplied, kRead, kUnknown, kNothing };
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  Kind kind = Kind::kSerialRead;
  int key = 0, other_key = 0;
  RowState expected;
  int64_t value = 0, other_value = 0;
  Outcome outcome = Outcome::kPending;
  RowState seen, other_seen;  // of what was answered: the rows conditions were tested on, or read
  uint64_t begun = 0, ended = kNever;  // places in one sequence
  size_t node = 0;

  bool is_write() const { return kind < Kind::kSerialRead; }
  /// Through Paxos.
  bool is_serial() const {
    return kind != Kind::kPlain && kind != Kind::kTruncate && kind != Kind::kQuorumRead;
  }
  bool is_of(int row) const {
    return kind == Kind::kTruncate || key == row || (kind == Kind::kBatch && other_key == row);
  }
  bool is_certain() const {
    return outcome == Outcome::kApplied || outcome == Outcome::kNotApplied ||
           outcome == Outcome::kRead;
  }
  std::string text() const;
};

/// What the operations did to one row: what is atomic over several must be so for each.
std::vector<RowOperation> operations_of(
    const std::vector<std::unique_ptr<RowOperation>>& operations, int row);

/// Of one row. An unknown operation takes effect at some time after it began, or never. `strict`:
/// a conditional one before each certain SERIAL or conditional operation that began after it was
/// answered, or never. "" or what is wrong.
std::string check_linearizable(const std::vector<RowOperation>& operations, bool strict);

}  // namespace tetrad::simulation
