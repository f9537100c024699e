// SPDX-License-Identifier: Apache-2.0
// Stores that are behind (design, rule 20): a power cut took what they had acknowledged and not
// synced. Such a store takes writes, which count, but answers nothing from what it has until it has
// fetched, range by range, what it may have lost (recent_fetch.h). One object per shard.
//
//   local log, synced:
//   behind/<u32 store>   := u8 version (1), u8 (1: since when is known), i64 since when (hybrid time,
//                           us), varint count, done*
//   done                 := u32 incarnation, position start, position end
//   position             := i64 token, u64 hash
//   sequence/<u32 store> := u64, see sequence_floor()
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/log.h"
#include "base/reactor.h"
#include "partitioner/tablet_map.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "storage/engine/local_log.h"

namespace tetrad::replication {

/// What a store may have lost: all that came to it since then, by the node's hybrid time; unset:
/// nobody knows since when.
struct PowerLoss {
  std::optional<int64_t> since_us;
};

/// Ranges of tables; neighbours are one.
class RangeSet {
 public:
  void add(TableIncarnation incarnation, const RingRange& range);
  bool covers(TableIncarnation incarnation, const RingRange& range) const;
  bool contains(TableIncarnation incarnation, RingPosition position) const;
  const std::map<TableIncarnation, std::vector<RingRange>>& ranges() const { return ranges_; }

 private:
  std::map<TableIncarnation, std::vector<RingRange>> ranges_;  // ascending
};

/// Which of a shard's stores may lack writes that they have acknowledged. Belongs to the shard and
/// its thread; kept in the local log, so that a restart does not forget it.
class BehindStores {
 public:
  /// `losses` by store number, of this life's start; shorter: the others lost nothing. Only stores
  /// with `is_own` are this shard's. What an earlier life has kept is found in the log: the older
  /// time counts. Everything outlives it.
  BehindStores(base::Reactor& reactor, storage::LocalLog& log, MetaService& meta,
               const HybridClock& clock, const std::vector<bool>& is_own,
               const std::vector<std::optional<PowerLoss>>& losses, Logger logger);
  ~BehindStores();
  BehindStores(const BehindStores&) = delete;
  BehindStores& operator=(const BehindStores&) = delete;

  /// Whether any store of this shard is behind. Cheap.
  bool any() const { return !stores_.empty(); }
  bool is_behind(uint32_t store) const { return any() && stores_.contains(store); }
  /// Whether it may have lost something of that place, or of the range.
  bool is_behind(uint32_t store, TableIncarnation incarnation, RingPosition position) const {
    return any() && lacks(store, incarnation, position);
  }
  bool is_behind(uint32_t store, TableIncarnation incarnation, const RingRange& range) const {
    return any() && lacks(store, incarnation, range);
  }
  static Error refusal() {
    return Error(ErrorCode::kReplicaBehind, "a power cut took what this replica had");
  }

  /// False while a store's being behind is not on disk yet: it must not say that it has synced.
  bool is_noted(uint32_t store) const {
    const auto known = stores_.find(store);
    return known == stores_.end() || known->second.kept;
  }
  /// The store is, or is again, behind: perhaps found out in the midst of a life, of what was lost
  /// before it.
  void lost(uint32_t store, const PowerLoss& loss);

  /// Writes must wait: that the store is behind is not on disk yet, or bucket marks are not known.
  /// `members`: of the write's tablet.
  bool writes_wait(uint32_t store, const partitioner::Tablet& tablet);
  /// The mark of every bucket is at least this (rule 28): the lost marks may have been as high. The
  /// lowest number: the store is not behind.
  int64_t mark_floor_us(uint32_t store, const partitioner::Tablet& tablet);

  /// Sequences of the store's change logs begin above it: readers may have got some that are lost.
  uint64_t sequence_floor(uint32_t store) const;

  /// From when on a store may have lost writes.
  struct Since {
    std::optional<int64_t> time_us;
    base::MonotonicUs heard_us = 0;  // when this life found out
  };
  /// Of a store that is behind.
  Since since(uint32_t store) const;
  std::vector<uint32_t> stores() const;

  using Done = std::move_only_function<void(Result<void>)>;
  /// What was lost of the ranges is on disk again. `done` runs when that is noted; from then on
  /// they are answered from.
  void done(uint32_t store, const std::vector<std::pair<TableIncarnation, RingRange>>& ranges,
            Done done);
  /// Nothing is lacking any more.
  void finish(uint32_t store, Done done);

  /// Runs after a store became, or is no more, behind. Null: nobody wants to know.
  void on_change(std::function<void(uint32_t store, bool behind)> listener) {
    changed_ = std::move(listener);
  }

 private:
  /// One store that is behind: since when, and which ranges are complete again.
  struct Behind {
    Since since;
    RangeSet done;
    bool kept = false;                           // on disk
    uint64_t generation = 0;                     // of what was lost
    std::map<TabletId, int64_t> mark_floors_us;  // once known
  };
  bool lacks(uint32_t store, TableIncarnation incarnation, RingPosition position) const;
  bool lacks(uint32_t store, TableIncarnation incarnation, const RingRange& range) const;
  void load(uint32_t store, const std::optional<PowerLoss>& loss);
  void load_sequence_floor(uint32_t store);
  uint64_t sequence_floor_now() const;
  void keep(uint32_t store);
  void write(std::vector<storage::LocalLog::Operation> batch, uint32_t store, uint64_t generation,
             Done done);
  int64_t highest_mark_us() const;
  bool hears_enough(const partitioner::Tablet& tablet) const;

  base::Reactor& reactor_;
  storage::LocalLog& log_;
  MetaService& meta_;
  const HybridClock& clock_;
  const Logger logger_;
  std::map<uint32_t, Behind> stores_;
  std::map<uint32_t, uint64_t> sequence_floors_;
  uint64_t next_generation_ = 1;
  std::function<void(uint32_t, bool)> changed_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

/// For unit tests.
Bytes encode_behind(const PowerLoss& since, const RangeSet& done);
Result<std::pair<PowerLoss, RangeSet>> decode_behind(BytesView encoded);

}  // namespace tetrad::replication
