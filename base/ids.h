// SPDX-License-Identifier: Apache-2.0
// Identifiers. Each is a type of its own, so that one is never taken for another.
//
// All are plain values: as cheap as what they hold, ordered, and good as keys of maps. Who gives
// them out, and whether they are ever used again, stands behind each.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "base/uuid.h"

namespace tetrad::base {

/// An integer that only compares with its own kind.
/// `Tag` is never defined: it only makes the types differ.
template <class Tag, class Int>
struct Id {
  Int value{};
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// A UUID that only compares with its own kind.
/// As Id: `Tag` makes the types differ.
template <class Tag>
struct UuidId {
  Uuid value;
  friend constexpr auto operator<=>(const UuidId&, const UuidId&) = default;
  std::string to_string() const { return value.to_string(); }
};

// Of a node, of tables, of tablets, and of versions that only rise.
using HostId = UuidId<struct HostIdTag>;    // a node, for ever; a wiped node gets a new one
using TableId = UuidId<struct TableIdTag>;  // a table as drivers see it (system_schema.tables.id)
// Old incarnations never come back, so data that a TRUNCATE has left on a disk cannot show up
// again.
using TableIncarnation = Id<struct IncarnationTag,
                            uint32_t>;  // what storage keys begin with; new at CREATE and TRUNCATE
using TabletId = Id<struct TabletIdTag, uint64_t>;  // a physical partition
// Messages about a table name the version of its last change.
using SchemaVersion =
    Id<struct SchemaVersionTag, uint64_t>;  // Raft index of the last schema change
// Messages between replicas name the epoch; a replica that knows a newer one refuses (RULES.md,
// rule 8).
using SetEpoch = Id<struct SetEpochTag, uint64_t>;  // members and stage of a tablet's replica set
// For example of the last command that a node has applied.
using MetaIndex = Id<struct MetaIndexTag, uint64_t>;  // index in the metadata group's log

/// One replica's place: a store of a node. `store` counts from 0 and is fixed when the node first
/// starts.
/// Ordered by host, then by store.
struct StoreAddress {
  HostId host;
  uint32_t store = 0;
  friend auto operator<=>(const StoreAddress&, const StoreAddress&) = default;
};

}  // namespace tetrad::base

// For hash tables, whose order never reaches an output.
template <class Tag, class Int>
struct std::hash<tetrad::base::Id<Tag, Int>> {
  size_t operator()(tetrad::base::Id<Tag, Int> id) const noexcept {
    return std::hash<Int>()(id.value);
  }
};
template <class Tag>
struct std::hash<tetrad::base::UuidId<Tag>> {
  size_t operator()(const tetrad::base::UuidId<Tag>& id) const noexcept {
    return tetrad::base::UuidHash()(id.value);
  }
};

namespace tetrad {
using base::HostId;
using base::MetaIndex;
using base::SchemaVersion;
using base::SetEpoch;
using base::StoreAddress;
using base::TableId;
using base::TableIncarnation;
using base::TabletId;
}  // namespace tetrad
