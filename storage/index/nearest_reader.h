// SPDX-License-Identifier: Apache-2.0
// A read of the rows whose vectors are nearest to another one (ReadCommand::nearest), without a
// graph:
//
//   1. The rows of the range are walked, a page at a time, each page a job of its own.
//   2. Of each row the vector is measured. As many as are wanted are kept, the furthest goes first.
//   3. The answer names those that were kept, in key order.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "storage/engine/partition_reader.h"
#include "storage/row/read_command.h"
#include "storage/vectors/distance.h"

namespace tetrad::storage {

/// Of the keys of the rows that are named, together: those that are further are not.
inline constexpr size_t kNearestKeyBytesMax = 1u << 20;

/// The nearest rows of those that were offered, with keys of kNearestKeyBytesMax bytes together at
/// most, one row at least.
class NearestPlaces {
 public:
  explicit NearestPlaces(uint32_t rows_max) : rows_max_(rows_max) {}

  /// Each row once. The views are copied.
  void offer(double distance, RingPosition position, BytesView partition_key,
             BytesView clustering_key);
  /// Takes all: an answer as ReadCommand::nearest has it. `exhausted`: every row that has a vector
  /// was offered.
  ReadResult take(bool exhausted);

 private:
  /// A row with its distance; ordered by that, then by key, so that no two are equal.
  struct Place {
    double distance;
    RingPosition position;
    Bytes partition_key, clustering_key;
    bool operator<(const Place& other) const;
  };
  static size_t key_bytes(const Place& place) {
    return place.partition_key.size() + place.clustering_key.size();
  }
  bool has_too_many() const {
    return places_.size() > rows_max_ || (key_bytes_ > kNearestKeyBytesMax && places_.size() > 1);
  }

  uint32_t rows_max_;
  std::set<Place> places_;  // nearest first
  size_t key_bytes_ = 0;
  std::optional<double>
      left_out_;  // the smallest distance of those that were offered and are not here
};

/// The vector of a live row, in `row`; unset: it has none.
std::optional<BytesView> vector_of(const RowRecord& row, uint32_t column_id, int64_t now_s);

/// Where a search without a graph stands.
struct NearestScan {
  explicit NearestScan(ReadCommand its_command);
  ReadCommand command;
  QueryVector query;
  NearestPlaces places;
  uint64_t vectors = 0;  // that were met
  bool is_done = false;  // else there is more behind command.resume_after
};

/// Looks at one more page of rows, of about `keys_max` keys. Errors: kCorruption, and those of the
/// view.
Result<void> scan_nearest(KeyView& view, const TableContents& contents, uint64_t keys_max,
                          NearestScan& scan);

}  // namespace tetrad::storage
