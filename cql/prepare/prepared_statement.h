// SPDX-License-Identifier: Apache-2.0
// What a statement means, checked against one schema snapshot and ready to run many times: the door
// between prepare/ (makes it) and execute/ (runs it).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/consistency_level.h"
#include "base/random.h"
#include "base/reactor.h"
#include "base/result.h"
#include "base/task.h"
#include "cql/functions/work_meter.h"
#include "cql/grammar/ast.h"
#include "cql/prepare/answer_budget.h"
#include "cql/prepare/guardrails.h"
#include "cql/prepare/request_charge.h"
#include "cql/prepare/statement_subject.h"
#include "cql/protocol/request.h"
#include "cql/protocol/result_metadata.h"
#include "cql/protocol/schema_change.h"
#include "cql/schema/schema_snapshot.h"
#include "cql/script/script_engine.h"
#include "replication/coordinator/coordinator.h"
#include "replication/meta/meta_service.h"

namespace tetrad::replication {
class ThroughputGate;  // throughput/throughput_gate.h
}

namespace tetrad::cql {

class VirtualTables;  // system/virtual_tables.h
class OffLoop;        // execute/off_loop.h
class BatchFigures;   // execute/batch_figures.h

/// A column of a result, or a bind marker.
struct ColumnSpec {
  // As the native protocol's column specification (v5, 4.2.5.2) names it. `name` is the alias, or
  // the text of the selector.
  std::string keyspace, table, name;
  TypePtr type;
};

/// Columns of a result with their encoding, made once. Immutable; shared by requests.
struct ResultMetadata {
  explicit ResultMetadata(std::vector<ColumnSpec> specs)
      : columns(std::move(specs)), encoded(wire_columns(columns)) {}
  const std::vector<ColumnSpec> columns;
  const EncodedMetadata encoded;
};
using ResultMetadataPtr = std::shared_ptr<const ResultMetadata>;

/// Values for bind markers; their views live as long as the request.
using BoundValue = WireValue;

/// What the client said beside the statement.
struct QueryOptions {
  ConsistencyLevel consistency = ConsistencyLevel::kOne;
  ConsistencyLevel serial_consistency = ConsistencyLevel::kSerial;
  int32_t page_size = -1;  // <= 0: no paging
  std::optional<Bytes>
      paging_position;  // authenticated and opened by the processor; written by execute_select
  std::optional<int64_t> timestamp_us;    // the protocol's default timestamp
  std::optional<int32_t> now_in_seconds;  // v5, for tests
  int protocol_version = 4;
  /// Of the custom payload, for schema statements (kThroughputPayloadKey); lives as long as the
  /// request.
  std::optional<BytesView> throughput_payload;
};

/// Settings that statements obey; a copy of the options that matter here.
struct QuerySettings {
  // From the options of the same names (conf/tetrad.yaml), in microseconds.
  int64_t read_timeout_us = 5'000'000, range_timeout_us = 10'000'000, write_timeout_us = 2'000'000;
  int64_t counter_write_timeout_us = 5'000'000;
  int64_t cas_contention_timeout_us = 1'000'000;
  int64_t truncate_timeout_us = 60'000'000, schema_timeout_us = 20'000'000;
  int64_t slow_us = 0;  // requests that take as long are logged; 0: none are
  // Limits on what one statement may write or name. Beyond them it is refused with kInvalid; the
  // warning of a batch's size goes to the client.
  uint64_t mutation_bytes_max = 16u << 20;
  uint32_t key_bytes_max = 65'535;
  uint32_t batch_warn_bytes = 5u << 10, batch_fail_bytes = 50u << 10;
  uint32_t in_cartesian_product_max = 100'000;
  bool user_functions_enabled = false;
  bool data_masking_enabled = false;  // columns may be masked, and are shown so
  ScriptLimits script_limits;
  Guardrails guardrails;
};

/// What a connection carries from statement to statement.
struct ClientState {
  // Belongs to the connection's shard. Statements read it; QueryProcessor and the login write it.
  std::string keyspace;      // of USE; "" if none
  std::string user;          // whose role it has; "" if nobody logged in
  bool must_log_in = false;  // the server has authentication on
  // Of the socket's other end, as text: for the audit log, and for groups of addresses.
  std::string client_address;
  uint16_t client_port = 0;
  /// The schema with whose roles and groups it was last let in from its address; nil: never.
  std::optional<SchemaVersion> address_checked_at;
  std::map<std::string, std::string> startup_options;
  ClientAnswers answers;
};

/// What a shard remembers of the guardrail on replicas' disks.
struct DiskGuard {
  std::optional<base::MonotonicUs> warned_us;  // when a client was warned last
};

/// Everything a running statement may touch. References outlive the statement's task.
struct ExecuteContext {
  // Of the shard that runs the statement; shared by all of its requests.
  base::Reactor& reactor;
  replication::Coordinator& coordinator;
  replication::MetaService& meta;
  VirtualTables& virtual_tables;
  const QuerySettings& settings;
  base::Random& random;   // the shard's: uuid(), now(), ids of list elements
  ScriptEngine& scripts;  // the shard's
  AnswerBudget& answers;  // the shard's
  SchemaPtr schema;       // the newest when the request came in
  // Of the connection, and of this request alone.
  ClientState& client;
  QueryOptions options;
  // Grow while the statement runs, and go into the answer's frame.
  std::vector<std::string> warnings;  // for the client
  /// Seconds since 1970 for TTL: options.now_in_seconds, else the node's time.
  int64_t now_s = 0;
  replication::TracePtr trace = {};  // null: the client asked for none
  RequestCharge charge = {};
  // What limits the request. Null where the server runs a statement of its own.
  replication::ThroughputGate* throughput = nullptr;  // the shard's; null: nothing is limited
  DiskGuard* disk_guard = nullptr;  // the shard's; null: the server's own writes, never refused
  OffLoop* off_loop = nullptr;      // the shard's; null: all is done on the loop
  BatchFigures* batches = nullptr;  // the shard's; null: the server's own, not counted
  size_t request_bytes = 0;         // of its body; 0: not known, and little
  WorkMeter work = {};
};

/// One page of rows, encoded.
struct RowsResult {
  ResultMetadataPtr metadata;
  // Of this page; `cells` has row_count times as many cells as the metadata has columns.
  uint32_t row_count = 0;
  bool hides_position = false;  // the client must not read the keys in next_position
  Bytes cells;  // row by row, each cell i32 size (-1: null) and bytes: as the native protocol lays
                // them out
  std::optional<Bytes> next_position;  // there are more pages
};
/// The answer to USE: the connection's keyspace from now on.
// The statement changes nothing: QueryProcessor stores the keyspace in the ClientState.
struct SetKeyspaceResult {
  std::string keyspace;
};
/// What a statement answers: Void (monostate), rows, a keyspace, or an event of the schema. One of
/// the kinds of RESULT of the native protocol (v5, 4.2.5) each.
using StatementResult = std::variant<std::monostate, RowsResult, SetKeyspaceResult, SchemaChange>;

/// One permission on one resource (schema/roles.h).
struct RequiredPermission {
  Permission permission;
  std::string resource;
};

/// Masked columns that WHERE of a SELECT or IF restricts: who sees their values only masked must
/// not find them by asking.
struct RestrictedMasks {
  std::string keyspace, table;
  std::vector<std::string> columns;
};

/// What a client must be allowed to run a statement.
struct RequiredAccess {
  std::vector<RequiredPermission> permissions;
  std::optional<std::string> superuser_only;      // superusers alone; the message to others
  std::vector<RestrictedMasks> restricted_masks;  // UNMASK or SELECT_MASKED, after all else
  void add(Permission permission, std::string resource) {
    permissions.push_back({permission, std::move(resource)});
  }
};

/// The user-defined functions and aggregates that a statement calls.
class UsedFunctions {
 public:
  void add(FunctionPtr function) { functions_.push_back(std::move(function)); }
  void add(AggregatePtr aggregate) { aggregates_.push_back(std::move(aggregate)); }
  bool is_empty() const { return functions_.empty() && aggregates_.empty(); }
  /// The right to execute each of them.
  void add_required(RequiredAccess& out) const;
  /// How many calls of functions the statement has.
  size_t call_count() const { return functions_.size() + aggregates_.size(); }
  /// Whether all of them are in the snapshot as they were, compared by value.
  bool are_current(const SchemaSnapshot& schema) const;

