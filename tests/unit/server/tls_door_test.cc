// SPDX-License-Identifier: Apache-2.0
// Clients over pairs of sockets, whose other ends are taken to the door. The test's thread is the
// shard's.
#include "server/connection/tls_door.h"

#include <condition_variable>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "server/connection/client_tls.h"
#include "server/runtime/asio_reactor.h"
#include "tests/support/certificate_folder.h"

namespace tetrad::server {
namespace {

using base::TlsSession;
using How = Entrant::How;

using tests::CertificateFolder;

std::shared_ptr<base::TlsCredentials> credentials_in(const CertificateFolder& folder) {
  base::TlsFiles files = folder.node();
  files.authority.clear();  // clients are asked for nothing
  auto made = base::TlsCredentials::open(files, base::TlsPeer::kUnasked);
  REQUIRE(made);
  return *made;
}

/// A client's end, and its session if it speaks TLS.
struct Client {
  void send(BytesView bytes) const {
    REQUIRE(::send(*socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  /// Of what the door has sent; "": it has closed.
  Bytes receive() const {
    Bytes room(65'536, 0);
    const ssize_t size = ::recv(*socket, room.data(), room.size(), 0);
    room.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return room;
  }
  Bytes hello() {
    CHECK(session->handshake() == false);
    return std::exchange(session->out(), {});
  }
  /// Answers the server until there is nothing more to answer.
  void shake_hands() {
    send(hello());
    Result<bool> is_over = false;
    while (is_over && !*is_over) {
      session->feed(receive());
      is_over = session->handshake();
    }
    REQUIRE(is_over);
    send(std::exchange(session->out(), {}));
  }
  base::OpenFile socket;
  std::unique_ptr<TlsSession> session;
  TlsDoor::Id id;
};

struct Place {
  Place() {
    auto made = base::TlsContext::load({"", "", folder.file("ca.pem")}, base::TlsPeer::kRequired);
    REQUIRE(made);
    trusting = *made;
    door = std::make_unique<TlsDoor>(reactor, credentials_in(folder), begun,
                                     [this](TlsDoor::Id id, Entrant entrant) {
                                       CHECK_FALSE(let_in.contains(id));
                                       let_in.emplace(id, std::move(entrant));
                                     });
  }
  Client client(uint64_t origin = 0) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    const timeval most{.tv_sec = 30, .tv_usec = 0};  // a test that would wait for ever fails
    ::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    auto session = TlsSession::make(trusting, TlsSession::Role::kClient);
    REQUIRE(session);
    return {base::OpenFile(ends[0]), std::move(*session),
            door->take(base::OpenFile(ends[1]), origin)};
  }
  const Entrant& wait_for(TlsDoor::Id id) {
    reactor.run_until([&] { return let_in.contains(id); });
    return let_in.at(id);
  }

  const CertificateFolder folder;
  AsioReactor reactor;
  base::Counter begun;
  std::shared_ptr<const base::TlsContext> trusting;
  std::map<TlsDoor::Id, Entrant> let_in;
  std::unique_ptr<TlsDoor> door;
};

TEST_CASE("a handshake ends at the door, with what the client has asked already", "[tls]") {
  Place place;
  Client client = place.client();
  client.shake_hands();
  REQUIRE(client.session->write("question"));
  client.send(std::exchange(client.session->out(), {}));
  const Entrant& entrant = place.wait_for(client.id);
  REQUIRE(entrant.how == How::kOpen);
  // Nobody has to say a word for it, and who does may be let in before that has come.
  Bytes asked = entrant.first;
  char room[100];
  while (asked.size() < 8) {
    const ssize_t size = ::recv(*entrant.socket, room, sizeof room, 0);
    if (size > 0) entrant.session->feed(BytesView(room, static_cast<size_t>(size)));
    const auto got = entrant.session->read(room, sizeof room);
    REQUIRE(got);
    asked.append(room, *got);
  }
  CHECK(asked == "question");
  CHECK(place.begun.value() == 1);
  CHECK(entrant.sent_bytes > 500);
  CHECK(entrant.received_bytes > 200);

  Client prompt = place.client();
  prompt.send(prompt.hello());
  prompt.session->feed(prompt.receive());
  CHECK(prompt.session->handshake() == true);
  REQUIRE(prompt.session->write("question"));
  prompt.send(prompt.session->out());  // the last word and the question at once
  CHECK(place.wait_for(prompt.id).how == How::kOpen);
  CHECK(place.let_in.at(prompt.id).first == "question");
}

TEST_CASE("a handshake may come byte by byte", "[tls]") {
  Place place;
  Client client = place.client();
  for (const char byte : client.hello()) client.send(BytesView(&byte, 1));
  client.session->feed(client.receive());
  CHECK(client.session->handshake() == true);
  for (const char byte : std::exchange(client.session->out(), {})) client.send(BytesView(&byte, 1));
  CHECK(place.wait_for(client.id).how == How::kOpen);
}

TEST_CASE("who speaks without TLS is let in with what he has said", "[tls]") {
  Place place;
  const Client client = place.client();
  client.send("\x05options");
  const Entrant& entrant = place.wait_for(client.id);
  CHECK(entrant.how == How::kPlain);
  CHECK(entrant.session == nullptr);
  CHECK(entrant.first == "\x05options");
  CHECK(place.begun.value() == 0);
}

TEST_CASE("what is no handshake fails with an alert", "[tls]") {
  Place place;
  Client client = place.client();
  Bytes hello = client.hello();
  hello[5] = 0x55;  // the kind of the message, behind the head of the record
  client.send(hello);
  const Entrant& entrant = place.wait_for(client.id);
  REQUIRE(entrant.how == How::kFailed);
  CHECK_FALSE(entrant.why.empty());
  CHECK(client.receive().front() == base::kTlsAlertByte);
}

TEST_CASE("a client may go at any point of the handshake", "[tls]") {
  Place place;
  const size_t size = place.client().hello().size();
  for (size_t cut = 0; cut <= size; cut += 13) {
    TlsDoor::Id id = 0;
    {
      Client client = place.client();
      id = client.id;
      if (cut != 0) client.send(BytesView(client.hello()).substr(0, cut));
    }
    CHECK(place.wait_for(id).how == How::kGone);
    CHECK_FALSE(place.let_in.at(id).socket.is_open());
  }
}

TEST_CASE("who takes nothing is waited for without work, and goes on when he takes it", "[tls]") {
  Place place;
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const Bytes filler(1000, 'x');
  size_t filled = 0;
  for (ssize_t size = 0; size >= 0; filled += static_cast<size_t>(std::max<ssize_t>(size, 0)))
    size = ::send(ends[1], filler.data(), filler.size(), 0);
  auto session = TlsSession::make(place.trusting, TlsSession::Role::kClient);
  REQUIRE(session);
  Client client{base::OpenFile(ends[0]), std::move(*session),
                place.door->take(base::OpenFile(ends[1]), 0)};
  client.send(client.hello());
  while (place.begun.value() == 0) std::this_thread::yield();
  client.send("\x14");
  const auto worked_ms = [] {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  };
  const int64_t before_ms = worked_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(worked_ms() - before_ms < 40);
  // The rest of a record that it may begin with the byte: what a client of TLS 1.3 may put in.
  client.send(BytesView("\x03\x03\x00\x01\x01", 5));
  Bytes got;
  while (got.size() <= filled) got += client.receive();
  client.session->feed(BytesView(got).substr(filled));
  while (true) {
    const auto is_over = client.session->handshake();
    REQUIRE(is_over);
    if (*is_over) break;
    client.session->feed(client.receive());
  }
  client.send(client.session->out());
  CHECK(place.wait_for(client.id).how == How::kOpen);
}

/// A client that has said `words` and hung up, before the door knows of him.
base::OpenFile left_behind(BytesView words) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  const base::OpenFile client(ends[0]);
  REQUIRE(::send(*client, words.data(), words.size(), 0) == static_cast<ssize_t>(words.size()));
  return base::OpenFile(ends[1]);
}

TEST_CASE("no handshake is begun with who has hung up", "[tls]") {
  Place place;
  const Bytes hello = place.client().hello();
  const TlsDoor::Id gone = place.door->take(left_behind(hello), 0);
  CHECK(place.wait_for(gone).how == How::kGone);
  CHECK(place.begun.value() == 0);
  const TlsDoor::Id silent = place.door->take(left_behind(""), 0);
  CHECK(place.wait_for(silent).how == How::kGone);
  // What was asked without TLS is done, as on a port without it.
  const TlsDoor::Id plain = place.door->take(left_behind("\x05options"), 0);
  CHECK(place.wait_for(plain).how == How::kPlain);
  CHECK(place.let_in.at(plain).first == "\x05options");
}

/// Holds the door's thread at the first client that it lets in, until the test goes on.
class HeldReactor final : public base::Reactor {
 public:
  base::MonotonicUs now_us() const override { return 0; }
  int64_t wall_time_us() const override { return 0; }
  int64_t boot_time_us() const override { return 0; }
  void post(base::Callback) override {}
  void at_turn_end(base::Callback) override {}
  TimerId call_at(base::MonotonicUs, base::Callback) override { return 1; }
  void cancel(TimerId) override {}
  void post_from_any_thread(base::Callback callback) override {
    std::unique_lock lock(mutex_);
    posted_.push_back(std::move(callback));
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_released_; });
  }
  void wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return posted_.size() == count; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    changed_.notify_all();
  }
  void run() {
    for (base::Callback& callback : posted_) callback();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<base::Callback> posted_;
  bool is_released_ = false;
};

/// In which order clients of these origins are served that have come together, by index.
std::vector<size_t> served(const std::vector<uint64_t>& origins,
                           std::chrono::milliseconds patience) {
  const CertificateFolder folder;
  HeldReactor reactor;
  base::Counter begun;
  std::vector<TlsDoor::Id> ids, let_in;
  TlsDoor door(
      reactor, credentials_in(folder), begun,
      [&](TlsDoor::Id id, const Entrant&) { let_in.push_back(id); }, patience);
  const TlsDoor::Id first = door.take(left_behind("\x05"), 7);
  reactor.wait_for(1);
  for (const uint64_t origin : origins) ids.push_back(door.take(left_behind("\x05"), origin));
  reactor.release();
  reactor.wait_for(1 + ids.size());
  reactor.run();
  CHECK(let_in.front() == first);
  std::vector<size_t> out;
  for (size_t i = 1; i < let_in.size(); ++i)
    out.push_back(static_cast<size_t>(std::ranges::find(ids, let_in[i]) - ids.begin()));
  return out;
}

TEST_CASE("origins take turns, and of one the first comes first", "[tls]") {
  CHECK(served({1, 1, 1, 1, 2, 3, 3}, std::chrono::hours(1)) ==
        std::vector<size_t>{0, 4, 5, 1, 6, 2, 3});
}

TEST_CASE("while clients wait for too long the last comes first", "[tls]") {
  CHECK(served({1, 1, 1, 1, 2}, std::chrono::milliseconds(-1)) ==
        std::vector<size_t>{3, 4, 2, 1, 0});
}

TEST_CASE("what is dropped is closed, and let in no more", "[tls]") {
  Place place;
  Client silent = place.client(), begun = place.client(), half = place.client();
  begun.send(begun.hello());
  CHECK_FALSE(begun.receive().empty());
  half.send(BytesView(half.hello()).substr(0, 20));
  for (const Client* client : {&silent, &begun, &half}) {
    place.door->drop(client->id);
    CHECK(client->receive().empty());
  }
  const Client last = place.client();
  last.send("\x05");
  place.wait_for(last.id);
  CHECK(place.let_in.size() == 1);
  place.door->drop(last.id);  // too late, and harmless
}

TEST_CASE("of too many handshakes the oldest gives way", "[tls]") {
  Place place;
  std::vector<Client> clients;
  for (size_t i = 0; i < kHandshakesMax + 2; ++i) {
    clients.push_back(place.client());
    clients.back().send("\x16");
    // One after the other, or their order would be chance.
    while (place.begun.value() <= i) std::this_thread::yield();
  }
  CHECK(place.wait_for(clients[0].id).how == How::kGaveWay);
  CHECK(place.wait_for(clients[1].id).how == How::kGaveWay);
  CHECK(place.let_in.size() == 2);
  // Who is silent is in nobody's way, and nobody in his.
  Client late = place.client();
  late.shake_hands();
  CHECK(place.wait_for(late.id).how == How::kOpen);
  CHECK(place.wait_for(clients[2].id).how == How::kGaveWay);
}

TEST_CASE("of too many handshakes one of the origin that has most gives way", "[tls]") {
  Place place;
  std::vector<Client> clients;
  const auto begin = [&](uint64_t origin) {
    const uint64_t before = place.begun.value();
    clients.push_back(place.client(origin));
    clients.back().send("\x16");
    while (place.begun.value() == before) std::this_thread::yield();
  };
  begin(1);
  for (size_t i = 1; i < kHandshakesMax; ++i) begin(i % 3 == 0 ? 3 : 2);
  begin(2);
  CHECK(place.wait_for(clients[1].id).how == How::kGaveWay);  // the oldest of origin 2
  begin(4);
  CHECK(place.wait_for(clients[2].id).how == How::kGaveWay);
  CHECK(place.let_in.size() == 2);
}

TEST_CASE("a door closes with clients before it", "[tls]") {
  Place place;
  Client silent = place.client(), begun = place.client(), over = place.client();
  begun.send(begun.hello());
  over.shake_hands();
  CHECK(place.wait_for(over.id).how == How::kOpen);
  for (int i = 0; i < 40; ++i) {
    auto session = TlsSession::make(place.trusting, TlsSession::Role::kClient);
    REQUIRE(session);
    place.door->forget(std::move(*session));
  }
  place.door.reset();
  CHECK(silent.receive().empty());
  while (!begun.receive().empty()) {
  }
}

}  // namespace
}  // namespace tetrad::server
