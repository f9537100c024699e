// SPDX-License-Identifier: Apache-2.0
// The envelope: what stands before the body of every message between nodes.
//
//   envelope := u8 version (1), u8 kind, u8 verb, u8 flags (bit 0: the reply shall say how long it took),
//               16 B cluster id (nil: the sender has none yet), 16 B sender host id,
//               16 B target host id (nil: whoever listens there),
//               u32 sender's shard, u32 target store, u64 request id,
//               u32 time left in microseconds (0: no deadline); of replies: what it took to answer
//               (0: not said),
//               u8 size, sender's endpoint
//   message  := envelope, body
// The body of an error reply is u8 error code, text. Versioned for rolling upgrades: a message with
// a higher version is refused with an error that names both.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "replication/rpc/transport.h"
#include "replication/rpc/verbs.h"

namespace tetrad::replication {

inline constexpr uint8_t kEnvelopeVersion = 1;

/// What a message is, by its number on the wire.
enum class MessageKind : uint8_t { kRequest = 0, kOneWay = 1, kReply = 2, kErrorReply = 3 };

/// What stands before the body of every message between nodes.
struct Envelope {
  MessageKind kind = MessageKind::kOneWay;
  Verb verb = Verb::kEcho;
  Uuid cluster_id;
  HostId sender, target;
  uint32_t sender_shard = 0;
  /// Of requests and one-way messages: the store it is for. Of replies: the shard that asked.
  uint32_t target_store = 0;
  uint64_t request_id = 0;
  bool wants_time = false;    // of requests
  uint32_t time_left_us = 0;  // of replies: from the request's arrival on; 0: not said
  Endpoint sender_endpoint;
};

/// Appends the envelope; the body follows.
void encode_envelope(const Envelope& envelope, Bytes& out);

/// An envelope, and where the body begins in the same bytes.
struct DecodedEnvelope {
  Envelope envelope;
  size_t body_offset = 0;
};
/// Errors: kCorruption, kProtocol (a version this program does not know).
Result<DecodedEnvelope> decode_envelope(BytesView message);

/// Body of an error reply. The detail of an error does not travel.
void encode_error(const Error& error, Bytes& out);
Error decode_error(BytesView body);

}  // namespace tetrad::replication
