// SPDX-License-Identifier: Apache-2.0
// Filling new members of a tablet.
//
// The store's side of a change of members:
//   - Confirm (kConfirmEpoch): this store knows the epoch, erased what an earlier stay had left
//     (rule 11), no write of an older epoch is under way, and the epoch is synced (rules 8 and 21).
//   - Give (kStreamRange): a page of rows and registers, from a member of the old set that is not
//     behind. The first page waits for writes of older epochs.
//   - Pull (kPullTablet), on a new member: asks R members of the old set one after another (rule
//     10), merges each page into the store and the change log, then flushes. It is done when R have
//     given all. A member that stays pulls registers alone: rows that it lacks come by the settling.
//
// The asker repeats everything: a request that is lost or refused costs time.
#include "replication/tablets/tablet_stream.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/sleep.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

// The most that one page may hold, and how long it may take; how long a sync may; the pause after a
// failure.
constexpr uint64_t kPageBytesMax = 16 << 20;
constexpr int64_t kPageUs = 10'000'000;
constexpr int64_t kSyncUs = 5'000'000;
constexpr int64_t kTryAgainUs = 200'000;
// Fills whose result is remembered, so that an answer that was lost is given again.
constexpr size_t kFillsKept = 4096;
// Of a page, at once: one with many small registers has more than may wait for their turn.
constexpr size_t kAppliedAtOnce = 1000;
// Most partitions have no registers: so many are looked at for a page of them.
constexpr size_t kRegistersPagePartitions = 10'000;

Bytes encode_page(const storage::Store::ExportPage& page) {
  Bytes body;
  base::ByteWriter writer(body);
  writer.u8(page.exhausted ? 1 : 0);
  writer.bytes(page.next);
  writer.varint(page.mutations.size());
  Bytes encoded;
  for (const storage::Mutation& mutation : page.mutations) {
    encoded.clear();
    storage::encode_streamed_mutation(mutation, encoded);
    writer.bytes(encoded);
  }
  return body;
}

/// In the shape of an export.
storage::Store::ExportPage page_of(TableIncarnation incarnation, SchemaVersion schema_version,
                                   storage::Store::RegistersPage registers) {
  storage::Store::ExportPage page;
  page.exhausted = registers.exhausted;
  page.next = std::move(registers.next);
  for (auto& entry : registers.entries) {
    storage::Mutation& mutation = page.mutations.emplace_back();
    mutation.incarnation = incarnation;
    mutation.schema_version = schema_version;
    mutation.position = entry.position;
    mutation.partition_key = std::move(entry.partition_key);
    storage::encode_registers(entry.registers, mutation.registers);
  }
  return page;
}

Error not_drained() {
  return Error(ErrorCode::kBehind, "writes of an earlier epoch have not ended");
}

Error still_erasing() {
  return Error(ErrorCode::kBehind, "what an earlier stay has left is being erased");
}

}  // namespace

TabletStream::TabletStream(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                           std::vector<storage::Store*> stores, const Fences& fences,
                           StoreCleanup& cleanup, const BehindStores& behind, ChangeLogs& changes,
                           PaxosKeys& paxos_keys, uint64_t page_bytes, Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      stores_(std::move(stores)),
      fences_(fences),
      cleanup_(cleanup),
      behind_(behind),
      changes_(changes),
      paxos_keys_(paxos_keys),
      page_bytes_(page_bytes),
      logger_(std::move(logger)) {
  rpc_.handle(Verb::kConfirmEpoch,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_confirm(context, body, std::move(reply));
              });
  rpc_.handle(Verb::kStreamRange,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_stream(context, body, std::move(reply));
              });
  rpc_.handle(Verb::kPullTablet,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                on_pull(context, body, std::move(reply));
              });
}

TabletStream::~TabletStream() {
  for (const Verb verb : {Verb::kConfirmEpoch, Verb::kStreamRange, Verb::kPullTablet})
    rpc_.handle(verb, nullptr);
}

