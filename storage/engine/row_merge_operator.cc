// SPDX-License-Identifier: Apache-2.0
// RocksDB calls it from any thread: readers, flushes and compactions. It never fails (rule 16): an
// operand that does not decode is kept in a bundle and counted, since a failed merge would stop the
// whole database.
// The merge operator: values of a key are joined as the model joins them.
#include "storage/engine/row_merge_operator.h"

#include <algorithm>
#include <vector>

#include <rocksdb/merge_operator.h>

#include "storage/engine/value_merge.h"

namespace tetrad::storage {
namespace {

// Set while a read of this thread watches how many operands its values take (rule 19).
thread_local MergeWatch* watch = nullptr;

BytesView view_of(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

}  // namespace

MergeWatch::MergeWatch() : outer_(std::exchange(watch, this)) {}
MergeWatch::~MergeWatch() { watch = outer_; }

class RowMergeOperator final : public rocksdb::MergeOperator {
 public:
  explicit RowMergeOperator(std::shared_ptr<MergeReport> report) : report_(std::move(report)) {}
  const char* Name() const override { return "tetrad.row.1"; }  // on disk: never rename

  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    if (watch != nullptr) watch->operands_ = std::max(watch->operands_, in.operand_list.size());
    // One version alone is the value: nothing is decoded.
    if (in.existing_value == nullptr && in.operand_list.size() == 1) {
      out->existing_operand = in.operand_list.front();
      return true;
    }
    std::vector<BytesView> values;
    values.reserve(in.operand_list.size() + 1);
    if (in.existing_value != nullptr) values.push_back(view_of(*in.existing_value));
    for (const rocksdb::Slice& operand : in.operand_list) values.push_back(view_of(operand));
    out->new_value.clear();  // it comes with whatever was there before
    const size_t broken = merge_values(kind_of(in.key), values, out->new_value);
    if (broken > 0) report_->undecodable_values.fetch_add(broken, std::memory_order_relaxed);
    return true;
  }

  bool PartialMergeMulti(const rocksdb::Slice& key, const std::deque<rocksdb::Slice>& operands,
                         std::string* new_value, rocksdb::Logger*) const override {
    std::vector<BytesView> values;
    values.reserve(operands.size());
    for (const rocksdb::Slice& operand : operands) values.push_back(view_of(operand));
    Bytes joined;
    const size_t broken = merge_values(kind_of(key), values, joined);
    // False: RocksDB keeps the operands as they are, and nothing is lost.
    if (broken > 0) {  // the operands stay apart as they are
      report_->undecodable_values.fetch_add(broken, std::memory_order_relaxed);
      return false;
    }
    *new_value = std::move(joined);
    return true;
  }

 private:
  // A key that is no row's is the store's own, which is never merged; any kind will do.
  static KeyKind kind_of(const rocksdb::Slice& key) {
    const auto view = decode_storage_key(view_of(key));
    return view ? view->kind : KeyKind::kRow;
  }
  const std::shared_ptr<MergeReport> report_;
};

std::shared_ptr<rocksdb::MergeOperator> make_row_merge_operator(
    std::shared_ptr<MergeReport> report) {
  return std::make_shared<RowMergeOperator>(std::move(report));
}

}  // namespace tetrad::storage
