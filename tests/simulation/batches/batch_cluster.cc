// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/batches/batch_cluster.h"

#include <algorithm>

#include "partitioner/token.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

using Outcome = LoggedBatch::Outcome;

constexpr int64_t kOperationUs = 2'000'000;
constexpr int kDeafSteps = 5;
constexpr int kGroups = 4;
constexpr int kTables = 2;
/// A deletion comes so much later than the batch that its timestamp is later, too.
constexpr int64_t kDeleteAfterUs = 2'500'000;

int partitions_of(int group) { return 2 + group % 4; }
std::string key_of(int group, int partition) { return fmt::format("g{}p{}", group, partition); }
std::string own_row(uint64_t number) { return fmt::format("b{:06}", number); }
constexpr const char* kLastRow = "last";
/// Three batches that follow each other write it, at nearly the same time, and no other does: whose
/// it is in the end no later batch covers.
constexpr uint64_t kSharers = 3;
std::string shared_row(uint64_t number) { return fmt::format("s{:06}", number / kSharers); }

storage::RowChange value_row(const std::string& clustering, const std::string& value,
                             int64_t stamp_us) {
  storage::RowRecord record;
  record.liveness.timestamp_us = stamp_us;
  storage::Cell cell;
  cell.column_id = 1;
  cell.timestamp_us = stamp_us;
  cell.value = value;
  record.cells.push_back(cell);
  storage::RowChange row;
  row.clustering_key = clustering;
  storage::encode_row_record(record, row.record);
  return row;
}

storage::Mutation mutation_of(const LoggedBatch& batch, int partition) {
  storage::Mutation mutation;
  mutation.incarnation = batch.incarnations[static_cast<size_t>(partition)];
  mutation.partition_key = key_of(batch.group, partition);
  mutation.position = partitioner::position_of(mutation.partition_key);
  return mutation;
}

Outcome outcome_of(const Error& error) {
  if (error.code == ErrorCode::kWriteFailure) return Outcome::kTold;
  if (error.code != ErrorCode::kWriteTimeout) return Outcome::kNothing;
  const auto* detail =
      error.detail == nullptr ? nullptr : std::get_if<base::TimeoutDetail>(&*error.detail);
  if (detail == nullptr) return Outcome::kUnknown;
  return detail->write_type == base::WriteType::kBatch ? Outcome::kTold : Outcome::kUnknown;
}

Task<void> run_batch(SimNode* node, uint32_t shard, LoggedBatch* batch) {
  auto& coordinator = node->data(shard).coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us();
  std::vector<storage::Mutation> mutations;
  const std::string value = own_row(batch->number);
  for (int i = 0; i < partitions_of(batch->group); ++i) {
    storage::Mutation mutation = mutation_of(*batch, i);
    mutation.rows.push_back(value_row(own_row(batch->number), value, stamp_us));
    mutation.rows.push_back(value_row(kLastRow, value, stamp_us));
    mutation.rows.push_back(value_row(shared_row(batch->number), value, stamp_us));
    mutations.push_back(std::move(mutation));
  }
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor(shard).now_us() + kOperationUs};
  options.server_timestamp_us = stamp_us;
  World* const world = &node->world();
  auto result = co_await coordinator.write_logged(std::move(mutations), options);
  batch->outcome = result ? Outcome::kAcknowledged : outcome_of(result.error());
  if (!result) batch->error = result.error().message;
  batch->ended_us = world->now_us();
}

/// Its own rows, not as a batch.
Task<void> run_delete(SimNode* node, LoggedBatch* batch) {
  auto& coordinator = node->data().coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us();
  std::vector<storage::Mutation> mutations;
  for (int i = 0; i < partitions_of(batch->group); ++i) {
    storage::Mutation mutation = mutation_of(*batch, i);
    storage::RowRecord record;
    record.deletion = {stamp_us, coordinator.now_us() / 1'000'000};
    storage::RowChange row;
    row.clustering_key = own_row(batch->number);
    storage::encode_row_record(record, row.record);
    mutation.rows.push_back(std::move(row));
    mutations.push_back(std::move(mutation));
  }
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + kOperationUs};
  options.server_timestamp_us = stamp_us;
  options.dated_us = coordinator.now_us();
  auto result = co_await coordinator.write(std::move(mutations), options);
  batch->is_deleted = result.has_value();
}

