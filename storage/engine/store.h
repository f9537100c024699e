// SPDX-License-Identifier: Apache-2.0
// A store: the rows of one shard. Two kinds with one contract: RocksStore over RocksDB and
// MemoryStore, the model.
//
// All methods belong to the shard's thread and never block it. Everything applied in one turn of
// the loop becomes one write (one WriteBatch); `done` runs at the end of that turn, after the batch
// is with the operating system (periodic) or on disk (group). Mutations of one turn are seen by
// later reads in the order of apply().
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/io_pool.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/reactor.h"
#include "base/result.h"
#include "storage/engine/kept_files.h"
#include "storage/engine/sync_mark.h"
#include "storage/engine/write_guard.h"
#include "storage/index/claim_sweep.h"
#include "storage/index/index_build.h"
#include "storage/row/mutation.h"
#include "storage/row/paxos_registers.h"
#include "storage/row/purge.h"
#include "storage/row/read_command.h"
#include "storage/row/storage_key.h"
#include "storage/views/store_views.h"

namespace rocksdb {
class FileSystem;
}

namespace tetrad::storage {

/// How many bytes lie at which place: for choosing a split point.
struct SizeSample {
  RingPosition position;  // of a partition key
  uint64_t bytes;  // from the sample before (or the range's start) up to and with this partition
};

/// How much there is of a logical partition: bytes of keys and values as they are stored, and
/// deletions of the partition, of ranges, rows and cells.
struct PartitionExtent {
  uint64_t bytes = 0, tombstones = 0;
};

/// A partition beyond the thresholds of a sweep; `key` is its partition key.
struct LargePartition {
  Bytes key;
  PartitionExtent extent;
};
inline constexpr size_t kLargePartitionsMax = 100;  // of a page

/// What a sweep is to drop of a range.
struct SweepCommand {
  TableIncarnation incarnation;
  RingRange range;
  PurgeBound bound;
  /// Whatever there is: the range is not this store's any more.
  bool everything = false;
  /// Registers whose last() is below this go.
  Ballot registers_floor;
  /// A page ends after this many keys read, or changed: reading it is one job of the I/O pool,
  /// writing it one step of the loop.
  uint64_t keys_max = 4096, changes_max = 512;
  /// Partitions above either of these are reported; 0: no limit. With both 0 nothing is measured.
  PartitionExtent told_beyond = {};
};

/// Where a sweep goes on; made by it.
struct SweepPlace {
  Bytes after;              // "": at the range's start
  bool inside = false;      // a partition, of which
  bool undisturbed = true;  // all that could go of it behind this place went
  uint64_t watch = 0;       // sees what is written meanwhile
  PartitionExtent extent;   // of what is behind it in that partition
};

/// What came of one page, and where the next begins.
struct SweepPage {
  bool exhausted = true;
  SweepPlace next;
  uint64_t keys = 0;        // looked at
  uint64_t changed = 0;     // keys with a smaller value
  uint64_t erased = 0;      // keys that are gone
  uint64_t skipped = 0;     // of both: left as they were, for what was written meanwhile needs them
  uint64_t tombstones = 0;  // and expired parts among what went
  uint64_t bytes = 0;       // that went
  /// Something of what is left may go once `deleted_before_s` is past this; max(): nothing will.
  int64_t oldest_left_s = std::numeric_limits<int64_t>::max();
  /// Beyond `told_beyond`, that end in this page; more than kLargePartitionsMax are only counted.
  std::vector<LargePartition> large;
  uint64_t large_left_out = 0;
};

/// Registers of a partition as they are to be from now on.
struct RegistersWrite {
  PartitionName partition;
  const PaxosRegisters& registers;
  /// A commit: its rows, of the same partition, are written with the registers or not at all.
  const Mutation* rows = nullptr;
  /// False: it need not survive a power cut, as a mark that a commit is settled.
  bool synced = true;
};

/// What of a range an export has.
enum class ExportParts : uint8_t { kRows, kRowsAndRegisters };

/// Figures of one store, for metrics and the admin page: present sizes, and counts since it was
/// opened.
struct StoreStatistics {
  uint64_t disk_bytes = 0, memtable_bytes = 0, cache_bytes = 0;
  uint64_t estimated_keys = 0, pending_compaction_bytes = 0;
  bool writes_stopped = false;
  uint64_t delayed_write_bytes_per_s = 0;  // what is let through while it is behind; 0: all
  uint64_t level0_files = 0, compactions_running = 0, flushes_running = 0;
  uint64_t writes_paced_us = 0;  // time during which writes had to wait for the disk
  uint64_t background_errors = 0, corruptions = 0;
  /// Blocks of files that reads asked for; not those that compactions, flushes, streams, sweeps and
  /// index builds did. What the loop did not find and a reader reads again counts once.
  uint64_t block_cache_hits = 0, block_cache_misses = 0;
  uint64_t row_cache_bytes = 0, row_cache_hits = 0, row_cache_misses = 0;
  /// Over the last quarter of an hour (base/recent_rate.h).
  double block_cache_hits_per_s = 0, block_cache_requests_per_s = 0;
  double row_cache_hits_per_s = 0, row_cache_requests_per_s = 0;
  uint64_t vector_graphs = 0, vector_graph_bytes = 0;  // that serve; of all, also those being made
  /// Searches for near vectors by how they were answered: by a graph, or by reading all rows.
  uint64_t vector_graph_searches = 0, vector_scans = 0;
  uint64_t scrubbed_files = 0, scrubbed_bytes = 0, damaged_files = 0;  // of this life
  uint64_t values_written_back = 0;  // after reads that had to join too many versions (rule 19)
};

/// What a store can do at the moment. The numbers are in heartbeats: never renumber.
enum class StoreState : uint8_t {
  kServing = 0,
  kFull = 1,     // no room or no file descriptors: writes are refused, reads go on
  kHung = 2,     // the disk does not come back from a write: further ones are refused
  kDamaged = 3,  // some of what it holds does not read; it takes writes
  kFailed = 4,   // the disk may have lost what was written: nothing more is taken or synced
};

/// A store's state and the sentence that goes with it; kServing has none.
struct StoreStatus {
  StoreState state = StoreState::kServing;
  std::string reason;  // why it is not serving
  bool takes_writes() const {
    return state == StoreState::kServing || state == StoreState::kDamaged;
  }
};

/// What came of reading every block.
struct ScrubSummary {
  uint64_t files = 0, bytes = 0;
  std::vector<std::string> damaged;  // files, and what is wrong with them
};

/// Owned by its shard. Callbacks run on the shard's thread, each at most once, and none after the
/// store is destroyed. What a call gets by view or reference need not outlive it.
class Store {
 public:
  using StatusListener = std::function<void(const StoreStatus&)>;
  using ApplyCallback = std::move_only_function<void(Result<void>)>;
  using ReadCallback = std::move_only_function<void(Result<ReadResult>)>;

