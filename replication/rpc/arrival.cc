// SPDX-License-Identifier: Apache-2.0
#include "replication/rpc/arrival.h"

#include <boost/asio/buffer.hpp>

#include "base/assert.h"
#include "replication/rpc/frame.h"

namespace tetrad::replication {

using boost::system::error_code;

namespace {

constexpr size_t kRoomBytes = 16u << 10;
constexpr int64_t kLingerUs = 1'000'000;
/// For a peer that speaks without TLS: fatal, handshake_failure (RFC 8446, 6.2). It knows the first
/// byte.
constexpr BytesView kAlert{"\x15\x03\x03\x00\x02\x02\x28", 7};

}  // namespace

Arrival::Arrival(boost::asio::ip::tcp::socket socket, base::Reactor& reactor, Terms terms,
                 Done done)
    : socket_(std::move(socket)),
      reactor_(reactor),
      terms_(std::move(terms)),
      done_(std::move(done)) {}

void Arrival::start() {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  timer_ = reactor_.call_at(reactor_.now_us() + terms_.time_us, [self = shared_from_this()] {
    self->timer_ = 0;
    self->refuse(fmt::format("it has not {} in time", self->undone()));
  });
  room_.resize(kRoomBytes);
  read();
}

void Arrival::close() {
  closed_ = true;
  done_ = nullptr;
  if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
  error_code ignored;
  socket_.close(ignored);
}

void Arrival::read() {
  if (reading_) return;
  reading_ = true;
  socket_.async_read_some(boost::asio::buffer(room_), [self = shared_from_this()](
                                                          const error_code& error, size_t size) {
    self->reading_ = false;
    if (self->closed_) return;
    if (self->lingering_) {
      if (error) return self->close();
      return self->read();  // dropped
    }
    if (error) return self->refuse(fmt::format("it has gone and has not {}", self->undone()));
    self->take(BytesView(self->room_).substr(0, size));
  });
}

void Arrival::take(BytesView wire) {
  if (session_ == nullptr && !is_plain_)
    if (const auto chosen = choose(wire.front()); !chosen) return refuse(chosen.error().message);
  if (is_plain_) return take_plain(wire);
  session_->feed(wire);
  if (is_over_ && *is_over_) return take_decrypted();
  step();
}

Result<void> Arrival::choose(char first) {
  if (first == base::kTlsHandshakeByte && terms_.context != nullptr) {
    TETRAD_TRY(session_, base::TlsSession::make(terms_.context, base::TlsSession::Role::kServer));
    return {};
  }
  if (terms_.encryption == InternodeEncryption::kAll) {
    error_code ignored;
    socket_.write_some(boost::asio::buffer(kAlert), ignored);
    return fail(ErrorCode::kProtocol,
                "it speaks without TLS, which this node demands (internode_encryption)");
  }
  if (first == base::kTlsHandshakeByte) return fail(ErrorCode::kProtocol, kSpeaksTls);
  is_plain_ = true;
  if (terms_.secret != nullptr) proof_.emplace(terms_.secret, *terms_.random);
  return {};
}

void Arrival::take_plain(BytesView wire) {
  if (!proof_) {
    first_.append(wire);
  } else {
    const auto is_given = proof_->take(wire);
    send(proof_->out());
    if (!is_given) return refuse(is_given.error().message);
    if (!*is_given) return read();
    first_ = std::move(proof_->rest());
    proof_.reset();
  }
  first_.size() < terms_.bytes_wanted ? read() : arrived();
}

void Arrival::step() {
  if (!terms_.off_loop) {
    is_over_ = session_->handshake();
    return stepped();
  }
  stepping_ = true;
  terms_.off_loop([self = shared_from_this()] { self->is_over_ = self->session_->handshake(); },
                  [self = shared_from_this()] {
                    self->stepping_ = false;
                    if (!self->closed_) self->stepped();
                  });
}

void Arrival::stepped() {
  if (lingering_) return;
  send();
  if (!is_over_) return refuse(is_over_.error().message);
  if (*is_over_)
    take_decrypted();
  else
    read();
}

void Arrival::send() {
  if (session_ != nullptr) send(session_->out());
}

/// What a handshake says fits into the buffer of a new socket.
void Arrival::send(Bytes& out) {
  if (out.empty()) return;
  error_code ignored;
  socket_.write_some(boost::asio::buffer(out), ignored);
  out.clear();
}

void Arrival::take_decrypted() {
  while (true) {
    const auto got = session_->read(room_.data(), room_.size());
    if (!got) {
      send();
      return refuse(got.error().message);
    }
    if (*got == 0) break;
    first_.append(room_.data(), *got);
  }
  if (session_->has_ended()) return refuse("it has ended the connection");
  if (first_.size() < terms_.bytes_wanted) return read();
  arrived();
}

void Arrival::arrived() {
  TETRAD_ASSERT(done_ != nullptr);
  const Done done = std::exchange(done_, nullptr);
  closed_ = true;
  if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
  done(Arrived{std::move(socket_), std::move(session_), std::move(first_)});
}

const char* Arrival::undone() const {
  // While a step is under way its result is another thread's.
  const bool is_proved =
      session_ != nullptr ? !stepping_ && is_over_.value_or(false) : is_plain_ && !proof_;
  if (is_proved) return "sent a message";
  return is_plain_ || terms_.context == nullptr ? "shown the cluster's secret (cluster_secret_file)"
                                                : "come to an end with its TLS handshake";
}

/// The peer may still read why.
void Arrival::refuse(std::string why) {
  if (lingering_ || closed_) return;
  const Done done = std::exchange(done_, nullptr);
  linger();
  if (done) done(fail_text(ErrorCode::kProtocol, std::move(why)));
}

void Arrival::linger() {
  lingering_ = true;
  if (timer_ != 0) reactor_.cancel(timer_);
  timer_ = reactor_.call_at(reactor_.now_us() + kLingerUs, [self = shared_from_this()] {
    self->timer_ = 0;
    self->close();
  });
  error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  if (room_.empty()) return close();
  read();
}

}  // namespace tetrad::replication
