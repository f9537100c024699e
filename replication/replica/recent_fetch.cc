// SPDX-License-Identifier: Apache-2.0
// A store that is behind fetches what it lacks:
//
//   1. Its tablets are those that it is a member of and that are not noted as done.
//   2. For each, members are asked for what was written since the store's last sync, or for everything,
//      until enough of each set have answered to the end. Nobody is asked before the writes that were
//      under way when the store came back have ended (`write_us`).
//   3. What comes is applied as a repair's rows are. When it is synced the tablets are noted as done.
//   4. When nothing is left the note that the store is behind is erased.
//
// Enough: R members that are not behind (rule 20), so that every acknowledged write of the lost
// time is on one of them; or all others, where that many do not exist. With less, after
// accept_loss_after_us or by an operator's word, the tablet is answered for again and the loss is
// logged. One task for each store that is behind; all on its shard.
#include "replication/replica/recent_fetch.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

// A page's rows must be written within that time; a page that fails in passing is asked for ten
// times.
constexpr int64_t kApplyUs = 10'000'000;
constexpr int kPageTries = 10;
/// Of a request: whoever is asked looks at each of them for each page.
constexpr size_t kTabletsAsked = 2'000;

/// The same page may come when it is asked for again.
bool is_passing(ErrorCode code) {
  return code == ErrorCode::kTimedOut || code == ErrorCode::kOverloaded ||
         code == ErrorCode::kUnavailable;
}

/// The sets that a stage reads or writes, each without `own`.
// A member of both sets is counted in each.
std::vector<std::vector<StoreAddress>> sets_of(const Tablet& tablet) {
  const WriteSets written = write_sets(tablet);
  std::vector<std::vector<StoreAddress>> sets{written.old_set};
  if (!written.new_set.empty()) sets.push_back(written.new_set);
  return sets;
}

size_t others_of(const std::vector<StoreAddress>& set, const StoreAddress& own) {
  return set.size() - static_cast<size_t>(std::count(set.begin(), set.end(), own));
}

size_t count_in(const std::vector<StoreAddress>& set, const std::set<StoreAddress>& members) {
  return static_cast<size_t>(std::count_if(
      set.begin(), set.end(), [&](const StoreAddress& one) { return members.contains(one); }));
}

}  // namespace