  virtual ~Store() = default;

  /// Errors: kOverloaded when the write queue is full, kIo when the disk is full, hangs or has
  /// failed (what was under way then may be stored or not), kStaleSchema when the incarnation is
  /// retired, kCorruption when a record does not decode. `done` then runs inside this call.
  ///
  /// A write that has to wait is not done once the guard does not allow it: kStaleEpoch, or
  /// kTimedOut, at the deadline. It keeps its pass as long as it may still be done; kTimedOut
  /// of a write that is on its way to the disk leaves open whether it is.
  virtual void apply(const Mutation& mutation, WriteGuard guard, ApplyCallback done) = 0;
  /// As apply(), for rows that come from a stream, a repair or a hint: always merged, never Put
  /// (rule 15). Registers that a stream brings are joined with those that are there, and the rows
  /// of their committed value are written with them; `done` runs when all is on the disk.
  /// kCorruption: they do not decode.
  virtual void apply_merged(const Mutation& mutation, WriteGuard guard, ApplyCallback done) = 0;
  /// Whatever happens meanwhile.
  void apply(const Mutation& mutation, ApplyCallback done) {
    apply(mutation, WriteGuard(), std::move(done));
  }
  void apply_merged(const Mutation& mutation, ApplyCallback done) {
    apply_merged(mutation, WriteGuard(), std::move(done));
  }

