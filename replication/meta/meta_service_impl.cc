// SPDX-License-Identifier: Apache-2.0
//
// Each applied command makes a new immutable MetaState, which listeners on shard 0 get at once and
// the fronts of other shards by a post. Everything here runs on shard 0.
// State and listeners of the metadata group on one node; proposals are in meta_proposals.cc.
#include "replication/meta/meta_service_impl.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/consistency.h"
#include "replication/meta/voter_policy.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kForgetUs = 1'000'000;  // for a command that is proposed again if it is lost
constexpr int64_t kSyncAppliedUs = 2'000'000;
constexpr int64_t kAskAgainUs = 100'000;
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

// Schema changes.

// Of the live ones only: a node that is down catches up before it serves anybody.
bool MetaServiceImpl::all_live_applied(MetaIndex index) const {
  // One that does not get on with its disk may not get on with its schema either.
  const StoreTroubles& troubles = store_troubles();
  const auto is_stuck = [&](HostId host) {
    return std::ranges::any_of(troubles, [&](const auto& entry) {
      return entry.first.host == host && is_absent(entry.second);
    });
  };
  for (const HostId host : membership_.live_hosts())
    if (membership_.applied_of(host) < index && !is_stuck(host)) return false;
  return applied_by_shards() >= index;
}

// The members of each tablet that must refuse the old incarnation, as sets of hosts; equal sets
// once. Of several data centres each has its own: LOCAL_QUORUM asks no other.
MetaServiceImpl::HostSets MetaServiceImpl::sets_to_fence(const MetaState& state,
                                                         const SchemaChange& change) {
  HostSets sets;
  const auto add = [&](const std::vector<StoreAddress>& replicas) {
    const bool by_center = state.data_centers != nullptr && !TETRAD_MUTANT(truncate_not_local);
    std::map<uint32_t, std::vector<HostId>> of_center;
    for (const StoreAddress& replica : replicas)
      of_center[by_center ? state.data_centers->of(replica.host) : 0].push_back(replica.host);
    for (auto& [center, hosts] : of_center) {
      std::sort(hosts.begin(), hosts.end());
      if (std::find(sets.begin(), sets.end(), hosts) == sets.end())
        sets.push_back(std::move(hosts));
    }
  };
  const auto add_table = [&](const TableId& id) {
    const TableInfo* table = state.table(id);
    if (table == nullptr) return;
    for (const partitioner::Tablet& tablet : table->tablets.tablets()) {
      add(tablet.replicas);
      add(tablet.new_replicas);
    }
  };
  for (const TableId& id : change.dropped_tables) add_table(id);
  for (const TableId& id : change.truncated_tables) add_table(id);
  return sets;
}

// Where the sets are not known, all nodes: more than is needed.
MetaServiceImpl::HostSets MetaServiceImpl::every_node(const MetaState& state) {
  HostSets sets;
  for (const auto& [host, node] : state.nodes)
    if (node.state != NodeState::kRemoved) sets.push_back({host});
  return sets;
}

// With W that refuse, no read of R members has none of them. With R, no write is acknowledged and no
// QUORUM read answered by others; more is not to be had while members are away.
size_t MetaServiceImpl::refusing(const std::vector<HostId>& hosts) const {
  return std::max(read_quorum(hosts.size()),
                  std::min(write_quorum(hosts.size()), presence_of(hosts).live));
}

Result<void> MetaServiceImpl::check_truncates(const SchemaChange& change) const {
  if (change.truncated_tables.empty()) return {};
  for (const std::vector<HostId>& hosts : sets_to_fence(*state_, change)) {
    const Presence seen = presence_of(hosts);
    const size_t least = read_quorum(seen.all);
    if (seen.live >= least) continue;
    return std::unexpected(Error(
        ErrorCode::kUnavailable,
        fmt::format("Cannot truncate: {} of the {} replicas of a partition are live and {} are "
                    "needed; away:{}",
                    seen.live, seen.all, least, seen.away),
        base::UnavailableDetail{ConsistencyLevel::kQuorum, static_cast<int32_t>(least),
                                static_cast<int32_t>(seen.live)}));
  }
  return {};
}