Result<TabletStream::Found> TabletStream::find(const TabletEpoch& what, uint32_t store) const {
  const MetaSnapshot state = meta_.snapshot();
  if (store >= stores_.size() || stores_[store] == nullptr)
    return fail(ErrorCode::kNotFound, "no store {} here", store);
  const auto table = state->by_incarnation.find(what.incarnation);
  if (table == state->by_incarnation.end())
    return fail(ErrorCode::kBehind, "table incarnation {} is not known", what.incarnation.value);
  // The tablet must be at the very epoch: an older map here waits (kBehind), a newer one refuses.
  for (const Tablet& tablet : table->second->tablets.tablets()) {
    if (tablet.id != what.tablet) continue;
    if (tablet.epoch < what.epoch && !TETRAD_MUTANT(source_not_closed))
      return fail(ErrorCode::kBehind, "tablet {} is at epoch {} here, not {}", what.tablet.value,
                  tablet.epoch.value, what.epoch.value);
    if (tablet.epoch > what.epoch)
      return fail(ErrorCode::kStaleEpoch, "tablet {} is at epoch {} here, past {}",
                  what.tablet.value, tablet.epoch.value, what.epoch.value);
    return Found{table->second, tablet, stores_[store]};
  }
  return fail(ErrorCode::kBehind, "tablet {} is not known", what.tablet.value);
}

/// What this shard knows now it refuses the opposite of. It says so when nothing that it took
/// before can come after, and a restart keeps it so. A store that is stuck says nothing; W others
/// do.
void TabletStream::on_confirm(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  const auto what = decode_tablet_epoch(body);
  if (!what) return reply.error(what.error());
  const auto found = find(*what, context.store);
  if (!found) return reply.error(found.error());
  if (!cleanup_.may_take(what->incarnation, found->tablet, context.store))
    return reply.error(still_erasing());
  TETRAD_ASSERT(fences_[context.store] != nullptr);
  fences_[context.store]->drained(
      what->incarnation, found->tablet.range, what->epoch, context.deadline,
      [this, alive = std::weak_ptr<char>(alive_), reply = std::move(reply)](bool drained) mutable {
        if (alive.expired()) return;
        if (!drained) return reply.error(not_drained());
        // Shard 0 has the metadata: its applied index is synced there for all shards.
        rpc_.call(
            rpc_.self(), 0, Verb::kSyncApplied, "", base::Deadline{reactor_.now_us() + kSyncUs},
            [alive = std::move(alive), reply = std::move(reply)](Result<Bytes> synced) mutable {
              if (!alive.expired()) reply.result(std::move(synced));
            });
      });
}

void TabletStream::on_stream(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  constexpr size_t kEpochBytes = 20;
  const auto what = decode_tablet_epoch(body);
  if (!what) return reply.error(what.error());
  base::ByteReader in(body.substr(std::min(kEpochBytes, body.size())));
  const auto after = in.read_bytes();
  const auto bytes_max = in.read_varint();
  if (!after || !bytes_max)
    return reply.error(Error(ErrorCode::kCorruption, "a stream request that cannot be read"));
  const auto parts = in.read_u8();  // none: as nodes ask that do not know of it
  Asked asked{Bytes(*after), *bytes_max, parts && *parts == 1};
  const auto found = find(*what, context.store);
  if (!found) return reply.error(found.error());
  const StoreAddress here{rpc_.self(), context.store};
  const auto& members = found->tablet.replicas;
  // Only the old set has what the new one lacks.
  if (std::find(members.begin(), members.end(), here) == members.end())
    return reply.error(Error(ErrorCode::kNotFound, "this store is no member of the old set"));
  // Later pages go on behind the first, which has waited already.
  if (!asked.after.empty())
    return give_page(*what, context.store, std::move(asked), std::move(reply));
  // Writes from before the stage 'write both' must be in the first page already.
  TETRAD_ASSERT(fences_[context.store] != nullptr);
  fences_[context.store]->drained(
      what->incarnation, found->tablet.range, what->epoch, context.deadline,
      [this, alive = std::weak_ptr<char>(alive_), what = *what, store = context.store,
       asked = std::move(asked), reply = std::move(reply)](bool drained) mutable {
        if (alive.expired()) return;
        if (!drained) return reply.error(not_drained());
        give_page(what, store, std::move(asked), std::move(reply));
      });
}

