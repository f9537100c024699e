// SPDX-License-Identifier: Apache-2.0
// What a cluster does by itself over time, under faults, seed by seed.
// usage: upkeep_simulation [--seeds A..B] [--scenario NAME] [--verbose] | --mutants [NAME]
// Every twentieth seed runs twice and must take the same steps. With --mutants each known mistake
// is switched on and must be noticed.
#include <cstring>

#include "base/data_mutants.h"
#include "partitioner/token.h"
#include "tests/simulation/support/tables.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {

std::string form_with_table(SimCluster& cluster) {
  if (!cluster.form(30'000'000)) return "the cluster does not form";
  bool created = false;
  cluster[0].spawn(create_table(&cluster[0], 0, &created));
  if (!cluster.world().run_until([&] { return created; }, 10'000'000))
    return "the table is not made";
  return "";
}

uint64_t trace_of(SimCluster& cluster) {
  return cluster.world().event_count() * 31 + cluster.network().delivered();
}

storage::Mutation row_change(TableIncarnation incarnation, const std::string& key,
                             int64_t timestamp_us, const std::optional<std::string>& value,
                             int64_t deletion_time_s) {
  storage::Mutation mutation;
  mutation.incarnation = incarnation;
  mutation.partition_key = key;
  mutation.position = partitioner::position_of(key);
  storage::RowRecord record;
  if (value) {
    record.liveness.timestamp_us = timestamp_us;
    storage::Cell cell;
    cell.column_id = 1;
    cell.timestamp_us = timestamp_us;
    cell.value = *value;
    record.cells.push_back(cell);
  } else {
    record.deletion = {timestamp_us, deletion_time_s};
  }
  storage::RowChange row;
  row.complete = value.has_value();
  storage::encode_row_record(record, row.record);
  mutation.rows.push_back(std::move(row));
  return mutation;
}

storage::ReadCommand row_read(TableIncarnation incarnation, const std::string& key, int64_t now_s) {
  storage::ReadCommand command;
  command.incarnation = incarnation;
  command.partition_key = key;
  command.position = partitioner::position_of(key);
  command.rows = {""};
  command.now_s = now_s;
  return command;
}

Task<Result<void>> try_write(SimNode* node, TableIncarnation incarnation, RowWrite write) {
  auto& coordinator = node->data().coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us();
  std::vector<storage::Mutation> mutations;
  mutations.push_back(
      row_change(incarnation, write.key, stamp_us, write.value, stamp_us / 1'000'000));
  replication::WriteOptions options;
  options.level = write.level;
  options.deadline = {node->reactor().now_us() + write.within_us};
  if (write.is_restamped) options.server_timestamp_us = stamp_us;
  auto written = co_await coordinator.write(std::move(mutations), options);
  co_return written;
}

Task<void> write_row(SimNode* node, TableIncarnation incarnation, RowWrite write,
                     int* acknowledged) {
  auto written = co_await try_write(node, incarnation, std::move(write));
  if (written) ++*acknowledged;
}

Task<void> order_leaving(SimNode* node, HostId host, bool* ordered) {
  auto& meta = node->node().meta_group();
  replication::MetaCommandBody body(
      replication::SetNodeState{host, replication::NodeState::kLeaving});
  const base::Deadline deadline{node->reactor().now_us() + 5'000'000};
  auto done = co_await meta.propose(std::move(body), deadline);
  *ordered = done.has_value();
}

