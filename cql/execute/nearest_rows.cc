// SPDX-License-Identifier: Apache-2.0
// ORDER BY ... ANN OF: the nearest rows of those that WHERE leaves, nearest first. Rows are tested and
// measured when they have been merged, so each one that is answered is there, as it is now. Those that
// are as near as each other come in the order in which they were read.
//
// Where no partition is named, replicas name the nearest rows that they have (Coordinator::nearest),
// more than are wanted: some may be gone by now, moved away, or fail a test. They are read by their
// keys, nearest first, until neither one that is left nor one that was not named can be nearer than
// those that are kept. If it does not come to that, after more have been asked for some times, all rows
// are read. An index narrows the rows first, unless many have what it looks for.
//
// read_nearest() asks for half as many names again as rows are wanted and reads them in windows.
// `beyond` is the smallest distance that a row without a name may have; unset: every row was named.
#include <algorithm>
#include <bit>
#include <map>

#include "base/byte_io.h"
#include "cql/execute/select_run.h"

namespace tetrad::cql {

namespace {

// Cassandra's limit.
constexpr int64_t kLimitMax = 1000;
/// Rows with what an index looks for that are read one after another.
constexpr uint64_t kIndexedRowsMax = 10'000;
/// Names that are asked for: at first, then more; to sort more takes longer than a turn has.
constexpr size_t kNamesExtra = 16, kNamesGrowth = 8, kNamesMax = 4096;
static_assert(kNamesMax <= storage::kNearestRowsMax);
/// Names for each row that is wanted, where rows are tested.
constexpr size_t kNamesPerTested = 8;
constexpr size_t kNamedPartitionsAtOnce = 32;

/// Sorts as distances do.
// IEEE bits, with the sign turned so that unsigned comparison sorts negative distances first.
uint64_t ordered(double distance) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  const auto bits = std::bit_cast<uint64_t>(distance + 0.0);  // no negative zero
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

/// Sorts as the distance does, then as `number`.
Bytes sort_key_of(double distance, uint64_t number) {
  Bytes key(2 * sizeof(uint64_t), '\0');
  base::store_big_endian(key.data(), ordered(distance));
  base::store_big_endian(key.data() + sizeof(uint64_t), number);
  return key;
}

}  // namespace

Result<void> SelectRun::check_nearest_level() const {
  if (!statement_.nearest_ || !reads_serially()) return {};
  return fail(
      ErrorCode::kInvalid,
      "Top-K queries can only be run with consistency level ONE/LOCAL_ONE. Consistency level "
      "{} was used.",
      base::name_of(context_.options.consistency));
}

Result<void> SelectRun::bind_nearest(std::optional<int64_t> partition_limit) {
  if (!statement_.nearest_) return {};
  const NearestOrder& order = *statement_.nearest_;
  TETRAD_TRY(const BoundValue vector, order.vector->evaluate(evaluation_));
  if (!vector.has_bytes()) {
    return fail(ErrorCode::kInvalid, "Unsupported {} value for column {}",
                vector.is_unset() ? "unset" : "null", order.column->name);
  }
  if (vector.bytes.empty()) return fail(ErrorCode::kInvalid, "Invalid empty vector value");
  if (rows_left_ > kLimitMax) {
    return fail(ErrorCode::kInvalid,
                "Use of ANN OF in an ORDER BY clause requires a LIMIT that is not greater than {}. "
                "LIMIT was {}",
                kLimitMax, rows_left_);
  }
  if (partition_limit) {
    return fail(ErrorCode::kInvalid, "Top-K queries do not support per-partition limits");
  }
  if (rows_left_ < 0) {
    return fail(ErrorCode::kInvalid,
                "Top-K queries must have a limit specified and the limit must be less than the "
                "query page size");
  }
  if (page_size_ > 0 && page_size_ < rows_left_) {
    context_.warnings.push_back(fmt::format(
        "Top-K queries do not support paging and the page size is set to {}, which is less than "
        "LIMIT {}. The page size has been set to {} to match the LIMIT.",
        page_size_, rows_left_, rows_left_));
  }
  // As Cassandra: the whole answer is one page.
  page_size_ = -1;
  TETRAD_TRY_VOID(check_vector(order.similarity, vector.bytes));
  query_.emplace(order.similarity, vector.bytes);
  query_bytes_ = vector.bytes;
  sorts_ = true;
  nearest_max_ = static_cast<size_t>(rows_left_);
  return {};
}

// Masks are of what is shown: the row is measured as it is.
Result<void> SelectRun::take_nearest(EvalContext& evaluation) {
  if (partition_limit_ >= 0 && partition_rows_done_ >= partition_limit_) return {};
  ++partition_rows_done_;
  const OptionalView& vector =
      evaluation.row->values[static_cast<size_t>(statement_.nearest_->slot)];
  if (!vector) return {};
  // About a nanosecond for each dimension.
  context_.work.charge(query_->dimension());
  const std::optional<double> distance = query_->distance_of(*vector);
  if (!distance) return {};
  const auto further = [](const SortedRow& a, const SortedRow& b) { return a.key < b.key; };
  Bytes key = sort_key_of(*distance, rows_measured_++);
  // A heap with the furthest of the kept rows on top: memory is bounded by LIMIT, not by the table.
  if (sorted_.size() == nearest_max_) {
    if (key >= sorted_.front().key) return {};
    std::ranges::pop_heap(sorted_, further);
    sorted_bytes_ -= sorted_.back().key.size() + sorted_.back().cells.size();
    sorted_.pop_back();
  }
  if (is_masked_) {
    TETRAD_TRY(EvalContext shown, masked(evaluation));
    TETRAD_TRY_VOID(write_for_sort(std::move(key), shown));
  } else {
    TETRAD_TRY_VOID(write_for_sort(std::move(key), evaluation));
  }
  std::ranges::push_heap(sorted_, further);
  return {};
}

// Once for each run, over the whole ring. Not with named partitions or clustering bounds: those
// rows are few and are read.
bool SelectRun::asks_for_names() const {
  return query_ && !has_asked_for_names_ && partitions_.is_range &&
         !statement_.table_->is_virtual &&
         statement_.nearest_->column->kind == ColumnKind::kRegular && clustering_.ranges.empty() &&
         !clustering_.exact && (!index_bounds_ || rows_read_ >= kIndexedRowsMax);
}

Task<Result<bool>> SelectRun::read_nearest() {
  has_asked_for_names_ = true;
  const NearestOrder& order = *statement_.nearest_;
  ReadCommand command;
  command.incarnation = statement_.table_->incarnation;
  command.schema_version = statement_.table_->version;
  command.is_range = true;
  command.range = partitions_.range;
  command.now_s = context_.now_s;
  command.nearest = {
      order.column->id, order.similarity, Bytes(query_bytes_), 0, order.favours_recall, {}};
  size_t wanted = nearest_max_ + nearest_max_ / 2 + kNamesExtra;
  if (filters_active_) wanted *= kNamesPerTested;
  while (true) {
    wanted = std::min<size_t>(wanted, kNamesMax);
    command.nearest->rows_max = static_cast<uint32_t>(wanted);
    auto named = co_await context_.coordinator.nearest(command, read_options());
    if (!named) co_return std::unexpected(std::move(named).error());
    // Each round begins anew: it names the rows of the last round again.
    forget_rows();
    // Some node runs a program that cannot name rows: all rows are read.
    if (!*named) co_return false;
    const replication::NearestNames& names = **named;
    const size_t window = nearest_max_ + kNamesExtra;
    for (size_t i = 0; i < names.rows.size(); i += window) {
      if (has_nearer_than(names.rows[i].distance)) break;
      const std::span rows = std::span(names.rows).subspan(i);
      auto read = co_await read_named(rows.first(std::min(window, rows.size())));
      if (!read) co_return std::unexpected(std::move(read).error());
      TETRAD_CO_TRY_VOID(check_time());
    }
    if (!names.beyond || has_nearer_than(*names.beyond)) co_return true;
    // More names do not help: the filters let too little through.
    if (wanted == kNamesMax) break;
    wanted *= kNamesGrowth;
  }
  forget_rows();
  co_return false;
}

// Named rows are grouped by partition and read by their keys, as any rows: at the request's level,
// merged and repaired.
Task<Result<void>> SelectRun::read_named(std::span<const replication::NearestNames::Row> names) {
  std::map<std::pair<RingPosition, BytesView>, std::vector<Bytes>> partitions;
  for (const auto& name : names)
    partitions[{name.position, name.partition_key}].push_back(name.clustering_key);
  std::vector<ReadCommand> commands;
  for (auto& [place, rows] : partitions) {
    ReadCommand& command =
        commands.emplace_back(partition_command({place.first, Bytes(place.second)}));
    command.by_index.reset();
    std::ranges::sort(rows);
    command.rows = std::move(rows);
  }
  while (!commands.empty()) {
    const size_t count = std::min(reads_at_once(kNamedPartitionsAtOnce), commands.size());
    const auto first = commands.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<ReadCommand> now(first, commands.end());
    commands.erase(first, commands.end());
    auto chunks = co_await read_many(now);
    if (!chunks) co_return std::unexpected(std::move(chunks).error());
    for (size_t i = 0; i < count; ++i) {
      ReadResult& chunk = (*chunks)[i];
      if (learn_from(chunk)) {
        // Withheld: asked for again with more room.
        commands.push_back(std::move(now[i]));
        continue;
      }
      auto taken = co_await take(&chunk);
      if (!taken) co_return std::unexpected(std::move(taken).error());
      if (chunk.exhausted) continue;
      now[i].resume_after = chunk.complete_up_to;
      commands.push_back(std::move(now[i]));
    }
    TETRAD_CO_TRY_VOID(check_time());
  }
  co_return Result<void>();
}

bool SelectRun::has_nearer_than(double distance) const {
  if (sorted_.size() < nearest_max_) return false;
  return base::load_big_endian<uint64_t>(sorted_.front().key.data()) <= ordered(distance);
}

void SelectRun::forget_rows() {
  sorted_.clear();
  sorted_bytes_ = 0;
  after_.reset();
}

}  // namespace tetrad::cql
