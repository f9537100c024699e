// SPDX-License-Identifier: Apache-2.0
// Levels as numbers of members; the table is in the header. A Need is a value without allocations
// where a cluster has one data centre: then it is one group, the whole set.
#include "replication/quorum.h"

#include <algorithm>

#include "base/data_mutants.h"

namespace tetrad::replication {
namespace {

// What a level asks of a set of `members`, before the floor of rule 1.
int number_of(ConsistencyLevel level, int members) {
  switch (level) {
    case ConsistencyLevel::kAny:
    case ConsistencyLevel::kOne:
    case ConsistencyLevel::kLocalOne:
      return 1;
    case ConsistencyLevel::kTwo:
      return 2;
    case ConsistencyLevel::kThree:
      return 3;
    case ConsistencyLevel::kQuorum:
    case ConsistencyLevel::kLocalQuorum:
    case ConsistencyLevel::kEachQuorum:
    case ConsistencyLevel::kSerial:
    case ConsistencyLevel::kLocalSerial:
      return write_quorum(members);
    case ConsistencyLevel::kAll:
      return members;
  }
  return members;
}

/// The members of a set by data centre, each group once; those of `own` come first.
std::vector<Members> by_center(const DataCenters& centers, std::span<const StoreAddress> set,
                               uint32_t own = DataCenters::kNone) {
  std::vector<std::pair<uint32_t, Members>> groups;
  for (size_t i = 0; i < set.size(); ++i) {
    const uint32_t center = centers.of(set[i].host);
    const auto known = std::ranges::find(groups, center, &std::pair<uint32_t, Members>::first);
    if (known == groups.end())
      groups.emplace_back(center, bit_of(i));
    else
      known->second |= bit_of(i);
  }
  // The own data centre first: Need::first() is what a client's error names as required.
  std::ranges::stable_partition(groups, [own](const auto& group) { return group.first == own; });
  std::vector<Members> out;
  for (const auto& [center, members] : groups) out.push_back(members);
  return out;
}

/// `count_of(size)` members of each group.
template <class CountOf>
Need of_each(const std::vector<Members>& groups, CountOf count_of) {
  Need out;
  for (const Members members : groups) out.also({members, count_of(std::popcount(members))});
  return out;
}

int size_of(std::span<const StoreAddress> set) {
  TETRAD_ASSERT(set.size() <= kMembersMax);
  return static_cast<int>(set.size());
}

}  // namespace

Need::Need(size_t members, int count) {
  TETRAD_ASSERT(members <= kMembersMax);
  first_ = {members == kMembersMax ? ~Members{0} : bit_of(members) - 1, count};
}

void Need::also(Group group) {
  // An empty Need asks nothing, so its first group stands for the whole.
  if (first_.count == 0)
    first_ = group;
  else
    more_.push_back(group);
}

const Need::Group* Need::first_unmet(Members answered) const {
  if (first_.left_of(answered) > 0) return &first_;
  for (const Group& group : more_)
    if (group.left_of(answered) > 0) return &group;
  return nullptr;
}

bool Need::wants(size_t index, Members answered) const {
  const auto helps = [&](const Group& group) {
    // A member helps while one of its groups still lacks answers.
    return (group.members & bit_of(index)) != 0 && group.left_of(answered) > 0;
  };
  return helps(first_) || std::ranges::any_of(more_, helps);
}

Members Need::counted() const {
  Members out = first_.members;
  for (const Group& group : more_) out |= group.members;
  return out;
}

int Need::least() const {
  // A group inside another is met with it; those apart add up.
  Members covered = 0;
  int sum = 0;
  const auto take = [&](const Group& group) {
    if ((group.members & covered) == 0)
      sum += group.count;
    else
      sum = std::max(sum, group.count);
    covered |= group.members;
  };
  take(first_);
  for (const Group& group : more_) take(group);
  return sum;
}

Need Need::with_fewer(int fewer) const {
  Need out = *this;
  out.first_.count = std::max(1, out.first_.count - fewer);
  for (Group& group : out.more_) group.count = std::max(1, group.count - fewer);
  return out;
}

Levels::Levels(const DataCenters* centers, HostId self) : centers_(centers) {
  if (centers_ != nullptr) own_ = centers_->of(self);
}

Need Levels::writing(ConsistencyLevel level, std::span<const StoreAddress> set) const {
  const int count = size_of(set);
  if (TETRAD_MUTANT(write_acks_one)) return Need(set.size(), 1);
  if (centers_ == nullptr) {
    const int floor = TETRAD_MUTANT(floor_skipped) ? 1 : write_quorum(count);
    return Need(set.size(), std::max(number_of(level, count), floor));
  }
  if (level == ConsistencyLevel::kAll) return Need(set.size(), count);
  if (TETRAD_MUTANT(local_counts_all)) return Need(set.size(), write_quorum(count));
  const Members near = members_that(set, [this](const auto& one) { return is_near(one.host); });
  // Several data centres. The floor of rule 1 is the quorum of the coordinator's own one, so that a
  // read there finds the write without crossing to another.
  const Need::Group floor{near, write_quorum(std::popcount(near))};
  switch (level) {
    case ConsistencyLevel::kEachQuorum:
      return of_each(by_center(*centers_, set, own_), [](int size) { return write_quorum(size); });
    case ConsistencyLevel::kLocalOne:
    case ConsistencyLevel::kLocalQuorum:
    case ConsistencyLevel::kLocalSerial: {
      Need need;  // without a member here nobody can meet it
      need.also(floor);
      return need;
    }
    case ConsistencyLevel::kAny:
    case ConsistencyLevel::kOne: {
      // A keyspace without members here: the floor is that of the whole set.
      if (near == 0) return Need(set.size(), write_quorum(count));
      Need need;
      need.also(floor);
      return need;
    }
    default: {
      Need need(set.size(), near == 0 ? std::max(number_of(level, count), write_quorum(count))
                                      : number_of(level, count));
      if (near != 0) need.also(floor);
      return need;
    }
  }
}

Need Levels::reading(ConsistencyLevel level, std::span<const StoreAddress> set) const {
  const int count = size_of(set);
  if (TETRAD_MUTANT(quorum_asks_one) && level == ConsistencyLevel::kQuorum)
    return Need(set.size(), 1);
  if (centers_ == nullptr || TETRAD_MUTANT(local_counts_all))
    return Need(set.size(), number_of(level, count));
  const Members near = members_that(set, [this](const auto& one) { return is_near(one.host); });
  switch (level) {
    case ConsistencyLevel::kLocalOne:
    case ConsistencyLevel::kLocalQuorum:
    case ConsistencyLevel::kLocalSerial: {
      Need need;
      need.also({near, number_of(level, std::popcount(near))});
      return need;
    }
    case ConsistencyLevel::kEachQuorum:
      return of_each(by_center(*centers_, set, own_), [](int size) { return write_quorum(size); });
    case ConsistencyLevel::kQuorum:
    case ConsistencyLevel::kSerial: {
      Need need(set.size(), write_quorum(count));
      if (near != 0 && !TETRAD_MUTANT(quorum_not_local))
        need.also({near, write_quorum(std::popcount(near))});
      return need;
    }
    default:
      return Need(set.size(), number_of(level, count));
  }
}

Need Levels::serial(ConsistencyLevel level, std::span<const StoreAddress> set) const {
  if (centers_ == nullptr) return Need(set.size(), write_quorum(size_of(set)));
  return reading(level, set);
}

ConsistencyLevel Levels::reading_after(ConsistencyLevel level) const {
  // A write waits for W at least, whatever its level: so a read at the quorum of the same scope
  // meets it.
  if (centers_ == nullptr) return ConsistencyLevel::kQuorum;
  switch (level) {
    case ConsistencyLevel::kQuorum:
    case ConsistencyLevel::kSerial:
    case ConsistencyLevel::kEachQuorum:
    case ConsistencyLevel::kAll:
      return ConsistencyLevel::kQuorum;
    default:
      return ConsistencyLevel::kLocalQuorum;
  }
}

Need closing(const DataCenters* centers, std::span<const StoreAddress> set) {
  if (centers == nullptr) return Need(set.size(), write_quorum(size_of(set)));
  return of_each(by_center(*centers, set), [](int size) { return write_quorum(size); });
}

Need finding(const DataCenters* centers, std::span<const StoreAddress> set) {
  Need need(set.size(), read_quorum(size_of(set)));
  if (centers == nullptr) return need;
  for (const Members members : by_center(*centers, set))
    need.also({members, read_quorum(std::popcount(members))});
  return need;
}

Need recovering(const DataCenters* centers, std::span<const StoreAddress> set, HostId own) {
  Need need(set.size(), read_quorum(size_of(set)));
  const Levels levels(centers, own);
  if (centers == nullptr) return need;
  const Members near = members_that(set, [&](const auto& one) { return levels.is_near(one.host); });
  if (near != 0) need.also({near, read_quorum(std::popcount(near))});
  return need;
}

}  // namespace tetrad::replication
