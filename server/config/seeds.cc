// SPDX-License-Identifier: Apache-2.0
// "host", "host:port", "[IPv6]" or "[IPv6]:port", with commas between. Names are not looked up
// here: a name may get another address while the node runs.
#include "server/config/seeds.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <boost/asio/ip/address.hpp>

namespace tetrad::server {
namespace {

bool is_address(const std::string& text) {
  boost::system::error_code error;
  boost::asio::ip::make_address(text, error);
  return !error;
}

/// As DNS has it: labels of letters, digits, hyphens and underscores, not all of digits.
bool is_name(const std::string& text) {
  constexpr size_t kNameMax = 253, kLabelMax = 63;
  if (text.empty() || text.size() > kNameMax) return false;
  size_t label = 0;
  bool has_letter = false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    has_letter |= letter;
    if (c == '.') {
      if (label == 0) return false;
      label = 0;
      continue;
    }
    if (!letter && !(c >= '0' && c <= '9') && (c != '-' || label == 0)) return false;
    if (++label > kLabelMax) return false;
  }
  return has_letter;
}

Result<replication::Endpoint> read_seed(const std::string& text, uint16_t default_port) {
  std::string host = text;
  std::optional<std::string> port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string::npos)
      return fail(ErrorCode::kConfig, "seeds: '{}' has a bracket without an end", text);
    host = text.substr(1, end - 1);
    if (end + 1 < text.size()) port = text.substr(end + 1);
    if (port && !port->starts_with(':'))
      return fail(ErrorCode::kConfig, "seeds: '{}' is neither an address nor a name", text);
    if (port) port->erase(0, 1);
    // More than one colon without brackets: an IPv6 address without a port.
  } else if (std::ranges::count(text, ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
  }
  if (!is_address(host) && !is_name(host)) {
    const bool has_blank = text.find_first_of(" ;\t") != std::string::npos;
    return fail(ErrorCode::kConfig, "seeds: '{}' is neither an address nor a name{}", text,
                has_blank ? "; commas stand between seeds" : "");
  }
  if (!port) return replication::make_endpoint(host, default_port);
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port->data(), port->data() + port->size(), number);
  if (error != std::errc() || end != port->data() + port->size() || number == 0)
    return fail(ErrorCode::kConfig, "seeds: the port of '{}' is no number from 1 to 65535", text);
  return replication::make_endpoint(host, number);
}

}  // namespace

Result<std::vector<replication::Endpoint>> read_seeds(const std::string& text,
                                                      uint16_t default_port) {
  std::vector<replication::Endpoint> out;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    std::string one = text.substr(at, comma - at);
    at = comma + 1;
    one.erase(0, one.find_first_not_of(' '));
    one.erase(one.find_last_not_of(' ') + 1);
    if (one.empty()) continue;
    TETRAD_TRY(replication::Endpoint endpoint, read_seed(one, default_port));
    out.push_back(std::move(endpoint));
  }
  return out;
}

}  // namespace tetrad::server
