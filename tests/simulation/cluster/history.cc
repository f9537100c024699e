// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/cluster/history.h"

#include <algorithm>

#include <fmt/format.h>

#include "partitioner/token.h"

namespace tetrad::simulation {

using Effect = Operation::Effect;

std::string key_text(int key) { return "key" + std::to_string(key); }
Bytes clustering_of(int row) { return Bytes(1, static_cast<char>('a' + row)); }

const std::vector<int>& ring_order() {
  static const std::vector<int> order = [] {
    std::vector<int> keys(kKeys);
    for (int key = 0; key < kKeys; ++key) keys[static_cast<size_t>(key)] = key;
    std::sort(keys.begin(), keys.end(), [](int a, int b) {
      return partitioner::position_of(key_text(a)) < partitioner::position_of(key_text(b));
    });
    return keys;
  }();
  return order;
}

int ring_rank(int key) {
  const auto& order = ring_order();
  return static_cast<int>(std::find(order.begin(), order.end(), key) - order.begin());
}

namespace {

constexpr int32_t kTtl_s = 2;

int row_of(BytesView clustering) { return clustering.empty() ? 0 : clustering[0] - 'a'; }

int key_of(BytesView partition_key) {
  for (int key = 0; key < kKeys; ++key)
    if (partition_key == key_text(key)) return key;
  return -1;
}

/// Collects the parts of one mutation.
struct WriteMaker {
  WriteMaker(Operation& made, int64_t wall_s)
      : write(made), now_s(wall_s), value(std::to_string(made.timestamp)) {}
  Operation& write;
  const int64_t now_s;
  std::string value;
  storage::RowRecord record, header;

