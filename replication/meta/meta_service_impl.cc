// SPDX-License-Identifier: Apache-2.0
// State, listeners and voters of the metadata group on one node; proposals are in meta_proposals.cc,
// schema changes in meta_schema_change.cc.
//
// Each applied command makes a new immutable MetaState, which listeners on shard 0 get at once and
// the fronts of other shards by a post. Everything here runs on shard 0.
#include "replication/meta/meta_service_impl.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/meta/voter_policy.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kForgetUs = 1'000'000;  // for a command that is proposed again if it is lost
constexpr int64_t kVoterPeriodUs = 100'000;
constexpr RaftIndex kPromotionLagMax = 16;
// Above this many dropped incarnations the oldest half is forgotten, when all nodes have applied
// their drops.
constexpr size_t kRetiredMax = 4096;
constexpr int64_t kTellRemovedUs = 2'000'000;  // a node hears of its own removal

std::string_view name_of(RaftMembershipChange::Kind kind) {
  switch (kind) {
    case RaftMembershipChange::Kind::kAddLearner:
      return "learner";
    case RaftMembershipChange::Kind::kPromote:
      return "voter";
    case RaftMembershipChange::Kind::kDemote:
      return "demoted";
    case RaftMembershipChange::Kind::kRemove:
      return "removed";
  }
  return "unknown";
}

}  // namespace

// A store in trouble counts as down, though its node lives.
bool MetaService::is_replica_live(const StoreAddress& replica) const {
  return is_live(replica.host) &&
         (!is_absent(state_of(replica)) || TETRAD_MUTANT(failed_store_live));
}

MetaServiceImpl::MetaServiceImpl(base::Reactor& reactor, base::Random& random,
                                 storage::LocalLog& log, RpcNode& rpc, Membership& membership,
                                 MetaServiceOptions options, Logger logger)
    : reactor_(reactor),
      random_(random),
      log_(log),
      rpc_(rpc),
      membership_(membership),
      options_(std::move(options)),
      logger_(std::move(logger)) {
  rpc_.handle(Verb::kPropose,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                tasks_.spawn(serve_proposal(Bytes(body), context.deadline, std::move(reply)));
              });
  membership_.on_liveness([this](HostId host, bool live) {
    note_liveness(host, live);
    on_liveness_changed();
  });
  membership_.on_heartbeat([this](HostId from, AppliedEntry entry) { on_heartbeat(from, entry); });
  // Heartbeats name the leader; a node names itself only while it is ready to lead.
  membership_.set_leader_source([this]() -> std::optional<HostId> {
    if (!driver_ || (driver_->core().leader() == self() && !is_leader())) return std::nullopt;
    return driver_->core().leader();
  });
}

MetaServiceImpl::~MetaServiceImpl() {
  membership_.on_liveness(nullptr);
  membership_.on_heartbeat(nullptr);
  membership_.set_leader_source(nullptr);
  rpc_.handle(Verb::kPropose, nullptr);
  if (voter_timer_ != 0) reactor_.cancel(voter_timer_);
}

Result<void> MetaServiceImpl::start(Uuid cluster_id, RaftDriver::Stored stored) {
  TETRAD_ASSERT(!driver_);
  RaftDriverOptions options;
  options.cluster_id = cluster_id;
  options.seed = random_.next();
  options.tick_us = options_.tick_us;
  options.snapshot_every = options_.snapshot_every;
  RaftDriverHooks hooks;
  hooks.apply = [this](RaftIndex index, BytesView command) { return on_apply(index, command); };
  hooks.applied = [this](RaftIndex index) { on_applied(index); };
  hooks.image = [this] {
    Bytes image;
    encode_meta_state(*state_, image);
    return image;
  };
  hooks.install = [this](BytesView image, RaftIndex index) { return on_install(image, index); };
  hooks.role_changed = [this](const RaftRoleChange& change) { on_role_change(change); };
  hooks.is_removed = [this](HostId host) {
    const NodeInfo* node = state_->node(host);
    return node != nullptr && node->state == NodeState::kRemoved;
  };
  hooks.fatal = [this](const Error& error) {
    if (options_.fatal) options_.fatal(error);
  };
  rpc_.set_cluster_id(cluster_id);
  driver_ = std::make_unique<RaftDriver>(reactor_, log_, rpc_, options, std::move(hooks),
                                         logger_.named("raft"));
  TETRAD_TRY_VOID(driver_->start(std::move(stored)));
  // What came with an image has no entry of its own.
  tell_applied();
  // Listeners of membership are registered before the first heartbeat can come.
  membership_.start();
  manage_voters();
  return {};
}

