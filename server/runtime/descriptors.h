// SPDX-License-Identifier: Apache-2.0
// The file descriptors of the process, shared out between stores and clients.
//
// A store that cannot open a file fails, so its share is fixed at the start and clients get what is
// left.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace tetrad::server {

/// How the process' file descriptors are divided.
/// Files of logs, the listeners and what libraries open come out of a reserve.
struct DescriptorPlan {
  uint32_t store_files = 0;  // of each store
  uint32_t peers = 0;        // connections that other nodes make, for each shard
  uint32_t clients = 0;      // connections of clients at a time
};

/// Clients never take what the stores need: of a low limit stores get half. Errors: kConfig when
/// `limit` is too low to serve at all.
Result<DescriptorPlan> plan_descriptors(uint64_t limit, uint32_t stores, uint64_t connections_max);

/// As far as the process may (the hard limit); what holds then.
uint64_t raise_descriptor_limit();

}  // namespace tetrad::server