// Whether enough of each set have the change applied and synced. Asks those that have applied it
// and were not asked yet; called again after each answer (rule 29).
bool MetaServiceImpl::fenced(const HostSets& sets, MetaIndex index,
                             const std::shared_ptr<Synced>& synced, bool by_live_alone) {
  return std::all_of(sets.begin(), sets.end(), [&](const std::vector<HostId>& hosts) {
    size_t count = 0;
    for (const HostId host : hosts) {
      const MetaIndex applied = host == self() ? applied_by_shards() : membership_.applied_of(host);
      const bool known = TETRAD_MUTANT(truncate_not_synced) && applied >= index;
      count += known || synced->hosts.contains(host) ? 1 : 0;
      // Asked once at a time; a failed answer is asked for again after kAskAgainUs.
      if (applied < index || !synced->asked.insert(host).second) continue;
      Bytes body;
      base::ByteWriter(body).u64(index.value);
      rpc_.call(host, 0, Verb::kSyncApplied, std::move(body),
                base::Deadline{reactor_.now_us() + kSyncAppliedUs},
                [this, alive = std::weak_ptr<char>(alive_), host, synced](Result<Bytes> answer) {
                  if (alive.expired()) return;
                  if (answer) {
                    synced->hosts.insert(host);
                    wake();
                    return;
                  }
                  reactor_.call_at(reactor_.now_us() + kAskAgainUs, [this, alive, host, synced] {
                    if (alive.expired()) return;
                    synced->asked.erase(host);
                    wake();
                  });
                });
    }
    const size_t needed = refusing(hosts);
    return count >= (by_live_alone ? std::min(needed, presence_of(hosts).live) : needed);
  });
}

//   1. Propose, noting the sets of dropped and truncated tables as they are when the command is
//      applied.
//   2. Wait for all live nodes to apply it, up to `schema_agreement_us`; without that there is a
//      warning.
//   3. Wait for W members of each noted set to refuse the old incarnation (rule 29), for R while
//      fewer than W are live. Without that TRUNCATE fails, since an old write could still be
//      acknowledged; a DROP waits for those that are live alone, as long as for 2, and has a warning
//      where they are too few.
Task<Result<void>> MetaServiceImpl::change_schema(SchemaChange change, base::Deadline deadline,
                                                  std::vector<std::string>* warnings) {
  const bool truncates = !change.truncated_tables.empty();
  const bool takes_away = !change.dropped_tables.empty() || truncates;
  TETRAD_CO_TRY_VOID(check_truncates(change));
  const HostSets sets_before =
      TETRAD_MUTANT(truncate_old_map) ? sets_to_fence(*state_, change) : HostSets();
  const Uuid id = base::make_random_uuid(random_);
  if (takes_away) to_fence_[id];
  MetaCommandBody body(std::move(change));
  Result<MetaIndex> proposed = co_await propose_as(id, std::move(body), deadline);
  const auto noted = to_fence_.extract(id);
  TETRAD_ASSERT(takes_away == !noted.empty());
  if (!proposed) co_return std::unexpected<Error>(proposed.error());
  HostSets sets;
  // An image that includes the change does not show the state before it.
  if (takes_away) sets = noted.mapped() ? *noted.mapped() : every_node(*state_);
  if (TETRAD_MUTANT(truncate_old_map)) sets = sets_before;
  const MetaIndex index = *proposed;
  if (TETRAD_MUTANT(truncate_not_awaited)) co_return Result<void>();
  const base::MonotonicUs limit_us =
      std::min(deadline.at_us, reactor_.now_us() + options_.schema_agreement_us);
  std::function<bool()> everybody = [this, index] { return all_live_applied(index); };
  const bool agreed = co_await wait_for(std::move(everybody), limit_us);
  if (!agreed && warnings != nullptr)
    warnings->push_back(
        "The schema change is in effect, but not every live node has applied it yet");
  const auto synced = std::make_shared<Synced>();
  std::function<bool()> refused = [this, &sets, index, synced, truncates] {
    return fenced(sets, index, synced, !truncates);
  };
  const bool ended = co_await wait_for(std::move(refused), truncates ? deadline.at_us : limit_us);
  const bool closed = ended && fenced(sets, index, synced, false);
  if (!closed && truncates)
    co_return fail(ErrorCode::kTimedOut,
                   "the change is in effect, but too few replicas have confirmed it in time");
  if (!closed && warnings != nullptr)
    warnings->push_back(
        "It is dropped, but too few of its replicas have confirmed it yet: those that are "
        "away do so when they are back");
  co_return Result<void>();
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
