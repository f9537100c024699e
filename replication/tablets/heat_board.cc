// SPDX-License-Identifier: Apache-2.0
#include "replication/tablets/heat_board.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::replication {

namespace {

constexpr uint8_t kHeatFormat = 1;
constexpr int64_t kForgottenAfterUs = kHeatHeardWithinUs + 10'000'000;
constexpr int64_t kForgetEveryUs = 10'000'000;
constexpr size_t kMembersMax = 16;  // of one tablet: old and new ones, and those that were

}  // namespace

// The grammar is in the header.
Bytes encode_heat(const HeatReport& report) {
  Bytes body;
  base::ByteWriter out(body);
  out.u8(kHeatFormat);
  out.varint(report.size());
  for (const ToldHeat& told : report) {
    out.varint(told.store);
    out.varint(told.tablet.value);
    out.varint(told.write_quorum);
    out.varint(told.heat.read_ru_per_s);
    out.varint(told.heat.write_ru_per_s);
    out.varint(told.heat.bytes_per_s);
    out.varint(told.heat.ru_per_s_most);
    out.varint(told.heat.bytes_per_s_most);
  }
  return body;
}

Result<HeatReport> decode_heat(BytesView body) {
  base::ByteReader in(body);
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format != kHeatFormat) return fail(ErrorCode::kCorruption, "heat report format {}", format);
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > kHeatReportEntriesMax)
    return fail(ErrorCode::kCorruption, "heat of {} tablets, at most {}", count,
                kHeatReportEntriesMax);
  HeatReport report;
  for (uint64_t i = 0; i < count; ++i) {
    ToldHeat told;
    TETRAD_TRY(const uint64_t store, in.read_varint());
    TETRAD_TRY(told.tablet.value, in.read_varint());
    TETRAD_TRY(const uint64_t quorum, in.read_varint());
    if (store > UINT32_MAX || quorum == 0 || quorum > UINT32_MAX)
      return fail(ErrorCode::kCorruption, "heat of store {}, quorum {}", store, quorum);
    told.store = static_cast<uint32_t>(store);
    told.write_quorum = static_cast<uint32_t>(quorum);
    TETRAD_TRY(told.heat.read_ru_per_s, in.read_varint());
    TETRAD_TRY(told.heat.write_ru_per_s, in.read_varint());
    TETRAD_TRY(told.heat.bytes_per_s, in.read_varint());
    TETRAD_TRY(told.heat.ru_per_s_most, in.read_varint());
    TETRAD_TRY(told.heat.bytes_per_s_most, in.read_varint());
    report.push_back(told);
  }
  return report;
}

void HeatBoard::take(HostId from, const HeatReport& report, base::MonotonicUs now_us) {
  for (const ToldHeat& told : report) {
    OfTablet& known = told_[told.tablet];
    known.write_quorum = told.write_quorum;
    const StoreAddress member{from, told.store};
    const auto found = std::ranges::find(known.members, member, &Told::member);
    if (found != known.members.end()) {
      found->heat = told.heat;
      found->at_us = now_us;
    } else if (known.members.size() < kMembersMax) {
      known.members.push_back({member, told.heat, now_us});
    }
    sum_up(told.tablet, known);
  }
  ++version_;
  if (now_us - forgotten_us_ >= kForgetEveryUs) forget_old(now_us);
}

void HeatBoard::sum_up(TabletId tablet, const OfTablet& told) {
  TETRAD_ASSERT(told.write_quorum != 0);  // decode_heat() lets no other in
  TETRAD_ASSERT(told.members.size() <= kMembersMax);
  TabletHeat sum;
  uint64_t reads_most = 0, writes_most = 0;
  for (const Told& one : told.members) {
    sum.read_ru_per_s += one.heat.read_ru_per_s;
    sum.write_ru_per_s = std::max(sum.write_ru_per_s, one.heat.write_ru_per_s);
    sum.bytes_per_s = std::max(sum.bytes_per_s, one.heat.bytes_per_s);
    sum.bytes_per_s_most = std::max(sum.bytes_per_s_most, one.heat.bytes_per_s_most);
    reads_most += one.heat.ru_per_s_most;
    writes_most = std::max(writes_most, one.heat.ru_per_s_most);
  }
  sum.read_ru_per_s /= told.write_quorum;
  // The busiest second's reads and writes come in one number: never less than it was.
  sum.ru_per_s_most = std::max(writes_most, reads_most / told.write_quorum);
  if (sum.is_nothing()) {
    sums_.erase(tablet);
  } else {
    sums_[tablet] = sum;
  }
}

void HeatBoard::forget_old(base::MonotonicUs now_us) {
  forgotten_us_ = now_us;
  for (auto entry = told_.begin(); entry != told_.end();) {
    std::vector<Told>& members = entry->second.members;
    const size_t gone = std::erase_if(members, [&](const Told& one) {
      return one.heat.is_nothing() || one.at_us < now_us - kForgottenAfterUs;
    });
    if (gone != 0) sum_up(entry->first, entry->second);
    entry = members.empty() ? told_.erase(entry) : std::next(entry);
  }
}

TabletHeat HeatBoard::of(TabletId tablet) const {
  const auto found = sums_.find(tablet);
  return found == sums_.end() ? TabletHeat() : found->second;
}

}  // namespace tetrad::replication
