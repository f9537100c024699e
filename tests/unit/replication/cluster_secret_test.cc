// SPDX-License-Identifier: Apache-2.0
// The secret of a cluster: its proof without sockets, and transports that ask for it.
#include "replication/rpc/cluster_secret.h"

#include <array>
#include <span>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "base/hash.h"
#include "replication/rpc/frame.h"
#include "tests/support/hex.h"
#include "tests/unit/replication/transport_loop.h"

namespace tetrad::replication {

namespace {

using boost::asio::ip::tcp;
using tests::from_hex;

std::shared_ptr<const ClusterSecret> secret_of(BytesView text, bool required = true) {
  auto out = std::make_shared<ClusterSecret>();
  out->secret.text = text;
  out->required = required;
  return out;
}

/// Words of eight bytes that follow each other: 0001...07, 0809...0f and on.
template <uint8_t first>
void count_up(std::span<uint64_t> words) {
  // Words are given out from the last one on.
  uint8_t next = first;
  for (size_t i = words.size(); i-- > 0;) {
    words[i] = 0;
    for (int k = 0; k < 8; ++k) words[i] = words[i] << 8 | next++;
  }
}

/// Gives each end what the other one says until nobody speaks.
struct Talk {
  Talk(std::shared_ptr<const ClusterSecret> of_opener,
       std::shared_ptr<const ClusterSecret> of_acceptor)
      : opener(std::move(of_opener), random), acceptor(std::move(of_acceptor), random) {
    while (!opener.out().empty() || !acceptor.out().empty()) {
      const Bytes to_acceptor = std::exchange(opener.out(), {});
      if (!to_acceptor.empty() && accepted) accepted = acceptor.take(to_acceptor);
      const Bytes to_opener = std::exchange(acceptor.out(), {});
      if (!to_opener.empty() && opened) opened = opener.take(to_opener);
    }
  }
  base::Random random{1};
  OpenerProof opener;
  AcceptorProof acceptor;
  Result<bool> opened = false, accepted = false;
};

/// Transports with secrets.
struct Cluster : Loop {
  std::unique_ptr<TcpTransport> open_with(BytesView secret, bool required = true) {
    TcpTransportOptions options;
    if (!secret.empty()) options.secret = secret_of(secret, required);
    options.random = &random;
    return open(options);
  }
  /// Sends until the peer has it, or this one knows why it does not.
  std::string refusal(TcpTransport& from, TcpTransport& to) {
    bool arrived = false;
    to.set_receive_handler([&](const Bytes&) { arrived = true; });
    int turn = 0;
    REQUIRE(run_until([&] {
      if (++turn % 20 == 1) from.send(at(to), "hello", Lane::kControl);
      return arrived || !from.refusal(at(to)).empty();
    }));
    to.set_receive_handler(nullptr);
    return arrived ? "" : from.refusal(at(to));
  }
  base::Random random{7};
};

/// A connection that a test speaks over by itself.
struct Stranger {
  Stranger(Loop& in, const TcpTransport& to) : loop(in), socket(in.io) {
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), to.port()});
  }
  void say(BytesView bytes) { boost::asio::write(socket, boost::asio::buffer(bytes)); }
  /// Reads that many bytes, or until the end.
  Bytes hear(size_t size) {
    Bytes out(size, '\0');
    bool done = false;
    boost::asio::async_read(socket, boost::asio::buffer(out),
                            [&](const boost::system::error_code&, size_t got) {
                              out.resize(got);
                              done = true;
                            });
    REQUIRE(loop.run_until([&] { return done; }));
    return out;
  }
  Loop& loop;
  tcp::socket socket;
};

constexpr BytesView kOurs = "the secret of our cluster", kTheirs = "the secret of another one";

}  // namespace

TEST_CASE("the example of a proof is what it says") {
  const Bytes example = from_hex(
      "544554524144 8001 202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
      "01 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
      "fc6295a9380a763728f170318e0c1f9350eeff01a91f2af6151c77e8b892732c"
      "02 0020b9b16616bb571cdb6e309fb266ddf92b0faecd18dc005a31d37ba9ee48e0");
  const BytesView hello = BytesView(example).substr(0, 40),
                  challenge = BytesView(example).substr(40, 33),
                  proof = BytesView(example).substr(73, 32),
                  answer = BytesView(example).substr(105);
  base::Random of_opener(count_up<0x20>), of_acceptor(count_up<0>);
  const auto secret = secret_of("0123456789abcdef");
  OpenerProof opener(secret, of_opener);
  AcceptorProof acceptor(secret, of_acceptor);
  CHECK(std::exchange(opener.out(), {}) == hello);
  CHECK(acceptor.take(hello) == false);
  CHECK(std::exchange(acceptor.out(), {}) == challenge);
  CHECK(opener.take(challenge) == false);
  CHECK(std::exchange(opener.out(), {}) == proof);
  CHECK(acceptor.take(Bytes(proof) + "its stream") == true);
  CHECK(acceptor.rest() == "its stream");
  CHECK(acceptor.out() == answer);
  CHECK(opener.take(answer) == true);
  // The same by the words of the grammar.
  const Bytes a(challenge.substr(1)), b(hello.substr(8));
  const auto by_hand = base::hmac_sha256("0123456789abcdef", "tetrad opener" + a + b);
  CHECK(BytesView(reinterpret_cast<const char*>(by_hand.data()), by_hand.size()) == proof);
}

