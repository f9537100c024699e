// SPDX-License-Identifier: Apache-2.0
// A request on its way to an answer:
//
//   1. What it may hold in memory is charged before anything is made of it.
//   2. Its statement: of EXECUTE by id, of QUERY and PREPARE from the text; prepared against the
//      newest schema snapshot.
//   3. The statement is executed with its values bound.
//   4. It is recorded for the audit log; where that takes no record, it did not begin.
//   5. A trace is stored before the answer leaves, because drivers ask for it at once.
//   6. The answer is appended in one piece, after the last suspension: other requests append to the
//      same buffer. An exception on the way becomes an error answer, never the end of the process.
#include "cql/execute/query_processor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "base/hash.h"
#include "base/sleep.h"
#include "cql/execute/access.h"
#include "cql/execute/statement_environment.h"
#include "cql/prepare/throughput_properties.h"
#include "cql/protocol/paging_state.h"

namespace tetrad::cql {
namespace {

/// Estimates of what a batch costs before it is run.
constexpr uint64_t kBatchEntryNs = 500, kParseNsPerByte = 100;
/// How long a request whose table is truncated is begun again, and how often it is looked whether
/// this node knows of it.
constexpr int64_t kBeginAgainUs = 2'000'000, kNewSchemaUs = 2'000;

StatementHash as_hash(base::StreamingHash128& hash) {
  const base::Hash128 digest = hash.digest();
  StatementHash out;
  std::memcpy(out.data(), &digest.high, 8);
  std::memcpy(out.data() + 8, &digest.low, 8);
  return out;
}

/// What must not change between two pages: the statement, its table (another may have got the name
/// since) and its values; of statements that share pages the table alone.
StatementHash paging_hash(BytesView statement, BytesView keyspace, const TableId& table,
                          bool shares_pages, std::span<const WireValue> values) {
  base::StreamingHash128 hash;
  hash.update(table.value.view());
  if (shares_pages) return as_hash(hash);
  hash.update(keyspace);
  hash.update(BytesView("\0", 1));
  hash.update(statement);
  for (const WireValue& value : values) {
    char prefix[9];
    prefix[0] = static_cast<char>(value.kind);
    base::store_big_endian(prefix + 1, static_cast<uint64_t>(value.bytes.size()));
    hash.update(BytesView(prefix, sizeof(prefix)));
    hash.update(value.bytes);
  }
  return as_hash(hash);
}

/// Values given by name, in the order of the markers. A marker without a value makes them fewer,
/// which the caller refuses.
Result<WireValues> order_values(const QueryParameters& parameters, const Statement& statement) {
  if (parameters.names.empty()) return parameters.values;
  WireValues ordered;
  constexpr size_t kFew = 16;
  if (parameters.names.size() > kFew) {
    std::unordered_map<BytesView, size_t> places;  // of equal names the first
    for (size_t i = 0; i < parameters.names.size(); ++i) places.emplace(parameters.names[i], i);
    for (const ColumnSpec& marker : statement.bind_variables()) {
      const auto found = places.find(marker.name);
      if (found != places.end()) ordered.push_back(parameters.values[found->second]);
    }
    return ordered;
  }
  for (const ColumnSpec& marker : statement.bind_variables()) {
    size_t at = 0;
    while (at < parameters.names.size() && parameters.names[at] != marker.name) ++at;
    if (at < parameters.names.size()) ordered.push_back(parameters.values[at]);
  }
  return ordered;
}

/// What a request holds until it is answered, beside its body: its values, and what is made of
/// them, which are copies in order, cells and rows.
constexpr uint64_t kHeldForEachByte = 6, kHeldForEachTextByte = 8;
constexpr size_t kHeldBodyMin = 16u << 10;  // smaller ones are not looked at

uint64_t held_bytes_of(const Request& request, size_t body_bytes) {
  if (body_bytes < kHeldBodyMin) return 0;
  uint64_t bytes = kHeldForEachByte * body_bytes;
  if (const auto* batch = std::get_if<BatchRequest>(&request.message)) {
    bytes += batch->statements.size() * (sizeof(BatchRequest::Statement) + sizeof(BatchEntry));
  } else if (const auto* query = std::get_if<QueryRequest>(&request.message)) {
    bytes += kHeldForEachTextByte * query->text.size();
  } else if (const auto* prepare = std::get_if<PrepareRequest>(&request.message)) {
    bytes += kHeldForEachTextByte * prepare->text.size();
  }
  return bytes;
}

/// The client's error when an exception of a library ended its request.
std::unexpected<Error> failed_inside(const std::exception& error) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                      dynamic_cast<const std::length_error*>(&error) != nullptr;
  return fail(ErrorCode::kServerError, "The request failed inside the server: {} ({})",
              memory ? "it takes more memory than there is" : "an unexpected error", error.what());
}

/// A null counts as a value without digits.
std::optional<BytesView> payload_throughput(const Request& request) {
  for (const auto& [key, value] : request.custom_payload)
    if (key == kThroughputPayloadKey) return value.value_or(BytesView());
  return std::nullopt;
}

}  // namespace

