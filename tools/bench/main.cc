// SPDX-License-Identifier: Apache-2.0
// tetrad-bench: a load generator for any CQL server, over this project's own protocol code. One
// thread; a closed loop of N requests in flight, or an open loop at a fixed rate; latencies from
// the moment a request was due, so that a stalled server is not flattered; the servers' CPU time
// per operation when their process ids are given.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <sstream>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/tls_session.h"
#include "cql/protocol/client.h"
#include "cql/protocol/frame_decoder.h"
#include "cql/protocol/frame_encoder.h"
#include "tools/bench/latencies.h"
#include "tools/bench/workloads.h"

namespace {

namespace asio = boost::asio;
using namespace tetrad;
using Clock = std::chrono::steady_clock;

// What the command line says.
struct Settings {
  std::vector<std::string> hosts = {"127.0.0.1"};
  uint16_t port = 9042;
  int connections = 4, in_flight = 64;
  double seconds = 10, rate = 0;
  int runs = 1;
  bench::Scale scale;
  int replication_factor = 1;
  uint64_t tables = 1000;
  std::string keyspace = "bench", level = "ONE";
  std::string user, password;  // no user: nobody logs in
  std::vector<int> pids;
  std::vector<std::string> workloads;
  base::TlsFiles tls_files;
  bool tls = false, shares = false;
  std::shared_ptr<const base::TlsContext> tls_context;  // null: plain
};

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "tetrad-bench: {}\n", message);
  std::exit(1);
}

class Connection;

// One workload on its way: shared by its connections, all on this one thread.
struct Run {
  asio::io_context io;
  const Settings& settings;
  ConsistencyLevel level = ConsistencyLevel::kOne;
  const bench::Workload& workload;
  bench::Operation operation;  // scratch
  uint64_t next = 0;           // number of an operation
  Clock::time_point stop_at = Clock::time_point::max();
  bool stopping = false;
  uint64_t in_flight = 0, done = 0, errors = 0, rows = 0;
  std::string first_error;
  bench::Latencies latencies;
  std::vector<std::shared_ptr<Connection>> connections;
  std::deque<Clock::time_point> due;  // open loop: requests not sent yet
  Run(const Settings& s, const bench::Workload& w) : settings(s), workload(w) {}
};

