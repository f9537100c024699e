// SPDX-License-Identifier: Apache-2.0
// Transports that speak TLS. Who is refused, and the words for it, are tests of processes
// (tests/tls/test_nodes.py).

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "base/random.h"
#include "tests/support/certificate_folder.h"
#include "tests/unit/replication/transport_loop.h"

namespace tetrad::replication {

namespace {

/// The certificates of a cluster, and of a stranger's.
struct Certificates {
  TcpTransportOptions options() const { return options_in(ours); }
  static TcpTransportOptions options_in(const tests::CertificateFolder& folder) {
    auto credentials = base::TlsCredentials::open(folder.node(), base::TlsPeer::kServerRequired);
    REQUIRE(credentials);
    TcpTransportOptions out;
    out.encryption = InternodeEncryption::kAll;
    out.credentials = *credentials;
    return out;
  }
  tests::CertificateFolder ours, theirs;
};

}  // namespace

TEST_CASE("messages arrive whole and in order over TLS") {
  const Certificates certificates;
  Loop loop;
  auto a = loop.open(certificates.options());
  auto b = loop.open(certificates.options());
  std::vector<Bytes> received;
  b->set_receive_handler([&](Bytes message) { received.push_back(std::move(message)); });
  base::Random random(1);
  std::vector<Bytes> sent;
  for (int i = 0; i < 300; ++i) {
    sent.emplace_back(10 + random.below(i % 50 == 0 ? 3'000'000 : 3'000), static_cast<char>(i));
    a->send(at(*b), sent.back(), Lane::kRequests);
  }
  REQUIRE(loop.run_until([&] { return received.size() == sent.size(); }));
  CHECK(received == sent);
  CHECK(a->queued_bytes(at(*b)) == 0);
}

TEST_CASE("a connection with TLS is handed to another shard with what came first") {
  const Certificates certificates;
  Loop loop;
  auto own = certificates.options();
  own.listen = false;
  auto second = loop.open(own);
  auto options = certificates.options();
  options.shard_count = 2;
  options.hand_over = [&](uint32_t, Accepted accepted) { second->adopt(std::move(accepted)); };
  options.off_loop = [&](base::Callback work, base::Callback done) {
    loop.reactor.post([work = std::move(work), done = std::move(done)]() mutable {
      work();
      done();
    });
  };
  auto first = loop.open(options);
  int at_first = 0, at_second = 0;
  first->set_receive_handler([&](const Bytes&) { ++at_first; });
  second->set_receive_handler([&](const Bytes& message) { at_second += message == "hello"; });
  std::vector<std::unique_ptr<TcpTransport>> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(loop.open(own));
    peers.back()->send(at(*first), "hello", Lane::kRequests);
  }
  CHECK(loop.run_until([&] { return at_first == 2 && at_second == 2; }));
  for (const auto& peer : peers) peer->send(at(*first), "hello", Lane::kRequests);
  CHECK(loop.run_until([&] { return at_first == 4 && at_second == 4; }));
}

TEST_CASE("messages of strangers, and of who speaks without TLS, do not arrive") {
  const Certificates certificates;
  Loop loop;
  auto node = loop.open(certificates.options());
  auto peer = loop.open(certificates.options());
  auto stranger = loop.open(certificates.options_in(certificates.theirs));
  auto plain = loop.open();
  std::vector<Bytes> received;
  node->set_receive_handler([&](Bytes message) { received.push_back(std::move(message)); });
  for (int i = 0; i < 20; ++i) {
    stranger->send(at(*node), "from a stranger", Lane::kControl);
    plain->send(at(*node), "in clear", Lane::kControl);
    int turns = 100;
    loop.run_until([&] { return turns-- == 0; });
  }
  CHECK(received.empty());
  peer->send(at(*node), "from a peer", Lane::kControl);
  CHECK(loop.run_until([&] { return !received.empty(); }));
  CHECK(received == std::vector<Bytes>{"from a peer"});
}

TEST_CASE("while a cluster changes over nothing that waits for a connection is lost") {
  const Certificates certificates;
  Loop loop;
  auto both = certificates.options();
  both.encryption = InternodeEncryption::kOptional;
  auto plain = loop.open(), optional = loop.open(both), tls = loop.open(certificates.options());
  int received = 0;
  for (auto* node : {plain.get(), optional.get(), tls.get()})
    node->set_receive_handler([&](const Bytes&) { ++received; });
  plain->send(at(*optional), "hello", Lane::kRequests);
  optional->send(at(*plain), "hello", Lane::kRequests);
  optional->send(at(*tls), "hello", Lane::kRequests);
  tls->send(at(*optional), "hello", Lane::kRequests);
  CHECK(loop.run_until([&] { return received == 4; }));
}

TEST_CASE("a handshake that does not end is ended, and many cost a bounded number") {
  const Certificates certificates;
  Loop loop;
  auto node = loop.open(certificates.options());
  int received = 0, ended = 0;
  node->set_receive_handler([&](const Bytes&) { ++received; });
  std::vector<std::unique_ptr<boost::asio::ip::tcp::socket>> silent;
  char byte;
  for (int i = 0; i < 200; ++i) {
    auto socket = std::make_unique<boost::asio::ip::tcp::socket>(loop.io);
    socket->connect({boost::asio::ip::make_address("127.0.0.1"), node->port()});
    socket->async_read_some(
        boost::asio::buffer(&byte, 1),
        [&](const boost::system::error_code& error, size_t) { ended += static_cast<bool>(error); });
    silent.push_back(std::move(socket));
  }
  CHECK(loop.run_until([&] { return ended == 200 - 128; }));
  auto peer = loop.open(certificates.options());
  peer->send(at(*node), "hello", Lane::kRequests);
  CHECK(loop.run_until([&] { return received == 1; }));
  loop.reactor.advance_us(5'000'000);
  CHECK(loop.run_until([&] { return ended == 200; }));
}

TEST_CASE("a transport with TLS may be destroyed with everything under way") {
  const Certificates certificates;
  Loop loop;
  auto b = loop.open(certificates.options());
  for (int i = 0; i < 20; ++i) {
    auto a = loop.open(certificates.options());
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

}  // namespace tetrad::replication