  /// Puts registers in the place of those that are there. `done` as apply()'s, but when the write
  /// is on the disk, in both modes of sync, if it is `synced`: all of a turn share one sync (rule
  /// 21). One write at a time: while another of the partition's registers, or an import, has not
  /// ended a second one fails with kOverloaded. After any error the registers must be read again,
  /// for others may be there than the caller thinks. Registers without rows change no mark.
  ///
  /// `written` (may be null) runs before `done` where a write is seen by reads before it is on the
  /// disk: it is in its place then, behind all earlier and before all later ones, and only a power
  /// cut or the end of the disk can take it. From then on the next write may be given, which is
  /// not on the disk before this one.
  virtual void write_registers(const RegistersWrite& write, WriteGuard guard,
                               base::Callback written, ApplyCallback done) = 0;
  void write_registers(const RegistersWrite& write, WriteGuard guard, ApplyCallback done) {
    write_registers(write, std::move(guard), nullptr, std::move(done));
  }
  /// `done` may run inside this call. Waits until all that was given to write_registers() before
  /// has ended, and sees it: the answer is on the disk, as far as it is `synced`. Of a partition
  /// that has none: empty ones. Errors: as read().
  using RegistersCallback = std::move_only_function<void(Result<PaxosRegisters>)>;
  virtual void read_registers(const PartitionName& partition, base::Deadline deadline,
                              RegistersCallback done) = 0;
  /// A page of list_registers(). Each partition with registers comes once over all pages.
  struct RegistersPage {
    /// The registers of one partition.
    struct Entry {
      RingPosition position;
      Bytes partition_key;
      PaxosRegisters registers;
    };
    std::vector<Entry> entries;  // in key order
    bool exhausted = true;
    Bytes next;  // opaque: give it back to go on
  };
  /// The registers of a range; a page looks at `partitions_max` partitions, with registers or
  /// without. Sees what was written before the call; what is written meanwhile may come or not.
  virtual void list_registers(TableIncarnation incarnation, const RingRange& range, Bytes after,
                              size_t partitions_max,
                              std::move_only_function<void(Result<RegistersPage>)> done) = 0;
  /// The highest timestamp of everything stored that a read of the rows or ranges of one partition
  /// looks at: its header (tombstone and static cells), range tombstones over them, dead things and
  /// expired ones too. kNoTimestamp: there is nothing. Limits of the command do not count. Sees
  /// what read() sees; errors as read().
  virtual void latest_timestamp(ReadCommand command, base::Deadline deadline,
                                std::move_only_function<void(Result<int64_t>)> done) = 0;

  /// `done` may run inside this call (everything was in memory) or later (the I/O pool read it).
  /// Sees everything acknowledged before the call. A page without rows may be not exhausted.
  /// Files are not touched after `deadline`. Errors: kCorruption, kIo, kStaleSchema when the
  /// incarnation is retired, kTimedOut, kOverloaded when too many reads wait for the disk,
  /// kCancelled when the store was closed meanwhile.
  virtual void read(ReadCommand command, base::Deadline deadline, ReadCallback done) = 0;

  /// As read() of a command that is live_only, at once and without a copy. Unset: it would take
  /// longer than this call may; what the sink got counts for nothing, and read() answers.
  virtual std::optional<Result<ReadEnd>> read_here(const ReadCommand& command, RowSink& sink) = 0;

  /// Bytes on disk and in memory of a range of a table; an estimate, cheap.
  virtual uint64_t approximate_bytes(TableIncarnation incarnation, const RingRange& range) = 0;
  /// About `count` samples of a range, ascending; maintenance of the I/O pool.
  virtual void sample_sizes(
      TableIncarnation incarnation, const RingRange& range, size_t count,
      std::move_only_function<void(Result<std::vector<SizeSample>>)> done) = 0;

  /// The incarnation is gone (DROP, TRUNCATE): its keys are removed in the background, and never
  /// read again. Idempotent; touches no file on the loop.
  virtual void retire(TableIncarnation incarnation) = 0;

  /// A page of everything stored of a range (tombstones too) as mutations in key order, for streams
  /// (which have the registers, too) and repair.
  struct ExportPage {
    std::vector<Mutation> mutations;
    bool exhausted = true;
    Bytes next;  // opaque: give it back to go on
  };
  using ExportCallback = std::move_only_function<void(Result<ExportPage>)>;
  virtual void export_range(TableIncarnation incarnation, const RingRange& range, Bytes after,
                            uint64_t bytes_max, ExportParts parts, ExportCallback done) = 0;
  void export_range(TableIncarnation incarnation, const RingRange& range, Bytes after,
                    uint64_t bytes_max, ExportCallback done) {
    export_range(incarnation, range, std::move(after), bytes_max, ExportParts::kRows,
                 std::move(done));
  }

