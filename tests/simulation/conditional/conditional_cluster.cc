// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/conditional/conditional_cluster.h"

#include <algorithm>

#include "partitioner/token.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

using Kind = RowOperation::Kind;
using Outcome = RowOperation::Outcome;

constexpr int64_t kOperationUs = ConditionalCluster::kOperationUs;
constexpr int64_t kContentionUs = 1'000'000;
constexpr size_t kOperationsMax = 220;
constexpr size_t kUnknownMax = 9;  // of a row: each doubles what is to be searched

constexpr int64_t kFarUs = int64_t{1'000'000} * 3'600 * 1'000;
constexpr int64_t kFarStepUs = 10'000;  // values are a thousand apart

/// Where the rows are, by their number.
struct Places {
  TableIncarnation incarnation;
  bool together = false;  // in one partition
  Bytes partition_of(int key) const { return ConditionalCluster::key_text(together ? 0 : key); }
  Bytes clustering_of(int key) const { return together ? ConditionalCluster::key_text(key) : ""; }
};

storage::ReadCommand read_of(const Places& places, int key) {
  storage::ReadCommand command;
  command.incarnation = places.incarnation;
  command.partition_key = places.partition_of(key);
  command.position = partitioner::position_of(command.partition_key);
  command.rows = {places.clustering_of(key)};
  return command;
}

/// A row's value; unset: there is none.
RowState row_of(const storage::ReadResult& result, const Places& places, int key) {
  for (const auto& partition : result.partitions) {
    for (const auto& row : partition.rows) {
      if (row.clustering_key != places.clustering_of(key)) continue;
      storage::RowRecordReader reader;
      storage::Cell cell;
      if (reader.open(row.record) && reader.next(cell)) return std::stoll(std::string(cell.value));
    }
  }
  return std::nullopt;
}

/// The row becomes `next`; unset: it is deleted.
storage::RowChange change_of_row(const Places& places, int key, const RowState& next,
                                 replication::ConditionalMoment moment) {
  storage::RowRecord record;
  const std::string text = next ? std::to_string(*next) : "";
  if (next) {
    record.liveness.timestamp_us = moment.timestamp_us;
    storage::Cell cell;
    cell.column_id = 1;
    cell.timestamp_us = moment.timestamp_us;
    cell.value = text;
    record.cells.push_back(cell);
  } else {
    record.deletion = {moment.timestamp_us, moment.now_s()};
  }
  storage::RowChange row;
  row.clustering_key = places.clustering_of(key);
  storage::encode_row_record(record, row.record);
  return row;
}

storage::Mutation change_of(const Places& places, int key, const RowState& next,
                            replication::ConditionalMoment moment) {
  storage::Mutation mutation;
  mutation.incarnation = places.incarnation;
  mutation.partition_key = places.partition_of(key);
  mutation.position = partitioner::position_of(mutation.partition_key);
  mutation.rows.push_back(change_of_row(places, key, next, moment));
  return mutation;
}

/// The row when a certain operation took effect.
RowState row_after(const RowOperation& operation) {
  if (operation.outcome != Outcome::kApplied) return operation.seen;
  if (operation.kind == Kind::kDelete || operation.kind == Kind::kTruncate) return std::nullopt;
  if (operation.kind == Kind::kIncrement) return *operation.seen + 1;
  return operation.value;
}

/// A statement of a RowOperation.
class RowStatement final : public replication::ConditionalStatement {
 public:
  RowStatement(const Places& places, RowOperation& operation)
      : places_(places), operation_(operation) {}
  storage::ReadCommand read_command() const override {
    storage::ReadCommand command = read_of(places_, operation_.key);
    if (operation_.kind == Kind::kBatch) {
      command.rows.push_back(places_.clustering_of(operation_.other_key));
      std::ranges::sort(command.rows);
    }
    return command;
  }
  Task<Result<std::optional<storage::Mutation>>> decide(
      const storage::ReadResult& rows, replication::ConditionalMoment moment) override {
    const RowState row = row_of(rows, places_, operation_.key);
    operation_.seen = row;
    if (operation_.kind == Kind::kBatch)
      operation_.other_seen = row_of(rows, places_, operation_.other_key);
    RowState next;
    bool holds = row.has_value();
    switch (operation_.kind) {
      case Kind::kInsert:
        holds = !row;
        next = operation_.value;
        break;
      case Kind::kCompare:
      case Kind::kBatch:
        holds = row == operation_.expected;
        next = operation_.value;
        break;
      case Kind::kIncrement:
        if (row) next = *row + 1;
        break;
      default:
        break;
    }
    if (!holds) co_return std::optional<storage::Mutation>();
    storage::Mutation change = change_of(places_, operation_.key, next, moment);
    if (operation_.kind == Kind::kBatch) {
      change.rows.push_back(
          change_of_row(places_, operation_.other_key, operation_.other_value, moment));
      std::ranges::sort(change.rows, {}, &storage::RowChange::clustering_key);
    }
    co_return std::optional<storage::Mutation>(std::move(change));
  }

