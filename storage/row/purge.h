// SPDX-License-Identifier: Apache-2.0
// What of the dead may be forgotten (design, rule 18): tombstones, and what has expired, of which
// every member holds what it hides hidden.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "storage/row/row_record.h"

namespace tetrad::storage {

/// Seconds since 1970, "before" is strict. As made it takes nothing.
struct PurgeBound {
  static constexpr int64_t kNothing = std::numeric_limits<int64_t>::min();

  /// The purge horizon: timestamp and deletion time (of what has a TTL the time it was written) lie
  /// before it. The timestamp too, so that a deletion with a timestamp of the future stays.
  int64_t horizon_s = kNothing;
  /// Tombstones go when they were made before this.
  int64_t deleted_before_s = kNothing;
  /// What has a TTL goes when it ended before this.
  int64_t expired_before_s = kNothing;

  bool takes(const Deletion& deletion) const {
    return takes_deleted(deletion.timestamp_us, deletion.deletion_time_s);
  }
  bool takes(const Liveness& liveness) const {
    return takes_expired(liveness.timestamp_us, liveness.ttl_s, liveness.expiry_s);
  }
  bool takes(const Cell& cell) const {
    return cell.kind == CellKind::kValue
               ? takes_expired(cell.timestamp_us, cell.ttl_s, cell.expiry_s)
               : takes_deleted(cell.timestamp_us, cell.expiry_s);
  }

 private:
  bool is_old(int64_t timestamp_us, int64_t made_s) const {
    return horizon_s != kNothing && made_s < horizon_s && timestamp_us / 1'000'000 < horizon_s;
  }
  bool takes_deleted(int64_t timestamp_us, int64_t deletion_time_s) const {
    return deletion_time_s < deleted_before_s && is_old(timestamp_us, deletion_time_s);
  }
  bool takes_expired(int64_t timestamp_us, int32_t ttl_s, int64_t expiry_s) const {
    return ttl_s > 0 && expiry_s < expired_before_s && is_old(timestamp_us, expiry_s - ttl_s);
  }
};

/// Drops what the bound takes from a canonical record; a row of which only the bytes of its key
/// would be left goes too. Returns how many parts went.
size_t purge(RowRecord& record, const PurgeBound& bound);

}  // namespace tetrad::storage
