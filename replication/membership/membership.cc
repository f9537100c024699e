// SPDX-License-Identifier: Apache-2.0
//
// Each heartbeat_us a node sends one message to every other: how far it has applied, its clocks,
// its disks and stores, its word on logged batches. Whoever has not been heard for long by the
// failure detector counts as down until it is heard again; who says that it ends, at once; one whose
// machine says that nobody listens there, after two heartbeats that did not come. Liveness is advice:
// it says whom to ask, never what is true. On shard 0.
#include "replication/membership/membership.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "storage/engine/store_status.h"

namespace tetrad::replication {

namespace {
/// Later programs append fields, which earlier ones pass over, and leave the number as it is.
constexpr uint8_t kHeartbeatFormat = 1;
constexpr uint32_t kStoresTold = 255;  // a byte counts them
constexpr int64_t kNotTold = std::numeric_limits<int64_t>::min();
// The bits of a heartbeat's last byte before the facts.
constexpr uint8_t kIsDrained = 1, kEnds = 2, kIsOpen = 4, kTakesNoClients = 8, kShowsMasked = 16;
}  // namespace

Membership::Membership(base::Reactor& reactor, RpcNode& rpc, HybridClock& clock,
                       MembershipOptions options, Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      clock_(clock),
      options_(options),
      logger_(std::move(logger)),
      watch_(reactor, rpc.self(), clock, logger_.named("clock")) {
  rpc_.handle(Verb::kHeartbeat, [this](const RpcContext& context, BytesView body,
                                       const RpcNode::Reply&) { on_message(context, body); });
  rpc_.on_refused([this](const Endpoint& peer) { note_refused(peer); });
}

Membership::~Membership() {
  rpc_.handle(Verb::kHeartbeat, nullptr);
  rpc_.on_refused(nullptr);
  if (timer_ != 0) reactor_.cancel(timer_);
}

void Membership::start() {
  if (timer_ != 0) return;
  tick();
}

// Removed nodes are not heard any more; new ones count as down until they are.
void Membership::set_hosts(const MetaState& state) {
  for (const auto& [host, node] : state.nodes) {
    if (host == rpc_.self()) continue;
    if (node.state == NodeState::kRemoved) {
      hosts_.erase(host);
      watch_.forget(host);
      filling_disks_.erase(host);  // listeners hear of the new state anyway
      clientless_.erase(host);
      keep_troubles(host, {});
    } else {
      hosts_.try_emplace(host, options_.heartbeat_us).first->second.address = node.address;
    }
  }
  if (std::exchange(is_known_, is_known_ || state.nodes.contains(rpc_.self()))) return;
  if (is_known_ && !hosts_.empty()) watch_.joined();
}

std::string_view Membership::address_of(HostId host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? "this node" : std::string_view(found->second.address);
}

// Fields in this order; a later program appends (membership.h has the grammar).
Bytes Membership::heartbeat(const Host& to) const {
  Bytes body;
  base::ByteWriter writer(body);
  writer.u8(kHeartbeatFormat);
  writer.u64(applied_.value);
  writer.i64(clock_.now_us(reactor_));
  writer.u64(options_.start_number);
  writer.u64(entry_.index);
  writer.u64(entry_.term);
  writer.u8(static_cast<uint8_t>(disk_usage_));
  writer.i64(reactor_.wall_time_us());
  writer.i64(watch_.told_own_us());
  writer.i64(reactor_.now_us());
  writer.i64(to.sent_us);
  writer.i64(reactor_.now_us() - to.came_us);
  writer.u8(static_cast<uint8_t>(stores_.size()));
  for (const storage::StoreState state : stores_) writer.u8(static_cast<uint8_t>(state));
  const BatchWord batches = batches_ ? batches_() : BatchWord();
  writer.i64(batches.floor_us.value_or(kNotTold));
  writer.u8(static_cast<uint8_t>((batches.is_drained ? kIsDrained : 0) | (ends_ ? kEnds : 0) |
                                 (options_.is_open ? kIsOpen : 0) |
                                 (options_.shows_masked ? kShowsMasked : 0) |
                                 (clientless_.contains(rpc_.self()) ? kTakesNoClients : 0)));
  if (options_.nonce != 0) put_facts(writer, {options_.nonce, facts_, to.life_before});
  return body;
}

// Only what is not serving is kept.
void Membership::keep_troubles(HostId host, const std::vector<storage::StoreState>& stores) {
  std::erase_if(store_troubles_, [&](const auto& entry) { return entry.first.host == host; });
  for (uint32_t store = 0; store < stores.size(); ++store)
    if (stores[store] != storage::StoreState::kServing)
      store_troubles_[{host, store}] = stores[store];
}

// Told at once, and not with the next beat: others must stop asking it.
void Membership::set_store_state(uint32_t store, storage::StoreState state) {
  if (store >= kStoresTold) return;
  if (stores_.size() <= store) stores_.resize(store + 1);
  if (std::exchange(stores_[store], state) == state) return;
  keep_troubles(rpc_.self(), stores_);
  beat_all();
  if (liveness_) liveness_(rpc_.self(), true);
}

void Membership::note_stores(HostId host, std::vector<storage::StoreState> stores) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end() || found->second.stores == stores) return;
  for (size_t i = 0; i < std::max(stores.size(), found->second.stores.size()); ++i) {
    const auto state_in = [i](const auto& states) {
      return i < states.size() ? states[i] : storage::StoreState::kServing;
    };
    if (state_in(stores) == state_in(found->second.stores)) continue;
    logger_.warn("a node's store has changed host={} address={} store={} is={}", host.to_string(),
                 found->second.address, i, storage::name_of(state_in(stores)));
  }
  keep_troubles(host, stores);
  found->second.stores = std::move(stores);
  if (liveness_) liveness_(host, is_live(host));
}

