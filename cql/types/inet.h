// SPDX-License-Identifier: Apache-2.0
// Texts of the inet type, as Java's InetAddress reads and writes them; host names are refused.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::cql {

/// 4 or 16 bytes. "1.2.3.4", also of fewer parts ("1.2" is 1.0.0.2); "::1", in brackets or with a
/// numeric scope too; an IPv4 address mapped into IPv6 becomes IPv4.
/// Errors: kInvalid "Unable to make inet address from '…'".
Result<Bytes> parse_inet(std::string_view text);

/// IPv6 as eight hex groups without "::"; a mapped address as IPv4. Other lengths than 4 and 16
/// give "".
std::string format_inet(BytesView bytes);

}  // namespace tetrad::cql
