// SPDX-License-Identifier: Apache-2.0
// The guardrails as options, by Cassandra 5.0's names, and what they ask for.
#pragma once

#include <vector>

#include "cql/prepare/guardrails.h"
#include "replication/membership/disk_usage.h"
#include "replication/repair/purge_runner.h"
#include "server/config/options.h"

namespace tetrad::server {

void append_guardrail_options(std::vector<OptionEntry>& table);

/// Errors: kConfig: a consistency level that there is not, or a number that is refused before it is
/// warned of.
Result<void> check_guardrails(const Options& options);

cql::Guardrails guardrails_of(const Options& options);
replication::DiskUsageLimits disk_usage_limits_of(const Options& options);
replication::PartitionThresholds partition_thresholds_of(const Options& options);

}  // namespace tetrad::server
