// SPDX-License-Identifier: Apache-2.0
// One store under random mutations, flushes, compactions, sweeps, restarts and retired tables,
// against an oracle of its own: it keeps every change and works out each place of a row by the
// rules of design, section 5, written down here a second time. Timestamps are few, so that ties are
// common. Odd seeds run MemoryStore, even ones RocksStore.
//
// Power cuts and Paxos registers have runs of their own (cut_run.h, registers_run.h).
//
// usage: store_simulation [--seeds A..B] | --mutants [SEEDS]
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/data_mutants.h"
#include "base/random.h"
#include "storage/engine/memory_store.h"
#include "storage/engine/store.h"
#include "storage/row/range_tombstones.h"
#include "storage/row/reconcile.h"
#include "storage/row/storage_key.h"
#include "tests/simulation/storage/cut_run.h"
#include "tests/simulation/storage/registers_run.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::simulation {
namespace {

using namespace storage;

constexpr int kPartitions = 3, kRows = 5;
constexpr uint32_t kColumns = 3;  // 1 to 3; the schema's first version has no column 3
constexpr int64_t kNow_s = tests::ManualReactor::kWallStartUs / 1'000'000;

Bytes row_key(int row) { return Bytes(1, static_cast<char>('a' + row)); }

// ---- the rules again ----

bool is_later(const Deletion& a, const Deletion& b) {
  if (a.timestamp_us != b.timestamp_us) return a.timestamp_us > b.timestamp_us;
  return a.deletion_time_s > b.deletion_time_s;
}
void raise(Deletion& deletion, const Deletion& other) {
  if (is_later(other, deletion)) deletion = other;
}
bool beats(const Liveness& a, const Liveness& b) {
  if (a.timestamp_us != b.timestamp_us) return a.timestamp_us > b.timestamp_us;
  if ((a.ttl_s != 0) != (b.ttl_s != 0)) return a.ttl_s != 0;
  return a.expiry_s > b.expiry_s;
}
bool beats(const Cell& a, const Cell& b) {
  if (a.timestamp_us != b.timestamp_us) return a.timestamp_us > b.timestamp_us;
  const bool a_dead = a.kind != CellKind::kValue, b_dead = b.kind != CellKind::kValue;
  if (a_dead != b_dead) return a_dead;
  if (a_dead) return a.expiry_s > b.expiry_s;
  if ((a.ttl_s != 0) != (b.ttl_s != 0)) return a.ttl_s != 0;
  if (a.expiry_s != b.expiry_s) return a.expiry_s > b.expiry_s;
  return a.value > b.value;
}

/// What a partition has been told, joined as it came.
struct Partition {
  struct Row {
    Liveness liveness;
    Deletion deletion;
    std::array<std::optional<Cell>, kColumns + 1> cells;
  };
  Deletion deletion;
  std::array<Deletion, kRows> range_deletions;
  std::array<Row, kRows> rows;

  Deletion cover(int row) const {
    Deletion cover = deletion;
    raise(cover, range_deletions[static_cast<size_t>(row)]);
    return cover;
  }
  /// Every deletion is forgotten, with what it hides.
  void purge() {
    for (int row = 0; row < kRows; ++row) {
      const RowRecord left = shown(row);
      Row& stored = rows[static_cast<size_t>(row)];
      stored = {};
      stored.liveness = left.liveness;
      for (const Cell& cell : left.cells)
        if (cell.kind == CellKind::kValue) stored.cells[cell.column_id] = cell;
    }
    deletion = {};
    range_deletions = {};
  }
  /// The row as a read shows it: less what is hidden.
  RowRecord shown(int row) const {
    const Row& stored = rows[static_cast<size_t>(row)];
    RowRecord record;
    const Deletion cover = this->cover(row);
    if (is_later(stored.deletion, cover) && stored.deletion.timestamp_us > cover.timestamp_us)
      record.deletion = stored.deletion;
    const int64_t hidden_us = std::max(cover.timestamp_us, stored.deletion.timestamp_us);
    if (stored.liveness.timestamp_us > hidden_us) record.liveness = stored.liveness;
    for (const auto& cell : stored.cells)
      if (cell && cell->timestamp_us > hidden_us) record.cells.push_back(*cell);
    return record;
  }
};

constexpr std::array<BytesView, 4> kValues = {"", "a", "b", "bb"};

class StoreRun {
 public:
  explicit StoreRun(uint64_t seed) : random_(seed * 131 + 7), again_(seed), rocks_(seed % 2 == 0) {
    StoreOptions options;
    options.in_memory_files = true;
    options.block_cache_bytes = 1 << 20;
    options.write_buffer_bytes = 1 << 20;
    options.read_operands_max = 2;
    if (again_.one_in(3)) options.sync = CommitLogSync::kGroup;
    factory_ = rocks_ ? make_rocks_store_factory(options, Logger())
                      : make_memory_store_factory(std::make_shared<MemoryDisk>(), options);
  }
  ~StoreRun() { kill(); }

