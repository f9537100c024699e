// SPDX-License-Identifier: Apache-2.0
// Three kinds of threads:
//
// - commit and parse: one thread for each lane of a shard, made when it is first used. One thread
//   keeps the order of its calls.
// - maintenance: a few threads over one queue. Calls of one lane run one after another (Workers);
//   lane 0 has no order.
// - readers: a few threads over a queue by deadline. A read whose deadline is over is answered
//   without being run, since its client has gone.
//
// `work` runs on a thread of the pool, `done` always on the reactor that asked.
#include "server/runtime/thread_io_pool.h"

#include <pthread.h>
#include <unordered_map>

#include "base/guarded.h"
#include "server/runtime/asio_reactor.h"

namespace tetrad::server {

/// Threads over one queue in which calls of one lane run one after another.
class ThreadIoPool::Workers {
 public:
  Workers(const char* name, int thread_count) {
    try {
      for (int i = 0; i < thread_count; ++i) {
        threads_.emplace_back([this, name] {
          pthread_setname_np(pthread_self(), name);
          work_loop();
        });
      }
    } catch (...) {  // a thread that runs must not be destroyed
      join();
      throw;
    }
  }
  ~Workers() { join(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void run(base::Reactor& reactor, uint32_t lane, base::Callback work, base::Callback done) {
    Job job{&reactor, lane, std::move(work), std::move(done)};
    {
      const std::lock_guard lock(mutex_);
      if (lane != 0) {
        // An entry of waiting_ exists as long as a call of the lane runs or is ready; calls behind
        // it wait in the entry.
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

 private:
  struct Job {
    base::Reactor* reactor;
    uint32_t lane;
    base::Callback work, done;
  };

  void join() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  void work_loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !ready_.empty(); });
      // Stopping: what is queued runs first.
      if (ready_.empty()) return;
      Job job = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      job.work();
      // What the work holds is freed on this thread and before `done` tells the shard that it is
      // over.
      job.work = nullptr;
      job.reactor->post_from_any_thread(std::move(job.done));
      lock.lock();
      if (job.lane != 0) start_next_of(job.lane);
    }
  }

  void start_next_of(uint32_t lane) {
    const auto queue = waiting_.find(lane);
    if (queue->second.empty()) {
      waiting_.erase(queue);
      return;
    }
    ready_.push_back(std::move(queue->second.front()));
    queue->second.pop_front();
    wake_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> ready_;
  std::unordered_map<uint32_t, std::deque<Job>> waiting_;  // lane busy → jobs behind it
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

ThreadIoPool::ThreadIoPool(const ThreadIoPoolOptions& options)
    : maintenance_(std::make_unique<Workers>("maintenance", options.maintenance_threads)),
      reads_waiting_max_(options.reads_waiting_max),
      reads_(options.reads_waiting_max) {
  try {
    for (int i = 0; i < options.reader_threads; ++i) {
      readers_.emplace_back([this] {
        pthread_setname_np(pthread_self(), "reader");
        read_loop();
      });
    }
  } catch (...) {
    join_readers();
    throw;
  }
}

ThreadIoPool::~ThreadIoPool() { join_readers(); }

void ThreadIoPool::join_readers() {
  {
    const std::lock_guard lock(reads_mutex_);
    stopping_ = true;
  }
  read_wake_.notify_all();
  for (auto& thread : readers_) thread.join();
}

void ThreadIoPool::run(base::Reactor& reactor, base::IoDuty duty, uint32_t lane,
                       base::Callback work, base::Callback done) {
  if (duty == base::IoDuty::kMaintenance)
    return maintenance_->run(reactor, lane, std::move(work), std::move(done));
  const std::lock_guard lock(lanes_mutex_);
  std::unique_ptr<Workers>& thread = lanes_[{duty, lane}];
  if (thread == nullptr)
    thread = std::make_unique<Workers>(duty == base::IoDuty::kCommit ? "commit" : "parse", 1);
  thread->run(reactor, 0, std::move(work), std::move(done));  // one thread keeps the order
}

void ThreadIoPool::answer(Read read, Result<void> began) {
  read.work = nullptr;  // what it holds goes before it is answered
  read.reactor->post_from_any_thread(
      [done = std::move(read.done), began = std::move(began)]() mutable {
        done(std::move(began));
      });
}

// The lock is given back while they are answered: posting takes the reactor's lock.
void ThreadIoPool::drop_late(std::unique_lock<std::mutex>& lock) {
  std::vector<Read> late = reads_.take_late(monotonic_now_us());
  if (late.empty()) return;
  figures_.late += late.size();
  lock.unlock();
  for (Read& read : late)
    answer(std::move(read),
           fail(ErrorCode::kTimedOut, "the read waited for a thread until its time was over"));
  lock.lock();
}

void ThreadIoPool::read(base::Reactor& reactor, base::Deadline deadline, base::Callback work,
                        ReadDone done) {
  Read read{&reactor, std::move(work), std::move(done)};
  std::unique_lock lock(reads_mutex_);
  // Late ones first: they must not keep others out.
  if (reads_.size() >= reads_waiting_max_) drop_late(lock);
  if (reads_.push(deadline, std::move(read))) {
    lock.unlock();
    read_wake_.notify_one();
    return;
  }
  ++figures_.refused;
  lock.unlock();
  answer(std::move(read), fail(ErrorCode::kOverloaded, "{} reads wait for the disk, no more may",
                               reads_waiting_max_));
}

void ThreadIoPool::read_loop() {
  std::unique_lock lock(reads_mutex_);
  while (true) {
    read_wake_.wait(lock, [this] { return stopping_ || !reads_.empty(); });
    drop_late(lock);
    std::optional<Read> read = reads_.pop();
    if (!read) {
      if (stopping_) return;
      continue;
    }
    lock.unlock();
    // A library that throws fails this read and not the process.
    Result<void> ran = base::guarded("a read of the disk", [&]() -> Result<void> {
      read->work();
      return {};
    });
    answer(std::move(*read), std::move(ran));
    lock.lock();
  }
}

ReadQueueFigures ThreadIoPool::read_figures() const {
  const std::lock_guard lock(reads_mutex_);
  ReadQueueFigures figures = figures_;
  figures.waiting = reads_.size();
  return figures;
}

}  // namespace tetrad::server
