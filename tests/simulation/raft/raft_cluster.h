// SPDX-License-Identifier: Apache-2.0
// A group of Raft servers in one thread: simulated time, network and disks, everything drawn from
// one seed. Runs a while under faults, then heals and demands progress.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "base/random.h"
#include "replication/meta/raft_core.h"
#include "tests/simulation/raft/raft_oracle.h"

namespace tetrad::replication {

/// What one seed has in store; times in units, 10 of which are a tick.
struct RaftWeather {
  size_t servers;
  uint32_t election_ticks, heartbeat_ticks;
  uint64_t duration;
  uint64_t loss_per_mille, duplicate_per_mille, late_per_mille;
  uint64_t delay_max, late_max, disk_max;
  uint64_t fault_gap, propose_gap, read_gap, change_gap, transfer_gap, snapshot_gap, rumour_gap;
  uint64_t restart_max;
  bool leader_bias;        // faults prefer the leader
  bool keep_disks_prefix;  // a crash may keep some of the writes under way
  bool eager_changes;      // a new leader is asked for a membership change at once
  bool eager_faults;       // something happens to the network when a leader is new
  bool even_voters;        // changes go back and forth between three and four voters
  bool single_entries;     // one entry in a message, everywhere

  static RaftWeather draw(base::Random& random);
};

struct RaftRunSummary {
  uint64_t events = 0;
  uint64_t committed = 0;
  uint64_t reads = 0;
  uint64_t leaders = 0;
  uint64_t configurations = 0;
  uint64_t images_installed = 0;
  uint64_t crashes = 0;
  double election_timeouts_to_commit = 0;  // after the last fault
  uint64_t trace_hash = 0;
};

class RaftCluster {
 public:
  RaftCluster(uint64_t seed, RaftMutants mutants, bool trace);
  /// Throws Violation.
  RaftRunSummary run();

 private:
  static constexpr size_t kServersMax = 8;
  static constexpr uint64_t kTickUnits = 10;
  enum class EventKind : uint8_t {
    kTick,
    kDeliver,
    kDisk,
    kFault,
    kPropose,
    kRead,
    kChange,
    kEagerChange,
    kEagerFault,
    kTransfer,
    kSnapshot,
    kRestart,
    kTell,
    kHear
  };
  struct Event {
    uint64_t at;
    uint64_t order;
    EventKind kind;
    uint32_t server = 0;
    uint32_t life = 0;  // of the server, or the slot of the message
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  struct InFlight {
    RaftMessage message;
    uint64_t chain = 0;  // the image's, beside an install message
  };
  /// That a server has applied an entry, told to another outside of Raft's messages.
  struct Rumour {
    size_t from = 0, to = 0;
    RaftIndex index = 0;
    RaftTerm term = 0;
  };
  struct Write {
    std::optional<RaftPersist> persist;
    RaftImage image;  // to install, or the own one
  };
  struct Server {
    RaftServerId id;
    RaftDisk disk;
    std::unique_ptr<RaftCore> core;  // none: down
    uint32_t life = 0;
    std::deque<Write> writes;
    RaftIndex applied = 0;
    uint64_t chain = 0;
    uint64_t paused_until = 0;
    uint64_t tick_units = 10;
    uint64_t image_arriving_chain = 0;
    RaftIndex commit_seen = 0;
  };

  static RaftServerId id_of(size_t place);
  static uint64_t place_of(RaftServerId id) { return id.value.octets[15] - 1u; }

  void schedule(uint64_t delay, EventKind kind, size_t server = 0, uint32_t life = 0);
  void handle(const Event& event);
  void start(size_t place);
  void crash(size_t place);
  void tick(Server& server, uint32_t count);
  void deliver(InFlight letter);
  void disk_done(Server& server);
  void drain(Server& server);
  void post(InFlight letter);
  void fault();
  void split();
  void heal();
  void propose();
  void read();
  void change(Server* server);
  void transfer();
  void take_snapshot();
  void tell();
  void hear(const Rumour& rumour);
  void run_until(uint64_t until);
  void demand_progress();
  Server* leader();
  Server& any_server() { return servers_[random_.below(started_)]; }
  RaftOptions options_for(size_t place);
  uint64_t gap(uint64_t mean) { return 1 + random_.below(2 * mean); }
  void note(uint64_t what) { hash_ = (hash_ ^ what) * 0x100000001B3ULL; }

  base::Random random_;
  const RaftMutants mutants_;
  const bool trace_;
  RaftWeather weather_;
  std::array<Server, kServersMax> servers_;
  size_t started_ = 0;  // servers_[0 .. started_) have been part of it
  std::array<std::array<bool, kServersMax>, kServersMax> cut_{};  // from, to
  RaftOracle oracle_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<InFlight> letters_;
  std::vector<uint32_t> free_letters_;
  std::vector<Rumour> rumours_;
  uint64_t now_ = 0;
  uint64_t order_ = 0;
  uint64_t handled_ = 0;
  uint64_t next_context_ = 1;
  uint64_t next_command_ = 1;
  bool healed_ = false;
  RaftRunSummary summary_;
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace tetrad::replication
