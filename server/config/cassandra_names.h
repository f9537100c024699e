// SPDX-License-Identifier: Apache-2.0
// Names of Cassandra's cassandra.yaml (4.0 to 5.0) that are no options here, and what to do instead.
#pragma once

#include <string>
#include <string_view>

namespace tetrad::server {

/// "; what Cassandra calls so is here: native_port", or why it is not needed. "": the name is none of
/// Cassandra's. A name of Cassandra's gets no guess by spelling.
std::string cassandra_hint(std::string_view name);

}  // namespace tetrad::server
