// SPDX-License-Identifier: Apache-2.0
// A replay of an entry whose coordinator has not ended it:
//
//   1. It is read and decoded; what does not decode is set apart.
//   2. Another node gets it first, if the coordinator had reached this one alone (share).
//   3. Its parts are written one after another. Each that is on W is noted, so that a later try
//      does not repeat it; a newer version of the entry begins anew.
//   4. When all are written the entry goes, here and on its other holder. Otherwise it is put off.
#include "replication/batches/batch_service.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/sleep.h"

namespace tetrad::replication {

namespace {
constexpr int64_t kBackOffMaxUs = 60'000'000;
}

BatchService::BatchService(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                           Membership& membership, storage::LocalLog& log, BatchOptions options,
                           Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      membership_(membership),
      options_(options),
      logger_(std::move(logger)),
      store_(log, reactor, options.store) {
  register_verbs();
}

BatchService::~BatchService() {
  stop();
  for (const Verb verb : {Verb::kBatchLogStore, Verb::kBatchLogRemove, Verb::kBatchFloor})
    rpc_.handle(verb, nullptr);
}

void BatchService::register_verbs() {
  rpc_.handle(Verb::kBatchLogStore,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_store(context, body, std::move(reply));
              });
  rpc_.handle(Verb::kBatchLogRemove,
              [this](const RpcContext&, BytesView body, const RpcNode::Reply&) {
                const auto id = decode_batch_id(body);
                if (!id) return;
                metrics_.removed.add();
                store_.remove(*id);
                if (!running_.contains(*id)) under_way_.erase(*id);
              });
  rpc_.handle(Verb::kBatchFloor, [this](const RpcContext&, BytesView, RpcNode::Reply reply) {
    const auto floor_us = membership_.batch_floor_us(*meta_.snapshot());
    if (!floor_us)
      return reply.error(
          Error(ErrorCode::kBehind, "a node has not said which logged batches it holds"));
    Bytes answer;
    base::ByteWriter(answer).i64(*floor_us);
    reply.ok(std::move(answer));
  });
}

// A node that may have held batches and removed them says no floor for a while: messages that write
// their parts may still be under way.
Result<void> BatchService::open() {
  auto opened = store_.open([this](uint8_t rank) { return due_us(rank); });
  if (opened && store_.was_used())
    silent_until_us_ = reactor_.now_us() + options_.replay_timeout_us;
  if (opened && store_.count() != 0)
    logger_.info("logged batches of the last life are held count={}", store_.count());
  if (opened && store_.apart_count() != 0)
    logger_.error("logged batches that do not decode are set apart, and not replayed here count={}",
                  store_.apart_count());
  return opened;
}

void BatchService::start(Coordinator& coordinator) {
  coordinator_ = &coordinator;
  timer_ = reactor_.call_at(reactor_.now_us() + options_.look_every_us, [this] { look(); });
}

// Tasks use the coordinator, which goes before this object.
void BatchService::stop() {
  if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
  tasks_.destroy_all();
  coordinator_ = nullptr;
}

// The first holder waits for the coordinator, the second one longer.
base::MonotonicUs BatchService::due_us(uint8_t rank) const {
  return reactor_.now_us() + options_.replay_after_us * (1 + rank);
}

int64_t BatchService::oldest_age_us() const {
  const int64_t oldest_us = store_.oldest_us();
  if (store_.count() == 0 || oldest_us == BatchStore::kNone) return 0;
  return std::max<int64_t>(0, membership_.clock().own_us(reactor_) - oldest_us);
}

bool BatchService::is_leaving() const {
  const MetaSnapshot state = meta_.snapshot();
  const NodeInfo* own = state->node(rpc_.self());
  return own != nullptr && own->state != NodeState::kNormal && own->state != NodeState::kJoining;
}

/// The floor: no batch that this node will ever replay was begun before it. Repair keeps its
/// horizon below the floors of all nodes (rules 18 and 26). A clock that is off must not promise
/// anything about what comes later.
BatchWord BatchService::word() const {
  BatchWord word;
  const HybridClock& clock = membership_.clock();
  if (clock.is_good() && reactor_.now_us() >= silent_until_us_)
    word.floor_us = std::min(store_.oldest_us(), clock.own_us(reactor_));
  word.is_drained = is_leaving() && store_.count() == 0;
  return word;
}

// ---- store ----

Result<void> BatchService::check(const BatchHead& head, const RpcContext& context) const {
  // A batch that is taken after its deadline could be older than what the horizon has passed.
  if (reactor_.now_us() >= context.deadline.at_us)
    return fail(ErrorCode::kTimedOut, "the batch has come too late");
  const HybridClock& clock = membership_.clock();
  if (!clock.is_good()) {
    const Error why = clock.refusal();
    return fail(ErrorCode::kClockOff, "{}", why.message);
  }
  // The horizon may pass what is older (see BatchWord).
  const int64_t slack_us = options_.horizon.clock_skew_us + options_.horizon.longest_deadline_us;
  // But for what the other holder has, whose word counts until this node's does.
  if (context.from != head.other && head.created_us < clock.own_us(reactor_) - slack_us)
    return fail(ErrorCode::kTimedOut, "the batch was begun too long ago");
  if (is_leaving()) return fail(ErrorCode::kUnavailable, "the node leaves its cluster");
  return {};
}

// Answered when it is synced (rule 26).
void BatchService::on_store(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  const auto entry = decode_batch_entry(body);
  if (!entry) return reply.error(entry.error());
  if (auto fits = check(entry->head, context); !fits) {
    metrics_.refused.add();
    return reply.error(fits.error());
  }
  store_.store(
      entry->head, Bytes(body), due_us(entry->head.rank),
      [this, alive = store_.alive(), reply = std::move(reply)](Result<void> stored) mutable {
        if (!*alive) return;
        (stored ? metrics_.stored : metrics_.refused).add();
        if (stored) return reply.ok({});
        reply.error(stored.error());
        // A log that fails a write is not to be used any more.
        if (stored.error().code == ErrorCode::kIo && options_.fatal) options_.fatal(stored.error());
      });
}

// ---- replay ----

void BatchService::look() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.look_every_us, [this] { look(); });
  // Removals are unsynced; this makes them last.
  store_.sync_removed();
  const bool leaves = is_leaving();
  // Who leaves cannot wait for coordinators, but does not hurry them either.
  const base::MonotonicUs until_us = reactor_.now_us() + (leaves ? options_.replay_after_us : 0);
  // More than may run are listed, since some of them run already.
  for (const BatchStore::Due& due : store_.due(until_us, options_.replays_max * 4)) {
    if (running_.size() >= options_.replays_max) return;
    if (running_.insert(due.id).second) tasks_.spawn(replay(due));
  }
}

