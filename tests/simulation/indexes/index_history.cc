// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/indexes/index_history.h"

#include <algorithm>

#include "partitioner/token.h"
#include "storage/row/storage_key.h"

namespace tetrad::simulation {
namespace {

/// Where a key is in the ring, first to last.
int compare_keys(BytesView a, BytesView b) {
  return storage::compare_partitions(partitioner::position_of(a), a, partitioner::position_of(b),
                                     b);
}

/// Whether the page tells of the place.
bool covers(const IndexedPage& page, int key, int place) {
  const std::string text = index_key_text(key);
  const storage::ReadCommand& command = page.command;
  const bool of_static = command.by_index->index_id == kStaticIndex;
  if (of_static != (place == kStaticPlace)) return false;
  if (!command.is_range && command.partition_key != text) return false;
  const Bytes row = of_static ? Bytes() : index_row_key(place);
  const auto behind = [&](const storage::ReadPosition& at) {  // the place is behind it
    const int order = compare_keys(text, at.partition_key);
    if (order != 0) return order > 0;
    if (!at.clustering_key) return false;
    if (of_static) return false;
    return command.reversed ? row < *at.clustering_key : row > *at.clustering_key;
  };
  if (command.resume_after && !behind(*command.resume_after)) return false;
  // Static cells come with the first row, or when there is none.
  if (of_static && !page.exhausted && page.end.partition_key == text && page.end.clustering_key)
    return false;
  return page.exhausted || !behind(page.end);
}

struct Place {
  TableIncarnation incarnation;
  int key, place;
  friend auto operator<=>(const Place&, const Place&) = default;
};
/// What a read has shown: no state older than this was there when it ended.
struct Sight {
  base::MonotonicUs ended_us;
  int64_t timestamp;
};

/// What expires may have been dated anew, and end later than its client thinks.
constexpr int64_t kRedatedBy_s = 30;

bool matches(const IndexedPage& page, const IndexedWrite* state, int64_t later_by_s) {
  return state != nullptr && state->value && *state->value >= page.first_value &&
         *state->value <= page.last_value &&
         (state->expiry_s == 0 || page.command.now_s < state->expiry_s + later_by_s);
}

}  // namespace

std::string index_key_text(int key) { return "key" + std::to_string(key); }
Bytes index_row_key(int row) { return Bytes(1, static_cast<char>('a' + row)); }
std::string index_value_text(int value) { return "v" + std::to_string(value); }

bool IndexHistory::expires(int key, int place, int value) const {
  return std::ranges::any_of(writes_, [&](const auto& write) {
    return write->key == key && write->places.contains(place) && write->value == value &&
           write->expiry_s != 0;
  });
}

size_t IndexHistory::shown() const {
  size_t count = 0;
  for (const auto& page : pages_) count += page->shown.size();
  return count;
}

std::string IndexHistory::check() const {
  std::vector<const IndexedPage*> pages;
  for (const auto& page : pages_)
    if (page->ok) pages.push_back(page.get());
  std::stable_sort(pages.begin(), pages.end(), [](const IndexedPage* a, const IndexedPage* b) {
    return a->ended_us < b->ended_us;
  });
  std::map<Place, std::vector<const IndexedWrite*>> changes;
  for (const auto& write : writes_)
    for (const int place : write->places)
      changes[{write->mutation.incarnation, write->key, place}].push_back(write.get());
  std::map<Place, std::vector<Sight>> sights;
  for (const IndexedPage* page : pages) {
    if (!page->wrong.empty()) return page->wrong;
    for (int key = 0; key < kIndexKeys; ++key) {
      for (int number = 0; number <= kIndexRows; ++number) {
        const auto shown = page->shown.find({key, number});
        if (shown == page->shown.end() && !covers(*page, key, number)) continue;
        const Place place{page->command.incarnation, key, number};
        int64_t floor = 0;
        for (const IndexedWrite* write : changes[place])
          if (write->state == IndexedWrite::State::kOk && write->ended_us < page->begun_us)
            floor = std::max(floor, write->timestamp);
        for (const Sight& sight : sights[place])
          if (sight.ended_us < page->begun_us) floor = std::max(floor, sight.timestamp);
        std::vector<const IndexedWrite*> states;
        if (floor == 0) states.push_back(nullptr);  // it was never written
        for (const IndexedWrite* write : changes[place])
          if (write->timestamp >= floor && write->begun_us < page->ended_us)
            states.push_back(write);
        const std::string where = fmt::format(
            "{} place {} of values {} to {}, read from {} to {} (incarnation {}, floor {})",
            index_key_text(key), number, page->first_value, page->last_value, page->begun_us,
            page->ended_us, place.incarnation.value, floor);
        if (shown != page->shown.end()) {
          const auto [timestamp, value] = shown->second;
          const bool admissible = std::ranges::any_of(
              states, [&, at = timestamp, v = value](const IndexedWrite* state) {
                return state != nullptr && state->timestamp == at && state->value == v &&
                       matches(*page, state, kRedatedBy_s);
              });
          if (!admissible)
            return fmt::format("{} is shown as of {} with value {}", where, timestamp, value);
          sights[place].push_back({page->ended_us, timestamp});
          continue;
        }
        std::optional<int64_t> oldest;
        for (const IndexedWrite* state : states) {
          if (matches(*page, state, 0)) continue;
          const int64_t at = state == nullptr ? 0 : state->timestamp;
          oldest = std::min(oldest.value_or(at), at);
        }
        if (!oldest) return where + " is not shown, though it matches";
        sights[place].push_back({page->ended_us, *oldest});
      }
    }
  }
  return "";
}

void take_page(const storage::ReadResult& result, IndexedPage& page) {
  page.exhausted = result.exhausted;
  page.end = result.complete_up_to;
  const bool of_static = page.command.by_index->index_id == kStaticIndex;
  const auto take = [&](int key, int place, BytesView encoded) {
    storage::RowRecordReader reader;
    if (encoded.empty() || !reader.open(encoded)) return;
    storage::Cell cell;
    while (reader.next(cell)) {
      if (cell.column_id != (of_static ? kStaticValueColumn : kRowColumn)) continue;
      const int value = cell.value.size() == 2 ? cell.value[1] - '0' : -1;
      if (value < page.first_value || value > page.last_value) continue;
      if (!page.shown.emplace(std::pair(key, place), std::pair(cell.timestamp_us, value)).second)
        page.wrong = fmt::format("{} place {} is shown twice", index_key_text(key), place);
    }
  };
  uint32_t rows = 0;
  for (const storage::PartitionData& partition : result.partitions) {
    const int key = partition.partition_key.back() - '0';
    if (of_static) take(key, kStaticPlace, partition.header);
    for (const storage::RowData& row : partition.rows) {
      ++rows;
      if (!of_static) take(key, row.clustering_key[0] - 'a', row.record);
    }
  }
  if (rows > page.command.row_limit) page.wrong = fmt::format("a page has {} rows", rows);
}

}  // namespace tetrad::simulation
