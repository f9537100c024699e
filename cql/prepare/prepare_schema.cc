// SPDX-License-Identifier: Apache-2.0
// How a statement changes the schema (ChangeStatement::execute):
//
// 1. Take the newest metadata of this node, and build the schema of it if the shard's is older.
// 2. Plan: check the statement against that schema, and list objects to put or remove
//    (schema_plan.h).
// 3. Check rights that only the plan knows, and let permissions follow in the same change: what is
//    created and who may use it come together.
// 4. check_change(): apply the change to a copy of the metadata, and refuse it if some object would
//    not read afterwards. Metadata that is accepted is there for good, on every node.
// 5. Propose it for exactly this version of the schema. When another change was faster (kConflict),
//    go to 1, until the deadline.
//
// A statement is never out of date: it is planned anew whenever it runs.
#include "cql/prepare/prepare_schema.h"

#include <algorithm>
#include <set>

#include "base/sleep.h"
#include "cql/prepare/describe.h"
#include "cql/prepare/prepare_modify.h"
#include "cql/prepare/prepare_roles.h"
#include "cql/prepare/schema_plan.h"
#include "cql/prepare/view_condition.h"
#include "cql/schema/schema_text.h"
#include "cql/system/virtual_tables.h"
#include "replication/meta/meta_command.h"

namespace tetrad::cql {
namespace {

/// Most bytes of the objects that one statement may put into the metadata: all of it travels in one
/// message between nodes.
constexpr size_t kChangeBytesMax = 16u << 20;

/// Conditions of views name fields of user types, and functions that one of a user may hide.
Result<void> check_conditions(const replication::SchemaChange& change, const SchemaSnapshot& next) {
  std::set<std::string_view> keyspaces;
  for (const auto& [key, text] : change.objects) {
    if (!key.starts_with("type/") && !key.starts_with("function/")) continue;
    const std::string_view rest = std::string_view(key).substr(key.find('/') + 1);
    keyspaces.insert(rest.substr(0, rest.find('/')));
  }
  for (const std::string_view name : keyspaces)
    if (const KeyspaceSchema* const keyspace = next.keyspace(name))
      TETRAD_TRY_VOID(view_with_condition(next, *keyspace));
  return {};
}

}  // namespace

Result<void> check_change(const replication::SchemaChange& change,
                          const replication::MetaSnapshot& meta, const SchemaSnapshot& schema) {
  if (change.objects.empty()) return {};
  size_t bytes = 0;
  for (const auto& [key, text] : change.objects) bytes += text ? key.size() + text->size() : 0;
  if (bytes > kChangeBytesMax) {
    return fail(ErrorCode::kInvalid, "A change of the schema may take {} bytes at most, not {}",
                kChangeBytesMax, bytes);
  }
  replication::MetaCommand command;
  command.body = change;
  const replication::MetaApplied applied =
      replication::apply_meta_command(meta, MetaIndex{meta->applied.value + 1}, command);
  if (!applied.outcome) return {};  // the group says so, and why
  const SchemaPtr next = SchemaSnapshot::build(*applied.state, &schema, {});
  std::vector<const UnreadableObject*> lost;
  for (const auto& [key, object] : next->unreadable()) {
    const bool is_own = std::ranges::any_of(
        change.objects, [&](const auto& put) { return put.first == key && put.second; });
    // What did not read before does not count, unless this change writes it: other statements must
    // go on to work beside a damaged object.
    if (schema.unreadable(key) == nullptr || is_own) lost.push_back(&object);
  }
  if (lost.empty()) return check_conditions(change, *next);
  // Types first: what needs them is lost because of them.
  std::ranges::stable_partition(lost, [](const auto* object) { return object->kind == "type"; });
  // Objects named in the error; the first says enough, and a type may be used by many.
  constexpr size_t kNamed = 3;
  std::string reasons;
  for (const UnreadableObject* object : std::span(lost).first(std::min(kNamed, lost.size())))
    reasons +=
        fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", object->title(), object->reason);
  return fail(ErrorCode::kInvalid, "The statement would leave a schema that does not read: {}",
              reasons);
}

namespace {

/// DROP of what Tetrad does not have: none exists, and the answers are Cassandra's to that.
Result<SchemaPlan> drop_absent(bool if_exists, const std::string& keyspace, const PlanInput& input,
                               std::string absence) {
  TETRAD_TRY_VOID(check_modifiable(input.schema, keyspace));
  if (!if_exists) return fail_text(ErrorCode::kInvalid, std::move(absence));
  SchemaPlan out;
  out.nothing_to_do = true;
  return out;
}

Result<SchemaPlan> plan(const ast::DropTrigger& statement, const PlanInput& input) {
  TETRAD_TRY(const std::string keyspace, keyspace_of(statement.table, input));
  return drop_absent(statement.if_exists, keyspace, input,
                     fmt::format("Trigger '{}' on '{}.{}' doesn't exist", statement.name.text,
                                 keyspace, statement.table.name.text));
}

template <class T>
concept Planned = requires(const T& statement, const PlanInput& input) {
  plan(statement, input);
};

/// A statement that changes the schema: planned against the newest schema, proposed, planned again
/// when somebody else was faster.
class ChangeStatement final : public Statement {
 public:
  ChangeStatement(ast::Statement statement, std::string keyspace)
      : statement_(std::move(statement)), keyspace_(std::move(keyspace)) {}

