// SPDX-License-Identifier: Apache-2.0
#include "replication/hints/hint_dispatcher.h"

#include "base/sleep.h"
#include "replication/replica/replica_messages.h"

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

void HintDispatcher::look() {
  for (const StoreAddress& replica : store_.replicas()) {
    if (meta_.is_live(replica.host) && under_way_.insert(replica).second)
      tasks_.spawn(replay(replica));
  }
  timer_ = reactor_.call_at(reactor_.now_us() + options_.look_every_us, [this] { look(); });
}

namespace {

/// The epoch the tablet has now: old hints are as good as new writes of the same set. None: the
/// table is gone.
std::optional<SetEpoch> current_epoch(const MetaState& state, const storage::Mutation& mutation) {
  const TableInfo* table = state.table(mutation.incarnation);
  if (table == nullptr) return std::nullopt;
  return table->tablets.find(mutation.position).epoch;
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
      explicit Progress(size_t n) : left(n), taken(n, false) {}
      size_t left;
      std::vector<bool> taken;
      base::OneShot<bool> done;
    };
    const auto progress = std::make_shared<Progress>(page->size());
    const auto finished = [progress](size_t index, bool taken) {
      progress->taken[index] = taken;
      if (--progress->left == 0) progress->done.setter().set(true);
    };
    const base::Deadline deadline{reactor_.now_us() + options_.timeout_us};
    for (size_t i = 0; i < page->size(); ++i) {
      const HintStore::Hint& hint = (*page)[i];
      const auto epoch = current_epoch(*state, hint.mutation);
      if (!epoch || store_.is_expired(hint, reactor_.wall_time_us())) {
        store_.metrics().dropped.add();
        finished(i, true);
        continue;
      }
      rpc_.call(replica.host, replica.store, Verb::kMutateMerged,
                encode_mutate(*epoch, hint.mutation), deadline,
                [finished, i](Result<Bytes> answer) {
                  const bool gone = !answer && answer.error().code == ErrorCode::kStaleSchema;
                  finished(i, answer.has_value() || gone);
                });
    }
    co_await progress->done;
    for (size_t i = 0; i < page->size(); ++i) {
      if (!progress->taken[i]) {
        go_on = false;
        continue;
      }
      ++sent;
      store_.metrics().replayed.add();
      store_.remove(replica, (*page)[i]);
    }
    co_await base::sleep_for(reactor_, options_.pause_between_pages_us);
  }
  if (sent != 0) logger_.info("hints replayed host={} count={}", replica.host.to_string(), sent);
  under_way_.erase(replica);
}

}  // namespace tetrad::replication
