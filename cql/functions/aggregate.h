// SPDX-License-Identifier: Apache-2.0
// Aggregates; native are count, min, max, sum, avg.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/byte_io.h"
#include "base/result.h"
#include "cql/functions/scalar.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// The running value of one aggregate over one group.
class Aggregator {
 public:
  virtual ~Aggregator() = default;
  /// The arguments for one row; count(*) has none.
  virtual Result<void> add(FunctionArguments values) = 0;
  /// The result over what was added; afterwards the group is empty again.
  virtual Result<OptionalBytes> finish() = 0;

  // Of aggregates that fold: what was added so far, as bytes. Errors: kCorruption, of bytes that
  // save() has not written.
  virtual void save(base::ByteWriter& out) const;
  /// In place of what was added.
  virtual Result<void> load(base::ByteReader& in);
  /// Adds the state of a later range of rows. Not for aggregates that fold in order.
  virtual Result<void> join(base::ByteReader& in);
};

/// Whether rows may be added by several, each a range, and how.
enum class Folding : uint8_t {
  kNever,
  kInOrder,  // one after another: the result depends on the order of the values
  kInParts,  // side by side: the parts can be joined, to the same bytes
};

/// One aggregate for one list of argument types, native or of users. Immutable; prepared statements
/// of any shard share it.
struct AggregateFunction {
  std::string name;
  std::vector<TypePtr> argument_types;
  TypePtr return_type;
  /// The environment outlives the aggregator.
  std::function<std::unique_ptr<Aggregator>(const FunctionEnvironment&)> make;
  Folding folding = Folding::kNever;
  /// Of one that folds: needs no environment.
  std::function<std::unique_ptr<Aggregator>()> make_native = {};
};
using AggregateFunctionPtr = std::shared_ptr<const AggregateFunction>;

bool is_native_aggregate(std::string_view name);
/// count(*) and count(1).
AggregateFunctionPtr count_rows_aggregate();
/// Null when the aggregate does not take such an argument.
AggregateFunctionPtr find_aggregate(std::string_view name, const TypePtr& argument);
/// `system.sum : (int) -> int, …`
std::string aggregate_signatures(std::string_view name);

}  // namespace tetrad::cql
