// SPDX-License-Identifier: Apache-2.0
// The tablets of one table.
//
//   map     := u8 version (2), varint map version, varint count, tablet*
//              u8 version (3), varint map version, varint merged epochs, varint count, tablet*
//   tablet  := varint id, varint epoch, u8 stage, u8 flags, zigzag repaired at,
//              i64 end token, u64 end hash, stores, stores (the new ones)
//   flags   := 1: full; 2: merged, 4 and 8: how often that was undone, as a number (version 3)
//   stores  := varint count, (16 bytes host, varint store)*
//   New stores are there in every stage but the first, and only then.
//   example: 02 05 01 07 03 02 01 c801 7fffffffffffffff ffffffffffffffff
//            01 00000000000000000000000000000001 02 01 00000000000000000000000000000003 00
//            version 5, one tablet, number 7, epoch 3, being filled, full, repaired at 100 us, on
//            store 2 of host ...1, to be on store 0 of host ...3
//
//   example: 03 09 02 01 08 04 00 0a 00 7fffffffffffffff ffffffffffffffff 00 00
//            version 9, merges took 2 from the sum of the epochs, one tablet, number 8, epoch 4, at
//            rest, merged, what was merged here was split again twice, never repaired, on no store
//
// A tablet starts where the one before it ends. Version 3 is written where tablets were merged,
// which a cluster of older programs does not do.
#include "partitioner/tablet_map.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::partitioner {

namespace {

constexpr uint8_t kMapFormat = 2, kMapFormatMerged = 3;
constexpr uint8_t kFlagFull = 1, kFlagMerged = 2, kBouncesShift = 2, kFlagsMost = 15;
constexpr uint64_t kReplicasMax = 256;

bool covers_ring(const std::vector<Tablet>& tablets) {
  if (tablets.empty()) return false;
  RingPosition start = RingPosition::lowest();
  for (const Tablet& tablet : tablets) {
    if (tablet.range.start != start || tablet.range.empty()) return false;
    start = tablet.range.end;
  }
  return start == RingPosition::highest();
}

void encode_stores(const std::vector<StoreAddress>& stores, base::ByteWriter& out) {
  out.varint(stores.size());
  for (const StoreAddress& store : stores) {
    out.raw(store.host.value.view());
    out.varint(store.store);
  }
}

Result<std::vector<StoreAddress>> decode_stores(base::ByteReader& in) {
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > kReplicasMax)
    return fail(ErrorCode::kCorruption, "{} replicas, at most {}", count, kReplicasMax);
  std::vector<StoreAddress> stores;
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const BytesView host, in.read_raw(16));
    TETRAD_TRY(const uint64_t store, in.read_varint());
    if (store > 0xffff) return fail(ErrorCode::kCorruption, "store number {}", store);
    stores.push_back({HostId{Uuid::from_bytes(host)}, static_cast<uint32_t>(store)});
  }
  return stores;
}

Result<Tablet> decode_tablet(base::ByteReader& in, RingPosition start, uint8_t flags_most) {
  Tablet tablet;
  TETRAD_TRY(tablet.id.value, in.read_varint());
  TETRAD_TRY(tablet.epoch.value, in.read_varint());
  TETRAD_TRY(const uint8_t stage, in.read_u8());
  if (stage > static_cast<uint8_t>(TabletStage::kWriteNew))
    return fail(ErrorCode::kCorruption, "tablet stage {}", stage);
  tablet.stage = static_cast<TabletStage>(stage);
  TETRAD_TRY(const uint8_t flags, in.read_u8());
  if (flags > flags_most) return fail(ErrorCode::kCorruption, "tablet flags {}", flags);
  tablet.full = (flags & kFlagFull) != 0;
  tablet.is_merged = (flags & kFlagMerged) != 0;
  tablet.bounces = flags >> kBouncesShift;
  TETRAD_TRY(tablet.repaired_us, in.read_zigzag());
  tablet.range.start = start;
  TETRAD_TRY(tablet.range.end.token, in.read_i64());
  TETRAD_TRY(tablet.range.end.hash, in.read_u64());
  TETRAD_TRY(tablet.replicas, decode_stores(in));
  TETRAD_TRY(tablet.new_replicas, decode_stores(in));
  if ((tablet.stage == TabletStage::kNormal) != tablet.new_replicas.empty())
    return fail(ErrorCode::kCorruption, "a tablet in stage {} with {} new members", stage,
                tablet.new_replicas.size());
  return tablet;
}

}  // namespace

TabletMap::TabletMap(std::vector<Tablet> tablets, uint64_t version, uint64_t merged_epochs)
    : tablets_(std::move(tablets)),
      version_(version),
      merged_epochs_(merged_epochs),
      layout_(merged_epochs) {
  TETRAD_ASSERT(covers_ring(tablets_));
  for (const Tablet& tablet : tablets_) layout_ += tablet.epoch.value;
}

const Tablet& TabletMap::find(RingPosition position) const {
  TETRAD_ASSERT(!tablets_.empty());
  const auto found =
      std::lower_bound(tablets_.begin(), tablets_.end(), position,
                       [](const Tablet& tablet, RingPosition p) { return tablet.range.end < p; });
  return found == tablets_.end() ? tablets_.back() : *found;
}

