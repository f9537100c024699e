// SPDX-License-Identifier: Apache-2.0
// Messages on a byte stream (TCP, or TLS over it). A connection carries messages one way, from who
// made it to who accepted it. Without TLS a proof may come before (cluster_secret.h).
//
//   stream := preface, frame*
//   preface:= "TETRAD", u16 version (1)
//   frame  := u32 size of message, u64 XXH3-64 of message, message
// A frame that fails its checksum or is longer than kMessageBytesMax ends the connection.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "replication/rpc/transport.h"

namespace tetrad::replication {

inline constexpr BytesView kStreamPreface{"TETRAD\x00\x01", 8};
inline constexpr size_t kFrameHeaderBytes = 12;

/// `message` is at most kMessageBytesMax.
void append_frame(BytesView message, Bytes& out);

/// Takes a stream apart. Memory grows with what has arrived, never with what a header claims.
class FrameReader {
 public:
  void feed(BytesView bytes);
  /// The next whole message; unset: more bytes are needed. Errors: kProtocol (no preface of ours),
  /// kCorruption, kLimit; after one, nothing more comes.
  Result<std::optional<Bytes>> next();

 private:
  Bytes buffer_;
  size_t consumed_ = 0;
  bool preface_seen_ = false;
  bool failed_ = false;
};

}  // namespace tetrad::replication
