// SPDX-License-Identifier: Apache-2.0
// The keywords of CQL, and names written so that they are read back as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tetrad::cql {

// Every keyword of Cassandra 5.0 with how it may serve as a name:
//   R  reserved
//   T  names a native type
//   B  basic: any name
//   S  a name, but not of a type or function
//   C  as S, but a function too (count)
//   K  as S, but a type too (key)
//   F  a function name only (token)
// clang-format off
#define TETRAD_CQL_KEYWORDS(X) \
  X(Access, "access", B) X(Add, "add", R) X(Aggregate, "aggregate", B) \
  X(Aggregates, "aggregates", B) X(All, "all", B) X(Allow, "allow", R) X(Alter, "alter", R) \
  X(And, "and", R) X(Ann, "ann", B) X(Apply, "apply", R) X(As, "as", B) X(Asc, "asc", R) \
  X(Ascii, "ascii", T) X(Authorize, "authorize", R) X(Batch, "batch", R) X(Begin, "begin", R) \
  X(Bigint, "bigint", T) X(Blob, "blob", T) X(Boolean, "boolean", T) X(By, "by", R) \
  X(Called, "called", B) X(Cast, "cast", S) X(Cidrs, "cidrs", B) X(Cluster, "cluster", B) \
  X(Clustering, "clustering", B) X(Columnfamily, "columnfamily", R) X(Compact, "compact", B) \
  X(Contains, "contains", B) X(Count, "count", C) X(Counter, "counter", T) \
  X(Create, "create", R) X(Custom, "custom", B) X(Datacenters, "datacenters", B) \
  X(Date, "date", T) X(Decimal, "decimal", T) X(Default, "default", B) X(Delete, "delete", R) \
  X(Desc, "desc", R) X(Describe, "describe", R) X(Distinct, "distinct", S) \
  X(Double, "double", T) X(Drop, "drop", R) X(Duration, "duration", T) X(Entries, "entries", R) \
  X(Execute, "execute", R) X(Exists, "exists", B) X(False, "false", R) \
  X(Filtering, "filtering", B) X(Finalfunc, "finalfunc", B) X(Float, "float", T) \
  X(From, "from", R) X(Frozen, "frozen", B) X(Full, "full", R) X(Function, "function", B) \
  X(Functions, "functions", B) X(Grant, "grant", R) X(Group, "group", B) X(Hashed, "hashed", B) \
  X(Identity, "identity", B) X(If, "if", R) X(In, "in", R) X(Index, "index", R) \
  X(Inet, "inet", T) X(Infinity, "infinity", R) X(Initcond, "initcond", B) X(Input, "input", B) \
  X(Insert, "insert", R) X(Int, "int", T) X(Internals, "internals", B) X(Into, "into", R) \
  X(Is, "is", R) X(Json, "json", S) X(Key, "key", K) X(Keys, "keys", B) \
  X(Keyspace, "keyspace", R) X(Keyspaces, "keyspaces", B) X(Language, "language", B) \
  X(Like, "like", B) X(Limit, "limit", R) X(List, "list", B) X(Login, "login", B) \
  X(Map, "map", B) X(Masked, "masked", B) X(Materialized, "materialized", R) \
  X(Maxwritetime, "maxwritetime", S) X(Mbean, "mbean", B) X(Mbeans, "mbeans", B) \
  X(Modify, "modify", R) X(Nan, "nan", R) X(Nologin, "nologin", B) \
  X(Norecursive, "norecursive", R) X(Nosuperuser, "nosuperuser", B) X(Not, "not", R) \
  X(Null, "null", R) X(Of, "of", R) X(On, "on", R) X(Only, "only", B) X(Options, "options", B) \
  X(Or, "or", R) X(Order, "order", R) X(Partition, "partition", B) X(Password, "password", B) \
  X(Per, "per", B) X(Permission, "permission", B) X(Permissions, "permissions", B) \
  X(Primary, "primary", R) X(Rename, "rename", R) X(Replace, "replace", B) \
  X(Returns, "returns", B) X(Revoke, "revoke", R) X(Role, "role", B) X(Roles, "roles", B) \
  X(Schema, "schema", R) X(Select, "select", R) X(SelectMasked, "select_masked", B) \
  X(Set, "set", R) X(Sfunc, "sfunc", B) X(Smallint, "smallint", T) X(Static, "static", B) \
  X(Storage, "storage", B) X(Stype, "stype", B) X(Superuser, "superuser", B) \
  X(Table, "table", R) X(Tables, "tables", B) X(Text, "text", T) X(Time, "time", T) \
  X(Timestamp, "timestamp", T) X(Timeuuid, "timeuuid", T) X(Tinyint, "tinyint", T) \
  X(To, "to", R) X(Token, "token", F) X(Trigger, "trigger", B) X(True, "true", R) \
  X(Truncate, "truncate", R) X(Ttl, "ttl", S) X(Tuple, "tuple", B) X(Type, "type", B) \
  X(Types, "types", B) X(Unlogged, "unlogged", R) X(Unmask, "unmask", B) X(Unset, "unset", B) \
  X(Update, "update", R) X(Use, "use", R) X(User, "user", B) X(Users, "users", B) \
  X(Using, "using", R) X(Uuid, "uuid", T) X(Values, "values", B) X(Varchar, "varchar", T) \
  X(Varint, "varint", T) X(Vector, "vector", B) X(View, "view", R) X(Where, "where", R) \
  X(With, "with", R) X(Writetime, "writetime", S)
// clang-format on

/// The words of CQL's grammar, in the order of the list above.
enum class Keyword : uint8_t {
#define TETRAD_CQL_KEYWORD(name, text, use) k##name,
  TETRAD_CQL_KEYWORDS(TETRAD_CQL_KEYWORD)
#undef TETRAD_CQL_KEYWORD
      kNegativeNan,   // -NaN, one token
  kNegativeInfinity,  // -Infinity
  kNone,
};

/// How a keyword may serve as a name; see TETRAD_CQL_KEYWORDS.
enum class KeywordUse : uint8_t { R, T, B, S, C, K, F };

KeywordUse keyword_use(Keyword keyword);
/// The keyword in lower case.
std::string_view keyword_text(Keyword keyword);
/// The keyword of a word in any case.
std::optional<Keyword> find_keyword(std::string_view word);

/// `name`, or `"name"` with " doubled when it would not read back the same without quotes
/// (upper case, odd characters, a reserved word).
std::string quote_identifier(std::string_view name);

}  // namespace tetrad::cql
