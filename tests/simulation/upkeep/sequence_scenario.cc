// SPDX-License-Identifier: Apache-2.0
// Clients that write the same rows one after another, each write through another coordinator whose
// clock is seconds ahead or behind, with the coordinators' own timestamps. A quorum read then sees
// the last acknowledged write, or one whose outcome its client does not know.
#include <set>

#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kClients = 4;

struct Client {
  std::string key;
  int number = 0;         // of the last write
  int acknowledged = 0;   // the last one
  std::set<int> unknown;  // outcome not known: it may show at any time
  bool busy = false;
  std::string wrong;
};

Task<void> write_next(SimNode* node, TableIncarnation incarnation, Client* client) {
  const int number = ++client->number;
  client->unknown.insert(number);
  auto& coordinator = node->data().coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us();
  std::vector<storage::Mutation> mutations;
  const bool deletes = number % 5 == 0;
  mutations.push_back(row_change(incarnation, client->key, stamp_us,
                                 deletes ? std::nullopt : std::optional(std::to_string(number)),
                                 stamp_us / 1'000'000));
  replication::WriteOptions options;
  options.level = number % 2 == 0 ? ConsistencyLevel::kQuorum : ConsistencyLevel::kOne;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  options.server_timestamp_us = stamp_us;
  auto written = co_await coordinator.write(std::move(mutations), options);
  client->busy = false;
  if (!written) co_return;
  client->acknowledged = number;
  client->unknown.erase(number);
}

Task<void> read_last(SimNode* node, TableIncarnation incarnation, Client* client) {
  RowSeen row;
  co_await read_row(node, incarnation, client->key, ConsistencyLevel::kQuorum, &row);
  client->busy = false;
  if (!row.answered) co_return;
  const auto& value = row.value;
  const int seen = value ? std::stoi(*value) : 0;
  if (value ? seen == client->acknowledged : client->acknowledged % 5 == 0) co_return;
  if (value && client->unknown.contains(seen)) co_return;
  for (const int number : client->unknown)
    if (!value && number % 5 == 0) co_return;
  client->wrong =
      fmt::format("a quorum read of {} saw {} although write {} was acknowledged after it",
                  client->key, seen, client->acknowledged);
}

void fault(SimCluster& cluster, base::Random& random) {
  const size_t victim = random.below(cluster.size());
  switch (random.below(30)) {
    case 0:
      for (size_t i = 0; i < cluster.size(); ++i)
        if (!cluster[i].is_up()) return;
      cluster[victim].kill();
      break;
    case 1:
    case 2:
      for (size_t i = 0; i < cluster.size(); ++i)
        if (!cluster[i].is_up()) cluster[i].start();
      break;
    case 3:
      cluster.network().options.slow_one_in = static_cast<uint32_t>(2 + random.below(20));
      break;
    case 4:
      cluster.network().options.slow_one_in = 0;
      break;
    case 5:
      cluster.isolate(victim);
      break;
    case 6:
    case 7:
      cluster.network().mend_all();
      break;
    default:
      break;
  }
}

}  // namespace

ScenarioResult run_sequence(uint64_t seed) {
  base::Random random(seed * 104729 + 3);
  SimCluster cluster(seed, 2 + seed % 4);
  for (size_t i = 0; i < cluster.size(); ++i) cluster[i].clock_skew_max_us = 4'000'000;
  std::vector<Client> clients(kClients);
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    for (size_t i = 0; i < kClients; ++i) clients[i].key = "key" + std::to_string(i);
    std::vector<base::MonotonicUs> since(kClients, 0);
    for (int step = 0; step < 400; ++step) {
      fault(cluster, random);
      for (size_t i = 0; i < kClients; ++i) {
        Client& client = clients[i];
        if (!client.wrong.empty()) return client.wrong;
        // Its node ended meanwhile: the outcome stays unknown.
        if (client.busy && cluster.world().now_us() - since[i] < 4'000'000) continue;
        SimNode* node = ready_node(cluster, random.below(cluster.size()));
        if (node == nullptr) continue;
        client.busy = true;
        since[i] = cluster.world().now_us();
        if (random.below(3) == 0 && client.number > 0) {
          node->spawn(read_last(node, incarnation, &client));
        } else {
          node->spawn(write_next(node, incarnation, &client));
        }
      }
      cluster.world().run_for(static_cast<int64_t>(random.below(20'000)));
    }
    return "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
