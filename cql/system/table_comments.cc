// SPDX-License-Identifier: Apache-2.0
// What DESCRIBE says of the tables of system_tetrad: each column with its unit.
#include <utility>

#include "cql/system/computed_tables.h"

namespace tetrad::cql {

namespace {

constexpr std::pair<const char*, const char*> kComments[] = {
    {"advice",
     "What to change, if anything. kind: hot key, full key, hot partition, throttled; subject: the "
     "key or the id of the physical partition; share: the part of the work, 0 to 1 (of a hot key: "
     "of its physical partition; of a hot partition: of its table; throttled: used of what is "
     "provided); ru_per_s: request units a second. Hot keys are those of the asked "
     "node's replicas"},
    {"hot_keys",
     "The partition keys that get most work at the asked node's replicas. key: its values with ':' "
     "between them; share: of the work of its physical partition, 0 to 1; ru_per_s: request units "
     "a second, of reads and writes together"},
    {"key_location",
     "Where a partition key is; asked with keyspace_name, table_name and key (its values with ':' "
     "between them, as a text). partition_id: the physical partition; live: the replicas that "
     "answer; state: as in partitions"},
    {"moves",
     "Physical partitions whose replicas change. joining: who comes; leaving: who goes; stage: the "
     "step that the change is at; size_bytes: what is sent to each that joins, about"},
    {"nodes",
     "The nodes of the cluster as the metadata has them. live: the asked node hears from it; "
     "stores: the shards of the node that keep rows"},
    {"partition_skew",
     "How unevenly a table's physical partitions work and grow. ru_per_s, size_bytes: of the "
     "table; *_most: of the busiest or largest partition, busiest_id and largest_id; ru_skew, "
     "size_skew: that one over the mean, 1 is even. Sizes are estimates of RocksDB's and know the "
     "last half minute's writes roughly"},
    {"partitions",
     "The physical partitions: the tokens above range_start up to range_end. repaired_at: when "
     "all replicas were last compared; size_bytes: on the disk of a replica, about; state: "
     "normal, full (one key, no inserts) or the step of a change; ru_per_s, read_ru_per_s, "
     "write_ru_per_s, bytes_per_s (written): means of the last seconds; ru_per_s_most: of the "
     "busiest second of the last minute or two"},
    {"throughput",
     "The use of provided throughputs, a row for each physical partition; of a throughput of a "
     "keyspace one row, with the table '' and the id 0. provisioned_ru_per_s: the partition's "
     "part; used_ru_per_s, used_percent: in the last second; refused: requests that were answered "
     "OVERLOADED; banked_ru: saved up for a burst, negative: a debt; booked_ru_per_s: what the "
     "running hour counts, booked_before_ru_per_s: the hour before, both by the setting of now. "
     "Counts are of the node that keeps the account, since it does"},
    {"unreadable_objects",
     "Objects of the schema that this program cannot read, and why; DROP of them works"},
};

}  // namespace

void comment_own_tables(ComputedTables& tables) {
  for (const auto& [name, comment] : kComments) tables.set_comment("system_tetrad", name, comment);
}

}  // namespace tetrad::cql
