// SPDX-License-Identifier: Apache-2.0
// Addresses as Java's InetAddress reads and prints them, without looking up names: "1.2" is
// 1.0.0.2, an IPv4 address in IPv6 is one of IPv4, IPv6 is printed in eight groups without "::".
#include "cql/types/inet.h"

#include <array>
#include <charconv>
#include <optional>
#include <vector>

namespace tetrad::cql {

namespace {

// ::ffff:0:0/96 of IPv6 holds the addresses of IPv4.
constexpr BytesView kMappedPrefix("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);

// Digits only, all of the text.
std::optional<uint64_t> to_number(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// One to four numbers; the last one fills the bytes that are left.
std::optional<Bytes> parse_v4(std::string_view text) {
  if (text.empty() || text.size() > 15) return std::nullopt;
  const std::vector<std::string_view> parts = split(text, '.');
  if (parts.size() > 4) return std::nullopt;
  Bytes out;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto number = to_number(parts[i], 10);
    // "10.1" has 1 for three bytes: 10.0.0.1.
    const size_t width = i + 1 < parts.size() ? 1 : 4 - i;
    if (!number || *number >> (8 * width) != 0) return std::nullopt;
    for (size_t byte = width; byte > 0; --byte)
      out.push_back(static_cast<char>(*number >> (8 * (byte - 1))));
  }
  return out;
}

/// Groups of hex digits between colons, the last one perhaps an IPv4 address.
bool append_groups(std::string_view text, bool may_end_v4, Bytes& out) {
  if (text.empty()) return true;
  const std::vector<std::string_view> groups = split(text, ':');
  for (size_t i = 0; i < groups.size(); ++i) {
    if (may_end_v4 && i + 1 == groups.size() && groups[i].find('.') != std::string_view::npos) {
      const auto v4 = parse_v4(groups[i]);
      if (!v4 || split(groups[i], '.').size() != 4) return false;
      out += *v4;
      return true;
    }
    const auto number = to_number(groups[i], 16);
    if (!number || groups[i].size() > 4 || out.size() > 14) return false;
    out.push_back(static_cast<char>(*number >> 8));
    out.push_back(static_cast<char>(*number));
  }
  return true;
}

std::optional<Bytes> parse_v6(std::string_view text) {
  // "fe80::1%2": the number of an interface is taken and dropped.
  if (const size_t scope = text.find('%'); scope != std::string_view::npos) {
    if (!to_number(text.substr(scope + 1), 10)) return std::nullopt;
    text = text.substr(0, scope);
  }
  Bytes out, tail;
  // What is left of "::" and what is right of it; zeros fill the middle, one group at least.
  const size_t gap = text.find("::");
  if (gap == std::string_view::npos) {
    if (!append_groups(text, true, out) || out.size() != 16) return std::nullopt;
  } else {
    const std::string_view after = text.substr(gap + 2);
    if (after.find("::") != std::string_view::npos || after.starts_with(':')) return std::nullopt;
    if (!append_groups(text.substr(0, gap), false, out) || !append_groups(after, true, tail) ||
        out.size() + tail.size() > 14)
      return std::nullopt;
    out.append(16 - out.size() - tail.size(), '\0');
    out += tail;
  }
  if (out.starts_with(kMappedPrefix)) out.erase(0, kMappedPrefix.size());
  return out;
}

}  // namespace

Result<Bytes> parse_inet(std::string_view text) {
  std::optional<Bytes> address;
  // Longer than any address; the text may be a client's of any length.
  if (text.size() <= 100) {
    std::string_view inner = text;
    const bool brackets = inner.size() > 2 && inner.front() == '[' && inner.back() == ']';
    if (brackets) inner = inner.substr(1, inner.size() - 2);
    const bool v6 = inner.find(':') != std::string_view::npos;
    if (v6) {
      address = parse_v6(inner);
    } else if (!brackets) {
      address = parse_v4(inner);
    }
  }
  if (address) return *std::move(address);
  return fail(ErrorCode::kInvalid, "Unable to make inet address from '{}'", text);
}

// Empty for bytes that are no address.
std::string format_inet(BytesView bytes) {
  if (bytes.size() == 16 && bytes.starts_with(kMappedPrefix))
    bytes.remove_prefix(kMappedPrefix.size());
  const auto byte = [&](size_t i) { return static_cast<unsigned>(static_cast<uint8_t>(bytes[i])); };
  if (bytes.size() == 4) return fmt::format("{}.{}.{}.{}", byte(0), byte(1), byte(2), byte(3));
  std::string out;
  if (bytes.size() != 16) return out;
  for (size_t i = 0; i < 16; i += 2) {
    if (i > 0) out += ':';
    out += fmt::format("{:x}", byte(i) << 8 | byte(i + 1));
  }
  return out;
}

}  // namespace tetrad::cql