void Membership::set_store_facts(uint32_t store, StoreFacts facts) {
  if (store >= kStoresTold) return;
  if (facts_.size() <= store) facts_.resize(store + 1);
  const bool changes = facts_[store].behind != facts.behind;
  facts_[store] = std::move(facts);
  if (changes) beat_all();
}

/// What a node has reported in one life stays known through its next one, for that to compare.
void Membership::note_facts(HostId from, Host& host, uint64_t start_number, FactsTold told) {
  if (told.nonce == 0) return;
  if (host.life.nonce != told.nonce) {
    if (host.life.nonce != 0) host.life_before = std::move(host.life);
    host.life = {told.nonce, start_number, {}};
    // The new life must hear what the former one has told: it compares.
    if (host.life_before.nonce != 0) beat(from);
  }
  std::vector<StoreFacts>& known = host.life.stores;
  known.resize(std::max(known.size(), told.stores.size()));
  for (size_t i = 0; i < told.stores.size(); ++i) {
    if (told.stores[i].behind != known[i].behind)
      logger_.info("a node's store {} host={} address={} store={}",
                   told.stores[i].behind ? "is behind" : "is behind no more", from.to_string(),
                   host.address, i);
    // Numbers of one life only rise, whatever order messages come in.
    told.stores[i].written = std::max(told.stores[i].written, known[i].written);
    told.stores[i].durable = std::max(told.stores[i].durable, known[i].durable);
    known[i] = std::move(told.stores[i]);
  }
  compare_told(from, told.known);
}

void Membership::compare_told(HostId from, const LifeHeard& known) {
  if (known.nonce == 0 || known.nonce == options_.nonce) return;
  // A start number that is not above one that was used: the folder is an older copy.
  const bool rolled_back = options_.start_numbers_rise &&
                           known.start_number >= options_.start_number &&
                           !TETRAD_MUTANT(start_not_compared);
  for (uint32_t i = 0; i < options_.whole.size(); ++i) {
    if (options_.whole[i] == std::numeric_limits<uint64_t>::max()) continue;
    const uint64_t told =
        i < known.stores.size() && !TETRAD_MUTANT(told_not_compared) ? known.stores[i].written : 0;
    // It had more when it told it: something was lost (rule 20).
    if (rolled_back || told > options_.whole[i]) note_lost(from, i, told);
    if (told > options_.whole[i] && known.stores[i].durable > options_.whole[i])
      logger_.error(
          "the disk has lost what it had said was synced: replace it, or do not start a node on an "
          "older copy of its data store={} synced={} found={}",
          i, known.stores[i].durable, options_.whole[i]);
  }
}

