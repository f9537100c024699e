// SPDX-License-Identifier: Apache-2.0
// One task of a view: what view_runner.h says of an execution.
//
//   1. Choose a stamp above all that this store has seen of the row's bucket.
//   2. Ask all live members of the sets in use for the row, its names and its tasks, with that
//      stamp. One that has seen a later stamp refuses: begin again above it.
//   3. Among the answers find W of each set with equal values, this store among them. Without such
//      a group read the row at a quorum, which repairs it, and begin again.
//   4. Make the images of the row in all views at the stamp, and deletions at the same stamp under
//      all other names that any answer knows (view_image_plan.h).
//   5. Write them at QUORUM.
//   6. Settle with those whose values were used: they erase the tasks that they have named.
//
// Every step may fail and be done again: images carry the stamp, so the later execution wins
// whatever the order of arrival (rule 24).
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/quorum.h"
#include "replication/views/view_image_plan.h"
#include "replication/views/view_messages.h"
#include "replication/views/view_runner.h"

namespace tetrad::replication {

using storage::ViewRowAnswer;
using storage::ViewStamp;

namespace {

constexpr int64_t kAskUs = 1'000'000, kWriteUs = 2'000'000;
constexpr int64_t kLateAnswersUs = 20'000;  // waited for behind W of them
constexpr int kStampsMax = 8, kReadsToEqual = 3;
constexpr uint64_t kWriteBytes = 8 << 20;  // of images at once
constexpr uint32_t kDoublingsMost = 3;     // of the times above

// The row alone: views take no static columns.
storage::ReadCommand command_of(const storage::ViewRow& row) {
  storage::ReadCommand command;
  command.incarnation = row.base;
  command.position = row.position;
  command.partition_key = row.partition_key;
  command.rows = {row.clustering_key};
  command.wants_static = false;
  return command;
}

}  // namespace

/// One round of an execution. Shared with calls that may be answered when it is over.
struct ViewRunner::Attempt {
  storage::ViewRow row;
  storage::ViewMakersPtr makers;
  SetEpoch epoch;
  SchemaVersion schema_version;
  std::vector<std::vector<StoreAddress>> sets;
  std::vector<Need> needs;  // W of each set
  ViewStamp stamp;
  int64_t ask_us = 0;  // how long it may take to hear of the row

  /// What a member has answered.
  struct Answer {
    StoreAddress from;
    ViewRowAnswer answer;
    Bytes values;
  };
  std::vector<Answer> answers;
  size_t asked = 0, failed = 0;
  std::optional<ViewStamp> seen;            // the highest, if too high
  std::vector<size_t> group;                // of answers: those with equal values
  std::optional<ViewRowAnswer> own_answer;  // of the own store, if it is no member
  storage::ViewNamesByView current;

  // W of each set among these answers.
  bool has_quorums(const std::vector<size_t>& of) const {
    for (size_t at = 0; at < sets.size(); ++at) {
      const Members answered = members_that(sets[at], [&](const StoreAddress& member) {
        return std::ranges::find(of, member, [&](size_t i) { return answers[i].from; }) != of.end();
      });
      if (!needs[at].is_met_by(answered)) return false;
    }
    return true;
  }
  std::vector<size_t> all() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < answers.size(); ++i) out.push_back(i);
    return out;
  }
  bool is_member(const StoreAddress& store) const {
    return std::ranges::any_of(sets, [&](const std::vector<StoreAddress>& set) {
      return std::ranges::find(set, store) != set.end();
    });
  }
  const Answer* answer_of(const StoreAddress& store) const {
    const auto found = std::ranges::find(answers, store, &Answer::from);
    return found == answers.end() ? nullptr : &*found;
  }
  /// Names of all answers, of those too that are not in the group: a name too many only deletes
  /// what is not there.
  storage::ViewNamesByView names() const {
    storage::ViewNamesByView all_names;
    const auto add = [&](const storage::ViewNamesByView& names) {
      for (const auto& [view, of_view] : names)
        all_names[view].insert(of_view.begin(), of_view.end());
    };
    for (const Answer& answer : answers) add(answer.answer.names);
    if (own_answer) add(own_answer->names);
    return all_names;
  }
  /// False: no group of equal answers, with that of `own` if it is a member, is large enough.
  /// Any group will do: they differ in what they lack, and each has W.
  bool choose_group(const StoreAddress& own) {
    for (const Answer& leader : answers) {
      group.clear();
      for (size_t i = 0; i < answers.size(); ++i)
        if (answers[i].values == leader.values) group.push_back(i);
      const bool has_own =
          std::ranges::any_of(group, [&](size_t i) { return answers[i].from == own; });
      if (has_quorums(group) && (has_own || !is_member(own))) return true;
    }
    group = all();
    return TETRAD_MUTANT(view_unequal_taken);
  }
};

