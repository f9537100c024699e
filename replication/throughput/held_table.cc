// SPDX-License-Identifier: Apache-2.0
// Meters, buckets and their lending; what they promise is in the header.
//
// The numbers guard against two failures: crumbs, when a bucket that is nearly empty answers each
// of many borrowers with a few tokens, and hoarding, when one borrower gets all that the others
// wait for. So a loan is at least a fraction of a full bucket (`least` in lend()), and at most a
// tenth of a second's worth or half of an even part.
#include "replication/throughput/held_table.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

namespace {

using partitioner::Tablet;
using partitioner::TabletMap;

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kHalfSecondUs = kSecondUs / 2;
constexpr size_t kTellingBorrowers = 16;   // more do not make crumbs smaller
constexpr uint64_t kSparePerSecond = 4;    // a quarter of a second's worth is kept
constexpr int64_t kAsksAfterUs = 300'000;  // a longer time does not make the next gift larger

/// Those of the map whose ranges meet `range`, ascending.
std::vector<const Tablet*> meeting(const TabletMap& map, RingRange range) {
  std::vector<const Tablet*> out;
  const std::vector<Tablet>& tablets = map.tablets();
  // Backwards from the tablet in which `range` ends: the map is sorted by range, and find() is a
  // binary search.
  for (auto at = static_cast<size_t>(&map.find(range.end) - tablets.data());; --at) {
    out.push_back(&tablets[at]);
    if (at == 0 || tablets[at].range.start <= range.start) break;
  }
  std::ranges::reverse(out);
  return out;
}

}  // namespace

void RateMeter::advance(base::MonotonicUs now_us) {
  const int64_t passed_us = now_us - begun_us_;
  if (passed_us < kHalfSecondUs) return;
  // A pause of a second or more leaves nothing of what was before it.
  before_ = passed_us < kSecondUs ? now_ : 0;
  now_ = 0;
  // The grid of half seconds is kept while amounts come in, so that none is counted in two of them.
  begun_us_ = passed_us < kSecondUs ? begun_us_ + kHalfSecondUs : now_us;
}

void RateMeter::add(uint64_t amount, base::MonotonicUs now_us) {
  advance(now_us);
  now_ += std::min(amount, TokenBucket::kPerSecondMax);
}

uint64_t RateMeter::per_s(base::MonotonicUs now_us) {
  advance(now_us);
  const int64_t passed_us = std::max<int64_t>(now_us - begun_us_, 0);
  const uint64_t sum = std::min(now_ + before_, TokenBucket::kPerSecondMax);
  // The sum is of half a second before `begun_us_` and of what has passed since.
  return sum * kSecondUs / static_cast<uint64_t>(kHalfSecondUs + passed_us);
}

void Borrowers::note(uint64_t who, base::MonotonicUs now_us) {
  const auto found = std::ranges::find(seen_, who, &std::pair<uint64_t, int64_t>::first);
  if (found != seen_.end()) {
    found->second = now_us;
    // A few hundred are enough: lend() only needs to know that they are many.
  } else if (seen_.size() < kMost) {
    seen_.emplace_back(who, now_us);
  }
}

size_t Borrowers::count(base::MonotonicUs now_us) {
  std::erase_if(seen_, [&](const auto& one) { return one.second < now_us - kSecondUs; });
  return std::max<size_t>(seen_.size(), 1);
}

HeldBucket HeldBucket::idle(uint64_t rate, int64_t idle_us, base::MonotonicUs now_us) {
  TETRAD_ASSERT(idle_us >= 0);
  // The bucket holds one second's worth; all whole seconds of idleness are in the bank.
  const int64_t level = static_cast<int64_t>(rate) * std::min(idle_us, kSecondUs) / kSecondUs;
  HeldBucket out(rate, level, now_us);
  out.add_to_bank(std::min(static_cast<uint64_t>(idle_us / kSecondUs), kBanked_s) * rate);
  return out;
}

void HeldBucket::set_rate(uint64_t wanted_per_s, base::MonotonicUs now_us) {
  if (wanted_per_s == per_s) return;
  settle(now_us);  // what spilled until now did at the old rate
  per_s = wanted_per_s;
  bucket.set_rate(per_s, now_us);
  add_to_bank(0);  // no more than five minutes of the new one
}

