// SPDX-License-Identifier: Apache-2.0
#include "replication/replica/table_latencies.h"

#include <algorithm>
#include <functional>

#include "replication/meta/meta_state.h"

namespace tetrad::replication {

void TableMeasure::add(const TableMeasure& other) {
  count += other.count;
  total += other.total;
  recent.add(other.recent);
}

void TableLatencies::look_up(TableIncarnation table) {
  last_ = &tables_[table.value];
  last_table_ = table;
}

// The table may have gone meanwhile: then an entry is made that follow() takes away.
void TableLatencies::record(const Timing& timing, uint64_t took_us) {
  Measured& of = measured(timing.figure, timing.table);
  of.total += took_us * timing.weight;
  of.values.record(took_us, timing.weight, reactor_.now_us());
}

void TableLatencies::note_found(const Timing& timing, uint64_t rows, uint64_t tombstones) {
  if (!timing.is_timed()) return;
  note(TableFigure::kRowsOfRead, timing, rows);
  note(TableFigure::kTombstonesOfRead, timing, tombstones);
}

void TableLatencies::note(TableFigure figure, const Timing& timing, uint64_t value) {
  Measured& of = measured(figure, timing.table);
  of.count += timing.weight;
  of.total += value * timing.weight;
  of.values.record(value, timing.weight, reactor_.now_us());
}

void TableLatencies::take_back(const Timing& timing) {
  Measured& of = measured(timing.figure, timing.table);
  --of.count;
  of.timer.take_back(timing);
}

TableLatencies::Timings TableLatencies::begin_write(std::span<const storage::Mutation> mutations) {
  constexpr size_t kTablesMax = 16;
  Timings out;
  if (mutations.empty()) return out;
  out.first = begin(TableFigure::kCoordinatorWrite, mutations.front().incarnation);
  for (const storage::Mutation& mutation : mutations.subspan(1)) {
    const TableIncarnation table = mutation.incarnation;
    if (table == out.first.table || out.others.size() + 1 == kTablesMax) continue;
    if (std::ranges::find(out.others, table, &Timing::table) != out.others.end()) continue;
    out.others.push_back(begin(TableFigure::kCoordinatorWrite, table));
  }
  return out;
}

void TableLatencies::follow(const MetaState& state) {
  last_ = nullptr;  // its entry may go
  std::erase_if(tables_, [&state](const auto& entry) {
    return state.table(TableIncarnation{entry.first}) == nullptr;
  });
}

TableMeasures TableLatencies::measures(std::span<const TableFigure> wanted,
                                       size_t tables_max) const {
  std::vector<std::pair<uint64_t, uint32_t>> busiest;  // requests, incarnation
  for (const auto& [incarnation, figures] : tables_) {
    uint64_t requests = 0;
    for (const TableFigure figure : wanted)
      if (const auto& found = figures[static_cast<size_t>(figure)]; found != nullptr)
        requests += found->count;
    if (requests != 0) busiest.emplace_back(requests, incarnation);
  }
  if (busiest.size() > tables_max) {
    std::ranges::nth_element(busiest, busiest.begin() + static_cast<ptrdiff_t>(tables_max),
                             std::greater());
    busiest.resize(tables_max);
  }
  const int64_t now_us = reactor_.now_us();
  TableMeasures out;
  for (const auto& [requests, incarnation] : busiest) {
    for (const TableFigure figure : wanted) {
      const Measured* const found = tables_.at(incarnation)[static_cast<size_t>(figure)].get();
      if (found == nullptr) continue;
      TableMeasure& of = out[{TableIncarnation{incarnation}, figure}];
      of.count = found->count;
      of.total = found->total;
      of.recent.add(found->values, now_us);
    }
  }
  return out;
}

}  // namespace tetrad::replication
