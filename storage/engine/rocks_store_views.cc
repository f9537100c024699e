// SPDX-License-Identifier: Apache-2.0
// Views of a RocksStore's tables: what storage/views asks of it.
#include "storage/engine/rocks_store_views.h"

namespace tetrad::storage {
namespace {

/// Of a read on the loop.
constexpr uint64_t kStepsHereMax = 1'000;

}  // namespace

void RocksStore::set_views(TableIncarnation base, ViewMakersPtr makers, TableIncarnation next) {
  if (closed_ || is_retired(base)) return;
  const bool has_views = makers != nullptr;
  const StoreViews::Changed changed = views_.set(base, std::move(makers), next);
  turn_.put_own(changed.puts);
  turn_.erase_own(changed.erased);
  state_.tables.set_views(base, views_.has_views(base));
  if (has_views || changed.none_left) state_.filter->set_views(base, has_views);
}

// As RocksStore::read(): on the loop from memory if that takes few steps, else over a snapshot; and a
// row that is written all the time is made one value again, since each of its writes is read here.
void RocksStore::ViewSide::read(base::Deadline deadline, std::function<Result<void>(KeyView&)> work,
                                std::move_only_function<void(Result<void>)> done) {
  if (const auto why = store_.unusable()) return done(std::unexpected(*why));
  const bool fixed =
      store_.options_.sync == CommitLogSync::kGroup || store_.turn_.writes_elsewhere();
  std::shared_ptr<HeldSnapshot> snapshot;
  if (fixed) snapshot = std::make_shared<HeldSnapshot>(store_.state_.database);
  const uint64_t seen = store_.turn_.written_through();
  const size_t operands_max = store_.options_.read_operands_max;
  {
    RocksView view(store_.db(), {.snapshot = fixed ? snapshot->get() : nullptr,
                                 .memory_only = true,
                                 .steps_max = kStepsHereMax,
                                 .bytes_per_step = kBytesPerLookedStep,
                                 .operands_max = operands_max,
                                 .block_hits = &store_.block_reads_.hits});
    Result<void> result = work(view);
    if (!view.gave_up()) {
      if (!result) store_.heed(result.error());
      store_.write_back(view.take_merged(), seen);
      return done(std::move(result));
    }
  }
  if (snapshot == nullptr) snapshot = std::make_shared<HeldSnapshot>(store_.state_.database);
  const auto merged = std::make_shared<std::vector<MergedValue>>();
  store_.in_readers<void>(
      deadline,
      [snapshot = std::move(snapshot), work = std::move(work), operands_max, merged] {
        RocksView view(snapshot->database().db(),
                       {.snapshot = snapshot->get(), .operands_max = operands_max});
        Result<void> result = work(view);
        *merged = view.take_merged();
        return result;
      },
      [store = &store_, alive = store_.alive_, merged, seen,
       done = std::move(done)](Result<void> read) mutable {
        if (*alive) store->write_back(std::move(*merged), seen);
        if (*alive && !read) store->heed(read.error());
        done(std::move(read));
      });
}

void RocksStore::ViewSide::write(const ViewRecords& puts, const std::vector<Bytes>& erased,
                                 std::move_only_function<void(Result<void>)> done) {
  if (const auto why = store_.unusable()) return done(std::unexpected(*why));
  store_.turn_.change_view_records(puts, erased, std::move(done));
}

void RocksStore::ViewSide::sync(std::move_only_function<void(Result<void>)> done) {
  store_.sync(std::move(done));
}

void RocksStore::ViewSide::when_written(base::Callback then) {
  store_.turn_.when_written(std::move(then));
}

}  // namespace tetrad::storage
