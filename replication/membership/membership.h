// SPDX-License-Identifier: Apache-2.0
// Which nodes are heard. Every node sends every other a heartbeat at a fixed interval, and at once
// when somebody waits for its content.
//
//   heartbeat := u8 version (1), u64 applied metadata index, i64 hybrid clock (us since 1970),
//                u64 number of this start of the program, [u64 index, u64 term of the metadata
//                log's last entry that the node has applied, [u8 use of its disk, [clocks, [u8
//                number of its stores, u8 state of each, [i64 no logged batch it holds is older
//                (us; lowest: it does not say), u8 bits: 1: it takes and holds none, 2: the node is
//                about to end, 4: it asks clients for no password, 8: it takes no clients, [facts of
//                its stores]]]]]]
//   clocks    := i64 wall clock, i64 own time (us since 1970), i64 when this was sent (us, of the
//                sender's own count), i64 when the last one of the receiver was sent (of the
//                receiver's count; 0: none), i64 us since that came
//   facts     := see store_facts.h
// A node that is heard is live; which of its stores are, store_troubles.h says.
// Liveness is advisory: membership itself is metadata.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/log.h"
#include "base/reactor.h"
#include "replication/membership/clock_watch.h"
#include "replication/membership/disk_usage.h"
#include "replication/membership/failure_detector.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/membership/store_facts.h"
#include "replication/membership/store_troubles.h"
#include "replication/meta/meta_state.h"
#include "replication/rpc/rpc.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// How heartbeats are sent and judged, and what this life of the node says of itself.
struct MembershipOptions {
  int64_t heartbeat_us = 200'000;
  double phi_down = 8;       // about 18 heartbeats missed
  double phi_refused = 0.8;  // about two, where nobody listens at the node's address
  uint64_t start_number = 0;
  uint64_t nonce = 0;    // of this life alone; 0: what it tells of its stores is compared by nobody
  bool is_open = false;  // it asks clients for no password
  bool shows_masked = false;        // it shows values of masked columns as they are
  bool start_numbers_rise = false;  // each is above those of all lives before
  /// By store number: whole_to_compare(); shorter: of the others nothing is compared.
  std::vector<uint64_t> whole = {};
};

/// An entry of the metadata log that a node has applied; index 0: none reported.
struct AppliedEntry {
  uint64_t index = 0, term = 0;
};

/// What a node says of the logged batches it holds.
struct BatchWord {
  /// None of them, nor any that it will take, was created before it, less the slack of the purge
  /// horizon; unset: its clock is off.
  std::optional<int64_t> floor_us;
  bool is_drained = false;  // it takes none any more, and has none
};

/// Sends heartbeats and knows which nodes live. Belongs to the first shard's thread; the other
/// shards learn of changes by MetaService::subscribe().
class Membership {
 public:
  /// On this shard, after `host` came up, was started anew, or went down, and when
  /// `filling_disks()`, `store_troubles()` or `clientless()` has changed.
  using LivenessListener = std::function<void(HostId host, bool live)>;
  /// After each heartbeat, with what it says.
  using HeartbeatListener = std::function<void(HostId host, AppliedEntry entry)>;

  /// Heartbeats carry `clock` and feed it, and compare the nodes' wall clocks.
  Membership(base::Reactor& reactor, RpcNode& rpc, HybridClock& clock, MembershipOptions options,
             Logger logger);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  void start();
  /// The hosts to tell and to listen for.
  void set_hosts(const MetaState& state);
  /// What heartbeats tell from now on.
  void set_applied(MetaIndex applied, AppliedEntry entry) {
    applied_ = applied;
    entry_ = entry;
  }
  /// As set_applied(), and at once.
  void set_disk_usage(DiskUsage usage);
  /// As set_applied(), and at once; until then it takes them.
  void set_takes_clients(bool takes);
  /// Of an own store, by number; as set_applied(), and at once.
  void set_store_state(uint32_t store, storage::StoreState state);
  /// Of an own store, by number; what heartbeats tell from now on.
  void set_store_facts(uint32_t store, StoreFacts facts);
  /// Runs once for each own store that has less than it reported in an earlier life.
  void on_store_lost(std::function<void(uint32_t store)> listener) {
    store_lost_ = std::move(listener);
  }
  /// With self; those of a silent node as it reported them last.
  BehindFacts behind_stores() const;
  void beat(HostId host);
  void beat_all();
  /// This node is about to end: all heartbeats say so from now on, the first at once. Who hears it
  /// counts the node as down, without the silence that it would otherwise take, until its next
  /// start.
  void say_goodbye();
  /// Asked for each heartbeat.
  void set_batch_source(std::function<BatchWord()> source) { batches_ = std::move(source); }
  /// What no logged batch of the cluster is older than, as far as nodes that are not removed have
  /// said; unset: one has never said anything. The last word of a silent node stands.
  std::optional<int64_t> batch_floor_us(const MetaState& state) const;
  /// Whether a node that leaves may go.
  bool is_drained(HostId host) const;
  void on_liveness(LivenessListener listener) { liveness_ = std::move(listener); }
  void on_heartbeat(HeartbeatListener listener) { heartbeat_ = std::move(listener); }

