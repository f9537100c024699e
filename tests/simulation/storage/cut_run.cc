// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/storage/cut_run.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "storage/engine/memory_store.h"
#include "storage/engine/store.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::simulation {
namespace {

using namespace storage;

constexpr int64_t kNow_s = tests::ManualReactor::kWallStartUs / 1'000'000;

/// Rows that are written once each, on a disk that loses its power.
class CutRun {
 public:
  explicit CutRun(uint64_t seed) : random_(seed * 977 + 5) {
    StoreOptions options;
    if (random_.one_in(4)) options.sync = CommitLogSync::kGroup;
    factory_ = make_memory_store_factory(disk_, options);
  }
  ~CutRun() { kill(); }

  std::string run() {
    uint64_t last_life = 0;
    for (int life = 0; life < 4; ++life) {
      auto opened = factory_->open("/tetrad/store", reactor_, pool_);
      if (!opened) return opened.error().message;
      store_ = std::move(*opened);
      const Recovered& recovered = store_->recovered();
      if (recovered.life <= last_life) return "a life has no number of its own";
      last_life = recovered.life;
      if (const std::string wrong = check(recovered); !wrong.empty()) return wrong;
      store_->set_sync_clock([this]() -> std::optional<int64_t> {
        if (doubts_clock_) return std::nullopt;
        return reactor_.wall_time_us();
      });
      for (uint64_t writes = random_.below(80); writes > 0; --writes) write();
      durable_ = store_->sync_numbers().durable;
      kill();
      if (random_.one_in(3)) continue;  // the process alone
      disk_->lose_unsynced(random_, random_.one_in(2));
      is_cut_ = true;
    }
    return "";
  }

 private:
  struct Written {
    uint64_t end;  // it has a lower number
    int64_t at_us;
  };

  void kill() {
    store_.reset();
    pool_.drop_all();
    reactor_.drop_all();
  }

  void write() {
    Mutation mutation = mutation_of(written_.size());
    RowRecord record;
    record.liveness = {1, 0, 0};
    RowChange change;
    encode_row_record(record, change.record);
    mutation.rows.push_back(std::move(change));
    std::optional<bool> done;
    store_->apply(mutation, [&](const Result<void>& result) { done = result.has_value(); });
    reactor_.run_until([&] { return done.has_value(); });
    written_.push_back({store_->sync_numbers().written, reactor_.wall_time_us()});
    if (random_.one_in(10)) {
      store_->sync([](const Result<void>&) {});
      reactor_.run_until_idle();
    }
    if (random_.one_in(20)) doubts_clock_ = !doubts_clock_;
    reactor_.advance_us(
        static_cast<int64_t>(random_.below(random_.one_in(20) ? 90'000'000 : 40'000)));
  }

  static Mutation mutation_of(uint64_t row) {
    Mutation mutation;
    mutation.incarnation = {7};
    mutation.position = {static_cast<int64_t>(row), row};
    mutation.partition_key = "p" + std::to_string(row);
    return mutation;
  }
  bool has(uint64_t row) {
    const Mutation like = mutation_of(row);
    ReadCommand command;
    command.incarnation = like.incarnation;
    command.position = like.position;
    command.partition_key = like.partition_key;
    command.now_s = kNow_s;
    bool found = false;
    store_->read(command, base::kNoDeadline, [&](const Result<ReadResult>& read) {
      found = read && !read->partitions.empty();
    });
    return found;
  }

  /// What was lost before is written off: its numbers are given again.
  std::string check(const Recovered& recovered) {
    if (durable_ > recovered.number) return "what was durable is not there";
    for (uint64_t row = 0; row < written_.size(); ++row) {
      Written& written = written_[row];
      if (written.end == 0 || has(row)) continue;
      if (!is_cut_) return "a row went without a power cut";
      if (written.end <= durable_) return "a row that was durable is gone";
      if (recovered.last_sync && (written.end <= recovered.last_sync->number ||
                                  written.at_us < recovered.last_sync->time_us))
        return "a row from before the newest sync record is gone";
      written.end = 0;
    }
    is_cut_ = false;
    return "";
  }

  base::Random random_;
  tests::ManualReactor reactor_;
  tests::InlineIoPool pool_;
  const std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<StoreFactory> factory_;
  std::unique_ptr<Store> store_;
  std::vector<Written> written_;
  uint64_t durable_ = 0;
  bool is_cut_ = false, doubts_clock_ = false;
};

}  // namespace

std::string run_cuts(uint64_t seed) { return CutRun(seed).run(); }

}  // namespace tetrad::simulation
