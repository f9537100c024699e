// SPDX-License-Identifier: Apache-2.0
// What a shard needs to serve clients, put together in the order of dependence: system tables,
// stall watch, query processor, event hub, connections. Called on the main thread before the
// shard's thread runs, so nothing here needs a lock. Members of Shard are destroyed in reverse
// order, so each goes before what it uses.
#include "server/shard.h"

namespace tetrad::server {

namespace {

// Names of metrics: never change one, dashboards use them. The switch has no default, so the
// compiler names a code that is missing. One table: a line for each code.
const char* error_label(ErrorCode code) {
  switch (code) {
    case ErrorCode::kServerError:
      return "server_error";
    case ErrorCode::kProtocol:
      return "protocol";
    case ErrorCode::kBadCredentials:
      return "bad_credentials";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kOverloaded:
      return "overloaded";
    case ErrorCode::kBootstrapping:
      return "bootstrapping";
    case ErrorCode::kTruncate:
      return "truncate";
    case ErrorCode::kWriteTimeout:
      return "write_timeout";
    case ErrorCode::kReadTimeout:
      return "read_timeout";
    case ErrorCode::kReadFailure:
      return "read_failure";
    case ErrorCode::kFunctionFailure:
      return "function_failure";
    case ErrorCode::kWriteFailure:
      return "write_failure";
    case ErrorCode::kCasWriteUnknown:
      return "cas_write_unknown";
    case ErrorCode::kSyntax:
      return "syntax";
    case ErrorCode::kUnauthorized:
      return "unauthorized";
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kConfig:
      return "config";
    case ErrorCode::kAlreadyExists:
      return "already_exists";
    case ErrorCode::kUnprepared:
      return "unprepared";
    case ErrorCode::kCorruption:
      return "corruption";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kTimedOut:
      return "timed_out";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kStaleSchema:
      return "stale_schema";
    case ErrorCode::kStaleEpoch:
      return "stale_epoch";
    case ErrorCode::kBehind:
      return "behind";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kNotLeader:
      return "not_leader";
    case ErrorCode::kLimit:
      return "limit";
    case ErrorCode::kRedate:
      return "redate";
    case ErrorCode::kClockOff:
      return "clock_off";
    case ErrorCode::kReplicaBehind:
      return "replica_behind";
    case ErrorCode::kIndexNotBuilt:
      return "index_not_built";
  }
  return "other";
}

}  // namespace

void Shard::prepare_serving(replication::MetaService& meta, const ShardServing& serving,
                            const Logger& logger, base::MetricsRegistry& metrics) {
  virtual_tables = cql::make_system_tables(meta, serving.facts, serving.of_node);
  cql::QueryProcessorOptions query = serving.query;
  query.throughput = &data->throughput();
  // Each shard has its lanes of the pool to itself, so long work of one never queues behind
  // another's.
  query.work_lane += number;
  // Each shard sees each change of the schema; one line of the log is enough.
  query.logs_schema = number == 0;
  query.work_random = base::Random(os_random);
  query.request_bytes_max = serving.limits.shard_request_bytes_max;
  stalls = std::make_unique<StallWatch>(logger.named(fmt::format("shard-{}", number)));
  reactor.set_watch(stalls.get());
  query.watch = stalls.get();
  processor = std::make_unique<cql::QueryProcessor>(reactor, random, data->coordinator(), meta,
                                                    *virtual_tables, std::move(query), logger);
  events = std::make_unique<EventHub>(meta);
  processor->set_schema_listener(
      [hub = events.get()](const cql::SchemaSnapshot* before, const cql::SchemaSnapshot& now) {
        hub->schema_changed(before, now);
      });
  connections =
      std::make_unique<ConnectionContext>(reactor, *processor, *events, serving.limits,
                                          serving.program_version, logger.named("connection"));
  connections->logins = serving.logins;
  connections->audit = serving.query.audit;
  connections->tls = serving.tls;
  if (serving.tls != nullptr) connections->open_door();
  register_metrics(metrics);
}

// Seconds. Until the schema is known nothing may be purged.
std::optional<int64_t> Shard::gc_grace_s(const replication::TableInfo& table) const {
  constexpr int64_t kForever_s = int64_t{100} * 365 * 86'400;
  const cql::SchemaPtr schema = processor == nullptr ? nullptr : processor->schema();
  const cql::TablePtr known =
      schema == nullptr ? nullptr : schema->table(table.keyspace, table.name);
  if (known == nullptr) return kForever_s;
  return known->options.gc_grace_seconds;
}

uint32_t Shard::partitions_asked_for(const replication::TableInfo& table) const {
  const cql::SchemaPtr schema = processor == nullptr ? nullptr : processor->schema();
  const cql::TablePtr known =
      schema == nullptr ? nullptr : schema->table(table.keyspace, table.name);
  // Not known yet: none is merged.
  return known == nullptr ? partitioner::kTabletsPerTableMax : known->options.initial_partitions;
}

void Shard::register_metrics(base::MetricsRegistry& metrics) {
  const std::string shard = fmt::format("shard=\"{}\"", number);
  const ConnectionMetrics& c = connections->metrics;
  const auto counter = [&](const char* name, const char* help, const base::Counter& value) {
    metrics.add(fmt::format("tetrad_server_{}_total", name), help, shard, value);
  };
  counter("connections_accepted", "Client connections accepted.", c.accepted);
  counter("connections_closed", "Client connections closed.", c.closed);
  counter("connections_refused", "Client connections refused (connections_max, descriptors).",
          c.refused);
  counter("requests", "Requests of clients.", c.requests);
  counter("protocol_errors", "Frames that broke the protocol.", c.protocol_errors);
  counter("overloaded", "Requests refused with OVERLOADED for memory.", c.overloaded);
  counter("received_bytes", "Bytes received from clients.", c.bytes_in);
  counter("sent_bytes", "Bytes sent to clients.", c.bytes_out);
  counter("tls_handshakes_begun", "TLS handshakes that clients began.", c.tls_begun);
  counter("tls_handshakes_done", "TLS handshakes of clients that came to a good end.", c.tls_open);
  counter("tls_handshakes_failed",
          "TLS handshakes of clients that failed, and clients without TLS where it is demanded.",
          c.tls_failed);
  metrics.add_gauge("tetrad_server_connections_open", "Client connections open now.", shard,
                    [&c] { return static_cast<double>(c.open_now()); });
  metrics.add_gauge("tetrad_server_requests_in_flight", "Requests being worked on.", shard,
                    [&c] { return static_cast<double>(c.in_flight_now()); });
  metrics.add("tetrad_loop_stall_seconds", "Turns of the event loop: how long others waited.",
              shard, stalls->turns());
  const cql::QueryMetrics& q = processor->metrics();
  const auto of_verb = [&](const char* verb, const cql::QueryMetrics::Verb& of) {
    const std::string labels = fmt::format("{},verb=\"{}\"", shard, verb);
    metrics.add("tetrad_cql_request_seconds", "Latency of client requests in this node.", labels,
                of.latency);
    metrics.add("tetrad_cql_errors_total", "Requests answered with an error.", labels, of.errors);
  };
  of_verb("query", q.query);
  of_verb("prepare", q.prepare);
  of_verb("execute", q.execute);
  of_verb("batch", q.batch);
  for (size_t code = 0; code < cql::QueryMetrics::kErrorCodes; ++code) {
    metrics.add("tetrad_cql_errors_by_code_total", "Requests answered with an error, by its kind.",
                fmt::format("{},code=\"{}\"", shard, error_label(static_cast<ErrorCode>(code))),
                q.errors_of[code]);
  }
  metrics.add("tetrad_cql_request_units_total", "Request units of answered requests.", shard,
              q.charged, storage::kWeightOfUnit);
  metrics.add("tetrad_cql_traces_dropped_total", "Traces that were asked for and not kept.", shard,
              processor->traces_dropped());
  metrics.add("tetrad_cql_prepared_evicted_total", "Prepared statements dropped for room.", shard,
              q.prepared_evicted);
}

// A copy is walked over: drain() may close a connection, which takes itself out of the set.
void Shard::drain() {
  connections->draining = true;
  const auto open = connections->open;
  for (const auto& connection : open) connection->drain();
}

void Shard::stop_serving() {
  if (connections == nullptr) return;
  const auto open = connections->open;
  // Clients that go on sending must not hold up the end.
  constexpr int64_t kRefusingUsMax = 500'000;
  const base::MonotonicUs until_us = monotonic_now_us() + kRefusingUsMax;
  for (const auto& connection : open) connection->give_up(monotonic_now_us() < until_us);
  // Requests in flight are destroyed, not ended: this is the end of the process, after drain() had
  // its time.
  connections->tasks.destroy_all();
}

}  // namespace tetrad::server
