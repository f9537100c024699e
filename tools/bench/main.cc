// SPDX-License-Identifier: Apache-2.0
// tetrad-bench: a load generator for any CQL server, over this project's own protocol code. One
// thread; a closed loop of N requests in flight, or an open loop at a fixed rate; latencies from
// the moment a request was due, so that a stalled server is not flattered; the servers' CPU time
// per operation when their process ids are given.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/closest_name.h"
#include "tools/bench/connection.h"
#include "tools/bench/latencies.h"
#include "tools/bench/workloads.h"

namespace {

namespace asio = boost::asio;
using namespace tetrad;
using bench::Clock;
using bench::Connection;
using bench::die;
using bench::Run;
using bench::Settings;

/// Of servers on this machine, by process id.
double cpu_seconds(const std::vector<int>& pids) {
  double out = 0;
  for (const int pid : pids) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(file, line);
    const size_t paren = line.rfind(')');
    if (paren == std::string::npos) die(fmt::format("there is no process {}", pid));
    std::istringstream fields(line.substr(paren + 2));
    std::string word;
    double ticks = 0;
    for (int i = 0; fields >> word; ++i) {
      // utime and stime are the 14th and 15th field (proc(5)); the count here begins behind the
      // name in parentheses, which may hold blanks.
      if (i == 11 || i == 12) ticks += std::stod(word);
    }
    out += ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return out;
}

// In millions of bytes, of all processes together.
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

// Statements have "{}" where the keyspace stands.
std::string in_keyspace(const std::string& statement, const Settings& s) {
  return fmt::format(fmt::runtime(statement), s.keyspace);
}

// Idempotent: a second run finds everything there.
// Keyspace if it is missing, tables anew (schema_statements()).
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
/// `tables` and `kind` are for the line only.
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
/// Each change goes through the metadata group; what is measured is how that grows with the number
/// of tables.
void run_ddl(const Settings& s) {
  // Each kind of statement is timed kTimed times.
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
  // Plain tables first, up to the step; then each kind of statement on tables and types of its own.
  for (const uint64_t step : {kFewTables, s.tables / 4, s.tables}) {
    for (; made < step; ++made)
      connection.query(fmt::format(fmt::runtime(kCreate), keyspace, "t", made));
    // `format` takes the keyspace, the table's name and a number.
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
/// A shard's loop takes its connections in turn; this shows whether it does.
void print_shares(const Run& run) {
  std::vector<uint64_t> answered;
  for (const auto& connection : run.connections)
    answered.insert(answered.end(), connection->answered().begin(), connection->answered().end());
  const auto [least, most] = std::ranges::minmax(answered);
  const double equal = static_cast<double>(run.done) / static_cast<double>(answered.size());
  fmt::print("        {} clients got {:.2f} to {:.2f} of an equal share\n", answered.size(),
             static_cast<double>(least) / equal, static_cast<double>(most) / equal);
}

/// Of the first threads, whose loop it is that clients connect to; to the nanosecond:
/// /proc/PID/stat counts ticks of 10 ms, as much as tens of logins need of a loop.
double loop_seconds(const std::vector<int>& pids) {
  double out = 0;
  for (const int pid : pids) {
    std::ifstream file(fmt::format("/proc/{0}/task/{0}/schedstat", pid));
    double on_cpu_ns = 0;
    if (!(file >> on_cpu_ns)) die(fmt::format("there is no schedstat of process {}", pid));
    out += on_cpu_ns / 1e9;
  }
  return out;
}

/// What the loops need in a second in which nobody asks for anything: timers and heartbeats.
double idle_loop_seconds(const std::vector<int>& pids) {
  constexpr int kSeconds = 3;
  const double before = loop_seconds(pids);
  std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
  return (loop_seconds(pids) - before) / kSeconds;
}

/// Connections that are opened, log in and are closed, one after the other.
/// Each login is a connection: what is measured is accepting, STARTUP, the hash of the password and
/// closing.
void run_logins(const Settings& s) {
  asio::io_context io;
  bench::Latencies latencies;
  const double idle = s.pids.empty() ? 0 : idle_loop_seconds(s.pids);
  const double cpu_before = cpu_seconds(s.pids), loop_before = loop_seconds(s.pids);
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
  const double took_s = std::chrono::duration<double>(Clock::now() - begun).count();
  fmt::print("login   {:>9.0f} ops/s  p50 {:>7.2f}  p99 {:>7.2f} ms",
             static_cast<double>(done) / took_s,
             static_cast<double>(latencies.percentile(0.5)) / 1e3,
             static_cast<double>(latencies.percentile(0.99)) / 1e3);
  if (!s.pids.empty())
    fmt::print("  server {:.0f} us/op, its first loop {:.0f} more than idle",
               per_login_us(cpu_seconds(s.pids) - cpu_before),
               per_login_us(loop_seconds(s.pids) - loop_before - idle * took_s));
  fmt::print("\n");
  std::fflush(stdout);
}

/// The level of that name, as CQL writes it.
std::optional<ConsistencyLevel> level_of(const std::string& name) {
  for (int i = 0; i < 11; ++i)
    if (base::name_of(static_cast<ConsistencyLevel>(i)) == name)
      return static_cast<ConsistencyLevel>(i);
  return std::nullopt;
}

/// Connects all clients of a run, one after the other, and prepares its statements on each.
/// In turn, so that connections are opened at the pace of the servers and not of this program.
void connect_all(Run& run) {
  const Settings& s = run.settings;
  for (const auto& host : s.hosts) {
    for (int i = 0; i < s.connections; ++i) {
      auto connection = std::make_shared<Connection>(run.io, host, s);
      connection->connect();
      for (const std::string& statement : run.workload.statements)
        connection->prepare(in_keyspace(statement, s));
      run.connections.push_back(std::move(connection));
    }
  }
}

/// One line of results. `seconds`: from the first request to the last answer; `cpu_us`: of the
/// servers, for each operation.
void print_run(const Run& run, double seconds, double cpu_us) {
  const Settings& s = run.settings;
  fmt::print(
      "{:<7} {:>9.0f} ops/s  p50 {:>7.2f}  p99 {:>7.2f}  p99.9 {:>7.2f}  max {:>7.1f} ms  rows/op "
      "{:>6.2f}  errors {}",
      run.workload.name, static_cast<double>(run.done) / seconds,
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

// One run: connections, the first requests, then the io_context until the last answer closes
// everything. What follows an answer is in connection.h; only an open loop has a clock here.
void run_once(const Settings& s, const bench::Workload& workload) {
  Run run(s, workload);
  connect_all(run);
  const double cpu_before = cpu_seconds(s.pids);
  const auto begun = Clock::now();
  // A workload with a count ends when all of it was answered, others when their time is up.
  if (workload.count == UINT64_MAX)
    run.stop_at = begun + std::chrono::microseconds(static_cast<int64_t>(s.seconds * 1e6));
  for (const auto& connection : run.connections) connection->begin(run);
  asio::steady_timer pace(run.io);
  // Empty in a closed loop.
  std::function<void()> tick;
  // Requests are begun on the connections in turn; each then keeps its number of them.
  if (s.rate == 0) {
    for (int i = 0; i < std::min(s.in_flight, workload.in_flight_max); ++i)
      run.connections[static_cast<size_t>(i) % run.connections.size()]->send(begun);
    for (const auto& connection : run.connections) connection->flush();
  } else {
    // Twice in a millisecond all that has become due is sent. A stall of this program or of the
    // server shows as latency, since each request counts from the moment it was due.
    uint64_t sent = 0;
    tick = [&, sent]() mutable {
      const auto now = Clock::now();
      const bool is_over = now >= run.stop_at || run.next >= run.workload.count;
      if (is_over) {
        run.due.clear();
        if (run.in_flight == 0) {
          for (const auto& connection : run.connections) connection->close();
        }
        return;
      }
      const auto wanted =
          static_cast<uint64_t>(std::chrono::duration<double>(now - begun).count() * s.rate);
      for (; sent < wanted && sent < run.workload.count; ++sent) {
        const auto due = begun + std::chrono::microseconds(static_cast<int64_t>(
                                     static_cast<double>(sent) / s.rate * 1e6));
        // Stream numbers are positive 16-bit numbers. Beyond them requests wait here, and their
        // time runs.
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
  std::this_thread::sleep_for(std::chrono::duration<double>(s.settle));
  const double cpu_us = (cpu_seconds(s.pids) - cpu_before) * 1e6 /
                        static_cast<double>(std::max<uint64_t>(1, run.done));
  print_run(run, seconds, cpu_us);
}

/// Declares the options of the command line; CLI11 writes them to `s`, which must outlive `app`.
void add_options(CLI::App& app, Settings& s) {
  app.option_defaults()->always_capture_default();
  app.add_option("workloads", s.workloads, "What to run, in order")->required()->delimiter(',');
  app.add_option("--hosts", s.hosts, "Servers")->delimiter(',')->allow_extra_args(false);
  app.add_option("--port", s.port, "Their native port");
  app.add_option("--connections", s.connections, "Connections per host");
  app.add_option("--in-flight", s.in_flight, "Requests in flight (closed loop)");
  app.add_option("--rate", s.rate, "Requests per second (open loop); 0: closed loop");
  app.add_option("--seconds", s.seconds, "Length of a run");
  app.add_option("--settle", s.settle,
                 "Seconds after a run until the servers' CPU is read, for work after answers");
  app.add_option("--runs", s.runs, "Runs of each workload");
  app.add_option("--rows", s.scale.rows, "Rows of table kv");
  app.add_option("--partitions", s.scale.partitions, "Partitions of 100 rows of table ts");
  app.add_option("--value-bytes", s.scale.value_bytes, "Size of a value");
  app.add_option("--tables", s.tables, "Tables that workload ddl makes");
  app.add_option("--rf", s.replication_factor, "Replication factor of the keyspace");
  app.add_option("--keyspace", s.keyspace, "Keyspace");
  app.add_option("--consistency", s.level_name, "ONE, QUORUM, ...");
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
}

/// Checks what CLI11 cannot, and reads the password and the certificates.
void complete(Settings& s) {
  if (s.connections < 1 || s.in_flight < 1 || s.in_flight > 32'000 || s.runs < 1 ||
      s.scale.partitions < 1 || s.scale.rows < 1) {
    die("connections, in-flight (up to 32000), runs, rows and partitions are at least 1");
  }
  const auto level = level_of(s.level_name);
  if (!level) die("no consistency level '" + s.level_name + "': ONE, QUORUM, ...");
  s.level = *level;
  // Never on the command line, where other users of the machine would see it.
  if (const char* const password = std::getenv("TETRAD_BENCH_PASSWORD")) s.password = password;
  if (s.tls || !s.tls_files.authority.empty()) {
    // Without an authority the connection is encrypted, and the server may be anybody.
    const bool asks = !s.tls_files.authority.empty();
    auto context = base::TlsContext::load(
        s.tls_files, asks ? base::TlsPeer::kRequired : base::TlsPeer::kUnasked);
    if (!context) die(context.error().message);
    s.tls_context = std::move(*context);
  }
  std::vector<std::string> known = {"schema", "ddl", "login"};
  for (const auto& workload : bench::make_workloads(s.scale)) known.push_back(workload.name);
  for (const auto& name : s.workloads) {
    if (std::ranges::find(known, name) == known.end())
      die(fmt::format("no workload '{}'{} (tetrad-bench --help lists them)", name,
                      base::did_you_mean(name, known)));
  }
}

/// "; did you mean --rows?" for the first option that there is not, or nothing.
std::string near_option(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const std::string& word : app.remaining())
    if (word.starts_with('-')) return base::did_you_mean(word.substr(0, word.find('=')), names);
  return "";
}

/// Runs the workloads in the order of the command line. Each run draws other keys: its seed is made
/// of --seed and of a number that differs from one start of the program to the next.
void run_workloads(const Settings& s) {
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
    // Loading twice would write the same rows.
    for (int i = 0; i < (name == "load" ? 1 : s.runs); ++i) {
      bench::Scale seeded = s.scale;
      seeded.seed = s.scale.seed * 1000 + ++number;
      const auto workloads = bench::make_workloads(seeded);
      run_once(s, *std::ranges::find(workloads, name, &bench::Workload::name));
    }
  }
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
  // The help has a line for each workload, made of the table itself.
  CLI::App app(help, "tetrad-bench");
  add_options(app, s);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    // --help: exit() prints it.
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    die(fmt::format("{}{} (tetrad-bench --help lists the options)", e.what(), near_option(app)));
  }
  complete(s);
  run_workloads(s);
  return 0;
}