void Membership::note_lost(HostId by, uint32_t store, uint64_t told) {
  TETRAD_ASSERT(store < options_.whole.size());
  lost_.resize(options_.whole.size());
  if (lost_[store]) return;
  lost_[store] = true;
  logger_.warn(
      "a store has less than it once told another node store={} told={} found={} by={} address={}",
      store, told, options_.whole[store], by.to_string(), address_of(by));
  if (store_lost_) store_lost_(store);
}

BehindFacts Membership::behind_stores() const {
  BehindFacts out;
  const auto take = [&out](HostId host, const std::vector<StoreFacts>& stores) {
    for (uint32_t i = 0; i < stores.size(); ++i)
      if (stores[i].behind) out[{host, i}] = stores[i];
  };
  take(rpc_.self(), facts_);
  for (const auto& [host, entry] : hosts_) take(host, entry.life.stores);
  return out;
}

void Membership::set_disk_usage(DiskUsage usage) {
  disk_usage_ = usage;
  beat_all();
  note_disk_usage(rpc_.self(), usage);
}

void Membership::set_takes_clients(bool takes) {
  if (!note_takes_clients(rpc_.self(), takes)) return;
  beat_all();
}

bool Membership::note_takes_clients(HostId host, bool takes) {
  const bool changes = takes ? clientless_.erase(host) != 0 : clientless_.insert(host).second;
  if (changes && liveness_) liveness_(host, is_live(host));
  return changes;
}

void Membership::note_disk_usage(HostId host, DiskUsage usage) {
  const auto known = filling_disks_.find(host);
  const bool fills =
      usage == DiskUsage::kStuffed || usage == DiskUsage::kFull || usage == DiskUsage::kNoRoom;
  if (!fills && known == filling_disks_.end()) return;
  if (fills && known != filling_disks_.end() && known->second == usage) return;
  if (fills)
    filling_disks_[host] = usage;
  else
    filling_disks_.erase(known);
  if (host != rpc_.self())
    logger_.info("the use of a node's disk has changed host={} address={} is={}", host.to_string(),
                 address_of(host), name_of(usage));
  if (liveness_) liveness_(host, is_live(host));
}

void Membership::beat(HostId host) {
  const auto known = hosts_.find(host);
  const Host nobody(options_.heartbeat_us);
  const Host& to = known == hosts_.end() ? nobody : known->second;
  rpc_.one_way(host, 0, Verb::kHeartbeat, heartbeat(to));
}

void Membership::beat_all() {
  for (const auto& [host, entry] : hosts_)
    rpc_.one_way(host, 0, Verb::kHeartbeat, heartbeat(entry));
}

void Membership::say_goodbye() {
  if (std::exchange(ends_, true)) return;
  beat_all();
}

void Membership::judge_clock() {
  if (!is_known_) return;  // of a node that does not know its cluster nobody asks the time
  const std::optional<HostId> leader = leader_ ? leader_() : std::nullopt;
  if (watch_.tick(hosts_.size() + 1, leader)) beat_all();
}

void Membership::tick() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.heartbeat_us, [this] { tick(); });
  judge_clock();
  beat_all();
  std::vector<HostId> down;
  // Down only here; up only by a message.
  for (auto& [host, entry] : hosts_) {
    if (!entry.live || entry.detector.phi(reactor_.now_us()) < options_.phi_down) continue;
    down.push_back(host);
  }
  set_down(down, "it is not heard");
}

// A process that died leaves a port where nobody listens. Not at the first refusal: a node that is
// heard and cannot be reached from here would come and go with each heartbeat.
void Membership::note_refused(const Endpoint& peer) {
  std::vector<HostId> down;
  for (const auto& [host, entry] : hosts_)
    if (entry.live && rpc_.peer(host) == peer &&
        entry.detector.phi(reactor_.now_us()) >= options_.phi_refused)
      down.push_back(host);
  set_down(down, "nobody listens there");
}

// All are marked before the first listener runs, which may change hosts_.
void Membership::set_down(const std::vector<HostId>& down, const char* why) {
  for (const HostId host : down) hosts_.at(host).live = false;
  for (const HostId host : down) {
    logger_.warn("node is down host={} endpoint={} reason=\"{}\"", host.to_string(),
                 rpc_.peer(host).value_or("unknown"), why);
    if (liveness_) liveness_(host, false);
  }
}

