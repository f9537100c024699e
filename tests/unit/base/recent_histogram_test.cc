// SPDX-License-Identifier: Apache-2.0
#include "base/recent_histogram.h"

#include <catch2/catch.hpp>

namespace tetrad::base {
namespace {

constexpr int64_t kMinute_us = 60'000'000;

RecentFigures figures_of(const RecentHistogram& histogram, int64_t now_us) {
  RecentFigures out;
  out.add(histogram, now_us);
  return out;
}

}  // namespace

TEST_CASE("every value lies in the bucket whose bounds are around it") {
  for (uint64_t value = 0; value < 100'000; ++value) {
    const int bucket = RecentHistogram::bucket_of(value);
    REQUIRE(value < RecentHistogram::bound_of(bucket));
    if (bucket != 0) REQUIRE(value >= RecentHistogram::bound_of(bucket - 1));
  }
  CHECK(RecentHistogram::bucket_of(UINT64_MAX) == RecentHistogram::kBuckets - 1);
  for (int bucket = 4; bucket < RecentHistogram::kBuckets; ++bucket)
    CHECK(RecentHistogram::bound_of(bucket) * 4 <= RecentHistogram::bound_of(bucket - 1) * 5);
}

TEST_CASE("percentiles are those of what was recorded, by weight") {
  RecentHistogram histogram;
  for (uint64_t us = 1; us <= 1000; ++us) histogram.record(us, 1, 0);
  RecentFigures figures = figures_of(histogram, 0);
  CHECK(figures.at(0) == 2);
  CHECK((figures.at(0.5) >= 500 && figures.at(0.5) <= 625));
  CHECK((figures.at(0.99) >= 990 && figures.at(0.99) <= 1250));
  CHECK((figures.mean() > 480 && figures.mean() < 520));
  histogram.record(100'000, 3000, 0);
  figures = figures_of(histogram, 0);
  CHECK(figures.at(0.5) >= 100'000);
  CHECK(figures.at(0.1) < 1000);
}

TEST_CASE("without values all figures are zero") {
  const RecentFigures none = figures_of(RecentHistogram(), 5 * kMinute_us);
  CHECK(none.at(0.5) == 0);
  CHECK(none.at(1) == 0);
  CHECK(none.mean() == 0);
  CHECK(none.per_second == 0);
}

TEST_CASE("values count for less as minutes pass, and at last for nothing") {
  RecentHistogram histogram;
  for (int i = 0; i < 100; ++i) histogram.record(1'000'000, 1, kMinute_us);
  CHECK(figures_of(histogram, kMinute_us).at(0.5) > 1'000'000);
  // As many quick ones four minutes later: a sixteenth of the slow ones is left beside them.
  for (int i = 0; i < 100; ++i) histogram.record(10, 1, 5 * kMinute_us);
  const RecentFigures later = figures_of(histogram, 5 * kMinute_us);
  CHECK(later.at(0.5) <= 12);
  CHECK(later.at(0.9) <= 12);
  CHECK(later.at(1) > 1'000'000);
  CHECK(figures_of(histogram, 60 * kMinute_us).at(1) == 0);
  // Reading it changes nothing.
  CHECK(figures_of(histogram, 5 * kMinute_us).at(1) > 1'000'000);
}

TEST_CASE("the rate is that of the last minutes, of a young histogram too") {
  RecentHistogram histogram;
  int64_t now_us = 0;
  const auto run = [&](int seconds, int each) {
    for (int s = 0; s < seconds; ++s) {
      now_us += 1'000'000;
      for (int i = 0; i < each; ++i) histogram.record(5, 1, now_us);
    }
  };
  const auto rate = [&] { return figures_of(histogram, now_us).per_second; };
  run(30, 10);
  CHECK((rate() > 9 && rate() < 12));
  run(600, 10);
  CHECK((rate() > 9 && rate() < 11));
  now_us += 10 * kMinute_us;
  CHECK(rate() < 0.1);
}

TEST_CASE("figures of shards are added") {
  RecentHistogram one, other;
  for (int i = 0; i < 10; ++i) {
    one.record(10, 1, 1);
    other.record(1000, 1, 1);
  }
  RecentFigures both = figures_of(one, 1);
  both.add(figures_of(other, 1));
  CHECK(both.at(0.5) <= 12);
  CHECK(both.at(0.6) >= 1000);
  CHECK(both.per_second == figures_of(one, 1).per_second + figures_of(other, 1).per_second);
}

}  // namespace tetrad::base
