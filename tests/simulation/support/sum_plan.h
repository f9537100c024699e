// SPDX-License-Identifier: Apache-2.0
// A fold for simulated nodes, which know no CQL: numbers of eight bytes are added up.
#pragma once

#include <memory>

#include "base/byte_io.h"
#include "storage/row/row_fold.h"

namespace tetrad::simulation {

/// Adds up the numbers in all cells of rows. One that depends on the order multiplies before each
/// addition.
class SumPlan final : public storage::FoldPlan, public std::enable_shared_from_this<SumPlan> {
 public:
  explicit SumPlan(bool in_order) : in_order_(in_order), spec_(in_order ? "ordered" : "sum") {}
  static Result<storage::FoldPlanPtr> read(BytesView spec) {
    if (spec != "sum" && spec != "ordered") return fail(ErrorCode::kCorruption, "no such fold");
    return std::make_shared<SumPlan>(spec == "ordered");
  }
  /// One step over rows that are all known.
  static uint64_t next(uint64_t sum, uint64_t value, bool in_order) {
    return (in_order ? sum * 31 : sum) + value;
  }
  static uint64_t number(BytesView state) {
    return state.empty() ? 0 : base::load_big_endian<uint64_t>(state.data());
  }

  BytesView spec() const override { return spec_; }
  bool in_order() const override { return in_order_; }
  Result<std::unique_ptr<storage::RowFold>> go_on(BytesView state, int64_t now_s) const override {
    return std::make_unique<Sum>(shared_from_this(), number(state), now_s);
  }
  Result<Bytes> join(std::span<const Bytes> states) const override {
    uint64_t sum = 0;
    for (const Bytes& state : states) sum += number(state);
    return bytes_of(sum);
  }

 private:
  static Bytes bytes_of(uint64_t sum) {
    Bytes state;
    base::ByteWriter(state).u64(sum);
    return state;
  }
  struct Sum final : storage::RowFold {
    Sum(std::shared_ptr<const SumPlan> of, uint64_t from, int64_t now)
        : plan(std::move(of)), sum(from), now_s(now) {}
    Result<void> begin_partition(RingPosition, BytesView, const storage::RowRecord&,
                                 bool) override {
      return {};
    }
    Result<void> take_row(BytesView, const storage::RowRecord& row) override {
      for (const storage::Cell& cell : row.cells) {
        if (cell.live_at(now_s))
          sum = next(sum, base::load_big_endian<uint64_t>(cell.value.data()), plan->in_order());
      }
      return {};
    }
    Result<Bytes> state() const override { return bytes_of(sum); }
    const std::shared_ptr<const SumPlan> plan;
    uint64_t sum;
    const int64_t now_s;
  };
  const bool in_order_;
  const Bytes spec_;
};

}  // namespace tetrad::simulation