/// What a heartbeat says, as far as its sender's program knew the fields.
struct Membership::Heartbeat {
  MetaIndex applied;
  int64_t clock_us = 0;
  uint64_t start_number = 0;
  AppliedEntry entry;
  DiskUsage disk_usage = DiskUsage::kNotAvailable;
  std::optional<ClockWatch::Told> clocks;
  base::MonotonicUs sent_us = 0;
  std::vector<storage::StoreState> stores;
  int64_t batch_floor_us = kNotTold;
  bool is_drained = false, ends = false, is_open = false, shows_masked = false,
       takes_clients = true;
  FactsTold facts;
};

// What is shorter than the first four fields is of no use; what is longer than all is of a later
// program.
std::optional<Membership::Heartbeat> Membership::read_heartbeat(BytesView body) {
  base::ByteReader in(body);
  const auto format = in.read_u8();
  const auto applied = in.read_u64();
  const auto clock_us = in.read_i64();
  const auto start_number = in.read_u64();
  if (!format || *format != kHeartbeatFormat || !applied || !clock_us || !start_number)
    return std::nullopt;
  Heartbeat heard;
  heard.applied = MetaIndex{*applied};
  heard.clock_us = *clock_us;
  heard.start_number = *start_number;
  if (const auto index = in.read_u64()) {
    const auto term = in.read_u64();
    if (term) heard.entry = {*index, *term};
    if (const auto number = in.read_u8()) heard.disk_usage = disk_usage_numbered(*number);
    ClockWatch::Told told;
    told.wall_us = in.read_i64().value_or(0);
    told.own_us = in.read_i64().value_or(0);
    heard.sent_us = in.read_i64().value_or(0);
    told.asked_us = in.read_i64().value_or(0);
    if (const auto held_us = in.read_i64()) {
      told.held_us = *held_us;
      heard.clocks = told;
    }
  }
  heard.stores.resize(in.read_u8().value_or(0));
  for (storage::StoreState& state : heard.stores)
    state = storage::store_state_numbered(in.read_u8().value_or(0));
  heard.batch_floor_us = in.read_i64().value_or(kNotTold);
  const uint8_t bits = in.read_u8().value_or(0);
  heard.is_drained = (bits & kIsDrained) != 0;
  heard.ends = (bits & kEnds) != 0;
  heard.is_open = (bits & kIsOpen) != 0;
  heard.shows_masked = (bits & kShowsMasked) != 0;
  heard.takes_clients = (bits & kTakesNoClients) == 0;
  heard.facts = read_facts(in);
  return heard;
}

// How far the node is. Returns whether this is the first word of a new start.
bool Membership::note_progress(Host& host, const Heartbeat& heard) {
  const bool started_anew = host.start_number != heard.start_number;
  if (started_anew) {
    host.start_number = heard.start_number;
    // A node that was put back may have applied less.
    host.applied = MetaIndex();
  }
  host.applied = std::max(host.applied, heard.applied);
  // A word that was overtaken by a later one says nothing any more.
  if (heard.batch_floor_us != kNotTold && (started_anew || heard.sent_us >= host.sent_us))
    host.batch_floor_us = heard.batch_floor_us;
  host.is_drained = heard.is_drained;
  host.is_open = heard.is_open;
  host.shows_masked = heard.shows_masked;
  return started_anew;
}

// The wall clocks are compared; the hybrid clock follows, unless it is too far ahead.
void Membership::note_clocks(HostId from, Host& host, const Heartbeat& heard) {
  if (heard.clocks) {
    host.sent_us = heard.sent_us;
    host.came_us = reactor_.now_us();
    watch_.heard(from, *heard.clocks);
    if (clock_.standing() == ClockStanding::kSuspect) judge_clock();
  }
  const bool followed = clock_.observe(heard.clock_us, reactor_);
  if (!followed && !host.clock_refused) {
    logger_.warn(
        "the clock of a node is too far ahead and not followed host={} address={} ahead_ms={}",
        from.to_string(), host.address, (heard.clock_us - clock_.own_us(reactor_)) / 1000);
  }
  host.clock_refused = !followed;
}

// A listener may change hosts_: `host` is not used after one has run.
void Membership::note_live(const RpcContext& context, Host& host, bool started_anew) {
  host.detector.heard(reactor_.now_us());
  const bool came_up = !host.live;
  host.live = true;
  if (!came_up && !started_anew) return;
  const HostId from = context.from;
  beat(from);  // so that it need not wait for our next
  if (came_up)
    logger_.info("node is up host={} endpoint={}", from.to_string(), context.from_endpoint);
  if (liveness_) liveness_(from, true);
}

