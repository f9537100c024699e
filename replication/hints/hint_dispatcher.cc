// SPDX-License-Identifier: Apache-2.0
#include "replication/hints/hint_dispatcher.h"

#include <algorithm>

#include "base/sleep.h"
#include "replication/replica/replica_messages.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {

HintDispatcher::HintDispatcher(base::Reactor& reactor, HintStore& store, RpcNode& rpc,
                               MetaService& meta, HintDispatchOptions options, Logger logger)
    : reactor_(reactor),
      store_(store),
      rpc_(rpc),
      meta_(meta),
      options_(options),
      logger_(std::move(logger)) {}

HintDispatcher::~HintDispatcher() { reactor_.cancel(timer_); }

void HintDispatcher::start() { look(); }

namespace {

/// What became of a hint.
enum class Outcome { kKept, kReplayed, kDropped };

/// A page of hints for a node that never comes back.
void drop_hints(HintStore& store, const StoreAddress& replica) {
  constexpr size_t kPage = 1'000;
  const auto page = store.oldest(replica, kPage);
  if (!page) return;
  for (const HintStore::Hint& hint : *page) {
    store.metrics().dropped.add();
    store.remove(replica, hint);
  }
}

}  // namespace

void HintDispatcher::look() {
  const MetaSnapshot state = meta_.snapshot();
  for (const StoreAddress& replica : store_.replicas()) {
    const NodeInfo* node = state->node(replica.host);
    if (node != nullptr && node->state == NodeState::kRemoved) {
      drop_hints(store_, replica);
      continue;
    }
    if (meta_.is_live(replica.host) && under_way_.insert(replica).second)
      tasks_.spawn(replay(replica));
  }
  timer_ = reactor_.call_at(reactor_.now_us() + options_.look_every_us, [this] { look(); });
}

namespace {

/// The tablet as it is now: old hints are as good as new writes of the same set. Null: the table is
/// gone, or the replica is no member any more. Or a repair has passed since the hint was made (rule
/// 18): what was acknowledged is there.
const partitioner::Tablet* tablet_of(const MetaState& state, const HintStore::Hint& hint,
                                     const StoreAddress& replica, const HorizonSlack& slack) {
  const TableInfo* table = state.table(hint.mutation.incarnation);
  if (table == nullptr) return nullptr;
  const partitioner::Tablet& tablet = table->tablets.find(hint.mutation.position);
  if (hint.created_us < hint_horizon_us(tablet, slack)) return nullptr;
  const std::vector<StoreAddress> members = all_members(tablet);
  return std::find(members.begin(), members.end(), replica) != members.end() ? &tablet : nullptr;
}

}  // namespace

Task<void> HintDispatcher::replay(StoreAddress replica) {
  uint64_t sent = 0;
  bool go_on = true;
  while (go_on && meta_.is_live(replica.host)) {
    auto page = store_.oldest(replica, options_.page_hints);
    if (!page) {
      logger_.error("hints do not read host={} error={}", replica.host.to_string(),
                    page.error().message);
      break;
    }
    if (page->empty()) break;
    const MetaSnapshot state = meta_.snapshot();
    struct Progress {
      explicit Progress(size_t n) : left(n), outcomes(n, Outcome::kKept) {}
      size_t left;
      std::vector<Outcome> outcomes;
      base::OneShot<bool> done;
    };
    const auto progress = std::make_shared<Progress>(page->size());
    const auto finished = [progress](size_t index, Outcome outcome) {
      progress->outcomes[index] = outcome;
      if (--progress->left == 0) progress->done.setter().set(true);
    };
    const base::Deadline deadline{reactor_.now_us() + options_.timeout_us};
    for (size_t i = 0; i < page->size(); ++i) {
      const HintStore::Hint& hint = (*page)[i];
      const partitioner::Tablet* const tablet = tablet_of(*state, hint, replica, options_.horizon);
      if (tablet == nullptr || store_.is_expired(hint, reactor_.wall_time_us())) {
        finished(i, Outcome::kDropped);
        continue;
      }
      rpc_.call(
          replica.host, replica.store, Verb::kMutateMerged,
          encode_mutate(state->format, tablet->epoch, hint.mutation, {}, tablet->repaired_us),
          deadline, [finished, i](Result<Bytes> answer) {
            const bool gone = !answer && answer.error().code == ErrorCode::kStaleSchema;
            finished(i, answer ? Outcome::kReplayed : gone ? Outcome::kDropped : Outcome::kKept);
          });
    }
    co_await progress->done;
    for (size_t i = 0; i < page->size(); ++i) {
      const Outcome outcome = progress->outcomes[i];
      if (outcome == Outcome::kKept) {
        go_on = false;
        continue;
      }
      if (outcome == Outcome::kReplayed) {
        ++sent;
        store_.metrics().replayed.add();
      } else {
        store_.metrics().dropped.add();
      }
      store_.remove(replica, (*page)[i]);
    }
    co_await base::sleep_for(reactor_, options_.pause_between_pages_us);
  }
  if (sent != 0) logger_.info("hints replayed host={} count={}", replica.host.to_string(), sent);
  under_way_.erase(replica);
}

}  // namespace tetrad::replication
