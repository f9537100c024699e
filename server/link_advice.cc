// SPDX-License-Identifier: Apache-2.0
#include "server/link_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tetrad::server {

std::string link_advice(const LinkFacts& facts) {
  if (facts.plain != 0) {
    const std::string with =
        facts.plain_nodes.empty() ? "" : fmt::format(" ({})", fmt::join(facts.plain_nodes, " "));
    return fmt::format(
        "internode_encryption is optional, and {} of {} connections of this node with others are "
        "not encrypted{}",
        facts.plain, facts.plain + facts.encrypted, with);
  }
  if (facts.encrypted == 0) return "";
  // A node that is away may be one without TLS, which `all` would keep out.
  if (!facts.away_nodes.empty())
    return fmt::format(
        "internode_encryption is optional, and all connections of this node with others are "
        "encrypted; there is none with {}: keep optional until there is",
        fmt::join(facts.away_nodes, " "));
  return "all connections of this node with others are encrypted: internode_encryption may be all";
}

}  // namespace tetrad::server
