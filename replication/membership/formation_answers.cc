// SPDX-License-Identifier: Apache-2.0
// What a node answers others that form or join a cluster: who it is (serve_identify), and, as a
// member, whether they are taken in (serve_join, step 5 of formation.cc).
#include <algorithm>

#include "replication/membership/formation.h"
#include "replication/membership/join_request.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kAnswerUs = 100'000;  // before the deadline of who asks

}  // namespace

// Of members whose addresses are known; read by learn_members().
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

// What others need for deciding: who this is, of which cluster, and what it knows of who asks.
Introduction Formation::introduction(HostId to) const {
  Introduction own;
  own.host = identity_.host;
  own.cluster_id = identity_.cluster_id;
  own.cluster_name = options_.cluster_name;
  own.found_ordered = options_.found;
  const MetaSnapshot state = meta_.snapshot();
  own.applied = state->applied;
  if (const NodeInfo* node = state->node(to))
    own.standing = node->state == NodeState::kRemoved ? Standing::kRemoved : Standing::kMember;
  own.seeds = options_.seeds;
  std::sort(own.seeds.begin(), own.seeds.end());
  own.seeds.erase(std::unique(own.seeds.begin(), own.seeds.end()), own.seeds.end());
  return own;
}

void Formation::note_mistaken(const Endpoint& from, HostId asks) {
  const MetaSnapshot state = meta_.snapshot();
  for (const auto& [host, node] : state->nodes) {
    if (host == asks || node.state == NodeState::kRemoved || !meta_.is_live(host) ||
        make_endpoint(node.address, node.internode_port) != from)
      continue;
    const base::MonotonicUs now_us = reactor_.now_us();
    const auto [said_us, is_new] = mistaken_said_us_.try_emplace(from, now_us);
    if (!is_new && now_us < said_us->second + kSayAgainUs) return;
    said_us->second = now_us;
    logger_.warn(
        "a node asks to be answered where another one is: its broadcast_address is not its own "
        "host={} says={} host_there={}",
        asks.to_string(), from, host.to_string());
    return;
  }
}

void Formation::serve_identify(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  const auto who = decode_introduction(body);
  if (!who) return reply.error(who.error());
  note_mistaken(context.from_endpoint, who->host);
  // Until its host id is on disk it may come back as another.
  if (!host_stored_) return reply.error(Error(ErrorCode::kBootstrapping, "this node starts"));
  reply.ok(encode_introduction(introduction(who->host)));
}

Task<void> Formation::serve_join(Bytes body, RpcContext context, RpcNode::Reply reply) {
  const Endpoint from = context.from_endpoint;
  // Answers of a member. Nothing is changed unless all tests are passed.
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
  // Its data directory was copied, and the node that it is of goes on.
  if (const auto place = rpc_.peer(host);
      place && !from.empty() && *place != from && meta_.is_live(host)) {
    reply.error(Error(ErrorCode::kConflict,
                      fmt::format("its host id, {}, is that of the node at {}, which is alive",
                                  host.to_string(), *place)));
    co_return;
  }
  // So that the metadata group can reach it before its entry is applied.
  if (!from.empty()) rpc_.set_peer(host, from);
  const NodeInfo* known = state->node(host);
  const bool current = known != nullptr && known->state != NodeState::kRemoved &&
                       same_but_for_ring(*known, request->node, state->format);
  if (!current) {
    MetaCommandBody command(PutNode{request->node, request->token_seed});
    // Before the asking node gives up, so that it hears that there is a cluster.
    const base::Deadline deadline{context.deadline.at_us - kAnswerUs};
    Result<MetaIndex> proposed = co_await meta_.propose(std::move(command), deadline);
    // kConfig is the cluster's final word; anything else may pass.
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
