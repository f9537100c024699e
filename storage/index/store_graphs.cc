// SPDX-License-Identifier: Apache-2.0
#include "storage/index/store_graphs.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::storage {
namespace {

/// Fewer that were noted are measured one by one.
constexpr size_t kAddFrom = 64;
constexpr size_t kStaleLookUps = 4096;  // before anything is concluded of them
// A graph that failed is not tried again for ten minutes; one that nobody has searched for a minute
// may make room.
constexpr int64_t kRefusedUs = int64_t{600} * 1'000'000;
/// Of graphs that make room for others.
constexpr int64_t kSpareUs = int64_t{60} * 1'000'000;

// Room for a quarter more than there are, so that it seldom grows.
size_t first_capacity(uint64_t vectors) {
  return static_cast<size_t>(vectors + vectors / 4 + 1024);
}

bool contains(const RingRange& whole, const RingRange& part) {
  return whole.start <= part.start && part.end <= whole.end;
}
bool overlap(const RingRange& a, const RingRange& b) { return a.start < b.end && b.start < a.end; }

/// Graphs that a search may use in the place of each other.
// Everything but the range.
bool is_alike(const GraphName& a, const GraphName& b) {
  return a.incarnation == b.incarnation && a.column_id == b.column_id &&
         a.similarity == b.similarity && a.vector_bytes == b.vector_bytes;
}

NotedChunks view_of(const GraphInMaking& graph) { return {graph.noted.begin(), graph.noted.end()}; }

uint64_t bytes_of(const NotedVector& noted) {
  return sizeof(NotedVector) + 64 + noted.vector.size() + noted.place.partition_key.size() +
         noted.place.clustering_key.size();
}

/// What it takes.
uint64_t note_vector(GraphInMaking& graph, const Mutation& mutation, const RowChange& row,
                     BytesView vector) {
  // Chunks are read by searches on other threads while the loop appends: `count` is published after
  // the vector is whole.
  if (graph.noted.empty() || graph.noted.back()->count == NotedChunk::kSize)
    graph.noted.push_back(std::make_shared<NotedChunk>());
  NotedChunk& chunk = *graph.noted.back();
  const size_t at = chunk.count.load(std::memory_order_relaxed);
  chunk.vectors[at] = {{mutation.position, mutation.partition_key, row.clustering_key},
                       Bytes(vector)};
  chunk.count.store(at + 1, std::memory_order_release);
  ++graph.noted_count;
  return bytes_of(chunk.vectors[at]);
}

}  // namespace

GraphName GraphName::of(const ReadCommand& command) {
  const NearestSearch& search = *command.nearest;
  return {command.incarnation, search.column_id, search.similarity,
          static_cast<uint32_t>(search.vector.size()), search.graph_range};
}

// The narrowest that has the whole range: it finds fewest vectors of elsewhere.
GraphSlot* StoreGraphs::serving_of(const ReadCommand& command) {
  const GraphName name = GraphName::of(command);
  GraphSlot* best = nullptr;
  for (GraphSlot& slot : slots_) {
    if (slot.serving == nullptr || !is_alike(slot.name, name) ||
        !contains(slot.name.range, command.range))
      continue;
    if (best == nullptr || contains(best->name.range, slot.name.range)) best = &slot;
  }
  return best;
}

std::optional<GraphView> StoreGraphs::find(const ReadCommand& command, base::MonotonicUs now_us) {
  // The slot that wants a graph is searched, even where another serves it: both must not be taken
  // for idle.
  if (GraphSlot* own = slot_of(GraphName::of(command))) own->searched_us = now_us;
  GraphSlot* slot = serving_of(command);
  if (slot == nullptr) return std::nullopt;
  slot->searched_us = now_us;
  return GraphView{slot->serving->vectors, view_of(*slot->serving),
                   slot->name.range != command.range};
}

GraphSlot* StoreGraphs::slot_of(const GraphName& name) {
  const auto slot = std::ranges::find(slots_, name, &GraphSlot::name);
  return slot == slots_.end() ? nullptr : &*slot;
}

GraphSlot* StoreGraphs::slot_of(const GraphInMaking& graph) {
  const auto slot = std::ranges::find_if(slots_, [&](const GraphSlot& held) {
    return held.serving.get() == &graph || held.next.get() == &graph;
  });
  return slot == slots_.end() ? nullptr : &*slot;
}

