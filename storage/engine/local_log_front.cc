// SPDX-License-Identifier: Apache-2.0
// The local log for a shard that does not own it: its writes of a turn go over as one batch,
// answers come back as one event.
#include "storage/engine/local_log_front.h"

#include "base/assert.h"

namespace tetrad::storage {
namespace {

class LocalLogFront final : public LocalLog {
 public:
  LocalLogFront(LocalLog& log, base::Reactor& main, base::Reactor& own)
      : log_(log), main_(main), own_(own) {}
  ~LocalLogFront() override { *alive_ = false; }

  void write(std::vector<Operation> batch, bool sync, DoneCallback done) override {
    std::move(batch.begin(), batch.end(), std::back_inserter(waiting_));
    sync_ |= sync;
    done_.push_back(std::move(done));
    if (turn_begun_) return;
    turn_begun_ = true;
    own_.at_turn_end([this, alive = alive_] {
      if (*alive) hand_over();
    });
  }

  void erase_range(Bytes start, Bytes end, DoneCallback done) override {
    hand_over();  // in the order of the calls
    main_.post_from_any_thread([&log = log_, &own = own_, start = std::move(start),
                                end = std::move(end), done = std::move(done)]() mutable {
      log.erase_range(std::move(start), std::move(end),
                      [&own, done = std::move(done)](Result<void> result) mutable {
                        answer(own, std::move(done), std::move(result));
                      });
    });
  }

  Result<std::optional<Bytes>> get(BytesView key) override { return log_.get(key); }
  Result<std::vector<std::pair<Bytes, Bytes>>> scan(BytesView start, BytesView end,
                                                    size_t limit) override {
    return log_.scan(start, end, limit);
  }
  void scan_later(Bytes start, Bytes end, size_t limit, uint64_t bytes_max,
                  PairsCallback done) override {
    hand_over();
    main_.post_from_any_thread([&log = log_, &own = own_, start = std::move(start),
                                end = std::move(end), limit, bytes_max,
                                done = std::move(done)]() mutable {
      log.scan_later(
          std::move(start), std::move(end), limit, bytes_max,
          [&own, done = std::move(done)](Result<Pairs> pairs) mutable {
            own.post_from_any_thread([done = std::move(done), pairs = std::move(pairs)]() mutable {
              done(std::move(pairs));
            });
          });
    });
  }
  Result<void> close() override {
    hand_over();
    return {};
  }

 private:
  static void answer(base::Reactor& own, DoneCallback done, Result<void> result) {
    own.post_from_any_thread([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }

  void hand_over() {
    turn_begun_ = false;
    TETRAD_ASSERT(waiting_.empty() || !done_.empty());
    if (done_.empty()) return;
    DoneCallback all = [done = std::exchange(done_, {})](const Result<void>& result) mutable {
      for (DoneCallback& one : done)
        if (one) one(result);
    };
    main_.post_from_any_thread([&log = log_, &own = own_, batch = std::exchange(waiting_, {}),
                                sync = std::exchange(sync_, false),
                                all = std::move(all)]() mutable {
      log.write(std::move(batch), sync, [&own, all = std::move(all)](Result<void> result) mutable {
        answer(own, std::move(all), std::move(result));
      });
    });
  }

  LocalLog& log_;
  base::Reactor& main_;
  base::Reactor& own_;
  std::vector<Operation> waiting_;
  std::vector<DoneCallback> done_;
  bool sync_ = false, turn_begun_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<LocalLog> make_local_log_front(LocalLog& log, base::Reactor& main,
                                               base::Reactor& own) {
  return std::make_unique<LocalLogFront>(log, main, own);
}

}  // namespace tetrad::storage
