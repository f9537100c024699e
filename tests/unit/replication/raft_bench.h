// SPDX-License-Identifier: Apache-2.0
// A few Raft servers on a table: every message lies in a list until the test delivers or loses it,
// every write waits until the test says that it is on disk (or is done at once).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replication/meta/raft_core.h"

namespace tetrad::replication::test {

inline Uuid uuid_of(uint8_t number) {
  Uuid uuid;
  uuid.octets[15] = number;
  return uuid;
}
inline RaftServerId id(uint8_t number) { return RaftServerId{uuid_of(number)}; }
inline uint8_t number_of(RaftServerId server) { return server.value.octets[15]; }

inline RaftConfiguration members(std::initializer_list<uint8_t> voters,
                                 std::initializer_list<uint8_t> learners = {}) {
  RaftConfiguration configuration;
  for (const uint8_t voter : voters) configuration.voters.push_back(id(voter));
  for (const uint8_t learner : learners) configuration.learners.push_back(id(learner));
  return configuration;
}

/// The founding of a group takes index 1 in term 1.
inline RaftEntry command(RaftTerm term, RaftIndex index, std::string data = "x") {
  return {term, index, RaftEntryKind::kCommand, std::move(data)};
}

/// A server of its own with the given log after the founding entry, in `term`.
inline RaftStored stored_with(RaftTerm term, const std::vector<RaftTerm>& terms,
                              RaftConfiguration configuration) {
  RaftStored stored = RaftStored::founding(std::move(configuration));
  stored.hard_state.term = term;
  RaftIndex index = 1;
  for (const RaftTerm each : terms) stored.entries.push_back(command(each, ++index));
  return stored;
}

struct Server {
  std::unique_ptr<RaftCore> core;
  // What is on disk, and what is on its way there.
  RaftStored disk;
  std::deque<RaftPersist> writes;
  bool slow_disk = false;  // writes wait for finish_writes()
  bool up = true;
  std::vector<RaftEntry> applied;
  std::vector<RaftReadState> reads;

  std::vector<std::string> commands() const {
    std::vector<std::string> found;
    for (const RaftEntry& entry : applied) {
      if (entry.kind == RaftEntryKind::kCommand) found.push_back(entry.data);
    }
    return found;
  }
};

class Bench {
 public:
  using Tune = std::function<void(RaftOptions&)>;

  explicit Bench(RaftConfiguration founders, Tune tune = nullptr) : tune_(std::move(tune)) {
    for (const RaftServerId server : founders.servers()) {
      add(number_of(server), RaftStored::founding(founders));
    }
  }

  void add(uint8_t number, RaftStored stored) {
    Server& server = servers_[number];
    server.disk = std::move(stored);
    start(number);
  }
  void start(uint8_t number) {
    Server& server = servers_[number];
    RaftOptions options;
    options.self = id(number);
    options.cluster_id = uuid_of(200);
    options.group_id = RaftGroupId{9};
    options.seed = number;
    if (tune_) tune_(options);
    Result<RaftCore> core = RaftCore::make(std::move(options), server.disk);
    if (!core) throw std::runtime_error(core.error().message);
    server.core = std::make_unique<RaftCore>(std::move(*core));
    server.applied.clear();
    server.up = true;
    collect(number);
  }
  /// Loses what is not on disk.
  void crash(uint8_t number) {
    servers_[number].writes.clear();
    servers_[number].up = false;
  }

  Server& operator[](uint8_t number) { return servers_.at(number); }
  RaftCore& core(uint8_t number) { return *servers_.at(number).core; }
  std::deque<RaftMessage>& wire() { return wire_; }

