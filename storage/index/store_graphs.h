// SPDX-License-Identifier: Apache-2.0
// The graphs of vectors of one store: one for each tablet and column that is searched and has many
// vectors.
//
//   1. A search finds no graph: it reads all rows, and counts the vectors. Where there are enough
//      of them, and memory, a graph is begun.
//   2. From then on every vector that is written to its range is noted (GraphFeed). When what was
//      written before is in the store, its rows are read, a page at a time, and added.
//   3. Searches use the graph once all pages are in it. What was noted and is not in the graph yet
//      is measured one by one; as it becomes more, it is added.
//   4. What was found is looked up among the rows. Where much of it is stale the graph is made
//      anew, while the old one serves.
//   5. A split tablet is served from the graph of the whole one until it has its own; the whole
//      one's goes when all its parts have theirs. A graph that has not been searched for long goes;
//      one that has no room any more, or fails, goes at once, and none is made in its place for
//      some time.
//
// Deletions do not reach a graph, and a noted vector may never be written in the end: a graph
// narrows a search and decides nothing.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "base/reactor.h"
#include "storage/row/mutation.h"
#include "storage/row/read_command.h"
#include "storage/vectors/vector_graph.h"

namespace tetrad::storage {

/// A vector that a graph does not have yet.
struct NotedVector {
  VectorPlace place;
  Bytes vector;
};

/// Written by the store's thread, read by others: what is below `count` stays as it is.
struct NotedChunk {
  static constexpr size_t kSize = 256;
  std::array<NotedVector, kSize> vectors;
  std::atomic<size_t> count = 0;
};
using NotedChunks = std::vector<std::shared_ptr<const NotedChunk>>;

/// One graph, and the vectors noted for it. Belongs to the store's thread, but for `vectors`.
struct GraphInMaking {
  std::shared_ptr<VectorGraph> vectors;
  uint64_t bytes = 0;           // that it is charged with
  uint64_t long_key_bytes = 0;  // among them
  bool is_built = false;
  bool is_adding = false;  // a job adds to it
  std::vector<std::shared_ptr<NotedChunk>> noted;
  size_t added_of_first = 0;             // of the first chunk
  size_t noted_count = 0;                // not added yet
  size_t built_size = 0;                 // vectors when it was built
  std::optional<ReadPosition> built_to;  // while it is built
};

/// What a graph is of.
struct GraphName {
  TableIncarnation incarnation;
  uint32_t column_id = 0;
  Similarity similarity = Similarity::kCosine;
  uint32_t vector_bytes = 0;
  RingRange range;
  bool operator==(const GraphName&) const = default;
  static GraphName of(const ReadCommand& command);
};

/// The graph of a tablet, and the next one while that is made.
struct GraphSlot {
  GraphName name;
  std::shared_ptr<GraphInMaking> serving, next;
  base::MonotonicUs searched_us = 0;
  base::MonotonicUs refused_us = 0;   // when there was no memory for it; 0: never
  uint64_t looked_up = 0, stale = 0;  // of what searches found, since it was built
};

/// What a search looks at besides rows.
struct GraphView {
  std::shared_ptr<const VectorGraph> vectors;
  NotedChunks noted;
  bool is_of_more = false;  // the graph has vectors of other ranges, too
};

/// What a search met in a graph.
struct SearchFigures {
  uint64_t found = 0;
  uint64_t elsewhere = 0;  // of other ranges
  uint64_t stale = 0;      // of rows that are gone, or have another vector now
};

/// Limits of the graphs of one store.
struct StoreGraphsOptions {
  uint64_t bytes_max = 0;       // of all graphs of the store; 0: there are none
  uint64_t vectors_min = 4096;  // fewer are measured one by one
  int64_t idle_us = int64_t{1800} * 1'000'000;
};

/// Which graphs a store has, which are being made, and the memory that they take together. Owned by
/// the store, on its thread; a job on another thread adds to the vectors of a graph, one at a time
/// for each.
class StoreGraphs {
 public:
  using LetGo = std::function<void(std::shared_ptr<GraphInMaking>)>;
  /// `let_go` gets what goes, to destroy it where there is time; null: it is destroyed here.
  explicit StoreGraphs(StoreGraphsOptions options, LetGo let_go = nullptr)
      : options_(options), let_go_(std::move(let_go)) {}

  /// Unset: there is none that is built.
  std::optional<GraphView> find(const ReadCommand& command, base::MonotonicUs now_us);
  /// A search has read all rows of the graph's range and met `vectors` vectors. The graph to build
  /// from now on, if any; `refused`: why there is none, set once.
  std::shared_ptr<GraphInMaking> begin(const ReadCommand& command, uint64_t vectors,
                                       base::MonotonicUs now_us, std::optional<Error>& refused);
  /// After a search by a graph: it is made anew if much of what searches find is stale, or made for
  /// the range if it is of a wider one. As begin().
  std::shared_ptr<GraphInMaking> note_search(const ReadCommand& command,
                                             const SearchFigures& figures, base::MonotonicUs now_us,
                                             std::optional<Error>& refused);
  /// All rows are in it: it serves from now on, and those of ranges that are served by others now
  /// go.
  void finish(const std::shared_ptr<GraphInMaking>& graph);
  /// It failed, or there is no room for more.
  void drop(const std::shared_ptr<GraphInMaking>& graph, base::MonotonicUs now_us);
  /// Whether it still serves or is made: a job asks this when it comes back.
  bool has(const std::shared_ptr<GraphInMaking>& graph) const;
  /// Room for more vectors; unset: there is no memory.
  std::optional<size_t> capacity_to_grow_to(const GraphInMaking& graph);
  /// After vectors were added: charges what their keys take. False: there is no memory for them.
  bool charge_keys(GraphInMaking& graph);

  bool is_empty() const { return slots_.empty(); }
  bool has_any(TableIncarnation incarnation) const;
  /// For all graphs whose range it is in; before the mutation is written.
  void note(const Mutation& mutation);
  /// The one with most noted vectors to add; it is not given out again before end_adding().
  std::shared_ptr<GraphInMaking> take_fullest();
  /// `added` of the noted vectors are in it now, from the first on.
  void end_adding(GraphInMaking& graph, size_t added);

  void forget(TableIncarnation incarnation);
  /// When the store has been opened anew: what jobs were filling is not complete.
  void forget_all();
  /// Graphs that were not searched for idle_us.
  void forget_idle(base::MonotonicUs now_us);
  uint64_t bytes() const { return bytes_; }
  size_t count() const;

 private:
  GraphSlot* slot_of(const GraphName& name);
  GraphSlot* slot_of(const GraphInMaking& graph);
  /// The one that serves the command's range and not much more; null: there is none.
  GraphSlot* serving_of(const ReadCommand& command);
  bool is_served_by_others(const GraphSlot& slot) const;
  /// Both graphs of a slot; the slot stays.
  void release_all(GraphSlot& slot);
  std::shared_ptr<GraphInMaking> make(GraphSlot& slot, uint64_t vectors, base::MonotonicUs now_us,
                                      std::optional<Error>& refused);
  void release(std::shared_ptr<GraphInMaking>& graph);
  bool has_room(uint64_t bytes, const GraphSlot* wanted_by, base::MonotonicUs now_us);

  const StoreGraphsOptions options_;
  const LetGo let_go_;
  std::list<GraphSlot> slots_;
  uint64_t bytes_ = 0;
};

/// Adds what was noted to the graph, `count` at most. The graph is not built by others meanwhile.
Result<size_t> add_noted(VectorGraph& graph, const NotedChunks& noted, size_t skipped,
                         size_t count);

}  // namespace tetrad::storage
