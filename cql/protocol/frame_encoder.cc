// SPDX-License-Identifier: Apache-2.0
// Answers of a turn in their version's framing. pending_ holds plain envelopes; the first
// bare_bytes_ of it were written before STARTUP took effect and go out as they are.
#include "cql/protocol/frame_encoder.h"

#include "base/assert.h"
#include "base/byte_io.h"
#include "cql/protocol/compression.h"
#include "cql/protocol/segment.h"

namespace tetrad::cql {
namespace {

// Smaller bodies gain nothing by compression.
constexpr size_t kCompressedBodyBytesMin = 64;

/// Appends v3 or v4 envelopes, compressing the bodies that gain by it.
void append_compressed(Bytes& wire, BytesView envelopes, Compression compression) {
  while (!envelopes.empty()) {
    TETRAD_ASSERT(envelopes.size() >= kEnvelopeHeaderBytes);
    EnvelopeHeader header = decode_envelope_header(envelopes.data());
    const auto size = static_cast<size_t>(header.body_bytes);
    TETRAD_ASSERT(size <= envelopes.size() - kEnvelopeHeaderBytes);
    const size_t start = wire.size();
    wire.append(envelopes.substr(0, kEnvelopeHeaderBytes));
    const BytesView body = envelopes.substr(kEnvelopeHeaderBytes, size);
    if (size >= kCompressedBodyBytesMin && append_compressed_body(compression, body, wire)) {
      header.flags |= envelope_flag::kCompressed;
      header.body_bytes = static_cast<int32_t>(wire.size() - start - kEnvelopeHeaderBytes);
      encode_envelope_header(wire.data() + start, header);
    } else {
      wire.append(body);
    }
    envelopes.remove_prefix(kEnvelopeHeaderBytes + size);
  }
}

}  // namespace

void FrameEncoder::start(int version, Compression compression) {
  TETRAD_ASSERT(version_ == 0);
  version_ = version;
  compression_ = compression;
  bare_bytes_ = pending_.size();
}

void FrameEncoder::finish_turn(Bytes& wire) {
  wire.clear();
  if (version_ < 5 && compression_ == Compression::kNone) {
    // The usual case of v3 and v4: no copy.
    wire.swap(pending_);
    return;
  }
  wire.append(pending_, 0, bare_bytes_);
  const BytesView rest = BytesView(pending_).substr(bare_bytes_);
  if (version_ >= 5) {
    append_segments(wire, rest, compression_ == Compression::kLz4);
  } else {
    append_compressed(wire, rest, compression_);
  }
  pending_.clear();
  bare_bytes_ = 0;
}

// Called when a connection is idle, so that its memory is not kept for the next large answer.
void FrameEncoder::release_idle() {
  if (pending_.empty()) Bytes().swap(pending_);
}

}  // namespace tetrad::cql
