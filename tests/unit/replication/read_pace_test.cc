// SPDX-License-Identifier: Apache-2.0
#include "replication/coordinator/read_pace.h"

#include <catch2/catch.hpp>

namespace tetrad::replication {

namespace {

/// Reads that take what `took_us` says of their number; those that are to be timed are.
template <class Took>
void read(ReadPace& pace, int reads, Took took_us) {
  for (int i = 0; i < reads; ++i) {
    if (pace.times_next()) pace.note(took_us(i), base::MonotonicUs{1'000'000});
  }
}

}  // namespace

TEST_CASE("a read waits as long as 99 in 100 reads take before it asks one more replica") {
  ReadPace pace(2'000, 30'000);
  read(pace, 200, [](int) { return 5'000; });
  CHECK(pace.patience_us() == 30'000);  // too few are timed
  read(pace, 800, [](int) { return 5'000; });
  CHECK(pace.patience_us() >= 5'000);
  CHECK(pace.patience_us() <= 6'250);  // the bound of its bucket

  // Two in a hundred are slow, and then one in two hundred.
  ReadPace with_slow(2'000, 30'000);
  read(with_slow, 80'000, [](int i) { return i % 400 < 8 ? 20'000 : 3'000; });
  CHECK(with_slow.patience_us() >= 20'000);
  ReadPace with_few(2'000, 30'000);
  read(with_few, 80'000, [](int i) { return i % 1600 < 8 ? 20'000 : 3'000; });
  CHECK(with_few.patience_us() < 4'000);
}

TEST_CASE("what is timed does not follow the rhythm of a client") {
  for (const int period : {2, 3, 4, 5, 7, 8, 16}) {
    CAPTURE(period);
    ReadPace pace(2'000, 30'000);
    read(pace, 20'000, [&](int i) { return i % period == 1 ? 20'000 : 1'000; });
    CHECK(pace.patience_us() >= 20'000);
  }
}

TEST_CASE("it waits no shorter and no longer than it may, whatever reads take") {
  ReadPace pace(2'000, 30'000);
  read(pace, 1'000, [](int) { return 100; });
  CHECK(pace.patience_us() == 2'000);
  read(pace, 100'000, [](int) { return 3'800'000; });
  CHECK(pace.patience_us() == 30'000);
  ReadPace backwards(2'000, 500);  // the least is above the most
  read(backwards, 1'000, [](int) { return -1; });
  CHECK(backwards.patience_us() == 500);
}

}  // namespace tetrad::replication