void TabletStream::give_page(const TabletEpoch& what, uint32_t store, Asked asked,
                             RpcNode::Reply reply) {
  // Looked up again: epochs may have changed while writes were waited for.
  const auto found = find(what, store);
  if (!found) return reply.error(found.error());
  if (behind_.is_behind(store, what.incarnation, found->tablet.range) &&
      !TETRAD_MUTANT(behind_is_source))
    return reply.error(BehindStores::refusal());
  if (asked.registers_alone) {
    return found->store->list_registers(
        found->table->incarnation, found->tablet.range, std::move(asked.after),
        kRegistersPagePartitions,
        [alive = std::weak_ptr<char>(alive_), incarnation = what.incarnation,
         version = meta_.snapshot()->schema_version,
         reply = std::move(reply)](Result<storage::Store::RegistersPage> page) mutable {
          if (alive.expired()) return;
          if (page)
            reply.ok(encode_page(page_of(incarnation, version, std::move(*page))));
          else
            reply.error(page.error());
        });
  }
  // With registers: promises must not be forgotten by a move (rule 27).
  found->store->export_range(
      found->table->incarnation, found->tablet.range, std::move(asked.after),
      std::min(asked.bytes_max, kPageBytesMax), storage::ExportParts::kRowsAndRegisters,
      [alive = std::weak_ptr<char>(alive_),
       reply = std::move(reply)](Result<storage::Store::ExportPage> page) mutable {
        if (alive.expired()) return;
        if (page)
          reply.ok(encode_page(*page));
        else
          reply.error(page.error());
      });
}

std::vector<FillFacts> TabletStream::fills(size_t count_max) const {
  std::vector<const FillFacts*> found;
  found.reserve(fills_.size());
  for (const auto& [key, facts] : fills_) found.push_back(&facts);
  const size_t count = std::min(count_max, found.size());
  std::ranges::stable_sort(found, [](const FillFacts* a, const FillFacts* b) {
    return std::pair(a->is_filled, -a->changed_us) < std::pair(b->is_filled, -b->changed_us);
  });
  std::vector<FillFacts> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) out.push_back(*found[i]);
  return out;
}

void TabletStream::on_pull(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  const auto what = decode_tablet_epoch(body);
  if (!what) return reply.error(what.error());
  const auto found = find(*what, context.store);
  if (!found) return reply.error(found.error());
  if (found->tablet.stage != TabletStage::kStream && !has_lost_members(found->tablet))
    return reply.error(Error(ErrorCode::kStaleEpoch, "the tablet is not being streamed"));
  if (!cleanup_.may_take(what->incarnation, found->tablet, context.store))
    return reply.error(still_erasing());
  // One fill for each epoch: a new stage begins anew.
  const Key key{what->tablet, context.store, what->epoch};
  const auto known = fills_.find(key);
  if (known != fills_.end()) {
    reply.ok(Bytes(1, known->second.is_filled ? '\1' : '\0'));
    return;
  }
  // Those under way are kept.
  if (fills_.size() >= kFillsKept)
    std::erase_if(fills_, [](const auto& entry) { return entry.second.is_filled; });
  FillFacts begun;
  begun.tablet = key.tablet;
  begun.store = key.store;
  begun.began_us = begun.changed_us = reactor_.wall_time_us();
  fills_.emplace(key, std::move(begun));
  tasks_.spawn(fill(*what, context.store));
  reply.ok(Bytes(1, '\0'));
}

bool TabletStream::stays(const Tablet& tablet, uint32_t store) const {
  return index_in(tablet.replicas, {rpc_.self(), store}) >= 0;
}

