// SPDX-License-Identifier: Apache-2.0
// Space saving (Metwally et al., 2005): a key that is not known takes the place of the lightest one
// and inherits its weight, so the sum of an entry is never less than the key's true work.
#include "partitioner/heavy_keys.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tetrad::partitioner {

namespace {

double halvings(int64_t passed_us) {
  return static_cast<double>(passed_us) / static_cast<double>(HeavyKeys::kHalfLifeUs);
}

}  // namespace

void HeavyKeys::take(RingPosition position, BytesView key, double work, bool is_write) {
  all_ += work;
  auto found = std::ranges::find(entries_, position, &Entry::position);
  if (found == entries_.end()) {
    // `inherited` is by how much an entry may say too much.
    if (entries_.size() < kSize) {
      found = entries_.emplace(entries_.end());
    } else {
      found = std::ranges::min_element(entries_, {}, &Entry::weight);
      const double inherited = found->weight();
      *found = Entry();
      found->inherited = inherited;
    }
    found->position = position;
    found->key = Bytes(key.substr(0, kKeyBytesMax));
    found->is_cut = key.size() > kKeyBytesMax;
  }
  (is_write ? found->writes : found->reads) += work;
}

void HeavyKeys::advance(int64_t now_us) {
  if (now_us <= advanced_us_) return;
  const double left = std::exp2(-halvings(now_us - advanced_us_));
  advanced_us_ = now_us;
  all_ *= left;
  for (Entry& entry : entries_) {
    entry.reads *= left;
    entry.writes *= left;
    entry.inherited *= left;
  }
}

std::vector<HeavyKeys::Heavy> HeavyKeys::heaviest(size_t most) const {
  // Steady work of 1 per second adds up to the integral of 2^-(age / half-life).
  const double seconds = static_cast<double>(kHalfLifeUs) / 1e6 / std::numbers::ln2 *
                         (1 - std::exp2(-halvings(advanced_us_ - begun_us_)));
  std::vector<Heavy> out;
  if (seconds <= 0) return out;
  for (const Entry& entry : entries_) {
    const double work = entry.reads + entry.writes;
    out.push_back({entry.position, entry.key, entry.is_cut, entry.reads / seconds,
                   entry.writes / seconds, entry.inherited / seconds, all_ > 0 ? work / all_ : 0});
  }
  std::ranges::sort(out, [](const Heavy& a, const Heavy& b) {
    const double work_a = a.reads + a.writes, work_b = b.reads + b.writes;
    return work_a != work_b ? work_a > work_b : a.position < b.position;
  });
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace tetrad::partitioner
