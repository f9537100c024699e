// SPDX-License-Identifier: Apache-2.0
// All that can be known to be wrong with a node's options before anything is written, listened to or
// founded. `tetrad --check-config` is this alone; a start begins with it.
#pragma once

#include <optional>
#include <vector>

#include "replication/rpc/transport.h"
#include "server/auth/first_superuser.h"
#include "server/config/addresses.h"
#include "server/node_tls.h"

namespace tetrad::server {

/// What the check has read, for the start.
struct CheckedStart {
  NodeAddresses addresses;
  std::optional<FirstSuperuser> first_superuser;
  NodeTls tls;
  std::vector<replication::Endpoint> seeds;
};

/// Reads files that the options name and looks into the data directory; it may be that of a node that
/// runs. `now_s`: as for open_node_tls(). Errors: kConfig, a line for each thing that is wrong.
Result<CheckedStart> check_start(const Options& options, std::optional<int64_t> now_s);

}  // namespace tetrad::server