MetaIndex MetaServiceImpl::applied_index() const {
  return driver_ ? MetaIndex{driver_->applied_index()} : MetaIndex();
}

void MetaServiceImpl::sync_applied(std::function<void()> done) {
  if (driver_) driver_->sync_applied(std::move(done));
}

// Applying.

Result<void> MetaServiceImpl::on_apply(RaftIndex index, BytesView encoded) {
  const auto command = decode_meta_command(encoded, options_.format);
  if (!command && TETRAD_MUTANT(unread_command_skipped)) return {};
  if (!command) {
    // Nodes with a later program apply it: who left it out would have another state for good.
    return fail(command.error().code,
                "the committed metadata command {} cannot be read by this program ({}); start the "
                "program of the other nodes",
                index, command.error().message);
  }
  // The members of now: until here writes of the old tables could be acknowledged by them.
  // Whose tablets were dropped or truncated must be known by the state before the command (rule
  // 29).
  const auto fencing = to_fence_.find(command->id);
  if (fencing != to_fence_.end() && !fencing->second) {
    const auto* change = std::get_if<SchemaChange>(&command->body);
    if (change != nullptr) fencing->second = sets_to_fence(*state_, *change);
  }
  MetaApplied applied = apply_meta_command(state_, MetaIndex{index}, *command);
  // A command that came twice changes nothing the second time.
  TETRAD_ASSERT(applied.state == state_ || applied.state->applied == MetaIndex{index});
  // The proposer waits for word that this node has applied it; a heartbeat out of turn brings it
  // (tell_applied).
  if (command->origin != self()) to_tell_.emplace_back(MetaIndex{index}, command->origin);
  const auto awaited = awaited_.extract(command->id);
  if (applied.state != state_) publish(std::move(applied.state));
  if (awaited) {
    // After this batch: resumed tasks may propose again.
    reactor_.post([alive = std::weak_ptr<char>(alive_), setters = std::move(awaited.mapped()),
                   answer = Answer{MetaIndex{index}, applied.outcome}] {
      for (const AnswerSetter& setter : setters)
        if (!alive.expired()) setter.set(answer);
    });
  }
  return {};
}

// What all shards of this node have: a change counts as applied when every shard works with it.
MetaIndex MetaServiceImpl::applied_by_shards() const {
  return fronts_applied_ < state_->applied ? fronts_applied_ : applied_index();
}

void MetaServiceImpl::set_fronts_applied(MetaIndex index) {
  fronts_applied_ = index;
  tell_applied();
}

// Heartbeats carry it, so other nodes can wait for this one.
void MetaServiceImpl::tell_applied() {
  const MetaIndex applied = applied_by_shards();
  TETRAD_ASSERT(!driver_ || !(applied_index() < applied));
  AppliedEntry entry;
  if (driver_) {
    const RaftPosition position = driver_->applied_position();
    entry = {position.index, position.term};
  }
  membership_.set_applied(applied, entry);
  std::set<HostId> told;
  std::erase_if(to_tell_, [&](const auto& waiting) {
    if (applied < waiting.first) return false;
    if (told.insert(waiting.second).second) membership_.beat(waiting.second);
    return true;
  });
  wake();
}

