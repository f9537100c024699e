// SPDX-License-Identifier: Apache-2.0
// Traces of requests (system_traces), written by ordinary INSERTs with a TTL of a day. Traces are
// best effort: one that cannot be kept is counted and dropped, never the request it is of.
//
// 1. begin(): at most kTracesAtOnceMax traces; makes the tables of system_traces when the cluster
//    has none.
// 2. The request, its coordinator and replicas add events.
// 3. finish(): after the answer has been made, events are written, then the session.
#include "cql/execute/trace_store.h"

#include <algorithm>

#include "base/sleep.h"
#include "cql/grammar/parser.h"
#include "cql/protocol/inet.h"
#include "cql/schema/schema_text.h"
#include "cql/types/value.h"

namespace tetrad::cql {
namespace {

// Bounds memory: each trace holds its events.
constexpr size_t kTracesAtOnceMax = 64;
constexpr size_t kParameterBytesMax = 1'000;
// How long it may take to make the tables, when that is tried again after it failed, and the
// timeout of the writes.
constexpr int64_t kMakeTablesUs = 2'000'000, kTryAgainUs = 10'000'000, kWriteUs = 500'000;

// A day, as Cassandra keeps them.
constexpr std::string_view kInsertSession =
    "INSERT INTO system_traces.sessions (session_id, client, command, coordinator, "
    "coordinator_port, duration, parameters, request, started_at) "
    "VALUES (?, ?, 'QUERY', ?, ?, ?, ?, ?, ?) USING TTL 86400";
constexpr std::string_view kInsertEvent =
    "INSERT INTO system_traces.events (session_id, event_id, activity, source, source_elapsed, "
    "source_port, thread) VALUES (?, ?, ?, ?, ?, ?, 'coordinator') USING TTL 86400";

Result<StatementPtr> prepare_insert(std::string_view text, const SchemaPtr& schema,
                                    const QuerySettings& settings) {
  TETRAD_TRY(const ParsedStatement parsed, parse_with_markers(text));
  return prepare_statement(parsed.statement, {schema, "", settings, parsed.marker_names});
}

Bytes inet_bytes(const std::string& address) {
  const auto parsed = Inet::parse(address, 0);
  return parsed ? Bytes(parsed->address()) : Bytes();
}

}  // namespace

TraceStore::TraceStore(base::Reactor& reactor, base::Random& random, ScriptEngine& scripts,
                       AnswerBudget& answers, replication::Coordinator& coordinator,
                       replication::MetaService& meta, VirtualTables& virtual_tables,
                       const QuerySettings& settings, Logger logger)
    : reactor_(reactor),
      random_(random),
      scripts_(scripts),
      answers_(answers),
      coordinator_(coordinator),
      meta_(meta),
      virtual_tables_(virtual_tables),
      settings_(settings),
      logger_(std::move(logger)) {
  settings_.write_timeout_us = kWriteUs;
  settings_.guardrails = {};  // they are for clients
}

bool TraceStore::has_tables() const {
  return meta_.snapshot()->schema_objects.contains(keyspace_key(kTracesKeyspace));
}

Task<Result<void>> TraceStore::make_tables() {
  const auto& computed = virtual_tables_.keyspaces();
  const auto traces =
      std::ranges::find(computed, kTracesKeyspace, [](const auto& k) { return k->name; });
  TETRAD_ASSERT(traces != computed.end());
  replication::SchemaChange change;
  change.objects.emplace_back(keyspace_key(kTracesKeyspace), keyspace_text(**traces));
  for (const auto& [name, table] : (*traces)->tables) {
    change.objects.emplace_back(table_key(kTracesKeyspace, name), table_text(*table));
    change.new_tables.push_back({table->id, std::string(kTracesKeyspace), name, 0, 1});
  }
  const base::Deadline deadline{reactor_.now_us() + kMakeTablesUs};
  while (!has_tables()) {
    const replication::MetaSnapshot meta = meta_.snapshot();
    replication::SchemaChange proposed = change;
    proposed.expected = meta->schema_version;
    auto changed = co_await meta_.change_schema(std::move(proposed), deadline, nullptr);
    if (changed) break;
    if (changed.error().code != ErrorCode::kConflict || reactor_.now_us() >= deadline.at_us) {
      co_return std::unexpected(std::move(changed.error()));
    }
    // Another node makes them, or something else, at this moment.
    if (meta_.snapshot()->schema_version == meta->schema_version) {
      co_await base::sleep_for(reactor_, 1'000 + static_cast<int64_t>(random_.below(4'000)));
    }
  }
  co_return Result<void>();
}

Task<replication::TracePtr> TraceStore::begin() {
  if (*running_ >= kTracesAtOnceMax) {
    dropped_.add();
    co_return nullptr;
  }
  if (!has_tables() && reactor_.now_us() >= try_again_us_) {
    const auto made = co_await make_tables();
    if (!made) {
      try_again_us_ = reactor_.now_us() + kTryAgainUs;
      logger_.warn("cannot make the tables of system_traces error={}", made.error().message);
    }
  }
  // A request may end with its connection, and late answers of replicas may keep a trace longer.
  // Shared with the deleter, which may run after this object is gone.
  ++*running_;
  const auto forget = [running = running_](replication::Trace* trace) {
    --*running;
    delete trace;
  };
  co_return replication::TracePtr(new replication::Trace(reactor_), forget);
}

