// SPDX-License-Identifier: Apache-2.0
#include "server/link_advice.h"

#include <catch2/catch.hpp>

namespace tetrad::server {

TEST_CASE("while TLS between nodes is optional an operator hears what is not encrypted yet") {
  CHECK(link_advice({}) == "");
  CHECK(link_advice({0, 0, {}, {"10.0.0.2"}}) == "");
  CHECK(link_advice({2, 6, {"10.0.0.2", "10.0.0.3"}, {}}) ==
        "internode_encryption is optional, and 2 of 8 connections of this node with others are not "
        "encrypted (10.0.0.2 10.0.0.3)");
  // Those that others have made.
  CHECK(link_advice({1, 6, {}, {"10.0.0.4"}}) ==
        "internode_encryption is optional, and 1 of 7 connections of this node with others are not "
        "encrypted");
}

TEST_CASE("TLS between nodes may be demanded once each member has shown it") {
  CHECK(link_advice({0, 8, {}, {}}) ==
        "all connections of this node with others are encrypted: internode_encryption may be all");
  CHECK(link_advice({0, 8, {}, {"10.0.0.4", "10.0.0.5"}}) ==
        "internode_encryption is optional, and all connections of this node with others are "
        "encrypted; there is none with 10.0.0.4 10.0.0.5: keep optional until there is");
}

}  // namespace tetrad::server
