// SPDX-License-Identifier: Apache-2.0
// How much of the data each node has: "Owns (effective)" of `tetractl status`. Pure.
//
// A physical partition weighs what it holds, so that empty tables do not hide where a big one is.
// Each table has some bytes more, spread over its ring: without data the shares are those of the
// ring.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "replication/meta/meta_state.h"

namespace tetrad::server {

using BytesOfTablet = std::function<uint64_t(TabletId)>;

/// Which part of the ring it is, from 0 to 1.
double part_of_ring(const RingRange& range);

/// The part, from 0 to 1, that each node has replicas of, in a keyspace, or in all ("").
/// Nodes without a replica are not in it. Empty: there is no table.
std::map<HostId, double> shares_of(const replication::MetaState& state, const std::string& keyspace,
                                   const BytesOfTablet& bytes_of);

}  // namespace tetrad::server
