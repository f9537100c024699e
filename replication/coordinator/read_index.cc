// SPDX-License-Identifier: Apache-2.0
// Reads that an index narrows (rules 3, 5, 7 and 23). Inside one tablet:
//
//   1. W members (of each set, while two are read) are asked as by any read: one for rows, the others
//      for digests. Each answers the rows that its claims name and that have the value there. When all
//      agree, what they answered is on W of them: that is the answer.
//   2. When they differ, or one of them may lack what makes a row match, all say which rows their
//      claims name, matching or not. What any of them names, up to the smallest place that one of them
//      is complete to, is read by its key from a quorum, merged and repaired as any row is. So a row is
//      never answered from those alone whose claims name it: they may hold an old value of it.
//   3. A replica that has not built the index says so. Another is asked; when too few are left all
//      rows are read: slower, and right.
//
// Whoever asked tests all conditions on the rows. A read of several tablets asks one, then two, four
// and so on at once, as long as the page is not full.
#include <algorithm>
#include <map>
#include <set>

#include "base/data_mutants.h"
#include "replication/coordinator/gathering.h"
#include "replication/coordinator/last_catch.h"
#include "replication/coordinator/ring_walk.h"
#include "storage/row/storage_key.h"

namespace tetrad::replication {
namespace {

// Bounds of what is in flight for one read.
constexpr size_t kTabletsAtOnce = 32;
constexpr size_t kNamedAtOnce = 32;  // partitions

/// What claims name of a partition.
struct NamedRows {
  bool whole = false;
  std::set<Bytes> rows;  // clustering keys
};

/// A partition's place in a read.
struct PartitionPlace {
  RingPosition position;
  Bytes key;
  friend bool operator<(const PartitionPlace& a, const PartitionPlace& b) {
    return storage::compare_partitions(a.position, a.key, b.position, b.key) < 0;
  }
};

/// What members name, and up to where all of them are complete; unset: to the end.
struct Names {
  std::map<PartitionPlace, NamedRows> partitions;
  std::optional<storage::ReadPosition> end;
};

int compare_ends(const storage::ReadPosition& a, const storage::ReadPosition& b, bool reversed) {
  const int order =
      storage::compare_partitions(a.position, a.partition_key, b.position, b.partition_key);
  if (order != 0) return order;
  if (!a.clustering_key || !b.clustering_key)
    return static_cast<int>(!a.clustering_key) - static_cast<int>(!b.clustering_key);
  const int rows = a.clustering_key->compare(*b.clustering_key);
  return reversed ? -rows : rows;
}

// Rule 5 for names: beyond the smallest end another member may name more.
Names join_names(const std::vector<storage::ReplicaReply>& replies, bool reversed) {
  Names names;
  for (const storage::ReplicaReply& reply : replies) {
    const storage::ReadResult& named = reply.result;
    if (!named.exhausted && !TETRAD_MUTANT(index_names_uncut) &&
        (!names.end || compare_ends(named.complete_up_to, *names.end, reversed) < 0))
      names.end = named.complete_up_to;
    if (!named.exhausted && TETRAD_MUTANT(index_names_uncut) &&
        (!names.end || compare_ends(named.complete_up_to, *names.end, reversed) > 0))
      names.end = named.complete_up_to;
    for (const storage::PartitionData& partition : named.partitions) {
      NamedRows& rows = names.partitions[{partition.position, Bytes(partition.partition_key)}];
      // Without rows the whole partition is named.
      rows.whole |= partition.rows.empty();
      for (const storage::RowData& row : partition.rows)
        rows.rows.insert(Bytes(row.clustering_key));
    }
  }
  if (!names.end) return names;
  // Beyond the end others may name more.
  const PartitionPlace last{names.end->position, names.end->partition_key};
  names.partitions.erase(names.partitions.upper_bound(last), names.partitions.end());
  const auto cut = names.partitions.find(last);
  if (cut == names.partitions.end() || !names.end->clustering_key) return names;
  if (cut->second.whole) {  // it is read to its end
    names.end->clustering_key.reset();
  } else {
    std::erase_if(cut->second.rows, [&](const Bytes& row) {
      return reversed ? row < *names.end->clustering_key : row > *names.end->clustering_key;
    });
  }
  return names;
}

// The original read of one partition, narrowed to what was named. Conditions are tested above.
storage::ReadCommand command_of(const storage::ReadCommand& command, const PartitionPlace& place,
                                const NamedRows& named) {
  storage::ReadCommand one = command;
  one.by_index.reset();
  one.is_range = false;
  one.position = place.position;
  one.partition_key = place.key;
  one.bytes_max = storage::ReadCommand::kNoBytesMax;
  const auto& resume = command.resume_after;
  if (resume && storage::compare_partitions(resume->position, resume->partition_key, place.position,
                                            place.key) != 0)
    one.resume_after.reset();
  if (!one.resume_after) one.partition_rows_done = 0;
  if (named.whole) return one;
  one.clustering_ranges.clear();
  one.rows.assign(named.rows.begin(), named.rows.end());
  return one;
}

/// Puts answers to parts of a read together, in its order, up to its limits.
class Assembly {
 public:
  Assembly(uint32_t row_limit, uint64_t bytes_limit)
      : row_limit_(row_limit), bytes_limit_(bytes_limit) {}

