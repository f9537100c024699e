// SPDX-License-Identifier: Apache-2.0
// What is measured of a tablet's heat, the sample of where it goes, and where a hot tablet is cut.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "partitioner/heat_meter.h"
#include "partitioner/heat_policy.h"
#include "partitioner/heavy_keys.h"
#include "partitioner/position_sample.h"

namespace tetrad::partitioner {

namespace {

constexpr int64_t kSecondUs = 1'000'000;

/// Keys whose popularity is zipf's, at random places of the ring.
class ZipfKeys {
 public:
  ZipfKeys(size_t count, double exponent, base::Random& random) : until_(count + 1) {
    std::vector<RingPosition> positions(count);
    for (RingPosition& one : positions) one = {static_cast<int64_t>(random.next()), random.next()};
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](size_t rank) { return positions[rank]; });
    for (size_t i = 0; i < count; ++i) {
      positions_.push_back(positions[order[i]]);
      until_[i + 1] = until_[i] + std::pow(static_cast<double>(order[i] + 1), -exponent);
    }
  }

  /// A tablet of the keys [from, to).
  Tablet tablet(size_t from, size_t to) const {
    Tablet out;
    out.range = {from == 0 ? RingPosition::lowest() : positions_[from - 1], positions_[to - 1]};
    return out;
  }
  RingPosition draw(size_t from, size_t to, base::Random& random) const {
    const double at = until_[from] + random.unit() * (until_[to] - until_[from]);
    const auto found = std::upper_bound(until_.begin() + static_cast<ptrdiff_t>(from + 1),
                                        until_.begin() + static_cast<ptrdiff_t>(to), at);
    return positions_[static_cast<size_t>(found - until_.begin()) - 1];
  }
  /// Share of the work of the keys [from, to) that is in (start, end].
  double share(size_t from, size_t to, RingPosition start, RingPosition end) const {
    const auto place = [&](RingPosition position) {
      const auto found = std::ranges::upper_bound(positions_, position) - positions_.begin();
      return std::clamp(static_cast<size_t>(found), from, to);
    };
    return (until_[place(end)] - until_[place(start)]) / (until_[to] - until_[from]);
  }

 private:
  std::vector<RingPosition> positions_;
  std::vector<double> until_;  // the work of all keys before
};

/// Shares of the parts that `cuts` make of the tablet.
std::vector<double> parts_of(const ZipfKeys& keys, size_t from, size_t to, const Tablet& tablet,
                             const std::vector<RingPosition>& cuts) {
  std::vector<double> parts;
  RingPosition start = tablet.range.start;
  for (const RingPosition cut : cuts) {
    CHECK(start < cut);
    CHECK(cut < tablet.range.end);
    parts.push_back(keys.share(from, to, start, cut));
    start = cut;
  }
  parts.push_back(keys.share(from, to, start, tablet.range.end));
  return parts;
}

Tablet whole_ring() {
  Tablet tablet;
  tablet.range = {RingPosition::lowest(), RingPosition::highest()};
  return tablet;
}

}  // namespace

