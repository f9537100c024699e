// SPDX-License-Identifier: Apache-2.0
// What a store says of its syncs. A sync record must never promise more than the disk has:
//
//   1. begin() notes the end of what has been written, and the time, before a sync begins.
//   2. end() makes that the record that is due: the sync covers everything below its number.
//   3. The record goes with the next batch. Whoever finds it after a power cut has it because a
//      later part of the log survived, which was written when that sync had ended.
#include "storage/engine/sync_records.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/byte_io.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kSlotUs = 10'000'000;
constexpr uint32_t kSlots = 64;
constexpr std::string_view kRecord = "sync", kLife = "life";

uint32_t slot_of(int64_t time_us) {
  return static_cast<uint32_t>(static_cast<uint64_t>(time_us / kSlotUs) % kSlots);
}

Bytes own_key(std::string_view what) {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw(what);
  return key;
}

bool is_record_key(BytesView key) {
  const Bytes prefix = own_key(kRecord);
  return key.size() == prefix.size() + sizeof(uint32_t) && key.starts_with(prefix);
}

Result<SyncMark> read_mark(base::ByteReader& r) {
  SyncMark mark;
  TETRAD_TRY(mark.life, r.read_u64());
  TETRAD_TRY(mark.number, r.read_u64());
  TETRAD_TRY(mark.time_us, r.read_i64());
  return mark;
}

}  // namespace

std::optional<SyncMark> sync_mark_of(BytesView key, BytesView value) {
  if (!is_record_key(key)) return std::nullopt;
  base::ByteReader r(value);
  const auto mark = read_mark(r);
  if (!mark || r.remaining() != 0) return std::nullopt;
  return *mark;
}

Result<void> SyncRecords::load(BytesView key, BytesView value) {
  base::ByteReader r(value);
  if (key == own_key(kLife)) {
    TETRAD_TRY(last_life_, r.read_u64());
  } else if (is_record_key(key)) {
    TETRAD_TRY(const SyncMark mark, read_mark(r));
    keep(mark);
  } else {
    return {};
  }
  if (r.remaining() != 0)
    return fail(ErrorCode::kCorruption, "a sync record of {} bytes", value.size());
  return {};
}

void SyncRecords::begin_life(uint64_t number, uint64_t whole) {
  TETRAD_ASSERT(recovered_.life == 0);
  recovered_.life = last_life_ + 1;
  recovered_.number = durable_ = number;
  recovered_.whole = std::min(number, whole);
  if (!marks_.empty()) recovered_.last_sync = marks_.back();
}

std::pair<Bytes, Bytes> SyncRecords::life_entry() const {
  Bytes value;
  base::ByteWriter(value).u64(recovered_.life);
  return {own_key(kLife), std::move(value)};
}

SyncRecords::Begun SyncRecords::begin(uint64_t number) const {
  return {number, now_us_ ? now_us_() : std::nullopt};
}

void SyncRecords::end(const Begun& begun, uint64_t durable) {
  durable_ = std::max(durable_, durable);
  if (!begun.time_us) return;
  due_ = {recovered_.life, begun.number, *begun.time_us};
  keep(*due_);
}

std::pair<Bytes, Bytes> SyncRecords::take_due() {
  TETRAD_ASSERT(due_.has_value());
  Bytes key = own_key(kRecord), value;
  base::ByteWriter(key).u32(slot_of(due_->time_us));
  base::ByteWriter w(value);
  w.u64(due_->life);
  w.u64(due_->number);
  w.i64(due_->time_us);
  due_.reset();
  has_written_ = true;
  return {std::move(key), std::move(value)};
}

// One mark of each slot of ten seconds: the key of a slot is written again ten minutes later, so
// the store never has more of them, and neither has memory.
void SyncRecords::keep(const SyncMark& mark) {
  std::erase_if(marks_, [slot = slot_of(mark.time_us)](const SyncMark& other) {
    return slot_of(other.time_us) == slot;
  });
  const auto after = std::ranges::upper_bound(marks_, mark.number, {}, &SyncMark::number);
  marks_.insert(after, mark);
  TETRAD_ASSERT(marks_.size() <= kSlots);
}

/// Times may go back from one life to the next, numbers never do: what was written at a time is
/// behind the last record before any that is later.
std::optional<SyncRecords::Window> SyncRecords::window(int64_t since_us, int64_t until_us) const {
  const auto later =
      std::ranges::find_if(marks_, [&](const SyncMark& mark) { return mark.time_us >= since_us; });
  if (later == marks_.begin()) return std::nullopt;
  const auto last_inside = std::find_if(marks_.rbegin(), marks_.rend(), [&](const SyncMark& mark) {
    return mark.time_us <= until_us;
  });
  const uint64_t until = last_inside == marks_.rbegin() ? std::numeric_limits<uint64_t>::max()
                                                        : std::prev(last_inside)->number;
  return Window{std::prev(later)->number, until};
}

}  // namespace tetrad::storage
