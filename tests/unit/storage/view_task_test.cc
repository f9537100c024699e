// SPDX-License-Identifier: Apache-2.0
// Tasks of views as a store keeps them, and the stamps that it has seen (rule 24).
#include "storage/views/view_task.h"

#include <catch2/catch.hpp>

#include "base/random.h"
#include "storage/views/view_stamps.h"
#include "tests/support/hex.h"

namespace tetrad::storage {
namespace {

using tests::from_hex;

TEST_CASE("the examples of view tasks are what they say") {
  const Bytes key = from_hex(
      "fffffffd 00000007 7ffffffffffffffe 0000000000000003 0002 706b 02 636b 0000000000000009");
  auto place = decode_view_task_key(key);
  REQUIRE(place);
  CHECK(place->base == TableIncarnation{7});
  CHECK(place->position == RingPosition{-2, 3});
  CHECK(place->partition_key == "pk");
  CHECK_FALSE(place->of_range);
  CHECK(place->clustering_key == "ck");
  CHECK(place->sequence == 9);
  CHECK(view_task_key(*place) == key);
  CHECK(key.starts_with(view_tasks_of_row(*place)));
  CHECK(key.starts_with(view_tasks_of_table({7})));

  const Bytes value = from_hex("d00f 00000008 02 016b00 026b3200");
  auto task = decode_view_task(value, false);
  REQUIRE(task);
  CHECK(*task == ViewTask{1000, {{{8}, {{"k", ""}, {"k2", ""}}}}, "", ""});
  CHECK(view_task_value(*task, false) == value);

  const Bytes range_key = from_hex(
      "fffffffd 00000007 7ffffffffffffffe 0000000000000003 0002 706b 01 61 000000000000000a");
  place = decode_view_task_key(range_key);
  REQUIRE(place);
  CHECK(place->of_range);
  CHECK(place->clustering_key == "a");
  CHECK(place->sequence == 10);
  CHECK(view_task_key(*place) == range_key);

  const Bytes range = from_hex("d00f 01ff 0162");
  task = decode_view_task(range, true);
  REQUIRE(task);
  CHECK(*task == ViewTask{1000, {}, "\xff", "b"});
  CHECK(view_task_value(*task, true) == range);
}

TEST_CASE("what is no view task does not decode") {
  for (const char* key :
       {"", "fffffffd",
        "fffffffe 00000007 7ffffffffffffffe 0000000000000003 0002 706b 02 636b "
        "0000000000000009",
        "fffffffd 00000007 7ffffffffffffffe 0000000000000003 0002 706b 00 0000000000000009",
        "fffffffd 00000007 7ffffffffffffffe 0000000000000003 00ff 706b 02 0000000000000009"})
    CHECK_FALSE(decode_view_task_key(from_hex(key)));
  for (const char* value :
       {"", "d00f 000000", "d00f 00000008 02 016b00", "d00f 00000008 01 016b",
        "d00f 00000008 02 026b3200 016b00", "d00f 00000008 02 016b00 016b00",
        "d00f 00000008 01 016b00 00000008 01 016c00", "d00f 00000009 01 016b00 00000008 01 016c00",
        "d00f 00000008 ffffffffffffffff7f 016b00"})
    CHECK_FALSE(decode_view_task(from_hex(value), false));
  for (const char* value : {"", "d00f", "d00f 01ff", "d00f 01ff 0262", "d00f 01ff 0162 00"})
    CHECK_FALSE(decode_view_task(from_hex(value), true));

  base::Random random(1);
  const Bytes good = from_hex("d00f 00000008 02 016b00 026b3200");
  for (int i = 0; i < 20'000; ++i) {
    Bytes bad = good;
    bad[random.below(bad.size())] = static_cast<char>(random.below(256));
    bad.resize(random.below(bad.size() + 1));
    (void)decode_view_task(bad, random.one_in(2));
    (void)decode_view_task_key(from_hex("fffffffd 00000007") + bad);
  }
}

TEST_CASE("a stamp is seen once, and only below a synced bound") {
  ViewStamps stamps({});
  CHECK_FALSE(stamps.may_raise({2000}));
  CHECK(stamps.must_sync({2000}) == ViewStamp{1'002'000});
  CHECK_FALSE(stamps.must_sync({2000}));  // once
  CHECK_FALSE(stamps.may_raise({2000}));
  stamps.not_synced();
  CHECK(stamps.must_sync({2000}) == ViewStamp{1'002'000});
  stamps.synced({1'002'000});

  REQUIRE(stamps.may_raise({2000}));
  CHECK(stamps.raise(5, {2000}));
  CHECK_FALSE(stamps.raise(5, {2000}));
  CHECK_FALSE(stamps.raise(5, {1998}));
  CHECK(stamps.raise(6, {1998}));  // another bucket
  CHECK(stamps.highest_of(5) == ViewStamp{2000});
  CHECK(stamps.highest_of(7) == ViewStamp{});
  CHECK(stamps.highest() == ViewStamp{2000});
  // The next bound comes before the last one is reached.
  CHECK(stamps.must_sync({600'000}) == ViewStamp{1'600'000});
  CHECK(stamps.may_raise({600'000}));
}

TEST_CASE("a store that restarts has seen all stamps up to its bound") {
  ViewStamps stamps({1'002'000});
  CHECK_FALSE(stamps.raise(5, {2000}));
  CHECK_FALSE(stamps.raise(5, {1'002'000}));
  CHECK(stamps.highest() == ViewStamp{1'002'000});
  const ViewStamp above = stamp_above(stamps.highest_of(5), 0);
  const auto bound = stamps.must_sync(above);
  REQUIRE(bound);
  stamps.synced(*bound);
  CHECK(stamps.raise(5, above));
  CHECK(stamps.highest_of(6) == ViewStamp{1'002'000});
}

}  // namespace
}  // namespace tetrad::storage
