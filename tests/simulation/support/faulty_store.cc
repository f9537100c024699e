// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/support/faulty_store.h"

namespace tetrad::simulation {

void FaultyStore::write_registers(const storage::RegistersWrite& write, storage::WriteGuard guard,
                                  base::Callback written, ApplyCallback done) {
  // After an error at the deadline `written` must not run.
  const auto is_over = std::make_shared<bool>(false);
  base::Callback in_time;
  if (written != nullptr) {
    in_time = [is_over, written = std::move(written)]() mutable {
      if (!*is_over) written();
    };
  }
  this->write(write_later(write, std::move(in_time)), std::move(guard),
              [is_over, done = std::move(done)](Result<void> result) mutable {
                *is_over = true;
                done(std::move(result));
              });
}

void FaultyStore::read_registers(const storage::PartitionName& partition, base::Deadline deadline,
                                 RegistersCallback done) {
  if (fails(StoreCall::kRead, done)) return;
  // What is parked is not in the inner store yet.
  hold_until_written(0, [this, name = partition, key = Bytes(partition.partition_key), deadline,
                         done = std::move(done)]() mutable {
    name.partition_key = key;
    inner_->read_registers(name, deadline, std::move(done));
  });
}

void FaultyStore::list_registers(TableIncarnation incarnation, const RingRange& range, Bytes after,
                                 size_t partitions_max,
                                 std::move_only_function<void(Result<RegistersPage>)> done) {
  if (fails(StoreCall::kExport, done)) return;
  auto list = [this, incarnation, range, after = std::move(after), partitions_max,
               done = std::move(done)]() mutable {
    inner_->list_registers(incarnation, range, std::move(after), partitions_max, std::move(done));
  };
  hold_until_written(0, std::move(list));
}

void FaultyStore::latest_timestamp(storage::ReadCommand command, base::Deadline deadline,
                                   std::move_only_function<void(Result<int64_t>)> done) {
  if (fails(StoreCall::kRead, done)) return;
  hold_or_run([this, deadline, command = std::move(command), done = std::move(done)]() mutable {
    inner_->latest_timestamp(std::move(command), deadline, std::move(done));
  });
}

FaultyStore::Write FaultyStore::apply_later(const storage::Mutation& mutation, bool merged) {
  return [this, mutation, merged](storage::WriteGuard guard, ApplyCallback done) {
    merged ? inner_->apply_merged(mutation, std::move(guard), std::move(done))
           : inner_->apply(mutation, std::move(guard), std::move(done));
  };
}

FaultyStore::Write FaultyStore::write_later(const storage::RegistersWrite& write,
                                            base::Callback written) {
  std::optional<storage::Mutation> rows;
  if (write.rows != nullptr) rows = *write.rows;
  return [this, name = write.partition, key = Bytes(write.partition.partition_key),
          registers = write.registers, rows = std::move(rows), synced = write.synced,
          written = std::move(written)](storage::WriteGuard guard, ApplyCallback done) mutable {
    name.partition_key = key;
    inner_->write_registers({name, registers, rows ? &*rows : nullptr, synced}, std::move(guard),
                            std::move(written), std::move(done));
  };
}

void FaultyStore::write(Write write, storage::WriteGuard guard, ApplyCallback done) {
  if (faults_.refusal) {
    ++faults_.figures.failed;
    return done(std::unexpected(*faults_.refusal));
  }
  if (auto error = faults_.take_error(StoreCall::kApply)) {
    if (!faults_.failed_is_done) return done(std::unexpected(std::move(*error)));
    done = [done = std::move(done), error = std::move(*error)](const Result<void>&) mutable {
      done(std::unexpected(std::move(error)));
    };
  }
  Parked parked{++last_number_, std::move(write), false, 0, std::move(guard), std::move(done)};
  const bool waits = faults_.holds_writes() || !parked_.empty();
  if (!waits && faults_.sync_us == 0) return hand_over(parked);
  if (faults_.sync_us != 0 && !faults_.holds_writes()) {
    if (auto refusal = storage::refusal_of(parked.guard, reactor_.now_us()))
      return parked.done(std::unexpected(std::move(*refusal)));
    parked.is_on_its_way = true;
    parked.not_before_us = reactor_.now_us() + faults_.sync_us;
  }
  ++faults_.figures.parked;
  parked_.push_back(std::move(parked));
  look_later();
}

void FaultyStore::hand_over(Parked& parked) {
  ApplyCallback done = std::move(parked.done);
  if (!done) done = [](const Result<void>&) {};  // it was told at its deadline
  if (faults_.ack_late_us != 0) {
    done = [this, alive = alive_, done = std::move(done)](Result<void> result) mutable {
      if (!*alive) return;
      reactor_.call_at(reactor_.now_us() + faults_.ack_late_us,
                       [alive, done = std::move(done), result = std::move(result)]() mutable {
                         if (*alive) done(std::move(result));
                       });
    };
  }
  storage::WriteGuard guard = std::move(parked.guard);
  if (parked.is_on_its_way) {  // nobody asks any more, but it has not ended yet
    guard.deadline_us = storage::WriteGuard::kNever;
    done = [pass = std::exchange(guard.pass, {}),
            done = std::move(done)](Result<void> result) mutable { done(std::move(result)); };
  }
  parked.write(std::move(guard), std::move(done));
}

}  // namespace tetrad::simulation
