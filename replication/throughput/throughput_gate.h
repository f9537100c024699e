// SPDX-License-Identifier: Apache-2.0
// Where requests of clients to limited tables are let in: the coordinator's side of throughputs
// (throughput_holder.h). One per shard. A request is let in while its buckets' slices last and may
// overdraw them; what it costs more than was known then is settled afterwards. Past the slices
// requests wait in line, as far as they will be let in within the wait that is allowed; the others
// are refused at once, with the time after which to try again. What was borrowed 200 ms ago and is
// not spent goes back to its holder, for other shards.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/metrics.h"
#include "base/random.h"
#include "base/task_group.h"
#include "replication/throughput/throughput_holder.h"

namespace tetrad::replication {

/// What a request takes of one partition's tablet.
struct ThroughputUse {
  TableIncarnation table;
  RingPosition position;
  uint64_t weight = 0;  // storage::kWeightOfUnit is one request unit
};

/// How long requests may wait for request units.
struct ThroughputOptions {
  int64_t wait_us = 100'000;  // the longest that a request waits in line
};

/// Lets the requests of one shard in as far as their tables' throughput goes. Belongs to the shard
/// and its thread; borrows from the holders of the buckets.
class ThroughputGate {
 public:
  /// Counters of one shard, changed by its thread only.
  struct Metrics {
    base::Counter refused, waited;
  };

  /// Everything outlives it.
  ThroughputGate(base::Reactor& reactor, base::Random& random, RpcNode& rpc, MetaService& meta,
                 ThroughputOptions options);
  ~ThroughputGate();
  ThroughputGate(const ThroughputGate&) = delete;
  ThroughputGate& operator=(const ThroughputGate&) = delete;

  /// Whether requests to the table must be let in.
  bool limits(TableIncarnation table) const { return on_ && is_limited(table); }

  /// Takes all of the uses, or none and refuses. Errors: kOverloaded, in the words of Azure Cosmos
  /// DB's API for Cassandra, which clients look for "RetryAfterMs=" in.
  Task<Result<void>> admit(std::vector<ThroughputUse> uses, base::Deadline deadline);

  /// What a request that was let in has cost beyond what it was let in for, or less: given back.
  void settle(TableIncarnation table, RingPosition position, int64_t weight);

  const Metrics& metrics() const { return metrics_; }

 private:
  /// 0: let in. Otherwise the time after which to come again.
  using Turn = base::OneShot<int64_t>;
  /// A request in line.
  struct Waiter {
    int64_t weight = 0;
    base::MonotonicUs until_us = 0;
    Turn::Setter turn;
  };
  /// One bucket as this shard sees it.
  struct Account {
    uint64_t key = 0, per_s = 0;  // of the bucket (BucketName)
    /// To all, as the holder said last: its tablet may have more than its part.
    uint64_t lent_per_s = 0;
    TableIncarnation table;  // through which it was used last
    TabletId tablet;
    RingPosition position;
    int64_t balance = 0;  // below zero: what the holder does not know of yet
    bool is_asking = false;
    base::MonotonicUs nothing_before_us = 0;  // the bucket is empty until then
    base::MonotonicUs used_us = 0, lent_us = 0;
    uint64_t refused = 0, refused_weight = 0;  // since the holder last heard of them
    std::deque<Waiter> waiters;
    int64_t waiting_weight = 0;
    // For when the holder cannot be asked.
    base::MonotonicUs alone_until_us = 0;
    HostId asked_of;  // the last time; another holder is asked at once
    std::optional<base::MonotonicUs> stale_since_us;  // nobody says that it holds the bucket
    std::optional<TokenBucket> own;                   // while alone
    base::MonotonicUs counted_since_us = 0;
    uint64_t granted = 0, granted_per_s = 0;  // by holders, with debts that they took

    int64_t slice() const { return static_cast<int64_t>(slice_of(per_s)); }
  };
  using AccountPtr = std::shared_ptr<Account>;
  /// What a request has taken so far, to be given back if it is refused after all.
  struct Taken {
    AccountPtr account;
    int64_t weight = 0;
  };

  /// What a holder has answered, or stands for its answer.
  struct Answer {
    Loan loan;
    uint64_t paid = 0;   // of the debt
    uint64_t per_s = 0;  // of the bucket when it was asked
  };

  bool is_limited(TableIncarnation table) const;
  /// Null: the table is not limited.
  AccountPtr account_of(const MetaState& state, TableIncarnation table, RingPosition position);
  static int64_t at_rate(int64_t lent, uint64_t was_per_s, uint64_t is_per_s);
  static void set_rate(Account& account, uint64_t per_s);
  /// By bucket.
  std::vector<Taken> sum_up(const std::vector<ThroughputUse>& uses);
  void spend(const AccountPtr& account, int64_t weight);
  /// How long a request that comes now would wait.
  int64_t line_us(const Account& account) const;
  /// One borrow() is under way for an account at a time.
  void ask(const AccountPtr& account);
  /// Borrows until nobody waits in line. Ends with is_asking unset.
  Task<void> borrow(AccountPtr account);
  Task<Answer> ask_holder(AccountPtr account);
  std::optional<Answer> heard(Account& account, const Result<Bytes>& reply, uint64_t debt);
  /// The holder has answered: the bucket of the time alone goes.
  void end_alone(Account& account);
  Answer lend_alone(Account& account, uint64_t debt, const MetaState& state);
  uint64_t alone_per_s(const Account& account, const MetaState& state) const;
  /// Measures, second by second, what holders grant: the rate for when none can be asked.
  void count_granted(Account& account, uint64_t granted);
  /// In the order in which they came, while the balance is above zero.
  static void let_in(Account& account);
  /// Those whose wait ends before the bucket has something again.
  void refuse_late(Account& account);
  Error refusal(const Account& account, int64_t retry_us);
  void arm();
  void give_back();
  static bool may_be_given(const MetaState& state, const Account& account);
  void give_back(const MetaState& state, Account& account);
  void forget_idle();

  base::Reactor& reactor_;
  base::Random& random_;
  RpcNode& rpc_;
  MetaService& meta_;
  const ThroughputOptions options_;
  Metrics metrics_;
  bool on_ = false;
  std::unordered_map<uint64_t, AccountPtr> accounts_;
  base::MonotonicUs forgotten_us_ = 0;
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<void> subscription_;
  base::TaskGroup tasks_;  // last: goes first
};

}  // namespace tetrad::replication
