// SPDX-License-Identifier: Apache-2.0
// Which data centres hold the tables of a keyspace. An object of the schema that cql writes beside
// the keyspace says so:
//
//   key    "placement/" keyspace "/data_centers"
//   text   names, each ended by a newline, for example "east\nwest\n"
//
// Without it every data centre of the cluster does.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/topology.h"
#include "replication/meta/meta_state.h"

namespace tetrad::replication {

std::string placement_key(std::string_view keyspace);
std::string placement_text(const std::set<std::string>& data_centers);

/// Empty: all.
std::set<std::string, std::less<>> placed_in(const MetaState& state, std::string_view keyspace);

/// Those of `nodes` that may be members of the keyspace's tablets.
std::vector<partitioner::RingNode> nodes_for(const std::set<std::string, std::less<>>& data_centers,
                                             std::vector<partitioner::RingNode> nodes);

}  // namespace tetrad::replication
