// SPDX-License-Identifier: Apache-2.0
// Tasks of views, as a shard executes them:
//
//   1. Stores tell of each task as they make it (add); what does not fit in memory is found later
//      by scans of the stores.
//   2. A row is due after a pause that depends on the member's place in its set, so that mostly one
//      member executes it and the others find it settled.
//   3. execute() (view_execution.cc) reads, writes the view and settles; what it has not seen waits
//      again.
//   4. Beside it ranges are expanded to rows, stores scanned, and views built, a page at a time.
//
// Tasks live on disk, in the store (rule 24); what is here is a list of what to do next, which may
// be lost. `waiting_` has rows with their tasks by sequence, `due_` the same rows by time; a row is
// in due_ unless it runs. All on the shard's thread.
#include "replication/views/view_runner.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/hash.h"
#include "base/sleep.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/quorum.h"
#include "replication/views/view_image_plan.h"
#include "replication/views/view_messages.h"

namespace tetrad::replication {

using storage::ViewRowAnswer;
using storage::ViewStamp;
using storage::ViewTaskEntry;

namespace {

// Pauses after an execution that failed: doubled, up to a second.
constexpr int64_t kTryAgainUs = 100'000, kTryAgainMostUs = 1'000'000;
constexpr int64_t kSlowUs = 500'000;  // half of what members are given to answer
constexpr uint32_t kPutOffMost = 3;
constexpr uint64_t kLargeBytes = 256 << 10;  // of a row: it takes a turn of the members, or more
constexpr int64_t kKeepUpEveryUs = 50'000;
// Executions that do not see a task after which it is taken for gone; failures after which a row is
// named in the log.
constexpr uint32_t kUnseenMost = 3, kTriesToTell = 10;
// Keys of a page of a scan, ranges that are expanded at once, tasks of a row that are counted on.
constexpr size_t kScanPage = 4096, kRangesAtOnce = 16, kTasksPerRowAbout = 4;
constexpr size_t kBuildAheadMax = 512;  // rows of a build that wait, about

}  // namespace

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
  rpc_.handle(Verb::kViewMend,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_mend(context, body, std::move(reply));
              });
  rpc_.handle(Verb::kViewAwait,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_await(context, body, std::move(reply));
              });
}

