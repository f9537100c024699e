// SPDX-License-Identifier: Apache-2.0
// Founding and joining clusters.
#include "replication/membership/formation.h"

#include <algorithm>

#include "base/sleep.h"

namespace tetrad::replication {

namespace {

constexpr BytesView kHostKey = "node/h";
constexpr BytesView kClusterKey = "node/c";
constexpr BytesView kStoresKey = "node/s";
constexpr BytesView kNameKey = "node/n";
constexpr uint8_t kJoinFormat = 1;
constexpr int64_t kAskUs = 300'000;  // a seed that is not up yet says nothing
constexpr int64_t kAnswerUs = 100'000;
constexpr int64_t kTellUs = 1'000'000;
constexpr int64_t kTakeInUs = 5'000'000;
constexpr int64_t kKeepKnownUs = 500'000;
constexpr int64_t kLookAgainUs = 5'000'000;
constexpr size_t kSecretBytes = 32;
constexpr uint64_t kMembersMax = 65536;

bool same_but_for_ring(const NodeInfo& known, const NodeInfo& now) {
  return known.address == now.address && known.native_port == now.native_port &&
         known.internode_port == now.internode_port && known.admin_port == now.admin_port &&
         known.data_center == now.data_center && known.rack == now.rack &&
         known.version == now.version && known.format == now.format;
}

Result<Uuid> uuid_of(BytesView bytes) {
  if (bytes.size() != 16) return fail(ErrorCode::kCorruption, "an id of {} bytes", bytes.size());
  return Uuid::from_bytes(bytes);
}

struct JoinRequest {
  Uuid cluster_id;
  std::string cluster_name;
  NodeInfo node;
  uint64_t token_seed = 0;
};

Result<JoinRequest> decode_join(BytesView body) {
  base::ByteReader in(body);
  JoinRequest request;
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format != kJoinFormat) return fail(ErrorCode::kProtocol, "join request format {}", format);
  TETRAD_TRY(const BytesView cluster, in.read_raw(16));
  request.cluster_id = Uuid::from_bytes(cluster);
  TETRAD_TRY(const BytesView name, in.read_bytes());
  request.cluster_name = std::string(name);
  TETRAD_TRY(request.node, decode_node_info(kFormatFirst, in));
  TETRAD_TRY(request.token_seed, in.read_u64());
  return request;
}

Result<void> check_name(std::string_view saved, std::string_view configured) {
  if (saved == configured) return {};
  return fail(ErrorCode::kConfig,
              "cluster_name: the saved name '{}' != the configured name '{}'; change it back, or "
              "start with an empty data directory",
              saved, configured);
}

}  // namespace

Result<void> check_cluster_name(storage::LocalLog& log, std::string_view configured) {
  TETRAD_TRY(const auto saved, log.get(kNameKey));
  if (!saved) return {};
  return check_name(*saved, configured);
}

Result<std::optional<uint32_t>> load_store_count(storage::LocalLog& log) {
  TETRAD_TRY(const auto host, log.get(kHostKey));
  if (!host) return std::nullopt;
  TETRAD_TRY(const auto stores, log.get(kStoresKey));
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
    identity.host.value = base::make_random_uuid(random);
  }
  TETRAD_TRY(const auto cluster, log.get(kClusterKey));
  if (cluster) {
    TETRAD_TRY(identity.cluster_id, uuid_of(*cluster));
  }
  return identity;
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
  rpc_.handle(
      Verb::kJoin,
      [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
        tasks_.spawn(serve_join(Bytes(body), context, std::move(reply)));
      },
      true);
}

Formation::~Formation() { rpc_.handle(Verb::kJoin, nullptr); }

std::vector<Endpoint> Formation::other_seeds() const {
  std::vector<Endpoint> others = options_.seeds;
  std::erase(others, rpc_.self_endpoint());
  std::erase_if(others, [this](const Endpoint& seed) { return own_seeds_.contains(seed); });
  return others;
}