  bool is_current(const SchemaSnapshot&) const override { return true; }
  void required_access(RequiredAccess& out) const override {
    add_schema_access(statement_, keyspace_, out);
  }

  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue>) const override {
    context.charge.add_schema_change();
    // TRUNCATE has a timeout of its own, as in Cassandra.
    const bool truncates = std::holds_alternative<ast::Truncate>(statement_);
    const base::Deadline deadline{
        context.reactor.now_us() +
        (truncates ? context.settings.truncate_timeout_us : context.settings.schema_timeout_us)};
    std::shared_ptr<const SchemaSnapshot> schema = context.schema;
    while (true) {
      const replication::MetaSnapshot meta = context.meta.snapshot();
      if (schema->version() != meta->schema_version)
        schema = SchemaSnapshot::build(*meta, schema.get(), context.virtual_tables.keyspaces());
      // Of this try: warnings of a plan that was not accepted are thrown away.
      std::vector<std::string> warnings;
      auto planned = plan_now(*schema, *meta, context, warnings);
      const auto warn = [&] {
        context.warnings.insert(context.warnings.end(), warnings.begin(), warnings.end());
      };
      if (planned && planned->answer && context.client.must_log_in)
        TETRAD_CO_TRY_VOID(
            check_change_access(statement_, *planned->answer, *schema, context.client.user));
      if (!planned || planned->nothing_to_do) {
        warn();
        if (!planned) co_return std::unexpected(std::move(planned).error());
        co_return StatementResult();
      }
      // As in Cassandra: who makes a view gets no rights on it, and so not to unmask it.
      if (planned->answer && !std::holds_alternative<ast::CreateView>(statement_))
        follow_in_roles(*planned->answer, *schema->roles(), context.client.user, planned->change);
      planned->change.expected = meta->schema_version;
      TETRAD_CO_TRY_VOID(check_change(planned->change, meta, *schema));
      auto changed =
          co_await context.meta.change_schema(std::move(planned->change), deadline, &warnings);
      if (changed) {
        warn();
        if (!planned->answer) co_return StatementResult();
        co_return StatementResult(*planned->answer);
      }
      if (changed.error().code != ErrorCode::kConflict ||
          context.reactor.now_us() >= deadline.at_us) {
        if (truncates && changed.error().code == ErrorCode::kTimedOut)
          changed.error().code = ErrorCode::kTruncate;
        co_return std::unexpected(std::move(changed.error()));
      }
      // A conflict, but the newer metadata is not here yet: wait 1 to 5 ms, at random, lest two
      // nodes run into each other again.
      if (context.meta.snapshot()->schema_version == meta->schema_version) {
        co_await base::sleep_for(context.reactor,
                                 1'000 + static_cast<int64_t>(context.random.below(4'000)));
      }
    }
  }

 private:
  Result<SchemaPlan> plan_now(const SchemaSnapshot& schema, const replication::MetaState& meta,
                              ExecuteContext& context, std::vector<std::string>& warnings) const {
    const PlanInput input{schema,
                          meta,
                          keyspace_,
                          context.settings,
                          context.random,
                          context.reactor.wall_time_us(),
                          warnings,
                          context.options.throughput_payload,
                          [&context](HostId host) { return context.meta.is_live(host); }};
    return std::visit(
        [&](const auto& statement) -> Result<SchemaPlan> {
          if constexpr (Planned<std::decay_t<decltype(statement)>>) {
            return plan(statement, input);
          } else {
            return fail(ErrorCode::kServerError, "no schema statement");
          }
        },
        statement_);
  }

  const ast::Statement statement_;
  const std::string keyspace_;
};

class UseStatement final : public Statement {
 public:
  explicit UseStatement(std::string keyspace) : keyspace_(std::move(keyspace)) {}
  bool is_current(const SchemaSnapshot& schema) const override {
    return schema.keyspace(keyspace_) != nullptr;
  }
  void required_access(RequiredAccess&) const override {}
  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue>) const override {
    if (context.schema->keyspace(keyspace_) == nullptr) {
      co_return fail(ErrorCode::kInvalid, "Keyspace '{}' does not exist", keyspace_);
    }
    co_return StatementResult(SetKeyspaceResult{keyspace_});
  }

 private:
  const std::string keyspace_;
};

/// What the statement is called where it is refused.
struct FeatureName {
  template <class T>
  const char* operator()(const T&) const {
    if constexpr (std::is_same_v<T, ast::CreateTrigger>) {
      return "triggers";
    } else {
      return "roles and permissions";
    }
  }
};

}  // namespace

Result<StatementPtr> prepare_schema_statement(const ast::Statement& statement,
                                              const PrepareContext& context) {
  return std::visit(
      [&](const auto& node) -> Result<StatementPtr> {
        using T = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<T, ast::Use>) {
          const std::string keyspace = keyspace_named(*context.schema, node.keyspace.text);
          if (context.schema->keyspace(keyspace) == nullptr) {
            TETRAD_TRY_VOID(context.schema->check_readable(keyspace_key(keyspace)));
            return fail(ErrorCode::kInvalid, "Keyspace '{}' does not exist", node.keyspace.text);
          }
          return std::make_shared<UseStatement>(keyspace);
        } else if constexpr (std::is_same_v<T, ast::Describe>) {
          return prepare_describe(node, context);
        } else if constexpr (Planned<T>) {
          return std::make_shared<ChangeStatement>(statement, context.keyspace);
        } else {
          return fail(ErrorCode::kInvalid, "not supported yet: {}", FeatureName()(node));
        }
      },
      statement);
}

}  // namespace tetrad::cql
