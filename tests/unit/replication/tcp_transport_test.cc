// SPDX-License-Identifier: Apache-2.0
#include "replication/rpc/tcp_transport.h"

#include <chrono>
#include <thread>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "base/random.h"
#include "replication/rpc/envelope.h"
#include "tests/support/kept_lines.h"
#include "tests/unit/replication/transport_loop.h"

namespace tetrad::replication {

namespace {

/// Whether the connection of who says this is ended.
bool is_shown_out(Loop& loop, const TcpTransport& transport, const std::string& said) {
  boost::asio::ip::tcp::socket stranger(loop.io);
  stranger.connect({boost::asio::ip::make_address("127.0.0.1"), transport.port()});
  boost::asio::write(stranger, boost::asio::buffer(said));
  bool ended = false;
  char byte;
  stranger.async_read_some(
      boost::asio::buffer(&byte, 1),
      [&](const boost::system::error_code& error, size_t) { ended = static_cast<bool>(error); });
  return loop.run_until([&] { return ended; });
}

}  // namespace

TEST_CASE("messages arrive whole and in order over TCP") {
  Loop loop;
  auto a = loop.open(), b = loop.open();
  std::vector<Bytes> received;
  b->set_receive_handler([&](Bytes message) { received.push_back(std::move(message)); });
  base::Random random(1);
  std::vector<Bytes> sent;
  for (int i = 0; i < 300; ++i) {
    sent.emplace_back(random.below(i % 50 == 0 ? 3'000'000 : 3'000), static_cast<char>(i));
    a->send(at(*b), sent.back(), Lane::kRequests);
  }
  CHECK(a->queued_bytes(at(*b)) > 0);
  REQUIRE(loop.run_until([&] { return received.size() == sent.size(); }));
  CHECK(received == sent);
  CHECK(a->queued_bytes(at(*b)) == 0);
}

TEST_CASE("a name that is not found is said") {
  Loop loop;
  auto a = loop.open();
  const Endpoint name = make_endpoint("nobody-has-this-name.invalid", 7000);
  int turn = 0;
  CHECK(loop.run_until([&] {
    if (++turn % 20 == 1) a->send(name, "lost", Lane::kControl);
    return a->refusal(name).starts_with("the name is not found: ");
  }));
}

TEST_CASE("another program at a peer's port is not taken for a silent peer") {
  Loop loop;
  using boost::asio::ip::tcp;
  tcp::acceptor web(loop.io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  std::vector<tcp::socket> taken;
  const std::string answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
  std::function<void()> accept = [&] {
    web.async_accept([&](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      boost::asio::write(socket, boost::asio::buffer(answer));
      taken.push_back(std::move(socket));
      accept();
    });
  };
  accept();
  auto a = loop.open(), b = loop.open();
  const Endpoint peer = make_endpoint("127.0.0.1", web.local_endpoint().port());
  CHECK_FALSE(a->is_reached(peer));
  int turn = 0;
  CHECK(loop.run_until([&] {
    if (++turn % 20 == 1) a->send(peer, "lost", Lane::kControl);
    return a->refusal(peer) == "it answers as no node does: another program listens there";
  }));
  CHECK(a->is_reached(peer));
  // Of a node that listens and is given what it takes nothing is said.
  CHECK_FALSE(a->is_reached(at(*b)));
  a->send(at(*b), "x", Lane::kControl);
  CHECK(loop.run_until([&] { return a->is_reached(at(*b)); }));
  CHECK(a->refusal(at(*b)).empty());
  web.close();
}

TEST_CASE("a transport tells that nobody listens at a peer, for the control lane alone") {
  Loop loop;
  auto a = loop.open(), b = loop.open();
  const Endpoint peer = at(*b);
  int received = 0;
  std::vector<Endpoint> refused;
  b->set_receive_handler([&](const Bytes&) { ++received; });
  a->set_refused_handler([&](const Endpoint& by) { refused.push_back(by); });
  a->send(peer, "x", Lane::kControl);
  REQUIRE(loop.run_until([&] { return received == 1; }));
  CHECK(refused.empty());
  b.reset();  // the connection ends, which says nothing yet
  a->send(peer, "lost", Lane::kRequests);
  loop.run_until([&] { return a->queued_bytes(peer) == 0; });
  CHECK(refused.empty());
  int turn = 0;
  REQUIRE(loop.run_until([&] {
    if (++turn % 20 == 1) a->send(peer, "lost", Lane::kControl);
    return refused.size() >= 2;
  }));
  CHECK(refused.front() == peer);
  a->set_refused_handler(nullptr);
  a->send(peer, "lost", Lane::kControl);
  loop.run_until([&] { return a->queued_bytes(peer) == 0; });
}

TEST_CASE("a peer may be named, and may come up later") {
  Loop loop;
  auto a = loop.open();
  auto b = loop.open();
  const uint16_t port = b->port();
  const Endpoint name = "localhost:" + std::to_string(port);
  b.reset();
  a->send(name, "lost", Lane::kRequests);
  loop.run_until([&] { return a->queued_bytes(name) == 0; });
  TcpTransportOptions options;
  options.listen_port = port;
  b = loop.open(options);
  int received = 0;
  b->set_receive_handler([&](const Bytes&) { ++received; });
  int turn = 0;
  CHECK(loop.run_until([&] {
    if (++turn % 20 == 0) a->send(name, "again", Lane::kRequests);
    return received > 0;
  }));
  // A connection that broke is made anew.
  b.reset();
  b = loop.open(options);
  received = 0;
  b->set_receive_handler([&](const Bytes&) { ++received; });
  CHECK(loop.run_until([&] {
    if (++turn % 20 == 0) a->send(at(*b), "again", Lane::kRequests);
    return received > 0;
  }));
}

TEST_CASE("a peer that is heard is tried at once, once in a pause") {
  Loop loop;
  const auto turns = [&] {  // no time passes
    for (int i = 0; i < 50; ++i) {
      loop.io.restart();
      loop.io.poll();
      loop.reactor.run_until_idle();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  auto a = loop.open(), b = loop.open();
  const Endpoint peer = at(*b);
  TcpTransportOptions options;
  options.listen_port = b->port();
  b.reset();
  a->send(peer, "nobody there", Lane::kRequests);
  turns();
  a->heard_from(peer);  // by mistake: it is not up
  a->send(peer, "nobody there", Lane::kRequests);
  turns();
  b = loop.open(options);
  int received = 0;
  b->set_receive_handler([&](const Bytes&) { ++received; });
  a->heard_from(peer);
  a->send(peer, "in a pause", Lane::kRequests);
  turns();
  CHECK(received == 0);
  loop.reactor.advance_us(600'000);
  b.reset();
  a->send(peer, "gone again", Lane::kRequests);
  turns();
  b = loop.open(options);
  b->set_receive_handler([&](const Bytes&) { ++received; });
  a->heard_from(peer);
  a->send(peer, "at once", Lane::kRequests);
  turns();
  CHECK(received == 1);
}

TEST_CASE("a full queue drops, it does not grow") {
  Loop loop;
  TcpTransportOptions options;
  options.queue_bytes_max = 100'000;
  auto a = loop.open(options);
  auto b = loop.open();
  for (int i = 0; i < 1000; ++i) a->send(at(*b), Bytes(1000, 'x'), Lane::kRequests);
  CHECK(a->queued_bytes(at(*b)) <= 110'000);
  a->send("no port", "x", Lane::kRequests);
  a->send(":", "x", Lane::kRequests);
  loop.reactor.run_until_idle();
}

TEST_CASE("control messages pass while another lane is full, and what is dropped is said") {
  Loop loop;
  TcpTransportOptions options;
  options.queue_bytes_max = 1'000'000;
  auto a = loop.open(options);
  // A peer that reads nothing of the first connection, that of the bulk lane.
  boost::asio::ip::tcp::acceptor acceptor(loop.io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  const Endpoint peer = make_endpoint("127.0.0.1", acceptor.local_endpoint().port());
  std::vector<boost::asio::ip::tcp::socket> accepted;
  const std::function<void()> accept = [&] {
    acceptor.async_accept(
        [&](const boost::system::error_code& error, boost::asio::ip::tcp::socket socket) {
          if (error) return;
          accepted.push_back(std::move(socket));
          accept();
        });
  };
  accept();
  bool dropped = false;
  REQUIRE(loop.run_until([&] {
    for (int i = 0; i < 100 && !dropped; ++i)
      dropped = !a->send(peer, Bytes(100'000, 'b'), Lane::kBulk);
    return dropped && accepted.size() == 1;
  }));
  CHECK(a->send(peer, "a heartbeat", Lane::kControl));
  Bytes read(200, '\0');
  size_t size = 0;
  REQUIRE(loop.run_until([&] { return accepted.size() == 2; }));
  accepted[1].async_read_some(boost::asio::buffer(read),
                              [&](const boost::system::error_code&, size_t got) { size = got; });
  REQUIRE(loop.run_until([&] { return size != 0; }));
  CHECK(BytesView(read).substr(0, size).ends_with("a heartbeat"));
  acceptor.close();
  loop.run_until([turns = 20]() mutable { return turns-- == 0; });
}

TEST_CASE("connections of the control lane stay with the first shard") {
  Loop loop;
  TcpTransportOptions own;
  own.listen = false;
  auto second = loop.open(own);
  TcpTransportOptions options;
  options.shard_count = 2;
  options.hand_over = [&](uint32_t, Accepted accepted) { second->adopt(std::move(accepted)); };
  auto first = loop.open(options);
  int at_first = 0, at_second = 0;
  first->set_receive_handler([&](const Bytes&) { ++at_first; });
  second->set_receive_handler([&](const Bytes&) { ++at_second; });
  Envelope envelope;
  envelope.verb = Verb::kHeartbeat;
  Bytes message;
  encode_envelope(envelope, message);
  std::vector<std::unique_ptr<TcpTransport>> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(loop.open(own));
    peers.back()->send(at(*first), message, Lane::kControl);
  }
  CHECK(loop.run_until([&] { return at_first == 4; }));
  CHECK(at_second == 0);
}

TEST_CASE("a stranger on the internode port is shown out, others are served on") {
  Loop loop;
  auto a = loop.open(), b = loop.open();
  int received = 0;
  b->set_receive_handler([&](const Bytes&) { ++received; });
  CHECK(is_shown_out(loop, *b, "GET / HTTP/1.1\r\n\r\n"));
  a->send(at(*b), "hello", Lane::kRequests);
  CHECK(loop.run_until([&] { return received == 1; }));
}

TEST_CASE("a connection that is refused again and again is logged once a minute") {
  Loop loop;
  const auto log = std::make_shared<tests::KeptLines>();
  TcpTransportOptions options;
  options.listen_port = 0;
  const auto opened = TcpTransport::open(loop.io, loop.reactor, options, Logger(log, "rpc"));
  REQUIRE(opened);
  const auto be_refused = [&](const std::string& said) {
    CHECK(is_shown_out(loop, **opened, said));
  };
  for (int i = 0; i < 20; ++i) be_refused("GET / HTTP/1.1\r\n\r\n");
  REQUIRE(log->lines.size() == 1);
  CHECK(log->lines[0].ends_with("not_logged_before=0"));
  be_refused("\x16\x03\x01 another reason");
  CHECK(log->lines.size() == 2);
  loop.reactor.advance_us(60'000'000);
  be_refused("GET / HTTP/1.1\r\n\r\n");
  REQUIRE(log->lines.size() == 3);
  CHECK(log->lines[2].ends_with("not_logged_before=19"));
}

TEST_CASE("who does not show the cluster's secret is logged once a minute, too") {
  Loop loop;
  const auto log = std::make_shared<tests::KeptLines>();
  base::Random random(1);
  const auto secret = std::make_shared<ClusterSecret>();
  secret->secret.text = "the secret of our cluster";
  TcpTransportOptions options;
  options.listen_port = 0;
  options.secret = secret;
  options.random = &random;
  const auto opened = TcpTransport::open(loop.io, loop.reactor, options, Logger(log, "rpc"));
  REQUIRE(opened);
  for (int i = 0; i < 20; ++i) CHECK(is_shown_out(loop, **opened, "GET / HTTP/1.1\r\n\r\n"));
  CHECK(log->lines.size() == 1);
}

TEST_CASE("a transport may be destroyed with everything under way") {
  Loop loop;
  auto b = loop.open();
  for (int i = 0; i < 20; ++i) {
    auto a = loop.open();
    b->set_receive_handler([](const Bytes&) {});
    a->send(at(*b), Bytes(1'000'000, 'x'), Lane::kRequests);
    a->send(at(*a), "self", Lane::kRequests);
    int turns = i;
    loop.run_until([&] { return turns-- == 0; });
    a.reset();
  }
  b.reset();
  loop.run_until([turns = 50]() mutable { return turns-- == 0; });
}

TEST_CASE("connections are given to the shards in turn") {
  Loop loop;
  TcpTransportOptions own;
  own.listen = false;
  auto second = loop.open(own);  // another shard's, here in the same thread
  TcpTransportOptions options;
  options.shard_count = 2;
  options.hand_over = [&](uint32_t shard, Accepted accepted) {
    CHECK(shard == 1);
    second->adopt(std::move(accepted));
  };
  auto first = loop.open(options);
  int at_first = 0, at_second = 0;
  first->set_receive_handler([&](const Bytes&) { ++at_first; });
  second->set_receive_handler([&](const Bytes&) { ++at_second; });
  std::vector<std::unique_ptr<TcpTransport>> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(loop.open(own));
    peers.back()->send(at(*first), "hello", Lane::kRequests);
  }
  CHECK(loop.run_until([&] { return at_first == 2 && at_second == 2; }));
}

TEST_CASE("a port that is taken and an address that is none are refused") {
  Loop loop;
  auto a = loop.open();
  TcpTransportOptions options;
  options.listen_port = a->port();
  const auto taken = TcpTransport::open(loop.io, loop.reactor, options, Logger());
  REQUIRE_FALSE(taken.has_value());
  CHECK(taken.error().code == ErrorCode::kIo);
  options.listen_address = "nonsense";
  CHECK_FALSE(TcpTransport::open(loop.io, loop.reactor, options, Logger()).has_value());
}

}  // namespace tetrad::replication
