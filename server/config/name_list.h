// SPDX-License-Identifier: Apache-2.0
// Lists of names in options.
#pragma once

#include <string>
#include <vector>

namespace tetrad::server {

/// What becomes of the letters of a name.
/// kLower for names of table properties, kUpper for consistency levels and categories of the audit
/// log, kKept for roles and keyspaces.
enum class Letters : uint8_t { kKept, kLower, kUpper };

/// "b, A" as {"A", "b"}: sorted, blanks left out.
/// Empty names between commas are left out, too.
std::vector<std::string> names_in(const std::string& list, Letters letters);

}  // namespace tetrad::server