/// While the group elects a leader nobody else says what is committed: a node that knows less would
/// be refused by those that know more until there is one.
void MetaServiceImpl::on_heartbeat(HostId from, AppliedEntry entry) {
  if (!TETRAD_MUTANT(applied_not_learned) && driver_ && entry.index > driver_->applied_index())
    driver_->learn_committed({entry.term, entry.index}, from);
  wake();
}

void MetaServiceImpl::on_applied(RaftIndex) {
  tell_applied();
  if (is_leader()) {
    reactor_.post([this, alive = std::weak_ptr<char>(alive_)] {
      if (!alive.expired()) manage_voters();
    });
  }
}

// An image must not go back behind what is applied here; all of the state comes from it.
Result<void> MetaServiceImpl::on_install(BytesView image, RaftIndex index) {
  TETRAD_TRY(MetaSnapshot state, decode_meta_state(image, options_.format));
  if (state->applied < state_->applied || state->applied.value > index)
    return fail(ErrorCode::kCorruption,
                "an image of the metadata up to {} for index {}, {} is applied here",
                state->applied.value, index, state_->applied.value);
  publish(std::move(state));
  return {};
}

// The addresses of nodes are set before listeners run: they may send at once.
void MetaServiceImpl::publish(MetaSnapshot now) {
  TETRAD_ASSERT(now != nullptr && now->applied >= state_->applied);
  const MetaSnapshot before = std::exchange(state_, std::move(now));
  for (const auto& [host, node] : state_->nodes) {
    if (host == self()) continue;
    const NodeInfo* known = before->node(host);
    if (known == nullptr || known->address != node.address ||
        known->internode_port != node.internode_port)
      rpc_.set_peer(host, make_endpoint(node.address, node.internode_port));
  }
  membership_.set_hosts(*state_);
  notify(before, state_);
}

void MetaServiceImpl::notify(const MetaSnapshot& before, const MetaSnapshot& now) {
  TETRAD_ASSERT(now->applied >= before->applied);
  std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
  // A copy: a listener may subscribe another or let go of itself.
  const auto listeners = listeners_;
  for (const auto& weak : listeners) {
    if (const auto listener = weak.lock()) (*listener)(before, now);
  }
}

std::shared_ptr<void> MetaServiceImpl::subscribe(Listener listener) {
  auto shared = std::make_shared<Listener>(std::move(listener));
  listeners_.push_back(shared);
  return shared;
}

void MetaServiceImpl::on_liveness_changed() {
  const MetaSnapshot now = state_;
  notify(now, now);
  wake();
}

void MetaServiceImpl::wake() {
  if (waiting_.empty()) return;
  // Resumed tasks look again, and wait again, in a later step.
  reactor_.post([alive = std::weak_ptr<char>(alive_), waiting = std::exchange(waiting_, {})] {
    for (const auto& setter : waiting)
      if (!alive.expired()) setter.set(true);
  });
}

// Woken by each change of the state, of liveness and of what others have applied; looks again each
// time.
Task<bool> MetaServiceImpl::wait_for(std::function<bool()> condition, base::MonotonicUs until_us) {
  while (!condition()) {
    if (reactor_.now_us() >= until_us) co_return false;
    base::OneShot<bool> change;
    const auto setter = change.setter();
    waiting_.push_back(setter);
    const auto timer = reactor_.call_at(until_us, [setter] { setter.set(false); });
    const bool changed = co_await change;
    if (changed) reactor_.cancel(timer);
  }
  co_return true;
}

// Leading.

