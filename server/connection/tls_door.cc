// SPDX-License-Identifier: Apache-2.0
// One thread over an epoll of its own. Each socket is registered once, by edges; who has something to
// read stands in a queue until a read finds nothing more. A turn:
//
// 1. wait(): sockets that have become readable go to the queues. Who hangs up before he has been
//    heard is gone at once, so that no signature is made for clients that have given up.
// 2. take_orders(): new connections and those to drop, from the shard's thread.
// 3. All of answering_, those in a handshake, each one read.
// 4. One of fresh_, since a first flight costs a signature, a millisecond. So who answers in time
//    comes before all who begin, and is never the oldest of too many.
//
// Origins take turns in 4, so that one with thousands of clients holds up none of the others. Of an
// origin it is the first that has come; but while that one waits for longer than kPatience, the
// last: with more than can be served, those who are served would otherwise all be about to give up.
//
// Whoever leaves is posted to the shard's thread with his socket and session: both belong to one
// thread at a time.
#include "server/connection/tls_door.h"

#include <algorithm>
#include <cerrno>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>

#include "server/connection/client_tls.h"

namespace tetrad::server {
namespace {

constexpr size_t kRoomBytes = 32u << 10;  // two TLS records of full length
constexpr int kEventsMax = 256;
// Sessions that nobody has any more, until the thread is woken for them.
constexpr size_t kSessionsKept = 16;
constexpr TlsDoor::Id kWakeId = 0;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/// Of a client that has hung up. What is asked without TLS is answered all the same.
bool has_asked(int socket) {
  char first = 0;
  return ::recv(socket, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 &&
         first != base::kTlsHandshakeByte;
}

/// All that has come behind the handshake.
Result<Bytes> decrypted(base::TlsSession& session, Bytes& room) {
  Bytes out;
  while (true) {
    TETRAD_TRY(const size_t got, session.read(room.data(), room.size()));
    if (got == 0) return out;
    out.append(room.data(), got);
  }
}

}  // namespace

TlsDoor::TlsDoor(base::Reactor& reactor, std::shared_ptr<base::TlsCredentials> credentials,
                 base::Counter& begun, LetIn let_in, std::chrono::milliseconds patience)
    : reactor_(reactor),
      credentials_(std::move(credentials)),
      handshakes_begun_(begun),
      let_in_(std::move(let_in)),
      patience_(patience),
      poll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      room_(kRoomBytes, 0) {
  epoll_event event{EPOLLIN | EPOLLET, {.u64 = kWakeId}};
  checked(::epoll_ctl(*poll_, EPOLL_CTL_ADD, *wake_, &event), "epoll_ctl");
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "handshakes");
    run();
  });
}

TlsDoor::~TlsDoor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
}

TlsDoor::Id TlsDoor::take(base::OpenFile socket, uint64_t origin) {
  const Id id = ++last_;
  give({id, std::move(socket), nullptr, origin});
  return id;
}

void TlsDoor::drop(Id id) { give({id, base::OpenFile(-1)}); }

// With caches that other work has emptied it costs the loop five times the giving away.
void TlsDoor::forget(std::unique_ptr<base::TlsSession> session) {
  give({0, base::OpenFile(-1), std::move(session)});
}

void TlsDoor::give(Order order) {
  {
    const bool may_wait = order.session != nullptr;
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
    if (is_woken_ || (may_wait && orders_.size() < kSessionsKept)) return;
    is_woken_ = true;
  }
  wake();
}

// By edges: each write is one, and nobody has to read the number, which has room for 2^64.
void TlsDoor::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(*wake_, &one, sizeof one);
}

void TlsDoor::run() {
  while (true) {
    wait(answering_.empty() && fresh_.empty());
    if (!take_orders()) return;
    const auto next_of = [](std::deque<Id>& ids) {
      const Id id = ids.front();
      ids.pop_front();
      return id;
    };
    for (size_t left = answering_.size(); left != 0; --left) serve(next_of(answering_));
    if (!fresh_.empty()) serve(next_fresh());
  }
}