 private:
  const Places places_;
  RowOperation& operation_;
};

/// What a client makes of an error. Only what is told to be applied in no case is nothing.
Outcome outcome_of(const Error& error) {
  if (error.code == ErrorCode::kCasWriteUnknown) return Outcome::kUnknown;
  if (error.code != ErrorCode::kWriteTimeout) return Outcome::kNothing;
  const auto* detail =
      error.detail == nullptr ? nullptr : std::get_if<base::TimeoutDetail>(&*error.detail);
  // A commit that is short of its level is decided.
  return detail != nullptr && detail->write_type == base::WriteType::kSimple ? Outcome::kUnknown
                                                                             : Outcome::kNothing;
}

Task<void> run_statement(SimNode* node, uint32_t shard, Places places, RowOperation* operation,
                         uint64_t* place) {
  RowStatement statement(places, *operation);
  replication::ConditionalOptions options;
  options.deadline = {node->reactor().now_us() + kOperationUs};
  options.contention_deadline = {node->reactor().now_us() + kContentionUs};
  auto result = co_await node->data(shard).coordinator().write_if(statement, options);
  if (result) {
    operation->outcome = *result ? Outcome::kApplied : Outcome::kNotApplied;
  } else {
    operation->outcome = outcome_of(result.error());
  }
  operation->ended = ++*place;
}

Task<void> run_read(SimNode* node, uint32_t shard, Places places, RowOperation* operation,
                    uint64_t* place) {
  replication::ReadOptions options;
  options.level =
      operation->kind == Kind::kSerialRead ? ConsistencyLevel::kSerial : ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + kOperationUs};
  storage::ReadCommand command = read_of(places, operation->key);
  auto& coordinator = node->data(shard).coordinator();
  command.now_s = coordinator.now_us() / 1'000'000;
  auto result = co_await coordinator.read(std::move(command), options);
  if (result) operation->seen = row_of(*result, places, operation->key);
  operation->outcome = result ? Outcome::kRead : Outcome::kNothing;
  operation->ended = ++*place;
}

/// `ahead_us`: its timestamp is a client's; 0: the coordinator's.
Task<void> run_plain_write(SimNode* node, Places places, RowOperation* operation, uint64_t* place,
                           int64_t ahead_us) {
  auto& coordinator = node->data().coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us() + ahead_us;
  std::vector<storage::Mutation> mutations;
  mutations.push_back(change_of(places, operation->key, operation->value, {stamp_us, 0}));
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + kOperationUs};
  if (ahead_us == 0) options.server_timestamp_us = stamp_us;
  auto result = co_await coordinator.write(std::move(mutations), options);
  operation->outcome = result ? Outcome::kApplied : Outcome::kUnknown;
  operation->ended = ++*place;
}

/// What was deleted goes within seconds. Operations take up to two; clocks differ by less than half
/// of one.
void purge_often(SimNode& node) {
  node.clock_skew_max_us = 200'000;
  replication::DataPlaneOptions& options = node.data_options;
  options.horizon = {400'000, kOperationUs + 200'000};
  options.repair.look_every_us = 200'000;
  options.repair.period_us = 1'000'000;
  options.repair.retry_us = 300'000;
  options.repair.pause_us = 2'000;
  options.purge.look_every_us = 100'000;
  options.purge.period_us = 500'000;
  options.purge.pause_us = 5'000;
}

}  // namespace

