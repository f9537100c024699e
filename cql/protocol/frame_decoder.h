// SPDX-License-Identifier: Apache-2.0
// From the bytes of one connection to whole envelopes: bare envelopes (v3, v4, and v5 up to the
// answer to STARTUP), compressed bodies (v3, v4), segments (v5). No bytes are copied when a whole
// envelope lies in the buffer.
//
// Use: read a socket into writable(), commit(n), then next() until kNeedMore. Memory is taken as
// bytes arrive, never because a length says so: a body costs at most twice what has arrived of it.
#pragma once

#include <memory>
#include <span>

#include "base/error.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/segment.h"

namespace tetrad::cql {

/// What one connection may make the decoder hold.
struct FrameLimits {
  /// Larger bodies are skipped and refused. The declared uncompressed length counts as well.
  uint32_t body_bytes_max = 16u << 20;
  /// The same until set_authenticated().
  uint32_t unauthenticated_body_bytes_max = kSegmentPayloadBytesMax;
  /// Bytes of one read buffer: the first, and what it grows to when reads fill it.
  uint32_t read_bytes_min = 4u << 10;
  uint32_t read_bytes_max = 64u << 10;
};

/// What next() found. The pin of an envelope is dropped on the thread of its decoder.
struct Incoming {
  /// What the caller has to do next.
  enum class Kind : uint8_t {
    kNeedMore,  // nothing whole is left: read on
    kEnvelope,  // `envelope`
    kRefused,   // answer `error` on envelope.stream(); the connection goes on
    kFatal,  // answer `error` on envelope.stream(), then drain and close. Later bytes are dropped
  };
  Kind kind = Kind::kNeedMore;
  Envelope envelope;  // of kRefused and kFatal: the header as far as it is known, for the answer
  Error error;
  /// kFatal because of the version in byte 0: answer with append_version_refusal().
  bool version_refused = false;
};

/// The receiving half of one connection; belongs to it and to its thread. Envelopes pin the buffer
/// that they point into, so they may outlive the decoder. After kFatal it stays fatal.
class FrameDecoder {
 public:
  /// Whose bytes are read: a server takes requests, a client takes responses.
  enum class Role : uint8_t { kServer, kClient };

  explicit FrameDecoder(Role role, FrameLimits limits = {});

  /// Where the next read may go; at least read_bytes_min / 4 bytes. Invalidates nothing that next()
  /// returned.
  std::span<char> writable();
  /// `size` bytes of writable() were filled.
  void commit(size_t size);
  /// writable() and commit() of a copy.
  void feed(BytesView bytes);

  /// The next envelope or trouble. A STARTUP must be handled, and start() called if it was
  /// accepted, before the next call.
  Incoming next();

  /// Fixes version and compression once STARTUP is answered with READY or AUTHENTICATE. From here
  /// v5 expects segments, and another version in an envelope is refused.
  void start(int version, Compression compression);
  /// Lifts the limits that hold before it: body size, and one segment per message. A client is born
  /// so.
  void set_authenticated() { authenticated_ = true; }

  /// 0 until start().
  int version() const { return version_; }
  /// Bytes of buffers that this decoder holds now (not those that only envelopes pin).
  size_t held_bytes() const;
  /// Gives back an empty read buffer; worth calling when a connection has been idle.
  void release_idle();

 private:
  /// One read buffer, shared with the envelopes that point into it.
  struct Buffer {
    std::shared_ptr<char[]> bytes;
    size_t capacity = 0;
  };
  /// A large message of v5 that arrives in several segments.
  struct LargeMessage {
    Buffer buffer;
    size_t total = 0;     // header and body; 0: none under way
    size_t received = 0;  // of total
    bool discard = false;
  };

  BytesView unread() const { return {buffer_.bytes.get() + begin_, end_ - begin_}; }
  bool expects_segments() const { return version_ >= 5; }
  uint32_t body_bytes_max() const;
  /// What is wrong with a header whose version is served; none if nothing is.
  std::optional<Error> check_header(const EnvelopeHeader& header) const;

  /// One envelope of v3, v4, or of v5 before start().
  Incoming next_bare();
  /// One envelope of v5: from the segment that is being read, or the next one.
  Incoming next_segment();
  /// The next envelope of payload_, which is not empty.
  Incoming next_in_payload();
  /// One segment of a large message; the message when it is complete.
  Incoming take_large_part(BytesView payload);
  void append_to_large(BytesView part);
  /// A compressed body of v3 or v4 in memory of its own.
  Incoming decompressed(Envelope envelope);
  /// kNeedMore; writable() makes room for a unit of `bytes` from begin_ on.
  Incoming need(size_t bytes);
  /// kRefused: the stream goes on.
  Incoming refuse(const EnvelopeHeader& header, Error error);
  /// refuse(), or fatal() for the second one in a row.
  Incoming refuse_bad(const EnvelopeHeader& header, Error error);
  Incoming refuse_oversize(const EnvelopeHeader& header, uint64_t length);
  Incoming refuse_oversize_message(const EnvelopeHeader& header, uint64_t length);
  Incoming refuse_version(BytesView bytes);
  /// kFatal: gives back all buffers and drops what comes.
  Incoming fatal(const EnvelopeHeader& header, Error error);

  const Role role_;
  const FrameLimits limits_;
  int version_ = 0;
  Compression compression_ = Compression::kNone;
  bool authenticated_;
  bool dead_ = false;

  Buffer buffer_;
  size_t begin_ = 0, end_ = 0;  // unread bytes of buffer_
  size_t wanted_ = 0;           // bytes of the unit at begin_, as far as known
  size_t read_bytes_;
  uint64_t skip_ = 0;  // bytes of a refused body still to come

  BytesView payload_;  // what is left of a self-contained segment
  FramePin payload_pin_;
  Buffer spare_;  // for decompressed payloads, used again when nothing pins it
  LargeMessage large_;
  int consecutive_bad_ = 0;
};

}  // namespace tetrad::cql
