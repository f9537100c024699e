// SPDX-License-Identifier: Apache-2.0
// What a transport counts of its peers.
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "replication/rpc/frame.h"
#include "tests/unit/replication/transport_loop.h"

namespace tetrad::replication {
namespace {

/// Says who has sent what comes, as an RpcNode does.
void take_from(TcpTransport& transport, const Endpoint& sender, int& received) {
  transport.set_receive_handler([&transport, sender, &received](const Bytes&) {
    transport.note_sender(&sender);
    ++received;
  });
}

bool is_empty(const MessageLoad& load) { return load.count == 0 && load.bytes == 0; }

}  // namespace

TEST_CASE("open connections are counted at both ends until they end") {
  Loop loop;
  auto a = loop.open(), b = loop.open();
  const auto of_a = a->open_links(), of_b = b->open_links();
  const auto open = [](const OpenLinks& links) {
    std::array<uint64_t, 4> counts{};
    size_t next = 0;
    for (const auto direction : {LinkDirection::kIn, LinkDirection::kOut})
      for (const bool encrypted : {false, true}) counts[next++] = links.count(direction, encrypted);
    return counts;
  };
  using Counts = std::array<uint64_t, 4>;  // in, in with TLS, out, out with TLS
  CHECK(open(*of_a) == Counts{});
  CHECK_FALSE(a->is_encrypted(at(*b)));
  int received = 0;
  take_from(*b, at(*a), received);
  a->send(at(*b), "one", Lane::kControl);
  a->send(at(*b), "two", Lane::kRequests);
  REQUIRE(loop.run_until([&] { return received == 2; }));
  CHECK(open(*of_a) == Counts{0, 0, 2, 0});
  CHECK(open(*of_b) == Counts{2, 0, 0, 0});
  CHECK(a->is_encrypted(at(*b)) == false);
  const Endpoint peer = at(*b);
  b.reset();
  CHECK(loop.run_until([&] { return open(*of_a) == Counts{} && open(*of_b) == Counts{}; }));
  CHECK_FALSE(a->is_encrypted(peer));
}

TEST_CASE("what is sent to a peer is pending until the system has it, and then sent") {
  Loop loop;
  auto a = loop.open(), b = loop.open();
  const Endpoint peer = at(*b), self = at(*a);
  int received = 0;
  take_from(*b, self, received);
  CHECK(a->sent().empty());
  a->send(peer, "one", Lane::kControl);
  a->send(peer, "three", Lane::kRequests);
  const uint64_t bytes = 2 * kFrameHeaderBytes + 8, prefaces = 2 * kStreamPreface.size();
  SentTraffic now = a->sent().at(peer);
  CHECK((now.pending.count == 2 && now.pending.bytes == bytes));
  CHECK((now.attempts == 0 && now.connections == 0 && is_empty(now.sent)));
  REQUIRE(loop.run_until([&] { return received == 2 && a->sent().at(peer).sent.count == 2; }));
  now = a->sent().at(peer);
  CHECK(now.sent.bytes == bytes + prefaces);
  CHECK((now.connections == 2 && now.attempts == 2 && now.connected == 2));
  CHECK((is_empty(now.pending) && is_empty(now.lost) && is_empty(now.overloaded)));
  const ReceivedTraffic got = b->received().at(self);
  CHECK((got.received.count == 2 && got.received.bytes == bytes));
  CHECK((is_empty(got.malformed) && got.corrupt_frames == 0));
  CHECK((b->sent().empty() && a->received().empty()));
}

TEST_CASE("what a peer that is away does not get is lost, and its counts go on when it is back") {
  Loop loop;
  auto a = loop.open(), b = loop.open();
  const Endpoint peer = at(*b);
  TcpTransportOptions options;
  options.listen_port = b->port();
  int received = 0;
  take_from(*b, at(*a), received);
  a->send(peer, "one", Lane::kRequests);
  REQUIRE(loop.run_until([&] { return received == 1 && a->sent().at(peer).sent.count == 1; }));
  b.reset();
  REQUIRE(loop.run_until([&] { return a->sent().at(peer).connections == 0; }));
  a->send(peer, "lost in a pause", Lane::kRequests);
  REQUIRE(loop.run_until([&] { return a->sent().at(peer).lost.count == 1; }));
  CHECK(a->sent().at(peer).lost.bytes == kFrameHeaderBytes + 15);
  CHECK(is_empty(a->sent().at(peer).pending));
  b = loop.open(options);
  take_from(*b, at(*a), received);
  int turn = 0;
  REQUIRE(loop.run_until([&] {
    if (++turn % 20 == 0) a->send(peer, "again", Lane::kRequests);
    return received > 1 && a->sent().at(peer).pending.count == 0;
  }));
  const SentTraffic now = a->sent().at(peer);
  CHECK(now.sent.count == static_cast<uint64_t>(received));
  CHECK((now.connections == 1 && now.connected == 2 && now.attempts >= 2));
  CHECK(now.lost.count >= 1);
}

TEST_CASE("attempts to connect that come to nothing are counted as such") {
  Loop loop;
  auto a = loop.open(), b = loop.open();
  const Endpoint peer = at(*b);
  b.reset();
  a->send(peer, "nobody there", Lane::kBulk);
  REQUIRE(loop.run_until([&] { return a->sent().at(peer).lost.count == 1; }));
  const SentTraffic now = a->sent().at(peer);
  CHECK((now.attempts == 1 && now.connected == 0 && now.connections == 0));
}

TEST_CASE("what is refused because too much waits is counted, here and before") {
  Loop loop;
  TcpTransportOptions options;
  options.queue_bytes_max = 1'000;
  auto a = loop.open(options), b = loop.open();
  const Endpoint peer = at(*b);
  a->note_overload(peer, 5);  // nothing was ever sent there
  CHECK(a->sent().empty());
  CHECK(a->send(peer, Bytes(900, 'x'), Lane::kRequests));
  CHECK_FALSE(a->send(peer, Bytes(200, 'y'), Lane::kRequests));
  a->note_overload(peer, 70);
  const SentTraffic now = a->sent().at(peer);
  CHECK((now.overloaded.count == 2 && now.overloaded.bytes == 270));
  CHECK((now.pending.count == 1 && is_empty(now.lost)));
}

TEST_CASE("a message that cannot be decoded counts for who has sent others over its connection") {
  Loop loop;
  auto a = loop.open(), b = loop.open();
  const Endpoint self = at(*a);
  int received = 0;
  b->set_receive_handler([&](const Bytes& message) {
    b->note_sender(message == "bad" ? nullptr : &self);
    ++received;
  });
  a->send(at(*b), "good", Lane::kRequests);
  a->send(at(*b), "bad", Lane::kRequests);
  REQUIRE(loop.run_until([&] { return received == 2; }));
  const ReceivedTraffic got = b->received().at(self);
  CHECK((got.received.count == 2 && got.malformed.count == 1));
  CHECK(got.malformed.bytes == kFrameHeaderBytes + 3);
}

TEST_CASE("a frame that was damaged on the way is counted, and ends its connection") {
  Loop loop;
  auto b = loop.open();
  const Endpoint sender = "10.0.0.7:7000";
  int received = 0;
  take_from(*b, sender, received);
  Bytes stream(kStreamPreface);
  append_frame("good", stream);
  append_frame("damaged", stream);
  stream.back() = '!';
  boost::asio::ip::tcp::socket socket(loop.io);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), b->port()});
  boost::asio::write(socket, boost::asio::buffer(stream));
  REQUIRE(loop.run_until(
      [&] { return received == 1 && b->received().at(sender).corrupt_frames == 1; }));
  CHECK(b->received().at(sender).received.count == 1);
}

