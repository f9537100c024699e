// SPDX-License-Identifier: Apache-2.0
// Latencies of each table's requests on one shard, as its coordinator and its replicas see them.
//
//   Every request is counted. Some are timed (base/request_timer.h); one of those stands for those
//   since the last. So a request that ends within the turn of the loop in which it began has a time,
//   too, which the turn's own clock could not tell.
//
// Memory: less than half a kilobyte for each kind of request that a table has had. A table that is
// dropped, or truncated, takes its figures along.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/reactor.h"
#include "base/recent_histogram.h"
#include "base/request_timer.h"
#include "storage/row/mutation.h"

namespace tetrad::replication {

struct MetaState;

/// What is measured of a table. Scans are reads of a range of the ring.
enum class TableFigure : uint8_t {
  kCoordinatorRead,
  kCoordinatorScan,
  kCoordinatorWrite,
  kLocalRead,
  kLocalScan,
  kLocalWrite,
  kRowsOfRead,        // live rows that a local read or scan has found
  kTombstonesOfRead,  // that it has come by
};
constexpr size_t kTableFigures = 8;

/// Of one figure: microseconds, rows, or tombstones.
struct TableMeasure {
  uint64_t count = 0, total = 0;  // since the table's first request here
  base::RecentFigures recent;
  void add(const TableMeasure& other);
};
/// Only what there has been a request for.
using TableMeasures = std::map<std::pair<TableIncarnation, TableFigure>, TableMeasure>;

/// Belongs to its shard and its thread.
class TableLatencies {
 public:
  /// A request that has begun.
  struct Timing : base::TimedRequest {
    TableFigure figure{};
    TableIncarnation table;
  };
  /// A write may be of several tables.
  struct Timings {
    Timing first;
    std::vector<Timing> others;
  };

  /// From its making to its end one request.
  class Scope {
   public:
    Scope(TableLatencies& latencies, TableFigure figure, TableIncarnation table)
        : latencies_(latencies), timing_(latencies.begin(figure, table)) {}
    ~Scope() { latencies_.end(timing_); }
    /// Before its end: how long it took, where it is timed.
    std::optional<int64_t> end() { return latencies_.end(std::exchange(timing_, {})); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TableLatencies& latencies_;
    Timing timing_;
  };

  explicit TableLatencies(const base::Reactor& reactor) : reactor_(reactor) {}
  TableLatencies(const TableLatencies&) = delete;
  TableLatencies& operator=(const TableLatencies&) = delete;

  Timing begin(TableFigure figure, TableIncarnation table) {
    Measured& of = measured(figure, table);
    ++of.count;
    return {of.timer.begin(reactor_), figure, table};
  }
  /// Of the tables of a batch the first sixteen.
  Timings begin_write(std::span<const storage::Mutation> mutations);
  /// How long it took; nothing where it is not timed.
  std::optional<int64_t> end(const Timing& timing) {
    const std::optional<int64_t> took_us = timing.took_us(reactor_);
    if (took_us) record(timing, static_cast<uint64_t>(*took_us));
    return took_us;
  }
  std::optional<int64_t> end(const Timings& timings) {
    std::optional<int64_t> took_us = end(timings.first);
    for (const Timing& timing : timings.others)
      if (const auto other_us = end(timing)) took_us = other_us;
    return took_us;
  }
  /// What a timed local read has found.
  void note_found(const Timing& timing, uint64_t rows, uint64_t tombstones);
  /// It is begun anew in another way, with nothing in between.
  void take_back(const Timing& timing);

  /// Forgets the tables that are no more.
  void follow(const MetaState& state);
  /// Of more tables than `tables_max` those that have had most of these requests.
  TableMeasures measures(std::span<const TableFigure> wanted, size_t tables_max = SIZE_MAX) const;

 private:
  struct Measured {
    uint64_t count = 0, total = 0;
    base::RequestTimer timer;
    base::RecentHistogram values;
  };
  using OfTable = std::array<std::unique_ptr<Measured>, kTableFigures>;

  Measured& measured(TableFigure figure, TableIncarnation table) {
    if (last_ == nullptr || last_table_ != table) look_up(table);
    std::unique_ptr<Measured>& found = (*last_)[static_cast<size_t>(figure)];
    if (found == nullptr) found = std::make_unique<Measured>();
    return *found;
  }
  void look_up(TableIncarnation table);
  void note(TableFigure figure, const Timing& timing, uint64_t value);
  void record(const Timing& timing, uint64_t took_us);

  const base::Reactor& reactor_;
  std::unordered_map<uint32_t, OfTable> tables_;  // by incarnation
  OfTable* last_ = nullptr;                       // of the last request
  TableIncarnation last_table_;
};

}  // namespace tetrad::replication