Result<TabletMap> TabletMap::with_split(TabletId id, RingPosition at, TabletId right_id) const {
  std::vector<Tablet> tablets = tablets_;
  const auto found = std::find_if(tablets.begin(), tablets.end(),
                                  [&](const Tablet& tablet) { return tablet.id == id; });
  if (found == tablets.end())
    return fail(ErrorCode::kNotFound, "no physical partition {}", id.value);
  if (!found->range.contains(at) || at == found->range.end)
    return fail(ErrorCode::kInvalid, "the cut lies outside of physical partition {}", id.value);
  Tablet right = *found;
  right.id = right_id;
  right.is_merged = found->is_merged = false;
  right.range.start = at;
  found->range.end = at;
  tablets.insert(std::next(found), std::move(right));
  TabletMap split(std::move(tablets), version_ + 1, merged_epochs_);
  TETRAD_ASSERT(split.tablets_.size() == tablets_.size() + 1);
  return split;
}

Result<TabletMap> TabletMap::with_merge(TabletId left, TabletId right, TabletId merged_id) const {
  const auto found = std::ranges::find(tablets_, left, &Tablet::id);
  if (found == tablets_.end())
    return fail(ErrorCode::kNotFound, "no physical partition {}", left.value);
  const auto next = std::next(found);
  if (next == tablets_.end() || next->id != right)
    return fail(ErrorCode::kInvalid, "physical partition {} is not followed by {}", left.value,
                right.value);
  for (const Tablet* half : {&*found, &*next}) {
    if (half->stage != TabletStage::kNormal)
      return fail(ErrorCode::kInvalid, "physical partition {} is changing its members",
                  half->id.value);
    if (half->full)
      return fail(ErrorCode::kInvalid, "physical partition {} is full", half->id.value);
  }
  Tablet merged = *found;
  merged.id = merged_id;
  merged.range.end = next->range.end;
  merged.epoch = SetEpoch{std::max(found->epoch.value, next->epoch.value) + 1};
  merged.is_merged = true;
  merged.bounces = std::max(found->bounces, next->bounces);
  std::vector<Tablet> tablets(tablets_.begin(), found);
  tablets.push_back(std::move(merged));
  tablets.insert(tablets.end(), std::next(next), tablets_.end());
  // The sum of the epochs falls by the lower one less one: with it the layout rises by one.
  const uint64_t lower = std::max<uint64_t>(std::min(found->epoch.value, next->epoch.value), 1);
  TabletMap one(std::move(tablets), version_ + 1, merged_epochs_ + lower);
  TETRAD_ASSERT(one.layout_ != layout_);  // caches of the layout must notice
  return one;
}

Result<TabletMap> TabletMap::with_tablet(Tablet changed) const {
  std::vector<Tablet> tablets = tablets_;
  const auto found = std::find_if(tablets.begin(), tablets.end(), [&](const Tablet& tablet) {
    return tablet.id == changed.id && tablet.range == changed.range;
  });
  if (found == tablets.end())
    return fail(ErrorCode::kNotFound, "no physical partition {} of that range", changed.id.value);
  *found = std::move(changed);
  return TabletMap(std::move(tablets), version_ + 1, merged_epochs_);
}

void encode_tablet_map(const TabletMap& map, Bytes& out) {
  base::ByteWriter writer(out);
  const bool has_merged = map.merged_epochs_ != 0;
  writer.u8(has_merged ? kMapFormatMerged : kMapFormat);
  writer.varint(map.version());
  if (has_merged) writer.varint(map.merged_epochs_);
  writer.varint(map.tablets().size());
  for (const Tablet& tablet : map.tablets()) {
    writer.varint(tablet.id.value);
    writer.varint(tablet.epoch.value);
    writer.u8(static_cast<uint8_t>(tablet.stage));
    TETRAD_ASSERT(has_merged || (!tablet.is_merged && tablet.bounces == 0));
    writer.u8(static_cast<uint8_t>((tablet.full ? kFlagFull : 0) |
                                   (tablet.is_merged ? kFlagMerged : 0) |
                                   (tablet.bounces << kBouncesShift)));
    writer.zigzag(tablet.repaired_us);
    writer.i64(tablet.range.end.token);
    writer.u64(tablet.range.end.hash);
    encode_stores(tablet.replicas, writer);
    encode_stores(tablet.new_replicas, writer);
  }
}

Result<TabletMap> decode_tablet_map(base::ByteReader& in) {
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format != kMapFormat && format != kMapFormatMerged)
    return fail(ErrorCode::kCorruption, "tablet map format {}", format);
  TETRAD_TRY(const uint64_t version, in.read_varint());
  uint64_t merged_epochs = 0;
  if (format == kMapFormatMerged) {
    TETRAD_TRY(merged_epochs, in.read_varint());
    if (merged_epochs == 0) return fail(ErrorCode::kCorruption, "a map of no merges");
  }
  TETRAD_TRY(const uint64_t count, in.read_varint());
  std::vector<Tablet> tablets;
  RingPosition start = RingPosition::lowest();
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(Tablet tablet,
               decode_tablet(in, start, merged_epochs != 0 ? kFlagsMost : kFlagFull));
    start = tablet.range.end;
    tablets.push_back(std::move(tablet));
  }
  if (!covers_ring(tablets))
    return fail(ErrorCode::kCorruption, "a tablet map that does not cover the ring");
  return TabletMap(std::move(tablets), version, merged_epochs);
}

}  // namespace tetrad::partitioner
