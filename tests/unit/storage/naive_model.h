// SPDX-License-Identifier: Apache-2.0
// The plainest thinkable store: it keeps every mutation and answers a read by looking at all of
// them. What the engines are compared with.
#pragma once

#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "storage/row/range_tombstones.h"
#include "tests/unit/storage/random_rows.h"

namespace tetrad::storage {

class NaiveModel {
 public:
  struct Row {
    std::string partition, clustering;  // clustering "-" and static_only for a partition of static
    bool static_only = false;
    RowRecord record;
    friend bool operator==(const Row&, const Row&) = default;
  };

  void apply(const Mutation& m) {
    kept_.push_back(m);
    partitions_[{m.position, m.partition_key.size(), m.partition_key}].push_back(&kept_.back());
  }
  void clear() {
    partitions_.clear();
    kept_.clear();
  }

  /// Live rows of the command without row, byte limits or resumption; views are into this model.
  std::vector<Row> live_rows(const ReadCommand& command) const {
    std::vector<Row> rows;
    for (const auto& [key, mutations] : partitions_) {
      if (!wanted(command, key)) continue;
      const Partition p = read(mutations);
      RowRecord header = p.header;
      keep_live(header, command.now_s);
      uint32_t live = 0;
      auto order = p.rows;
      const auto emit = [&](const std::pair<const std::string, RowRecord>& row) {
        RowRecord record = row.second;
        if (!in_slices(command, row.first) || !is_live(record, command.now_s)) return;
        const uint32_t limit = command.distinct_partitions ? 1 : command.per_partition_limit;
        if (live >= limit) return;
        keep_live(record, command.now_s);
        rows.push_back({std::get<2>(key), row.first, false, record});
        ++live;
      };
      if (command.reversed) {
        for (auto it = order.rbegin(); it != order.rend(); ++it) emit(*it);
      } else {
        for (const auto& row : order) emit(row);
      }
      if (live == 0 && command.wants_static && !header.cells.empty() &&
          command.per_partition_limit > 0)
        rows.push_back({std::get<2>(key), "-", true, header});
    }
    return rows;
  }

  struct Partition {
    RowRecord header;
    std::map<std::string, RowRecord> rows;  // less what is hidden
    std::vector<RangeTombstoneView> tombstones;
  };
  Partition partition(RingPosition position, const std::string& key) const {
    const auto found = partitions_.find({position, key.size(), key});
    return found == partitions_.end() ? Partition() : read(found->second);
  }

 private:
  using Key = std::tuple<RingPosition, size_t, std::string>;

  static bool in_slices(const ReadCommand& command, const std::string& clustering) {
    if (!command.rows.empty())
      return std::find(command.rows.begin(), command.rows.end(), clustering) != command.rows.end();
    if (command.clustering_ranges.empty()) return true;
    return std::any_of(command.clustering_ranges.begin(), command.clustering_ranges.end(),
                       [&](const ClusteringRange& r) { return r.contains(clustering); });
  }
  static bool wanted(const ReadCommand& command, const Key& key) {
    if (command.is_range) return command.range.contains(std::get<0>(key));
    return std::get<0>(key) == command.position && std::get<2>(key) == command.partition_key;
  }
  static Partition read(const std::vector<const Mutation*>& mutations) {
    Partition p;
    for (const Mutation* m : mutations) {
      if (!m->header.empty()) p.header = reconcile(p.header, *decode_row_record(m->header));
      for (const RangeTombstone& t : m->range_tombstones)
        p.tombstones.push_back({t.range.start, t.range.end, t.deletion});
      for (const RowChange& row : m->rows) {
        RowRecord& stored = p.rows[row.clustering_key];
        stored = reconcile(stored, *decode_row_record(row.record));
      }
    }
    for (auto& [key, record] : p.rows) {
      hide(record, p.header.deletion);
      for (const RangeTombstoneView& t : p.tombstones)
        if (t.start <= key && key < t.end) hide(record, t.deletion);
    }
    return p;
  }

  std::list<Mutation> kept_;
  std::map<Key, std::vector<const Mutation*>> partitions_;
};

/// Random mutations and commands over a handful of partitions and clustering keys.
class RandomTraffic {
 public:
  explicit RandomTraffic(uint64_t seed) : rows(seed) {}

  RandomRows rows;
  bool with_put = true;

  std::pair<RingPosition, Bytes> partition() {
    // Two keys share a position; lengths differ, so that their order is not that of their bytes.
    static const std::pair<RingPosition, Bytes> all[] = {
        {{-7, 1}, "p"}, {{0, 5}, "q"}, {{0, 5}, "aa"}, {{0, 6}, "r"}, {{90, 0}, "s"}};
    return all[rows.below(5)];
  }
  Bytes clustering() {
    static const char* all[] = {"", "a", "aa", "ab", "b", "ba", "c", "d"};
    return all[rows.below(8)];
  }
  Bytes bound() {
    return rows.one_in(6) ? Bytes("\xFF") : clustering() + (rows.one_in(2) ? "\xFF" : "");
  }

