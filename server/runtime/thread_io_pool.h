// SPDX-License-Identifier: Apache-2.0
// The I/O pool of a real node: a few threads for blocking work. Calls of one lane run one after
// another.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/io_pool.h"

namespace tetrad::server {

class ThreadIoPool final : public base::IoPool {
 public:
  explicit ThreadIoPool(int thread_count);
  /// Runs what is queued, then ends the threads. The reactors of pending calls still exist.
  ~ThreadIoPool() override;
  void run(base::Reactor& reactor, uint32_t lane, base::Callback work,
           base::Callback done) override;

 private:
  struct Job {
    base::Reactor* reactor;
    uint32_t lane;
    base::Callback work, done;
  };
  void work_loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> ready_;
  std::unordered_map<uint32_t, std::deque<Job>> waiting_;  // lane busy → jobs behind it
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tetrad::server