// One client connection. Until begin() it blocks, for schema and preparing; from then on everything
// is asynchronous. Up to as many streams as requests are in flight, each used again when it is
// answered.
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

  static cql::client::Response response_of(const cql::Envelope& envelope) {
    auto response = cql::client::decode_response(envelope);
    if (!response) die(response.error().message);
    return std::move(*response);
  }
  static void check(const cql::client::Response& response) {
    if (const auto* error = std::get_if<cql::client::ErrorReply>(&response.reply))
      die(error->error.message);
  }

  void query(const std::string& text) {
    cql::client::append_query(encoder_.out(), {kVersion, 0, false, {}}, text, {});
    const cql::Envelope envelope = ask();
    check(response_of(envelope));
  }

  void prepare(const std::string& text) {
    cql::client::append_prepare(encoder_.out(), {kVersion, 0, false, {}}, text, {});
    const cql::Envelope envelope = ask();
    const auto response = response_of(envelope);
    check(response);
    prepared_.emplace_back(std::get<cql::client::PreparedReply>(response.reply).id);
  }

  void begin(Run& run) {
    run_ = &run;
    socket_.non_blocking(true);
    read();
  }

  /// Takes the next operation; `due` is when it should have been sent.
  // In an open loop `due` may be in the past: then the wait counts as latency.
  void send(Clock::time_point due) {
    bench::Operation& operation = run_->operation;
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
    parameters.consistency = run_->level;
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

  std::span<char> room_to_read() {
    return tls_ == nullptr ? decoder_.writable() : std::span<char>(encrypted_);
  }

  /// So many bytes were read.
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
      if (incoming.envelope.opcode() == cql::Opcode::kError) {
        ++run_->errors;
        if (run_->first_error.empty()) {
          const auto response = response_of(incoming.envelope);
          run_->first_error = std::get<cql::client::ErrorReply>(response.reply).error.message;
        }
      } else if (incoming.envelope.body.size() >= 12) {
        // Counts rows without decoding them: that would be the client's work.
        // RESULT of kind Rows without metadata: kind, flags, columns, rows.
        const char* body = incoming.envelope.body.data();
        constexpr int32_t kNoMetadata = 4;
        if (base::load_big_endian<int32_t>(body) == 2 && incoming.envelope.body.size() >= 16 &&
            (base::load_big_endian<int32_t>(body + 4) & kNoMetadata) != 0) {
          run_->rows += static_cast<uint64_t>(base::load_big_endian<int32_t>(body + 12));
        }
      }
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
      run_->stopping = true;
    }
  }

  asio::ip::tcp::socket socket_;
  const std::string host_;
  const uint16_t port_;
  const std::string user_, password_;
  const std::shared_ptr<const base::TlsContext> tls_context_;
  std::unique_ptr<base::TlsSession> tls_;
  Bytes encrypted_, plain_;
  cql::FrameDecoder decoder_;
  cql::FrameEncoder encoder_;
  Bytes wire_;
  bool writing_ = false, closed_ = false;
  Run* run_ = nullptr;
  std::vector<Bytes> prepared_;
  std::vector<cql::WireValue> values_;      // scratch
  std::vector<Clock::time_point> sent_at_;  // by stream
  std::vector<uint64_t> answered_;          // by stream
  std::vector<int16_t> free_;
};