Result<void> TraceStore::prepare(const SchemaPtr& schema) {
  if (insert_session_ == nullptr || !insert_session_->is_current(*schema)) {
    TETRAD_TRY(insert_session_, prepare_insert(kInsertSession, schema, settings_));
  }
  if (insert_event_ == nullptr || !insert_event_->is_current(*schema)) {
    TETRAD_TRY(insert_event_, prepare_insert(kInsertEvent, schema, settings_));
  }
  return {};
}

Task<void> TraceStore::finish(TraceSession session, replication::TracePtr trace,
                              ClientState& client, SchemaPtr schema) {
  trace->close();
  for (auto& [name, text] : session.parameters) replication::cut_text(text, kParameterBytesMax);
  const auto written = co_await write(session, *trace, client, std::move(schema));
  if (!written) {
    dropped_.add();
    logger_.debug("a trace is lost session={} error={}", session.id.to_string(),
                  written.error().message);
  }
}

Task<Result<void>> TraceStore::write(const TraceSession& session, const replication::Trace& trace,
                                     ClientState& client, SchemaPtr schema) {
  const int64_t now_us = reactor_.wall_time_us();
  TETRAD_CO_TRY_VOID(prepare(schema));
  const replication::MetaSnapshot meta = meta_.snapshot();
  const auto self = meta->nodes.find(meta_.self());
  if (self == meta->nodes.end()) co_return fail(ErrorCode::kServerError, "not a member yet");

  base::Arena arena;
  const auto value = [&arena](Bytes bytes) { return WireValue::of(arena.adopt(std::move(bytes))); };
  const WireValue id = WireValue::of(session.id.view());
  const WireValue source = value(inet_bytes(self->second.address));
  const WireValue port = value(make_int(self->second.internode_port));
  const auto elapsed = [&trace, &value](int64_t at_us) {
    return value(make_int(static_cast<int32_t>(std::max<int64_t>(0, at_us - trace.started_us()))));
  };

  // Events first: a driver that sees the session's duration takes the events for complete.
  std::vector<BatchEntry> events;
  const uint64_t node = random_.next();
  const auto sequence = static_cast<uint16_t>(random_.next());
  uint64_t ticks = 0;
  // Events of replicas come with their answers, later than they happened.
  std::vector<replication::Trace::Event> happened = trace.events();
  std::ranges::stable_sort(happened, {}, &replication::Trace::Event::at_us);
  for (const auto& event : happened) {
    const auto place = meta->nodes.find(event.source);
    const bool is_own = place == meta->nodes.end();
    ticks = std::max(ticks + 1, base::uuid_ticks_of_unix_us(event.at_us));  // as they happened
    BatchEntry& entry = events.emplace_back();
    entry.statement = insert_event_;
    entry.values = {id,
                    value(Bytes(base::make_time_uuid(ticks, sequence, node).view())),
                    WireValue::of(event.activity),
                    is_own ? source : value(inet_bytes(place->second.address)),
                    elapsed(event.at_us),
                    is_own ? port : value(make_int(place->second.internode_port))};
  }
  ExecuteContext context{
      reactor_,           coordinator_, meta_,  virtual_tables_, settings_, random_,
      scripts_,           answers_,     schema, client,          {},        {},
      now_us / 1'000'000, nullptr};
  // Drivers look for a trace at once, at one replica: on all that are up, if they are quick.
  const bool all_live = std::ranges::all_of(meta->nodes, [this](const auto& each) {
    return each.second.state == replication::NodeState::kRemoved || meta_.is_live(each.first);
  });
  if (all_live) context.options.consistency = ConsistencyLevel::kAll;
  // A timeout at ALL means that some replica is slow; the others have it, and it is written.
  const auto is_kept = [](const auto& result) {
    return result || result.error().code == ErrorCode::kWriteTimeout;
  };
  auto kept = co_await execute_protocol_batch(context, BatchType::kUnlogged, events);
  if (!is_kept(kept)) co_return std::unexpected(std::move(kept.error()));

  std::vector<std::pair<BytesView, BytesView>> parameters;
  for (const auto& [name, text] : session.parameters) parameters.emplace_back(name, text);
  const int64_t duration_us = std::clamp<int64_t>(now_us - trace.started_us(), 1, INT32_MAX);
  const std::vector<BoundValue> values = {id,
                                          value(inet_bytes(client.client_address)),
                                          source,
                                          port,
                                          value(make_int(static_cast<int32_t>(duration_us))),
                                          value(join_map(parameters)),
                                          WireValue::of(session.request),
                                          value(make_bigint(trace.started_us() / 1000))};
  const StatementPtr insert = insert_session_;
  auto result = co_await insert->execute(context, values);
  if (!is_kept(result)) co_return std::unexpected(std::move(result.error()));
  co_return Result<void>();
}

}  // namespace tetrad::cql
