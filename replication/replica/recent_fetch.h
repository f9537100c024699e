// SPDX-License-Identifier: Apache-2.0
// How a store that is behind (behind.h) gets back what a power cut took (design, rule 20): for each
// tablet it asks R members, of each set that is in use, for what they hold of all that was written
// to them since shortly before the last sync that is known to have survived, and merges it. What
// was acknowledged was on W members: of any R others one has it.
//
// It begins when no write can be under way any more that counts an acknowledgement of the life
// before: the longest a write may go on after this life began to listen. Members that are behind
// themselves are asked too, but count only when all others have answered: then nobody has more. If
// one of them stays away, then after some time, or by the operator's word, any W of the set will
// do: acknowledged writes may be lost, which is said; reads do not go back afterwards, for two such
// groups meet.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "base/task_group.h"
#include "replication/quorum.h"
#include "replication/repair/purge_horizon.h"
#include "replication/replica/behind.h"
#include "replication/replica/recent_messages.h"
#include "replication/replica/replica_service.h"
#include "replication/rpc/rpc.h"

namespace tetrad::replication {

/// How much is fetched at once, and how long other members are waited for.
struct RecentFetchOptions {
  /// So long a write goes on at most by the settings of the nodes: the fetch begins that much after
  /// the store has come back.
  int64_t write_us = 5'000'000;
  /// The longest that any write may go on, whatever its client has asked for: what other members
  /// got this long before it could come here is fetched, too. The same on all nodes.
  int64_t longest_us = HorizonSlack().longest_deadline_us;
  uint64_t page_bytes = 1 << 20;
  int64_t page_timeout_us = 10'000'000;
  int64_t try_again_us = 200'000, try_again_max_us = 5'000'000;
  /// So long members that may have more are waited for, when too few others are complete.
  int64_t accept_loss_after_us = int64_t{600} * 1'000'000;
  /// Writes are acknowledged when they are on disk: a cut of all members takes nothing.
  bool acknowledges_synced = false;
};

/// Counters of one shard, changed by its thread only.
struct RecentFetchMetrics {
  base::Counter rows, tablets, failed, whole;
};

/// Brings stores that are behind up to date, from the other members of their tablets. Belongs to
/// the shard and its thread; one task for each such store.
class RecentFetch {
 public:
  /// `stores` by number; null: another shard's. Everything outlives it.
  RecentFetch(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, const HybridClock& clock,
              BehindStores& behind, ReplicaService& replicas, std::vector<storage::Store*> stores,
              RecentFetchOptions options, Logger logger);
  ~RecentFetch();
  RecentFetch(const RecentFetch&) = delete;
  RecentFetch& operator=(const RecentFetch&) = delete;
  /// Begins with what is behind, and with each store that becomes so.
  void start();

  /// Does without members that stay away from now on.
  void accept_loss() { loss_accepted_ = true; }

  /// How far the fetch of one store is.
  struct Progress {
    uint32_t store = 0;
    size_t tablets_left = 0, tablets = 0;
    std::string waits_for;  // "" unless too few members are there
  };
  /// Of the stores that are behind.
  std::vector<Progress> progress() const;
  /// "acknowledged writes ... may be lost", or "" when none are.
  const std::string& loss() const { return loss_; }
  const RecentFetchMetrics& metrics() const { return metrics_; }

 private:
  /// A tablet that something may be lost of, and who has answered.
  struct Target {
    std::shared_ptr<const TableInfo> table;
    partitioner::Tablet tablet;
    StoreAddress own;
    std::vector<std::vector<StoreAddress>> sets;  // that are in use
    std::set<StoreAddress> asked, complete, behind;
  };
  using Targets = std::vector<Target>;
  /// Whether enough other members have given all they have.
  enum class Verdict { kWaits, kComplete, kWithLoss };

  /// What complete members have given need not be asked for again.
  static void carry_over(const Targets& from, Targets& to);

  void begin(uint32_t store);
  Task<void> run(uint32_t store);
  Targets targets_of(uint32_t store) const;
  /// Who has to have given all it has.
  Need needed_of(const std::vector<StoreAddress>& set) const;
  Verdict judge(const Target& target) const;
  /// Whom to ask next, and for which targets.
  std::map<StoreAddress, std::vector<size_t>> next_asked(const Targets& targets) const;
  Task<void> ask_members(uint32_t store, Targets* targets);
  Task<Result<void>> fetch_from(uint32_t store, StoreAddress source, std::vector<size_t> of,
                                Targets* targets, bool everything);
  /// What a source has answered so far for the tablets that it was asked for, by their number.
  struct Answered {
    std::set<uint32_t> refused, behind;
    bool exhausted = false;
  };
  Task<Result<void>> fetch_page(uint32_t store, StoreAddress source, RecentRequest* request,
                                Answered* answered);
  Task<Result<void>> apply(uint32_t store, std::vector<storage::Mutation> rows);
  /// Syncs, and notes what is complete. The number of targets that are.
  Task<size_t> settle(uint32_t store, Targets targets);
  void say_lost(uint32_t store, size_t tablets);
  std::string absent_text(const Targets& targets) const;

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  const HybridClock& clock_;
  BehindStores& behind_;
  ReplicaService& replicas_;
  const std::vector<storage::Store*> stores_;
  const RecentFetchOptions options_;
  const Logger logger_;
  RecentFetchMetrics metrics_;
  std::map<uint32_t, Progress> progress_;
  MetaIndex applied_elsewhere_;  // the highest that a source has named
  bool loss_accepted_ = false;
  std::string loss_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
