// SPDX-License-Identifier: Apache-2.0
// Fuzz target: a read with a fold, as a peer asks for it: the message, the plan that it names, and
// the state to go on from. What is taken has one form, and folding a row with it does no harm.
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "cql/execute/aggregate_fold.h"
#include "cql/types/ordered_encoding.h"
#include "replication/replica/replica_messages.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace tetrad;

constexpr uint8_t kFloat = 8, kInt = 9, kText = 13, kVarint = 14, kDecimal = 6;

/// A plan of every function over a static, a clustering and some regular columns.
Bytes plan_spec(bool in_order) {
  Bytes spec;
  base::ByteWriter w(spec);
  const auto column = [&](uint8_t kind, uint32_t number, uint8_t type) {
    w.u8(kind);
    w.u32(number);
    w.u16(type);
  };
  w.u8(1);
  w.u8(1);
  w.u8(1);
  w.u8(1);
  w.u8(1);
  w.u16(kText);
  w.u8(6);
  column(0, 0, kInt);
  column(1, 0, kText);
  column(2, 1, kInt);
  column(3, 2, kVarint);
  column(3, 3, kDecimal);
  column(3, 4, kFloat);
  const uint8_t calls[][2] = {{0, 0xff}, {1, 2}, {2, 1}, {3, 1}, {4, 2}, {5, 0},
                              {4, 3},    {5, 3}, {4, 4}, {5, 4}, {5, 5}, {4, 5}};
  const uint8_t count = in_order ? 12 : 9;
  w.u8(count);
  for (uint8_t i = 0; i < count; ++i) {
    w.u8(calls[i][0]);
    w.u8(calls[i][1]);
  }
  return spec;
}

storage::RowRecord row_of(BytesView value) {
  storage::RowRecord row;
  row.liveness.timestamp_us = 1;
  for (uint32_t id = 1; id < 6; ++id) {
    storage::Cell cell;
    cell.column_id = id;
    cell.timestamp_us = 1;
    cell.value = value;
    row.cells.push_back(cell);
  }
  return row;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const bool in_order : {false, true}) {
    const auto plan = cql::read_aggregate_fold(plan_spec(in_order));
    TETRAD_ASSERT(plan.has_value());
    auto fold = (*plan)->go_on({}, 0);
    TETRAD_ASSERT(fold.has_value());
    TETRAD_ASSERT((*fold)->begin_partition({}, Bytes(4, 'k'), row_of(Bytes(4, 's')), true));
    Bytes key;
    TETRAD_ASSERT(cql::append_ordered(key, *cql::text_type(), "key", true));
    TETRAD_ASSERT((*fold)->take_row(key, row_of(Bytes(4, '\0') + "v")));
    for (const bool has_state : {false, true}) {
      storage::ReadCommand command;
      command.is_range = true;
      command.count_only = true;
      command.fold = *plan;
      if (has_state) command.fold_state = *(*fold)->state();
      seeds.push_back(replication::encode_read({1}, command));
    }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const BytesView input(reinterpret_cast<const char*>(data), size);
  const auto request = replication::decode_read(input, cql::read_aggregate_fold);
  if (!request || request->command.fold == nullptr) return 0;
  const Bytes again = replication::encode_read(request->epoch, request->command);
  TETRAD_ASSERT(replication::decode_read(again, cql::read_aggregate_fold).has_value());

  const storage::FoldPlan& plan = *request->command.fold;
  auto fold = plan.go_on(request->command.fold_state, request->command.now_s);
  if (!fold) return 0;
  const BytesView value = input.substr(0, size % 9);
  if ((*fold)->begin_partition({}, Bytes(4, 'k'), row_of(value), size % 2 != 0))
    (void)(*fold)->take_row(input.substr(0, size % 5), row_of(value));
  const auto state = (*fold)->state();
  TETRAD_ASSERT(state.has_value());
  (void)plan.go_on(*state, 0);
  const Bytes states[] = {*state, *state};
  if (!plan.in_order()) (void)plan.join(states);
  return 0;
}