  /// The leader of the metadata group, whose wall clock counts where there is no majority.
  void set_leader_source(std::function<std::optional<HostId>()> leader) {
    leader_ = std::move(leader);
  }
  /// See ClockWatch::begin(). Before start().
  void begin_clock(const std::optional<LastLife>& last) { watch_.begin(last); }
  /// As ClockWatch::keep_with().
  void keep_clock_with(ClockWatch::Keep keep) {
    watch_.keep_with(std::move(keep), [this] { judge_clock(); });
  }
  ClockWatch& clock_watch() { return watch_; }
  HybridClock& clock() { return clock_; }

  bool is_live(HostId host) const;
  /// The host's last report; 0 if none since it started.
  MetaIndex applied_of(HostId host) const;
  /// Live ones without self, ascending.
  std::vector<HostId> live_hosts() const;
  /// Ascending, without self: live nodes that ask clients for no password. One of an earlier program
  /// does not say so.
  std::vector<HostId> open_hosts() const;
  /// The same, of those that show values of masked columns.
  std::vector<HostId> unmasking_hosts() const;
  /// With self. A silent node keeps its last report.
  const FillingDisks& filling_disks() const { return filling_disks_; }
  /// With self; as filling_disks().
  const StoreTroubles& store_troubles() const { return store_troubles_; }
  /// With self: nodes that take no clients by an operator's order; as filling_disks().
  const std::set<HostId>& clientless() const { return clientless_; }

 private:
  /// What is known of another node from its heartbeats.
  struct Host {
    explicit Host(int64_t expected_us) : detector(expected_us) {}
    FailureDetector detector;
    std::string address;  // for people
    bool live = false;
    std::vector<storage::StoreState> stores;  // by number; empty: all serve
    MetaIndex applied;
    uint64_t start_number = 0;
    bool clock_refused = false;  // said so once
    std::optional<int64_t> batch_floor_us;
    bool is_drained = false;
    bool is_open = false, shows_masked = false;
    base::MonotonicUs sent_us = 0, came_us = 0;  // its last heartbeat: by its count, and by ours
    base::MonotonicUs copy_said_us = 0;          // of is_of_copy(); 0: never
    LifeHeard life, life_before;
  };
  void tick();
  struct Heartbeat;
  void on_message(const RpcContext& context, BytesView body);
  bool is_of_copy(const RpcContext& context, Host& host);
  /// Unset: it is not a heartbeat of a format that this program knows.
  static std::optional<Heartbeat> read_heartbeat(BytesView body);
  // What on_message() keeps of one, in this order: a floor of batches goes by the time of the
  // heartbeat before it, which note_clocks() overwrites.
  static bool note_progress(Host& host, const Heartbeat& heard);
  void note_clocks(HostId from, Host& host, const Heartbeat& heard);
  void note_live(const RpcContext& context, Host& host, bool started_anew);
  void note_end(HostId from, Host& host);
  void note_refused(const Endpoint& peer);
  void set_down(const std::vector<HostId>& down, const char* why);
  Bytes heartbeat(const Host& to) const;
  /// For people, who know a node by where it is reached.
  std::string_view address_of(HostId host) const;
  void judge_clock();
  void note_facts(HostId from, Host& host, uint64_t start_number, FactsTold told);
  void compare_told(HostId from, const LifeHeard& known);
  void note_lost(HostId by, uint32_t store, uint64_t told);
  void note_disk_usage(HostId host, DiskUsage usage);
  /// Whether that is news.
  bool note_takes_clients(HostId host, bool takes);
  void note_stores(HostId host, std::vector<storage::StoreState> stores);
  void keep_troubles(HostId host, const std::vector<storage::StoreState>& stores);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  HybridClock& clock_;
  const MembershipOptions options_;
  const Logger logger_;
  ClockWatch watch_;
  std::function<std::optional<HostId>()> leader_;
  bool is_known_ = false;  // the metadata has had this node
  bool ends_ = false;      // it has said goodbye
  std::map<HostId, Host> hosts_;
  MetaIndex applied_;  // by all shards; the entry by the first
  AppliedEntry entry_;
  DiskUsage disk_usage_ = DiskUsage::kNotAvailable;
  std::vector<storage::StoreState> stores_;  // own; as Host::stores
  FillingDisks filling_disks_;
  StoreTroubles store_troubles_;
  std::set<HostId> clientless_;
  std::vector<StoreFacts> facts_;  // own, by number
  std::vector<bool> lost_;         // own, by number: it was said
  std::function<void(uint32_t store)> store_lost_;
  std::function<BatchWord()> batches_;
  LivenessListener liveness_;
  HeartbeatListener heartbeat_;
  base::Reactor::TimerId timer_ = 0;
};

}  // namespace tetrad::replication
