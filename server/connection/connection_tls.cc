// SPDX-License-Identifier: Apache-2.0
// What a connection does that speaks TLS, or may. Bytes of the wire are read into a room of the
// shard, so that who is silent holds none.
//
// 1. The door (tls_door.h) has the socket until the client has shown what it speaks, and through
//    the handshake. Until then the connection has a time limit and may be closed, nothing else.
// 2. let_in(): with the socket, the session and what has come for the decoder.
// 3. await_wire() waits until the socket can be read, without a buffer of its own; take_wire()
//    reads into the shard's room.
// 4. Records are decrypted and go to the decoder (take_decrypted); answers of a turn are encrypted
//    together (encrypt_turn).
#include <boost/asio/buffer.hpp>

#include "server/connection/connection.h"

namespace tetrad::server {

namespace asio = boost::asio;

namespace {

// Lines of the log about clients that fail: kNoticesMax in each second for the whole shard, the
// others are counted.
constexpr int64_t kNoticeAgainUs = 1'000'000;
constexpr int kNoticesMax = 5;
constexpr size_t kPlainKept = 256u << 10;

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
  context_.logger.info("{} client={} port={} not_logged_before={}", what, client_.client_address,
                       client_.client_port, notices.unsaid);
  notices.unsaid = 0;
}

void Connection::await_wire() {
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
  tls_->feed(BytesView(room).substr(0, size));
  take_decrypted();
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

void ConnectionContext::open_door() {
  door = std::make_unique<TlsDoor>(
      reactor, tls->credentials, metrics.tls_begun, [this](TlsDoor::Id id, Entrant entrant) {
        const auto found = at_door.find(id);  // none: it was closed meanwhile
        if (found == at_door.end()) return;
        const auto connection = found->second->shared_from_this();
        connection->let_in(std::move(entrant));
      });
}

void Connection::leave_door() {
  if (at_door_ == 0) return;
  context_.at_door.erase(at_door_);
  context_.door->drop(std::exchange(at_door_, 0));
}

void Connection::let_in(Entrant entrant) {
  context_.at_door.erase(std::exchange(at_door_, 0));
  context_.metrics.bytes_in.add(entrant.received_bytes);
  context_.metrics.bytes_out.add(entrant.sent_bytes);
  using How = Entrant::How;
  if (entrant.how == How::kGone) return close();
  if (entrant.how == How::kBroken) return broke(entrant.why.c_str());
  if (entrant.how == How::kGaveWay) {
    notice("closed in its TLS handshake, too many are under way");
    return close();
  }
  if (!take_socket(std::move(entrant.socket))) return;
  tls_ = std::move(entrant.session);
  link_ = tls_ == nullptr ? Link::kPlain : Link::kTls;
  caught([&] {
    if (entrant.how == How::kPlain && !context_.tls->optional) return refuse_plain(entrant.first);
    if (tls_ != nullptr && !tls_->out().empty()) schedule_flush();
    if (entrant.how == How::kFailed) {
      context_.metrics.tls_failed.add();
      notice("TLS handshake failed: " + entrant.why);
      return close_after_flush();
    }
    decoder_.feed(entrant.first);
    if (entrant.how == How::kOpen) {
      context_.metrics.tls_open.add();
      return take_decrypted();
    }
    take_requests();
    read();
  });
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
