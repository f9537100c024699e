// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/swarm/swarm_cluster.h"

#include <algorithm>

#include "replication/meta/placed_in.h"
#include "tests/simulation/cluster/data_clients.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int kStorms = 2;

std::string keyspace_of(size_t number) { return "ks" + std::to_string(number); }

}  // namespace

void SwarmCluster::Figures::add(const Figures& other) {
  acknowledged += other.acknowledged;
  failed += other.failed;
  reads += other.reads;
  simulated_us += other.simulated_us;
  topology.add(other.topology);
}

SwarmCluster::SwarmCluster(uint64_t seed, SwarmProfile profile)
    : profile_(profile),
      random_(seed * 7919 + 1),
      network_random_(seed * 6007 + 5),
      cluster_(seed),
      topology_(seed, profile, cluster_, [this](SimNode& node) { set_up(node); }),
      clocks_(seed * 6661 + 1),
      disks_(seed * 4447 + 1, false) {
  draw_shape(seed);
}

void SwarmCluster::draw_shape(uint64_t seed) {
  base::Random random(seed * 32'452'843 + 9);
  shards_ = 1 + static_cast<uint32_t>(random.below(2));
  stores_ = shards_ * (1 + static_cast<uint32_t>(random.below(2)));
  tiny_ = {.read_keys_max = 2 + random.below(40),
           .repair_page_bytes = 50 + random.below(400),
           .fetch_page_bytes = 50 + random.below(400),
           .sweep_keys_max = 1 + random.below(6),
           .hint_bytes_max = random.below(3) == 0 ? 0 : 100 + random.below(2'000),
           .stream_page_bytes = 50 + random.below(400),
           .hints_at_once = 1 + random.below(3),
           .changes_at_once = 1 + random.below(3),
           .waiting_max = random.below(20),
           .speculative_us = 500 + static_cast<int64_t>(random.below(30'000)),
           .snapshot_every = 3 + random.below(40)};
  if (profile_.has(Trouble::kShort)) operation_us_ = kOperationUs / 10;
  if (profile_.has(Trouble::kCenters)) {
    centers_ = {2 + random.below(4), 1 + random.below(4)};
  } else {
    centers_ = {random.one_in(8) ? 1 + random.below(2) : 3 + random.below(4)};
  }
  const size_t tables = profile_.has(Trouble::kCenters) ? 3 : 1 + random.below(2);
  tables_.resize(tables);
  for (size_t i = 0; i < tables; ++i) {
    tables_[i].id.value.octets[0] = static_cast<uint8_t>(i + 1);
    tables_[i].center = i % centers_.size();
    tables_[i].is_in_all = profile_.has(Trouble::kCenters) && i == 2;
    if (tables_[i].is_in_all) tables_[i].history->spans_centers();
  }
  std::vector<replication::Endpoint> seeds;
  size_t nodes = 0;
  for (const size_t count : centers_) nodes += count;
  for (size_t i = 1; i <= std::min<size_t>(4, nodes); ++i)
    seeds.push_back(replication::make_endpoint("127.0.0." + std::to_string(i), 7000));
  for (size_t center = 0; center < centers_.size(); ++center) {
    for (size_t i = 0; i < centers_[center]; ++i) {
      const size_t rack = profile_.has(Trouble::kRacks) ? i % 2 : cluster_.size();
      topology_.add_node(center, "rack" + std::to_string(rack)).options().seeds = seeds;
    }
  }
  shape_ = fmt::format("nodes {}, {} shards, {} stores, {} tables", fmt::join(centers_, "+"),
                       shards_, stores_, tables);
  if (profile_.has(Trouble::kTiny))
    shape_ += fmt::format(
        ", reads {} keys, repair {} B, fetch {} B, sweep {} keys, hints {} B and {} at once, {} "
        "changes, "
        "streams {} B, {} waiting, speculation {} us, snapshots {}",
        tiny_.read_keys_max, tiny_.repair_page_bytes, tiny_.fetch_page_bytes, tiny_.sweep_keys_max,
        tiny_.hint_bytes_max, tiny_.hints_at_once, tiny_.changes_at_once, tiny_.stream_page_bytes,
        tiny_.waiting_max, tiny_.speculative_us, tiny_.snapshot_every);
}

void SwarmCluster::set_up(SimNode& node) {
  replication::NodeOptions& options = node.options();
  options.store_count = stores_;
  options.shard_count = shards_;
  if (profile_.has(Trouble::kSyncs)) node.sync = storage::CommitLogSync::kGroup;
  node.data_options.recent_fetch.acknowledges_synced = profile_.has(Trouble::kSyncs);
  node.data_options.recent_fetch.write_us = kOperationUs + 200'000;
  node.data_options.recent_fetch.longest_us = kOperationUs + 200'000;
  node.data_options.recent_fetch.page_timeout_us = 500'000;  // messages are lost
  options.moves.balance_period_us = profile_.has(Trouble::kBalance) ? 300'000 : 0;
  options.leaving.replace_after_us = 8 * kSecondUs;
  options.heat.split = profile_.has(Trouble::kHeat);
  options.heat.ru_per_s = 20;
  options.merges.merge = profile_.has(Trouble::kHeat);
  options.merges.age_us = 3 * kSecondUs;
  if (profile_.has(Trouble::kTiny)) set_tiny(node);
  set_purging(node);
  if (!profile_.has(Trouble::kClocks)) return;
  node.clock_skew_max_us = 0;
  node.clock().set_offset_us(static_cast<int64_t>(random_.below(80'000)) - 40'000);
}

void SwarmCluster::set_tiny(SimNode& node) {
  node.read_keys_max = tiny_.read_keys_max;
  node.options().raft_snapshot_every = tiny_.snapshot_every;
  node.options().moves.changes_at_once = tiny_.changes_at_once;
  node.options().moves.stream_page_bytes = tiny_.stream_page_bytes;
  replication::DataPlaneOptions& options = node.data_options;
  options.repair.page_bytes = tiny_.repair_page_bytes;
  options.recent_fetch.page_bytes = tiny_.fetch_page_bytes;
  options.replica.waiting_max = tiny_.waiting_max;
  options.purge.keys_max = tiny_.sweep_keys_max;
  options.hints.bytes_per_replica_max = tiny_.hint_bytes_max;
  options.hint_dispatch.page_hints = tiny_.hints_at_once;
  options.coordinator.speculative_retry_us = tiny_.speculative_us;
}

/// Operations take up to two seconds; clocks differ by less than half of one.
void SwarmCluster::set_purging(SimNode& node) {
  if (!profile_.has(Trouble::kPurges)) return;
  node.clock_skew_max_us = 200'000;
  if (profile_.has(Trouble::kClocks)) node.options().clock_skew_max_us = 400'000;
  replication::DataPlaneOptions& options = node.data_options;
  options.horizon = {400'000, kOperationUs + 200'000};
  options.repair.look_every_us = 200'000;
  options.repair.period_us = kSecondUs;
  options.repair.retry_us = 300'000;
  options.repair.pause_us = 2'000;
  options.purge.look_every_us = 100'000;
  options.purge.period_us = 500'000;
  options.purge.pause_us = 5'000;
}

std::string SwarmCluster::run() {
  if (!cluster_.form(30 * kSecondUs)) return "the cluster does not form";
  if (auto wrong = make_tables(); !wrong.empty()) return wrong;
  for (int storm_number = 0; storm_number < kStorms; ++storm_number) {
    if (auto wrong = storm(40 + static_cast<int>(random_.below(60))); !wrong.empty())
      return "under faults: " + wrong;
    calm();
    if (auto wrong = check_histories(); !wrong.empty()) return "under faults: " + wrong;
    if (auto wrong = check_live(); !wrong.empty()) return "10 s after the last fault: " + wrong;
    if (auto wrong = check_members(); !wrong.empty()) return "10 s after the last fault: " + wrong;
  }
  std::string wrong = check_settled();
  if (wrong.empty()) wrong = check_members();
  if (wrong.empty()) wrong = check_equal();
  if (wrong.empty()) wrong = check_histories();
  if (wrong.empty()) wrong = check_idle();
  return wrong.empty() ? "" : "at the end: " + wrong;
}

std::string SwarmCluster::make_tables() {
  for (size_t i = 0; i < tables_.size(); ++i) {
    const auto tablets = random_.one_in(2) ? static_cast<uint32_t>(1 + random_.below(6)) : 0;
    if (auto wrong = make_table(i, tablets); !wrong.empty()) return wrong;
  }
  cluster_.world().run_for(2 * kSecondUs);
  return "";
}

std::string SwarmCluster::make_table(size_t number, uint32_t tablets) {
  const Table& table = tables_[number];
  replication::SchemaChange change;
  if (profile_.has(Trouble::kCenters) && !table.is_in_all) {
    change.expected = cluster_[0].state()->schema_version;
    change.objects.push_back(
        {replication::placement_key(keyspace_of(number)),
         replication::placement_text({"dc" + std::to_string(table.center + 1)})});
    std::optional<base::MonotonicUs> done;
    cluster_[0].spawn(change_schema(&cluster_[0], std::move(change), &done));
    if (!cluster_.world().run_until([&] { return done.has_value(); }, 10 * kSecondUs))
      return "the keyspace is not made";
    change = {};
  }
  change.expected = cluster_[0].state()->schema_version;
  replication::SchemaChange::NewTable made = table_t();
  made.id = table.id;
  made.keyspace = keyspace_of(number);
  made.max_partition_mb = 1;
  made.initial_tablets = tablets;
  change.new_tables.push_back(made);
  std::optional<base::MonotonicUs> done;
  cluster_[0].spawn(change_schema(&cluster_[0], std::move(change), &done));
  if (!cluster_.world().run_until([&] { return done.has_value(); }, 10 * kSecondUs))
    return "the table is not made";
  return "";
}

std::string SwarmCluster::storm(int steps) {
  const int truncate_at = profile_.has(Trouble::kTruncates)
                              ? static_cast<int>(random_.below(static_cast<uint64_t>(steps)))
                              : -1;
  for (int step = 0; step < steps; ++step) {
    trouble_network();
    topology_.step();
    if (profile_.has(Trouble::kClocks)) clocks_.step(cluster_);
    if (profile_.has(Trouble::kDisks)) disks_.step(cluster_);
    if (step == truncate_at) truncate();
    for (int n = 0; n < 4; ++n) start_operation();
    cluster_.world().run_for(static_cast<int64_t>(random_.below(200'000)));
    for (Table& table : tables_)
      if (table.truncate_begun_us)
        table.history->truncated(*table.truncate_begun_us, table.truncated_us);
    topology_.attend();
    if (step % 8 == 0)
      if (auto wrong = check_members(); !wrong.empty()) return wrong;
    if (auto wrong = check_bounds(); !wrong.empty()) return wrong;
  }
  return "";
}

void SwarmCluster::trouble_network() {
  base::Random& random = network_random_;
  SimNetwork& network = cluster_.network();
  const size_t victim = random.below(cluster_.size());
  const size_t other = random.below(cluster_.size());
  switch (random.below(14)) {
    case 0:
      if (profile_.has(Trouble::kPartitions)) cluster_.isolate(victim);
      return;
    case 1:
      if (profile_.has(Trouble::kOneWay) && other != victim)
        network.cut(cluster_[victim].endpoint(), cluster_[other].endpoint());
      return;
    case 2:
      if (profile_.has(Trouble::kLoss))
        network.options.lost_in_million = static_cast<uint32_t>(random.below(100'000));
      return;
    case 3:
      if (profile_.has(Trouble::kDelays))
        network.options.slow_one_in = static_cast<uint32_t>(2 + random.below(30));
      return;
    case 4:
      if (profile_.has(Trouble::kDuplicates))
        network.options.twice_one_in = static_cast<uint32_t>(2 + random.below(30));
      return;
    case 5:
      if (profile_.has(Trouble::kDeaf)) network.set_deaf(cluster_[victim].endpoint(), true);
      return;
    case 6:
    case 7:
      return network.mend_all();
    case 8:
      return network.hear_all();
    case 9:
      network.options = NetworkOptions();
      return;
    default:
      return;
  }
}

void SwarmCluster::truncate() {
  SimNode* const via = topology_.random_ready_node();
  Table& table = tables_[random_.below(tables_.size())];
  if (via == nullptr || !incarnation_of(*via, table) || table.truncate_begun_us) return;
  table.truncate_begun_us = cluster_.world().now_us();
  replication::SchemaChange change;
  change.expected = via->state()->schema_version;
  change.truncated_tables.push_back(table.id);
  via->spawn(change_schema(via, std::move(change), &table.truncated_us));
}

/// The last fault is over; what the cluster does by itself goes on.
void SwarmCluster::calm() {
  clocks_.set_right(cluster_);
  disks_.heal(cluster_);
  cluster_.network().mend_all();
  cluster_.network().hear_all();
  cluster_.network().options = NetworkOptions();
  topology_.calm();
  for (size_t i = 0; i < cluster_.size(); ++i)
    cluster_.world().run_until([&] { return !cluster_[i].clock().is_frozen(); }, 10 * kSecondUs);
  for (int i = 0; i < 100; ++i) {
    cluster_.world().run_for(100'000);
    topology_.attend();
  }
  for (Table& table : tables_)
    if (table.truncate_begun_us)
      table.history->truncated(*table.truncate_begun_us, table.truncated_us);
}

// ---- clients ----

std::optional<TableIncarnation> SwarmCluster::incarnation_of(SimNode& node, const Table& table) {
  const auto state = node.state();
  const auto found = state->tables.find(table.id);
  if (found == state->tables.end()) return std::nullopt;
  return found->second->incarnation;
}

std::unique_ptr<Operation> SwarmCluster::new_operation(SimNode& via, Table& table,
                                                       ConsistencyLevel level) {
  auto operation = std::make_unique<Operation>();
  operation->level = level;
  operation->within_us = operation_us_;
  operation->incarnation = incarnation_of(via, table).value_or(TableIncarnation{});
  operation->begun_us = cluster_.world().now_us();
  operation->command.now_s = operation->dated_s = now_s(via);
  if (const auto index = topology_.machine_of(via.node().self()))
    operation->center = topology_.machine(*index).center;
  return operation;
}

ConsistencyLevel SwarmCluster::level_of(const Table& table, bool writes) {
  using enum ConsistencyLevel;
  static constexpr ConsistencyLevel kOfOne[] = {kQuorum, kQuorum, kQuorum, kQuorum, kOne, kAll};
  static constexpr ConsistencyLevel kOfSeveral[] = {kQuorum,      kQuorum,     kLocalQuorum,
                                                    kLocalQuorum, kEachQuorum, kAll};
  const uint64_t drawn = random_.below(6);
  if (!table.is_in_all) return kOfOne[drawn];
  if (writes && random_.one_in(8)) return kOne;
  return kOfSeveral[drawn];
}

void SwarmCluster::start_operation() {
  SimNode* const via = topology_.random_ready_node();
  Table& table = tables_[random_.below(tables_.size())];
  if (via == nullptr || !incarnation_of(*via, table)) return;
  const bool writes = random_.below(5) < 3;
  auto operation = new_operation(*via, table, level_of(table, writes));
  History& history = *table.history;
  if (writes) {
    make_write(random_, static_cast<int>(random_.below(kKeys)), ++last_timestamp_, now_s(*via),
               *operation);
    via->spawn(run_write(via, &history.add(std::move(operation))));
  } else {
    make_read(random_, random_.one_in(3), *operation);
    via->spawn(run_read(via, &history.add(std::move(operation)), &history));
  }
}

uint64_t SwarmCluster::trace() {
  return cluster_.world().event_count() * 31 + cluster_.network().delivered();
}

SwarmCluster::Figures SwarmCluster::figures() {
  Figures figures;
  for (const Table& table : tables_) {
    for (const auto& operation : table.history->operations()) {
      if (operation->state != Operation::State::kOk)
        ++figures.failed;
      else
        ++(operation->is_write ? figures.acknowledged : figures.reads);
    }
  }
  figures.simulated_us = cluster_.world().now_us();
  figures.topology = topology_.figures();
  return figures;
}

}  // namespace tetrad::simulation
