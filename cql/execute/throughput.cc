// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/throughput.h"

#include <algorithm>

namespace tetrad::cql {

bool is_limited(const ExecuteContext& context, std::span<const storage::Mutation> mutations) {
  return context.throughput != nullptr &&
         std::ranges::any_of(mutations, [&](const storage::Mutation& mutation) {
           return context.throughput->limits(mutation.incarnation);
         });
}

Task<Result<void>> admit_writes(ExecuteContext& context,
                                const std::vector<storage::Mutation>& mutations,
                                base::Deadline deadline) {
  std::vector<replication::ThroughputUse> uses;
  // One for each mutation, since each may be of another tablet.
  for (const storage::Mutation& mutation : mutations) {
    RequestCharge charge;
    charge.add_write({&mutation, 1});
    uses.push_back({mutation.incarnation, mutation.position, charge.weight()});
  }
  // What the request has cost before (reads of lists) is asked for with the first mutation.
  uses.front().weight += context.charge.weight();
  return context.throughput->admit(std::move(uses), deadline);
}

}  // namespace tetrad::cql
