// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/storage/registers_run.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "storage/engine/memory_store.h"
#include "storage/engine/store.h"
#include "storage/row/paxos_registers.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::simulation {
namespace {

using namespace storage;

constexpr int kPartitions = 3;
constexpr int64_t kNow_s = tests::ManualReactor::kWallStartUs / 1'000'000;

/// What one write leaves.
struct State {
  PaxosRegisters registers;
  int64_t row_us = kNoTimestamp;  // of the newest commit's row
  friend bool operator==(const State&, const State&) = default;
};

struct Partition {
  /// As they were written, one after another; the first is what was there at the start.
  std::vector<State> states{State()};
  size_t told = 0;    // the newest of which it was said that it is on the disk
  bool busy = false;  // a write has not ended

  const State& newest() const { return states.back(); }
};

class RegistersRun {
 public:
  explicit RegistersRun(uint64_t seed) : random_(seed * 613 + 29), rocks_(seed % 2 == 0) {
    StoreOptions options;
    options.in_memory_files = true;
    options.block_cache_bytes = 1 << 20;
    options.write_buffer_bytes = 1 << 20;
    if (random_.one_in(4)) options.sync = CommitLogSync::kGroup;
    factory_ = rocks_ ? make_rocks_store_factory(options, Logger())
                      : make_memory_store_factory(disk_, options);
  }
  ~RegistersRun() { kill(); }

  std::string run() {
    for (int life = 0; life < 4 && wrong_.empty(); ++life) {
      auto opened = factory_->open("/tetrad/store", reactor_, pool_);
      if (!opened) return opened.error().message;
      store_ = std::move(*opened);
      for (int which = 0; which < kPartitions && wrong_.empty(); ++which) find_again(which);
      for (uint64_t steps = 5 + random_.below(40); steps > 0 && wrong_.empty(); --steps) step();
      if (wrong_.empty()) end_life();
    }
    return wrong_;
  }

 private:
  void step() {
    const int which = static_cast<int>(random_.below(kPartitions));
    const uint64_t what = random_.below(20);
    if (what < 11) {
      change(which);
    } else if (what < 13) {
      import(which);
    } else if (what < 15) {
      check(which);
    } else if (what < 16) {
      write_other_row(which);
    } else if (what < 18) {
      purge();
    } else {
      disturb();
    }
    // Other things go on while a write is under way.
    if (random_.one_in(2)) return settle(which);
    for (uint64_t turns = random_.below(3); turns > 0; --turns) reactor_.run_turn();
  }

  void end_life() {
    for (uint64_t turns = random_.below(4); turns > 0; --turns) reactor_.run_turn();
    if (random_.one_in(4)) {
      if (const auto closed = store_->close(); !closed) wrong_ = closed.error().message;
    }
    kill();
    if (!rocks_ && !random_.one_in(3)) disk_->lose_unsynced(random_, random_.one_in(2));
  }
  void kill() {
    store_.reset();
    pool_.drop_all();
    reactor_.drop_all();
    for (Partition& partition : partitions_) partition.busy = false;
  }
  template <class T>
  T wait(const std::optional<T>& answer) {
    if (!reactor_.run_until([&] { return answer.has_value(); })) wrong_ = "no answer came";
    return answer.value_or(T());
  }
  /// Nothing is under way in the partition.
  void settle(int which) {
    const Partition& partition = partitions_[static_cast<size_t>(which)];
    if (!reactor_.run_until([&] { return !partition.busy; })) wrong_ = "a write did not end";
  }

  // ---- changes ----

  Ballot next_ballot() {
    Ballot ballot{++clock_, {}, 1, 0};
    ballot.host.value.octets[0] = static_cast<uint8_t>(random_.below(3));
    return ballot;
  }
  static Bytes key_of(int which) { return "p" + std::to_string(which); }
  static RingPosition position_of(int which) { return {which * 10, static_cast<uint64_t>(which)}; }
  static PartitionName name_of(int which, BytesView key) { return {{7}, position_of(which), key}; }