  std::string run() {
    open();
    const int steps = 40 + static_cast<int>(random_.below(80));
    for (int step = 0; step < steps && wrong_.empty(); ++step) {
      ++clock_;
      const uint64_t what = random_.below(20);
      if (what < 12) {
        write();
      } else if (what < 17) {
        const int which = static_cast<int>(random_.below(kPartitions));
        check(which, random_.one_in(3));
        // Read again, a store may answer from what it has kept.
        for (uint64_t times = again_.below(3); times > 0 && wrong_.empty(); --times)
          check(which, again_.one_in(3));
      } else {
        disturb();
      }
    }
    for (int i = 0; i < kPartitions && wrong_.empty(); ++i) check(i, random_.one_in(3));
    return wrong_;
  }

 private:
  void open() {
    auto opened = factory_->open("/tetrad/store", reactor_, pool_);
    if (!opened) {
      wrong_ = opened.error().message;
      return;
    }
    store_ = std::move(*opened);
  }
  void kill() {
    store_.reset();
    pool_.drop_all();
    reactor_.drop_all();
  }
  template <class T>
  T wait(const std::optional<T>& answer) {
    reactor_.run_until([&] { return answer.has_value(); });
    return *answer;
  }

  // ---- changes ----

  int64_t timestamp() {
    if (newest_) return 1001 + static_cast<int64_t>(clock_ / 2);
    // Mostly rising, so that rows may be Put; often of before, and often the same once more.
    const int64_t back =
        random_.one_in(2) ? static_cast<int64_t>(random_.below(random_.one_in(2) ? 3 : 12)) : 0;
    return 1000 + std::max<int64_t>(0, static_cast<int64_t>(clock_ / 2) - back);
  }
  Deletion deletion() { return {timestamp(), 5 + static_cast<int64_t>(random_.below(3))}; }

  Cell make_cell(uint32_t column, int64_t at, int64_t expiry_s) {
    Cell cell;
    cell.column_id = column;
    cell.timestamp_us = at;
    if (expiry_s == 0 && !only_live_ && random_.one_in(4)) {
      cell.kind = CellKind::kTombstone;
      cell.expiry_s = 5 + static_cast<int64_t>(random_.below(3));
    } else {
      cell.value = kValues[random_.below(4)];
      cell.ttl_s = expiry_s != 0 ? 100 : 0;
      cell.expiry_s = expiry_s;
    }
    return cell;
  }

  void write() {
    const auto which = random_.below(kPartitions);
    Partition& model = partitions_[which];
    Mutation mutation = mutation_of(which);
    const bool newer_schema = random_.one_in(2);
    mutation.schema_version = {newer_schema ? 2u : 1u};
    const uint64_t kind = random_.below(16);
    if (kind == 0) {
      RowRecord header;
      header.deletion = deletion();
      encode_row_record(header, mutation.header);
      raise(model.deletion, header.deletion);
    } else if (kind < 4) {
      for (int n = 0; n < 2; ++n) {
        const int first = static_cast<int>(random_.below(2));
        const int end = first + 1 + static_cast<int>(random_.below(3));
        const Deletion gone = deletion();
        mutation.range_tombstones.push_back({{row_key(first), row_key(end)}, gone});
        for (int row = first; row < end; ++row)
          raise(model.range_deletions[static_cast<size_t>(row)], gone);
      }
    } else {
      const int first = static_cast<int>(random_.below(kRows));
      const int end = std::min(kRows, first + 1 + static_cast<int>(random_.below(2)));
      for (int row = first; row < end; ++row) add_row(mutation, model, row, kind, newer_schema);
    }
    std::optional<Result<void>> answer;
    const auto done = [&](Result<void> result) { answer = std::move(result); };
    random_.one_in(4) ? store_->apply_merged(mutation, done) : store_->apply(mutation, done);
    // A read of before it is acknowledged may put back what it has joined, but not over it.
    std::optional<bool> read;
    if (random_.one_in(3))
      store_->read(command_of(static_cast<int>(which)), base::kNoDeadline,
                   [&](const auto&) { read = true; });
    else
      read = true;
    if (const auto result = wait(answer); !result) wrong_ = result.error().message;
    (void)wait(read);
  }

