// SPDX-License-Identifier: Apache-2.0
// Wiring of a node's replication.
#include "replication/node.h"

#include "base/byte_io.h"
#include "replication/membership/kept_time.h"
#include "replication/membership/leaving.h"

namespace tetrad::replication {

namespace {

constexpr BytesView kTimeKey = "node/t";

RpcOptions rpc_options(const NodeOptions& options) {
  RpcOptions rpc;
  rpc.self_endpoint = make_endpoint(options.address, options.internode_port);
  rpc.shard = 0;
  rpc.shard_count = options.shard_count;
  rpc.forward = options.forward;
  return rpc;
}

MembershipOptions membership_options(const NodeOptions& options,
                                     const NodeEnvironment& environment) {
  MembershipOptions membership;
  membership.heartbeat_us = options.heartbeat_us;
  const uint64_t any = environment.random.next();
  membership.start_number = options.start_number != 0 ? options.start_number : any;
  membership.start_numbers_rise = options.start_number != 0;
  membership.nonce = options.nonce;
  membership.is_open = options.is_open;
  membership.shows_masked = options.shows_masked;
  membership.whole = environment.whole;
  return membership;
}

MetaServiceOptions meta_options(const NodeOptions& options) {
  MetaServiceOptions meta;
  meta.tick_us = options.raft_tick_us;
  meta.snapshot_every = options.raft_snapshot_every;
  meta.voter_away_us = options.voter_away_us;
  meta.format = options.format;
  meta.fatal = options.fatal;
  return meta;
}

FormationOptions formation_options(const NodeOptions& options, HostId host,
                                   std::function<void()> member, std::function<void()> removed) {
  FormationOptions formation;
  formation.self.host = host;
  formation.self.address = options.address;
  if (options.client_address != options.address)
    formation.self.client_address = options.client_address;
  formation.self.native_port = options.native_port;
  formation.self.internode_port = options.internode_port;
  formation.self.admin_port = options.admin_port;
  formation.self.data_center = options.data_center;
  formation.self.rack = options.rack;
  formation.self.store_count = options.store_count;
  formation.self.version = options.version;
  formation.self.format = options.format;
  formation.seeds = options.seeds;
  formation.found = options.found;
  formation.cluster_name = options.cluster_name;
  formation.retry_us = options.join_retry_us;
  formation.fatal = options.fatal;
  formation.member = std::move(member);
  formation.removed = std::move(removed);
  formation.refusal = options.refusal;
  formation.is_reached = options.is_reached;
  return formation;
}

}  // namespace

Result<std::unique_ptr<ReplicationNode>> ReplicationNode::make(NodeEnvironment environment,
                                                               NodeOptions options) {
  TETRAD_TRY(const NodeIdentity identity, load_identity(environment.log, environment.random));
  TETRAD_TRY(const auto kept, environment.log.get(kTimeKey));
  std::optional<LastLife> last;
  if (kept) {
    TETRAD_TRY(const KeptTime time, KeptTime::decode(*kept));
    last = time.ended(options.boot_id, environment.reactor.boot_time_us(),
                      environment.reactor.wall_time_us());
  }
  if (!options.fatal) options.fatal = [](const Error&) {};
  options.batches.fatal = options.fatal;
  std::unique_ptr<ReplicationNode> node(
      new ReplicationNode(std::move(environment), std::move(options), identity, last));
  TETRAD_TRY_VOID(node->batches_.open());
  return node;
}

ReplicationNode::ReplicationNode(NodeEnvironment environment, NodeOptions options,
                                 NodeIdentity identity, std::optional<LastLife> last)
    : environment_(std::move(environment)),
      options_(std::move(options)),
      logger_(environment_.logger),
      clock_(options_.clock_skew_max_us),
      rpc_(environment_.reactor, environment_.random, environment_.transport, identity.host,
           rpc_options(options_), logger_.named("rpc")),
      membership_(environment_.reactor, rpc_, clock_, membership_options(options_, environment_),
                  logger_.named("membership")),
      meta_(environment_.reactor, environment_.random, environment_.log, rpc_, membership_,
            meta_options(options_), logger_.named("meta")),
      disk_usage_(
          environment_.reactor, environment_.pool, environment_.disk, options_.disk_usage,
          [this](DiskUsage usage) { membership_.set_disk_usage(usage); },
          logger_.named("membership")),
      throughputs_(environment_.reactor, rpc_, meta_),
      batches_(environment_.reactor, rpc_, meta_, membership_,
               environment_.batch_log != nullptr ? *environment_.batch_log : environment_.log,
               options_.batches, logger_.named("batches")),
      tablets_(environment_.reactor, environment_.random, rpc_, environment_.log, meta_, clock_,
               environment_.stores, environment_.losses, options_.load_period_us,
               options_.moves.stream_page_bytes, options_.changes, environment_.claim_makers,
               environment_.view_makers, options_.indexes, options_.renew_store, options_.heat,
               environment_.busy_us, logger_),
      moves_(environment_.reactor, rpc_, meta_, options_.moves, logger_.named("tablets")),
      merges_(environment_.reactor, rpc_, meta_, moves_, options_.heat, options_.merges,
              logger_.named("tablets")),
      leaving_(
          environment_.reactor, meta_, options_.leaving,
          [this](HostId host) { return membership_.is_drained(host); },
          logger_.named("membership")),
      formation_(environment_.reactor, environment_.random, environment_.log, rpc_, meta_, identity,
                 formation_options(
                     options_, identity.host,
                     [this] {
                       member_ = true;
                       on_state(meta_.snapshot());
                     },
                     [this] { be_removed(); }),
                 logger_.named("formation")),
      hub_(MetaHub::make(environment_.reactor, meta_)) {
  membership_.set_batch_source([this] {
    BatchWord word = batches_.word();
    if (options_.let_clients_go == nullptr) return word;
    // A node that leaves and holds nothing any more lets its clients go first.
    const bool leaves = word.is_drained && replicas_on(*meta_.snapshot(), rpc_.self()) == 0;
    word.is_drained = options_.let_clients_go(leaves) && leaves;
    return word;
  });
  membership_.begin_clock(last);
  membership_.on_store_lost(options_.store_lost);
  membership_.keep_clock_with(
      [this](int64_t time_us, base::Callback done) { write_time(time_us, true, std::move(done)); });
  register_metrics();
  rpc_.handle(Verb::kLoad, [this](const RpcContext& context, BytesView body,
                                  const RpcNode::Reply&) { on_load(context, body); });
  rpc_.handle(Verb::kHeat, [this](const RpcContext& context, BytesView body,
                                  const RpcNode::Reply&) { on_heat(context, body); });
  rpc_.handle(Verb::kThroughputUse,
              [this](const RpcContext& context, BytesView body, const RpcNode::Reply&) {
                on_throughput_use(context, body);
              });
  // Another node asks whether all shards here have applied an index of the metadata, and that it is
  // on the disk.
  rpc_.handle(Verb::kSyncApplied, [this](const RpcContext&, BytesView body, RpcNode::Reply reply) {
    const uint64_t wanted = base::ByteReader(body).read_u64().value_or(0);
    if (meta_.applied_by_shards().value < wanted)
      return reply.error(Error(ErrorCode::kBehind, "not applied here yet"));
    auto shared = std::make_shared<RpcNode::Reply>(std::move(reply));
    meta_.sync_applied([shared] { shared->ok({}); });
  });
  subscription_ =
      meta_.subscribe([this](const MetaSnapshot&, const MetaSnapshot& now) { on_state(now); });
}

ReplicationNode::~ReplicationNode() {
  // Members go in reverse order afterwards; the hub is closed first, since shards hold it.
  environment_.reactor.cancel(keep_timer_);
  membership_.set_batch_source(nullptr);
  hub_->close();
}

/// The next life must not begin before what this one has stamped. Not synced: a power cut takes
/// what the last second has stamped, too.
std::string ReplicationNode::refusal(HostId host) const {
  const auto place = rpc_.peer(host);
  return place && options_.refusal ? options_.refusal(*place) : "";
}

void ReplicationNode::keep_time() {
  keep_timer_ = environment_.reactor.call_at(environment_.reactor.now_us() + kKeepTimeUs,
                                             [this] { keep_time(); });
  if (const auto time_us = membership_.clock_watch().keep_us()) write_time(*time_us, false, [] {});
}

void ReplicationNode::write_time(int64_t time_us, bool synced, base::Callback done) {
  const KeptTime kept{time_us, environment_.reactor.boot_time_us(), options_.boot_id};
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({Bytes(kTimeKey), kept.encode()});
  environment_.log.write(std::move(batch), synced,
                         [logger = logger_, done = std::move(done)](Result<void> written) mutable {
                           // A full disk does not keep a node from answering; a failed one ends it.
                           if (!written)
                             logger.warn("the node's time is not kept error={}",
                                         written.error().message);
                           done();
                         });
}

void ReplicationNode::register_metrics() {
  constexpr const char* kShard = "shard=\"0\"";
  base::MetricsRegistry& metrics = environment_.metrics;
  rpc_.metrics().register_in(metrics, kShard);
  tablets_.register_in(metrics, kShard);
  batches_.register_in(metrics);
  metrics.add_gauge("tetrad_replication_clock_good",
                    "1: requests are coordinated; 0: the node's clock is off, or in doubt.", "",
                    [this] { return clock_.is_good() ? 1.0 : 0.0; });
  metrics.add_gauge("tetrad_replication_clock_off_seconds",
                    "How far the wall clock is ahead of what the other nodes agree on.", "",
                    [this] { return static_cast<double>(clock_.off_us()) / 1e6; });
  metrics.add_gauge(
      "tetrad_replication_clock_ahead_seconds",
      "How far the node's own time, which never goes back, is ahead of the wall clock.", "",
      [this] {
        const int64_t ahead_us =
            clock_.own_us(environment_.reactor) - environment_.reactor.wall_time_us();
        return static_cast<double>(ahead_us) / 1e6;
      });
  metrics.add("tetrad_replication_tablet_changes_total",
              "Changes of members this node has begun as the leader of the metadata group.", "",
              moves_.metrics().begun);
  metrics.add(
      "tetrad_replication_balance_moves_total",
      "Tablets this node, as that leader, has begun to move so that nodes hold equal parts.", "",
      moves_.metrics().balanced);
  metrics.add(
      "tetrad_replication_balance_bytes_total",
      "Bytes that moves of tablets for balance are to copy, by the sizes known when they began.",
      "", moves_.metrics().balanced_bytes);
  metrics.add("tetrad_replication_merges_total",
              "Pairs of tablets that this node, as that leader or by order, has merged.", "",
              merges_.metrics().merged);
  metrics.add("tetrad_replication_merges_given_up_total",
              "Pairs that were on their way to be merged and were not.", "",
              merges_.metrics().given_up);
  metrics.add("tetrad_replication_stores_vacated_total",
              "Stores whose tablets this node, as that leader, has moved because of their disks.",
              "", moves_.metrics().vacated);
  if (environment_.disk != nullptr && options_.disk_usage.limits.is_on()) {
    metrics.add_gauge("tetrad_replication_disk_used_percent",
                      "Use of the disk under the data, as its guardrail counts it.", "",
                      [this] { return static_cast<double>(disk_usage_.percent()); });
  }
}

void ReplicationNode::start() {
  formation_.start();
  keep_time();
  disk_usage_.start();
  tablets_.start();
  moves_.start();
  merges_.start();
  leaving_.start();
}

void ReplicationNode::on_state(const MetaSnapshot& now) {
  const NodeInfo* own = now->node(self());
  if (own != nullptr && own->state == NodeState::kRemoved) return be_removed();
  // Ready means: a member by the group's word, with a state that has this node in it.
  if (!ready_ && member_ && !removed_ && own != nullptr) {
    ready_ = true;
    if (options_.ready) options_.ready();
  }
}

Task<Result<void>> ReplicationNode::decommission(base::Deadline deadline) {
  TETRAD_CO_TRY_VOID(begin_order());
  Result<void> done = co_await leave_by_order(deadline);
  is_ordering_ = false;
  co_return done;
}

Task<Result<void>> ReplicationNode::cancel_decommission(base::Deadline deadline) {
  TETRAD_CO_TRY_VOID(begin_order());
  Result<void> done = co_await stay_by_order(deadline);
  is_ordering_ = false;
  co_return done;
}

Result<void> ReplicationNode::begin_order() {
  if (std::exchange(is_ordering_, true))
    return fail(ErrorCode::kConflict, "another order to leave or to stay is being carried out");
  return {};
}

Task<Result<void>> ReplicationNode::leave_by_order(base::Deadline deadline) {
  TETRAD_CO_TRY(const bool was_noted, is_decommissioned(environment_.log));
  Result<void> noted = co_await note_decommission(environment_.log, true);
  TETRAD_CO_TRY_VOID(std::move(noted));
  // Noted on disk before it is proposed: a node that dies in between goes on leaving when it is
  // started again.
  MetaCommandBody body(SetNodeState{self(), NodeState::kLeaving});
  Result<MetaIndex> proposed = co_await meta_.propose(std::move(body), deadline);
  if (proposed) co_return Result<void>();
  // Whether it was refused or is still on its way nobody knows after a timeout. The note of an
  // earlier order stays: that may be what this one is refused for, and a node that has left without
  // a note comes back as a new one.
  const MetaSnapshot state = meta_.snapshot();
  const NodeInfo* own = state->node(self());
  const bool stays = own == nullptr || own->state == NodeState::kNormal;
  if (proposed.error().code != ErrorCode::kTimedOut && !was_noted && stays) {
    Result<void> taken_back = co_await note_decommission(environment_.log, false);
    TETRAD_CO_TRY_VOID(std::move(taken_back));
  }
  co_return std::unexpected<Error>(proposed.error());
}

// The other way round: as long as the node may still be taken out, it must know that it was meant.
Task<Result<void>> ReplicationNode::stay_by_order(base::Deadline deadline) {
  const MetaSnapshot state = meta_.snapshot();
  const NodeInfo* own = state->node(self());
  // The note alone is there when a cancelling did not come to erase it, or while a decommission is
  // being proposed.
  const auto is_noted = is_decommissioned(environment_.log);
  const bool leaves = own != nullptr && own->state == NodeState::kLeaving;
  if (!leaves && !(is_noted && *is_noted))
    co_return fail(ErrorCode::kConflict, "this node is not leaving");
  MetaCommandBody body(SetNodeState{self(), NodeState::kNormal});
  Result<MetaIndex> proposed = co_await meta_.propose(std::move(body), deadline);
  TETRAD_CO_TRY_VOID(std::move(proposed));
  co_return co_await note_decommission(environment_.log, false);
}

void ReplicationNode::be_removed() {
  ready_ = false;
  if (!std::exchange(removed_, true) && options_.removed) options_.removed();
}

/// From this node's shards, to be forwarded to other nodes; or from another node.
void ReplicationNode::on_load(const RpcContext& context, BytesView body) {
  const auto sizes = decode_load(body);
  if (!sizes) return;
  for (const auto& [tablet, bytes] : *sizes) meta_.set_tablet_bytes(tablet, bytes);
  if (context.from != self()) return;
  for (const HostId host : membership_.live_hosts()) rpc_.one_way(host, 0, Verb::kLoad, body);
}

/// The same.
void ReplicationNode::on_heat(const RpcContext& context, BytesView body) {
  const auto report = decode_heat(body);
  if (!report) return;
  meta_.heat_board().take(context.from, *report, environment_.reactor.now_us());
  if (context.from != self()) return;
  for (const HostId host : membership_.live_hosts()) rpc_.one_way(host, 0, Verb::kHeat, body);
}

/// The same.
void ReplicationNode::on_throughput_use(const RpcContext& context, BytesView body) {
  const auto report = decode_throughput_report(body);
  if (!report) return;
  meta_.throughput_board().take(*report, environment_.reactor.now_us());
  if (context.from != self() || meta_.snapshot()->format < kFormatThroughput) return;
  for (const HostId host : membership_.live_hosts())
    rpc_.one_way(host, 0, Verb::kThroughputUse, body);
}

}  // namespace tetrad::replication
