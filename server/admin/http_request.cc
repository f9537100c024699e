// SPDX-License-Identifier: Apache-2.0
// What comes from the network before anything is known of who sent it. Each function takes any
// bytes and has no state. Parameters reach logs and JSON, so they must be UTF-8 without control
// characters.
#include "server/admin/http_request.h"

#include <algorithm>
#include <charconv>

#include <boost/asio/ip/address.hpp>

namespace tetrad::server {
namespace {

/// The byte that two hexadecimal digits write, or -1.
int escaped_byte(std::string_view digits) {
  uint8_t value = 0;
  if (digits.size() != 2) return -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, value, 16);
  return error == std::errc() && end == digits.data() + 2 ? value : -1;
}

Result<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      // '+' is a blank in parameters of forms.
      out.push_back(text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    const int byte = escaped_byte(text.substr(i + 1, 2));
    if (byte < 0) return fail(ErrorCode::kInvalid, "a % is not followed by two hexadecimal digits");
    out.push_back(static_cast<char>(byte));
    i += 2;
  }
  if (!is_strict_utf8(out)) return fail(ErrorCode::kInvalid, "the address is not valid UTF-8");
  const auto is_control = [](char c) { return (c >= 0 && c < 0x20) || c == 0x7F; };
  if (std::ranges::any_of(out, is_control))
    return fail(ErrorCode::kInvalid, "the address has control characters");
  return out;
}

}  // namespace

// Only a name of this machine or an address: a page in a browser that has made a name of its own
// point here (DNS rebinding) sends that name.
bool names_local_host(std::string_view host) {
  if (host.empty()) return true;
  const bool in_brackets = host.starts_with('[');
  const size_t end = in_brackets ? host.find(']') : host.find(':');
  std::string_view port = end == std::string_view::npos ? "" : host.substr(end + in_brackets);
  if (in_brackets && end == std::string_view::npos) return false;
  if (port.starts_with(':')) port.remove_prefix(1);
  if (port.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const std::string name(host.substr(
      in_brackets, end == std::string_view::npos ? std::string_view::npos : end - in_brackets));
  if (name == "localhost") return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(name, error);
  return !error && address.is_v6() == in_brackets;
}

// Empty words are kept: the caller refuses them by name.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  if (!text.empty()) words.emplace_back();
  for (const char c : text) {
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

bool is_strict_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
    const uint8_t lead = byte(i);
    // RFC 3629, section 4. C0, C1 and F5 to FF begin nothing.
    const size_t length = lead < 0x80                    ? 1
                          : lead >= 0xC2 && lead <= 0xDF ? 2
                          : lead >= 0xE0 && lead <= 0xEF ? 3
                          : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                         : 0;
    if (length == 0 || length > text.size() - i) return false;
    for (size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    if (length > 2) {
      const uint8_t second = byte(i + 1);
      if (lead == 0xE0 && second < 0xA0) return false;  // overlong
      if (lead == 0xED && second > 0x9F) return false;  // a surrogate
      if (lead == 0xF0 && second < 0x90) return false;  // overlong
      if (lead == 0xF4 && second > 0x8F) return false;  // past U+10FFFF
    }
    i += length;
  }
  return true;
}

Result<HttpRequest> read_http_request(std::string_view method, std::string_view target) {
  HttpRequest out;
  out.method = std::string(method);
  if (!target.starts_with('/'))
    return fail(ErrorCode::kInvalid, "the address of a request begins with /");
  const size_t mark = target.find('?');
  TETRAD_TRY(out.path, decoded(target.substr(0, mark)));
  if (mark == std::string_view::npos) return out;
  std::string_view left = target.substr(mark + 1);
  while (!left.empty()) {
    const size_t end = std::min(left.find('&'), left.size());
    const std::string_view pair = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    TETRAD_TRY(std::string name, decoded(pair.substr(0, equals)));
    if (equals == std::string_view::npos)
      return fail(ErrorCode::kInvalid, "parameter {} has no value", name);
    TETRAD_TRY(std::string value, decoded(pair.substr(equals + 1)));
    const auto [at, fresh] = out.query.try_emplace(std::move(name), std::move(value));
    // Which of the two would hold is a question that an attacker likes.
    if (!fresh) return fail(ErrorCode::kInvalid, "parameter {} is there twice", at->first);
  }
  return out;
}

}  // namespace tetrad::server