  /// What was found at open. Stays as it is; valid as long as the store.
  virtual const Recovered& recovered() const = 0;
  virtual SyncNumbers sync_numbers() const = 0;
  /// Runs `done` when everything applied before this call is on the disk, in both modes of sync;
  /// calls of one moment share a sync. Errors: kIo, kOverloaded: the store takes no writes;
  /// kCancelled: it was closed meanwhile.
  virtual void sync(std::move_only_function<void(Result<void>)> done) = 0;
  /// The node's hybrid time, for sync records: with what is written they go to the disk after each
  /// sync, and every minute while nothing is written. Called on the store's thread; unset while the
  /// time is not to be trusted: none is written then, and the last one stays the newest. Before the
  /// first call none is written.
  virtual void set_sync_clock(std::function<std::optional<int64_t>()> now_us) = 0;

  /// What was written from `since_us` to `until_us`, both included, by the clock of
  /// set_sync_clock(). What is there of retired incarnations is left out.
  struct RecentCommand {
    std::vector<std::pair<TableIncarnation, RingRange>> ranges;
    int64_t since_us = 0, until_us = 0;
  };
  /// A page of recent().
  struct RecentPage {
    std::vector<Mutation> mutations;  // of one partition there may be several
    bool exhausted = true;
    Bytes next;  // opaque: give it back, with the same command, to go on
  };
  /// A page of all records that were written then, as they are now: what is gone meanwhile is left
  /// out, what was written since shows. Registers are not among them: they were synced before
  /// anybody saw them. A record may come in several pages, and some that were written a little
  /// before or after come too. A page may be empty and not be the last: it ends once enough of the
  /// log has been read, off the loop. Errors: kNotFound: the log does not reach back to `since_us`
  /// without a hole, take the whole range by export_range(); kCorruption and kIo of the records;
  /// kCancelled.
  virtual void recent(RecentCommand command, Bytes after, uint64_t bytes_max,
                      std::move_only_function<void(Result<RecentPage>)> done) = 0;

  /// Drops a page's part of what `command` allows (design, rules 17 and 18). Data is read off the
  /// loop; what was written meanwhile is taken into account, so a partition may be written all the
  /// time. Once done has run the page is on disk like a mutation. Errors: kCorruption, kIo,
  /// kStaleSchema, kCancelled; kOverloaded: nothing was dropped, the same page may be asked for
  /// again.
  virtual void sweep(SweepCommand command, SweepPlace from,
                     std::move_only_function<void(Result<SweepPage>)> done) = 0;
  /// The indexes of a table as the schema has them from now on: all that is applied leaves the
  /// claims that `maker` makes, in the same write. Claims and builds of those that were dropped go.
  /// Null: no schema of the table is known.
  virtual void set_indexes(TableIncarnation incarnation, ClaimMakerPtr maker) = 0;
  /// Whether reads may name the index; those that name another fail with kIndexNotBuilt.
  virtual bool is_built(TableIncarnation incarnation, uint16_t index_id) = 0;
  /// Builds on, by a page of rows of about `bytes_max`. What is done survives a restart, and is
  /// synced before the index counts as built. Errors: kNotFound (no such index is known), kConflict
  /// (ask again), kCorruption, kIo, kOverloaded, kStaleSchema, kCancelled.
  virtual void build_index(TableIncarnation incarnation, uint16_t index_id, uint64_t bytes_max,
                           std::move_only_function<void(Result<IndexBuildPage>)> done) = 0;
  /// A page of claims that no row bears out goes (index/claim_sweep.h). Errors: as build_index().
  virtual void sweep_claims(ClaimSweepCommand command, Bytes after,
                            std::move_only_function<void(Result<ClaimSweepPage>)> done) = 0;
  /// What it does for views of its tables, which set_views() hands to it.
  virtual StoreViews& views() = 0;
  /// As StoreViews::set().
  virtual void set_views(TableIncarnation base, ViewMakersPtr makers, TableIncarnation next) = 0;
  /// Rises with every tombstone, and everything with a TTL, that the table got; 0: it has none.
  virtual uint64_t dead_seen(TableIncarnation incarnation) = 0;

