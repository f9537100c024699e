// SPDX-License-Identifier: Apache-2.0
// The I/O pool of a real node: a thread for each log, a few for maintenance, and readers.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/io_pool.h"
#include "server/runtime/read_queue.h"

namespace tetrad::server {

/// How many threads there are of each kind, and how many reads may wait.
/// Commit lanes have a thread each beside these.
struct ThreadIoPoolOptions {
  int reader_threads = 4;
  int maintenance_threads = 2;  // a compaction of hours occupies one
  size_t reads_waiting_max = 1024;
};

/// What the queue of reads holds, and has refused or let expire so far.
struct ReadQueueFigures {
  uint64_t waiting = 0, refused = 0, late = 0;
};

/// The process' threads for what blocks. Any shard may hand in work; `done` runs on the reactor
/// that it came with.
class ThreadIoPool final : public base::IoPool {
 public:
  explicit ThreadIoPool(const ThreadIoPoolOptions& options);
  /// Runs what is queued, then ends the threads. The reactors of pending calls still exist.
  ~ThreadIoPool() override;
  void run(base::Reactor& reactor, base::IoDuty duty, uint32_t lane, base::Callback work,
           base::Callback done) override;
  void read(base::Reactor& reactor, base::Deadline deadline, base::Callback work,
            ReadDone done) override;
  /// On any thread.
  ReadQueueFigures read_figures() const;

 private:
  // Threads that take jobs from one list, in order.
  class Workers;

  /// A read that waits for a thread.
  struct Read {
    base::Reactor* reactor;
    base::Callback work;
    ReadDone done;
  };
  void join_readers();
  /// Of each reader thread: late reads are answered, then the earliest deadline is run.
  void read_loop();
  static void answer(Read read, Result<void> began);
  /// Answers those whose time is over. `lock` is held before and after.
  void drop_late(std::unique_lock<std::mutex>& lock);

  std::unique_ptr<Workers> maintenance_;
  std::mutex lanes_mutex_;
  /// One thread each; of what has a thread for each lane.
  std::map<std::pair<base::IoDuty, uint32_t>, std::unique_ptr<Workers>> lanes_;

  const size_t reads_waiting_max_;
  // Guards reads_, figures_ and stopping_; lanes_mutex_ guards lanes_ alone. Neither is held while
  // work runs.
  mutable std::mutex reads_mutex_;
  std::condition_variable read_wake_;
  ReadQueue<Read> reads_;
  ReadQueueFigures figures_;
  bool stopping_ = false;
  // Last: they use everything above.
  std::vector<std::thread> readers_;
};

}  // namespace tetrad::server
