// SPDX-License-Identifier: Apache-2.0
// Bringing the metadata to the other shards.
#include "replication/meta/meta_front.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::replication {

namespace {
constexpr int64_t kSizesUs = 1'000'000;
}

// On shard 0. The hub belongs to all; weak pointers keep posts from touching one that is gone.
std::shared_ptr<MetaHub> MetaHub::make(base::Reactor& main, MetaServiceImpl& service) {
  std::shared_ptr<MetaHub> hub(new MetaHub(main, service));
  hub->subscription_ = service.subscribe(
      [weak = std::weak_ptr<MetaHub>(hub)](const MetaSnapshot&, const MetaSnapshot&) {
        if (const auto alive = weak.lock()) alive->publish();
      });
  hub->tick();
  return hub;
}

// Posts to the main reactor end here: it may go after this.
void MetaHub::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  service_ = nullptr;
  subscription_.reset();
  if (timer_ != 0) main_.cancel(std::exchange(timer_, 0));
  tasks_.destroy_all();
}

// Sizes, heat and use change without an event; they are sent on when their versions have moved.
void MetaHub::tick() {
  timer_ = main_.call_at(main_.now_us() + kSizesUs, [weak = weak_from_this()] {
    const auto alive = weak.lock();
    if (!alive || alive->service_ == nullptr) return;
    if (alive->service_->tablet_bytes_version() != alive->sizes_version_ ||
        alive->service_->heat_board().version() != alive->heat_version_ ||
        alive->service_->throughput_board().version() != alive->throughputs_version_)
      alive->publish();
    alive->tick();
  });
}

void MetaHub::post_to_main(base::Callback callback) {
  const std::lock_guard lock(mutex_);
  if (!closed_) main_.post_from_any_thread(std::move(callback));
}

uint64_t MetaHub::add(base::Reactor& reactor, std::weak_ptr<Mailbox> mailbox) {
  uint64_t number;
  {
    const std::lock_guard lock(mutex_);
    number = next_number_++;
    entries_.push_back({&reactor, std::move(mailbox), number, MetaIndex()});
  }
  // The new front has taken nothing yet: until it has, the node reports an older index.
  post_to_main([weak = weak_from_this()] {
    const auto alive = weak.lock();
    if (!alive) return;
    alive->look_at_applied();
    alive->publish();
  });
  return number;
}

void MetaHub::remove(uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& entry) { return entry.number == number; });
  }
  post_to_main([weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->look_at_applied();
  });
}

/// On the front's thread.
void MetaHub::taken(uint64_t number, MetaIndex applied) {
  {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_)
      if (entry.number == number) entry.applied = applied;
  }
  post_to_main([weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->look_at_applied();
  });
}

// The node has applied what the slowest of its fronts has.
void MetaHub::look_at_applied() {
  if (service_ == nullptr) return;
  MetaIndex least{UINT64_MAX};
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) least = std::min(least, entry.applied);
  }
  service_->set_fronts_applied(least);
}

// Copies are made only of what has changed, once for all fronts; state and view are immutable.
void MetaHub::publish() {
  if (service_ == nullptr) return;
  if (!sizes_ || service_->tablet_bytes_version() != sizes_version_) {
    sizes_version_ = service_->tablet_bytes_version();
    sizes_ = std::make_shared<const std::unordered_map<TabletId, uint64_t>>(
        service_->all_tablet_bytes());
  }
  if (!heat_ || service_->heat_board().version() != heat_version_) {
    heat_version_ = service_->heat_board().version();
    heat_ = std::make_shared<const HeatBoard::ByTablet>(service_->heat_board().all());
  }
  if (!throughputs_ || service_->throughput_board().version() != throughputs_version_) {
    throughputs_version_ = service_->throughput_board().version();
    throughputs_ =
        std::make_shared<const ThroughputBoard::ByKey>(service_->throughput_board().all());
  }
  auto view = std::make_shared<LivenessView>();
  view->live.insert(service_->self());
  for (const HostId host : service_->live_hosts()) view->live.insert(host);
  view->clientless = service_->clientless();
  view->filling_disks = service_->filling_disks();
  view->store_troubles = service_->store_troubles();
  view->tablet_bytes = sizes_;
  view->heat = heat_;
  view->throughputs = throughputs_;
  const MetaSnapshot state = service_->snapshot();
  // Posts of one thread keep their order, so no front sees an older state after a newer one.
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    entry.reactor->post_from_any_thread([mailbox = entry.mailbox, state, view] {
      const auto box = mailbox.lock();
      if (box && box->front != nullptr) box->front->take(state, view);
    });
  }
}

