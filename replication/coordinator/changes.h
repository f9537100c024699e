// SPDX-License-Identifier: Apache-2.0
// The change feed of a table: the rows that were written, in about the order in which they were.
//
// Every store that holds a part of a table with a change log keeps one entry for each row that it
// is given, in the order of its arrival, in the same write as the row (replication/changes). A
// reader keeps a place in the log of every store. A write that was acknowledged stands in the logs
// of W members, so pages that look into those of R members of each tablet miss none; what a store
// has that could not be asked comes when it can. So every acknowledged write is delivered at least
// once; it may be delivered again, as another member has it later.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/ring_position.h"

namespace tetrad::replication {

/// A row that was written: its place only. What it says now is to be read.
struct Change {
  RingPosition position;
  Bytes partition_key;
  /// Unset: static columns of the partition.
  std::optional<Bytes> clustering_key;
  friend bool operator==(const Change&, const Change&) = default;
};

/// Which page of the change feed of one table is wanted.
struct ChangesCommand {
  TableIncarnation incarnation;
  /// Where the last page ended: ChangesPage::next. "" for the first page.
  Bytes after;
  /// Of the first page: what was written since, in microseconds since 1970.
  int64_t since_us = 0;
  /// Only of this partition; unset: of the whole table.
  struct Partition {
    RingPosition position;
    Bytes partition_key;
  };
  std::optional<Partition> partition;
  uint32_t changes_max = 1000;  // at least 1; about 1 MiB of keys ends a page, too
};

/// A page of the change feed. The place `next` never passes a change that was not delivered.
struct ChangesPage {
  /// In about the order of arrival, each place once.
  std::vector<Change> changes;
  /// Opaque, never "". Of changing size: 30 bytes and less for each store of the cluster.
  Bytes next;
  /// Nothing more was there when the logs were looked at.
  bool exhausted = true;
  /// The logs do not reach back as far as was asked: `changes` is empty, and whoever reads the
  /// whole table now and then goes on from `next` misses nothing.
  bool must_scan = false;
};

}  // namespace tetrad::replication