QueryProcessor::QueryProcessor(base::Reactor& reactor, base::Random& random,
                               replication::Coordinator& coordinator,
                               replication::MetaService& meta, VirtualTables& virtual_tables,
                               QueryProcessorOptions options, Logger logger)
    : reactor_(reactor),
      random_(random),
      scripts_(options.settings.script_limits),
      off_loop_(reactor, options.work_pool, options.work_lane, options.settings.script_limits,
                options.work_random ? *options.work_random : base::Random(random.next())),
      answers_(reactor, options.answer_bytes_max),
      coordinator_(coordinator),
      meta_(meta),
      virtual_tables_(virtual_tables),
      options_(std::move(options)),
      logger_(logger.named("cql")),
      traces_(reactor, random, scripts_, answers_, coordinator, meta, virtual_tables,
              options_.settings, logger_) {
  take_schema(meta_.snapshot());
  subscription_ = meta_.subscribe(
      [this](const replication::MetaSnapshot& before, const replication::MetaSnapshot& now) {
        if (before != now) take_schema(now);
      });
}

Result<void> QueryProcessor::Held::set(uint64_t bytes) {
  const uint64_t others = processor_.held_bytes_ - bytes_;
  if (bytes > bytes_ && others != 0 && others + bytes > processor_.options_.request_bytes_max) {
    return fail(ErrorCode::kOverloaded,
                "Too many bytes of requests in flight on this node; try again");
  }
  processor_.held_bytes_ = others + bytes;
  bytes_ = bytes;
  return {};
}

void QueryProcessor::take_schema(const replication::MetaSnapshot& snapshot) {
  if (snapshot == nullptr) return;
  if (schema_ != nullptr && schema_->version() == snapshot->schema_version) return;
  const SchemaPtr before = std::exchange(
      schema_, SchemaSnapshot::build(*snapshot, schema_.get(), virtual_tables_.keyspaces()));
  if (options_.logs_schema) log_unreadable(before.get());
  if (schema_listener_) schema_listener_(before.get(), *schema_);
}

/// What did not read before, for the same reason, is not said again.
void QueryProcessor::log_unreadable(const SchemaSnapshot* before) {
  for (const auto& [key, object] : schema_->unreadable()) {
    const UnreadableObject* const known = before == nullptr ? nullptr : before->unreadable(key);
    if (known == nullptr || known->reason != object.reason)
      logger_.error("schema object does not read object={} schema_version={} reason={}",
                    object.title(), schema_->version().value, object.reason);
  }
}

ExecuteContext QueryProcessor::context_for(const QueryParameters& parameters, int version,
                                           ClientState& client, const Notes& notes) {
  ExecuteContext context{reactor_, coordinator_, meta_,    virtual_tables_, options_.settings,
                         random_,  scripts_,     answers_, schema_,         client,
                         {},       {},           0,        notes.trace};
  context.throughput = options_.throughput;
  context.disk_guard = &disk_guard_;
  context.batches = &metrics_.batches;
  context.options.consistency = parameters.consistency;
  if (parameters.serial_consistency)
    context.options.serial_consistency = *parameters.serial_consistency;
  context.options.timestamp_us = parameters.timestamp_us;
  if (parameters.now_in_seconds)
    context.options.now_in_seconds = static_cast<int32_t>(*parameters.now_in_seconds);
  context.options.protocol_version = version;
  context.options.throughput_payload = notes.throughput_payload;
  context.off_loop = &off_loop_;
  context.request_bytes = notes.request_bytes;
  context.now_s = parameters.now_in_seconds ? static_cast<int64_t>(*parameters.now_in_seconds)
                                            : coordinator_.now_us() / 1'000'000;
  return context;
}

