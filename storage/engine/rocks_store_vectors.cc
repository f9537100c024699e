// SPDX-License-Identifier: Apache-2.0
// Searches for near vectors in a RocksStore, and the making of its graphs. The algorithms are in
// storage/vectors; here is what runs on which thread: searches on the readers, graphs are made on the
// threads of maintenance, a few vectors at a time.
#include "storage/engine/rocks_store.h"
#include "storage/index/graph_search.h"
#include "storage/index/nearest_reader.h"

namespace tetrad::storage {
namespace {

constexpr uint64_t kScannedKeys = 20'000;  // of one job of a reader
/// Added by one job: each takes some tenths of a millisecond.
constexpr uint32_t kAddedAtOnce = 64;
/// From this part of a graph on all rows are read: a graph has no way to name so many.
constexpr uint64_t kLargestPart = 8;

/// Nothing is known of partitions off the loop.
TableContents unknown_contents() {
  TableContents contents;
  contents.scattered_tombstones = true;
  return contents;
}

}  // namespace

void RocksStore::read_nearest(ReadCommand command, base::Deadline deadline, ReadCallback done) {
  graphs_.forget_idle(reactor_.now_us());
  auto graph = graphs_.find(command, reactor_.now_us());
  if (!graph || kLargestPart * command.nearest->rows_max >= graph->vectors->size()) {
    const auto scan = std::make_shared<NearestScan>(std::move(command));
    return scan_for_nearest(scan, std::make_shared<HeldSnapshot>(state_.database), deadline,
                            std::move(done));
  }
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
        if (*alive && !unusable()) {
          auto next =
              graphs_.note_search(*shared, answer->looked_up, answer->stale, reactor_.now_us());
          if (next != nullptr) begin_graph(GraphName::of(*shared), std::move(next));
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
  in_readers<void>(deadline, page,
                   [this, alive = alive_, scan, snapshot, deadline,
                    done = std::move(done)](Result<void> result) mutable {
                     if (!*alive || (result && unusable())) return done(closed_error());
                     if (!result) {
                       heed(result.error());
                       return done(std::unexpected(std::move(result.error())));
                     }
                     if (!scan->is_done)
                       return scan_for_nearest(std::move(scan), std::move(snapshot), deadline,
                                               std::move(done));
                     snapshot.reset();
                     std::optional<Error> refused;
                     ReadCommand command = scan->command;
                     command.resume_after.reset();
                     auto graph = graphs_.begin(command, scan->vectors, reactor_.now_us(), refused);
                     if (refused) {
                       logger_.warn("vectors_without_graph incarnation={} reason=\"{}\"",
                                    command.incarnation.value, refused->message);
                     }
                     if (graph != nullptr) begin_graph(GraphName::of(command), std::move(graph));
                     done(scan->places.take(true));
                   });
}

// From the moment that writes are noted nothing is missed: what was applied before is read when it is
// in the store.
void RocksStore::begin_graph(GraphName name, std::shared_ptr<GraphInMaking> graph) {
  state_.tables.set_graphs(name.incarnation, true);
  turn_.when_written([this, alive = alive_, name, graph = std::move(graph)]() mutable {
    if (*alive && !unusable()) add_rows_to_graph(name, std::move(graph));
  });
}

void RocksStore::add_rows_to_graph(GraphName name, std::shared_ptr<GraphInMaking> graph) {
  if (!graphs_.has(graph) || is_retired(name.incarnation)) return;
  using Next = std::optional<ReadPosition>;
  const int64_t now_s = reactor_.wall_time_us() / 1'000'000;
  in_maintenance<Next>(
      0,
      [snapshot = std::make_shared<HeldSnapshot>(state_.database), name, graph, now_s] {
        RocksView rows(snapshot->database().db(),
                       {.snapshot = snapshot->get(), .fill_cache = false});
        return storage::add_rows_to_graph(rows, unknown_contents(), name, graph->built_to, now_s,
                                          kAddedAtOnce, *graph->vectors);
      },
      [this, alive = alive_, name, graph](Result<Next> next) mutable {
        if (!*alive || unusable()) return;
        if (!next && next.error().code == ErrorCode::kLimit) {
          return grow_graph(std::move(graph), [this, name](std::shared_ptr<GraphInMaking> grown) {
            add_rows_to_graph(name, std::move(grown));
          });
        }
        if (!next) return give_up_graph(graph, next.error());
        graph->built_to = std::move(*next);
        if (graph->built_to) return add_rows_to_graph(name, std::move(graph));
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
  if (!capacity) {
    return give_up_graph(
        graph, Error(ErrorCode::kLimit, fmt::format("there is no memory for more than {} vectors",
                                                    graph->vectors->capacity())));
  }
  in_maintenance<void>(
      0, [graph, capacity] { return graph->vectors->grow(*capacity); },
      [this, alive = alive_, graph, then = std::move(then)](Result<void> grown) mutable {
        if (!*alive || unusable()) return;
        if (!grown) return give_up_graph(graph, grown.error());
        then(std::move(graph));
      });
}

void RocksStore::give_up_graph(const std::shared_ptr<GraphInMaking>& graph, const Error& error) {
  if (!graphs_.has(graph)) return;
  logger_.warn("graph_of_vectors_given_up vectors={} reason=\"{}\"", graph->vectors->size(),
               error.message);
  graphs_.drop(graph);
}

void RocksStore::note_vectors(const Mutation& mutation) {
  graphs_.note(mutation);
  if (!adds_noted_) add_noted_vectors();
}

void RocksStore::add_noted_vectors() {
  std::shared_ptr<GraphInMaking> graph = graphs_.take_fullest();
  adds_noted_ = graph != nullptr;
  if (!adds_noted_) return;
  NotedChunks noted(graph->noted.begin(), graph->noted.end());
  in_maintenance<size_t>(
      0,
      [graph, noted = std::move(noted), skipped = graph->added_of_first] {
        return add_noted(*graph->vectors, noted, skipped, kAddedAtOnce);
      },
      [this, alive = alive_, graph](Result<size_t> added) mutable {
        if (!*alive || unusable()) return;
        adds_noted_ = false;
        if (!added && added.error().code == ErrorCode::kLimit) {
          return grow_graph(std::move(graph), [this](std::shared_ptr<GraphInMaking> grown) {
            graphs_.end_adding(*grown, 0);
            if (!adds_noted_) add_noted_vectors();
          });
        }
        if (!added) return give_up_graph(graph, added.error());
        graphs_.end_adding(*graph, *added);
        add_noted_vectors();
      });
}

}  // namespace tetrad::storage