Task<Result<std::vector<uint64_t>>> ViewRunner::execute(Key key, uint32_t tries) {
  // What could not be made in time is given more: its row may be large.
  const int more = static_cast<int>(std::min(tries, kDoublingsMost));
  Store& store = *stores_[key.store];
  const StoreAddress own{meta_.self(), key.store};
  ViewStamp above = store.views().highest_of(key.row.base, key.row.position);
  int reads = 0;
  for (int stamps = 0; stamps < kStampsMax; ++stamps) {
    const auto attempt = std::make_shared<Attempt>();
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(key.row.base);
    attempt->makers = store.views().makers(key.row.base);
    // The table or its views are gone: the tasks have no use any more.
    if (table == nullptr || attempt->makers == nullptr) co_return known_of(key);
    const partitioner::Tablet& tablet = table->tablets.find(key.row.position);
    attempt->row = key.row;
    attempt->epoch = tablet.epoch;
    attempt->schema_version = state->schema_version;
    // As a QUORUM read does, in each stage of a move.
    attempt->sets = {read_set(tablet)};
    if (reads_both_sets(tablet)) attempt->sets.push_back(tablet.replicas);
    const Levels levels(*state, meta_.self());
    for (const auto& set : attempt->sets)
      attempt->needs.push_back(TETRAD_MUTANT(view_read_by_one)
                                   ? Need(set.size(), 1)
                                   : levels.reading(ConsistencyLevel::kQuorum, set));
    attempt->stamp = storage::stamp_above(above, clock_.now_us(reactor_));
    attempt->ask_us = kAskUs << more;
    co_await ask_members(attempt);
    // A store that has left the set has tasks that nobody else may know.
    if (!attempt->is_member(own)) {
      TETRAD_CO_TRY_VOID(co_await ask_own(store, attempt.get()));
    }
    if (attempt->seen) {
      above = std::max(above, *attempt->seen);
      continue;
    }
    // Its own answer is needed, for its tasks are to be settled.
    if (!attempt->has_quorums(attempt->all()) ||
        (attempt->is_member(own) && attempt->answer_of(own) == nullptr))
      co_return fail(ErrorCode::kUnavailable, "{} of {} members have answered",
                     attempt->answers.size(), attempt->asked);
    if (!attempt->choose_group(own)) {
      if (++reads > kReadsToEqual)
        co_return fail(ErrorCode::kOverloaded, "the row changes too fast");
      TETRAD_CO_TRY_VOID(co_await make_equal(*attempt));
      continue;
    }
    TETRAD_ASSERT(!attempt->group.empty());
    TETRAD_CO_TRY(ViewImages images, view_images(*attempt->makers, key.row,
                                                 attempt->answers[attempt->group.front()].values,
                                                 attempt->names(), attempt->stamp));
    attempt->current = std::move(images.current);
    if (TETRAD_MUTANT(view_settled_early)) settle(*attempt);
    metrics_.rows_written.add(images.mutations.size());
    TETRAD_CO_TRY_VOID(co_await write_images(std::move(images.mutations), kWriteUs << more));
    settle(*attempt);
    if (const Attempt::Answer* answer = attempt->answer_of(own)) co_return answer->answer.sequences;
    // Members have this store's changes, as far as these are acknowledged, and have answered with
    // them.
    if (!attempt->own_answer) co_return known_of(key);
    store.views().settle({key.row, attempt->own_answer->sequences, {}, attempt->stamp},
                         [](const Result<void>&) {});
    co_return attempt->own_answer->sequences;
  }
  co_return fail(ErrorCode::kOverloaded, "others execute the row's tasks");
}

/// Ends when all have answered, or W have and others are late.
Task<void> ViewRunner::ask_members(std::shared_ptr<Attempt> attempt) {
  std::set<StoreAddress> members;
  for (const auto& set : attempt->sets)
    for (const StoreAddress& member : set)
      // Who is down executes nothing and holds nobody up; its tasks wait there.
      if (member.host == meta_.self() || meta_.is_live(member.host)) members.insert(member);
  attempt->asked = members.size();
  if (members.empty()) co_return;
  base::OneShot<bool> enough;
  const ViewReadRequest request{attempt->epoch, attempt->schema_version, attempt->row,
                                attempt->stamp};
  const int64_t now_s = clock_.now_us(reactor_) / 1'000'000;
  const base::Deadline deadline{reactor_.now_us() + attempt->ask_us};
  const auto heard = [&](const StoreAddress& member) {
    return [attempt, member, now_s, setter = enough.setter()](Result<ViewRowAnswer> answer) {
      if (setter.is_set()) return;
      // Values as they show now; equal bytes are equal values.
      auto values = answer ? shown_values(answer->record, now_s)
                           : Result<Bytes>(std::unexpected(answer.error()));
      if (!values) {
        ++attempt->failed;
      } else if (answer->seen) {
        ++attempt->failed;
        attempt->seen = std::max(attempt->seen.value_or(*answer->seen), *answer->seen);
      } else {
        attempt->answers.push_back({member, std::move(*answer), std::move(*values)});
      }
      const size_t count = attempt->answers.size() + attempt->failed;
      TETRAD_ASSERT(count <= attempt->asked);
      if (count == attempt->asked) setter.set(true);
    };
  };
  // Others first: their work goes on while the own store does its own.
  Bytes encoded;
  for (const StoreAddress& member : members) {
    if (is_own(member)) continue;
    if (encoded.empty()) encoded = encode_view_read(request);
    rpc_.call(member.host, member.store, Verb::kViewRead, encoded, deadline,
              [heard = heard(member)](Result<Bytes> reply) {
                heard(reply ? decode_view_answer(*reply)
                            : Result<ViewRowAnswer>(std::unexpected(reply.error())));
              });
  }
  for (const StoreAddress& member : members)
    if (is_own(member)) read_as_member(member.store, request, deadline, heard(member));
  if (enough.setter().is_set()) co_return;
  // Whoever is late executes its tasks itself.
  tasks_.spawn([](base::Reactor& reactor, std::shared_ptr<Attempt> of, base::Deadline until,
                  base::OneShot<bool>::Setter setter) -> Task<void> {
    const base::MonotonicUs began_us = reactor.now_us();
    std::optional<base::MonotonicUs> others_until_us;
    while (!setter.is_set() && reactor.now_us() < until.at_us) {
      const base::MonotonicUs now_us = reactor.now_us();
      // W have answered: the others get a moment, or as long again where the row is large.
      if (!others_until_us && of->has_quorums(of->all()))
        others_until_us = now_us + std::max(kLateAnswersUs, now_us - began_us);
      co_await base::sleep_for(reactor, kLateAnswersUs);
      if (others_until_us && reactor.now_us() >= *others_until_us) break;
    }
    setter.set(true);
  }(reactor_, attempt, deadline, enough.setter()));
  co_await enough;
}