  void add_row(Mutation& mutation, Partition& model, int row, uint64_t kind, bool newer_schema) {
    RowChange change;
    change.clustering_key = row_key(row);
    RowRecord record;
    const int64_t at = timestamp();
    const int64_t expiry_s =
        random_.one_in(5) ? kNow_s + 100 * (1 + static_cast<int64_t>(random_.below(3))) : 0;
    if (kind == 4) {
      record.deletion = deletion();
    } else if (kind < 11) {  // an INSERT of everything its schema has
      record.liveness = {at, expiry_s != 0 ? 100 : 0, expiry_s};
      change.complete = true;
      for (uint32_t column = 1; column <= (newer_schema ? 3u : 2u); ++column)
        record.cells.push_back(make_cell(column, at, expiry_s));
    } else {
      const uint32_t column = 1 + static_cast<uint32_t>(random_.below(newer_schema ? 3 : 2));
      record.cells.push_back(make_cell(column, at, expiry_s));
    }
    Partition::Row& stored = model.rows[static_cast<size_t>(row)];
    raise(stored.deletion, record.deletion);
    if (record.liveness.present() && beats(record.liveness, stored.liveness))
      stored.liveness = record.liveness;
    for (const Cell& cell : record.cells) {
      auto& place = stored.cells[cell.column_id];
      if (!place || beats(cell, *place)) place = cell;
    }
    encode_row_record(record, change.record);
    mutation.rows.push_back(std::move(change));
  }

  Mutation mutation_of(uint64_t which) const {
    Mutation mutation;
    mutation.incarnation = incarnation_;
    mutation.position = {static_cast<int64_t>(which) * 10, which};
    mutation.partition_key = "p" + std::to_string(which);
    return mutation;
  }

  void disturb() {
    std::optional<Result<void>> answer;
    const auto done = [&](Result<void> result) { answer = std::move(result); };
    switch (random_.below(10)) {
      case 0:
      case 1:
        store_->flush(done);
        (void)wait(answer);
        break;
      case 2:
        store_->compact(done);
        (void)wait(answer);
        break;
      case 3:
      case 4:
        if (const auto closed = store_->close(); !closed) wrong_ = closed.error().message;
        kill();
        open();
        break;
      case 5:
      case 6:
        kill();
        open();
        break;
      case 7:
      case 8:
        purge();
        break;
      default:
        if (!random_.one_in(4)) break;
        check_retired();
    }
  }

  /// Everything deleted goes, also of partitions that are written to all the time: what comes while
  /// pages are read and between them is newer, and live. Now and then something older comes late:
  /// what hides it must stay then, until another sweep.
  void purge() {
    hot_ = random_.one_in(2);
    const bool late = random_.one_in(3);
    if (sweep_all(late) && !late) forget_deletions();
    hot_ = false;
    if (!late) return;
    (void)sweep_all(false);
    forget_deletions();
  }
  void forget_deletions() {
    for (Partition& partition : partitions_) partition.purge();
  }

  bool sweep_all(bool late) {
    SweepPlace from;
    while (wrong_.empty()) {
      std::optional<Result<SweepPage>> page;
      const SweepCommand command = sweep_command();
      const auto place = from.inside ? decode_storage_key(from.after) : std::nullopt;
      store_->sweep(command, from, [&](auto swept) { page = std::move(swept); });
      // To a partition that no page has ended yet; nothing has run since.
      const uint64_t inside = place ? place->position.hash : 0;
      const bool may_be_late = place.has_value() || from.after.empty();
      if (late && may_be_late && random_.one_in(2))
        write_live(inside + random_.below(kPartitions - inside), false);
      if (hot_ && !random_.one_in(4)) write_live(random_.below(kPartitions), true);
      const auto swept = wait(page);
      if (!swept) wrong_ = swept.error().message;
      if (!swept || swept->exhausted) break;
      from = swept->next;
      if (hot_ && random_.one_in(2)) write_live(random_.below(kPartitions), true);
    }
    for (const auto& answer : std::exchange(flying_, {})) (void)wait(*answer);
    return wrong_.empty();
  }

