// SPDX-License-Identifier: Apache-2.0
// What clients of the simulated cluster did and saw, and what each read may have seen.
//
// A table of ten partitions with six rows and a static row each, two columns and the row marker:
// every place of it is judged by itself. Timestamps are the test's own, all different, and rise in
// real time; a value says the timestamp it was written with. For each place that a quorum read
// covered:
//   - a value was written there, by nobody later than the read's end, and is not older than the
//     newest write that was acknowledged, or value that a quorum read saw, before the read began;
//   - nothing at all is right where nothing was acknowledged, or a deletion or an expired value not
//     older than that hides it;
//   - no value is seen that has expired, by the date it bears and by the last one that its write
//   may
//     have been given: a coordinator dates anew what replicas refuse, and what it dated in doubt;
//   - a page that is not the last goes on past where it began;
//   - a row of a mutation is seen with the others of that mutation (where all reads are whole).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/consistency_level.h"
#include "base/random.h"
#include "base/reactor.h"
#include "storage/row/reconcile.h"

namespace tetrad::simulation {

inline constexpr int kKeys = 10, kRows = 6, kColumns = 3;  // column 0: the row's marker
inline constexpr int kStatic = kRows;                      // the row number of the static row
inline constexpr uint32_t kStaticColumnId = 9;             // its only column is number 1 here

inline constexpr int64_t kOperationUs = 2'000'000;  // how long a client waits

/// One value per place of a partition.
template <class T>
using PartitionOf = std::array<std::array<T, kColumns>, kRows + 1>;

std::string key_text(int key);
Bytes clustering_of(int row);
/// Keys in the order of the ring.
const std::vector<int>& ring_order();
int ring_rank(int key);

struct Operation {
  enum class State { kPending, kOk, kFailed };
  enum class Effect : uint8_t { kNone, kValue, kDelete };

  bool is_write = false;
  ConsistencyLevel level = ConsistencyLevel::kQuorum;
  size_t center = 0;  // its coordinator's data centre
  int64_t within_us = kOperationUs;
  base::MonotonicUs begun_us = 0, ended_us = 0;
  State state = State::kPending;
  TableIncarnation incarnation;
  int key = 0;  // of a write, or of a read of one partition

  // A write: what it does to each place of its partition.
  int64_t timestamp = 0;
  int64_t dated_s = 0;    // its coordinator's time
  int64_t expiry_s = 0;   // of its values, as they were dated at first; 0: none
  int64_t redated_s = 0;  // if it may have been dated anew: its coordinator's time when it ended
  PartitionOf<Effect> effects{};
  storage::Mutation mutation;

  // A read: where it looked, and the timestamps of the values it saw (0: nothing).
  storage::ReadCommand command;
  std::array<PartitionOf<bool>, kKeys> covered{};
  std::array<PartitionOf<int64_t>, kKeys> seen{};
  std::string wrong;  // an answer that no history explains
};

/// A random change of one partition; `rows_max` rows at most.
void make_write(base::Random& random, int key, int64_t timestamp, int64_t now_s, Operation& write);
/// A random read; `whole`: of all of a partition, without limits.
void make_read(base::Random& random, bool whole, Operation& read);
/// Fills covered and seen.
void take_result(const storage::ReadResult& result, Operation& read);

class History {
 public:
  Operation& add(std::unique_ptr<Operation> operation);
  const std::vector<std::unique_ptr<Operation>>& operations() const { return operations_; }
  size_t acknowledged() const;
  /// The table is in several data centres: quorums of one need not meet those of another (rule 1).
  void spans_centers() { spans_centers_ = true; }
  /// What was written before `begun_us` may be gone, and is gone after `ended_us` (unset: nobody
  /// knows when).
  void truncated(base::MonotonicUs begun_us, std::optional<base::MonotonicUs> ended_us) {
    truncated_at_us_ = begun_us;
    truncated_until_us_ = ended_us;
  }
  /// "" or what is wrong with a read. `atomic`: rows of a mutation are seen together.
  std::string check(const Operation& read, bool atomic) const;
  /// The writes that must be on W members now, of one key.
  std::vector<const Operation*> lasting(int key) const;

 private:
  bool may_be_gone(const Operation& write) const;
  /// Whether each quorum of the read has a member in each of the earlier one's.
  bool meets(const Operation& earlier, const Operation& read) const;
  bool must_be_gone(const Operation& write, const Operation& read) const;
  std::string check_place(const Operation& read, int key, int row, int column,
                          int64_t at_least) const;

  std::vector<std::unique_ptr<Operation>> operations_;
  std::array<std::vector<const Operation*>, kKeys> writes_, reads_;
  std::optional<base::MonotonicUs> truncated_at_us_, truncated_until_us_;
  bool spans_centers_ = false;
};

}  // namespace tetrad::simulation