Task<void> BatchService::replay(BatchStore::Due due) {
  Result<bool> done = co_await replay_parts(due);
  // An entry that was removed meanwhile is no error.
  if (!done && store_.version_of(due.id))
    logger_.error("a logged batch does not read id={} error={}", due.id.to_string(),
                  done.error().message);
  if (done && *done) {
    metrics_.replayed.add();
    under_way_.erase(due.id);
  } else {
    metrics_.replays_failed.add();
    put_off(due.id);
  }
  TETRAD_ASSERT(running_.contains(due.id));
  running_.erase(due.id);
}

// Doubled up to a bound: members that are down do not come back sooner by asking.
void BatchService::put_off(const Uuid& id) {
  if (!store_.version_of(id)) {
    under_way_.erase(id);
    return;
  }
  Progress& progress = under_way_[id];
  progress.back_off_us =
      std::min(std::max(progress.back_off_us * 2, options_.look_every_us), kBackOffMaxUs);
  store_.set_due(id, reactor_.now_us() + progress.back_off_us);
}

Task<Result<bool>> BatchService::replay_parts(BatchStore::Due due) {
  base::OneShot<Result<std::optional<Bytes>>> read;
  BatchStore::ReadCallback take = [setter = read.setter()](Result<std::optional<Bytes>> entry) {
    setter.set(std::move(entry));
  };
  store_.read(due.id, std::move(take));
  Result<std::optional<Bytes>> encoded = co_await read;
  if (!encoded) {
    // What the log cannot give does not come back by asking again.
    if (encoded.error().code == ErrorCode::kCorruption) set_apart(due.id, {}, encoded.error());
    co_return std::unexpected<Error>(encoded.error());
  }
  if (!*encoded) {  // removed meanwhile
    store_.remove(due.id);
    co_return true;
  }
  Result<BatchEntry> entry = decode_batch_entry(**encoded);
  if (!entry) {
    set_apart(due.id, std::move(**encoded), entry.error());
    co_return std::unexpected<Error>(entry.error());
  }
  const BatchHead head = entry->head;
  if (meta_.snapshot()->applied < head.applied) co_return false;  // knows its tables too little
  {
    Progress& progress = under_way_[due.id];
    // A new version of the entry has other stamps: parts that were written count no more.
    if (progress.version != head.version || progress.done.size() != entry->parts.size()) {
      progress.version = head.version;
      progress.done.assign(entry->parts.size(), false);
    }
  }
  const Shared shared = co_await share(head, entry->parts);
  if (shared == Shared::kNo) co_return false;
  // The other holder has seen its end.
  if (shared == Shared::kIsDone) {
    store_.remove(due.id);
    co_return true;
  }
  bool all = true;
  for (size_t i = 0; i < entry->parts.size(); ++i) {
    const auto before = under_way_.find(due.id);
    if (before == under_way_.end()) co_return true;
    TETRAD_ASSERT(i < before->second.done.size());
    if (before->second.done[i]) continue;
    storage::Mutation part = std::move(entry->parts[i]);
    const bool written = co_await write_part(std::move(part), head.created_us);
    // The coordinator may have ended or renewed it meanwhile.
    const auto version = store_.version_of(due.id);
    if (!version) co_return true;
    if (*version != head.version) co_return false;  // another stamp: from the beginning
    // Stamped once, so that a part that is written twice changes nothing (rule 26).
    under_way_[due.id].done[i] = written;
    all = all && written;
    co_await base::sleep_for(reactor_, options_.pause_us);
  }
  const auto version = store_.version_of(due.id);
  if (!all || (version && *version != head.version)) co_return false;
  const auto progress = under_way_.find(due.id);
  const HostId shared_with =
      progress == under_way_.end() ? head.other : progress->second.shared_with;
  remove(due.id, head.other);
  if (shared_with != head.other && !shared_with.value.is_nil())
    rpc_.one_way(shared_with, 0, Verb::kBatchLogRemove, encode_batch_id(due.id));
  co_return true;
}

