// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/views/view_cluster.h"

#include <algorithm>

#include "partitioner/token.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kOperationUs = 2'000'000;
constexpr int kKeys = 4, kRows = 3, kColours = 3;

Bytes key_text(uint64_t key) { return "key" + std::to_string(key); }
Bytes row_text(uint64_t row) { return {static_cast<char>('a' + row)}; }
Bytes colour_text(uint64_t colour) { return "colour" + std::to_string(colour); }

int64_t now_s_of(SimNode& node) { return node.data().coordinator().now_us() / 1'000'000; }

Task<void> write(SimNode* node, storage::Mutation mutation) {
  replication::Coordinator& coordinator =
      node->data(static_cast<uint32_t>(node->reactor().now_us() % node->shard_count()))
          .coordinator();
  std::vector<storage::Mutation> mutations;
  mutations.push_back(std::move(mutation));
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + kOperationUs};
  options.dated_us = coordinator.now_us();

  auto result = co_await coordinator.write(std::move(mutations), options);
  (void)result;
}

Task<void> write_and_count(SimNode* node, storage::Mutation mutation, int* done) {
  co_await write(node, std::move(mutation));
  ++*done;
}

/// All of a table, page by page.
struct WholeTable {
  ShownRows rows;
  std::string wrong;
  bool over = false;
};
Task<void> read_whole(SimNode* node, TableIncarnation table, int64_t now_s, ConsistencyLevel level,
                      WholeTable* out) {
  storage::ReadCommand command;
  command.incarnation = table;
  command.schema_version = {1};
  command.is_range = true;
  command.now_s = now_s;
  while (true) {
    replication::ReadOptions options;
    options.level = level;
    options.deadline = {node->reactor().now_us() + kOperationUs};
    auto result = co_await node->data().coordinator().read(command, options);
    if (!result) {
      out->wrong = result.error().message;
      break;
    }
    add_shown(*result, now_s, out->rows);
    if (result->exhausted) break;
    command.resume_after = result->complete_up_to;
  }
  out->over = true;
}

std::string text_of(const ShownRows& rows) {
  std::string out;
  for (const auto& [place, values] : rows) {
    out += fmt::format(" ({}, {}:", place.first, place.second);
    for (const auto& [column, value] : values) out += fmt::format(" {}={}", column, value);
    out += ")";
  }
  return out.empty() ? " nothing" : out;
}

Bytes encoded(const storage::RowRecord& record) {
  Bytes out;
  storage::encode_row_record(record, out);
  return out;
}

}  // namespace

ViewCluster::Profile ViewCluster::profile_of(uint64_t seed) {
  return {.grows = seed % 6 == 0,
          .late = seed % 3 == 1,
          .truncates = seed % 5 == 2,
          .power_cuts = seed % 7 == 3,
          .purges = seed % 2 == 0,
          .on_rocks = seed % 10 == 5 && seed % 7 != 3,
          .slow_executors = seed % 4 == 1,
          .verifies = seed % 3 == 2,
          .has_condition = seed % 8 >= 5};
}

ViewCluster::ViewCluster(uint64_t seed)
    : profile_(profile_of(seed)),
      random_(seed * 15'485'867 + 11),
      shards_(1 + seed / 3 % 2),
      cluster_(seed) {
  const uint64_t nodes = profile_.grows ? 1 : 2 + seed % 4;
  for (uint64_t i = 0; i < nodes; ++i) add_node();
}

