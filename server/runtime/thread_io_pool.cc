// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/thread_io_pool.h"

namespace tetrad::server {

ThreadIoPool::ThreadIoPool(int thread_count) {
  for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { work_loop(); });
}

ThreadIoPool::~ThreadIoPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadIoPool::run(base::Reactor& reactor, uint32_t lane, base::Callback work,
                       base::Callback done) {
  Job job{&reactor, lane, std::move(work), std::move(done)};
  {
    const std::lock_guard lock(mutex_);
    if (lane != 0) {
      const auto [queue, lane_was_idle] = waiting_.try_emplace(lane);
      if (!lane_was_idle) {
        queue->second.push_back(std::move(job));
        return;
      }
    }
    ready_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void ThreadIoPool::work_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !ready_.empty(); });
    if (ready_.empty()) return;
    Job job = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    job.work();
    job.work = nullptr;
    job.reactor->post_from_any_thread(std::move(job.done));
    lock.lock();
    if (job.lane != 0) {
      const auto queue = waiting_.find(job.lane);
      if (queue->second.empty()) {
        waiting_.erase(queue);
      } else {
        ready_.push_back(std::move(queue->second.front()));
        queue->second.pop_front();
        wake_.notify_one();
      }
    }
  }
}

}  // namespace tetrad::server
