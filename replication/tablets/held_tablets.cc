// SPDX-License-Identifier: Apache-2.0
#include "replication/tablets/held_tablets.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::replication {

namespace {

constexpr uint8_t kHeldFormat = 1;

}  // namespace

Bytes encode_held_tablets(const std::set<TabletId>& tablets) {
  TETRAD_ASSERT(tablets.size() <= kHeldTabletsMax);
  Bytes body;
  base::ByteWriter out(body);
  out.u8(kHeldFormat);
  out.varint(tablets.size());
  for (const TabletId tablet : tablets) out.varint(tablet.value);
  return body;
}

Result<std::set<TabletId>> decode_held_tablets(BytesView body) {
  base::ByteReader in(body);
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format != kHeldFormat) return fail(ErrorCode::kCorruption, "held tablets, format {}", format);
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > kHeldTabletsMax)
    return fail(ErrorCode::kCorruption, "{} held tablets, at most {}", count, kHeldTabletsMax);
  std::set<TabletId> tablets;
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint64_t tablet, in.read_varint());
    tablets.insert(TabletId{tablet});
  }
  return tablets;
}

void HeldTablets::hear(HostId from, std::set<TabletId> tablets, base::MonotonicUs now_us) {
  TETRAD_ASSERT(tablets.size() <= kHeldTabletsMax);
  // What has ended goes here, so that nodes which left the cluster are not kept.
  std::erase_if(said_, [&](const auto& entry) { return now_us - entry.second.at_us > kHeldUs; });
  said_[from] = {std::move(tablets), now_us};
}

std::set<TabletId> HeldTablets::held(base::MonotonicUs now_us) const {
  std::set<TabletId> held;
  for (const auto& [host, said] : said_)
    if (now_us - said.at_us <= kHeldUs) held.insert(said.tablets.begin(), said.tablets.end());
  return held;
}

bool HeldTablets::contains(TabletId tablet, base::MonotonicUs now_us) const {
  return std::ranges::any_of(said_, [&](const auto& entry) {
    return now_us - entry.second.at_us <= kHeldUs && entry.second.tablets.contains(tablet);
  });
}

}  // namespace tetrad::replication
