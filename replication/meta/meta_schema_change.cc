// SPDX-License-Identifier: Apache-2.0
// A change of the schema, from its proposal until its statement may be answered (rule 29):
//
//   1. Propose, noting the sets of dropped and truncated tables as they are when the command is
//      applied.
//   2. Wait for all live nodes to apply it, up to `schema_agreement_us`; without that there is a
//      warning.
//   3. Wait for W members of each noted set to refuse the old incarnation, for R while fewer than W
//      are live. Without that TRUNCATE fails, since an old write could still be acknowledged; a DROP
//      waits for those that are live alone, as long as for 2, and has a warning where they are too
//      few.
//
// On shard 0.
#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "replication/consistency.h"
#include "replication/meta/meta_service_impl.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kSyncAppliedUs = 2'000'000;
constexpr int64_t kAskAgainUs = 100'000;

}  // namespace

// Of the live ones only: a node that is down catches up before it serves anybody.
bool MetaServiceImpl::all_live_applied(MetaIndex index) const {
  // One that does not get on with its disk may not get on with its schema either.
  const StoreTroubles& troubles = store_troubles();
  const auto is_stuck = [&](HostId host) {
    return std::ranges::any_of(troubles, [&](const auto& entry) {
      return entry.first.host == host && is_absent(entry.second);
    });
  };
  for (const HostId host : membership_.live_hosts())
    if (membership_.applied_of(host) < index && !is_stuck(host)) return false;
  return applied_by_shards() >= index;
}

// The members of each tablet that must refuse the old incarnation, as sets of hosts; equal sets
// once. Of several data centres each has its own: LOCAL_QUORUM asks no other.
MetaServiceImpl::HostSets MetaServiceImpl::sets_to_fence(const MetaState& state,
                                                         const SchemaChange& change) {
  HostSets sets;
  const auto add = [&](const std::vector<StoreAddress>& replicas) {
    const bool by_center = state.data_centers != nullptr && !TETRAD_MUTANT(truncate_not_local);
    std::map<uint32_t, std::vector<HostId>> of_center;
    for (const StoreAddress& replica : replicas)
      of_center[by_center ? state.data_centers->of(replica.host) : 0].push_back(replica.host);
    for (auto& [center, hosts] : of_center) {
      std::sort(hosts.begin(), hosts.end());
      if (std::find(sets.begin(), sets.end(), hosts) == sets.end())
        sets.push_back(std::move(hosts));
    }
  };
  const auto add_table = [&](const TableId& id) {
    const TableInfo* table = state.table(id);
    if (table == nullptr) return;
    for (const partitioner::Tablet& tablet : table->tablets.tablets()) {
      add(tablet.replicas);
      add(tablet.new_replicas);
    }
  };
  for (const TableId& id : change.dropped_tables) add_table(id);
  for (const TableId& id : change.truncated_tables) add_table(id);
  return sets;
}

// Where the sets are not known, all nodes: more than is needed.
MetaServiceImpl::HostSets MetaServiceImpl::every_node(const MetaState& state) {
  HostSets sets;
  for (const auto& [host, node] : state.nodes)
    if (node.state != NodeState::kRemoved) sets.push_back({host});
  return sets;
}

// With W that refuse, no read of R members has none of them. With R, no write is acknowledged and no
// QUORUM read answered by others; more is not to be had while members are away.
size_t MetaServiceImpl::refusing(const std::vector<HostId>& hosts) const {
  return std::max(read_quorum(hosts.size()),
                  std::min(write_quorum(hosts.size()), presence_of(hosts).live));
}

Result<void> MetaServiceImpl::check_truncates(const SchemaChange& change) const {
  if (change.truncated_tables.empty()) return {};
  for (const std::vector<HostId>& hosts : sets_to_fence(*state_, change)) {
    const Presence seen = presence_of(hosts);
    const size_t least = read_quorum(seen.all);
    if (seen.live >= least) continue;
    return std::unexpected(Error(
        ErrorCode::kUnavailable,
        fmt::format("Cannot truncate: {} of the {} replicas of a partition are live and {} are "
                    "needed; away:{}",
                    seen.live, seen.all, least, seen.away),
        base::UnavailableDetail{ConsistencyLevel::kQuorum, static_cast<int32_t>(least),
                                static_cast<int32_t>(seen.live)}));
  }
  return {};
}

