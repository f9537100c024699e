// SPDX-License-Identifier: Apache-2.0
// Lends from the buckets that this node holds: never more than a slice at once, so that no shard
// can hold back what others wait for.
#include "replication/throughput/throughput_holder.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/hash.h"
#include "base/sleep.h"
#include "replication/tablets/load_report.h"
#include "replication/tablets/split_runner.h"
#include "storage/row/row_weight.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kForgetEveryUs = 60 * kSecondUs;
constexpr int64_t kForgottenAfterUs = 310 * kSecondUs;
constexpr int64_t kTickUs = 100'000;
constexpr int64_t kAskUs = 100'000;
constexpr uint64_t kReportTicks = 50;
constexpr uint64_t kReportAllTicks = 12 * kReportTicks;  // for who was not there before
constexpr int kHandOverTries = 10;
constexpr int64_t kOverlapUs = 10 * kSecondUs;        // longer than what any bucket holds
constexpr size_t kPeersAsked = 8;                     // in one tick
constexpr size_t kTabletsAsked = 512;                 // of this node, at once
constexpr uint64_t kKeyspaceKey = uint64_t{1} << 63;  // no tablet's number is so high

/// Rendezvous hashing: all who see the same nodes live choose the same one, and it stays while it
/// lives.
HostId keyspace_holder(const MetaState& state, const MetaService& meta,
                       const std::string& keyspace) {
  HostId chosen = meta.self();
  uint64_t highest = 0;
  for (const auto& [host, node] : state.nodes) {
    if (node.state == NodeState::kRemoved || !meta.is_live(host)) continue;
    // No coordination: a node that comes or goes moves only the keyspaces that it wins or loses.
    const uint64_t score = base::xxh3_64(keyspace + std::string(host.value.view()));
    if (score < highest) continue;
    highest = score;
    chosen = host;
  }
  return chosen;
}

bool has_own_limit(const TableInfo* table) {
  return table != nullptr && table->throughput.is_limited() && !table->throughput.of_keyspace;
}

/// Whether a place of the ring has other members, or has them in another order.
bool members_differ(const partitioner::TabletMap& was, const partitioner::TabletMap& is) {
  // Both maps are sorted and cover the whole ring: one pass over the ends of both.
  auto old_one = was.tablets().begin();
  for (const partitioner::Tablet& tablet : is.tablets()) {
    for (; old_one->range.end < tablet.range.end; ++old_one)
      if (old_one->replicas != tablet.replicas) return true;
    if (old_one->replicas != tablet.replicas) return true;
    if (old_one->range.end == tablet.range.end) ++old_one;
  }
  return false;
}

/// Of two states: whether the same nodes may hold a keyspace's bucket.
bool nodes_differ(const MetaState& before, const MetaState& now) {
  return !std::ranges::equal(before.nodes, now.nodes, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.state == b.second.state;
  });
}

uint64_t borrower(HostId from, uint32_t shard) { return base::xxh3_64(from.value.view()) + shard; }

/// What one physical partition may give, in weight.
uint64_t most_of(const MetaState& state) {
  const uint64_t most =
      setting_or(state, kSettingPhysicalPartitionRuPerS, kPhysicalPartitionRuPerSDefault) *
      storage::kWeightOfUnit;
  return std::min(most, TokenBucket::kPerSecondMax);
}

/// What it may use of what it has banked, beside its own.
uint64_t burst_of(const MetaState& state, uint64_t per_s) {
  const uint64_t burst_per_s =
      setting_or(state, kSettingBurstRuPerS, kBurstRuPerSDefault) * storage::kWeightOfUnit;
  const uint64_t most = most_of(state);
  return most <= per_s ? 0 : std::min(burst_per_s, most - per_s);
}

}  // namespace

