// SPDX-License-Identifier: Apache-2.0
// How next() finds an envelope:
//
//   1. Bare (v3, v4, and v5 before the answer to STARTUP): the header is checked first. A body that
//      is too large or an envelope that is wrong is answered and then skipped as it arrives, never
//      kept.
//   2. Segments (v5): CRCs are checked before a byte is believed. A wrong one is fatal, because
//      nobody knows where the next segment begins.
//   3. A self-contained segment is read envelope by envelope, where it lies or where it was
//      decompressed to.
//   4. The parts of a large envelope are put together in large_, or counted only when it has been
//      refused by its header.
//
// Buffers: bytes that were read lie in [begin_, end_) of buffer_. Envelopes point into it and pin
// it (shared_ptr), so it is written to again only when nobody else has it (use_count() == 1);
// otherwise a new one is made. Memory follows what has arrived, not what a header announces: a
// client that declares 256 MiB and sends nothing holds a few KiB.
//
// After kFatal the decoder is dead: it swallows what comes.
#include "cql/protocol/frame_decoder.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/byte_io.h"
#include "cql/protocol/compression.h"

namespace tetrad::cql {
namespace {

constexpr int kConsecutiveBadMax = 1;  // as Cassandra
// The smallest buffer for decompressed segments, so that small ones can share it one after another.
constexpr size_t kSpareBytesMin = 4096;

Error protocol_error(std::string text) { return {ErrorCode::kProtocol, std::move(text)}; }

}  // namespace

FrameDecoder::FrameDecoder(Role role, FrameLimits limits)
    : role_(role),
      limits_(limits),
      authenticated_(role == Role::kClient),
      read_bytes_(limits.read_bytes_min) {
  TETRAD_ASSERT(limits.read_bytes_min >= 64 && limits.read_bytes_max >= limits.read_bytes_min);
  TETRAD_ASSERT(limits.body_bytes_max <= INT32_MAX);
}

// Before a login a client may send small messages only: it has no right to the node's memory yet.
uint32_t FrameDecoder::body_bytes_max() const {
  return authenticated_ ? limits_.body_bytes_max
                        : std::min(limits_.body_bytes_max, limits_.unauthenticated_body_bytes_max);
}

size_t FrameDecoder::held_bytes() const {
  return buffer_.capacity + spare_.capacity + large_.buffer.capacity;
}

void FrameDecoder::release_idle() {
  if (begin_ == end_) {
    buffer_ = {};
    begin_ = end_ = 0;
    read_bytes_ = limits_.read_bytes_min;
  }
  spare_ = {};
}

// Room for the next read, at least free_min bytes. Reads grow up to read_bytes_max while they fill
// their room (commit), and shrink when the connection falls idle (release_idle).
std::span<char> FrameDecoder::writable() {
  const size_t free_min = limits_.read_bytes_min / 4;
  const size_t have = end_ - begin_;
  if (have == 0 && buffer_.bytes) {
    if (buffer_.capacity > size_t{2} * limits_.read_bytes_max || buffer_.capacity < read_bytes_) {
      buffer_ = {};  // it was made for one large message, or reads have outgrown it
      begin_ = end_ = 0;
    } else if (buffer_.bytes.use_count() == 1) {
      begin_ = end_ = 0;
    }
  }
  if (buffer_.capacity - end_ >= free_min) {
    return {buffer_.bytes.get() + end_, buffer_.capacity - end_};
  }
  // A unit that is known to be large gets room for all of it, but room never more than doubles.
  const size_t unit = have < wanted_ ? std::min(wanted_, 2 * have) : 2 * have;
  const size_t capacity = std::max({read_bytes_, unit, have + free_min});
  if (buffer_.capacity >= capacity && buffer_.bytes.use_count() == 1) {
    // Only when no envelope points into the buffer.
    std::memmove(buffer_.bytes.get(), buffer_.bytes.get() + begin_, have);
  } else {
    Buffer grown{std::make_shared_for_overwrite<char[]>(capacity), capacity};
    if (have > 0) std::memcpy(grown.bytes.get(), buffer_.bytes.get() + begin_, have);
    buffer_ = std::move(grown);
  }
  begin_ = 0;
  end_ = have;
  return {buffer_.bytes.get() + end_, buffer_.capacity - end_};
}

void FrameDecoder::commit(size_t size) {
  TETRAD_ASSERT(size <= buffer_.capacity - end_);
  end_ += size;
  if (end_ == buffer_.capacity && read_bytes_ < limits_.read_bytes_max)
    read_bytes_ = std::min<size_t>(read_bytes_ * 2, limits_.read_bytes_max);
}

void FrameDecoder::feed(BytesView bytes) {
  while (!bytes.empty()) {
    const std::span<char> room = writable();
    const size_t part = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), part);
    commit(part);
    bytes.remove_prefix(part);
  }
}

