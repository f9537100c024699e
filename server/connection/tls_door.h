// SPDX-License-Identifier: Apache-2.0
// Where clients come in that may speak TLS: a thread beside the shard's loop, which has their
// sockets until it is known whether they do, and through the whole handshake. So the loop hears of
// a connection once it can be served, and neither signs nor is woken for each flight.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/metrics.h"
#include "base/open_file.h"
#include "base/reactor.h"
#include "base/tls_session.h"

namespace tetrad::server {

/// A connection that leaves the door, and how.
struct Entrant {
  enum class How : uint8_t {
    kPlain,    // its first byte is not TLS's
    kOpen,     // the handshake is over
    kFailed,   // `why`; what session->out() still has is the alert
    kGone,     // the client has, or its socket has failed
    kGaveWay,  // of too many handshakes
    kBroken,   // `why`: a library has thrown
  };
  How how;
  base::OpenFile socket;
  std::unique_ptr<base::TlsSession> session;  // of kOpen and kFailed
  Bytes first;                                // what has come for the decoder, decrypted
  std::string why;
  uint64_t received_bytes = 0, sent_bytes = 0;  // of the wire
};

/// The connections of one shard before they are its own. The methods belong to the shard's thread.
/// Whoever is there has no time limit: the owner drops those that take too long. Of handshakes that
/// have begun kHandshakesMax are kept: then the oldest of an origin that has most gives way. To begin
/// one, origins take turns.
class TlsDoor {
 public:
  using Id = uint64_t;  // never 0
  /// Once for each connection that was not dropped, on the reactor's thread.
  using LetIn = std::function<void(Id, Entrant)>;

  /// For how long a client waits before later ones are served first.
  static constexpr std::chrono::milliseconds kPatience{500};

  /// `begun` counts handshakes, and is the door's alone. All references outlive it. Errors: throws
  /// std::system_error, where a thread or a descriptor cannot be had.
  TlsDoor(base::Reactor& reactor, std::shared_ptr<base::TlsCredentials> credentials,
          base::Counter& begun, LetIn let_in, std::chrono::milliseconds patience = kPatience);
  ~TlsDoor();
  TlsDoor(const TlsDoor&) = delete;
  TlsDoor& operator=(const TlsDoor&) = delete;

  /// `socket` does not block. `origin`: of clients that one user may be, such as their address.
  Id take(base::OpenFile socket, uint64_t origin);
  /// Closes it soon. It may be let in all the same, where that is on its way already.
  void drop(Id id);
  /// Frees a session of a connection that is closed, on the door's thread: when that next wakes, or
  /// with some others.
  void forget(std::unique_ptr<base::TlsSession> session);

 private:
  /// Of the shard's thread: a new connection; without a socket one to be dropped; or a session to be
  /// freed, whose id is 0.
  struct Order {
    Id id;
    base::OpenFile socket;
    std::unique_ptr<base::TlsSession> session = nullptr;
    uint64_t origin = 0;
  };
  struct Waiting {
    base::OpenFile socket;
    uint64_t origin;
    std::unique_ptr<base::TlsSession> session = nullptr;  // null: nothing has come
    uint64_t begun = 0;                                   // of begun_
    bool is_queued = false;
    bool hears_of_room = false;  // of the socket, for what is to be sent
    uint64_t received_bytes = 0, sent_bytes = 0;
  };
  /// Has spoken first at this time.
  struct Fresh {
    Id id;
    std::chrono::steady_clock::time_point since;
  };
  using Place = std::unordered_map<Id, Waiting>::iterator;

  void give(Order order);
  void wake() const;
  // Of the door's thread.
  void run();
  /// Queues those whose sockets can be read, or written again.
  void wait(bool may_sleep);
  /// False: the door closes.
  bool take_orders();
  void admit(Order order);
  void queue(Id id, Waiting& waiting);
  /// Out of fresh_, which is not empty; it may be gone.
  Id next_fresh();
  void serve(Id id);
  /// One read of the socket, and what follows from it.
  void read(Place place);
  /// One step of the handshake, with what has come.
  void step(Place place);
  /// False: the client has to take something first, or has gone.
  bool send(Place place);
  /// Of those that have begun.
  Id next_to_give_way() const;
  /// Makes room among the handshakes, and begins one.
  void begin(Place place);
  void let_in(Place place, Entrant::How how, std::string why = {}, Bytes first = {});
  /// Out of all lists.
  Waiting take_out(Place place);

  base::Reactor& reactor_;
  const std::shared_ptr<base::TlsCredentials> credentials_;
  base::Counter& handshakes_begun_;
  const LetIn let_in_;
  const std::chrono::milliseconds patience_;
  Id last_ = 0;  // of the shard's thread
  const base::OpenFile poll_, wake_;
  // Guards the next three.
  std::mutex mutex_;
  std::vector<Order> orders_;
  bool is_woken_ = false, stopping_ = false;  // is_woken_: it will look at orders_
  // Of the door's thread.
  std::unordered_map<Id, Waiting> waiting_;
  std::map<uint64_t, Id> begun_;                   // handshakes under way, oldest first
  std::unordered_map<uint64_t, size_t> begun_of_;  // how many of an origin, none of them 0
  // Can be read: in a handshake, and before one by origin, of which none is empty. May be gone.
  std::deque<Id> answering_;
  std::map<uint64_t, std::deque<Fresh>> fresh_;
  uint64_t origin_served_ = 0;  // the last one
  std::vector<Order> orders_taken_;
  Bytes room_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tetrad::server
