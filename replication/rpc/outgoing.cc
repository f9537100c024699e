// SPDX-License-Identifier: Apache-2.0
// A connection from its first message to its end:
//
//   1. Messages of a turn are queued, and the first flush connects; with TLS a handshake follows,
//      with a secret of the cluster a proof of it (cluster_secret.h).
//   2. What is queued is written as one piece; what comes meanwhile is the next one.
//   3. When it breaks, what was queued is dropped: callers hear of it by their deadlines. Nobody is tried
//      again before a pause that doubles; a word from the peer cuts it short (try_now).
//
// Handlers of a socket that was replaced know it by `connection`, which rises with each.
#include "replication/rpc/outgoing.h"

#include <charconv>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "base/assert.h"
#include "replication/rpc/frame.h"

namespace tetrad::replication {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Pauses after a failure double from less to half a second; a word from the peer may connect again
// 200 ms after an attempt began. A peer that acknowledges nothing for ten seconds is given up by
// TCP.
constexpr int64_t kBackoffLastUs = 500'000;
constexpr int64_t kConnectAgainUs = 200'000;
constexpr int kUserTimeoutMs = 10'000;
constexpr size_t kEncryptedAtOnce = 256 * 1024;  // bytes
constexpr int64_t kLastedUs = 1'000'000;         // a connection that did was no refusal
constexpr int64_t kSayAgainUs = 60'000'000;

/// "address:port" or "name:port" in its parts, an IPv6 address without its brackets.
Result<std::pair<std::string, uint16_t>> split_endpoint(const Endpoint& text) {
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] =
      std::from_chars(text.data() + (colon == std::string::npos ? 0 : colon + 1), end, port);
  if (colon == std::string::npos || colon == 0 || status != std::errc() || stop != end)
    return fail(ErrorCode::kConfig, "'{}' is not an address and a port", text);
  std::string address = text.substr(0, colon);
  if (address.size() >= 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  return std::pair(std::move(address), port);
}

}  // namespace

void set_socket_options(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const int timeout_ms = kUserTimeoutMs;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
               sizeof(timeout_ms));
}

// Framed at once: one buffer for the turn, written as one piece.
void Outgoing::queue(BytesView message) {
  append_frame(message, queued);
  ++queued_messages;
}

SentTraffic Outgoing::traffic_now() const {
  SentTraffic now = traffic;
  now.connections = state == State::kConnected ? 1 : 0;
  now.pending.add(queued_messages, queued.size());
  if (writing_messages != 0) now.pending.add(writing_messages, writing.size());
  return now;
}

void Outgoing::lose_queued() {
  traffic.lost.add(queued_messages, queued.size());
  queued.clear();
  queued_messages = 0;
}

void Outgoing::flush() {
  if (closed || queued.empty()) return;
  if (state == State::kIdle) {
    // Inside of a pause messages are dropped: their callers wait for deadlines shorter than what a
    // queue would keep.
    if (reactor.now_us() < not_before_us) {
      lose_queued();
      return;
    }
    connect();
  } else if (state == State::kConnected && !write_under_way) {
    write();
  }
}

void Outgoing::try_now() {
  // Never twice in turn, so that a peer that speaks but does not listen is not tried all the time.
  if (!failing || early || last_was_early) return;
  const base::MonotonicUs now_us = reactor.now_us();
  if (state == State::kIdle && now_us < not_before_us) {
    early = true;
    not_before_us = now_us;
  } else if (state == State::kConnecting && now_us > connecting_since_us + kConnectAgainUs) {
    early = true;  // what it waits for may have been lost on the way
    drop_socket();
    connect();
  }
}

void Outgoing::connect() {
  ++traffic.attempts;
  const auto target = split_endpoint(endpoint);
  if (!target) {
    failed(target.error().message);
    return;
  }
  TETRAD_ASSERT(state != State::kConnected && connect_timer == 0);
  state = State::kConnecting;
  connecting_since_us = reactor.now_us();
  // Handlers of an earlier socket see that they are late.
  const uint64_t mine = ++connection;
  connect_timer = reactor.call_at(reactor.now_us() + options.connect_timeout_us,
                                  [self = shared_from_this(), mine] {
                                    self->connect_timer = 0;
                                    if (self->is_connecting(mine))
                                      self->failed("no connection in time");
                                  });
  error_code error;
  const auto address = asio::ip::make_address(target->first, error);
  if (!error) {
    connect_to(tcp::endpoint(address, target->second), mine);
    return;
  }
  // A name, as seeds may have. Asio looks it up on a thread of its own.
  resolver.emplace(io);
  resolver->async_resolve(target->first, std::to_string(target->second),
                          [self = shared_from_this(), mine](
                              const error_code& failure, const tcp::resolver::results_type& found) {
                            if (!self->is_connecting(mine)) return;
                            if (failure || found.empty())
                              self->failed_to_look_up(failure.message());
                            else
                              self->connect_to(found.begin()->endpoint(), mine);
                          });
}

