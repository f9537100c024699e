// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/indexes/index_cluster.h"

#include <algorithm>

#include "partitioner/token.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/tables.h"
#include "tests/support/column_claims.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kOperationUs = 2'000'000;
constexpr int kPagesMax = 12;
const std::string kTableObject = "table/ks/t";

int64_t now_s(SimNode& node) { return node.data().coordinator().now_us() / 1'000'000; }

replication::Coordinator& coordinator_of(SimNode* node, base::MonotonicUs at_us) {
  return node->data(static_cast<uint32_t>(at_us % node->shard_count())).coordinator();
}

Task<void> run_write(SimNode* node, IndexedWrite* write) {
  std::vector<storage::Mutation> mutations;
  mutations.push_back(write->mutation);
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + kOperationUs};
  options.dated_us = node->data().coordinator().now_us();
  World* const world = &node->world();
  auto result = co_await coordinator_of(node, write->begun_us).write(std::move(mutations), options);
  write->state = result ? IndexedWrite::State::kOk : IndexedWrite::State::kFailed;
  write->ended_us = world->now_us();
}

/// Pages; each is one of the history.
Task<void> run_read(SimNode* node, IndexedPage* page, IndexHistory* history,
                    ConsistencyLevel level) {
  World* const world = &node->world();
  for (int i = 0; i < kPagesMax; ++i) {
    replication::ReadOptions options;
    options.level = level;
    options.deadline = {node->reactor().now_us() + kOperationUs};
    auto result = co_await coordinator_of(node, page->begun_us).read(page->command, options);
    page->ended_us = world->now_us();
    if (!result) co_return;
    take_page(*result, *page);
    page->ok = true;
    if (result->exhausted) co_return;
    IndexedPage next;
    next.command = page->command;
    next.first_value = page->first_value;
    next.last_value = page->last_value;
    const auto& before = page->command.resume_after;
    const auto& place = result->complete_up_to;
    uint32_t rows = before && before->clustering_key && before->partition_key == place.partition_key
                        ? page->command.partition_rows_done
                        : 0;
    for (const auto& partition : result->partitions)
      if (partition.partition_key == place.partition_key)
        rows += static_cast<uint32_t>(partition.rows.size());
    next.command.partition_rows_done = place.clustering_key ? rows : 0;
    next.command.resume_after = place;
    next.begun_us = world->now_us();
    page = &history->add(std::move(next));
  }
}

Task<void> change_schema(SimNode* node, replication::SchemaChange change, bool* done) {
  const base::Deadline deadline{node->reactor().now_us() + 10'000'000};
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  if (result && done != nullptr) *done = true;
}

storage::ClaimMakerPtr claims_of(const replication::MetaState& state,
                                 const replication::TableInfo&) {
  const auto text = state.schema_objects.find(kTableObject);
  if (text == state.schema_objects.end() || text->second != "indexed") return nullptr;
  return std::make_shared<tests::ColumnClaims>(
      std::map<uint16_t, uint32_t>{{kRowIndex, kRowColumn}, {kStaticIndex, kStaticValueColumn}});
}

storage::Cell value_cell(uint32_t column, int64_t timestamp, BytesView value) {
  storage::Cell cell;
  cell.column_id = column;
  cell.timestamp_us = timestamp;
  cell.value = value;
  return cell;
}

Bytes encoded(const storage::RowRecord& record) {
  Bytes out;
  storage::encode_row_record(record, out);
  return out;
}

/// What a write of a random kind changes.
void make_write(base::Random& random, int keys, int64_t at_s, IndexedWrite& write) {
  storage::Mutation& m = write.mutation;
  write.key = static_cast<int>(random.below(static_cast<uint64_t>(keys)));
  m.partition_key = index_key_text(write.key);
  m.position = partitioner::position_of(m.partition_key);
  const int row = static_cast<int>(random.below(kIndexRows));
  const int64_t timestamp = write.timestamp;
  const storage::Deletion deletion{timestamp, at_s};
  const auto kind = random.below(20);
  if (kind == 0) {  // the partition
    m.header = encoded({{}, deletion, {}});
    for (int place = 0; place <= kIndexRows; ++place) write.places.insert(place);
    return;
  }
  if (kind == 1) {  // a range
    m.range_tombstones.push_back({{index_row_key(row), "\xFF"}, deletion});
    for (int place = row; place < kIndexRows; ++place) write.places.insert(place);
    return;
  }
  if (kind < 4) {  // a row
    m.rows.push_back({index_row_key(row), encoded({{}, deletion, {}}), false});
    write.places.insert(row);
    return;
  }
  const bool of_static = kind >= 17;
  storage::RowRecord record;
  const std::string value = index_value_text(static_cast<int>(random.below(kIndexValues)));
  storage::Cell cell = value_cell(of_static ? kStaticValueColumn : kRowColumn, timestamp, value);
  if (kind < 6 || kind == 17) {
    cell.kind = storage::CellKind::kTombstone;
    cell.value = {};
    cell.expiry_s = at_s;
  } else {
    write.value = value[1] - '0';
    if (random.one_in(6)) {
      cell.ttl_s = static_cast<int32_t>(1 + random.below(4));
      cell.expiry_s = write.expiry_s = at_s + cell.ttl_s;
    }
  }
  record.cells.push_back(cell);
  const bool inserts = !of_static && write.value && random.one_in(2);
  if (inserts) record.liveness.timestamp_us = timestamp;
  if (of_static) {
    m.header = encoded(record);
    write.places.insert(kStaticPlace);
  } else {
    m.rows.push_back({index_row_key(row), encoded(record), inserts});
    write.places.insert(row);
  }
}

}  // namespace