void FrameDecoder::start(int version, Compression compression) {
  TETRAD_ASSERT(version >= kProtocolVersionMin && version <= kProtocolVersionMax);
  // Once, with the answer to STARTUP: what follows is framed by version and compression.
  TETRAD_ASSERT(version_ == 0);
  TETRAD_ASSERT(version < 5 || compression != Compression::kSnappy);
  version_ = version;
  compression_ = compression;
}

Incoming FrameDecoder::next() {
  if (dead_) {
    begin_ = end_;
    return need(0);
  }
  return expects_segments() ? next_segment() : next_bare();
}

std::optional<Error> FrameDecoder::check_header(const EnvelopeHeader& header) const {
  if (version_ != 0 && header.version != version_) {
    return protocol_error(
        fmt::format("Invalid message version. Got {0}/v{0} but previous messages on this "
                    "connection had version {1}/v{1}",
                    header.version, version_));
  }
  const bool known = is_request(header.opcode) || is_response(header.opcode);
  if (!known) {
    return protocol_error(fmt::format("Unknown opcode {}", static_cast<int>(header.opcode)));
  }
  const bool from_server = role_ == Role::kClient;
  if (header.response != from_server || is_response(header.opcode) != from_server) {
    return protocol_error(fmt::format("Wrong protocol direction (expected {}) for opcode {}",
                                      from_server ? "RESPONSE" : "REQUEST",
                                      name_of(header.opcode)));
  }
  return std::nullopt;
}

// One envelope without segments. The order of checks decides what a client sees: version, length,
// size, then opcode and direction.
Incoming FrameDecoder::next_bare() {
  if (skip_ > 0) {
    const auto part = std::min<uint64_t>(skip_, end_ - begin_);
    skip_ -= part;
    begin_ += static_cast<size_t>(part);
    if (skip_ > 0) return need(0);
  }
  const BytesView bytes = unread();
  if (bytes.empty()) return need(kEnvelopeHeaderBytes);
  const int version = static_cast<uint8_t>(bytes[0]) & 0x7F;
  if (version < kProtocolVersionMin || version > kProtocolVersionMax) {
    // Headers of v1 and v2 end with the eighth byte: so do not wait for nine.
    const size_t stream_end = version == 1 || version == 2 ? 3 : 4;
    if (bytes.size() < stream_end) return need(kEnvelopeHeaderBytes);
    return refuse_version(bytes);
  }
  if (bytes.size() < kEnvelopeHeaderBytes) return need(kEnvelopeHeaderBytes);

  const EnvelopeHeader header = decode_envelope_header(bytes.data());
  if (header.body_bytes < 0) {
    return fatal(header,
                 protocol_error(fmt::format("Invalid frame body length: {}", header.body_bytes)));
  }
  const auto body_bytes = static_cast<uint32_t>(header.body_bytes);
  const bool oversize = body_bytes > body_bytes_max();
  std::optional<Error> trouble;
  if (!oversize) trouble = check_header(header);
  // Refused by the header alone: the body is skipped as it arrives (skip_), and the stream goes on
  // behind it.
  if (oversize || trouble) {
    begin_ += kEnvelopeHeaderBytes;
    skip_ = body_bytes;
    wanted_ = 0;
    if (oversize) return refuse_oversize(header, body_bytes);
    return refuse(header, std::move(*trouble));
  }
  const size_t total = kEnvelopeHeaderBytes + body_bytes;
  if (bytes.size() < total) return need(total);

  begin_ += total;
  wanted_ = 0;
  Incoming incoming;
  incoming.kind = Incoming::Kind::kEnvelope;
  incoming.envelope = {header, bytes.substr(kEnvelopeHeaderBytes, body_bytes), buffer_.bytes};
  if ((header.flags & envelope_flag::kCompressed) != 0 && header.version < 5) [[unlikely]]
    return decompressed(std::move(incoming.envelope));
  return incoming;
}

