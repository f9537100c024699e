// SPDX-License-Identifier: Apache-2.0
// The clients of the load generator: what a run shares, and one connection of it. All of a run is on
// one thread, so that nothing here takes a lock and the client's own cost stays small and even.
//
// 1. connect(), query() and prepare() block: they come before the time is taken.
// 2. begin() makes the socket asynchronous. From then on an answer sends the next request.
// 3. The last answer closes all connections of the run, and its io_context runs out of work.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/consistency_level.h"
#include "base/tls_session.h"
#include "cql/protocol/client.h"
#include "cql/protocol/frame_decoder.h"
#include "cql/protocol/frame_encoder.h"
#include "tools/bench/latencies.h"
#include "tools/bench/workloads.h"

namespace tetrad::bench {

namespace asio = boost::asio;
// Latencies are differences, so the clock may not jump.
using Clock = std::chrono::steady_clock;

/// What the command line says.
/// Read by CLI11, completed by complete() in main.cc, and then not changed; the defaults are those
/// of --help.
struct Settings {
  std::vector<std::string> hosts = {"127.0.0.1"};
  uint16_t port = 9042;
  // connections: for each host. in_flight: of the whole run, shared out among the connections.
  int connections = 4, in_flight = 64;
  // rate: 0 is a closed loop, in which each answer sends the next request; otherwise requests are
  // due at this rate whether answers come or not.
  double seconds = 10, rate = 0;
  // settle: seconds between the end of a run and the reading of the servers' CPU.
  double settle = 0;
  // A run is one workload from its connections to its line of results; load is run once whatever
  // this says.
  int runs = 1;
  Scale scale;
  // Of the keyspaces that schema and ddl make.
  int replication_factor = 1;
  // Of the workload ddl.
  uint64_t tables = 1000;
  std::string keyspace = "bench", level_name = "ONE";
  ConsistencyLevel level = ConsistencyLevel::kOne;  // of that name
  std::string user, password;                       // no user: nobody logs in
  // For their CPU time; servers on other machines have none here.
  std::vector<int> pids;
  std::vector<std::string> workloads;
  base::TlsFiles tls_files;
  // shares: how equal the clients of a closed loop fared is printed, too.
  bool tls = false, shares = false;
  std::shared_ptr<const base::TlsContext> tls_context;  // null: plain
};

/// The program is one run for one person: what goes wrong ends it, with a line that says why.
[[noreturn]] inline void die(const std::string& message) {
  fmt::print(stderr, "tetrad-bench: {}\n", message);
  std::exit(1);
}

class Connection;

/// One workload on its way: shared by its connections, all on this one thread.
/// Lives on the stack of run_once(), longer than its connections' handlers.
struct Run {
  asio::io_context io;
  const Settings& settings;
  const Workload& workload;
  // One request is made at a time: its memory is used again for the next.
  Operation operation;  // scratch
  uint64_t next = 0;    // number of an operation
  // No request is begun after it; those in flight are awaited.
  Clock::time_point stop_at = Clock::time_point::max();
  // done counts answers, those with errors too; rows are those of answers.
  uint64_t in_flight = 0, done = 0, errors = 0, rows = 0;
  // The text of the first error, for the line of results.
  std::string first_error;
  Latencies latencies;
  // Kept here and by the handlers of their sockets.
  std::vector<std::shared_ptr<Connection>> connections;
  std::deque<Clock::time_point> due;  // open loop: requests not sent yet
  Run(const Settings& s, const Workload& w) : settings(s), workload(w) {}
};

/// One client connection. Until begin() it blocks, for schema and preparing; from then on everything
/// is asynchronous. Up to as many streams as requests are in flight, each used again when it is
/// answered.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& io, std::string host, const Settings& settings)
      : socket_(io),
        host_(std::move(host)),
        port_(settings.port),
        user_(settings.user),
        password_(settings.password),
        tls_context_(settings.tls_context),
        decoder_(cql::FrameDecoder::Role::kClient, limits()) {}