TEST_CASE("both ends prove the secret, or each says what is wrong") {
  Talk same(secret_of(kOurs), secret_of(kOurs));
  CHECK(same.opened == true);
  CHECK(same.accepted == true);
  for (const bool required : {false, true}) {
    Talk other(secret_of(kTheirs, required), secret_of(kOurs, required));
    CHECK(other.accepted.error().message ==
          "its secret of the cluster is another one (cluster_secret_file)");
    CHECK(other.opened.error().message ==
          "its secret of the cluster is another one (cluster_secret_file)");
  }
}

TEST_CASE("an opener without a secret may come in only where none is required") {
  base::Random random(1);
  AcceptorProof strict(secret_of(kOurs), random), lax(secret_of(kOurs, false), random);
  for (const char c : kStreamPreface.substr(0, 7)) {
    CHECK(strict.take(BytesView(&c, 1)) == false);
    CHECK(lax.take(BytesView(&c, 1)) == false);
  }
  CHECK(strict.take(kStreamPreface.substr(7)).error().message ==
        "it does not show the cluster's secret, which this node demands (cluster_secret_file)");
  CHECK(strict.out() == "\x81");
  CHECK(lax.take(Bytes(kStreamPreface.substr(7)) + "more") == true);
  CHECK(lax.rest() == Bytes(kStreamPreface) + "more");
  AcceptorProof of_garbage(secret_of(kOurs, false), random);
  CHECK_FALSE(of_garbage.take("GET / HTTP/1.1\r\n"));
  CHECK(of_garbage.out().empty());
}

TEST_CASE("a proof that was good once, or the other side's own, is good no more") {
  base::Random random(1);
  const auto secret = secret_of(kOurs);
  OpenerProof opener(secret, random);
  AcceptorProof first(secret, random), second(secret, random);
  const Bytes hello = std::exchange(opener.out(), {});
  REQUIRE(first.take(hello) == false);
  REQUIRE(second.take(hello) == false);
  REQUIRE(opener.take(first.out()) == false);
  const Bytes proof = std::exchange(opener.out(), {});
  REQUIRE(first.take(proof) == true);
  CHECK_FALSE(second.take(proof));
  // What an opener has proved does not prove the acceptor.
  CHECK_FALSE(opener.take("\x02" + proof));
}

TEST_CASE("an opener takes nothing but the proof from who accepts") {
  for (const Bytes& said :
       {Bytes("HTTP/1.1 400"), Bytes("\x15\x03\x03"), Bytes("\x83"), Bytes("\x81"),
        Bytes("\x02") + Bytes(32, 'x'), Bytes("\x01") + Bytes(33, 'x')}) {
    base::Random random(1);
    OpenerProof opener(secret_of(kOurs), random);
    opener.out().clear();
    CHECK_FALSE(opener.take(said));
    CHECK(opener.out().empty());
  }
  base::Random random(1);
  OpenerProof opener(secret_of(kOurs), random);
  REQUIRE(opener.take("\x01" + Bytes(32, 'x')) == false);
  CHECK(opener.take("\x02" + Bytes(32, 'x')).error().message ==
        "it does not prove that it has the cluster's secret (cluster_secret_file)");
}

