// SPDX-License-Identifier: Apache-2.0
// How a connection works. All of it runs on the shard's thread; nothing here blocks.
//
// 1. start(): a timer for STARTUP (and the login). Where clients may speak TLS the door has the
//    socket first (tls_door.h).
// 2. read(): one pending read of the socket at most. Bytes go to the decoder.
// 3. take_requests(): all whole envelopes that have come, until the connection must pause or has
//    used up its turn. Each goes to take().
// 4. take(): STARTUP, OPTIONS, REGISTER and AUTH_RESPONSE are answered here; everything else
//    becomes a task (run) of the shard's TaskGroup.
// 5. run(): QueryProcessor::process writes the answer into the encoder. Answers may come in any
//    order; the stream id tells the client which is which (native protocol v5, section 2).
// 6. schedule_flush(): once for each turn of the loop, flush() sends the answers of the turn
//    together (connection_send.cc).
// 7. request_done() reads on, if the connection had paused.
//
// Ends: close() at once; close_after_flush() after the answers in flight, then linger(); drain() also
// refuses what has come already and was not begun; give_up() tells what is in flight that it has no
// answer. Handlers of the socket and tasks hold a shared_ptr, so the object lives until the last
// one has run; each looks at phase_ first, since the socket may have been closed meanwhile.
#include "server/connection/connection.h"

#include <boost/asio/buffer.hpp>

#include "base/hash.h"
#include "server/auth/login.h"
#include "server/auth/login_limits.h"

