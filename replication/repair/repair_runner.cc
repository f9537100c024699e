// SPDX-License-Identifier: Apache-2.0
// A repair of a tablet, or of two neighbours:
//
//   1. begin(): every member says its time, once no earlier write is under way there. The repair
//      begins at the earliest, and not above what logged batches may yet write.
//   2. make_equal(): the tablet is read at ALL, page by page; the read writes to each member what
//      it lacks. Then every member syncs.
//   3. note_repaired(): the metadata group raises the horizon, if the tablet is as it was.
//
// Any error ends it, and the horizon stays where it is: the next repair begins anew.
//
// Who repairs: the acting member of the tablet looks for the tablet whose repair is due the
// longest, one at a time on each shard. The order of 1 to 3 is what rule 18 needs: whatever was
// acknowledged before the begin is in the pages, or is waited for; what comes later is above the
// horizon.
#include "replication/repair/repair_runner.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/tablets/load_report.h"
#include "replication/tablets/move_runner.h"
#include "replication/tablets/split_runner.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

// Deadlines of one message to a member; a sync may wait for a busy disk.
constexpr int64_t kBeginUs = 2'000'000;
constexpr int64_t kSyncUs = 20'000'000;
constexpr int64_t kProposeUs = 5'000'000;
// Pairs of tablets that are repaired together for a merge, at once.
constexpr size_t kTogetherMost = 4;
constexpr int64_t kFirstPart = 6;  // of a period: a new tablet's time until its first repair
// Of a shard. Changes of members are few at once, but lost nodes leave all of their tablets to be
// settled.
constexpr size_t kSettlingAtOnce = 8;
// A page of a settling that fails is read again before all of it is.
constexpr int kPageTries = 5;
constexpr int64_t kPageAgainUs = 500'000;

bool has_damage(const MetaService& meta, const StoreAddress& member) {
  return meta.state_of(member) == storage::StoreState::kDamaged;
}

const Tablet* find_tablet(const MetaState& state, TableIncarnation incarnation, TabletId id) {
  const TableInfo* table = state.table(incarnation);
  if (table == nullptr) return nullptr;
  for (const Tablet& tablet : table->tablets.tablets())
    if (tablet.id == id) return &tablet;
  return nullptr;
}

/// The tablet, if `state` has that epoch of it or a later one. Errors: kBehind: an older map here
/// is not the fault of the sender, who asks again.
Result<const Tablet*> find_at_epoch(const MetaState& state, const TabletEpoch& what) {
  const Tablet* tablet = find_tablet(state, what.incarnation, what.tablet);
  if (tablet == nullptr || tablet->epoch < what.epoch)
    return fail(ErrorCode::kBehind, "the tablet's epoch is not known here");
  return tablet;
}

/// A repair is of one epoch and one range (rule 12).
bool is_as_it_was(const MetaState& state, TableIncarnation incarnation, const Tablet& tablet) {
  const Tablet* now = find_tablet(state, incarnation, tablet.id);
  return now != nullptr && now->epoch == tablet.epoch && now->range == tablet.range;
}

bool overlap(const RingRange& a, const RingRange& b) { return a.start < b.end && b.start < a.end; }

/// What is in a range now; nothing if the table is gone.
std::vector<Tablet> tablets_in(const MetaState& state, TableIncarnation incarnation,
                               const RingRange& range) {
  std::vector<Tablet> out;
  const TableInfo* table = state.table(incarnation);
  if (table == nullptr) return out;
  for (const Tablet& tablet : table->tablets.tablets())
    if (overlap(tablet.range, range)) out.push_back(tablet);
  return out;
}

/// "; away: 127.0.0.3", or nothing when all members are live.
std::string away_text(const MetaService& meta, const Tablet& tablet) {
  std::string out;
  const MetaSnapshot state = meta.snapshot();
  for (const StoreAddress& member : tablet.replicas) {
    if (meta.is_replica_live(member)) continue;
    out += (out.empty() ? "; away: " : ", ") + state->address_of(member.host);
  }
  return out;
}

}  // namespace

