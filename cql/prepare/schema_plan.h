// SPDX-License-Identifier: Apache-2.0
// What a schema statement does to one snapshot of the schema: pure planning. The statement proposes
// the plan to the metadata group; if the schema has moved on meanwhile it plans again.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "cql/grammar/ast.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/protocol/schema_change.h"
#include "cql/schema/schema_snapshot.h"
#include "replication/meta/meta_state.h"

namespace tetrad::cql {

/// What a schema statement is planned with; one moment of schema and metadata.
struct PlanInput {
  const SchemaSnapshot& schema;
  const replication::MetaState& meta;
  // All outlive the planning, which has no yield point.
  const std::string& keyspace;  // in effect; "" if none
  const QuerySettings& settings;
  base::Random& random;  // table ids
  int64_t now_us;        // wall clock: table ids, drop times
  std::vector<std::string>& warnings;
  std::optional<BytesView> throughput_payload = {};  // of the request's custom payload
  std::function<bool(HostId)> is_live = {};          // for warnings; empty: it is not known
};

/// What a schema statement comes to: a change to propose to the metadata group, and the answer once
/// it is applied.
struct SchemaPlan {
  replication::SchemaChange change;
  std::optional<SchemaChange> answer;  // unset: the statement answers Void
  bool nothing_to_do = false;          // IF [NOT] EXISTS said so
};

// One for each schema statement, in the files plan_*.cc. Pure: the schema and the metadata change
// only when the group has applied the plan. Errors: kInvalid, kConfig, kAlreadyExists,
// kUnauthorized with Cassandra's texts, in Cassandra's order.
Result<SchemaPlan> plan(const ast::CreateKeyspace& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::AlterKeyspace& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::DropKeyspace& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::CreateTable& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::AlterTable& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::DropTable& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::Truncate& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::CreateIndex& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::DropIndex& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::CreateView& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::AlterView& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::DropView& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::CreateType& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::AlterType& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::DropType& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::CreateFunction& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::DropFunction& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::CreateAggregate& statement, const PlanInput& input);
Result<SchemaPlan> plan(const ast::DropAggregate& statement, const PlanInput& input);

// Shared by the plans.

/// The keyspace a name is in. Errors: kInvalid "No keyspace has been specified. …".
Result<std::string> keyspace_of(const ast::QualifiedName& name, const PlanInput& input);
/// Errors: kUnauthorized for the keyspaces that are Tetrad's own, kInvalid for one that does not
/// read.
Result<void> check_modifiable(const SchemaSnapshot& schema, const std::string& keyspace);
/// Adds to a change that what holds the rows of a table goes, or of all tables of a keyspace, those
/// that do not read among them.
void drop_tables(std::string_view keyspace, std::optional<std::string_view> table,
                 const replication::MetaState& meta, replication::SchemaChange& change);
/// Resolves a written type; user types are those of the keyspace. Errors: kInvalid.
Result<TypePtr> resolve_type(const ast::CqlType& type, const KeyspaceSchema& keyspace);
/// A type as it names an argument of a function in events and in permissions.
std::string argument_text(const DataType& type);
/// Whether all nodes will be able to read what the change leaves behind: what is in the metadata is
/// there for good. `schema` is of `meta`. Errors: kInvalid, an object would not read that does now,
/// or that is the change's own.
Result<void> check_change(const replication::SchemaChange& change,
                          const replication::MetaSnapshot& meta, const SchemaSnapshot& schema);
/// At least one character, all of them letters, digits or underscores. Callers check the length.
bool is_valid_object_name(std::string_view name);

}  // namespace tetrad::cql
