// SPDX-License-Identifier: Apache-2.0
// What an RpcNode and the replies it has given out share: the calls that wait for an answer, the
// peers, the handlers. Replies hold it weakly, so that one may outlive the node. For rpc.cc and
// rpc_core.cc only. All on the shard's thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "replication/rpc/rpc.h"
#include "replication/rpc/timeout_wheel.h"

namespace tetrad::replication {

/// Always: a slot of `pending` is free or holds one call, whose id `wheel` has; `in_flight` is the
/// number of those that hold one.
struct RpcNode::Core : std::enable_shared_from_this<RpcNode::Core> {
  /// Where a host is, and what is in flight to it. Never erased, so that Pending may point to it.
  struct Peer {
    Endpoint endpoint;
    uint32_t calls = 0;
    uint64_t bytes = 0;
  };
  /// A call that waits for its answer. Its id is a generation above 24 bits of the slot, so that
  /// an answer that comes late for an earlier call of the slot finds nothing.
  struct Pending {
    ReplyCallback done;
    uint64_t id = 0;  // 0: free
    Peer* peer = nullptr;
    uint64_t bytes = 0;
    Verb verb = Verb::kEcho;
  };
  /// Who takes the messages of a verb.
  struct Registered {
    Handler handler;
    bool open_to_strangers = false;  // also of nodes without a cluster, or of another one
  };

  // What the node was made with; outlives it.
  base::Reactor& reactor;
  Transport& transport;
  const HostId self;
  const RpcOptions options;
  const Logger logger;
  RpcMetrics metrics;
  Uuid cluster_id;
  std::unordered_map<HostId, std::unique_ptr<Peer>> peers;
  std::array<Registered, 256> handlers;
  ShardCallHandler shard_calls;
  // The slots of calls; free ones are used again before new ones are made, so there are as many as
  // calls have ever waited at once.
  std::vector<Pending> pending;
  std::vector<uint32_t> free_slots;
  uint64_t generation;  // random at start, so that late replies to an earlier life match nothing
  size_t in_flight = 0;
  std::optional<uint32_t> worked_us;  // of the reply whose callback comes next, where it says it
  // One timer for all calls, set for the wheel's next turn; none while no call waits.
  TimeoutWheel wheel;
  base::Reactor::TimerId timer = 0;
  base::MonotonicUs timer_at_us = 0;
  base::MonotonicUs next_log_us = 0;
  std::unordered_map<Endpoint, base::MonotonicUs> strangers;  // when one was last logged

  Core(base::Reactor& r, base::Random& random, Transport& t, HostId host, RpcOptions o, Logger l)
      : reactor(r),
        transport(t),
        self(host),
        options(std::move(o)),
        logger(std::move(l)),
        generation(random.next() >> 26) {}

  // Stores are numbered over the shards in turn.
  uint32_t shard_of(uint32_t store) const { return store % options.shard_count; }
  bool may_log();
  /// Once a minute for each endpoint.
  bool may_log_stranger(const Endpoint& endpoint);
  // Everything but the time left, which only a request has.
  Envelope envelope_for(MessageKind kind, Verb verb, HostId target, uint32_t store,
                        uint64_t request_id) const;
  static Bytes join(const Envelope& envelope, BytesView body);
  // Made when first needed: a host may be known before its address is.
  Peer& peer_of(HostId host);
  /// To this node's own shard `shard`, in a later step.
  void deliver_locally(uint32_t shard, Bytes message);
  // A call between shards: the structure itself goes over and comes back with its answer. The same
  // bounds hold as for messages.
  void call_shard(std::unique_ptr<ShardCall> call, uint64_t bytes);
  /// What is thrown in here is of one call; the others go on. A handler that throws gives its call
  /// back before.
  // The last catch on this path; `keep` holds the core while the callee may destroy the node.
  void receive_call(std::unique_ptr<ShardCall> call);
  void take_call(std::unique_ptr<ShardCall> call);
  /// False: dropped; the caller fails the request that waits for an answer.
  bool send(const Endpoint& to, Bytes message, Lane lane);
  // Errors come in a later step, never inside of call(): the caller has not finished its own step.
  void fail_later(ReplyCallback done, Error error);
  /// The last catch for what a callback throws: it is of one request, the others go on.
  void tell(ReplyCallback& done, Result<Bytes> answer);
  void log_failed(const std::exception& error) noexcept;
  uint64_t add_pending(ReplyCallback done, Peer* peer, uint64_t bytes, Verb verb,
                       base::MonotonicUs deadline_us);
  /// Empty if it is no longer waited for.
  // Whoever gets the callback is the one that ends the call.
  std::optional<ReplyCallback> take_pending(uint64_t id);
  void arm_timer();
  void on_timer();
  void call(const Endpoint* endpoint, HostId to, uint32_t store, Verb verb, BytesView body,
            base::Deadline deadline, ReplyCallback done, bool wants_time);
  /// What is thrown before a handler has the message fails that message only.
  void receive(Bytes message, bool local);
  void take(Bytes message, bool local);
  void dispatch(const Envelope& envelope, BytesView body);
  Reply reply_to(const Envelope& envelope);
  // Through the same way as any answer.
  void refuse(const Envelope& envelope, const Error& error) { reply_to(envelope).error(error); }
  void send_reply(const Reply& reply, MessageKind kind, BytesView body);
};

}  // namespace tetrad::replication