/// Until it is done, or the epoch is over.
Task<void> TabletStream::fill(TabletEpoch what, uint32_t store) {
  const Key key{what.tablet, store, what.epoch};
  TETRAD_ASSERT(fills_.contains(key));
  std::vector<StoreAddress> done;
  while (true) {
    // The epoch is over: nobody waits for this fill any more.
    const auto found = find(what, store);
    if (!found) {
      fills_.erase(key);
      co_return;
    }
    // With a full disk it waits; the leader gives the change up if that takes too long.
    const auto disk = meta_.filling_disks().find(meta_.self());
    if (disk != meta_.filling_disks().end() && disk->second == DiskUsage::kNoRoom) {
      co_await base::sleep_for(reactor_, kTryAgainUs);
      continue;
    }
    const std::vector<StoreAddress> sources = found->tablet.replicas;
    // R members, R of each data centre among them: together they have every acknowledged write.
    // After a loss what any of them has counts.
    const auto is_damaged = [this](const StoreAddress& source) {
      return meta_.state_of(source) == storage::StoreState::kDamaged;
    };
    Need wanted = TETRAD_MUTANT(fill_from_one)
                      ? Need(sources.size(), 1)
                      : finding(meta_.snapshot()->data_centers.get(), sources);
    if (has_lost_members(found->tablet)) {
      const Members sound =
          members_that(sources, [&](const auto& source) { return !is_damaged(source); });
      wanted = {};
      wanted.also({sound, std::popcount(sound)});
    }
    const auto given = [&] {
      return members_that(sources, [&](const StoreAddress& source) {
        return std::ranges::find(done, source) != done.end();
      });
    };
    for (size_t i = 0; i < sources.size(); ++i) {
      const StoreAddress& source = sources[i];
      // Enough of this data centre have given already.
      if (!wanted.wants(i, given())) continue;
      const bool gives = meta_.is_replica_live(source) &&
                         (!is_damaged(source) || TETRAD_MUTANT(damaged_is_source));
      if (!gives || std::ranges::find(done, source) != done.end()) continue;
      std::vector<HostId>& asked = fills_.at(key).sources;
      if (std::ranges::find(asked, source.host) == asked.end()) asked.push_back(source.host);
      Result<void> filled = co_await fill_from(what, store, source, stays(found->tablet, store));
      if (filled)
        done.push_back(source);
      else
        logger_.debug("tablet stream failed tablet={} from={} reason={}", what.tablet.value,
                      source.host.to_string(), filled.error().message);
    }
    if (wanted.is_met_by(given())) break;
    co_await base::sleep_for(reactor_, kTryAgainUs);
  }
  // On disk before it counts: the old set may be erased once the new one is alone.
  base::OneShot<Result<void>> flushed;
  const auto setter = flushed.setter();
  std::move_only_function<void(Result<void>)> on_flushed = [setter](Result<void> result) {
    setter.set(std::move(result));
  };
  if (TETRAD_MUTANT(fill_unsynced))
    on_flushed(Result<void>());
  else
    stores_[store]->flush(std::move(on_flushed));
  Result<void> result = co_await flushed;
  TETRAD_ASSERT(fills_.contains(key));
  if (!result) {
    fills_.erase(key);
    co_return;
  }
  fills_[key].is_filled = true;
  fills_[key].changed_us = reactor_.wall_time_us();
  metrics_.tablets_filled.add();
  logger_.info("tablet filled tablet={} store={} sources={}", what.tablet.value, store,
               done.size());
}

// All of the range from one source, page by page.
Task<Result<void>> TabletStream::fill_from(TabletEpoch what, uint32_t store, StoreAddress source,
                                           bool registers_alone) {
  Bytes after;
  bool exhausted = false;
  while (!exhausted) {
    Bytes request = encode_tablet_epoch(what);
    base::ByteWriter writer(request);
    writer.bytes(after);
    writer.varint(page_bytes_);
    writer.u8(registers_alone ? 1 : 0);
    const base::Deadline deadline{reactor_.now_us() + kPageUs};
    Result<Bytes> page = co_await rpc_.ask(source.host, source.store, Verb::kStreamRange,
                                           std::move(request), deadline);
    TETRAD_CO_TRY(Bytes bytes, std::move(page));
    FillFacts& facts = fills_.at({what.tablet, store, what.epoch});
    facts.bytes += bytes.size();
    facts.changed_us = reactor_.wall_time_us();
    // The page may have taken long: the epoch is looked at before it is taken.
    const auto found = find(what, store);
    if (!found) co_return std::unexpected<Error>(found.error());
    Found place = *found;
    Result<void> taken =
        co_await take(std::move(place), store, std::move(bytes), &after, &exhausted);
    TETRAD_CO_TRY_VOID(std::move(taken));
  }
  co_return Result<void>();
}

// In the partition's turn: registers in memory must not be older than those of the store.
void TabletStream::apply_with_registers(storage::Store* store, uint32_t number,
                                        storage::Mutation mutation, storage::WritePass pass,
                                        storage::Store::ApplyCallback done) {
  TETRAD_ASSERT(store != nullptr);
  const auto shared = std::make_shared<storage::Mutation>(std::move(mutation));
  const storage::PartitionName partition{shared->incarnation, shared->position,
                                         shared->partition_key};
  paxos_keys_.enter(
      number, partition, {reactor_.now_us() + kPageUs},
      [store, shared, pass = std::move(pass),
       done = std::move(done)](Result<PaxosKeys::Turn> turn) mutable {
        if (!turn) return done(std::unexpected(std::move(turn.error())));
        store->apply_merged(
            *shared, {std::move(pass)},
            [turn = std::move(*turn), done = std::move(done)](Result<void> applied) mutable {
              turn.forget();  // whoever comes next finds the old and the new joined
              turn.end();
              done(std::move(applied));
            });
      });
}

