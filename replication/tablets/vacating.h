// SPDX-License-Identifier: Apache-2.0
// Which stores their tablets leave because of their disks: one whose data does not all read at once
// (what it lacks is nowhere but on the others, so all of it is erased and filled anew, never a file
// alone: what a lost tombstone hid would come back), one that hangs or has failed when it has been
// so for as long as a node may stay away. One store at a time. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "base/reactor.h"
#include "replication/membership/store_troubles.h"
#include "replication/meta/meta_state.h"

namespace tetrad::replication {

/// Decides which store is left, from what its looks have seen. A value of the move runner, on its
/// thread; pure but for what it remembers.
class Vacating {
 public:
  /// `after_us`: how long one that hangs or has failed may stay; 0: for ever.
  explicit Vacating(int64_t after_us) : after_us_(after_us) {}

  /// To be called again and again by the leader of the metadata group.
  void look(const MetaState& state, const StoreTroubles& troubles,
            const std::function<bool(HostId)>& is_live, base::MonotonicUs now_us);
  /// Where this node does not lead any more.
  void forget() {
    absent_since_us_.clear();
    store_.reset();
  }
  /// Unset: none is vacated now.
  std::optional<StoreAddress> store() const { return store_; }
  /// No store of the node can take tablets: they go to other nodes.
  bool is_whole_node(const NodeInfo& node) const;

 private:
  bool has_place(const MetaState& state, const StoreAddress& store,
                 const std::function<bool(HostId)>& is_live) const;

  const int64_t after_us_;
  /// Stores that hang or have failed, and since when in one stretch.
  std::map<StoreAddress, base::MonotonicUs> absent_since_us_;
  StoreTroubles troubles_;
  std::optional<StoreAddress> store_;
};

}  // namespace tetrad::replication