  static Mutation row_of(int which, char row, int64_t us) {
    Mutation mutation;
    mutation.incarnation = {7};
    mutation.schema_version = {1};
    mutation.position = position_of(which);
    mutation.partition_key = key_of(which);
    RowRecord record;
    record.liveness = {us, 0, 0};
    RowChange change;
    change.clustering_key = Bytes(1, row);
    change.complete = true;
    encode_row_record(record, change.record);
    mutation.rows.push_back(std::move(change));
    return mutation;
  }
  static Bytes value_of(int which, int64_t us) {
    Bytes value;
    encode_mutation(row_of(which, 'c', us), value);
    return value;
  }
  Proposal proposal_of(int which, const PaxosRegisters& registers) {
    const Ballot ballot = next_ballot();
    Proposal proposal{ballot, ballot, {}, value_of(which, ballot.us)};
    if (registers.committed) proposal.follows = registers.committed->origin;
    return proposal;
  }

  /// A promise, an accept, a commit, or the mark that a commit is settled.
  void change(int which) {
    settle(which);
    State next = partitions_[static_cast<size_t>(which)].newest();
    PaxosRegisters& registers = next.registers;
    const uint64_t what = random_.below(8);
    std::optional<Mutation> rows;
    bool synced = true;
    if (what < 2) {
      registers.promised = next_ballot();
    } else if (what < 4) {
      registers.accepted = proposal_of(which, registers);
      registers.promised = registers.accepted->ballot;
    } else if (what < 6 || !registers.committed || registers.settled) {
      const bool is_accepted =
          registers.accepted &&
          (!registers.committed || registers.committed->ballot < registers.accepted->ballot);
      registers.committed = is_accepted ? *registers.accepted : proposal_of(which, registers);
      registers.settled = false;
      next.row_us = std::max(next.row_us, registers.committed->origin.us);
      rows = row_of(which, 'c', registers.committed->origin.us);
    } else {
      registers.settled = true;
      registers.committed->value.clear();
      synced = false;
    }
    const Bytes key = key_of(which);
    const State begun = begin(which, std::move(next));
    store_->write_registers({name_of(which, key), begun.registers, rows ? &*rows : nullptr, synced},
                            {}, end_of(which, synced));
  }

  void import(int which) {
    settle(which);
    State next = partitions_[static_cast<size_t>(which)].newest();
    PaxosRegisters from;
    if (random_.one_in(2)) from.promised = next_ballot();
    if (random_.one_in(2)) {
      from.committed = proposal_of(which, next.registers);
      next.row_us = std::max(next.row_us, from.committed->origin.us);
    }
    Mutation mutation = row_of(which, 'i', 1);
    encode_registers(from, mutation.registers);
    next.registers = join_registers(next.registers, from);
    begin(which, std::move(next));
    store_->apply_merged(mutation, end_of(which, true));
  }

  State begin(int which, State next) {
    Partition& partition = partitions_[static_cast<size_t>(which)];
    partition.busy = true;
    partition.states.push_back(next);
    return next;
  }
  Store::ApplyCallback end_of(int which, bool synced) {
    Partition& partition = partitions_[static_cast<size_t>(which)];
    return [this, &partition, place = partition.states.size() - 1,
            synced](const Result<void>& result) {
      partition.busy = false;
      // A store that is closed with a sync under way may say so.
      if (result && synced) partition.told = std::max(partition.told, place);
      if (!result && result.error().code != ErrorCode::kCancelled) wrong_ = result.error().message;
    };
  }

  void write_other_row(int which) {
    store_->apply(row_of(which, 'o', ++clock_), [](const Result<void>&) {});
  }