  /// INSERT of a row, newer than everything or with any timestamp; this one not of a row that has
  /// lost deletions of its own already.
  void write_live(uint64_t which, bool newest) {
    Partition& model = partitions_[which];
    const int row = static_cast<int>(random_.below(kRows));
    const Partition::Row& stored = model.rows[static_cast<size_t>(row)];
    const bool is_deleted = stored.deletion.present() ||
                            std::ranges::any_of(stored.cells, [](const std::optional<Cell>& cell) {
                              return cell && cell->kind != CellKind::kValue;
                            });
    if (is_deleted && !newest) return;
    Mutation mutation = mutation_of(which);
    mutation.schema_version = {2};
    newest_ = newest;
    only_live_ = true;
    ++clock_;
    add_row(mutation, model, row, 5, true);
    newest_ = only_live_ = false;
    const auto answer = std::make_shared<std::optional<Result<void>>>();
    store_->apply(mutation, [answer](Result<void> result) { *answer = std::move(result); });
    random_.one_in(2) ? (void)wait(*answer) : flying_.push_back(answer);
  }
  SweepCommand sweep_command() {
    SweepCommand command;
    command.incarnation = incarnation_;
    command.bound = {1000, 1000, PurgeBound::kNothing};
    command.keys_max = 1 + random_.below(8);
    command.changes_max = 1 + random_.below(8);
    return command;
  }

  void check_retired() {
    store_->retire(incarnation_);
    ReadCommand command = command_of(0);
    std::optional<bool> refused;
    store_->read(command, base::kNoDeadline, [&](const Result<ReadResult>& result) {
      refused = !result && result.error().code == ErrorCode::kStaleSchema;
    });
    if (!wait(refused)) wrong_ = "a table that is gone was read";
    ++incarnation_.value;
    partitions_ = {};
  }

  // ---- reads ----

  ReadCommand command_of(int which) {
    const Mutation like = mutation_of(static_cast<uint64_t>(which));
    ReadCommand command;
    command.incarnation = incarnation_;
    command.position = like.position;
    command.partition_key = like.partition_key;
    command.now_s = kNow_s + 50 + static_cast<int64_t>(random_.below(4)) * 100;
    return command;
  }

  void check(int which, bool live_only) {
    const Partition& model = partitions_[static_cast<size_t>(which)];
    ReadCommand command = command_of(which);
    command.live_only = live_only;
    std::optional<bool> answered;
    store_->read(command, base::kNoDeadline, [&](const Result<ReadResult>& result) {
      answered = true;
      if (!result) {
        wrong_ = result.error().message;
      } else {
        compare(model, command, *result);
      }
    });
    (void)wait(answered);
  }

  void compare(const Partition& model, const ReadCommand& command, const ReadResult& result) {
    std::array<RowRecord, kRows> got;
    TombstoneSteps steps;
    RowRecord header;
    for (const PartitionData& partition : result.partitions) {
      steps = partition.range_tombstones;
      if (!partition.header.empty()) header = *decode_row_record(partition.header);
      for (const RowData& row : partition.rows)
        got[static_cast<size_t>(row.clustering_key[0] - 'a')] = *decode_row_record(row.record);
    }
    for (int row = 0; row < kRows; ++row) {
      RowRecord wanted = model.shown(row);
      if (command.live_only) {
        const auto lives = [&](const auto& part) { return part.live_at(command.now_s); };
        const bool live =
            lives(wanted.liveness) || std::any_of(wanted.cells.begin(), wanted.cells.end(), lives);
        wanted.deletion = {};
        if (!lives(wanted.liveness)) wanted.liveness = {};
        std::erase_if(wanted.cells, [&](const Cell& cell) { return !lives(cell); });
        if (!live) wanted = {};
      }
      if (got[static_cast<size_t>(row)] != wanted)
        wrong_ = fmt::format("row {} is not what was written", row);
      if (command.live_only) continue;
      Deletion range = model.range_deletions[static_cast<size_t>(row)];
      if (model.deletion.hides(range.timestamp_us)) range = {};
      if (deletion_at(steps, row_key(row)) != range)
        wrong_ = fmt::format("the range tombstone over row {} is not the latest", row);
    }
    if (!command.live_only && header.deletion != model.deletion)
      wrong_ = "the partition tombstone is not the latest";
  }

