// SPDX-License-Identifier: Apache-2.0
#include "replication/repair/repair_runner.h"

#include <algorithm>

#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/tablets/load_report.h"
#include "replication/tablets/split_runner.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

constexpr int64_t kProposeUs = 5'000'000;
constexpr int64_t kFirstPart = 6;  // of a period: a new tablet's time until its first repair

const Tablet* find_tablet(const MetaState& state, TableIncarnation incarnation, TabletId id) {
  const TableInfo* table = state.table(incarnation);
  if (table == nullptr) return nullptr;
  for (const Tablet& tablet : table->tablets.tablets())
    if (tablet.id == id) return &tablet;
  return nullptr;
}

/// A repair is of one epoch and one range (rule 12).
bool is_as_it_was(const MetaState& state, TableIncarnation incarnation, const Tablet& tablet) {
  const Tablet* now = find_tablet(state, incarnation, tablet.id);
  return now != nullptr && now->epoch == tablet.epoch && now->range == tablet.range;
}

}  // namespace

RepairRunner::RepairRunner(base::Reactor& reactor, base::Random& random, RpcNode& rpc,
                           MetaService& meta, Coordinator& coordinator,
                           std::function<bool(const StoreAddress&)> is_own, RepairOptions options,
                           Logger logger)
    : reactor_(reactor),
      random_(random),
      rpc_(rpc),
      meta_(meta),
      coordinator_(coordinator),
      is_own_(std::move(is_own)),
      options_(options),
      logger_(std::move(logger)) {}

RepairRunner::~RepairRunner() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void RepairRunner::start() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.look_every_us, [this] { look(); });
}

void RepairRunner::look() {
  start();
  if (busy_) return;
  const auto target = next_due();
  if (!target) return;
  busy_ = true;
  tasks_.spawn(run_due(*target));
}

/// The tablet whose last repair is the longest ago. A new one has some time.
std::optional<RepairRunner::Target> RepairRunner::next_due() {
  const MetaSnapshot state = meta_.snapshot();
  const int64_t due_us = reactor_.wall_time_us() - options_.period_us;
  std::map<TabletId, base::MonotonicUs> not_before_us;
  std::optional<Target> found;
  for (const auto& [id, table] : state->tables) {
    for (const Tablet& tablet : table->tablets.tablets()) {
      if (tablet.stage != TabletStage::kNormal || tablet.repaired_us > due_us) continue;
      if (tablet.replicas.empty() || !is_own_(acting_member(tablet, meta_))) continue;
      const auto known = not_before_us_.find(tablet.id);
      const base::MonotonicUs first_us = reactor_.now_us() + options_.period_us / kFirstPart;
      const base::MonotonicUs wait_us = known != not_before_us_.end() ? known->second
                                        : tablet.repaired_us == 0     ? first_us
                                                                      : reactor_.now_us();
      not_before_us[tablet.id] = wait_us;
      if (reactor_.now_us() < wait_us) continue;
      if (found && found->tablet.repaired_us <= tablet.repaired_us) continue;
      found = Target{table->incarnation, tablet};
    }
  }
  not_before_us_ = std::move(not_before_us);
  return found;
}

Task<void> RepairRunner::run_due(Target target) {
  const TabletId id = target.tablet.id;
  Result<void> repaired = co_await repair(std::move(target));
  if (repaired) {
    not_before_us_.erase(id);
  } else {
    not_before_us_[id] = reactor_.now_us() + options_.retry_us;
    logger_.debug("tablet not repaired tablet={} reason={}", id.value, repaired.error().message);
  }
  busy_ = false;
}

void RepairRunner::repair_now(std::string keyspace, std::string table, Done done) {
  const MetaSnapshot state = meta_.snapshot();
  std::vector<Target> targets;
  for (const auto& [id, info] : state->tables) {
    if ((!keyspace.empty() && info->keyspace != keyspace) ||
        (!table.empty() && info->name != table))
      continue;
    for (const Tablet& tablet : info->tablets.tablets())
      targets.push_back({info->incarnation, tablet});
  }
  tasks_.spawn(run_all(std::move(targets), std::move(done)));
}

Task<void> RepairRunner::run_all(std::vector<Target> targets, Done done) {
  Summary summary;
  for (size_t i = 0; i < targets.size(); ++i) {
    Result<void> repaired = co_await repair(targets[i]);
    ++(repaired ? summary.repaired : summary.failed);
    if (!repaired && summary.first_error.empty()) summary.first_error = repaired.error().message;
  }
  done(std::move(summary));
}

Task<Result<void>> RepairRunner::repair(Target target) {
  const Tablet& tablet = target.tablet;
  const int64_t began_us = reactor_.wall_time_us();
  std::optional<storage::ReadPosition> after;
  // The only member has nobody to differ from.
  bool exhausted = tablet.replicas.size() == 1 || TETRAD_MUTANT(repair_reads_nothing);
  while (!exhausted) {
    if (!is_as_it_was(*meta_.snapshot(), target.incarnation, tablet)) {
      metrics_.failed.add();
      co_return fail(ErrorCode::kStaleEpoch, "physical partition {} has changed", tablet.id.value);
    }
    storage::ReadCommand command;
    command.incarnation = target.incarnation;
    command.is_range = true;
    command.range = tablet.range;
    command.resume_after = after;
    command.bytes_limit = options_.page_bytes;
    command.now_s = reactor_.wall_time_us() / 1'000'000;
    ReadOptions options;
    options.level = ConsistencyLevel::kAll;
    options.deadline = {reactor_.now_us() + options_.page_timeout_us};
    options.background = true;
    Result<storage::ReadResult> page = co_await coordinator_.read(std::move(command), options);
    if (!page) {
      metrics_.failed.add();
      co_return std::unexpected<Error>(page.error());
    }
    metrics_.pages.add();
    exhausted = page->exhausted;
    after = std::move(page->complete_up_to);
    co_await base::sleep_for(reactor_, options_.pause_us);
  }
  SetTabletRepaired repaired{target.incarnation, tablet.id, tablet.epoch, tablet.range, began_us};
  MetaCommandBody body(std::move(repaired));
  const base::Deadline deadline{reactor_.now_us() + kProposeUs};
  Result<void> noted = co_await propose_through_main(rpc_, random_, std::move(body), deadline);
  (noted ? metrics_.tablets : metrics_.failed).add();
  co_return noted;
}

}  // namespace tetrad::replication
