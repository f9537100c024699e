// SPDX-License-Identifier: Apache-2.0
// One client connection: bytes in, whole requests, answers, bytes out. All frames that have come in
// one turn are taken together and all answers of a turn leave in one send. Belongs to its shard's
// thread.
//
// Back-pressure: reading stops while too many requests are in flight, or too many answer bytes wait
// for a slow reader or are promised to reads under way; large answers begin one after another, and
// small ones pass those that wait (cql/prepare/answer_budget.h). So a
// connection's memory is bounded by its limits, and that of all of them by the node's: beyond it a
// connection gets one request at a time, far beyond it OVERLOADED. A reader that takes nothing for
// long is closed.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "base/log.h"
#include "base/metrics.h"
#include "base/open_file.h"
#include "base/reactor.h"
#include "base/task_group.h"
#include "base/tls_session.h"
#include "cql/execute/query_processor.h"
#include "cql/protocol/frame_decoder.h"
#include "cql/protocol/frame_encoder.h"
#include "server/auth/login_limits.h"
#include "server/connection/client_facts.h"
#include "server/connection/client_tls.h"
#include "server/connection/event_hub.h"
#include "server/connection/tls_door.h"

namespace tetrad::server {

/// What one client, and all clients of a shard together, may have under way.
struct ConnectionLimits {
  cql::FrameLimits frame;
  uint32_t requests_in_flight_max = 4096;  // per connection; then reading pauses
  // Reading pauses until the client has taken them.
  uint64_t unsent_pause_bytes = cql::AnswerBudget::kClientBytesMax;
  int64_t startup_timeout_us = 10'000'000;  // from accept to the end of STARTUP
  int64_t linger_us = 1'000'000;  // from the last word to a client until his socket is closed
  int64_t stalled_write_timeout_us =
      60'000'000;  // a client that reads nothing for so long is closed
  // The same while others wait for the room of its answers: less than they wait for.
  int64_t wanted_write_timeout_us = 4'000'000;
  uint64_t shard_request_bytes_max =
      1u << 30;  // of all requests in flight on the shard; beyond it OVERLOADED
};

/// Counters of one shard's connections, changed by its thread, read by others.
struct ConnectionMetrics {
  // accepted - closed are open, requests_begun - requests_ended in flight.
  base::Counter accepted, closed, refused, requests, protocol_errors, overloaded, bytes_in,
      bytes_out, requests_begun, requests_ended, tls_begun, tls_open, tls_failed;
  // Also from other threads:
  uint64_t open_now() const { return accepted.value() - closed.value(); }
  uint64_t in_flight_now() const { return requests_begun.value() - requests_ended.value(); }
};

class Connection;

/// What the connections of one shard share. Outlives them.
struct ConnectionContext {
  base::Reactor& reactor;
  cql::QueryProcessor& processor;
  EventHub& events;
  ConnectionLimits limits;
  std::string program_version;
  Logger logger;
  ConnectionMetrics metrics;
  LoginLimits* logins = nullptr;                   // outlives it; null: nobody has to log in
  cql::AuditTrail* audit = nullptr;                // outlives it; null: nothing is recorded
  std::shared_ptr<const ClientTlsRules> tls = {};  // null: no client speaks it
  /// Those that are at the door.
  std::unordered_map<TlsDoor::Id, Connection*> at_door;
  /// Two TLS records of full length.
  static constexpr size_t kWireRoomBytes = 32u << 10;
  Bytes wire_room;  // what was read of a socket and is not yet decrypted
  Notices notices;
  uint64_t request_bytes_in_flight = 0;
  // What keeps connections: who is not in it ends with its last handler.
  std::unordered_set<std::shared_ptr<Connection>> open;
  bool draining = false;
  /// Large buffers that were sent empty: the next turn of large answers fills one of them,
  /// whoever's it is.
  std::vector<Bytes> spare_rooms;
  base::TaskGroup tasks;  // goes before what its tasks use
  /// Made by open_door(); null: no client speaks TLS. Last: its thread ends first.
  std::unique_ptr<TlsDoor> door;