  // Answers may be larger than a server takes as requests.
  static cql::FrameLimits limits() {
    cql::FrameLimits out;
    out.body_bytes_max = 256u << 20;
    return out;
  }

  // Protocol v4 without compression: what is measured is the server, not the client's work.
  void connect() {
    boost::system::error_code error;
    socket_.connect({asio::ip::make_address(host_), port_}, error);
    if (error) die(fmt::format("{}:{}: {}", host_, port_, error.message()));
    socket_.set_option(asio::ip::tcp::no_delay(true));
    if (tls_context_ != nullptr) shake_hands();
    const cql::client::StartupOption options[] = {{"CQL_VERSION", "3.0.0"}};
    cql::client::append_startup(encoder_.out(), {kVersion, 0, false, {}}, options);
    const cql::Envelope envelope = ask();
    const auto response = response_of(envelope);
    if (!user_.empty()) {
      if (!std::holds_alternative<cql::client::AuthenticateReply>(response.reply))
        die(host_ + " asks nobody to log in");
      log_in();
    } else {
      check(response);
      if (std::holds_alternative<cql::client::AuthenticateReply>(response.reply))
        die(host_ + " wants a login: say --user, and TETRAD_BENCH_PASSWORD in the environment");
    }
    encoder_.start(kVersion, cql::Compression::kNone);
    decoder_.start(kVersion, cql::Compression::kNone);
  }

  /// Sends what is in the encoder and waits for one answer.
  /// Blocks; for what comes before the time is taken.
  cql::Envelope ask() {
    finish_turn();
    asio::write(socket_, asio::buffer(wire_));
    while (true) {
      cql::Incoming incoming = decoder_.next();
      if (incoming.kind == cql::Incoming::Kind::kEnvelope) return std::move(incoming.envelope);
      if (incoming.kind != cql::Incoming::Kind::kNeedMore) die(incoming.error.message);
      const auto room = room_to_read();
      boost::system::error_code error;
      const size_t size = socket_.read_some(asio::buffer(room.data(), room.size()), error);
      if (error) die(fmt::format("{}: {}", host_, error.message()));
      took(size);
    }
  }

  // The views in it are good as long as the envelope.
  static cql::client::Response response_of(const cql::Envelope& envelope) {
    auto response = cql::client::decode_response(envelope);
    if (!response) die(response.error().message);
    return std::move(*response);
  }
  // An error before the time is taken ends the program: a run without its tables says nothing.
  static void check(const cql::client::Response& response) {
    if (const auto* error = std::get_if<cql::client::ErrorReply>(&response.reply))
      die(error->error.message);
  }

  // Runs a statement to its end. An error ends the program.
  void query(const std::string& text) {
    cql::client::append_query(encoder_.out(), {kVersion, 0, false, {}}, text, {});
    const cql::Envelope envelope = ask();
    check(response_of(envelope));
  }

  // Prepared statements are numbered in the order of these calls: Operation::statement.
  void prepare(const std::string& text) {
    cql::client::append_prepare(encoder_.out(), {kVersion, 0, false, {}}, text, {});
    const cql::Envelope envelope = ask();
    const auto response = response_of(envelope);
    check(response);
    prepared_.emplace_back(std::get<cql::client::PreparedReply>(response.reply).id);
  }

  // From here on only the io_context of the run drives the connection.
  void begin(Run& run) {
    run_ = &run;
    socket_.non_blocking(true);
    read();
  }

