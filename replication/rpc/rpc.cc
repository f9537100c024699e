// SPDX-License-Identifier: Apache-2.0
// The face of requests and replies: each method hands over to the core (rpc_core.h).
#include "replication/rpc/rpc.h"

#include "base/assert.h"
#include "replication/rpc/rpc_core.h"

namespace tetrad::replication {

void RpcMetrics::register_in(base::MetricsRegistry& registry, const std::string& labels) const {
  registry.add("tetrad_replication_messages_sent_total", "Messages handed to the transport.",
               labels, sent);
  registry.add("tetrad_replication_messages_dropped_total",
               "Messages dropped because too much waited to be sent to their peer.", labels,
               dropped);
  registry.add("tetrad_replication_messages_received_total", "Messages received.", labels,
               received);
  registry.add("tetrad_replication_calls_timed_out_total", "Calls without an answer in time.",
               labels, timed_out);
  registry.add("tetrad_replication_calls_overloaded_total",
               "Calls refused because too much was in flight.", labels, refused_overload);
  registry.add("tetrad_replication_messages_foreign_total",
               "Messages refused because they came from another cluster.", labels, refused_foreign);
  registry.add("tetrad_replication_messages_misdirected_total",
               "Messages refused because they were for the host that was here before.", labels,
               refused_wanted);
  registry.add("tetrad_replication_messages_malformed_total", "Messages that could not be read.",
               labels, refused_malformed);
}

// `request_id_` is taken out while the answer is made: what throws leaves a reply that still can
// give an error.
void RpcNode::Reply::ok(Bytes body) {
  const uint64_t id = std::exchange(request_id_, 0);
  if (id == 0) return;
  if (auto core = core_.lock()) {
    request_id_ = id;
    if (body.size() > kMessageBytesMax - 1024) {
      Bytes text;
      encode_error(Error(ErrorCode::kLimit, "the answer is too large"), text);
      core->send_reply(*this, MessageKind::kErrorReply, text);
    } else {
      core->send_reply(*this, MessageKind::kReply, body);
    }
    request_id_ = 0;
  }
}

void RpcNode::Reply::error(const Error& error) {
  if (request_id_ == 0) return;
  if (auto core = core_.lock()) {
    Bytes text;
    encode_error(error, text);
    core->send_reply(*this, MessageKind::kErrorReply, text);
  }
  request_id_ = 0;
}

RpcNode::RpcNode(base::Reactor& reactor, base::Random& random, Transport& transport, HostId self,
                 RpcOptions options, Logger logger)
    : core_(std::make_shared<Core>(reactor, random, transport, self, std::move(options),
                                   std::move(logger))) {
  transport.set_receive_handler([weak = std::weak_ptr<Core>(core_)](Bytes message) {
    if (auto core = weak.lock()) core->receive(std::move(message), false);
  });
}

RpcNode::~RpcNode() {
  core_->transport.set_receive_handler(nullptr);
  core_->transport.set_refused_handler(nullptr);
  if (core_->timer != 0) core_->reactor.cancel(core_->timer);
}

HostId RpcNode::self() const { return core_->self; }
const Endpoint& RpcNode::self_endpoint() const { return core_->options.self_endpoint; }
uint32_t RpcNode::shard() const { return core_->options.shard; }
void RpcNode::set_cluster_id(Uuid cluster_id) { core_->cluster_id = cluster_id; }
Uuid RpcNode::cluster_id() const { return core_->cluster_id; }

void RpcNode::set_peer(HostId host, Endpoint endpoint) {
  core_->peer_of(host).endpoint = std::move(endpoint);
}

std::optional<Endpoint> RpcNode::peer(HostId host) const {
  const auto found = core_->peers.find(host);
  if (found == core_->peers.end() || found->second->endpoint.empty()) return std::nullopt;
  return found->second->endpoint;
}

void RpcNode::on_refused(Transport::RefusedHandler handler) {
  core_->transport.set_refused_handler(std::move(handler));
}

void RpcNode::handle(Verb verb, Handler handler, bool open_to_strangers) {
  core_->handlers[static_cast<uint8_t>(verb)] = {std::move(handler), open_to_strangers};
}

void RpcNode::call(HostId to, uint32_t store, Verb verb, BytesView body, base::Deadline deadline,
                   ReplyCallback done) {
  core_->call(nullptr, to, store, verb, body, deadline, std::move(done), false);
}

// Callbacks run while the core lives.
void RpcNode::call_timed(HostId to, uint32_t store, Verb verb, BytesView body,
                         base::Deadline deadline, TimedCallback done) {
  core_->call(
      nullptr, to, store, verb, body, deadline,
      [core = core_.get(), done = std::move(done)](Result<Bytes> answer) mutable {
        const auto worked_us = std::exchange(core->worked_us, std::nullopt);
        done(std::move(answer), worked_us);
      },
      true);
}

void RpcNode::call_endpoint(const Endpoint& to, Verb verb, BytesView body, base::Deadline deadline,
                            ReplyCallback done) {
  core_->call(&to, HostId(), 0, verb, body, deadline, std::move(done), false);
}

// Lost when the queue is full or the peer is not known.
void RpcNode::one_way(HostId to, uint32_t store, Verb verb, BytesView body) {
  const Envelope envelope = core_->envelope_for(MessageKind::kOneWay, verb, to, store, 0);
  if (to == core_->self) {
    core_->deliver_locally(core_->shard_of(store), Core::join(envelope, body));
    return;
  }
  const Core::Peer& peer = core_->peer_of(to);
  if (!peer.endpoint.empty())
    core_->send(peer.endpoint, Core::join(envelope, body), lane_of(verb, false));
}

Task<Result<Bytes>> RpcNode::ask(HostId to, uint32_t store, Verb verb, Bytes body,
                                 base::Deadline deadline) {
  base::OneShot<Result<Bytes>> answer;
  auto setter = answer.setter();
  ReplyCallback done = [setter](Result<Bytes> result) { setter.set(std::move(result)); };
  call(to, store, verb, body, deadline, std::move(done));
  Result<Bytes> result = co_await answer;
  co_return result;
}

void RpcNode::call_shard(std::unique_ptr<ShardCall> call, uint64_t request_bytes) {
  core_->call_shard(std::move(call), request_bytes);
}

void RpcNode::handle_shard_calls(ShardCallHandler handler) {
  core_->shard_calls = std::move(handler);
}

void RpcNode::answer_shard(std::unique_ptr<ShardCall> call) {
  const uint32_t to = call->from_shard_;
  TETRAD_ASSERT(call->is_answered_ && to < core_->options.shard_count);
  core_->options.forward(to, std::move(call));
}

void RpcNode::receive_forwarded(ShardMessage message) {
  const auto keep = core_;
  if (message.call != nullptr) {
    keep->receive_call(std::move(message.call));
  } else {
    keep->receive(std::move(message.bytes), true);
  }
}

void RpcNode::seen_alive(HostId host) {
  const auto endpoint = peer(host);
  if (endpoint) core_->transport.heard_from(*endpoint);
}

size_t RpcNode::calls_in_flight() const { return core_->in_flight; }
const RpcMetrics& RpcNode::metrics() const { return core_->metrics; }

}  // namespace tetrad::replication
