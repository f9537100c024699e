// SPDX-License-Identifier: Apache-2.0
// RocksDB's merge operator of a store: joins values as value_merge.h describes, never fails and
// sees no clock (rule 16).
#pragma once

#include <atomic>
#include <memory>

namespace rocksdb {
class MergeOperator;
}

namespace tetrad::storage {

/// What the operator has met; written by any thread.
struct MergeReport {
  std::atomic<uint64_t> undecodable_values{0};
};

std::shared_ptr<rocksdb::MergeOperator> make_row_merge_operator(
    std::shared_ptr<MergeReport> report);

}  // namespace tetrad::storage
