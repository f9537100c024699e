// SPDX-License-Identifier: Apache-2.0
// Messages between the shards of one node. What a shard hands over in one turn of its loop goes
// together at the turn's end: for each shard that gets something one lock and at most one wake-up,
// however many messages there are.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/reactor.h"
#include "replication/rpc/shard_call.h"

namespace tetrad::replication {

/// Shared by the shards of a node; made before any of them runs.
class ShardMailboxes {
 public:
  using Deliver = std::function<void(ShardMessage message)>;

  /// By shard number. The reactors outlive the last turn of every shard.
  explicit ShardMailboxes(std::vector<base::Reactor*> reactors);
  ~ShardMailboxes();

  /// Who takes what comes for `shard`, on its thread; without one it is dropped.
  void deliver_to(uint32_t shard, Deliver deliver);
  /// On the thread of `from`. Messages of one pair of shards stay in order. What would make a
  /// shard's inbox larger than kInboxBytesMax is dropped, but never a call: who makes these bounds
  /// them.
  void send(uint32_t from, uint32_t to, ShardMessage message);

  static constexpr uint64_t kInboxBytesMax = uint64_t{256} << 20;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace tetrad::replication
