// SPDX-License-Identifier: Apache-2.0
// The option `seeds`.
//
// Seeds are whom a node asks that belongs to no cluster yet (replication/membership/formation.h).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "replication/rpc/transport.h"

namespace tetrad::server {

/// Addresses or names separated by commas, each with a port behind a colon or `default_port`; an
/// IPv6 address with a port stands in brackets. Whether a name is known is not asked: it may be
/// later. Errors: kConfig that names what is no address.
Result<std::vector<replication::Endpoint>> read_seeds(const std::string& text,
                                                      uint16_t default_port);

}  // namespace tetrad::server
