// SPDX-License-Identifier: Apache-2.0
// What the admin port and system_views tell of a client.
//
// Made on the connection's shard when somebody asks, and sent to the asker: nothing is kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tetrad::server {

/// A client connection of now. What the client says of itself is cut, without control characters.
/// Of a moment on the connection's thread.
struct ClientFacts {
  std::string address, user, keyspace, driver_name, driver_version;
  uint16_t port = 0;
  int protocol_version = 0;  // 0: it has not said STARTUP yet
  bool is_encrypted = false;
  uint64_t requests = 0;
  std::map<std::string, std::string> options = {};  // of STARTUP, some
  const char* stage = "established";  // or "authenticating", "ready": Cassandra's words
  std::string tls_version = {}, cipher_suite = {};  // empty: none
};

}  // namespace tetrad::server
