// SPDX-License-Identifier: Apache-2.0
// The properties behind WITH of keyspaces and tables: checked with Cassandra 5.0's rules and words,
// kept and returned.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "cql/grammar/ast_schema.h"
#include "cql/schema/table_schema.h"

namespace tetrad::cql {

/// Those of a new table, as Cassandra has them; DESCRIBE shows them all.
TableOptions default_table_options();
/// Sets what a new table has by the class of its compaction where it is not said: as in Cassandra
/// the chance of bloom filters of LeveledCompactionStrategy. Shown by DESCRIBE, of no effect here.
void follow_compaction(const ast::Properties& properties, TableOptions& options);

/// Changes `options` as the properties say. `id` gets the value of the property id, which is no
/// option. Errors: kSyntax ("Unknown property 'x'"), kConfig, kInvalid.
Result<void> apply_table_properties(const ast::Properties& properties, TableOptions& options,
                                    std::optional<Uuid>& id);

/// Of a keyspace that names none, as Cassandra's default_keyspace_rf is unless it is set.
inline constexpr int32_t kDefaultReplicationFactor = 1;

/// WITH of CREATE and ALTER KEYSPACE. What is not named stays unset: CREATE takes a default for it,
/// ALTER leaves it as it is.
struct KeyspaceProperties {
  std::optional<std::map<std::string, std::string>> replication;  // "class" in full
  std::optional<bool> durable_writes;
  std::optional<ThroughputSetting> throughput;
};
/// `data_centers`: those of the cluster, which NetworkTopologyStrategy may name. `old_replication`:
/// of an ALTER, else null.
Result<KeyspaceProperties> read_keyspace_properties(
    const std::string& keyspace, const ast::Properties& properties,
    const std::set<std::string>& data_centers,
    const std::map<std::string, std::string>* old_replication);

}  // namespace tetrad::cql