// It may be the only one that knows what the row was called before: members that were filled since
// know the row as it is.
Task<Result<void>> ViewRunner::ask_own(Store& store, Attempt* attempt) {
  if (TETRAD_MUTANT(view_leaver_unasked)) co_return Result<void>();
  base::OneShot<Result<ViewRowAnswer>> answered;
  store.views().read(attempt->row, attempt->stamp, {reactor_.now_us() + attempt->ask_us},
                     [setter = answered.setter()](Result<ViewRowAnswer> answer) {
                       setter.set(std::move(answer));
                     });
  Result<ViewRowAnswer> answer = co_await answered;
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  if (answer->seen) {
    attempt->seen = std::max(attempt->seen.value_or(*answer->seen), *answer->seen);
  } else {
    attempt->own_answer = std::move(*answer);
  }
  co_return Result<void>();
}

Task<Result<void>> ViewRunner::write_images(std::vector<storage::Mutation> images,
                                            int64_t each_us) {
  WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.write_type = base::WriteType::kView;
  // Pieces of a large image were made small enough.
  options.is_cut = true;
  for (auto next = images.begin(); next != images.end();) {
    std::vector<storage::Mutation> some;
    for (uint64_t bytes = 0; next != images.end(); ++next) {
      bytes += next->size_bytes();
      if (!some.empty() && bytes > kWriteBytes) break;
      some.push_back(std::move(*next));
    }
    options.deadline.at_us = reactor_.now_us() + each_us;
    TETRAD_CO_TRY_VOID(co_await coordinator_.write(std::move(some), options));
  }
  co_return Result<void>();
}

Task<Result<void>> ViewRunner::make_equal(const Attempt& attempt) {
  storage::ReadCommand command = command_of(attempt.row);
  command.now_s = clock_.now_us(reactor_) / 1'000'000;
  const MetaSnapshot state = meta_.snapshot();
  if (const TableInfo* table = state->table(attempt.row.base); table != nullptr)
    command.schema_version = state->schema_version;
  ReadOptions options;
  // ALL where all have answered, so that the next attempt finds them equal.
  options.level = attempt.answers.size() == attempt.asked && attempt.failed == 0
                      ? ConsistencyLevel::kAll
                      : ConsistencyLevel::kQuorum;
  options.deadline.at_us = reactor_.now_us() + attempt.ask_us;
  options.background = true;
  auto read = co_await coordinator_.read(std::move(command), options);
  if (!read) co_return std::unexpected(std::move(read.error()));
  co_return Result<void>();
}

// One way: a settle that is lost leaves tasks, and they are executed once more.
void ViewRunner::settle(const Attempt& attempt) {
  for (size_t i = 0; i < attempt.answers.size(); ++i) {
    const bool took_part = std::ranges::find(attempt.group, i) != attempt.group.end();
    if (!took_part && !TETRAD_MUTANT(view_settled_unread)) continue;
    const Attempt::Answer& member = attempt.answers[i];
    storage::ViewSettlement settlement{attempt.row, member.answer.sequences, attempt.current,
                                       attempt.stamp};
    if (is_own(member.from)) {
      settle_as_member(member.from.store, std::move(settlement), [](const Result<void>&) {});
    } else {
      rpc_.one_way(member.from.host, member.from.store, Verb::kViewSettle,
                   encode_view_settlement(settlement));
    }
  }
}

}  // namespace tetrad::replication