std::string_view QueryProcessor::data_center_of(const replication::MetaState& meta) const {
  const replication::NodeInfo* const node = meta.node(meta_.self());
  return node == nullptr ? std::string_view() : std::string_view(node->data_center);
}

Task<Result<QueryProcessor::Answer>> QueryProcessor::run(StatementPtr statement,
                                                         const QueryParameters& parameters,
                                                         int version, PagedStatement paged,
                                                         ClientState& client, Notes& notes,
                                                         bool executed) {
  TETRAD_CO_TRY(const WireValues values, order_values(parameters, *statement));
  if (values.size() != statement->bind_variables().size()) {
    if (executed) {
      co_return fail(ErrorCode::kInvalid, "there were {} markers(?) in CQL but {} bound variables",
                     statement->bind_variables().size(), values.size());
    }
    co_return fail(ErrorCode::kInvalid, "Invalid amount of bind variables");
  }
  const replication::MetaSnapshot meta = meta_.snapshot();
  ExecuteContext context = context_for(parameters, version, client, notes);
  context.options.page_size = parameters.page_size.value_or(-1);
  // Made only where a paging state is read or written: it goes over all of the text and values.
  const auto hash = [&] {
    return paging_hash(paged.text_or_id, paged.keyspace, statement->table_id(),
                       statement->shares_pages(), parameters.values);
  };
  if (parameters.paging_state) {
    const StatementHash expected = hash();
    TETRAD_CO_TRY(PagingState state,
                  decode_paging_state(*parameters.paging_state, expected, meta->secret));
    context.options.paging_position = std::move(state.position);
  }
  if (client.must_log_in) {
    if (options_.addresses != nullptr)
      TETRAD_CO_TRY_VOID(options_.addresses->check(client, *schema_, reactor_.now_us()));
    TETRAD_CO_TRY_VOID(check_access(*statement, client, *schema_, data_center_of(*meta)));
  }
  auto result = co_await statement->execute(context, values.span());
  worked_ns_ += context.work.done_ns();
  notes.warnings.insert(notes.warnings.end(), std::make_move_iterator(context.warnings.begin()),
                        std::make_move_iterator(context.warnings.end()));
  notes.charge = context.charge;
  if (!result) co_return std::unexpected(std::move(result.error()));
  Answer answer;
  answer.result = std::move(*result);
  if (auto* rows = std::get_if<RowsResult>(&answer.result);
      rows != nullptr && rows->next_position) {
    PagingState state;
    state.statement = hash();
    state.position = std::move(*rows->next_position);
    state.is_hidden = rows->hides_position;
    answer.paging_state = encode_paging_state(state, meta->secret);
  }
  if (auto* used = std::get_if<SetKeyspaceResult>(&answer.result)) client.keyspace = used->keyspace;
  co_return answer;
}

Task<Result<QueryProcessor::Answer>> QueryProcessor::answer_query(const QueryRequest& request,
                                                                  const Envelope& envelope,
                                                                  ClientState& client,
                                                                  Notes& notes) {
  const std::string keyspace = keyspace_of(request.parameters.keyspace, client);
  watch({}, request.text);
  trace_parsing(notes, request.text);
  auto prepared = co_await prepare(request.text, keyspace, notes.audit);
  TETRAD_CO_TRY(const StatementPtr statement, std::move(prepared));
  notes.audit->add(*statement, request.text);
  if (notes.trace != nullptr) notes.trace->add("Statement prepared");
  if (is_large(request.text))
    TETRAD_CO_TRY_VOID(
        notes.held->set(plan_bytes(*statement) + kHeldForEachByte * notes.request_bytes));
  notes.warnings = statement->warnings();
  const PagedStatement paged{request.text, keyspace};
  auto answer =
      co_await run(statement, request.parameters, envelope.version(), paged, client, notes, false);
  co_return answer;
}