SimNode& ViewCluster::add_node() {
  SimNode& node = cluster_.add(shards_, shards_);
  node.view_makers = view_makers_of;
  if (profile_.power_cuts) node.sync = storage::CommitLogSync::kGroup;
  node.on_rocks = profile_.on_rocks;
  replication::DataPlaneOptions& options = node.data_options;
  options.recent_fetch.write_us = kOperationUs + 200'000;
  options.recent_fetch.longest_us = kOperationUs + 200'000;
  options.recent_fetch.page_timeout_us = 500'000;
  options.views.build_page_bytes = 200;
  if (profile_.slow_executors) {
    options.views.first_after_us = static_cast<int64_t>(random_.below(100'000));
    options.views.next_after_us = 1'000;
  }
  if (!profile_.purges) return node;
  node.clock_skew_max_us = 200'000;
  options.horizon = {400'000, kOperationUs + 200'000};
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

uint64_t ViewCluster::trace() {
  return cluster_.world().event_count() * 31 + cluster_.network().delivered();
}

uint64_t ViewCluster::executed() {
  uint64_t count = 0;
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (cluster_[i].is_up())
      for (uint32_t shard = 0; shard < cluster_[i].shard_count(); ++shard)
        count += cluster_[i].data(shard).views().metrics().executed.value();
  return count;
}

std::string ViewCluster::run() {
  if (!cluster_.form(30'000'000)) return "the cluster does not form";
  if (auto wrong = make_tables(); !wrong.empty()) return wrong;
  if (cluster_.size() == 1 && has_views_)
    if (auto wrong = check_own_writes(); !wrong.empty()) return wrong;
  const int steps = 50 + static_cast<int>(random_.below(50));
  const int truncate_at = profile_.truncates ? static_cast<int>(random_.below(50)) : -1;
  const int views_at = profile_.late ? static_cast<int>(random_.below(30)) : -1;
  for (int step = 0; step < steps; ++step) {
    fault();
    if (step >= views_at && !has_views_ && random_.one_in(3)) create_views();
    if (random_.one_in(8)) split();
    if (step == truncate_at) truncate();
    for (int n = 0; n < 3; ++n) start_write(random_ready_node());
    cluster_.world().run_for(static_cast<int64_t>(random_.below(150'000)));
  }
  heal();
  if (!cluster_.world().run_until([&] { return is_quiet(); }, 60'000'000))
    return "tasks are left a minute after the last fault";
  auto wrong = check_views();
  return wrong.empty() && profile_.verifies ? check_verifier() : wrong;
}

std::string ViewCluster::make_tables() {
  replication::SchemaChange change;
  change.new_tables.push_back(view_table(kBaseTable));
  change.objects.emplace_back(kBaseObject, profile_.late ? kNoViews : views_object());
  if (!profile_.late) {
    change.new_tables.push_back(view_table(kColourView));
    change.new_tables.push_back(view_table(kRowView));
    has_views_ = true;
  }
  bool done = false;
  cluster_[0].spawn(change_schema_now(&cluster_[0], std::move(change), &done));
  if (!cluster_.world().run_until([&] { return done; }, 10'000'000))
    return "the tables are not made";
  return "";
}

const std::string& ViewCluster::views_object() const {
  return profile_.has_condition ? kConditionalViews : kAllViews;
}

void ViewCluster::create_views() {
  SimNode* const via = random_ready_node();
  if (via == nullptr) return;
  if (incarnation_of(*via->state(), kRowView)) {
    has_views_ = true;
    return;
  }
  replication::SchemaChange change;
  change.new_tables.push_back(view_table(kColourView));
  change.new_tables.push_back(view_table(kRowView));
  change.objects.emplace_back(kBaseObject, views_object());
  static bool done;  // nobody looks at it
  via->spawn(change_schema_now(via, std::move(change), &done));
}

SimNode* ViewCluster::random_ready_node() {
  SimNode& node = cluster_[random_.below(cluster_.size())];
  return node.is_ready() ? &node : nullptr;
}

// ---- faults ----

void ViewCluster::fault() {
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
      if (cluster_.size() < (profile_.grows ? 4u : 6u) && random_.one_in(profile_.grows ? 2 : 8))
        add_node().start();
      break;
    default:
      break;
  }
}

void ViewCluster::split() {
  SimNode* const via = random_ready_node();
  if (via == nullptr) return;
  const auto state = via->state();
  const auto number = static_cast<uint8_t>(kBaseTable + random_.below(3));
  const replication::TableInfo* table = state->table(view_table_id(number));
  if (table == nullptr) return;
  const Bytes key = number == kBaseTable    ? key_text(random_.below(kKeys))
                    : number == kColourView ? colour_text(random_.below(kColours))
                                            : row_text(random_.below(kRows));
  const RingPosition at = partitioner::position_of(key);
  if (merge_instead(*via, *table, at)) return;
  split_at(*via, *table, at);
}

void ViewCluster::truncate() {
  SimNode* const via = random_ready_node();
  if (via == nullptr) return;
  replication::SchemaChange change;
  for (const uint8_t number : {kBaseTable, kColourView, kRowView})
    if (incarnation_of(*via->state(), number))
      change.truncated_tables.push_back(view_table_id(number));
  static bool done;  // nobody looks at it
  via->spawn(change_schema_now(via, std::move(change), &done));
}

void ViewCluster::heal() {
  cluster_.network().mend_all();
  cluster_.network().hear_all();
  cluster_.network().options = NetworkOptions();
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!cluster_[i].is_up()) cluster_[i].start();
  cluster_.world().run_for(15'000'000);
  for (int i = 0; i < 50 && !has_views_; ++i) {
    create_views();
    cluster_.world().run_for(500'000);
  }
}

// ---- the writer ----

void ViewCluster::start_write(SimNode* via) {
  if (via == nullptr) return;
  auto mutation = next_change(*via);
  if (mutation) via->spawn(write(via, std::move(*mutation)));
}

std::optional<storage::Mutation> ViewCluster::next_change(SimNode& via) {
  const auto table = incarnation_of(*via.state(), kBaseTable);
  if (!table) return std::nullopt;
  storage::Mutation mutation = random_change(via);
  mutation.incarnation = *table;
  mutation.schema_version = {1};
  ++writes_;
  return mutation;
}

storage::Mutation ViewCluster::random_change(SimNode& via) {
  storage::Mutation m;
  m.partition_key = key_text(random_.below(kKeys));
  m.position = partitioner::position_of(m.partition_key);
  const uint64_t row = random_.below(kRows);
  if (!random_.one_in(10)) ++last_timestamp_;  // else the same once more
  const int64_t timestamp = last_timestamp_, at_s = now_s_of(via);
  const storage::Deletion deletion{timestamp, at_s};
  const uint64_t kind = random_.below(20);
  if (kind == 0) {
    m.header = encoded({{}, deletion, {}});
    return m;
  }
  if (kind == 1) {
    m.range_tombstones.push_back({{row_text(row), "\xFF"}, deletion});
    return m;
  }
  storage::RowRecord record;
  if (kind < 4) {
    record.deletion = deletion;
    m.rows.push_back({row_text(row), encoded(record), false});
    return m;
  }
  const Bytes value = "v" + std::to_string(writes_), colour = colour_text(random_.below(kColours));
  const auto add = [&](uint32_t column, BytesView bytes) {
    storage::Cell& cell = record.cells.emplace_back();
    cell.column_id = column;
    cell.timestamp_us = timestamp;
    if (random_.one_in(6)) {
      cell.kind = storage::CellKind::kTombstone;
      cell.expiry_s = at_s;
      return;
    }
    cell.value = bytes;
    if (!random_.one_in(6)) return;
    cell.ttl_s = random_.one_in(3) ? 1000 : static_cast<int32_t>(1 + random_.below(3));
    cell.expiry_s = at_s + cell.ttl_s;
  };
  if (!random_.one_in(3)) add(kValueColumn, value);
  if (record.cells.empty() || !random_.one_in(3)) add(kColourColumn, colour);
  const bool inserts = random_.one_in(3);
  if (inserts) record.liveness.timestamp_us = timestamp;
  m.rows.push_back({row_text(row), encoded(record), inserts && record.cells.size() == 2});
  return m;
}

// ---- checks ----

bool ViewCluster::is_quiet() {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!cluster_[i].is_ready()) return false;
    for (uint32_t shard = 0; shard < cluster_[i].shard_count(); ++shard)
      if (cluster_[i].data(shard).views().pending() != 0) return false;
  }
  return true;
}

std::string ViewCluster::read_all(SimNode& via, uint8_t table, int64_t now_s, ShownRows& out,
                                  ConsistencyLevel level) {
  const auto incarnation = incarnation_of(*via.state(), table);
  if (!incarnation) return "a table is not there";
  WholeTable whole;
  via.spawn(read_whole(&via, *incarnation, now_s, level, &whole));
  cluster_.world().run_until([&] { return whole.over; }, 10'000'000);
  if (!whole.over) return "a read does not end";
  out = std::move(whole.rows);
  return whole.wrong;
}

std::string ViewCluster::verify(SimNode& via, const char* view, bool mends,
                                replication::ViewVerifier::Progress* found) {
  replication::ViewVerifier& verifier = via.data().view_verifier();
  if (const auto started = verifier.start("ks", view, mends); !started)
    return started.error().message;
  cluster_.world().run_until([&] { return !verifier.progress().running; }, 120'000'000);
  *found = verifier.progress();
  if (found->running) return "a view's comparison does not end";
  return found->failed.empty() ? "" : found->failed.front();
}

void ViewCluster::change_view(SimNode& via, TableIncarnation view, BytesView row, BytesView key,
                              const storage::RowRecord& record) {
  storage::Mutation m;
  m.incarnation = view;
  m.schema_version = {1};
  m.partition_key = row;
  m.position = partitioner::position_of(m.partition_key);
  m.rows.push_back({Bytes(key), encoded(record), false});
  via.spawn(write(&via, std::move(m)));
}

std::string ViewCluster::check_left_out(SimNode& via) {
  const auto view = incarnation_of(*via.state(), kRowView);
  if (!view) return "a table is not there";
  storage::RowRecord added, gone;
  added.liveness.timestamp_us = via.data().coordinator().now_us();
  change_view(via, *view, kLeftOut, "keyless", added);
  cluster_.world().run_for(3'000'000);
  replication::ViewVerifier::Progress found;
  if (auto wrong = verify(via, "r", true, &found); !wrong.empty()) return wrong;
  if (found.extra != 1 || found.mended != 0) return "a row that is left out is not found";
  gone.deletion = {added.liveness.timestamp_us, now_s_of(via)};
  change_view(via, *view, kLeftOut, "keyless", gone);
  cluster_.world().run_for(3'000'000);
  return "";
}

/// A row of a base row that is not there, and a deletion of one that is.
std::string ViewCluster::spoil(SimNode& via) {
  const auto view = incarnation_of(*via.state(), kRowView);
  if (!view) return "a table is not there";
  ShownRows rows;
  if (auto wrong = read_all(via, kRowView, now_s_of(via), rows); !wrong.empty()) return wrong;
  const int64_t timestamp = via.data().coordinator().now_us();
  storage::RowRecord added;
  added.liveness.timestamp_us = timestamp;
  change_view(via, *view, "nobody", "keyless", added);
  storage::RowRecord gone;
  gone.deletion = {timestamp, now_s_of(via)};
  if (!rows.empty())
    change_view(via, *view, rows.begin()->first.first, rows.begin()->first.second, gone);
  cluster_.world().run_for(3'000'000);
  return "";
}

std::string ViewCluster::check_verifier() {
  SimNode& via = cluster_[random_.below(cluster_.size())];
  replication::ViewVerifier::Progress found;
  const auto differ = [&] { return found.missing + found.differing + found.extra; };
  for (const char* view : {"c", "r"}) {
    if (auto wrong = verify(via, view, false, &found); !wrong.empty()) return wrong;
    if (differ() != 0)
      return "a comparison finds that a view differs, which does not: " + found.differences.front();
  }
  if (profile_.has_condition)
    if (auto wrong = check_left_out(via); !wrong.empty()) return wrong;
  if (auto wrong = spoil(via); !wrong.empty()) return wrong;
  if (auto wrong = verify(via, "r", true, &found); !wrong.empty()) return wrong;
  if (found.extra != 1) return "a row too much is not found";
  if (compare_views().empty() && !found.differences.empty() && found.mended == 0)
    return "nothing was mended";
  if (!cluster_.world().run_until([&] { return is_quiet(); }, 60'000'000))
    return "what was to be mended is left";
  return check_views();
}

/// A write that failed may lie on too few members for a quorum read to be sure of it. Views follow
/// once a read or a repair has made these equal: where they differ at first all members are read.
std::string ViewCluster::check_views() {
  auto different = compare_views();
  if (different.empty() || compares_once) return different;
  ++compared_again_;
  SimNode& via = cluster_[random_.below(cluster_.size())];
  ShownRows base;
  if (auto wrong = read_all(via, kBaseTable, now_s_of(via), base, ConsistencyLevel::kAll);
      !wrong.empty())
    return wrong;
  if (!cluster_.world().run_until([&] { return is_quiet(); }, 60'000'000))
    return "tasks are left a minute after the base was read";
  return compare_views();
}

/// Some writes side by side, and when all are acknowledged the views show them.
std::string ViewCluster::check_own_writes() {
  SimNode& via = cluster_[0];
  for (int round = 0; round < 15; ++round) {
    int started = 0, done = 0;
    for (; started < 4; ++started) {
      auto mutation = next_change(via);
      if (!mutation) return "the base is not there";
      via.spawn(write_and_count(&via, std::move(*mutation), &done));
    }
    if (!cluster_.world().run_until([&] { return done == started; }, 4 * kOperationUs))
      return "writes to a single node do not end";
    if (auto wrong = compare_views(); !wrong.empty())
      return "after writes to a single node: " + wrong;
  }
  return "";
}

std::string ViewCluster::compare_views() {
  SimNode& via = cluster_[random_.below(cluster_.size())];
  const int64_t now_s = now_s_of(via);
  ShownRows base;
  if (auto wrong = read_all(via, kBaseTable, now_s, base); !wrong.empty()) return wrong;
  for (const uint8_t view : {kColourView, kRowView}) {
    ShownRows shown;
    if (auto wrong = read_all(via, view, now_s, shown); !wrong.empty()) return wrong;
    const ShownRows expected = shown_by_view(view, profile_.has_condition, base);
    rows_compared_ += expected.size();
    if (shown == expected) continue;
    return fmt::format("view {} shows{}\n  by its query it should show{}", view, text_of(shown),
                       text_of(expected));
  }
  return "";
}

}  // namespace tetrad::simulation