Incoming FrameDecoder::decompressed(Envelope envelope) {
  if (compression_ == Compression::kNone) {
    return refuse(envelope.header,
                  protocol_error("Compressed message, but no compression was negotiated"));
  }
  // Checked before memory is taken for it: a body can declare far more than it holds.
  auto declared = declared_body_bytes(compression_, envelope.body);
  if (!declared) return refuse(envelope.header, std::move(declared.error()));
  if (*declared > body_bytes_max()) return refuse_oversize(envelope.header, *declared);
  const auto size = static_cast<size_t>(*declared);
  auto plain = std::make_shared_for_overwrite<char[]>(std::max<size_t>(size, 1));
  auto done = decompress_body(compression_, envelope.body, plain.get(), size);
  if (!done) return refuse(envelope.header, std::move(done.error()));
  Incoming incoming;
  incoming.kind = Incoming::Kind::kEnvelope;
  incoming.envelope = {envelope.header, {plain.get(), size}, plain};
  return incoming;
}

Incoming FrameDecoder::next_segment() {
  const bool lz4 = compression_ == Compression::kLz4;
  const size_t header_bytes = segment_header_bytes(lz4);
  for (;;) {
    if (!payload_.empty()) return next_in_payload();
    payload_pin_.reset();

    const BytesView bytes = unread();
    if (bytes.size() < header_bytes) return need(header_bytes);
    auto header = decode_segment_header(bytes.data(), lz4);
    if (!header) return fatal({}, std::move(header.error()));
    const size_t total = header_bytes + header->payload_bytes + kSegmentTrailerBytes;
    if (bytes.size() < total) return need(total);
    BytesView payload = bytes.substr(header_bytes, header->payload_bytes);
    // The payload's CRC is over the bytes as sent, before decompression.
    auto checked = check_segment_payload(payload, payload.data() + payload.size());
    if (!checked) return fatal({}, std::move(checked.error()));
    begin_ += total;
    wanted_ = 0;

    FramePin pin = buffer_.bytes;
    if (header->uncompressed_bytes > 0) {
      const size_t size = header->uncompressed_bytes;
      // The last segment's envelopes may still be in use by their requests.
      if (!spare_.bytes || spare_.bytes.use_count() > 1 || spare_.capacity < size) {
        spare_.capacity = std::max(size, kSpareBytesMin);
        spare_.bytes = std::make_shared_for_overwrite<char[]>(spare_.capacity);
      }
      auto done = decompress_lz4_block(payload, spare_.bytes.get(), size);
      if (!done) return fatal({}, std::move(done.error()));
      payload = {spare_.bytes.get(), size};
      pin = spare_.bytes;
    }
    if (!header->self_contained) {
      Incoming incoming = take_large_part(payload);
      if (incoming.kind != Incoming::Kind::kNeedMore) return incoming;
      // Segments of one large message follow each other without others in between (native protocol
      // v5, section 2).
    } else if (large_.total != 0) {
      return fatal({}, protocol_error("Self-contained segment inside a large message"));
    } else {
      payload_ = payload;
      payload_pin_ = std::move(pin);
    }
  }
}

// A self-contained segment holds whole envelopes only; one that does not is broken beyond repair.
Incoming FrameDecoder::next_in_payload() {
  if (payload_.size() < kEnvelopeHeaderBytes) {
    return fatal({}, protocol_error("Segment ends inside the header of an envelope"));
  }
  const EnvelopeHeader header = decode_envelope_header(payload_.data());
  if (header.body_bytes < 0) {
    return fatal(header,
                 protocol_error(fmt::format("Invalid frame body length: {}", header.body_bytes)));
  }
  const auto body_bytes = static_cast<size_t>(header.body_bytes);
  if (body_bytes > payload_.size() - kEnvelopeHeaderBytes) {
    return fatal(header, protocol_error(fmt::format(
                             "Envelope with a body of {} bytes exceeds its self-contained segment",
                             body_bytes)));
  }
  const BytesView body = payload_.substr(kEnvelopeHeaderBytes, body_bytes);
  payload_.remove_prefix(kEnvelopeHeaderBytes + body_bytes);
  if (auto trouble = check_header(header)) return refuse_bad(header, std::move(*trouble));
  if (body_bytes > body_bytes_max()) return refuse_oversize_message(header, body_bytes);
  consecutive_bad_ = 0;
  Incoming incoming;
  incoming.kind = Incoming::Kind::kEnvelope;
  incoming.envelope = {header, body, payload_pin_};
  return incoming;
}