  /// For `tls`. Before the first connection; the object stays where it is. Throws as TlsDoor's
  /// constructor.
  void open_door();
};

/// A client's socket, which does not block, and from where it comes.
struct Accepted {
  base::OpenFile socket;
  boost::asio::ip::tcp::endpoint remote;
};

/// A client's connection, from accept to close. On its shard's thread; kept by the socket's
/// handlers and its requests. Always: its memory is bounded by its limits.
class Connection final : public std::enable_shared_from_this<Connection>, public EventSink {
 public:
  /// `io`: the shard's loop.
  Connection(boost::asio::io_context& io, Accepted accepted, ConnectionContext& context);
  ~Connection() override;

  void start();
  /// Answers in flight are still sent, what has come and was not begun is refused; then the socket
  /// closes.
  void drain();
  /// Tells each request in flight that it gets no answer, refuses what was not begun, and closes.
  /// For the end of the process, when no loop runs any more. Without `refuses_rest` what has come is
  /// not read.
  void give_up(bool refuses_rest);
  /// At once.
  void close();
  ClientFacts facts() const;
  /// From the door of its shard.
  void let_in(Entrant entrant);

  const cql::RegisterRequest& wanted_events() const override { return wanted_; }
  void send_schema_event(const cql::SchemaChange& change) override;
  void send_topology_event(cql::TopologyChange change, const cql::Inet& node) override;
  void send_status_event(cql::StatusChange change, const cql::Inet& node) override;

 private:
  /// kLogin: it has to log in, and may do nothing else. kDraining: what still comes is refused.
  /// kClosing: what is in flight is still answered. kLingering: the last word is out, what comes is dropped, so that no reset takes the
  /// word from the client.
  enum class Phase : uint8_t { kNew, kLogin, kReady, kDraining, kClosing, kLingering, kClosed };

  /// A request in flight, in a list of its connection's; lives in the frame of its task.
  class InFlight {
   public:
    InFlight(Connection& connection, cql::ReplyHead reply);
    ~InFlight();
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;
    const cql::ReplyHead head;
    InFlight* next;

   private:
    InFlight** link_;  // what points to this one
  };

  /// kAtDoor: the door has the socket and finds out which of the two it is.
  enum class Link : uint8_t { kAtDoor, kPlain, kTls };

  /// The last catch of what a client's bytes set off on the loop: a library that throws, mostly for
  /// want of memory, costs that connection and nobody else.
  template <class Work>
  void caught(Work work) {
    try {
      work();
    } catch (const std::exception& error) {
      broke(error.what());
    }
  }
  /// Logs why and closes at once.
  void broke(const char* why);
  void read();
  /// False, and closed: the loop does not take the socket.
  bool take_socket(base::OpenFile socket);
  // Of connections that speak TLS, or may (connection_tls.cc).
  /// Waits until the socket can be read, without a buffer.
  void await_wire();
  /// Reads into the shard's room what has come, for TLS.
  void take_wire();
  /// Answers a client without TLS where it is demanded, in its protocol, and closes.
  void refuse_plain(BytesView first);
  /// The door need not look after it any more; may be called at any time.
  void leave_door();
  /// What TLS has decrypted, to the decoder. Errors: the session is broken.
  Result<void> decrypt();
  void take_decrypted();
  /// The turn's answers through TLS into wire_. False: the session is broken.
  bool encrypt_turn();
  /// The role that its certificate names; empty: none that may log in.
  std::string certified_role() const;
  /// TLS's own notice of the end, where it is spoken: without it a client cannot tell an end from
  /// an attack.
  void say_end();
  /// A line of the log, as far as Notices lets it through.
  void notice(std::string_view what);
  /// Whole envelopes of the decoder, as many as one step may take.
  void take_requests();
  /// One request: answered here, refused, or begun as a task.
  void take(cql::Envelope envelope);
  void answer_options(const cql::Envelope& envelope);
  void register_events(const cql::Envelope& envelope, const cql::RegisterRequest& wanted);
  /// Whether the shard's limits admit one more request of this size; if not, OVERLOADED is its
  /// answer already.
  bool has_room_for(const cql::Envelope& envelope);
  void start_up(const cql::Envelope& envelope, const cql::StartupRequest& request);
  /// Login is over or not needed: from here on all requests are taken.
  void become_ready();
  /// The one kind of request that is taken in the phase kLogin: AUTH_RESPONSE.
  void take_login(cql::Envelope envelope, const cql::Request& request);
  static Task<void> log_in(std::shared_ptr<Connection> self, cql::Envelope envelope,
                           std::optional<Bytes> token);
  /// Whether requests are read.
  bool is_open() const { return phase_ <= Phase::kDraining; }
  /// An ERROR as the answer to this envelope; the connection goes on.
  void refuse(const cql::Envelope& envelope, const Error& error);
  void refuse_unbegun(const cql::Envelope& envelope);
  static Task<void> run(std::shared_ptr<Connection> self, cql::Envelope envelope,
                        cql::Request request);
  /// Of a task; `bytes`: of its envelope's body.
  void request_done(uint64_t bytes);
  /// Of answers that wait in this connection, encrypted or not.
  uint64_t unsent_bytes() const;
  /// Whether reading stops for now; notes it for go_on_if_paused().
  bool must_pause();
  // Tells the shard's budget of answers how many bytes wait here unsent.
  void charge_answers();
  void go_on_if_paused();
  /// Takes further requests in a step of the loop of its own.
  void go_on_later();
  /// After an EVENT was appended: it leaves at the end of the turn.
  void event_sent();
  // A spare buffer of the shard for a large turn of answers, and back when they are sent.
  void take_room();
  void give_room();
  /// Must follow everything that appends to encoder_.
  void schedule_flush();
  /// Sends the answers of the turn; at the end of a turn only.
  void flush();
  /// Sends the rest of wire_ as the client takes it.
  void write_more();
  /// Of what the socket was given, what the client's machine has not taken.
  int untaken_bytes();
  /// Closes the connection of a client that takes nothing for too long; looks again if it is not.
  void look_at_stall();
  void close_after_flush();
  /// Of a connection that drains: looks again and again whether all is answered and nothing more
  /// comes.
  void await_quiet();
  /// What the socket has, to the decoder, without waiting: how many bytes.
  size_t read_now();
  void refuse_rest();
  /// The last answer is out: closes the sending half, and the rest when the client has closed.
  void linger();
  /// While it lingers: what still comes is read and dropped.
  void drop_input();

