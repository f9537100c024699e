// SPDX-License-Identifier: Apache-2.0
// A search by a graph: the graph names places, and each is looked up among the rows, since a graph
// does not hear of deletions and may have vectors that were never written.
#include "storage/index/graph_search.h"

#include <algorithm>
#include <cmath>
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

/// Looks up the rows that were found, each once.
class LookUps {
 public:
  LookUps(KeyView& rows, const TableContents& contents, const ReadCommand& command,
          const QueryVector& query)
      : rows_(rows),
        contents_(contents),
        command_(command),
        query_(query),
        places_(command.nearest->rows_max) {
    double square = 0;
    for (const float element : query.elements()) square += static_cast<double>(element) * element;
    // The graph computes in single precision: a distance that differs by less than this is the
    // same.
    slack_ = 1e-5 * (query.similarity() == Similarity::kEuclidean ? square : std::sqrt(square));
  }

  Result<void> take(const FoundVector& found) {
    SearchFigures& figures = answer_.figures;
    ++figures.found;
    if (!command_.range.contains(found.place.position)) {
      ++figures.elsewhere;
      return {};
    }
    TETRAD_TRY(const auto distance, take(found.place));
    if (!distance || !is_about(found.distance, *distance)) ++figures.stale;
    return {};
  }
  /// How far it is now; unset: the row or its vector is gone, or it was looked up before.
  Result<std::optional<double>> take(const VectorPlace& place) {
    // A row may be in the graph and among the noted vectors.
    if (!seen_.emplace(place.position, place.partition_key, place.clustering_key).second)
      return std::nullopt;
    TETRAD_TRY(const auto vector, look_up(rows_, contents_, command_, place));
    const auto distance = vector ? query_.distance_of(*vector) : std::nullopt;
    if (distance)
      places_.offer(*distance, place.position, place.partition_key, place.clustering_key);
    return distance;
  }
  GraphAnswer finish() {
    answer_.result = places_.take(false);
    return std::move(answer_);
  }

 private:
  /// Whether it is the same vector: graphs sum floats.
  bool is_about(double in_graph, double now) const {
    return std::abs(in_graph - now) <= 0.01 * std::max(std::abs(in_graph), std::abs(now)) + slack_;
  }

  KeyView& rows_;
  const TableContents& contents_;
  const ReadCommand& command_;
  const QueryVector& query_;
  NearestPlaces places_;
  double slack_ = 0;
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
    if (!fits_graph(name_.similarity, *vector))
      return fail(ErrorCode::kInvalid, "there is a vector that is too long for a graph");
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
  TETRAD_TRY(const auto found, graph.vectors->search(query, count, width));
  LookUps look_ups(rows, contents, command, query);
  for (const FoundVector& vector : found) TETRAD_TRY_VOID(look_ups.take(vector));
  for (const VectorPlace& place : nearest_noted(graph.noted, query, command.range, count))
    TETRAD_TRY_VOID(look_ups.take(place));
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