/// It would be tried for ever, and hold the purge horizon of the cluster down.
void BatchService::set_apart(const Uuid& id, Bytes found, const Error& why) {
  const auto head = decode_batch_head(found);
  logger_.error(
      "a logged batch is set apart: it is replayed by its other holder, if that one can read it "
      "id={} other={} bytes={} error={}",
      id.to_string(), head ? head->other.to_string() : "unknown", found.size(), why.message);
  store_.set_apart(id, std::move(found));
}

Task<BatchService::Shared> BatchService::give_to(HostId host, BatchHead head,
                                                 const std::vector<storage::Mutation>& parts) {
  head.other = rpc_.self();
  head.rank = 1;
  // The new holder is the second one.
  const base::Deadline deadline{reactor_.now_us() + options_.replay_timeout_us};
  Bytes body = encode_batch_entry(head, parts);
  Result<Bytes> answer =
      co_await rpc_.ask(host, 0, Verb::kBatchLogStore, std::move(body), deadline);
  if (answer) {
    const auto progress = under_way_.find(head.id);
    if (progress != under_way_.end()) progress->second.shared_with = host;
    co_return Shared::kYes;
  }
  // It knows the batch as ended.
  co_return answer.error().code == ErrorCode::kNotFound ? Shared::kIsDone : Shared::kNo;
}

