// SPDX-License-Identifier: Apache-2.0
// Wiring of a shard other than the first: its messages, the metadata as shard 0 passes it on, its
// tablets.
#include "replication/shard.h"

namespace tetrad::replication {

namespace {

RpcOptions rpc_options(const NodeOptions& node, const ShardOptions& options) {
  RpcOptions rpc;
  rpc.self_endpoint = make_endpoint(node.address, node.internode_port);
  rpc.shard = options.shard;
  rpc.shard_count = node.shard_count;
  rpc.forward = options.forward;
  return rpc;
}

}  // namespace

ReplicationShard::ReplicationShard(const NodeEnvironment& environment, ReplicationNode& main,
                                   ShardOptions options)
    : options_(std::move(options)),
      rpc_(environment.reactor, environment.random, environment.transport, main.self(),
           rpc_options(main.options(), options_), environment.logger.named("rpc")),
      meta_(environment.reactor, main.self(), main.hub()),
      tablets_(environment.reactor, environment.random, rpc_, environment.log, meta_, main.clock(),
               environment.stores, environment.losses, main.options().load_period_us,
               main.options().moves.stream_page_bytes, main.options().changes,
               environment.claim_makers, environment.view_makers, main.options().indexes,
               main.options().renew_store, main.options().heat, environment.busy_us,
               environment.logger) {
  const std::string labels = fmt::format("shard=\"{}\"", options_.shard);
  rpc_.metrics().register_in(environment.metrics, labels);
  tablets_.register_in(environment.metrics, labels);
  subscription_ = meta_.subscribe(
      [this](const MetaSnapshot& before, const MetaSnapshot& now) { on_state(before, now); });
}

void ReplicationShard::on_state(const MetaSnapshot& before, const MetaSnapshot& now) {
  if (before == now) {  // what has changed is who is live
    for (const auto& [host, node] : now->nodes)
      if (host != meta_.self() && meta_.is_live(host)) rpc_.seen_alive(host);
    return;
  }
  if (!now->cluster_id.is_nil()) rpc_.set_cluster_id(now->cluster_id);
  for (const auto& [host, node] : now->nodes) {
    if (host == meta_.self()) continue;
    // Only addresses that are new or have changed.
    const NodeInfo* known = before->node(host);
    if (known == nullptr || known->address != node.address ||
        known->internode_port != node.internode_port)
      rpc_.set_peer(host, make_endpoint(node.address, node.internode_port));
  }
  const NodeInfo* own = now->node(meta_.self());
  if (ready_ || own == nullptr || own->state == NodeState::kRemoved) return;
  ready_ = true;
  if (options_.ready) options_.ready();
}

}  // namespace tetrad::replication
