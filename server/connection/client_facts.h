// SPDX-License-Identifier: Apache-2.0
// What the admin port tells of a client.
#pragma once

#include <cstdint>
#include <string>

namespace tetrad::server {

/// A client connection of now. What the client says of itself is cut, without control characters.
struct ClientFacts {
  std::string address, user, keyspace, driver_name, driver_version;
  uint16_t port = 0;
  int protocol_version = 0;  // 0: it has not said STARTUP yet
  bool is_encrypted = false;
  uint64_t requests = 0;
};

}  // namespace tetrad::server