RecentFetch::RecentFetch(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                         const HybridClock& clock, BehindStores& behind, ReplicaService& replicas,
                         std::vector<storage::Store*> stores, RecentFetchOptions options,
                         Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      behind_(behind),
      replicas_(replicas),
      stores_(std::move(stores)),
      options_(options),
      logger_(std::move(logger)) {}

RecentFetch::~RecentFetch() { behind_.on_change(nullptr); }

void RecentFetch::start() {
  behind_.on_change([this](uint32_t store, bool is_behind) {
    if (is_behind) begin(store);
  });
  for (const uint32_t store : behind_.stores()) begin(store);
}

void RecentFetch::begin(uint32_t store) {
  if (!progress_.emplace(store, Progress{store, 0, 0, ""}).second) return;
  tasks_.spawn(run(store));
}

std::vector<RecentFetch::Progress> RecentFetch::progress() const {
  std::vector<Progress> out;
  for (const auto& [store, progress] : progress_) out.push_back(progress);
  return out;
}

// Also tablets that it only fills or leaves: reads may need it in any stage.
RecentFetch::Targets RecentFetch::targets_of(uint32_t store) const {
  const MetaSnapshot state = meta_.snapshot();
  const StoreAddress own{meta_.self(), store};
  Targets targets;
  for (const auto& [id, table] : state->tables) {
    for (const Tablet& tablet : table->tablets.tablets()) {
      const std::vector<StoreAddress> members = all_members(tablet);
      if (std::find(members.begin(), members.end(), own) == members.end() ||
          !behind_.is_behind(store, table->incarnation, tablet.range))
        continue;
      Target& target = targets.emplace_back();
      target.table = table;
      target.tablet = tablet;
      target.own = own;
      target.sets = sets_of(tablet);
      target.asked.insert(own);
    }
  }
  return targets;
}

// What members have answered stays good while epoch and range are the same.
void RecentFetch::carry_over(const Targets& from, Targets& to) {
  std::map<std::pair<TableIncarnation, RingPosition>, const Target*> known;
  for (const Target& one : from) known[{one.table->incarnation, one.tablet.range.end}] = &one;
  for (Target& target : to) {
    const auto found = known.find({target.table->incarnation, target.tablet.range.end});
    if (found == known.end() || found->second->tablet.range != target.tablet.range ||
        found->second->tablet.epoch != target.tablet.epoch)
      continue;
    target.complete = found->second->complete;
    target.asked.insert(target.complete.begin(), target.complete.end());
  }
}

// R of the set as seen without this store.
Need RecentFetch::needed_of(const std::vector<StoreAddress>& set) const {
  if (TETRAD_MUTANT(behind_from_one)) return Need(set.size(), 1);
  return recovering(meta_.snapshot()->data_centers.get(), set, meta_.self());
}

// For each set:
//   1. R others have given all: complete.
//   2. All others have answered, some of them behind themselves: nobody has more, so with loss.
//   3. After the wait, W of the set, this store among them, have answered: with loss.
RecentFetch::Verdict RecentFetch::judge(const Target& target) const {
  bool with_loss = false;
  for (const std::vector<StoreAddress>& set : target.sets) {
    const size_t others = others_of(set, target.own);
    if (needed_of(set).is_met_by(members_in(set, target.complete)) && others != 0) continue;
    const size_t answered = count_in(set, target.complete) + count_in(set, target.behind);
    if (TETRAD_MUTANT(all_cut_alone) && count_in(set, target.behind) != 0) continue;
    const bool waited =
        loss_accepted_ || reactor_.now_us() > behind_.since(target.own.store).heard_us +
                                                  options_.accept_loss_after_us;
    const size_t self = set.size() - others;
    if (answered < others && !(waited && answered + self >= write_quorum(set.size())))
      return Verdict::kWaits;
    with_loss = true;
  }
  return with_loss ? Verdict::kWithLoss : Verdict::kComplete;
}

// For each tablet those who are still wanted, live and not asked yet; grouped by member, so that
// one request has many tablets.
std::map<StoreAddress, std::vector<size_t>> RecentFetch::next_asked(const Targets& targets) const {
  std::map<StoreAddress, std::vector<size_t>> out;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Target& target = targets[i];
    if (judge(target) != Verdict::kWaits) continue;
    std::set<StoreAddress> chosen;
    const auto may_ask = [&](const StoreAddress& member) {
      return !target.asked.contains(member) && !chosen.contains(member) &&
             (member.host == meta_.self() || meta_.is_live(member.host));
    };
    for (const std::vector<StoreAddress>& set : target.sets) {
      const Need needed = needed_of(set);
      const auto given = [&] { return members_in(set, target.complete) | members_in(set, chosen); };
      for (size_t member = 0; member < set.size(); ++member)
        if (needed.wants(member, given()) && may_ask(set[member])) chosen.insert(set[member]);
      // Too few of its data centre can answer: what all others have is all that there is.
      if (needed.is_met_by(given()) || TETRAD_MUTANT(others_not_asked)) continue;
      std::ranges::copy_if(set, std::inserter(chosen, chosen.end()), may_ask);
    }
    for (const StoreAddress& member : chosen) out[member].push_back(i);
  }
  return out;
}

Task<void> RecentFetch::ask_members(uint32_t store, Targets* targets) {
  while (true) {
    const auto asked = next_asked(*targets);
    if (asked.empty()) co_return;
    // One member after another: rows are the same from each, and the disk has enough to do.
    for (auto next = asked.begin(); next != asked.end(); ++next) {
      const StoreAddress source = next->first;
      for (const size_t i : next->second) (*targets)[i].asked.insert(source);
      for (size_t begin = 0; begin < next->second.size(); begin += kTabletsAsked) {
        const auto first = next->second.begin() + static_cast<std::ptrdiff_t>(begin);
        const size_t count = std::min(kTabletsAsked, next->second.size() - begin);
        const std::vector<size_t> some(first, first + static_cast<std::ptrdiff_t>(count));
        Result<void> fetched = co_await fetch_from(store, source, some, targets, false);
        // The source's log does not reach back that far: everything, then.
        if (!fetched && fetched.error().code == ErrorCode::kNotFound) {
          metrics_.whole.add();
          fetched = co_await fetch_from(store, source, some, targets, true);
        }
        if (fetched) continue;
        metrics_.failed.add();
        logger_.debug("a store that is behind gets no answer store={} from={} reason={}", store,
                      source.host.to_string(), fetched.error().message);
        break;
      }
    }
  }
}

