// SPDX-License-Identifier: Apache-2.0
// The options of TLS, near the names of Cassandra's client_encryption_options and
// server_encryption_options, and of the secret of a cluster.
//
// open_node_tls() (server/node_tls.h) reads the files that they name and checks which options go
// together.
#pragma once

#include <vector>

#include "server/config/options.h"

namespace tetrad::server {

/// Lines of the table of options.
/// Called once, by option_table().
void append_encryption_options(std::vector<OptionEntry>& table);

}  // namespace tetrad::server
