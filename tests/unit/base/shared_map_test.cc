// SPDX-License-Identifier: Apache-2.0
#include "base/shared_map.h"

#include <string>

#include <catch2/catch.hpp>

#include "base/random.h"

namespace tetrad::base {
namespace {

using Shared = SharedMap<uint32_t, std::string>;
using Model = std::map<uint32_t, std::string>;

void check_equal(const Shared& map, const Model& model) {
  REQUIRE(map.size() == model.size());
  CHECK(map.empty() == model.empty());
  auto at = map.begin();
  for (const auto& [key, value] : model) {
    REQUIRE(at != map.end());
    CHECK(at->first == key);
    CHECK(at->second == value);
    ++at;
  }
  CHECK(at == map.end());
}

/// What compare() says of two maps, next to what their models say.
void check_difference(const Shared& before, const Shared& now, const Model& old_model,
                      const Model& new_model) {
  std::map<uint32_t, std::pair<std::string, std::string>> told, wanted;
  Shared::compare(before, now, [&](uint32_t key, const std::string* old, const std::string* fresh) {
    CHECK(told.emplace(key, std::pair(old ? *old : "-", fresh ? *fresh : "-")).second);
  });
  for (const auto& [key, value] : old_model) {
    const auto found = new_model.find(key);
    if (found == new_model.end() || found->second != value)
      wanted[key] = {value, found == new_model.end() ? "-" : found->second};
  }
  for (const auto& [key, value] : new_model)
    if (!old_model.contains(key)) wanted[key] = {"-", value};
  CHECK(told == wanted);
}

}  // namespace

TEST_CASE("a shared map is a map, and its older copies stay as they were") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const uint32_t keys = 1 + static_cast<uint32_t>(random.below(400));
    Shared map, before;
    Model model, old_model;
    if (random.below(2) == 0) {
      for (uint32_t key = 0; key < keys; key += 2) model[key] = "first";
      map = Shared(model);
    }
    for (int step = 0; step < 1000; ++step) {
      if (random.below(50) == 0) {
        check_difference(before, map, old_model, model);
        before = map;
        old_model = model;
      }
      const auto key = static_cast<uint32_t>(random.below(keys));
      if (random.below(5) < 2) {
        map.erase(key);
        model.erase(key);
      } else {
        const std::string value = std::to_string(random.below(3));
        map.put(key, value);
        model[key] = value;
      }
      const auto probe = static_cast<uint32_t>(random.below(keys + 2));
      CHECK(map.contains(probe) == model.contains(probe));
      const auto found = map.lower_bound(probe);
      const auto wanted = model.lower_bound(probe);
      REQUIRE((found == map.end()) == (wanted == model.end()));
      if (found != map.end()) CHECK(found->first == wanted->first);
      const auto above = map.upper_bound(probe);
      const auto wanted_above = model.upper_bound(probe);
      REQUIRE((above == map.end()) == (wanted_above == model.end()));
      if (above != map.end()) CHECK(above->first == wanted_above->first);
    }
    check_equal(map, model);
    check_equal(before, old_model);
    check_difference(before, map, old_model, model);
    check_difference(map, map, model, model);
    check_difference(map, Shared(), model, {});
  }
}

}  // namespace tetrad::base