TEST_CASE("messages arrive whole and in order between nodes with the secret") {
  Cluster loop;
  auto a = loop.open_with(kOurs), b = loop.open_with(kOurs);
  std::vector<Bytes> received, sent;
  b->set_receive_handler([&](Bytes message) { received.push_back(std::move(message)); });
  base::Random random(1);
  for (int i = 0; i < 300; ++i) {
    sent.emplace_back(10 + random.below(i % 50 == 0 ? 3'000'000 : 3'000), static_cast<char>(i));
    a->send(at(*b), sent.back(), Lane::kRequests);
  }
  REQUIRE(loop.run_until([&] { return received.size() == sent.size(); }));
  CHECK(received == sent);
  CHECK(a->refusal(at(*b)).empty());
}

TEST_CASE("a connection with the secret is handed to another shard with what came first") {
  Cluster loop;
  TcpTransportOptions own;
  own.listen = false;
  own.secret = secret_of(kOurs);
  own.random = &loop.random;
  auto second = loop.open(own);
  TcpTransportOptions options = own;
  options.listen = true;
  options.shard_count = 2;
  options.hand_over = [&](uint32_t, Accepted accepted) { second->adopt(std::move(accepted)); };
  auto first = loop.open(options);
  int at_first = 0, at_second = 0;
  first->set_receive_handler([&](const Bytes& message) { at_first += message == "hello"; });
  second->set_receive_handler([&](const Bytes& message) { at_second += message == "hello"; });
  std::vector<std::unique_ptr<TcpTransport>> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(loop.open(own));
    peers.back()->send(at(*first), "hello", Lane::kRequests);
  }
  CHECK(loop.run_until([&] { return at_first == 2 && at_second == 2; }));
}

TEST_CASE("nodes that disagree about the secret send each other nothing, and know why") {
  Cluster loop;
  auto ours = loop.open_with(kOurs), theirs = loop.open_with(kTheirs), plain = loop.open_with("");
  CHECK(loop.refusal(*ours, *theirs) ==
        "its secret of the cluster is another one (cluster_secret_file)");
  CHECK(loop.refusal(*ours, *plain) ==
        "it has no secret of the cluster, which this node demands (cluster_secret_file)");
  CHECK(loop.refusal(*plain, *ours) ==
        "it demands the cluster's secret, and this node has none (cluster_secret_file)");
}

TEST_CASE("a running cluster is given a secret, and another one, node by node") {
  // Each row: the two nodes of one step.
  const std::array<std::array<std::pair<BytesView, bool>, 2>, 5> steps = {{
      {{{"", true}, {kOurs, false}}},
      {{{kOurs, false}, {kOurs, true}}},
      {{{kOurs, true}, {kOurs, false}}},
      {{{kOurs, false}, {kTheirs, false}}},
      {{{kTheirs, false}, {kTheirs, true}}},
  }};
  for (const auto& step : steps) {
    CAPTURE(step[0].first, step[0].second, step[1].first, step[1].second);
    Cluster loop;
    auto a = loop.open_with(step[0].first, step[0].second);
    auto b = loop.open_with(step[1].first, step[1].second);
    int received = 0;
    for (auto* node : {a.get(), b.get()})
      node->set_receive_handler([&](const Bytes&) { ++received; });
    a->send(at(*b), "not lost", Lane::kRequests);
    b->send(at(*a), "not lost", Lane::kRequests);
    CHECK(loop.run_until([&] { return received == 2; }));
  }
  Cluster loop;
  auto lax = loop.open_with(kTheirs, false), strict = loop.open_with(kOurs);
  CHECK(loop.refusal(*lax, *strict) ==
        "it demands the cluster's secret, and this node has another one (cluster_secret_file)");
  CHECK(loop.refusal(*strict, *lax) ==
        "its secret of the cluster is another one (cluster_secret_file)");
}

TEST_CASE("a peer that speaks byte by byte is let in, and no byte of a stranger gets further") {
  Cluster loop;
  auto node = loop.open_with(kOurs);
  std::vector<Bytes> received;
  node->set_receive_handler([&](Bytes message) { received.push_back(std::move(message)); });
  Bytes stream(kStreamPreface);
  append_frame("a message", stream);
  const auto slowly = [&](Stranger& to, BytesView bytes) {
    for (const char& c : bytes) {
      to.say(BytesView(&c, 1));
      loop.run_until([turns = 2]() mutable { return turns-- == 0; });
    }
  };
  OpenerProof opener(secret_of(kOurs), loop.random);
  Stranger slow(loop, *node);
  slowly(slow, std::exchange(opener.out(), {}));
  REQUIRE(opener.take(slow.hear(33)) == false);
  slowly(slow, std::exchange(opener.out(), {}));
  REQUIRE(opener.take(slow.hear(33)) == true);
  slowly(slow, stream);
  CHECK(loop.run_until([&] { return received.size() == 1; }));

  received.clear();
  // The stream at once, behind no proof, and behind a hello with a proof that was made up.
  for (const Bytes& said :
       {stream, Bytes(kSecretPreface) + Bytes(64, 'x') + stream, Bytes("GET / HTTP/1.1\r\n\r\n"),
        Bytes("\x16\x03\x01\x00\x05"), Bytes(1'000, '\0'),
        Bytes(kSecretPreface.substr(0, 7)) + "\x02" + stream}) {
    Stranger stranger(loop, *node);
    stranger.say(said);
    CHECK(stranger.hear(1'000).size() <= 34);
  }
  CHECK(received.empty());
}

TEST_CASE("connections that do not prove the secret are ended, and many cost a bounded number") {
  Cluster loop;
  auto node = loop.open_with(kOurs);
  int received = 0, ended = 0;
  node->set_receive_handler([&](const Bytes&) { ++received; });
  std::vector<std::unique_ptr<Stranger>> silent;
  std::array<char, 64> room;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(std::make_unique<Stranger>(loop, *node));
    silent.back()->socket.async_read_some(
        boost::asio::buffer(room),
        [&](const boost::system::error_code& error, size_t) { ended += static_cast<bool>(error); });
  }
  CHECK(loop.run_until([&] { return ended == 200 - 128; }));
  auto peer = loop.open_with(kOurs);
  peer->send(at(*node), "hello", Lane::kRequests);
  CHECK(loop.run_until([&] { return received == 1; }));
  loop.reactor.advance_us(5'000'000);
  CHECK(loop.run_until([&] { return ended == 200; }));
}

TEST_CASE("a transport with a secret may be destroyed with everything under way") {
  Cluster loop;
  auto b = loop.open_with(kOurs);
  for (int i = 0; i < 20; ++i) {
    auto a = loop.open_with(kOurs);
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