Task<BatchService::Shared> BatchService::share(BatchHead head,
                                               const std::vector<storage::Mutation>& parts) {
  if (TETRAD_MUTANT(batch_one_holder)) co_return Shared::kYes;
  // Once is enough for an entry.
  const auto progress = under_way_.find(head.id);
  if (progress != under_way_.end() && !progress->second.shared_with.value.is_nil())
    co_return Shared::kYes;
  std::vector<HostId> others;
  size_t nodes = 0;
  const MetaSnapshot state = meta_.snapshot();
  for (const auto& [host, node] : state->nodes) {
    if (host == rpc_.self() || node.state != NodeState::kNormal) continue;
    ++nodes;
    if (meta_.is_live(host) && host != head.other) others.push_back(host);
  }
  if (nodes == 0) co_return Shared::kYes;  // there is nobody else
  const NodeInfo* holder = state->node(head.other);
  // One that leaves takes none: two that leave would wait for each other.
  if (holder != nullptr && holder->state == NodeState::kNormal && meta_.is_live(head.other)) {
    const HostId other = head.other;
    const Shared shared = co_await give_to(other, head, parts);
    co_return shared;
  }
  if (others.empty()) co_return Shared::kNo;
  // By the batch's id, so that all nodes choose the same one.
  const HostId host = others[head.id.octets[15] % others.size()];
  const Shared shared = co_await give_to(host, head, parts);
  co_return shared;
}

Task<bool> BatchService::write_part(storage::Mutation part, int64_t created_us) {
  TETRAD_ASSERT(coordinator_ != nullptr);
  const TableIncarnation incarnation = part.incarnation;
  // Its table was dropped or truncated: this node knows more than who made the batch.
  if (meta_.snapshot()->table(incarnation) == nullptr) {
    metrics_.parts_dropped.add();
    co_return true;
  }
  // ONE: no write is acknowledged by fewer than W (rule 1), so that is what it means here.
  WriteOptions options;
  options.level = ConsistencyLevel::kOne;  // W
  options.deadline = {reactor_.now_us() + options_.replay_timeout_us};
  options.write_type = base::WriteType::kBatch;
  options.taken_us = created_us;
  std::vector<storage::Mutation> mutations;
  mutations.push_back(std::move(part));
  Result<void> written = co_await coordinator_->write(std::move(mutations), options);
  if (written || TETRAD_MUTANT(batch_done_at_hints)) co_return true;
  // Refused because the table went meanwhile.
  if (meta_.snapshot()->table(incarnation) != nullptr) co_return false;
  metrics_.parts_dropped.add();
  co_return true;
}

// The removal is remembered for a while: a late store of the same batch must not bring it back.
void BatchService::remove(const Uuid& id, HostId other) {
  store_.remove(id, options_.replay_timeout_us + options_.horizon.clock_skew_us);
  if (!other.value.is_nil()) rpc_.one_way(other, 0, Verb::kBatchLogRemove, encode_batch_id(id));
}

void BatchService::register_in(base::MetricsRegistry& registry) const {
  registry.add("tetrad_replication_batches_stored_total",
               "Logged batches, and later versions of them, that this node has kept for others.",
               "", metrics_.stored);
  registry.add("tetrad_replication_batches_refused_total",
               "Logged batches that this node has not taken.", "", metrics_.refused);
  registry.add("tetrad_replication_batches_replayed_total",
               "Logged batches that this node has written for their coordinators.", "",
               metrics_.replayed);
  registry.add("tetrad_replication_batch_replays_failed_total",
               "Replays of logged batches with a part that is not on enough replicas yet.", "",
               metrics_.replays_failed);
  registry.add_gauge("tetrad_replication_batches_held", "Logged batches that wait here.", "",
                     [this] { return static_cast<double>(store_.count()); });
  registry.add_gauge("tetrad_replication_batches_apart",
                     "Logged batches that do not decode, and are set apart.", "",
                     [this] { return static_cast<double>(store_.apart_count()); });
  registry.add_gauge("tetrad_replication_batches_oldest_seconds",
                     "Age of the oldest logged batch that waits here.", "",
                     [this] { return static_cast<double>(oldest_age_us()) / 1e6; });
}

}  // namespace tetrad::replication