Task<Result<QueryProcessor::Answer>> QueryProcessor::answer_execute(const ExecuteRequest& request,
                                                                    const Envelope& envelope,
                                                                    ClientState& client,
                                                                    Notes& notes) {
  Prepared* entry = find_current(request.id);
  if (entry == nullptr) {
    auto again = co_await find_again(request.id);
    TETRAD_CO_TRY(entry, std::move(again));
  }
  // As Cassandra, which forgets a statement when its table changes: drivers take new columns, and
  // the types that they write values by, from PREPARE only.
  if (!is_announced(*entry)) {
    metrics_.unprepared.add();
    co_return fail_unprepared(request.id);
  }
  const StatementPtr statement = entry->statement;
  watch(request.id, entry->text);
  notes.audit->add(*statement, entry->text);
  if (notes.trace != nullptr) notes.trace->add("Executing a prepared statement");
  const AnnouncedColumns announced = entry->announced;
  const PagedStatement paged{request.id, {}};
  auto answer =
      co_await run(statement, request.parameters, envelope.version(), paged, client, notes, true);
  if (answer && statement->result_metadata() != nullptr) {
    // A client that skips the metadata reads rows by the metadata it has: of the id it names (v5),
    // or of PREPARE's answer (v3, v4), which may be the first one that there ever was.
    const auto* rows = std::get_if<RowsResult>(&answer->result);
    if (rows != nullptr) {
      const MetadataId& now = rows->metadata->encoded.id();
      if (request.result_metadata_id) {
        answer->metadata_changed = *request.result_metadata_id != view_of(now);
        answer->skip_metadata = request.parameters.skip_metadata && !answer->metadata_changed;
      } else {
        answer->skip_metadata =
            request.parameters.skip_metadata && !announced.varied && announced.result == now;
      }
    }
  }
  co_return answer;
}

Task<Result<QueryProcessor::Answer>> QueryProcessor::answer_batch(const BatchRequest& request,
                                                                  const Envelope& envelope,
                                                                  ClientState& client,
                                                                  Notes& notes) {
  const std::string keyspace = keyspace_of(request.parameters.keyspace, client);
  std::vector<BatchEntry> entries;
  entries.reserve(request.statements.size());
  watch({}, "BATCH of the protocol");
  WorkMeter work;
  for (const BatchRequest::Statement& part : request.statements) {
    work.charge(kBatchEntryNs);
    if (work.turn_is_over()) {
      co_await next_turn(reactor_);
      work.begin_turn();
    }
    BatchEntry entry;
    if (part.prepared) {
      Prepared* prepared = find_current(part.text_or_id);
      if (prepared == nullptr) {
        auto again = co_await find_again(part.text_or_id);
        TETRAD_CO_TRY(prepared, std::move(again));
      }
      if (!is_announced(*prepared)) {
        metrics_.unprepared.add();
        co_return fail_unprepared(part.text_or_id);
      }
      entry.statement = prepared->statement;
      notes.audit->add(*entry.statement, prepared->text);
    } else {
      work.charge(kParseNsPerByte * part.text_or_id.size());
      auto statement = co_await prepare(part.text_or_id, keyspace);
      TETRAD_CO_TRY(entry.statement, std::move(statement));
      notes.audit->add(*entry.statement, part.text_or_id);
    }
    const auto values = request.values_of(part);
    if (values.size() != entry.statement->bind_variables().size()) {
      co_return fail(ErrorCode::kInvalid, "There were {} markers(?) in CQL but {} bound variables",
                     entry.statement->bind_variables().size(), values.size());
    }
    entry.values.assign(values.begin(), values.end());
    entries.push_back(std::move(entry));
  }
  if (client.must_log_in) {
    if (options_.addresses != nullptr)
      TETRAD_CO_TRY_VOID(options_.addresses->check(client, *schema_, reactor_.now_us()));
    const replication::MetaSnapshot meta = meta_.snapshot();
    for (const BatchEntry& entry : entries)
      TETRAD_CO_TRY_VOID(check_access(*entry.statement, client, *schema_, data_center_of(*meta)));
  }
  ExecuteContext context = context_for(request.parameters, envelope.version(), client, notes);
  auto result = co_await execute_protocol_batch(context, request.type, entries);
  worked_ns_ += context.work.done_ns();
  notes.warnings.insert(notes.warnings.end(), std::make_move_iterator(context.warnings.begin()),
                        std::make_move_iterator(context.warnings.end()));
  notes.charge = context.charge;
  if (!result) co_return std::unexpected(std::move(result.error()));
  Answer answer;
  answer.result = std::move(*result);
  co_return answer;
}