BucketName bucket_of(const TableInfo& table, TabletId tablet) {
  BucketName out;
  out.per_s = uint64_t{table.throughput.ru_per_s} * storage::kWeightOfUnit;
  if (table.throughput.of_keyspace) {
    // The highest bit tells keys of keyspaces from numbers of tablets.
    out.key = base::xxh3_64(table.keyspace) | kKeyspaceKey;
  } else {
    out.key = tablet.value;
    out.per_s /= table.tablets.tablets().size();
  }
  TETRAD_ASSERT(table.throughput.is_limited());
  out.per_s = std::clamp<uint64_t>(out.per_s, 1, TokenBucket::kPerSecondMax);
  return out;
}

const TableInfo* table_of(const MetaState& state, uint64_t key, TableIncarnation last) {
  if (state.limited_tables == 0) return nullptr;
  const TableInfo* table = state.table(last);
  // A bucket of a tablet lives and dies with its table.
  if (key < kKeyspaceKey) return has_own_limit(table) ? table : nullptr;
  const auto is_through = [&](const TableInfo& through) {
    return through.throughput.is_limited() && through.throughput.of_keyspace &&
           bucket_of(through, {}).key == key;
  };
  if (table != nullptr && is_through(*table)) return table;
  for (const auto& [id, other] : state.tables)
    if (is_through(*other)) return other.get();
  return nullptr;
}

HostId holder_of(const MetaState& state, const MetaService& meta, const TableInfo& table,
                 const partitioner::Tablet& tablet) {
  // A keyspace's bucket is no tablet's: its name alone chooses the node.
  if (table.throughput.of_keyspace) return keyspace_holder(state, meta, table.keyspace);
  return tablet.replicas.empty() ? HostId() : acting_member(tablet, meta).host;
}

ThroughputHolder::ThroughputHolder(base::Reactor& reactor, RpcNode& rpc, MetaService& meta)
    : reactor_(reactor), rpc_(rpc), meta_(meta), all_since_us_(reactor.now_us()) {
  rpc.handle(Verb::kBorrowThroughput,
             [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
               const auto loan = borrow(context.from, body);
               if (loan) return reply.ok(encode_loan(*loan));
               reply.error(loan.error());
             });
  rpc.handle(Verb::kReturnThroughput,
             [this](const RpcContext&, BytesView body, RpcNode::Reply reply) {
               const auto taken = take_back(body);
               if (taken) return reply.ok({});
               reply.error(taken.error());
             });
  rpc.handle(Verb::kShareThroughput,
             [this](const RpcContext&, BytesView body, RpcNode::Reply reply) {
               const auto given = share(body);
               if (given) return reply.ok(encode_share(*given));
               reply.error(given.error());
             });
  subscription_ = meta.subscribe(
      [this](const MetaSnapshot& before, const MetaSnapshot& now) { on_state(before, now); });
}

ThroughputHolder::~ThroughputHolder() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

Result<Loan> ThroughputHolder::borrow(HostId from, BytesView body) {
  TETRAD_TRY(const BorrowRequest request, decode_borrow_request(body));
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(request.table);
  if (table == nullptr || !table->throughput.is_limited())
    return fail(ErrorCode::kStaleSchema, "no limited table {} here", request.table.value);
  const auto found = held_for(*state, *table, request.tablet, request.place);
  if (!found && TETRAD_MUTANT(throughput_ghost_bucket))
    return Loan{slice_of(bucket_of(*table, request.tablet).per_s), 0};
  if (!found) return std::unexpected(found.error());
  HeldBucket& held = **found;
  const base::MonotonicUs now_us = reactor_.now_us();
  // Shards, not nodes, are counted: each spends a slice of its own.
  held.borrowers.note(borrower(from, request.shard), now_us);
  held.asked.add(request.debt + request.refused_weight, now_us);
  held.lent.add(request.debt, now_us);
  // Debts first: what was spent without asking counts before anything is lent.
  held.bucket.take(request.debt, now_us);
  const uint64_t burst_per_s = burst_of(*state, held.per_s);
  held.burst(burst_per_s, now_us);
  // A tablet that lives on gifts of others lends faster than its own part.
  uint64_t rate = std::max(held.per_s, held.lent.per_s(now_us));
  if (held.banked() > slice_of(burst_per_s)) rate = std::max(rate, held.per_s + burst_per_s);
  const Slice slice = lend(held.bucket, rate, held.borrowers.count(now_us), now_us);
  held.asked.add(slice.granted, now_us);
  held.lent.add(slice.granted, now_us);
  held.use.add(request.debt + slice.granted, reactor_.wall_time_us());
  held.refused += request.refused;
  return Loan{slice.granted, slice.retry_us, std::min(rate, TokenBucket::kPerSecondMax)};
}