/// Of whole processes, or of their first threads, whose loop it is that clients connect to.
double cpu_seconds(const std::vector<int>& pids, bool first_thread = false) {
  double out = 0;
  for (const int pid : pids) {
    std::ifstream file(first_thread ? fmt::format("/proc/{0}/task/{0}/stat", pid)
                                    : fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(file, line);
    const size_t paren = line.rfind(')');
    if (paren == std::string::npos) die(fmt::format("there is no process {}", pid));
    std::istringstream fields(line.substr(paren + 2));
    std::string word;
    double ticks = 0;
    for (int i = 0; fields >> word; ++i) {
      if (i == 11 || i == 12) ticks += std::stod(word);
    }
    out += ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return out;
}

double resident_mb(const std::vector<int>& pids) {
  double out = 0;
  for (const int pid : pids) {
    std::ifstream file(fmt::format("/proc/{}/statm", pid));
    long size = 0, resident = 0;
    file >> size >> resident;
    out += static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
  }
  return out;
}

std::string in_keyspace(const std::string& statement, const Settings& s) {
  return fmt::format(fmt::runtime(statement), s.keyspace);
}

// Idempotent: a second run finds everything there.
void make_schema(const Settings& s) {
  asio::io_context io;
  Connection connection(io, s.hosts.front(), s);
  connection.connect();
  connection.query(fmt::format(
      "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {{'class': 'SimpleStrategy', "
      "'replication_factor': {}}}",
      s.keyspace, s.replication_factor));
  for (const std::string& statement : bench::schema_statements())
    connection.query(in_keyspace(statement, s));
  connection.close();
}

/// Times statements one after the other, each until it is answered, and tells their kind's median.
void time_statements(Connection& connection, uint64_t tables, const char* kind,
                     const std::vector<std::string>& statements) {
  std::vector<double> took_ms;
  for (const std::string& statement : statements) {
    const auto begun = Clock::now();
    connection.query(statement);
    took_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
  }
  std::ranges::sort(took_ms);
  fmt::print("ddl     {:>6} tables  {:<12}  median {:>7.2f}  worst {:>7.2f} ms\n", tables, kind,
             took_ms[took_ms.size() / 2], took_ms.back());
  std::fflush(stdout);
}

/// Schema changes at 10 tables, at a quarter of --tables and at all of them, in a keyspace that is
/// made anew and dropped at the end.
void run_ddl(const Settings& s) {
  constexpr uint64_t kFewTables = 10, kTimed = 20;
  asio::io_context io;
  Connection connection(io, s.hosts.front(), s);
  connection.connect();
  const std::string keyspace = s.keyspace + "_ddl";
  connection.query("DROP KEYSPACE IF EXISTS " + keyspace);
  connection.query(
      fmt::format("CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', "
                  "'replication_factor': {}}}",
                  keyspace, s.replication_factor));
  constexpr const char* kCreate =
      "CREATE TABLE {}.{}{} (pk bigint, ck bigint, v blob, w map<text, int>, "
      "PRIMARY KEY (pk, ck))";
  uint64_t made = 0;
  for (const uint64_t step : {kFewTables, s.tables / 4, s.tables}) {
    for (; made < step; ++made)
      connection.query(fmt::format(fmt::runtime(kCreate), keyspace, "t", made));
    const auto timed = [&](const char* kind, const char* format) {
      std::vector<std::string> statements;
      for (uint64_t i = 0; i < kTimed; ++i)
        statements.push_back(fmt::format(fmt::runtime(format), keyspace, "timed", i));
      time_statements(connection, made, kind, statements);
    };
    timed("CREATE TABLE", kCreate);
    timed("ALTER TABLE", "ALTER TABLE {}.{}{} ADD added int");
    timed("TRUNCATE", "TRUNCATE {}.{}{}");
    timed("CREATE TYPE", "CREATE TYPE {}.{}{} (a int, b text)");
    timed("DROP TYPE", "DROP TYPE {}.{}{}");
    timed("DROP TABLE", "DROP TABLE {}.{}{}");
  }
  connection.query("DROP KEYSPACE " + keyspace);
  connection.close();
}

/// What the clients got that got the least and the most, in parts of an equal share.
void print_shares(const Run& run) {
  std::vector<uint64_t> answered;
  for (const auto& connection : run.connections)
    answered.insert(answered.end(), connection->answered().begin(), connection->answered().end());
  const auto [least, most] = std::ranges::minmax(answered);
  const double equal = static_cast<double>(run.done) / static_cast<double>(answered.size());
  fmt::print("        {} clients got {:.2f} to {:.2f} of an equal share\n", answered.size(),
             static_cast<double>(least) / equal, static_cast<double>(most) / equal);
}

/// Connections that are opened, log in and are closed, one after the other.
void run_logins(const Settings& s) {
  asio::io_context io;
  bench::Latencies latencies;
  const double cpu_before = cpu_seconds(s.pids), loop_before = cpu_seconds(s.pids, true);
  const auto begun = Clock::now();
  const auto until = begun + std::chrono::microseconds(static_cast<int64_t>(s.seconds * 1e6));
  uint64_t done = 0;
  for (auto now = begun; now < until; ++done) {
    Connection connection(io, s.hosts[done % s.hosts.size()], s);
    connection.connect();
    connection.close();
    const auto after = Clock::now();
    latencies.record(static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(after - now).count()));
    now = after;
  }
  const auto per_login_us = [&](double seconds) {
    return seconds * 1e6 / static_cast<double>(done);
  };
  fmt::print(
      "login   {:>9.0f} ops/s  p50 {:>7.2f}  p99 {:>7.2f} ms",
      static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - begun).count(),
      static_cast<double>(latencies.percentile(0.5)) / 1e3,
      static_cast<double>(latencies.percentile(0.99)) / 1e3);
  if (!s.pids.empty())
    fmt::print("  server {:.0f} us/op, its first loop {:.0f}",
               per_login_us(cpu_seconds(s.pids) - cpu_before),
               per_login_us(cpu_seconds(s.pids, true) - loop_before));
  fmt::print("\n");
  std::fflush(stdout);
}

