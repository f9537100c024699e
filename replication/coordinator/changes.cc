// SPDX-License-Identifier: Apache-2.0
// A page of the change feed: pages of the logs of all stores of the table that live, merged by
// sequence. A store's place moves over what was delivered, or was looked at and not wanted, and
//
//   1. Ask the logs of all live members from their places on; R members of each set must answer, of
//      this data centre where there are some.
//   2. Is every answer continuous with its place? If a log was swept or begun anew behind it, the
//      reader must scan the table (must_scan), and the places go to where the logs are sure to have
//      ended.
//   3. Merge by sequence up to the smallest place that all have shown; a change that several logs
//      have is delivered once.
//   4. Each log's place goes to the last entry that was delivered or passed over.
// over nothing else.
#include "replication/coordinator/changes.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/changes/change_log.h"
#include "replication/changes/change_messages.h"
#include "replication/consistency.h"
#include "replication/coordinator/coordinator_impl.h"
#include "replication/coordinator/replica_sets.h"

namespace tetrad::replication {
namespace {

constexpr uint64_t kPageBytesMax = 1 << 20;  // about, of one log and of all together
/// How long the others may still take once enough have answered: when all places advance together,
/// fewer rows are delivered twice.
constexpr int64_t kOthersUs = 50'000;
constexpr int64_t kTryAgainUs = 5'000;

/// A set of members and how many of them must answer.
struct Quorum {
  std::vector<StoreAddress> set;
  Need need;
};

/// Those that every acknowledged write has W members in, as for reads; each set once. With members
/// near this node R of those will do: what was written elsewhere is in their logs when it comes.
std::vector<Quorum> quorums_of(const TableInfo& table, const ChangesCommand& command,
                               const Levels& levels) {
  std::set<std::vector<StoreAddress>> sets;
  const auto add = [&](const partitioner::Tablet& tablet) {
    sets.insert(read_set(tablet));
    if (reads_both_sets(tablet)) sets.insert(tablet.replicas);
  };
  if (command.partition)
    add(table.tablets.find(command.partition->position));
  else
    for (const partitioner::Tablet& tablet : table.tablets.tablets()) add(tablet);
  std::vector<Quorum> quorums;
  // One member that has a write is enough to see it, so R and not W.
  for (const std::vector<StoreAddress>& set : sets) {
    const Members near =
        members_that(set, [&](const StoreAddress& one) { return levels.is_near(one.host); });
    const int members = near == 0 ? static_cast<int>(set.size()) : std::popcount(near);
    Need need;
    need.also({near == 0 ? all_of(set) : near,
               TETRAD_MUTANT(changes_ask_one) ? 1 : read_quorum(members)});
    quorums.push_back({set, need});
  }
  return quorums;
}

// More than must answer: the more places move together, the less is delivered twice.
/// Those that may hold something of what is asked for.
std::set<StoreAddress> members_of(const TableInfo& table, const ChangesCommand& command) {
  std::set<StoreAddress> members;
  const auto add = [&](const partitioner::Tablet& tablet) {
    members.insert(tablet.replicas.begin(), tablet.replicas.end());
    members.insert(tablet.new_replicas.begin(), tablet.new_replicas.end());
  };
  if (command.partition)
    add(table.tablets.find(command.partition->position));
  else
    for (const partitioner::Tablet& tablet : table.tablets.tablets()) add(tablet);
  return members;
}

/// A change as bytes, to find out whether it was delivered.
Bytes place_key(const Change& change) {
  Bytes key;
  std::optional<BytesView> clustering_key;
  if (change.clustering_key) clustering_key = *change.clustering_key;
  append_log_entry(key, 0, change.position, change.partition_key, clustering_key);
  return key;
}

}  // namespace

struct CoordinatorImpl::Logs {
  struct Asked {
    StoreAddress store;
    ChangeSequence place = 0;
    std::optional<ChangesAnswer> answer;
    std::optional<Error> error;
    size_t taken = 0;  // of its changes

    /// Nothing that came after its place has been dropped, or was never entered.
    bool is_continuous() const { return answer && answer->reach <= place + 1; }
    // The next page of this log begins behind it.
    ChangeSequence place_now() const {
      TETRAD_ASSERT(answer);
      TETRAD_ASSERT(taken <= answer->changes.size());
      if (taken == answer->changes.size()) return answer->scanned;
      return taken == 0 ? place : answer->changes[taken - 1].sequence;
    }
  };
  std::vector<Quorum> quorums;
  std::vector<Asked> asked;
  size_t left = 0;
  base::OneShot<bool> done;
  base::Reactor& reactor;
  base::Reactor::TimerId timer = 0;

  explicit Logs(base::Reactor& its_reactor) : reactor(its_reactor) {}
  ~Logs() {
    if (timer != 0) reactor.cancel(timer);
  }

