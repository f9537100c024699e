// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/raft/raft_cluster.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>

namespace tetrad::replication {
namespace {

constexpr uint64_t kNever = 1'000'000'000;
constexpr uint64_t kCluster = 7, kGroup = 1;

template <class T>
T one_of(base::Random& random, std::initializer_list<T> choices) {
  return choices.begin()[random.below(choices.size())];
}

Uuid uuid_of(uint8_t number) {
  Uuid uuid;
  uuid.octets[0] = 0xA5;
  uuid.octets[15] = number;
  return uuid;
}

}  // namespace

RaftWeather RaftWeather::draw(base::Random& random) {
  RaftWeather weather;
  weather.servers = one_of<size_t>(random, {1, 2, 3, 3, 3, 3, 3, 3, 4, 4, 5, 5, 5, 5});
  weather.election_ticks = 5 + static_cast<uint32_t>(random.below(8));
  weather.heartbeat_ticks = 1 + static_cast<uint32_t>(random.below(2));
  weather.duration = 3000 + random.below(3000);
  weather.loss_per_mille = one_of<uint64_t>(random, {0, 10, 50, 200});
  weather.duplicate_per_mille = one_of<uint64_t>(random, {0, 20, 100});
  weather.late_per_mille = one_of<uint64_t>(random, {0, 20, 100});
  weather.delay_max = one_of<uint64_t>(random, {3, 10, 40});
  weather.late_max = 100 + random.below(500);
  weather.disk_max = one_of<uint64_t>(random, {1, 5, 20, 60});
  weather.fault_gap = one_of<uint64_t>(random, {60, 150, 400, 1000});
  weather.propose_gap = one_of<uint64_t>(random, {8, 30, 100});
  weather.read_gap = one_of<uint64_t>(random, {30, 100, kNever});
  weather.change_gap = one_of<uint64_t>(random, {40, 150, 500, kNever});
  weather.transfer_gap = one_of<uint64_t>(random, {150, 800, kNever});
  weather.snapshot_gap = one_of<uint64_t>(random, {40, 200, kNever});
  weather.rumour_gap = one_of<uint64_t>(random, {10, 40, 200, kNever});
  weather.restart_max = one_of<uint64_t>(random, {50, 200, 600});
  weather.leader_bias = random.one_in(2);
  weather.keep_disks_prefix = random.one_in(2);
  weather.eager_changes = weather.change_gap != kNever && random.one_in(2);
  weather.eager_faults = random.one_in(4);
  weather.even_voters = false;
  weather.single_entries = random.one_in(4);
  if (random.one_in(3)) {  // a storm: leaders come and go before their entries are anywhere
    weather.fault_gap = 15 + random.below(50);
    weather.restart_max = 10 + random.below(80);
    weather.election_ticks = 4 + static_cast<uint32_t>(random.below(3));
    weather.delay_max = one_of<uint64_t>(random, {3, 10});
    weather.disk_max = one_of<uint64_t>(random, {1, 5, 10});
    weather.leader_bias = true;
    if (weather.eager_changes && random.one_in(2)) {  // majorities that differ by one: Ongaro 2015
      weather.servers = 4;
      weather.change_gap = 20;
      weather.even_voters = true;
      weather.fault_gap = 80 + random.below(150);
      weather.restart_max = 50;
      weather.eager_faults = true;
    }
  }
  return weather;
}

RaftServerId RaftCluster::id_of(size_t place) {
  return RaftServerId{uuid_of(static_cast<uint8_t>(place + 1))};
}

RaftCluster::RaftCluster(uint64_t seed, RaftMutants mutants, bool trace)
    : random_(seed),
      mutants_(mutants),
      trace_(trace),
      weather_(RaftWeather::draw(random_)),
      oracle_(
          [this] {
            std::vector<const RaftDisk*> disks;
            for (Server& server : servers_) disks.push_back(&server.disk);
            return disks;
          }(),
          &RaftCluster::place_of) {
  RaftConfiguration founders;
  for (size_t place = 0; place < weather_.servers; ++place) {
    founders.voters.push_back(id_of(place));
  }
  for (size_t place = 0; place < kServersMax; ++place) servers_[place].id = id_of(place);
  for (size_t place = 0; place < weather_.servers; ++place) {
    RaftStored stored = RaftStored::founding(founders);
    servers_[place].disk.hard_state = stored.hard_state;
    servers_[place].disk.image.meta = std::move(stored.snapshot);
    start(place);
  }
  started_ = weather_.servers;
  schedule(gap(weather_.fault_gap), EventKind::kFault);
  schedule(gap(weather_.propose_gap), EventKind::kPropose);
  schedule(gap(weather_.read_gap), EventKind::kRead);
  schedule(gap(weather_.change_gap), EventKind::kChange);
  schedule(gap(weather_.transfer_gap), EventKind::kTransfer);
  schedule(gap(weather_.snapshot_gap), EventKind::kSnapshot);
  schedule(gap(weather_.rumour_gap), EventKind::kTell);
}

RaftOptions RaftCluster::options_for(size_t place) {
  RaftOptions options;
  options.self = servers_[place].id;
  options.cluster_id = uuid_of(kCluster);
  options.group_id = RaftGroupId{kGroup};
  options.seed = random_.next();
  options.election_ticks = weather_.election_ticks;
  options.heartbeat_ticks = weather_.heartbeat_ticks;
  options.message_bytes_max = one_of<size_t>(random_, {1, 1, 1000, 100'000});
  if (weather_.single_entries) options.message_bytes_max = 1;
  // One entry at a time and unanswered would be too slow to catch up with in time.
  options.in_flight_max = options.message_bytes_max == 1 ? one_of<size_t>(random_, {8, 32})
                                                         : one_of<size_t>(random_, {1, 2, 8, 32});
  options.apply_bytes_max = one_of<size_t>(random_, {1, 200, 100'000});
  options.persists_in_flight_max = one_of<size_t>(random_, {1, 2, 5});
  options.trailing_entries = one_of<size_t>(random_, {0, 1, 10, 100});
  options.promotion_lag_max = one_of<RaftIndex>(random_, {0, 5, 64});
  options.snapshot_timeout_ticks = 30;
  options.mutants = mutants_;
  return options;
}

void RaftCluster::schedule(uint64_t delay, EventKind kind, size_t server, uint32_t life) {
  events_.push({now_ + delay, ++order_, kind, static_cast<uint32_t>(server), life});
}

void RaftCluster::start(size_t place) {
  Server& server = servers_[place];
  RaftStored stored;
  stored.hard_state = server.disk.hard_state;
  stored.snapshot = server.disk.image.meta;
  stored.entries.assign(server.disk.entries.begin(), server.disk.entries.end());
  Result<RaftCore> core = RaftCore::make(options_for(place), std::move(stored));
  if (!core) throw Violation{"a server cannot start: " + core.error().message};
  server.core = std::make_unique<RaftCore>(std::move(*core));
  ++server.life;
  server.applied = server.disk.image.meta.index;
  server.chain = server.disk.image.chain;
  server.commit_seen = server.applied;
  server.paused_until = 0;
  server.tick_units = healed_ ? kTickUnits : kTickUnits - 2 + random_.below(5);
  schedule(1 + random_.below(server.tick_units), EventKind::kTick, place, server.life);
  drain(server);
}

void RaftCluster::crash(size_t place) {
  Server& server = servers_[place];
  if (!server.core) return;
  if (trace_) std::printf("%6lu crash %zu\n", now_, place);
  ++summary_.crashes;
  // Writes under way happened up to some point, or not at all.
  size_t done = weather_.keep_disks_prefix ? random_.below(server.writes.size() + 1) : 0;
  for (; done > 0; --done) {
    const Write& write = server.writes.front();
    if (write.persist) {
      server.disk.apply(*write.persist, write.image);
    } else if (write.image.meta.index > server.disk.image.meta.index) {
      server.disk.image = write.image;
    }
    server.writes.pop_front();
  }
  server.writes.clear();
  server.core.reset();
  ++server.life;
  schedule(1 + random_.below(weather_.restart_max), EventKind::kRestart, place, server.life);
}

void RaftCluster::tick(Server& server, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    server.core->tick();
    drain(server);
  }
}

void RaftCluster::post(InFlight letter) {
  const size_t from = place_of(letter.message.from), to = place_of(letter.message.to);
  if (random_.below(1000) < weather_.duplicate_per_mille) {
    InFlight copy = letter;
    uint32_t slot = static_cast<uint32_t>(letters_.size());
    if (free_letters_.empty()) {
      letters_.push_back(std::move(copy));
    } else {
      slot = free_letters_.back();
      free_letters_.pop_back();
      letters_[slot] = std::move(copy);
    }
    schedule(1 + random_.below(weather_.late_max), EventKind::kDeliver, to, slot);
  }
  const bool lost = cut_[from][to] || random_.below(1000) < weather_.loss_per_mille;
  if (lost) {
    // Sometimes the sender's driver notices.
    Server& sender = servers_[from];
    if (sender.core && random_.one_in(4)) {
      if (std::holds_alternative<RaftInstallSnapshot>(letter.message.body)) {
        sender.core->snapshot_sent(letter.message.to, false);
      } else {
        sender.core->peer_unreachable(letter.message.to);
      }
    }
    return;
  }
  uint64_t delay = 1 + random_.below(weather_.delay_max);
  if (random_.below(1000) < weather_.late_per_mille) delay += random_.below(weather_.late_max);
  uint32_t slot = static_cast<uint32_t>(letters_.size());
  if (free_letters_.empty()) {
    letters_.push_back(std::move(letter));
  } else {
    slot = free_letters_.back();
    free_letters_.pop_back();
    letters_[slot] = std::move(letter);
  }
  schedule(delay, EventKind::kDeliver, to, slot);
}

void RaftCluster::deliver(InFlight letter) {
  const size_t from = place_of(letter.message.from), to = place_of(letter.message.to);
  Server& server = servers_[to];
  if (!server.core) return;
  if (now_ < server.paused_until) {
    const uint64_t delay = server.paused_until - now_ + random_.below(10);
    letters_.push_back(std::move(letter));
    schedule(delay, EventKind::kDeliver, to, static_cast<uint32_t>(letters_.size() - 1));
    return;
  }
  if (trace_) {
    std::printf("%6lu %zu -> %zu term %lu %s\n", now_, from, to, letter.message.term,
                name_of(letter.message.body));
  }
  note(letter.message.body.index() * 64 + from * 8 + to);
  if ((handled_ & 63) == 0) {
    Bytes bytes;
    base::ByteWriter writer(bytes);
    encode(letter.message, writer);
    const Result<RaftMessage> decoded = decode_raft_message(bytes);
    if (!decoded || *decoded != letter.message) throw Violation{"a message changed on the wire"};
  }
  const bool install = std::holds_alternative<RaftInstallSnapshot>(letter.message.body);
  server.image_arriving_chain = letter.chain;
  const auto* asks = std::get_if<RaftPreVoteRequest>(&letter.message.body);
  const bool behind =
      asks != nullptr && !server.core->log().is_up_to_date(asks->last_index, asks->last_term);
  const Result<void> received = server.core->receive(std::move(letter.message));
  if (!received) throw Violation{"a message was refused: " + received.error().message};
  if (behind) {
    RaftActions actions = server.core->take_actions();
    for (RaftMessage& message : actions.messages) {
      const auto* reply = std::get_if<RaftPreVoteReply>(&message.body);
      if (reply != nullptr && reply->granted) throw Violation{"a pre-vote for a shorter log"};
      post({std::move(message), 0});
    }
    if (actions.persist || !actions.committed.empty()) {
      throw Violation{"a pre-vote changed something"};
    }
  }
  drain(server);
  if (install && servers_[from].core && !random_.one_in(4)) {
    servers_[from].core->snapshot_sent(server.id, true);
    drain(servers_[from]);
  }
}

void RaftCluster::disk_done(Server& server) {
  if (server.writes.empty()) return;
  Write write = std::move(server.writes.front());
  server.writes.pop_front();
  if (!write.persist) {
    if (write.image.meta.index < server.disk.image.meta.index) return;
    server.disk.image = write.image;
    static_cast<void>(server.core->snapshot_taken(write.image.meta));
    drain(server);
    return;
  }
  server.disk.apply(*write.persist, write.image);
  if (write.persist->snapshot) {
    oracle_.on_image(write.image);
    ++summary_.images_installed;
    server.applied = write.image.meta.index;
    server.chain = write.image.chain;
  }
  // The report of a later write includes this one.
  const bool more = std::any_of(server.writes.begin(), server.writes.end(),
                                [](const Write& later) { return later.persist.has_value(); });
  if (more && random_.one_in(4)) return;
  server.core->persisted(write.persist->sequence);
  drain(server);
}

void RaftCluster::drain(Server& server) {
  RaftCore& core = *server.core;
  const size_t place = place_of(server.id);
  while (core.has_actions()) {
    RaftActions actions = core.take_actions();
    oracle_.on_commit(core, server.commit_seen);
    server.commit_seen = core.commit_index();
    if (actions.role_change) {
      if (trace_) {
        std::printf("%6lu %zu role %d term %lu last %lu commit %lu voters %zu\n", now_, place,
                    static_cast<int>(core.role()), core.term(), core.last_index(),
                    core.commit_index(), core.configuration().voters.size());
      }
      note(core.term() * 8 + static_cast<uint64_t>(core.role()));
      if (core.role() == RaftRole::kLeader) {
        oracle_.on_leader(core);
        if (weather_.eager_faults && random_.one_in(2)) {
          schedule(random_.below(2 * weather_.delay_max), EventKind::kEagerFault);
        }
        if (weather_.eager_changes) schedule(random_.below(5), EventKind::kEagerChange, place);
      }
    }
    if (actions.persist) {
      oracle_.on_entries(core, actions.persist->entries);
      Write write;
      if (actions.persist->snapshot) {
        write.image = {*actions.persist->snapshot, server.image_arriving_chain};
      }
      write.persist = std::move(actions.persist);
      server.writes.push_back(std::move(write));
      schedule(random_.below(weather_.disk_max), EventKind::kDisk, place, server.life);
    }
    for (RaftMessage& message : actions.messages) {
      oracle_.on_send(core, server.disk, message);
      post({std::move(message), 0});
    }
    for (RaftSnapshotSend& send : actions.snapshots) {
      auto& install = std::get<RaftInstallSnapshot>(send.message.body);
      if (server.disk.image.meta.index < install.meta.index) {
        throw Violation{"an image to be sent that is not on disk"};
      }
      install.meta = server.disk.image.meta;
      post({std::move(send.message), server.disk.image.chain});
    }
    for (const RaftEntry& entry : actions.committed) {
      if (entry.index != server.applied + 1) throw Violation{"entries applied out of order"};
      if (server.disk.last_index() < entry.index) {
        throw Violation{"an entry applied before it is on disk"};
      }
      server.chain = oracle_.on_apply(entry, server.chain);
      server.applied = entry.index;
      note(server.chain);
    }
    for (const RaftReadState& state : actions.reads) oracle_.on_read_state(state);
  }
}

RaftCluster::Server* RaftCluster::leader() {
  Server* found = nullptr;
  size_t count = 0;
  for (size_t place = 0; place < started_; ++place) {
    Server& server = servers_[place];
    if (!server.core || server.core->role() != RaftRole::kLeader) continue;
    if (random_.one_in(++count)) found = &server;
  }
  return found;
}

void RaftCluster::handle(const Event& event) {
  Server& server = servers_[event.server];
  switch (event.kind) {
    case EventKind::kTick:
      if (event.life != server.life) return;
      if (now_ < server.paused_until) {
        schedule(server.paused_until - now_, EventKind::kTick, event.server, event.life);
        return;
      }
      schedule(server.tick_units, EventKind::kTick, event.server, event.life);
      tick(server, 1);
      return;
    case EventKind::kDeliver: {
      InFlight letter = std::move(letters_[event.life]);
      free_letters_.push_back(event.life);
      deliver(std::move(letter));
      return;
    }
    case EventKind::kDisk:
      if (event.life == server.life && server.core) disk_done(server);
      return;
    case EventKind::kRestart:
      if (event.life == server.life) start(event.server);
      return;
    case EventKind::kHear:
      return hear(rumours_[event.life]);
    default:
      break;
  }
  if (healed_) return;
  switch (event.kind) {
    case EventKind::kFault:
      schedule(gap(weather_.fault_gap), EventKind::kFault);
      return fault();
    case EventKind::kPropose:
      schedule(gap(weather_.propose_gap), EventKind::kPropose);
      return propose();
    case EventKind::kRead:
      schedule(gap(weather_.read_gap), EventKind::kRead);
      return read();
    case EventKind::kChange:
      schedule(gap(weather_.change_gap), EventKind::kChange);
      return change(leader());
    case EventKind::kEagerChange:
      return change(&server);
    case EventKind::kEagerFault:
      return random_.one_in(3) ? fault() : split();
    case EventKind::kTransfer:
      schedule(gap(weather_.transfer_gap), EventKind::kTransfer);
      return transfer();
    case EventKind::kTell:
      schedule(gap(weather_.rumour_gap), EventKind::kTell);
      return tell();
    case EventKind::kSnapshot:
      schedule(gap(weather_.snapshot_gap), EventKind::kSnapshot);
      return take_snapshot();
    default:
      return;
  }
}

void RaftCluster::run_until(uint64_t until) {
  while (!events_.empty() && events_.top().at <= until) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    ++handled_;
    handle(event);
  }
  now_ = until;
}

void RaftCluster::heal() {
  if (trace_) std::printf("%6lu healed\n", now_);
  healed_ = true;
  cut_ = {};
  weather_.loss_per_mille = weather_.duplicate_per_mille = weather_.late_per_mille = 0;
  weather_.delay_max = 5;
  weather_.disk_max = 3;
  for (size_t place = 0; place < started_; ++place) {
    servers_[place].paused_until = 0;
    servers_[place].tick_units = kTickUnits;
    if (!servers_[place].core) start(place);
  }
}

/// A leader with a commit of its own term, then a command applied by every member, then a read. One
/// in three times one server stays deaf: it speaks but hears nothing, and must not matter.
void RaftCluster::demand_progress() {
  const uint64_t timeout_units = 2 * weather_.election_ticks * kTickUnits;
  const uint64_t healed_at = now_;
  size_t deaf = kServersMax;
  if (random_.one_in(3)) {
    Server* const leads = leader();
    deaf = place_of((leads != nullptr ? *leads : any_server()).id);
    // While a change is under way a group needs the majorities of both configurations. A candidate
    // whose log promotes a server may then lack just the vote of that server, when it is a learner
    // by its own, better log: nobody wins until the deaf one is back. So no change under way here.
    const std::vector<RaftServerId>& voters = servers_[deaf].core->configuration().voters;
    for (size_t place = 0; place < started_; ++place) {
      const RaftConfiguration& members = servers_[place].core->configuration();
      const bool enough = members.majority([&](RaftServerId id) { return id != id_of(deaf); });
      if (members.voters != voters || !enough) {
        deaf = kServersMax;
        break;
      }
    }
  }
  if (deaf != kServersMax) {
    for (size_t place = 0; place < kServersMax; ++place) cut_[place][deaf] = true;
    if (trace_) std::printf("%6lu %zu is deaf\n", now_, deaf);
  }
  const auto find_leader = [&]() -> Server* {
    for (size_t place = 0; place < started_; ++place) {
      if (place != deaf && servers_[place].core->ready_to_lead()) return &servers_[place];
    }
    return nullptr;
  };
  while (find_leader() == nullptr) {
    if (now_ - healed_at > 10 * timeout_units) {
      throw Violation{"no leader with a commit within 10 election timeouts"};
    }
    run_until(now_ + kTickUnits);
  }
  summary_.election_timeouts_to_commit =
      static_cast<double>(now_ - healed_at) / static_cast<double>(timeout_units);

  const uint64_t led_at = now_;
  RaftPosition asked;
  uint64_t reads_before = oracle_.reads_confirmed();
  while (true) {
    Server* const leads = find_leader();
    if (leads != nullptr && leads->core->term() != asked.term) {
      Bytes command;
      base::ByteWriter(command).u64(next_command_++);
      const Result<RaftPosition> position = leads->core->propose(std::move(command));
      if (position) {
        asked = *position;
        reads_before = oracle_.reads_confirmed();
        oracle_.on_read_asked(next_context_);
        static_cast<void>(leads->core->read_index(next_context_++));
        drain(*leads);
      }
    } else if (leads != nullptr && oracle_.reads_confirmed() > reads_before) {
      const std::vector<RaftServerId> members = leads->core->configuration().servers();
      const bool all = std::all_of(members.begin(), members.end(), [&](RaftServerId id) {
        return place_of(id) == deaf || servers_[place_of(id)].applied >= asked.index;
      });
      if (all) return;
    }
    if (now_ - led_at > 20 * timeout_units) {
      throw Violation{"a command or a read did not reach everyone within 20 election timeouts"};
    }
    run_until(now_ + kTickUnits);
  }
}

RaftRunSummary RaftCluster::run() {
  run_until(weather_.duration);
  heal();
  demand_progress();
  summary_.events = handled_;
  summary_.committed = oracle_.committed_last();
  summary_.reads = oracle_.reads_confirmed();
  summary_.leaders = oracle_.leaders();
  summary_.configurations = oracle_.configurations();
  note(handled_);
  summary_.trace_hash = hash_;
  return summary_;
}

}  // namespace tetrad::replication
