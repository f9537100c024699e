// SPDX-License-Identifier: Apache-2.0
// Evaluations that become ready together share turns of the loop by their work.
#include "cql/execute/off_loop.h"

#include <catch2/catch.hpp>

#include "base/task_group.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::cql {
namespace {

class Fixture {
 public:
  void begin(int count, uint64_t ns) {
    for (int i = 0; i < count; ++i) tasks_.spawn(evaluate(this, begun_++, ns));
  }
  /// How many have gone on after so many more turns.
  size_t after_turns(int turns) {
    for (int i = 0; i < turns; ++i) reactor_.run_turn();
    return done.size();
  }

  std::vector<int> done;

 private:
  static Task<void> evaluate(Fixture* self, int number, uint64_t ns) {
    if (!self->off_loop_.has_room()) co_await self->off_loop_.next_room();
    self->done.push_back(number);
    self->off_loop_.worked(ns);
  }

  tests::ManualReactor reactor_;
  OffLoop off_loop_{reactor_, nullptr, 0, ScriptLimits(), base::Random(1)};
  int begun_ = 0;
  base::TaskGroup tasks_;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "evaluations that are little work go on in one turn") {
  begin(100, WorkMeter::kTurnNs / 100);
  CHECK(after_turns(0) == 100);
  begin(150, WorkMeter::kTurnNs / 100);
  CHECK(after_turns(0) == 100);  // the turn is used up
  CHECK(after_turns(2) == 200);  // its end, and the next
  CHECK(after_turns(2) == 250);
}

TEST_CASE_METHOD(Fixture, "of evaluations that are much work one goes on in a turn, in order") {
  begin(1, 0);
  begin(20, 5 * WorkMeter::kTurnNs);
  CHECK(done.size() == 2);
  for (size_t i = 3; i <= 21; ++i) {
    size_t turns = 0;
    while (after_turns(1) < i) REQUIRE(++turns < 3);
    CHECK(done.size() == i);
  }
  CHECK(std::ranges::is_sorted(done));
  after_turns(3);
  begin(1, 0);
  CHECK(done.size() == 22);
}

}  // namespace tetrad::cql
