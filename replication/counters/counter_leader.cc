// SPDX-License-Identifier: Apache-2.0
// Increments at their leader:
//
//   1. They wait in a queue of their partition; those in front that have one epoch and level are a
//      group.
//   2. The group reads this store's own totals of the rows, adds its deltas, and gives each a clock
//      above all that this life has given.
//   3. The new totals are written here. When that is done the next group may read, and this one's
//      totals go to the other members as any write.
//
// A write here of which it is not known whether it is stored ends the shard's name (`sequence_`):
// totals go on under a new one from zero, so that no delta counts twice.
//
// Why a name has the store's life and epoch, and a sequence: the total under a name is only right
// if this store has all that was counted under it. Rule 25 follows: a name is used by one leader,
// one group at a time, and totals travel, never differences.
#include "replication/counters/counter_leader.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/replica/replica_messages.h"

namespace tetrad::replication {

namespace {

constexpr size_t kWaitingMax = 20'000;          // beyond it: refused, nothing is applied
constexpr size_t kWaitingBytesMax = 32u << 20;  // of all keys together
constexpr size_t kGroupMax = 1024;              // increments of one write
constexpr size_t kGroupBytesMax = 1u << 20;
// A row that cannot be: asks for the static columns alone.
constexpr char kNoRow[] = "\xFF";  // no encoded clustering key begins with it

/// Deltas of one row, or of the static columns, by column.
struct RowDeltas {
  std::map<uint32_t, uint64_t> by_column;  // unsigned: sums wrap around
  Bytes key_cell;

  void add(const std::vector<CounterDelta>& deltas) {
    for (const CounterDelta& delta : deltas)
      by_column[delta.column_id] += static_cast<uint64_t>(delta.delta);
  }
};

/// The shard's total and clock in a row, for each column.
struct OwnShard {
  int64_t total = 0, clock_us = storage::kNoTimestamp;
};
// The shard of this name only; others' shards are not needed to count on.
Result<std::map<uint32_t, OwnShard>> own_shards(BytesView record, BytesView name) {
  std::map<uint32_t, OwnShard> out;
  if (record.empty()) return out;
  storage::RowRecordReader reader;
  TETRAD_TRY_VOID(reader.open(record));
  storage::Cell cell;
  while (reader.next(cell)) {
    if (cell.kind != storage::CellKind::kValue || !cell.has_path || cell.path != name) continue;
    const auto total = decode_total(cell.value);
    if (!total) return fail(ErrorCode::kCorruption, "a total of {} bytes", cell.value.size());
    out[cell.column_id] = {*total, cell.timestamp_us};
  }
  TETRAD_TRY_VOID(reader.status());
  return out;
}

/// The store might not have what was written to it: from now on it counts under another name.
// Its totals are not to be trusted any more.
bool may_have_lost(const Error& error) {
  return error.code == ErrorCode::kReplicaBehind || error.code == ErrorCode::kCorruption ||
         error.code == ErrorCode::kIo;
}

/// Nothing was stored: the write was refused, not begun.
// Only then may the coordinator ask another leader.
bool is_refusal(const Error& error) {
  return error.code == ErrorCode::kStaleEpoch || error.code == ErrorCode::kStaleSchema ||
         error.code == ErrorCode::kBehind;
}

}  // namespace

// Lives until its totals are on W; shared by the callbacks.
struct CounterLeader::Group {
  Key key;
  SetEpoch epoch;
  ConsistencyLevel level = ConsistencyLevel::kOne;
  base::Deadline deadline;  // the latest
  Bytes name;
  std::vector<Waiter> waiters;
  RowDeltas statics;
  std::map<Bytes, RowDeltas> rows;

  uint32_t store() const { return std::get<0>(key); }
  const CounterIncrement& first() const { return waiters.front().request.increment; }
};

void CounterMetrics::register_in(base::MetricsRegistry& registry, const std::string& labels) const {
  registry.add("tetrad_replication_counter_increments_total",
               "Increments of counters taken as their leader.", labels, increments);
  registry.add("tetrad_replication_counter_groups_total",
               "Writes of new totals of counters: each has all increments that waited.", labels,
               groups);
  registry.add("tetrad_replication_counter_unknown_total",
               "Increments of counters of which nobody knows whether they are applied.", labels,
               unknown);
}

CounterLeader::CounterLeader(base::Reactor& reactor, RpcNode& rpc, HybridClock& clock,
                             ReplicaService& replicas, Coordinator& coordinator, uint64_t life)
    : reactor_(reactor),
      rpc_(rpc),
      clock_(clock),
      replicas_(replicas),
      coordinator_(coordinator),
      life_(TETRAD_MUTANT(counter_life_kept) ? 1 : life) {
  rpc_.handle(Verb::kCounterApply,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                auto request = decode_counter_request(body);
                if (!request) return reply.error(request.error());
                increment(context.store, std::move(*request), context.deadline,
                          [reply = std::move(reply)](Result<CounterAnswer> answer) mutable {
                            if (!answer) return reply.error(answer.error());
                            reply.ok(encode_counter_answer(*answer));
                          });
              });
}

