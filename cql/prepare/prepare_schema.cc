// SPDX-License-Identifier: Apache-2.0
#include "cql/prepare/prepare_schema.h"

#include "base/sleep.h"
#include "cql/prepare/describe.h"
#include "cql/prepare/prepare_modify.h"
#include "cql/prepare/schema_plan.h"
#include "cql/system/virtual_tables.h"

namespace tetrad::cql {
namespace {

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

  Task<Result<StatementResult>> execute(ExecuteContext& context,
                                        std::span<const BoundValue>) const override {
    context.charge.add_schema_change();
    const bool truncates = std::holds_alternative<ast::Truncate>(statement_);
    const base::Deadline deadline{
        context.reactor.now_us() +
        (truncates ? context.settings.truncate_timeout_us : context.settings.schema_timeout_us)};
    std::shared_ptr<const SchemaSnapshot> schema = context.schema;
    while (true) {
      const replication::MetaSnapshot meta = context.meta.snapshot();
      if (schema->version() != meta->schema_version) {
        TETRAD_CO_TRY(
            schema, SchemaSnapshot::build(*meta, schema.get(), context.virtual_tables.keyspaces()));
      }
      std::vector<std::string> warnings;
      auto planned = plan_now(*schema, *meta, context, warnings);
      const auto warn = [&] {
        context.warnings.insert(context.warnings.end(), warnings.begin(), warnings.end());
      };
      if (!planned || planned->nothing_to_do) {
        warn();
        if (!planned) co_return std::unexpected(std::move(planned).error());
        co_return StatementResult();
      }
      planned->change.expected = meta->schema_version;
      auto changed =
          co_await context.meta.change_schema(std::move(planned->change), deadline, &warnings);
      if (changed) {
        warn();
        if (!planned->answer) co_return StatementResult();
        co_return StatementResult(*planned->answer);
      }
      if (changed.error().code != ErrorCode::kConflict ||
          context.reactor.now_us() >= deadline.at_us) {
        co_return std::unexpected(std::move(changed.error()));
      }
      if (context.meta.snapshot()->schema_version == meta->schema_version) {
        co_await base::sleep_for(context.reactor,
                                 1'000 + static_cast<int64_t>(context.random.below(4'000)));
      }
    }
  }

 private:
  Result<SchemaPlan> plan_now(const SchemaSnapshot& schema, const replication::MetaState& meta,
                              ExecuteContext& context, std::vector<std::string>& warnings) const {
    const PlanInput input{schema,         meta,
                          keyspace_,      context.settings,
                          context.random, context.reactor.wall_time_us(),
                          warnings,       context.options.throughput_payload};
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
    if constexpr (std::is_same_v<T, ast::CreateIndex> || std::is_same_v<T, ast::DropIndex>) {
      return "secondary indexes";
    } else if constexpr (std::is_same_v<T, ast::CreateView> || std::is_same_v<T, ast::AlterView> ||
                         std::is_same_v<T, ast::DropView>) {
      return "materialized views";
    } else if constexpr (std::is_same_v<T, ast::CreateTrigger> ||
                         std::is_same_v<T, ast::DropTrigger>) {
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