Result<void> ThroughputHolder::take_back(BytesView body) {
  TETRAD_TRY(const ReturnRequest request, decode_return_request(body));
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(request.table);
  if (table == nullptr || !table->throughput.is_limited())
    return fail(ErrorCode::kStaleSchema, "no limited table {} here", request.table.value);
  TETRAD_TRY(HeldBucket* const held, held_for(*state, *table, request.tablet, request.place));
  uint64_t returned = request.returned;
  if (request.is_handed_over) {
    // What has flowed in here since this node certainly holds it did not flow in there.
    const TableIncarnation of = table->throughput.of_keyspace ? TableIncarnation() : request.table;
    const auto since_us = static_cast<uint64_t>(std::min(idle_us(of), kOverlapUs));
    returned -= std::min(returned, held->per_s * since_us / kSecondUs);
  } else {
    held->use.give_back(returned, reactor_.wall_time_us());
  }
  held->bucket.put(returned, reactor_.now_us());
  held->bucket.take(request.debt, reactor_.now_us());
  return {};
}

Result<HeldBucket*> ThroughputHolder::held_for(const MetaState& state, const TableInfo& table,
                                               TabletId tablet,
                                               const std::optional<RingPosition>& place) {
  const std::vector<partitioner::Tablet>& tablets = table.tablets.tablets();
  // With a place it is a search in the map; older programs send the number alone, which is a scan.
  const auto named = place ? tablets.begin() + (&table.tablets.find(*place) - tablets.data())
                           : std::ranges::find(tablets, tablet, &partitioner::Tablet::id);
  if (named == tablets.end() || named->id != tablet)
    return fail(ErrorCode::kStaleEpoch, "no physical partition {} here", tablet.value);
  if (holder_of(state, meta_, table, *named) != meta_.self())
    return fail(ErrorCode::kStaleEpoch, "the throughput of {} is not kept here", tablet.value);
  if (timer_ == 0) arm();
  if (!table.throughput.of_keyspace) return &held_for(table, *named);
  const base::MonotonicUs now_us = reactor_.now_us();
  const BucketName name = bucket_of(table, tablet);
  auto found = keyspaces_.find(name.key);
  if (found == keyspaces_.end()) found = keyspaces_.emplace(name.key, new_bucket(name, {})).first;
  HeldBucket& held = found->second;
  held.set_rate(name.per_s, now_us);
  held.table = table.incarnation;
  held.used_us = now_us;
  return &held;
}

HeldBucket& ThroughputHolder::held_for(const TableInfo& table, const partitioner::Tablet& tablet) {
  const base::MonotonicUs now_us = reactor_.now_us();
  HeldTable& held_table = follow(table).held;
  HeldBucket* known = held_table.find(tablet);
  if (known == nullptr)
    known = &held_table.add(tablet, new_bucket(bucket_of(table, tablet.id), table.incarnation));
  HeldBucket& held = *known;
  held.table = table.incarnation;
  held.used_us = now_us;
  return held;
}

HeldBucket ThroughputHolder::new_bucket(BucketName name, TableIncarnation table) const {
  HeldBucket out = HeldBucket::idle(name.per_s, idle_us(table), reactor_.now_us());
  out.burst(burst_of(*meta_.snapshot(), name.per_s), reactor_.now_us());
  out.use.go_on(meta_.used_throughput(name.key), reactor_.wall_time_us());
  return out;
}

