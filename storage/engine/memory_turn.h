// SPDX-License-Identifier: Apache-2.0
// The writes of one turn of the model store, and what they make of the values that are stored. All
// writes that come within one turn of the loop become one batch of the model disk, as RocksStore's do:
// a power cut keeps or loses them together.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "storage/engine/memory_disk.h"
#include "storage/engine/store.h"
#include "storage/index/claim.h"
#include "storage/row/storage_key.h"
#include "storage/views/store_views.h"

namespace tetrad::storage {

/// A write that the end of the turn will make. Not yet in the store: reads do not see it.
struct WaitingWrite {
  Mutation mutation;
  std::optional<Mutation> committed;  // that an import brings
  Claims claims;                      // of indexes, for the rows of `mutation`
  ViewRecords view_tasks;        // of views, in the same batch as the rows that they are due to
  std::vector<Bytes> forgotten;  // of the store's own keys
  bool merged = false;           // rows that others had
  bool puts_registers = false;   // else they are joined
  bool synced = false;           // `done` runs when it is
  base::Callback written;        // null: nobody asks
  WritePass pass;                // asked again when the batch is made: a tablet may have gone
  Store::ApplyCallback done;     // once, with the batch's outcome
};

/// What a turn of the loop changes, joined with what is stored: lives for the end of that turn.
class MemoryTurn {
 public:
  /// `stored` outlives this.
  explicit MemoryTurn(const MemoryArea::Map& stored) : stored_(stored) {}
  /// The rows of a write, its registers, and the rows of a commit that an import brings.
  void add(const WaitingWrite& waiting);
  /// `puts`: in the place of those that are there; else joined with them.
  void add_registers(const Mutation& m, bool puts);
  /// Joined with the rows that are there, and with those of this turn.
  void add_rows(const Mutation& m);
  /// A claim is there or not: there is nothing to join.
  void add_claims(const WaitingWrite& waiting);
  /// Everything added so far, ascending by key.
  std::vector<MemoryArea::Operation> take_batch();

 private:
  void merge(const Mutation& mutation, KeyKind kind, BytesView clustering_key, BytesView value);

  const MemoryArea::Map& stored_;
  std::map<Bytes, Bytes> changed_;  // new values, by key
  std::vector<Bytes> erased_;       // before `changed_` is put
};

}  // namespace tetrad::storage