bool Formation::is_first_seed() const {
  return !options_.seeds.empty() && (options_.seeds.front() == rpc_.self_endpoint() ||
                                     own_seeds_.contains(options_.seeds.front()));
}

Task<void> Formation::run() {
  auto stored = RaftDriver::load(log_);
  if (!stored) {
    options_.fatal(stored.error());
    co_return;
  }
  Result<void> begun;
  if (*stored && !identity_.cluster_id.is_nil()) {
    begun = meta_.start(identity_.cluster_id, std::move(**stored));
    const auto& members = meta_.driver()->core().configuration();
    // The process ended between founding and the first command.
    if (begun && meta_.snapshot()->cluster_id.is_nil() && members.voters.size() == 1 &&
        members.is_voter(identity_.host)) {
      Result<void> founded = co_await found();
      begun = std::move(founded);
    }
  } else if (other_seeds().empty()) {
    Result<void> founded = co_await found();
    begun = std::move(founded);
  } else {
    // On its way to the disk before anybody is told: a node that ends while it joins comes back as
    // the same one. A failure is met again when the cluster's id is stored.
    if (!identity_.stored) {
      std::vector<storage::LocalLog::Operation> batch;
      batch.push_back({Bytes(kHostKey), Bytes(identity_.host.value.view())});
      log_.write(std::move(batch), true, [](const Result<void>&) {});
    }
    const base::MonotonicUs found_at_us = reactor_.now_us() + options_.look_for_others_us;
    while (!meta_.started()) {
      Result<bool> taken_in = co_await ask_seeds(true);
      if (!taken_in) {
        options_.fatal(taken_in.error());
        co_return;
      }
      if (*taken_in) break;
      if (other_seeds().empty() ||
          (is_first_seed() && !cluster_seen_ && reactor_.now_us() >= found_at_us)) {
        Result<void> founded = co_await found();
        begun = std::move(founded);
        break;
      }
      co_await base::sleep_for(reactor_, options_.retry_us);
    }
  }
  if (begun) begun = check_state();
  if (!begun) {
    options_.fatal(begun.error());
    co_return;
  }
  if (!*stored) confirm();
  Task<void> known = keep_known();
  co_await std::move(known);
}

Task<Result<void>> Formation::store_identity() {
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({Bytes(kHostKey), Bytes(identity_.host.value.view())});
  batch.push_back({Bytes(kClusterKey), Bytes(identity_.cluster_id.view())});
  Bytes stores;
  base::ByteWriter(stores).u32(options_.self.store_count);
  batch.push_back({Bytes(kStoresKey), std::move(stores)});
  batch.push_back({Bytes(kNameKey), Bytes(options_.cluster_name)});
  base::OneShot<Result<void>> written;
  const auto setter = written.setter();
  storage::LocalLog::DoneCallback done = [setter](Result<void> result) {
    setter.set(std::move(result));
  };
  log_.write(std::move(batch), true, std::move(done));
  Result<void> result = co_await written;
  co_return result;
}