void TlsDoor::wait(bool may_sleep) {
  epoll_event events[kEventsMax];
  int count = kEventsMax;
  // With a full list there may be more: all must be known before the next is begun.
  for (bool sleeps = may_sleep; count == kEventsMax; sleeps = false) {
    count = ::epoll_wait(*poll_, events, kEventsMax, sleeps ? -1 : 0);
    for (int i = 0; i < count; ++i) {
      const auto found = waiting_.find(events[i].data.u64);
      if (found == waiting_.end()) continue;
      const bool is_over = (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
      if (is_over && found->second.session == nullptr && !has_asked(*found->second.socket))
        let_in(found, Entrant::How::kGone);
      else
        queue(found->first, found->second);
    }
  }
}

bool TlsDoor::take_orders() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    orders_taken_.swap(orders_);
    is_woken_ = false;
  }
  for (Order& order : orders_taken_) {
    if (order.socket.is_open()) {
      admit(std::move(order));
    } else if (const auto found = waiting_.find(order.id); found != waiting_.end()) {
      take_out(found);
    }
  }
  orders_taken_.clear();
  return true;
}

// What has come before is an edge, too.
void TlsDoor::admit(Order order) {
  epoll_event event{EPOLLIN | EPOLLRDHUP | EPOLLET, {.u64 = order.id}};
  const Id id = order.id;
  const auto place = waiting_.emplace(id, Waiting{std::move(order.socket), order.origin}).first;
  if (::epoll_ctl(*poll_, EPOLL_CTL_ADD, *place->second.socket, &event) != 0)
    let_in(place, Entrant::How::kGone);
}

void TlsDoor::queue(Id id, Waiting& waiting) {
  if (std::exchange(waiting.is_queued, true)) return;
  if (waiting.session != nullptr) return answering_.push_back(id);
  fresh_[waiting.origin].push_back({id, std::chrono::steady_clock::now()});
}

TlsDoor::Id TlsDoor::next_fresh() {
  auto turn = fresh_.upper_bound(origin_served_);
  if (turn == fresh_.end()) turn = fresh_.begin();
  auto& [origin, ones] = *turn;
  origin_served_ = origin;
  // Those that are gone would look like clients that wait.
  while (ones.size() > 1 && !waiting_.contains(ones.front().id)) ones.pop_front();
  const bool is_late = std::chrono::steady_clock::now() - ones.front().since > patience_;
  const Id id = is_late ? ones.back().id : ones.front().id;
  is_late ? ones.pop_back() : ones.pop_front();
  if (ones.empty()) fresh_.erase(turn);
  return id;
}

void TlsDoor::serve(Id id) {
  const auto place = waiting_.find(id);
  if (place == waiting_.end()) return;
  place->second.is_queued = false;
  try {
    if (send(place)) read(place);
  } catch (const std::exception& thrown) {  // it costs this connection and nobody else
    if (const auto still = waiting_.find(id); still != waiting_.end())
      let_in(still, Entrant::How::kBroken, thrown.what());
  }
}

void TlsDoor::read(Place place) {
  Waiting& one = place->second;
  const ssize_t size = ::recv(*one.socket, room_.data(), room_.size(), MSG_DONTWAIT);
  if (size < 0 && would_block()) return;
  if (size <= 0) return let_in(place, Entrant::How::kGone);
  one.received_bytes += static_cast<uint64_t>(size);
  const BytesView wire = BytesView(room_).substr(0, static_cast<size_t>(size));
  if (one.session == nullptr) {
    if (wire.front() != base::kTlsHandshakeByte)
      return let_in(place, Entrant::How::kPlain, {}, Bytes(wire));
    begin(place);
  }
  one.session->feed(wire);
  step(place);
}

