// SPDX-License-Identifier: Apache-2.0
// Searches for near vectors in a RocksStore, and the making of its graphs. The algorithms are in
// storage/vectors; here is what runs on which thread: searches on the readers, graphs are made on
// the threads of maintenance, a few vectors at a time.
#include <algorithm>

#include "storage/engine/rocks_store.h"
#include "storage/index/graph_search.h"
#include "storage/index/nearest_reader.h"

namespace tetrad::storage {
namespace {

constexpr uint64_t kScannedKeys = 20'000;  // of one job of a reader
/// Added by one job: some milliseconds.
constexpr uint32_t kAddedAtOnce = 64;
constexpr size_t kElementsAddedAtOnce = 16'384;
/// How often those that are not searched are looked for.
constexpr int64_t kIdleGraphsUs = 60'000'000;
/// From this part of a graph on all rows are read: a graph cannot name that many.
constexpr uint64_t kLargestPart = 8;

uint32_t added_at_once(size_t vector_bytes) {
  const size_t dimension = std::max<size_t>(vector_bytes / sizeof(float), 1);
  return std::clamp<uint32_t>(static_cast<uint32_t>(kElementsAddedAtOnce / dimension), 1,
                              kAddedAtOnce);
}

/// Nothing is known of partitions off the loop.
TableContents unknown_contents() {
  TableContents contents;
  contents.scattered_tombstones = true;
  return contents;
}

Error no_memory(const GraphInMaking& graph) {
  return Error(ErrorCode::kLimit,
               fmt::format("there is no memory for more than {} vectors", graph.vectors->size()));
}

}  // namespace

void RocksStore::read_nearest(ReadCommand command, base::Deadline deadline, ReadCallback done) {
  const NearestSearch& search = *command.nearest;
  auto graph = graphs_.find(command, reactor_.now_us());
  if (!graph || kLargestPart * search.rows_max >= graph->vectors->size() ||
      !fits_graph(search.similarity, search.vector)) {
    ++vector_scans_;
    const auto scan = std::make_shared<NearestScan>(std::move(command));
    return scan_for_nearest(scan, std::make_shared<HeldSnapshot>(state_.database), deadline,
                            std::move(done));
  }
  ++graph_searches_;
  const auto shared = std::make_shared<ReadCommand>(std::move(command));
  in_readers<GraphAnswer>(
      deadline,
      [snapshot = std::make_shared<HeldSnapshot>(state_.database), shared,
       graph = *std::move(graph)] {
        RocksView rows(snapshot->database().db(), {.snapshot = snapshot->get()});
        return search_graph(rows, unknown_contents(), *shared, graph);
      },
      [this, alive = alive_, shared, done = std::move(done)](Result<GraphAnswer> answer) mutable {
        if (!answer) {
          if (*alive) heed(answer.error());
          return done(std::unexpected(std::move(answer.error())));
        }
        if (*alive && !unusable() && !is_retired(shared->incarnation)) {
          std::optional<Error> refused;
          auto next = graphs_.note_search(*shared, answer->figures, reactor_.now_us(), refused);
          begin_graph(*shared, std::move(next), refused);
        }
        done(std::move(answer->result));
      });
}

void RocksStore::scan_for_nearest(std::shared_ptr<NearestScan> scan,
                                  std::shared_ptr<HeldSnapshot> snapshot, base::Deadline deadline,
                                  ReadCallback done) {
  const auto page = [snapshot, scan]() -> Result<void> {
    RocksView rows(snapshot->database().db(), {.snapshot = snapshot->get(), .fill_cache = false});
    return scan_nearest(rows, unknown_contents(), kScannedKeys, *scan);
  };
  in_readers<void>(
      deadline, page,
      [this, alive = alive_, scan, snapshot, deadline,
       done = std::move(done)](Result<void> result) mutable {
        if (!*alive || (result && unusable())) return done(closed_error());
        if (!result) {
          heed(result.error());
          return done(std::unexpected(std::move(result.error())));
        }
        if (!scan->is_done)
          return scan_for_nearest(std::move(scan), std::move(snapshot), deadline, std::move(done));
        snapshot.reset();
        const ReadCommand& command = scan->command;
        if (!is_retired(command.incarnation)) {
          std::optional<Error> refused;
          auto graph = graphs_.begin(command, scan->vectors, reactor_.now_us(), refused);
          begin_graph(command, std::move(graph), refused);
        }
        done(scan->places.take(true));
      });
}

// From the moment that writes are noted nothing is missed: what was applied before is read when it
// is in the store.
void RocksStore::begin_graph(const ReadCommand& command, std::shared_ptr<GraphInMaking> graph,
                             const std::optional<Error>& refused) {
  if (refused) {
    logger_.warn("vectors_without_graph incarnation={} reason=\"{}\"", command.incarnation.value,
                 refused->message);
  }
  if (graph == nullptr) return;
  const GraphName name = GraphName::of(command);
  if (graph_timer_ == 0) look_for_idle_graphs();
  state_.tables.set_graphs(name.incarnation, true);
  turn_.when_written([this, alive = alive_, name, graph = std::move(graph)]() mutable {
    if (*alive && !unusable()) add_rows_to_graph(name, std::move(graph));
  });
}

void RocksStore::look_for_idle_graphs() {
  graph_timer_ = reactor_.call_at(reactor_.now_us() + kIdleGraphsUs, [this, alive = alive_] {
    if (!*alive) return;
    graph_timer_ = 0;
    graphs_.forget_idle(reactor_.now_us());
    if (!graphs_.is_empty() && !closed_) look_for_idle_graphs();
  });
}

// Of a large one that takes longer than the loop has.
void RocksStore::let_go(std::shared_ptr<GraphInMaking> graph) {
  in_maintenance<void>(
      0,
      [graph = std::move(graph)]() mutable -> Result<void> {
        graph.reset();
        return {};
      },
      [](const Result<void>&) {});
}

void RocksStore::add_rows_to_graph(GraphName name, std::shared_ptr<GraphInMaking> graph) {
  if (!graphs_.has(graph)) return let_go(std::move(graph));
  using Next = std::optional<ReadPosition>;
  const int64_t now_s = reactor_.wall_time_us() / 1'000'000;
  in_maintenance<Next>(
      0,
      [snapshot = std::make_shared<HeldSnapshot>(state_.database), name, graph, now_s] {
        RocksView rows(snapshot->database().db(),
                       {.snapshot = snapshot->get(), .fill_cache = false});
        return storage::add_rows_to_graph(rows, unknown_contents(), name, graph->built_to, now_s,
                                          added_at_once(name.vector_bytes), *graph->vectors);
      },
      [this, alive = alive_, name, graph](Result<Next> next) mutable {
        if (!*alive || unusable()) return;
        if (!next && next.error().code == ErrorCode::kLimit) {
          return grow_graph(std::move(graph), [this, name](std::shared_ptr<GraphInMaking> grown) {
            add_rows_to_graph(name, std::move(grown));
          });
        }
        if (!next) return give_up_graph(std::move(graph), next.error());
        if (!graphs_.charge_keys(*graph)) return give_up_graph(graph, no_memory(*graph));
        graph->built_to = std::move(*next);
        if (graph->built_to) return add_rows_to_graph(name, std::move(graph));
        if (!graphs_.has(graph)) return let_go(std::move(graph));
        graphs_.finish(graph);
        logger_.info("graph_of_vectors_made incarnation={} column={} vectors={} bytes={}",
                     name.incarnation.value, name.column_id, graph->vectors->size(),
                     graphs_.bytes());
        add_noted_vectors();
      });
}

void RocksStore::grow_graph(std::shared_ptr<GraphInMaking> graph,
                            std::move_only_function<void(std::shared_ptr<GraphInMaking>)> then) {
  const auto capacity = graphs_.capacity_to_grow_to(*graph);
  if (!capacity) return give_up_graph(graph, no_memory(*graph));
  in_maintenance<void>(
      0, [graph, capacity] { return graph->vectors->grow(*capacity); },
      [this, alive = alive_, graph, then = std::move(then)](Result<void> grown) mutable {
        if (!*alive || unusable()) return;
        if (!grown) return give_up_graph(std::move(graph), grown.error());
        then(std::move(graph));
      });
}

void RocksStore::give_up_graph(std::shared_ptr<GraphInMaking> graph, const Error& error) {
  if (graphs_.has(graph)) {
    logger_.warn("graph_of_vectors_given_up vectors={} reason=\"{}\"", graph->vectors->size(),
                 error.message);
    graphs_.drop(graph, reactor_.now_us());
  }
  let_go(std::move(graph));
}

void RocksStore::note_vectors(const Mutation& mutation) {
  graphs_.note(mutation);
  if (!graphs_.has_any(mutation.incarnation)) state_.tables.set_graphs(mutation.incarnation, false);
  if (!adds_noted_) add_noted_vectors();
}

void RocksStore::add_noted_vectors() {
  std::shared_ptr<GraphInMaking> graph = graphs_.take_fullest();
  adds_noted_ = graph != nullptr;
  if (!adds_noted_) return;
  NotedChunks noted(graph->noted.begin(), graph->noted.end());
  const size_t count = added_at_once(noted.front()->vectors[0].vector.size());
  in_maintenance<size_t>(
      0,
      [graph, noted = std::move(noted), skipped = graph->added_of_first, count] {
        return add_noted(*graph->vectors, noted, skipped, count);
      },
      [this, alive = alive_, graph](Result<size_t> added) mutable {
        if (!*alive || unusable()) return;
        if (!added && added.error().code == ErrorCode::kLimit) {
          adds_noted_ = false;
          return grow_graph(std::move(graph), [this](std::shared_ptr<GraphInMaking> grown) {
            graphs_.end_adding(*grown, 0);
            if (!adds_noted_) add_noted_vectors();
          });
        }
        if (!added) {
          give_up_graph(std::move(graph), added.error());
        } else {
          graphs_.end_adding(*graph, *added);
          if (!graphs_.charge_keys(*graph)) {
            give_up_graph(graph, no_memory(*graph));
          } else if (!graphs_.has(graph)) {
            let_go(std::move(graph));
          }
        }
        add_noted_vectors();
      });
}

}  // namespace tetrad::storage
