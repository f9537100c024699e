// SPDX-License-Identifier: Apache-2.0
// Table options that say how Cassandra stores and reads: checked and written as Cassandra does,
// kept and shown; they change nothing here.
#pragma once

#include <string>

#include "base/result.h"
#include "cql/prepare/option_values.h"

namespace tetrad::cql {

/// ASCII letters only.
std::string lower(std::string_view text);
/// A class without a package is of this one.
std::string full_class(std::string_view package, const std::string& name);

/// Each checks the map of one option and completes it: defaults are filled in, classes get their
/// full names. Errors: kConfig.
Result<void> check_caching(OptionMap& caching);
Result<void> check_compaction(OptionMap& compaction);
Result<void> check_compression(OptionMap& compression);
/// "99p", "50ms", "ALWAYS", "NEVER", "MIN(99p,50ms)" in Cassandra's own writing.
Result<std::string> speculative_policy(std::string_view option, const std::string& text);

}  // namespace tetrad::cql