ThroughputHolder::OfTable& ThroughputHolder::follow(const TableInfo& table) {
  OfTable& of = tables_[table.incarnation];
  if (of.held.version() != table.tablets.version())
    of.held.follow(table.tablets, bucket_of(table, {}).per_s, reactor_.now_us());
  return of;
}

/// Since when this node holds the bucket of a tablet for certain, and has lent nothing of it.
int64_t ThroughputHolder::idle_us(TableIncarnation table) const {
  base::MonotonicUs since_us = all_since_us_;
  const auto found = since_us_.find(table);
  if (found != since_us_.end()) since_us = std::max(since_us, found->second);
  return std::max<int64_t>(reactor_.now_us() - since_us, 0);
}

void ThroughputHolder::on_state(const MetaSnapshot& before, const MetaSnapshot& now) {
  const bool is_first = before->applied.value == 0;  // in this life of the node
  if (is_first || before == now || nodes_differ(*before, *now)) {
    all_since_us_ = reactor_.now_us();
    ++changes_;
    holders_changed_ = true;
  }
  if (is_first || before == now || (before->limited_tables == 0 && now->limited_tables == 0))
    return;
  // Only tables that differ: the maps share what is equal.
  decltype(MetaState::tables)::compare(
      before->tables, now->tables,
      [this](const TableId&, const std::shared_ptr<const TableInfo>* was,
             const std::shared_ptr<const TableInfo>* is) {
        on_table(was == nullptr ? nullptr : was->get(), is == nullptr ? nullptr : is->get());
      });
}

void ThroughputHolder::on_table(const TableInfo* was, const TableInfo* is) {
  if (was != nullptr && (!has_own_limit(is) || is->incarnation != was->incarnation)) {
    tables_.erase(was->incarnation);
    since_us_.erase(was->incarnation);
  }
  if (!has_own_limit(is)) return;
  const base::MonotonicUs now_us = reactor_.now_us();
  if (!has_own_limit(was)) {
    // So the bucket of a new table is full.
    since_us_[is->incarnation] = now_us - kSecondUs;  // nobody has lent of it yet
  } else if (is->incarnation != was->incarnation) {
    since_us_[is->incarnation] = now_us;
  } else if (is->tablets.version() != was->tablets.version() &&
             members_differ(was->tablets, is->tablets)) {
    since_us_[is->incarnation] = now_us;
    holders_changed_ = true;
  }
  const auto found = tables_.find(is->incarnation);
  if (found != tables_.end())
    found->second.held.follow(is->tablets, bucket_of(*is, {}).per_s, now_us);
}

void ThroughputHolder::arm() {
  timer_ = reactor_.call_at(reactor_.now_us() + kTickUs, [this] {
    timer_ = 0;
    tick();
    if (!tables_.empty() || !keyspaces_.empty()) arm();
  });
}

void ThroughputHolder::tick() {
  // Not inside on_state(): that runs in the middle of a change of the metadata.
  if (std::exchange(holders_changed_, false)) hand_over();
  const MetaSnapshot state = meta_.snapshot();
  for (const auto& [incarnation, of] : tables_) {
    const TableInfo* table = state->table(incarnation);
    if (has_own_limit(table)) collect(*state, *table);
  }
  if (++ticks_ % kReportTicks == 0) report(ticks_ % kReportAllTicks == 0);
  if (reactor_.now_us() - forgotten_us_ >= kForgetEveryUs) forget_idle();
}

/// To this node first (ReplicationNode), which passes it on.
void ThroughputHolder::report(bool all) {
  ThroughputReport out;
  const auto send = [&] {
    rpc_.one_way(meta_.self(), 0, Verb::kThroughputUse, encode_throughput_report(out));
    out.clear();
  };
  const int64_t wall_us = reactor_.wall_time_us();
  const auto look_at = [&](ThroughputKey key, HeldBucket& held) {
    UsedThroughput used = held.use.used(wall_us);
    used.refused = held.refused;
    used.banked_ru = static_cast<uint32_t>(
        std::min<uint64_t>(held.banked() / storage::kWeightOfUnit, UINT32_MAX));
    // Idle buckets cost nothing but the round of each minute.
    if (used == held.told && !all) return;
    held.told = used;
    out.emplace_back(key, used);
    if (out.size() == kThroughputReportEntriesMax) send();
  };
  for (auto& [incarnation, of] : tables_)
    for (auto& [end, held] : of.held.all()) look_at(held.tablet.value, held);
  for (auto& [key, held] : keyspaces_) look_at(key, held);
  if (!out.empty()) send();
}

