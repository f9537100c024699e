// SPDX-License-Identifier: Apache-2.0
// Which rows may be the nearest to a vector (ReadCommand::nearest). Inside one tablet:
//
//   1. As many members are asked as a read at the level asks (of each set, while two are read). Each
//      names the nearest rows that it has, as it has them.
//   2. What any of them names is named, with how far others are at least (nearest_names.h).
//
// Tablets are asked side by side. Whoever asked reads the rows by their keys at the level, measures them
// as they are then, and asks for more where one that is not named might be nearer.
#include <algorithm>

#include "base/assert.h"
#include "base/sleep.h"
#include "replication/coordinator/gathering.h"
#include "replication/coordinator/last_catch.h"
#include "replication/coordinator/nearest_limits.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/coordinator/ring_walk.h"

namespace tetrad::replication {
namespace {

/// Tablets that are asked side by side; fewer where each names many rows.
constexpr size_t kTabletsAtOnce = 32, kNamedAtOnce = 32'768;
/// Of the keys of what is named by all tablets.
constexpr size_t kKeyBytesMax = 4u << 20;

/// What is asked of tablets side by side.
struct Wave {
  size_t left = 1;
  std::vector<std::optional<Result<NearestNames>>> results;
  base::OneShot<bool> done;
  void finish_one() {
    if (--left == 0) done.setter().set(true);
  }
};

}  // namespace

Task<Result<NearestNames>> CoordinatorImpl::nearest_of_tablet(storage::ReadCommand command,
                                                              ReadOptions options) {
  while (true) {
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(command.incarnation);
    if (table == nullptr) co_return fail(ErrorCode::kStaleSchema, kTableGone);
    const partitioner::Tablet& tablet = table->tablets.find(command.range.end);
    if (command.range.start < tablet.range.start)
      co_return fail(ErrorCode::kStaleEpoch, "the tablet was split");
    command.nearest->graph_range = tablet.range;
    const std::vector<StoreAddress>& set = read_set(tablet);
    const Levels levels = this->levels(*state);
    const Need needed = levels.reading(options.level, set);
    const bool both = reads_both_sets(tablet) && options.level != ConsistencyLevel::kOne &&
                      options.level != ConsistencyLevel::kLocalOne;
    TETRAD_CO_TRY_VOID(check_enough(set, options.level, needed));
    std::vector<StoreAddress> candidates = live_members(set);
    std::vector<ReadQuorum> quorums;
    if (both || levels.has_several()) quorums.push_back({set, needed});
    if (both) {
      const Need of_old = levels.reading(options.level, tablet.replicas);
      TETRAD_CO_TRY_VOID(check_enough(tablet.replicas, options.level, of_old));
      quorums.push_back({tablet.replicas, of_old});
      for (const StoreAddress& replica : live_members(tablet.replicas)) {
        if (std::ranges::find(candidates, replica) == candidates.end())
          candidates.push_back(replica);
      }
    }
    ask_good_ones_first(candidates);
    auto first_asked = static_cast<size_t>(needed.least());
    if (both) first_asked = candidates.size();
    if (levels.has_several()) first_asked = arrange_for(quorums, levels, candidates);
    const auto gathering = gather(command, tablet.epoch, std::move(candidates), first_asked, false,
                                  options, std::move(quorums));
    const bool complete = co_await gathering->done;
    if (complete) co_return join_names(gathering->data);
    Error error = read_error(*gathering, options.level);
    if (error.code != ErrorCode::kStaleEpoch) co_return std::unexpected(std::move(error));
    if (reactor_.now_us() >= options.deadline.at_us)
      co_return std::unexpected(own_read_error(error, options.level));
    co_await base::sleep_for(reactor_, 5'000);  // the newer map is on its way here
  }
}

Task<void> CoordinatorImpl::nearest_into(CoordinatorImpl* self, storage::ReadCommand command,
                                         ReadOptions options,
                                         std::move_only_function<void(Result<NearestNames>)> done) {
  std::optional<Result<NearestNames>> result;
  try {
    auto names = co_await self->nearest_of_tablet(std::move(command), options);
    result.emplace(std::move(names));
  } catch (const std::exception& error) {
    result.emplace(failed_inside(error, self->logger_));
  }
  done(std::move(*result));
}

Task<Result<std::optional<NearestNames>>> CoordinatorImpl::nearest(storage::ReadCommand command,
                                                                   ReadOptions options) {
  TETRAD_ASSERT(command.nearest && command.is_range);
  TETRAD_CO_TRY_VOID(check_read_level(options.level));
  if (!check_clock()) {
    Result<void> settled = co_await clock_settled(options.deadline);
    TETRAD_CO_TRY_VOID(std::move(settled));
  }
  command.live_only = true;
  const uint32_t rows_max = command.nearest->rows_max;
  const size_t tablets_at_once = std::clamp<size_t>(kNamedAtOnce / rows_max, 1, kTabletsAtOnce);
  NearestNames all;
  for (RingPosition from = command.range.start; from < command.range.end;) {
    const MetaSnapshot state = meta_.snapshot();
    if (state->format < kFormatNearest) co_return std::nullopt;
    const TableInfo* table = state->table(command.incarnation);
    if (table == nullptr) co_return fail(ErrorCode::kStaleSchema, kTableGone);
    std::vector<storage::ReadCommand> parts;
    for (RingPosition start = from; start < command.range.end && parts.size() < tablets_at_once;) {
      storage::ReadCommand& part = parts.emplace_back(command);
      part.range = {start, std::min(command.range.end, tablet_after(*table, start).range.end)};
      start = part.range.end;
    }
    const auto wave = std::make_shared<Wave>();
    wave->results.resize(parts.size());
    std::vector<RingPosition> ends;
    for (size_t i = 0; i < parts.size(); ++i) {
      ends.push_back(parts[i].range.end);
      ++wave->left;
      tasks_.spawn(
          nearest_into(this, std::move(parts[i]), options, [wave, i](Result<NearestNames> names) {
            wave->results[i].emplace(std::move(names));
            wave->finish_one();
          }));
    }
    wave->finish_one();
    co_await wave->done;
    for (size_t i = 0; i < ends.size(); ++i) {
      Result<NearestNames>& part = *wave->results[i];
      // It was split meanwhile: what is left is cut anew.
      if (!part && part.error().code == ErrorCode::kStaleEpoch) break;
      if (!part) co_return std::unexpected(std::move(part.error()));
      from = ends[i];
      add_names(all, std::move(*part));
      keep_nearest(all, rows_max, kKeyBytesMax);
    }
    if (reactor_.now_us() >= options.deadline.at_us) {
      co_return std::unexpected(Error(ErrorCode::kReadTimeout,
                                      "Operation timed out - the query took too long.",
                                      base::TimeoutDetail{options.level, 0, 1}));
    }
  }
  co_return all;
}

}  // namespace tetrad::replication
