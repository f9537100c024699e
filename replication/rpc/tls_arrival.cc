// SPDX-License-Identifier: Apache-2.0
#include "replication/rpc/tls_arrival.h"

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

TlsArrival::TlsArrival(boost::asio::ip::tcp::socket socket, base::Reactor& reactor, Terms terms,
                       Done done)
    : socket_(std::move(socket)),
      reactor_(reactor),
      terms_(std::move(terms)),
      done_(std::move(done)) {}

void TlsArrival::start() {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  timer_ = reactor_.call_at(reactor_.now_us() + terms_.time_us, [self = shared_from_this()] {
    self->timer_ = 0;
    self->refuse("it has not come to an end with its TLS handshake in time");
  });
  room_.resize(kRoomBytes);
  read();
}

void TlsArrival::close() {
  closed_ = true;
  done_ = nullptr;
  if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
  error_code ignored;
  socket_.close(ignored);
}

void TlsArrival::read() {
  if (reading_) return;
  reading_ = true;
  socket_.async_read_some(boost::asio::buffer(room_),
                          [self = shared_from_this()](const error_code& error, size_t size) {
                            self->reading_ = false;
                            if (self->closed_) return;
                            if (self->lingering_) {
                              if (error) return self->close();
                              return self->read();  // dropped
                            }
                            if (error) return self->refuse("it has gone in its TLS handshake");
                            self->take(BytesView(self->room_).substr(0, size));
                          });
}

void TlsArrival::take(BytesView wire) {
  if (session_ == nullptr) {
    if (wire.front() != base::kTlsHandshakeByte || terms_.context == nullptr) {
      if (terms_.encryption == InternodeEncryption::kAll) {
        error_code ignored;
        socket_.write_some(boost::asio::buffer(kAlert), ignored);
        return refuse("it speaks without TLS, which this node demands (internode_encryption)");
      }
      first_.append(wire);
      return first_.size() < terms_.bytes_wanted ? read() : arrived();
    }
    auto made = base::TlsSession::make(terms_.context, base::TlsSession::Role::kServer);
    if (!made) return refuse(made.error().message);
    session_ = std::move(*made);
  }
  session_->feed(wire);
  if (is_over_ && *is_over_) return take_decrypted();
  step();
}

void TlsArrival::step() {
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

void TlsArrival::stepped() {
  if (lingering_) return;
  send();
  if (!is_over_) return refuse(is_over_.error().message);
  if (*is_over_)
    take_decrypted();
  else
    read();
}

/// What a handshake says fits into the buffer of a new socket.
void TlsArrival::send() {
  if (session_ == nullptr || session_->out().empty()) return;
  error_code ignored;
  socket_.write_some(boost::asio::buffer(session_->out()), ignored);
  session_->out().clear();
}

void TlsArrival::take_decrypted() {
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

void TlsArrival::arrived() {
  TETRAD_ASSERT(done_ != nullptr);
  const Done done = std::exchange(done_, nullptr);
  closed_ = true;
  if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
  done(Arrived{std::move(socket_), std::move(session_), std::move(first_)});
}

/// The peer may still read why.
void TlsArrival::refuse(std::string why) {
  if (lingering_ || closed_) return;
  const Done done = std::exchange(done_, nullptr);
  linger();
  if (done) done(fail_text(ErrorCode::kProtocol, std::move(why)));
}

void TlsArrival::linger() {
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