/// What others hold now goes to them, with what it owes.
void ThroughputHolder::hand_over() {
  const MetaSnapshot state = meta_.snapshot();
  const base::MonotonicUs now_us = reactor_.now_us();
  const bool can_return = state->format >= kFormatThroughput;
  const auto moves = [&](uint64_t key, HeldBucket& held) {
    const TableInfo* table = table_of(*state, key, held.table);
    if (table == nullptr) return true;
    held.table = table->incarnation;
    const partitioner::Tablet& tablet = table->tablets.find(held.range.end);
    if (holder_of(*state, meta_, *table, tablet) == meta_.self()) return false;
    const int64_t level = held.bucket.level(now_us);
    ReturnRequest request{held.table, tablet.id, held.range.end};
    request.is_handed_over = true;
    // A level and a debt are two fields on the wire, since varints have no sign.
    (level >= 0 ? request.returned : request.debt) = static_cast<uint64_t>(std::abs(level));
    if (level != 0 && can_return) tasks_.spawn(hand_over(key, request));
    return true;
  };
  for (auto& [incarnation, of] : tables_) {
    HeldTable::ByEnd& all = of.held.all();
    for (auto at = all.begin(); at != all.end();)
      at = moves(at->second.tablet.value, at->second) ? all.erase(at) : std::next(at);
  }
  for (auto at = keyspaces_.begin(); at != keyspaces_.end();)
    at = moves(at->first, at->second) ? keyspaces_.erase(at) : std::next(at);
}

/// The other one may not know yet that it holds it.
Task<void> ThroughputHolder::hand_over(uint64_t key, ReturnRequest request) {
  for (int tries = 0; tries < kHandOverTries; ++tries) {
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = table_of(*state, key, request.table);
    if (table == nullptr) co_return;
    request.table = table->incarnation;
    const partitioner::Tablet& tablet = table->tablets.find(request.place);
    request.tablet = tablet.id;
    const HostId holder = holder_of(*state, meta_, *table, tablet);
    Bytes body = encode_return_request(request);
    const base::Deadline deadline{reactor_.now_us() + kAskUs};
    const Result<Bytes> taken =
        co_await rpc_.ask(holder, 0, Verb::kReturnThroughput, std::move(body), deadline);
    // What was not answered may have been taken: it is not given twice.
    if (taken || taken.error().code == ErrorCode::kTimedOut) co_return;
    co_await base::sleep_for(reactor_, kTickUs);
  }
}

Result<uint64_t> ThroughputHolder::share(BytesView body) {
  TETRAD_TRY(const ShareRequest request, decode_share_request(body));
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(request.table);
  if (!has_own_limit(table))
    return fail(ErrorCode::kStaleSchema, "no limited table {} here", request.table.value);
  if (timer_ == 0) arm();
  return give(*table, request.wanted);
}

void ThroughputHolder::look_who_holds(const TableInfo& table, OfTable& of) {
  if (of.version == table.tablets.version() && of.changes == changes_) return;
  of.version = table.tablets.version();
  of.changes = changes_;
  of.own.clear();
  of.peers.clear();
  const std::vector<partitioner::Tablet>& tablets = table.tablets.tablets();
  for (size_t i = 0; i < tablets.size(); ++i) {
    if (tablets[i].replicas.empty()) continue;
    const HostId holder = acting_member(tablets[i], meta_).host;
    if (holder == meta_.self())
      of.own.push_back(i);
    else
      of.peers.push_back(holder);
  }
  std::ranges::sort(of.peers);
  of.peers.erase(std::ranges::unique(of.peers).begin(), of.peers.end());
}

