// SPDX-License-Identifier: Apache-2.0
// The one read algorithm, over an ordered view of keys and values: both engines use it.
//
//   1. A partition: its header says what its deletion hides, and which static cells there are.
//   2. Range tombstones over its rows: looked up as rows need them (tombstone_window.h), or all of
//      them where the read comes by them anyway (partition_tombstones.h).
//   3. Its rows, slice by slice, or key by key where they are named. Each loses what its own
//      deletions, the range's and the partition's hide; what is left is delivered, counted, folded or
//      given to a sink. Runs of dead rows are skipped and reported (dead_walk.h).
//   4. An answer for the client has live rows only. One that is to be merged has dead ones, headers
//      and tombstones too, less what is dead since before the horizon, so that replicas which have
//      purged and replicas which have not answer the same.
//   5. The page ends at a limit of rows, bytes or keys looked at, and says behind which place to go
//      on; range tombstones are cut there.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/engine/dead_runs.h"
#include "storage/engine/store.h"
#include "storage/row/read_command.h"

namespace tetrad::storage {

/// Moves over the keys of a view inside its bounds. After a failure it is not valid and status()
/// says why.
class KeyIterator {
 public:
  virtual ~KeyIterator() = default;
  virtual void seek(BytesView key) = 0;         // the first key that is not smaller
  virtual void seek_before(BytesView key) = 0;  // the last key that is smaller
  virtual void next() = 0;
  virtual void prev() = 0;
  virtual Result<void> status() const = 0;
  bool valid() const { return valid_; }
  /// Views are good until the iterator moves.
  BytesView key() const { return key_; }
  BytesView value() const { return value_; }

 protected:
  bool valid_ = false;
  BytesView key_, value_;  // where it is valid
};

/// One consistent view of a store's keys. An error means "could not be read": whatever was read so
/// far must not be used.
class KeyView {
 public:
  /// What an iterator may touch. Within one partition files are skipped by their Bloom filters.
  struct Bounds {
    Bytes start, end;           // [start, end)
    bool one_partition = true;  // all keys inside have one 20-byte prefix
    bool reversed = false;      // mostly moves backwards
    /// Not 0: all keys inside are rows of one partition; its prefix is this many bytes of start.
    size_t partition_prefix_bytes = 0;
  };
  virtual ~KeyView() = default;
  /// Unset when the key is absent. The view is good until the next call.
  virtual Result<std::optional<BytesView>> get(BytesView key) = 0;
  virtual std::unique_ptr<KeyIterator> iterate(Bounds bounds) = 0;

  /// Of the partition that is read, where its rows are known to be dead; null: nothing is known.
  virtual const DeadRunList* dead_runs() const { return nullptr; }
  /// A read that wants live rows only has found another.
  virtual void found_dead(DeadRun) {}
  /// How many dead entries have been passed over inside this view, in place of its reader.
  virtual uint64_t passed_over() const { return 0; }
};

/// What a table is known not to have, so that it is not looked up.
struct TableContents {
  bool headers = true;
  bool range_tombstones = true;       // of all keys with one prefix
  bool straddling_tombstones = true;  // of other ranges
  /// Other ranges may lie among those with one prefix: all that begin before a row are looked at.
  bool scattered_tombstones = false;
  bool dead_rows = true;  // what is deleted, or may expire

  static TableContents nothing() { return {false, false, false, false, false}; }
  bool any_range_tombstones() const { return range_tombstones || straddling_tombstones; }
};

/// Answers a read command. It looks at no more keys than `keys_max`, tombstones and dead rows too,
/// before it ends its page. Errors: kCorruption, and those of the view.
Result<ReadResult> read_partitions(KeyView& view, const ReadCommand& command,
                                   const TableContents& contents, uint64_t keys_max);

/// As read_partitions() of a command that is live_only; the rows go to the sink. After an error
/// what it got counts for nothing.
Result<ReadEnd> read_partitions_into(KeyView& view, const ReadCommand& command,
                                     const TableContents& contents, RowSink& sink,
                                     uint64_t keys_max);

/// Adds what is stored at one key of its partition to a mutation; registers, too. Errors:
/// kCorruption.
Result<void> add_to_mutation(Mutation& mutation, const StorageKeyView& key, BytesView value);

/// Everything stored of a range, as Store::export_range describes.
Result<Store::ExportPage> export_page(KeyView& view, TableIncarnation incarnation,
                                      SchemaVersion schema_version, const RingRange& range,
                                      BytesView after, uint64_t bytes_max, ExportParts parts);

/// As Store::list_registers describes.
Result<Store::RegistersPage> registers_page(KeyView& view, TableIncarnation incarnation,
                                            const RingRange& range, BytesView after,
                                            size_t partitions_max);

/// As Store::latest_timestamp describes.
Result<int64_t> latest_timestamp_of(KeyView& view, const ReadCommand& command);

/// Exact sizes of a range by looking at every key, joined to about `count` samples.
Result<std::vector<SizeSample>> scan_sizes(KeyView& view, TableIncarnation incarnation,
                                           const RingRange& range, size_t count);

}  // namespace tetrad::storage