  /// All below a floor goes; what comes while pages are read and written stays.
  void purge() {
    for (int which = 0; which < kPartitions; ++which) settle(which);
    SweepCommand command;
    command.incarnation = {7};
    command.keys_max = 1 + random_.below(6);
    command.registers_floor = {clock_ + 1 - static_cast<int64_t>(random_.below(6)), {}, 0, 0};
    for (Partition& partition : partitions_) {
      if (!(partition.newest().registers.last() < command.registers_floor)) continue;
      State gone = partition.newest();
      gone.registers = {};
      partition.states.push_back(std::move(gone));
    }
    SweepPlace from;
    for (bool exhausted = false; !exhausted && wrong_.empty();) {
      std::optional<std::optional<SweepPage>> page;
      store_->sweep(command, from, [&](const Result<SweepPage>& swept) {
        page.emplace();
        if (swept) *page = *swept;
      });
      // Nothing of the page has been written yet, and perhaps it has been read.
      if (random_.one_in(2)) promise_meanwhile(static_cast<int>(random_.below(kPartitions)));
      const auto swept = wait(page);
      if (!swept) {
        wrong_ = "a sweep failed";
        return;
      }
      exhausted = swept->exhausted;
      from = swept->next;
    }
    for (int which = 0; which < kPartitions && wrong_.empty(); ++which) check(which);
  }
  void promise_meanwhile(int which) {
    settle(which);
    Partition& partition = partitions_[static_cast<size_t>(which)];
    State next = partition.newest();
    next.registers.promised = next_ballot();
    const Bytes key = key_of(which);
    const State begun = begin(which, std::move(next));
    store_->write_registers({name_of(which, key), begun.registers}, {}, end_of(which, true));
  }

  void disturb() {
    std::optional<bool> done;
    const auto end = [&](const Result<void>& result) { done = result.has_value(); };
    switch (random_.below(3)) {
      case 0:
        store_->flush(end);
        break;
      case 1:
        store_->compact(end);
        break;
      default:
        reactor_.advance_us(static_cast<int64_t>(random_.below(200'000)));
        return;
    }
    if (!wait(done)) wrong_ = "a flush or compaction failed";
  }

  // ---- what is there ----

  std::optional<State> found(int which) {
    const Bytes key = key_of(which);
    std::optional<std::optional<PaxosRegisters>> registers;
    store_->read_registers(name_of(which, key), base::kNoDeadline,
                           [&](const Result<PaxosRegisters>& read) {
                             registers.emplace();
                             if (read) *registers = *read;
                           });
    const auto told = wait(registers);
    if (!told) return std::nullopt;
    State state{*told, kNoTimestamp};
    ReadCommand command;
    command.incarnation = {7};
    command.position = position_of(which);
    command.partition_key = key;
    command.now_s = kNow_s;
    std::optional<bool> read_well;
    store_->read(command, base::kNoDeadline, [&](const Result<ReadResult>& read) {
      read_well = read.has_value();
      if (!read) return;
      for (const PartitionData& partition : read->partitions)
        for (const RowData& row : partition.rows)
          if (row.clustering_key == "c")
            state.row_us = decode_row_record(row.record)->liveness.timestamp_us;
    });
    if (!wait(read_well)) return std::nullopt;
    return state;
  }

  /// Of a store that lives it is what was written last.
  void check(int which) {
    const Partition& partition = partitions_[static_cast<size_t>(which)];
    const State wanted = partition.newest();
    const auto state = found(which);  // it waits for what is under way
    settle(which);
    if (!state) {
      wrong_ = "registers or rows do not read";
    } else if (state->registers != wanted.registers) {
      wrong_ = "registers are not as they were written last";
    } else if (state->row_us != wanted.row_us) {
      wrong_ = "the row is not that of the newest commit";
    }
  }

  /// After a start it is what one of the writes left, of those that had been told the newest or a
  /// later one.
  void find_again(int which) {
    Partition& partition = partitions_[static_cast<size_t>(which)];
    const auto state = found(which);
    if (!state) {
      wrong_ = "registers or rows do not read after a start";
      return;
    }
    bool registers_known = false;
    for (size_t place = partition.states.size(); place-- > partition.told;) {
      registers_known |= partition.states[place].registers == state->registers;
      if (partition.states[place] != *state) continue;
      partition.states = {*state};
      partition.told = 0;
      return;
    }
    wrong_ = registers_known ? "a commit was torn: its rows and its registers differ"
                             : "registers that were told are gone";
  }

  base::Random random_;
  const bool rocks_;
  tests::ManualReactor reactor_;
  tests::InlineIoPool pool_;
  const std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<StoreFactory> factory_;
  std::unique_ptr<Store> store_;
  std::array<Partition, kPartitions> partitions_;
  int64_t clock_ = 1000;
  std::string wrong_;
};

}  // namespace

std::string run_registers(uint64_t seed) { return RegistersRun(seed).run(); }

}  // namespace tetrad::simulation
