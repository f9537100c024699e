// SPDX-License-Identifier: Apache-2.0
// The secret that orders to the admin port carry: 64 hexadecimal digits and a newline in the file
// `admin_token` of the data directory, which its owner alone may read.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tetrad::server {

/// Reads the token of a data directory; makes it, synced and whole or not at all, when there is
/// none. A file that others may read is made private again. `random` fills with words that nobody
/// can foresee. Errors: kConfig with the path and the reason.
Result<std::string> load_admin_token(const std::string& path,
                                     const std::function<void(std::span<uint64_t>)>& random);

/// Takes the same time wherever they differ.
bool is_same_token(std::string_view given, std::string_view expected);

}  // namespace tetrad::server
