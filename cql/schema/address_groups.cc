// SPDX-License-Identifier: Apache-2.0
#include "cql/schema/address_groups.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "cql/schema/object_text.h"
#include "cql/types/inet.h"
#include "cql/types/value.h"

namespace tetrad::cql {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr int kMappedBits = 96;  // before an IPv4 address that is mapped into IPv6

/// The first bits of an address.
Bytes masked(Bytes address, uint8_t bits) {
  for (size_t i = 0; i < address.size(); ++i) {
    const size_t kept = bits > 8 * i ? std::min<size_t>(bits - 8 * i, 8) : 0;
    // 0xFF00 shifted by the number of bits that stay: 3 of them leave 0xE0 in the low byte.
    const auto mask = static_cast<uint8_t>(0xFF00u >> kept);
    address[i] = static_cast<char>(static_cast<uint8_t>(address[i]) & mask);
  }
  return address;
}

// Java, and so Cassandra, reads "192.168.1/24" as 192.168.0.1/24: another range than was meant.
bool is_whole_address(std::string_view text) {
  return text.find(':') != std::string_view::npos || std::ranges::count(text, '.') == 3;
}

}  // namespace

Result<AddressRange> AddressRange::parse(std::string_view text) {
  const auto refused = [&] {
    return fail(ErrorCode::kInvalid, "{} is not a valid CIDR String", text);
  };
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0) return refused();
  const std::string_view address = text.substr(0, slash), bits_text = text.substr(slash + 1);
  int bits = 0;
  const auto [end, error] =
      std::from_chars(bits_text.data(), bits_text.data() + bits_text.size(), bits);
  if (error != std::errc() || end != bits_text.data() + bits_text.size()) return refused();
  auto bytes = parse_inet(address);
  if (!bytes || !is_whole_address(address)) return refused();
  // "::ffff:10.0.0.0/104" means 10.0.0.0/8: parse_inet() gives four bytes, the bits are counted
  // without the prefix.
  const bool is_mapped = bytes->size() == 4 && address.find(':') != std::string_view::npos;
  if (is_mapped) bits -= kMappedBits;
  if (bits < 0 || bits > static_cast<int>(8 * bytes->size())) return refused();
  AddressRange range;
  range.prefix_bits = static_cast<uint8_t>(bits);
  // "10.1.2.3/8" becomes "10.0.0.0/8", as in Cassandra, so that equal ranges have equal texts.
  range.start = masked(std::move(*bytes), range.prefix_bits);
  return range;
}

std::string AddressRange::text() const {
  return fmt::format("{}/{}", format_inet(start), prefix_bits);
}

Result<AddressGroup> make_address_group(std::string name, std::span<const std::string> ranges) {
  if (name.empty() || ranges.empty())
    return fail(ErrorCode::kInvalid, "A CIDR group has a name and at least one CIDR");
  if (name.size() > kAddressGroupNameBytesMax)
    return fail(ErrorCode::kInvalid, "A CIDR group's name has {} bytes at most, not {}",
                kAddressGroupNameBytesMax, name.size());
  if (!is_valid_utf8(name)) return fail(ErrorCode::kInvalid, "A CIDR group's name is UTF-8");
  if (ranges.size() > kAddressGroupRangesMax)
    return fail(ErrorCode::kInvalid, "A CIDR group has {} CIDRs at most, not {}",
                kAddressGroupRangesMax, ranges.size());
  AddressGroup group{std::move(name), {}};
  for (const std::string& text : ranges) {
    TETRAD_TRY(AddressRange range, AddressRange::parse(text));
    group.ranges.insert(std::move(range));
  }
  return group;
}

// The name may have any letters, also slashes: nothing is cut out of the key again but the prefix.
std::string address_group_key(std::string_view name) {
  return std::string(kAddressGroupPrefix) + std::string(name);
}

std::string address_group_text(const AddressGroup& group) {
  json ranges = json::array();
  for (const AddressRange& range : group.ranges) ranges.push_back(range.text());
  const json out = {{"format", kFormat}, {"name", group.name}, {"cidrs", ranges}};
  return object_text(out);
}

Result<AddressGroupPtr> read_address_group_text(const std::string& text) {
  return read_object_text(
      text, "CIDR group", kFormat, [](const json& in) -> Result<AddressGroupPtr> {
        // With the checks of a statement: a damaged text must not put more into memory than a
        // statement could.
        TETRAD_TRY(AddressGroup group,
                   make_address_group(in.at("name").get<std::string>(),
                                      in.at("cidrs").get<std::vector<std::string>>()));
        return std::make_shared<const AddressGroup>(std::move(group));
      });
}

AddressGroups::AddressGroups(Groups groups) : groups_(std::move(groups)) {
  for (const auto& [name, group] : groups_) {
    range_count_ += group->ranges.size();
    for (const AddressRange& range : group->ranges) {
      auto& of_length = range.start.size() == 4 ? of_v4_ : of_v6_;
      of_length[range.prefix_bits][range.start].insert(name);
    }
  }
}

std::set<std::string> AddressGroups::groups_of(BytesView address) const {
  const auto& by_length = address.size() == 4 ? of_v4_ : of_v6_;
  // The longest prefix comes first, and the first that fits ends the search.
  for (const auto& [bits, by_start] : by_length) {
    const auto found = by_start.find(masked(Bytes(address), bits));
    if (found != by_start.end()) return found->second;
  }
  return {};
}

}  // namespace tetrad::cql