// Null without an error: it is not worth it, there is one, or one is being made.
std::shared_ptr<GraphInMaking> StoreGraphs::begin(const ReadCommand& command, uint64_t vectors,
                                                  base::MonotonicUs now_us,
                                                  std::optional<Error>& refused) {
  if (vectors < options_.vectors_min || options_.bytes_max == 0 ||
      command.range != command.nearest->graph_range)
    return nullptr;
  const GraphName name = GraphName::of(command);
  GraphSlot* slot = slot_of(name);
  if (slot == nullptr) {
    slot = &slots_.emplace_back();
    slot->name = name;
  }
  slot->searched_us = now_us;
  if (slot->serving != nullptr || slot->next != nullptr) return nullptr;
  if (slot->refused_us != 0 && now_us - slot->refused_us < kRefusedUs) return nullptr;
  return make(*slot, vectors, now_us, refused);
}

std::shared_ptr<GraphInMaking> StoreGraphs::make(GraphSlot& slot, uint64_t vectors,
                                                 base::MonotonicUs now_us,
                                                 std::optional<Error>& refused) {
  const size_t dimension = slot.name.vector_bytes / sizeof(float);
  // Memory is taken before the graph is made, and given back by release().
  const uint64_t bytes = vector_graph_bytes(dimension, first_capacity(vectors));
  if (!has_room(bytes, &slot, now_us)) {
    slot.refused_us = now_us;
    refused =
        Error(ErrorCode::kLimit,
              fmt::format("a graph of {} vectors needs {} bytes; those of this store have {} of {}",
                          vectors, bytes, bytes_, options_.bytes_max));
    return nullptr;
  }
  auto graph = make_vector_graph(slot.name.similarity, dimension, first_capacity(vectors));
  if (!graph) {
    slot.refused_us = now_us;
    refused = std::move(graph.error());
    return nullptr;
  }
  slot.refused_us = 0;
  slot.next = std::make_shared<GraphInMaking>();
  slot.next->vectors = *std::move(graph);
  slot.next->bytes = bytes;
  bytes_ += bytes;
  return slot.next;
}

// Those that have not been searched for some time give way, the longest first.
bool StoreGraphs::has_room(uint64_t bytes, const GraphSlot* wanted_by, base::MonotonicUs now_us) {
  while (bytes_ + bytes > options_.bytes_max) {
    auto oldest = slots_.end();
    for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
      const bool holds = slot->serving != nullptr || slot->next != nullptr;
      if (&*slot == wanted_by || !holds || now_us - slot->searched_us < kSpareUs) continue;
      if (oldest == slots_.end() || slot->searched_us < oldest->searched_us) oldest = slot;
    }
    if (oldest == slots_.end()) return false;
    release_all(*oldest);
    slots_.erase(oldest);
  }
  return true;
}

// Destroying a graph takes long: the store does it off the loop (let_go_).
void StoreGraphs::release(std::shared_ptr<GraphInMaking>& graph) {
  if (graph == nullptr) return;
  TETRAD_ASSERT(bytes_ >= graph->bytes);
  bytes_ -= graph->bytes;
  if (let_go_) let_go_(std::move(graph));
  graph.reset();
}

void StoreGraphs::release_all(GraphSlot& slot) {
  release(slot.serving);
  release(slot.next);
}

std::shared_ptr<GraphInMaking> StoreGraphs::note_search(const ReadCommand& command,
                                                        const SearchFigures& figures,
                                                        base::MonotonicUs now_us,
                                                        std::optional<Error>& refused) {
  // What was found inside of the wanted range.
  const uint64_t looked_up = figures.found - figures.elsewhere;
  GraphSlot* slot = slot_of(GraphName::of(command));
  if (slot == nullptr || slot->serving == nullptr) {
    // Served by a wider one: how many vectors it has of this range is known by how much of what it
    // finds lies there.
    const GraphSlot* wider = serving_of(command);
    if (wider == nullptr || figures.found == 0) return nullptr;
    const double part = static_cast<double>(looked_up) / static_cast<double>(figures.found);
    const auto vectors = static_cast<double>(wider->serving->vectors->size()) * part;
    return begin(command, static_cast<uint64_t>(vectors), now_us, refused);
  }
  slot->looked_up += looked_up;
  slot->stale += figures.stale;
  if (slot->looked_up < kStaleLookUps) return nullptr;
  // A quarter of what it finds is stale: the rows have other vectors by now.
  const bool is_stale = 4 * slot->stale > slot->looked_up;
  slot->looked_up = slot->stale = 0;
  if (!is_stale || slot->next != nullptr) return nullptr;
  if (slot->refused_us != 0 && now_us - slot->refused_us < kRefusedUs) return nullptr;
  return make(*slot, slot->serving->built_size, now_us, refused);  // the one that serves goes on
}

