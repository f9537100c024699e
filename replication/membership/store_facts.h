// SPDX-License-Identifier: Apache-2.0
// What nodes tell one another of their stores, and of what each has heard of the other's: how far
// each store has written and synced, and whether it is behind (design, rule 20). A store that has
// less than it once reported has lost it, whatever its disk and its machine say.
//
//   facts  := u64 nonce of the sender's life, u8 number of its stores, store*, known
//   store  := u64 written, u64 durable, u8 flags (1: behind), [varint tablets left, bytes what it
//             waits for] if it is behind
//   known  := u64 nonce of the receiver's life before this one (0: none was heard of), [u64 its
//             start number, u8 number of its stores, (u64 written, u64 durable)*]
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_io.h"
#include "base/ids.h"
#include "storage/engine/sync_mark.h"

namespace tetrad::replication {

/// Of one store, at a moment.
struct StoreFacts {
  uint64_t written = 0, durable = 0;  // as storage::SyncNumbers
  bool behind = false;
  uint64_t tablets_left = 0;  // of a store that is behind: that it has not fetched yet
  std::string waits_for;      // and the members that it waits for; "": none

  friend bool operator==(const StoreFacts&, const StoreFacts&) = default;
};

/// What was heard of one life of a node. A nonce of 0: nothing.
struct LifeHeard {
  uint64_t nonce = 0, start_number = 0;
  std::vector<StoreFacts> stores;  // the highest numbers
};

/// What a heartbeat says.
struct FactsTold {
  uint64_t nonce = 0;
  std::vector<StoreFacts> stores;
  LifeHeard known;
};

/// Appends to a heartbeat; the rest of one that comes. What does not decode is left out.
void put_facts(base::ByteWriter& writer, const FactsTold& told);
FactsTold read_facts(base::ByteReader& in);

/// Below it a store has all that it reported in earlier lives; max(): that is not to be compared, for
/// the store is new, or is known to lack what a power cut took.
uint64_t whole_to_compare(const storage::Recovered& recovered, bool is_cut);

/// By store, those that are behind.
using BehindFacts = std::map<StoreAddress, StoreFacts>;

}  // namespace tetrad::replication
