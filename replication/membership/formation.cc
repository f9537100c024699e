// SPDX-License-Identifier: Apache-2.0
//
// A start, on shard 0:
//   1. The local log says whether this node has a host id, and a cluster.
//   2. It has both: the metadata group goes on from the log (keep_known from then on).
//   3. It has no cluster: the host id is stored first, then all seeds are asked at once, again and
//      again, until one of them takes this node in or the rule of introduction.h lets it found.
//   4. Founding writes the first Raft state and the cluster's id in one synced batch, then proposes
//      the first command. A process that ends between the two proposes it again.
//   5. Being taken in: any member proposes this node to the metadata group (serve_join); the
//      cluster's id is stored before Raft is started.
//   6. From then on a node whose address, version or rack has changed reports that, and one that
//      hears no leader asks whether it was removed.
// Founding and joining clusters.
#include "replication/membership/formation.h"

#include <algorithm>
#include <set>

#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/membership/data_center_check.h"
#include "replication/membership/join_request.h"

namespace tetrad::replication {

namespace {

// Keys of the local log. "node/h": host id; "node/c": cluster id; "node/s": number of stores;
// "node/n": name of the cluster; "node/g": name of the data center; "node/d": it was decommissioned.
constexpr BytesView kHostKey = "node/h";
constexpr BytesView kClusterKey = "node/c";
constexpr BytesView kStoresKey = "node/s";
constexpr BytesView kNameKey = "node/n";
constexpr BytesView kDataCenterKey = "node/g";
constexpr BytesView kDecommissionedKey = "node/d";
// Deadlines of proposals: of a node that reports itself, and of the first command.
constexpr int64_t kTellUs = 1'000'000;
constexpr int64_t kTakeInUs = 5'000'000;
constexpr int64_t kKeepKnownUs = 500'000;
// Longer than a node that was moved is taken for alive where it was.
constexpr int64_t kCopyUs = 10'000'000;
constexpr int64_t kLookAgainUs = 5'000'000;
constexpr size_t kSecretBytes = 32;
// Of an answer: a bound on what a stranger may make this node remember.
constexpr uint64_t kMembersMax = 65536;

Task<Result<void>> write_synced(storage::LocalLog& log,
                                std::vector<storage::LocalLog::Operation> batch) {
  base::OneShot<Result<void>> written;
  const auto setter = written.setter();
  storage::LocalLog::DoneCallback done = [setter](Result<void> result) {
    setter.set(std::move(result));
  };
  log.write(std::move(batch), true, std::move(done));
  Result<void> result = co_await written;
  co_return result;
}

Result<void> check_name(std::string_view saved, std::string_view configured) {
  if (saved == configured) return {};
  return fail(ErrorCode::kConfig,
              "cluster_name: the saved name '{}' != the configured name '{}'; change it back, or "
              "start with an empty data directory",
              saved, configured);
}

Result<void> check_center(std::string_view saved, std::string_view configured) {
  if (saved == configured) return {};
  return fail(
      ErrorCode::kConfig,
      "datacenter: this node has joined its cluster in '{}' and stays there, the option says "
      "'{}'; change it back, or decommission the node and start it with an empty data "
      "directory",
      saved, configured);
}

}  // namespace

Result<Uuid> uuid_of(BytesView bytes) {
  if (bytes.size() != 16) return fail(ErrorCode::kCorruption, "an id of {} bytes", bytes.size());
  return Uuid::from_bytes(bytes);
}

// Before anything of the log is used: data of another cluster must not be served under this name.
Result<void> check_cluster_name(storage::LocalLog& log, std::string_view configured) {
  TETRAD_TRY(const auto saved, log.get(kNameKey));
  if (!saved) return {};
  return check_name(*saved, configured);
}

// Before it serves: the cluster would refuse it only when it has a leader.
Result<void> check_data_center(storage::LocalLog& log, std::string_view configured) {
  TETRAD_TRY(const auto saved, log.get(kDataCenterKey));
  if (!saved) return {};
  return check_center(*saved, configured);
}

Result<std::optional<uint32_t>> load_store_count(storage::LocalLog& log) {
  TETRAD_TRY(const auto host, log.get(kHostKey));
  if (!host) return std::nullopt;
  TETRAD_TRY(const auto stores, log.get(kStoresKey));
  // A log of before this key was written: nodes had one store.
  if (!stores) return 1;
  base::ByteReader in(*stores);
  TETRAD_TRY(const uint32_t count, in.read_u32());
  if (count == 0) return fail(ErrorCode::kCorruption, "a node of no stores");
  return count;
}

Result<NodeIdentity> load_identity(storage::LocalLog& log, base::Random& random) {
  NodeIdentity identity;
  TETRAD_TRY(const auto host, log.get(kHostKey));
  if (host) {
    TETRAD_TRY(identity.host.value, uuid_of(*host));
    identity.stored = true;
  } else {
    // Not stored yet: store_host() does that before the id is used.
    identity.host.value = base::make_random_uuid(random);
  }
  TETRAD_TRY(const auto cluster, log.get(kClusterKey));
  if (cluster) {
    TETRAD_TRY(identity.cluster_id, uuid_of(*cluster));
  }
  return identity;
}

Result<bool> is_decommissioned(storage::LocalLog& log) {
  TETRAD_TRY(const auto noted, log.get(kDecommissionedKey));
  return noted.has_value();
}

Task<Result<void>> note_decommission(storage::LocalLog& log, bool leaves) {
  std::vector<storage::LocalLog::Operation> batch;
  std::optional<Bytes> mark;
  if (leaves) mark.emplace();
  batch.push_back({Bytes(kDecommissionedKey), std::move(mark)});
  Result<void> written = co_await write_synced(log, std::move(batch));
  co_return written;
}

Formation::Formation(base::Reactor& reactor, base::Random& random, storage::LocalLog& log,
                     RpcNode& rpc, MetaServiceImpl& meta, NodeIdentity identity,
                     FormationOptions options, Logger logger)
    : reactor_(reactor),
      random_(random),
      log_(log),
      rpc_(rpc),
      meta_(meta),
      identity_(identity),
      options_(std::move(options)),
      logger_(std::move(logger)),
      token_seed_(random.next()) {
  // Both verbs are open to strangers: who asks has no cluster yet.
  rpc_.handle(
      Verb::kJoin,
      [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
        tasks_.spawn(serve_join(Bytes(body), context, std::move(reply)));
      },
      true);
  rpc_.handle(
      Verb::kIdentify,
      [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
        serve_identify(context, body, std::move(reply));
      },
      true);
}

Formation::~Formation() {
  rpc_.handle(Verb::kJoin, nullptr);
  rpc_.handle(Verb::kIdentify, nullptr);
}

// Its own address may be in the list under several names; those are learned by their answers.
std::vector<Endpoint> Formation::other_seeds() const {
  std::vector<Endpoint> others = options_.seeds;
  std::erase(others, rpc_.self_endpoint());
  std::erase_if(others, [this](const Endpoint& seed) { return own_seeds_.contains(seed); });
  return others;
}

Task<void> Formation::run() {
  auto stored = RaftDriver::load(log_);
  if (!stored) {
    options_.fatal(stored.error());
    co_return;
  }
  Result<void> begun;
  const bool has_group = *stored && !identity_.cluster_id.is_nil();
  if (has_group) begun = meta_.start(identity_.cluster_id, std::move(**stored));
  if (begun) {
    Result<void> member = co_await become_member(has_group);
    begun = std::move(member);
  }
  // The names are in the metadata as well, where an older log has none.
  if (begun) begun = check_state();
  if (!begun) {
    options_.fatal(begun.error());
    co_return;
  }
  if (removed_) co_return;
  // A node that has just become a member may serve at once; one that was away asks first
  // (keep_known).
  if (!has_group) confirm();
  Task<void> known = keep_known();
  co_await std::move(known);
}

Task<Result<void>> Formation::become_member(bool has_group) {
  if (has_group) {
    host_stored_ = true;
    // A group of one voter, this node, without a cluster id in its state: founded, but not begun.
    const auto& members = meta_.driver()->core().configuration();
    const bool is_founded = !meta_.snapshot()->cluster_id.is_nil() || members.voters.size() != 1 ||
                            !members.is_voter(identity_.host);
    if (is_founded) co_return Result<void>();
    // The process ended between founding and the first command.
    Result<void> founded = co_await found();
    co_return founded;
  }
  Result<void> host = co_await store_host();
  TETRAD_CO_TRY_VOID(std::move(host));
  if (options_.seeds.empty()) {
    Result<void> founded = co_await found();
    co_return founded;
  }
  // A round every retry_us, until it is over.
  while (!meta_.started() && !removed_) {
    Result<bool> done = co_await join_or_found();
    if (!done) co_return std::unexpected<Error>(done.error());
    if (!*done && !removed_) co_await base::sleep_for(reactor_, options_.retry_us);
  }
  waiting_since_us_ = 0;
  co_return Result<void>();
}

/// Stored before any message: the least host id decides who founds, and a node that ends while it
/// joins must come back with the same id.
Task<Result<void>> Formation::store_host() {
  if (!identity_.stored) {
    std::vector<storage::LocalLog::Operation> batch;
    batch.push_back({Bytes(kHostKey), Bytes(identity_.host.value.view())});
    Result<void> written = co_await write_synced(log_, std::move(batch));
    TETRAD_CO_TRY_VOID(std::move(written));
  }
  host_stored_ = true;
  co_return Result<void>();
}

Task<Result<void>> Formation::write_identity(std::vector<storage::LocalLog::Operation> with) {
  with.push_back({Bytes(kHostKey), Bytes(identity_.host.value.view())});
  with.push_back({Bytes(kClusterKey), Bytes(identity_.cluster_id.view())});
  Bytes stores;
  base::ByteWriter(stores).u32(options_.self.store_count);
  with.push_back({Bytes(kStoresKey), std::move(stores)});
  with.push_back({Bytes(kNameKey), Bytes(options_.cluster_name)});
  with.push_back({Bytes(kDataCenterKey), Bytes(options_.self.data_center)});
  Result<void> written = co_await write_synced(log_, std::move(with));
  co_return written;
}

Task<Result<void>> Formation::found() {
  if (!meta_.started()) {
    if (identity_.cluster_id.is_nil()) identity_.cluster_id = base::make_random_uuid(random_);
    RaftConfiguration configuration;
    configuration.voters.push_back(identity_.host);
    // Host id, cluster id and Raft's first state in one batch: after a power cut there are all or
    // none.
    std::vector<storage::LocalLog::Operation> first = RaftDriver::founding_state(configuration);
    Result<void> stored = co_await write_identity(std::move(first));
    TETRAD_CO_TRY_VOID(std::move(stored));
    TETRAD_CO_TRY(auto raft, RaftDriver::load(log_));
    TETRAD_CO_TRY_VOID(meta_.start(identity_.cluster_id, std::move(*raft)));
  }
  BootstrapCluster command;
  command.cluster_id = identity_.cluster_id;
  command.cluster_name = options_.cluster_name;
  // The cluster's secret, which nodes prove to each other that they know.
  for (size_t i = 0; i < kSecretBytes; ++i)
    command.secret.push_back(static_cast<char>(random_.next()));
  command.node = options_.self;
  command.node.host = identity_.host;
  command.token_seed = token_seed_;
  MetaCommandBody body(std::move(command));
  const base::Deadline deadline{reactor_.now_us() + kTakeInUs};
  Result<MetaIndex> proposed = co_await meta_.propose(std::move(body), deadline);
  // Another attempt may have been applied before: what counts is that there is a cluster.
  if (!proposed && proposed.error().code != ErrorCode::kConflict)
    co_return std::unexpected<Error>(proposed.error());
  logger_.info("founded a cluster name={} id={}", options_.cluster_name,
               identity_.cluster_id.to_string());
  co_return Result<void>();
}

// Only from the own cluster, and only by who knows at least as much as this node (see
// ask_to_be_known).
void Formation::be_removed(const std::string& by) {
  if (std::exchange(removed_, true)) return;
  logger_.warn("this node was taken out of its cluster while it was away host={} says={}",
               identity_.host.to_string(), by);
  if (options_.removed) options_.removed();
}

Bytes Formation::join_request() const {
  JoinRequest request{identity_.cluster_id, options_.cluster_name, options_.self, token_seed_};
  request.node.host = identity_.host;
  return encode_join(request);
}

// A node that has a cluster.

/// A node that was once started without seeds is a cluster of its own for good, and serves: that its
/// seeds are of another one is all that shows it.
Task<void> Formation::look_at_seeds() {
  std::set<Endpoint> members;
  for (const auto& [host, node] : meta_.snapshot()->nodes)
    if (node.state != NodeState::kRemoved)
      members.insert(make_endpoint(node.address, node.internode_port));
  for (const Endpoint& seed : other_seeds()) {
    if (members.contains(seed)) {
      foreign_seeds_.erase(seed);
      continue;
    }
    const auto [looked_us, is_new] = looked_at_us_.try_emplace(seed, reactor_.now_us());
    if (!is_new && reactor_.now_us() < looked_us->second + kSayAgainUs) continue;
    looked_us->second = reactor_.now_us();
    SeedAnswer answer = co_await identify(seed);
    if (answer.said) note_seed(seed, *answer.said);
  }
}

void Formation::note_seed(const Endpoint& seed, const Introduction& said) {
  if (!said.has_cluster() || said.cluster_id == identity_.cluster_id)
    foreign_seeds_.erase(seed);
  else if (std::ranges::find(options_.seeds, seed) != options_.seeds.end())
    foreign_seeds_[seed] = fmt::format("'{}' {}", said.cluster_name, said.cluster_id.to_string());
}

/// Asks members, and seeds, to hand on where this node is now, and whether it still is one of them.
Task<Formation::Asked> Formation::ask_to_be_known() {
  // Seeds and members, each once.
  std::vector<Endpoint> places = other_seeds();
  std::set<Endpoint> members, former;
  for (const auto& [host, node] : meta_.snapshot()->nodes) {
    if (host == identity_.host) continue;
    (node.state == NodeState::kRemoved ? former : members)
        .insert(make_endpoint(node.address, node.internode_port));
  }
  places.insert(places.end(), members.begin(), members.end());
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::string silent;
  for (const Endpoint& place : places) {
    // A leader was heard while others were asked.
    if (known_to_leader() && (confirmed_ || members_applied_.value != 0)) co_return Asked::kTakenIn;
    const auto alone = left_alone_.find(place);
    if (alone != left_alone_.end() && reactor_.now_us() < alone->second.until_us) continue;
    SeedAnswer answer = co_await identify(place);
    if (!answer.said && !answer.is_older) {
      silent += (silent.empty() ? "" : ", ") + place;
      // A seed, that is, and it need not come back.
      if (former.contains(place) && !members.contains(place)) silent += " (has left for good)";
      if (!answer.refusal.empty()) silent += " (" + answer.refusal + ")";
    }
    if (answer.said) {
      const Introduction& said = *answer.said;
      note_seed(place, said);
      if (said.host == identity_.host || !said.has_cluster()) continue;
      // Whoever stands there now: this node's data belongs to its own cluster, and nothing is
      // changed by a stranger.
      if (said.cluster_id != identity_.cluster_id) {
        if (TETRAD_MUTANT(foreign_is_fatal))
          options_.fatal(Error(ErrorCode::kConfig, "refused by another cluster"));
        leave_alone(place, fmt::format("it is of another cluster, '{}' {}; this node is of {}",
                                       said.cluster_name, said.cluster_id.to_string(),
                                       identity_.cluster_id.to_string()));
        continue;
      }
      members_applied_ = std::max(members_applied_, said.applied);
      // A member that knows less than this node may not have heard that it is one.
      if (said.standing == Standing::kRemoved && meta_.snapshot()->applied < said.applied) {
        be_removed(place);
        co_return Asked::kRemoved;
      }
    } else if (!answer.is_older) {
      continue;
    }
    // A member: it hands on where this node is.
    Bytes request = join_request();
    Result<Bytes> known = co_await ask(place, Verb::kJoin, std::move(request));
    if (known) {
      const Result<void> learned = learn_members(*known);
      if (learned) co_return Asked::kTakenIn;
    } else if (known.error().code == ErrorCode::kConfig) {
      leave_alone(place, known.error().message);
    } else if (known.error().code == ErrorCode::kConflict) {
      copy_of_ = known.error().message;
      co_return Asked::kIsCopy;
    }
  }
  if (!known_to_leader())
    log_waiting(fmt::format("no leader of the metadata group is known here{}{}",
                            silent.empty() ? "" : "; no answer from ", silent));
  co_return Asked::kNot;
}

/// Learns where the members are.
Result<void> Formation::learn_members(BytesView answer) {
  base::ByteReader in(answer);
  TETRAD_TRY(const BytesView cluster_id, in.read_raw(16));
  // The answer begins with the id of the cluster that it speaks for.
  if (Uuid::from_bytes(cluster_id) != identity_.cluster_id)
    return fail(ErrorCode::kConfig, "members of another cluster");
  TETRAD_TRY(const uint64_t count, in.read_varint());
  for (uint64_t i = 0; i < std::min(count, kMembersMax); ++i) {
    TETRAD_TRY(const BytesView host, in.read_raw(16));
    TETRAD_TRY(const BytesView endpoint, in.read_bytes());
    const HostId id{Uuid::from_bytes(host)};
    if (id != identity_.host && !endpoint.empty()) rpc_.set_peer(id, Endpoint(endpoint));
  }
  return {};
}

/// A node that was away, or that has its log after a power cut but not how far it was committed, knows
/// an older schema than its clients do. Without a leader it serves with what it has after a while.
Task<void> Formation::catch_up() {
  constexpr int64_t kCatchUpUs = 5'000'000, kLookUs = 10'000;
  const base::MonotonicUs until_us = reactor_.now_us() + kCatchUpUs;
  while (meta_.snapshot()->applied < members_applied_) {
    if (reactor_.now_us() >= until_us) {
      logger_.warn(
          "serves without the latest metadata: it has not come in time applied={} known={}",
          meta_.snapshot()->applied.value, members_applied_.value);
      co_return;
    }
    co_await base::sleep_for(reactor_, kLookUs);
  }
}

void Formation::confirm() {
  if (!std::exchange(confirmed_, true)) options_.member();
}

/// For logs that have no names: those of the metadata.
Result<void> Formation::check_state() const {
  const MetaSnapshot state = meta_.snapshot();
  if (state->cluster_id.is_nil()) return {};
  TETRAD_TRY_VOID(check_name(state->cluster_name, options_.cluster_name));
  const NodeInfo* own = state->node(identity_.host);
  if (own == nullptr || own->state == NodeState::kRemoved) return {};
  return check_center(own->data_center, options_.self.data_center);
}

// A leader is known, and what the metadata has of this node is how it is.
bool Formation::known_to_leader() const { return known_as_is() && meta_.driver()->core().leader(); }

bool Formation::known_as_is() const {
  const MetaSnapshot state = meta_.snapshot();
  const NodeInfo* known = state->node(identity_.host);
  return known != nullptr && same_but_for_ring(*known, options_.self, state->format);
}

/// A node that came back at another address or with another version reports that to the cluster.
/// One that has heard no leader for long asks whether it was removed.
Task<void> Formation::keep_known() {
  while (true) {
    // What was applied before may come only now.
    if (const Result<void> named = check_state(); !named) {
      options_.fatal(named.error());
      co_return;
    }
    if (known_to_leader() && confirmed_) {
      waiting_since_us_ = 0;
      // Found: look again after a while, since addresses may change.
      Task<void> looked = look_at_seeds();
      co_await std::move(looked);
      co_await base::sleep_for(reactor_, kLookAgainUs);
      continue;
    }
    const Asked asked = co_await ask_to_be_known();
    if (asked == Asked::kRemoved) co_return;
    if (asked == Asked::kIsCopy) {
      // A node that was moved is taken for alive where it was for some seconds.
      if (is_copy_since_us_ == 0) is_copy_since_us_ = reactor_.now_us();
      log_waiting(copy_of_);
      if (reactor_.now_us() - is_copy_since_us_ > kCopyUs) {
        options_.fatal(Error(
            ErrorCode::kConfig,
            fmt::format("this data directory is a copy of another node's: {}. To add a node, start "
                        "it with an empty one",
                        copy_of_)));
        co_return;
      }
      co_await base::sleep_for(reactor_, kKeepKnownUs);
      continue;
    }
    is_copy_since_us_ = 0;
    // It may serve: nobody has said that it was removed.
    if (!confirmed_) co_await catch_up();
    confirm();
    if (!known_as_is() && !meta_.snapshot()->cluster_id.is_nil()) {
      PutNode command{options_.self, token_seed_};
      command.node.host = identity_.host;
      MetaCommandBody body(std::move(command));
      const base::Deadline deadline{reactor_.now_us() + kTellUs};
      Result<MetaIndex> proposed = co_await meta_.propose(std::move(body), deadline);
      // Refused for good: a program too old, or a host id that was taken out.
      if (!proposed && proposed.error().code == ErrorCode::kConfig) {
        const NodeInfo* own = meta_.snapshot()->node(identity_.host);
        const bool is_out = own != nullptr && own->state == NodeState::kRemoved;
        if (!is_out) options_.fatal(proposed.error());  // else who applies it says so
        co_return;
      }
    }
    co_await base::sleep_for(reactor_, kKeepKnownUs);
  }
}

}  // namespace tetrad::replication