  Mutation mutation() {
    Mutation m;
    m.incarnation = kTable;
    m.schema_version = {1};
    std::tie(m.position, m.partition_key) = partition();
    ++clock_;
    if (rows.one_in(8)) {
      RowRecord header = record_of({});
      if (rows.one_in(3)) header.deletion = {time(), rows.deletion_time()};
      if (rows.one_in(2)) header.cells.push_back(value_cell(9, time(), rows.value()));
      if (!header.empty()) m.header = encoded(header);
    }
    if (rows.one_in(8))
      m.range_tombstones.push_back({{bound(), bound()}, {time(), rows.deletion_time()}});
    std::set<Bytes> keys;
    for (uint64_t n = rows.below(4); n > 0; --n) keys.insert(clustering());
    for (const Bytes& key : keys) {
      const bool complete = with_put && rows.one_in(2);
      const RowRecord record = complete ? rows.complete_record(time()) : shifted(rows.record());
      m.rows.push_back({key, encoded(record), complete});
    }
    return m;
  }

  ReadCommand command() {
    ReadCommand c;
    c.incarnation = kTable;
    c.schema_version = {1};
    c.now_s = kNow_s + static_cast<int64_t>(rows.below(3)) * 200 - 200;
    if (rows.one_in(2)) {
      c.is_range = true;
      if (rows.one_in(2)) {
        static const RingPosition positions[] = {
            RingPosition::lowest(), {-7, 1}, {0, 4}, {0, 5}, {50, 0}, RingPosition::highest()};
        c.range = {positions[rows.below(6)], positions[rows.below(6)]};
      }
    } else {
      std::tie(c.position, c.partition_key) = partition();
    }
    std::set<Bytes> keys;
    for (uint64_t n = rows.below(5); n > 0; --n) keys.insert(clustering());
    if (rows.one_in(3)) {
      c.rows.assign(keys.begin(), keys.end());
    } else if (rows.one_in(2)) {
      std::set<Bytes> bounds;
      for (uint64_t n = 2 * (1 + rows.below(2)); n > 0; --n) bounds.insert(bound());
      for (auto it = bounds.begin(); it != bounds.end() && std::next(it) != bounds.end();
           std::advance(it, 2)) {
        c.clustering_ranges.push_back({*it, *std::next(it)});
        if (std::distance(it, bounds.end()) <= 2) break;
      }
    }
    c.reversed = rows.one_in(3);
    c.wants_static = !rows.one_in(3);
    if (rows.one_in(4)) c.per_partition_limit = 1 + static_cast<uint32_t>(rows.below(3));
    if (rows.one_in(8)) c.distinct_partitions = true;
    return c;
  }

 private:
  /// Mostly rising, so that Put is used, with older ones between.
  int64_t time() {
    return 1000 + (rows.one_in(4) ? static_cast<int64_t>(rows.below(clock_ + 1))
                                  : static_cast<int64_t>(clock_));
  }
  RowRecord shifted(RowRecord record) {
    const int64_t ts = time();
    const auto shift = [&](int64_t& t) {
      if (t != kNoTimestamp) t = ts + (t % 3) - 1;
    };
    shift(record.liveness.timestamp_us);
    if (!rows.one_in(4)) record.deletion = {};  // flags would forbid every Put soon
    shift(record.deletion.timestamp_us);
    for (Cell& cell : record.cells) shift(cell.timestamp_us);
    return record;
  }
  uint64_t clock_ = 0;
};

/// The live rows of a result, as the model gives them. Views are into the result.
inline std::vector<NaiveModel::Row> rows_of(const ReadResult& result) {
  std::vector<NaiveModel::Row> rows;
  for (const PartitionData& p : result.partitions) {
    for (const RowData& row : p.rows) {
      auto record = decode_row_record(row.record);
      REQUIRE(record.has_value());
      rows.push_back({std::string(p.partition_key), std::string(row.clustering_key), false,
                      std::move(*record)});
    }
    if (!p.rows.empty()) continue;
    auto header = decode_row_record(p.header);
    REQUIRE(header.has_value());
    rows.push_back({std::string(p.partition_key), "-", true, std::move(*header)});
  }
  return rows;
}

/// Makes `command` go on after a page; `partition_rows` counts the rows the pages so far gave of
/// the last partition.
inline void go_on(ReadCommand& command, const ReadResult& page) {
  const bool same = command.resume_after && page.complete_up_to.clustering_key &&
                    command.resume_after->position == page.complete_up_to.position &&
                    command.resume_after->partition_key == page.complete_up_to.partition_key;
  uint32_t rows = same ? command.partition_rows_done : 0;
  if (!page.partitions.empty() && page.partitions.back().position == page.complete_up_to.position &&
      page.partitions.back().partition_key == page.complete_up_to.partition_key)
    rows += static_cast<uint32_t>(page.partitions.back().rows.size());
  command.resume_after = page.complete_up_to;
  command.partition_rows_done = page.complete_up_to.clustering_key ? rows : 0;
}

}  // namespace tetrad::storage
