// SPDX-License-Identifier: Apache-2.0
// Reading through RocksDB. On the loop a view gives up where a file would be read, or after too
// many steps; nothing that it found before counts then.
#include "storage/engine/rocks_view.h"

#include <cstring>

#include <rocksdb/db.h>
#include <rocksdb/perf_context.h>

#include "base/assert.h"
#include "storage/engine/block_reads.h"
#include "storage/engine/rocks_options.h"
#include "storage/engine/rocks_status.h"

namespace tetrad::storage {
namespace {

/// What one step of an iterator may pass over on the loop: deleted keys and older versions.
constexpr uint64_t kSkippedHereMax = 500;
constexpr size_t kMergedBytesMax = 64 << 10;  // of one read; compaction does the rest
constexpr size_t kManyOperands = 256, kOftenChangedBytesMax = 4 << 20;

rocksdb::Slice slice_of(BytesView bytes) { return {bytes.data(), bytes.size()}; }
BytesView view_of(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

rocksdb::ReadOptions read_options_of(const RocksViewOptions& options) {
  rocksdb::ReadOptions read = read_options();
  read.snapshot = options.snapshot;
  read.fill_cache = options.fill_cache;
  if (options.memory_only) {
    read.read_tier = rocksdb::kBlockCacheTier;
    read.max_skippable_internal_keys = kSkippedHereMax;
  }
  return read;
}

}  // namespace

struct RocksView::State {
  rocksdb::ReadOptions read;
  rocksdb::PinnableSlice value;
};

class RocksIterator final : public KeyIterator {
 public:
  RocksIterator(RocksView& view, KeyView::Bounds bounds)
      : view_(view),
        bounds_(std::move(bounds)),
        lower_(slice_of(bounds_.start)),
        upper_(slice_of(bounds_.end)) {
    TETRAD_ASSERT(bounds_.start <= bounds_.end);
    rocksdb::ReadOptions read = read_options_of(view.options_);
    read.iterate_upper_bound = &upper_;
    if (bounds_.reversed) read.iterate_lower_bound = &lower_;
    // Bloom filters of prefixes hold for forward reads of one partition; the bound ends them.
    read.total_order_seek = !bounds_.one_partition || bounds_.reversed;
    it_.reset(view.db_.NewIterator(read));
  }

  void seek(BytesView key) override {
    if (!step()) return;
    it_->Seek(slice_of(std::max(key, BytesView(bounds_.start))));
    settle();
  }
  void seek_before(BytesView key) override {
    if (!step()) return;
    const BytesView bound = std::min(key, BytesView(bounds_.end));
    TETRAD_ASSERT(bounds_.start <= bound);
    it_->SeekForPrev(slice_of(bound));
    if (it_->Valid() && view_of(it_->key()) >= bound) it_->Prev();
    settle();
  }
  void next() override {
    if (!step()) return;
    it_->Next();
    settle();
  }
  void prev() override {
    if (!step()) return;
    it_->Prev();
    settle();
  }
  Result<void> status() const override {
    if (out_of_steps_) return fail(ErrorCode::kCancelled, "too long a read for the loop");
    if (failed_.ok()) return {};
    return std::unexpected(error_of(failed_, "reading"));
  }

 private:
  bool step() {
    if (view_.take_step()) return true;
    out_of_steps_ = true;
    valid_ = false;
    view_.gave_up_ = view_.is_long_ = true;
    return false;
  }
  void settle() {
    valid_ = it_->Valid();
    if (valid_) {
      key_ = view_of(it_->key());
      value_ = view_of(it_->value());
      view_.see(key_, value_);
    } else if (rocksdb::Status status = it_->status(); !status.ok()) {
      if (status.IsIncomplete()) {
        view_.gave_up_ = true;
        const char* why = status.getState();
        if (why != nullptr && std::strstr(why, "skipped") != nullptr) view_.is_long_ = true;
      }
      if (failed_.ok()) failed_ = std::move(status);
    }
  }

  RocksView& view_;
  const KeyView::Bounds bounds_;
  const rocksdb::Slice lower_, upper_;
  std::unique_ptr<rocksdb::Iterator> it_;
  rocksdb::Status failed_;  // stays: RocksDB forgets it when it seeks again
  bool out_of_steps_ = false;
};

RocksView::RocksView(rocksdb::DB& db, const RocksViewOptions& options)
    : db_(db), options_(options), state_(std::make_unique<State>()) {
  state_->read = read_options_of(options);
  if (options_.block_hits != nullptr) block_hits_before_ = block_hits_here();
  passed_before_ = passed_over();
}

RocksView::~RocksView() {
  if (options_.block_hits == nullptr || gave_up_) return;
  *options_.block_hits += block_hits_here() - block_hits_before_;
}

uint64_t RocksView::passed_over() const {
  if (!counts_passed_over()) return 0;
  return rocksdb::get_perf_context()->internal_delete_skipped_count - passed_before_;
}

void RocksView::see(BytesView key, BytesView value) {
  steps_ += value.size() / options_.bytes_per_step;
  const size_t operands = watch_.take_operands();
  if (operands <= options_.operands_max) [[likely]]
    return;
  const size_t bytes = key.size() + value.size();
  // What is not remembered is joined again by the next read: slower, never wrong. A large row is
  // worth it when it has been changed often.
  const size_t most = operands >= kManyOperands ? kOftenChangedBytesMax : kMergedBytesMax;
  if (merged_bytes_ + bytes > most) return;
  merged_bytes_ += bytes;
  merged_.push_back({Bytes(key), Bytes(value)});
}

Result<std::optional<BytesView>> RocksView::get(BytesView key) {
  if (!take_step()) {
    gave_up_ = true;
    return fail(ErrorCode::kCancelled, "too long a read for the loop");
  }
  state_->value.Reset();
  rocksdb::Status status =
      db_.Get(state_->read, db_.DefaultColumnFamily(), slice_of(key), &state_->value);
  // No record is empty. A file that is not open is passed over like that (7.8.3).
  if (status.ok() && options_.memory_only && state_->value.empty())
    status = rocksdb::Status::Incomplete("a file is not open");
  if (status.ok()) {
    see(key, view_of(state_->value));
    return view_of(state_->value);
  }
  if (status.IsNotFound()) return std::nullopt;
  if (status.IsIncomplete()) gave_up_ = true;
  return std::unexpected(error_of(status, "reading"));
}

std::unique_ptr<KeyIterator> RocksView::iterate(Bounds bounds) {
  if (bounds.partition_prefix_bytes != 0 && options_.row_cache != nullptr)
    return options_.row_cache->iterate(*this, std::move(bounds), options_.moment);
  return std::make_unique<RocksIterator>(*this, std::move(bounds));
}

}  // namespace tetrad::storage