TEST_CASE("slots, minutes and hot slots of a meter are those of the work that was added") {
  const int64_t begun_us = 7'000 * kSecondUs;
  HeatMeter meter(begun_us);
  int64_t now_us = begun_us;
  for (; now_us < begun_us + 3 * kSecondUs; now_us += 1'000) {
    meter.add_read(now_us, 10, 100);
    meter.add_write(now_us, 5, 50);
  }
  meter.settle(now_us);
  const HeatSum recent = meter.recent(10);
  CHECK(recent.reads == Approx(10'000));
  CHECK(recent.writes == Approx(5'000));
  CHECK(recent.bytes == Approx(150'000));
  CHECK(recent.work() == Approx(15'000));
  CHECK(meter.recent(40).reads == Approx(3'000));  // three of ten seconds
  CHECK(meter.hot_slots(10, {15'000, 0}) == 10);
  CHECK(meter.hot_slots(10, {15'001, 0}) == 0);
  CHECK(meter.hot_slots(10, {0, 150'000}) == 10);
  CHECK(meter.hot_slots(10, {0, 0}) == 0);
  CHECK(meter.hot_slots(40, {1, 0}) == 12);
  CHECK(meter.busiest_second().work() == Approx(15'000));

  // Half a second of nothing: 8 of the last 10 slots are hot, then 7.
  now_us += kSecondUs / 2;
  meter.settle(now_us);
  CHECK(meter.hot_slots(10, {15'000, 0}) == 8);
  meter.settle(now_us + HeatMeter::kSlotUs);
  CHECK(meter.hot_slots(10, {15'000, 0}) == 7);

  // What was is forgotten: the slots after ten seconds, the busiest second after two minutes.
  meter.settle(now_us + 11 * kSecondUs);
  CHECK(meter.recent(40).work() == 0);
  CHECK(meter.busiest_second().work() == Approx(15'000));
  meter.settle(now_us + 60 * kSecondUs);
  CHECK(meter.busiest_second().work() == Approx(15'000));
  CHECK(meter.busiest_second_of_minute(1).work() == Approx(15'000));
  meter.settle(now_us + 121 * kSecondUs);
  CHECK(meter.busiest_second().work() == 0);
  CHECK(meter.busiest_second_of_minute(2).work() == Approx(15'000));
  meter.settle(now_us + 1'000'000 * kSecondUs);
  CHECK(meter.busiest_second_of_minute(4).work() == 0);
  meter.add_write(now_us + 1'000'000 * kSecondUs, 4, 1);
  meter.settle(now_us + 1'000'001 * kSecondUs);
  CHECK(meter.recent(4).writes == Approx(4));
}

TEST_CASE("a sample has each position by its work, and forgets with its half-life") {
  base::Random random(5);
  const RingPosition light{1, 1}, heavy{2, 2}, old{3, 3};
  PositionSample sample(random, 0);
  for (int i = 0; i < 50'000; ++i) sample.add(old, 1);
  CHECK(sample.positions() == std::vector<RingPosition>(PositionSample::kSize, old));
  // Nothing for two half-lives, then as much as before, one in four of which is four times as heavy.
  int64_t now_us = 2 * PositionSample::kHalfLifeUs;
  sample.advance(now_us);
  for (int i = 0; i < 50'000; ++i) {
    sample.add(light, 1);
    if (i % 4 == 0) sample.add(heavy, 4);
  }
  const auto positions = sample.positions();
  REQUIRE(positions.size() == PositionSample::kSize);
  CHECK(std::ranges::is_sorted(positions));
  const auto share = [&](RingPosition position) {
    return static_cast<double>(std::ranges::count(positions, position)) / PositionSample::kSize;
  };
  CHECK(share(old) == Approx(12'500 / 112'500.0).margin(0.05));
  CHECK(share(light) == Approx(50'000 / 112'500.0).margin(0.06));
  CHECK(share(heavy) == Approx(50'000 / 112'500.0).margin(0.06));

  // Long after, and of work without weight.
  for (int i = 0; i < 400; ++i) sample.advance(now_us += PositionSample::kHalfLifeUs);
  sample.add(old, 0);
  for (int i = 0; i < 2'000; ++i) sample.add(light, 1'000'000);
  CHECK(sample.positions() == std::vector<RingPosition>(PositionSample::kSize, light));
}

TEST_CASE("the heaviest keys are found among many, with what they get per second") {
  base::Random random(7);
  const ZipfKeys keys(100'000, 1.1, random);
  HeavyKeys heavy(0);
  const auto name_of = [](RingPosition position) { return std::to_string(position.hash); };
  std::map<RingPosition, double> drawn;
  constexpr int kSeconds = 60, kPerSecond = 8'000;
  for (int slot = 0; slot < 4 * kSeconds; ++slot) {
    heavy.advance(slot * HeatMeter::kSlotUs);
    for (int op = 0; op < kPerSecond / 4; ++op) {
      const RingPosition at = keys.draw(0, 100'000, random);
      drawn[at] += 1.0 / kSeconds;
      heavy.add(at, name_of(at), 10, random.one_in(4));
    }
  }
  heavy.advance(kSeconds * kSecondUs);
  std::vector<std::pair<double, RingPosition>> real;
  for (const auto& [position, per_s] : drawn) real.emplace_back(per_s, position);
  std::ranges::sort(real, std::greater());
  const auto found = heavy.heaviest(10);
  REQUIRE(found.size() == 10);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(found[i].position == real[i].second);
    CHECK(found[i].key == name_of(real[i].second));
    CHECK(found[i].reads + found[i].writes == Approx(10 * real[i].first).epsilon(0.15));
    CHECK(found[i].writes == Approx(found[i].reads / 3).epsilon(0.25));
    CHECK(found[i].share == Approx(real[i].first / kPerSecond).epsilon(0.15));
    CHECK_FALSE(found[i].is_cut);
  }
  // What is not used any more goes, a long key is cut.
  const RingPosition other{1, 1};
  const std::string name(1'000, 'k');
  for (int slot = 0; slot < 400; ++slot) {
    heavy.advance(kSeconds * kSecondUs + slot * HeatMeter::kSlotUs);
    for (int op = 0; op < 80; ++op) heavy.add(other, name, 1, false);
  }
  const auto last = heavy.heaviest(1);
  CHECK(last[0].position == other);
  CHECK(last[0].is_cut);
  CHECK(last[0].key == name.substr(0, HeavyKeys::kKeyBytesMax));
  CHECK(last[0].reads == Approx(320).epsilon(0.1));
}

TEST_CASE("of 1000 splits in two under zipf at least 950 leave 45 to 55 percent on each side") {
  base::Random random(11);
  constexpr size_t kKeys = 1'000'000;
  size_t halved = 0, good = 0, apart = 0, apart_well = 0;
  for (const double exponent : {0.99, 1.1, 1.2}) {
    const ZipfKeys layouts[] = {{kKeys, exponent, random}, {kKeys, exponent, random}};
    for (size_t i = 0; i < 460; ++i) {
      const ZipfKeys& keys = layouts[i % 2];
      const size_t width = kKeys / (1 + random.below(16));
      const size_t from = i % 10 == 0 ? 0 : random.below(kKeys - width + 1), to = from + width;
      const Tablet tablet = keys.tablet(from, to);
      PositionSample sample(random, 0);
      for (int64_t slot = 0; slot < 10; ++slot) {
        sample.advance(slot * HeatMeter::kSlotUs);
        for (int op = 0; op < 800; ++op) sample.add(keys.draw(from, to, random), 1);
      }
      const auto cuts = choose_heat_cuts(tablet, sample.positions());
      REQUIRE(cuts);
      auto parts = parts_of(keys, from, to, tablet, cuts->cuts);
      CHECK(std::abs(*std::ranges::max_element(parts) - cuts->largest) < 0.08);
      if (cuts->sets_apart) {  // what is left and right of it
        ++apart;
        if (parts.size() == 3) parts.erase(parts.begin() + 1);
        apart_well += parts.size() == 1 || *std::ranges::max_element(parts) <= 0.55 ? 1 : 0;
      } else {
        ++halved;
        good += *std::ranges::max_element(parts) <= 0.55 ? 1 : 0;
      }
    }
  }
  INFO(halved << " halved, " << good << " well, " << apart << " set apart, " << apart_well);
  CHECK(halved >= 1'000);
  CHECK(20 * good >= 19 * halved);
  CHECK(20 * apart_well >= 19 * apart);
}

TEST_CASE("a position with more than half of the work is set apart in one step") {
  base::Random random(3);
  const RingPosition hot{100, 7};
  for (const size_t percent : {55, 70, 90}) {
    std::vector<RingPosition> samples(10 * percent, hot);
    while (samples.size() < 1'000)
      samples.push_back({static_cast<int64_t>(random.next()), random.next()});
    std::ranges::sort(samples);
    const auto cuts = choose_heat_cuts(whole_ring(), samples);
    REQUIRE(cuts);
    CHECK(cuts->sets_apart);
    CHECK(cuts->cuts == std::vector<RingPosition>{{100, 6}, hot});
    CHECK(cuts->largest == Approx(static_cast<double>(percent) / 100));
  }
  // At an end of the tablet one cut does it.
  std::vector<RingPosition> samples(600, hot);
  for (int64_t i = 0; i < 400; ++i) samples.push_back({101 + i, 0});
  Tablet tablet;
  tablet.range = {{100, 6}, RingPosition::highest()};
  CHECK(choose_heat_cuts(tablet, samples)->cuts == std::vector<RingPosition>{hot});
  samples.assign(600, hot);
  for (int64_t i = 0; i < 400; ++i) samples.insert(samples.begin(), {99 - i, 0});
  tablet.range = {RingPosition::lowest(), hot};
  CHECK(choose_heat_cuts(tablet, samples)->cuts == std::vector<RingPosition>{{100, 6}});
}

TEST_CASE("a position in the middle with a fair share is set apart, with a small one it is not") {
  const auto samples_with = [](size_t of_middle) {
    std::vector<RingPosition> samples;
    const size_t others = (1'000 - of_middle) / 2;
    for (size_t i = 0; i < others; ++i) samples.push_back({static_cast<int64_t>(i), 1});
    samples.resize(others + of_middle, {10'000, 1});
    for (size_t i = 0; i < others; ++i) samples.push_back({static_cast<int64_t>(20'000 + i), 1});
    return samples;
  };
  const auto large = choose_heat_cuts(whole_ring(), samples_with(200));
  REQUIRE(large);
  CHECK(large->sets_apart);
  CHECK(large->cuts == std::vector<RingPosition>{{10'000, 0}, {10'000, 1}});
  CHECK(large->largest == Approx(0.4));
  const auto small = choose_heat_cuts(whole_ring(), samples_with(50));
  REQUIRE(small);
  CHECK_FALSE(small->sets_apart);
  CHECK(small->cuts.size() == 1);
  CHECK(small->largest <= 0.53);
}

TEST_CASE("a tablet is not cut when one position has its work, or too little is known") {
  const auto why = [](const Tablet& tablet, const std::vector<RingPosition>& samples,
                      double largest = 1.0) {
    const auto cuts = choose_heat_cuts(tablet, samples, largest);
    return cuts ? "cut" : cuts.error().message;
  };
  std::vector<RingPosition> samples(1'000, {5, 5});
  CHECK(why(whole_ring(), samples) == "one logical partition has 100 % of its work");
  samples.back() = {6, 6};
  CHECK(why(whole_ring(), samples) == "one logical partition has 100 % of its work");
  Tablet alone;
  alone.range = {{5, 4}, {5, 5}};
  CHECK(why(alone, samples) == "one logical partition has 100 % of its work");
  CHECK(why(whole_ring(), {}) == "0 samples of its requests are too few");
  samples.resize(100);
  CHECK(why(whole_ring(), samples) == "100 samples of its requests are too few");
  // Of another tablet: they do not count.
  Tablet other;
  other.range = {{50, 0}, {60, 0}};
  samples.resize(1'000, {5, 5});
  CHECK(why(other, samples) == "0 samples of its requests are too few");

  std::vector<RingPosition> even;
  for (int64_t i = 0; i < 1'000; ++i) even.push_back({i, 1});
  CHECK(why(whole_ring(), even) == "cut");
  CHECK(why(whole_ring(), even, 0.4) == "the busiest part would keep 50 % of its work");
}

}  // namespace tetrad::partitioner
