// SPDX-License-Identifier: Apache-2.0
// A write whose bucket has seen a timestamp that no coordinator gave: a client's, of the future. It
// may hide the new write, or a write with a coordinator's timestamp may; the mark alone does not
// show which. So the rows are read from R replicas.
#include <algorithm>
#include <span>

#include "base/data_mutants.h"
#include "replication/consistency.h"
#include "replication/coordinator/coordinator_impl.h"
#include "replication/coordinator/gathering.h"
#include "replication/coordinator/replica_sets.h"
#include "storage/row/partition_header.h"
#include "storage/row/range_tombstones.h"

namespace tetrad::replication {
namespace {

using storage::Deletion;
using storage::RowRecord;

/// So that neither a reply nor the turn that looks at it is long, however wide a batch is.
constexpr size_t kRowsAtOnce = 1000;
constexpr size_t kPartsMax = 1000;

// Of everything that a record says.
int64_t newest_in(const RowRecord& record) {
  int64_t newest_us = std::max(record.liveness.timestamp_us, record.deletion.timestamp_us);
  for (const storage::Cell& cell : record.cells) newest_us = std::max(newest_us, cell.timestamp_us);
  return newest_us;
}

/// What replicas hold of one row, or of a partition's header.
class Held {
 public:
  Result<void> add(BytesView encoded) {
    TETRAD_TRY(RowRecord record, storage::decode_row_record(encoded));
    record_ = storage::reconcile(record_, record);
    return {};
  }
  void cover(const Deletion& deletion) { cover_ = storage::later_of(cover_, deletion); }
  /// The newest timestamp there if something of `written` is not to be seen, or not deleted.
  Result<std::optional<int64_t>> hides(BytesView written) {
    TETRAD_TRY(RowRecord wanted, storage::decode_row_record(written));
    storage::drop_hidden(wanted);
    // What hides the write, as the replicas have it together.
    storage::hide(record_, cover_);
    const int64_t newest_us = std::max(newest_in(record_), cover_.timestamp_us);
    // The write deletes, but something newer stays that it does not itself bring.
    const bool survives = wanted.deletion.present() && newest_us > wanted.deletion.timestamp_us &&
                          newest_us > newest_in(wanted);
    if (!survives && storage::missing_part(wanted, record_).empty()) return std::nullopt;
    return newest_us;
  }

 private:
  RowRecord record_;
  Deletion cover_;
};

// One read each.
/// What is looked at together: rows and a header, or rows that were deleted many at a time.
struct Part {
  BytesView header;
  std::span<const storage::RowChange> rows;
  const storage::ClusteringRange* deleted = nullptr;
};

std::vector<Part> parts_of(const storage::Mutation& mutation) {
  static const storage::ClusteringRange kWhole;
  std::vector<Part> parts;
  std::span<const storage::RowChange> rows = mutation.rows;
  do {
    const auto some = rows.first(std::min(rows.size(), kRowsAtOnce));
    // A header alone is a part, too.
    if (!some.empty() || !mutation.header.empty()) parts.push_back({{}, some, nullptr});
    rows = rows.subspan(some.size());
  } while (!rows.empty());
  if (!parts.empty()) parts.front().header = mutation.header;
  if (storage::deletes_partition(mutation.header)) parts.push_back({{}, {}, &kWhole});
  for (const storage::RangeTombstone& tombstone : mutation.range_tombstones)
    parts.push_back({{}, {}, &tombstone.range});
  return parts;
}

storage::ReadCommand command_for(const storage::Mutation& mutation, const Part& part,
                                 uint32_t deleted_rows_max) {
  storage::ReadCommand command;
  command.incarnation = mutation.incarnation;
  command.schema_version = mutation.schema_version;
  command.position = mutation.position;
  // Also dead rows and tombstones: these are what hides.
  command.partition_key = mutation.partition_key;
  command.live_only = false;
  for (const storage::RowChange& row : part.rows) command.rows.push_back(row.clustering_key);
  std::ranges::sort(command.rows);
  command.rows.erase(std::ranges::unique(command.rows).begin(), command.rows.end());
  if (command.rows.empty()) command.row_limit = part.deleted != nullptr ? deleted_rows_max : 1;
  if (part.deleted != nullptr) command.clustering_ranges.push_back(*part.deleted);
  return command;
}

/// The part of a reply, which is of one partition.
struct Answered {
  const storage::PartitionData& partition;
  Deletion deletion;  // of the partition

