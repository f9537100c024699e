// SPDX-License-Identifier: Apache-2.0
// Whether the event loops of a node's other shards still run: shard 0 posts to each periodically,
// and one that has not answered for long counts as hung, with its stores. The other nodes notice a
// hung shard 0 by its missing heartbeats.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/reactor.h"

namespace tetrad::server {

/// Asks the other shards' loops for a sign of life. Belongs to the first shard's thread.
class LoopWatch {
 public:
  using Listener = std::function<void(uint32_t shard, bool hangs)>;

  /// By shard; the first is this one's own and is not asked. They outlive it. `changed` runs here.
  LoopWatch(std::vector<base::Reactor*> loops, Listener changed);
  /// Answers that come later find nobody.
  ~LoopWatch();
  LoopWatch(const LoopWatch&) = delete;
  LoopWatch& operator=(const LoopWatch&) = delete;
  void start() { ask(); }

  static constexpr int64_t kAskEveryUs = 1'000'000, kHangsAfterUs = 5'000'000;

 private:
  /// One other shard: whether it owes an answer, and since when.
  struct Loop {
    // hangs: it was asked longer ago than kHangsAfterUs and has not answered.
    bool is_asked = false, hangs = false;
    base::MonotonicUs asked_us = 0;
  };
  // Every kAskEveryUs: posts to each loop that has answered, and looks at those that have not.
  void ask();
  void take_answer(uint32_t shard);

  const std::vector<base::Reactor*> reactors_;
  const Listener changed_;
  std::vector<Loop> loops_;
  base::Reactor::TimerId timer_ = 0;
  // An answer that comes when this object is gone must find nothing.
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace tetrad::server
