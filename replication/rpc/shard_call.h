// SPDX-License-Identifier: Apache-2.0
// A request to a store of another shard of this node, and its answer: the structures themselves, in
// one object that goes there and comes back. It is made and ended on the shard that asks; at any
// time only one shard has it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/error.h"
#include "base/reactor.h"
#include "replication/rpc/verbs.h"

namespace tetrad::replication {

/// A call from one shard of a node to another, without encoding. One shard owns it at a time:
/// handed over, answered there, handed back.
class ShardCall {
 public:
  ShardCall(Verb verb, uint32_t store, base::Deadline deadline)
      : verb_(verb), store_(store), deadline_(deadline) {}
  virtual ~ShardCall() = default;
  ShardCall(const ShardCall&) = delete;
  ShardCall& operator=(const ShardCall&) = delete;

  Verb verb() const { return verb_; }
  uint32_t store() const { return store_; }
  base::Deadline deadline() const { return deadline_; }
  /// In place of an answer.
  virtual void refuse(Error error) = 0;
  /// On the shard that asked: the answer is there. `self` is this.
  virtual void finish(std::unique_ptr<ShardCall> self) = 0;

 private:
  friend class RpcNode;
  const Verb verb_;
  const uint32_t store_;
  const base::Deadline deadline_;
  uint32_t from_shard_ = 0;
  uint64_t request_bytes_ = 0;
  bool is_answered_ = false;
};

/// What one shard hands over to another: a message of this or another node, or a call.
struct ShardMessage {
  ShardMessage(Bytes whole) : bytes(std::move(whole)) {}
  ShardMessage(std::unique_ptr<ShardCall> its_call) : call(std::move(its_call)) {}

  Bytes bytes;
  std::unique_ptr<ShardCall> call;
};

}  // namespace tetrad::replication
