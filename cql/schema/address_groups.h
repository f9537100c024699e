// SPDX-License-Identifier: Apache-2.0
// Groups of client addresses (CIDR groups), to which roles may be bound. Objects of the metadata,
// one for each group, so that every node knows them without asking.
//
// Which group an address is in is asked once for each connection and again when the schema has
// changed (execute/address_filter.h), so the tables are made when a snapshot is built, and not on
// each request.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::cql {

/// All addresses that begin with the same bits: "10.0.0.0/8", "2001:db8::/32".
struct AddressRange {
  Bytes start;              // 4 or 16 bytes; the bits behind the prefix are 0
  uint8_t prefix_bits = 0;  // up to 32 or 128

  /// An IPv4 address mapped into IPv6 is one of IPv4, with 96 bits less. Bits behind the prefix are
  /// cut off. Errors: kInvalid "… is not a valid CIDR String".
  static Result<AddressRange> parse(std::string_view text);
  /// As `system_auth.cidr_groups` and nodetool write it: "10.0.0.0/8", IPv6 in eight groups.
  std::string text() const;
  auto operator<=>(const AddressRange&) const = default;
};

/// A named set of ranges, which ACCESS FROM CIDRS names. Immutable once it is an AddressGroupPtr.
struct AddressGroup {
  std::string name;
  std::set<AddressRange> ranges;  // not empty
  bool operator==(const AddressGroup&) const = default;
};
using AddressGroupPtr = std::shared_ptr<const AddressGroup>;

// Of one group: bytes of its name and number of its ranges.
inline constexpr size_t kAddressGroupNameBytesMax = 512, kAddressGroupRangesMax = 4'096;
// Of a cluster: each change of one goes through all of them.
inline constexpr size_t kAddressGroupsMax = 1'000, kAddressRangesMax = 10'000;

/// Errors: kInvalid: no name, or one that is no UTF-8, no ranges, too many, or what AddressRange::parse() refuses.
Result<AddressGroup> make_address_group(std::string name, std::span<const std::string> ranges);

// As the metadata keeps it.
// The key is "cidr_group/<name>"; the text, for example:
//  {"cidrs":["10.0.0.0/8"],"format":1,"name":"office"}
inline constexpr std::string_view kAddressGroupPrefix = "cidr_group/";
std::string address_group_key(std::string_view name);
/// A set sorts its ranges, so equal groups have equal texts.
std::string address_group_text(const AddressGroup& group);
/// Errors: kCorruption.
Result<AddressGroupPtr> read_address_group_text(const std::string& text);

/// All groups of one version of the metadata. Immutable.
class AddressGroups {
 public:
  using Groups = std::map<std::string, AddressGroupPtr, std::less<>>;
  AddressGroups() = default;
  /// Builds the tables by length of prefix: once for each version of the metadata.
  explicit AddressGroups(Groups groups);

  const Groups& all() const { return groups_; }
  /// Of all groups together.
  size_t range_count() const { return range_count_; }
  /// Those that have the narrowest range that the address is in, as in Cassandra: a wider range does
  /// not count where there is a narrower one. `address`: 4 or 16 bytes. Takes a look-up for each
  /// length of prefix in use.
  std::set<std::string> groups_of(BytesView address) const;

 private:
  using ByStart = std::map<Bytes, std::set<std::string>, std::less<>>;
  Groups groups_;
  // By the bits of the prefix, the longest first; of addresses of 4 and of 16 bytes.
  std::map<uint8_t, ByStart, std::greater<>> of_v4_, of_v6_;
  size_t range_count_ = 0;
};
using AddressGroupsPtr = std::shared_ptr<const AddressGroups>;

}  // namespace tetrad::cql