  bool is_full() const {
    return ended_ || result_.live_row_count >= row_limit_ ||
           result_.arena.allocated_bytes() >= bytes_limit_;
  }
  uint32_t rows_left() const {
    return row_limit_ == storage::ReadCommand::kNoLimit ? row_limit_
                                                        : row_limit_ - result_.live_row_count;
  }
  uint64_t bytes_left() const {
    return bytes_limit_ - std::min<uint64_t>(bytes_limit_ - 1, result_.arena.allocated_bytes());
  }

  /// What comes next in the order of the read.
  // Cuts at the limits, and remembers where the page ends.
  void add(storage::ReadResult part) {
    TETRAD_ASSERT(!is_full());
    // Nothing views the arena of an answer without rows, though it may hold the message that brought
    // it. Counted, many of them would fill a page that has no row to end at.
    const bool has_rows = !part.partitions.empty();
    for (storage::PartitionData& partition : part.partitions) {
      // A partition of a static row alone counts as one.
      const auto rows = static_cast<uint32_t>(std::max<size_t>(partition.rows.size(), 1));
      if (rows > rows_left()) {
        partition.rows.resize(rows_left());
        end_at({partition.position, Bytes(partition.partition_key),
                Bytes(partition.rows.back().clustering_key)});
      }
      result_.live_row_count += static_cast<uint32_t>(std::max<size_t>(partition.rows.size(), 1));
      const storage::ReadPosition behind{partition.position, Bytes(partition.partition_key), {}};
      result_.partitions.push_back(std::move(partition));
      if (ended_) break;
      if (result_.live_row_count < row_limit_ || &partition == &part.partitions.back()) continue;
      end_at(behind);
      break;
    }
    if (has_rows) result_.arena.absorb(std::move(part.arena));
    if (!ended_ && !part.exhausted) end_at(std::move(part.complete_up_to));
  }
  /// There is more behind this place.
  void end_at(storage::ReadPosition place) {
    ended_ = true;
    result_.exhausted = false;
    result_.complete_up_to = std::move(place);
  }
  /// There is more behind the last partition.
  void end_at_last_partition() {
    TETRAD_ASSERT(!result_.partitions.empty());
    const storage::PartitionData& last = result_.partitions.back();
    end_at({last.position, Bytes(last.partition_key), std::nullopt});
  }
  bool has_ended() const { return ended_; }
  storage::ReadResult take() { return std::move(result_); }

