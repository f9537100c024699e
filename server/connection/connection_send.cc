// SPDX-License-Identifier: Apache-2.0
// How a connection sends and how it ends (connection.cc has the steps before these).
//
// 1. Whatever appends an answer or an event to the encoder calls schedule_flush().
// 2. flush(), at the end of the turn, moves all of it to wire_, through TLS if there is any, and
//    writes once. Nearly always the socket takes everything.
// 3. Otherwise write_more() waits for the client, under a timer. What is appended meanwhile stays in
//    the encoder; unsent_bytes() counts both, and reading pauses on it.
// 4. When the last answer of a closing connection is out, linger() waits for the client to close.
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <boost/asio/buffer.hpp>

#include "server/connection/connection.h"

namespace tetrad::server {

namespace asio = boost::asio;

namespace {

constexpr int64_t kDrainedLingerUs = 100'000;
constexpr int64_t kStallLookUs = 500'000;
constexpr uint64_t kInTheWayBytes = 64u << 10;
/// What a client takes at least in wanted_write_timeout_us while others wait for its room.
constexpr int kTakenBytesMin = 512 << 10;
// What a client has sent may still be on its way, or in its own socket behind a full one of ours.
constexpr int64_t kQuietUs = 20'000;
constexpr uint64_t kStreamsMax = 32'768;    // of a connection (native protocol v5, section 2)
constexpr size_t kRoomKept = 256u << 10;    // of a buffer, by a connection that has nothing to send
constexpr size_t kSpareRoomsMax = 4;        // of the shard
constexpr size_t kSpareRoomMax = 4u << 20;  // a larger one is given back to the system

}  // namespace

/// Who fills large buffers turn after turn need not make a new one each time.
void Connection::take_room() {
  if (last_turn_bytes_ <= kRoomKept || !encoder_.empty() || context_.spare_rooms.empty()) return;
  encoder_.out() = std::move(context_.spare_rooms.back());
  context_.spare_rooms.pop_back();
}

/// What is large goes back: a connection keeps the room of small turns only.
void Connection::give_room() {
  Bytes room;
  room.swap(wire_);
  encoder_.release_idle();
  if (context_.spare_rooms.size() >= kSpareRoomsMax || room.capacity() > kSpareRoomMax) return;
  room.clear();
  context_.spare_rooms.push_back(std::move(room));
}

// seen_bytes_ must be set even when a flush is scheduled already: it is the mark behind the last
// answer that was counted.
void Connection::schedule_flush() {
  seen_bytes_ = encoder_.pending_bytes();
  if (flush_scheduled_ || phase_ == Phase::kClosed) return;
  flush_scheduled_ = true;
  context_.reactor.at_turn_end([self = shared_from_this()] {
    self->flush_scheduled_ = false;
    self->caught([&] { self->flush(); });
  });
}

// At the end of a turn. Moves all answers from the encoder to wire_ and sends them with one system
// call.
void Connection::flush() {
  // What is under way flushes again at its end.
  if (phase_ == Phase::kClosed || writing_) return;
  if (!encoder_.empty() || (tls_ != nullptr && !tls_->out().empty())) {
    last_turn_bytes_ = encoder_.pending_bytes();
    if (tls_ == nullptr) {
      encoder_.finish_turn(wire_);
    } else if (!encrypt_turn()) {
      close();
      return;
    }
    seen_bytes_ = 0;
    wire_sent_ = 0;
    // Nearly always the socket takes all of it: no second trip through the loop.
    boost::system::error_code error;
    const size_t sent = socket_.write_some(asio::buffer(wire_), error);
    if (error && error != asio::error::would_block && error != asio::error::try_again) {
      close();
      return;
    }
    // "Would block" is no error: nothing was sent, write_more() waits for room.
    wire_sent_ = error ? 0 : sent;
    context_.metrics.bytes_out.add(wire_sent_);
    if (wire_sent_ < wire_.size()) {
      writing_ = true;
      encoder_.release_idle();  // a client that is slow now would keep the room of two turns
      write_more();
      return;
    }
    wire_.clear();
    wire_sent_ = 0;
    // Thousands of idle connections must not each keep the largest buffer they ever needed.
    if (wire_.capacity() > kRoomKept) give_room();
    charge_answers();
    go_on_if_paused();
  }
  // Only here: all answers are out and no task will add one.
  if (phase_ == Phase::kClosing && in_flight_ == 0) linger();
}

// Closing a socket whose input is unread sends a reset, which may destroy the last answer before
// the client has read it. So only the sending half is closed first; input is read and dropped until
// the client closes or linger_us is over. Where the whole node or all clients are being stopped
// nobody may wait for a client for long.
void Connection::linger() {
  phase_ = Phase::kLingering;
  context_.reactor.cancel(std::exchange(linger_timer_, 0));
  if (tls_ != nullptr) say_end();
  boost::system::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  const int64_t linger_us = context_.draining ? kDrainedLingerUs : context_.limits.linger_us;
  linger_timer_ = context_.reactor.call_at(context_.reactor.now_us() + linger_us, [this] {
    linger_timer_ = 0;
    close();
  });
  if (!reading_) drop_input();
}

/// Until the client closes. A reset now would discard what the client has not read yet.
void Connection::drop_input() {
  decoder_.release_idle();
  reading_ = true;
  const auto room = decoder_.writable();
  socket_.async_read_some(
      asio::buffer(room.data(), room.size()),
      [self = shared_from_this()](const boost::system::error_code& error, size_t) {
        self->reading_ = false;
        if (self->phase_ == Phase::kClosed) return;
        if (error) {
          self->close();
        } else {
          self->drop_input();
        }
      });
}

// The rest of wire_. The timer counts from the last byte taken: a slow client may stay, one that
// takes nothing is closed.
void Connection::write_more() {
  if (stall_timer_ == 0) {
    stalled_since_us_ = context_.reactor.now_us();
    untaken_bytes_ = untaken_bytes();
    look_at_stall();
  }
  socket_.async_write_some(
      asio::buffer(wire_.data() + wire_sent_, wire_.size() - wire_sent_),
      [self = shared_from_this()](const boost::system::error_code& error, size_t size) {
        if (self->phase_ == Phase::kClosed) return;
        if (error) {
          self->close();
          return;
        }
        self->context_.reactor.cancel(std::exchange(self->stall_timer_, 0));
        self->context_.metrics.bytes_out.add(size);
        self->wire_sent_ += size;
        if (self->wire_sent_ < self->wire_.size()) {
          self->write_more();
          return;
        }
        self->writing_ = false;
        Bytes().swap(self->wire_);  // a slow client's buffer is large; assigning would keep it
        self->wire_sent_ = 0;
        self->charge_answers();
        self->flush();
        self->go_on_if_paused();
      });
}

int Connection::untaken_bytes() {
  int bytes = 0;
  return ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

// A socket takes more only when a good part of its buffer is free, which a slow client does not
// bring about in seconds. So what it has taken of the buffer counts, too.
void Connection::look_at_stall() {
  const base::MonotonicUs now_us = context_.reactor.now_us();
  const bool is_in_the_way =
      unsent_bytes() >= kInTheWayBytes && context_.processor.answers().is_wanted();
  const int untaken = untaken_bytes();
  if (untaken_bytes_ - untaken >= (is_in_the_way ? kTakenBytesMin : 1)) {
    stalled_since_us_ = now_us;
    untaken_bytes_ = untaken;
  }
  const int64_t stalled_us = now_us - stalled_since_us_;
  const ConnectionLimits& limits = context_.limits;
  if (stalled_us <
      (is_in_the_way ? limits.wanted_write_timeout_us : limits.stalled_write_timeout_us)) {
    stall_timer_ = context_.reactor.call_at(now_us + kStallLookUs, [this] {
      stall_timer_ = 0;
      look_at_stall();
    });
    return;
  }
  context_.logger.warn(
      "closed a connection whose client reads nothing client={} unsent_bytes={} for_ms={}{}",
      client_.client_address, unsent_bytes(), stalled_us / 1'000,
      is_in_the_way ? "; others wait for the room of its answers" : "");
  close();
}

void Connection::close_after_flush() {
  if (!is_open()) return;
  phase_ = Phase::kClosing;
  context_.reactor.cancel(std::exchange(startup_timer_, 0));
  context_.events.remove(*this);
  schedule_flush();
}

// A client that pipelines has requests in the decoder and the socket that were not begun: without an
// answer it could not tell whether they were.
void Connection::drain() {
  if (phase_ == Phase::kLingering || link_ == Link::kAtDoor) return close();
  if (phase_ == Phase::kDraining) return;  // by an earlier order
  if (phase_ != Phase::kReady) return close_after_flush();
  phase_ = Phase::kDraining;
  context_.events.remove(*this);
  drain_began_us_ = context_.reactor.now_us();
  requests_before_drain_ = requests_;
  await_quiet();
}

// It ends when nothing comes any more; at the latest for a client that goes on asking: after a
// while at the first moment when all is heard, or when more has come than can have been under way.
void Connection::await_quiet() {
  is_quiet_ = true;
  linger_timer_ = context_.reactor.call_at(context_.reactor.now_us() + kQuietUs, [this] {
    linger_timer_ = 0;
    if (phase_ != Phase::kDraining) return;
    boost::system::error_code ignored;
    const bool has_heard_all = !paused_ && !yielded_ && socket_.available(ignored) == 0;
    const bool is_late = context_.reactor.now_us() >= drain_began_us_ + context_.limits.linger_us;
    if ((in_flight_ == 0 && has_heard_all && (is_quiet_ || is_late)) ||
        requests_ - requests_before_drain_ > kStreamsMax)
      return close_after_flush();
    await_quiet();
  });
}

size_t Connection::read_now() {
  boost::system::error_code error;
  if (link_ == Link::kPlain) {
    const auto room = decoder_.writable();
    const size_t size = socket_.read_some(asio::buffer(room.data(), room.size()), error);
    if (error) return 0;
    decoder_.commit(size);
    return size;
  }
  if (link_ != Link::kTls) return 0;
  Bytes& room = context_.wire_room;
  room.resize(ConnectionContext::kWireRoomBytes);
  const size_t size = socket_.read_some(asio::buffer(room), error);
  if (error) return 0;
  tls_->feed(BytesView(room).substr(0, size));
  return decrypt() ? size : 0;
}

/// Of what has come, up to what a client may have waiting.
void Connection::refuse_rest() {
  if (phase_ != Phase::kReady && phase_ != Phase::kDraining && phase_ != Phase::kClosing) return;
  const uint64_t bytes_max = context_.limits.unsent_pause_bytes;
  for (uint64_t bytes = 0; bytes < bytes_max && unsent_bytes() < bytes_max;) {
    const cql::Incoming incoming = decoder_.next();
    if (incoming.kind == cql::Incoming::Kind::kEnvelope) {
      refuse_unbegun(incoming.envelope);
    } else if (incoming.kind == cql::Incoming::Kind::kNeedMore) {
      const size_t size = read_now();
      if (size == 0) return;
      bytes += size;
    } else {
      return;
    }
  }
}

// With what the socket takes at once: nobody waits for it any more.
void Connection::give_up(bool refuses_rest) {
  for (const InFlight* request = first_in_flight_; request != nullptr; request = request->next) {
    cql::append_error(encoder_.out(), request->head,
                      Error(ErrorCode::kServerError,
                            "this node has stopped before the request was done; whether it was "
                            "done in part is not known"));
  }
  caught([&] {
    if (refuses_rest) refuse_rest();
    flush();
  });
  boost::system::error_code ignored;
  if (phase_ != Phase::kClosed) socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  close();
}

// May be called at any point and more than once. Callbacks that are pending find kClosed. Removing
// the object from context_.open drops the owner's reference; the caller holds another one.
void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  context_.metrics.closed.add();
  charge_answers();
  context_.processor.answers().let_go(client_.answers);
  context_.reactor.cancel(std::exchange(startup_timer_, 0));
  context_.reactor.cancel(std::exchange(stall_timer_, 0));
  context_.reactor.cancel(std::exchange(linger_timer_, 0));
  context_.events.remove(*this);
  leave_door();
  if (login_wait_) {
    context_.reactor.post(
        [turn = *login_wait_] { turn.set(fail(ErrorCode::kUnavailable, "the client has gone")); });
  }
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (tls_ != nullptr) context_.door->forget(std::move(tls_));
  context_.open.erase(shared_from_this());
}

/// Events cannot wait as requests do. The hub walks over its sinks now, so the close comes later.
void Connection::event_sent() {
  schedule_flush();
  if (unsent_bytes() > 2 * context_.limits.unsent_pause_bytes)
    context_.reactor.post([self = shared_from_this()] { self->close(); });
}

void Connection::send_schema_event(const cql::SchemaChange& change) {
  cql::append_schema_event(encoder_.out(), version_, change);
  event_sent();
}

void Connection::send_topology_event(cql::TopologyChange change, const cql::Inet& node) {
  cql::append_topology_event(encoder_.out(), version_, change, node);
  event_sent();
}

void Connection::send_status_event(cql::StatusChange change, const cql::Inet& node) {
  cql::append_status_event(encoder_.out(), version_, change, node);
  event_sent();
}

}  // namespace tetrad::server
