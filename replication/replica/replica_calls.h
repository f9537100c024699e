// SPDX-License-Identifier: Apache-2.0
// What a coordinator asks a store of another shard of its node: the structures of the messages in
// replica_messages.h as they are, nothing encoded.
#pragma once

#include <memory>
#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "replication/replica/replica_messages.h"
#include "replication/rpc/shard_call.h"

namespace tetrad::replication {

/// Verb::kMutate.
class MutateCall : public ShardCall {
 public:
  MutateCall(uint32_t store, base::Deadline deadline, SetEpoch its_epoch,
             std::optional<int64_t> stamp_us, int64_t its_dated_us)
      : ShardCall(Verb::kMutate, store, deadline),
        epoch(its_epoch),
        server_timestamp_us(stamp_us),
        dated_us(its_dated_us) {}
  void refuse(Error error) override { answer = std::unexpected(std::move(error)); }
  /// Nobody changes it until the call is back.
  virtual const storage::Mutation& mutation() const = 0;

  const SetEpoch epoch;
  const std::optional<int64_t> server_timestamp_us;
  const int64_t dated_us;
  /// The mark that is not below the server timestamp.
  Result<std::optional<int64_t>> answer = std::optional<int64_t>();
};

/// Verb::kRead or Verb::kReadDigest.
class ReadCall : public ShardCall {
 public:
  ReadCall(Verb verb, uint32_t store, base::Deadline deadline, SetEpoch its_epoch,
           storage::ReadCommand its_command)
      : ShardCall(verb, store, deadline), epoch(its_epoch), command(std::move(its_command)) {}
  void refuse(Error error) override { answer = std::unexpected(std::move(error)); }

  const SetEpoch epoch;
  storage::ReadCommand command;
  Result<storage::ReadResult> answer = storage::ReadResult();  // of kRead, and errors of both
  DigestReply digest;
};

}  // namespace tetrad::replication
