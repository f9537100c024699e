// SPDX-License-Identifier: Apache-2.0
#include "replication/rpc/rpc.h"

#include <map>

#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "replication/rpc/frame.h"
#include "replication/rpc/timeout_wheel.h"
#include "tests/support/manual_reactor.h"
#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::replication {

namespace {

/// Delivers in a later step, whole; can be told to swallow everything.
class LoopTransport final : public Transport {
 public:
  struct Net {
    std::map<Endpoint, LoopTransport*> nodes;
    bool swallow = false, full = false;
    std::vector<Bytes> seen;
    std::vector<Lane> lanes;
  };
  LoopTransport(Net& net, tests::ManualReactor& reactor, Endpoint self)
      : net_(net), reactor_(reactor), self_(std::move(self)) {
    net_.nodes[self_] = this;
  }
  ~LoopTransport() override { net_.nodes.erase(self_); }
  bool send(const Endpoint& to, Bytes message, Lane lane) override {
    if (net_.full) return false;
    net_.seen.push_back(message);
    net_.lanes.push_back(lane);
    if (net_.swallow) return true;
    reactor_.post([net = &net_, to, message = std::move(message)]() mutable {
      const auto found = net->nodes.find(to);
      if (found != net->nodes.end() && found->second->handler_)
        found->second->handler_(std::move(message));
    });
    return true;
  }
  void set_receive_handler(ReceiveHandler handler) override { handler_ = std::move(handler); }
  uint64_t queued_bytes(const Endpoint&) const override { return 0; }

 private:
  Net& net_;
  tests::ManualReactor& reactor_;
  const Endpoint self_;
  ReceiveHandler handler_;
};

using partitioner::host_number;

Uuid cluster_number(uint8_t number) {
  Uuid id;
  id.octets[0] = number;
  return id;
}

struct Pair {
  tests::ManualReactor reactor;
  LoopTransport::Net net;
  base::Random random{7};
  LoopTransport transport_a{net, reactor, "a:1"}, transport_b{net, reactor, "b:1"};
  std::unique_ptr<RpcNode> a, b;

  explicit Pair(RpcOptions options = {}) {
    options.self_endpoint = "a:1";
    a = std::make_unique<RpcNode>(reactor, random, transport_a, host_number(1), options, Logger());
    options.self_endpoint = "b:1";
    b = std::make_unique<RpcNode>(reactor, random, transport_b, host_number(2), options, Logger());
    a->set_cluster_id(cluster_number(1));
    b->set_cluster_id(cluster_number(1));
    a->set_peer(host_number(2), "b:1");
    b->set_peer(host_number(1), "a:1");
    for (RpcNode* node : {a.get(), b.get()}) {
      node->handle(Verb::kEcho,
                   [](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                     reply.ok(Bytes(body) + "/" + std::to_string(context.store));
                   });
    }
  }
  base::Deadline in_ms(int64_t ms) { return {reactor.now_us() + ms * 1000}; }
};

}  // namespace

TEST_CASE("a call is answered, to a peer and to oneself, never inside the call") {
  Pair pair;
  for (const uint8_t target : {1, 2}) {
    std::optional<Result<Bytes>> answer;
    pair.a->call(host_number(target), 3, Verb::kEcho, "hello", pair.in_ms(100),
                 [&](Result<Bytes> result) { answer = std::move(result); });
    CHECK_FALSE(answer.has_value());
    pair.reactor.run_until_idle();
    REQUIRE(answer.has_value());
    REQUIRE(answer->has_value());
    CHECK(**answer == "hello/3");
    CHECK(pair.a->calls_in_flight() == 0);
  }
}