  base::Random random_, again_;
  const bool rocks_;
  tests::ManualReactor reactor_;
  tests::InlineIoPool pool_;
  std::unique_ptr<StoreFactory> factory_;
  std::unique_ptr<Store> store_;
  TableIncarnation incarnation_{7};
  std::array<Partition, kPartitions> partitions_;
  uint64_t clock_ = 0;
  std::vector<std::shared_ptr<std::optional<Result<void>>>> flying_;  // live writes
  bool newest_ = false;  // the next timestamps are newer than all before
  bool only_live_ = false;
  bool hot_ = false;  // there are writes while a sweep is under way
  std::string wrong_;
};

std::string run_seed(uint64_t seed) {
  std::string wrong = StoreRun(seed).run();
  if (wrong.empty()) wrong = run_cuts(seed);
  return wrong.empty() ? run_registers(seed) : wrong;
}

struct Mutant {
  const char* name;
  bool base::DataMutants::*flag;
};
#define TETRAD_MUTANT_ROW(name) \
  { #name, &base::DataMutants::name }
constexpr Mutant kMutants[] = {
    TETRAD_MUTANT_ROW(put_below_mark),        TETRAD_MUTANT_ROW(put_over_tombstone),
    TETRAD_MUTANT_ROW(put_other_version),     TETRAD_MUTANT_ROW(ingest_keeps_marks),
    TETRAD_MUTANT_ROW(marks_not_restored),    TETRAD_MUTANT_ROW(tombstone_loses_tie),
    TETRAD_MUTANT_ROW(deletion_time_ignored), TETRAD_MUTANT_ROW(tombstone_start_unique),
    TETRAD_MUTANT_ROW(expired_forgotten),     TETRAD_MUTANT_ROW(retired_readable),
    TETRAD_MUTANT_ROW(purge_hides_nothing),   TETRAD_MUTANT_ROW(purge_ignores_newer),
    TETRAD_MUTANT_ROW(row_cache_never_stale), TETRAD_MUTANT_ROW(writes_back_blindly),
    TETRAD_MUTANT_ROW(purge_ignores_late),    TETRAD_MUTANT_ROW(reach_forgotten),
    TETRAD_MUTANT_ROW(dead_run_kept),         TETRAD_MUTANT_ROW(marks_not_inherited),
    TETRAD_MUTANT_ROW(sync_record_early),     TETRAD_MUTANT_ROW(registers_unsynced),
    TETRAD_MUTANT_ROW(commit_torn),           TETRAD_MUTANT_ROW(registers_unwatched),
    TETRAD_MUTANT_ROW(imported_commit_alone),
};
#undef TETRAD_MUTANT_ROW

int run_all(uint64_t first, uint64_t last) {
  int passed = 0, failed = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const std::string wrong = run_seed(seed);
    (wrong.empty() ? passed : failed)++;
    if (!wrong.empty())
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), wrong.c_str());
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

int run_mutants(uint64_t seeds_most) {
  int passed = 0, failed = 0;
  for (const Mutant& mutant : kMutants) {
    base::data_mutants = {};
    base::data_mutants.*mutant.flag = true;
    uint64_t seed = 1;
    std::string wrong;
    for (; seed <= seeds_most && wrong.empty(); ++seed) wrong = run_seed(seed);
    std::printf("%-24s %s\n", mutant.name,
                wrong.empty() ? "NOT FOUND" : fmt::format("seed {}: {}", seed - 1, wrong).c_str());
    std::fflush(stdout);
    (wrong.empty() ? failed : passed)++;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tetrad::simulation

int main(int argc, char** argv) {
  using namespace tetrad::simulation;
  unsigned long long first = 1, last = 100;
  if (argc >= 2 && std::strcmp(argv[1], "--mutants") == 0)
    return run_mutants(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000);
  const bool good = argc == 1 || (argc == 3 && std::strcmp(argv[1], "--seeds") == 0 &&
                                  std::sscanf(argv[2], "%llu..%llu", &first, &last) == 2);
  if (!good) {
    std::fprintf(stderr, "usage: store_simulation [--seeds A..B] | --mutants [SEEDS]\n");
    return 2;
  }
  return run_all(first, last);
}
