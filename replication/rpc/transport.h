// SPDX-License-Identifier: Apache-2.0
// Messages between nodes: one-way, best effort. A message arrives whole or not at all, perhaps late
// or out of order; it may be lost silently.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"

namespace tetrad::replication {

/// Where a node's internode listener is: "127.0.0.1:7000", "[::1]:7000". Compares as text.
using Endpoint = std::string;

/// "address:port", an IPv6 address in brackets.
Endpoint make_endpoint(const std::string& address, uint16_t port);

/// A message is no longer than this; send() drops a longer one.
inline constexpr size_t kMessageBytesMax = 256u << 20;

/// What a message waits behind: each lane to a peer is a connection of its own, so that heartbeats
/// and the metadata group never stand behind a stream.
enum class Lane : uint8_t { kControl = 0, kRequests = 1, kBulk = 2 };
inline constexpr size_t kLanes = 3;

/// One per shard; all methods belong to its thread.
class Transport {
 public:
  /// The bytes of one message, whole.
  using ReceiveHandler = std::function<void(Bytes message)>;

  virtual ~Transport() = default;
  /// Queues; what is queued in a turn of the loop leaves together at its end. Never blocks, never
  /// runs a handler inside the call. False: dropped, the lane's queue is at its limit.
  virtual bool send(const Endpoint& to, Bytes message, Lane lane) = 0;
  /// Messages that arrive before a handler is set, or after it was cleared with nullptr, are
  /// dropped.
  virtual void set_receive_handler(ReceiveHandler handler) = 0;
  /// Each time that the machine of a peer has refused a connection of the control lane: nobody
  /// listens there. Never inside of send(). A transport that cannot tell says nothing.
  using RefusedHandler = std::function<void(const Endpoint& peer)>;
  virtual void set_refused_handler(RefusedHandler /*handler*/) {}
  /// The peer has just shown that it is up: what is sent to it next is tried at once, even if the
  /// last attempts failed. Cheap while no peer fails.
  virtual void heard_from(const Endpoint& /*peer*/) {}
  /// What a transport that counts by peer learns from who reads the messages. The one that is being
  /// handed over is of `sender`; null: it cannot be decoded.
  virtual void note_sender(const Endpoint* /*sender*/) {}
  /// A message to the peer was not given to send(), since it leaves too much unanswered.
  virtual void note_overload(const Endpoint& /*peer*/, uint64_t /*bytes*/) {}
  /// Bytes accepted by send() for this peer and not yet with the operating system.
  virtual uint64_t queued_bytes(const Endpoint& to) const = 0;  // of all lanes
};

}  // namespace tetrad::replication