RepairRunner::RepairRunner(base::Reactor& reactor, base::Random& random, RpcNode& rpc,
                           MetaService& meta, const HybridClock& clock, const BehindStores& behind,
                           Coordinator& coordinator,
                           std::function<bool(const StoreAddress&)> is_own, const Fences& fences,
                           std::vector<storage::Store*> stores, RepairOptions options,
                           Logger logger)
    : reactor_(reactor),
      random_(random),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      behind_(behind),
      coordinator_(coordinator),
      is_own_(std::move(is_own)),
      fences_(fences),
      stores_(std::move(stores)),
      options_(options),
      logger_(std::move(logger)) {
  rpc_.handle(Verb::kSettleTablet, [this](const RpcContext&, BytesView body, RpcNode::Reply reply) {
    on_settle(body, std::move(reply));
  });
  rpc_.handle(Verb::kRepairBegin,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_begin(context, body, std::move(reply));
              });
  rpc_.handle(Verb::kRepairSync,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_sync(context.store, body, std::move(reply));
              });
  rpc_.handle(Verb::kRepairTogether,
              [this](const RpcContext&, BytesView body, RpcNode::Reply reply) {
                on_together(body, std::move(reply));
              });
}

RepairRunner::~RepairRunner() {
  rpc_.handle(Verb::kRepairTogether, nullptr);
  rpc_.handle(Verb::kRepairSync, nullptr);
  rpc_.handle(Verb::kRepairBegin, nullptr);
  rpc_.handle(Verb::kSettleTablet, nullptr);
  if (timer_ != 0) reactor_.cancel(timer_);
}

void RepairRunner::start() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.look_every_us, [this] { look(); });
}

void RepairRunner::look() {
  start();
  // A node whose clock is off would begin a repair at a wrong time (rule 28).
  if (busy_ || (!clock_.is_good() && !TETRAD_MUTANT(quarantine_off))) return;
  const auto target = next_due();
  if (!target) return;
  busy_ = true;
  tasks_.spawn(run_due(*target));
}

