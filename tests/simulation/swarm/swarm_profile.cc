// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/swarm/swarm_profile.h"

#include <iterator>

namespace tetrad::simulation {
namespace {

constexpr std::string_view kNames[] = {"loss",   "delays",  "duplicates", "partitions", "one-way",
                                       "deaf",   "disks",   "clocks",     "kills",      "power",
                                       "syncs",  "joins",   "leaves",     "losses",     "wipes",
                                       "splits", "merges",  "heat",       "balance",    "truncates",
                                       "purges", "centers", "racks",      "tiny",       "short"};
static_assert(std::size(kNames) == kTroubles);

}  // namespace

std::string_view name_of(Trouble trouble) { return kNames[static_cast<size_t>(trouble)]; }

SwarmProfile SwarmProfile::of_seed(uint64_t seed) {
  base::Random random(seed * 104'729 + 3);
  const uint64_t quarters = 1 + random.below(3);
  SwarmProfile profile;
  for (size_t i = 0; i < kTroubles; ++i)
    if (random.below(4) < quarters) profile.add(static_cast<Trouble>(i));
  return profile;
}

std::optional<SwarmProfile> SwarmProfile::parse(std::string_view names) {
  SwarmProfile profile;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    size_t found = 0;
    while (found < kTroubles && kNames[found] != name) ++found;
    if (found == kTroubles) return std::nullopt;
    profile.add(static_cast<Trouble>(found));
  }
  return profile;
}

std::string SwarmProfile::text() const {
  std::string text;
  for (size_t i = 0; i < kTroubles; ++i) {
    if (!has(static_cast<Trouble>(i))) continue;
    if (!text.empty()) text += ',';
    text += kNames[i];
  }
  return text;
}

}  // namespace tetrad::simulation
