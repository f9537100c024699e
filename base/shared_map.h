// SPDX-License-Identifier: Apache-2.0
// An ordered map whose copies share what they have in common: a copy costs a pointer for every few
// dozen entries, a change of a copy those and one group of entries, and the difference of two maps
// is found without looking at what they share. For immutable states that follow one another.
//
// The metadata's state keeps tables and schema objects in such maps: every change makes a new
// state, while requests under way still read the old one, and listeners compare the two.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace tetrad::base {

/// A value. Groups are immutable and shared between copies, so copies may be read on any thread while
/// one of them is changed on its own. Groups are never empty and hold at most kGroupMax entries.
template <class Key, class Value>
class SharedMap {
 public:
  // Key needs operator<; Value is copied when its group is changed, so it is small or a shared_ptr.
  using Entry = std::pair<Key, Value>;

 private:
  // Ascending by key within a group and from one group to the next. A group is shared by all copies
  // of the map that have not changed it, so it is never written to: a change puts a new one in its
  // place.
  using Group = std::vector<Entry>;  // ascending, never empty
  using GroupPtr = std::shared_ptr<const Group>;
  // A change copies at most this many entries. Half of it is what a fresh map has in a group.
  static constexpr size_t kGroupMax = 64;

 public:
  /// Good until its map is changed or destroyed.
  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = const Entry*;
    using reference = const Entry&;

    const_iterator() = default;
    reference operator*() const { return (*group_)->operator[](place_); }
    pointer operator->() const { return &**this; }
    // Behind the last entry of the last group it equals end().
    const_iterator& operator++() {
      if (++place_ == (*group_)->size()) {
        ++group_;
        place_ = 0;
      }
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const const_iterator&) const = default;

   private:
    friend class SharedMap;
    const_iterator(const GroupPtr* group, size_t place) : group_(group), place_(place) {}
    // A place in groups_ and one in the group.
    const GroupPtr* group_ = nullptr;
    size_t place_ = 0;
  };

  // An empty map has no groups.
  SharedMap() = default;
  /// Groups half full, so that the first changes split none.
  /// For a state that is read from a disk. The entries move out of `entries` one by one, so both
  /// are never in memory together.
  explicit SharedMap(std::map<Key, Value> entries) : size_(entries.size()) {
    Group group;
    while (!entries.empty()) {
      auto node = entries.extract(entries.begin());
      group.emplace_back(std::move(node.key()), std::move(node.mapped()));
      if (group.size() < kGroupMax / 2 && !entries.empty()) continue;
      groups_.push_back(std::make_shared<const Group>(std::move(group)));
      group = {};
    }
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// In the order of the keys.
  /// Iterators are of one map: those of a copy differ even where both share the group.
  const_iterator begin() const { return {groups_.data(), 0}; }
  const_iterator end() const { return {groups_.data() + groups_.size(), 0}; }

  /// The first entry that is not before `key`.
  /// `Like` compares with Key by <, for example a view with a string.
  template <class Like>
  const_iterator lower_bound(const Like& key) const {
    // Two binary searches: for the first group whose last key is not before, and in it.
    const auto group = std::partition_point(
        groups_.begin(), groups_.end(), [&](const GroupPtr& g) { return g->back().first < key; });
    if (group == groups_.end()) return end();
    const auto entry = std::partition_point((*group)->begin(), (*group)->end(),
                                            [&](const Entry& e) { return e.first < key; });
    return {groups_.data() + (group - groups_.begin()),
            static_cast<size_t>(entry - (*group)->begin())};
  }
  /// The first entry behind `key`.
  template <class Like>
  const_iterator upper_bound(const Like& key) const {
    const_iterator at = lower_bound(key);
    if (at != end() && !(key < at->first)) ++at;
    return at;
  }
  /// The entry of `key`; end(): there is none.
  template <class Like>
  const_iterator find(const Like& key) const {
    const const_iterator at = lower_bound(key);
    return at != end() && !(key < at->first) ? at : end();
  }
  template <class Like>
  bool contains(const Like& key) const {
    return find(key) != end();
  }

  /// Replaces the value, or adds the entry. Costs a copy of one group, and of the list of groups
  /// when one is split. Iterators of this map end; copies of it see nothing.
  void put(Key key, Value value) {
    const const_iterator at = lower_bound(key);
    // A key behind all others goes to the last group.
    const size_t index = at == end() && !groups_.empty()
                             ? groups_.size() - 1
                             : static_cast<size_t>(at.group_ - groups_.data());
    Group group;
    if (!groups_.empty()) {
      group.reserve(groups_[index]->size() + 1);
      group = *groups_[index];
    }
    const size_t place = at == end() ? group.size() : at.place_;
    if (at != end() && !(key < at->first)) {
      group[place].second = std::move(value);
    } else {
      // `at` may be in the group behind the one that is copied only when it is the end.
      group.insert(group.begin() + static_cast<std::ptrdiff_t>(place),
                   Entry(std::move(key), std::move(value)));
      ++size_;
    }
    // The first entry of all.
    if (groups_.empty()) groups_.emplace_back();
    TETRAD_ASSERT(!group.empty() && index < groups_.size());
    // Split in two halves; groups are not joined again when they shrink.
    if (group.size() > kGroupMax) {
      const auto half = group.begin() + kGroupMax / 2;
      Group right(std::make_move_iterator(half), std::make_move_iterator(group.end()));
      group.erase(half, group.end());
      groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                     std::make_shared<const Group>(std::move(right)));
    }
    groups_[index] = std::make_shared<const Group>(std::move(group));
  }

  /// Does nothing for a key that is not there. Costs as put().
  template <class Like>
  void erase(const Like& key) {
    const const_iterator at = find(key);
    if (at == end()) return;
    const auto slot = groups_.begin() + (at.group_ - groups_.data());
    TETRAD_ASSERT(size_ != 0 && at.place_ < (*slot)->size());
    --size_;
    // No group is ever empty.
    if ((*slot)->size() == 1) {
      groups_.erase(slot);
      return;
    }
    Group group = **slot;
    group.erase(group.begin() + static_cast<std::ptrdiff_t>(at.place_));
    *slot = std::make_shared<const Group>(std::move(group));
  }

  /// Calls `visit(key, before, now)` for each key that only one of two maps has (the other pointer
  /// is null) or whose values differ. Groups that both share are passed over.
  /// Costs by the groups that differ, and one step for each that is shared.
  template <class Visit>
  static void compare(const SharedMap& before, const SharedMap& now, Visit visit) {
    const_iterator a = before.begin(), b = now.begin();
    // A merge of two ascending sequences.
    while (a != before.end() || b != now.end()) {
      if (a != before.end() && b != now.end()) {
        // The same group in both: nothing in it differs.
        if (a.place_ == 0 && b.place_ == 0 && *a.group_ == *b.group_) {
          ++a.group_;
          ++b.group_;
          continue;
        }
        if (!(a->first < b->first) && !(b->first < a->first)) {
          if (!(a->second == b->second)) visit(a->first, &a->second, &b->second);
          ++a;
          ++b;
          continue;
        }
      }
      if (b == now.end() || (a != before.end() && a->first < b->first)) {
        visit(a->first, &a->second, static_cast<const Value*>(nullptr));
        ++a;
      } else {
        visit(b->first, static_cast<const Value*>(nullptr), &b->second);
        ++b;
      }
    }
  }

 private:
  // size_ is the sum of the groups' sizes: kept, since size() is asked where counting would cost.
  // Pointers only: copying a map copies these.
  std::vector<GroupPtr> groups_;
  size_t size_ = 0;
};

}  // namespace tetrad::base