/// Those of `of` that the source has answered for to the end are noted in `targets`.
Task<Result<void>> RecentFetch::fetch_from(uint32_t store, StoreAddress source,
                                           std::vector<size_t> of, Targets* targets,
                                           bool everything) {
  TETRAD_ASSERT(!of.empty());
  const BehindStores::Since since = behind_.since(store);
  RecentRequest request;
  request.everything = everything;
  // Since the last sync that survived, less the longest that a write may have been on its way and
  // what clocks may differ.
  if (since.time_us)
    request.since_us = *since.time_us - options_.longest_us - 2 * clock_.skew_max_us();
  request.bytes_max = options_.page_bytes;
  for (const size_t i : of) {
    const Target& target = (*targets)[i];
    request.tablets.push_back(
        {target.table->incarnation, target.tablet.epoch, target.tablet.range});
  }
  Answered answered;
  int tries = 0;  // for this page
  while (!answered.exhausted) {
    // How long this store has been back: the source lets writes end that began before.
    request.ended_ago_us = reactor_.now_us() - since.heard_us;
    Result<void> page = co_await fetch_page(store, source, &request, &answered);
    if (page) {
      tries = 0;
      continue;
    }
    // From the start it would perhaps never come to the end.
    // A page in the middle is worth asking for again; a first page is tried with another member.
    const bool again = is_passing(page.error().code) && !request.after.empty() &&
                       ++tries < kPageTries && meta_.is_replica_live(source);
    if (!again) co_return std::unexpected(std::move(page.error()));
    co_await base::sleep_for(reactor_, options_.try_again_us);
  }
  for (size_t k = 0; k < of.size(); ++k) {
    const auto index = static_cast<uint32_t>(k);
    // `refused`: the source has another map of that tablet.
    if (answered.refused.contains(index)) continue;
    Target& target = (*targets)[of[k]];
    (answered.behind.contains(index) ? target.behind : target.complete).insert(source);
  }
  co_return Result<void>();
}

/// The next page that `request` asks for; when its records have been applied, it asks for the
/// one after.
Task<Result<void>> RecentFetch::fetch_page(uint32_t store, StoreAddress source,
                                           RecentRequest* request, Answered* answered) {
  const base::Deadline deadline{reactor_.now_us() + options_.page_timeout_us};
  Result<Bytes> answer = co_await rpc_.ask(source.host, source.store, Verb::kRecent,
                                           encode_recent_request(*request), deadline);
  TETRAD_CO_TRY(const Bytes body, std::move(answer));
  // A source that makes no progress would be asked for ever.
  TETRAD_CO_TRY(RecentAnswer page, decode_recent_answer(body));
  if (!page.exhausted && page.next == request->after)
    co_return fail(ErrorCode::kCorruption, "a page of what is recent leads to itself");
  // Its map is newer than ours, perhaps: run() ends only when ours is as new.
  applied_elsewhere_ = std::max(applied_elsewhere_, page.applied);
  Result<void> applied = co_await apply(store, std::move(page.mutations));
  TETRAD_CO_TRY_VOID(std::move(applied));
  answered->refused.insert(page.refused.begin(), page.refused.end());
  answered->behind.insert(page.behind.begin(), page.behind.end());
  answered->exhausted = page.exhausted;
  request->after = std::move(page.next);
  co_return Result<void>();
}

/// As a repair's: merged, in the change log, and refused if a horizon has passed since this node's
/// map, in whose epoch the rows were read.
Task<Result<void>> RecentFetch::apply(uint32_t store, std::vector<storage::Mutation> rows) {
  struct Tally {
    size_t left = 1;
    Result<void> result;
    base::OneShot<bool> done;
    void finish_one(Result<void> one) {
      if (!one) result = std::move(one);
      TETRAD_ASSERT(left != 0);
      if (--left == 0) done.setter().set(true);
    }
  };
  const auto tally = std::make_shared<Tally>();
  const MetaSnapshot state = meta_.snapshot();
  const base::Deadline deadline{reactor_.now_us() + kApplyUs};
  for (const storage::Mutation& row : rows) {
    const TableInfo* table = state->table(row.incarnation);
    // Rows of a table that was dropped meanwhile.
    if (table == nullptr) continue;  // gone meanwhile
    const Tablet& tablet = table->tablets.find(row.position);
    ++tally->left;
    metrics_.rows.add();
    replicas_.apply(store, tablet.epoch, row, ReplicaService::Merged{tablet.repaired_us}, deadline,
                    [tally](Result<void> applied) { tally->finish_one(std::move(applied)); });
  }
  tally->finish_one({});
  co_await tally->done;
  co_return tally->result;
}