  // Bytes go socket_ → (tls_) → decoder_, and encoder_ → (plain_ → tls_) → wire_ → socket_.
  const boost::asio::ip::tcp::endpoint remote_;
  base::OpenFile accepted_;  // until start()
  boost::asio::ip::tcp::socket socket_;
  ConnectionContext& context_;
  cql::FrameDecoder decoder_;
  cql::FrameEncoder encoder_;
  Bytes wire_;  // being sent
  std::unique_ptr<base::TlsSession> tls_;
  Bytes plain_;  // of a turn, before it is encrypted
  size_t wire_sent_ = 0;
  size_t last_turn_bytes_ = 0;
  // writing_ and reading_: an operation of the socket is under way, of each kind one at most.
  // paused_: reading stopped by must_pause(). yielded_: a step of the loop is posted that takes on.
  // taking_: take_requests() is on the stack.
  bool writing_ = false, reading_ = false, flush_scheduled_ = false, taking_ = false,
       paused_ = false, yielded_ = false, answered_ = false, logging_in_ = false;
  // Only forward, in the order of the enumeration; kLogin and kDraining may be left out.
  Phase phase_ = Phase::kNew;
  Link link_ = Link::kPlain;
  TlsDoor::Id at_door_ = 0;  // 0: not there
  // 0 until STARTUP; then all requests must have it.
  int version_ = 0;
  uint64_t requests_ = 0;
  cql::RegisterRequest wanted_;
  // Who the client is and which keyspace is in use: what a statement needs of its connection.
  cql::ClientState client_;
  LoginWait login_wait_;
  // Requests taken and not answered.
  uint32_t in_flight_ = 0;
  InFlight* first_in_flight_ = nullptr;
  bool is_quiet_ = false;  // no request has come since await_quiet() has looked
  base::MonotonicUs drain_began_us_ = 0;
  uint64_t requests_before_drain_ = 0;
  // Size of the last answer; a client that has had none counts as one of large answers.
  uint64_t last_answer_bytes_ = UINT64_MAX;
  size_t seen_bytes_ = 0;  // of encoder_: what was there before the answer that comes next
  // 0: not armed.
  base::Reactor::TimerId startup_timer_ = 0, stall_timer_ = 0, linger_timer_ = 0;
  // While stall_timer_ runs: the client takes nothing, and this is in its socket for it.
  base::MonotonicUs stalled_since_us_ = 0;
  int untaken_bytes_ = 0;
};

}  // namespace tetrad::server
