// SPDX-License-Identifier: Apache-2.0
// Requests and replies between nodes, over a Transport. One RpcNode per shard. A message names the
// store it is for; the shard that receives it hands it over to that store's shard (store modulo
// shards of the node). A reply goes back to the shard that asked.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/reactor.h"
#include "base/result.h"
#include "base/task.h"
#include "replication/rpc/envelope.h"
#include "replication/rpc/shard_call.h"
#include "replication/rpc/transport.h"
#include "replication/rpc/verbs.h"

namespace tetrad::replication {

/// Who asks, for which store, and until when an answer is wanted.
struct RpcContext {
  HostId from;
  Endpoint from_endpoint;
  uint32_t store = 0;  // the one it is for
  base::Deadline deadline;
};

/// Where this shard is, and how much may wait for other nodes.
struct RpcOptions {
  Endpoint self_endpoint;
  uint32_t shard = 0, shard_count = 1;
  uint32_t calls_in_flight_max = 1u << 16;            // per peer
  uint64_t bytes_in_flight_max = uint64_t{64} << 20;  // per peer: bodies of unanswered calls
  /// Hands a whole message or a call to another shard of this node; called when shard_count > 1.
  /// Those of one turn may be handed over together.
  std::function<void(uint32_t shard, ShardMessage message)> forward;
};

/// Counters of one shard, changed by its thread only.
struct RpcMetrics {
  base::Counter sent, dropped, received, timed_out, refused_overload, refused_foreign,
      refused_wanted, refused_malformed;
  void register_in(base::MetricsRegistry& registry, const std::string& labels) const;
};

/// All methods belong to the shard's thread. Destroying it drops every pending callback unrun.
class RpcNode {
  struct Core;

 public:
  /// Errors: what the other side answered; kTimedOut; kOverloaded (too much in flight to that
  /// peer); kUnavailable (no address known for the host).
  using ReplyCallback = std::move_only_function<void(Result<Bytes>)>;

  /// The answer to one request. Answer once, now or later; one that is dropped answers nothing (the
  /// caller times out). May outlive the RpcNode. Of a one-way message it does nothing.
  class Reply {
   public:
    Reply() = default;
    void ok(Bytes body);
    void error(const Error& error);
    void result(Result<Bytes> result) {
      if (result)
        ok(std::move(*result));
      else
        error(result.error());
    }
    bool wanted() const { return request_id_ != 0; }

   private:
    friend class RpcNode;
    friend struct Core;
    std::weak_ptr<Core> core_;
    HostId to_;
    Endpoint endpoint_;
    uint32_t to_shard_ = 0;
    Verb verb_ = Verb::kEcho;
    uint64_t request_id_ = 0;
    base::MonotonicUs came_us_ = 0;  // by the clock of the moment; 0: nobody wants to know
  };

  /// `body` is valid until the handler returns.
  using Handler = std::function<void(const RpcContext&, BytesView body, Reply reply)>;

  RpcNode(base::Reactor& reactor, base::Random& random, Transport& transport, HostId self,
          RpcOptions options, Logger logger);
  ~RpcNode();
  RpcNode(const RpcNode&) = delete;
  RpcNode& operator=(const RpcNode&) = delete;

  HostId self() const;
  const Endpoint& self_endpoint() const;
  uint32_t shard() const;
  /// Until it is set (not nil) only verbs registered with `open_to_strangers` and replies come in.
  void set_cluster_id(Uuid cluster_id);
  Uuid cluster_id() const;
  /// Where a host is; an unknown host's messages teach it too.
  void set_peer(HostId host, Endpoint endpoint);
  std::optional<Endpoint> peer(HostId host) const;
  /// The host is known to be up: what goes there next is tried at once.
  void seen_alive(HostId host);
  /// Transport::set_refused_handler, of one listener; empty: none.
  void on_refused(Transport::RefusedHandler handler);

  /// `open_to_strangers`: also from nodes that have no cluster id, or another.
  void handle(Verb verb, Handler handler, bool open_to_strangers = false);

  /// `done` never runs inside the call. To self it takes no network: the handler runs in a later
  /// step of this thread, or on the store's shard.
  void call(HostId to, uint32_t store, Verb verb, BytesView body, base::Deadline deadline,
            ReplyCallback done);
  /// `worked_us`: from the arrival of the request there to its answer, if it was answered.
  using TimedCallback =
      std::move_only_function<void(Result<Bytes>, std::optional<uint32_t> worked_us)>;
  /// call() for a traced request: its answer says how long the other side has worked on it.
  void call_timed(HostId to, uint32_t store, Verb verb, BytesView body, base::Deadline deadline,
                  TimedCallback done);
  /// To whoever listens there: joining.
  void call_endpoint(const Endpoint& to, Verb verb, BytesView body, base::Deadline deadline,
                     ReplyCallback done);
  void one_way(HostId to, uint32_t store, Verb verb, BytesView body);

  /// call() to be awaited.
  Task<Result<Bytes>> ask(HostId to, uint32_t store, Verb verb, Bytes body,
                          base::Deadline deadline);

  /// To a store of another shard of this node: `call` is finished once it has been answered, or
  /// refused because too much is in flight, never inside this call. There is no timeout: the other
  /// shard always answers.
  void call_shard(std::unique_ptr<ShardCall> call, uint64_t request_bytes);
  /// Takes the calls of other shards. Their answer is in them when they are given to
  /// answer_shard().
  using ShardCallHandler = std::function<void(std::unique_ptr<ShardCall> call)>;
  void handle_shard_calls(ShardCallHandler handler);
  void answer_shard(std::unique_ptr<ShardCall> call);

  /// What another shard has for this one (RpcOptions::forward).
  void receive_forwarded(ShardMessage message);

  size_t calls_in_flight() const;
  const RpcMetrics& metrics() const;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace tetrad::replication