  /// Takes the next operation; `due` is when it should have been sent. In an open loop `due` may be
  /// in the past: then the wait counts as latency.
  void send(Clock::time_point due) {
    Operation& operation = run_->operation;
    run_->workload.make(run_->next++, operation);
    ++run_->in_flight;
    // Stream numbers are given in order; a free one is used again first.
    int16_t stream;
    if (free_.empty()) {
      stream = static_cast<int16_t>(sent_at_.size());
      sent_at_.push_back(due);
      answered_.push_back(0);
    } else {
      stream = free_.back();
      free_.pop_back();
      sent_at_[static_cast<size_t>(stream)] = due;
    }
    values_.clear();
    for (const Bytes& value : operation.values) values_.push_back(cql::WireValue::of(value));
    cql::client::Parameters parameters;
    parameters.consistency = run_->settings.level;
    parameters.values = values_;
    parameters.skip_metadata = true;
    cql::client::append_execute(encoder_.out(), {kVersion, stream, false, {}},
                                prepared_[operation.statement], {}, parameters);
  }

  // One write at a time: what is added while it runs goes with the next one, as a driver's
  // pipelining does.
  void flush() {
    if (writing_ || encoder_.empty()) return;
    finish_turn();
    writing_ = true;
    asio::async_write(socket_, asio::buffer(wire_),
                      [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                        if (error) die(fmt::format("{}: {}", self->host_, error.message()));
                        self->writing_ = false;
                        self->flush();
                      });
  }

  /// Of its requests in flight, each of which is followed by the next of the same client: how many
  /// were answered.
  const std::vector<uint64_t>& answered() const { return answered_; }

  // Handlers that are under way find closed_ and end; they hold the object until then.
  void close() {
    boost::system::error_code ignored;
    closed_ = true;
    socket_.close(ignored);
  }

 private:
  static constexpr int kVersion = 4;

  /// By SASL PLAIN.
  void log_in() {
    const Bytes token = cql::client::plain_token(user_, password_);
    cql::client::append_auth_response(encoder_.out(), {kVersion, 0, false, {}}, BytesView(token));
    const cql::Envelope envelope = ask();
    check(response_of(envelope));
  }

  // Without a name to compare: the certificate must be of the authority, if one was given.
  void shake_hands() {
    auto made =
        base::TlsSession::make(tls_context_, base::TlsSession::Role::kClient, std::string());
    if (!made) die(made.error().message);
    tls_ = std::move(*made);
    // Room for one read of ciphertext.
    encrypted_.resize(64u << 10);
    while (true) {
      const auto is_over = tls_->handshake();
      asio::write(socket_, asio::buffer(tls_->out()));
      tls_->out().clear();
      if (!is_over) die(fmt::format("{}: {}", host_, is_over.error().message));
      if (*is_over) return;
      boost::system::error_code error;
      const size_t size = socket_.read_some(asio::buffer(encrypted_), error);
      if (error) die(fmt::format("{}: {}", host_, error.message()));
      tls_->feed(BytesView(encrypted_).substr(0, size));
    }
  }

  /// What the encoder holds, in its form on the wire, to wire_.
  void finish_turn() {
    if (tls_ == nullptr) return encoder_.finish_turn(wire_);
    encoder_.finish_turn(plain_);
    if (const auto written = tls_->write(plain_); !written) die(written.error().message);
    wire_.clear();
    std::swap(wire_, tls_->out());
  }

  // Where the next read of the socket goes: to the decoder itself, or to TLS first.
  std::span<char> room_to_read() {
    return tls_ == nullptr ? decoder_.writable() : std::span<char>(encrypted_);
  }

  /// `size` bytes have come into room_to_read(): to the decoder, decrypted where TLS is spoken.
  void took(size_t size) {
    if (tls_ == nullptr) return decoder_.commit(size);
    tls_->feed(BytesView(encrypted_).substr(0, size));
    while (true) {
      // Ciphertext of one read may hold several records, or none that is whole.
      const auto room = decoder_.writable();
      const auto got = tls_->read(room.data(), room.size());
      if (!got) die(fmt::format("{}: {}", host_, got.error().message));
      if (*got == 0) return;
      decoder_.commit(*got);
    }
  }

