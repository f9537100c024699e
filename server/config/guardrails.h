// SPDX-License-Identifier: Apache-2.0
// The guardrails as options, by Cassandra 5.0's names, and what they ask for.
//
// Four kinds: numbers with a warning and a refusal, switches, lists of names that are warned of or
// refused, and a few of their own. A limit is checked where a statement is prepared or bound
// (cql/prepare/guardrails.h), those of the disk and of partitions in room replication.
#pragma once

#include <vector>

#include "cql/prepare/guardrails.h"
#include "replication/membership/disk_usage.h"
#include "replication/repair/purge_runner.h"
#include "server/config/options.h"

namespace tetrad::server {

/// Lines of the table of options.
void append_guardrail_options(std::vector<OptionEntry>& table);

/// Errors: kConfig: a consistency level that there is not, or a number that is refused before it is
/// warned of.
Result<void> check_guardrails(const Options& options);

/// The three parts, each for the room that checks it. After check_guardrails() only.
cql::Guardrails guardrails_of(const Options& options);
replication::DiskUsageLimits disk_usage_limits_of(const Options& options);
replication::PartitionThresholds partition_thresholds_of(const Options& options);

}  // namespace tetrad::server
