// SPDX-License-Identifier: Apache-2.0
// What a connection does that speaks TLS, or may. Bytes of the wire are read into a room of the
// shard, so that who is silent holds none; steps of the handshake, which sign and verify, run off
// the loop, of each connection one at a time.
//
// 1. await_wire() waits until the socket can be read, without a buffer of its own; take_wire()
//    reads into the shard's room.
// 2. The first byte decides (decide): a TLS handshake record begins with 0x16, a request of the
//    native protocol with its version, 3 to 5.
// 3. Each flight of the handshake is one step on a worker (shake_hands): signatures take about a
//    millisecond, which is too long for the loop. The worker also sends what the step has to say,
//    over a descriptor of its own: the loop may close the connection meanwhile. Where the last step
//    only compares a hash it runs on the loop.
// 4. Afterwards records are decrypted on the loop and go to the decoder (take_decrypted); answers
//    of a turn are encrypted together (encrypt_turn).
//
// shaking_ is true while a worker has the session. Nothing on the loop may touch tls_ then: reads,
// flushes and further steps wait for its end.
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>

#include "base/open_file.h"
#include "server/connection/connection.h"

namespace tetrad::server {

namespace asio = boost::asio;

namespace {

// Lines of the log about clients that fail: kNoticesMax in each second for the whole shard, the
// others are counted.
constexpr int64_t kNoticeAgainUs = 1'000'000;
constexpr int kNoticesMax = 5;
constexpr size_t kPlainKept = 256u << 10;
/// What the socket takes at once; it is taken off `out`. The rest, and what is wrong, is the loop's.
size_t send_now(int socket, Bytes& out) {
  if (socket < 0 || out.empty()) return 0;
  const ssize_t sent = ::send(socket, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent <= 0) return 0;
  out.erase(0, static_cast<size_t>(sent));
  return static_cast<size_t>(sent);
}

constexpr std::string_view kPlainRefused =
    "This port takes TLS only; connect with TLS (SSL) turned on in the client";

}  // namespace

// A port scan or a wrong driver must not fill the log.
void Connection::notice(std::string_view what) {
  Notices& notices = context_.notices;
  const base::MonotonicUs now_us = context_.reactor.now_us();
  if (!notices.since_us || now_us >= *notices.since_us + kNoticeAgainUs) {
    notices.since_us = now_us;
    notices.said = 0;
  }
  if (++notices.said > kNoticesMax) {
    ++notices.unsaid;
    return;
  }
  context_.logger.info("client={} port={} unsaid_before={}: {}", client_.client_address,
                       client_.client_port, notices.unsaid, what);
  notices.unsaid = 0;
}

void Connection::await_wire() {
  if (shaking_) return;  // its end reads on
  reading_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->reading_ = false;
                       if (self->phase_ == Phase::kClosed) return;
                       if (error) return self->close();
                       if (self->phase_ == Phase::kLingering) return self->drop_input();
                       self->caught([&] { self->take_wire(); });
                     });
}

void Connection::take_wire() {
  Bytes& room = context_.wire_room;
  room.resize(ConnectionContext::kWireRoomBytes);
  boost::system::error_code error;
  const size_t size = socket_.read_some(asio::buffer(room), error);
  if (error == asio::error::would_block || error == asio::error::try_again) return read();
  if (error) return close();
  context_.metrics.bytes_in.add(size);
  const BytesView wire = BytesView(room).substr(0, size);
  // decide() may close the connection or leave it closing; then is_open() is false.
  if (link_ == Link::kUndecided) decide(wire);
  if (!is_open()) return;
  if (link_ == Link::kPlain) {
    // The bytes are in the shard's room, so the decoder copies them. Later reads of a plain
    // connection go straight to the decoder.
    decoder_.feed(wire);
    take_requests();
    read();
    return;
  }
  tls_->feed(wire);
  if (link_ == Link::kTls) return take_decrypted();
  // The way to a worker and back costs more than such a step.
  if (tls_->is_nearly_open()) return handshake_stepped(tls_->handshake());
  shaking_ = true;
  context_.tasks.spawn(shake_hands(shared_from_this()));
}

/// Of a request the first byte is the protocol's version, which is far below that of TLS.
void Connection::decide(BytesView first) {
  if (first.front() == base::kTlsHandshakeByte) {
    begin_tls();
  } else {
    link_ = Link::kPlain;
    if (!context_.tls->optional) refuse_plain(first);
  }
}

/// In the words of the native protocol: a driver shows them.
void Connection::refuse_plain(BytesView first) {
  notice("refused, it speaks without TLS");
  context_.metrics.tls_failed.add();
  cql::ReplyHead head;
  head.version =
      std::clamp<int>(first[0] & 0x7F, cql::kProtocolVersionMin, cql::kProtocolVersionMax);
  // The stream id stands at offset 2 of the header (native protocol v5, section 2), if so much has
  // come.
  if (first.size() >= 4) head.stream = base::load_big_endian<int16_t>(first.data() + 2);
  cql::append_error(encoder_.out(), head, Error(ErrorCode::kProtocol, std::string(kPlainRefused)));
  schedule_flush();
  close_after_flush();
}

