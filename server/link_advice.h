// SPDX-License-Identifier: Apache-2.0
// While `internode_encryption` is `optional`, `tetractl status` names the connections between nodes
// that are not encrypted, or says that all are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tetrad::server {

/// Of one node: the connections that it has with others.
struct LinkFacts {
  uint64_t plain = 0, encrypted = 0;     // that are open, in both directions
  std::vector<std::string> plain_nodes;  // addresses of members it speaks to without TLS
  std::vector<std::string> away_nodes;   // of members it has no connection to
};

/// "": there is nothing to say, as of a node that is alone. Pure.
std::string link_advice(const LinkFacts& facts);

}  // namespace tetrad::server