  storage::Deletion deletion() const { return {write.timestamp, now_s}; }
  void add_cell(uint32_t id, storage::CellKind kind, storage::RowRecord& to) {
    storage::Cell cell;
    cell.column_id = id;
    cell.kind = kind;
    cell.timestamp_us = write.timestamp;
    if (kind == storage::CellKind::kValue) {
      cell.value = value;
      cell.ttl_s = write.expiry_s != 0 ? kTtl_s : 0;
      cell.expiry_s = write.expiry_s;
    } else {
      cell.expiry_s = now_s;
    }
    to.cells.push_back(cell);
  }
  void set(int row, int column, Effect effect) {
    write.effects[static_cast<size_t>(row)][static_cast<size_t>(column)] = effect;
  }
  void erase_rows(int first, int end) {
    for (int row = first; row < end; ++row)
      for (int column = 0; column < kColumns; ++column) set(row, column, Effect::kDelete);
  }
  void add_row(int row, bool complete) {
    storage::RowChange change;
    change.clustering_key = clustering_of(row);
    change.complete = complete;
    storage::encode_row_record(record, change.record);
    write.mutation.rows.push_back(std::move(change));
    record = {};
  }
  void insert(int row) {
    record.liveness = {write.timestamp, write.expiry_s != 0 ? kTtl_s : 0, write.expiry_s};
    set(row, 0, Effect::kValue);
    for (int column = 1; column < kColumns; ++column) {
      add_cell(static_cast<uint32_t>(column), storage::CellKind::kValue, record);
      set(row, column, Effect::kValue);
    }
    add_row(row, true);
  }
  void update(int row, int column, bool erases) {
    add_cell(static_cast<uint32_t>(column),
             erases ? storage::CellKind::kTombstone : storage::CellKind::kValue, record);
    set(row, column, erases ? Effect::kDelete : Effect::kValue);
    add_row(row, false);
  }
};

}  // namespace

void make_write(base::Random& random, int key, int64_t timestamp, int64_t now_s, Operation& write) {
  write.is_write = true;
  write.key = key;
  write.timestamp = timestamp;
  storage::Mutation& mutation = write.mutation;
  mutation.incarnation = write.incarnation;
  mutation.schema_version = {1};
  mutation.partition_key = key_text(key);
  mutation.position = partitioner::position_of(mutation.partition_key);
  const uint64_t kind = random.below(20);
  if (kind == 5 || kind == 6) write.expiry_s = now_s + 1 + static_cast<int64_t>(random.below(4));
  WriteMaker maker(write, now_s);
  const int row = static_cast<int>(random.below(kRows));
  if (kind < 7) {
    maker.insert(row);
  } else if (kind < 11) {
    maker.update(row, 1 + static_cast<int>(random.below(2)), random.one_in(4));
  } else if (kind < 15) {  // several rows at once
    const int last = std::min<int>(kRows, row + 2 + static_cast<int>(random.below(2)));
    for (int r = row; r < last; ++r) maker.insert(r);
  } else if (kind < 16) {
    maker.add_cell(kStaticColumnId, storage::CellKind::kValue, maker.header);
    maker.set(kStatic, 1, Effect::kValue);
  } else if (kind < 18) {
    maker.record.deletion = maker.deletion();
    maker.erase_rows(row, row + 1);
    maker.add_row(row, false);
  } else if (kind < 19) {
    // Often from the same row on: several ends at one start bound.
    const int first = random.one_in(2) ? 1 : row;
    const int end =
        first + 1 + static_cast<int>(random.below(static_cast<uint64_t>(kRows - first)));
    mutation.range_tombstones.push_back(
        {{clustering_of(first), clustering_of(end)}, maker.deletion()});
    maker.erase_rows(first, end);
  } else {
    maker.header.deletion = maker.deletion();
    maker.erase_rows(0, kRows + 1);
  }
  if (!maker.header.empty()) storage::encode_row_record(maker.header, mutation.header);
}

void make_read(base::Random& random, bool whole, Operation& read) {
  read.key = static_cast<int>(random.below(kKeys));
  storage::ReadCommand& command = read.command;
  command.incarnation = read.incarnation;
  command.schema_version = {1};
  command.partition_key = key_text(read.key);
  command.position = partitioner::position_of(command.partition_key);
  if (whole) return;
  if (random.one_in(4)) {
    command.is_range = true;
    command.partition_key.clear();
    command.position = {};
    if (random.one_in(3)) command.range.start = partitioner::position_of(key_text(read.key));
  }
  if (random.one_in(3)) {
    const int first = static_cast<int>(random.below(kRows));
    const int end =
        first + 1 + static_cast<int>(random.below(static_cast<uint64_t>(kRows - first)));
    command.clustering_ranges.push_back({clustering_of(first), clustering_of(end)});
  } else if (random.one_in(4)) {
    command.rows.push_back(clustering_of(static_cast<int>(random.below(3))));
    if (random.one_in(2)) command.rows.push_back(clustering_of(4));
  }
  command.reversed = random.one_in(5);
  if (random.one_in(2)) command.row_limit = 1 + static_cast<uint32_t>(random.below(6));
  if (random.one_in(6)) command.per_partition_limit = 1 + static_cast<uint32_t>(random.below(3));
  if (random.one_in(4)) command.bytes_limit = 1 + random.below(200);
}

namespace {

bool in_slices(const storage::ReadCommand& command, int row) {
  const Bytes key = clustering_of(row);
  if (!command.rows.empty())
    return std::find(command.rows.begin(), command.rows.end(), key) != command.rows.end();
  if (command.clustering_ranges.empty()) return true;
  return std::any_of(command.clustering_ranges.begin(), command.clustering_ranges.end(),
                     [&](const storage::ClusteringRange& range) { return range.contains(key); });
}

bool wanted(const Operation& read, int key) {
  if (!read.command.is_range) return key == read.key;
  return read.command.range.contains(partitioner::position_of(key_text(key)));
}

/// How far a page goes inside one partition, in rows of the read's order.
struct Extent {
  bool none = false;
  std::optional<int> after, up_to;