TEST_CASE("an answer says how long it took, where that is wanted") {
  Pair pair;
  pair.b->handle(Verb::kRead, [&](const RpcContext&, BytesView, RpcNode::Reply reply) {
    auto later = std::make_shared<RpcNode::Reply>(std::move(reply));
    pair.reactor.call_at(pair.reactor.now_us() + 2'500, [later] { later->ok("rows"); });
  });
  std::optional<uint32_t> worked_us;
  int answers = 0;
  const auto timed = [&](Result<Bytes> answer, std::optional<uint32_t> its) {
    answers += answer ? 1 : 0;
    worked_us = its;
  };
  pair.a->call_timed(host_number(2), 0, Verb::kRead, "", pair.in_ms(100), timed);
  pair.reactor.advance_us(5'000);
  CHECK(answers == 1);
  CHECK(worked_us == 2'500);
  // Without the question there is no answer to it, and one that never came says nothing.
  CHECK(decode_envelope(pair.net.seen[0])->envelope.wants_time);
  pair.a->call(host_number(2), 0, Verb::kRead, "", pair.in_ms(100), [](Result<Bytes>) {});
  pair.reactor.advance_us(5'000);
  CHECK_FALSE(decode_envelope(pair.net.seen[2])->envelope.wants_time);
  CHECK(decode_envelope(pair.net.seen[3])->envelope.time_left_us == 0);
  pair.net.swallow = true;
  pair.a->call_timed(host_number(2), 0, Verb::kRead, "", pair.in_ms(100), timed);
  pair.reactor.advance_us(500'000);
  CHECK(answers == 1);
  CHECK_FALSE(worked_us);
}

TEST_CASE("what a handler throws fails its request, and no other") {
  Pair pair;
  pair.b->handle(Verb::kPropose, [](const RpcContext&, BytesView body, RpcNode::Reply reply) {
    if (body == "answered") reply.ok("yes");
    throw std::bad_alloc();
  });
  std::optional<Result<Bytes>> failed, answered, after;
  pair.a->call(host_number(2), 0, Verb::kPropose, "x", pair.in_ms(100),
               [&](Result<Bytes> result) { failed = std::move(result); });
  pair.a->call(host_number(2), 0, Verb::kPropose, "answered", pair.in_ms(100),
               [&](Result<Bytes> result) { answered = std::move(result); });
  pair.a->one_way(host_number(2), 0, Verb::kPropose, "x");
  pair.a->call(host_number(2), 0, Verb::kEcho, "x", pair.in_ms(100),
               [&](Result<Bytes> result) { after = std::move(result); });
  pair.reactor.run_until_idle();
  REQUIRE(failed.has_value());
  REQUIRE_FALSE(failed->has_value());
  CHECK(failed->error().code == ErrorCode::kServerError);
  REQUIRE(answered.has_value());
  CHECK(answered->value() == "yes");
  REQUIRE(after.has_value());
  CHECK(after->value() == "x/0");
  CHECK(pair.a->calls_in_flight() == 0);
}

TEST_CASE("what a callback throws is its own affair") {
  Pair pair;
  int told = 0;
  const auto call = [&](HostId to, int64_t ms) {
    for (int i = 0; i < 2; ++i)
      pair.a->call(to, 0, Verb::kEcho, "x", pair.in_ms(ms), [&](const Result<Bytes>&) {
        ++told;
        throw std::bad_alloc();
      });
  };
  call(host_number(2), 100);  // answered
  pair.reactor.run_until_idle();
  CHECK(told == 2);
  call(host_number(9), 100);  // refused: no known address
  pair.reactor.run_until_idle();
  CHECK(told == 4);
  pair.net.swallow = true;
  call(host_number(2), 100);  // not answered in time
  pair.reactor.run_until_idle();
  pair.reactor.advance_us(200'000);
  pair.reactor.run_until_idle();
  CHECK(told == 6);
  CHECK(pair.a->calls_in_flight() == 0);
}

TEST_CASE("a call that the transport drops is answered at once") {
  Pair pair;
  pair.net.full = true;
  std::optional<Result<Bytes>> answer;
  pair.a->call(host_number(2), 0, Verb::kEcho, "x", pair.in_ms(100),
               [&](Result<Bytes> result) { answer = std::move(result); });
  CHECK_FALSE(answer.has_value());
  pair.reactor.run_until_idle();
  REQUIRE(answer.has_value());
  CHECK(answer->error().code == ErrorCode::kOverloaded);
  CHECK(pair.a->metrics().dropped.value() == 1);
  CHECK(pair.a->calls_in_flight() == 0);
}

TEST_CASE("heartbeats and the metadata group have a lane of their own, streams another") {
  Pair pair;
  pair.a->one_way(host_number(2), 0, Verb::kHeartbeat, "x");
  pair.a->one_way(host_number(2), 0, Verb::kRaft, "x");
  const auto ignore = [](Result<Bytes>) {};
  pair.a->call(host_number(2), 0, Verb::kRaft, "an image", pair.in_ms(1), ignore);
  pair.a->call(host_number(2), 0, Verb::kMutate, "x", pair.in_ms(1), ignore);
  pair.a->call(host_number(2), 0, Verb::kStreamRange, "x", pair.in_ms(1), ignore);
  CHECK(pair.net.lanes == std::vector<Lane>{Lane::kControl, Lane::kControl, Lane::kBulk,
                                            Lane::kRequests, Lane::kBulk});
}

TEST_CASE("errors travel with their code") {
  Pair pair;
  pair.b->handle(Verb::kMutate, [](const RpcContext&, BytesView, RpcNode::Reply reply) {
    reply.error(Error(ErrorCode::kStaleEpoch, "epoch 3 is over"));
  });
  std::optional<Result<Bytes>> answer;
  const auto keep = [&](Result<Bytes> result) { answer = std::move(result); };
  pair.a->call(host_number(2), 0, Verb::kMutate, "", pair.in_ms(100), keep);
  pair.reactor.run_until_idle();
  REQUIRE(answer.has_value());
  CHECK(answer->error().code == ErrorCode::kStaleEpoch);
  CHECK(answer->error().message == "epoch 3 is over");
  pair.a->call(host_number(2), 0, Verb::kRepairTree, "", pair.in_ms(100), keep);
  pair.reactor.run_until_idle();
  CHECK(answer->error().code == ErrorCode::kProtocol);
  pair.a->call(host_number(9), 0, Verb::kEcho, "", pair.in_ms(100), keep);
  pair.reactor.run_until_idle();
  CHECK(answer->error().code == ErrorCode::kUnavailable);
  pair.a->call(host_number(2), 0, Verb::kEcho, "", pair.in_ms(0), keep);
  pair.reactor.run_until_idle();
  CHECK(answer->error().code == ErrorCode::kTimedOut);
}

TEST_CASE("a call without an answer times out at its deadline, a late answer is ignored") {
  Pair pair;
  std::vector<RpcNode::Reply> held;
  pair.b->handle(Verb::kRead, [&](const RpcContext&, BytesView, RpcNode::Reply reply) {
    held.push_back(std::move(reply));
  });
  int timed_out = 0, answered = 0;
  for (const int64_t ms : {5, 50, 500, 10'000}) {
    pair.a->call(host_number(2), 0, Verb::kRead, "x", pair.in_ms(ms), [&](Result<Bytes> result) {
      if (result)
        ++answered;
      else if (result.error().code == ErrorCode::kTimedOut)
        ++timed_out;
    });
  }
  pair.reactor.run_until_idle();
  pair.reactor.advance_us(4'000);
  CHECK(timed_out == 0);
  pair.reactor.advance_us(6'000);
  CHECK(timed_out == 1);
  pair.reactor.advance_us(600'000);
  CHECK(timed_out == 3);
  for (auto& reply : held) reply.ok("late");
  pair.reactor.run_until_idle();
  CHECK(timed_out == 3);
  CHECK(answered == 1);
  pair.reactor.advance_us(20'000'000);
  CHECK(timed_out == 3);
  CHECK(pair.reactor.timer_count() == 0);
}

TEST_CASE("too much in flight to a peer is refused, and only to that peer") {
  RpcOptions options;
  options.calls_in_flight_max = 2;
  options.bytes_in_flight_max = 1000;
  Pair pair(options);
  pair.net.swallow = true;
  std::vector<ErrorCode> errors;
  const auto keep = [&](Result<Bytes> result) {
    errors.push_back(result ? ErrorCode::kServerError : result.error().code);
  };
  pair.a->call(host_number(2), 0, Verb::kEcho, Bytes(900, 'x'), pair.in_ms(50), keep);
  pair.a->call(host_number(2), 0, Verb::kEcho, Bytes(200, 'x'), pair.in_ms(50), keep);
  pair.reactor.run_until_idle();
  CHECK(errors == std::vector<ErrorCode>{ErrorCode::kOverloaded});
  pair.a->call(host_number(2), 0, Verb::kEcho, "", pair.in_ms(50), keep);
  pair.a->call(host_number(2), 0, Verb::kEcho, "", pair.in_ms(50), keep);
  pair.a->call(host_number(1), 0, Verb::kEcho, "", pair.in_ms(50), keep);
  pair.reactor.run_until_idle();
  CHECK(errors.size() == 3);
  CHECK(errors[1] == ErrorCode::kOverloaded);
  CHECK(errors[2] == ErrorCode::kServerError);  // to itself: answered
  pair.reactor.advance_us(100'000);
  CHECK(errors.size() == 5);
  pair.net.swallow = false;
  pair.a->call(host_number(2), 0, Verb::kEcho, Bytes(900, 'x'), pair.in_ms(50), keep);
  pair.reactor.run_until_idle();
  CHECK(errors.back() == ErrorCode::kServerError);
}

TEST_CASE("messages of another cluster, and for another host, are refused") {
  Pair pair;
  pair.b->set_cluster_id(cluster_number(2));
  std::optional<Result<Bytes>> answer;
  const auto keep = [&](Result<Bytes> result) { answer = std::move(result); };
  pair.a->call(host_number(2), 0, Verb::kEcho, "", pair.in_ms(50), keep);
  pair.reactor.run_until_idle();
  REQUIRE(answer.has_value());
  CHECK(answer->error().code == ErrorCode::kConfig);
  CHECK(pair.b->metrics().refused_foreign.value() == 1);
  pair.b->set_cluster_id(cluster_number(1));
  pair.a->set_peer(host_number(5), "b:1");
  pair.a->call(host_number(5), 0, Verb::kEcho, "", pair.in_ms(50), keep);
  pair.reactor.run_until_idle();
  CHECK(answer->error().code == ErrorCode::kNotFound);
  pair.b->handle(
      Verb::kJoin, [](const RpcContext&, BytesView, RpcNode::Reply reply) { reply.ok("welcome"); },
      true);
  pair.a->set_cluster_id(Uuid());
  pair.a->call_endpoint("b:1", Verb::kJoin, "", pair.in_ms(50), keep);
  pair.reactor.run_until_idle();
  REQUIRE(answer->has_value());
  CHECK(**answer == "welcome");
}

TEST_CASE("a message for another shard's store is handed over, the reply comes back") {
  tests::ManualReactor reactor;
  LoopTransport::Net net;
  base::Random random(1);
  LoopTransport first(net, reactor, "a:1");
  LoopTransport::Net nowhere;
  LoopTransport second(nowhere, reactor, "a:1");
  RpcNode* shards[2] = {};
  RpcOptions options;
  options.self_endpoint = "a:1";
  options.shard_count = 2;
  options.forward = [&](uint32_t shard, ShardMessage message) {
    reactor.post([&shards, shard, message = std::move(message)]() mutable {
      shards[shard]->receive_forwarded(std::move(message));
    });
  };
  RpcNode shard0(reactor, random, first, host_number(1), options, Logger());
  options.shard = 1;
  RpcNode shard1(reactor, random, second, host_number(1), options, Logger());
  shards[0] = &shard0;
  shards[1] = &shard1;
  for (RpcNode* node : shards) {
    node->set_cluster_id(cluster_number(1));
    node->handle(Verb::kEcho, [node](const RpcContext&, BytesView, RpcNode::Reply reply) {
      reply.ok(std::to_string(node->shard()));
    });
  }
  for (RpcNode* from : shards) {
    for (const uint32_t store : {0, 1, 2, 3}) {
      Bytes answer;
      from->call(host_number(1), store, Verb::kEcho, "", {reactor.now_us() + 1000},
                 [&](Result<Bytes> result) { answer = *result; });
      reactor.run_until_idle();
      CHECK(answer == std::to_string(store % 2));
    }
  }

  struct Question final : ShardCall {
    Question(uint32_t to, base::Deadline until, std::string& into)
        : ShardCall(Verb::kEcho, to, until), answer(into) {}
    void refuse(Error error) override { said = error.message; }
    void finish(std::unique_ptr<ShardCall>) override { answer = said; }
    std::string said;
    std::string& answer;
  };
  shard1.handle_shard_calls([&](std::unique_ptr<ShardCall> call) {
    static_cast<Question&>(*call).said = fmt::format("store {} here", call->store());
    shard1.answer_shard(std::move(call));
  });
  std::string answer;
  shard0.call_shard(std::make_unique<Question>(3, base::Deadline{}, answer), 100);
  CHECK(answer.empty());
  reactor.run_until_idle();
  CHECK(answer == "store 3 here");
  answer.clear();
  shard0.call_shard(std::make_unique<Question>(3, base::Deadline{}, answer), uint64_t{65} << 20);
  CHECK(answer.empty());
  reactor.run_until_idle();
  CHECK(answer == "too many requests in flight to another shard");
  shard0.call_shard(std::make_unique<Question>(1, base::Deadline{}, answer), 100);
  reactor.run_until_idle();
  CHECK(answer == "store 1 here");
}

TEST_CASE("nothing runs after a node is gone") {
  Pair pair;
  RpcNode::Reply held;
  pair.b->handle(Verb::kRead, [&](const RpcContext&, BytesView, RpcNode::Reply reply) {
    held = std::move(reply);
  });
  int answers = 0;
  pair.a->call(host_number(2), 0, Verb::kRead, "", pair.in_ms(10),
               [&](const Result<Bytes>&) { ++answers; });
  pair.a->call(host_number(1), 0, Verb::kEcho, "", pair.in_ms(10),
               [&](const Result<Bytes>&) { ++answers; });
  pair.a.reset();
  pair.reactor.run_until_idle();
  pair.b.reset();
  held.ok("x");
  pair.reactor.advance_us(100'000);
  CHECK(answers == 0);
}

TEST_CASE("hostile messages do no harm") {
  Pair pair;
  pair.a->call(host_number(2), 0, Verb::kEcho, "hello", pair.in_ms(50), [](Result<Bytes>) {});
  const Bytes good = pair.net.seen.front();
  pair.reactor.run_until_idle();
  base::Random random(11);
  for (size_t size = 0; size <= good.size(); ++size)
    (void)decode_envelope(BytesView(good).substr(0, size));
  for (int i = 0; i < 20'000; ++i) {
    Bytes broken = good;
    for (uint64_t n = 1 + random.below(4); n > 0; --n)
      broken[random.below(broken.size())] = static_cast<char>(random.next());
    pair.b->receive_forwarded(std::move(broken));
    pair.reactor.run_until_idle();
  }
  CHECK(decode_error("").code == ErrorCode::kServerError);
  CHECK(decode_error("\xff").code == ErrorCode::kServerError);
}

TEST_CASE("frames come out as they went in, however they are cut") {
  base::Random random(3);
  Bytes stream(kStreamPreface);
  std::vector<Bytes> messages;
  for (int i = 0; i < 50; ++i) {
    messages.emplace_back(random.below(i % 10 == 0 ? 200'000 : 200), static_cast<char>(i));
    append_frame(messages.back(), stream);
  }
  FrameReader reader;
  std::vector<Bytes> received;
  for (size_t at = 0; at < stream.size();) {
    const size_t size = std::min<size_t>(1 + random.below(10'000), stream.size() - at);
    reader.feed(BytesView(stream).substr(at, size));
    at += size;
    while (true) {
      auto message = reader.next();
      REQUIRE(message);
      if (!*message) break;
      received.push_back(std::move(**message));
    }
  }
  CHECK(received == messages);
}

TEST_CASE("a broken frame ends the stream") {
  Bytes stream(kStreamPreface);
  append_frame("hello", stream);
  for (size_t at = 0; at < stream.size(); ++at) {
    Bytes broken = stream;
    broken[at] = static_cast<char>(broken[at] ^ 0x41);
    FrameReader reader;
    reader.feed(broken);
    const auto message = reader.next();
    CHECK((!message || !*message));
  }
  FrameReader reader;
  reader.feed("GET / HTTP/1.1\r\n");
  REQUIRE_FALSE(reader.next());
  CHECK_FALSE(reader.next());
  Bytes large(kStreamPreface);
  base::ByteWriter(large).u32(0xffffffff);
  large.append(8, '\0');
  FrameReader other;
  other.feed(large);
  REQUIRE_FALSE(other.next());
}

TEST_CASE("the wheel fires each id once, at its time") {
  TimeoutWheel wheel;
  base::Random random(5);
  std::map<uint64_t, base::MonotonicUs> waiting;
  base::MonotonicUs now_us = 1'000'000;
  std::vector<uint64_t> due;
  for (uint64_t id = 1; id < 20'000; ++id) {
    const base::MonotonicUs at_us =
        now_us + static_cast<int64_t>(random.below(id % 7 == 0 ? 20'000'000 : 100'000));
    wheel.add(id, at_us, now_us);
    waiting[id] = at_us;
    now_us += static_cast<int64_t>(random.below(id % 100 == 0 ? 6'000'000 : 1'000));
    due.clear();
    wheel.advance(now_us, due);
    for (const uint64_t fired : due) {
      REQUIRE(waiting.contains(fired));
      CHECK(waiting[fired] <= now_us);
      waiting.erase(fired);
    }
  }
  now_us += 40'000'000;
  due.clear();
  wheel.advance(now_us, due);
  CHECK(due.size() == waiting.size());
  CHECK_FALSE(wheel.next_us());
}

}  // namespace tetrad::replication