// Collects one message over several segments. kNeedMore: it is not complete, or it was refused
// before and is counted to its end.
Incoming FrameDecoder::take_large_part(BytesView payload) {
  if (!authenticated_) {
    return fatal({}, protocol_error("Message of several segments before authentication"));
  }
  Incoming refusal;
  if (large_.total == 0) {
    if (payload.size() < kEnvelopeHeaderBytes) {
      return fatal({}, protocol_error("Segment ends inside the header of an envelope"));
    }
    const EnvelopeHeader header = decode_envelope_header(payload.data());
    if (header.body_bytes < 0) {
      return fatal(header,
                   protocol_error(fmt::format("Invalid frame body length: {}", header.body_bytes)));
    }
    large_.total = kEnvelopeHeaderBytes + static_cast<size_t>(header.body_bytes);
    if (auto trouble = check_header(header)) {
      refusal = refuse_bad(header, std::move(*trouble));
    } else if (static_cast<uint32_t>(header.body_bytes) > body_bytes_max()) {
      refusal = refuse_oversize_message(header, static_cast<uint32_t>(header.body_bytes));
    }
    large_.discard = refusal.kind != Incoming::Kind::kNeedMore;
  }
  if (payload.size() > large_.total - large_.received) {
    return fatal({}, protocol_error("Segments of a large message hold more than the message"));
  }
  if (!large_.discard) append_to_large(payload);
  large_.received += payload.size();
  if (large_.received < large_.total) return refusal;

  const LargeMessage whole = std::exchange(large_, {});
  if (whole.discard) return refusal;
  consecutive_bad_ = 0;
  Incoming incoming;
  incoming.kind = Incoming::Kind::kEnvelope;
  const char* bytes = whole.buffer.bytes.get();
  incoming.envelope = {decode_envelope_header(bytes),
                       {bytes + kEnvelopeHeaderBytes, whole.total - kEnvelopeHeaderBytes},
                       whole.buffer.bytes};
  return incoming;
}

void FrameDecoder::append_to_large(BytesView part) {
  const size_t needed = large_.received + part.size();
  if (large_.buffer.capacity < needed) {
    Buffer grown;
    // Doubling: never more than twice of what has arrived.
    grown.capacity = std::min(large_.total, 2 * needed);
    grown.bytes = std::make_shared_for_overwrite<char[]>(grown.capacity);
    if (large_.received > 0) {
      std::memcpy(grown.bytes.get(), large_.buffer.bytes.get(), large_.received);
    }
    large_.buffer = std::move(grown);
  }
  if (!part.empty()) {
    std::memcpy(large_.buffer.bytes.get() + large_.received, part.data(), part.size());
  }
}

Incoming FrameDecoder::need(size_t bytes) {
  wanted_ = bytes;
  return {};
}

Incoming FrameDecoder::refuse(const EnvelopeHeader& header, Error error) {
  Incoming incoming;
  incoming.kind = Incoming::Kind::kRefused;
  incoming.envelope.header = header;
  incoming.error = std::move(error);
  return incoming;
}

// As Cassandra: one wrong envelope inside a segment is answered, a second one in a row ends the
// connection.
Incoming FrameDecoder::refuse_bad(const EnvelopeHeader& header, Error error) {
  if (++consecutive_bad_ > kConsecutiveBadMax) return fatal(header, std::move(error));
  return refuse(header, std::move(error));
}

Incoming FrameDecoder::refuse_oversize(const EnvelopeHeader& header, uint64_t length) {
  return refuse(header, {ErrorCode::kInvalid,
                         fmt::format("Request is too big: length {} exceeds maximum allowed "
                                     "length {}.",
                                     length, body_bytes_max())});
}

// Cassandra says it in other words of what comes in segments.
Incoming FrameDecoder::refuse_oversize_message(const EnvelopeHeader& header, uint64_t length) {
  return refuse(header, {ErrorCode::kInvalid,
                         fmt::format("CQL Message of size {} bytes exceeds allowed maximum of {} "
                                     "bytes",
                                     length, body_bytes_max())});
}

Incoming FrameDecoder::refuse_version(BytesView bytes) {
  EnvelopeHeader header;
  header.version = static_cast<uint8_t>(bytes[0]) & 0x7F;
  const bool old = header.version == 1 || header.version == 2;
  header.stream =
      old ? static_cast<int8_t>(bytes[2]) : base::load_big_endian<int16_t>(bytes.data() + 2);
  Incoming incoming = fatal(header, protocol_error(version_refusal_text(header.version)));
  incoming.version_refused = true;
  return incoming;
}

Incoming FrameDecoder::fatal(const EnvelopeHeader& header, Error error) {
  dead_ = true;
  begin_ = end_;
  payload_ = {};
  payload_pin_.reset();
  large_ = {};
  spare_ = {};
  Incoming incoming = refuse(header, std::move(error));
  incoming.kind = Incoming::Kind::kFatal;
  return incoming;
}

}  // namespace tetrad::cql
