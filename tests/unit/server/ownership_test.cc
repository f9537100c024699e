// SPDX-License-Identifier: Apache-2.0
// What each node is said to own: by bytes, and by the ring where there are none.
#include "server/admin/ownership.h"

#include <catch2/catch.hpp>

#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::server {
namespace {

using partitioner::host_number;

/// A tablet from one token to another with its hosts; its id is also its place among all.
struct Part {
  uint64_t id;
  int64_t start, end;
  std::vector<uint8_t> hosts;
};

void add_table(replication::MetaState& state, const std::string& keyspace,
               const std::vector<Part>& parts) {
  auto table = std::make_shared<replication::TableInfo>();
  table->id.value.octets[0] = static_cast<uint8_t>(parts.front().id);
  table->keyspace = keyspace;
  table->name = "t";
  std::vector<partitioner::Tablet> tablets;
  for (const Part& part : parts) {
    partitioner::Tablet tablet;
    tablet.id = TabletId{part.id};
    tablet.range = {
        part.start == INT64_MIN ? RingPosition::lowest() : RingPosition::end_of_token(part.start),
        part.end == INT64_MAX ? RingPosition::highest() : RingPosition::end_of_token(part.end)};
    for (const uint8_t number : part.hosts) tablet.replicas.push_back({host_number(number), 0});
    tablets.push_back(std::move(tablet));
  }
  table->tablets = partitioner::TabletMap(std::move(tablets));
  state.tables.put(table->id, table);
}

/// Nodes 1 and 2, and the new node 3: it has a big table's rows, and nothing of the small ones.
replication::MetaState with_a_new_node() {
  replication::MetaState state;
  add_table(state, "big", {{1, INT64_MIN, 0, {1, 3}}, {2, 0, INT64_MAX, {2, 3}}});
  for (uint64_t i = 0; i < 10; ++i)
    add_table(state, "small", {{10 + i, INT64_MIN, INT64_MAX, {1, 2}}});
  return state;
}

}  // namespace

TEST_CASE("empty tables do not hide who has the big one") {
  const auto state = with_a_new_node();
  const auto bytes = [](TabletId id) -> uint64_t { return id.value < 10 ? 500'000'000 : 0; };
  const auto shares = shares_of(state, "", bytes);
  CHECK(shares.at(host_number(3)) == Approx(1).margin(0.001));
  CHECK(shares.at(host_number(1)) == Approx(0.5).margin(0.001));
  CHECK(shares.at(host_number(1)) + shares.at(host_number(2)) + shares.at(host_number(3)) ==
        Approx(2));  // two copies
  const auto of_keyspace = shares_of(state, "big", bytes);
  CHECK(of_keyspace.at(host_number(3)) == Approx(1));
  CHECK(of_keyspace.at(host_number(2)) == Approx(0.5));
}

TEST_CASE("of a keyspace the parts weigh what they hold, not what they are of the ring") {
  const auto bytes = [](TabletId id) -> uint64_t {
    return id.value == 1 ? 75'000'000 : 25'000'000;
  };
  const auto shares = shares_of(with_a_new_node(), "big", bytes);
  CHECK(shares.at(host_number(1)) == Approx(0.75).margin(0.001));
  CHECK(shares.at(host_number(2)) == Approx(0.25).margin(0.001));
}

TEST_CASE("without data the shares are those of the ring") {
  const auto nothing = [](TabletId) -> uint64_t { return 0; };
  const auto shares = shares_of(with_a_new_node(), "", nothing);
  CHECK(shares.at(host_number(1)) == Approx(10.5 / 11));
  CHECK(shares.at(host_number(3)) == Approx(1.0 / 11));
  const auto small = shares_of(with_a_new_node(), "small", nothing);
  CHECK(small.at(host_number(1)) == Approx(1));
  CHECK_FALSE(small.contains(host_number(3)));
  CHECK(shares_of(with_a_new_node(), "none", nothing).empty());
}

}  // namespace tetrad::server
