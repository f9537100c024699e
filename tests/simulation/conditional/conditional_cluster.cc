// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/conditional/conditional_cluster.h"

#include <algorithm>

#include "partitioner/token.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

using Kind = RowOperation::Kind;
using Outcome = RowOperation::Outcome;

constexpr int64_t kOperationUs = 2'000'000;
constexpr int64_t kContentionUs = 1'000'000;
constexpr size_t kOperationsMax = 220;
constexpr size_t kUnknownMax = 9;  // of a row: each doubles what is to be searched

std::string key_text(int key) { return "row" + std::to_string(key); }

storage::ReadCommand read_of(TableIncarnation incarnation, int key) {
  storage::ReadCommand command;
  command.incarnation = incarnation;
  command.partition_key = key_text(key);
  command.position = partitioner::position_of(command.partition_key);
  command.rows = {""};
  return command;
}

/// The row's value; unset: there is none.
RowState row_of(const storage::ReadResult& result) {
  for (const auto& partition : result.partitions) {
    for (const auto& row : partition.rows) {
      storage::RowRecordReader reader;
      storage::Cell cell;
      if (reader.open(row.record) && reader.next(cell)) return std::stoll(std::string(cell.value));
    }
  }
  return std::nullopt;
}

/// The row becomes `next`; unset: it is deleted.
storage::Mutation change_of(TableIncarnation incarnation, int key, const RowState& next,
                            replication::ConditionalMoment moment) {
  storage::Mutation mutation;
  mutation.incarnation = incarnation;
  mutation.partition_key = key_text(key);
  mutation.position = partitioner::position_of(mutation.partition_key);
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
    record.deletion = {moment.timestamp_us, moment.now_s};
  }
  storage::RowChange row;
  storage::encode_row_record(record, row.record);
  mutation.rows.push_back(std::move(row));
  return mutation;
}

/// The row when a certain operation took effect.
RowState row_after(const RowOperation& operation) {
  if (operation.outcome != Outcome::kApplied) return operation.seen;
  if (operation.kind == Kind::kDelete) return std::nullopt;
  if (operation.kind == Kind::kIncrement) return *operation.seen + 1;
  return operation.value;
}

/// A statement of a RowOperation.
class RowStatement final : public replication::ConditionalStatement {
 public:
  RowStatement(TableIncarnation incarnation, RowOperation& operation)
      : incarnation_(incarnation), operation_(operation) {}
  storage::ReadCommand read_command() const override {
    return read_of(incarnation_, operation_.key);
  }
  Task<Result<std::optional<storage::Mutation>>> decide(
      const storage::ReadResult& rows, replication::ConditionalMoment moment) override {
    const RowState row = row_of(rows);
    operation_.seen = row;
    RowState next;
    bool holds = row.has_value();
    switch (operation_.kind) {
      case Kind::kInsert:
        holds = !row;
        next = operation_.value;
        break;
      case Kind::kCompare:
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
    co_return std::optional<storage::Mutation>(
        change_of(incarnation_, operation_.key, next, moment));
  }

 private:
  const TableIncarnation incarnation_;
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

Task<void> run_statement(SimNode* node, uint32_t shard, TableIncarnation incarnation,
                         RowOperation* operation, uint64_t* place) {
  RowStatement statement(incarnation, *operation);
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

Task<void> run_read(SimNode* node, uint32_t shard, TableIncarnation incarnation,
                    RowOperation* operation, uint64_t* place) {
  replication::ReadOptions options;
  options.level =
      operation->kind == Kind::kSerialRead ? ConsistencyLevel::kSerial : ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + kOperationUs};
  storage::ReadCommand command = read_of(incarnation, operation->key);
  auto& coordinator = node->data(shard).coordinator();
  command.now_s = coordinator.now_us() / 1'000'000;
  auto result = co_await coordinator.read(std::move(command), options);
  if (result) operation->seen = row_of(*result);
  operation->outcome = result ? Outcome::kRead : Outcome::kNothing;
  operation->ended = ++*place;
}

/// `ahead_us`: its timestamp is a client's; 0: the coordinator's.
Task<void> run_plain_write(SimNode* node, TableIncarnation incarnation, RowOperation* operation,
                           uint64_t* place, int64_t ahead_us) {
  auto& coordinator = node->data().coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us() + ahead_us;
  std::vector<storage::Mutation> mutations;
  mutations.push_back(change_of(incarnation, operation->key, operation->value, {stamp_us, 0}));
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + kOperationUs};
  if (ahead_us == 0) options.server_timestamp_us = stamp_us;
  auto result = co_await coordinator.write(std::move(mutations), options);
  operation->outcome = result ? Outcome::kApplied : Outcome::kUnknown;
  operation->ended = ++*place;
}

Task<void> propose(SimNode* node, replication::MetaCommandBody body) {
  const base::Deadline deadline{node->reactor().now_us() + 2'000'000};
  auto result = co_await node->node().meta_group().propose(std::move(body), deadline);
  (void)result;
}

}  // namespace

