// SPDX-License-Identifier: Apache-2.0
// The meters of a store's tablets. They follow the map: a part of a tablet that was cut begins
// cold, for nobody knows how the work is divided, and remembers that it was cut (`cut_at_us`).
#include "replication/tablets/heat_meters.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "storage/row/row_weight.h"

namespace tetrad::replication {

namespace {

using partitioner::HeatMeter;
using partitioner::Tablet;
using storage::kWeightOfUnit;

constexpr uint64_t kWriteFactor = 5;
constexpr size_t kRecentSlots = 10;

uint64_t units(double weight) {
  return static_cast<uint64_t>(std::llround(weight / static_cast<double>(kWeightOfUnit)));
}

/// That it came out of a cut is remembered longer than it matters.
constexpr int64_t kCutKeptUs = 60'000'000;

bool is_idle(const MeteredTablet& tablet, int64_t now_us) {
  if (tablet.cut_at_us != 0 && now_us - tablet.cut_at_us < kCutKeptUs) return false;
  const partitioner::HeatSum most = tablet.meter.busiest_second();
  return most.work() == 0 && most.bytes == 0 && tablet.meter.recent(HeatMeter::kSlots).work() == 0;
}

}  // namespace

uint64_t write_weight(const storage::Mutation& mutation) {
  uint64_t weight = mutation.range_tombstones.size() * kWeightOfUnit;
  if (!mutation.header.empty())
    weight += std::max(storage::row_weight(mutation.header.size()), kWeightOfUnit);
  for (const storage::RowChange& row : mutation.rows)
    weight +=
        std::max(storage::row_weight(row.clustering_key.size() + row.record.size()), kWeightOfUnit);
  return kWriteFactor * weight;
}

WeighedRead weigh(const storage::ReadResult& result) {
  WeighedRead out;
  if (result.count) out.weight = result.count->weight;
  const auto add = [&out](uint64_t bytes) {
    out.weight += storage::row_weight(bytes);
    out.bytes += bytes;
  };
  for (const storage::PartitionData& partition : result.partitions) {
    add(partition.header.size());
    for (const storage::RowData& row : partition.rows)
      add(row.clustering_key.size() + row.record.size());
  }
  out.weight = std::max(out.weight, kWeightOfUnit);
  return out;
}

TabletHeat MeteredTablet::heat() const {
  const partitioner::HeatSum recent = meter.recent(kRecentSlots), most = meter.busiest_second();
  return {units(recent.reads), units(recent.writes), static_cast<uint64_t>(recent.bytes),
          units(most.work()), static_cast<uint64_t>(most.bytes)};
}

void HeatMeters::note_write(const TableInfo& table, const Tablet& tablet,
                            const storage::Mutation& mutation, int64_t now_us) {
  MeteredTablet& here = *metered(table, tablet, now_us);
  const uint64_t weight = write_weight(mutation);
  here.meter.add_write(now_us, weight, mutation.size_bytes());
  if (here.sample != nullptr)
    here.note_key(mutation.position, mutation.partition_key, weight, true);
}

void HeatMeters::note_read_here(const TableInfo& table, const Tablet& tablet,
                                const storage::ReadCommand& command, int64_t now_us,
                                const WeighedRead& found) {
  MeteredTablet& here = *metered(table, tablet, now_us);
  // Each read counts one unit. Every sixteenth is weighed, and what it found beyond a unit counts
  // for all sixteen.
  uint64_t weight = kWeightOfUnit;
  if (found.weight > kWeightOfUnit) weight += kWeighedReads * (found.weight - kWeightOfUnit);
  here.meter.add_read(now_us, weight, kWeighedReads * found.bytes);
  if (here.sample != nullptr) here.note_key(command.position, command.partition_key, weight, false);
}

storage::Store::ReadCallback HeatMeters::note_read(const TableInfo& table, const Tablet& tablet,
                                                   const storage::ReadCommand& command,
                                                   int64_t now_us,
                                                   storage::Store::ReadCallback done) {
  const TabletPtr& here = metered(table, tablet, now_us);
  if (command.is_range) {
    return [here, now_us, done = std::move(done)](Result<storage::ReadResult> result) mutable {
      if (result) {
        const WeighedRead found = weigh(*result);
        here->meter.add_read(now_us, found.weight, found.bytes);
        // Where it has come to: the pages of a scan are all over the tablet.
        if (here->sample != nullptr && !result->exhausted)
          here->sample->add(result->complete_up_to.position, found.weight);
      }
      done(std::move(result));
    };
  }
  here->meter.add_read(now_us, kWeightOfUnit, 0);
  if (here->sample != nullptr)
    here->note_key(command.position, command.partition_key, kWeightOfUnit, false);
  if (!is_weighed()) return done;
  return
      [here, at = command.position, now_us, key = Bytes(here->sample ? command.partition_key : ""),
       done = std::move(done)](Result<storage::ReadResult> result) mutable {
        if (result) {
          const WeighedRead found = weigh(*result);
          TETRAD_ASSERT(found.weight >= kWeightOfUnit);
          const uint64_t more = kWeighedReads * (found.weight - kWeightOfUnit);
          here->meter.add_read(now_us, more, kWeighedReads * found.bytes);
          if (here->sample != nullptr && more != 0) here->note_key(at, key, more, false);
        }
        done(std::move(result));
      };
}

void HeatMeters::look_up(const TableInfo& table, int64_t now_us) {
  OfTable& known = tables_[table.incarnation.value];
  if (known.version != table.tablets.version() ||
      known.tablets.size() != table.tablets.tablets().size())
    remap(known, table, now_us);
  TETRAD_ASSERT(known.tablets.size() == table.tablets.tablets().size());
  last_ = &known;
  last_incarnation_ = table.incarnation.value;
}

void HeatMeters::remap(OfTable& known, const TableInfo& table, int64_t now_us) {
  const std::vector<Tablet>& now = table.tablets.tablets();
  std::vector<TabletPtr> kept(now.size());
  for (TabletPtr& metered_tablet : known.tablets) {
    if (metered_tablet == nullptr) continue;
    // The last of what is in its range, then those before it.
    size_t place = static_cast<size_t>(&table.tablets.find(metered_tablet->range.end) - now.data());
    if (now[place].id == metered_tablet->id && now[place].range == metered_tablet->range) {
      kept[place] = std::move(metered_tablet);
      continue;
    }
    // Cut or merged: the heat cannot be divided, so each tablet in its place begins anew and
    // remembers when.
    for (;; --place) {
      if (kept[place] == nullptr) kept[place] = std::make_shared<MeteredTablet>(now[place], now_us);
      kept[place]->cut_at_us = now_us;
      if (place == 0 || now[place].range.start <= metered_tablet->range.start) break;
    }
  }
  known.tablets = std::move(kept);
  known.version = table.tablets.version();
}

void HeatMeters::follow(const MetaState& state, int64_t now_us) {
  // Entries may go below: the pointer would dangle.
  last_ = nullptr;
  for (auto entry = tables_.begin(); entry != tables_.end();) {
    const TableInfo* table = state.table(TableIncarnation{entry->first});
    if (table == nullptr) {
      entry = tables_.erase(entry);
      continue;
    }
    OfTable& known = entry->second;
    if (known.version != table->tablets.version()) remap(known, *table, now_us);
    for (TabletPtr& tablet : known.tablets) {
      if (tablet == nullptr) continue;
      tablet->meter.settle(now_us);
      // Reads under way keep their own pointer; what they add then is lost.
      if (is_idle(*tablet, now_us)) tablet.reset();
    }
    ++entry;
  }
}

std::vector<std::pair<const TableInfo*, HeatMeters::TabletPtr>> HeatMeters::tablets(
    const MetaState& state) const {
  std::vector<std::pair<const TableInfo*, TabletPtr>> out;
  for (const auto& [incarnation, known] : tables_) {
    const TableInfo* table = state.table(TableIncarnation{incarnation});
    if (table == nullptr) continue;
    for (const TabletPtr& tablet : known.tablets)
      if (tablet != nullptr) out.emplace_back(table, tablet);
  }
  // By id: no order of a hash map may reach a report.
  std::ranges::sort(out, {}, [](const auto& entry) { return entry.second->id; });
  return out;
}

}  // namespace tetrad::replication