TlsDoor::Id TlsDoor::next_to_give_way() const {
  size_t most = 0;
  for (const auto& [origin, count] : begun_of_) most = std::max(most, count);
  const auto found = std::ranges::find_if(begun_, [&](const auto& one) {
    return begun_of_.at(waiting_.at(one.second).origin) == most;
  });
  return found->second;
}

// The certificates as they are now: sessions that are open keep the ones they began with when files
// are reloaded.
void TlsDoor::begin(Place place) {
  if (begun_.size() >= kHandshakesMax)
    let_in(waiting_.find(next_to_give_way()), Entrant::How::kGaveWay);
  auto session = base::TlsSession::make(credentials_->current(), base::TlsSession::Role::kServer);
  if (!session) throw std::runtime_error(session.error().message);
  const uint64_t number = handshakes_begun_.value() + 1;
  size_t& of_origin = begun_of_[place->second.origin];
  begun_.emplace(number, place->first);
  ++of_origin;
  place->second.begun = number;  // now, when nothing can throw any more: take_out() goes by it
  place->second.session = std::move(*session);
  handshakes_begun_.add();
}

// Even a failed step has something to send: the alert that tells the client why. What the socket
// does not take of it is the shard's.
void TlsDoor::step(Place place) {
  base::TlsSession& session = *place->second.session;
  const Result<bool> is_over = session.handshake();
  const bool has_sent = send(place);
  if (!is_over) return let_in(place, Entrant::How::kFailed, is_over.error().message);
  if (!*is_over) {
    if (has_sent) queue(place->first, place->second);  // until a read finds nothing
    return;
  }
  auto first = decrypted(session, room_);
  if (!first) return let_in(place, Entrant::How::kFailed, first.error().message);
  let_in(place, Entrant::How::kOpen, {}, std::move(*first));
}

// A socket that has failed is found by the next read.
bool TlsDoor::send(Place place) {
  Waiting& one = place->second;
  if (one.session == nullptr || one.session->out().empty()) return true;
  Bytes& out = one.session->out();
  const ssize_t sent = ::send(*one.socket, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && !would_block()) {
    out.clear();
    return true;
  }
  if (sent > 0) {
    one.sent_bytes += static_cast<uint64_t>(sent);
    out.erase(0, static_cast<size_t>(sent));
  }
  if (out.empty()) return true;
  // Once: each change of what is asked for is an edge itself, of what has come and waits.
  if (std::exchange(one.hears_of_room, true)) return false;
  epoll_event event{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.u64 = place->first}};
  ::epoll_ctl(*poll_, EPOLL_CTL_MOD, *one.socket, &event);
  return false;
}

TlsDoor::Waiting TlsDoor::take_out(Place place) {
  Waiting out = std::move(place->second);
  if (out.begun != 0) {
    begun_.erase(out.begun);
    if (--begun_of_.at(out.origin) == 0) begun_of_.erase(out.origin);
  }
  waiting_.erase(place);
  return out;
}

void TlsDoor::let_in(Place place, Entrant::How how, std::string why, Bytes first) {
  const Id id = place->first;
  Waiting one = take_out(place);
  using How = Entrant::How;
  const bool goes_on = how == How::kPlain || how == How::kOpen || how == How::kFailed;
  if (goes_on) {
    ::epoll_ctl(*poll_, EPOLL_CTL_DEL, *one.socket, nullptr);
  } else {  // it is closed here
    one.session = nullptr;
    const base::OpenFile closed(std::move(one.socket));
  }
  Entrant entrant{how,
                  std::move(one.socket),
                  std::move(one.session),
                  std::move(first),
                  std::move(why),
                  one.received_bytes,
                  one.sent_bytes};
  reactor_.post_from_any_thread(
      [this, id, entrant = std::move(entrant)]() mutable { let_in_(id, std::move(entrant)); });
}

}  // namespace tetrad::server
