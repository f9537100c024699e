// SPDX-License-Identifier: Apache-2.0
// The highest stamp that a store has seen in a read for an image, by the base row's bucket (rule
// 24). Two executions of one row meet at a store of both their quorums: the later one must have the
// higher stamp, or read again with one. A read for an image goes so:
//
//   1. must_sync(): where no bound as high as the stamp is synced, a higher one is synced first.
//   2. raise(): false, and nothing is read, where a stamp as high was seen.
//   3. The row is read in the same turn.
//
// No stamp that a store has seen is above its bound, so one that restarts takes the bound for what
// all its buckets have seen.
#pragma once

#include <optional>
#include <vector>

#include "storage/row/storage_key.h"
#include "storage/views/view_image.h"

namespace tetrad::storage {

/// The stamps that executions of views have raised, by bucket of the store, and the bound below
/// which a life before may have raised some. Owned by the store's views, on the store's thread.
/// Always: no stamp is raised above the bound that is on the disk.
class ViewStamps {
 public:
  /// `bound`: that of the life before; 0: there was none.
  explicit ViewStamps(ViewStamp bound) : bound_(bound), synced_(bound), highest_(bound) {}

  /// The bound to be synced; noted as asked for, so that it is given once. Unset: nothing is to be
  /// done. It is given out well before it is needed: a read waits only where may_raise() is false.
  std::optional<ViewStamp> must_sync(ViewStamp stamp);
  void synced(ViewStamp bound);
  /// A bound was not synced: it is given out again.
  void not_synced() { bound_ = synced_; }
  bool may_raise(ViewStamp stamp) const { return stamp <= synced_; }

  /// Notes a stamp that may_raise() allows. False: one as high was seen, which highest_of() tells.
  bool raise(uint16_t bucket, ViewStamp stamp);
  ViewStamp highest_of(uint16_t bucket) const { return seen_.empty() ? first_ : seen_[bucket]; }
  /// Of all buckets: what the next stage of a tablet of this store begins above.
  ViewStamp highest() const { return highest_; }

 private:
  ViewStamp bound_;  // synced, or about to be
  ViewStamp synced_;
  ViewStamp highest_;
  const ViewStamp first_ = synced_;  // what every bucket begins with
  std::vector<ViewStamp> seen_;      // by bucket; empty until one is raised
};

}  // namespace tetrad::storage
