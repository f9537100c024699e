// SPDX-License-Identifier: Apache-2.0
// One response envelope while it is appended: header and prefix, then the message by its owner, at
// last the length of the body. For the sources of this room.
#pragma once

#include "base/bytes.h"
#include "cql/protocol/response.h"

namespace tetrad::cql {

/// Writes one envelope at the end of `out`, which outlives it; nobody else appends between the
/// constructor and finish().
class EnvelopeWriter {
 public:
  /// Writes the header with a length of 0 and what precedes a message (tracing id, warnings,
  /// payload).
  EnvelopeWriter(Bytes& out, const ReplyHead& head, Opcode opcode);
  /// Patches the length in; the body is complete.
  void finish();
  Bytes& out() { return out_; }
  /// Where the envelope begins in out().
  size_t start() const { return start_; }

 private:
  Bytes& out_;
  const size_t start_;
};

/// Patches the length of the envelope that begins at `start` and ends where `out` ends.
void patch_body_length(Bytes& out, size_t start);

}  // namespace tetrad::cql
