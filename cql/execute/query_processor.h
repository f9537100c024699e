// SPDX-License-Identifier: Apache-2.0
// From a request of the native protocol to its answer: QUERY, PREPARE, EXECUTE and BATCH. One per
// shard. It keeps the shard's prepared statements and takes over those of the node's other shards,
// opens and seals paging states, and answers in the client's version.
#pragma once

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/io_pool.h"
#include "base/log.h"
#include "base/loop_watch.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/reactor.h"
#include "base/request_timer.h"
#include "base/task.h"
#include "cql/execute/address_filter.h"
#include "cql/execute/batch_figures.h"
#include "cql/execute/off_loop.h"
#include "cql/execute/prepared_texts.h"
#include "cql/execute/request_audit.h"
#include "cql/execute/running_requests.h"
#include "cql/execute/slow_statements.h"
#include "cql/execute/trace_store.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/paging_state.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "cql/system/virtual_tables.h"
#include "replication/coordinator/coordinator.h"
#include "replication/meta/meta_service.h"

namespace tetrad::cql {

/// What a shard's processor may hold, and where it does long work.
struct QueryProcessorOptions {
  QuerySettings settings;
  size_t prepared_statements_max = 10'000;
  uint64_t prepared_bytes_max = 128u << 20;  // of statements, estimated
  /// Of the shard's clients: not sent yet, and promised to reads under way. Then these wait.
  uint64_t answer_bytes_max = 32u << 20;
  /// What other shards of the node have prepared; null: there are none.
  std::shared_ptr<PreparedTexts> prepared_texts;
  /// Does what would hold up the loop: texts above a size, one at a time, and long evaluations, in
  /// the shard's lane. Null: there is no such place.
  base::IoPool* work_pool = nullptr;
  uint32_t work_lane = 0x574F524B;
  /// Of evaluations there; unset: one is made of the shard's.
  std::optional<base::Random> work_random = {};
  replication::ThroughputGate* throughput = nullptr;  // outlives it; null: nothing is limited
  bool tells_charge = false;                          // to all clients; otherwise to those that ask
  size_t parsed_on_loop_bytes_max = 16u << 10;
  base::LoopWatch* watch = nullptr;    // outlives it; null: nobody watches
  AuditTrail* audit = nullptr;         // outlives it; null: nothing is recorded
  AddressFilter* addresses = nullptr;  // outlives it; null: clients may come from anywhere
  /// Objects of the schema that do not read; one shard of a node says it.
  bool logs_schema = true;
  /// Of all requests in flight on the shard, with what they hold beside their bodies.
  uint64_t request_bytes_max = 1u << 30;
};

/// Counters of one shard, changed by its thread only.
struct QueryMetrics {
  /// Of one kind of request.
  struct Verb {
    base::LatencyHistogram latency;
    base::Counter errors;
    base::RequestTimer timer;
    base::RequestLatencies latencies;
  };
  Verb query, prepare, execute, batch;
  static constexpr size_t kErrorCodes = static_cast<size_t>(base::kErrorCodeLast) + 1;
  std::array<base::Counter, kErrorCodes> errors_of;  // by the number of the code; the last: others
  base::Counter prepared_evicted, unprepared;
  base::Counter charged;  // of answered requests, in parts of a request unit
  BatchFigures batches;

  /// A request, or a login, that is answered with it.
  void count_error(ErrorCode code) {
    errors_of[std::min(static_cast<size_t>(code), kErrorCodes - 1)].add();
  }
};

/// Answers the requests of one shard's connections. Belongs to the shard and its thread; keeps its
/// prepared statements and the newest schema snapshot. A statement runs against the snapshot that
/// it was prepared or checked with.
class QueryProcessor {
 public:
  /// All references outlive it. Subscribes to the metadata and keeps the newest schema snapshot.
  OffLoop& off_loop() { return off_loop_; }
  QueryProcessor(base::Reactor& reactor, base::Random& random,
                 replication::Coordinator& coordinator, replication::MetaService& meta,
                 VirtualTables& virtual_tables, QueryProcessorOptions options, Logger logger);

  /// Appends exactly one answer to `out` when it is done. `client` and `out` outlive the task;
  /// `envelope` is one of QUERY, PREPARE, EXECUTE and BATCH, and `request` is what it decodes to.
  Task<void> process(Envelope envelope, Request request, ClientState& client, Bytes& out);