TEST_CASE("peers that made up names are forgotten, who is connected is not") {
  Loop loop;
  auto a = loop.open(), b = loop.open();
  int received = 0;
  take_from(*b, at(*a), received);
  a->send(at(*b), "real", Lane::kControl);
  REQUIRE(loop.run_until([&] { return received == 1; }));
  for (int i = 0; i < 3'000; ++i) a->send(fmt::format("no port {}", i), "x", Lane::kControl);
  REQUIRE(loop.run_until([&] { return a->sent().size() < 100; }));
  CHECK(a->sent().at(at(*b)).sent.count == 1);
  a->send(at(*b), "still", Lane::kControl);
  CHECK(loop.run_until([&] { return received == 2; }));
  // Likewise of those that messages say to come from: each over a connection of its own.
  for (int i = 0; i < 1'100; ++i) {
    const Endpoint name = fmt::format("10.0.0.7:{}", i);
    int here = 0;
    take_from(*b, name, here);
    boost::asio::ip::tcp::socket socket(loop.io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), b->port()});
    Bytes stream(kStreamPreface);
    append_frame("x", stream);
    boost::asio::write(socket, boost::asio::buffer(stream));
    REQUIRE(loop.run_until([&] { return here == 1; }));
  }
  b->set_receive_handler(nullptr);
  CHECK(b->received().size() <= 1'025);
  CHECK(b->received().contains(at(*a)));
}

}  // namespace tetrad::replication
