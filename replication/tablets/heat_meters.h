// SPDX-License-Identifier: Apache-2.0
// Measures the heat of each tablet at one store, as requests come to it: the replica calls it for
// each client's read and write. It costs a few nanoseconds a request.
//
//   A point read counts one request unit when it comes; every sixteenth is weighed by the bytes
//   that it finds, and counts for sixteen. A read of a range is weighed always, and is at the place
//   that it came to. A write is weighed when it comes. What repairs, hints and streams bring does
//   not count.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "partitioner/heat_meter.h"
#include "partitioner/heavy_keys.h"
#include "partitioner/position_sample.h"
#include "replication/meta/meta_state.h"
#include "replication/tablets/heat.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// What is known of one tablet at one store.
struct MeteredTablet {
  MeteredTablet(const partitioner::Tablet& tablet, int64_t now_us)
      : id(tablet.id), range(tablet.range), meter(now_us) {}

  /// Of this member alone.
  TabletHeat heat() const;
  /// Of a warm tablet: where one key gets work.
  void note_key(RingPosition position, BytesView key, uint64_t work, bool is_write) {
    sample->add(position, work);
    keys->add(position, key, work, is_write);
  }

  const TabletId id;
  const RingRange range;
  partitioner::HeatMeter meter;
  /// Where the work goes; null: the tablet is not warm.
  std::unique_ptr<partitioner::PositionSample> sample;
  /// The keys that get most of it; null with `sample`.
  std::unique_ptr<partitioner::HeavyKeys> keys;
  /// When it came out of a cut, where this store saw that; 0: it did not.
  int64_t cut_at_us = 0;
};

/// What a read has found, one request unit at least.
struct WeighedRead {
  uint64_t weight = 0, bytes = 0;
};
WeighedRead weigh(const storage::ReadResult& result);
/// What a write costs, as clients are charged for it (cql/prepare/request_charge.h).
uint64_t write_weight(const storage::Mutation& mutation);

/// The meters of one store. Belongs to its shard and its thread.
class HeatMeters {
 public:
  using TabletPtr = std::shared_ptr<MeteredTablet>;

  HeatMeters() = default;
  HeatMeters(const HeatMeters&) = delete;
  HeatMeters& operator=(const HeatMeters&) = delete;

  /// A write to `tablet`, which is of `table`, has come.
  void note_write(const TableInfo& table, const partitioner::Tablet& tablet,
                  const storage::Mutation& mutation, int64_t now_us);
  /// A read has come. What it finds is weighed in `done`, which may be given back wrapped.
  storage::Store::ReadCallback note_read(const TableInfo& table, const partitioner::Tablet& tablet,
                                         const storage::ReadCommand& command, int64_t now_us,
                                         storage::Store::ReadCallback done);
  /// A point read that is answered at once. `found`: nothing where it was not weighed.
  void note_read_here(const TableInfo& table, const partitioner::Tablet& tablet,
                      const storage::ReadCommand& command, int64_t now_us,
                      const WeighedRead& found);
  /// Whether the next such read is to be weighed: every sixteenth.
  bool is_weighed() { return ++reads_ % kWeighedReads == 0; }

  /// Tablets of these tables that are cut become others, which know nothing yet; tables that are
  /// gone are forgotten, and tablets without work for minutes. In no order that may reach an
  /// output.
  void follow(const MetaState& state, int64_t now_us);
  /// Those that have had work: ascending by id.
  std::vector<std::pair<const TableInfo*, TabletPtr>> tablets(const MetaState& state) const;

 private:
  static constexpr uint64_t kWeighedReads = 16;
  /// By place in the table's map of this version; null: no work has come.
  struct OfTable {
    uint64_t version = 0;
    std::vector<TabletPtr> tablets;
  };

  const TabletPtr& metered(const TableInfo& table, const partitioner::Tablet& tablet,
                           int64_t now_us) {
    if (last_ == nullptr || last_incarnation_ != table.incarnation.value ||
        last_->version != table.tablets.version())
      look_up(table, now_us);
    TabletPtr& found =
        last_->tablets[static_cast<size_t>(&tablet - table.tablets.tablets().data())];
    if (found == nullptr) found = std::make_shared<MeteredTablet>(tablet, now_us);
    return found;
  }
  void look_up(const TableInfo& table, int64_t now_us);
  static void remap(OfTable& known, const TableInfo& table, int64_t now_us);

  std::unordered_map<uint32_t, OfTable> tables_;  // by incarnation
  OfTable* last_ = nullptr;                       // of the last request
  uint32_t last_incarnation_ = 0;
  uint64_t reads_ = 0;
};

}  // namespace tetrad::replication