Task<void> run_truncate(SimNode* node, std::optional<base::MonotonicUs>* at_us) {
  World* const world = &node->world();
  replication::SchemaChange change;
  change.expected = node->state()->schema_version;
  for (const auto& [id, table] : node->state()->tables)
    if (table->name == "t1") change.truncated_tables.push_back(id);
  const base::Deadline deadline{node->reactor().now_us() + 5'000'000};
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  if (result) *at_us = world->now_us();
}

/// Clustering keys and their values.
struct Rows {
  std::optional<std::map<std::string, std::string>> rows;
  bool done = false;
};

Task<void> run_read(SimNode* node, TableIncarnation incarnation, std::string key, Rows* into) {
  storage::ReadCommand command;
  command.incarnation = incarnation;
  command.partition_key = key;
  command.position = partitioner::position_of(key);
  auto& coordinator = node->data().coordinator();
  command.now_s = coordinator.now_us() / 1'000'000;
  replication::ReadOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + kOperationUs};
  auto result = co_await coordinator.read(std::move(command), options);
  if (result) {
    into->rows.emplace();
    for (const auto& partition : result->partitions) {
      for (const auto& row : partition.rows) {
        storage::RowRecordReader reader;
        storage::Cell cell;
        if (reader.open(row.record) && reader.next(cell))
          (*into->rows)[std::string(row.clustering_key)] = std::string(cell.value);
      }
    }
  }
  into->done = true;
}

using Held = std::map<std::string, std::string>;

/// Of each row the same batch is the newest in all partitions.
std::string check_equal(const std::vector<Held>& held, const std::string& row) {
  for (const Held& rows : held) {
    const auto here = rows.find(row), there = held.front().find(row);
    const std::string value = here == rows.end() ? "none" : here->second;
    const std::string first = there == held.front().end() ? "none" : there->second;
    if (value != first)
      return fmt::format("row {} is of batch {} here and of {} there", row, first, value);
  }
  return "";
}

}  // namespace

