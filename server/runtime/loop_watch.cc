// SPDX-License-Identifier: Apache-2.0
// 1. ask(): every kAskEveryUs shard 0 posts to each other shard that owes no answer.
// 2. The shard's loop runs the post and posts back; take_answer() notes it.
// 3. A shard that owes an answer for kHangsAfterUs hangs, until it answers.
//
// changed_ is called on a change only, on shard 0's thread.
#include "server/runtime/loop_watch.h"

namespace tetrad::server {

LoopWatch::LoopWatch(std::vector<base::Reactor*> loops, Listener changed)
    : reactors_(std::move(loops)), changed_(std::move(changed)), loops_(reactors_.size()) {}

LoopWatch::~LoopWatch() { reactors_[0]->cancel(timer_); }

void LoopWatch::ask() {
  base::Reactor& own = *reactors_[0];
  timer_ = own.call_at(own.now_us() + kAskEveryUs, [this] { ask(); });
  for (uint32_t shard = 1; shard < loops_.size(); ++shard) {
    Loop& loop = loops_[shard];
    if (!loop.is_asked) {
      loop = {true, loop.hangs, own.now_us()};
      reactors_[shard]->post_from_any_thread(
          // The answer may come after this object has gone. `alive` is only looked at on shard 0's
          // thread, where the object is destroyed.
          [this, &own, shard, alive = std::weak_ptr<char>(alive_)] {
            own.post_from_any_thread([this, shard, alive] {
              if (!alive.expired()) take_answer(shard);
            });
          });
    } else if (!loop.hangs && own.now_us() - loop.asked_us >= kHangsAfterUs) {
      loop.hangs = true;
      changed_(shard, true);
    }
  }
}

void LoopWatch::take_answer(uint32_t shard) {
  loops_[shard].is_asked = false;
  if (std::exchange(loops_[shard].hangs, false)) changed_(shard, false);
}

}  // namespace tetrad::server
