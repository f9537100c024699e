// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/disk_guard.h"

#include <algorithm>

#include "replication/coordinator/replica_sets.h"

namespace tetrad::cql {

namespace {

using replication::DiskUsage;

constexpr const char* kGuardrail = "replica_disk_usage";
/// As in Cassandra: drivers log each warning, and this one would come with every write.
constexpr int64_t kWarnEveryUs = int64_t{30} * 60 * 1'000'000;

void warn(ExecuteContext& context) {
  const base::MonotonicUs now_us = context.reactor.now_us();
  std::optional<base::MonotonicUs>& warned_us = context.disk_guard->warned_us;
  if (warned_us && now_us - *warned_us < kWarnEveryUs) return;
  warned_us = now_us;
  context.warnings.push_back(
      guardrail_text(kGuardrail, "Replica disk usage exceeds warning threshold"));
}

}  // namespace

Result<void> check_filling_disks(ExecuteContext& context,
                                 std::span<const storage::Mutation> mutations) {
  const replication::FillingDisks& disks = context.meta.filling_disks();
  const replication::MetaSnapshot state = context.meta.snapshot();
  bool is_stuffed = false;
  for (const storage::Mutation& mutation : mutations) {
    const replication::TableInfo* table = state->table(mutation.incarnation);
    if (table == nullptr) continue;  // the write finds out
    const auto sets = replication::write_sets(table->tablets.find(mutation.position));
    for (const auto* set : {&sets.old_set, &sets.new_set}) {
      for (const StoreAddress& replica : *set) {
        const auto found = disks.find(replica.host);
        // Without room: the coordinator refuses what adds to it.
        if (found == disks.end() || found->second == DiskUsage::kNoRoom) continue;
        if (found->second == DiskUsage::kFull) {
          return fail(ErrorCode::kInvalid, "{}",
                      guardrail_text(kGuardrail,
                                     "Write request failed because disk usage exceeds failure "
                                     "threshold"));
        }
        is_stuffed = true;
      }
    }
  }
  if (is_stuffed) warn(context);
  return {};
}

}  // namespace tetrad::cql
