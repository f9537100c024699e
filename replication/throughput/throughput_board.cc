// SPDX-License-Identifier: Apache-2.0
// Reports of used throughputs: their encoding, and the newest of each bucket. The grammar is in the
// header.
#include "replication/throughput/throughput_board.h"

#include "base/byte_io.h"

namespace tetrad::replication {

namespace {

// An older or newer program's report of another format is refused as a whole; the next one comes
// within a minute.
constexpr uint8_t kReportFormat = 1;
constexpr int64_t kForgottenAfterUs = int64_t{2} * 3600 * 1'000'000;
constexpr int64_t kForgetEveryUs = 60'000'000;

Result<uint32_t> read_u32(base::ByteReader& in) {
  TETRAD_TRY(const uint64_t value, in.read_varint());
  if (value > UINT32_MAX)
    return fail(ErrorCode::kCorruption, "{} in a report of throughputs", value);
  return static_cast<uint32_t>(value);
}

}  // namespace

Bytes encode_throughput_report(const ThroughputReport& report) {
  Bytes body;
  base::ByteWriter out(body);
  out.u8(kReportFormat);
  out.varint(report.size());
  for (const auto& [key, use] : report) {
    out.varint(key);
    out.varint(use.used_ru_per_s);
    out.varint(use.busiest_ru_per_s);
    out.varint(use.busiest_before_ru_per_s);
    out.varint(use.hour);
    out.varint(use.refused);
    out.varint(use.banked_ru);
  }
  return body;
}

Result<ThroughputReport> decode_throughput_report(BytesView body) {
  base::ByteReader in(body);
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format != kReportFormat)
    return fail(ErrorCode::kCorruption, "report of throughputs of format {}", format);
  TETRAD_TRY(const uint64_t count, in.read_varint());
  // Checked before anything is allocated: the count comes from the network.
  if (count > kThroughputReportEntriesMax)
    return fail(ErrorCode::kCorruption, "a report of {} throughputs, at most {}", count,
                kThroughputReportEntriesMax);
  ThroughputReport report;
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const ThroughputKey key, in.read_varint());
    UsedThroughput use;
    TETRAD_TRY(use.used_ru_per_s, read_u32(in));
    TETRAD_TRY(use.busiest_ru_per_s, read_u32(in));
    TETRAD_TRY(use.busiest_before_ru_per_s, read_u32(in));
    TETRAD_TRY(use.hour, read_u32(in));
    TETRAD_TRY(use.refused, in.read_varint());
    TETRAD_TRY(use.banked_ru, read_u32(in));
    report.emplace_back(key, use);
  }
  return report;
}

void ThroughputBoard::take(const ThroughputReport& report, base::MonotonicUs now_us) {
  bool has_changed = false;
  for (const auto& [key, use] : report) {
    const auto [told, is_new] = told_.try_emplace(key);
    // Equal reports keep the version, so that who shows the board need not make its rows anew.
    if (is_new || told->second.use != use) has_changed = true;
    told->second = {use, now_us};
  }
  // Buckets of dropped tables and of tablets that were split are never reported again.
  if (now_us - forgotten_us_ >= kForgetEveryUs) {
    forgotten_us_ = now_us;
    const size_t forgotten = std::erase_if(
        told_, [&](const auto& entry) { return entry.second.at_us < now_us - kForgottenAfterUs; });
    has_changed = has_changed || forgotten != 0;
  }
  if (has_changed) ++version_;
}

UsedThroughput ThroughputBoard::of(ThroughputKey key) const {
  const auto found = told_.find(key);
  return found == told_.end() ? UsedThroughput() : found->second.use;
}

}  // namespace tetrad::replication