  // One read is always under way; its handler begins the next.
  void read() {
    const auto room = room_to_read();
    socket_.async_read_some(
        asio::buffer(room.data(), room.size()),
        [self = shared_from_this()](const boost::system::error_code& error, size_t size) {
          // All answers of one read first, then one write with what follows them.
          if (self->closed_) return;
          if (error) die(fmt::format("{}: {}", self->host_, error.message()));
          self->took(size);
          self->take();
          self->flush();
          if (!self->closed_) self->read();
        });
  }

  /// All answers that have come whole; each may be followed by the next request of its client.
  void take() {
    const auto now = Clock::now();
    while (true) {
      const cql::Incoming incoming = decoder_.next();
      if (incoming.kind == cql::Incoming::Kind::kNeedMore) break;
      if (incoming.kind != cql::Incoming::Kind::kEnvelope) die(incoming.error.message);
      const auto stream = incoming.envelope.stream();
      // Events have a stream below zero.
      if (stream < 0) continue;
      free_.push_back(stream);
      --run_->in_flight;
      ++run_->done;
      ++answered_[static_cast<size_t>(stream)];
      count(incoming.envelope);
      const auto us = std::chrono::duration_cast<std::chrono::microseconds>(
          now - sent_at_[static_cast<size_t>(stream)]);
      run_->latencies.record(static_cast<uint64_t>(std::max<int64_t>(0, us.count())));
      // Open loop: the oldest that is due. Closed loop: the next one at once.
      if (!run_->due.empty()) {
        send(run_->due.front());
        run_->due.pop_front();
      } else if (run_->settings.rate == 0 && now < run_->stop_at &&
                 run_->next < run_->workload.count) {
        send(now);
      }
    }
    // The last answer ends the run.
    if (run_->in_flight == 0 && (now >= run_->stop_at || run_->next >= run_->workload.count)) {
      for (const auto& connection : run_->connections) connection->close();
    }
  }

  /// An answer as an error, of which the first one's text is kept, or as a number of rows. Rows are
  /// counted without decoding them: that would be the client's work.
  void count(const cql::Envelope& envelope) {
    if (envelope.opcode() == cql::Opcode::kError) {
      ++run_->errors;
      if (run_->first_error.empty()) {
        const auto response = response_of(envelope);
        run_->first_error = std::get<cql::client::ErrorReply>(response.reply).error.message;
      }
    } else if (envelope.body.size() >= 12) {
      // RESULT of kind Rows without metadata: kind, flags, columns, rows.
      const char* body = envelope.body.data();
      constexpr int32_t kNoMetadata = 4;
      if (base::load_big_endian<int32_t>(body) == 2 && envelope.body.size() >= 16 &&
          (base::load_big_endian<int32_t>(body + 4) & kNoMetadata) != 0) {
        run_->rows += static_cast<uint64_t>(base::load_big_endian<int32_t>(body + 12));
      }
    }
  }

  asio::ip::tcp::socket socket_;
  // An IP address: names are not looked up.
  const std::string host_;
  const uint16_t port_;
  const std::string user_, password_;
  const std::shared_ptr<const base::TlsContext> tls_context_;
  std::unique_ptr<base::TlsSession> tls_;
  // Of TLS: what was read and is not decrypted, what was written and is not encrypted.
  Bytes encrypted_, plain_;
  // The protocol code of the server, from its other side: decoder_ takes bytes and gives answers,
  // encoder_ collects requests until flush() makes one send of them.
  cql::FrameDecoder decoder_;
  cql::FrameEncoder encoder_;
  Bytes wire_;
  // writing_: wire_ is on its way and must not change.
  bool writing_ = false, closed_ = false;
  // Null until begin().
  Run* run_ = nullptr;
  // Ids, by Operation::statement.
  std::vector<Bytes> prepared_;
  std::vector<cql::WireValue> values_;  // scratch
  // A stream number is an index of these. free_ has the numbers that are not in use, the one used
  // last at its end.
  std::vector<Clock::time_point> sent_at_;  // by stream
  std::vector<uint64_t> answered_;          // by stream
  std::vector<int16_t> free_;
};

}  // namespace tetrad::bench