void HeldBucket::settle(base::MonotonicUs now_us) {
  // What did not fit goes to others of the table first, as spare, and only the rest to the bank.
  spare_ += bucket.take_spilled(now_us);
  const uint64_t kept = std::min(spare_, per_s / kSparePerSecond);
  if (burst_per_s_ != 0) add_to_bank(spare_ - kept);
  spare_ = kept;
}

uint64_t HeldBucket::spare(base::MonotonicUs now_us) {
  settle(now_us);
  return spare_;
}

void HeldBucket::burst(uint64_t burst_per_s, base::MonotonicUs now_us) {
  settle(now_us);
  burst_per_s_ = burst_per_s;
  // Bursts were switched off: what is banked must not come to light when they are allowed again.
  if (burst_per_s_ == 0) bank_ = 0;
  const int64_t passed_us = std::min(now_us - std::exchange(burst_us_, now_us), kSecondUs);
  const int64_t room = bucket.held() - bucket.level(now_us);
  if (bank_ == 0 || room <= 0 || passed_us <= 0) return;
  // The bank flows in at its own rate, never all at once.
  const uint64_t allowed = burst_per_s * static_cast<uint64_t>(passed_us) / kSecondUs;
  const uint64_t drawn = std::min({bank_, allowed, static_cast<uint64_t>(room)});
  bank_ -= drawn;
  bucket.put(drawn, now_us);
}

void HeldBucket::add_to_bank(uint64_t amount) {
  bank_ = std::min(bank_ + amount, kBanked_s * per_s);
}

void HeldBucket::take_over(const HeldBucket& before, size_t parts, int64_t level,
                           base::MonotonicUs now_us) {
  if (level >= 0)
    bucket.put(static_cast<uint64_t>(level), now_us);
  else
    // A debt is divided as a level is: a split must not forgive it.
    bucket.take(static_cast<uint64_t>(-level), now_us);
  burst_per_s_ = before.burst_per_s_;
  add_to_bank(before.bank_ / parts);
  used_us = std::max(used_us, before.used_us);
  table = before.table;
  // Use and refusals go on under the part that has kept the number; the other ones begin anew.
  if (before.tablet != tablet) return;
  use = before.use;
  refused = before.refused;
}

uint64_t HeldBucket::give(uint64_t wanted, base::MonotonicUs now_us) {
  // Half, rounded up: the next one who asks finds the other half.
  const uint64_t given = std::min(wanted, (spare(now_us) + 1) / 2);
  TETRAD_ASSERT(given <= spare_);
  if (!TETRAD_MUTANT(throughput_given_kept)) spare_ -= given;
  return given;
}

uint64_t HeldBucket::beside_bank(uint64_t most_per_s) const {
  // While there is a bank, bursts come from it; only what it does not give may come from others.
  return bank_ == 0 ? most_per_s : most_per_s - std::min(burst_per_s_, most_per_s);
}

uint64_t HeldBucket::lacks(uint64_t most_per_s, base::MonotonicUs now_us) {
  const uint64_t asked_per_s = asked.per_s(now_us);
  const int64_t level = bucket.level(now_us);
  most_per_s = beside_bank(most_per_s);
  // Below nine tenths of its own part, and without a debt, a bucket manages alone.
  if ((asked_per_s <= per_s / 10 * 9 && level >= 0) || most_per_s <= per_s) return 0;
  // Three tenths of a second: gifts come every 100 ms, and one or two may be lost or late.
  const auto wanted = static_cast<int64_t>(std::min(asked_per_s, most_per_s) / 10 * 3);
  return level >= wanted ? 0 : static_cast<uint64_t>(wanted - level);
}

uint64_t HeldBucket::asks_for(uint64_t most_per_s, base::MonotonicUs now_us) {
  const uint64_t lacking = lacks(most_per_s, now_us);
  if (lacking == 0) return 0;
  const auto passed_us =
      static_cast<uint64_t>(std::min(now_us - std::exchange(asked_for_us_, now_us), kAsksAfterUs));
  return std::min(lacking, (beside_bank(most_per_s) - per_s) * passed_us / kSecondUs);
}