CounterLeader::~CounterLeader() { rpc_.handle(Verb::kCounterApply, nullptr); }

// Names are not reused: a life's number is random (counter_messages.h).
Bytes CounterLeader::name_of(uint32_t store, SetEpoch epoch) const {
  return encode_shard_name({{rpc_.self(), store},
                            life_,
                            TETRAD_MUTANT(counter_stay_kept) ? SetEpoch{1} : epoch,
                            sequence_});
}

void CounterLeader::increment(uint32_t store, CounterRequest request, base::Deadline deadline,
                              Done done) {
  if (!replicas_.is_local({rpc_.self(), store}))
    return done(fail(ErrorCode::kNotFound, "store {} is not of this shard", store));
  const size_t bytes = request.increment.size_bytes();
  // Tested before anything is counted: refused means not applied.
  if (waiting_ >= kWaitingMax || waiting_bytes_ + bytes > kWaitingBytesMax)
    return done(fail(ErrorCode::kOverloaded, "too many increments of counters wait; try again"));
  // Partitions of one store are independent; so are stores.
  Key key{store, request.increment.incarnation, request.increment.partition_key};
  ++waiting_;
  waiting_bytes_ += bytes;
  metrics_.increments.add();
  queues_[key].waiters.push_back({std::move(request), deadline, std::move(done), bytes});
  next(key);
}

/// Those in front that go together: of one epoch, one level.
CounterLeader::GroupPtr CounterLeader::take_group(const Key& key, Queue& queue) {
  auto group = std::make_shared<Group>();
  group->key = key;
  size_t bytes = 0;
  while (!queue.waiters.empty() && group->waiters.size() < kGroupMax && bytes < kGroupBytesMax) {
    Waiter& waiter = queue.waiters.front();
    const CounterRequest& request = waiter.request;
    if (group->waiters.empty()) {
      // One epoch, since the write is fenced by it; one level, since the answer is for all.
      group->epoch = request.epoch;
      group->level = request.level;
    } else if (request.epoch != group->epoch || request.level != group->level) {
      break;
    }
    bytes += waiter.bytes;
    group->deadline.at_us = std::max(group->deadline.at_us, waiter.deadline.at_us);
    group->waiters.push_back(std::move(waiter));
    queue.waiters.pop_front();
  }
  TETRAD_ASSERT(waiting_ >= group->waiters.size());
  TETRAD_ASSERT(waiting_bytes_ >= bytes);
  waiting_ -= group->waiters.size();
  waiting_bytes_ -= bytes;
  return group;
}

void CounterLeader::next(const Key& key) {
  const auto found = queues_.find(key);
  // One group of a partition at a time: two would read the same total.
  if (found == queues_.end() || found->second.is_busy) return;
  if (found->second.waiters.empty()) {
    queues_.erase(found);
    return;
  }
  found->second.is_busy = true;
  const GroupPtr group = take_group(key, found->second);
  TETRAD_ASSERT(!group->waiters.empty());
  // Whoever has stopped waiting gets nothing applied: its coordinator has said that nobody knows.
  // Taken out before anything is read.
  const auto late = std::ranges::stable_partition(group->waiters, [this](const Waiter& waiter) {
    return reactor_.now_us() < waiter.deadline.at_us;
  });
  std::vector<Done> too_late;
  for (Waiter& waiter : late) too_late.push_back(std::move(waiter.done));
  group->waiters.erase(late.begin(), late.end());
  for (Done& done : too_late) done(fail(ErrorCode::kTimedOut, "the increment waited too long"));
  if (group->waiters.empty()) return refuse(group, Error(ErrorCode::kTimedOut, ""));
  for (const Waiter& waiter : group->waiters) {
    // Deltas of one row and column are added; sums wrap around.
    const CounterIncrement& of = waiter.request.increment;
    group->statics.add(of.statics);
    for (const CounterRow& row : of.rows) {
      RowDeltas& deltas = group->rows[row.clustering_key];
      deltas.add(row.deltas);
      if (!row.key_cell.empty()) deltas.key_cell = row.key_cell;
    }
  }
  group->name = name_of(group->store(), group->epoch);
  read_totals(group);
}