namespace tetrad::server {
namespace {

namespace asio = boost::asio;

// What one connection may take in one step of the loop before others get their turn: by number, by
// bytes (texts are parsed and values are bound at once) and by estimated work.
constexpr int kRequestsPerStepMax = 128;
constexpr uint64_t kBytesPerStepMax = 32u << 10;  // texts are parsed, values bound
// Clients of small answers and small requests are served even when large ones hold the memory.
constexpr uint64_t kSmallAnswerBytes = 64u << 10;
constexpr uint64_t kSmallRequestBytes = 16u << 10;
/// Large answers of a connection that wait for their turn, and of the shard: each takes some 20 KB.
constexpr size_t kWaitingAnswersMax = 64, kAllWaitingAnswersMax = 512;
// The version is clamped since an envelope of an unknown version must be answered in one that
// clients know.
cql::ReplyHead head_of(const cql::Envelope& envelope) {
  cql::ReplyHead head;
  head.version = std::clamp(envelope.version(), cql::kProtocolVersionMin, cql::kProtocolVersionMax);
  head.stream = envelope.stream();
  return head;
}

constexpr size_t kShownOptionsMax = 16;

/// Of STARTUP, fit for a terminal.
// Control characters of a client must not reach an operator's terminal.
std::string shown_text(const std::string& sent) {
  constexpr size_t kShownMax = 100;
  std::string text = sent.substr(0, kShownMax);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return text;
}

std::string shown_option(const cql::ClientState& client, const char* name) {
  const auto found = client.startup_options.find(name);
  return found == client.startup_options.end() ? "" : shown_text(found->second);
}

}  // namespace

Connection::Connection(asio::io_context& io, Accepted accepted, ConnectionContext& context)
    : remote_(accepted.remote),
      accepted_(std::move(accepted.socket)),
      socket_(io),
      context_(context),
      decoder_(cql::FrameDecoder::Role::kServer, context.limits.frame) {}

Connection::~Connection() = default;

// Called once, when a shared_ptr holds the object.
void Connection::start() {
  client_.client_address = remote_.address().to_string();
  client_.client_port = remote_.port();
  context_.metrics.accepted.add();
  context_.open.insert(shared_from_this());
  startup_timer_ = context_.reactor.call_at(
      context_.reactor.now_us() + context_.limits.startup_timeout_us, [this] {
        startup_timer_ = 0;
        context_.logger.debug("closed a connection without STARTUP client={}",
                              client_.client_address);
        close();
      });
  if (context_.door == nullptr) {
    if (take_socket(std::move(accepted_))) read();
    return;
  }
  // The client speaks first, so its first byte decides between TLS and plain (tls_door.cc).
  link_ = Link::kAtDoor;
  at_door_ = context_.door->take(std::move(accepted_),
                                 base::xxh3_64(limited_part(client_.client_address)));
  context_.at_door.emplace(at_door_, this);
}

bool Connection::take_socket(base::OpenFile socket) {
  boost::system::error_code error;
  socket_.assign(remote_.protocol(), *socket, error);
  if (!error) {
    socket.release();
    socket_.non_blocking(true, error);
  }
  if (error) close();
  return !error;
}

// An exception of a library, mostly for want of memory: this connection ends, the node goes on.
void Connection::broke(const char* why) {
  context_.logger.error("closed a connection client={} error={}", client_.client_address, why);
  close();
}

void Connection::read() {
  // Called from many places; these conditions make that harmless. A yielded connection reads again
  // in go_on().
  if (reading_ || yielded_ || !is_open() || link_ == Link::kAtDoor || must_pause()) return;
  if (link_ != Link::kPlain) return await_wire();
  reading_ = true;
  const auto room = decoder_.writable();
  socket_.async_read_some(
      asio::buffer(room.data(), room.size()),
      [self = shared_from_this()](const boost::system::error_code& error, size_t size) {
        self->reading_ = false;
        if (self->phase_ == Phase::kClosed) return;
        if (error) {
          self->close();
          return;
        }
        if (self->phase_ == Phase::kLingering) {
          self->drop_input();
          return;
        }
        self->context_.metrics.bytes_in.add(size);
        self->caught([&] {
          // Decoding and answering may read again at once; one read is pending at most, since
          // reading_ is false here.
          self->decoder_.commit(size);
          self->take_requests();
          self->read();
        });
      });
}

/// What is being sent counts in full until all of it is sent: its memory is held until then.
uint64_t Connection::unsent_bytes() const { return encoder_.pending_bytes() + wire_.size(); }

// Tells the shard's budget what this client has not taken yet. Must follow each change of
// unsent_bytes(), or reads of others would wait for room that is free.
void Connection::charge_answers() {
  context_.processor.answers().set_unsent(client_.answers,
                                          phase_ == Phase::kClosed ? 0 : unsent_bytes());
}

// Back-pressure: the kernel's buffer fills and TCP slows the client down. The reasons: too many
// requests in flight, too many answer bytes unsent or promised to small ones, too many large answers
// that wait for their turn (small ones behind these are answered before them), or a full budget of
// the shard, in which each client gets one request at a time.
bool Connection::must_pause() {
  charge_answers();
  const cql::ClientAnswers& own = client_.answers;
  const uint64_t bytes_max = context_.limits.unsent_pause_bytes;
  const cql::AnswerBudget& all = context_.processor.answers();
  const bool enough_wait = own.waiting() != 0 && (own.waiting() >= kWaitingAnswersMax ||
                                                  all.waiting_turns() >= kAllWaitingAnswersMax ||
                                                  own.waiting_request_bytes() > bytes_max);
  paused_ = in_flight_ >= context_.limits.requests_in_flight_max || enough_wait ||
            own.unsent_bytes + own.promised_bytes - own.turn_bytes > bytes_max ||
            (own.unsent_bytes + in_flight_ > own.waiting() && all.is_full());
  return paused_;
}

/// Who is paused has a request in flight or bytes unsent: their ends call this.
void Connection::go_on_if_paused() {
  if (!paused_ || taking_ || yielded_ || must_pause()) return;
  // What the decoder holds already waits in no socket: go on with it from the loop.
  go_on_later();
}

void Connection::go_on_later() {
  yielded_ = true;
  context_.reactor.post([self = shared_from_this()] {
    self->yielded_ = false;
    self->caught([&] {
      self->take_requests();
      self->read();
    });
  });
}

// Not reentrant (taking_): answers made at once call back into go_on_if_paused().
void Connection::take_requests() {
  if (taking_ || yielded_) return;
  taking_ = true;
  const uint64_t worked_ns = context_.processor.worked_ns();
  uint64_t bytes = 0;
  for (int taken = 0; is_open() && !must_pause(); ++taken) {
    if (taken == kRequestsPerStepMax || bytes > kBytesPerStepMax ||
        context_.processor.worked_ns() - worked_ns > cql::WorkMeter::kTurnNs) {
      go_on_later();  // other clients come in between
      break;
    }
    cql::Incoming incoming = decoder_.next();
    using Kind = cql::Incoming::Kind;
    if (incoming.kind == Kind::kNeedMore) break;
    if (incoming.kind == Kind::kEnvelope) {
      bytes += incoming.envelope.body.size();
      take(std::move(incoming.envelope));
      continue;
    }
    context_.metrics.protocol_errors.add();
    ++requests_;  // of these, too, one that drains takes only so many
    // A usual mistake of configuration, so the log names it.
    if (incoming.version_refused && incoming.envelope.version() == base::kTlsHandshakeByte)
      notice("refused, it speaks TLS, which this port does not (client_encryption_enabled)");
    if (incoming.version_refused) {
      // As Cassandra: a protocol error in the highest version of this server (of versions 1 and 2
      // in theirs), so that drivers try again with one that is known.
      cql::append_version_refusal(encoder_.out(), incoming.envelope.version(),
                                  incoming.envelope.stream());
    } else {
      cql::append_error(encoder_.out(), head_of(incoming.envelope), incoming.error);
    }
    schedule_flush();
    // The decoder does not know where the next envelope begins: nothing behind it can be trusted.
    if (incoming.kind == Kind::kFatal) {
      close_after_flush();
      break;
    }
  }
  taking_ = false;
}

ClientFacts Connection::facts() const {
  ClientFacts out;
  out.address = client_.client_address;
  out.port = client_.client_port;
  out.user = client_.user;
  out.keyspace = client_.keyspace;
  out.driver_name = shown_option(client_, "DRIVER_NAME");
  out.driver_version = shown_option(client_, "DRIVER_VERSION");
  for (const auto& [name, value] : client_.startup_options) {
    if (out.options.size() == kShownOptionsMax) break;
    out.options[shown_text(name)] = shown_text(value);
  }
  out.stage = phase_ == Phase::kNew     ? "established"
              : phase_ == Phase::kLogin ? "authenticating"
                                        : "ready";
  if (link_ == Link::kTls) {
    out.tls_version = tls_->version();
    out.cipher_suite = tls_->cipher_suite();
  }
  out.protocol_version = version_;
  out.is_encrypted = link_ == Link::kTls;
  out.requests = requests_;
  return out;
}

// For errors that are found before a request became a task.
void Connection::refuse(const cql::Envelope& envelope, const Error& error) {
  context_.processor.metrics().count_error(error.code);
  cql::append_error(encoder_.out(), head_of(envelope), error);
  schedule_flush();
}

// A driver may ask another node, whatever the request is: this is what the code says.
void Connection::refuse_unbegun(const cql::Envelope& envelope) {
  refuse(envelope, Error(ErrorCode::kBootstrapping, "this node serves no clients any more"));
}

// OPTIONS may come before STARTUP, so it changes nothing.
void Connection::answer_options(const cql::Envelope& envelope) {
  const cql::SupportedOption options[] = {
      // Cassandra 5.0's answer, with what drivers choose from. TETRAD_VERSION is an extension;
      // drivers ignore options that they do not know.
      {"CQL_VERSION", {"3.4.7"}},
      {"COMPRESSION", {"lz4", "snappy"}},
      {"PROTOCOL_VERSIONS", {"3/v3", "4/v4", "5/v5"}},
      {"TETRAD_VERSION", {context_.program_version}},
  };
  cql::append_supported(encoder_.out(), head_of(envelope), options);
  schedule_flush();
}

// A second REGISTER adds to the first, as in Cassandra: there is no message to take events back.
void Connection::register_events(const cql::Envelope& envelope,
                                 const cql::RegisterRequest& wanted) {
  wanted_.schema_change |= wanted.schema_change;
  wanted_.status_change |= wanted.status_change;
  wanted_.topology_change |= wanted.topology_change;
  context_.events.add(*this);
  cql::append_ready(encoder_.out(), head_of(envelope));
  schedule_flush();
}

// Two limits of the shard: the bytes of requests in flight, and the bytes of answers that wait for
// slow clients. Both leave room for the small ones, so that a few clients with large rows cannot
// lock out the others.
bool Connection::has_room_for(const cql::Envelope& envelope) {
  const uint64_t bytes = envelope.body.size();
  // Small requests find room beside what large ones hold.
  // held_bytes() is what the processor keeps of requests that have been taken apart already.
  const uint64_t held = bytes > kSmallRequestBytes ? context_.processor.held_bytes() : 0;
  if (context_.request_bytes_in_flight + held + bytes > context_.limits.shard_request_bytes_max) {
    context_.metrics.overloaded.add();
    refuse(envelope, Error(ErrorCode::kOverloaded,
                           "Too many bytes of requests in flight on this node; try again"));
    return false;
  }
  // Clients of small answers are always served, new ones for longer than those of large answers.
  const cql::AnswerBudget& answers = context_.processor.answers();
  // last_answer_bytes_ begins at its maximum, so a client without history counts as one of large
  // answers, but with more room.
  if (last_answer_bytes_ > kSmallAnswerBytes &&
      answers.used_bytes() > (answered_ ? 2 : 3) * answers.bytes_max()) {
    if (unsent_bytes() == 0) context_.processor.answers().note_wanted();
    context_.metrics.overloaded.add();
    refuse(envelope, Error(ErrorCode::kOverloaded,
                           "Too many bytes of answers wait for slow clients of this node; try "
                           "again"));
    return false;
  }
  return true;
}

// The order of the tests is the protocol's: before the login nothing but the login is answered, and
// before STARTUP nothing but OPTIONS.
void Connection::take(cql::Envelope envelope) {
  context_.metrics.requests.add();
  ++requests_;
  is_quiet_ = false;
  if (phase_ == Phase::kDraining) return refuse_unbegun(envelope);
  auto decoded = cql::decode_request(envelope);
  if (!decoded) {
    refuse(envelope, decoded.error());
    return;
  }
  auto& message = decoded->message;
  // Before the others, so that none is answered before the login, not even OPTIONS.
  if (phase_ == Phase::kLogin) {
    take_login(std::move(envelope), *decoded);
    return;
  }
  if (std::holds_alternative<cql::OptionsRequest>(message)) {
    answer_options(envelope);
    return;
  }
  if (const auto* startup = std::get_if<cql::StartupRequest>(&message)) {
    start_up(envelope, *startup);
    return;
  }
  if (phase_ == Phase::kNew) {
    refuse(envelope, Error(ErrorCode::kProtocol,
                           fmt::format("Unexpected message {}, expecting STARTUP or OPTIONS",
                                       cql::name_of(envelope.opcode()))));
    return;
  }
  if (const auto* wanted = std::get_if<cql::RegisterRequest>(&message)) {
    register_events(envelope, *wanted);
    return;
  }
  if (std::holds_alternative<cql::AuthResponseRequest>(message)) {
    refuse(envelope, Error(ErrorCode::kProtocol,
                           "Unexpected message AUTH_RESPONSE: the connection is ready"));
    return;
  }
  if (!has_room_for(envelope)) return;
  take_room();
  context_.request_bytes_in_flight += envelope.body.size();
  context_.metrics.requests_begun.add();
  ++in_flight_;
  // The request's views point into the envelope, so the task owns both.
  context_.tasks.spawn(run(shared_from_this(), std::move(envelope), std::move(*decoded)));
}

Connection::InFlight::InFlight(Connection& connection, cql::ReplyHead reply)
    : head(reply), next(connection.first_in_flight_), link_(&connection.first_in_flight_) {
  if (next != nullptr) next->link_ = &next;
  *link_ = this;
}

Connection::InFlight::~InFlight() {
  if (next != nullptr) next->link_ = link_;
  *link_ = next;
}

// A static coroutine: `self` is a parameter and lives in its frame. process() answers errors of the
// request itself and throws only where not even that was possible.
Task<void> Connection::run(std::shared_ptr<Connection> self, cql::Envelope envelope,
                           cql::Request request) {
  const uint64_t bytes = envelope.body.size();
  const InFlight in_flight(*self, head_of(envelope));
  try {
    co_await self->context_.processor.process(std::move(envelope), std::move(request),
                                              self->client_, self->encoder_.out());
  } catch (const std::exception& error) {  // not even its error could be written
    self->context_.logger.error("closed a connection client={} error={}",
                                self->client_.client_address, error.what());
    self->close();
  }
  self->request_done(bytes);
}

void Connection::request_done(uint64_t bytes) {
  context_.request_bytes_in_flight -= bytes;
  context_.metrics.requests_ended.add();
  --in_flight_;
  // Whatever appends calls schedule_flush() at once: so what is new is this answer.
  // Of this request alone; what decides whether the client's next request may use the room for
  // small answers.
  const uint64_t size = encoder_.pending_bytes() - seen_bytes_;
  last_answer_bytes_ = size;
  answered_ = true;
  charge_answers();
  schedule_flush();
  go_on_if_paused();
}

// STARTUP and its answer are never compressed or framed in segments (native protocol v5, section
// 2): the encoder and the decoder change after the answer has been appended.
void Connection::start_up(const cql::Envelope& envelope, const cql::StartupRequest& request) {
  if (phase_ != Phase::kNew) {
    refuse(envelope,
           Error(ErrorCode::kProtocol, "Unexpected message STARTUP: the connection is ready"));
    return;
  }
  for (const auto& [key, value] : request.options) {
    client_.startup_options.emplace(std::string(key), std::string(value));
  }
  version_ = envelope.version();
  client_.must_log_in = context_.logins != nullptr;
  // A client certificate that names a role is a login; then there is no AUTHENTICATE.
  if (client_.must_log_in) client_.user = certified_role();
  if (!client_.user.empty())
    record_login(context_.audit, client_, client_.user, nullptr, context_.reactor);
  const bool must_ask = client_.must_log_in && client_.user.empty();
  if (must_ask) {  // the time for STARTUP goes on
    cql::append_authenticate(encoder_.out(), head_of(envelope), kPasswordAuthenticator);
  } else {
    cql::append_ready(encoder_.out(), head_of(envelope));
  }
  encoder_.start(version_, request.compression);
  decoder_.start(version_, request.compression);
  phase_ = Phase::kLogin;
  if (!must_ask) become_ready();
  schedule_flush();
}

void Connection::become_ready() {
  context_.reactor.cancel(std::exchange(startup_timer_, 0));
  decoder_.set_authenticated();
  phase_ = Phase::kReady;
}

// One login at a time: a hash takes a worker's time, and a client must not run several.
void Connection::take_login(cql::Envelope envelope, const cql::Request& request) {
  const auto* response = std::get_if<cql::AuthResponseRequest>(&request.message);
  if (response == nullptr || logging_in_) {
    refuse(envelope,
           Error(ErrorCode::kProtocol, fmt::format("Unexpected message {}, expecting SASL_RESPONSE",
                                                   cql::name_of(envelope.opcode()))));
    return;
  }
  // Copied: the view is into the envelope's body, the task outlives this call.
  std::optional<Bytes> token;
  if (response->token) token = Bytes(*response->token);
  logging_in_ = true;
  // The time that the node takes is not the client's.
  context_.reactor.cancel(std::exchange(startup_timer_, 0));
  ++in_flight_;
  context_.metrics.requests_begun.add();
  context_.tasks.spawn(log_in(shared_from_this(), std::move(envelope), std::move(token)));
}

// SASL PLAIN (native protocol v5, section 4.2.3). A failed login leaves the connection open for
// another try, with a new time limit.
Task<void> Connection::log_in(std::shared_ptr<Connection> self, cql::Envelope envelope,
                              std::optional<Bytes> token) {
  ConnectionContext& context = self->context_;
  std::optional<Error> error;
  const std::string named = context.audit == nullptr ? "" : user_in_token(token);
  try {
    auto user =
        co_await server::log_in(self->client_.client_address, std::move(token), context.reactor,
                                context.processor, *context.logins, self->login_wait_);
    if (user) {
      self->client_.user = std::move(*user);
    } else {
      error = std::move(user.error());
    }
  } catch (const std::exception& thrown) {
    error = Error(ErrorCode::kServerError, thrown.what());
  }
  self->logging_in_ = false;
  record_login(context.audit, self->client_, named, error ? &*error : nullptr, context.reactor);
  // The client may have gone meanwhile; the attempt is recorded all the same.
  if (self->phase_ == Phase::kLogin) {
    if (error) {
      context.logger.info("a login failed client={} port={} reason={}",
                          self->client_.client_address, self->client_.client_port, error->message);
      self->startup_timer_ = context.reactor.call_at(
          context.reactor.now_us() + context.limits.startup_timeout_us, [connection = self.get()] {
            connection->startup_timer_ = 0;
            connection->close();
          });
      self->refuse(envelope, *error);
    } else {
      cql::append_auth_success(self->encoder_.out(), head_of(envelope));
      self->become_ready();
    }
  }
  self->request_done(0);
}

}  // namespace tetrad::server
