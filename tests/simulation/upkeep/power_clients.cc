// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/upkeep/power_clients.h"

#include <algorithm>

namespace tetrad::simulation {

std::string power_key(size_t index) { return "key" + std::to_string(index); }

Task<Result<void>> stamped_write(SimNode* node, TableIncarnation incarnation, RowWrite write) {
  auto& coordinator = node->data().coordinator();
  const int64_t stamp_us = coordinator.next_timestamp_us();
  std::vector<storage::Mutation> mutations;
  mutations.push_back(
      row_change(incarnation, write.key, stamp_us, write.value, stamp_us / 1'000'000));
  replication::WriteOptions options;
  options.level = write.level;
  options.deadline = {node->reactor().now_us() + write.within_us};
  options.server_timestamp_us = stamp_us;
  auto written = co_await coordinator.write(std::move(mutations), options);
  co_return written;
}

void PowerClients::write(size_t key, SimNode& via, bool deletes) {
  Key& one = keys_.at(key);
  if (one.writing || via.state()->table(incarnation_) == nullptr) return;
  one.writing = true;
  const int64_t number = ++one.last;
  if (deletes) one.deletes.insert(number);
  via.spawn(run_write(&via, key, number, deletes));
  // Whoever dies with a write under way says nothing any more.
  cluster_.world().schedule(cluster_.world().now_us() + 3'000'000, [this, key, number] {
    if (keys_[key].last == number) keys_[key].writing = false;
  });
}

Task<void> PowerClients::run_write(SimNode* via, size_t index, int64_t number, bool deletes) {
  RowWrite write{.key = power_key(index), .value = std::to_string(number)};
  if (deletes) write.value.reset();
  auto written = co_await stamped_write(via, incarnation_, std::move(write));
  Key& key = keys_[index];
  key.writing = false;
  if (!written) co_return;
  ++acknowledged_;
  key.least = std::max(key.least, number);
}

void PowerClients::read(size_t key, SimNode& via) {
  if (via.state()->table(incarnation_) != nullptr) via.spawn(run_read(&via, key, nullptr));
}

Task<void> PowerClients::run_read(SimNode* via, size_t index, bool* answered) {
  const int64_t least = keys_[index].least;
  RowSeen row;
  co_await read_row(via, incarnation_, power_key(index), ConsistencyLevel::kQuorum, &row);
  if (!row.answered) co_return;
  ++reads_answered_;
  if (answered != nullptr) *answered = true;
  judge(index, least, row.value);
}

void PowerClients::judge(size_t index, int64_t least, const std::optional<std::string>& seen) {
  Key& key = keys_[index];
  if (seen) {
    const int64_t number = std::stoll(*seen);
    if (number < least)
      wrong_ = fmt::format("{} is {} although {} was acknowledged, or read, before",
                           power_key(index), number, least);
    if (key.deletes.contains(number))
      wrong_ = fmt::format("{} is {}, which nobody wrote", power_key(index), number);
    key.least = std::max(key.least, number);
    return;
  }
  const auto deleted = key.deletes.lower_bound(least);
  if (least != 0 && deleted == key.deletes.end())
    wrong_ = fmt::format(
        "{} is gone although {} was acknowledged, or read, before, and nobody has "
        "deleted it since",
        power_key(index), least);
  else if (least != 0)
    key.least = std::max(key.least, *deleted);
}

std::string PowerClients::read_all(SimNode& via, int64_t at_most_us) {
  for (size_t i = 0; i < keys_.size(); ++i) {
    bool answered = false;
    const base::MonotonicUs until_us = cluster_.world().now_us() + at_most_us;
    while (!answered && cluster_.world().now_us() < until_us) {
      via.spawn(run_read(&via, i, &answered));
      cluster_.world().run_until([&] { return answered; }, 2'500'000);
    }
    if (!wrong_.empty()) return wrong_;
    if (!answered) return fmt::format("{} is not read", power_key(i));
  }
  return "";
}

namespace {

Task<void> write_stamped(SimNode* node, TableIncarnation incarnation, RowWrite write,
                         int* acknowledged) {
  auto written = co_await stamped_write(node, incarnation, std::move(write));
  if (written) ++*acknowledged;
}

}  // namespace

std::string PowerSteps::wait_until_grown(size_t members) {
  incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
  const auto grown = [&] {
    for (const auto& tablet : cluster_[0].state()->table(incarnation_)->tablets.tablets())
      if (tablet.stage != partitioner::TabletStage::kNormal || tablet.replicas.size() != members)
        return false;
    return true;
  };
  return cluster_.world().run_until(grown, 30'000'000) ? "" : "the tablets do not grow";
}

void PowerSteps::write(SimNode& via, RowWrite write, int* count) {
  via.spawn(write_stamped(&via, incarnation_, std::move(write), count));
}

std::string PowerSteps::must_acknowledge(SimNode& via, std::string value) {
  int count = 0;
  write(via, {.key = "k", .value = std::move(value)}, &count);
  return cluster_.world().run_until([&] { return count != 0; }, 3'000'000) ? "" : "a write fails";
}

std::string PowerSteps::must_see(SimNode& via, const std::string& wanted, const char* when) {
  for (int i = 0; i < 10; ++i) {
    RowSeen row;
    via.spawn(read_row(&via, incarnation_, "k", ConsistencyLevel::kQuorum, &row));
    cluster_.world().run_until([&] { return row.answered; }, 2'500'000);
    if (!row.answered) continue;
    return row.value == wanted ? ""
                               : fmt::format("{}: {} is read, {} was answered before", when,
                                             row.value.value_or("nothing"), wanted);
  }
  return fmt::format("{}: a read is not answered", when);
}

std::string PowerSteps::wait_until_complete(const std::vector<SimNode*>& nodes,
                                            const std::vector<SimNode*>& readers,
                                            const std::string& wanted) {
  const base::MonotonicUs until_us = cluster_.world().now_us() + 30'000'000;
  const auto complete = [&] {
    return std::all_of(nodes.begin(), nodes.end(), [](SimNode* node) {
      return node->is_up() && node->is_ready() && !node->is_behind();
    });
  };
  while (!complete()) {
    if (cluster_.world().now_us() > until_us) return "what was lost is not fetched";
    cluster_.world().run_for(20'000);
    for (SimNode* via : readers) {
      if (!via->is_ready()) continue;
      RowSeen row;
      via->spawn(read_row(via, incarnation_, "k", ConsistencyLevel::kQuorum, &row));
      cluster_.world().run_until([&] { return row.answered; }, 60'000);
      if (row.answered && row.value != wanted)
        return fmt::format("while a store is behind {} is read, {} was answered before",
                           row.value.value_or("nothing"), wanted);
      // Nobody writes to `row` any more.
      cluster_.world().run_for(row.answered ? 0 : 2'100'000);
    }
  }
  return "";
}

}  // namespace tetrad::simulation