void StoreGraphs::finish(const std::shared_ptr<GraphInMaking>& graph) {
  const auto slot = std::ranges::find(slots_, graph, &GraphSlot::next);
  if (slot == slots_.end()) return;
  graph->is_built = true;
  graph->built_size = graph->vectors->size();
  // The new one serves, the old one goes; and with it others of the same column that are of no more
  // use.
  release(slot->serving);
  slot->serving = std::move(slot->next);
  slot->next.reset();
  slot->looked_up = slot->stale = 0;
  for (auto other = slots_.begin(); other != slots_.end();) {
    const bool goes = other != slot && other->name.incarnation == slot->name.incarnation &&
                      other->name.column_id == slot->name.column_id &&
                      overlap(other->name.range, slot->name.range) &&
                      (!is_alike(other->name, slot->name) || is_served_by_others(*other));
    if (!goes) {
      ++other;
      continue;
    }
    release_all(*other);
    other = slots_.erase(other);
  }
}

// Narrower ones inside its range have no gap between them; or a wider one has it.
bool StoreGraphs::is_served_by_others(const GraphSlot& slot) const {
  std::vector<RingRange> ranges;
  for (const GraphSlot& other : slots_) {
    if (&other != &slot && other.serving != nullptr && is_alike(other.name, slot.name) &&
        overlap(other.name.range, slot.name.range))
      ranges.push_back(other.name.range);
  }
  std::ranges::sort(ranges, {}, &RingRange::start);
  RingPosition covered_to = slot.name.range.start;
  for (const RingRange& range : ranges) {
    if (range.start <= covered_to) covered_to = std::max(covered_to, range.end);
  }
  return covered_to >= slot.name.range.end;
}

void StoreGraphs::drop(const std::shared_ptr<GraphInMaking>& graph, base::MonotonicUs now_us) {
  for (GraphSlot& slot : slots_) {
    if (slot.serving != graph && slot.next != graph) continue;
    slot.refused_us = std::max<base::MonotonicUs>(now_us, 1);
    release(slot.serving == graph ? slot.serving : slot.next);
  }
}

bool StoreGraphs::has(const std::shared_ptr<GraphInMaking>& graph) const {
  return std::ranges::any_of(
      slots_, [&](const GraphSlot& slot) { return slot.serving == graph || slot.next == graph; });
}

std::optional<size_t> StoreGraphs::capacity_to_grow_to(const GraphInMaking& graph) {
  GraphSlot* slot = slot_of(graph);
  if (slot == nullptr) return std::nullopt;
  const size_t dimension = slot->name.vector_bytes / sizeof(float);
  const size_t now = graph.vectors->capacity();
  // By half, or by an eighth where there is no room for that.
  for (const size_t part : {2, 8}) {
    const size_t capacity = now + now / part;
    const uint64_t more =
        vector_graph_bytes(dimension, capacity) - vector_graph_bytes(dimension, now);
    if (bytes_ + more > options_.bytes_max) continue;
    bytes_ += more;
    (slot->serving.get() == &graph ? slot->serving : slot->next)->bytes += more;
    return capacity;
  }
  return std::nullopt;
}

// Long keys take memory of their own, which is known only when they are in.
bool StoreGraphs::charge_keys(GraphInMaking& graph) {
  if (slot_of(graph) == nullptr) return true;
  const uint64_t now = graph.vectors->long_key_bytes();
  const uint64_t more = now - graph.long_key_bytes;
  graph.long_key_bytes = now;
  graph.bytes += more;
  bytes_ += more;
  return more == 0 || bytes_ <= options_.bytes_max;
}

bool StoreGraphs::has_any(TableIncarnation incarnation) const {
  return std::ranges::any_of(slots_, [&](const GraphSlot& slot) {
    return slot.name.incarnation == incarnation &&
           (slot.serving != nullptr || slot.next != nullptr);
  });
}