 private:
  // One entry for each call. An aggregate brings its state and final functions along.
  std::vector<FunctionPtr> functions_;
  std::vector<AggregatePtr> aggregates_;
};

/// One prepared statement. Immutable; run by many requests at once.
class Statement {
 public:
  virtual ~Statement() = default;

  const std::vector<ColumnSpec>& bind_variables() const { return bind_variables_; }
  /// For each partition key column the index of the marker that gives it; empty when one is not a
  /// plain marker.
  const std::vector<uint16_t>& partition_key_indexes() const { return partition_key_indexes_; }
  /// Null for all but SELECT (and for conditional statements).
  const ResultMetadataPtr& result_metadata() const { return result_metadata_; }
  /// Of the table of a SELECT; nil of other statements.
  const TableId& table_id() const { return table_id_; }
  /// Whether another statement of the same table that says so, too, may go on where a page of this
  /// one ended: programs begin with one SELECT and go on with another, as Cassandra lets them.
  virtual bool shares_pages() const { return false; }
  /// Sentences to be sent when the statement is prepared or run unprepared.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// How long the text was: bounds what the statement is made of.
  size_t token_count() const { return token_count_; }
  void set_token_count(size_t count) { token_count_ = count; }
  /// What it is and what it is about, for the audit log.
  const StatementSubject& subject() const { return subject_; }
  void set_subject(StatementSubject subject) { subject_ = std::move(subject); }
  /// Calls of user-defined functions.
  size_t user_calls() const { return used_functions_.call_count(); }
  /// Whether its meaning still holds in this snapshot (its tables, types and functions are
  /// unchanged). If not it is prepared anew from its text.
  virtual bool is_current(const SchemaSnapshot& schema) const = 0;

