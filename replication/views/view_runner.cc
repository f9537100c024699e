// SPDX-License-Identifier: Apache-2.0
#include "replication/views/view_runner.h"

#include <algorithm>

#include "base/data_mutants.h"
#include "base/hash.h"
#include "base/sleep.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/quorum.h"
#include "replication/replica/place.h"
#include "replication/views/view_image_plan.h"
#include "replication/views/view_messages.h"

namespace tetrad::replication {

using storage::ViewRowAnswer;
using storage::ViewStamp;
using storage::ViewTaskEntry;

namespace {

constexpr int64_t kAskUs = 1'000'000, kWriteUs = 2'000'000;
constexpr int64_t kLateAnswersUs = 20'000;  // waited for behind W of them
constexpr int64_t kTryAgainUs = 100'000, kTryAgainMostUs = 3'000'000;
constexpr int64_t kKeepUpEveryUs = 50'000;
constexpr int kStampsMax = 8, kReadsToEqual = 3;
constexpr uint32_t kUnseenMost = 3;
constexpr size_t kScanPage = 512, kRangesAtOnce = 16;

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
  std::vector<std::vector<StoreAddress>> sets;
  std::vector<Need> needs;  // W of each set
  ViewStamp stamp;

  /// What a member has answered.
  struct Answer {
    StoreAddress from;
    ViewRowAnswer answer;
    Bytes values;
  };
  std::vector<Answer> answers;
  size_t asked = 0, failed = 0;
  std::optional<ViewStamp> seen;  // the highest, if too high
  std::vector<size_t> group;      // of answers: those with equal values
  storage::ViewNamesByView current;

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
  /// False: no group of equal answers, with that of `own` if it is a member, is large enough.
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

ViewRunner::ViewRunner(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, HybridClock& clock,
                       Coordinator& coordinator, BehindStores& behind, std::vector<Store*> stores,
                       ViewOptions options, Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      coordinator_(coordinator),
      behind_(behind),
      stores_(std::move(stores)),
      options_(options),
      logger_(std::move(logger)) {
  rpc_.handle(Verb::kViewRead,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_read(context, body, std::move(reply));
              });
  rpc_.handle(Verb::kViewSettle,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_settle(context, body, std::move(reply));
              });
}

ViewRunner::~ViewRunner() {
  rpc_.handle(Verb::kViewRead, nullptr);
  rpc_.handle(Verb::kViewSettle, nullptr);
  for (Store* store : stores_)
    if (store != nullptr) store->views().on_task(nullptr);
  if (timer_ != 0) reactor_.cancel(timer_);
}

void ViewRunner::start() {
  for (uint32_t number = 0; number < stores_.size(); ++number) {
    if (stores_[number] == nullptr) continue;
    stores_[number]->views().on_task(
        [this, number](ViewTaskEntry entry) { add(number, std::move(entry)); });
  }
  subscription_ = meta_.subscribe([this](const MetaSnapshot& before, const MetaSnapshot& now) {
    if (before != now) on_state();
  });
  on_state();
}

// ---- as a member ----

void ViewRunner::on_read(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  auto request = decode_view_read(body);
  if (!request) return reply.error(request.error());
  Store* const store = context.store < stores_.size() ? stores_[context.store] : nullptr;
  if (store == nullptr)
    return reply.error(Error(ErrorCode::kNotFound, "the store is not of this shard"));
  const storage::ViewRow& row = request->row;
  const Place place = place_of(*meta_.snapshot(), row.base, row.position, request->epoch);
  switch (place.standing) {
    case MapStanding::kCurrent:
      break;
    case MapStanding::kAhead:
      return reply.error(Error(ErrorCode::kBehind, "this node has not heard of the table yet"));
    case MapStanding::kStaleSchema:
      return reply.error(Error(ErrorCode::kStaleSchema, "the table is gone"));
    case MapStanding::kStaleEpoch:
      return reply.error(Error(ErrorCode::kStaleEpoch, "the set of members is another one"));
  }
  if (behind_.is_behind(context.store, row.base, row.position))
    return reply.error(BehindStores::refusal());
  store->views().read(std::move(request->row), request->stamp, context.deadline,
                      [reply = std::move(reply)](Result<ViewRowAnswer> answer) mutable {
                        if (!answer) return reply.error(answer.error());
                        reply.ok(encode_view_answer(*answer));
                      });
}

void ViewRunner::on_settle(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  auto settlement = decode_view_settlement(body);
  if (!settlement) return reply.error(settlement.error());
  Store* const store = context.store < stores_.size() ? stores_[context.store] : nullptr;
  if (store == nullptr)
    return reply.error(Error(ErrorCode::kNotFound, "the store is not of this shard"));
  const Key key{context.store, settlement->row};
  store->views().settle(
      *settlement, [this, alive = std::weak_ptr<char>(alive_), key, done = settlement->sequences,
                    reply = std::move(reply)](Result<void> settled) mutable {
        if (!settled) return reply.error(settled.error());
        if (!alive.expired()) {
          const auto waiting = waiting_.find(key);
          if (waiting != waiting_.end()) drop(key, waiting->second, done);
        }
        reply.ok({});
      });
}

// ---- what waits ----

void ViewRunner::add(uint32_t store, ViewTaskEntry entry) {
  const TableIncarnation base = entry.row.base;
  if (waiting_.size() + ranges_.size() >= options_.waiting_max) {
    to_scan_.emplace(store, base);
    return;
  }
  if (entry.of_range) {
    ranges_.emplace_back(store, std::move(entry));
    return;
  }
  Key key{store, std::move(entry.row)};
  const auto [found, is_new] = waiting_.try_emplace(key);
  Waiting& waiting = found->second;
  waiting.sequences.insert(entry.sequence);
  if (!is_new) return;
  waiting.since_us = entry.time_us;
  since_us_.insert(entry.time_us);
  set_due(key, waiting, reactor_.now_us() + turn_after_us(key));
}

void ViewRunner::set_due(const Key& key, Waiting& waiting, base::MonotonicUs due_us) {
  if (waiting.due_us != 0) due_.erase({waiting.due_us, key});
  waiting.due_us = due_us;
  due_.emplace(due_us, key);
  look_at(due_us);
}

void ViewRunner::drop(const Key& key, Waiting& waiting, const std::vector<uint64_t>& done) {
  for (const uint64_t sequence : done) waiting.sequences.erase(sequence);
  if (!waiting.sequences.empty() || waiting.runs) return;
  due_.erase({waiting.due_us, key});
  since_us_.erase(since_us_.find(waiting.since_us));
  waiting_.erase(key);
}

int64_t ViewRunner::turn_after_us(const Key& key) const {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(key.row.base);
  if (table == nullptr) return options_.first_after_us;
  const partitioner::Tablet& tablet = table->tablets.find(key.row.position);
  std::vector<StoreAddress> live;
  for (const StoreAddress& member : read_set(tablet))
    if (member.host == meta_.self() || meta_.is_live(member.host)) live.push_back(member);
  std::ranges::sort(live);
  const auto own = std::ranges::find(live, StoreAddress{meta_.self(), key.store});
  const size_t place = static_cast<size_t>(own - live.begin());  // behind all if it is no member
  const uint64_t hash = base::xxh3_64(key.row.partition_key + key.row.clustering_key);
  const size_t count = std::max<size_t>(1, live.size());
  const size_t turn = own == live.end() ? count : (place + hash % count) % count;
  return options_.first_after_us + static_cast<int64_t>(turn) * options_.next_after_us;
}

void ViewRunner::look_at(base::MonotonicUs at_us) {
  if (timer_ != 0 && timer_at_us_ <= at_us) return;
  if (timer_ != 0) reactor_.cancel(timer_);
  timer_at_us_ = at_us;
  timer_ = reactor_.call_at(at_us, [this] {
    timer_ = 0;
    pump();
  });
}

void ViewRunner::pump() {
  const base::MonotonicUs now_us = reactor_.now_us();
  while (!due_.empty() && running_ < options_.running_max && due_.begin()->first <= now_us) {
    const Key key = due_.begin()->second;
    due_.erase(due_.begin());
    Waiting& waiting = waiting_.at(key);
    waiting.due_us = 0;
    waiting.runs = true;
    ++running_;
    tasks_.spawn(run(key));
  }
  if (!due_.empty() && running_ < options_.running_max) look_at(due_.begin()->first);
}

size_t ViewRunner::pending() const {
  const auto building =
      std::ranges::count_if(views_, [](const auto& view) { return !view.second.built; });
  return waiting_.size() + ranges_.size() + to_scan_.size() + static_cast<size_t>(building);
}

int64_t ViewRunner::lag_us() const {
  int64_t oldest_us = reactor_.wall_time_us();
  if (!since_us_.empty()) oldest_us = std::min(oldest_us, *since_us_.begin());
  if (!ranges_.empty()) oldest_us = std::min(oldest_us, ranges_.front().second.time_us);
  return reactor_.wall_time_us() - oldest_us;
}

std::vector<ViewStatus> ViewRunner::statuses() const {
  std::vector<ViewStatus> all;
  for (const auto& [place, status] : views_) all.push_back(status);
  return all;
}

// ---- executing ----

Task<void> ViewRunner::run(Key key) {
  const std::set<uint64_t> known = waiting_.at(key).sequences;
  const auto done = co_await execute(key);
  --running_;
  Waiting& waiting = waiting_.at(key);
  waiting.runs = false;
  if (done) {
    metrics_.executed.add();
    waiting.tries = 0;
    forget_unseen(key, waiting, known, *done);
    drop(key, waiting, *done);
  } else {
    metrics_.failed.add();
    ++waiting.tries;
    logger_.debug("a task of a view is tried again tries={} error=\"{}\"", waiting.tries,
                  done.error().message);
  }
  if (const auto left = waiting_.find(key); left != waiting_.end()) {
    // What came meanwhile, or was not seen, by turns again.
    const int64_t pause_us =
        done && left->second.unseen == 0
            ? turn_after_us(key)
            : std::min(kTryAgainMostUs,
                       kTryAgainUs << std::min(left->second.tries + left->second.unseen, 5u));
    set_due(key, left->second, reactor_.now_us() + pause_us);
  }
  pump();
}

/// What reads of the store do not show was settled when a list of tasks was on its way, or was never
/// written; a new list tells.
void ViewRunner::forget_unseen(const Key& key, Waiting& waiting, const std::set<uint64_t>& known,
                               const std::vector<uint64_t>& done) {
  std::vector<uint64_t> unseen;
  for (const uint64_t sequence : known)
    if (waiting.sequences.contains(sequence) && !std::ranges::binary_search(done, sequence))
      unseen.push_back(sequence);
  if (unseen.empty()) {
    waiting.unseen = 0;
    return;
  }
  if (++waiting.unseen < kUnseenMost) return;
  for (const uint64_t sequence : unseen) waiting.sequences.erase(sequence);
  to_scan_.emplace(key.store, key.row.base);
}

Task<Result<std::vector<uint64_t>>> ViewRunner::execute(Key key) {
  Store& store = *stores_[key.store];
  const StoreAddress own{meta_.self(), key.store};
  const auto everything = [&] {
    const std::set<uint64_t>& known = waiting_.at(key).sequences;
    return std::vector<uint64_t>(known.begin(), known.end());
  };
  ViewStamp above = store.views().highest_of(key.row.base, key.row.position);
  int reads = 0;
  for (int stamps = 0; stamps < kStampsMax; ++stamps) {
    const auto attempt = std::make_shared<Attempt>();
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(key.row.base);
    attempt->makers = store.views().makers(key.row.base);
    if (table == nullptr || attempt->makers == nullptr) co_return everything();
    const partitioner::Tablet& tablet = table->tablets.find(key.row.position);
    attempt->row = key.row;
    attempt->epoch = tablet.epoch;
    attempt->sets = {read_set(tablet)};
    if (reads_both_sets(tablet)) attempt->sets.push_back(tablet.replicas);
    const Levels levels(*state, meta_.self());
    for (const auto& set : attempt->sets)
      attempt->needs.push_back(TETRAD_MUTANT(view_read_by_one)
                                   ? Need(set.size(), 1)
                                   : levels.reading(ConsistencyLevel::kQuorum, set));
    attempt->stamp = storage::stamp_above(above, clock_.now_us(reactor_));
    co_await ask_members(attempt);
    if (attempt->seen) {
      above = std::max(above, *attempt->seen);
      continue;
    }
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
    storage::ViewNamesByView names;
    for (const Attempt::Answer& answer : attempt->answers)
      for (const auto& [view, of_view] : answer.answer.names)
        names[view].insert(of_view.begin(), of_view.end());
    TETRAD_CO_TRY(ViewImages images, view_images(*attempt->makers, key.row,
                                                 attempt->answers[attempt->group.front()].values,
                                                 names, attempt->stamp));
    attempt->current = std::move(images.current);
    if (TETRAD_MUTANT(view_settled_early)) settle(*attempt);
    metrics_.rows_written.add(images.mutations.size());
    if (!images.mutations.empty()) {
      WriteOptions options;
      options.level = ConsistencyLevel::kQuorum;
      options.deadline.at_us = reactor_.now_us() + kWriteUs;
      TETRAD_CO_TRY_VOID(co_await coordinator_.write(std::move(images.mutations), options));
    }
    settle(*attempt);
    if (const Attempt::Answer* answer = attempt->answer_of(own)) co_return answer->answer.sequences;
    // This store is no member any more: those that are have its changes, as far as these are
    // acknowledged, and have answered with them.
    std::vector<uint64_t> done = everything();
    store.views().settle({key.row, done, {}, attempt->stamp}, [](const Result<void>&) {});
    co_return done;
  }
  co_return fail(ErrorCode::kOverloaded, "others execute the row's tasks");
}

/// Ends when all have answered, or W have and others are late.
Task<void> ViewRunner::ask_members(std::shared_ptr<Attempt> attempt) {
  std::set<StoreAddress> members;
  for (const auto& set : attempt->sets)
    for (const StoreAddress& member : set)
      if (member.host == meta_.self() || meta_.is_live(member.host)) members.insert(member);
  attempt->asked = members.size();
  if (members.empty()) co_return;
  base::OneShot<bool> enough;
  const Bytes request = encode_view_read({attempt->epoch, attempt->row, attempt->stamp});
  const int64_t now_s = clock_.now_us(reactor_) / 1'000'000;
  const base::Deadline deadline{reactor_.now_us() + kAskUs};
  for (const StoreAddress& member : members) {
    rpc_.call(member.host, member.store, Verb::kViewRead, request, deadline,
              [attempt, member, now_s, setter = enough.setter()](Result<Bytes> reply) {
                if (setter.is_set()) return;
                auto answer = reply ? decode_view_answer(*reply)
                                    : Result<ViewRowAnswer>(std::unexpected(reply.error()));
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
                if (attempt->answers.size() + attempt->failed == attempt->asked) setter.set(true);
              });
  }
  // Whoever is late executes its tasks itself.
  tasks_.spawn([](base::Reactor& reactor, std::shared_ptr<Attempt> of, base::Deadline until,
                  base::OneShot<bool>::Setter setter) -> Task<void> {
    while (!setter.is_set() && reactor.now_us() < until.at_us) {
      const bool has_enough = of->has_quorums(of->all());
      co_await base::sleep_for(reactor, kLateAnswersUs);
      if (has_enough) break;
    }
    setter.set(true);
  }(reactor_, attempt, deadline, enough.setter()));
  co_await enough;
}

Task<Result<void>> ViewRunner::make_equal(const Attempt& attempt) {
  storage::ReadCommand command = command_of(attempt.row);
  command.now_s = clock_.now_us(reactor_) / 1'000'000;
  const MetaSnapshot state = meta_.snapshot();
  if (const TableInfo* table = state->table(attempt.row.base); table != nullptr)
    command.schema_version = state->schema_version;
  ReadOptions options;
  options.level = attempt.answers.size() == attempt.asked && attempt.failed == 0
                      ? ConsistencyLevel::kAll
                      : ConsistencyLevel::kQuorum;
  options.deadline.at_us = reactor_.now_us() + kAskUs;
  options.background = true;
  auto read = co_await coordinator_.read(std::move(command), options);
  if (!read) co_return std::unexpected(std::move(read.error()));
  co_return Result<void>();
}

void ViewRunner::settle(const Attempt& attempt) {
  const base::Deadline deadline{reactor_.now_us() + kAskUs};
  for (size_t i = 0; i < attempt.answers.size(); ++i) {
    const bool took_part = std::ranges::find(attempt.group, i) != attempt.group.end();
    if (!took_part && !TETRAD_MUTANT(view_settled_unread)) continue;
    const Attempt::Answer& member = attempt.answers[i];
    const Bytes settlement = encode_view_settlement(
        {attempt.row, member.answer.sequences, attempt.current, attempt.stamp});
    rpc_.call(member.from.host, member.from.store, Verb::kViewSettle, settlement, deadline,
              [](const Result<Bytes>&) {});
  }
}

// ---- beside it ----

void ViewRunner::on_state() {
  decltype(views_) known;
  for (uint32_t number = 0; number < stores_.size(); ++number) {
    if (stores_[number] == nullptr) continue;
    storage::StoreViews& views = stores_[number]->views();
    for (const TableIncarnation base : views.bases()) {
      const auto makers = views.makers(base);
      if (makers == nullptr) continue;
      for (const storage::ViewMakerPtr& maker : *makers) {
        const auto place = std::tuple(number, base, maker->incarnation());
        const auto before = views_.find(place);
        if (before != views_.end()) {
          known.emplace(place, before->second);
          continue;
        }
        const bool built = views.is_built(base, maker->incarnation());
        known.emplace(place, ViewStatus{base, maker->incarnation(), number, built,
                                        built ? RingPosition::highest() : RingPosition::lowest()});
        to_scan_.emplace(number, base);  // what an earlier life has left
      }
    }
  }
  views_ = std::move(known);
  if (keeps_up_ || !has_work()) return;
  keeps_up_ = true;
  tasks_.spawn(keep_up());
}

bool ViewRunner::has_work() const {
  return !views_.empty() || !to_scan_.empty() || !ranges_.empty();
}

Task<void> ViewRunner::keep_up() {
  while (has_work()) {
    co_await base::sleep_for(reactor_, kKeepUpEveryUs);
    if (!to_scan_.empty() && waiting_.size() < options_.waiting_max / 2) co_await scan_some();
    if (!ranges_.empty()) co_await expand_some();
    co_await build_some();
  }
  keeps_up_ = false;
}

/// Tasks of one base table of one store.
Task<void> ViewRunner::scan_some() {
  const auto [number, base] = *to_scan_.begin();
  to_scan_.erase(to_scan_.begin());
  Bytes after;
  while (true) {
    base::OneShot<Result<storage::ViewTaskPage>> listed;
    stores_[number]->views().list(base, after, kScanPage,
                                  [setter = listed.setter()](Result<storage::ViewTaskPage> page) {
                                    setter.set(std::move(page));
                                  });
    Result<storage::ViewTaskPage> page = co_await listed;
    if (!page) {
      to_scan_.emplace(number, base);
      co_return;
    }
    for (ViewTaskEntry& task : page->tasks) add(number, std::move(task));
    if (page->exhausted) co_return;
    if (to_scan_.contains({number, base})) co_return;  // no room for more
    after = std::move(page->next);
    co_await base::sleep_for(reactor_, options_.build_pause_us);
  }
}

Task<void> ViewRunner::expand_some() {
  for (size_t i = std::min(ranges_.size(), kRangesAtOnce); i > 0; --i) {
    auto [number, range] = std::move(ranges_.front());
    ranges_.pop_front();
    base::OneShot<Result<bool>> expanded;
    stores_[number]->views().expand(range, [setter = expanded.setter()](Result<bool> is_over) {
      setter.set(std::move(is_over));
    });
    const Result<bool> is_over = co_await expanded;
    if (!is_over || !*is_over) ranges_.emplace_back(number, std::move(range));
  }
}

/// A page of each view that is not built.
Task<void> ViewRunner::build_some() {
  if (waiting_.size() > options_.waiting_max / 4) co_return;
  std::vector<ViewStatus> building;
  for (const auto& [place, status] : views_)
    if (!status.built) building.push_back(status);
  for (const ViewStatus& status : building) {
    base::OneShot<Result<storage::ViewBuildPage>> built;
    stores_[status.store]->views().build(
        status.base, status.view, options_.build_page_bytes,
        [setter = built.setter()](Result<storage::ViewBuildPage> page) {
          setter.set(std::move(page));
        });
    const Result<storage::ViewBuildPage> page = co_await built;
    const auto known = views_.find({status.store, status.base, status.view});
    if (!page || known == views_.end()) continue;
    metrics_.rows_built.add(page->rows);
    known->second.built = page->built;
    known->second.position = page->position;
    if (page->built)
      logger_.info("all rows of a store have tasks of the view base={} view={} store={}",
                   status.base.value, status.view.value, status.store);
    co_await base::sleep_for(reactor_, options_.build_pause_us);
  }
}

void ViewRunner::register_in(base::MetricsRegistry& registry, const std::string& labels) const {
  registry.add("tetrad_replication_view_tasks_executed_total",
               "Rows of base tables whose rows in views were made anew by this shard.", labels,
               metrics_.executed);
  registry.add("tetrad_replication_view_tasks_failed_total",
               "Executions of tasks of views that ended early, to be tried again.", labels,
               metrics_.failed);
  registry.add("tetrad_replication_view_rows_written_total", "Rows written to views.", labels,
               metrics_.rows_written);
  registry.add("tetrad_replication_view_rows_built_total",
               "Rows that were there when a view was made, and have tasks of it.", labels,
               metrics_.rows_built);
  registry.add_gauge("tetrad_replication_view_tasks_pending",
                     "Tasks of views that wait, and views that are being built.", labels,
                     [this] { return static_cast<double>(pending()); });
  registry.add_gauge("tetrad_view_lag_seconds", "How long the oldest task of a view has waited.",
                     labels, [this] { return static_cast<double>(lag_us()) / 1e6; });
}

}  // namespace tetrad::replication