bool Outgoing::is_connecting(uint64_t mine) const {
  return !closed && connection == mine && state == State::kConnecting;
}

void Outgoing::connect_to(const tcp::endpoint& target, uint64_t mine) {
  socket.emplace(io);
  socket->async_connect(target, [self = shared_from_this(), mine](const error_code& error) {
    if (!self->is_connecting(mine)) return;
    if (error) {
      self->failed(error.message());
      if (error == asio::error::connection_refused && self->nobody_listens) self->nobody_listens();
      return;
    }
    set_socket_options(*self->socket);
    if (self->options.credentials != nullptr && !self->without_tls)
      self->begin_tls(mine);
    else if (self->options.secret != nullptr && !self->without_secret)
      self->begin_proof(mine);
    else
      self->connected();
  });
}

void Outgoing::connected() {
  TETRAD_ASSERT(state == State::kConnecting);
  cancel_timer();
  state = State::kConnected;
  connected_us = reactor.now_us();
  ++traffic.connected;
  open_link = OpenLink(open_links, LinkDirection::kOut, session != nullptr);
  proof.reset();
  // With TLS a peer may refuse after this.
  if (session == nullptr) backoff_us = kBackoffFirstUs;
  set_failing(false);
  early = last_was_early = false;
  queued.insert(0, kStreamPreface);
  watch_for_end();
  write();
}

void Outgoing::begin_tls(uint64_t mine) {
  auto made =
      base::TlsSession::make(options.credentials->current(), base::TlsSession::Role::kClient);
  if (!made) return failed(made.error().message);
  session = std::move(*made);
  shake_hands(mine);
}

void Outgoing::shake_hands(uint64_t mine) {
  const auto is_over = session->handshake();
  error_code ignored;
  socket->non_blocking(true, ignored);
  // What a handshake says fits into the buffer of a new socket.
  if (!session->out().empty()) socket->write_some(asio::buffer(session->out()), ignored);
  session->out().clear();
  if (!is_over) return failed(is_over.error().message, true);
  if (*is_over) return connected();
  socket->async_read_some(asio::buffer(received), [self = shared_from_this(), mine](
                                                      const error_code& error, size_t size) {
    if (!self->is_connecting(mine)) return;
    if (error)
      return self->failed("it ends the connection when we begin with TLS: " + error.message(),
                          true);
    self->session->feed(BytesView(self->received, size));
    self->shake_hands(mine);
  });
}

void Outgoing::begin_proof(uint64_t mine) {
  TETRAD_ASSERT(options.random != nullptr);
  error_code ignored;
  socket->non_blocking(true, ignored);
  proof.emplace(options.secret, *options.random);
  prove(mine);
}

void Outgoing::prove(uint64_t mine) {
  error_code ignored;
  // It fits into the buffer of a new socket.
  if (!proof->out().empty()) socket->write_some(asio::buffer(proof->out()), ignored);
  proof->out().clear();
  socket->async_read_some(asio::buffer(received), [self = shared_from_this(), mine](
                                                      const error_code& error, size_t size) {
    if (!self->is_connecting(mine)) return;
    if (error)
      return self->failed(
          "it ends the connection when it should show the cluster's secret "
          "(cluster_secret_file): " +
              error.message(),
          true);
    const auto is_proved = self->proof->take(BytesView(self->received, size));
    if (!is_proved) return self->failed(is_proved.error().message, true);
    if (*is_proved) return self->connected();
    self->prove(mine);
  });
}

void Outgoing::write() {
  TETRAD_ASSERT(state == State::kConnected && !write_under_way);
  writing.clear();
  std::swap(writing, queued);
  writing_messages = std::exchange(queued_messages, 0);
  encrypted = 0;
  write_more();
}

void Outgoing::write_more() {
  TETRAD_ASSERT(!write_under_way);
  TETRAD_ASSERT(encrypted <= writing.size());
  if (session != nullptr) {
    const BytesView piece = BytesView(writing).substr(encrypted, kEncryptedAtOnce);
    if (const auto done = session->write(piece); !done) return failed(done.error().message, true);
    encrypted += piece.size();
    wire.clear();
    std::swap(wire, session->out());
  }
  write_under_way = true;
  const uint64_t mine = connection;
  asio::async_write(*socket, asio::buffer(session == nullptr ? writing : wire),
                    [self = shared_from_this(), mine](const error_code& error, size_t) {
                      if (self->closed || self->connection != mine) return;
                      self->write_under_way = false;
                      if (error)
                        self->failed(error.message());
                      else
                        self->written();
                    });
}