Task<Result<void>> Formation::found() {
  if (!meta_.started()) {
    if (identity_.cluster_id.is_nil()) identity_.cluster_id = base::make_random_uuid(random_);
    Result<void> stored = co_await store_identity();
    TETRAD_CO_TRY_VOID(std::move(stored));
    RaftConfiguration configuration;
    configuration.voters.push_back(identity_.host);
    base::OneShot<Result<void>> written;
    const auto setter = written.setter();
    storage::LocalLog::DoneCallback done = [setter](Result<void> result) {
      setter.set(std::move(result));
    };
    RaftDriver::found(log_, configuration, std::move(done));
    Result<void> result = co_await written;
    TETRAD_CO_TRY_VOID(std::move(result));
    TETRAD_CO_TRY(auto raft, RaftDriver::load(log_));
    TETRAD_CO_TRY_VOID(meta_.start(identity_.cluster_id, std::move(*raft)));
  }
  BootstrapCluster command;
  command.cluster_id = identity_.cluster_id;
  command.cluster_name = options_.cluster_name;
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

Bytes Formation::join_request() const {
  Bytes body;
  base::ByteWriter writer(body);
  writer.u8(kJoinFormat);
  writer.raw(identity_.cluster_id.view());
  writer.bytes(options_.cluster_name);
  NodeInfo node = options_.self;
  node.host = identity_.host;
  encode_node_info(node, kFormatFirst, writer);
  writer.u64(token_seed_);
  return body;
}

/// True when one took this node in; an error is final.
Task<Result<bool>> Formation::ask_seeds(bool join) {
  std::vector<Endpoint> seeds = other_seeds();
  if (!join) {
    for (const auto& [host, node] : meta_.snapshot()->nodes) {
      if (host == identity_.host || node.state == NodeState::kRemoved) continue;
      seeds.push_back(make_endpoint(node.address, node.internode_port));
    }
    std::sort(seeds.begin(), seeds.end());
    seeds.erase(std::unique(seeds.begin(), seeds.end()), seeds.end());
  }
  for (const Endpoint& seed : seeds) {
    if (!join && known_to_leader()) co_return true;
    base::OneShot<Result<Bytes>> answered;
    const auto setter = answered.setter();
    RpcNode::ReplyCallback done = [setter](Result<Bytes> result) { setter.set(std::move(result)); };
    const base::Deadline deadline{reactor_.now_us() + kAskUs};
    rpc_.call_endpoint(seed, Verb::kJoin, join_request(), deadline, std::move(done));
    Result<Bytes> answer = co_await answered;
    if (!answer) {
      if (answer.error().code == ErrorCode::kAlreadyExists) own_seeds_.insert(seed);
      if (answer.error().code == ErrorCode::kUnavailable) cluster_seen_ = true;
      if (answer.error().code == ErrorCode::kConfig)
        co_return fail(ErrorCode::kConfig, "seed {} refuses this node: {}", seed,
                       answer.error().message);
      continue;
    }
    const auto cluster_id = uuid_of(BytesView(*answer).substr(0, 16));
    if (!cluster_id) continue;
    if (join) {
      identity_.cluster_id = *cluster_id;
      Result<void> stored = co_await store_identity();
      TETRAD_CO_TRY_VOID(std::move(stored));
      RaftDriver::Stored nothing;
      nothing.raft = RaftStored::joining();
      TETRAD_CO_TRY_VOID(meta_.start(*cluster_id, std::move(nothing)));
      logger_.info("taken into a cluster id={} by={}", cluster_id->to_string(), seed);
    }
    TETRAD_CO_TRY_VOID(begin(std::move(*answer)));
    co_return true;
  }
  co_return false;
}

/// Learns where the members are.
Result<void> Formation::begin(Bytes answer) {
  base::ByteReader in(answer);
  TETRAD_TRY_VOID(in.read_raw(16));
  TETRAD_TRY(const uint64_t count, in.read_varint());
  for (uint64_t i = 0; i < std::min(count, kMembersMax); ++i) {
    TETRAD_TRY(const BytesView host, in.read_raw(16));
    TETRAD_TRY(const BytesView endpoint, in.read_bytes());
    const HostId id{Uuid::from_bytes(host)};
    if (id != identity_.host && !endpoint.empty()) rpc_.set_peer(id, Endpoint(endpoint));
  }
  return {};
}

void Formation::confirm() {
  if (!std::exchange(confirmed_, true)) options_.member();
}

/// For logs that have no name: the cluster's own.
Result<void> Formation::check_state() const {
  const MetaSnapshot state = meta_.snapshot();
  if (state->cluster_id.is_nil()) return {};
  return check_name(state->cluster_name, options_.cluster_name);
}

bool Formation::known_to_leader() const { return known_as_is() && meta_.driver()->core().leader(); }

bool Formation::known_as_is() const {
  const NodeInfo* known = meta_.snapshot()->node(identity_.host);
  return known != nullptr && same_but_for_ring(*known, options_.self);
}

/// A node that came back elsewhere, or as another version, tells the cluster. One that hears of no
/// leader for long asks whether it has been removed.
Task<void> Formation::keep_known() {
  while (true) {
    // What was applied before may come only now.
    if (const Result<void> named = check_state(); !named) {
      options_.fatal(named.error());
      co_return;
    }
    if (known_to_leader()) {
      confirm();
      co_await base::sleep_for(reactor_, kLookAgainUs);
      continue;
    }
    Result<bool> asked = co_await ask_seeds(false);
    if (!asked) {
      options_.fatal(asked.error());
      co_return;
    }
    confirm();
    if (!known_as_is() && !meta_.snapshot()->cluster_id.is_nil()) {
      PutNode command{options_.self, token_seed_};
      command.node.host = identity_.host;
      MetaCommandBody body(std::move(command));
      const base::Deadline deadline{reactor_.now_us() + kTellUs};
      Result<MetaIndex> proposed = co_await meta_.propose(std::move(body), deadline);
      if (!proposed && proposed.error().code == ErrorCode::kConfig) {
        options_.fatal(proposed.error());
        co_return;
      }
    }
    co_await base::sleep_for(reactor_, kKeepKnownUs);
  }
}

Bytes Formation::join_answer() const {
  const MetaSnapshot state = meta_.snapshot();
  Bytes body(state->cluster_id.view());
  base::ByteWriter writer(body);
  std::vector<std::pair<HostId, Endpoint>> members;
  members.emplace_back(identity_.host, rpc_.self_endpoint());
  for (const auto& [host, node] : state->nodes) {
    const auto endpoint = rpc_.peer(host);
    if (host != identity_.host && endpoint) members.emplace_back(host, *endpoint);
  }
  writer.varint(members.size());
  for (const auto& [host, endpoint] : members) {
    writer.raw(host.value.view());
    writer.bytes(endpoint);
  }
  return body;
}

Task<void> Formation::serve_join(Bytes body, RpcContext context, RpcNode::Reply reply) {
  const Endpoint from = context.from_endpoint;
  const auto request = decode_join(body);
  if (!request) {
    reply.error(request.error());
    co_return;
  }
  if (request->node.host == identity_.host) {
    reply.error(Error(ErrorCode::kAlreadyExists, "this is the node that asks"));
    co_return;
  }
  const MetaSnapshot state = meta_.snapshot();
  if (state->cluster_id.is_nil()) {
    reply.error(Error(ErrorCode::kBootstrapping, "this node has no cluster yet"));
    co_return;
  }
  if (!request->cluster_id.is_nil() && request->cluster_id != state->cluster_id) {
    reply.error(Error(ErrorCode::kConfig,
                      fmt::format("its data belongs to cluster {}, this is cluster {}",
                                  request->cluster_id.to_string(), state->cluster_id.to_string())));
    co_return;
  }
  if (request->cluster_name != state->cluster_name) {
    reply.error(
        Error(ErrorCode::kConfig, fmt::format("its cluster_name is '{}', this cluster is '{}'",
                                              request->cluster_name, state->cluster_name)));
    co_return;
  }
  const HostId host = request->node.host;
  if (!from.empty()) rpc_.set_peer(host, from);
  const NodeInfo* known = state->node(host);
  const bool current = known != nullptr && known->state != NodeState::kRemoved &&
                       same_but_for_ring(*known, request->node);
  if (!current) {
    MetaCommandBody command(PutNode{request->node, request->token_seed});
    // Before the asking node gives up, so that it hears that there is a cluster.
    const base::Deadline deadline{context.deadline.at_us - kAnswerUs};
    Result<MetaIndex> proposed = co_await meta_.propose(std::move(command), deadline);
    if (!proposed) {
      const bool is_final = proposed.error().code == ErrorCode::kConfig;
      reply.error(
          Error(is_final ? ErrorCode::kConfig : ErrorCode::kUnavailable, proposed.error().message));
      co_return;
    }
    logger_.info("node joins host={} endpoint={}", host.to_string(), from);
  }
  reply.ok(join_answer());
}

}  // namespace tetrad::replication
