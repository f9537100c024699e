// SPDX-License-Identifier: Apache-2.0
// Framing of messages on a byte stream.
#include "replication/rpc/frame.h"

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/hash.h"

namespace tetrad::replication {

Endpoint make_endpoint(const std::string& address, uint16_t port) {
  if (address.find(':') != std::string::npos) return fmt::format("[{}]:{}", address, port);
  return fmt::format("{}:{}", address, port);
}

void append_frame(BytesView message, Bytes& out) {
  TETRAD_ASSERT(message.size() <= kMessageBytesMax);
  base::ByteWriter writer(out);
  writer.u32(static_cast<uint32_t>(message.size()));
  writer.u64(base::xxh3_64(message));
  writer.raw(message);
}

void FrameReader::feed(BytesView bytes) {
  if (failed_) return;
  if (consumed_ > 0 && consumed_ == buffer_.size()) {
    buffer_.clear();
    consumed_ = 0;
  } else if (consumed_ > 64 * 1024) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<Bytes>> FrameReader::next() {
  if (failed_) return fail(ErrorCode::kCorruption, "the stream has failed before");
  const BytesView left = BytesView(buffer_).substr(consumed_);
  if (!preface_seen_) {
    const size_t size = std::min(left.size(), kStreamPreface.size());
    if (left.substr(0, size) != kStreamPreface.substr(0, size)) {
      failed_ = true;
      return fail(ErrorCode::kProtocol, "not a Tetrad internode connection, or another version");
    }
    if (size < kStreamPreface.size()) return std::optional<Bytes>();
    preface_seen_ = true;
    consumed_ += size;
    return next();
  }
  if (left.size() < kFrameHeaderBytes) return std::optional<Bytes>();
  const auto size = base::load_big_endian<uint32_t>(left.data());
  if (size > kMessageBytesMax) {
    failed_ = true;
    return fail(ErrorCode::kLimit, "a message of {} bytes, at most {}", size, kMessageBytesMax);
  }
  if (left.size() - kFrameHeaderBytes < size) return std::optional<Bytes>();
  const BytesView message = left.substr(kFrameHeaderBytes, size);
  if (base::xxh3_64(message) != base::load_big_endian<uint64_t>(left.data() + 4)) {
    failed_ = true;
    return fail(ErrorCode::kCorruption, "checksum of a message of {} bytes is wrong", size);
  }
  consumed_ += kFrameHeaderBytes + size;
  TETRAD_ASSERT(consumed_ <= buffer_.size());
  return std::optional<Bytes>(Bytes(message));
}

}  // namespace tetrad::replication
