// SPDX-License-Identifier: Apache-2.0
// What a statement is and what it is about, in the words of Cassandra's audit log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cql/grammar/ast.h"

namespace tetrad::cql {

/// Groups of statements that an audit log is filtered by, as Cassandra's AuditLogEntryCategory; and
/// orders of the admin port, whose counterpart in later versions of Cassandra is the category JMX.
enum class AuditCategory : uint8_t {
  kQuery,
  kDml,
  kDdl,
  kDcl,
  kOther,
  kAuth,
  kError,
  kPrepare,
  kAdmin
};
/// For tables by category.
inline constexpr size_t kAuditCategories = 9;

/// "QUERY", "DML", …
std::string_view name_of(AuditCategory category);

/// Type and names of a statement; made once, when it is prepared.
struct StatementSubject {
  // The defaults are those of a request that failed before it had a statement.
  std::string_view type = "REQUEST_FAILURE";  // as Cassandra's AuditLogEntryType
  AuditCategory category = AuditCategory::kError;
  std::string keyspace;  // "" where it has none
  std::string name;      // of the table, type, function, …; "" where it has none
};

/// `keyspace`: in effect, for names without one.
StatementSubject subject_of(const ast::Statement& statement, const std::string& keyspace);

}  // namespace tetrad::cql