/// The tablet whose last repair is the longest ago. A new one has some time.
std::optional<RepairRunner::Target> RepairRunner::next_due() {
  const MetaSnapshot state = meta_.snapshot();
  const int64_t due_us = clock_.now_us(reactor_) - options_.period_us;
  // Built anew at each look, so that tablets that are gone are forgotten.
  std::map<TabletId, base::MonotonicUs> not_before_us;
  std::optional<Target> found;
  for (const auto& [id, table] : state->tables) {
    for (const Tablet& tablet : table->tablets.tablets()) {
      if (tablet.stage != TabletStage::kNormal || tablet.repaired_us > due_us) continue;
      if (tablet.replicas.empty() || !is_own_(acting_member(tablet, meta_))) continue;
      // Waiting for a member that is away would keep the others from their turn.
      if (!std::ranges::all_of(tablet.replicas, [this](const StoreAddress& member) {
            return meta_.is_live(member.host);
          }))
        continue;
      const auto known = not_before_us_.find(tablet.id);
      // A sixth of the period: new tablets, of a restored or a new table, do not all begin at once.
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
  std::vector<Target> targets{std::move(target)};
  Result<bool> repaired = co_await repair(std::move(targets));
  if (repaired && *repaired) {
    not_before_us_.erase(id);
  } else if (repaired) {
    // The members are equal; only the horizon had to stay. No hurry.
    not_before_us_[id] = reactor_.now_us() + options_.period_us / kFirstPart;
  } else {
    not_before_us_[id] = reactor_.now_us() + options_.retry_us;
    logger_.debug("tablet not repaired tablet={} reason={}", id.value, repaired.error().message);
  }
  TETRAD_ASSERT(busy_);
  busy_ = false;
}

void RepairRunner::repair_now(std::string keyspace, std::string table,
                              std::vector<RingRange> ranges, Done done) {
  const MetaSnapshot state = meta_.snapshot();
  std::vector<Target> targets;
  for (const auto& [id, info] : state->tables) {
    // Empty names stand for all.
    if ((!keyspace.empty() && info->keyspace != keyspace) ||
        (!table.empty() && info->name != table))
      continue;
    for (const Tablet& tablet : info->tablets.tablets()) {
      if (std::ranges::any_of(ranges,
                              [&](const RingRange& range) { return overlap(tablet.range, range); }))
        targets.push_back({info->incarnation, tablet});
    }
  }
  tasks_.spawn(run_all(std::move(targets), std::move(done)));
}

/// A tablet that splits, moves or grows meanwhile is repaired as what it has become. Targets grow
/// while the loop runs: the children of a split take the place of their parent at the end.
Task<void> RepairRunner::run_all(std::vector<Target> targets, Done done) {
  constexpr int kTriesMax = 20;
  constexpr int64_t kTryAgainUs = 500'000;
  Summary summary;
  std::vector<int> tries(targets.size(), 1);
  for (size_t i = 0; i < targets.size(); ++i) {
    TETRAD_ASSERT(tries.size() == targets.size());
    std::vector<Target> one{targets[i]};
    Result<bool> repaired = co_await repair(std::move(one));
    const bool changed = !repaired && (repaired.error().code == ErrorCode::kStaleEpoch ||
                                       repaired.error().code == ErrorCode::kConflict);
    if (changed && tries[i] < kTriesMax) {
      co_await base::sleep_for(reactor_, kTryAgainUs);
      const MetaSnapshot state = meta_.snapshot();
      const Target was = targets[i];
      for (const Tablet& now : tablets_in(*state, was.incarnation, was.tablet.range)) {
        targets.push_back({was.incarnation, now});
        tries.push_back(tries[i] + 1);
      }
      continue;
    }
    ++(repaired ? summary.repaired : summary.failed);
    if (!repaired && summary.first_error.empty())
      summary.first_error = repaired.error().message + away_text(meta_, targets[i].tablet);
  }
  done(std::move(summary));
}

void RepairRunner::on_settle(BytesView body, RpcNode::Reply reply) {
  const auto what = decode_tablet_epoch(body);
  if (!what) return reply.error(what.error());
  const MetaSnapshot state = meta_.snapshot();
  const auto found = find_at_epoch(*state, *what);
  if (!found) return reply.error(found.error());
  const Tablet* tablet = *found;
  // Settling (rule 9): the tablet is read once at the quorums of both sets, before the old one is
  // left. What a read has shown is on W of the new set then.
  if (tablet->epoch != what->epoch || !reads_both_sets(*tablet))
    return reply.error(Error(ErrorCode::kStaleEpoch, "the tablet is not read from both sets"));
  // What two members acknowledged, or answered at a quorum, both have. So the one that stays has it
  // all, and is read with the one that comes; the one that goes may be damaged, and not be readable.
  const auto& old_set = tablet->replicas;
  const auto& new_set = tablet->new_replicas;
  const auto stays = std::ranges::find_if(old_set, [&](const StoreAddress& member) {
    return std::ranges::find(new_set, member) != new_set.end();
  });
  const bool is_of_two = state->data_centers == nullptr && old_set.size() == 2 &&
                         new_set.size() <= 2 && stays != old_set.end();
  // Of a damaged one, whether it stays or comes, not everything can be read, and there is no way back
  // from here: it is replaced by what comes after this change. The one that comes takes nothing with
  // it, since the one that stays has it all.
  const auto is_damaged = [this](const StoreAddress& member) { return has_damage(meta_, member); };
  const std::vector<StoreAddress> added = added_members(*tablet);
  // Members were lost for good (RemoveLostNodes): what any of those that are left has counts.
  const bool has_lost = has_lost_members(*tablet);
  const bool is_settled =
      is_of_two && !has_lost &&
      (added.empty() || is_damaged(*stays) || std::ranges::any_of(added, is_damaged));
  if (is_settled || (is_of_two && TETRAD_MUTANT(two_not_settled) && !has_lost))
    return reply.ok(Bytes(1, '\1'));
  const auto known = settling_.find(tablet->id);
  if (known != settling_.end() && known->second.epoch == tablet->epoch)
    // It is under way: the leader asks again.
    return reply.ok(Bytes(1, known->second.done ? '\1' : '\0'));
  // What is done is kept until the leader has heard of it: until the tablet has gone on.
  std::erase_if(settling_, [&](const auto& entry) {
    const Tablet* now = find_tablet(*state, entry.second.incarnation, entry.first);
    return entry.second.done && (now == nullptr || now->epoch != entry.second.epoch);
  });
  if (std::ranges::count_if(settling_, [](const auto& entry) { return !entry.second.done; }) >=
      static_cast<ptrdiff_t>(kSettlingAtOnce))
    return reply.ok(Bytes(1, '\0'));
  settling_[tablet->id] = {what->incarnation, tablet->epoch};
  // With several data centres each of them must have it.
  ConsistencyLevel level =
      state->data_centers == nullptr ? ConsistencyLevel::kQuorum : ConsistencyLevel::kEachQuorum;
  if (has_lost && std::ranges::none_of(old_set, is_damaged)) level = ConsistencyLevel::kAll;
  tasks_.spawn(
      settle({what->incarnation, *tablet}, level, is_of_two && !has_lost, std::move(reply)));
}

Task<void> RepairRunner::settle(Target target, ConsistencyLevel level, bool leaves_old_out,
                                RpcNode::Reply reply) {
  const TabletId id = target.tablet.id;
  const SetEpoch epoch = target.tablet.epoch;
  Result<void> read = co_await read_pages(target, level, 0, leaves_old_out);
  // What is written back at ALL is not synced by itself, and counts as old from now on (rule 20).
  if (read && level == ConsistencyLevel::kAll) read = co_await sync(target);
  const bool is_spoilt = has_lost_members(target.tablet) && level != ConsistencyLevel::kAll &&
                         std::ranges::any_of(target.tablet.replicas, [this](const auto& member) {
                           return has_damage(meta_, member);
                         });
  if (!read && is_spoilt && read.error().code == ErrorCode::kReadFailure) {
    // Nobody will ever read it, and while it is waited for the store is not replaced.
    logger_.warn(
        "tablet goes on without what a damaged store of it cannot read tablet={} reason={}",
        id.value, read.error().message);
    read = {};
  }
  // Decisions that only one of them knows, too: rows do not tell of them.
  if (read && has_lost_members(target.tablet)) read = co_await join_registers(target);
  // While it was read another change may have taken its place.
  const auto known = settling_.find(id);
  if (known == settling_.end() || known->second.epoch != epoch)
    read = fail(ErrorCode::kStaleEpoch, "physical partition {} has changed", id.value);
  else if (read)
    known->second.done = true;
  else
    settling_.erase(known);  // to be tried again when the leader asks again
  if (read) {
    reply.ok(Bytes(1, '\1'));
  } else {
    logger_.debug("tablet not settled tablet={} reason={}", id.value, read.error().message);
    reply.error(read.error());
  }
}

Task<Result<void>> RepairRunner::join_registers(Target target) {
  constexpr int64_t kAskUs = 2'000'000, kLookEveryUs = 100'000;
  const TabletEpoch what{target.incarnation, target.tablet.id, target.tablet.epoch};
  for (const StoreAddress& member : target.tablet.replicas) {
    while (true) {
      if (!is_as_it_was(*meta_.snapshot(), target.incarnation, target.tablet))
        co_return fail(ErrorCode::kStaleEpoch, "physical partition {} has changed",
                       target.tablet.id.value);
      const base::Deadline deadline{reactor_.now_us() + kAskUs};
      const Result<Bytes> answer = co_await rpc_.ask(member.host, member.store, Verb::kPullTablet,
                                                     encode_tablet_epoch(what), deadline);
      if (!answer) co_return std::unexpected(answer.error());
      if (*answer == BytesView("\x01")) break;
      co_await base::sleep_for(reactor_, kLookEveryUs);
    }
  }
  co_return Result<void>();
}

Task<Result<void>> RepairRunner::read_pages(Target target, ConsistencyLevel level, int64_t pause_us,
                                            bool leaves_old_out) {
  const Tablet& tablet = target.tablet;
  std::optional<storage::ReadPosition> after;
  bool exhausted = false;
  int tries = 1;
  while (!exhausted) {
    // Looked at for each page (rule 12): a repair of what the tablet was says nothing about what it
    // is.
    if (!is_as_it_was(*meta_.snapshot(), target.incarnation, tablet))
      co_return fail(ErrorCode::kStaleEpoch, "physical partition {} has changed", tablet.id.value);
    storage::ReadCommand command;
    command.incarnation = target.incarnation;
    command.is_range = true;
    command.range = tablet.range;
    // By key, so a page goes on where the last one ended whatever was written meanwhile.
    command.resume_after = after;
    command.bytes_limit = options_.page_bytes;
    command.now_s = clock_.now_us(reactor_) / 1'000'000;
    ReadOptions options;
    options.level = level;
    options.deadline = {reactor_.now_us() + options_.page_timeout_us};
    options.leaves_old_out = leaves_old_out;
    // Not counted among clients' reads.
    options.background = true;
    Result<storage::ReadResult> page = co_await coordinator_.read(std::move(command), options);
    if (!page && pause_us == 0 && page.error().code == ErrorCode::kReadTimeout &&
        tries++ < kPageTries) {
      co_await base::sleep_for(reactor_, kPageAgainUs);
      continue;
    }
    if (!page) co_return std::unexpected<Error>(page.error());
    tries = 1;
    metrics_.pages.add();
    exhausted = page->exhausted;
    after = std::move(page->complete_up_to);
    if (pause_us != 0) co_await base::sleep_for(reactor_, pause_us);
  }
  co_return Result<void>();
}

void RepairRunner::on_begin(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  const auto what = decode_tablet_epoch(body);
  if (!what) return reply.error(what.error());
  const MetaSnapshot state = meta_.snapshot();
  const auto found = find_at_epoch(*state, *what);
  if (!found) return reply.error(found.error());
  const Tablet* tablet = *found;
  if (tablet->epoch != what->epoch)
    return reply.error(Error(ErrorCode::kStaleEpoch, "the tablet's members have changed"));
  // Each member answers for the time before which nothing can be lost on it.
  // What it has lost it cannot compare.
  if (behind_.is_behind(context.store, what->incarnation, tablet->range) &&
      !TETRAD_MUTANT(behind_reads))
    return reply.error(BehindStores::refusal());
  if (!clock_.is_good() && !TETRAD_MUTANT(quarantine_off)) {
    const Error why = clock_.refusal();
    return reply.error(Error(ErrorCode::kClockOff, why.message));
  }
  if (context.store >= fences_.size() || fences_[context.store] == nullptr)
    return reply.error(Error(ErrorCode::kNotFound, "no such store here"));
  // What came before is in the pages that follow, or nowhere: the horizon may pass it.
  fences_[context.store]->drained_now(
      what->incarnation, tablet->range, context.deadline,
      [began_us = clock_.own_us(reactor_), reply = std::move(reply)](bool drained) mutable {
        if (!drained)
          return reply.error(Error(ErrorCode::kBehind, "earlier writes have not ended"));
        Bytes answer;
        base::ByteWriter(answer).i64(began_us);
        reply.ok(std::move(answer));
      });
}

Task<Result<int64_t>> RepairRunner::begin(const Target& target) {
  const TabletEpoch what{target.incarnation, target.tablet.id, target.tablet.epoch};
  const std::vector<StoreAddress> members = target.tablet.replicas;
  const base::Deadline deadline{reactor_.now_us() + kBeginUs};
  // The earliest of all, its own among them: no member's time is ahead of the horizon.
  int64_t earliest_us = clock_.own_us(reactor_);
  for (const StoreAddress& member : members) {
    if (TETRAD_MUTANT(repair_without_member) && member == members.back()) continue;
    Result<Bytes> answer = co_await rpc_.ask(member.host, member.store, Verb::kRepairBegin,
                                             encode_tablet_epoch(what), deadline);
    if (!answer) co_return std::unexpected<Error>(answer.error());
    TETRAD_CO_TRY(const int64_t time_us, base::ByteReader(*answer).read_i64());
    earliest_us = std::min(earliest_us, time_us);
  }
  if (meta_.snapshot()->format >= kFormatBatches && !TETRAD_MUTANT(batch_horizon_past)) {
    // What a logged batch may yet write must not fall below what is purged. Where that is not
    // known, or is below the horizon, the members are made equal and the horizon stays.
    Result<Bytes> floor = co_await rpc_.ask(rpc_.self(), 0, Verb::kBatchFloor, "", deadline);
    if (!floor && floor.error().code != ErrorCode::kBehind)
      co_return std::unexpected<Error>(floor.error());
    int64_t floor_us = target.tablet.repaired_us;
    if (floor) {
      TETRAD_CO_TRY(floor_us, base::ByteReader(*floor).read_i64());
    }
    earliest_us = std::min(earliest_us, floor_us);
  }
  co_return earliest_us;
}

// The epoch is tested again: a member that was exchanged meanwhile would answer for rows that it
// does not have.
void RepairRunner::on_sync(uint32_t store, BytesView body, RpcNode::Reply reply) {
  const auto what = decode_tablet_epoch(body);
  if (!what) return reply.error(what.error());
  const MetaSnapshot state = meta_.snapshot();
  const auto found = find_at_epoch(*state, *what);
  if (!found) return reply.error(found.error());
  if ((*found)->epoch != what->epoch)
    return reply.error(Error(ErrorCode::kStaleEpoch, "the tablet's members have changed"));
  if (store >= stores_.size() || stores_[store] == nullptr)
    return reply.error(Error(ErrorCode::kNotFound, "the store is not of this shard"));
  if (TETRAD_MUTANT(repair_unsynced)) return reply.ok({});
  stores_[store]->sync([reply = std::move(reply)](Result<void> synced) mutable {
    if (synced)
      reply.ok({});
    else
      reply.error(synced.error());
  });
}

/// Otherwise a power cut could take an old tombstone from one member while the others, since the
/// horizon rose, have purged theirs: what it hid would live again.
Task<Result<void>> RepairRunner::sync(const Target& target) {
  const TabletEpoch what{target.incarnation, target.tablet.id, target.tablet.epoch};
  const std::vector<StoreAddress> members = target.tablet.replicas;
  const base::Deadline deadline{reactor_.now_us() + kSyncUs};
  for (const StoreAddress& member : members) {
    Result<Bytes> answer = co_await rpc_.ask(member.host, member.store, Verb::kRepairSync,
                                             encode_tablet_epoch(what), deadline);
    if (!answer) co_return std::unexpected<Error>(answer.error());
  }
  co_return Result<void>();
}

Task<Result<void>> RepairRunner::make_equal(Target target) {
  // ALL: a repair counts only if every member took part (rule 18).
  // The only member has nobody to differ from.
  if (target.tablet.replicas.size() <= 1 || TETRAD_MUTANT(repair_reads_nothing))
    co_return Result<void>();
  Result<void> read = co_await read_pages(target, ConsistencyLevel::kAll, options_.pause_us);
  if (!read) co_return std::unexpected<Error>(read.error());
  Result<void> synced = co_await sync(target);
  co_return synced;
}

// The metadata group refuses it if epoch or range have changed.
Task<Result<void>> RepairRunner::note_repaired(Target target, int64_t began_us) {
  const Tablet& tablet = target.tablet;
  TETRAD_ASSERT(began_us > tablet.repaired_us);
  SetTabletRepaired repaired{target.incarnation, tablet.id, tablet.epoch, tablet.range, began_us};
  MetaCommandBody body(std::move(repaired));
  const base::Deadline deadline{reactor_.now_us() + kProposeUs};
  Result<void> noted =
      co_await propose_through_main(rpc_, meta_, random_, std::move(body), deadline);
  if (noted)
    logger_.debug("tablet repaired tablet={} epoch={} members={}", tablet.id.value,
                  tablet.epoch.value, tablet.replicas.size());
  co_return noted;
}

//   1. All begin before any is read: two halves of a merge need one horizon for both (rule 12).
Task<Result<bool>> RepairRunner::repair(std::vector<Target> targets) {
  TETRAD_ASSERT(!targets.empty());
  int64_t began_us = std::numeric_limits<int64_t>::max();
  int64_t horizon_us = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    Result<int64_t> earliest_us = co_await begin(targets[i]);
    if (!earliest_us) {
      metrics_.failed.add();
      co_return std::unexpected<Error>(earliest_us.error());
    }
    began_us = std::min(began_us, *earliest_us);
    horizon_us = std::max(horizon_us, targets[i].tablet.repaired_us);
  }
  if (TETRAD_MUTANT(horizon_one_clock)) began_us = reactor_.wall_time_us();
  //   2. Make each equal, and synced.
  for (size_t i = 0; i < targets.size(); ++i) {
    if (i > 0 && TETRAD_MUTANT(merge_repairs_left)) break;
    Result<void> equal = co_await make_equal(targets[i]);
    if (!equal) {
      metrics_.failed.add();
      co_return std::unexpected<Error>(equal.error());
    }
  }
  //   3. Logged batches hold the horizon: members are equal, nothing may be purged by it.
  if (began_us <= horizon_us) {
    metrics_.horizons_held.add();
    logger_.debug("tablet repaired, its horizon stays below logged batches tablet={}",
                  targets.front().tablet.id.value);
    co_return false;
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    Result<void> noted = co_await note_repaired(targets[i], began_us);
    (noted ? metrics_.tablets : metrics_.failed).add();
    if (!noted) co_return std::unexpected<Error>(noted.error());
  }
  co_return true;
}

/// Answers at once: whoever asks sees in the metadata when it is done, and asks again if it is not.
void RepairRunner::on_together(BytesView body, RpcNode::Reply reply) {
  const auto what = decode_tablet_epoch(body);
  if (!what) return reply.error(what.error());
  const MetaSnapshot state = meta_.snapshot();
  const auto found = find_at_epoch(*state, *what);
  if (!found) return reply.error(found.error());
  const Tablet& left = **found;
  if (left.epoch != what->epoch || left.range.end == RingPosition::highest())
    return reply.error(Error(ErrorCode::kStaleEpoch, "the tablet has changed"));
  if (!clock_.is_good() && !TETRAD_MUTANT(quarantine_off))
    return reply.error(Error(ErrorCode::kClockOff, clock_.refusal().message));
  reply.ok({});
  if (together_.size() >= kTogetherMost || !together_.insert(left.id).second) return;
  // The right neighbour, which starts where the left one ends.
  const std::vector<Tablet>& tablets = state->table(what->incarnation)->tablets.tablets();
  const Tablet& right = tablets[static_cast<size_t>(&left - tablets.data()) + 1];
  TETRAD_ASSERT(right.range.start == left.range.end);
  std::vector<Target> halves{{what->incarnation, left}, {what->incarnation, right}};
  tasks_.spawn(repair_together(std::move(halves)));
}

Task<void> RepairRunner::repair_together(std::vector<Target> targets) {
  const TabletId id = targets.front().tablet.id;
  Result<bool> repaired = co_await repair(std::move(targets));
  if (!repaired)
    logger_.debug("tablets not repaired together tablet={} reason={}", id.value,
                  repaired.error().message);
  TETRAD_ASSERT(together_.contains(id));
  together_.erase(id);
}

}  // namespace tetrad::replication
