// SPDX-License-Identifier: Apache-2.0
// The throughput of a table or keyspace, as WITH or the request's custom payload names it, and what
// of it replication gets.
#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/grammar/ast_schema.h"
#include "cql/schema/schema_snapshot.h"
#include "cql/schema/table_schema.h"
#include "replication/meta/meta_state.h"

namespace tetrad::cql {

/// With this key in its custom payload a CREATE or ALTER of a table or keyspace is one that has the
/// option of that name, with the payload's digits.
inline constexpr std::string_view kThroughputPayloadKey = kProvisionedThroughput;

/// Of an option, or of its alias that begins with tetrad_.
bool is_throughput_property(std::string_view name);
/// The properties, and that of the payload where none of them is of a throughput.
ast::Properties with_payload(ast::Properties properties, std::optional<BytesView> payload);
/// Changes `options` as those of the properties say that are of a throughput: naming one takes away
/// the other. Errors: kConfig with the option, the rule and the value; kSyntax.
Result<void> apply_throughput(const ast::Properties& properties, ThroughputSetting& options);

/// The table's own if it has one, else the keyspace's.
replication::Throughput throughput_of(const TableOptions& table, const KeyspaceSchema& keyspace);
/// The throughput for replication when options of the table, or of its keyspace, have changed.
replication::SchemaChange::AlteredTable altered_table(const TableSchema& table,
                                                      const KeyspaceSchema& keyspace);

}  // namespace tetrad::cql
