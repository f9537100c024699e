// SPDX-License-Identifier: Apache-2.0
// The numbers of errors on the wire (native protocol v5, section 9), and the codes that older
// versions get instead of those they do not know.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace tetrad::cql {

/// 0x2200 for kInvalid, and so on. Codes that rooms only tell each other are 0x0000, a server
/// error.
uint32_t wire_error_code(ErrorCode code);
/// The opposite, for clients. None for an unknown number.
std::optional<ErrorCode> error_code_of_wire(uint32_t wire);

/// The code that a client of `version` gets: v3 knows no failures (read and write failures
/// become timeouts, function failures Invalid); before v5 an unknown CAS write is a write timeout.
ErrorCode downgrade_error_code(ErrorCode code, int version);

/// "UNLOGGED_BATCH".
std::string_view name_of(base::WriteType type);
std::optional<base::WriteType> parse_write_type(std::string_view name);

}  // namespace tetrad::cql
