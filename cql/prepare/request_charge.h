// SPDX-License-Identifier: Apache-2.0
// What a request costs, in request units (RU): counted work, never time, so the same request on the
// same data costs the same. Pure.
//
//   read   = L x (max(partitions, rows) + 2.5 for each further physical partition)
//     L          1 at ONE and LOCAL_ONE, 2 at all levels that ask more replicas than one
//     partitions logical partitions that were looked up, a scan is one: a read costs at least 1
//     rows       of each live row that was looked at, whether it was returned or not: of its first
//                KiB 1 for 1,024 bytes, 1/11 for each further whole KiB
//   write  = 5 for each row, static part of a partition or deletion, and 5/11 for each whole KiB
//            after its first; lists that must be read first cost that read
//   schema = 5 for each statement, TRUNCATE too
//
// A point read of 1 KiB costs 1, of 100 KiB 10, a write of 1 KiB 5, of 100 KiB 50, 1,000 rows of
// 1 KiB cost 1,000. Bytes of a row are those of its clustering key and of its live values as they
// are stored; in a write also what the row's encoding takes. Replicas that are asked beyond those
// of the level, rows that are dead and rows of a page that is read again for the next are free. The
// sum is given in hundredths.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/consistency_level.h"
#include "storage/row/mutation.h"
#include "storage/row/row_weight.h"

namespace tetrad::cql {

/// What a read has looked at.
struct ReadWork {
  uint64_t partitions = 1;          // logical ones
  uint64_t weight = 0;              // of the rows, see row_weight()
  uint64_t further_partitions = 0;  // physical ones beyond the first
};

/// Adds up what one request costs, in parts of a request unit.
class RequestCharge {
 public:
  void add_read(const ReadWork& work, ConsistencyLevel level);
  void add_write(std::span<const storage::Mutation> mutations);
  void add_schema_change();

  /// Exact; kWeightOfUnit is one request unit.
  uint64_t weight() const { return weight_; }
  /// Request units, rounded to hundredths.
  double units() const;

 private:
  uint64_t weight_ = 0;
};

/// The key in custom payloads: of a request, with any value, that wants to know its charge, and
/// of its answer.
inline constexpr std::string_view kRequestChargeKey = "RequestCharge";
/// The answer's value: a big-endian double.
Bytes encode_request_charge(double units);

}  // namespace tetrad::cql
