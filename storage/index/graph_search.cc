// SPDX-License-Identifier: Apache-2.0
#include "storage/index/graph_search.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace tetrad::storage {
namespace {

constexpr uint64_t kKeysOfRowMax = 1000;  // looked at for one row
/// How widely a graph is searched, at least, for each row that is wanted; and at least at all.
constexpr size_t kWidthPerRow = 3, kWidthMin = 128, kRecallFactor = 2;

/// The vector of the one row that is read.
class VectorOfRow final : public RowSink {
 public:
  VectorOfRow(uint32_t column_id, int64_t now_s) : column_id_(column_id), now_s_(now_s) {}
  Result<void> begin_partition(RingPosition, BytesView, const RowRecord&, bool) override {
    return {};
  }
  Result<void> take_row(BytesView, const RowRecord& row) override {
    if (const auto vector = vector_of(row, column_id_, now_s_)) found.emplace(*vector);
    return {};
  }
  std::optional<Bytes> found;

 private:
  const uint32_t column_id_;
  const int64_t now_s_;
};

Result<std::optional<Bytes>> look_up(KeyView& rows, const TableContents& contents,
                                     const ReadCommand& command, const VectorPlace& place) {
  ReadCommand one;
  one.incarnation = command.incarnation;
  one.schema_version = command.schema_version;
  one.position = place.position;
  one.partition_key = place.partition_key;
  one.rows.push_back(place.clustering_key);
  one.wants_static = false;
  one.now_s = command.now_s;
  VectorOfRow row(command.nearest->column_id, command.now_s);
  TETRAD_TRY([[maybe_unused]] const ReadEnd end,
             read_partitions_into(rows, one, contents, row, kKeysOfRowMax));
  return std::move(row.found);
}

/// Each row is looked up once.
class LookUps {
 public:
  LookUps(KeyView& rows, const TableContents& contents, const ReadCommand& command)
      : rows_(rows), contents_(contents), command_(command), places_(command.nearest->rows_max) {}

  /// `distance`: of the vector that was found there.
  Result<void> take(const VectorPlace& place, const QueryVector& query) {
    if (!command_.range.contains(place.position)) return {};
    if (!seen_.emplace(place.position, place.partition_key, place.clustering_key).second) return {};
    ++answer_.looked_up;
    TETRAD_TRY(const auto vector, look_up(rows_, contents_, command_, place));
    const auto distance = vector ? query.distance_of(*vector) : std::nullopt;
    if (!distance) {
      ++answer_.stale;
      return {};
    }
    places_.offer(*distance, place.position, place.partition_key, place.clustering_key);
    return {};
  }
  GraphAnswer finish() {
    answer_.result = places_.take(false);
    return std::move(answer_);
  }

 private:
  KeyView& rows_;
  const TableContents& contents_;
  const ReadCommand& command_;
  NearestPlaces places_;
  std::set<std::tuple<RingPosition, Bytes, Bytes>> seen_;
  GraphAnswer answer_;
};

/// The nearest of what was noted.
std::vector<VectorPlace> nearest_noted(const NotedChunks& noted, const QueryVector& query,
                                       const RingRange& range, size_t count) {
  std::vector<std::pair<double, const NotedVector*>> near;
  for (const auto& chunk : noted) {
    const size_t there = chunk->count.load(std::memory_order_acquire);
    for (size_t i = 0; i < there; ++i) {
      const NotedVector& vector = chunk->vectors[i];
      if (!range.contains(vector.place.position)) continue;
      if (const auto distance = query.distance_of(vector.vector))
        near.emplace_back(*distance, &vector);
    }
  }
  const size_t kept = std::min(count, near.size());
  std::ranges::nth_element(near, near.begin() + static_cast<std::ptrdiff_t>(kept), {},
                           [](const auto& vector) { return vector.first; });
  std::vector<VectorPlace> places;
  for (size_t i = 0; i < kept; ++i) places.push_back(near[i].second->place);
  return places;
}

/// Adds the vectors of rows until there are enough.
class Adding final : public RowSink {
 public:
  Adding(const GraphName& name, int64_t now_s, VectorGraph& graph)
      : name_(name), now_s_(now_s), graph_(graph) {}
  Result<void> begin_partition(RingPosition position, BytesView partition_key, const RowRecord&,
                               bool) override {
    position_ = position;
    partition_key_.assign(partition_key);
    return {};
  }
  Result<void> take_row(BytesView clustering_key, const RowRecord& row) override {
    const auto vector = vector_of(row, name_.column_id, now_s_);
    if (!vector || vector->size() != name_.vector_bytes ||
        fault_of(name_.similarity, *vector) != VectorFault::kNone)
      return {};
    return graph_.add({position_, partition_key_, Bytes(clustering_key)}, *vector);
  }

 private:
  const GraphName& name_;
  const int64_t now_s_;
  VectorGraph& graph_;
  RingPosition position_;
  Bytes partition_key_;
};

}  // namespace

Result<GraphAnswer> search_graph(KeyView& rows, const TableContents& contents,
                                 const ReadCommand& command, const GraphView& graph) {
  const NearestSearch& search = *command.nearest;
  const QueryVector query(search.similarity, search.vector);
  // Some are found twice, some are gone, some are of other ranges.
  size_t count = search.rows_max + search.rows_max / 4 + 8;
  if (graph.is_of_more) count *= 2;
  const size_t width =
      std::max(kWidthMin, kWidthPerRow * count) * (search.favours_recall ? kRecallFactor : 1);
  TETRAD_TRY(std::vector<VectorPlace> found, graph.vectors->search(query, count, width));
  std::ranges::move(nearest_noted(graph.noted, query, command.range, count),
                    std::back_inserter(found));
  LookUps look_ups(rows, contents, command);
  for (const VectorPlace& place : found) TETRAD_TRY_VOID(look_ups.take(place, query));
  return look_ups.finish();
}

Result<std::optional<ReadPosition>> add_rows_to_graph(KeyView& rows, const TableContents& contents,
                                                      const GraphName& name,
                                                      const std::optional<ReadPosition>& after,
                                                      int64_t now_s, uint32_t vectors_max,
                                                      VectorGraph& graph) {
  ReadCommand page;
  page.incarnation = name.incarnation;
  page.is_range = true;
  page.range = name.range;
  page.resume_after = after;
  page.wants_static = false;
  page.row_limit = vectors_max;
  page.now_s = now_s;
  Adding adding(name, now_s, graph);
  constexpr uint64_t kKeysMax = 20'000;
  TETRAD_TRY(ReadEnd end, read_partitions_into(rows, page, contents, adding, kKeysMax));
  if (end.exhausted) return std::nullopt;
  return std::optional(std::move(end.complete_up_to));
}

}  // namespace tetrad::storage
