// SPDX-License-Identifier: Apache-2.0
// The weights of physical partitions, summed up by the nodes that have them.
#include "server/admin/ownership.h"

namespace tetrad::server {
namespace {

/// Of a table without rows: less than any table that somebody uses.
constexpr double kBytesOfEmptyTable = 1024;

}  // namespace

// In double, as the difference of two tokens does not fit an int64_t. 2^64 is the whole ring.
double part_of_ring(const RingRange& range) {
  return (static_cast<double>(range.end.token) - static_cast<double>(range.start.token)) / 0x1p64;
}

std::map<HostId, double> shares_of(const replication::MetaState& state, const std::string& keyspace,
                                   const BytesOfTablet& bytes_of) {
  std::map<HostId, double> shares;
  double all = 0;
  for (const auto& [id, table] : state.tables) {
    if (!keyspace.empty() && keyspace != table->keyspace) continue;
    for (const auto& tablet : table->tablets.tablets()) {
      const double weight = static_cast<double>(bytes_of(tablet.id)) +
                            kBytesOfEmptyTable * part_of_ring(tablet.range);
      all += weight;
      for (const auto& replica : tablet.replicas) shares[replica.host] += weight;
    }
  }
  for (auto& [host, share] : shares) share /= all;
  return shares;
}

}  // namespace tetrad::server
