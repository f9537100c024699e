// SPDX-License-Identifier: Apache-2.0
// Keeps the traces that clients asked for in system_traces, as Cassandra does: two ordinary,
// replicated tables, so that every node answers for every trace. They are made when somebody traces
// for the first time; until then the computed, empty ones of the same form stand for them.
#pragma once

#include <map>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/system/virtual_tables.h"
#include "replication/trace.h"

namespace tetrad::cql {

/// What is known of a traced request beside its events.
struct TraceSession {
  Uuid id;
  std::string request;  // what was done, in Cassandra's words
  std::map<std::string, std::string> parameters;
};

/// One per shard. Traces at once and events of a trace are bounded; they live a day.
class TraceStore {
 public:
  /// All references outlive it.
  TraceStore(base::Reactor& reactor, base::Random& random, ScriptEngine& scripts,
             AnswerBudget& answers, replication::Coordinator& coordinator,
             replication::MetaService& meta, VirtualTables& virtual_tables,
             const QuerySettings& settings, Logger logger);

  /// Makes the tables when they are not there, and a trace to fill; null when too many run.
  Task<replication::TracePtr> begin();
  /// Closes the trace and writes it. What goes wrong is logged: the traced request does not suffer.
  Task<void> finish(TraceSession session, replication::TracePtr trace, ClientState& client,
                    SchemaPtr schema);

  const base::Counter& dropped() const { return dropped_; }

 private:
  /// Whether the replicated tables are there; the computed ones do not count.
  bool has_tables() const;
  Task<Result<void>> make_tables();
  Task<Result<void>> write(const TraceSession& session, const replication::Trace& trace,
                           ClientState& client, SchemaPtr schema);
  /// The two INSERTs, anew where the schema has changed since.
  Result<void> prepare(const SchemaPtr& schema);

  base::Reactor& reactor_;
  base::Random& random_;
  ScriptEngine& scripts_;  // statements ask for one
  AnswerBudget& answers_;  // as well
  replication::Coordinator& coordinator_;
  replication::MetaService& meta_;
  VirtualTables& virtual_tables_;
  QuerySettings settings_;
  Logger logger_;
  StatementPtr insert_session_, insert_event_;
  const std::shared_ptr<size_t> running_ = std::make_shared<size_t>(0);  // traces that live
  base::MonotonicUs try_again_us_ = 0;                                   // tables could not be made
  base::Counter dropped_;
};

}  // namespace tetrad::cql
