// SPDX-License-Identifier: Apache-2.0
// Every second each damaged store is looked at: when no tablet names it any more, and this node's
// map is not older than what the store has noted, it is erased and opened anew.
#include "replication/tablets/store_renewal.h"

#include <algorithm>

#include "base/data_mutants.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kLookEveryUs = 1'000'000;

struct Membership {
  size_t tablets = 0;
  bool alone = false;  // one of them has no other member
};

Membership membership_of(const MetaState& state, const StoreAddress& store) {
  Membership found;
  for (const auto& [id, table] : state.tables) {
    for (const partitioner::Tablet& tablet : table->tablets.tablets()) {
      for (const auto* set : {&tablet.replicas, &tablet.new_replicas}) {
        if (std::ranges::find(*set, store) == set->end()) continue;
        ++found.tablets;
        found.alone |= set == &tablet.replicas && set->size() == 1;
      }
    }
  }
  return found;
}

}  // namespace

StoreRenewal::StoreRenewal(base::Reactor& reactor, const MetaService& meta,
                           const StoreCleanup& cleanup, std::vector<storage::Store*> stores,
                           Renew renew, Logger logger)
    : reactor_(reactor),
      meta_(meta),
      cleanup_(cleanup),
      stores_(std::move(stores)),
      renew_(std::move(renew)),
      logger_(std::move(logger)) {}

StoreRenewal::~StoreRenewal() { reactor_.cancel(timer_); }

void StoreRenewal::start() {
  if (renew_) look();
}

void StoreRenewal::look() {
  timer_ = reactor_.call_at(reactor_.now_us() + kLookEveryUs, [this] { look(); });
  for (uint32_t store = 0; store < stores_.size(); ++store) {
    const bool damaged = stores_[store] != nullptr &&
                         stores_[store]->status().state == storage::StoreState::kDamaged;
    if (damaged && !renewed_.contains(store)) look_at(store);
  }
}

/// In one turn: what names the store in a later state is answered by the new one, for this node
/// takes nothing of an epoch that it has not heard of.
void StoreRenewal::look_at(uint32_t store) {
  const MetaSnapshot state = meta_.snapshot();
  const NodeInfo* own = state->node(meta_.self());
  if (own == nullptr || own->state != NodeState::kNormal) return;
  const Membership membership = membership_of(*state, {meta_.self(), store});
  if (membership.alone && alone_.insert(store).second)
    logger_.error(
        "a store is damaged and nobody else has what it holds; restore it from a backup, or drop "
        "the tables it cannot read store={} reason=\"{}\"",
        store, stores_[store]->status().reason);
  if (membership.tablets != 0 && !TETRAD_MUTANT(file_dropped_alone)) return;
  if (cleanup_.is_behind(*state, store)) return;
  renewed_.insert(store);
  logger_.warn("a damaged store has no tablets any more and is erased store={} reason=\"{}\"",
               store, stores_[store]->status().reason);
  renew_(store);
}

}  // namespace tetrad::replication