 private:
  const uint32_t row_limit_;
  const uint64_t bytes_limit_;
  storage::ReadResult result_;
  bool ended_ = false;
};

/// All that is named of a partition has been read; where the names end inside it, there.
void end_behind(Assembly& assembly, const PartitionPlace& place, const Names& names) {
  const bool is_last =
      names.end && names.end->position == place.position && names.end->partition_key == place.key;
  assembly.end_at(is_last ? *names.end
                          : storage::ReadPosition{place.position, place.key, std::nullopt});
}

/// The next parts to read, `at_once` at most: in ring order, each in one tablet of this snapshot
/// (rule 8). The place in a partition belongs to the part that starts where the read begins.
std::vector<storage::ReadCommand> parts_of_wave(const storage::ReadCommand& command,
                                                const TableInfo& table, RingPosition from,
                                                size_t at_once, const Assembly& assembly) {
  const RingRange& whole = command.range;
  const RingPosition begin = start_of(command);
  std::vector<storage::ReadCommand> parts;
  for (RingPosition start = from; start < whole.end && parts.size() < at_once;) {
    storage::ReadCommand& part = parts.emplace_back(command);
    if (start != begin) {
      part.resume_after.reset();
      part.partition_rows_done = 0;
    }
    part.range = {start, std::min(whole.end, tablet_after(table, start).range.end)};
    start = part.range.end;
    part.row_limit = assembly.rows_left();
    // The bytes of a page are divided, since all parts of a wave come whether they are used or not.
    part.bytes_limit = std::max<uint64_t>(assembly.bytes_left() / at_once, 1);
  }
  return parts;
}

}  // namespace

Task<Result<storage::ReadResult>> CoordinatorImpl::read_named(storage::ReadCommand command,
                                                              SetEpoch epoch,
                                                              std::vector<StoreAddress> replicas,
                                                              ReadOptions options) {
  metrics_.index_mismatches.add();
  storage::ReadCommand naming = command;
  naming.by_index->names_only = true;
  naming.bytes_max = storage::ReadCommand::kNoBytesMax;
  if (options.trace != nullptr) {
    options.trace->add(fmt::format("Index entries differ: asking {} replicas which rows they name",
                                   replicas.size()));
  }
  const size_t need = replicas.size();
  // Data of all of them: names are not compared by digests.
  const auto gathering = gather(naming, epoch, std::move(replicas), need, false, options, {});
  const bool complete = co_await gathering->done;
  if (!complete) co_return std::unexpected(read_error(*gathering, options.level));
  const Names names = join_names(gathering->data, command.reversed);
  ReadOptions of_rows = options;
  of_rows.background = true;  // the client's read is counted where it began
  Assembly assembly(command.row_limit, command.bytes_limit);
  for (auto next = names.partitions.begin();
       next != names.partitions.end() && !assembly.is_full();) {
    std::vector<storage::ReadCommand> window;
    std::vector<PartitionPlace> places;
    storage::ReadCommand part = command;
    part.row_limit = assembly.rows_left();
    part.bytes_limit = assembly.bytes_left();
    for (; next != names.partitions.end() && window.size() < kNamedAtOnce; ++next) {
      // Everything named of it lay behind the end.
      if (!next->second.whole && next->second.rows.empty()) continue;
      window.push_back(command_of(part, next->first, next->second));
      places.push_back(next->first);
    }
    auto read = co_await read_many(std::move(window), of_rows);
    if (!read) co_return std::unexpected(std::move(read.error()));
    for (size_t i = 0; i < read->size() && !assembly.is_full(); ++i) {
      assembly.add(std::move((*read)[i]));
      const bool is_last = i + 1 == read->size() && next == names.partitions.end();
      // Full exactly at the end of a partition.
      if (!assembly.has_ended() && assembly.is_full() && (!is_last || names.end))
        end_behind(assembly, places[i], names);
    }
  }
  // All that was named has been read, and the members had more behind that.
  if (!assembly.has_ended() && names.end) assembly.end_at(*names.end);
  storage::ReadResult result = assembly.take();
  storage::withhold_if_larger(result, command.bytes_max);
  co_return result;
}

Task<void> CoordinatorImpl::read_part_into(
    CoordinatorImpl* self, storage::ReadCommand command, ReadOptions options,
    std::move_only_function<void(Result<storage::ReadResult>)> done) {
  std::optional<Result<storage::ReadResult>> result;
  try {
    const RingPosition inside = command.range.end;
    auto read = co_await self->read_tablet(std::move(command), inside, options);
    result.emplace(std::move(read));
  } catch (const std::exception& error) {
    result.emplace(failed_inside(error, self->logger_));
  }
  done(std::move(*result));
}

Task<Result<storage::ReadResult>> CoordinatorImpl::read_range_by_index(storage::ReadCommand command,
                                                                       ReadOptions options) {
  struct Wave {
    size_t left = 1;
    std::vector<std::optional<Result<storage::ReadResult>>> results;
    base::OneShot<bool> done;
    void finish_one() {
      if (--left == 0) done.setter().set(true);
    }
  };
  const RingRange whole = command.range;
  // The first wave asks one tablet: most pages are full after it.
  RingPosition from = start_of(command);
  Assembly assembly(command.row_limit, command.bytes_limit);
  for (size_t at_once = 1; from < whole.end && !assembly.is_full();
       at_once = std::min(2 * at_once, kTabletsAtOnce)) {
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(command.incarnation);
    if (table == nullptr) co_return fail(ErrorCode::kStaleSchema, kTableGone);
    std::vector<storage::ReadCommand> parts =
        parts_of_wave(command, *table, from, at_once, assembly);
    const auto wave = std::make_shared<Wave>();
    wave->results.resize(parts.size());
    std::vector<RingPosition> ends;
    for (size_t i = 0; i < parts.size(); ++i) {
      ends.push_back(parts[i].range.end);
      ++wave->left;
      tasks_.spawn(read_part_into(this, std::move(parts[i]), options,
                                  [wave, i](Result<storage::ReadResult> result) {
                                    wave->results[i].emplace(std::move(result));
                                    wave->finish_one();
                                  }));
    }
    wave->finish_one();
    co_await wave->done;
    // In order; the first that is missing or cut ends what can be used of the wave.
    for (size_t i = 0; i < ends.size() && !assembly.is_full(); ++i) {
      Result<storage::ReadResult>& part = *wave->results[i];
      // It was split meanwhile: what is left to be read is cut anew.
      if (!part && part.error().code == ErrorCode::kStaleEpoch) break;
      if (!part) co_return std::unexpected(std::move(part.error()));
      if (part->withheld_bytes != 0) {
        storage::ReadResult so_far = assembly.take();
        if (so_far.partitions.empty()) co_return std::move(*part);
        const storage::PartitionData& last = so_far.partitions.back();
        so_far.exhausted = false;
        so_far.complete_up_to = {last.position, Bytes(last.partition_key), std::nullopt};
        co_return so_far;
      }
      assembly.add(std::move(*part));
      from = ends[i];
      if (!assembly.has_ended() && assembly.is_full() && from < whole.end)
        assembly.end_at_last_partition();
    }
  }
  co_return assembly.take();
}

}  // namespace tetrad::replication
