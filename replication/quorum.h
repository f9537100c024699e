// SPDX-License-Identifier: Apache-2.0
// How many members of a replica set must answer, and in which data centres. Pure.
//
// In a cluster of one data centre a level is one number of the whole set. With several, the sets
// have members in each, and a level may ask for numbers of a data centre, too. n members have
// W = n/2 + 1 as their quorum, R = n - W + 1 of them meet every quorum; M is W of the whole set,
// W(d) and R(d) are those of the members in data centre d, l is the one of the coordinator.
//
//   level                      a write waits for       a read waits for
//   ANY, ONE                   W(l)                    1
//   LOCAL_ONE                  W(l)                    1 of l
//   TWO, THREE                 W(l), and 2, 3 in all   2, 3
//   LOCAL_QUORUM               W(l)                    W(l)
//   QUORUM, SERIAL             M, with W(l)            M, with W(l)
//   EACH_QUORUM                W(d) of each            W(d) of each
//   ALL                        all                     all
//
// A stage of a change of members closes by W(d) of each data centre (closing()): then those that
// may still know the stage before are fewer than R(d) of each and than n - M + 1 of all, so that
// no level can be met among them. What has to have every acknowledged write asks finding().
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/consistency_level.h"
#include "replication/consistency.h"
#include "replication/meta/meta_state.h"

namespace tetrad::replication {

/// Members of a set that have answered, or are gone: a bit for each by its index in the set.
using Members = uint64_t;
inline constexpr size_t kMembersMax = 64;

/// The index of a member in its set; -1: it is none.
inline int index_in(std::span<const StoreAddress> set, const StoreAddress& member) {
  for (size_t i = 0; i < set.size(); ++i)
    if (set[i] == member) return static_cast<int>(i);
  return -1;
}
inline Members bit_of(size_t index) { return Members{1} << index; }
inline Members all_of(std::span<const StoreAddress> set) {
  return set.size() >= kMembersMax ? ~Members{0} : bit_of(set.size()) - 1;
}

/// What a level asks of one set: a number of members of each of some groups.
class Need {
 public:
  /// So many of these members: those of a data centre, or of the whole set.
  struct Group {
    Members members = 0;
    int count = 0;
    int left_of(Members answered) const { return count - std::popcount(members & answered); }
  };

  Need() = default;
  /// `count` of all `members`.
  Need(size_t members, int count);
  /// One more group.
  void also(Group group);

  bool is_met_by(Members answered) const { return first_unmet(answered) == nullptr; }
  /// Null: `answered` are enough.
  const Group* first_unmet(Members answered) const;
  /// Whether one more answer, of this member, helps when `answered` are there.
  bool wants(size_t index, Members answered) const;
  /// Whom an answer may come from that counts.
  Members counted() const;
  /// How many members meet it at least. Of groups that overlap, the largest number.
  int least() const;
  /// Of the group that matters most: what a client hears of as required.
  const Group& first() const { return first_; }
  /// A known mistake: of each group `fewer` less, but one at least.
  Need with_fewer(int fewer) const;

 private:
  Group first_;
  std::vector<Group> more_;
};

/// How levels count as one node sees it. `state` outlives it.
class Levels {
 public:
  Levels(const MetaState& state, HostId self) : Levels(state.data_centers.get(), self) {}
  Levels(const DataCenters* centers, HostId self);

  /// The counts may exceed the members (THREE of two): Unavailable.
  Need writing(ConsistencyLevel level, std::span<const StoreAddress> set) const;
  Need reading(ConsistencyLevel level, std::span<const StoreAddress> set) const;
  /// Promises and votes of SERIAL and LOCAL_SERIAL.
  Need serial(ConsistencyLevel level, std::span<const StoreAddress> set) const;
  /// Who has to be asked first: members in the data centre of this node. All, if there is one.
  bool is_near(HostId host) const { return centers_ == nullptr || centers_->of(host) == own_; }
  bool has_several() const { return centers_ != nullptr; }
  /// The level whose reads find what a write of `level` has been acknowledged for from here.
  ConsistencyLevel reading_after(ConsistencyLevel level) const;

 private:
  const DataCenters* centers_;
  uint32_t own_ = DataCenters::kNone;
};

/// W of each data centre: who confirms that a stage is over.
Need closing(const DataCenters* centers, std::span<const StoreAddress> set);
/// R of all and of each data centre: together they have every acknowledged write.
Need finding(const DataCenters* centers, std::span<const StoreAddress> set);

/// R of all and of the data centre of `own`: what a store that has lost its newest writes asks. The
/// quorums that it was counted in were those of its own data centre and of all.
Need recovering(const DataCenters* centers, std::span<const StoreAddress> set, HostId own);

/// The members of a set that are in `some` (anything with `contains`).
template <class Some>
Members members_in(std::span<const StoreAddress> set, const Some& some) {
  Members out = 0;
  for (size_t i = 0; i < set.size(); ++i)
    if (some.contains(set[i])) out |= bit_of(i);
  return out;
}
template <class Fits>
Members members_that(std::span<const StoreAddress> set, Fits fits) {
  Members out = 0;
  for (size_t i = 0; i < set.size(); ++i)
    if (fits(set[i])) out |= bit_of(i);
  return out;
}

/// Whether enough members live for reads and writes at QUORUM in each data centre. `is_live` takes
/// a StoreAddress.
template <class IsLive>
bool has_live_quorum(const DataCenters* centers, std::span<const StoreAddress> set,
                     IsLive is_live) {
  return closing(centers, set).is_met_by(members_that(set, is_live));
}

}  // namespace tetrad::replication
