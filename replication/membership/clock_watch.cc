// SPDX-License-Identifier: Apache-2.0
// Whether this node's clock is right:
//
//   1. Heartbeats carry times both ways; the sample with the shortest round trip of the last seconds says
//      how far a peer's wall clock is from this one's, and how sure that is.
//   2. judge_clock(): a group of clocks that are near each other and are a majority is right. Without one
//      the leader of the metadata group is, or, alone, this node.
//   3. The own time, by which this node stamps, is brought to what is right (base::NodeClock). How far it
//      has come is kept on disk before anything is stamped with it.
//   4. A step of the wall clock, or a machine that stood still, makes the node suspect until it has asked.
//
// Times: `wall` is the machine's clock, which may be set; `boot` counts also while the machine
// sleeps; `own` is the node's time. Everything that is kept of others is relative to boot, so a
// step of the own wall clock changes nothing of it. All in microseconds; on shard 0, once for each
// tick of membership.
#include "replication/membership/clock_watch.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

namespace {

// Samples older than 10 s say nothing any more; those of a round trip above 2 s (an error above 1
// s) are not taken. A step of half a second is more than clocks drift between two ticks.
constexpr int64_t kSampleAgeUs = 10'000'000;
constexpr int64_t kSampleErrorMaxUs = 1'000'000;
constexpr int64_t kStepUs = 500'000;
/// How long a suspect node waits to hear from enough others.
constexpr int64_t kSuspectMaxUs = 1'000'000;
// So many good judgements in a row end a quarantine.
constexpr int kGoodInTurn = 3;
constexpr int64_t kTimeMaxUs = std::numeric_limits<int64_t>::max() / 16;
// A stored time more than a day ahead of the wall clock is of a clock that was wrong.
constexpr int64_t kKeptAheadMaxUs = int64_t{86'400} * 1'000'000;

/// How near two wall clocks must be.
// Half the bound, less what the measurement may be off; half of that to come out of quarantine, so
// that a node at the edge does not flap.
int64_t near_us(const ClockView& view, int64_t error_us) {
  const int64_t near = view.bound_us / 2 - error_us;
  return view.strict ? near / 2 : near;
}

int64_t median(std::vector<int64_t> values) {
  TETRAD_ASSERT(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Those near the wall clock that is `off_us` ahead of this node's.
std::vector<int64_t> group_at(const ClockView& view, int64_t off_us, int64_t error_us) {
  std::vector<int64_t> group;
  if (std::abs(off_us) <= near_us(view, error_us)) group.push_back(0);
  for (const PeerClock& peer : view.heard)
    if (std::abs(peer.wall_off_us - off_us) <= near_us(view, std::max(error_us, peer.error_us)))
      group.push_back(peer.wall_off_us);
  return group;
}

const char* name_of(ClockStanding standing) {
  switch (standing) {
    case ClockStanding::kSuspect:
      return "suspect";
    case ClockStanding::kGood:
      return "good";
    case ClockStanding::kQuarantine:
      return "quarantine";
  }
  return "unknown";
}

}  // namespace

ClockVerdict judge_clock(const ClockView& view) {
  // Votes count of the nodes that were heard, if those are a majority of all.
  const size_t heard = view.heard.size() + 1;
  if (heard * 2 > view.nodes) {
    // This node's own group first: of two groups that overlap it stays in its own.
    if (group_at(view, 0, 0).size() * 2 > heard) return {true, 0};
    for (const PeerClock& peer : view.heard) {
      auto group = group_at(view, peer.wall_off_us, peer.error_us);
      if (group.size() * 2 > heard) return {false, median(std::move(group))};
    }
  }
  // No majority agrees. The leader's clock counts, for there is one at most.
  if (view.leads) return {true, 0};
  if (view.leader) {
    const auto leader = std::ranges::find(view.heard, *view.leader, &PeerClock::host);
    if (leader != view.heard.end()) {
      const bool is_near = std::abs(leader->wall_off_us) <= near_us(view, leader->error_us);
      return {is_near, is_near ? 0 : leader->wall_off_us};
    }
  }
  // Neither: good only if all who were heard are near, and nobody says what is right (no
  // reference).
  const bool all_near = std::ranges::all_of(view.heard, [&](const PeerClock& peer) {
    const int64_t off_us = peer.has_own ? peer.own_off_us : peer.wall_off_us;
    return std::abs(off_us) <= near_us(view, peer.error_us);
  });
  return {all_near, std::nullopt};
}

ClockWatch::ClockWatch(base::Reactor& reactor, HostId self, HybridClock& clock, Logger logger)
    : reactor_(reactor), self_(self), clock_(clock), logger_(std::move(logger)) {
  begin(std::nullopt);
}

void ClockWatch::begin(const std::optional<LastLife>& last) {
  // Called once at the start, before any message.
  const int64_t wall_us = reactor_.wall_time_us();
  const bool counts = last && !TETRAD_MUTANT(clock_back_at_start);
  stamped_us_.reset();
  if (counts) {
    stamped_us_ = last->stamped_us;
    // The difference to boot: what was kept in another boot says nothing by itself, but the time must
    // not go back.
    kept_ahead_us_ = last->stamped_us - reactor_.boot_time_us();
  }
  is_first_ = true;
  // Until others are heard what was kept says more than the wall clock, which may have been set.
  clock_.begin(std::min(counts ? last->now_us : wall_us, wall_us + kKeptAheadMaxUs), reactor_);
  counted_us_ = reactor_.boot_time_us() - reactor_.now_us();
  wall_ahead_us_ = wall_us - reactor_.boot_time_us();
  suspect_since_us_ = reactor_.now_us();
  clock_.set_standing(ClockStanding::kSuspect, 0);
}

void ClockWatch::joined() {
  is_first_ = true;
  suspect_since_us_ = reactor_.now_us();
  clock_.set_standing(ClockStanding::kSuspect, 0);
}

void ClockWatch::heard(HostId host, const Told& told) {
  // What was asked before the machine stood still, or in another life, measures nothing.
  // `asked_us` and `held_us` are of this node's monotonic clock: when it asked, and how long the
  // peer held the question.
  if (told.asked_us < suspect_since_us_ || told.held_us < 0) return;
  if (told.asked_us > reactor_.now_us()) return;
  const int64_t passed_us = reactor_.now_us() - told.asked_us;
  if (told.held_us > passed_us) return;
  const int64_t round_trip_us = passed_us - told.held_us;
  const int64_t error_us = round_trip_us / 2;
  if (error_us > kSampleErrorMaxUs) return;
  // Values from a broken peer must not overflow.
  if (std::abs(told.wall_us / 4) > kTimeMaxUs || std::abs(told.own_us / 4) > kTimeMaxUs) return;
  const bool has_own = told.own_us != 0;
  const int64_t wall_us = TETRAD_MUTANT(h_votes) && has_own ? told.own_us : told.wall_us;
  const int64_t boot_us = reactor_.boot_time_us();
  // Half the round trip is the best guess of when the peer looked at its clock, and the worst
  // error.
  const Peer now{wall_us + error_us - boot_us, told.own_us + error_us - boot_us, error_us,
                 reactor_.now_us(), has_own};
  const auto [known, is_new] = peers_.try_emplace(host, now);
  if (is_new) return;
  Peer& best = known->second;
  const bool is_old = now.at_us - best.at_us > kSampleAgeUs;
  const bool has_moved =
      std::abs(now.wall_us - best.wall_us) > now.error_us + best.error_us + kStepUs;
  // The best sample is kept until it is old, or the peer's clock has moved by more than both
  // errors.
  if (is_old || has_moved || now.error_us <= best.error_us) {
    best = now;
  } else {
    best.own_us = now.own_us;
    best.has_own = now.has_own;
  }
}

/// A step of the wall clock, or time in which nothing was counted.
// The wall clock against boot: it was set. Boot against the monotonic clock: the machine slept.
bool ClockWatch::has_jumped() {
  const int64_t ahead_us = reactor_.wall_time_us() - reactor_.boot_time_us();
  const int64_t step_us = ahead_us - std::exchange(wall_ahead_us_, ahead_us);
  const int64_t counted_us = reactor_.boot_time_us() - reactor_.now_us();
  const int64_t lost_us = counted_us - std::exchange(counted_us_, counted_us);
  return std::abs(step_us) > kStepUs || std::abs(lost_us) > kStepUs;
}

void ClockWatch::become_suspect(const char* why) {
  // What was measured before the jump is void.
  peers_.clear();
  suspect_since_us_ = reactor_.now_us();
  good_in_turn_ = 0;
  // In quarantine it stays until it is good again.
  if (clock_.standing() != ClockStanding::kGood) return;
  logger_.info("the own clock is in doubt, the other nodes are asked reason=\"{}\"", why);
  clock_.set_standing(ClockStanding::kSuspect, 0);
}

std::vector<PeerClock> ClockWatch::clocks_heard(int64_t wall_us) const {
  std::vector<PeerClock> heard;
  const int64_t boot_us = reactor_.boot_time_us();
  const int64_t own_us = clock_.own_us(reactor_);
  // As they are now: clocks run on since the sample.
  for (const auto& [host, peer] : peers_) {
    if (reactor_.now_us() - peer.at_us > kSampleAgeUs) continue;
    heard.push_back({host, peer.wall_us + boot_us - wall_us, peer.own_us + boot_us - own_us,
                     peer.error_us, peer.has_own});
  }
  return heard;
}

bool ClockWatch::tick(size_t nodes, std::optional<HostId> leader) {
  const bool asks = has_jumped() && nodes > 1;
  if (asks) become_suspect("the wall clock was set, or the machine stood still");
  const std::vector<PeerClock> heard =
      clocks_heard(TETRAD_MUTANT(h_votes) ? clock_.own_us(reactor_) : reactor_.wall_time_us());
  ClockView view;
  view.bound_us = clock_.skew_max_us();
  view.nodes = nodes;
  view.heard = heard;
  view.strict = clock_.standing() == ClockStanding::kQuarantine;
  // A suspect node waits at most a second for enough others, then it takes what it has.
  const bool has_all = heard.size() + 1 >= nodes;
  const bool waits = clock_.standing() == ClockStanding::kSuspect && !has_all &&
                     reactor_.now_us() - suspect_since_us_ < kSuspectMaxUs;
  // A leader whose clock has just jumped is no reference before it has heard others.
  view.leader = leader;
  view.leads = leader && *leader == self_ && !waits;
  const ClockVerdict verdict = judge_clock(view);
  const bool is_sure = heard.size() * 2 + 2 > nodes;  // it has heard a majority
  // A majority has been heard and says what is right: no need to wait for the rest.
  if (waits && !(is_sure && verdict.reference_off_us)) return asks;
  if (correct(verdict, heard)) {
    set(verdict.is_good ? ClockStanding::kGood : ClockStanding::kQuarantine, verdict);
  } else if (clock_.is_good()) {
    // Its time could not be kept on disk yet: it must not stamp.
    clock_.set_standing(ClockStanding::kSuspect, 0);
  }
  return asks;
}

bool ClockWatch::correct(const ClockVerdict& verdict, std::span<const PeerClock> heard) {
  const int64_t told_us = clock_.own_us(reactor_);
  if (!verdict.reference_off_us) {
    // It goes on uncorrected from where it is, and may stamp from now on.
    if (verdict.is_good && !is_kept(told_us)) return false;
    if (verdict.is_good) is_first_ = false;
    return true;
  }
  // What the own time should be.
  const int64_t right_us = reactor_.wall_time_us() + *verdict.reference_off_us;
  const int64_t most_us = right_us + kKeptAheadMaxUs;
  int64_t own_us = told_us;
  // The first correction of a life begins no earlier than what the last life may have stamped (rule
  // 28).
  if (is_first_) own_us = std::max(right_us, std::min(stamped_us_.value_or(right_us), most_us));
  // A node's own time is ahead of what is right only where a majority was, or the one that counted,
  // and it has stamped since: the others join it, so that what they stamp is not below.
  int64_t furthest_us = own_us;
  for (const PeerClock& peer : heard)
    if (peer.has_own) furthest_us = std::max(furthest_us, told_us + peer.own_off_us);
  furthest_us = std::min(furthest_us, most_us);
  // A quarter of the bound: nearer than that is jitter.
  const bool is_behind = furthest_us > own_us + clock_.skew_max_us() / 4;
  const int64_t target_us = is_behind ? std::max(right_us, furthest_us) : right_us;
  // On disk first: the next life begins there (rule 28).
  if (!is_kept(std::max(own_us, target_us))) return false;
  keeping_ahead_us_.reset();
  if (std::exchange(is_first_, false)) clock_.begin(own_us, reactor_);
  clock_.correct(target_us, reactor_);
  return true;
}

/// Otherwise it is put on the disk.
// Stored ahead in steps of half a step, so that most ticks write nothing.
bool ClockWatch::is_kept(int64_t time_us) {
  const int64_t ahead_us = time_us - reactor_.boot_time_us();
  if (!keep_) return true;
  // So much the next life may be behind: replicas that have seen later stamps say so.
  const bool is_enough = kept_ahead_us_ && ahead_us <= *kept_ahead_us_ + kStepUs;
  if (kept_ahead_us_ && ahead_us <= *kept_ahead_us_ + kStepUs / 2) return true;
  if (std::exchange(is_keeping_, true)) return is_enough;
  keeping_ahead_us_ = ahead_us;
  const std::weak_ptr<char> alive = alive_;
  keep_(time_us, [this, alive, ahead_us] {
    if (alive.expired()) return;
    TETRAD_ASSERT(is_keeping_);
    is_keeping_ = false;
    kept_ahead_us_ = ahead_us;
    if (on_kept_) on_kept_();
  });
  return is_enough;
}

void ClockWatch::set(ClockStanding standing, const ClockVerdict& verdict) {
  const ClockStanding before = clock_.standing();
  const int64_t off_us = -verdict.reference_off_us.value_or(0);
  // Out of quarantine only after kGoodInTurn good judgements; into it at once.
  good_in_turn_ = standing == ClockStanding::kGood ? good_in_turn_ + 1 : 0;
  if (before == ClockStanding::kQuarantine && standing == ClockStanding::kGood &&
      good_in_turn_ < kGoodInTurn)
    return;
  clock_.set_standing(standing, off_us);
  if (before == standing) return;
  if (standing == ClockStanding::kQuarantine)
    logger_.error(
        "the clock of this node is off by {} ms: it coordinates no requests until the clock is "
        "set right standing={}",
        off_us / 1000, name_of(standing));
  else if (before == ClockStanding::kQuarantine)
    logger_.warn("the clock of this node is right again standing={}", name_of(standing));
}

// What is stored each second; it never promises less than what is being written.
std::optional<int64_t> ClockWatch::keep_us() {
  if (is_first_) return std::nullopt;  // nothing was stamped, and the wall clock may be wrong
  const int64_t boot_us = reactor_.boot_time_us();
  int64_t ahead_us = clock_.own_us(reactor_) - boot_us;
  if (keeping_ahead_us_) ahead_us = std::max(ahead_us, *keeping_ahead_us_);
  if (kept_ahead_us_) kept_ahead_us_ = std::min(*kept_ahead_us_, ahead_us);
  return boot_us + ahead_us;
}

base::Error HybridClock::refusal() const {
  if (standing() == ClockStanding::kSuspect)
    return base::Error(base::ErrorCode::kOverloaded,
                       "the clock of this node is being compared with those of the others");
  const int64_t off_ms = off_us() / 1000;
  if (off_ms == 0)
    return base::Error(base::ErrorCode::kOverloaded,
                       "the clock of this node is off, and no majority says by how much");
  return base::Error(
      base::ErrorCode::kOverloaded,
      fmt::format("the clock of this node is off by {}.{:03} s ({})", std::abs(off_ms) / 1000,
                  std::abs(off_ms) % 1000, off_ms > 0 ? "ahead" : "behind"));
}

}  // namespace tetrad::replication