BatchCluster::BatchCluster(uint64_t seed)
    : profile_{.grows = seed % 6 == 0,
               .power_cuts = seed % 5 == 1 && seed % 4 != 1,
               .splits = seed % 3 == 0,
               .truncates = seed % 7 == 2,
               .clocks = seed % 4 == 2,
               .purges = seed % 4 == 3,
               .loses_one = seed % 4 == 1,
               .shards = 1 + seed / 2 % 2,
               .nodes = seed % 4 == 1     ? 5
                        : seed % 20 == 8  ? 1
                        : seed % 20 == 14 ? 2
                                          : 3 + seed / 3 % 3},
      random_(seed * 130'363 + 11),
      cluster_(seed) {
  for (size_t i = 0; i < profile_.nodes; ++i) add_node();
}

SimNode& BatchCluster::add_node() {
  const auto shards = static_cast<uint32_t>(profile_.shards);
  SimNode& node = cluster_.add(shards, shards);
  if (profile_.power_cuts) node.sync = storage::CommitLogSync::kGroup;
  replication::BatchOptions& batches = node.options().batches;
  batches.replay_after_us = profile_.purges ? 9'000'000 : 1'500'000 + kOperationUs;
  batches.replay_timeout_us = kOperationUs;
  batches.look_every_us = 200'000;
  if (!profile_.purges) return node;
  node.clock_skew_max_us = 200'000;
  replication::DataPlaneOptions& options = node.data_options;
  options.horizon = {400'000, kOperationUs + 200'000};
  batches.horizon = options.horizon;
  options.repair.look_every_us = 200'000;
  options.repair.period_us = 1'000'000;
  options.repair.retry_us = 300'000;
  options.repair.pause_us = 2'000;
  options.purge.look_every_us = 100'000;
  options.purge.period_us = 500'000;
  options.purge.pause_us = 5'000;
  return node;
}

uint64_t BatchCluster::trace() {
  return cluster_.world().event_count() * 31 + cluster_.network().delivered();
}

void BatchCluster::note_life(SimNode& node) {
  if (!node.is_up()) return;
  replayed_ += node.node().batches().metrics().replayed.value();
  for (uint32_t shard = 0; shard < node.shard_count(); ++shard)
    restored_ += node.data(shard).coordinator_impl().metrics().logged_restored.value();
}

BatchCluster::Counts BatchCluster::counts() {
  Counts out;
  for (const auto& batch : batches_) {
    if (batch->outcome == Outcome::kAcknowledged) ++out.acknowledged;
    if (batch->outcome == Outcome::kTold) ++out.told;
    if (batch->outcome == Outcome::kUnknown) ++out.unknown;
    if (batch->outcome == Outcome::kNothing) ++out.nothing;
  }
  for (size_t i = 0; i < cluster_.size(); ++i) note_life(cluster_[i]);
  out.replayed = replayed_;
  out.restored = restored_;
  return out;
}

std::string BatchCluster::run() {
  if (!cluster_.form(30'000'000)) return "the cluster does not form";
  if (auto wrong = make_tables(); !wrong.empty()) return wrong;
  const int steps = 60 + static_cast<int>(random_.below(40));
  const int truncate_at = profile_.truncates ? static_cast<int>(random_.below(50)) : -1;
  const int lose_at = profile_.loses_one ? 20 + static_cast<int>(random_.below(30)) : -1;
  for (int step = 0; step < steps; ++step) {
    if (random_.one_in(2)) fault();
    if (profile_.splits && random_.one_in(15)) split();
    if (step == truncate_at) truncate();
    if (step == truncate_at + kDeafSteps) cluster_.network().hear_all();
    for (int i = 0; i < 3; ++i) {
      start_batch();
      if (profile_.purges) start_delete();
      if (step == lose_at && i == 1) lose_one();
      cluster_.world().run_for(
          static_cast<int64_t>(random_.below(random_.one_in(2) ? 3'000 : 60'000)));
      if (random_.one_in(12)) end_a_coordinator();
    }
    cluster_.world().run_for(
        static_cast<int64_t>(random_.below(profile_.purges ? 400'000 : 150'000)));
  }
  heal();
  if (auto wrong = wait_for_entries(); !wrong.empty()) return "at the end: " + wrong;
  for (int group = 0; group < kGroups; ++group)
    if (auto wrong = check_group(group); !wrong.empty())
      return fmt::format("group {}: {}", group, wrong);
  return "";
}

std::string BatchCluster::make_tables() {
  replication::SchemaChange change;
  for (int i = 0; i < kTables; ++i) {
    replication::SchemaChange::NewTable table = table_t();
    table.id.value.octets[1] = static_cast<uint8_t>(i);
    table.name = fmt::format("t{}", i);
    change.new_tables.push_back(std::move(table));
  }
  bool created = false;
  cluster_[0].spawn(change_schema_now(&cluster_[0], std::move(change), &created));
  if (!cluster_.world().run_until([&] { return created; }, 10'000'000))
    return "the tables are not made";
  cluster_.world().run_for(500'000);
  return "";
}

std::vector<TableIncarnation> BatchCluster::incarnations(SimNode& node) {
  std::vector<TableIncarnation> out(kTables);
  size_t found = 0;
  for (const auto& [id, table] : node.state()->tables) {
    for (int i = 0; i < kTables; ++i) {
      if (table->name != fmt::format("t{}", i)) continue;
      out[static_cast<size_t>(i)] = table->incarnation;
      ++found;
    }
  }
  if (found != kTables) out.clear();
  return out;
}

SimNode* BatchCluster::random_ready_node(size_t* index) {
  *index = random_.below(cluster_.size());
  SimNode& node = cluster_[*index];
  return node.is_ready() && !node.clock().is_frozen() ? &node : nullptr;
}

// ---- faults ----

/// Whoever waits for the node learns no more.
void BatchCluster::end_life(size_t node, bool power) {
  note_life(cluster_[node]);
  power ? cluster_[node].power_cut() : cluster_[node].kill();
  for (const auto& batch : batches_) {
    if (batch->outcome != Outcome::kPending || batch->node != node) continue;
    batch->outcome = Outcome::kUnknown;
    batch->ended_us = cluster_.world().now_us();
  }
}

/// And another, which comes back, at the same moment.
void BatchCluster::lose_one() {
  if (lost_) return;
  size_t up = 0;
  for (size_t i = 0; i < cluster_.size(); ++i) up += cluster_[i].is_up() ? 1 : 0;
  if (up < cluster_.size()) return;
  lost_ = random_.below(cluster_.size());
  end_life(*lost_, false);
  end_newest_coordinator();
}

/// Of the newest batch that is under way.
void BatchCluster::end_newest_coordinator() {
  for (auto batch = batches_.rbegin(); batch != batches_.rend(); ++batch) {
    if ((*batch)->outcome != Outcome::kPending || (*batch)->node == lost_) continue;
    return end_life((*batch)->node, profile_.power_cuts);
  }
}

/// While its batch may be half written.
void BatchCluster::end_a_coordinator() {
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!cluster_[i].is_up()) return;
  end_newest_coordinator();
}

void BatchCluster::fault() {
  SimNetwork& network = cluster_.network();
  const size_t victim = random_.below(cluster_.size());
  size_t up = 0;
  for (size_t i = 0; i < cluster_.size(); ++i) up += cluster_[i].is_up() ? 1 : 0;
  switch (random_.below(16)) {
    case 0:
    case 1:
      if (up + (lost_ ? 1 : 0) < cluster_.size()) break;
      if (cluster_[victim].is_up()) end_life(victim, profile_.power_cuts);
      break;
    case 2:
    case 3:
    case 4:
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (!cluster_[i].is_up() && lost_ != i) cluster_[i].start();
      break;
    case 5:
      cluster_.isolate(victim);
      break;
    case 6: {
      const size_t other = random_.below(cluster_.size());
      if (other != victim) network.cut(cluster_[victim].endpoint(), cluster_[other].endpoint());
      break;
    }
    case 7:
    case 8:
      network.mend_all();
      break;
    case 9:
      network.options.lost_in_million = static_cast<uint32_t>(random_.below(120'000));
      break;
    case 10:
      network.options.lost_in_million = 0;
      break;
    case 11:
      network.options.slow_one_in = static_cast<uint32_t>(2 + random_.below(12));
      network.options.slow_us = 1 + static_cast<int64_t>(random_.below(3'000'000));
      break;
    case 12:
      network.options.slow_one_in = 0;
      break;
    case 13:
      if (profile_.grows && cluster_.size() < 6) add_node().start();
      break;
    case 14:
      cluster_[victim].clock().freeze(static_cast<int64_t>(random_.below(1'500'000)));
      break;
    default:
      if (profile_.clocks)
        cluster_[victim].clock().set_offset_us(static_cast<int64_t>(random_.below(2'000'000)) -
                                               1'000'000);
  }
}

void BatchCluster::split() {
  size_t index = 0;
  SimNode* const via = random_ready_node(&index);
  if (via == nullptr) return;
  const auto now = incarnations(*via);
  if (now.empty()) return;
  const TableIncarnation incarnation = now[random_.below(kTables)];
  const RingPosition at =
      partitioner::position_of(key_of(static_cast<int>(random_.below(kGroups)), 9));
  const auto* table = via->state()->table(incarnation);
  if (table == nullptr) return;
  if (merge_instead(*via, *table, at)) return;
  split_at(*via, *table, at);
}

void BatchCluster::truncate() {
  size_t index = 0;
  SimNode* const via = random_ready_node(&index);
  if (via == nullptr) return;
  truncated_ = true;
  // Batches of one that does not hear of it begin with the table as it was.
  size_t deaf = 0;
  SimNode* const other = random_ready_node(&deaf);
  if (other != nullptr && deaf != index) cluster_.network().set_deaf(other->endpoint(), true);
  via->spawn(run_truncate(via, &truncated_us_));
}

void BatchCluster::heal() {
  cluster_.network().mend_all();
  cluster_.network().hear_all();
  cluster_.network().options = NetworkOptions();
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!cluster_[i].is_up() && lost_ != i) cluster_[i].start();
  cluster_.world().run_for(8'000'000);
}

// ---- clients ----

void BatchCluster::start_batch() {
  size_t index = 0;
  SimNode* const via = random_ready_node(&index);
  if (via == nullptr) return;
  const auto now = incarnations(*via);
  if (now.empty()) return;
  auto batch = std::make_unique<LoggedBatch>();
  batch->number = batches_.size();
  batch->group = static_cast<int>(batch->number / kSharers % kGroups);
  batch->node = index;
  batch->begun_us = cluster_.world().now_us();
  for (int i = 0; i < partitions_of(batch->group); ++i)
    batch->incarnations.push_back(now[static_cast<size_t>(i % kTables)]);
  const auto shard = static_cast<uint32_t>(random_.below(via->shard_count()));
  batches_.push_back(std::move(batch));
  via->spawn(run_batch(via, shard, batches_.back().get()));
}

void BatchCluster::start_delete() {
  size_t index = 0;
  SimNode* const via = random_ready_node(&index);
  if (via == nullptr) return;
  for (const auto& batch : batches_) {
    if (batch->outcome == Outcome::kPending || batch->is_delete_begun) continue;
    if (batch->ended_us + kDeleteAfterUs > cluster_.world().now_us()) continue;
    if (batch->number % 2 == 0) continue;
    batch->is_delete_begun = true;
    via->spawn(run_delete(via, batch.get()));
    return;
  }
}

// ---- checks ----

std::string BatchCluster::wait_for_entries() {
  const auto gone = [&] {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (lost_ == i) continue;
      if (!cluster_[i].is_ready() || cluster_[i].node().batches().count() != 0) return false;
    }
    return true;
  };
  if (!cluster_.world().run_until(gone, 200'000'000)) {
    std::string text = "entries are left:";
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].is_ready()) text += fmt::format(" {}", cluster_[i].node().batches().count());
    return text;
  }
  cluster_.world().run_for(profile_.purges ? 10'000'000 : 1'000'000);
  for (const auto& batch : batches_)
    if (batch->outcome == Outcome::kPending) return fmt::format("no answer to {}", batch->number);
  return "";
}

