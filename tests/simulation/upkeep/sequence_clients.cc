// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/upkeep/sequence_clients.h"

namespace tetrad::simulation {

SequenceClients::SequenceClients(SimCluster& cluster, TableIncarnation incarnation, size_t count)
    : cluster_(cluster), incarnation_(incarnation), clients_(count) {
  for (size_t i = 0; i < count; ++i) clients_[i].key = "key" + std::to_string(i);
}

Task<void> SequenceClients::write_next(SequenceClients* self, SimNode* node,
                                       SequenceClient* client) {
  const int number = ++client->number;
  const base::MonotonicUs since_us = client->since_us;
  client->unknown.insert(number);
  auto& coordinator = node->data().coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us();
  const int64_t now_us = coordinator.now_us();
  std::vector<storage::Mutation> mutations;
  const bool deletes = number % 5 == 0;
  mutations.push_back(row_change(self->incarnation_, client->key, stamp_us,
                                 deletes ? std::nullopt : std::optional(std::to_string(number)),
                                 now_us / 1'000'000));
  replication::WriteOptions options;
  options.level = number % 2 == 0 ? ConsistencyLevel::kQuorum : ConsistencyLevel::kOne;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  options.server_timestamp_us = stamp_us;
  options.dated_us = now_us;
  std::vector<std::string> warnings;
  options.warnings = &warnings;
  auto written = co_await coordinator.write(std::move(mutations), options);
  if (client->since_us != since_us) co_return;  // its client has gone on
  client->busy = false;
  if (!written) co_return;
  // Nobody writes with timestamps of the future here.
  if (!warnings.empty()) client->wrong = client->key + ": " + warnings.front();
  ++self->acknowledged_;
  client->acknowledged = number;
  client->unknown.erase(number);
}

Task<void> SequenceClients::read_last(SequenceClients* self, SimNode* node,
                                      SequenceClient* client) {
  RowSeen row;
  const base::MonotonicUs since_us = client->since_us;
  co_await read_row(node, self->incarnation_, client->key, ConsistencyLevel::kQuorum, &row);
  if (client->since_us != since_us) co_return;
  client->busy = false;
  if (!row.answered) co_return;
  ++self->answered_;
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

std::string SequenceClients::wrong() const {
  for (const SequenceClient& client : clients_)
    if (!client.wrong.empty()) return client.wrong;
  return "";
}

std::string SequenceClients::step(base::Random& random) {
  for (SequenceClient& client : clients_) {
    if (!client.wrong.empty()) return client.wrong;
    const base::MonotonicUs now_us = cluster_.world().now_us();
    // Its node ended meanwhile: the outcome stays unknown.
    if (client.busy && now_us - client.since_us < 4'000'000) continue;
    SimNode* node = ready_node(cluster_, random.below(cluster_.size()));
    if (node == nullptr || node->clock().is_frozen()) continue;
    client.busy = true;
    client.since_us = now_us;
    if (random.below(3) == 0 && client.number > 0) {
      node->spawn(read_last(this, node, &client));
    } else {
      node->spawn(write_next(this, node, &client));
    }
  }
  return "";
}

bool SequenceClients::read_all(SimNode* node) {
  answered_ = 0;
  for (SequenceClient& client : clients_) node->spawn(read_last(this, node, &client));
  cluster_.world().run_for(3'000'000);
  return answered_ == static_cast<int>(clients_.size());
}

}  // namespace tetrad::simulation
