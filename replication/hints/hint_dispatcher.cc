// SPDX-License-Identifier: Apache-2.0
// One replay for each replica that lives and has hints: a page is read, sent, and finished; what
// the replica did not take waits again. A replica that does not answer in time gets smaller pages,
// and a pause.
//
// A hint is sent as the rows of a repair are (kMutateMerged): merged, in the tablet's current
// epoch, and refused behind a horizon that has passed (rule 18). It is dropped when the table is
// gone, the replica is no member any more, or the hint is older than hint_window.
#include "replication/hints/hint_dispatcher.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/replica/replica_messages.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {

HintDispatcher::HintDispatcher(base::Reactor& reactor, HintStore& store, RpcNode& rpc,
                               MetaService& meta, const HybridClock& clock,
                               HintDispatchOptions options, Logger logger)
    : reactor_(reactor),
      store_(store),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      options_(options),
      logger_(std::move(logger)) {}

namespace {
constexpr int64_t kBackOffMaxUs = 10'000'000;
}

HintDispatcher::~HintDispatcher() { reactor_.cancel(timer_); }

void HintDispatcher::start() { look(); }

/// One that is full would refuse them, and take room for refusing.
bool HintDispatcher::may_send(const StoreAddress& replica) const {
  if (!meta_.is_replica_live(replica)) return false;
  if (meta_.state_of(replica) == storage::StoreState::kFull) return false;
  const auto disk = meta_.filling_disks().find(replica.host);
  return disk == meta_.filling_disks().end() || disk->second != DiskUsage::kNoRoom;
}

// At each look: begin where something may be sent, and save places.
void HintDispatcher::look() {
  const MetaSnapshot state = meta_.snapshot();
  for (const StoreAddress& replica : store_.replicas()) {
    const NodeInfo* node = state->node(replica.host);
    // A removed node never comes back.
    if (node != nullptr && node->state == NodeState::kRemoved) {
      store_.drop_all(replica);
      continue;
    }
    const auto pace = paces_.find(replica);
    const bool is_due = pace == paces_.end() || reactor_.now_us() >= pace->second.not_before_us;
    if (may_send(replica) && is_due && under_way_.insert(replica).second)
      tasks_.spawn(replay(replica));
  }
  store_.save_places();
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
  if (!TETRAD_MUTANT(hint_past_horizon) && hint.created_us < hint_horizon_us(tablet, slack))
    return nullptr;
  const std::vector<StoreAddress> members = all_members(tablet);
  return std::find(members.begin(), members.end(), replica) != members.end() ? &tablet : nullptr;
}

}  // namespace

Task<void> HintDispatcher::replay(StoreAddress replica) {
  uint64_t sent = 0;
  // Again before each page: the replica may have gone away.
  while (may_send(replica)) {
    base::OneShot<Result<HintStore::Page>> read;
    const auto setter = read.setter();
    HintStore::PageCallback take = [setter](Result<HintStore::Page> page) {
      setter.set(std::move(page));
    };
    store_.read_page(replica, pace_of(replica).page_hints, std::move(take));
    Result<HintStore::Page> page = co_await read;
    if (!page) {
      logger_.error("hints do not read host={} address={} error={}", replica.host.to_string(),
                    meta_.snapshot()->address_of(replica.host), page.error().message);
      slow_down(replica, false);
      break;
    }
    if (page->hints.empty()) break;
    const auto sending = send_page(replica, *page);
    // A page is sent at once; its outcome is complete at the deadline.
    co_await sending->done;
    std::vector<const HintStore::Hint*> kept;
    for (size_t i = 0; i < page->hints.size(); ++i)
      if (sending->outcomes[i] == Outcome::kKept) kept.push_back(&page->hints[i]);
    TETRAD_ASSERT(kept.size() + sending->replayed <= page->hints.size());
    sent += sending->replayed;
    store_.metrics().replayed.add(sending->replayed);
    store_.metrics().dropped.add(page->hints.size() - kept.size() - sending->replayed);
    // A replica that takes nothing is not tried in a tight loop.
    const bool none_taken = kept.size() == page->hints.size();
    store_.finish_page(replica, *page, std::move(kept));
    if (sending->timed_out || none_taken) {
      slow_down(replica, sending->timed_out);
      break;
    }
    Pace& pace = pace_of(replica);
    pace.back_off_us = 0;
    // Back to whole pages in some steps.
    pace.page_hints = std::min(pace.page_hints * 2, options_.page_hints);
    co_await base::sleep_for(reactor_, options_.pause_between_pages_us);
  }
  if (sent != 0)
    logger_.info("hints replayed host={} address={} count={}", replica.host.to_string(),
                 meta_.snapshot()->address_of(replica.host), sent);
  TETRAD_ASSERT(under_way_.contains(replica));
  under_way_.erase(replica);
}

/// A replica that does not answer in time gets fewer at once, and later.
void HintDispatcher::slow_down(const StoreAddress& replica, bool timed_out) {
  Pace& pace = pace_of(replica);
  if (timed_out) pace.page_hints = std::max<size_t>(pace.page_hints / 2, 1);
  pace.back_off_us =
      std::max(std::min(pace.back_off_us * 2, kBackOffMaxUs), options_.look_every_us);
  pace.not_before_us = reactor_.now_us() + pace.back_off_us;
}

std::shared_ptr<HintDispatcher::Sending> HintDispatcher::send_page(const StoreAddress& replica,
                                                                   const HintStore::Page& page) {
  const auto sending = std::make_shared<Sending>(page.hints.size());
  const auto finished = [sending](size_t index, Outcome outcome) {
    TETRAD_ASSERT(sending->left != 0);
    sending->outcomes[index] = outcome;
    if (outcome == Outcome::kReplayed) ++sending->replayed;
    if (--sending->left == 0) sending->done.setter().set(true);
  };
  const MetaSnapshot state = meta_.snapshot();
  const base::Deadline deadline{reactor_.now_us() + options_.timeout_us};
  for (size_t i = 0; i < page.hints.size(); ++i) {
    const HintStore::Hint& hint = page.hints[i];
    const partitioner::Tablet* const tablet = tablet_of(*state, hint, replica, options_.horizon);
    if (tablet == nullptr || store_.is_expired(hint, clock_.now_us(reactor_))) {
      finished(i, Outcome::kDropped);
      continue;
    }
    rpc_.call(replica.host, replica.store, Verb::kMutateMerged,
              encode_mutate(state->format, tablet->epoch, hint.mutation, {}, tablet->repaired_us),
              deadline, [sending, finished, i](const Result<Bytes>& answer) {
                if (answer) return finished(i, Outcome::kReplayed);
                const ErrorCode code = answer.error().code;
                // Of a table that is gone; everything else may pass another time.
                sending->timed_out |= code == ErrorCode::kTimedOut;
                finished(i, code == ErrorCode::kStaleSchema ? Outcome::kDropped : Outcome::kKept);
              });
  }
  return sending;
}

}  // namespace tetrad::replication