IndexCluster::Profile IndexCluster::profile_of(uint64_t seed, IndexScenario scenario) {
  if (scenario == IndexScenario::kThreeMembers)
    return {.purges = seed % 2 == 0, .keys = 1, .is_of_three = true};
  return {.grows = seed % 6 == 0,
          .late = seed % 3 == 1,
          .truncates = seed % 5 == 2,
          .power_cuts = seed % 7 == 3,
          .purges = seed % 2 == 0,
          .merges = seed % 4 == 0,
          .on_rocks = seed % 10 == 5 && seed % 7 != 3,
          .short_pages = seed % 4 >= 2};
}

IndexCluster::IndexCluster(uint64_t seed, Scenario scenario)
    : profile_(profile_of(seed, scenario)),
      random_(seed * 15'485'863 + 7),
      shards_(1 + seed / 3 % 2),
      cluster_(seed) {
  const uint64_t nodes = profile_.is_of_three ? 3 : profile_.grows ? 1 : 2 + seed % 4;
  for (uint64_t i = 0; i < nodes; ++i) add_node();
}

SimNode& IndexCluster::add_node() {
  SimNode& node = cluster_.add(shards_, shards_);
  node.claim_makers = claims_of;
  if (profile_.power_cuts) node.sync = storage::CommitLogSync::kGroup;
  node.on_rocks = profile_.on_rocks;
  if (profile_.short_pages) node.read_keys_max = 3;
  // Else what a failed write left on one member is soon on all of them.
  if (profile_.is_of_three) node.data_options.hints.age_max_us = 100'000;
  node.data_options.recent_fetch.write_us = kOperationUs + 200'000;
  node.data_options.recent_fetch.longest_us = kOperationUs + 200'000;
  node.data_options.recent_fetch.page_timeout_us = 500'000;
  replication::IndexOptions& indexes = node.options().indexes;
  indexes.build_page_bytes = 200;
  indexes.build_pause_us = 20'000;
  indexes.sweep_every_us = 300'000;
  indexes.sweep_page_claims = 3;
  indexes.sweep_pause_us = 5'000;
  indexes.horizon = {400'000, kOperationUs + 200'000};
  if (!profile_.purges) return node;
  node.clock_skew_max_us = 200'000;
  replication::DataPlaneOptions& options = node.data_options;
  options.horizon = indexes.horizon;
  options.repair.look_every_us = 200'000;
  options.repair.period_us = 1'000'000;
  options.repair.retry_us = 300'000;
  options.repair.pause_us = 2'000;
  options.purge.look_every_us = 100'000;
  options.purge.period_us = 500'000;
  options.purge.pause_us = 5'000;
  options.purge.keys_max = 4;
  return node;
}

uint64_t IndexCluster::trace() {
  return cluster_.world().event_count() * 31 + cluster_.network().delivered();
}

uint64_t IndexCluster::mismatches() {
  uint64_t count = 0;
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (cluster_[i].is_up())
      for (uint32_t shard = 0; shard < cluster_[i].shard_count(); ++shard)
        count += cluster_[i].data(shard).coordinator_impl().metrics().index_mismatches.value();
  return count;
}

uint64_t IndexCluster::dropped() {
  uint64_t count = 0;
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (cluster_[i].is_up()) count += cluster_[i].node().indexes().metrics().claims_dropped.value();
  return count;
}

