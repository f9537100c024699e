// SPDX-License-Identifier: Apache-2.0
// User-defined functions and aggregates as calls see them. A Script is made once for a prepared
// statement; the engine of the thread that calls it (FunctionEnvironment::scripts) compiles and
// keeps it. User functions are never folded by replicas, and none counts as pure.
#include "cql/functions/user_function.h"

#include "base/assert.h"
#include "cql/script/script_engine.h"

namespace tetrad::cql {

namespace {

/// The state goes through the state function row by row, and through the final one at the end. A
/// function that takes no nulls is left out where one comes.
class UserAggregator final : public Aggregator {
 public:
  UserAggregator(const FunctionEnvironment& environment, ScalarFunctionPtr state,
                 ScalarFunctionPtr last, OptionalBytes initial)
      : environment_(environment),
        state_function_(std::move(state)),
        final_function_(std::move(last)),
        initial_(std::move(initial)),
        state_(initial_) {}

  Result<void> add(FunctionArguments values) override {
    arguments_.clear();
    arguments_.push_back(state_ ? OptionalView(*state_) : std::nullopt);
    arguments_.insert(arguments_.end(), values.begin(), values.end());
    TETRAD_TRY(std::optional<OptionalBytes> next, call(*state_function_));
    // The state function may return null; that is a state, too. Only where it was not called the
    // old state stays.
    if (next) state_ = std::move(*next);
    return {};
  }

  // Starts again from the initial state: the next group uses the same object.
  Result<OptionalBytes> finish() override {
    OptionalBytes state = std::exchange(state_, initial_);
    if (!final_function_) return state;
    arguments_.assign(1, state ? OptionalView(*state) : std::nullopt);
    TETRAD_TRY(std::optional<OptionalBytes> result, call(*final_function_));
    return result ? std::move(*result) : std::nullopt;
  }

 private:
  /// Nothing at all: the function is not called.
  Result<std::optional<OptionalBytes>> call(const ScalarFunction& function) {
    if (!function.called_on_null) {
      for (const OptionalView& argument : arguments_) {
        if (!argument) return std::nullopt;
      }
    }
    auto result = function.body(environment_, arguments_);
    if (!result) return std::unexpected(function_failure(std::move(result).error(), function));
    return std::optional<OptionalBytes>(std::move(*result));
  }

  const FunctionEnvironment& environment_;
  const ScalarFunctionPtr state_function_, final_function_;
  const OptionalBytes initial_;
  OptionalBytes state_;
  std::vector<OptionalView> arguments_;
};

}  // namespace

Error function_failure(Error error, const ScalarFunction& function) {
  base::FunctionFailureDetail detail{function.keyspace, function.name, {}};
  for (const auto& type : function.argument_types) {
    detail.argument_types.push_back(type->cql_text());
  }
  return {error.code, std::move(error.message), std::move(detail)};
}

Result<void> check_user_functions(bool enabled) {
  if (enabled) return {};
  return fail(ErrorCode::kInvalid,
              "User-defined functions are disabled. Enable them with the option "
              "user_defined_functions_enabled.");
}

ScalarFunctionPtr make_user_function(const FunctionSchema& function) {
  auto script = std::make_shared<Script>();
  script->name = function.name;
  script->argument_names = function.argument_names;
  script->argument_types = function.argument_types;
  script->return_type = function.return_type;
  script->body = function.body;
  auto made = std::make_shared<ScalarFunction>();
  made->keyspace = function.keyspace;
  made->name = function.name;
  made->argument_types = function.argument_types;
  made->return_type = function.return_type;
  made->called_on_null = function.called_on_null_input;
  made->pure = false;
  made->body = [script = std::shared_ptr<const Script>(std::move(script))](
                   const FunctionEnvironment& environment,
                   FunctionArguments arguments) -> Result<OptionalBytes> {
    TETRAD_ASSERT(environment.scripts != nullptr);
    // Steps of a script count as work of the statement, also of a call that fails.
    const uint64_t steps_before = environment.scripts->steps_used();
    auto result = environment.scripts->call(*script, arguments);
    if (environment.work != nullptr) {
      environment.work->charge(WorkMeter::kScriptStepNs *
                               (environment.scripts->steps_used() - steps_before));
    }
    return result;
  };
  return made;
}

// Its arguments are the state, then those of the aggregate.
FunctionPtr state_function_of(const AggregateSchema& aggregate, const KeyspaceSchema& keyspace) {
  std::vector<TypePtr> types = {aggregate.state_type};
  types.insert(types.end(), aggregate.argument_types.begin(), aggregate.argument_types.end());
  return keyspace.find_function(aggregate.state_function, types);
}

FunctionPtr final_function_of(const AggregateSchema& aggregate, const KeyspaceSchema& keyspace) {
  if (aggregate.final_function.empty()) return nullptr;
  return keyspace.find_function(aggregate.final_function, std::array{aggregate.state_type});
}

ScalarFunctionPtr make_user_aggregate(const AggregateSchema& aggregate,
                                      const KeyspaceSchema& keyspace) {
  const FunctionPtr state = state_function_of(aggregate, keyspace);
  const FunctionPtr last = final_function_of(aggregate, keyspace);
  // Dropping a function that an aggregate needs is refused, but metadata may come from other
  // programs.
  if (!state || (!last && !aggregate.final_function.empty())) return nullptr;
  auto inner = std::make_shared<AggregateFunction>();
  inner->name = aggregate.name;
  inner->argument_types = aggregate.argument_types;
  inner->return_type = aggregate.return_type;
  inner->make = [state_function = make_user_function(*state),
                 final_function = last ? make_user_function(*last) : nullptr,
                 initial = aggregate.initial_condition](const FunctionEnvironment& environment) {
    return std::make_unique<UserAggregator>(environment, state_function, final_function, initial);
  };
  auto made = std::make_shared<ScalarFunction>();
  made->keyspace = aggregate.keyspace;
  made->name = aggregate.name;
  made->argument_types = aggregate.argument_types;
  made->return_type = aggregate.return_type;
  made->aggregate = std::move(inner);
  return made;
}

}  // namespace tetrad::cql