//   1. Which tablets are answered for. 2. Sync the store. 3. Note them as done, synced. A power cut
//      between 2 and 3 only fetches again.
Task<size_t> RecentFetch::settle(uint32_t store, Targets targets) {
  const MetaSnapshot state = meta_.snapshot();
  std::vector<std::pair<TableIncarnation, RingRange>> complete;
  size_t with_loss = 0;
  for (const Target& target : targets) {
    const Verdict verdict = judge(target);
    if (verdict == Verdict::kWaits) continue;
    const TableInfo* table = state->table(target.table->incarnation);
    // Of other members by now, perhaps: it is looked at again.
    if (table != nullptr &&
        table->tablets.find(target.tablet.range.end).epoch != target.tablet.epoch)
      continue;
    complete.emplace_back(target.table->incarnation, target.tablet.range);
    with_loss += verdict == Verdict::kWithLoss ? 1 : 0;
  }
  if (complete.empty()) co_return size_t{0};
  base::OneShot<Result<void>> synced;
  std::move_only_function<void(Result<void>)> on_synced =
      [setter = synced.setter()](Result<void> result) { setter.set(std::move(result)); };
  TETRAD_ASSERT(stores_[store] != nullptr);
  stores_[store]->sync(std::move(on_synced));
  Result<void> is_synced = co_await synced;
  if (!is_synced) co_return size_t{0};
  base::OneShot<Result<void>> noted;
  BehindStores::Done on_noted = [setter = noted.setter()](Result<void> result) {
    setter.set(std::move(result));
  };
  behind_.done(store, complete, std::move(on_noted));
  Result<void> is_noted = co_await noted;
  if (!is_noted) co_return size_t{0};
  metrics_.tablets.add(complete.size());
  // Where writes are acknowledged when they are synced, nothing acknowledged was lost.
  if (with_loss != 0 && !options_.acknowledges_synced) say_lost(store, with_loss);
  co_return complete.size();
}

void RecentFetch::say_lost(uint32_t store, size_t tablets) {
  const auto since = behind_.since(store).time_us;
  const std::string of_when =
      since
          ? fmt::format("of the {} ms before this node was started",
                        std::max<int64_t>(0, (clock_.own_us(reactor_) - *since -
                                              (reactor_.now_us() - behind_.since(store).heard_us)) /
                                                 1000))
          : "from before this node was started";
  loss_ =
      fmt::format("acknowledged writes {} may be lost: no other member had all of them", of_when);
  logger_.warn("{} store={} partitions={}", loss_, store, tablets);
}

std::string RecentFetch::absent_text(const Targets& targets) const {
  std::set<std::string> absent;
  const MetaSnapshot state = meta_.snapshot();
  for (const Target& target : targets) {
    if (judge(target) != Verdict::kWaits) continue;
    for (const StoreAddress& member : all_members(target.tablet)) {
      if (target.complete.contains(member) || target.behind.contains(member) ||
          member.host == meta_.self())
        continue;
      absent.insert(state->address_of(member.host));
    }
  }
  return fmt::format("{}", fmt::join(absent, ", "));
}

/// Until nothing is lacking.
Task<void> RecentFetch::run(uint32_t store) {
  logger_.warn(
      "a power cut took what was not on disk: reads are answered by others until it has "
      "been fetched store={}",
      store);
  const base::MonotonicUs began_us = reactor_.now_us();
  int64_t pause_us = options_.try_again_us;
  Targets before;
  base::MonotonicUs lost_us = behind_.since(store).heard_us;
  // Rounds, until nothing is left: each asks those that are live now.
  while (behind_.is_behind(store)) {
    Targets targets = targets_of(store);
    // A second power cut: what was complete before it is not any more.
    const bool more_was_lost =
        std::exchange(lost_us, behind_.since(store).heard_us) != behind_.since(store).heard_us;
    if (!more_was_lost) carry_over(before, targets);
    TETRAD_ASSERT(progress_.contains(store));
    Progress& progress = progress_[store];
    progress.tablets = std::max(progress.tablets, targets.size());
    progress.tablets_left = targets.size();
    const MetaSnapshot state = meta_.snapshot();
    // Before that a write of the former life may still reach a member that has answered already.
    const bool listened = TETRAD_MUTANT(no_second_pass) ||
                          reactor_.now_us() >= behind_.since(store).heard_us + options_.write_us;
    if (state->node(meta_.self()) != nullptr && listened) co_await ask_members(store, &targets);
    progress_[store].waits_for = listened ? absent_text(targets) : "";
    // Nothing left, by a map that is at least as new as those of all sources.
    const bool all = targets.empty() && listened && state->node(meta_.self()) != nullptr &&
                     applied_elsewhere_ <= state->applied;
    if (all) {
      base::OneShot<Result<void>> noted;
      BehindStores::Done on_noted = [setter = noted.setter()](Result<void> result) {
        setter.set(std::move(result));
      };
      behind_.finish(store, std::move(on_noted));
      Result<void> finished = co_await noted;
      // It may have lost more since: then begin() has found this task still here.
      if (finished) continue;
    }
    before = targets;
    const size_t settled = co_await settle(store, std::move(targets));
    // Longer pauses while nothing comes forward.
    pause_us = settled != 0 || !listened ? options_.try_again_us
                                         : std::min(2 * pause_us, options_.try_again_max_us);
    co_await base::sleep_for(reactor_, pause_us);
  }
  progress_.erase(store);
  logger_.info("what a power cut took has been fetched store={} rows={} after_ms={}", store,
               metrics_.rows.value(), (reactor_.now_us() - began_us) / 1000);
}

}  // namespace tetrad::replication