  bool has(int row, bool reversed) const {
    if (none) return false;
    if (after && (reversed ? row >= *after : row <= *after)) return false;
    return !up_to || (reversed ? row >= *up_to : row <= *up_to);
  }
};

Extent extent_of(const storage::ReadCommand& command, const storage::ReadResult& result, int key) {
  Extent extent;
  const auto rank_of = [](const storage::ReadPosition& place) {
    return ring_rank(key_of(place.partition_key));
  };
  const int rank = ring_rank(key);
  if (const auto& resume = command.resume_after) {
    const int at = rank_of(*resume);
    if (rank < at || (rank == at && !resume->clustering_key)) extent.none = true;
    if (rank == at && resume->clustering_key) extent.after = row_of(*resume->clustering_key);
  }
  if (!result.exhausted) {
    const int at = rank_of(result.complete_up_to);
    if (rank > at) extent.none = true;
    if (rank == at && result.complete_up_to.clustering_key)
      extent.up_to = row_of(*result.complete_up_to.clustering_key);
  }
  return extent;
}

/// Takes the values of a record, each of which names its own timestamp.
bool take_record(BytesView encoded, int64_t now_s, PartitionOf<int64_t>& seen, int row) {
  storage::RowRecordReader reader;
  if (!reader.open(encoded)) return false;
  auto& places = seen[static_cast<size_t>(row)];
  const storage::Liveness& liveness = reader.liveness();
  if (liveness.present()) {
    if (liveness.ttl_s != 0 && liveness.expiry_s <= now_s) return false;
    places[0] = liveness.timestamp_us;
  }
  storage::Cell cell;
  while (reader.next(cell)) {
    if (cell.kind != storage::CellKind::kValue) return false;
    if (cell.ttl_s != 0 && cell.expiry_s <= now_s) return false;
    if (cell.value != std::to_string(cell.timestamp_us)) return false;
    const uint32_t column = row == kStatic ? cell.column_id - kStaticColumnId + 1 : cell.column_id;
    if (column == 0 || column >= kColumns) return false;
    places[column] = cell.timestamp_us;
  }
  return reader.status().has_value();
}

/// The latest that values of a write may bear.
int64_t last_expiry_s(const Operation& write) {
  return write.redated_s == 0 ? write.expiry_s : std::max(write.expiry_s, write.redated_s + kTtl_s);
}

}  // namespace

namespace {

/// Whether a page ends behind where it began.
bool goes_on(const storage::ReadCommand& command, const storage::ReadResult& result) {
  if (result.exhausted || !command.resume_after) return true;
  const storage::ReadPosition& from = *command.resume_after;
  const storage::ReadPosition& to = result.complete_up_to;
  const int from_rank = ring_rank(key_of(from.partition_key));
  const int to_rank = ring_rank(key_of(to.partition_key));
  if (from_rank != to_rank) return from_rank < to_rank;
  if (!from.clustering_key || !to.clustering_key)
    return from.clustering_key.has_value() && !to.clustering_key;
  return command.reversed ? *to.clustering_key < *from.clustering_key
                          : *to.clustering_key > *from.clustering_key;
}

}  // namespace

void take_result(const storage::ReadResult& result, Operation& read) {
  const storage::ReadCommand& command = read.command;
  if (!goes_on(command, result)) {
    read.wrong = "a page that ends where it began";
    return;
  }
  std::array<const storage::PartitionData*, kKeys> found{};
  int last_rank = -1;
  for (const storage::PartitionData& partition : result.partitions) {
    const int key = key_of(partition.partition_key);
    if (key < 0 || !wanted(read, key) || ring_rank(key) <= last_rank) {
      read.wrong = "partitions that were not asked for, twice or out of order";
      return;
    }
    last_rank = ring_rank(key);
    found[static_cast<size_t>(key)] = &partition;
  }
  uint32_t live = 0;
  for (int key = 0; key < kKeys; ++key) {
    if (!wanted(read, key)) continue;
    const storage::PartitionData* const partition = found[static_cast<size_t>(key)];
    Extent extent = extent_of(command, result, key);
    auto& covered = read.covered[static_cast<size_t>(key)];
    auto& seen = read.seen[static_cast<size_t>(key)];
    uint32_t limit = command.per_partition_limit;
    if (extent.after && limit != storage::ReadCommand::kNoLimit)
      limit -= std::min(limit, command.partition_rows_done);
    if (partition != nullptr) {
      std::optional<int> last;
      for (const storage::RowData& row : partition->rows) {
        const int number = row_of(row.clustering_key);
        const bool in_order = !last || (command.reversed ? number < *last : number > *last);
        last = number;
        if (number < 0 || number >= kRows || !in_order || !in_slices(command, number) ||
            !extent.has(number, command.reversed)) {
          read.wrong = fmt::format("row {} of {} outside of the page or out of order", number,
                                   key_text(key));
          return;
        }
        if (!take_record(row.record, command.now_s, seen, number))
          read.wrong = fmt::format("{} row {}: a value that has expired, or that nobody wrote so",
                                   key_text(key), number);
      }
      if (!partition->header.empty() &&
          !take_record(partition->header, command.now_s, seen, kStatic))
        read.wrong = "a static value that has expired, or that nobody wrote so";
      if (partition->rows.size() > limit) read.wrong = "more rows than the limit of a partition";
      live += partition->rows.empty() ? 1 : static_cast<uint32_t>(partition->rows.size());
      // Past the limit of the partition nothing was looked for.
      if (partition->rows.size() >= limit) extent.up_to = last;
    }
    for (int row = 0; row < kRows; ++row) {
      if (!in_slices(command, row) || !extent.has(row, command.reversed)) continue;
      covered[static_cast<size_t>(row)].fill(true);
    }
    const bool with_rows = partition != nullptr && !partition->rows.empty();
    covered[kStatic][1] = with_rows || (!extent.none && !extent.after && !extent.up_to);
  }
  if (live > command.row_limit) read.wrong = "more rows than the limit";
}

// ---- the history ----

Operation& History::add(std::unique_ptr<Operation> operation) {
  operations_.push_back(std::move(operation));
  Operation& added = *operations_.back();
  if (added.is_write) {
    writes_[static_cast<size_t>(added.key)].push_back(&added);
  } else {
    for (int key = 0; key < kKeys; ++key)
      if (wanted(added, key)) reads_[static_cast<size_t>(key)].push_back(&added);
  }
  return added;
}

size_t History::acknowledged() const {
  return static_cast<size_t>(
      std::count_if(operations_.begin(), operations_.end(), [](const auto& operation) {
        return operation->is_write && operation->state == Operation::State::kOk;
      }));
}

bool History::may_be_gone(const Operation& write) const {
  if (!truncated_at_us_) return false;
  return !truncated_until_us_ || write.begun_us <= *truncated_until_us_;
}

bool History::meets(const Operation& earlier, const Operation& read) const {
  if (!spans_centers_ || earlier.center == read.center) return true;
  using enum ConsistencyLevel;
  if (read.level == kEachQuorum || read.level == kAll) return true;
  if (earlier.level == kEachQuorum || earlier.level == kAll) return true;
  return earlier.level == kQuorum && read.level == kQuorum;
}

bool History::must_be_gone(const Operation& write, const Operation& read) const {
  return truncated_until_us_ && write.state == Operation::State::kOk &&
         write.ended_us < *truncated_at_us_ && read.begun_us > *truncated_until_us_;
}

std::string History::check(const Operation& read, bool atomic) const {
  if (!read.wrong.empty()) return read.wrong;
  for (int key = 0; key < kKeys; ++key) {
    const auto& covered = read.covered[static_cast<size_t>(key)];
    const auto& seen = read.seen[static_cast<size_t>(key)];
    PartitionOf<int64_t> at_least{};
    if (atomic) {
      for (const Operation* write : writes_[static_cast<size_t>(key)]) {
        bool met = false;
        for (size_t i = 0; i < kRows; ++i)
          for (size_t j = 0; j < kColumns; ++j)
            met |= covered[i][j] && seen[i][j] == write->timestamp;
        if (!met) continue;
        for (size_t i = 0; i < kRows; ++i)
          for (size_t j = 0; j < kColumns; ++j)
            if (write->effects[i][j] != Effect::kNone)
              at_least[i][j] = std::max(at_least[i][j], write->timestamp);
      }
    }
    for (int row = 0; row <= kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        const auto i = static_cast<size_t>(row), j = static_cast<size_t>(column);
        if (!covered[i][j]) continue;
        if (auto wrong = check_place(read, key, row, column, at_least[i][j]); !wrong.empty())
          return wrong;
      }
    }
  }
  return "";
}