  replication::MetaService& meta() { return meta_; }
  const SchemaPtr& schema() const { return schema_; }
  /// Called with each new snapshot that this shard has taken over, before statements see it.
  using SchemaListener =
      std::function<void(const SchemaSnapshot* before, const SchemaSnapshot& now)>;
  void set_schema_listener(SchemaListener listener) { schema_listener_ = std::move(listener); }
  QueryMetrics& metrics() { return metrics_; }
  /// Statements see what is changed here from their next look on.
  QuerySettings& settings() { return options_.settings; }
  /// Which part of requests is traced without having asked for it, from 0 to 1.
  void set_trace_probability(double probability) { trace_probability_ = probability; }
  const base::Counter& traces_dropped() const { return traces_.dropped(); }
  /// At most `count_max`, newest first.
  std::vector<RunningRequest> running(size_t count_max) const;
  /// Of the node, if its shards tell each other, else of this shard.
  size_t prepared_count() const {
    return options_.prepared_texts == nullptr ? prepared_.size() : options_.prepared_texts->count();
  }
  /// Those that prepared_count() counts, of `count_max` and 2 MiB of texts at most. Those used last
  /// first; where shards share the texts, those that one prepared, or had to look for there.
  std::vector<ListedStatement> prepared(size_t count_max) const;
  /// Outlives all tasks of process().
  AnswerBudget& answers() { return answers_; }
  /// Of requests in flight, beside their bodies.
  uint64_t held_bytes() const { return held_bytes_; }
  /// Estimated, of all statements that have been executed: what a turn of the loop was used for.
  uint64_t worked_ns() const { return worked_ns_; }

 private:
  /// A prepared statement. It is checked again when the schema's version is above checked_at.
  struct Prepared {
    Bytes id;
    std::string keyspace, text;
    StatementPtr statement;
    SchemaVersion checked_at;
    MetadataId markers{};  // of the statement
    AnnouncedColumns announced;
    std::list<Prepared*>::iterator used;
    uint64_t bytes = 0;  // estimated
  };
  /// What is to be said; written to the connection's buffer in one piece, after the last suspension.
  struct Answer {
    StatementResult result;
    bool skip_metadata = false, metadata_changed = false;
    std::optional<Bytes> paging_state;
    // Of PREPARE:
    Bytes prepared_id;
    StatementPtr prepared;
  };
  /// The memory of a request in flight, estimated, beside its body.
  class Held {
   public:
    explicit Held(QueryProcessor& processor) : processor_(processor) {}
    ~Held() { processor_.held_bytes_ -= bytes_; }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    /// Errors: kOverloaded, unless no other request holds much.
    Result<void> set(uint64_t bytes);

   private:
    QueryProcessor& processor_;
    uint64_t bytes_ = 0;
  };
  /// What goes along with a request on its way.
  struct Notes {
    std::vector<std::string> warnings;  // for the client
    replication::TracePtr trace;        // null: it asked for none
    RequestCharge charge;
    std::optional<BytesView> throughput_payload = {};  // of the request's custom payload
    size_t request_bytes = 0;
    Held* held = nullptr;
    RequestAudit* audit = nullptr;
  };

  /// The answer_ functions make the answer of one kind of request; process() appends it. All
  /// references outlive the task.
  Task<Result<Answer>> answer(const Envelope& envelope, const Request& request, ClientState& client,
                              Notes& notes);
  /// As answer(), of a request that has failed with kStaleSchema by the schema of that version.
  Task<Result<Answer>> answer_again(const Envelope& envelope, const Request& request,
                                    ClientState& client, Notes& notes, SchemaVersion seen_version);
  Task<Result<Answer>> answer_query(const QueryRequest& request, const Envelope& envelope,
                                    ClientState& client, Notes& notes);
  Task<Result<Answer>> answer_prepare(const PrepareRequest& request, ClientState& client,
                                      Notes& notes);
  Task<Result<Answer>> answer_execute(const ExecuteRequest& request, const Envelope& envelope,
                                      ClientState& client, Notes& notes);
  Task<Result<Answer>> answer_batch(const BatchRequest& request, const Envelope& envelope,
                                    ClientState& client, Notes& notes);
  /// What of a request must not change between two pages, beside its values. The views outlive the
  /// request.
  struct PagedStatement {
    BytesView text_or_id;
    BytesView keyspace;  // in effect for a text; "" for an id
  };
  /// Checks the paging state and the rights, then executes the statement with its values. The task
  /// keeps the statement, which may be forgotten meanwhile.
  Task<Result<Answer>> run(StatementPtr statement, const QueryParameters& parameters, int version,
                           PagedStatement paged, ClientState& client, Notes& notes, bool executed);