// At most kHandshakesMax at once: each holds memory before the client has shown anything. Beyond it
// the oldest one that waits for its client gives way, so a flood of silent clients cannot keep
// others out.
void Connection::begin_tls() {
  auto& others = context_.handshakes;
  if (others.size() >= kHandshakesMax) {
    const auto oldest =
        std::ranges::find_if(others, [](const auto& other) { return !other.second->shaking_; });
    if (oldest == others.end()) {
      notice("closed, too many TLS handshakes are under way");
      return close();
    }
    const auto idle = oldest->second->shared_from_this();
    idle->notice("closed in its TLS handshake, too many are under way");
    idle->close();
  }
  auto session =
      // The certificates as they are now: sessions that are open keep the ones they began with when
      // files are reloaded.
      base::TlsSession::make(context_.tls->credentials->current(), base::TlsSession::Role::kServer);
  if (!session) return broke(session.error().message.c_str());
  tls_ = std::move(*session);
  link_ = Link::kHandshake;
  context_.metrics.tls_begun.add();
  handshake_ = ++context_.handshakes_begun;
  others.emplace(handshake_, this);
}

void Connection::end_handshake() {
  if (handshake_ != 0) context_.handshakes.erase(std::exchange(handshake_, 0));
}

// One step with what has come; false: the peer has to send more. `work` is a named local, since g++
// 12 mishandles temporaries in co_await.
Task<void> Connection::shake_hands(std::shared_ptr<Connection> self) {
  ConnectionContext& context = self->context_;
  Result<bool> is_over = false;
  base::TlsSession& session = *self->tls_;
  // What an earlier step has said goes first, if the client is slow to take it.
  const base::OpenFile wire(self->writing_ ? -1 : ::dup(self->socket_.native_handle()));
  size_t sent = 0;
  const std::function<void()> work = [&] {
    is_over = session.handshake();
    sent = send_now(*wire, session.out());
  };
  try {
    co_await context.processor.off_loop().run(context.handshake_lane, work);
  } catch (const std::exception& thrown) {
    is_over = fail(ErrorCode::kServerError, "{}", thrown.what());
  }
  self->shaking_ = false;
  context.metrics.bytes_out.add(sent);
  if (self->phase_ != Phase::kClosed) self->caught([&] { self->handshake_stepped(is_over); });
}

// On the loop again. Even a failed step has something to send: the TLS alert that tells the client
// why.
void Connection::handshake_stepped(const Result<bool>& is_over) {
  schedule_flush();  // what the step has to say, of an error too
  if (!is_over) {
    end_handshake();
    context_.metrics.tls_failed.add();
    notice("TLS handshake failed: " + is_over.error().message);
    return close_after_flush();
  }
  if (!is_open()) return;
  if (!*is_over) return read();
  end_handshake();
  link_ = Link::kTls;
  context_.metrics.tls_open.add();
  take_decrypted();
}

/// All that has come: what a turn reads of the wire is bounded.
Result<void> Connection::decrypt() {
  while (true) {
    const auto room = decoder_.writable();
    TETRAD_TRY(const size_t got, tls_->read(room.data(), room.size()));
    if (got == 0) return {};
    decoder_.commit(got);
  }
}

// Also after the last step of the handshake: the client may have sent its first request with it.
void Connection::take_decrypted() {
  if (const auto decrypted = decrypt(); !decrypted) {
    notice("closed, " + decrypted.error().message);
    schedule_flush();
    return close_after_flush();
  }
  // close_notify: nothing can come any more.
  if (tls_->has_ended()) return close();
  take_requests();
  read();
}

// The first name of the certificate that is a role which may log in: the common name, or URIs,
// e-mail addresses and DNS names in this order, by the option client_certificate_identity. The
// chain was verified in the handshake.
std::string Connection::certified_role() const {
  if (tls_ == nullptr || context_.tls->identity == CertificateIdentity::kNone) return "";
  const cql::SchemaPtr schema = context_.processor.schema();
  if (schema == nullptr) return "";
  const auto may_be = [&](const std::string& name) {
    const cql::Role* const role = name.empty() ? nullptr : schema->roles()->find(name);
    return role != nullptr && role->can_login;
  };
  const base::TlsSession::PeerNames names = tls_->peer_names();
  if (context_.tls->identity == CertificateIdentity::kCommonName)
    return may_be(names.common_name) ? names.common_name : "";
  for (const auto* list : {&names.uris, &names.emails, &names.dns})
    for (const std::string& name : *list)
      if (may_be(name)) return name;
  return "";
}

/// What the encoder holds, and what TLS itself has to say, to wire_. False: it cannot.
// False closes the connection: a session that cannot encrypt is broken.
bool Connection::encrypt_turn() {
  if (!encoder_.empty()) {
    encoder_.finish_turn(plain_);
    if (!tls_->write(plain_)) return false;
    plain_.clear();
    if (plain_.capacity() > kPlainKept) Bytes().swap(plain_);
  }
  wire_.clear();
  std::swap(wire_, tls_->out());
  return true;
}

/// After the last answer: the client knows that none was cut off.
// The alert close_notify. It is tried once; a client whose socket takes no more sees the end of the
// connection anyway.
void Connection::say_end() {
  tls_->end();
  boost::system::error_code ignored;
  socket_.write_some(asio::buffer(tls_->out()), ignored);
  tls_->out().clear();
}

}  // namespace tetrad::server