/// Of this node's tablets, from the one on that had something the last time.
uint64_t ThroughputHolder::give(const TableInfo& table, uint64_t wanted) {
  OfTable& of = follow(table);
  look_who_holds(table, of);
  uint64_t given = 0;
  // Bounded: a table may have very many tablets, and this runs on the loop.
  const size_t looked_at = std::min(of.own.size(), kTabletsAsked);
  for (size_t looked = 0; looked < looked_at && given < wanted; ++looked) {
    const partitioner::Tablet& tablet =
        table.tablets.tablets()[of.own[of.next_own % of.own.size()]];
    given += held_for(table, tablet).give(wanted - given, reactor_.now_us());
    TETRAD_ASSERT(given <= wanted);
    if (given < wanted) ++of.next_own;
  }
  return given;
}

void ThroughputHolder::collect(const MetaState& state, const TableInfo& table) {
  if (table.tablets.tablets().size() == 1) return;
  OfTable& of = follow(table);
  if (of.is_collecting) return;
  const uint64_t most_per_s = most_of(state);
  const uint64_t wanted = of.held.asks_for(most_per_s, reactor_.now_us());
  if (wanted == 0) return;
  const uint64_t given = give(table, wanted);
  of.held.spread(given, most_per_s, reactor_.now_us());
  TETRAD_ASSERT(given <= wanted);
  if (given == wanted || of.peers.empty() || state.format < kFormatThroughput) return;
  // One round at a time for a table: collect() does nothing until this one has ended.
  of.is_collecting = true;
  const uint64_t more = std::min(wanted - given, TokenBucket::kPerSecondMax);
  tasks_.spawn(collect_from_others(table.incarnation, more));
}

/// One after another, from the one on that had something the last time.
Task<void> ThroughputHolder::collect_from_others(TableIncarnation incarnation, uint64_t wanted) {
  for (size_t asked = 0; asked < kPeersAsked; ++asked) {
    const auto now = tables_.find(incarnation);
    if (now == tables_.end()) co_return;
    const std::vector<HostId>& peers = now->second.peers;
    if (asked >= peers.size()) break;
    const HostId peer = peers[now->second.next_peer % peers.size()];
    Bytes request = encode_share_request({incarnation, wanted});
    const base::Deadline deadline{reactor_.now_us() + kAskUs};
    const Result<Bytes> reply =
        co_await rpc_.ask(peer, 0, Verb::kShareThroughput, std::move(request), deadline);
    uint64_t given = reply ? std::min(decode_share(*reply).value_or(0), wanted) : 0;
    if (!reply && TETRAD_MUTANT(throughput_unheard_taken)) given = wanted;
    const auto then = tables_.find(incarnation);
    // The table may have been dropped, or its buckets handed over, while the node was asked.
    if (then == tables_.end()) co_return;
    const MetaSnapshot state = meta_.snapshot();
    then->second.held.spread(given, most_of(*state), reactor_.now_us());
    wanted -= given;
    if (wanted == 0) break;
    // It had less than was wanted: the next round begins with another one.
    ++then->second.next_peer;
  }
  const auto then = tables_.find(incarnation);
  if (then != tables_.end()) then->second.is_collecting = false;
}

/// They are full again, and so is what they have banked.
void ThroughputHolder::forget_idle() {
  forgotten_us_ = reactor_.now_us();
  const auto is_idle = [&](const auto& entry) {
    return entry.second.used_us <= forgotten_us_ - kForgottenAfterUs;
  };
  for (auto& [incarnation, of] : tables_) std::erase_if(of.held.all(), is_idle);
  std::erase_if(keyspaces_, is_idle);
  std::erase_if(tables_, [](const auto& entry) {
    return entry.second.held.all().empty() && !entry.second.is_collecting;
  });
}

}  // namespace tetrad::replication