/// None of the group is applied, nor will be.
void CounterLeader::refuse(const GroupPtr& group, const Error& error) {
  const std::weak_ptr<char> alive = alive_;
  for (Waiter& waiter : group->waiters) {
    waiter.done(std::unexpected(error));
    if (alive.expired()) return;
  }
  if (const auto found = queues_.find(group->key); found != queues_.end())
    found->second.is_busy = false;
  // Not inside this call: a long queue of what is refused must not be as deep a stack.
  reactor_.post([this, alive, key = group->key] {
    if (!alive.expired()) next(key);
  });
}

void CounterLeader::read_totals(const GroupPtr& group) {
  TETRAD_ASSERT(!group->waiters.empty());
  const CounterIncrement& of = group->first();
  storage::ReadCommand command;
  command.incarnation = of.incarnation;
  command.schema_version = of.schema_version;
  command.position = of.position;
  command.partition_key = of.partition_key;
  for (const auto& [clustering_key, deltas] : group->rows) command.rows.push_back(clustering_key);
  // An empty list of rows would read all of them.
  if (command.rows.empty()) command.rows.emplace_back(kNoRow);
  // All rows or none: a total that is not read would begin at zero.
  command.bytes_limit = storage::ReadCommand::kNoBytesMax;
  command.now_s = clock_.now_us(reactor_) / 1'000'000;
  replicas_.read(
      group->store(), group->epoch, std::move(command), group->deadline,
      [this, alive = std::weak_ptr<char>(alive_), group](Result<storage::ReadResult> rows) {
        if (alive.expired()) return;
        if (rows && !rows->exhausted)
          rows = fail(ErrorCode::kOverloaded, "the counters do not fit in one read");
        if (!rows) {
          // Refused, so nothing of the group is applied; the store may lack what it wrote before.
          if (may_have_lost(rows.error())) ++sequence_;
          return refuse(group, rows.error());
        }
        auto mutation = add_up(*group, *rows);
        if (!mutation) {
          ++sequence_;
          return refuse(group, mutation.error());
        }
        write_totals(group, std::move(*mutation));
      });
}

/// Above all that this life has given, and above what it would be hidden by, unless that is of a
/// client's future.
int64_t CounterLeader::clock_above(uint32_t store, const CounterIncrement& of) {
  int64_t clock_us = std::max(coordinator_.next_timestamp_us(), last_clock_us_ + 1);
  storage::Mutation place;
  place.incarnation = of.incarnation;
  place.position = of.position;
  const auto mark_us = replicas_.mark_not_below(store, place, clock_us);
  const int64_t highest_us = clock_.own_us(reactor_) + kMarkBoundsMax * clock_.skew_max_us();
  // The bucket's mark: a deletion that was acknowledged before is below the new total, which so
  // counts after it.
  if (mark_us && *mark_us < highest_us) clock_us = *mark_us + 1;
  // Equal clocks of a shard would let a replica keep either total.
  TETRAD_ASSERT(clock_us > last_clock_us_);
  last_clock_us_ = clock_us;
  return clock_us;
}

// The new totals of all rows under the group's name, at one clock.
Result<storage::Mutation> CounterLeader::add_up(Group& group, const storage::ReadResult& rows) {
  const CounterIncrement& of = group.first();
  storage::Mutation mutation;
  mutation.incarnation = of.incarnation;
  mutation.position = of.position;
  mutation.partition_key = of.partition_key;
  for (const Waiter& waiter : group.waiters)
    mutation.schema_version =
        std::max(mutation.schema_version, waiter.request.increment.schema_version);
  // By clustering key: rows that do not exist yet are not in the answer.
  std::map<BytesView, BytesView> records;
  BytesView header;
  for (const storage::PartitionData& partition : rows.partitions) {
    header = partition.header;
    for (const storage::RowData& row : partition.rows) records[row.clustering_key] = row.record;
  }
  const int64_t clock_us = clock_above(group.store(), of);
  const auto encode_sums = [&](const RowDeltas& deltas, BytesView before,
                               Bytes& out) -> Result<void> {
    TETRAD_TRY(const auto own, own_shards(before, group.name));
    storage::RowRecord record;
    std::deque<Bytes> totals;
    if (!deltas.key_cell.empty()) {
      storage::Cell& cell = record.cells.emplace_back();
      cell.column_id = storage::kKeyCellColumnId;
      cell.timestamp_us = clock_us;
      cell.value = deltas.key_cell;
    }
    for (const auto& [column_id, delta] : deltas.by_column) {
      const auto shard = own.find(column_id);
      const int64_t total = shard == own.end() ? 0 : shard->second.total;
      storage::Cell& cell = record.cells.emplace_back();
      cell.column_id = column_id;
      cell.timestamp_us = clock_us;
      cell.has_path = true;
      cell.path = group.name;
      cell.value = totals.emplace_back(
          encode_total(static_cast<int64_t>(static_cast<uint64_t>(total) + delta)));
      // Two totals of one clock: a replica could keep either.
      if (shard != own.end() && shard->second.clock_us >= clock_us)
        return fail(ErrorCode::kCorruption, "a counter's clock does not rise");
    }
    if (!record.cells.empty()) storage::encode_row_record(record, out);
    return {};
  };
  TETRAD_TRY_VOID(encode_sums(group.statics, header, mutation.header));
  for (const auto& [clustering_key, deltas] : group.rows) {
    const auto record = records.find(clustering_key);
    storage::RowChange row;
    row.clustering_key = clustering_key;
    TETRAD_TRY_VOID(
        encode_sums(deltas, record == records.end() ? BytesView() : record->second, row.record));
    if (!row.record.empty()) mutation.rows.push_back(std::move(row));
  }
  return mutation;
}

