// SPDX-License-Identifier: Apache-2.0
// The consistency levels of CQL, numbered as on the wire (native protocol v5, section 3).
//
// How many replicas each level means for a replication factor is in replication/consistency.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace tetrad::base {

/// How many replicas must take part before a request is answered. The numbers are on the wire.
/// In Tetrad a write needs a majority of the members whatever the level; ALL and EACH_QUORUM ask
/// for more.
enum class ConsistencyLevel : uint16_t {
  // ANY is for writes, SERIAL and LOCAL_SERIAL are for reads and conditions of conditional
  // statements. LOCAL_*: replicas of the coordinator's data centre. EACH_QUORUM: a quorum in each
  // data centre.
  kAny = 0,
  kOne = 1,
  kTwo = 2,
  kThree = 3,
  kQuorum = 4,
  kAll = 5,
  kLocalQuorum = 6,
  kEachQuorum = 7,
  kSerial = 8,
  kLocalSerial = 9,
  kLocalOne = 10,
};

/// The name as Cassandra writes it in messages: "LOCAL_QUORUM".
/// "UNKNOWN" for a number that came over the wire and is none.
constexpr std::string_view name_of(ConsistencyLevel level) {
  constexpr std::string_view names[] = {"ANY",    "ONE",          "TWO",          "THREE",
                                        "QUORUM", "ALL",          "LOCAL_QUORUM", "EACH_QUORUM",
                                        "SERIAL", "LOCAL_SERIAL", "LOCAL_ONE"};
  const auto index = static_cast<uint16_t>(level);
  return index < 11 ? names[index] : "UNKNOWN";
}

}  // namespace tetrad::base

namespace tetrad {
using base::ConsistencyLevel;
}
