// SPDX-License-Identifier: Apache-2.0
// The guardrails as options, by Cassandra 5.0's names, and what they ask for.
#pragma once

#include <vector>

#include "cql/prepare/guardrails.h"
#include "server/config/options.h"

namespace tetrad::server {

void append_guardrail_options(std::vector<OptionEntry>& table);

cql::Guardrails guardrails_of(const Options& options);

}  // namespace tetrad::server