  void collect(uint8_t number) {
    Server& server = servers_.at(number);
    while (server.core->has_actions()) {
      RaftActions actions = server.core->take_actions();
      if (actions.persist) {
        server.writes.push_back(std::move(*actions.persist));
        if (!server.slow_disk) finish_one_write(number);
      }
      for (RaftMessage& message : actions.messages) wire_.push_back(std::move(message));
      for (RaftSnapshotSend& send : actions.snapshots) wire_.push_back(std::move(send.message));
      for (RaftEntry& entry : actions.committed) server.applied.push_back(std::move(entry));
      for (const RaftReadState& read : actions.reads) server.reads.push_back(read);
    }
  }
  void finish_one_write(uint8_t number) {
    Server& server = servers_.at(number);
    RaftPersist write = std::move(server.writes.front());
    server.writes.pop_front();
    RaftStored& disk = server.disk;
    if (write.snapshot) {
      disk.snapshot = *write.snapshot;
      disk.entries.clear();
    }
    if (write.truncate_from) {
      while (!disk.entries.empty() && disk.entries.back().index >= *write.truncate_from) {
        disk.entries.pop_back();
      }
    }
    for (RaftEntry& entry : write.entries) disk.entries.push_back(std::move(entry));
    if (write.drop_through) {
      std::erase_if(disk.entries,
                    [&](const RaftEntry& entry) { return entry.index <= *write.drop_through; });
    }
    disk.hard_state = write.hard_state;
    server.core->persisted(write.sequence);
  }
  void finish_writes(uint8_t number) {
    while (!servers_.at(number).writes.empty()) {
      finish_one_write(number);
      collect(number);
    }
  }

  /// Hands over the first message on the wire that fits; false if there is none.
  bool deliver_one(const std::function<bool(const RaftMessage&)>& fits) {
    for (auto at = wire_.begin(); at != wire_.end(); ++at) {
      if (!fits(*at)) continue;
      RaftMessage message = std::move(*at);
      wire_.erase(at);
      give(std::move(message));
      return true;
    }
    return false;
  }
  Result<void> give(RaftMessage message) {
    const uint8_t to = number_of(message.to);
    if (!servers_.contains(to) || !servers_.at(to).up) return {};
    Result<void> received = core(to).receive(std::move(message));
    collect(to);
    return received;
  }
  /// Until the wire is empty; messages between `cut` servers and others are lost.
  void settle(std::initializer_list<uint8_t> cut = {}) {
    const auto is_cut = [&](RaftServerId server) {
      return std::find(cut.begin(), cut.end(), number_of(server)) != cut.end();
    };
    while (!wire_.empty()) {
      RaftMessage message = std::move(wire_.front());
      wire_.pop_front();
      if (is_cut(message.from) || is_cut(message.to)) continue;
      static_cast<void>(give(std::move(message)));
    }
  }
  void lose_all() { wire_.clear(); }
  void tick(uint8_t number, int times = 1) {
    for (int i = 0; i < times; ++i) {
      core(number).tick();
      collect(number);
    }
  }
  /// Ticks one server until it campaigns; the messages stay on the wire.
  void time_out(uint8_t number) {
    for (int i = 0; i < 1000; ++i) {
      const RaftTerm term = core(number).term();
      tick(number);
      const RaftRole role = core(number).role();
      if (role == RaftRole::kPreCandidate || core(number).term() > term) return;
    }
  }
  /// Makes one lead, once nobody is loyal to another; messages of the `cut` are lost.
  void elect(uint8_t number, std::initializer_list<uint8_t> cut = {}) {
    for (auto& [other, server] : servers_) {
      if (server.up && other != number && server.core->role() != RaftRole::kLeader) {
        for (uint32_t i = 0; i < server.core->options().election_ticks; ++i) server.core->tick();
        collect(other);
      }
    }
    lose_all();
    for (int i = 0; i < 20 && core(number).role() != RaftRole::kLeader; ++i) {
      time_out(number);
      settle(cut);
    }
  }
  RaftPosition propose(uint8_t number, std::string data) {
    const RaftPosition position = core(number).propose(std::move(data)).value();
    collect(number);
    return position;
  }
  Result<RaftPosition> change(uint8_t number, RaftMembershipChange::Kind kind, uint8_t server) {
    Result<RaftPosition> position = core(number).change_configuration({kind, id(server)});
    collect(number);
    return position;
  }
  RaftMessage message(uint8_t from, uint8_t to, RaftTerm term, RaftMessageBody body) const {
    return {uuid_of(200), RaftGroupId{9}, id(from), id(to), term, std::move(body)};
  }
  /// Messages on the wire of one kind.
  template <class Body>
  std::vector<std::pair<RaftMessage, Body>> on_wire() const {
    std::vector<std::pair<RaftMessage, Body>> found;
    for (const RaftMessage& each : wire_) {
      if (const auto* body = std::get_if<Body>(&each.body)) found.emplace_back(each, *body);
    }
    return found;
  }

 private:
  Tune tune_;
  std::map<uint8_t, Server> servers_;
  std::deque<RaftMessage> wire_;
};

}  // namespace tetrad::replication::test