  /// The node's time, set every few seconds: compactions drop values of cells that expired long
  /// before it. Before the first call they drop none. The rates of statistics() are as of the last.
  virtual void note_time(int64_t now_s) = 0;

  virtual void flush(std::move_only_function<void(Result<void>)> done) = 0;
  /// The files of the tables, with what lies between; without any table all files.
  virtual void compact(std::vector<TableIncarnation> tables,
                       std::move_only_function<void(Result<void>)> done) = 0;
  void compact(std::move_only_function<void(Result<void>)> done) { compact({}, std::move(done)); }
  /// Hard links to the files in which there is something of the tables, as they are after a flush.
  /// Errors: kIo, and then the folder may be there with some of them; kCancelled.
  virtual void keep_files(KeepCommand command,
                          std::move_only_function<void(Result<KeptFiles>)> done) = 0;
  /// Reads every block now and compares its checksum; a block that does not read makes the store
  /// damaged. statistics() shows the progress. Errors: kCancelled, kIo.
  virtual void verify(std::move_only_function<void(Result<ScrubSummary>)> done) = 0;
  virtual StoreStatistics statistics() = 0;
  virtual const StoreStatus& status() const = 0;
  /// Runs after each change of status(), in a later event of the loop. Null: removed.
  virtual void on_status(StatusListener changed) = 0;
  /// The newest timestamp ever applied to the table's bucket of this partition (the bucket mark);
  /// kNoTimestamp if none.
  virtual int64_t high_water_timestamp(TableIncarnation incarnation, RingPosition position) = 0;
  /// Writes what is queued, syncs and stops; afterwards only destruction. Blocks.
  virtual Result<void> close() = 0;
};

/// When a write is acknowledged: periodic, once the operating system has it; group, once it is
/// synced.
enum class CommitLogSync : uint8_t { kPeriodic, kGroup };

/// What a node sets for its stores; fixed for the life of the process. Bounds are checked by the
/// server's option table.
struct StoreOptions {
  CommitLogSync sync = CommitLogSync::kPeriodic;
  int64_t sync_period_us = 100'000;
  uint64_t block_cache_bytes = 256u << 20;  // shared by the stores of a node
  uint64_t row_cache_bytes = 16u << 20;     // of each store
  uint64_t write_buffer_bytes = 64u << 20;  // of rows in memory before they go to a file
  uint64_t write_buffers_total_bytes = 0;   // of all stores of a node; 0: four memtables per store
  uint32_t background_threads = 2;          // of all stores of a node
  uint64_t write_queue_max_bytes = 64u << 20;  // parked writes beyond it answer kOverloaded
  uint32_t open_files_max = 1024;              // of each store
  int64_t scrub_period_us = 0;  // in which every block is read once; 0: only when asked
  /// A page of a read ends after this many keys, dead ones too.
  uint64_t read_keys_max = 1'000'000;
  /// Logs whose rows are in files are kept for recent(): for this many seconds, and up to this
  /// share of the free disk space for all stores together. 0: they are not kept.
  int64_t logs_kept_s = 600;
  double logs_kept_of_free_disk = 0.05;
  /// Of graphs of vectors, of each store; 0: there are none, and all rows are measured. And from
  /// how many vectors of a tablet on there is one.
  uint64_t vector_graph_bytes = 0;
  uint64_t vector_graph_min = 4096;
  uint32_t read_operands_max = 8;  // a read that joins more merge operands writes the value back
  bool in_memory_files = false;    // tests: RocksDB over an in-memory file system
};

/// Opens the stores of one node: they share cache, write buffer budget and background threads.
class StoreFactory {
 public:
  virtual ~StoreFactory() = default;
  /// `directory` is made if absent. Errors: kCorruption, kIo, kConfig (a format this program does
  /// not read). Blocks; called at start. Reactor and pool outlive the store.
  virtual Result<std::unique_ptr<Store>> open(const std::string& directory, base::Reactor& reactor,
                                              base::IoPool& pool) = 0;
};

/// The real engine.
/// `files`: where the stores are, for tests; null: as `options` says.
std::unique_ptr<StoreFactory> make_rocks_store_factory(
    const StoreOptions& options, Logger logger,
    std::shared_ptr<rocksdb::FileSystem> files = nullptr);

}  // namespace tetrad::storage
