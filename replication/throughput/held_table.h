// SPDX-License-Identifier: Apache-2.0
// The buckets of one table that a node lends from: one for each of its tablets that was asked for.
// Pure.
//
//   When a tablet is split its bucket's level, or debt, is divided evenly between the parts, and
//   when two are merged the levels of both are added: so nothing is lent twice, and no debt is
//   forgotten.
//
//   What a tablet does not use spills from its full bucket. Some of it is kept as spare, for other
//   tablets of the table that want more than their part. The rest is banked, where bursts are
//   allowed: up to five minutes' worth, from which its bucket is filled faster when it is not full.
#pragma once

#include <map>
#include <vector>

#include "base/ids.h"
#include "partitioner/tablet_map.h"
#include "replication/throughput/token_bucket.h"
#include "replication/throughput/use_meter.h"

namespace tetrad::replication {

/// How much came together in the last second, about. Pure.
class RateMeter {
 public:
  explicit RateMeter(base::MonotonicUs now_us) : begun_us_(now_us) {}
  void add(uint64_t amount, base::MonotonicUs now_us);
  /// The amounts of this half second and the one before, over the time that they are of.
  uint64_t per_s(base::MonotonicUs now_us);

 private:
  void advance(base::MonotonicUs now_us);

  base::MonotonicUs begun_us_;  // of the present half second
  uint64_t now_ = 0, before_ = 0;
};

/// Who has borrowed within the last second. Pure.
class Borrowers {
 public:
  /// More count as this many.
  static constexpr size_t kMost = 256;

  void note(uint64_t who, base::MonotonicUs now_us);
  /// 1 at least.
  size_t count(base::MonotonicUs now_us);

 private:
  std::vector<std::pair<uint64_t, base::MonotonicUs>> seen_;
};

/// The bucket of one tablet, or of one keyspace.
struct HeldBucket {
  /// `level`: what is in it.
  HeldBucket(uint64_t rate, int64_t level, base::MonotonicUs now_us)
      : per_s(rate), bucket(rate, level, now_us), asked(now_us), lent(now_us), used_us(now_us) {}

  /// Of which nothing was lent in the last `idle_us`.
  static HeldBucket idle(uint64_t rate, int64_t idle_us, base::MonotonicUs now_us);

  /// When the table's throughput, or its number of tablets, has changed. What is in the bucket
  /// stays.
  void set_rate(uint64_t wanted_per_s, base::MonotonicUs now_us);
  /// Fills the bucket from what is banked, by `burst_per_s` beside its own rate; 0: nothing is
  /// banked.
  void burst(uint64_t burst_per_s, base::MonotonicUs now_us);
  uint64_t banked() const { return bank_; }
  /// This is one of `parts` tablets that `before` was cut into; it may have been merged with
  /// others. `level`: its part of what is in the bucket.
  void take_over(const HeldBucket& before, size_t parts, int64_t level, base::MonotonicUs now_us);
  /// What it does not use, a quarter of a second's worth at most.
  uint64_t spare(base::MonotonicUs now_us);
  /// Takes half of the spare, so that others who ask get some, and `wanted` at most.
  uint64_t give(uint64_t wanted, base::MonotonicUs now_us);
  /// What it lacks to go on for a moment at the rate at which it is asked, while that is above its
  /// own or it owes something.
  /// `most_per_s`: what it may have in all, of which its bank may give a part.
  uint64_t lacks(uint64_t most_per_s, base::MonotonicUs now_us);
  /// The same, but no more than since the last call is allowed by `most_per_s`, which it may have
  /// in all.
  uint64_t asks_for(uint64_t most_per_s, base::MonotonicUs now_us);

  TableIncarnation table;  // of a keyspace: through which it was used last
  TabletId tablet;
  RingRange range;
  uint64_t per_s;
  TokenBucket bucket;
  Borrowers borrowers;
  RateMeter asked;  // lent, owed or refused
  RateMeter lent;
  UseMeter use;
  uint64_t refused = 0;  // requests
  UsedThroughput told;   // to the other nodes
  base::MonotonicUs used_us;

 private:
  static constexpr uint64_t kBanked_s = 300;

  void settle(base::MonotonicUs now_us);
  void add_to_bank(uint64_t amount);
  /// Of what it may have in all, what its bank does not give.
  uint64_t beside_bank(uint64_t most_per_s) const;

  uint64_t burst_per_s_ = 0;
  uint64_t spare_ = 0, bank_ = 0;
  base::MonotonicUs burst_us_ = 0;
  base::MonotonicUs asked_for_us_ = 0;
};

/// What is lent at once, at most: a tenth of a second's worth.
constexpr uint64_t slice_of(uint64_t per_s) { return per_s / 10; }

/// What a bucket lends, or when to come again.
struct Slice {
  uint64_t granted = 0;
  int64_t retry_us = 0;
};
/// The part of the level that one of `borrowers` gets; nothing while that would be too little to be
/// of use. `per_s`: at which it is lent from, at least the bucket's own rate.
Slice lend(TokenBucket& bucket, uint64_t per_s, size_t borrowers, base::MonotonicUs now_us);

/// The buckets of one table on one node. Belongs to ThroughputHolder, on the first shard's thread.
/// Always: ranges of buckets are tablets of the map that was followed last, and do not overlap; so
/// the end of a range names a bucket.
class HeldTable {
 public:
  using ByEnd = std::map<RingPosition, HeldBucket>;

  /// Its tablets are those of `map` now, each with `per_s`.
  void follow(const partitioner::TabletMap& map, uint64_t per_s, base::MonotonicUs now_us);
  /// Null: it was not asked for.
  HeldBucket* find(const partitioner::Tablet& tablet);
  /// For a tablet of the map that was followed last, and has none.
  HeldBucket& add(const partitioner::Tablet& tablet, HeldBucket bucket);
  /// What its tablets together ask others for (HeldBucket::asks_for()).
  uint64_t asks_for(uint64_t most_per_s, base::MonotonicUs now_us);
  /// Puts it into the buckets that lack some, in the proportion of what they lack; nothing of it is
  /// lost.
  void spread(uint64_t given, uint64_t most_per_s, base::MonotonicUs now_us);
  ByEnd& all() { return buckets_; }
  const ByEnd& all() const { return buckets_; }
  uint64_t version() const { return version_; }

 private:
  uint64_t version_ = 0;  // of the map
  ByEnd buckets_;         // by the ends of their tablets' ranges
};

}  // namespace tetrad::replication