  /// Rows come in the order of their keys.
  const storage::RowData* row(BytesView key) const {
    const auto found = std::ranges::lower_bound(
        partition.rows, key, {},
        [](const storage::RowData& row) { return BytesView(row.clustering_key); });
    return found == partition.rows.end() || found->clustering_key != key ? nullptr : &*found;
  }
};

/// The newest timestamp of what hides the part, or outlives what it deletes. Errors: there is more
/// than was looked at.
Result<std::optional<int64_t>> hiding(const Part& part, int64_t stamp_us,
                                      std::span<const storage::ReplicaReply> replies) {
  std::vector<Answered> answers;
  for (const storage::ReplicaReply& reply : replies) {
    // A reply that was cut cannot tell: too much is there to look at.
    if (!reply.result.exhausted && (part.deleted != nullptr || !part.rows.empty()))
      return fail(ErrorCode::kLimit, "a replica holds more than it has told");
    for (const storage::PartitionData& partition : reply.result.partitions) {
      Deletion deletion;
      if (!partition.header.empty()) {
        TETRAD_TRY(const RowRecord header, storage::decode_row_record(partition.header));
        deletion = header.deletion;
      }
      answers.push_back({partition, deletion});
    }
  }
  std::optional<int64_t> newest_us;
  const auto look = [&](BytesView key, bool is_header, BytesView written) -> Result<void> {
    Held held;
    for (const Answered& answer : answers) {
      if (is_header) {
        if (answer.partition.header.empty()) continue;
        TETRAD_TRY_VOID(held.add(answer.partition.header));
        continue;
      }
      // Rows are covered by the partition's and by range tombstones of every reply.
      held.cover(answer.deletion);
      held.cover(storage::deletion_at(answer.partition.range_tombstones, key));
      if (const storage::RowData* row = answer.row(key)) {
        TETRAD_TRY_VOID(held.add(row->record));
      }
    }
    TETRAD_TRY(const auto hides_us, held.hides(written));
    if (hides_us) newest_us = std::max(newest_us.value_or(*hides_us), *hides_us);
    return {};
  };
  if (!part.header.empty()) {
    TETRAD_TRY_VOID(look({}, true, part.header));
  }
  for (const storage::RowChange& row : part.rows)
    TETRAD_TRY_VOID(look(row.clustering_key, false, row.record));
  if (part.deleted == nullptr) return newest_us;
  // Of a deletion of many rows: what outlives it.
  for (const Answered& answer : answers) {
    for (const storage::RowData& row : answer.partition.rows) {
      TETRAD_TRY(const RowRecord record, storage::decode_row_record(row.record));
      const int64_t row_us = newest_in(record);
      if (row_us > stamp_us) newest_us = std::max(newest_us.value_or(row_us), row_us);
    }
  }
  return newest_us;
}

}  // namespace

Task<Result<std::optional<int64_t>>> CoordinatorImpl::find_hiding(
    const std::vector<storage::Mutation>& mutations, int64_t stamp_us, WriteOptions options,
    uint32_t deleted_rows_max) {
  std::optional<int64_t> newest_us;
  std::vector<std::pair<const storage::Mutation*, Part>> parts;
  for (const storage::Mutation& mutation : mutations)
    for (const Part& part : parts_of(mutation)) parts.emplace_back(&mutation, part);
  // A bound on the messages of one write.
  if (parts.size() > kPartsMax)
    co_return fail(ErrorCode::kLimit, "{} parts of a write are too many to ask for", parts.size());
  for (const auto& [mutation, part] : parts) {
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(mutation->incarnation);
    if (table == nullptr) co_return std::nullopt;
    const partitioner::Tablet& tablet = table->tablets.find(mutation->position);
    std::vector<StoreAddress> members = live_members(read_set(tablet));
    storage::ReadCommand command = command_for(*mutation, part, deleted_rows_max);
    command.now_s = now_us() / 1'000'000;
    ReadOptions reading;
    const Levels levels = this->levels(*state);
    // The level at which what the write's level has acknowledged is found.
    reading.level = levels.reading_after(options.level);
    reading.deadline = options.deadline;
    const Need needed = levels.reading(reading.level, read_set(tablet));
    TETRAD_CO_TRY_VOID(check_enough(read_set(tablet), reading.level, needed));
    size_t first_asked = static_cast<size_t>(needed.least());
    std::vector<ReadQuorum> quorums;
    if (levels.has_several()) {
      quorums.push_back({read_set(tablet), needed});
      first_asked = arrange_for(quorums, levels, members);
    }
    const auto gathering = gather(command, tablet.epoch, std::move(members), first_asked, false,
                                  reading, std::move(quorums));
    const bool complete = co_await gathering->done;
    if (!complete) co_return std::unexpected(read_error(*gathering, reading.level));
    TETRAD_CO_TRY(const auto found_us, hiding(part, stamp_us, gathering->data));
    if (found_us) newest_us = std::max(newest_us.value_or(*found_us), *found_us);
  }
  co_return newest_us;
}

Task<Result<std::optional<int64_t>>> CoordinatorImpl::timestamp_above_hiding(
    const std::vector<storage::Mutation>& mutations, int64_t stamp_us, WriteOptions options) {
  Result<std::optional<int64_t>> found = co_await find_hiding(mutations, stamp_us, options);
  if (found && !*found) co_return std::nullopt;
  if (found) {
    // A stamp above it, if it is not of a client's future.
    const auto later_us = timestamp_above(**found);
    if (later_us) co_return later_us;
  }
  if (options.warnings != nullptr && !TETRAD_MUTANT(mark_beyond_silent)) {
    options.warnings->push_back(
        found
            ? fmt::format("What was written is hidden by a timestamp of the future: {}, {} s "
                          "ahead of the time of this node",
                          **found, (**found - now_us()) / 1'000'000)
            : "What was written may be hidden by a timestamp of the future; the replicas could not "
              "be asked");
  }
  co_return std::nullopt;
}

}  // namespace tetrad::replication
