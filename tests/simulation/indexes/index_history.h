// SPDX-License-Identifier: Apache-2.0
// What clients have written to an indexed column and what reads by the index have shown: a judge of
// each page.
//
// The states of a place (a row, or a partition's static column) are its changes, by timestamp. At a
// read some are admissible: none older than what was acknowledged, or shown, before it began, and none
// that began after it ended. A page that covers the place must show it if all admissible states match,
// and may show it only in one that does. Not to be shown is to be in a state that does not match: a
// later read must not go back behind the oldest of these (rule 3).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/reactor.h"
#include "storage/row/read_command.h"

namespace tetrad::simulation {

inline constexpr int kIndexKeys = 5, kIndexRows = 3, kIndexValues = 3;
inline constexpr int kStaticPlace = kIndexRows;  // behind the rows of a partition
inline constexpr uint16_t kRowIndex = 3, kStaticIndex = 5;
inline constexpr uint32_t kRowColumn = 1, kStaticValueColumn = 9;

std::string index_key_text(int key);
Bytes index_row_key(int row);
std::string index_value_text(int value);

/// A write as its client knows it.
struct IndexedWrite {
  enum class State { kPending, kOk, kFailed };
  storage::Mutation mutation;
  State state = State::kPending;
  base::MonotonicUs begun_us = 0, ended_us = 0;
  int64_t timestamp = 0;
  int key = 0;
  std::set<int> places;      // that it changes
  std::optional<int> value;  // unset: it deletes
  int64_t expiry_s = 0;
};

/// A page of a read as its client knows it.
struct IndexedPage {
  storage::ReadCommand command;
  bool ok = false;
  base::MonotonicUs begun_us = 0, ended_us = 0;
  int first_value = 0, last_value = 0;
  bool exhausted = false;
  storage::ReadPosition end;
  /// Timestamp and value of each place that it showed and that matches.
  std::map<std::pair<int, int>, std::pair<int64_t, int>> shown;
  std::string wrong;  // with the answer itself
};

class IndexHistory {
 public:
  IndexedWrite& add(IndexedWrite write) {
    return *writes_.emplace_back(std::make_unique<IndexedWrite>(std::move(write)));
  }
  IndexedPage& add(IndexedPage page) {
    return *pages_.emplace_back(std::make_unique<IndexedPage>(std::move(page)));
  }
  /// "" or what is wrong. Of pages that ended well at a level that sees what is acknowledged.
  std::string check() const;
  /// Whether a value of the place was written that expires: it stays until it is purged.
  bool expires(int key, int place, int value) const;
  size_t pages() const { return pages_.size(); }
  size_t shown() const;

 private:
  std::deque<std::unique_ptr<IndexedWrite>> writes_;
  std::deque<std::unique_ptr<IndexedPage>> pages_;
};

/// Takes what a page shows that matches; a client's filter.
void take_page(const storage::ReadResult& result, IndexedPage& page);

}  // namespace tetrad::simulation