std::string BatchCluster::check_group(int group) {
  size_t index = 0;
  SimNode* via = nullptr;
  while (via == nullptr) via = random_ready_node(&index);
  const auto now = incarnations(*via);
  std::vector<Held> held;
  for (int i = 0; i < partitions_of(group); ++i) {
    Rows rows;
    // A store that a power cut has set back fetches first.
    for (int tries = 0; tries < 30 && !rows.rows; ++tries) {
      if (tries != 0) cluster_.world().run_for(1'000'000);
      rows = {};
      via->spawn(run_read(via, now[static_cast<size_t>(i % kTables)], key_of(group, i), &rows));
      if (!cluster_.world().run_until([&] { return rows.done; }, 5'000'000)) return "no answer";
    }
    if (!rows.rows) return "a read fails";
    held.push_back(std::move(*rows.rows));
  }
  for (const auto& batch : batches_) {
    if (batch->group != group) continue;
    const bool must = batch->outcome == Outcome::kAcknowledged || batch->outcome == Outcome::kTold;
    // Its node may not have heard of the TRUNCATE when it began.
    const bool is_after = batch->outcome == Outcome::kAcknowledged && truncated_us_ &&
                          batch->begun_us > *truncated_us_;
    size_t counted = 0, present = 0;
    for (size_t i = 0; i < held.size(); ++i) {
      if (batch->incarnations[i] != now[i % kTables] && !is_after) continue;
      ++counted;
      present += held[i].contains(own_row(batch->number)) ? 1 : 0;
    }
    const std::string text =
        fmt::format("batch {} of node {}, begun {}, outcome {} {}, is on {} of {} partitions",
                    batch->number, batch->node + 1, batch->begun_us,
                    static_cast<int>(batch->outcome), batch->error, present, counted);
    if (batch->is_deleted) {
      if (present != 0) return text + ", and was deleted";
      continue;
    }
    if (batch->is_delete_begun) continue;
    if (present != 0 && present != counted) return text;
    if (must && present != counted) return text;
    if (batch->outcome == Outcome::kNothing && present != 0) return text;
  }
  if (truncated_) return "";
  for (const auto& batch : batches_) {
    if (batch->group != group || batch->number % kSharers != 0) continue;
    if (auto wrong = check_equal(held, shared_row(batch->number)); !wrong.empty()) return wrong;
  }
  if (auto wrong = check_equal(held, kLastRow); !wrong.empty()) return wrong;
  for (const auto& rows : held) {
    const auto last = rows.find(kLastRow);
    const std::string here = last == rows.end() ? "none" : last->second;
    for (const auto& batch : batches_) {
      if (batch->group != group || own_row(batch->number) != here) continue;
      for (const auto& later : batches_)
        if (later->group == group && batch->outcome == Outcome::kAcknowledged &&
            later->outcome == Outcome::kAcknowledged && later->begun_us > batch->ended_us)
          return fmt::format("batch {} hides {}, which began after it", here, later->number);
    }
  }
  return "";
}

}  // namespace tetrad::simulation