void run_once(const Settings& s, const bench::Workload& workload) {
  Run run(s, workload);
  for (int i = 0; i < 11; ++i) {
    if (base::name_of(static_cast<ConsistencyLevel>(i)) == s.level)
      run.level = static_cast<ConsistencyLevel>(i);
  }
  for (const auto& host : s.hosts) {
    for (int i = 0; i < s.connections; ++i) {
      auto connection = std::make_shared<Connection>(run.io, host, s);
      connection->connect();
      for (const std::string& statement : workload.statements)
        connection->prepare(in_keyspace(statement, s));
      run.connections.push_back(std::move(connection));
    }
  }
  const double cpu_before = cpu_seconds(s.pids);
  const auto begun = Clock::now();
  if (workload.count == UINT64_MAX)
    run.stop_at = begun + std::chrono::microseconds(static_cast<int64_t>(s.seconds * 1e6));
  for (const auto& connection : run.connections) connection->begin(run);
  asio::steady_timer pace(run.io);
  std::function<void()> tick;
  if (s.rate == 0) {
    for (int i = 0; i < std::min(s.in_flight, workload.in_flight_max); ++i)
      run.connections[static_cast<size_t>(i) % run.connections.size()]->send(begun);
    for (const auto& connection : run.connections) connection->flush();
  } else {
    uint64_t sent = 0;
    tick = [&, sent]() mutable {
      const auto now = Clock::now();
      if (now >= run.stop_at) {
        run.due.clear();
        if (run.in_flight == 0) {
          for (const auto& connection : run.connections) connection->close();
        }
        return;
      }
      const auto wanted =
          static_cast<uint64_t>(std::chrono::duration<double>(now - begun).count() * s.rate);
      for (; sent < wanted; ++sent) {
        const auto due = begun + std::chrono::microseconds(static_cast<int64_t>(
                                     static_cast<double>(sent) / s.rate * 1e6));
        if (run.in_flight < 32'000) {
          run.connections[sent % run.connections.size()]->send(due);
        } else {
          run.due.push_back(due);
        }
      }
      for (const auto& connection : run.connections) connection->flush();
      pace.expires_after(std::chrono::microseconds(500));
      pace.async_wait([&](const boost::system::error_code& error) {
        if (!error) tick();
      });
    };
    tick();
  }
  run.io.run();
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  const double cpu_us = (cpu_seconds(s.pids) - cpu_before) * 1e6 /
                        static_cast<double>(std::max<uint64_t>(1, run.done));
  fmt::print(
      "{:<7} {:>9.0f} ops/s  p50 {:>7.2f}  p99 {:>7.2f}  p99.9 {:>7.2f}  max {:>7.1f} ms  rows/op "
      "{:>6.2f}  errors {}",
      workload.name, static_cast<double>(run.done) / seconds,
      static_cast<double>(run.latencies.percentile(0.5)) / 1e3,
      static_cast<double>(run.latencies.percentile(0.99)) / 1e3,
      static_cast<double>(run.latencies.percentile(0.999)) / 1e3,
      static_cast<double>(run.latencies.max_us()) / 1e3,
      static_cast<double>(run.rows) / static_cast<double>(std::max<uint64_t>(1, run.done)),
      run.errors);
  if (!s.pids.empty())
    fmt::print("  server {:.1f} us/op  rss {:.0f} MB", cpu_us, resident_mb(s.pids));
  fmt::print("\n");
  if (s.shares && s.rate == 0 && run.done != 0) print_shares(run);
  if (!run.first_error.empty()) fmt::print("        first error: {}\n", run.first_error);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  std::string help =
      "tetrad-bench: load for a CQL server. Workloads:\n  schema  make the tables anew\n"
      "  ddl     schema changes one at a time, with few tables and with --tables\n"
      "  login   connections that log in, where --user is said, one after the other";
  for (const bench::Workload& workload : bench::make_workloads(s.scale))
    help += fmt::format("\n  {:<7} {}", workload.name, workload.help);
  CLI::App app(help, "tetrad-bench");
  app.option_defaults()->always_capture_default();
  app.add_option("workloads", s.workloads, "What to run, in order")->required()->delimiter(',');
  app.add_option("--hosts", s.hosts, "Servers")->delimiter(',')->allow_extra_args(false);
  app.add_option("--port", s.port, "Their native port");
  app.add_option("--connections", s.connections, "Connections per host");
  app.add_option("--in-flight", s.in_flight, "Requests in flight (closed loop)");
  app.add_option("--rate", s.rate, "Requests per second (open loop); 0: closed loop");
  app.add_option("--seconds", s.seconds, "Length of a run");
  app.add_option("--runs", s.runs, "Runs of each workload");
  app.add_option("--rows", s.scale.rows, "Rows of table kv");
  app.add_option("--partitions", s.scale.partitions, "Partitions of 100 rows of table ts");
  app.add_option("--value-bytes", s.scale.value_bytes, "Size of a value");
  app.add_option("--tables", s.tables, "Tables that workload ddl makes");
  app.add_option("--rf", s.replication_factor, "Replication factor of the keyspace");
  app.add_option("--keyspace", s.keyspace, "Keyspace");
  app.add_option("--consistency", s.level, "ONE, QUORUM, ...");
  app.add_option("--pids", s.pids, "Process ids of the servers, for their CPU time")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--shares", s.shares, "Tell how equal the clients of a closed loop fared");
  app.add_option("--seed", s.scale.seed, "Seed of the keys");
  app.add_option("--user", s.user,
                 "Logs in as this role, with the password in TETRAD_BENCH_PASSWORD");
  app.add_flag("--tls", s.tls, "Speak TLS; without --tls-ca the servers may be anybody");
  app.add_option("--tls-ca", s.tls_files.authority,
                 "PEM file of who signs the servers' certificates");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    die(fmt::format("{} (tetrad-bench --help lists the options)", e.what()));
  }
  if (s.connections < 1 || s.in_flight < 1 || s.in_flight > 32'000 || s.runs < 1 ||
      s.scale.partitions < 1 || s.scale.rows < 1) {
    die("connections, in-flight (up to 32000), runs, rows and partitions are at least 1");
  }
  if (const char* const password = std::getenv("TETRAD_BENCH_PASSWORD")) s.password = password;
  if (s.tls || !s.tls_files.authority.empty()) {
    const bool asks = !s.tls_files.authority.empty();
    auto context = base::TlsContext::load(
        s.tls_files, asks ? base::TlsPeer::kRequired : base::TlsPeer::kUnasked);
    if (!context) die(context.error().message);
    s.tls_context = std::move(*context);
  }
  const auto known = bench::make_workloads(s.scale);
  for (const auto& name : s.workloads) {
    if (name != "schema" && name != "ddl" && name != "login" &&
        std::ranges::find(known, name, &bench::Workload::name) == known.end())
      die("no workload '" + name + "': see --help");
  }
  uint64_t number = static_cast<uint64_t>(Clock::now().time_since_epoch().count() % 100'000);
  for (const auto& name : s.workloads) {
    if (name == "schema") {
      make_schema(s);
      continue;
    }
    if (name == "ddl") {
      run_ddl(s);
      continue;
    }
    if (name == "login") {
      for (int i = 0; i < s.runs; ++i) run_logins(s);
      continue;
    }
    for (int i = 0; i < (name == "load" ? 1 : s.runs); ++i) {
      bench::Scale seeded = s.scale;
      seeded.seed = s.scale.seed * 1000 + ++number;
      const auto workloads = bench::make_workloads(seeded);
      run_once(s, *std::ranges::find(workloads, name, &bench::Workload::name));
    }
  }
  return 0;
}
