// SPDX-License-Identifier: Apache-2.0
// What comes over the servers of a RaftCluster while it runs: faults, commands, reads, changes of
// members, hand-overs, snapshots, and what they hear of one another beside Raft's messages.
#include <cstdio>

#include "tests/simulation/raft/raft_cluster.h"

namespace tetrad::replication {

void RaftCluster::split() {
  const uint64_t sides = random_.next();
  for (size_t i = 0; i < kServersMax; ++i) {
    for (size_t j = 0; j < kServersMax; ++j) {
      cut_[i][j] = ((sides >> i) & 1) != ((sides >> j) & 1);
    }
  }
}

void RaftCluster::fault() {
  Server* const leads = leader();
  Server& target = weather_.leader_bias && leads != nullptr ? *leads : any_server();
  const size_t place = place_of(target.id);
  switch (random_.below(11)) {
    case 0:
    case 1:
      crash(place);
      break;
    case 2:
      for (size_t i = 0; i < started_; ++i) {
        if (random_.one_in(2)) crash(i);
      }
      break;
    case 3:
      for (size_t i = 0; i < kServersMax; ++i) cut_[place][i] = cut_[i][place] = true;
      break;
    case 4:
      split();
      break;
    case 5: {
      const bool deaf = random_.one_in(2);
      for (size_t i = 0; i < kServersMax; ++i) (deaf ? cut_[i][place] : cut_[place][i]) = true;
      break;
    }
    case 6:
      cut_[place][random_.below(started_)] = true;
      break;
    case 7:
    case 8:
      cut_ = {};
      break;
    case 9:
      target.paused_until = now_ + random_.below(40 * kTickUnits);
      break;
    case 10:  // the clock jumps
      if (target.core) tick(target, 1 + static_cast<uint32_t>(random_.below(30)));
      break;
  }
}

void RaftCluster::propose() {
  Server* server = random_.one_in(8) ? &any_server() : leader();
  if (server == nullptr || !server->core) return;
  Bytes command;
  base::ByteWriter(command).u64(next_command_++);
  if (server->core->propose(std::move(command))) drain(*server);
}

void RaftCluster::read() {
  Server* server = random_.one_in(2) ? &any_server() : leader();
  if (server == nullptr || !server->core) return;
  oracle_.on_read_asked(next_context_);
  if (server->core->read_index(next_context_++)) drain(*server);
}

void RaftCluster::change(Server* server) {
  if (server == nullptr || !server->core || server->core->role() != RaftRole::kLeader) return;
  using Kind = RaftMembershipChange::Kind;
  const RaftConfiguration& members = server->core->configuration();
  RaftMembershipChange wish{Kind::kAddLearner, {}};
  uint64_t choice = random_.below(5);
  if (weather_.even_voters && !random_.one_in(4)) {
    choice = members.voters.size() >= 4 ? 3 : members.learners.empty() ? 0 : 2;
  }
  switch (choice) {
    case 0:
    case 1: {
      if (members.servers().size() >= 6) return;
      if (started_ < kServersMax && random_.one_in(3)) {
        start(started_++);
        wish.server = servers_[started_ - 1].id;
      } else {
        wish.server = any_server().id;
      }
      break;
    }
    case 2:
      if (members.learners.empty() || members.voters.size() >= 5) return;
      wish = {Kind::kPromote, members.learners[random_.below(members.learners.size())]};
      break;
    case 3:
      wish = {Kind::kDemote, members.voters[random_.below(members.voters.size())]};
      break;
    case 4: {
      const std::vector<RaftServerId> all = members.servers();
      wish = {Kind::kRemove, all[random_.below(all.size())]};
      break;
    }
  }
  const Result<RaftPosition> position = server->core->change_configuration(wish);
  if (!position) return;
  if (trace_) {
    std::printf("%6lu %lu changes members: kind %d of %lu at %lu\n", now_, place_of(server->id),
                static_cast<int>(wish.kind), place_of(wish.server), position->index);
  }
  drain(*server);
}

void RaftCluster::transfer() {
  Server* server = leader();
  if (server == nullptr) return;
  if (server->core->transfer_leadership(any_server().id)) drain(*server);
}

void RaftCluster::take_snapshot() {
  Server& server = any_server();
  if (!server.core || server.applied <= server.core->log().snapshot().index) return;
  const Result<RaftSnapshotMeta> meta = server.core->snapshot_meta(server.applied);
  if (!meta) throw Violation{"no snapshot: " + meta.error().message};
  server.writes.push_back({std::nullopt, {*meta, server.chain}});
  schedule(random_.below(weather_.disk_max), EventKind::kDisk, place_of(server.id), server.life);
}

void RaftCluster::tell() {
  const Server& from = any_server();
  const Server& to = any_server();
  if (!from.core || from.id == to.id) return;
  const auto term = from.core->log().term_at(from.applied);
  if (!term) return;
  rumours_.push_back({place_of(from.id), place_of(to.id), from.applied, *term});
  // Rumours are slow at times, and outlive the one who told them.
  const uint64_t late = random_.one_in(4) ? weather_.late_max : weather_.delay_max;
  schedule(1 + random_.below(late), EventKind::kHear, place_of(to.id),
           static_cast<uint32_t>(rumours_.size() - 1));
}

void RaftCluster::hear(const Rumour& rumour) {
  Server& server = servers_[rumour.to];
  if (!server.core || now_ < server.paused_until || cut_[rumour.from][rumour.to]) return;
  if (trace_)
    std::printf("%6lu %zu hears from %zu that %lu of term %lu is applied\n", now_, rumour.to,
                rumour.from, rumour.index, rumour.term);
  server.core->learn_committed(rumour.index, rumour.term, servers_[rumour.from].id);
  drain(server);
}

}  // namespace tetrad::replication
