// SPDX-License-Identifier: Apache-2.0
// A request to the admin port, read from HTTP's request line and headers.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tetrad::server {

/// Method, path and query are valid UTF-8 without control characters: they may be repeated in an
/// answer.
struct HttpRequest {
  std::string method, path;
  std::map<std::string, std::string> query;  // decoded
  /// Who asks.
  std::string client_address;
  uint16_t client_port = 0;
  /// Headers, as they came; empty: not there.
  std::string host, origin, token;
  /// Over an address where only the public routes are answered.
  bool outside = false;

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

/// A whole number and nothing else, as parameters have it.
template <class Number = uint64_t>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// What stands between commas, as parameters with several names have it; of the empty text nothing.
std::vector<std::string> words_of(const std::string& text);

/// The header that orders carry. A web page of another origin cannot send it.
inline constexpr const char* kTokenHeader = "X-Tetrad-Token";

/// Whether a Host header names an IP address or localhost, a port behind it or not; so does one
/// that is absent. Another name may be one that a web page has pointed here (DNS rebinding).
bool names_local_host(std::string_view host);

/// As RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
bool is_strict_utf8(std::string_view text);

}  // namespace tetrad::server
