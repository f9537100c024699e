// SPDX-License-Identifier: Apache-2.0
// system_views.max_partition_size: the largest logical partition of a table, where that is known.
//
// Logical partitions are not measured one by one. But one that fills a physical partition, or gets
// most of its work, is alone in one, whose size it has. If that is the largest of its table, no
// logical partition is larger: all others are in smaller ones.
#pragma once

#include <functional>
#include <optional>

#include "base/ids.h"
#include "partitioner/tablet_map.h"

namespace tetrad::cql {

/// `bytes_of`: of a tablet, as nodes last reported; 0: nothing is known. Unset: the largest tablet
/// has several logical partitions, or none. Pure.
std::optional<uint64_t> largest_partition_bytes(const partitioner::TabletMap& map,
                                                const std::function<uint64_t(TabletId)>& bytes_of);

}  // namespace tetrad::cql
