// SPDX-License-Identifier: Apache-2.0
// What a library throws inside a task that the coordinator has started for a request fails that
// request and no more.
#include <new>

#include <catch2/catch.hpp>

#include "replication/replica/replica_calls.h"
#include "tests/simulation/support/sum_plan.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

/// A trace asks it for the time when it is made, and then wherever it notes something.
class Throwing final : public base::Reactor {
 public:
  base::MonotonicUs now_us() const override { return 0; }
  int64_t wall_time_us() const override {
    if (asked_++ != 0) throw std::bad_alloc();
    return 0;
  }
  int64_t boot_time_us() const override { return 0; }
  void post(base::Callback) override {}
  void post_from_any_thread(base::Callback) override {}
  void at_turn_end(base::Callback) override {}
  TimerId call_at(base::MonotonicUs, base::Callback) override { return 1; }
  void cancel(TimerId) override {}

 private:
  mutable int asked_ = 0;
};

struct Answers {
  std::optional<Result<std::vector<storage::ReadResult>>> read;
  std::optional<Result<replication::Counted>> counted;
};

Task<void> ask(SimNode* node, storage::ReadCommand command, replication::TracePtr trace,
               Answers* answers) {
  replication::ReadOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + 5'000'000};
  options.trace = std::move(trace);
  std::vector<storage::ReadCommand> many;
  for (int i = 0; i < 100; ++i) {
    many.push_back(command);
    many.back().partition_key = std::to_string(i);
    many.back().position = partitioner::position_of(many.back().partition_key);
  }
  auto read = co_await node->data().coordinator().read_many(std::move(many), options);
  answers->read.emplace(std::move(read));
  command.is_range = true;
  auto counted = co_await node->data().coordinator().count(std::move(command), options);
  answers->counted.emplace(std::move(counted));
}

/// A write to a store of another shard that throws when it is looked at there.
struct ThrowingCall final : replication::MutateCall {
  ThrowingCall(uint32_t store, base::Deadline until, std::optional<Error>* to)
      : MutateCall(store, until, SetEpoch(), std::nullopt, 0), error(to) {}
  const storage::Mutation& mutation() const override { throw std::bad_alloc(); }
  void finish(std::unique_ptr<replication::ShardCall>) override {
    if (!answer) *error = answer.error();
  }
  std::optional<Error>* const error;
};

/// Its answer cannot be taken.
struct ThrowingAtHome final : replication::ReadCall {
  ThrowingAtHome(uint32_t store, base::Deadline until, bool* is_back)
      : ReadCall(replication::Verb::kRead, store, until, SetEpoch(), {}), back(is_back) {}
  void finish(std::unique_ptr<replication::ShardCall>) override {
    *back = true;
    throw std::bad_alloc();
  }
  bool* const back;
};

}  // namespace

TEST_CASE("what is thrown in a call to another shard fails that call only") {
  SimCluster cluster(3, 1);
  cluster[0].options().shard_count = 2;
  cluster[0].options().store_count = 2;
  REQUIRE(cluster.form(30'000'000));
  SimNode& node = cluster[0];
  const base::Deadline until{node.reactor().now_us() + 5'000'000};
  for (int i = 0; i < 3; ++i) {
    std::optional<Error> error;
    node.node().rpc().call_shard(std::make_unique<ThrowingCall>(1, until, &error), 10);
    REQUIRE(cluster.world().run_until([&] { return error.has_value(); }, 10'000'000));
    CHECK(error->code == ErrorCode::kServerError);
    bool is_back = false;
    node.node().rpc().call_shard(std::make_unique<ThrowingAtHome>(1, until, &is_back), 10);
    REQUIRE(cluster.world().run_until([&] { return is_back; }, 10'000'000));
  }
}

TEST_CASE("what is thrown inside a task of the coordinator fails its request only") {
  SimCluster cluster(3, 4);
  REQUIRE(cluster.form(30'000'000));
  bool created = false;
  cluster[0].spawn(create_table(&cluster[0], 0, &created));
  REQUIRE(cluster.world().run_until([&] { return created; }, 10'000'000));
  cluster.world().run_for(10'000'000);

  storage::ReadCommand command;
  command.incarnation = cluster[0].state()->tables.begin()->second->incarnation;
  command.now_s = 1'700'000'000;
  const auto answers_with = [&](replication::TracePtr trace) {
    Answers answers;
    cluster[0].spawn(ask(&cluster[0], command, std::move(trace), &answers));
    REQUIRE(cluster.world().run_until([&] { return answers.counted.has_value(); }, 20'000'000));
    return answers;
  };
  const Throwing reactor;
  Answers failed = answers_with(std::make_shared<replication::Trace>(reactor));
  REQUIRE_FALSE(failed.read->has_value());
  CHECK(failed.read->error().code == ErrorCode::kServerError);
  CHECK(failed.read->error().message.starts_with("The request failed inside the server: "));
  REQUIRE_FALSE(failed.counted->has_value());
  CHECK(failed.counted->error().code == ErrorCode::kServerError);
  Answers good = answers_with(nullptr);
  CHECK(good.read->has_value());
  CHECK(good.counted->has_value());
}

}  // namespace tetrad::simulation