ViewRunner::~ViewRunner() {
  rpc_.handle(Verb::kViewRead, nullptr);
  rpc_.handle(Verb::kViewSettle, nullptr);
  rpc_.handle(Verb::kViewMend, nullptr);
  rpc_.handle(Verb::kViewAwait, nullptr);
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

// ---- what waits ----

void ViewRunner::add(uint32_t store, ViewTaskEntry entry) {
  const TableIncarnation base = entry.row.base;
  // No room: the store has the task, a scan finds it later.
  const auto find_later = [&] { to_scan_.emplace(store, base); };
  if (waiting_.size() + ranges_.size() >= options_.waiting_max ||
      tasks_known_ >= kTasksPerRowAbout * options_.waiting_max)
    return find_later();
  if (entry.of_range) {
    since_us_[base].insert(entry.time_us);
    Key start{store, entry.row};
    ranges_.push_back(std::make_shared<Range>(store, std::move(entry)));
    range_of_.emplace(std::move(start), ranges_.back());
    return expand_some();
  }
  Key key{store, std::move(entry.row)};
  const auto [found, is_new] = waiting_.try_emplace(key);
  Waiting& waiting = found->second;
  // The newest stands for those before it: the row is executed until that is done.
  if (waiting.tasks.size() >= options_.tasks_of_row_max) {
    const auto newest = std::prev(waiting.tasks.end());
    if (entry.sequence <= newest->first) return;
    waiting.tasks.erase(newest);
    --tasks_known_;
  }
  if (waiting.tasks.emplace(entry.sequence, entry.time_us).second) ++tasks_known_;
  // `lag` is as old as the oldest task.
  note_since(base, waiting);
  if (is_new) set_due(key, waiting, reactor_.now_us() + turn_after_us(key));
}

// So the first task is the oldest.
// Sequences rise with time.
void ViewRunner::note_since(TableIncarnation base, Waiting& waiting) {
  const int64_t since_us = waiting.tasks.empty() ? 0 : waiting.tasks.begin()->second;
  if (since_us == waiting.since_us) return;
  if (waiting.since_us != 0) forget_since(base, waiting.since_us);
  waiting.since_us = since_us;
  if (since_us != 0) since_us_[base].insert(since_us);
}

void ViewRunner::forget_since(TableIncarnation base, int64_t since_us) {
  const auto of_base = since_us_.find(base);
  TETRAD_ASSERT(of_base != since_us_.end());
  const auto counted = of_base->second.find(since_us);
  TETRAD_ASSERT(counted != of_base->second.end());
  of_base->second.erase(counted);
  if (of_base->second.empty()) since_us_.erase(of_base);
}

std::vector<uint64_t> ViewRunner::known_of(const Key& key) const {
  std::vector<uint64_t> known;
  for (const auto& [sequence, time_us] : waiting_.at(key).tasks) known.push_back(sequence);
  return known;
}

// A row has one entry in due_ or due_first_: the old one goes.
void ViewRunner::set_due(const Key& key, Waiting& waiting, base::MonotonicUs due_us) {
  if (waiting.due_us != 0) due_of(waiting).erase({waiting.due_us, key});
  waiting.due_us = due_us;
  waiting.is_first = goes_first(waiting);
  due_of(waiting).emplace(due_us, key);
  look_at(due_us);
}

void ViewRunner::drop(const Key& key, Waiting& waiting, const std::vector<uint64_t>& done) {
  for (const uint64_t sequence : done) {
    const size_t gone = waiting.tasks.erase(sequence);
    TETRAD_ASSERT(tasks_known_ >= gone);
    tasks_known_ -= gone;
  }
  note_since(key.row.base, waiting);
  release_awaited(waiting);
  if (!waiting.tasks.empty() || waiting.runs) return;
  due_of(waiting).erase({waiting.due_us, key});
  waiting_.erase(key);
}

// Members take turns by a hash of the row: each begins with other rows, and a member that is down
// delays its rows by one step.
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
  // Most are due at once where somebody waits for them; a timer is a system call.
  if (at_us <= reactor_.now_us()) {
    if (std::exchange(is_posted_, true)) return;
    reactor_.post([this, alive = std::weak_ptr<char>(alive_)] {
      if (alive.expired()) return;
      is_posted_ = false;
      pump();
    });
    return;
  }
  if (timer_ != 0 && timer_at_us_ <= at_us) return;
  if (timer_ != 0) reactor_.cancel(timer_);
  timer_at_us_ = at_us;
  timer_ = reactor_.call_at(at_us, [this] {
    timer_ = 0;
    pump();
  });
}

void ViewRunner::pump() {
  // running_most_ bounds executions, and so reads and writes of this shard for views. Those that
  // find nothing to write may end within the call, so what is begun in one turn of the loop is
  // bounded, too.
  size_t begun = 0;
  while (running_ < running_most_ && begun++ < options_.running_max) {
    Due* const due = next_due();
    if (due == nullptr) break;
    const Key key = due->begin()->second;
    due->erase(due->begin());
    Waiting& waiting = waiting_.at(key);
    TETRAD_ASSERT(!waiting.runs);
    waiting.due_us = 0;
    waiting.runs = true;
    ++running_;
    tasks_.spawn(run(key));
  }
  look_at_next();
}

// Of four executions three are of rows that clients wait for, while there are such; the others must
// not wait for ever.
ViewRunner::Due* ViewRunner::next_due() {
  const base::MonotonicUs now_us = reactor_.now_us();
  const auto is_due = [&](const Due& due) { return !due.empty() && due.begin()->first <= now_us; };
  const bool first = is_due(due_first_), other = is_due(due_);
  if (!first && !other) return nullptr;
  constexpr uint32_t kOneIsOther = 4;
  ++begun_;
  return !first || (other && begun_ % kOneIsOther == 0) ? &due_ : &due_first_;
}

void ViewRunner::look_at_next() {
  if (running_ >= running_most_) return;
  for (const Due* due : {&due_first_, &due_})
    if (!due->empty()) look_at(due->begin()->first);
}

size_t ViewRunner::pending() const {
  const auto building =
      std::ranges::count_if(views_, [](const auto& view) { return !view.second.built; });
  return waiting_.size() + ranges_.size() + expanding_ + to_scan_.size() +
         static_cast<size_t>(building) + (scanned_ ? 1 : 0);
}

int64_t ViewRunner::lag_us() const {
  const int64_t now_us = reactor_.wall_time_us();
  int64_t oldest_us = now_us;
  for (const auto& [base, since_us] : since_us_) oldest_us = std::min(oldest_us, *since_us.begin());
  return now_us - oldest_us;
}