void StoreGraphs::note(const Mutation& mutation) {
  for (GraphSlot& slot : slots_) {
    if (slot.name.incarnation != mutation.incarnation ||
        !slot.name.range.contains(mutation.position) ||
        (slot.serving == nullptr && slot.next == nullptr))
      continue;
    // A row may have the vector among other cells; no copy of it is made unless a graph wants it.
    for (const RowChange& row : mutation.rows) {
      RowRecordReader reader;
      if (!reader.open(row.record)) continue;
      Cell cell;
      while (reader.next(cell)) {
        if (cell.column_id != slot.name.column_id || cell.kind != CellKind::kValue ||
            cell.has_path || cell.value.size() != slot.name.vector_bytes ||
            fault_of(slot.name.similarity, cell.value) != VectorFault::kNone)
          continue;
        for (auto* graph : {&slot.serving, &slot.next}) {
          if (*graph == nullptr) continue;
          const uint64_t bytes = note_vector(**graph, mutation, row, cell.value);
          (*graph)->bytes += bytes;
          bytes_ += bytes;
          // It cannot keep up, or cannot have the vector.
          if (bytes_ > options_.bytes_max || !fits_graph(slot.name.similarity, cell.value)) {
            slot.refused_us = std::max<base::MonotonicUs>(slot.searched_us, 1);
            release(*graph);
          }
        }
      }
    }
  }
}

// The one that has the most to catch up with; one job for each graph.
std::shared_ptr<GraphInMaking> StoreGraphs::take_fullest() {
  std::shared_ptr<GraphInMaking> fullest;
  for (const GraphSlot& slot : slots_) {
    const auto& graph = slot.serving;
    if (graph == nullptr || graph->is_adding || graph->noted_count < kAddFrom) continue;
    if (fullest == nullptr || graph->noted_count > fullest->noted_count) fullest = graph;
  }
  if (fullest != nullptr) fullest->is_adding = true;
  return fullest;
}

void StoreGraphs::end_adding(GraphInMaking& graph, size_t added) {
  graph.is_adding = false;
  TETRAD_ASSERT(added <= graph.noted_count);
  graph.noted_count -= added;
  uint64_t bytes = 0;
  for (size_t i = 0; i < added; ++i) {
    const size_t at = graph.added_of_first + i;
    bytes += bytes_of(graph.noted[at / NotedChunk::kSize]->vectors[at % NotedChunk::kSize]);
  }
  if (slot_of(graph) != nullptr) {
    graph.bytes -= bytes;
    bytes_ -= bytes;
  }
  graph.added_of_first += added;
  while (graph.added_of_first >= NotedChunk::kSize) {
    graph.noted.erase(graph.noted.begin());
    graph.added_of_first -= NotedChunk::kSize;
  }
}

void StoreGraphs::forget(TableIncarnation incarnation) {
  std::erase_if(slots_, [&](GraphSlot& slot) {
    if (slot.name.incarnation != incarnation) return false;
    release_all(slot);
    return true;
  });
}

void StoreGraphs::forget_all() {
  for (GraphSlot& slot : slots_) release_all(slot);
  slots_.clear();
}

void StoreGraphs::forget_idle(base::MonotonicUs now_us) {
  std::erase_if(slots_, [&](GraphSlot& slot) {
    if (now_us - slot.searched_us < options_.idle_us) return false;
    release_all(slot);
    return true;
  });
}

size_t StoreGraphs::count() const {
  return static_cast<size_t>(
      std::ranges::count_if(slots_, [](const GraphSlot& slot) { return slot.serving != nullptr; }));
}

Result<size_t> add_noted(VectorGraph& graph, const NotedChunks& noted, size_t skipped,
                         size_t count) {
  size_t added = 0;
  for (size_t i = 0; i < noted.size() && added < count; ++i) {
    const size_t there = noted[i]->count.load(std::memory_order_acquire);
    for (size_t j = i == 0 ? skipped : 0; j < there && added < count; ++j, ++added) {
      const NotedVector& vector = noted[i]->vectors[j];
      auto result = graph.add(vector.place, vector.vector);
      if (!result && result.error().code == ErrorCode::kLimit && added > 0) return added;
      TETRAD_TRY_VOID(std::move(result));
    }
  }
  return added;
}

}  // namespace tetrad::storage