ConditionalCluster::ConditionalCluster(uint64_t seed)
    : profile_{.grows = seed % 4 == 0,
               .moves = seed % 4 == 2,
               .turns = seed % 3 == 2,  // others duel
               .pauses = seed % 2 == 0,
               .power_cuts = seed % 5 < 3 && seed % 5 != 0,
               .periodic = seed % 5 == 2,
               .splits = seed % 3 == 0,
               .stalls = seed % 3 == 1,
               .plain = seed % 4 == 1,
               .future = seed % 8 == 1,
               .truncates = seed % 11 == 3,
               .purges = seed % 7 == 4,
               .clocks = seed % 13 == 5,
               .together = seed / 3 % 3 != 0,
               .far = seed % 8 == 5,
               .shards = 1 + (seed % 4 == 0 ? seed / 8 : seed / 2) % 2,
               .keys = 1 + static_cast<int>(seed % 3),
               .clients = 3 + seed % 6},
      random_(seed * 104'729 + 7),
      cluster_(seed) {
  const uint64_t nodes = profile_.grows ? 1 : 2 + seed / 3 % 4;
  for (uint64_t i = 0; i < nodes; ++i) add_node();
  may_lack_.resize(kNodesMax);
  clients_.resize(profile_.clients);
}

SimNode& ConditionalCluster::add_node() {
  const auto shards = static_cast<uint32_t>(profile_.shards);
  SimNode& node = cluster_.add(shards, shards);
  if (profile_.power_cuts && !profile_.periodic) node.sync = storage::CommitLogSync::kGroup;
  node.data_options.coordinator.takes_turns = profile_.turns;
  node.data_options.recent_fetch.write_us = kOperationUs + 200'000;
  node.data_options.recent_fetch.longest_us = kOperationUs + 200'000;
  node.data_options.recent_fetch.page_timeout_us = 500'000;  // messages are lost
  if (profile_.purges) purge_often(node);
  return node;
}

uint64_t ConditionalCluster::trace() {
  return cluster_.world().event_count() * 31 + cluster_.network().delivered();
}

ConditionalCluster::Counts ConditionalCluster::counts() const {
  Counts out;
  for (const auto& operation : operations_) {
    if (operation->is_certain()) ++out.certain;
    if (operation->outcome == Outcome::kUnknown) ++out.unknown;
    if (operation->outcome == Outcome::kNothing) ++out.nothing;
  }
  return out;
}

std::string ConditionalCluster::history_text() const {
  std::string text;
  for (int key = 0; key < profile_.keys; ++key)
    for (const RowOperation& operation : operations_of(operations_, key))
      text += fmt::format("row {} {}\n", key, operation.text());
  return text;
}

std::string ConditionalCluster::run() {
  if (!cluster_.form(30'000'000)) return "the cluster does not form";
  if (auto wrong = make_table(); !wrong.empty()) return wrong;
  cluster_.network().watch(
      [this](const replication::Endpoint&, BytesView message) { watch(message); });
  const int steps =
      (profile_.grows || profile_.moves ? 160 : 90) + static_cast<int>(random_.below(60));
  for (int step = 0; step < steps; ++step) {
    if (random_.one_in(2)) fault();
    if (random_.one_in(12)) arm_strike();
    if (profile_.splits && random_.one_in(20)) split();
    if (profile_.moves && random_.one_in(10)) move();
    if (profile_.truncates && random_.one_in(30)) truncate();
    if (profile_.clocks && random_.one_in(10)) step_clock();
    for (int i = 0; i < 4; ++i) {
      start_operations();
      run_for(static_cast<int64_t>(random_.below(20'000)));
    }
    run_for(static_cast<int64_t>(random_.below(100'000)));
  }
  heal();
  if (auto wrong = check_end(); !wrong.empty()) return "at the end: " + wrong;
  return check_history();
}

std::string ConditionalCluster::make_table() {
  bool created = false;
  cluster_[0].spawn(create_table(&cluster_[0], 0, &created));
  if (!cluster_.world().run_until([&] { return created; }, 10'000'000))
    return "the table is not made";
  return "";
}

SimNode* ConditionalCluster::random_ready_node(size_t* index) {
  *index = random_.below(cluster_.size());
  SimNode& node = cluster_[*index];
  if (!node.is_ready() || node.state()->tables.empty()) return nullptr;
  return &node;
}

// ---- clients ----

RowOperation& ConditionalCluster::new_operation(size_t node) {
  auto operation = std::make_unique<RowOperation>();
  operation->node = node;
  operation->begun = next_place();
  operations_.push_back(std::move(operation));
  return *operations_.back();
}

void ConditionalCluster::spawn(SimNode& via, RowOperation& operation) {
  const auto shard = static_cast<uint32_t>(operation.begun % via.shard_count());
  const Places places{via.state()->tables.begin()->second->incarnation, profile_.together};
  if (operation.kind == Kind::kPlain) {
    const bool is_first = profile_.future && operations_.size() == 1;
    int64_t ahead_us = is_first ? 4'000'000 : 0;
    // Of two the later one has the later timestamp, whose clock it may be.
    if (profile_.far) ahead_us = kFarUs + operation.value * kFarStepUs;
    via.spawn(run_plain_write(&via, places, &operation, &place_, ahead_us));
  } else if (operation.is_write()) {
    via.spawn(run_statement(&via, shard, places, &operation, &place_));
  } else {
    via.spawn(run_read(&via, shard, places, &operation, &place_));
  }
}

/// Whether a conditional statement may yet be decided that nobody waits for any more.
bool ConditionalCluster::has_open(int key) const {
  const auto is_settled_by = [&](const RowOperation& unknown) {
    return [&](const auto& later) {
      return later->is_of(key) && later->is_certain() && later->is_serial() &&
             later->begun > unknown.ended;
    };
  };
  return std::ranges::any_of(operations_, [&](const auto& operation) {
    return operation->is_of(key) && operation->outcome == Outcome::kUnknown &&
           operation->is_serial() && std::ranges::none_of(operations_, is_settled_by(*operation));
  });
}

/// Between what a conditional statement reads and what it writes a plain write may come, and is not
/// seen: only one of both kinds at a time.
bool ConditionalCluster::may_begin(Kind kind, int key) const {
  if (kind == Kind::kPlain && has_open(key)) return false;
  return std::ranges::none_of(operations_, [&](const auto& other) {
    if (!other->is_of(key) || other->outcome != Outcome::kPending) return false;
    const bool statement = other->is_write() && other->is_serial();
    if (kind == Kind::kPlain) return statement || other->kind == Kind::kPlain;
    return other->kind == Kind::kPlain && kind < Kind::kPlain;
  });
}

bool ConditionalCluster::operation_room() const {
  return operations_.size() < kOperationsMax * static_cast<size_t>(profile_.keys);
}

size_t ConditionalCluster::unknown_count(int key) const {
  return static_cast<size_t>(std::ranges::count_if(operations_, [&](const auto& operation) {
    return operation->is_of(key) && operation->outcome == Outcome::kUnknown;
  }));
}

void ConditionalCluster::start_operations() {
  if (!operation_room() || cluster_.world().now_us() < quiet_until_us_) return;
  for (RowOperation*& waits : clients_) {
    if (waits != nullptr && waits->outcome == Outcome::kPending) continue;
    if (random_.one_in(3)) continue;
    const int key = static_cast<int>(random_.below(static_cast<uint64_t>(profile_.keys)));
    size_t index = 0;
    SimNode* const via = random_ready_node(&index);
    if (via == nullptr || via->clock().is_frozen()) continue;
    static constexpr Kind kKinds[] = {Kind::kInsert,     Kind::kCompare,    Kind::kCompare,
                                      Kind::kIncrement,  Kind::kIncrement,  Kind::kDelete,
                                      Kind::kSerialRead, Kind::kSerialRead, Kind::kQuorumRead};
    const bool reads_only = unknown_count(key) >= kUnknownMax;
    Kind kind = kKinds[reads_only ? 6 + random_.below(3) : random_.below(9)];
    if (profile_.plain && (!profile_.far || key == 0) && !reads_only &&
        random_.one_in(operations_.size() < 2 ? 1 : 4))
      kind = Kind::kPlain;
    const int other_key = (key + 1) % profile_.keys;
    if (profile_.together && other_key != key && !reads_only && random_.one_in(8) &&
        unknown_count(other_key) < kUnknownMax && may_begin(Kind::kBatch, other_key))
      kind = Kind::kBatch;
    if (!may_begin(kind, key)) continue;
    RowState last;
    for (const RowOperation& operation : operations_of(operations_, key))
      if (operation.is_certain()) last = row_after(operation);
    RowOperation& operation = new_operation(index);
    operation.kind = kind;
    operation.key = key;
    operation.other_key = other_key;
    operation.other_value = (last_value_ += 1000);
    operation.value = (last_value_ += 1000);
    operation.expected = last;
    waits = &operation;
    spawn(*via, operation);
  }
}

// ---- checks ----

/// Everything works again.
std::string ConditionalCluster::check_end() {
  for (const auto& operation : operations_)
    if (operation->outcome == Outcome::kPending) return "no answer to " + operation->text();
  for (int key = 0; key < profile_.keys; ++key) {
    for (const Kind kind : {Kind::kSerialRead, Kind::kInsert, Kind::kIncrement, Kind::kQuorumRead,
                            Kind::kSerialRead}) {
      const size_t index = random_.below(cluster_.size());
      SimNode& via = cluster_[index];
      if (!via.is_ready()) return fmt::format("node {} is not ready", index + 1);
      RowOperation& operation = new_operation(index);
      operation.kind = kind;
      operation.key = key;
      operation.value = (last_value_ += 1000);
      spawn(via, operation);
      cluster_.world().run_until([&] { return operation.outcome != Outcome::kPending; }, 5'000'000);
      if (!operation.is_certain()) return "no success of " + operation.text();
    }
  }
  return "";
}

std::string ConditionalCluster::check_history() const {
  for (int key = 0; key < profile_.keys; ++key) {
    const std::vector<RowOperation> of_row = operations_of(operations_, key);
    for (const bool strict : {false, true})
      if (auto wrong = check_linearizable(of_row, strict); !wrong.empty())
        return fmt::format("row {}: {}", key, wrong);
  }
  return "";
}

}  // namespace tetrad::simulation