void Outgoing::written() {
  if (session != nullptr && encrypted < writing.size()) return write_more();
  traffic.sent.add(std::exchange(writing_messages, 0), writing.size());
  if (!queued.empty()) {
    write();
  } else if (writing.capacity() > (size_t{1} << 20)) {
    Bytes().swap(writing);
  }
}

void Outgoing::watch_for_end() {
  const uint64_t mine = connection;
  socket->async_read_some(asio::buffer(received),
                          [self = shared_from_this(), mine](const error_code& error, size_t size) {
                            if (self->closed || self->connection != mine) return;
                            if (error)
                              self->failed(error.message());
                            else if (self->may_go_on(BytesView(self->received, size)))
                              self->watch_for_end();
                          });
}

bool Outgoing::may_go_on(BytesView got) {
  if (session == nullptr) {
    if (got.front() == base::kTlsAlertByte)
      failed("it demands TLS, and this node speaks without (internode_encryption)", true);
    else if (got.front() == static_cast<char>(SecretSign::kDemanded))
      failed(fmt::format("it demands the cluster's secret, and this node has {} "
                         "(cluster_secret_file)",
                         options.secret == nullptr ? "none" : "another one"),
             true);
    else
      failed("it answers as no node does: another program listens there", true);
    return false;
  }
  session->feed(got);
  char nothing[64];
  while (true) {
    const auto size = session->read(nothing, sizeof(nothing));
    if (!size) {
      failed(size.error().message, true);
      return false;
    }
    if (*size == 0) return true;
  }
}

void Outgoing::failed(const std::string& why, bool refused) {
  logger.debug("connection lost peer={} reason={}", endpoint, why);
  if (refused && state == State::kConnecting && gives_in()) {
    drop_socket();  // at once: what waits is not lost
    connect();
    return;
  }
  without_tls = without_secret = false;
  refusal = refused ? why : "";
  was_reached = refused;
  if (refused) say(why);
  if (session != nullptr && state == State::kConnected &&
      reactor.now_us() > connected_us + kLastedUs)
    backoff_us = kBackoffFirstUs;
  drop_socket();
  state = State::kIdle;
  set_failing(true);
  last_was_early = std::exchange(early, false);
  write_under_way = false;
  // What was being written may have arrived, or not.
  if (writing_messages != 0) traffic.lost.add(std::exchange(writing_messages, 0), writing.size());
  lose_queued();
  not_before_us = reactor.now_us() + backoff_us;
  backoff_us = std::min(backoff_us * 2, kBackoffLastUs);
}

/// Nobody has refused, but whoever waits for this peer is to hear why it waits.
void Outgoing::failed_to_look_up(const std::string& why) {
  failed(why);
  refusal = "the name is not found: " + why;
}

bool Outgoing::gives_in() {
  if (session != nullptr && options.encryption == InternodeEncryption::kOptional)
    without_tls = true;
  else if (proof && !options.secret->required)
    without_secret = true;
  else
    return false;
  return true;
}

void Outgoing::say(const std::string& why) {
  if (lane != Lane::kControl) return;
  if (why == said && reactor.now_us() < said_us + kSayAgainUs) return;
  said = why;
  said_us = reactor.now_us();
  logger.warn("no connection to a node peer={} reason={}", endpoint, why);
}

std::string Outgoing::refused_for() const {
  // One that was just made may yet be refused.
  const bool has_lasted = state == State::kConnected && reactor.now_us() > connected_us + kLastedUs;
  return has_lasted ? "" : refusal;
}

void Outgoing::set_failing(bool now) {
  if (failing == now) return;
  failing = now;
  TETRAD_ASSERT(now || *failing_peers > 0);
  now ? ++*failing_peers : --*failing_peers;
}

void Outgoing::cancel_timer() {
  if (connect_timer != 0) reactor.cancel(std::exchange(connect_timer, 0));
}

void Outgoing::drop_socket() {
  cancel_timer();
  ++connection;
  // A write still under way refers to `writing`: it ends with an error once the socket is closed,
  // and the buffer stays until then because the handler holds this object.
  if (resolver) resolver->cancel();
  session.reset();
  proof.reset();
  open_link = {};
  if (socket) {
    error_code ignored;
    socket->close(ignored);
  }
}

void Outgoing::close() {
  closed = true;
  set_failing(false);
  drop_socket();
}

}  // namespace tetrad::replication
