// SPDX-License-Identifier: Apache-2.0
// Native aggregates: count, min, max, sum, avg.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// The running value of one aggregate over one group.
class Aggregator {
 public:
  virtual ~Aggregator() = default;
  virtual Result<void> add(OptionalView value) = 0;
  /// The result over what was added; afterwards the group is empty again.
  virtual Result<OptionalBytes> finish() = 0;
};

struct AggregateFunction {
  std::string name;
  TypePtr argument_type;  // null: count(*), which takes none
  TypePtr return_type;
  std::unique_ptr<Aggregator> (*make)(const TypePtr& argument_type) = nullptr;
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
