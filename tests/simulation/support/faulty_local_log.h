// SPDX-License-Identifier: Apache-2.0
// A local log over another one, whose disk has the faults that StoreFaults says. Batches stay in
// order.
#pragma once

#include <deque>
#include <memory>

#include "storage/engine/local_log.h"
#include "tests/simulation/support/store_faults.h"

namespace tetrad::simulation {

class FaultyLocalLog final : public storage::LocalLog {
 public:
  /// Everything outlives it but `inner`, which is its own.
  FaultyLocalLog(std::unique_ptr<storage::LocalLog> inner, StoreFaults& faults,
                 base::Reactor& reactor)
      : inner_(std::move(inner)), faults_(faults), reactor_(reactor) {}
  ~FaultyLocalLog() override {
    *alive_ = false;
    if (timer_ != 0) reactor_.cancel(timer_);
  }

  void write(std::vector<Operation> batch, bool sync, DoneCallback done) override {
    if (refuse(done)) return;
    const base::MonotonicUs due_us = sync ? reactor_.now_us() + faults_.sync_us : 0;
    hold_or_run(due_us, [this, batch = std::move(batch), sync, done = std::move(done)]() mutable {
      inner_->write(std::move(batch), sync, late(std::move(done)));
    });
  }
  Result<std::optional<Bytes>> get(BytesView key) override { return inner_->get(key); }
  Result<std::vector<std::pair<Bytes, Bytes>>> scan(BytesView start, BytesView end,
                                                    size_t limit) override {
    return inner_->scan(start, end, limit);
  }
  void scan_later(Bytes start, Bytes end, size_t limit, uint64_t bytes_max,
                  PairsCallback done) override {
    inner_->scan_later(std::move(start), std::move(end), limit, bytes_max, std::move(done));
  }
  void erase_range(Bytes start, Bytes end, DoneCallback done) override {
    if (refuse(done)) return;
    hold_or_run(0, [this, start = std::move(start), end = std::move(end),
                    done = std::move(done)]() mutable {
      inner_->erase_range(std::move(start), std::move(end), late(std::move(done)));
    });
  }
  Result<void> close() override {
    if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
    for (Held& held : std::exchange(held_, {})) held.work();
    return inner_->close();
  }

 private:
  struct Held {
    base::MonotonicUs not_before_us;
    base::Callback work;
  };

  /// `done` runs in a later event, as after any write.
  bool refuse(DoneCallback& done) {
    std::optional<Error> error = faults_.refusal;
    if (!error) error = faults_.take_error(StoreCall::kLogWrite);
    if (!error) return false;
    if (!done) return true;
    reactor_.post([alive = alive_, done = std::move(done), error = std::move(*error)]() mutable {
      if (*alive) done(std::unexpected(std::move(error)));
    });
    return true;
  }
  DoneCallback late(DoneCallback done) {
    if (faults_.ack_late_us == 0 || !done) return done;
    return [this, alive = alive_, done = std::move(done)](Result<void> result) mutable {
      if (!*alive) return;
      reactor_.call_at(reactor_.now_us() + faults_.ack_late_us,
                       [alive, done = std::move(done), result = std::move(result)]() mutable {
                         if (*alive) done(std::move(result));
                       });
    };
  }
  void hold_or_run(base::MonotonicUs due_us, base::Callback work) {
    if (!faults_.hangs && held_.empty() && due_us <= reactor_.now_us()) return work();
    held_.push_back({due_us, std::move(work)});
    ++faults_.figures.held;
    look_later();
  }
  void look_later() {
    if (timer_ != 0) return;
    timer_ = reactor_.call_at(reactor_.now_us() + kFaultLookUs, [this] {
      timer_ = 0;
      look();
    });
  }
  void look() {
    const std::shared_ptr<bool> alive = alive_;
    while (!held_.empty() && !faults_.hangs && held_.front().not_before_us <= reactor_.now_us()) {
      base::Callback work = std::move(held_.front().work);
      held_.pop_front();
      work();
      if (!*alive) return;
    }
    if (!held_.empty()) look_later();
  }

  const std::unique_ptr<storage::LocalLog> inner_;
  StoreFaults& faults_;
  base::Reactor& reactor_;
  std::deque<Held> held_;
  base::Reactor::TimerId timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tetrad::simulation
