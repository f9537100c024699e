// SPDX-License-Identifier: Apache-2.0
// The metadata as the other shards of a node see it: each has a front with the newest state,
// brought to it by posts, and hands schema changes to shard 0. No lock on the request path.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/reactor.h"
#include "replication/meta/meta_service_impl.h"
#include "replication/tablets/heat_board.h"
#include "replication/throughput/throughput_board.h"

namespace tetrad::replication {

/// What a front knows besides the state. Immutable.
struct LivenessView {
  std::set<HostId> live;  // with self
  std::set<HostId> clientless;
  FillingDisks filling_disks;
  StoreTroubles store_troubles;
  std::shared_ptr<const std::unordered_map<TabletId, uint64_t>> tablet_bytes;
  std::shared_ptr<const HeatBoard::ByTablet> heat;
  std::shared_ptr<const ThroughputBoard::ByKey> throughputs;
};

class MetaFront;

/// Between shard 0 and the fronts. Shared by all; made on shard 0 before the other shards start.
class MetaHub : public std::enable_shared_from_this<MetaHub> {
 public:
  /// On shard 0. `service` outlives close().
  static std::shared_ptr<MetaHub> make(base::Reactor& main, MetaServiceImpl& service);
  /// On shard 0: neither the service nor its reactor is used afterwards.
  void close();

 private:
  friend class MetaFront;
  /// Seen from the front's own thread only; null once the front is gone.
  struct Mailbox {
    MetaFront* front = nullptr;
  };
  /// One front: the shard it is on, and how to reach it.
  struct Entry {
    base::Reactor* reactor;
    std::weak_ptr<Mailbox> mailbox;
    uint64_t number;
    MetaIndex applied;  // what the front has taken
  };
  /// What a schema change answers: its outcome, and warnings for the client.
  using Done = std::function<void(Result<void>, std::vector<std::string>)>;

  MetaHub(base::Reactor& main, MetaServiceImpl& service) : main_(main), service_(&service) {}
  /// From any thread; nothing happens after close().
  void post_to_main(base::Callback callback);
  /// Of a front that begins; its number is not given again.
  uint64_t add(base::Reactor& reactor, std::weak_ptr<Mailbox> mailbox);
  void remove(uint64_t number);
  /// A front has taken a state: the node reports what all of them have
  /// (MetaServiceImpl::set_fronts_applied).
  void taken(uint64_t number, MetaIndex applied);
  void look_at_applied();
  /// On shard 0, from time to time: what has no event of its own, as sizes and heat.
  void tick();
  /// Posts state and view to each front.
  void publish();
  /// From a front's thread; runs on shard 0, and `done` on the front's.
  void change_schema(SchemaChange change, base::Deadline deadline, uint64_t front, Done done);
  static Task<void> run_change(std::shared_ptr<MetaHub> hub, SchemaChange change,
                               base::Deadline deadline, uint64_t front, Done done);
  /// Runs `callback` on the front's thread, if the front is still there.
  void answer(uint64_t front, base::Callback callback);

  base::Reactor& main_;
  MetaServiceImpl* service_;  // shard 0 only; null after close()
  std::shared_ptr<void> subscription_;
  base::Reactor::TimerId timer_ = 0;
  uint64_t sizes_version_ = 0, heat_version_ = 0, throughputs_version_ = 0;
  std::shared_ptr<const std::unordered_map<TabletId, uint64_t>> sizes_;
  std::shared_ptr<const HeatBoard::ByTablet> heat_;
  std::shared_ptr<const ThroughputBoard::ByKey> throughputs_;
  base::TaskGroup tasks_;
  std::mutex mutex_;  // guards what follows; under it nothing is called but a reactor's post
  bool closed_ = false;
  std::vector<Entry> entries_;
  uint64_t next_number_ = 1;
};

/// One per shard but the first; belongs to its thread. The shard's reactor outlives it, and runs
/// what was posted to it before it ends.
class MetaFront final : public MetaService {
 public:
  MetaFront(base::Reactor& reactor, HostId self, std::shared_ptr<MetaHub> hub);
  ~MetaFront() override;

  HostId self() const override { return self_; }
  MetaSnapshot snapshot() const override { return state_; }
  std::shared_ptr<void> subscribe(Listener listener) override;
  Task<Result<void>> change_schema(SchemaChange change, base::Deadline deadline,
                                   std::vector<std::string>* warnings) override;
  bool is_live(HostId host) const override { return view_->live.contains(host); }
  bool takes_clients(HostId host) const override { return !view_->clientless.contains(host); }
  const FillingDisks& filling_disks() const override { return view_->filling_disks; }
  const StoreTroubles& store_troubles() const override { return view_->store_troubles; }
  uint64_t tablet_bytes(TabletId tablet) const override;
  TabletHeat tablet_heat(TabletId tablet) const override;
  UsedThroughput used_throughput(ThroughputKey key) const override;

 private:
  friend class MetaHub;
  /// Posted by the hub: swaps both, then calls listeners.
  void take(MetaSnapshot state, std::shared_ptr<const LivenessView> view);

  base::Reactor& reactor_;
  const HostId self_;
  std::shared_ptr<MetaHub> hub_;
  MetaSnapshot state_ = std::make_shared<MetaState>();
  std::shared_ptr<const LivenessView> view_ = std::make_shared<LivenessView>();
  std::vector<std::weak_ptr<Listener>> listeners_;
  std::shared_ptr<MetaHub::Mailbox> mailbox_ = std::make_shared<MetaHub::Mailbox>();
  uint64_t number_ = 0;
};

}  // namespace tetrad::replication