// TRUNCATE gives the table a new incarnation, so what was prepared before it, and what still reads or
// writes, is refused: it begins again with the schema that comes.
Task<Result<QueryProcessor::Answer>> QueryProcessor::answer_again(const Envelope& envelope,
                                                                  const Request& request,
                                                                  ClientState& client, Notes& notes,
                                                                  SchemaVersion seen_version) {
  const base::MonotonicUs until_us = reactor_.now_us() + kBeginAgainUs;
  while (true) {
    // Another node may have heard of it first.
    while (schema_->version() == seen_version && reactor_.now_us() < until_us)
      co_await base::sleep_for(reactor_, kNewSchemaUs);
    // Nothing of it is done, so a driver may ask another node.
    if (reactor_.now_us() >= until_us)
      co_return fail(ErrorCode::kOverloaded, "{}; try again", replication::kTableGone);
    seen_version = schema_->version();
    notes.audit->begin_again();
    notes.warnings.clear();
    if (notes.trace != nullptr) notes.trace->add("The schema has changed meanwhile: once more");
    auto result = co_await answer(envelope, request, client, notes);
    if (result || result.error().code != ErrorCode::kStaleSchema) co_return result;
  }
}

Task<Result<QueryProcessor::Answer>> QueryProcessor::answer(const Envelope& envelope,
                                                            const Request& request,
                                                            ClientState& client, Notes& notes) {
  if (schema_ == nullptr) co_return fail(ErrorCode::kBootstrapping, "this node has no schema yet");
  TETRAD_CO_TRY_VOID(notes.audit->check());
  if (const uint64_t bytes = held_bytes_of(request, envelope.body.size()); bytes != 0)
    TETRAD_CO_TRY_VOID(notes.held->set(bytes));
  if (const auto* execute = std::get_if<ExecuteRequest>(&request.message)) {
    auto result = co_await answer_execute(*execute, envelope, client, notes);
    co_return result;
  }
  if (const auto* query = std::get_if<QueryRequest>(&request.message)) {
    auto result = co_await answer_query(*query, envelope, client, notes);
    co_return result;
  }
  if (const auto* batch = std::get_if<BatchRequest>(&request.message)) {
    auto result = co_await answer_batch(*batch, envelope, client, notes);
    co_return result;
  }
  const auto* prepare = std::get_if<PrepareRequest>(&request.message);
  TETRAD_ASSERT(prepare != nullptr);
  auto result = co_await answer_prepare(*prepare, client, notes);
  co_return result;
}

bool QueryProcessor::tells_charge(const Request& request) const {
  return options_.tells_charge ||
         std::ranges::any_of(request.custom_payload,
                             [](const auto& entry) { return entry.first == kRequestChargeKey; });
}