ConditionalCluster::ConditionalCluster(uint64_t seed)
    : profile_{.grows = seed % 4 == 0,
               .power_cuts = seed % 5 == 1,
               .splits = seed % 3 == 0,
               .stalls = seed % 3 == 1,
               .plain = seed % 4 == 1,
               .future = seed % 8 == 1,
               .shards = 1 + seed / 2 % 2,
               .keys = 1 + static_cast<int>(seed % 3),
               .clients = 3 + seed % 6},
      random_(seed * 104'729 + 7),
      cluster_(seed) {
  const uint64_t nodes = profile_.grows ? 1 : 2 + seed / 3 % 4;
  for (uint64_t i = 0; i < nodes; ++i) add_node();
  clients_.resize(profile_.clients);
}

SimNode& ConditionalCluster::add_node() {
  const auto shards = static_cast<uint32_t>(profile_.shards);
  SimNode& node = cluster_.add(shards, shards);
  if (profile_.power_cuts) node.sync = storage::CommitLogSync::kGroup;
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
    for (const auto& operation : operations_)
      if (operation->key == key) text += fmt::format("row {} {}\n", key, operation->text());
  return text;
}

std::string ConditionalCluster::run() {
  if (!cluster_.form(30'000'000)) return "the cluster does not form";
  if (auto wrong = make_table(); !wrong.empty()) return wrong;
  const int steps = (profile_.grows ? 160 : 90) + static_cast<int>(random_.below(60));
  for (int step = 0; step < steps; ++step) {
    if (random_.one_in(2)) fault();
    if (profile_.splits && random_.one_in(20)) split();
    for (int i = 0; i < 4; ++i) {
      start_operations();
      cluster_.world().run_for(static_cast<int64_t>(random_.below(20'000)));
    }
    cluster_.world().run_for(static_cast<int64_t>(random_.below(100'000)));
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
  incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
  return "";
}

SimNode* ConditionalCluster::random_ready_node(size_t* index) {
  *index = random_.below(cluster_.size());
  SimNode& node = cluster_[*index];
  if (!node.is_ready() || node.state()->table(incarnation_) == nullptr) return nullptr;
  return &node;
}

// ---- faults ----

/// Whoever waits for the node learns no more.
void ConditionalCluster::end_life(size_t node, bool power) {
  power ? cluster_[node].power_cut() : cluster_[node].kill();
  for (const auto& operation : operations_) {
    if (operation->outcome != Outcome::kPending || operation->node != node) continue;
    operation->outcome = operation->is_write() ? Outcome::kUnknown : Outcome::kNothing;
    operation->ended = next_place();
  }
}

void ConditionalCluster::fault() {
  SimNetwork& network = cluster_.network();
  const size_t victim = random_.below(cluster_.size());
  size_t up = 0;
  for (size_t i = 0; i < cluster_.size(); ++i) up += cluster_[i].is_up() ? 1 : 0;
  switch (random_.below(16)) {
    case 0:
      if (up + 1 < cluster_.size()) break;
      if (profile_.power_cuts && random_.one_in(2)) {
        for (size_t i = 0; i < cluster_.size(); ++i)
          if (cluster_[i].is_up() && !random_.one_in(3)) end_life(i, true);
      } else {
        end_life(victim, profile_.power_cuts);
      }
      break;
    case 1:
    case 2:
    case 3:
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (!cluster_[i].is_up()) cluster_[i].start();
      break;
    case 4:
      cluster_.isolate(victim);
      break;
    case 5: {
      const size_t other = random_.below(cluster_.size());
      if (other != victim) network.cut(cluster_[victim].endpoint(), cluster_[other].endpoint());
      break;
    }
    case 6:
    case 7:
      network.mend_all();
      break;
    case 8:
      network.options.lost_in_million = static_cast<uint32_t>(random_.below(150'000));
      break;
    case 9:
      network.options.lost_in_million = 0;
      break;
    case 10:
      network.options.slow_one_in = static_cast<uint32_t>(2 + random_.below(12));
      network.options.slow_us = 1 + static_cast<int64_t>(random_.below(3'000'000));
      break;
    case 11:
      network.options.slow_one_in = 0;
      break;
    case 12:
      if (profile_.grows && cluster_.size() < 4) add_node().start();
      break;
    case 13:
      cluster_[victim].clock().freeze(static_cast<int64_t>(random_.below(1'500'000)));
      break;
    case 14:
      if (profile_.stalls) cluster_[victim].faults(0).parks_writes = true;
      break;
    default:
      for (size_t i = 0; i < cluster_.size(); ++i) cluster_[i].faults(0).heal();
  }
}

void ConditionalCluster::split() {
  size_t index = 0;
  SimNode* const via = random_ready_node(&index);
  if (via == nullptr) return;
  const auto& table = *via->state()->table(incarnation_);
  const RingPosition at =
      partitioner::position_of(key_text(static_cast<int>(random_.below(4))) + "x");
  const partitioner::Tablet& tablet = table.tablets.find(at);
  via->spawn(propose(via, replication::SplitTablet{incarnation_, tablet.id, tablet.range, at}));
}

void ConditionalCluster::heal() {
  cluster_.network().mend_all();
  cluster_.network().options = NetworkOptions();
  for (size_t i = 0; i < cluster_.size(); ++i) {
    cluster_[i].faults(0).heal();
    if (!cluster_[i].is_up()) cluster_[i].start();
  }
  cluster_.world().run_for(10'000'000);
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
  if (operation.kind == Kind::kPlain) {
    const bool is_first = profile_.future && operations_.size() == 1;
    const int64_t ahead_us = is_first ? 4'000'000 : 0;
    via.spawn(run_plain_write(&via, incarnation_, &operation, &place_, ahead_us));
  } else if (operation.is_write()) {
    via.spawn(run_statement(&via, shard, incarnation_, &operation, &place_));
  } else {
    via.spawn(run_read(&via, shard, incarnation_, &operation, &place_));
  }
}

/// Between what a conditional statement reads and what it writes a plain write may come, and is not
/// seen: only one of both kinds at a time.
bool ConditionalCluster::may_begin(Kind kind, int key) const {
  return std::ranges::none_of(operations_, [&](const auto& other) {
    if (other->key != key || other->outcome != Outcome::kPending) return false;
    const bool statement = other->is_write() && other->kind != Kind::kPlain;
    if (kind == Kind::kPlain) return statement || other->kind == Kind::kPlain;
    return other->kind == Kind::kPlain && kind < Kind::kPlain;
  });
}

void ConditionalCluster::start_operations() {
  if (operations_.size() >= kOperationsMax * static_cast<size_t>(profile_.keys)) return;
  for (RowOperation*& waits : clients_) {
    if (waits != nullptr && waits->outcome == Outcome::kPending) continue;
    if (random_.one_in(3)) continue;
    const int key = static_cast<int>(random_.below(static_cast<uint64_t>(profile_.keys)));
    const auto unknown = std::ranges::count_if(operations_, [&](const auto& operation) {
      return operation->key == key && operation->outcome == Outcome::kUnknown;
    });
    size_t index = 0;
    SimNode* const via = random_ready_node(&index);
    if (via == nullptr || via->clock().is_frozen()) continue;
    static constexpr Kind kKinds[] = {Kind::kInsert,     Kind::kCompare,    Kind::kCompare,
                                      Kind::kIncrement,  Kind::kIncrement,  Kind::kDelete,
                                      Kind::kSerialRead, Kind::kSerialRead, Kind::kQuorumRead};
    const bool reads_only = static_cast<size_t>(unknown) >= kUnknownMax;
    Kind kind = kKinds[reads_only ? 6 + random_.below(3) : random_.below(9)];
    if (profile_.plain && !reads_only && random_.one_in(operations_.size() < 2 ? 1 : 4))
      kind = Kind::kPlain;
    if (!may_begin(kind, key)) continue;
    RowState last;
    for (const auto& operation : operations_)
      if (operation->key == key && operation->is_certain()) last = row_after(*operation);
    RowOperation& operation = new_operation(index);
    operation.kind = kind;
    operation.key = key;
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
    std::vector<RowOperation> of_row;
    for (const auto& operation : operations_)
      if (operation->key == key) of_row.push_back(*operation);
    for (const bool strict : {false, true})
      if (auto wrong = check_linearizable(of_row, strict); !wrong.empty())
        return fmt::format("row {}: {}", key, wrong);
  }
  return "";
}

}  // namespace tetrad::simulation
