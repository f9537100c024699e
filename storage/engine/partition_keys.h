// SPDX-License-Identifier: Apache-2.0
// Keys of one partition, for a read that looks many of them up.
#pragma once

#include "base/bytes.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {

/// The keys of the partition that is being read. All of them begin with prefix(), and differ in the
/// byte of their kind and what is behind it, so one buffer serves for all. Owned by one read.
class PartitionKeys {
 public:
  void begin_partition(TableIncarnation incarnation, RingPosition position,
                       BytesView partition_key) {
    prefix_.clear();
    append_partition_prefix(prefix_, incarnation, position, partition_key);
  }

  const Bytes& prefix() const { return prefix_; }

  /// Good until the next call.
  BytesView key_of(KeyKind kind, BytesView clustering_key) {
    key_.assign(prefix_);
    key_.push_back(static_cast<char>(kind));
    key_.append(clustering_key);
    return key_;
  }

  /// Whether the key is that of a row of this partition.
  bool is_row(BytesView key) const {
    return key.size() > prefix_.size() && key[prefix_.size()] == static_cast<char>(KeyKind::kRow) &&
           key.starts_with(prefix_);
  }

  /// The clustering key of a row's key: what is behind the prefix and the kind.
  BytesView clustering_key_of(BytesView key) const { return key.substr(prefix_.size() + 1); }

 private:
  Bytes prefix_;
  Bytes key_;
};

}  // namespace tetrad::storage
