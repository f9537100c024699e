// SPDX-License-Identifier: Apache-2.0
// What a transport has sent to a peer and got from it, since the node began: counts that outlive
// connections. Bytes are those of frames, before they are encrypted. Plain integers of the shard's
// thread.
#pragma once

#include <cstdint>

namespace tetrad::replication {

/// Messages, and their bytes.
struct MessageLoad {
  uint64_t count = 0, bytes = 0;
  void add(uint64_t messages, uint64_t more_bytes) {
    count += messages;
    bytes += more_bytes;
  }
  void add(const MessageLoad& other) { add(other.count, other.bytes); }
};

/// To one peer, over all lanes.
struct SentTraffic {
  uint64_t connections = 0;              // that are open now
  uint64_t attempts = 0, connected = 0;  // to connect, and of them those that came to something
  MessageLoad pending;                   // accepted, and not yet with the operating system
  MessageLoad sent;
  MessageLoad lost;        // as there was no connection, or one that broke; or longer than may be
  MessageLoad overloaded;  // refused: too much waited, or was unanswered
  void add(const SentTraffic& other) {
    connections += other.connections;
    attempts += other.attempts;
    connected += other.connected;
    pending.add(other.pending);
    sent.add(other.sent);
    lost.add(other.lost);
    overloaded.add(other.overloaded);
  }
};

/// From one peer, over all of its connections.
struct ReceivedTraffic {
  MessageLoad received;
  MessageLoad malformed;        // of them those that could not be decoded
  uint64_t corrupt_frames = 0;  // each has ended its connection
  void add(const ReceivedTraffic& other) {
    received.add(other.received);
    malformed.add(other.malformed);
    corrupt_frames += other.corrupt_frames;
  }
};

}  // namespace tetrad::replication