void purge_often(SimNode& node) {
  node.clock_skew_max_us = 200'000;
  replication::DataPlaneOptions& options = node.data_options;
  options.horizon = {400'000, 2'200'000};
  options.repair.look_every_us = 200'000;
  options.repair.period_us = 1'000'000;
  options.repair.retry_us = 300'000;
  options.purge.look_every_us = 100'000;
  options.purge.period_us = 500'000;
}

Task<void> read_row(SimNode* node, TableIncarnation incarnation, std::string key,
                    ConsistencyLevel level, RowSeen* seen) {
  replication::ReadOptions options;
  options.level = level;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  auto command = row_read(incarnation, key, node->reactor().wall_time_us() / 1'000'000);
  auto read = co_await node->data().coordinator().read(std::move(command), options);
  if (!read) co_return;
  seen->answered = true;
  seen->value = value_of(*read);
}

std::optional<std::string> value_of(const storage::ReadResult& result) {
  for (const auto& partition : result.partitions) {
    for (const auto& row : partition.rows) {
      storage::RowRecordReader reader;
      storage::Cell cell;
      if (reader.open(row.record) && reader.next(cell)) return std::string(cell.value);
    }
  }
  return std::nullopt;
}

SimNode* ready_node(SimCluster& cluster, size_t from) {
  for (size_t i = 0; i < cluster.size(); ++i) {
    SimNode& node = cluster[(from + i) % cluster.size()];
    if (node.is_ready()) return &node;
  }
  return nullptr;
}

namespace {

using base::DataMutants;

struct Scenario {
  const char* name;
  ScenarioResult (*run)(uint64_t seed);
};
constexpr Scenario kScenarios[] = {{"sequence", run_sequence},
                                   {"leaving", run_leaving},
                                   {"leaving_beside_dead", run_leaving_beside_dead},
                                   {"election", run_election},
                                   {"repair", run_repair},
                                   {"repair_and_cut", run_repair_and_cut},
                                   {"stale", run_stale},
                                   {"truncate", run_truncate},
                                   {"truncate_and_cut", run_truncate_and_cut},
                                   {"limit", run_limit},
                                   {"divergence", run_divergence},
                                   {"compared", run_compared},
                                   {"balance", run_balance},
                                   {"racks", run_racks},
                                   {"centers", run_centers},
                                   {"heat", run_heat},
                                   {"merge", run_merge},
                                   {"throughput", run_throughput},
                                   {"late", run_late},
                                   {"source", run_source},
                                   {"return", run_return},
                                   {"formats", run_formats},
                                   {"formation", run_formation},
                                   {"hints", run_hints},
                                   {"hung", run_hung},
                                   {"hung_store", run_hung_store},
                                   {"rotten_store", run_rotten_store},
                                   {"stall", run_stall},
                                   {"fence", run_fence},
                                   {"cut", run_cut},
                                   {"ends", run_ends},
                                   {"all", run_all_levels},
                                   {"old_map", run_old_map},
                                   {"deaf", run_deaf},
                                   {"clocks", run_clocks},
                                   {"clock_off", run_clock_off},
                                   {"future", run_future},
                                   {"redate", run_redate},
                                   {"expiry", run_expiry},
                                   {"power", run_power},
                                   {"power_stages", run_power_stages},
                                   {"power_sets", run_power_sets},
                                   {"power_centers", run_power_centers},
                                   {"power_words", run_power_words}};

struct Mutant {
  const char* name;
  bool DataMutants::*flag;
  ScenarioResult (*run)(uint64_t seed);
  bool DataMutants::*also = nullptr;  // what would heal it
  uint64_t first = 1;                 // a seed near which what it breaks happens, if that is rare
};
constexpr Mutant kMutants[] = {
    {"stale_stamp_acked", &DataMutants::stale_stamp_acked, run_sequence},
    {"fill_not_awaited", &DataMutants::fill_not_awaited, run_leaving,
     &DataMutants::settling_skipped},
    {"fill_from_one", &DataMutants::fill_from_one, run_leaving, &DataMutants::settling_skipped},
    {"repair_reads_nothing", &DataMutants::repair_reads_nothing, run_repair},
    {"repair_unsynced", &DataMutants::repair_unsynced, run_repair_and_cut},
    {"late_repair_taken", &DataMutants::late_repair_taken, run_stale},
    {"truncate_not_awaited", &DataMutants::truncate_not_awaited, run_truncate},
    {"truncate_not_synced", &DataMutants::truncate_not_synced, run_truncate_and_cut},
    {"limits_at_replica", &DataMutants::limits_at_replica, run_limit},
    {"settling_skipped", &DataMutants::settling_skipped, run_late},
    {"reads_new_only", &DataMutants::reads_new_only, run_late},
    {"full_reply_uncut", &DataMutants::full_reply_uncut, run_divergence},
    {"merge_uncut", &DataMutants::merge_uncut, run_divergence},
    {"source_not_closed", &DataMutants::source_not_closed, run_source},
    {"cleanup_skipped", &DataMutants::cleanup_skipped, run_return,
     &DataMutants::batch_horizon_past},
    {"first_seed_founds", &DataMutants::first_seed_founds, run_formation},
    {"foreign_is_fatal", &DataMutants::foreign_is_fatal, run_formation},
    {"wanted_id_ignored", &DataMutants::wanted_id_ignored, run_formation},
    {"hint_count_per_remove", &DataMutants::hint_count_per_remove, run_hints},
    {"hint_past_horizon", &DataMutants::hint_past_horizon, run_hints},
    {"hung_leader", &DataMutants::hung_leader, run_hung},
    {"failed_store_live", &DataMutants::failed_store_live, run_hung_store},
    {"racks_forgotten", &DataMutants::racks_forgotten, run_racks},
    {"dead_awaited", &DataMutants::dead_awaited, run_leaving_beside_dead},
    {"local_counts_all", &DataMutants::local_counts_all, run_centers},
    {"heat_at_once", &DataMutants::heat_at_once, run_heat},
    {"heat_of_child_at_once", &DataMutants::heat_of_child_at_once, run_heat},
    {"heat_of_idle_store", &DataMutants::heat_of_idle_store, run_heat},
    {"heat_cut_in_middle", &DataMutants::heat_cut_in_middle, run_heat},
    {"heat_one_cut", &DataMutants::heat_one_cut, run_heat},
    {"merge_unequal_sets", &DataMutants::merge_unequal_sets, run_merge},
    {"merge_lower_horizon", &DataMutants::merge_lower_horizon, run_merge},
    {"merge_higher_horizon", &DataMutants::merge_higher_horizon, run_merge},
    {"merge_epoch_of_left", &DataMutants::merge_epoch_of_left, run_merge},
    {"merge_repairs_left", &DataMutants::merge_repairs_left, run_merge},
    {"merge_layout_sum", &DataMutants::merge_layout_sum, run_merge},
    {"merge_at_once", &DataMutants::merge_at_once, run_merge},
    {"merge_bounces", &DataMutants::merge_bounces, run_merge},
    {"throughput_full_at_split", &DataMutants::throughput_full_at_split, run_throughput},
    {"throughput_ghost_bucket", &DataMutants::throughput_ghost_bucket, run_throughput},
    {"throughput_debt_dropped", &DataMutants::throughput_debt_dropped, run_throughput},
    {"throughput_given_kept", &DataMutants::throughput_given_kept, run_throughput},
    {"throughput_unheard_taken", &DataMutants::throughput_unheard_taken, run_throughput},
    {"file_dropped_alone", &DataMutants::file_dropped_alone, run_rotten_store},
    {"formats_ungated", &DataMutants::formats_ungated, run_formats},
    {"unread_command_skipped", &DataMutants::unread_command_skipped, run_formats},
    {"own_node_no_deadline", &DataMutants::own_node_no_deadline, run_stall},
    {"parked_past_deadline", &DataMutants::parked_past_deadline, run_stall},
    {"fence_at_enqueue", &DataMutants::fence_at_enqueue, run_fence, &DataMutants::drain_skipped},
    {"drain_skipped", &DataMutants::drain_skipped, run_fence},
    {"old_epoch_accepted", &DataMutants::old_epoch_accepted, run_cut},
    {"range_fenced_at_end", &DataMutants::range_fenced_at_end, run_cut},
    {"end_not_compared", &DataMutants::end_not_compared, run_ends},
    {"all_is_w", &DataMutants::all_is_w, run_all_levels},
    {"truncate_old_map", &DataMutants::truncate_old_map, run_old_map},
    {"confirmations_skipped", &DataMutants::confirmations_skipped, run_deaf},
    {"repair_without_member", &DataMutants::repair_without_member, run_clock_off,
     &DataMutants::batch_horizon_past},
    {"quarantine_off", &DataMutants::quarantine_off, run_clock_off},
    {"clock_back_at_start", &DataMutants::clock_back_at_start, run_clock_off},
    {"h_votes", &DataMutants::h_votes, run_clock_off},
    {"horizon_one_clock", &DataMutants::horizon_one_clock, run_clocks, nullptr, 120},
    {"server_stamp_any", &DataMutants::server_stamp_any, run_clocks},
    {"doubtful_stamp_kept", &DataMutants::doubtful_stamp_kept, run_clocks, nullptr, 1400},
    {"hint_dated_late", &DataMutants::hint_dated_late, run_clocks, nullptr, 230},
    {"mark_beyond_silent", &DataMutants::mark_beyond_silent, run_future},
    {"lwt_ballot_pulled", &DataMutants::lwt_ballot_pulled, run_future},
    {"lwt_now_of_ballot", &DataMutants::lwt_now_of_ballot, run_future},
    {"lwt_old_row_above", &DataMutants::lwt_old_row_above, run_future},
    {"redate_skipped", &DataMutants::redate_skipped, run_redate},
    {"filter_raw_wall", &DataMutants::filter_raw_wall, run_expiry},
    {"behind_reads", &DataMutants::behind_reads, run_power_stages},
    {"behind_not_kept", &DataMutants::behind_not_kept, run_power_stages},
    {"behind_from_one", &DataMutants::behind_from_one, run_power_stages},
    {"others_not_asked", &DataMutants::others_not_asked, run_power_centers},
    {"no_second_pass", &DataMutants::no_second_pass, run_power_stages},
    {"marks_not_raised", &DataMutants::marks_not_raised, run_power_stages},
    {"writeback_unsynced", &DataMutants::writeback_unsynced, run_power_stages},
    {"fill_unsynced", &DataMutants::fill_unsynced, run_power_sets},
    {"told_not_compared", &DataMutants::told_not_compared, run_power_words},
    {"start_not_compared", &DataMutants::start_not_compared, run_power_words},
    {"all_cut_alone", &DataMutants::all_cut_alone, run_power_sets},
    {"behind_is_source", &DataMutants::behind_is_source, run_power_sets},
};

int run_all(uint64_t first, uint64_t last, const char* only, bool verbose) {
  uint64_t passed = 0, failed = 0;
  for (const Scenario& scenario : kScenarios) {
    if (only != nullptr && std::strcmp(only, scenario.name) != 0) continue;
    for (uint64_t seed = first; seed <= last; ++seed) {
      ScenarioResult result = scenario.run(seed);
      if (result.wrong.empty() && seed % 20 == 0 && scenario.run(seed).trace != result.trace)
        result.wrong = "the same seed took other steps";
      (result.wrong.empty() ? passed : failed)++;
      if (result.wrong.empty() && !verbose) continue;
      std::printf("%s seed %llu: %s\n", scenario.name, static_cast<unsigned long long>(seed),
                  result.wrong.empty() ? "ok" : result.wrong.c_str());
      std::fflush(stdout);
    }
  }
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

/// `from`, `to`: seeds to look at in place of those that each mutant is known to be caught in; 0: those.
int run_mutants(const char* only, uint64_t from, uint64_t to) {
  int passed = 0, failed = 0;
  for (const Mutant& mutant : kMutants) {
    if (only != nullptr && std::strcmp(only, mutant.name) != 0) continue;
    base::data_mutants = {};
    base::data_mutants.*mutant.flag = true;
    if (mutant.also != nullptr) base::data_mutants.*mutant.also = true;
    uint64_t seed = from != 0 ? from : mutant.first;
    const uint64_t end = from != 0 ? to + 1 : mutant.first + 100;
    std::string wrong;
    for (; seed < end && wrong.empty(); ++seed) wrong = mutant.run(seed).wrong;
    std::printf("%-24s %s\n", mutant.name,
                wrong.empty() ? "NOT CAUGHT"
                              : fmt::format("caught at seed {}: {}", seed - 1, wrong).c_str());
    std::fflush(stdout);
    (wrong.empty() ? failed : passed)++;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tetrad::simulation

int main(int argc, char** argv) {
  uint64_t first = 1, last = 40;
  bool has_seeds = false;
  const char* only = nullptr;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--mutants") == 0)
      return tetrad::simulation::run_mutants(i + 1 < argc ? argv[i + 1] : nullptr,
                                             has_seeds ? first : 0, last);
    if (std::strcmp(argv[i], "--verbose") == 0) {
      verbose = true;
    } else if (std::strcmp(argv[i], "--scenario") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
      unsigned long long a = 0, b = 0;
      if (std::sscanf(argv[++i], "%llu..%llu", &a, &b) != 2) return 2;
      first = a;
      last = b;
      has_seeds = true;
    } else {
      std::fprintf(stderr,
                   "usage: upkeep_simulation [--seeds A..B] [--scenario NAME] [--verbose] | "
                   "[--seeds A..B] --mutants [NAME]\n");
      return 2;
    }
  }
  return tetrad::simulation::run_all(first, last, only, verbose);
}
