// SPDX-License-Identifier: Apache-2.0
// The tablets of one table.
//
//   map     := u8 version (2), varint map version, varint count, tablet*
//   tablet  := varint id, varint epoch, u8 stage, u8 flags (1: full), zigzag repaired at,
//              i64 end token, u64 end hash, stores, stores (the new ones)
//   stores  := varint count, (16 bytes host, varint store)*
//   example: 02 05 01 07 03 02 01 c801 7fffffffffffffff ffffffffffffffff
//            01 00000000000000000000000000000001 02 01 00000000000000000000000000000003 00
//            version 5, one tablet, number 7, epoch 3, being filled, full, repaired at 100 us, on
//            store 2 of host ...1, to be on store 0 of host ...3
//
// A tablet starts where the one before it ends.
#include "partitioner/tablet_map.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::partitioner {

namespace {

constexpr uint8_t kMapFormat = 2;
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

Result<Tablet> decode_tablet(base::ByteReader& in, RingPosition start) {
  Tablet tablet;
  TETRAD_TRY(tablet.id.value, in.read_varint());
  TETRAD_TRY(tablet.epoch.value, in.read_varint());
  TETRAD_TRY(const uint8_t stage, in.read_u8());
  if (stage > static_cast<uint8_t>(TabletStage::kWriteNew))
    return fail(ErrorCode::kCorruption, "tablet stage {}", stage);
  tablet.stage = static_cast<TabletStage>(stage);
  TETRAD_TRY(const uint8_t flags, in.read_u8());
  tablet.full = (flags & 1) != 0;
  TETRAD_TRY(tablet.repaired_us, in.read_zigzag());
  tablet.range.start = start;
  TETRAD_TRY(tablet.range.end.token, in.read_i64());
  TETRAD_TRY(tablet.range.end.hash, in.read_u64());
  TETRAD_TRY(tablet.replicas, decode_stores(in));
  TETRAD_TRY(tablet.new_replicas, decode_stores(in));
  return tablet;
}

}  // namespace

TabletMap::TabletMap(std::vector<Tablet> tablets, uint64_t version)
    : tablets_(std::move(tablets)), version_(version) {
  TETRAD_ASSERT(covers_ring(tablets_));
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
  right.range.start = at;
  found->range.end = at;
  tablets.insert(std::next(found), std::move(right));
  return TabletMap(std::move(tablets), version_ + 1);
}

Result<TabletMap> TabletMap::with_tablet(Tablet changed) const {
  std::vector<Tablet> tablets = tablets_;
  const auto found = std::find_if(tablets.begin(), tablets.end(), [&](const Tablet& tablet) {
    return tablet.id == changed.id && tablet.range == changed.range;
  });
  if (found == tablets.end())
    return fail(ErrorCode::kNotFound, "no physical partition {} of that range", changed.id.value);
  *found = std::move(changed);
  return TabletMap(std::move(tablets), version_ + 1);
}

void encode_tablet_map(const TabletMap& map, Bytes& out) {
  base::ByteWriter writer(out);
  writer.u8(kMapFormat);
  writer.varint(map.version());
  writer.varint(map.tablets().size());
  for (const Tablet& tablet : map.tablets()) {
    writer.varint(tablet.id.value);
    writer.varint(tablet.epoch.value);
    writer.u8(static_cast<uint8_t>(tablet.stage));
    writer.u8(tablet.full ? 1 : 0);
    writer.zigzag(tablet.repaired_us);
    writer.i64(tablet.range.end.token);
    writer.u64(tablet.range.end.hash);
    encode_stores(tablet.replicas, writer);
    encode_stores(tablet.new_replicas, writer);
  }
}

Result<TabletMap> decode_tablet_map(base::ByteReader& in) {
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format != kMapFormat) return fail(ErrorCode::kCorruption, "tablet map format {}", format);
  TETRAD_TRY(const uint64_t version, in.read_varint());
  TETRAD_TRY(const uint64_t count, in.read_varint());
  std::vector<Tablet> tablets;
  RingPosition start = RingPosition::lowest();
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(Tablet tablet, decode_tablet(in, start));
    start = tablet.range.end;
    tablets.push_back(std::move(tablet));
  }
  if (!covers_ring(tablets))
    return fail(ErrorCode::kCorruption, "a tablet map that does not cover the ring");
  return TabletMap(std::move(tablets), version);
}

}  // namespace tetrad::partitioner