  /// Exactly one envelope, an ERROR for an error, with tracing id, warnings and charge.
  void append_answer(const Envelope& envelope, const Request& request, const Result<Answer>& result,
                     const Uuid& tracing_id, Notes& notes, Bytes& out);
  /// What a statement of this request may touch, with all that the request says but its page.
  ExecuteContext context_for(const QueryParameters& parameters, int version, ClientState& client,
                             const Notes& notes);
  /// For a trace.
  /// What stands in system_traces.sessions of the request.
  TraceSession describe(const Request& request) const;
  bool tells_charge(const Request& request) const;
  /// Of this node; the view is of `meta`.
  std::string_view data_center_of(const replication::MetaState& meta) const;
  /// Parses and prepares against `schema`. Any thread: it changes nothing of the processor.
  /// `refused`: what a statement is about that parses and is not prepared.
  Result<StatementPtr> prepare_text(BytesView text, const std::string& keyspace,
                                    const SchemaPtr& schema, StatementSubject& refused) const;
  bool is_large(BytesView text) const { return text.size() > options_.parsed_on_loop_bytes_max; }
  /// prepare_text() that holds up nobody when the text is large. `audit` hears what a refused
  /// statement was about. It and `text` outlive the task.
  Task<Result<StatementPtr>> prepare(BytesView text, const std::string& keyspace,
                                     RequestAudit* audit = nullptr);
  /// Estimated: the memory of a statement beside its text.
  static uint64_t plan_bytes(const Statement& statement);
  static std::unexpected<Error> fail_unprepared(BytesView id);
  static std::string keyspace_of(const std::optional<BytesView>& named, const ClientState& client);
  static void trace_parsing(const Notes& notes, BytesView text);
  void watch(BytesView id, BytesView text) {
    if (options_.watch != nullptr) options_.watch->begin(id, text);
  }
  /// Null: it is not known, or means something else by now.
  Prepared* find_current(BytesView id);
  /// One that find_current() has not found: prepared once more from its text, or from that of
  /// another shard. Errors: kUnprepared. Good until the next suspension.
  Task<Result<Prepared*>> find_again(BytesView id);
  /// Whether a PREPARE on this node has announced the columns that the statement's rows have now, and
  /// the types of its markers.
  bool is_announced(Prepared& prepared);
  /// Takes what this node has announced of it last.
  void hear_of_others(Prepared& prepared);
  /// PREPARE is about to tell a client of it.
  void announce(Prepared& prepared);
  /// Keeps it as the one that was used last, and forgets the ones that were used longest ago while
  /// there are too many or too large ones.
  Prepared& remember(Bytes id, std::string keyspace, BytesView text, StatementPtr statement);
  /// Runs that are under way keep the statement itself.
  void forget(Prepared& prepared);
  /// Builds the next schema snapshot, if it has changed, and tells the listener.
  void take_schema(const replication::MetaSnapshot& snapshot);
  /// The beginning of a prepared statement, or its id if it is not known.
  std::string text_of_prepared(BytesView id) const;
  /// The request's kind and the beginning of its statement, without passwords.
  std::string task_of(const Request& request) const;
  void log_unreadable(const SchemaSnapshot* before);

  base::Reactor& reactor_;
  base::Random& random_;
  ScriptEngine scripts_;
  OffLoop off_loop_;
  AnswerBudget answers_;
  DiskGuard disk_guard_;
  replication::Coordinator& coordinator_;
  replication::MetaService& meta_;
  VirtualTables& virtual_tables_;
  QueryProcessorOptions options_;
  double trace_probability_ = 0;
  Logger logger_;
  SchemaPtr schema_;
  SchemaListener schema_listener_;
  std::unordered_map<Bytes, std::unique_ptr<Prepared>> prepared_;
  std::list<Prepared*> by_use_;  // front: used last
  uint64_t prepared_bytes_ = 0;
  uint64_t held_bytes_ = 0, worked_ns_ = 0;
  QueryMetrics metrics_;
  RunningRequests running_;
  SlowStatements slow_;
  TraceStore traces_;
  std::shared_ptr<void> subscription_;
};

}  // namespace tetrad::cql