// The front may be gone; then nobody waits.
void MetaHub::answer(uint64_t front, base::Callback callback) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.number == front) entry.reactor->post_from_any_thread(std::move(callback));
}

void MetaHub::change_schema(SchemaChange change, base::Deadline deadline, uint64_t front,
                            Done done) {
  post_to_main([hub = shared_from_this(), change = std::move(change), deadline, front,
                done = std::move(done)]() mutable {
    if (hub->service_ == nullptr) return;
    MetaHub& alive = *hub;
    alive.tasks_.spawn(
        run_change(std::move(hub), std::move(change), deadline, front, std::move(done)));
  });
}

/// The clocks of the shards are one: a deadline holds on both sides.
Task<void> MetaHub::run_change(std::shared_ptr<MetaHub> hub, SchemaChange change,
                               base::Deadline deadline, uint64_t front, Done done) {
  // Counted weakly: the task belongs to the hub's own group.
  const std::weak_ptr<MetaHub> weak = hub;
  MetaServiceImpl* const service = hub->service_;
  hub.reset();
  std::vector<std::string> warnings;
  Result<void> result = co_await service->change_schema(std::move(change), deadline, &warnings);
  if (const auto alive = weak.lock()) {
    alive->answer(front, [done = std::move(done), result = std::move(result),
                          warnings = std::move(warnings)] { done(result, warnings); });
  }
}

MetaFront::MetaFront(base::Reactor& reactor, HostId self, std::shared_ptr<MetaHub> hub)
    : reactor_(reactor), self_(self), hub_(std::move(hub)) {
  mailbox_->front = this;
  number_ = hub_->add(reactor_, mailbox_);
}

MetaFront::~MetaFront() {
  // Posts that are on their way find an empty mailbox.
  mailbox_->front = nullptr;
  hub_->remove(number_);
}

void MetaFront::take(MetaSnapshot state, std::shared_ptr<const LivenessView> view) {
  const MetaSnapshot before = state_;
  TETRAD_ASSERT(view != nullptr);
  // Posts keep their order, so no shard goes back to an older map.
  TETRAD_ASSERT(state->applied >= before->applied);
  if (state_ != state) {
    // A count of references of this shard's own: requests take a snapshot each, and a count that
    // several threads change costs each of them the way to the others' caches.
    const auto own = std::make_shared<const MetaSnapshot>(std::move(state));
    state_ = MetaSnapshot(own, own->get());
  }
  view_ = std::move(view);
  std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
  const auto listeners = listeners_;
  const MetaSnapshot now = state_;
  for (const auto& weak : listeners) {
    if (const auto listener = weak.lock()) (*listener)(before, now);
  }
  // Last: what listens has the state when the node reports it.
  if (before != now) hub_->taken(number_, now->applied);
}

std::shared_ptr<void> MetaFront::subscribe(Listener listener) {
  auto shared = std::make_shared<Listener>(std::move(listener));
  listeners_.push_back(shared);
  return shared;
}

Task<Result<void>> MetaFront::change_schema(SchemaChange change, base::Deadline deadline,
                                            std::vector<std::string>* warnings) {
  struct Outcome {
    Result<void> result;
    std::vector<std::string> warnings;
  };
  base::OneShot<Outcome> answered;
  const auto setter = answered.setter();
  MetaHub::Done done = [setter](Result<void> result, std::vector<std::string> told) {
    setter.set({std::move(result), std::move(told)});
  };
  hub_->change_schema(std::move(change), deadline, number_, std::move(done));
  Outcome outcome = co_await answered;
  if (warnings != nullptr)
    warnings->insert(warnings->end(), outcome.warnings.begin(), outcome.warnings.end());
  co_return outcome.result;
}

uint64_t MetaFront::tablet_bytes(TabletId tablet) const {
  if (!view_->tablet_bytes) return 0;
  const auto found = view_->tablet_bytes->find(tablet);
  return found == view_->tablet_bytes->end() ? 0 : found->second;
}

TabletHeat MetaFront::tablet_heat(TabletId tablet) const {
  if (!view_->heat) return {};
  const auto found = view_->heat->find(tablet);
  return found == view_->heat->end() ? TabletHeat() : found->second;
}

UsedThroughput MetaFront::used_throughput(ThroughputKey key) const {
  if (!view_->throughputs) return {};
  const auto found = view_->throughputs->find(key);
  return found == view_->throughputs->end() ? UsedThroughput() : found->second.use;
}

}  // namespace tetrad::replication
