// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <set>

#include <catch2/catch.hpp>

#include "base/uuid.h"

namespace tetrad::base {
namespace {

uint64_t filled = 0;

void count_up(std::span<uint64_t> words) {
  for (uint64_t& word : words) word = ++filled;
}

TEST_CASE(
    "a seeded generator runs the same way again, one with a source gives what the source has") {
  Random one(7), again(7), other(8);
  for (int i = 0; i < 100; ++i) CHECK(one.next() == again.next());
  CHECK(one.next() != other.next());

  Random drawn(count_up);
  std::set<uint64_t> words;
  for (int i = 0; i < 1000; ++i) words.insert(drawn.next());
  CHECK(words.size() == 1000);  // none twice
  CHECK(*words.begin() == 1);
  CHECK(*words.rbegin() == filled);
  CHECK(filled < 1100);
  CHECK(drawn.below(10) < 10);
  CHECK(make_random_uuid(drawn) != make_random_uuid(drawn));
}

}  // namespace
}  // namespace tetrad::base