std::string History::check_place(const Operation& read, int key, int row, int column,
                                 int64_t at_least) const {
  const auto k = static_cast<size_t>(key), i = static_cast<size_t>(row),
             j = static_cast<size_t>(column);
  const int64_t saw = read.seen[k][i][j];
  const bool quorum = read.level != ConsistencyLevel::kOne;
  int64_t floor = quorum ? at_least : 0;
  if (quorum) {
    for (const Operation* write : writes_[k]) {
      if (write->effects[i][j] != Effect::kNone && write->state == Operation::State::kOk &&
          write->ended_us < read.begun_us && !may_be_gone(*write) && meets(*write, read))
        floor = std::max(floor, write->timestamp);
    }
    for (const Operation* other : reads_[k]) {
      if (other->state != Operation::State::kOk || other->level == ConsistencyLevel::kOne ||
          other->ended_us >= read.begun_us || !other->covered[k][i][j] || !meets(*other, read))
        continue;
      const bool before_truncate =
          truncated_at_us_ && (!truncated_until_us_ || other->begun_us <= *truncated_until_us_);
      if (!before_truncate) floor = std::max(floor, other->seen[k][i][j]);
    }
  }
  const auto place = [&] { return fmt::format("{} row {} column {}", key_text(key), row, column); };
  if (saw != 0) {
    for (const Operation* write : writes_[k]) {
      if (write->timestamp != saw) continue;
      if (write->effects[i][j] != Effect::kValue || write->begun_us > read.ended_us) break;
      if (write->expiry_s != 0 && last_expiry_s(*write) <= read.command.now_s)
        return fmt::format("a read of {} saw {} after it had expired: at {}, dated {}, until {}",
                           place(), saw, read.command.now_s, write->dated_s, last_expiry_s(*write));
      if (quorum && must_be_gone(*write, read))
        return fmt::format("a read of {} saw {} that was truncated", place(), saw);
      if (saw < floor)
        return fmt::format("a read of {} saw {} although {} was acknowledged or read before",
                           place(), saw, floor);
      return "";
    }
    return fmt::format("a read of {} saw {}, which nobody wrote there", place(), saw);
  }
  if (floor == 0) return "";
  for (const Operation* write : writes_[k]) {
    if (write->timestamp < floor || write->begun_us > read.ended_us) continue;
    const Effect effect = write->effects[i][j];
    const bool expired =
        effect == Effect::kValue && write->expiry_s != 0 && write->expiry_s <= read.command.now_s;
    if (effect == Effect::kDelete || expired) return "";
  }
  return fmt::format("a read of {} saw nothing although {} was acknowledged or read before",
                     place(), floor);
}

std::vector<const Operation*> History::lasting(int key) const {
  std::vector<const Operation*> lasting;
  for (const Operation* write : writes_[static_cast<size_t>(key)])
    if (write->state == Operation::State::kOk && !may_be_gone(*write)) lasting.push_back(write);
  return lasting;
}

}  // namespace tetrad::simulation