Slice lend(TokenBucket& bucket, uint64_t per_s, size_t borrowers, base::MonotonicUs now_us) {
  const auto slice = static_cast<int64_t>(std::max<uint64_t>(slice_of(per_s), 1));
  const auto sharing = static_cast<int64_t>(std::clamp<size_t>(borrowers, 1, kTellingBorrowers));
  const int64_t least = std::max<int64_t>(bucket.held() / 40 / sharing, 1);
  const int64_t level = bucket.level(now_us);
  // Nothing rather than a crumb: who asks learns when there is a loan worth the message.
  if (level < least) return {0, bucket.us_until(least, now_us)};
  const int64_t part = level / (2 * static_cast<int64_t>(std::max<size_t>(borrowers, 1)));
  Slice out;
  out.granted = static_cast<uint64_t>(std::max(std::min(part, slice), least));
  TETRAD_ASSERT(static_cast<int64_t>(out.granted) <= level);
  bucket.take(out.granted, now_us);
  return out;
}

void HeldTable::follow(const TabletMap& map, uint64_t per_s, base::MonotonicUs now_us) {
  if (map.version() == version_) {
    for (auto& [end, held] : buckets_) held.set_rate(per_s, now_us);
    return;
  }
  version_ = map.version();
  // The map has changed. Each old bucket is cut into the tablets that its range meets now. After a
  // merge two old buckets meet one tablet: the second adds to what the first has left there.
  ByEnd before = std::exchange(buckets_, {});
  for (auto& [end, held] : before) {
    const std::vector<const Tablet*> parts = meeting(map, held.range);
    // Most tablets are untouched by a split or a merge elsewhere.
    if (parts.size() == 1 && parts[0]->id == held.tablet && parts[0]->range == held.range) {
      held.set_rate(per_s, now_us);
      buckets_.emplace(end, std::move(held));
      continue;
    }
    int64_t level = held.bucket.level(now_us);
    if (TETRAD_MUTANT(throughput_debt_dropped)) level = std::max<int64_t>(level, 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      // The rest of the division goes to later parts, so the parts add up to the level exactly.
      const int64_t part = level / static_cast<int64_t>(parts.size() - i);
      level -= part;
      HeldBucket* known = find(*parts[i]);
      if (known == nullptr) known = &add(*parts[i], HeldBucket(per_s, 0, now_us));
      HeldBucket& into = *known;
      into.take_over(held, parts.size(), part, now_us);
      if (TETRAD_MUTANT(throughput_full_at_split) && parts.size() > 1)
        into.bucket = TokenBucket(per_s, now_us);
    }
    TETRAD_ASSERT(level == 0);
  }
}

HeldBucket* HeldTable::find(const Tablet& tablet) {
  const auto found = buckets_.find(tablet.range.end);
  return found == buckets_.end() ? nullptr : &found->second;
}

HeldBucket& HeldTable::add(const Tablet& tablet, HeldBucket bucket) {
  bucket.tablet = tablet.id;
  bucket.range = tablet.range;
  const auto [added, is_new] = buckets_.emplace(tablet.range.end, std::move(bucket));
  TETRAD_ASSERT(is_new);
  return added->second;
}

uint64_t HeldTable::asks_for(uint64_t most_per_s, base::MonotonicUs now_us) {
  uint64_t wanted = 0;
  for (auto& [end, held] : buckets_) wanted += held.asks_for(most_per_s, now_us);
  return wanted;
}

void HeldTable::spread(uint64_t given, uint64_t most_per_s, base::MonotonicUs now_us) {
  if (given == 0 || buckets_.empty()) return;
  std::vector<std::pair<HeldBucket*, uint64_t>> lacking;
  double lacking_in_all = 0;
  // Needs may have passed since the gift was asked for: then the emptiest bucket takes what nobody
  // lacks.
  HeldBucket* emptiest = &buckets_.begin()->second;
  for (auto& [end, held] : buckets_) {
    const uint64_t lacks = held.lacks(most_per_s, now_us);
    if (lacks != 0) lacking.emplace_back(&held, lacks);
    lacking_in_all += static_cast<double>(lacks);
    if (held.bucket.level(now_us) < emptiest->bucket.level(now_us)) emptiest = &held;
  }
  // In floating point since the product of two weights may overflow; rounding errors are caught by
  // the minimum below.
  const double share = lacking.empty() ? 0 : static_cast<double>(given) / lacking_in_all;
  for (const auto& [held, lacks] : lacking) {
    const auto wanted = static_cast<uint64_t>(static_cast<double>(lacks) * std::min(share, 1.0));
    const uint64_t part = std::min(wanted, given);
    given -= part;
    held->bucket.put(part, now_us);
  }
  emptiest->bucket.put(given, now_us);
}

}  // namespace tetrad::replication