void MetaServiceImpl::on_role_change(const RaftRoleChange& change) {
  if (change.role == RaftRole::kLeader) {
    logger_.info("leads the metadata group term={}", change.term);
    return;
  }
  // What was proposed may be committed by the next leader or not: the proposer asks again.
  // Given up here; the loop of propose_as() sends the same id again.
  auto awaited = std::exchange(awaited_, {});
  if (awaited.empty()) return;
  reactor_.post([alive = std::weak_ptr<char>(alive_), awaited = std::move(awaited)] {
    for (const auto& [id, setters] : awaited) {
      for (const AnswerSetter& setter : setters)
        if (!alive.expired()) setter.set(fail(ErrorCode::kNotLeader, "leadership was lost"));
    }
  });
}

// Looks every 100 ms and after each applied command, on the leader: who votes (rule 30), one change
// at a time.
void MetaServiceImpl::manage_voters() {
  if (voter_timer_ != 0) reactor_.cancel(voter_timer_);
  voter_timer_ = reactor_.call_at(reactor_.now_us() + kVoterPeriodUs, [this] {
    voter_timer_ = 0;
    manage_voters();
  });
  if (!is_leader() || state_->cluster_id.is_nil()) {
    removed_since_.clear();
    return;
  }
  if (hand_over_if_unfit()) return;
  forget_retired();
  const RaftCore& core = driver_->core();
  const auto peers = core.peers();
  const auto away_ticks = static_cast<uint64_t>(options_.voter_away_us / options_.tick_us);
  std::vector<VoterCandidate> candidates;
  for (const auto& [host, node] : state_->nodes) {
    // A removed node stays a member of the group for two seconds, so that it can hear that it was
    // removed.
    if (node.state == NodeState::kRemoved && !still_to_be_told(host)) continue;
    VoterCandidate candidate{host, node.data_center + "/" + node.rack};
    candidate.removed = node.state == NodeState::kRemoved;
    candidate.leaving = node.state == NodeState::kLeaving || candidate.removed;
    for (const RaftPeerStatus& peer : peers) {
      if (peer.server != host) continue;
      candidate.away = peer.ticks_since_heard > away_ticks;
      // A learner is promoted when it has nearly all of the log, else the next commit would wait
      // for it.
      candidate.caught_up = peer.state == RaftProgress::State::kReplicate &&
                            peer.ticks_since_heard <= core.options().election_ticks &&
                            peer.match + kPromotionLagMax >= core.last_index();
    }
    candidates.push_back(std::move(candidate));
  }
  const auto change = next_membership_change(core.configuration(), candidates, self());
  if (!change) return;
  // Refused while another change is under way or a learner is behind: the next look repeats it.
  if (driver_->change_configuration(*change)) {
    logger_.info("metadata group changes host={} address={} change={}", change->server.to_string(),
                 state_->address_of(change->server), name_of(change->kind));
  }
}

/// A leader on its way out gives the group to a voter that stays.
/// A node that leaves, or whose clock is off, does not lead.
bool MetaServiceImpl::hand_over_if_unfit() {
  const NodeInfo* own = state_->node(self());
  const bool stays =
      own == nullptr || own->state == NodeState::kNormal || own->state == NodeState::kJoining;
  const bool is_off = membership_.clock().standing() == ClockStanding::kQuarantine &&
                      !TETRAD_MUTANT(quarantine_off);
  if (stays && !is_off) return false;
  const RaftCore& core = driver_->core();
  // The first voter that is live and stays: balance is no aim here.
  for (const RaftPeerStatus& peer : core.peers()) {
    const NodeInfo* node = state_->node(peer.server);
    if (!peer.voter || peer.server == self() || node == nullptr ||
        node->state != NodeState::kNormal || peer.ticks_since_heard > core.options().election_ticks)
      continue;
    const auto handed_over = driver_->transfer_leadership(peer.server);
    return handed_over.has_value();
  }
  return false;
}

bool MetaServiceImpl::still_to_be_told(HostId removed) {
  const RaftCore& core = driver_->core();
  if (!core.configuration().contains(removed)) {
    removed_since_.erase(removed);
    return false;
  }
  const auto since = removed_since_.try_emplace(removed, reactor_.now_us()).first;
  return reactor_.now_us() - since->second < kTellRemovedUs &&
         ticks_away(removed) <= core.options().election_ticks;
}

