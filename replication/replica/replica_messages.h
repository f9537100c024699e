// SPDX-License-Identifier: Apache-2.0
// What coordinators and replicas say to each other.
//
//   mutate      := u8 version (1), varint set epoch, mutation to the end       answer: nothing
//   read        := u8 version (1), varint set epoch, read command to the end   answer: read result
//   read digest := as read                                                     answer: u8 settled,
//   16 bytes
#pragma once

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "storage/row/mutation.h"
#include "storage/row/read_command.h"

namespace tetrad::replication {

struct MutateRequest {
  SetEpoch epoch;
  storage::Mutation mutation;
};
Bytes encode_mutate(SetEpoch epoch, const storage::Mutation& mutation);
/// Errors: kCorruption.
Result<MutateRequest> decode_mutate(BytesView body);

struct ReadRequest {
  SetEpoch epoch;
  storage::ReadCommand command;
};
Bytes encode_read(SetEpoch epoch, const storage::ReadCommand& command);
Result<ReadRequest> decode_read(BytesView body);

struct DigestReply {
  base::Hash128 digest;
  bool settled = false;
  bool exhausted = true;  // of the same read: two replies with one digest may end differently
};
Bytes encode_digest_reply(const DigestReply& reply);
Result<DigestReply> decode_digest_reply(BytesView body);

}  // namespace tetrad::replication