  /// Adds what a client who is no superuser must be allowed; checked by who runs it
  /// (execute/access.h). Roles' own statements check the rest themselves, when they run.
  virtual void required_access(RequiredAccess& out) const = 0;

  /// `values`: one per bind variable, checked for count by the caller; their views live until the
  /// task ends.
  virtual Task<Result<StatementResult>> execute(ExecuteContext& context,
                                                std::span<const BoundValue> values) const = 0;

 protected:
  // Set by the preparer, never later.
  std::vector<ColumnSpec> bind_variables_;
  std::vector<uint16_t> partition_key_indexes_;
  ResultMetadataPtr result_metadata_;
  TableId table_id_;
  std::vector<std::string> warnings_;
  UsedFunctions used_functions_;

 private:
  // Set by prepare_statement() before anybody else has the statement.
  size_t token_count_ = 0;
  StatementSubject subject_;
};
/// Shared by the cache of prepared statements and the requests that run it; the last one frees it.
using StatementPtr = std::shared_ptr<const Statement>;

/// What a statement is prepared with. Lives as long as that takes.
struct PrepareContext {
  SchemaPtr schema;
  std::string keyspace;  // in effect: of USE or of the request
  const QuerySettings& settings;
  const std::vector<std::optional<std::string>>& marker_names;  // by marker index; unset for `?`
  size_t token_count = 0;                                       // of the text
};

/// Checks a parsed statement. Errors: kInvalid, kConfig, kAlreadyExists, kUnauthorized with
/// Cassandra's texts. Dispatches to prepare_select.h, prepare_modify.h (also batches) and
/// prepare_schema.h.
Result<StatementPtr> prepare_statement(const ast::Statement& statement,
                                       const PrepareContext& context);

/// One part of a BATCH frame of the protocol (v5, 4.1.7): statements already prepared, each with
/// its values.
struct BatchEntry {
  // The values of one statement in the order of its markers; their views are into the frame.
  StatementPtr statement;
  std::vector<BoundValue> values;
};
/// Errors: kInvalid when one of them is no modification. `entries` live until the task ends.
Task<Result<StatementResult>> execute_protocol_batch(ExecuteContext& context, BatchType kind,
                                                     std::span<const BatchEntry> entries);

}  // namespace tetrad::cql
