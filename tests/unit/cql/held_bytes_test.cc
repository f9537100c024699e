// SPDX-License-Identifier: Apache-2.0
// Memory is charged for what a request holds while it is in flight, not for what arrived.
#include "tests/unit/cql/whole_requests.h"

namespace tetrad::tests {
namespace {

constexpr std::string_view kSelect = "SELECT c FROM ks.t WHERE k = 1 AND c IN ";

class HeldBytes : public WholeRequests {
 public:
  HeldBytes() {
    coordinator->on_read = [this](storage::ReadResult&) { held = processor->held_bytes(); };
  }
  /// What the processor charged while the request read its rows.
  template <class Ask>
  uint64_t held_by(Ask ask_once) {
    held = 0;
    while (held == 0) {  // every other read is answered where it stands, without on_read
      const std::string error = error_of(ask_once());
      INFO(error);
      REQUIRE(error.empty());
    }
    CHECK(processor->held_bytes() == 0);
    return held;
  }
  std::unique_ptr<cql::QueryProcessor> with_room_for(uint64_t bytes) {
    cql::QueryProcessorOptions processing;
    processing.request_bytes_max = bytes;
    return another_shard(std::move(processing));
  }
  static std::string numbers(int count) {
    std::string out = "(0";
    for (int i = 1; i < count; ++i) out += fmt::format(",{}", i);
    return out + ")";
  }

  uint64_t held = 0;
};

}  // namespace

TEST_CASE_METHOD(HeldBytes, "a text is charged with the plan that is made of it") {
  const std::string text = std::string(kSelect) + numbers(20'000);
  const uint64_t of_text = held_by([&] { return query(text); });
  // Two tokens for each number, 80 bytes for a token.
  CHECK(of_text > 40'000 * 80 + 6 * text.size());
  CHECK(of_text < 2 * 40'000 * 80);
  const uint64_t of_half = held_by([&] { return query(std::string(kSelect) + numbers(10'000)); });
  CHECK(of_half < of_text * 6 / 10);
}

TEST_CASE_METHOD(HeldBytes, "values are charged with what is made of them") {
  const Bytes id = prepare(std::string(kSelect) + "?");
  Bytes list;
  base::ByteWriter writer(list);
  constexpr uint32_t kItems = 5'000;
  writer.u32(kItems);
  for (uint32_t i = 0; i < kItems; ++i) {
    writer.u32(4);
    writer.u32(i);
  }
  const cql::WireValue value{cql::WireValue::Kind::kBytes, list};
  const uint64_t of_values = held_by([&] { return run(id, {.values = {&value, 1}}); });
  CHECK(of_values > 6 * list.size());
  CHECK(of_values < 7 * list.size());
}

TEST_CASE_METHOD(HeldBytes, "a request that would hold too much beside others is refused") {
  const std::string text = std::string(kSelect) + numbers(20'000);
  const uint64_t each = held_by([&] { return query(text); });
  processor = with_room_for(each * 3 / 2);
  std::string beside, small;
  bool is_beside = false;
  coordinator->on_read = [&](storage::ReadResult&) {
    if (std::exchange(is_beside, true)) return;
    beside = error_of(query(text));
    small = error_of(query("SELECT c FROM ks.t WHERE k = 1"));
    held = processor->held_bytes();
  };
  while (beside.empty()) CHECK(error_of(query(text)).empty());
  CHECK(beside == "1001 Too many bytes of requests in flight on this node; try again");
  CHECK(small.empty());
  CHECK(held == each);  // what was refused left nothing behind
  CHECK(processor->held_bytes() == 0);
  // Alone it may hold more than that.
  processor = with_room_for(each / 2);
  CHECK(error_of(query(text)).empty());
}

}  // namespace tetrad::tests
