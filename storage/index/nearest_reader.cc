// SPDX-License-Identifier: Apache-2.0
// Nearest rows without a graph: every row is measured.
#include "storage/index/nearest_reader.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/assert.h"
#include "base/byte_io.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

constexpr uint64_t kScannedBytes = 16u << 20;  // of a page

/// Measures the rows of a page.
class Measuring final : public RowSink {
 public:
  explicit Measuring(NearestScan& scan) : scan_(scan) {}

  Result<void> begin_partition(RingPosition position, BytesView partition_key, const RowRecord&,
                               bool) override {
    position_ = position;
    partition_key_.assign(partition_key);
    return {};
  }
  Result<void> take_row(BytesView clustering_key, const RowRecord& row) override {
    const auto vector = vector_of(row, scan_.command.nearest->column_id, scan_.command.now_s);
    if (!vector) return {};
    const auto distance = scan_.query.distance_of(*vector);
    if (!distance) return {};
    ++scan_.vectors;
    scan_.places.offer(*distance, position_, partition_key_, clustering_key);
    return {};
  }

 private:
  NearestScan& scan_;
  RingPosition position_;
  Bytes partition_key_;
};

}  // namespace

bool NearestPlaces::Place::operator<(const Place& other) const {
  if (distance != other.distance) return distance < other.distance;
  const int order =
      compare_partitions(position, partition_key, other.position, other.partition_key);
  return order != 0 ? order < 0 : clustering_key < other.clustering_key;
}

void NearestPlaces::offer(double distance, RingPosition position, BytesView partition_key,
                          BytesView clustering_key) {
  // Nothing that is kept is further than what is left out.
  if (left_out_ && distance > *left_out_) return;
  if (places_.size() == rows_max_ && distance > places_.rbegin()->distance) {
    left_out_ = distance;
    return;
  }
  const auto [place, is_new] =
      places_.insert({distance, position, Bytes(partition_key), Bytes(clustering_key)});
  // A row that is offered twice is one.
  if (is_new) key_bytes_ += key_bytes(*place);
  while (has_too_many()) {
    const auto furthest = std::prev(places_.end());
    left_out_ = furthest->distance;
    key_bytes_ -= key_bytes(*furthest);
    places_.erase(furthest);
  }
}

ReadResult NearestPlaces::take(bool exhausted) {
  std::vector<const Place*> in_order;
  in_order.reserve(places_.size());
  for (const Place& place : places_) in_order.push_back(&place);
  // By key, as every answer: replicas' answers are merged in that order.
  std::ranges::sort(in_order, [](const Place* a, const Place* b) {
    const int order =
        compare_partitions(a->position, a->partition_key, b->position, b->partition_key);
    return order != 0 ? order < 0 : a->clustering_key < b->clustering_key;
  });
  ReadResult result;
  for (const Place* place : in_order) {
    const bool is_same = !result.partitions.empty() &&
                         result.partitions.back().position == place->position &&
                         result.partitions.back().partition_key == place->partition_key;
    if (!is_same) {
      PartitionData& partition = result.partitions.emplace_back();
      partition.position = place->position;
      partition.partition_key = result.arena.copy(place->partition_key);
    }
    // In the place of the record stands the distance: the bits of the double, big-endian.
    std::array<char, sizeof(double)> distance;
    base::store_big_endian(distance.data(), std::bit_cast<uint64_t>(place->distance));
    result.partitions.back().rows.push_back(
        {result.arena.copy(place->clustering_key),
         result.arena.copy(BytesView(distance.data(), distance.size()))});
  }
  result.exhausted = exhausted && !left_out_;
  places_.clear();
  return result;
}

std::optional<BytesView> vector_of(const RowRecord& row, uint32_t column_id, int64_t now_s) {
  for (const Cell& cell : row.cells) {
    if (cell.column_id != column_id) continue;
    // A vector is one cell; elements of a collection have paths.
    if (cell.has_path || !cell.live_at(now_s)) return std::nullopt;
    return cell.value;
  }
  return std::nullopt;
}

NearestScan::NearestScan(ReadCommand its_command)
    : command(std::move(its_command)),
      query(command.nearest->similarity, command.nearest->vector),
      places(command.nearest->rows_max) {}

Result<void> scan_nearest(KeyView& view, const TableContents& contents, uint64_t keys_max,
                          NearestScan& scan) {
  TETRAD_ASSERT(!scan.is_done);
  ReadCommand page = scan.command;
  page.nearest.reset();
  page.live_only = true;
  page.wants_static = false;
  page.bytes_limit = kScannedBytes;
  // Rows without a vector count, too, so a page is bounded by keys, rows and bytes.
  page.row_limit = static_cast<uint32_t>(std::min<uint64_t>(keys_max, ReadCommand::kNoLimit));
  Measuring measuring(scan);
  TETRAD_TRY(ReadEnd end, read_partitions_into(view, page, contents, measuring, keys_max));
  scan.is_done = end.exhausted;
  if (!end.exhausted) scan.command.resume_after = std::move(end.complete_up_to);
  return {};
}

}  // namespace tetrad::storage
