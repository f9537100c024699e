// SPDX-License-Identifier: Apache-2.0
// What a node keeps of its own time, so that its next life begins no earlier than the last one
// ended (design, rule 28). Kept each second.
//
//   kept := time_us:i64 boot_us:i64 boot_id:byte*      i64 as base::ByteWriter writes it
//
// An older program wrote time_us alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/byte_io.h"
#include "base/result.h"

namespace tetrad::replication {

inline constexpr int64_t kKeepTimeUs = 1'000'000;

/// What the life before tells a node's clock.
struct LastLife {
  /// Its stamps are not above it: the new life's own time begins no earlier. Where the machine was not
  /// started anew it has counted on, and a node that is back at once is not ahead of the others.
  /// Otherwise the life may have stamped for as long as it had kept nothing.
  int64_t stamped_us = 0;
  /// What its clock would show now, by what the machine has counted, whatever the wall clock was set
  /// to. A count that leaves the wall clock behind is not believed: in another time namespace the same
  /// machine counts from elsewhere.
  int64_t now_us = 0;
};

/// What a node writes down of its clock now and then, so that its time does not fall over a
/// restart.
struct KeptTime {
  int64_t time_us = 0;  // of the node, since 1970
  int64_t boot_us = 0;  // Reactor::boot_time_us() then
  std::string boot_id;  // of the start of the machine that counts it; "": not known

  base::Bytes encode() const {
    base::Bytes out;
    base::ByteWriter writer(out);
    writer.i64(time_us);
    writer.i64(boot_us);
    writer.raw(boot_id);
    return out;
  }

  /// Errors: kCorruption.
  static base::Result<KeptTime> decode(base::BytesView bytes) {
    base::ByteReader reader(bytes);
    KeptTime kept;
    TETRAD_TRY(kept.time_us, reader.read_i64());
    if (reader.remaining() == 0) return kept;
    TETRAD_TRY(kept.boot_us, reader.read_i64());
    TETRAD_TRY(const base::BytesView id, reader.read_raw(reader.remaining()));
    kept.boot_id = std::string(id);
    return kept;
  }

  /// What the next life begins at.
  LastLife ended(const std::string& now_boot_id, int64_t now_boot_us, int64_t now_wall_us) const {
    constexpr int64_t kKeepLateUs = 200'000;
    const int64_t late_us = time_us + kKeepTimeUs + kKeepLateUs;
    const bool goes_on = !boot_id.empty() && boot_id == now_boot_id && now_boot_us >= boot_us;
    if (!goes_on) return {late_us, late_us};
    const int64_t counted_us = time_us + (now_boot_us - boot_us);
    return {std::min(counted_us, late_us), std::min(counted_us, std::max(late_us, now_wall_us))};
  }
};

}  // namespace tetrad::replication