// Its next start has another number, and is heard as any node that comes.
void Membership::note_end(HostId from, Host& host) {
  if (host.live) set_down({from}, "it has said that it ends");
}

/// While it is heard where it was, whoever speaks for it from elsewhere has a copy of its data.
bool Membership::is_of_copy(const RpcContext& context, Host& host) {
  constexpr int64_t kHeardUs = 1'000'000, kSayAgainUs = 60'000'000;
  const auto known = rpc_.peer(context.from);
  if (context.from_endpoint.empty() || !known || *known == context.from_endpoint) return false;
  if (!host.live || reactor_.now_us() - host.came_us > kHeardUs) return false;
  if (host.copy_said_us == 0 || reactor_.now_us() - host.copy_said_us > kSayAgainUs) {
    host.copy_said_us = reactor_.now_us();
    logger_.error(
        "two nodes have the same data directory, or a copy of it, and one of them is not listened "
        "to: end it host={} endpoint={} other={}",
        context.from.to_string(), *known, context.from_endpoint);
  }
  return true;
}

void Membership::on_message(const RpcContext& context, BytesView body) {
  std::optional<Heartbeat> heard = read_heartbeat(body);
  if (!heard) return;
  const HostId from = context.from;
  const auto found = hosts_.find(from);
  // A stranger's word changes nothing.
  if (found == hosts_.end()) return;  // not a member, as far as this node knows yet
  Host& host = found->second;
  if (is_of_copy(context, host)) return;
  // A node that came back elsewhere is heard before the metadata says so.
  if (!context.from_endpoint.empty() && rpc_.peer(from) != context.from_endpoint)
    rpc_.set_peer(from, context.from_endpoint);
  const bool started_anew = note_progress(host, *heard);
  note_clocks(from, host, *heard);
  if (heard->ends)
    note_end(from, host);
  else
    note_live(context, host, started_anew);
  note_takes_clients(from, heard->takes_clients);
  note_disk_usage(from, heard->disk_usage);
  note_stores(from, std::move(heard->stores));
  if (const auto again = hosts_.find(from); again != hosts_.end())
    note_facts(from, again->second, heard->start_number, std::move(heard->facts));
  if (heartbeat_) heartbeat_(from, heard->entry);
}

std::optional<int64_t> Membership::batch_floor_us(const MetaState& state) const {
  std::optional<int64_t> floor_us = batches_ ? batches_().floor_us : std::nullopt;
  for (const auto& [host, node] : state.nodes) {
    if (host == rpc_.self() || node.state == NodeState::kRemoved) continue;
    const auto found = hosts_.find(host);
    // Unknown of one node: unknown of all, and the horizon stays (rule 26).
    if (!floor_us || found == hosts_.end() || !found->second.batch_floor_us) return std::nullopt;
    floor_us = std::min(*floor_us, *found->second.batch_floor_us);
  }
  return floor_us;
}

bool Membership::is_drained(HostId host) const {
  if (host == rpc_.self()) return !batches_ || batches_().is_drained;
  const auto found = hosts_.find(host);
  return found == hosts_.end() || found->second.is_drained;
}

bool Membership::is_live(HostId host) const {
  if (host == rpc_.self()) return true;
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.live;
}

MetaIndex Membership::applied_of(HostId host) const {
  if (host == rpc_.self()) return applied_;
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? MetaIndex() : found->second.applied;
}

std::vector<HostId> Membership::open_hosts() const {
  std::vector<HostId> open;
  for (const auto& [host, entry] : hosts_)
    if (entry.live && entry.is_open) open.push_back(host);
  return open;
}

std::vector<HostId> Membership::unmasking_hosts() const {
  std::vector<HostId> unmasking;
  for (const auto& [host, entry] : hosts_)
    if (entry.live && entry.shows_masked) unmasking.push_back(host);
  return unmasking;
}

std::vector<HostId> Membership::live_hosts() const {
  std::vector<HostId> live;
  for (const auto& [host, entry] : hosts_)
    if (entry.live) live.push_back(host);
  return live;
}

}  // namespace tetrad::replication