void CounterLeader::write_totals(const GroupPtr& group, storage::Mutation mutation) {
  metrics_.groups.add();
  // Nothing to count: answered without a write, and the next group goes.
  if (mutation.header.empty() && mutation.rows.empty()) {
    for (Waiter& waiter : group->waiters) waiter.done(CounterAnswer{true, 1, 1});
    group->waiters.clear();
    return refuse(group, Error(ErrorCode::kTimedOut, ""));
  }
  auto shared = std::make_shared<storage::Mutation>(std::move(mutation));
  // kOverloaded inside of apply() is a refusal; later it could come of a write that is on its way.
  const auto is_inside = std::make_shared<bool>(true);
  const auto written = [this, alive = std::weak_ptr<char>(alive_), group, shared,
                        is_inside](Result<void> result) {
    if (alive.expired()) return;
    const bool is_not_begun =
        !result && (is_refusal(result.error()) ||
                    (*is_inside && result.error().code == ErrorCode::kOverloaded));
    if (is_not_begun) return refuse(group, result.error());
    if (!result) {
      ++sequence_;  // it may be stored later, or not
      metrics_.unknown.add(group->waiters.size());
      for (Waiter& waiter : group->waiters) waiter.done(CounterAnswer{false, 0, 1});
      group->waiters.clear();
      return refuse(group, result.error());
    }
    tasks_.spawn(spread(this, group, std::move(*shared)));
    if (alive.expired()) return;
    if (const auto found = queues_.find(group->key); found != queues_.end())
      found->second.is_busy = false;
    next(group->key);
  };
  if (TETRAD_MUTANT(counter_group_overlaps)) {
    if (const auto found = queues_.find(group->key); found != queues_.end())
      found->second.is_busy = false;
  }
  replicas_.apply(group->store(), group->epoch, *shared, std::nullopt, group->deadline, written);
  *is_inside = false;
}

Task<void> CounterLeader::spread(CounterLeader* self, GroupPtr group, storage::Mutation mutation) {
  Result<void> outcome;
  if (TETRAD_MUTANT(counter_acked_early)) {
    for (Waiter& waiter : std::exchange(group->waiters, {})) waiter.done(CounterAnswer{true, 1, 1});
  }
  try {
    std::vector<storage::Mutation> mutations;
    mutations.push_back(std::move(mutation));
    WriteOptions options;
    options.level = group->level;
    options.deadline = group->deadline;
    options.write_type = base::WriteType::kCounter;
    options.held = WriteOptions::Held{{self->rpc_.self(), group->store()}, group->epoch};
    Result<void> written = co_await self->coordinator_.write(std::move(mutations), options);
    outcome = std::move(written);
  } catch (const std::exception&) {
    outcome = fail(ErrorCode::kServerError, "the totals of a counter did not go out");
  }
  Result<CounterAnswer> answer = CounterAnswer{true, 1, 1};
  if (!outcome && outcome.error().code == ErrorCode::kStaleSchema) {
    answer = std::unexpected(outcome.error());  // the totals are gone with the table
  } else if (!outcome) {
    const auto* detail = outcome.error().detail
                             ? std::get_if<base::TimeoutDetail>(&*outcome.error().detail)
                             : nullptr;
    answer = CounterAnswer{false, detail == nullptr ? 1 : detail->received,
                           detail == nullptr ? 1 : detail->required};
    self->metrics_.unknown.add(group->waiters.size());
  }
  const std::weak_ptr<char> alive = self->alive_;
  for (Waiter& waiter : group->waiters) {
    waiter.done(answer);
    if (alive.expired()) co_return;
  }
}

}  // namespace tetrad::replication
