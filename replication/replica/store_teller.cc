// SPDX-License-Identifier: Apache-2.0
#include "replication/replica/store_teller.h"

namespace tetrad::replication {

namespace {
constexpr int64_t kTellEveryUs = 200'000;  // as heartbeats
}  // namespace

StoreTeller::StoreTeller(base::Reactor& reactor, std::vector<storage::Store*> stores,
                         const BehindStores& behind, const RecentFetch& fetch, Tell tell)
    : reactor_(reactor),
      stores_(std::move(stores)),
      behind_(behind),
      fetch_(fetch),
      tell_(std::move(tell)) {}

StoreTeller::~StoreTeller() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void StoreTeller::start() {
  if (!tell_) return;
  timer_ = reactor_.call_at(reactor_.now_us() + kTellEveryUs, [this] { start(); });
  for (uint32_t store = 0; store < stores_.size(); ++store)
    if (stores_[store] != nullptr) tell_(store, facts_of(store));
}

StoreFacts StoreTeller::facts_of(uint32_t store) const {
  const storage::SyncNumbers numbers = stores_[store]->sync_numbers();
  StoreFacts facts;
  facts.written = numbers.written;
  facts.durable = numbers.durable;
  facts.behind = behind_.is_behind(store);
  if (!facts.behind) return facts;
  for (const RecentFetch::Progress& progress : fetch_.progress()) {
    if (progress.store != store) continue;
    facts.tablets_left = progress.tablets_left;
    facts.waits_for = progress.waits_for;
  }
  return facts;
}

}  // namespace tetrad::replication