std::vector<ViewStatus> ViewRunner::statuses() {
  std::vector<ViewStatus> all;
  for (auto& [place, status] : views_) {
    status.complete = status.complete || is_complete(status);
    all.push_back(status);
  }
  return all;
}

// By the oldest task of the shard's rows of the base table, whichever view's and store's it is.
bool ViewRunner::is_complete(const ViewStatus& status) const {
  const std::pair place(status.store, status.base);
  if (!status.built || scanned_ == place || to_scan_.contains(place)) return false;
  const auto of_base = since_us_.find(status.base);
  return of_base == since_us_.end() || *of_base->second.begin() > status.built_us;
}

// Without it members would execute a large row side by side, each slower for the others.
void ViewRunner::put_off(uint32_t store, const storage::ViewRow& row, uint64_t bytes) {
  if (bytes < kLargeBytes) return;
  const auto known = waiting_.find({store, row});
  if (known == waiting_.end() || known->second.runs) return;
  // Not for ever: that member may never get on with it.
  if (++known->second.put_off > kPutOffMost) return;
  const auto steps = static_cast<int64_t>(bytes / kLargeBytes);
  const base::MonotonicUs later_us = reactor_.now_us() + steps * options_.next_after_us;
  if (later_us > known->second.due_us) set_due(known->first, known->second, later_us);
}

void ViewRunner::note_outcome(bool is_done, int64_t took_us) {
  if (is_done)
    running_most_ = std::min(running_most_ + 1, options_.running_max);
  else if (took_us >= kSlowUs)
    running_most_ = std::max<size_t>(running_most_ / 2, 1);
}

// ---- executing ----

Task<void> ViewRunner::run(Key key) {
  // Tasks known before the execution: those that it did not see are looked at below.
  const std::vector<uint64_t> known = known_of(key);
  for (AwaitedRow& row : waiting_.at(key).awaited) row.is_covered = true;
  const base::MonotonicUs began_us = reactor_.now_us();
  const auto done = co_await execute(key, waiting_.at(key).tries);
  TETRAD_ASSERT(running_ != 0);
  --running_;
  note_outcome(done.has_value(), reactor_.now_us() - began_us);
  Waiting& waiting = waiting_.at(key);
  TETRAD_ASSERT(waiting.runs);
  waiting.runs = false;
  if (done || waiting.tries + 1 >= kTriesAwaited) release_covered(waiting);
  if (done) {
    metrics_.executed.add();
    waiting.tries = waiting.put_off = 0;
    forget_unseen(key, waiting, known, *done);
    drop(key, waiting, *done);
  } else {
    metrics_.failed.add();
    // Once a row, while it does not change.
    if (++waiting.tries == kTriesToTell)
      logger_.warn("a row of a view cannot be made, it is tried again base={} error=\"{}\"",
                   key.row.base.value, done.error().message);
    logger_.debug("a task of a view is tried again tries={} error=\"{}\"", waiting.tries,
                  done.error().message);
  }
  if (const auto left = waiting_.find(key); left != waiting_.end()) {
    // What came meanwhile, or was not seen, by turns again.
    // Others may have it in their turn meanwhile.
    const int64_t pause_us =
        !left->second.awaited.empty() ? (done ? 0 : options_.first_after_us)
        : done && left->second.unseen == 0
            ? turn_after_us(key)
            : std::min(kTryAgainMostUs,
                       kTryAgainUs << std::min(left->second.tries + left->second.unseen, 5u));
    set_due(key, left->second, reactor_.now_us() + pause_us);
  }
  // Not pump(), which may have called this: one within the other they would fill the stack.
  look_at_next();
}

/// What reads of the store do not show was settled when a list of tasks was on its way, or was
/// never written; a new list tells.
void ViewRunner::forget_unseen(const Key& key, Waiting& waiting, const std::vector<uint64_t>& known,
                               const std::vector<uint64_t>& done) {
  // Of a row with many tasks a read shows the first ones.
  // Sequences from kViewNotes on are notes, not tasks.
  const auto behind = std::ranges::lower_bound(done, storage::kViewNotes);
  const uint64_t read_to = behind == done.begin() ? storage::kViewNotes : *(behind - 1);
  std::vector<uint64_t> unseen;
  for (const uint64_t sequence : known)
    if (sequence < read_to && waiting.tasks.contains(sequence) &&
        !std::ranges::binary_search(done, sequence))
      unseen.push_back(sequence);
  if (unseen.empty()) {
    waiting.unseen = 0;
    return;
  }
  // While the row is written all the time there are some that are on their way.
  if (std::exchange(waiting.unseen_first, unseen.front()) != unseen.front()) waiting.unseen = 0;
  if (++waiting.unseen < kUnseenMost) return;
  for (const uint64_t sequence : unseen) tasks_known_ -= waiting.tasks.erase(sequence);
  // A scan of the store says which tasks there are.
  to_scan_.emplace(key.store, key.row.base);
}

