// SPDX-License-Identifier: Apache-2.0
// What a node asks a member of a cluster for: to be taken in, or to be known as it is now.
//
//   request := u8 1, 16 bytes cluster id (zeros: none yet), bytes cluster name, node info of
//              kFormatFirst, u64 token seed, [bytes client address, of nodes of
//              kFormatClientAddress]
#pragma once

#include <string>

#include "replication/meta/meta_state.h"

namespace tetrad::replication {

/// A value.
struct JoinRequest {
  Uuid cluster_id;
  std::string cluster_name;
  NodeInfo node;
  uint64_t token_seed = 0;
};

Bytes encode_join(const JoinRequest& request);
/// Errors: kProtocol, kCorruption.
Result<JoinRequest> decode_join(BytesView body);

/// Whether a node is known as it is now, its tokens aside, in metadata of `format`.
bool same_but_for_ring(const NodeInfo& known, const NodeInfo& now, ClusterFormat format);

}  // namespace tetrad::replication