  template <class Counts>
  bool has_quorums(Counts counts) const {
    // All quorums, by what `counts` says of an answer.
    return std::all_of(quorums.begin(), quorums.end(), [&](const Quorum& quorum) {
      return quorum.need.is_met_by(members_that(quorum.set, [&](const StoreAddress& member) {
        const auto found = std::ranges::find(asked, member, &Asked::store);
        return found != asked.end() && counts(*found);
      }));
    });
  }
  bool has_enough() const {
    return has_quorums([](const Asked& one) { return one.answer.has_value(); });
  }
  bool is_continuous() const {
    return has_quorums([](const Asked& one) { return one.is_continuous(); });
  }
  bool failed_with(ErrorCode code) const {
    return std::any_of(asked.begin(), asked.end(),
                       [&](const Asked& one) { return one.error && one.error->code == code; });
  }
  void finish() {
    if (timer != 0) reactor.cancel(std::exchange(timer, 0));
    done.setter().set(true);
  }
  // The last answer, or a moment after enough have come.
  void on_answer(const std::shared_ptr<Logs>& self) {
    TETRAD_ASSERT(left != 0);
    if (--left == 0) return finish();
    if (timer != 0 || !has_enough()) return;
    timer = reactor.call_at(reactor.now_us() + kOthersUs, [weak = std::weak_ptr<Logs>(self)] {
      const auto logs = weak.lock();
      if (logs == nullptr) return;
      logs->timer = 0;
      logs->finish();
    });
  }
};

/// Asks all members that live. Errors: kUnavailable.
Result<std::shared_ptr<CoordinatorImpl::Logs>> CoordinatorImpl::ask_logs(
    const TableInfo& table, const ChangesCommand& command, const ChangePlaces& from,
    const ReadOptions& options) {
  const auto logs = std::make_shared<Logs>(reactor_);
  const MetaSnapshot state = meta_.snapshot();
  logs->quorums = quorums_of(table, command, levels(*state));
  for (const Quorum& quorum : logs->quorums)
    TETRAD_TRY_VOID(check_enough(quorum.set, options.level, quorum.need));
  // Numbers of a log are times: the start lies before the wished time by what clocks may differ.
  const int64_t skew_us = options_.horizon.clock_skew_us + 1;
  const auto start = std::min(
      kChangeSequenceMax, static_cast<ChangeSequence>(std::max(from.since_us, skew_us) - skew_us));
  // Places of stores that hold nothing any more stay in the paging state until their node is gone.
  for (const StoreAddress& store : members_of(table, command)) {
    if (!meta_.is_replica_live(store)) continue;
    const auto place = from.places.find(store);
    Logs::Asked& one = logs->asked.emplace_back();
    one.store = store;
    one.place = place == from.places.end() ? start : place->second;
  }
  ChangesRequest request;
  request.table = table.incarnation;
  request.log = *table.change_log;
  request.layout = layout_of(table);
  request.changes_max = command.changes_max;
  request.bytes_max = kPageBytesMax;
  request.partition = command.partition;
  logs->left = logs->asked.size();
  for (size_t i = 0; i < logs->asked.size(); ++i) {
    const Logs::Asked& one = logs->asked[i];
    request.after = one.place;
    rpc_.call(one.store.host, one.store.store, Verb::kChanges, encode_changes_request(request),
              options.deadline, [alive = std::weak_ptr<char>(alive_), logs, i](Result<Bytes> body) {
                if (alive.expired()) return;
                Logs::Asked& asked = logs->asked[i];
                auto answer = body ? decode_changes_answer(*body)
                                   : Result<ChangesAnswer>(std::unexpected(body.error()));
                if (answer)
                  asked.answer = std::move(*answer);
                else
                  asked.error = std::move(answer.error());
                logs->on_answer(logs);
              });
  }
  return logs;
}

Error CoordinatorImpl::changes_error(const Logs& logs, ConsistencyLevel level) const {
  if (logs.failed_with(ErrorCode::kStaleSchema))
    return Error(ErrorCode::kInvalid, "the table was dropped, truncated or altered meanwhile");
  const auto received =
      static_cast<int32_t>(std::count_if(logs.asked.begin(), logs.asked.end(),
                                         [](const auto& one) { return one.answer.has_value(); }));
  int32_t need = 1;
  for (const Quorum& quorum : logs.quorums) need = std::max(need, quorum.need.least());
  const auto required = std::max(need, received + 1);
  for (const ErrorCode code : {ErrorCode::kCorruption, ErrorCode::kIo}) {
    if (!logs.failed_with(code)) continue;
    logger_.error("a change log cannot be read");
    base::FailureDetail detail{level, received, required, {}, base::WriteType::kSimple, false};
    return Error(ErrorCode::kReadFailure, "Operation failed - change logs could not be read.",
                 detail);
  }
  return Error(ErrorCode::kReadTimeout,
               fmt::format("Operation timed out - received only {} responses.", received),
               base::TimeoutDetail{level, received, required});
}

/// Takes from the answers, by sequence, what makes a page.
ChangesPage CoordinatorImpl::merge_logs(Logs& logs, uint32_t changes_max) {
  struct Next {
    ChangeSequence sequence;
    size_t log, index;
    auto operator<=>(const Next&) const = default;
  };
  std::vector<Next> all;
  // What a log did not give yet may come before what others gave.
  ChangeSequence known_to = std::numeric_limits<ChangeSequence>::max();
  for (size_t i = 0; i < logs.asked.size(); ++i) {
    const auto& answer = logs.asked[i].answer;
    if (!answer) continue;
    if (!answer->exhausted) known_to = std::min(known_to, answer->scanned);
    for (size_t k = 0; k < answer->changes.size(); ++k)
      all.push_back({answer->changes[k].sequence, i, k});
  }
  // By sequence, then by log: the same page on every run.
  std::sort(all.begin(), all.end());
  ChangesPage page;
  page.exhausted = known_to == std::numeric_limits<ChangeSequence>::max();
  std::unordered_set<Bytes> delivered;
  uint64_t bytes = 0;
  for (const Next& next : all) {
    Logs::Asked& log = logs.asked[next.log];
    Change& change = log.answer->changes[next.index].change;
    Bytes key = place_key(change);
    const bool is_new = !delivered.contains(key);
    const bool is_full = is_new && (page.changes.size() >= changes_max || bytes >= kPageBytesMax);
    // Places are one number for each log, so nothing may be taken behind something that was not.
    if (log.taken != next.index) continue;  // one before it waits for the next page
    if (is_new && (next.sequence > known_to || is_full)) {
      page.exhausted = false;
      continue;
    }
    log.taken = next.index + 1;
    // Delivered already by another log's entry: passed over.
    if (!is_new) continue;
    bytes += key.size();
    delivered.insert(std::move(key));
    page.changes.push_back(std::move(change));
  }
  if (TETRAD_MUTANT(change_places_ahead))
    for (Logs::Asked& log : logs.asked)
      if (log.answer) log.taken = log.answer->changes.size();
  return page;
}

/// The places that `command` goes on from. Errors: kInvalid.
Result<ChangePlaces> CoordinatorImpl::places_of(const ChangesCommand& command,
                                                const TableInfo& table) {
  ChangePlaces places{table.incarnation, *table.change_log, command.since_us, {}};
  if (command.after.empty()) return places;
  TETRAD_TRY(places, decode_change_places(command.after));
  if (places.table != table.incarnation || places.log != *table.change_log)
    return fail(ErrorCode::kInvalid,
                "the change feed of {}.{} that this paging state is of has ended: since then the "
                "table was dropped or truncated, or its change log was turned off",
                table.keyspace, table.name);
  return places;
}

Task<Result<ChangesPage>> CoordinatorImpl::changes(ChangesCommand command, ReadOptions options) {
  while (true) {
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(command.incarnation);
    if (table == nullptr) co_return fail(ErrorCode::kInvalid, "the table was dropped");
    if (!table->change_log)
      co_return fail(ErrorCode::kInvalid, "table {}.{} keeps no change log", table->keyspace,
                     table->name);
    TETRAD_CO_TRY(ChangePlaces places, places_of(command, *table));
    TETRAD_CO_TRY(const std::shared_ptr<Logs> logs, ask_logs(*table, command, places, options));
    const bool complete = co_await logs->done;
    (void)complete;
    if (!logs->has_enough()) {
      // The newer map is on its way here, or the table on its way there.
      const bool again =
          logs->failed_with(ErrorCode::kStaleEpoch) || logs->failed_with(ErrorCode::kBehind);
      if (!again || reactor_.now_us() >= options.deadline.at_us)
        co_return std::unexpected(changes_error(*logs, options.level));
      co_await base::sleep_for(reactor_, kTryAgainUs);
      continue;
    }
    ChangesPage page;
    if (logs->is_continuous()) {
      page = merge_logs(*logs, std::max<uint32_t>(1, command.changes_max));
      for (const auto& one : logs->asked)
        if (one.answer) places.places[one.store] = one.place_now();
    } else {
      // The scan finds what was written before `since`; from there on the logs are complete.
      page.must_scan = true;
      page.exhausted = false;
      for (const auto& one : logs->asked) {
        if (!one.answer) continue;
        const ChangeSequence begin = one.answer->reach == 0 ? 0 : one.answer->reach - 1;
        places.places[one.store] = std::max({one.place, one.answer->end, begin});
      }
      // What was written before is found by the scan.
      places.since_us = std::max(places.since_us, now_us() - options_.horizon.longest_deadline_us);
    }
    // A removed node's stores never answer again.
    const MetaSnapshot now = meta_.snapshot();
    std::erase_if(places.places, [&](const auto& entry) {
      const NodeInfo* node = now->node(entry.first.host);
      return node != nullptr && node->state == NodeState::kRemoved;
    });
    page.next = encode_change_places(places);
    co_return page;
  }
}

}  // namespace tetrad::replication