// ---- beside it ----

// By the schema as the stores know it: views that are new here are scanned for tasks of an earlier
// life, and built.
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
        known.emplace(place, ViewStatus{base, maker->incarnation(), number, built, false,
                                        built ? RingPosition::highest() : RingPosition::lowest(), 0,
                                        reactor_.wall_time_us()});
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

// Runs while there is anything to keep up with.
Task<void> ViewRunner::keep_up() {
  while (has_work()) {
    const bool builds =
        std::ranges::any_of(views_, [](const auto& view) { return !view.second.built; });
    co_await base::sleep_for(reactor_, builds ? options_.build_pause_us : kKeepUpEveryUs);
    expand_some();
    // Beside the rest: a store may have many notes to pass over.
    if (!scanned_ && !to_scan_.empty() && waiting_.size() < options_.waiting_max / 2)
      tasks_.spawn(scan_some());
    co_await build_some();
  }
  keeps_up_ = false;
}

/// Tasks of one base table of one store.
Task<void> ViewRunner::scan_some() {
  TETRAD_ASSERT(!to_scan_.empty());
  scanned_ = *to_scan_.begin();
  co_await scan_one();
  scanned_.reset();
}

Task<void> ViewRunner::scan_one() {
  TETRAD_ASSERT(!to_scan_.empty());
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
      // Another time: the error is of the store, not of the table.
      to_scan_.emplace(number, base);
      co_return;
    }
    for (ViewTaskEntry& task : page->tasks) add(number, std::move(task));
    if (page->exhausted) co_return;
    // add() found no room: scan again later, from the beginning.
    if (to_scan_.contains({number, base})) co_return;  // no room for more
    after = std::move(page->next);
    co_await base::sleep_for(reactor_, options_.build_pause_us);
  }
}

// Half of the room is kept for rows that clients write.
void ViewRunner::expand_some() {
  while (!ranges_.empty() && expanding_ < kRangesAtOnce &&
         waiting_.size() < options_.waiting_max / 2) {
    RangePtr range = std::move(ranges_.front());
    ranges_.pop_front();
    ++expanding_;
    tasks_.spawn(expand_one(std::move(range)));
  }
}

Task<void> ViewRunner::expand_one(RangePtr range) {
  co_await base::sleep_for(reactor_, 0);  // not within the call that begins it
  base::OneShot<Result<bool>> expanded;
  const ViewTaskEntry& task = range->task;
  stores_[range->store]->views().expand(
      task, [setter = expanded.setter()](Result<bool> is_over) { setter.set(std::move(is_over)); });
  const Result<bool> is_over = co_await expanded;
  if (!is_over) co_await base::sleep_for(reactor_, kKeepUpEveryUs);
  TETRAD_ASSERT(expanding_ != 0);
  --expanding_;
  if (is_over && *is_over) {
    // The range is done when its last row has a task.
    forget_since(task.row.base, task.time_us);
    forget_range(range);
  } else {
    ranges_.push_back(std::move(range));
  }
  expand_some();
}

/// "keyspace.table", or the number of one that is gone.
std::string ViewRunner::name_for_log(TableIncarnation table) const {
  const MetaSnapshot state = meta_.snapshot();
  const auto found = state->by_incarnation.find(table);
  if (found == state->by_incarnation.end()) return std::to_string(table.value);
  const TableInfo& info = *found->second;
  return info.keyspace + "." + info.name;
}

/// A page of each view that is not built.
Task<void> ViewRunner::build_some() {
  // What clients write is not to wait behind it.
  if (waiting_.size() > kBuildAheadMax) co_return;
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
    // The view may have been dropped while the page was made.
    const Result<storage::ViewBuildPage> page = co_await built;
    const auto known = views_.find({status.store, status.base, status.view});
    if (!page || known == views_.end()) continue;
    metrics_.rows_built.add(page->rows);
    known->second.built = page->built;
    known->second.built_us = reactor_.wall_time_us();
    known->second.position = page->position;
    known->second.rows += page->rows;
    if (page->built)
      logger_.info("all rows of a store have tasks of the view base={} view={} store={}",
                   name_for_log(status.base), name_for_log(status.view), status.store);
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
