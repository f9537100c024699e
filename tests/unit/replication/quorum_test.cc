// SPDX-License-Identifier: Apache-2.0
// How levels are counted over the data centres of a set.
#include "replication/quorum.h"

#include <catch2/catch.hpp>

namespace tetrad::replication {
namespace {

StoreAddress member(int center, int node) {
  StoreAddress out;
  out.host.value.octets[0] = static_cast<uint8_t>(center);
  out.host.value.octets[1] = static_cast<uint8_t>(node);
  return out;
}

/// `sizes[d]` members in each data centre d.
std::vector<StoreAddress> set_of(const std::vector<int>& sizes) {
  std::vector<StoreAddress> set;
  for (int center = 0; center < static_cast<int>(sizes.size()); ++center)
    for (int node = 0; node < sizes[static_cast<size_t>(center)]; ++node)
      set.push_back(member(center, node));
  return set;
}

DataCenters centers_of(const std::vector<StoreAddress>& set) {
  std::map<HostId, uint32_t> numbers;
  for (const StoreAddress& one : set) numbers[one.host] = one.host.value.octets[0];
  return DataCenters(std::move(numbers));
}

/// Members by their index.
Members some(std::initializer_list<size_t> indexes) {
  Members out = 0;
  for (const size_t index : indexes) out |= bit_of(index);
  return out;
}

using Level = ConsistencyLevel;

}  // namespace

TEST_CASE("in one data centre a level is one number, and W is the floor of writes") {
  const auto set = set_of({4});
  const Levels levels(nullptr, member(0, 0).host);
  CHECK(levels.writing(Level::kOne, set).least() == 3);
  CHECK(levels.writing(Level::kLocalQuorum, set).least() == 3);
  CHECK(levels.writing(Level::kEachQuorum, set).least() == 3);
  CHECK(levels.writing(Level::kAll, set).least() == 4);
  CHECK(levels.reading(Level::kOne, set).least() == 1);
  CHECK(levels.reading(Level::kQuorum, set).least() == 3);
  CHECK(levels.serial(Level::kLocalSerial, set).least() == 3);
  CHECK_FALSE(levels.has_several());
  CHECK(levels.reading_after(Level::kOne) == Level::kQuorum);
}

TEST_CASE("levels of four and four, seen from the first data centre") {
  const auto set = set_of({4, 4});
  const DataCenters centers = centers_of(set);
  const Levels levels(&centers, member(0, 1).host);

  const Need local = levels.writing(Level::kLocalQuorum, set);
  CHECK(local.is_met_by(some({0, 1, 2})));
  CHECK_FALSE(local.is_met_by(some({0, 1, 4, 5, 6, 7})));
  CHECK(local.least() == 3);
  CHECK(local.counted() == some({0, 1, 2, 3}));
  CHECK(levels.writing(Level::kOne, set).is_met_by(some({1, 2, 3})));
  CHECK_FALSE(levels.writing(Level::kOne, set).is_met_by(some({4, 5, 6, 7})));

  const Need quorum = levels.writing(Level::kQuorum, set);
  CHECK(quorum.least() == 5);
  CHECK(quorum.is_met_by(some({0, 1, 2, 6, 7})));
  CHECK_FALSE(quorum.is_met_by(some({0, 1, 4, 5, 6, 7})));  // two here
  CHECK_FALSE(quorum.is_met_by(some({0, 1, 2, 3})));

  const Need each = levels.writing(Level::kEachQuorum, set);
  CHECK(each.least() == 6);
  CHECK(each.is_met_by(some({0, 1, 2, 4, 5, 6})));
  CHECK_FALSE(each.is_met_by(some({0, 1, 2, 3, 4, 5})));

  CHECK(levels.writing(Level::kTwo, set).least() == 3);
  CHECK(levels.writing(Level::kAll, set).least() == 8);
  CHECK(levels.reading(Level::kLocalOne, set).is_met_by(some({3})));
  CHECK_FALSE(levels.reading(Level::kLocalOne, set).is_met_by(some({4, 5})));
  CHECK(levels.reading(Level::kOne, set).is_met_by(some({4})));
  CHECK(levels.serial(Level::kLocalSerial, set).least() == 3);
  CHECK(levels.serial(Level::kSerial, set).least() == 5);
  CHECK(levels.reading_after(Level::kLocalQuorum) == Level::kLocalQuorum);
  CHECK(levels.reading_after(Level::kEachQuorum) == Level::kQuorum);
}

TEST_CASE("a data centre without members serves no local level") {
  const auto set = set_of({3});
  auto all = set;
  all.push_back(member(1, 0));
  const DataCenters centers = centers_of(all);
  const Levels levels(&centers, member(1, 0).host);
  const Members everyone = all_of(set);
  CHECK_FALSE(levels.writing(Level::kLocalQuorum, set).is_met_by(everyone));
  CHECK_FALSE(levels.reading(Level::kLocalOne, set).is_met_by(everyone));
  CHECK(levels.writing(Level::kOne, set).least() == 2);
  CHECK(levels.writing(Level::kQuorum, set).least() == 2);
  CHECK(levels.reading(Level::kQuorum, set).least() == 2);
}

TEST_CASE("what closes a stage leaves no quorum of any level to the others") {
  for (int one = 1; one <= 4; ++one)
    for (int two = 0; two <= 4; ++two)
      for (int three = 0; three <= 4; ++three) {
        std::vector<int> sizes{one};
        if (two != 0) sizes.push_back(two);
        if (three != 0) sizes.push_back(three);
        const auto set = set_of(sizes);
        const DataCenters centers = centers_of(set);
        const Need close = closing(&centers, set), find = finding(&centers, set);
        for (Members closed = 0; closed <= all_of(set); ++closed) {
          const Members open = all_of(set) & ~closed;
          for (int center = 0; center < static_cast<int>(sizes.size()); ++center) {
            const Levels levels(&centers, member(center, 0).host);
            for (const Level level : {Level::kOne, Level::kLocalQuorum, Level::kQuorum, Level::kAll,
                                      Level::kEachQuorum}) {
              const bool writes = levels.writing(level, set).is_met_by(open);
              const bool reads = level != Level::kOne && levels.reading(level, set).is_met_by(open);
              if (close.is_met_by(closed)) REQUIRE_FALSE((writes || reads));
              // Whoever asks `find` meets a member of each write.
              if (find.is_met_by(closed)) REQUIRE_FALSE(writes);
            }
          }
        }
      }
}

TEST_CASE("quorums of writes and of reads meet where their levels promise it") {
  for (const std::vector<int>& sizes :
       {std::vector<int>{4, 4}, {3, 3}, {4, 2}, {4, 1}, {2, 2, 3}}) {
    const auto set = set_of(sizes);
    const DataCenters centers = centers_of(set);
    const auto count = static_cast<int>(sizes.size());
    for (int writer = 0; writer < count; ++writer)
      for (int reader = 0; reader < count; ++reader) {
        const Levels from(&centers, member(writer, 0).host), to(&centers, member(reader, 0).host);
        const auto always_meet = [&](Level write, Level read) {
          const Need written = from.writing(write, set), asked = to.reading(read, set);
          for (Members acks = 0; acks <= all_of(set); ++acks)
            if (written.is_met_by(acks) && asked.is_met_by(all_of(set) & ~acks)) return false;
          return true;
        };
        CHECK(always_meet(Level::kQuorum, Level::kQuorum));
        CHECK(always_meet(Level::kEachQuorum, Level::kLocalQuorum));
        CHECK(always_meet(Level::kEachQuorum, Level::kQuorum));
        CHECK(always_meet(Level::kLocalQuorum, Level::kEachQuorum));
        CHECK(always_meet(Level::kAll, Level::kOne));
        CHECK(always_meet(Level::kLocalQuorum, Level::kLocalQuorum) == (writer == reader));
        if (writer == reader) {
          CHECK(always_meet(Level::kLocalQuorum, Level::kQuorum));
          CHECK(always_meet(Level::kOne, Level::kQuorum));
          CHECK(always_meet(Level::kQuorum, Level::kLocalQuorum));
        }
      }
  }
}

TEST_CASE("which member is asked next") {
  const auto set = set_of({4, 4});
  const DataCenters centers = centers_of(set);
  const Need find = finding(&centers, set);  // two of each, four of all
  CHECK(find.least() == 4);
  CHECK(find.wants(0, 0));
  CHECK_FALSE(find.wants(2, some({0, 1, 4, 5})));
  CHECK(find.wants(4, some({0, 1, 2, 3})));
  const Need recover = recovering(&centers, set, member(1, 0).host);
  CHECK(recover.is_met_by(some({0, 1, 5, 6})));
  CHECK_FALSE(recover.is_met_by(some({0, 1, 2, 5})));
  CHECK_FALSE(recover.is_met_by(some({5, 6, 7})));
}

}  // namespace tetrad::replication