Task<void> QueryProcessor::process(Envelope envelope, Request request, ClientState& client,
                                   Bytes& out) {
  Notes notes;
  notes.request_bytes = envelope.body.size();
  Uuid tracing_id;
  auto& verb = envelope.opcode() == Opcode::kExecute   ? metrics_.execute
               : envelope.opcode() == Opcode::kQuery   ? metrics_.query
               : envelope.opcode() == Opcode::kPrepare ? metrics_.prepare
                                                       : metrics_.batch;
  const base::MonotonicUs started_us = reactor_.now_us();
  const base::TimedRequest timed = verb.timer.begin(reactor_);
  const RunningRequests::Entry running(running_, request, started_us);
  Held held(*this);
  notes.held = &held;
  RequestAudit audit(options_.audit, client, reactor_, random_);
  notes.audit = &audit;
  const auto note = [&](const std::exception& error) {
    logger_.error("request failed inside error={} statement={}", error.what(), task_of(request));
  };
  std::optional<Result<Answer>> answered;
  // The last catch of a request: libraries throw, and no input of a client ends the process.
  try {
    notes.throughput_payload = payload_throughput(request);
    if (envelope.tracing() || (trace_probability_ > 0 && random_.unit() < trace_probability_)) {
      notes.trace = co_await traces_.begin();
      tracing_id = base::make_time_uuid(base::uuid_ticks_of_unix_us(reactor_.wall_time_us()),
                                        static_cast<uint16_t>(random_.next()), random_.next());
    }
    const SchemaVersion seen_version = schema_ == nullptr ? SchemaVersion() : schema_->version();
    auto made = co_await answer(envelope, request, client, notes);
    if (!made && made.error().code == ErrorCode::kStaleSchema)
      made = co_await answer_again(envelope, request, client, notes, seen_version);
    answered.emplace(std::move(made));
  } catch (const std::exception& error) {
    note(error);
    answered.emplace(failed_inside(error));
  }
  Result<Answer>& result = *answered;
  const std::optional<int64_t> timed_us = timed.took_us(reactor_);
  const int64_t turns_us = reactor_.now_us() - started_us;
  verb.latency.record(verb.latencies.of(timed_us, turns_us));
  // Its own time only: another's would be logged as this one's.
  const int64_t took_us = timed_us.value_or(turns_us);
  if (options_.settings.slow_us != 0 && took_us >= options_.settings.slow_us &&
      slow_.has_room(reactor_.now_us()))
    slow_.log({task_of(request), took_us, client.keyspace, client.client_address, client.user,
               !result.has_value()},
              logger_);
  audit.finish(request, result ? nullptr : &result.error());
  if (notes.trace != nullptr) {
    try {
      if (result) {
        if (const auto* rows = std::get_if<RowsResult>(&result->result))
          notes.trace->add(fmt::format("Returning {} rows", rows->row_count));
      } else {
        notes.trace->add(fmt::format("Failed: {}", shown_error(request, result.error().message)));
      }
      // Kept before the answer leaves: some drivers look for it for a few milliseconds only.
      TraceSession session = describe(request);
      session.id = tracing_id;
      co_await traces_.finish(std::move(session), std::move(notes.trace), client, schema_);
    } catch (const std::exception& error) {  // the answer does not depend on it
      note(error);
    }
  }
  // In one piece, after the last suspension.
  const size_t before = out.size();
  try {
    append_answer(envelope, request, result, tracing_id, notes, out);
  } catch (const std::exception& error) {
    note(error);
    out.resize(before);
    result = failed_inside(error);
    append_answer(envelope, request, result, tracing_id, notes, out);
  }
  if (!result) {
    verb.errors.add();
    metrics_.count_error(result.error().code);
  }
}

void QueryProcessor::append_answer(const Envelope& envelope, const Request& request,
                                   const Result<Answer>& result, const Uuid& tracing_id,
                                   Notes& notes, Bytes& out) {
  ReplyHead head;
  head.version = envelope.version();
  head.stream = envelope.stream();
  head.warnings = notes.warnings;
  if (envelope.tracing()) head.tracing_id = &tracing_id;
  if (!result) {
    // As Cassandra: what a guardrail refuses it warns of as well.
    if (is_guardrail_text(result.error().message)) {
      notes.warnings.push_back(result.error().message);
      head.warnings = notes.warnings;
    }
    append_error(out, head, result.error());
    return;
  }
  const Answer& answer = *result;
  metrics_.charged.add(notes.charge.weight());
  std::pair<std::string, Bytes> told;
  if (answer.prepared == nullptr && tells_charge(request)) {
    told = {std::string(kRequestChargeKey), encode_request_charge(notes.charge.units())};
    head.custom_payload = {&told, 1};
  }
  if (answer.prepared != nullptr) {
    PreparedReply prepared;
    prepared.id = answer.prepared_id;
    const auto markers = wire_columns(answer.prepared->bind_variables());
    prepared.markers = markers;
    prepared.partition_key_markers = answer.prepared->partition_key_indexes();
    if (answer.prepared->result_metadata() != nullptr) {
      prepared.result = &answer.prepared->result_metadata()->encoded;
    }
    append_prepared(out, head, prepared);
  } else if (const auto* rows = std::get_if<RowsResult>(&answer.result)) {
    RowsOptions options;
    if (answer.paging_state) options.paging_state = *answer.paging_state;
    options.skip_metadata = answer.skip_metadata;
    options.metadata_changed = answer.metadata_changed;
    append_rows(out, head, rows->metadata->encoded, options, static_cast<int32_t>(rows->row_count),
                rows->cells);
  } else if (const auto* keyspace = std::get_if<SetKeyspaceResult>(&answer.result)) {
    append_set_keyspace(out, head, keyspace->keyspace);
  } else if (const auto* change = std::get_if<SchemaChange>(&answer.result)) {
    append_schema_change(out, head, *change);
  } else {
    append_void(out, head);
  }
}

}  // namespace tetrad::cql
