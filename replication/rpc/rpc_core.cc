// SPDX-License-Identifier: Apache-2.0
//
// A call:
//   1. It gets a slot in `pending` and an id: a generation that never repeats, and the slot's
//      number. So a late answer finds its slot taken by another id, and is dropped.
//   2. Its deadline goes to the timing wheel; the envelope carries the time that is left, since
//      clocks of nodes differ.
//   3. It is sent to a peer's endpoint on the lane of its verb, to another shard through `forward`,
//      or delivered here in a later step of the loop.
//   4. The answer, the deadline or a refusal takes the slot, whichever comes first; `done` runs
//      exactly once, never inside of call().
//
// A request: the envelope is decoded, target and cluster are compared, then the handler of the verb
// runs with a Reply, which may be kept and answered later, once. All on the shard's thread.
#include "replication/rpc/rpc_core.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/rpc/verb_names.h"

namespace tetrad::replication {

namespace {
// An id is generation << 24 | slot: at most 16 million calls at once.
constexpr uint32_t kSlotBits = 24;
constexpr uint64_t kSlotMask = (uint64_t{1} << kSlotBits) - 1;
constexpr int64_t kLogPeriodUs = 10'000'000;
// One line a minute for each stranger, of at most 64 strangers.
constexpr int64_t kStrangerLogPeriodUs = 60'000'000;
constexpr size_t kStrangersKept = 64;
}  // namespace

bool RpcNode::Core::may_log() {
  if (reactor.now_us() < next_log_us) return false;
  next_log_us = reactor.now_us() + kLogPeriodUs;
  return true;
}

bool RpcNode::Core::may_log_stranger(const Endpoint& endpoint) {
  const base::MonotonicUs now_us = reactor.now_us();
  if (strangers.size() >= kStrangersKept && !strangers.contains(endpoint)) {
    std::erase_if(strangers,
                  [&](const auto& entry) { return entry.second + kStrangerLogPeriodUs <= now_us; });
    if (strangers.size() >= kStrangersKept) return false;
  }
  const auto [known, is_new] = strangers.try_emplace(endpoint, now_us);
  if (!is_new && now_us < known->second + kStrangerLogPeriodUs) return false;
  known->second = now_us;
  return true;
}

Envelope RpcNode::Core::envelope_for(MessageKind kind, Verb verb, HostId target, uint32_t store,
                                     uint64_t request_id) const {
  Envelope envelope;
  envelope.kind = kind;
  envelope.verb = verb;
  envelope.cluster_id = cluster_id;
  envelope.sender = self;
  envelope.target = target;
  envelope.sender_shard = options.shard;
  envelope.target_store = store;
  envelope.request_id = request_id;
  envelope.sender_endpoint = options.self_endpoint;
  return envelope;
}

Bytes RpcNode::Core::join(const Envelope& envelope, BytesView body) {
  Bytes message;
  // Room for the envelope's fixed part.
  message.reserve(96 + envelope.sender_endpoint.size() + body.size());
  encode_envelope(envelope, message);
  message.append(body);
  return message;
}

RpcNode::Core::Peer& RpcNode::Core::peer_of(HostId host) {
  auto& peer = peers[host];
  if (!peer) peer = std::make_unique<Peer>();
  return *peer;
}

void RpcNode::Core::deliver_locally(uint32_t shard, Bytes message) {
  if (shard != options.shard) {
    TETRAD_ASSERT(options.forward);
    options.forward(shard, std::move(message));
    return;
  }
  reactor.post([weak = weak_from_this(), message = std::move(message)]() mutable {
    if (auto core = weak.lock()) core->receive(std::move(message), true);
  });
}

void RpcNode::Core::call_shard(std::unique_ptr<ShardCall> call, uint64_t bytes) {
  TETRAD_ASSERT(call != nullptr && options.forward);
  Peer& peer = peer_of(self);
  call->from_shard_ = options.shard;
  call->request_bytes_ = bytes;
  ++peer.calls;
  peer.bytes += bytes;
  if (peer.calls > options.calls_in_flight_max || peer.bytes > options.bytes_in_flight_max) {
    metrics.refused_overload.add();
    call->refuse(Error(ErrorCode::kOverloaded, "too many requests in flight to another shard"));
    call->is_answered_ = true;
    // Refused: it comes back as if from the other shard, in a later step.
    reactor.post([weak = weak_from_this(), call = std::move(call)]() mutable {
      if (auto core = weak.lock()) core->receive_call(std::move(call));
    });
    return;
  }
  const uint32_t to = shard_of(call->store());
  options.forward(to, std::move(call));
}

void RpcNode::Core::receive_call(std::unique_ptr<ShardCall> call) {
  const auto keep = shared_from_this();
  try {
    take_call(std::move(call));
  } catch (const std::exception& error) {
    log_failed(error);
  }
}

void RpcNode::Core::take_call(std::unique_ptr<ShardCall> call) {
  // On its way there; the handler owes it back through answer_shard().
  if (!call->is_answered_) {
    call->is_answered_ = true;
    TETRAD_ASSERT(shard_calls);
    shard_calls(std::move(call));
    return;
  }
  Peer& peer = peer_of(self);
  TETRAD_ASSERT(peer.calls > 0 && peer.bytes >= call->request_bytes_);
  --peer.calls;
  peer.bytes -= call->request_bytes_;
  ShardCall& answered = *call;
  answered.finish(std::move(call));
}

bool RpcNode::Core::send(const Endpoint& to, Bytes message, Lane lane) {
  metrics.sent.add();
  if (transport.send(to, std::move(message), lane)) return true;
  metrics.dropped.add();
  return false;
}

void RpcNode::Core::fail_later(ReplyCallback done, Error error) {
  reactor.post(
      [weak = weak_from_this(), done = std::move(done), error = std::move(error)]() mutable {
        if (auto core = weak.lock()) core->tell(done, std::unexpected<Error>(std::move(error)));
      });
}

void RpcNode::Core::tell(ReplyCallback& done, Result<Bytes> answer) {
  try {
    done(std::move(answer));
  } catch (const std::exception& error) {
    log_failed(error);
  }
}

void RpcNode::Core::log_failed(const std::exception& error) noexcept {
  try {
    if (may_log()) logger.error("a message could not be taken error={}", error.what());
  } catch (const std::exception&) {  // not even a line of the log has room
  }
}

uint64_t RpcNode::Core::add_pending(ReplyCallback done, Peer* peer, uint64_t bytes, Verb verb,
                                    base::MonotonicUs deadline_us) {
  uint32_t slot;
  if (free_slots.empty()) {
    slot = static_cast<uint32_t>(pending.size());
    pending.emplace_back();
  } else {
    slot = free_slots.back();
    free_slots.pop_back();
  }
  Pending& entry = pending[slot];
  TETRAD_ASSERT(entry.id == 0 && !entry.done);
  // 24 bits of the slot, above them a generation that begins at random and counts up.
  entry.id = ((++generation) << kSlotBits) | slot;
  entry.done = std::move(done);
  entry.peer = peer;
  entry.bytes = bytes;
  entry.verb = verb;
  if (peer != nullptr) {
    ++peer->calls;
    peer->bytes += bytes;
  }
  ++in_flight;
  TETRAD_ASSERT(in_flight + free_slots.size() <= pending.size());
  // Every call has a deadline, so every slot is freed.
  wheel.add(entry.id, deadline_us, reactor.now_us());
  arm_timer();
  return entry.id;
}

std::optional<RpcNode::ReplyCallback> RpcNode::Core::take_pending(uint64_t id) {
  const uint64_t slot = id & kSlotMask;
  if (id == 0 || slot >= pending.size() || pending[slot].id != id) return std::nullopt;
  Pending& entry = pending[slot];
  std::optional<ReplyCallback> done(std::move(entry.done));
  entry.done = nullptr;
  entry.id = 0;
  TETRAD_ASSERT(in_flight > 0);
  if (entry.peer != nullptr) {
    TETRAD_ASSERT(entry.peer->calls > 0 && entry.peer->bytes >= entry.bytes);
    --entry.peer->calls;
    entry.peer->bytes -= entry.bytes;
  }
  --in_flight;
  free_slots.push_back(static_cast<uint32_t>(slot));
  TETRAD_ASSERT(in_flight + free_slots.size() <= pending.size());
  return done;
}

void RpcNode::Core::arm_timer() {
  const auto next = wheel.next_us();
  if (!next) return;
  // Only an earlier time needs another timer.
  if (timer != 0 && timer_at_us <= *next) return;
  if (timer != 0) reactor.cancel(timer);
  timer_at_us = *next;
  timer = reactor.call_at(*next, [weak = weak_from_this()] {
    if (auto core = weak.lock()) core->on_timer();
  });
}

void RpcNode::Core::on_timer() {
  timer = 0;
  // Collected first: callbacks may make calls.
  std::vector<uint64_t> due;
  wheel.advance(reactor.now_us(), due);
  arm_timer();
  const auto keep = shared_from_this();
  for (const uint64_t id : due) {
    TETRAD_ASSERT((id & kSlotMask) < pending.size());
    const Pending& waiting = pending[id & kSlotMask];
    const std::string_view what = name_of(waiting.verb);
    const std::string peer = waiting.peer == nullptr || waiting.peer->endpoint.empty()
                                 ? std::string()
                                 : " from " + waiting.peer->endpoint;
    auto done = take_pending(id);
    if (!done) continue;
    metrics.timed_out.add();
    tell(*done, fail(ErrorCode::kTimedOut, "no answer in time{} to \"{}\"", peer, what));
  }
}

void RpcNode::Core::call(const Endpoint* endpoint, HostId to, uint32_t store, Verb verb,
                         BytesView body, base::Deadline deadline, ReplyCallback done,
                         bool wants_time) {
  const base::MonotonicUs left = deadline.at_us - reactor.now_us();
  if (left <= 0) {
    fail_later(std::move(done), Error(ErrorCode::kTimedOut, "the deadline has passed"));
    return;
  }
  // By endpoint, when the host is not known yet (founding and joining): no peer, no bounds but
  // the slots.
  const bool local = endpoint == nullptr && to == self;
  Peer* peer = nullptr;
  if (endpoint == nullptr) {
    peer = &peer_of(to);
    if (!local && peer->endpoint.empty()) {
      fail_later(std::move(done),
                 Error(ErrorCode::kUnavailable,
                       fmt::format("host {} has no known address", to.to_string())));
      return;
    }
    // Refused here, at once: a queue to a slow peer must not take the memory of all.
    if (peer->calls >= options.calls_in_flight_max ||
        peer->bytes + body.size() > options.bytes_in_flight_max) {
      metrics.refused_overload.add();
      if (!local) transport.note_overload(peer->endpoint, body.size());
      fail_later(std::move(done),
                 Error(ErrorCode::kOverloaded,
                       fmt::format("too many requests in flight to {}",
                                   local ? options.self_endpoint : peer->endpoint)));
      return;
    }
  }
  // 1024: room for the envelope.
  if (in_flight >= kSlotMask || body.size() > kMessageBytesMax - 1024) {
    fail_later(std::move(done), Error(ErrorCode::kOverloaded, "request too large or too many"));
    return;
  }
  Envelope envelope = envelope_for(MessageKind::kRequest, verb, to, store, 0);
  envelope.time_left_us =
      static_cast<uint32_t>(std::min<int64_t>(left, std::numeric_limits<uint32_t>::max()));
  envelope.wants_time = wants_time;
  envelope.request_id = add_pending(std::move(done), peer, body.size(), verb, deadline.at_us);
  Bytes message = join(envelope, body);
  if (local) return deliver_locally(shard_of(store), std::move(message));
  const Endpoint& there = endpoint != nullptr ? *endpoint : peer->endpoint;
  // The transport's own queue is full: nothing was sent.
  if (send(there, std::move(message), lane_of(verb, true))) return;
  metrics.refused_overload.add();
  if (auto waiting = take_pending(envelope.request_id))
    fail_later(std::move(*waiting), Error(ErrorCode::kOverloaded,
                                          fmt::format("too much waits to be sent to {}", there)));
}

void RpcNode::Core::receive(Bytes message, bool local) {
  try {
    take(std::move(message), local);
  } catch (const std::exception& error) {
    log_failed(error);
  }
}

void RpcNode::Core::take(Bytes message, bool local) {
  if (!local) metrics.received.add();
  auto decoded = decode_envelope(message);
  if (!local) transport.note_sender(decoded ? &decoded->envelope.sender_endpoint : nullptr);
  if (!decoded) {
    metrics.refused_malformed.add();
    if (may_log()) logger.warn("message refused: {}", decoded.error().message);
    return;
  }
  const Envelope& envelope = decoded->envelope;
  // Any message shows that the endpoint lives.
  if (envelope.sender != self) transport.heard_from(envelope.sender_endpoint);
  const bool is_reply =
      envelope.kind == MessageKind::kReply || envelope.kind == MessageKind::kErrorReply;
  const uint32_t shard =
      is_reply ? envelope.target_store % options.shard_count : shard_of(envelope.target_store);
  // Somebody else's address has been given to this node, or the other way round: acting on it
  // could count for the wrong member.
  if (!envelope.target.value.is_nil() && envelope.target != self &&
      !TETRAD_MUTANT(wanted_id_ignored)) {
    metrics.refused_wanted.add();
    if (!is_reply && may_log_stranger(envelope.sender_endpoint)) {
      // Info: of a host that was here before. /health of the sender tells what to do, if anything.
      logger.info(
          "message for another host refused, which had this address before: others stop when it is "
          "removed or back elsewhere from={} wanted={} this={}",
          envelope.sender_endpoint, envelope.target.to_string(), self.to_string());
    }
    if (envelope.kind == MessageKind::kRequest) {
      refuse(envelope,
             Error(ErrorCode::kNotFound,
                   fmt::format("host {} is not at {}; this is host {}", envelope.target.to_string(),
                               options.self_endpoint, self.to_string())));
    }
    return;
  }
  // It came on this shard's connection for another one.
  if (shard != options.shard) {
    if (options.forward) options.forward(shard, std::move(message));
    return;
  }
  if (is_reply) {
    auto done = take_pending(envelope.request_id);
    if (!done) return;
    if (envelope.time_left_us != 0) worked_us = envelope.time_left_us;
    if (envelope.kind == MessageKind::kErrorReply) {
      tell(*done,
           std::unexpected<Error>(decode_error(BytesView(message).substr(decoded->body_offset))));
    } else {
      // The answer keeps the buffer of the message.
      message.erase(0, decoded->body_offset);
      tell(*done, std::move(message));
    }
    return;
  }
  dispatch(envelope, BytesView(message).substr(decoded->body_offset));
}

void RpcNode::Core::dispatch(const Envelope& envelope, BytesView body) {
  const Registered& registered = handlers[static_cast<uint8_t>(envelope.verb)];
  if (!registered.handler) {
    if (envelope.kind == MessageKind::kRequest) {
      refuse(envelope, Error(ErrorCode::kProtocol,
                             fmt::format("unknown verb {}", static_cast<int>(envelope.verb))));
    }
    return;
  }
  // Whoever is of another cluster gets nothing but the verbs that are open.
  const bool member = !cluster_id.is_nil() && envelope.cluster_id == cluster_id;
  if (!member && envelope.sender != self && !registered.open_to_strangers) {
    if (!cluster_id.is_nil() && !envelope.cluster_id.is_nil()) {
      metrics.refused_foreign.add();
      if (may_log_stranger(envelope.sender_endpoint)) {
        logger.warn("message of another cluster refused from={} theirs={} ours={}",
                    envelope.sender_endpoint, envelope.cluster_id.to_string(),
                    cluster_id.to_string());
      }
    }
    if (envelope.kind == MessageKind::kRequest) {
      refuse(envelope, Error(ErrorCode::kConfig,
                             fmt::format("cluster id {} is not that of this node ({})",
                                         envelope.cluster_id.to_string(), cluster_id.to_string())));
    }
    return;
  }
  // A first address; later ones come from the metadata.
  if (member && envelope.sender != self && !envelope.sender_endpoint.empty()) {
    Peer& peer = peer_of(envelope.sender);
    if (peer.endpoint.empty()) peer.endpoint = envelope.sender_endpoint;
  }
  RpcContext context;
  context.from = envelope.sender;
  context.from_endpoint = envelope.sender_endpoint;
  context.store = envelope.target_store;
  // Without a time (a one-way message, an older sender) a minute.
  context.deadline.at_us =
      reactor.now_us() +
      (envelope.time_left_us != 0 ? int64_t{envelope.time_left_us} : int64_t{60'000'000});
  const auto keep = shared_from_this();
  try {
    registered.handler(context, body, reply_to(envelope));
  } catch (const std::exception& error) {
    // The handler's exception becomes the answer.
    log_failed(error);
    // Whoever has been answered already takes no second answer.
    if (envelope.kind == MessageKind::kRequest)
      refuse(envelope,
             Error(ErrorCode::kServerError,
                   fmt::format("The request failed inside the server: {}", error.what())));
  }
}

RpcNode::Reply RpcNode::Core::reply_to(const Envelope& envelope) {
  Reply reply;
  if (envelope.kind != MessageKind::kRequest) return reply;
  reply.core_ = weak_from_this();
  reply.to_ = envelope.sender;
  reply.endpoint_ = envelope.sender_endpoint;
  reply.to_shard_ = envelope.sender_shard;
  reply.verb_ = envelope.verb;
  reply.request_id_ = envelope.request_id;
  if (envelope.wants_time) reply.came_us_ = reactor.boot_time_us();
  return reply;
}

void RpcNode::Core::send_reply(const Reply& reply, MessageKind kind, BytesView body) {
  Envelope envelope =
      envelope_for(kind, reply.verb_, reply.to_, reply.to_shard_, reply.request_id_);
  if (reply.came_us_ != 0)
    envelope.time_left_us = static_cast<uint32_t>(std::clamp<int64_t>(
        reactor.boot_time_us() - reply.came_us_, 1, std::numeric_limits<uint32_t>::max()));
  Bytes message = join(envelope, body);
  if (reply.to_ == self)
    deliver_locally(reply.to_shard_ % options.shard_count, std::move(message));
  else
    send(reply.endpoint_, std::move(message), lane_of(reply.verb_, false));
}

}  // namespace tetrad::replication
