// SPDX-License-Identifier: Apache-2.0
// A request to the admin port, read from HTTP's request line and headers.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tetrad::server {

/// All texts are valid UTF-8 without control characters: they may be repeated in an answer.
struct HttpRequest {
  std::string method, path;
  std::map<std::string, std::string> query;  // decoded

  /// Empty: not in the request.
  std::string parameter(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
  }
};

/// `target` is a path that begins with '/', and after a '?' parameters name=value, each once.
/// Errors: kInvalid with what is wrong: an escape that is none, bytes that are no UTF-8, control
/// characters, a parameter without a value or twice.
Result<HttpRequest> read_http_request(std::string_view method, std::string_view target);

/// As RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_strict_utf8(std::string_view text);

}  // namespace tetrad::server