Task<Result<void>> TabletStream::take(Found found, uint32_t store, Bytes page, Bytes* next,
                                      bool* exhausted) {
  const TableInfo& table = *found.table;
  const bool is_logged = table.change_log.has_value() && !TETRAD_MUTANT(streams_not_logged);
  // Rows that are not logged would be missing in the feed.
  if (is_logged && !changes_.may_take(table, store))
    co_return fail(ErrorCode::kBehind, "the change log is being opened");
  base::ByteReader in(page);
  TETRAD_CO_TRY(const uint8_t end, in.read_u8());
  TETRAD_CO_TRY(const BytesView after, in.read_bytes());
  TETRAD_CO_TRY(const uint64_t count, in.read_varint());
  *exhausted = end != 0;
  *next = Bytes(after);
  const bool is_member = stays(found.tablet, store);
  // One pass, of the current epoch, for the whole page: who confirms a later epoch waits for it.
  const MetaSnapshot now = meta_.snapshot();
  const TableInfo* const now_table = now->table(table.incarnation);
  if (now_table == nullptr) co_return fail(ErrorCode::kStaleSchema, "the table is gone");
  TETRAD_ASSERT(fences_[store] != nullptr);
  const storage::WritePass pass =
      fences_[store]->enter(now, *now_table, now_table->tablets.find(found.tablet.range.end));
  for (uint64_t left = count; left != 0;) {
    std::vector<storage::Mutation> mutations;
    for (; left != 0 && mutations.size() < kAppliedAtOnce; --left) {
      TETRAD_CO_TRY(const BytesView encoded, in.read_bytes());
      TETRAD_CO_TRY(storage::Mutation mutation, storage::decode_streamed_mutation(encoded));
      metrics_.bytes_taken.add(encoded.size());
      if (is_member) {
        // A source that does not know the question gives all: rows would be logged a second time.
        if (mutation.registers.empty()) continue;
        mutation.header.clear();
        mutation.range_tombstones.clear();
        mutation.rows.clear();
      }
      mutations.push_back(std::move(mutation));
    }
    metrics_.mutations_taken.add(mutations.size());
    Result<void> applied = co_await apply_all(found, store, pass, std::move(mutations));
    TETRAD_CO_TRY_VOID(std::move(applied));
  }
  co_return Result<void>();
}

// All at once, up to kAppliedAtOnce: the store makes few batches of them.
Task<Result<void>> TabletStream::apply_all(Found found, uint32_t store, storage::WritePass pass,
                                           std::vector<storage::Mutation> mutations) {
  const TableInfo& table = *found.table;
  const bool is_logged = table.change_log.has_value() && !TETRAD_MUTANT(streams_not_logged);
  struct Tally {
    // One more than there are, until all were handed over: the first may end at once.
    uint64_t left = 1;
    Result<void> result;
  };
  auto tally = std::make_shared<Tally>();
  base::OneShot<bool> applied;
  const auto setter = applied.setter();
  const auto one_done = [tally, setter](Result<void> result) {
    if (!result) tally->result = std::move(result);
    TETRAD_ASSERT(tally->left != 0);
    if (--tally->left == 0) setter.set(true);
  };
  for (storage::Mutation& mutation : mutations) {
    ++tally->left;
    Result<void> noted;
    if (is_logged) noted = changes_.note(table, store, mutation, {pass});
    if (TETRAD_MUTANT(lwt_state_not_streamed)) mutation.registers.clear();
    if (!noted)
      one_done(std::move(noted));
    else if (mutation.registers.empty())
      // Merged, never Put (rule 15): this store takes client writes of the same rows meanwhile.
      found.store->apply_merged(mutation, {pass}, one_done);
    else
      apply_with_registers(found.store, store, std::move(mutation), pass, one_done);
  }
  one_done(Result<void>());
  const bool all = co_await applied;
  (void)all;
  co_return tally->result;
}

}  // namespace tetrad::replication
