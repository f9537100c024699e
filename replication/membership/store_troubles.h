// SPDX-License-Identifier: Apache-2.0
// Stores with trouble, as heartbeats report them.
//
//   hung, failed   absent, as if its node were: not written to, not read from, replaced in the end
//   full           takes no writes; reads, and may be a source. Not replaced
//   damaged        takes writes; read last, and never a source
#pragma once

#include <map>

#include "base/ids.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// Empty almost always.
using StoreTroubles = std::map<StoreAddress, storage::StoreState>;

constexpr bool is_absent(storage::StoreState state) {
  return state == storage::StoreState::kHung || state == storage::StoreState::kFailed;
}

}  // namespace tetrad::replication
