// SPDX-License-Identifier: Apache-2.0
// Where a node listens, and where others reach it. These differ behind NAT, in containers and in
// Kubernetes: a node then listens on what the machine has and says what it is reached at.
#pragma once

#include <string>

#include "base/result.h"
#include "server/config/options.h"

namespace tetrad::server {

/// All are IP addresses that read; only the two that are listened at may be a wildcard.
struct NodeAddresses {
  std::string listen;              // for other nodes
  std::string broadcast;           // where they reach this one
  std::string rpc;                 // for clients
  std::string broadcast_rpc;       // where drivers reach this one
  uint16_t broadcast_native_port;  // at that
  std::string admin;               // where all of the admin port is answered
  std::string admin_outside;       // where what everybody may know is answered, too; "": nowhere
};

/// Whether clients must log in.
bool has_authentication(const Options& options);

/// Errors: kConfig: no IP address, one that nobody could use, one off loopback that is not protected
/// and not said to be meant (insecure_listen), or one port for two listeners.
Result<NodeAddresses> addresses_of(const Options& options);

}  // namespace tetrad::server