// Whether enough of each set have the change applied and synced. Asks those that have applied it
// and were not asked yet; called again after each answer (rule 29).
bool MetaServiceImpl::fenced(const HostSets& sets, MetaIndex index,
                             const std::shared_ptr<Synced>& synced, bool by_live_alone) {
  return std::all_of(sets.begin(), sets.end(), [&](const std::vector<HostId>& hosts) {
    size_t count = 0;
    for (const HostId host : hosts) {
      const MetaIndex applied = host == self() ? applied_by_shards() : membership_.applied_of(host);
      const bool known = TETRAD_MUTANT(truncate_not_synced) && applied >= index;
      count += known || synced->hosts.contains(host) ? 1 : 0;
      // Asked once at a time; a failed answer is asked for again after kAskAgainUs.
      if (applied < index || !synced->asked.insert(host).second) continue;
      Bytes body;
      base::ByteWriter(body).u64(index.value);
      rpc_.call(host, 0, Verb::kSyncApplied, std::move(body),
                base::Deadline{reactor_.now_us() + kSyncAppliedUs},
                [this, alive = std::weak_ptr<char>(alive_), host, synced](Result<Bytes> answer) {
                  if (alive.expired()) return;
                  if (answer) {
                    synced->hosts.insert(host);
                    wake();
                    return;
                  }
                  reactor_.call_at(reactor_.now_us() + kAskAgainUs, [this, alive, host, synced] {
                    if (alive.expired()) return;
                    synced->asked.erase(host);
                    wake();
                  });
                });
    }
    const size_t needed = refusing(hosts);
    return count >= (by_live_alone ? std::min(needed, presence_of(hosts).live) : needed);
  });
}

Task<Result<void>> MetaServiceImpl::change_schema(SchemaChange change, base::Deadline deadline,
                                                  std::vector<std::string>* warnings) {
  const bool truncates = !change.truncated_tables.empty();
  const bool takes_away = !change.dropped_tables.empty() || truncates;
  TETRAD_CO_TRY_VOID(check_truncates(change));
  const HostSets sets_before =
      TETRAD_MUTANT(truncate_old_map) ? sets_to_fence(*state_, change) : HostSets();
  const Uuid id = base::make_random_uuid(random_);
  if (takes_away) to_fence_[id];
  MetaCommandBody body(std::move(change));
  Result<MetaIndex> proposed = co_await propose_as(id, std::move(body), deadline);
  const auto noted = to_fence_.extract(id);
  TETRAD_ASSERT(takes_away == !noted.empty());
  if (!proposed) co_return std::unexpected<Error>(proposed.error());
  HostSets sets;
  // An image that includes the change does not show the state before it.
  if (takes_away) sets = noted.mapped() ? *noted.mapped() : every_node(*state_);
  if (TETRAD_MUTANT(truncate_old_map)) sets = sets_before;
  const MetaIndex index = *proposed;
  if (TETRAD_MUTANT(truncate_not_awaited)) co_return Result<void>();
  const base::MonotonicUs limit_us =
      std::min(deadline.at_us, reactor_.now_us() + options_.schema_agreement_us);
  std::function<bool()> everybody = [this, index] { return all_live_applied(index); };
  const bool agreed = co_await wait_for(std::move(everybody), limit_us);
  if (!agreed && warnings != nullptr)
    warnings->push_back(
        "The schema change is in effect, but not every live node has applied it yet");
  const auto synced = std::make_shared<Synced>();
  std::function<bool()> refused = [this, &sets, index, synced, truncates] {
    return fenced(sets, index, synced, !truncates);
  };
  const bool ended = co_await wait_for(std::move(refused), truncates ? deadline.at_us : limit_us);
  const bool closed = ended && fenced(sets, index, synced, false);
  if (!closed && truncates)
    co_return fail(ErrorCode::kTimedOut,
                   "the change is in effect, but too few replicas have confirmed it in time");
  if (!closed && warnings != nullptr)
    warnings->push_back(
        "It is dropped, but too few of its replicas have confirmed it yet: those that are "
        "away do so when they are back");
  co_return Result<void>();
}

}  // namespace tetrad::replication
