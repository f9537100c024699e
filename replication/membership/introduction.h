// SPDX-License-Identifier: Apache-2.0
// What a node says of itself to another that it does not know, and how long a node that has no
// cluster must wait before it founds one.
//
//   introduction := u8 version (1), 16 B host id, 16 B cluster id (nil: none), cluster name,
//                   u8 flags (1: its operator has ordered it to found), varint metadata index it
//                   has applied, u8 standing of the other in its cluster, varint count, seed*
//                   what a later program appends is passed over
// It is both the request and the answer of Verb::kIdentify.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "replication/rpc/transport.h"

namespace tetrad::replication {

/// Of a host, in the cluster of the node that says so.
enum class Standing : uint8_t { kUnknown = 0, kMember = 1, kRemoved = 2 };

/// What a node says of itself to a seed that asks, and of what the asking node is to it.
struct Introduction {
  HostId host;
  Uuid cluster_id;
  std::string cluster_name;
  bool found_ordered = false;
  MetaIndex applied;
  Standing standing = Standing::kUnknown;
  std::vector<Endpoint> seeds;  // ascending, each once
  bool has_cluster() const { return !cluster_id.is_nil(); }
};

Bytes encode_introduction(const Introduction& of);
/// Errors: kCorruption, kProtocol.
Result<Introduction> decode_introduction(BytesView body);

/// What came of asking one seed.
struct SeedAnswer {
  Endpoint seed;
  std::optional<Introduction> said;  // unset: nothing
  /// It answers, but is too old a program to introduce itself.
  bool is_older = false;
  /// Unset `said`: why that node and this one do not speak, as far as that is known.
  std::string refusal = {};
  bool is_reached = false;  // unset `said`: something takes connections there
};

/// What a node without a cluster does after it has asked all of its seeds at once.
struct FormationStep {
  /// What to do next: wait and ask again, found a cluster, or ask members to be taken in.
  enum class Kind : uint8_t { kWait, kFound, kJoin };
  Kind kind = Kind::kWait;
  std::vector<Endpoint> members;  // kJoin: whom to ask, in the order of the list
  std::string waits_for;          // kWait: for the log
  /// kWait: the operator's word (`found`) would end it, and nobody is there who may know better.
  bool needs_order = false;
};

/// Founds only when every seed has answered that it has no cluster and was given the same name and
/// seeds, and this is the one with the least host id; or by order of the operator, when no seed
/// has a cluster. A seed that is silent may be of a cluster that cannot be seen now. Pure.
FormationStep next_formation_step(const Introduction& self, const std::vector<SeedAnswer>& answers);

}  // namespace tetrad::replication
