// SPDX-License-Identifier: Apache-2.0
// Whether a node's clock is right, as its peers' clocks say.
#include "replication/membership/clock_watch.h"

#include <catch2/catch.hpp>

#include "replication/membership/kept_time.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::replication {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kHourUs = 3600 * kSecondUs;

HostId host(uint8_t number) {
  HostId id;
  id.value = *Uuid::parse(fmt::format("00000000-0000-4000-8000-0000000000{:02x}", number));
  return id;
}

/// Peers 2, 3, ... with wall clocks ahead of this node's by so many seconds.
std::vector<PeerClock> peers(std::initializer_list<int64_t> ahead_s) {
  std::vector<PeerClock> out;
  for (const int64_t s : ahead_s)
    out.push_back(
        {host(static_cast<uint8_t>(out.size() + 2)), s * kSecondUs, s * kSecondUs, 1'000});
  return out;
}

struct Judged {
  bool is_good;
  std::optional<int64_t> reference_s;
  friend bool operator==(const Judged&, const Judged&) = default;
};

Judged judge(std::initializer_list<int64_t> ahead_s, size_t nodes,
             std::optional<uint8_t> leader = {}) {
  const auto heard = peers(ahead_s);
  ClockView view;
  view.nodes = nodes;
  view.heard = heard;
  if (leader) view.leader = host(*leader);
  view.leads = leader == uint8_t{1};
  const ClockVerdict verdict = judge_clock(view);
  std::optional<int64_t> reference_s;
  if (verdict.reference_off_us) reference_s = *verdict.reference_off_us / kSecondUs;
  return {verdict.is_good, reference_s};
}

/// One node that hears two others, whose clocks are a little ahead and right.
struct Rig {
  tests::ManualReactor reactor;
  int64_t right_ahead_us = reactor.wall_time_us() - reactor.now_us();
  HybridClock clock;
  ClockWatch watch{reactor, host(1), clock, Logger()};
  int64_t right_us() const { return right_ahead_us + reactor.now_us(); }
  void pass(int seconds) {
    for (int i = 0; i < seconds * 5; ++i) {
      reactor.advance_us(200'000);
      watch.tick(3, std::nullopt);
      for (const uint8_t peer : {2, 3}) {
        ClockWatch::Told told;
        told.wall_us = told.own_us = right_us() + peer * 1'000;
        told.asked_us = reactor.now_us() - 400;
        told.held_us = 100;
        watch.heard(host(peer), told);
      }
    }
  }
  int64_t ahead_us() const { return clock.own_us(reactor) - right_us(); }
};

}  // namespace

TEST_CASE("the majority of the wall clocks that are heard is right") {
  CHECK(judge({}, 1) == Judged{true, 0});
  CHECK(judge({0, 1}, 3) == Judged{true, 0});
  CHECK(judge({0, 3600}, 3) == Judged{true, 0});
  CHECK(judge({3600, 3600}, 3) == Judged{false, 3600});
  CHECK(judge({3600, 3600, 0}, 4, 1) == Judged{true, 0});  // two against two: it leads
  CHECK(judge({3600, 3600, 0}, 4, 4) == Judged{true, 0});  // near the leader's
  CHECK(judge({3600, 3600, 0}, 4, 2) == Judged{false, 3600});
  CHECK(judge({-3600, -3599, -3600}, 4, 1) == Judged{false, -3600});  // leader or not
  CHECK(judge({4, 8}, 3) == Judged{true, 0});
  CHECK(judge({6, 8}, 3) == Judged{false, 6});
  CHECK(judge({4, -4}, 3) == Judged{true, 0});
}

TEST_CASE("where there is no majority the leader's wall clock counts, and without one nobody's") {
  CHECK(judge({3600}, 2, 1) == Judged{true, 0});
  CHECK(judge({3600}, 2, 2) == Judged{false, 3600});
  CHECK(judge({1}, 2, 2) == Judged{true, 0});
  CHECK(judge({3600}, 2) == Judged{false, std::nullopt});
  CHECK(judge({1}, 5) == Judged{true, std::nullopt});
  CHECK(judge({}, 5) == Judged{true, std::nullopt});
}

TEST_CASE("a step of the wall clock puts a node in quarantine and does not move its time") {
  Rig rig;
  CHECK(rig.clock.standing() == ClockStanding::kSuspect);
  rig.pass(2);
  CHECK(rig.clock.is_good());
  for (const int64_t step_us : {kHourUs, -kHourUs}) {
    rig.reactor.set_wall_time_us(rig.right_us() + step_us);
    rig.pass(1);
    CHECK(rig.clock.standing() == ClockStanding::kQuarantine);
    CHECK(std::abs(rig.clock.off_us() - step_us) < 10'000);
    CHECK(rig.clock.refusal().message.starts_with("the clock of this node is off by 3"));
    CHECK(rig.watch.keep_us() == rig.clock.own_us(rig.reactor));  // it stamped before
    rig.pass(20);
    CHECK(std::abs(rig.ahead_us()) < 10'000);
    rig.reactor.set_wall_time_us(rig.right_us());
    rig.pass(3);
    CHECK(rig.clock.is_good());
    CHECK(std::abs(rig.ahead_us()) < 10'000);
  }
}

TEST_CASE("a life begins where the last one was, and a wrong wall clock does not move its time") {
  Rig rig;
  rig.watch.begin(LastLife{rig.right_us() + 60 * kSecondUs, rig.right_us() + 60 * kSecondUs});
  CHECK(rig.ahead_us() == 60 * kSecondUs);
  rig.pass(2);
  CHECK(rig.clock.is_good());
  CHECK(rig.ahead_us() > 50 * kSecondUs);  // it stamped so high before
  rig.pass(200);
  CHECK(std::abs(rig.ahead_us()) < 10'000);
  rig.reactor.set_wall_time_us(rig.right_us() + kHourUs);
  rig.watch.begin(LastLife{rig.right_us(), rig.right_us()});
  rig.pass(2);
  CHECK(rig.clock.standing() == ClockStanding::kQuarantine);
  CHECK(std::abs(rig.ahead_us()) < 10'000);
}

TEST_CASE("a node's time does not go forward before that is on the disk") {
  Rig rig;
  std::vector<std::pair<int64_t, base::Callback>> kept;
  int told = 0;
  const auto keep = [&](int64_t time_us, base::Callback done) {
    kept.emplace_back(time_us, std::move(done));
  };
  rig.watch.keep_with(keep, [&told] { ++told; });
  const int64_t begun_us = rig.right_us();
  rig.watch.begin(LastLife{begun_us, begun_us});
  CHECK(rig.watch.told_own_us() == 0);
  CHECK_FALSE(rig.watch.keep_us());
  rig.pass(2);  // where the last life was: that is on the disk
  CHECK(rig.clock.is_good());
  CHECK(kept.empty());
  CHECK(rig.watch.told_own_us() == rig.clock.own_us(rig.reactor));

  // All wall clocks go an hour ahead, and with them what is right.
  rig.right_ahead_us += kHourUs;
  rig.reactor.set_wall_time_us(rig.right_us());
  rig.pass(3);
  REQUIRE(kept.size() == 1);
  CHECK(rig.clock.standing() == ClockStanding::kSuspect);
  CHECK(rig.ahead_us() < -kHourUs + 100'000);
  CHECK(std::abs(*rig.watch.keep_us() - rig.right_us()) < 1'000'000);
  std::exchange(kept[0].second, nullptr)();
  CHECK(told == 1);
  rig.pass(1);
  CHECK(rig.clock.is_good());
  CHECK(std::abs(rig.ahead_us()) < 100'000);
  CHECK(kept.size() == 1);
}

TEST_CASE("of two nodes the one that is behind joins the other") {
  tests::ManualReactor reactor;
  HybridClock clock;
  ClockWatch watch(reactor, host(1), clock, Logger());
  const int64_t right_ahead_us = reactor.wall_time_us() - reactor.now_us();
  const auto pass = [&](int64_t peer_ahead_us) {
    for (int i = 0; i < 10; ++i) {
      reactor.advance_us(200'000);
      watch.tick(2, host(2));
      ClockWatch::Told told;
      told.wall_us = right_ahead_us + reactor.now_us();
      told.own_us = peer_ahead_us == 0 ? 0 : told.wall_us + peer_ahead_us;
      told.asked_us = reactor.now_us();
      watch.heard(host(2), told);
    }
  };
  const auto ahead_us = [&] { return clock.own_us(reactor) - right_ahead_us - reactor.now_us(); };
  pass(0);  // it has had no verdict
  CHECK(clock.is_good());
  CHECK(std::abs(ahead_us()) < 10'000);
  pass(kHourUs);
  CHECK(clock.is_good());
  CHECK(ahead_us() > kHourUs - 10 * kSecondUs);
}

TEST_CASE("a node that is back at once on a machine that counted on is not ahead of the others") {
  const KeptTime kept{1'700'000'000'000'000, 5'000'000, "boot"};
  const auto read = KeptTime::decode(kept.encode());
  REQUIRE(read);
  const int64_t late_us = kept.time_us + 1'200'000;
  const auto right_us = [&](int64_t boot_us) { return kept.time_us + boot_us - kept.boot_us; };
  const auto ended = [&](const KeptTime& what, const std::string& boot, int64_t boot_us) {
    return what.ended(boot, boot_us, right_us(boot_us));
  };
  CHECK(ended(*read, "boot", 5'300'000).stamped_us == kept.time_us + 300'000);
  CHECK(ended(*read, "boot", 5'300'000).now_us == kept.time_us + 300'000);
  CHECK(ended(*read, "boot", 65'000'000).stamped_us == late_us);
  CHECK(ended(*read, "boot", 65'000'000).now_us == kept.time_us + 60 * kSecondUs);
  // The wall clock was set while the node was away: what the machine has counted says more.
  CHECK(read->ended("boot", 65'000'000, right_us(65'000'000) + kHourUs).now_us ==
        kept.time_us + 60 * kSecondUs);
  CHECK(read->ended("boot", 65'000'000, kept.time_us - kHourUs).now_us == late_us);
  // The machine counts from elsewhere: an hour more than has passed.
  const LastLife elsewhere = read->ended("boot", 65'000'000 + kHourUs, right_us(65'000'000));
  CHECK(elsewhere.now_us == right_us(65'000'000));
  CHECK(elsewhere.stamped_us == late_us);
  // Started anew, or nobody knows: it may have stamped until it kept the next one.
  CHECK(ended(*read, "other", 5'300'000).stamped_us == late_us);
  CHECK(ended(*read, "other", 5'300'000).now_us == late_us);
  CHECK(ended(*read, "", 5'300'000).stamped_us == late_us);
  CHECK(ended(*read, "boot", 4'999'999).stamped_us == late_us);
  CHECK(ended(KeptTime{kept.time_us, 5'000'000, ""}, "", 5'300'000).stamped_us == late_us);
  // An older program kept the time alone.
  const auto old = KeptTime::decode(kept.encode().substr(0, 8));
  REQUIRE(old);
  CHECK(ended(*old, "boot", 5'300'000).stamped_us == late_us);
  CHECK_FALSE(KeptTime::decode(kept.encode().substr(0, 7)));
  CHECK_FALSE(KeptTime::decode(kept.encode().substr(0, 12)));
}

TEST_CASE("what was asked before the clock was in doubt measures nothing") {
  Rig rig;
  rig.pass(2);
  rig.reactor.set_wall_time_us(rig.right_us() + kHourUs);
  rig.reactor.advance_us(200'000);
  CHECK(rig.watch.tick(3, std::nullopt));
  CHECK(rig.clock.standing() == ClockStanding::kSuspect);
  ClockWatch::Told told;
  told.wall_us = told.own_us = rig.right_us() + kHourUs;
  told.asked_us = rig.reactor.now_us() - 1'000;
  rig.watch.heard(host(2), told);
  rig.watch.heard(host(3), told);
  rig.watch.tick(3, std::nullopt);
  CHECK(rig.clock.standing() == ClockStanding::kSuspect);
  told.wall_us = std::numeric_limits<int64_t>::max();
  told.asked_us = rig.reactor.now_us();
  rig.watch.heard(host(2), told);
  rig.watch.tick(3, std::nullopt);
  CHECK(rig.clock.standing() == ClockStanding::kSuspect);
  told.wall_us = told.own_us = rig.right_us();
  told.asked_us = told.held_us = std::numeric_limits<int64_t>::max();  // must not overflow either
  rig.watch.heard(host(2), told);
  rig.watch.tick(3, std::nullopt);
  CHECK(rig.clock.standing() == ClockStanding::kSuspect);
}

}  // namespace tetrad::replication