uint64_t MetaServiceImpl::ticks_away(HostId host) const {
  if (!driver_) return 0;
  for (const RaftPeerStatus& peer : driver_->core().peers())
    if (peer.server == host) return peer.ticks_since_heard;
  return 0;
}

/// The oldest half of a long list, once every node has passed it to its stores: all of them are live and
/// have applied what made the list.
void MetaServiceImpl::forget_retired() {
  if (forgetting_ || state_->retired.size() < kRetiredMax) return;
  for (const auto& [host, node] : state_->nodes) {
    if (node.state == NodeState::kRemoved || host == self()) continue;
    if (!membership_.is_live(host) || membership_.applied_of(host) < state_->applied) return;
  }
  ForgetRetired command;
  command.incarnations.assign(
      state_->retired.begin(),
      state_->retired.begin() + static_cast<ptrdiff_t>(state_->retired.size() / 2));
  forgetting_ = true;
  tasks_.spawn(run_forget(std::move(command)));
}

Task<void> MetaServiceImpl::run_forget(ForgetRetired command) {
  MetaCommandBody body(std::move(command));
  const base::Deadline deadline{reactor_.now_us() + kForgetUs};
  // Refused or lost: the next look repeats it.
  Result<MetaIndex> done = co_await propose(std::move(body), deadline);
  (void)done;
  TETRAD_ASSERT(forgetting_);
  forgetting_ = false;
}

// From reports of acting members. Tablets that are gone are swept when the map has doubled.
void MetaServiceImpl::set_tablet_bytes(TabletId tablet, uint64_t bytes) {
  tablet_bytes_[tablet] = bytes;
  ++tablet_bytes_version_;
  if (tablet_bytes_.size() <= tablet_bytes_most_) return;
  std::unordered_set<TabletId> known;
  for (const auto& [id, table] : state_->tables)
    for (const partitioner::Tablet& there : table->tablets.tablets()) known.insert(there.id);
  std::erase_if(tablet_bytes_, [&](const auto& entry) { return !known.contains(entry.first); });
  tablet_bytes_most_ = std::max<size_t>(1024, 2 * tablet_bytes_.size());
}

// A node that has just begun has heard of few sizes: what is known of some is not all there is.
std::optional<uint64_t> MetaServiceImpl::reported_bytes(HostId host) const {
  uint64_t bytes = 0;
  bool has_any = false, knows_all = true;
  for (const auto& [id, table] : state_->tables) {
    for (const partitioner::Tablet& tablet : table->tablets.tablets())
      for (const StoreAddress& replica : tablet.replicas) {
        if (replica.host != host) continue;
        has_any = true;
        knows_all &= tablet_bytes_.contains(tablet.id);
        bytes += tablet_bytes(tablet.id);
      }
  }
  if (has_any && knows_all) known_hosts_.insert(host);
  if (has_any && !known_hosts_.contains(host)) return std::nullopt;
  return bytes;
}

// Told again of a host that is down, it keeps the first.
void MetaServiceImpl::note_liveness(HostId host, bool live) {
  if (live)
    bytes_when_down_.erase(host);
  else if (const auto bytes = reported_bytes(host); bytes && !bytes_when_down_.contains(host))
    bytes_when_down_[host] = *bytes;
}

std::optional<uint64_t> MetaServiceImpl::host_bytes(HostId host) const {
  if (is_live(host)) return reported_bytes(host);
  const auto found = bytes_when_down_.find(host);
  if (found == bytes_when_down_.end()) return std::nullopt;
  return found->second;
}

uint64_t MetaServiceImpl::tablet_bytes(TabletId tablet) const {
  const auto found = tablet_bytes_.find(tablet);
  return found == tablet_bytes_.end() ? 0 : found->second;
}

}  // namespace tetrad::replication