std::string IndexCluster::run() {
  if (!cluster_.form(30'000'000)) return "the cluster does not form";
  if (auto wrong = make_table(); !wrong.empty()) return wrong;
  const int steps = 60 + static_cast<int>(random_.below(60));
  const int truncate_at = profile_.truncates ? static_cast<int>(random_.below(50)) : -1;
  const int index_at = profile_.late ? static_cast<int>(random_.below(30)) : -1;
  for (int step = 0; step < steps; ++step) {
    fault();
    if (step >= index_at && !indexed_ && random_.one_in(3)) create_indexes();
    if (random_.one_in(8)) split();
    if (step == truncate_at) truncate();
    if (profile_.is_of_three && random_.one_in(3)) write_to_some();
    for (int n = 0; n < 3; ++n) random_.one_in(2) ? start_write(random_ready_node()) : start_read();
    cluster_.world().run_for(static_cast<int64_t>(random_.below(150'000)));
    if (auto wrong = check_stores(false); !wrong.empty()) return "under faults: " + wrong;
  }
  heal();
  if (auto wrong = check_end(); !wrong.empty()) return "at the end: " + wrong;
  return history_.check();
}

std::string IndexCluster::make_table() {
  replication::SchemaChange change;
  change.new_tables.push_back(table_t());
  change.new_tables.back().max_partition_mb = 1;
  change.objects.emplace_back(kTableObject, profile_.late ? "plain" : "indexed");
  indexed_ = !profile_.late;
  change.expected = cluster_[0].state()->schema_version;
  bool done = false;
  cluster_[0].spawn(change_schema(&cluster_[0], std::move(change), &done));
  if (!cluster_.world().run_until([&] { return done; }, 10'000'000)) return "the table is not made";
  return "";
}

void IndexCluster::create_indexes() {
  SimNode* const via = random_ready_node();
  if (via == nullptr || via->state()->tables.empty()) return;
  replication::SchemaChange change;
  change.expected = via->state()->schema_version;
  change.objects.emplace_back(kTableObject, "indexed");
  via->spawn(change_schema(via, std::move(change), nullptr));
  const auto text = via->state()->schema_objects.find(kTableObject);
  indexed_ = text != via->state()->schema_objects.end() && text->second == "indexed";
}

SimNode* IndexCluster::random_ready_node() {
  SimNode& node = cluster_[random_.below(cluster_.size())];
  return node.is_ready() ? &node : nullptr;
}

std::optional<TableIncarnation> IndexCluster::incarnation(SimNode& node) {
  const auto state = node.state();
  if (state->tables.empty()) return std::nullopt;
  return state->tables.begin()->second->incarnation;
}

// ---- faults ----

void IndexCluster::fault() {
  SimNetwork& network = cluster_.network();
  const size_t victim = random_.below(cluster_.size());
  if (profile_.on_rocks && cluster_[victim].is_up() && random_.one_in(3)) {
    storage::Store& store = cluster_[victim].store(static_cast<uint32_t>(random_.below(shards_)));
    random_.one_in(2) ? store.flush([](Result<void>) {}) : store.compact([](Result<void>) {});
    return;
  }
  size_t up = 0;
  for (size_t i = 0; i < cluster_.size(); ++i) up += cluster_[i].is_up() ? 1 : 0;
  switch (random_.below(16)) {
    case 0:
      if (up != cluster_.size()) break;
      if (profile_.power_cuts) {
        for (size_t i = 0; i < cluster_.size(); ++i) cluster_[i].power_cut();
        for (size_t i = 0; i < cluster_.size(); ++i)
          if (random_.one_in(2)) cluster_[i].start();
      } else {
        cluster_[victim].kill();
      }
      break;
    case 1:
    case 2:
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (!cluster_[i].is_up()) cluster_[i].start();
      break;
    case 3:
      cluster_.isolate(victim);
      break;
    case 4:
      if (const size_t other = random_.below(cluster_.size()); other != victim)
        network.cut(cluster_[victim].endpoint(), cluster_[other].endpoint());
      break;
    case 5:
    case 6:
    case 7:
      network.mend_all();
      break;
    case 8:
      network.options.lost_in_million = static_cast<uint32_t>(random_.below(100'000));
      break;
    case 9:
      network.options.lost_in_million = 0;
      break;
    case 10:
      network.options.slow_one_in = static_cast<uint32_t>(2 + random_.below(30));
      break;
    case 11:
      network.options.slow_one_in = 0;
      break;
    case 12:
    case 13:
      if (profile_.is_of_three) break;
      if (cluster_.size() < (profile_.grows ? 4u : 6u) && random_.one_in(profile_.grows ? 2 : 8))
        add_node().start();
      break;
    default:
      break;
  }
}

void IndexCluster::split() {
  SimNode* const via = random_ready_node();
  if (via == nullptr || via->state()->tables.empty()) return;
  const auto state = via->state();
  const auto& table = *state->tables.begin()->second;
  const RingPosition at =
      partitioner::position_of(index_key_text(static_cast<int>(random_.below(kIndexKeys))));
  if (profile_.merges && merge_instead(*via, table, at)) return;
  split_at(*via, table, at);
}

void IndexCluster::truncate() {
  SimNode* const via = random_ready_node();
  if (via == nullptr || via->state()->tables.empty()) return;
  replication::SchemaChange change;
  change.expected = via->state()->schema_version;
  change.truncated_tables.push_back(via->state()->tables.begin()->first);
  via->spawn(change_schema(via, std::move(change), nullptr));
}

void IndexCluster::heal() {
  cluster_.network().mend_all();
  cluster_.network().hear_all();
  cluster_.network().options = NetworkOptions();
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!cluster_[i].is_up()) cluster_[i].start();
  cluster_.world().run_for(15'000'000);
  for (int i = 0; i < 50 && !indexed_; ++i) {
    create_indexes();
    cluster_.world().run_for(500'000);
  }
}

// ---- clients ----

void IndexCluster::write_to_some() {
  const size_t absent = random_.below(3), alone = (absent + 1 + random_.below(2)) % 3;
  for (const size_t cut_off : {absent, alone}) {
    cluster_.isolate(cut_off);
    start_write(cluster_[alone].is_ready() ? &cluster_[alone] : nullptr);
    cluster_.world().run_for(20'000);
  }
  cluster_.network().mend_all();
  cluster_.world().run_for(static_cast<int64_t>(random_.below(1'000'000)));  // a sweep comes by
  for (int n = 0; n < 6; ++n) {
    start_read();
    cluster_.world().run_for(static_cast<int64_t>(random_.below(10'000)));
  }
}

void IndexCluster::start_write(SimNode* via) {
  if (via == nullptr || !incarnation(*via)) return;
  IndexedWrite write;
  write.mutation.incarnation = *incarnation(*via);
  write.mutation.schema_version = {1};
  write.begun_us = cluster_.world().now_us();
  write.timestamp = ++last_timestamp_;
  make_write(random_, profile_.keys, now_s(*via), write);
  IndexedWrite& added = history_.add(std::move(write));
  via->spawn(run_write(via, &added));
}

void IndexCluster::start_read() {
  SimNode* const via = random_ready_node();
  if (via == nullptr || !incarnation(*via)) return;
  IndexedPage page;
  storage::ReadCommand& command = page.command;
  command.incarnation = *incarnation(*via);
  command.schema_version = {1};
  command.now_s = now_s(*via);
  command.is_range = !random_.one_in(4);
  if (!command.is_range) {
    command.partition_key =
        index_key_text(static_cast<int>(random_.below(static_cast<uint64_t>(profile_.keys))));
    command.position = partitioner::position_of(command.partition_key);
    command.reversed = random_.one_in(3);
  }
  if (!random_.one_in(3)) command.row_limit = static_cast<uint32_t>(1 + random_.below(4));
  page.first_value = static_cast<int>(random_.below(kIndexValues));
  page.last_value = page.first_value;
  if (random_.one_in(2))
    page.last_value +=
        static_cast<int>(random_.below(static_cast<uint64_t>(kIndexValues - page.first_value)));
  storage::IndexBounds bounds;
  bounds.index_id = random_.one_in(4) ? kStaticIndex : kRowIndex;
  bounds.lower = tests::component_of(index_value_text(page.first_value));
  bounds.upper = tests::component_of(index_value_text(page.last_value));
  command.by_index = std::move(bounds);
  page.begun_us = cluster_.world().now_us();
  IndexedPage& added = history_.add(std::move(page));
  const ConsistencyLevel level =
      random_.one_in(6) ? ConsistencyLevel::kAll : ConsistencyLevel::kQuorum;
  via->spawn(run_read(via, &added, &history_, level));
}

// ---- checks ----

std::string IndexCluster::check_stores(bool only_named) {
  if (profile_.on_rocks) return "";  // its reads take time, in which rows change
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!cluster_[i].is_ready()) continue;
    for (uint32_t store = 0; store < shards_; ++store)
      if (auto wrong = check_store(cluster_[i], store, only_named); !wrong.empty())
        return fmt::format("node {} store {}: {}", i + 1, store, wrong);
  }
  return "";
}

std::string IndexCluster::check_store(SimNode& node, uint32_t number, bool only_named) {
  storage::Store& store = node.store(number);
  const auto table = incarnation(node);
  if (!table) return "";
  const int64_t at_s = now_s(node);
  const auto shown_by = [&](storage::ReadCommand command, IndexedPage page, std::string& wrong) {
    std::set<std::pair<int, int>> shown;
    command.incarnation = *table;
    command.is_range = true;
    command.now_s = at_s;
    for (bool all = false; !all;) {
      std::optional<Result<storage::ReadResult>> answer;
      store.read(command, base::kNoDeadline,
                 [&](Result<storage::ReadResult> result) { answer = std::move(result); });
      if (!answer || !*answer) {
        wrong = answer ? answer->error().message : "no answer";
        return shown;
      }
      if (command.by_index && command.by_index->names_only) {
        for (const auto& partition : (*answer)->partitions) {
          const int key = partition.partition_key.back() - '0';
          for (const auto& row : partition.rows) shown.emplace(key, row.clustering_key[0] - 'a');
          if (partition.rows.empty()) shown.emplace(key, kStaticPlace);
        }
      } else {
        page.shown.clear();
        take_page(**answer, page);
        for (const auto& [place, seen] : page.shown) shown.insert(place);
      }
      all = (*answer)->exhausted;
      command.resume_after = (*answer)->complete_up_to;
    }
    return shown;
  };
  for (const uint16_t index : {kRowIndex, kStaticIndex}) {
    if (!store.is_built(*table, index)) continue;
    for (int value = 0; value < kIndexValues; ++value) {
      IndexedPage page;
      page.first_value = page.last_value = value;
      page.command.by_index.emplace();
      page.command.by_index->index_id = index;
      storage::ReadCommand by_index;
      by_index.by_index.emplace();
      by_index.by_index->index_id = index;
      by_index.by_index->lower = tests::component_of(index_value_text(value));
      by_index.by_index->upper = by_index.by_index->lower;
      by_index.by_index->names_only = only_named;
      std::string wrong;
      const auto scanned = shown_by(storage::ReadCommand(), page, wrong);
      auto found = shown_by(by_index, page, wrong);
      if (only_named) {
        std::erase_if(found, [&](const auto& place) {
          return !scanned.contains(place) && history_.expires(place.first, place.second, value);
        });
      }
      if (!wrong.empty()) return wrong;
      if (found != scanned)
        return fmt::format("index {} {} {} places of value {}, a scan has {}", index,
                           only_named ? "names" : "shows", found.size(), value, scanned.size());
    }
  }
  return "";
}

bool IndexCluster::all_built() {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!cluster_[i].is_ready()) return false;
    const auto table = incarnation(cluster_[i]);
    for (uint32_t store = 0; store < shards_; ++store)
      if (!table || !cluster_[i].store(store).is_built(*table, kRowIndex) ||
          !cluster_[i].store(store).is_built(*table, kStaticIndex))
        return false;
  }
  return true;
}

std::string IndexCluster::read_all(SimNode& via, IndexedPage page) {
  IndexedPage& added = history_.add(std::move(page));
  via.spawn(run_read(&via, &added, &history_, ConsistencyLevel::kQuorum));
  cluster_.world().run_until([&] { return added.ended_us != 0; }, 5'000'000);
  return added.ok ? "" : "a read by the index fails";
}

std::string IndexCluster::check_end() {
  if (!cluster_.world().run_until([&] { return all_built(); }, 60'000'000))
    return "not all indexes are built";
  cluster_.world().run_for(3'000'000);
  for (int value = 0; value < kIndexValues; ++value) {
    for (const uint16_t index : {kRowIndex, kStaticIndex}) {
      SimNode& via = cluster_[random_.below(cluster_.size())];
      IndexedPage page;
      page.command.incarnation = *incarnation(via);
      page.command.is_range = true;
      page.command.now_s = now_s(via);
      page.command.by_index.emplace();
      page.command.by_index->index_id = index;
      page.command.by_index->lower = tests::component_of(index_value_text(value));
      page.command.by_index->upper = page.command.by_index->lower;
      page.first_value = page.last_value = value;
      page.begun_us = cluster_.world().now_us();
      if (auto wrong = read_all(via, std::move(page)); !wrong.empty()) return wrong;
    }
  }
  if (auto wrong = check_stores(false); !wrong.empty()) return wrong;
  if (!profile_.purges) return "";
  // Claims that no row bears out are gone in the end: of three members when they were made equal.
  std::string left = "not looked";
  for (int i = 0; i < 40 && !left.empty(); ++i) {
    cluster_.world().run_for(1'000'000);
    left = check_stores(true);
  }
  return left;
}

}  // namespace tetrad::simulation
