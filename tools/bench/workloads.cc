// SPDX-License-Identifier: Apache-2.0
// Request number i draws its keys from a hash of i and the seed: any number of connections can make
// them in any order, and two runs of one seed ask the same.
#include "tools/bench/workloads.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "base/byte_io.h"
#include "base/random.h"
#include "cql/types/value.h"

namespace tetrad::bench {
namespace {

// Shapes of the tables; sizes that the command line sets are in Scale.
constexpr uint64_t kRowsOfPartition = 100;
constexpr size_t kKeysOfIn = 100;
constexpr uint64_t kRowsOfBatch = 10;
constexpr int kWideColumns = 10;
constexpr uint64_t kMapRows = 10'000, kMapKeys = 20;
constexpr uint64_t kLeases = 10'000;
constexpr uint64_t kRowsOfIndexRange = 100;
constexpr uint64_t kDimension = 128, kClusters = 100;

// A number that looks random, of two that do not.
uint64_t mixed(uint64_t a, uint64_t b) {
  return base::Random(a * 0x9E3779B97F4A7C15ULL + b).next();
}

// Keys and columns of numbers are bigint.
Bytes big(uint64_t value) { return cql::make_bigint(static_cast<int64_t>(value)); }

// Incompressible, so that files and blocks are as large as they look.
Bytes random_value(uint64_t number, int size) {
  base::Random random(number + 77);
  Bytes out(static_cast<size_t>(size), '\0');
  for (size_t i = 0; i < out.size(); i += 8) {
    const uint64_t word = random.next();
    std::memcpy(out.data() + i, &word, std::min<size_t>(8, out.size() - i));
  }
  return out;
}

// Uniform in -1..1.
float signed_unit(base::Random& random) {
  return static_cast<float>(random.next() >> 40) / static_cast<float>(1 << 23) - 1;
}

// Of one of kClusters clusters, since uniform ones are all about as far from each other.
Bytes clustered_vector(uint64_t number) {
  base::Random centre(number % kClusters), noise(number + 99);
  Bytes out;
  base::ByteWriter w(out);
  for (uint64_t i = 0; i < kDimension; ++i)
    w.u32(std::bit_cast<uint32_t>(signed_unit(centre) + 0.7F * signed_unit(noise)));
  return out;
}

// Values of an INSERT into a table of pk, ck, v.
void set_row(Operation& out, uint64_t pk, uint64_t ck, uint64_t number, const Scale& s) {
  out.values = {big(pk), big(ck), random_value(number, s.value_bytes)};
}

// "{{}}" becomes "{}", where the keyspace goes later.
constexpr const char* kInsert = "INSERT INTO {{}}.{} (pk, ck, v) VALUES (?, ?, ?)";
constexpr const char* kSelect = "SELECT v FROM {{}}.{} WHERE pk = ? AND ck = ?";
std::string insert_into(const char* table) { return fmt::format(fmt::runtime(kInsert), table); }
std::string select_from(const char* table) { return fmt::format(fmt::runtime(kSelect), table); }

// `format` for each column of the table wide, with its number.
std::string wide_columns(const char* format) {
  std::string out;
  for (int i = 0; i < kWideColumns; ++i) out += fmt::format(fmt::runtime(format), i);
  return out;
}

}  // namespace

// Tables are dropped first: a run begins with empty ones.
std::vector<std::string> schema_statements() {
  std::vector<std::string> out;
  const auto table = [&out](const std::string& name, const std::string& columns) {
    out.push_back("DROP TABLE IF EXISTS {}." + name);
    out.push_back("CREATE TABLE {}." + name + " (" + columns + ")");
  };
  for (const char* name : {"kv", "ts", "w"})
    table(name, "pk bigint, ck bigint, v blob, PRIMARY KEY (pk, ck)");
  table("wide", "pk bigint PRIMARY KEY" + wide_columns(", c{} bigint"));
  table("maps", "pk bigint PRIMARY KEY, m map<bigint, bigint>");
  table("leases", "pk bigint PRIMARY KEY, owner bigint");
  table("counts", "pk bigint PRIMARY KEY, n counter");
  table("indexed", "pk bigint PRIMARY KEY, c bigint, v blob");
  out.emplace_back("CREATE INDEX ON {}.indexed (c) USING 'sai'");
  out.emplace_back("DROP MATERIALIZED VIEW IF EXISTS {}.viewed_by_c");
  table("viewed", "pk bigint PRIMARY KEY, c bigint, v blob");
  out.emplace_back(
      "CREATE MATERIALIZED VIEW {0}.viewed_by_c AS SELECT * FROM {0}.viewed "
      "WHERE c IS NOT NULL AND pk IS NOT NULL PRIMARY KEY (c, pk)");
  table("vectors", fmt::format("pk bigint PRIMARY KEY, v vector<float, {}>", kDimension));
  out.emplace_back("CREATE INDEX ON {}.vectors (v) USING 'sai'");
  return out;
}

// One list: an entry for each workload, in the order of --help.
std::vector<Workload> make_workloads(const Scale& s) {
  const uint64_t seed = s.seed;
  // `salt` differs between workloads, so that one does not ask for the keys that the one before has
  // just read.
  const auto any_row = [s, seed](uint64_t i, uint64_t salt) {
    return mixed(i, seed + salt) % s.rows;
  };
  const auto any_partition = [s, seed](uint64_t i, uint64_t salt) {
    return mixed(i, seed + salt) % s.partitions;
  };
  std::vector<Workload> out;
  // Row i of kv has the key i; ts is filled partition by partition, a row of each in turn.
  out.push_back({"load",
                 "fill kv (--rows) and ts (--partitions of 100 rows)",
                 {insert_into("kv"), insert_into("ts")},
                 [s](uint64_t i, Operation& o) {
                   o.statement = i < s.rows ? 0 : 1;
                   if (i < s.rows) return set_row(o, i, 0, i, s);
                   const uint64_t j = i - s.rows;
                   set_row(o, j % s.partitions, j / s.partitions, i, s);
                 },
                 s.rows + s.partitions * kRowsOfPartition});
  out.push_back(
      {"write",
       "insert rows with new keys",
       {insert_into("w")},
       [s, seed](uint64_t i, Operation& o) { set_row(o, mixed(i, seed) >> 1, 0, i, s); }});
  // One prepared statement with 30 markers.
  std::string ten_rows = "BEGIN BATCH ";
  for (uint64_t k = 0; k < kRowsOfBatch; ++k)
    ten_rows += "INSERT INTO {0}.w (pk, ck, v) VALUES (?, ?, ?); ";
  out.push_back({"batch",
                 "logged batches of 10 rows with new keys",
                 {ten_rows + "APPLY BATCH"},
                 [s, seed](uint64_t i, Operation& o) {
                   o.values.clear();
                   for (uint64_t k = i * kRowsOfBatch; k < (i + 1) * kRowsOfBatch; ++k) {
                     for (Bytes& value : std::array<Bytes, 3>{big(mixed(k, seed + 19) >> 1), big(0),
                                                              random_value(k, s.value_bytes)})
                       o.values.push_back(std::move(value));
                   }
                 }});
  out.push_back({"read", "one row of kv", {select_from("kv")}, [any_row](uint64_t i, Operation& o) {
                   o.values = {big(any_row(i, 5)), big(0)};
                 }});
  // Reads and writes go to rows of one choice, so that reads find what was written lately.
  out.push_back({"mix",
                 "read and overwrite rows of kv by turns",
                 {select_from("kv"), insert_into("kv")},
                 [s, any_row](uint64_t i, Operation& o) {
                   const uint64_t pk = any_row(i, 9);
                   o.statement = i % 2;
                   if (o.statement == 0) {
                     o.values = {big(pk), big(0)};
                   } else {
                     set_row(o, pk, 0, i, s);
                   }
                 }});
  constexpr const char* kCount = "UPDATE {}.counts SET n = n + 1 WHERE pk = ?";
  // One counter is one row that all clients want; `counters` spreads them.
  out.push_back({"counter", "add to one counter", {kCount}, [](uint64_t, Operation& o) {
                   o.values = {big(0)};
                 }});
  out.push_back(
      {"counters",
       "add to one of many counters",
       {kCount},
       [any_partition](uint64_t i, Operation& o) { o.values = {big(any_partition(i, 8))}; }});
  out.push_back(
      {"range",
       "100 rows of a partition of ts",
       {"SELECT ck, v FROM {}.ts WHERE pk = ? LIMIT 100"},
       [any_partition](uint64_t i, Operation& o) { o.values = {big(any_partition(i, 3))}; }});
  out.push_back({"cread",
                 "one row of a partition of ts",
                 {select_from("ts")},
                 [any_partition](uint64_t i, Operation& o) {
                   o.values = {big(any_partition(i, 4)), big(i % kRowsOfPartition)};
                 }});
  out.push_back({"cwrite",
                 "overwrite one row of a partition of ts",
                 {insert_into("ts")},
                 [s, any_partition](uint64_t i, Operation& o) {
                   set_row(o, any_partition(i, 6), i % kRowsOfPartition, i, s);
                 }});
  out.push_back(
      {"group",
       "aggregates of a partition of ts in groups",
       {"SELECT pk, ck, count(v), max(ck) FROM {}.ts WHERE pk = ? GROUP BY pk, ck"},
       [any_partition](uint64_t i, Operation& o) { o.values = {big(any_partition(i, 7))}; }});
  // A list of bigint as one bound value: count, then each with its length.
  out.push_back({"in",
                 "100 rows of kv by IN on the partition key",
                 {"SELECT pk, v FROM {}.kv WHERE pk IN ?"},
                 [any_row](uint64_t i, Operation& o) {
                   Bytes keys;
                   base::ByteWriter w(keys);
                   w.u32(kKeysOfIn);
                   for (uint64_t k = 0; k < kKeysOfIn; ++k) {
                     w.u32(8);
                     w.u64(any_row(i * kKeysOfIn + k, 11));
                   }
                   o.values = {std::move(keys)};
                 }});
  // A cell of its own for each element: nothing is read before.
  out.push_back({"map",
                 "set one element of a map",
                 {"UPDATE {}.maps SET m[?] = ? WHERE pk = ?"},
                 [seed](uint64_t i, Operation& o) {
                   o.values = {big(mixed(i, seed + 12) % kMapKeys), big(i),
                               big(mixed(i, seed + 13) % kMapRows)};
                 }});
  // Keys in a row, so that wread finds each after as many requests as --rows.
  out.push_back({"wwrite",
                 "insert rows of 10 columns",
                 {"INSERT INTO {}.wide (pk" + wide_columns(", c{}") + ") VALUES (?" +
                  wide_columns(", ?") + ")"},
                 [s](uint64_t i, Operation& o) {
                   o.values = {big(i % s.rows)};
                   for (uint64_t c = 0; c < kWideColumns; ++c) o.values.push_back(big(i + c));
                 }});
  out.push_back({"wread",
                 "read rows of 10 columns (after wwrite)",
                 {"SELECT * FROM {}.wide WHERE pk = ?"},
                 [any_row](uint64_t i, Operation& o) { o.values = {big(any_row(i, 14))}; }});
  // Of row i the indexed column is i, too: a value names one row.
  out.push_back({"iwrite",
                 "insert rows of a table with an index",
                 {"INSERT INTO {}.indexed (pk, c, v) VALUES (?, ?, ?)"},
                 [s](uint64_t i, Operation& o) {
                   o.values = {big(mixed(i % s.rows, 18) >> 1), big(i % s.rows),
                               random_value(i, s.value_bytes)};
                 }});
  out.push_back({"iread",
                 "one row by an index, without its key (after iwrite)",
                 {"SELECT v FROM {}.indexed WHERE c = ?"},
                 [any_row](uint64_t i, Operation& o) { o.values = {big(any_row(i, 19))}; }});
  out.push_back({"irange",
                 "100 rows by a range of an index (after iwrite)",
                 {"SELECT v FROM {}.indexed WHERE c >= ? AND c < ?"},
                 [any_row](uint64_t i, Operation& o) {
                   const uint64_t from = any_row(i, 20);
                   o.values = {big(from), big(from + kRowsOfIndexRange)};
                 }});
  // The views' part of a write may follow its answer: see --settle.
  out.push_back({"vwrite",
                 "write rows of a table with a view, another view key each time",
                 {"INSERT INTO {}.viewed (pk, c, v) VALUES (?, ?, ?)"},
                 [s, any_row](uint64_t i, Operation& o) {
                   o.values = {big(any_row(i, 21)), big(mixed(i, s.seed + 22) >> 1),
                               random_value(i, s.value_bytes)};
                 }});
  out.push_back({"nload",
                 "fill a table with vectors (--rows)",
                 {"INSERT INTO {}.vectors (pk, v) VALUES (?, ?)"},
                 [](uint64_t i, Operation& o) {
                   o.values = {big(i), clustered_vector(mixed(i, 23))};
                 },
                 s.rows});
  out.push_back(
      {"near",
       "10 rows near a vector (after nload)",
       {"SELECT pk FROM {}.vectors ORDER BY v ANN OF ? LIMIT 10"},
       [seed](uint64_t i, Operation& o) { o.values = {clustered_vector(mixed(i, seed + 24))}; }});
  // Always true but for a repetition: the new owner is the request's number.
  const std::string take_lease = "UPDATE {}.leases SET owner = ? WHERE pk = ? IF owner != ?";
  // Keys above kLeases: lwtset and lwthot have the lower ones.
  out.push_back({"lwtnew",
                 "insert rows with new keys if they do not exist",
                 {"INSERT INTO {}.leases (pk, owner) VALUES (?, ?) IF NOT EXISTS"},
                 [seed](uint64_t i, Operation& o) {
                   o.values = {big(kLeases + (mixed(i, seed + 15) >> 2)), big(i)};
                 }});
  out.push_back({"lwtset",
                 "compare and set one of 10,000 rows",
                 {take_lease},
                 [seed](uint64_t i, Operation& o) {
                   o.values = {big(i), big(mixed(i, seed + 16) % kLeases), big(i)};
                 }});
  out.push_back(
      {"lwthot", "compare and set a single row", {take_lease}, [](uint64_t i, Operation& o) {
         o.values = {big(i), big(0), big(i)};
       }});
  out.push_back(
      {"serial",
       "one of 10,000 rows (with --consistency SERIAL)",
       {"SELECT owner FROM {}.leases WHERE pk = ?"},
       [seed](uint64_t i, Operation& o) { o.values = {big(mixed(i, seed + 17) % kLeases)}; }});
  // A single one at a time: it works on the whole table.
  out.push_back({"count",
                 "count(*) over kv, one at a time",
                 {"SELECT count(*) FROM {}.kv"},
                 [](uint64_t, Operation& o) { o.values.clear(); },
                 UINT64_MAX,
                 1});
  out.push_back({"aggregate",
                 "sum, min, max and avg over kv, one at a time",
                 {"SELECT sum(pk), min(ck), max(v), avg(pk) FROM {}.kv"},
                 [](uint64_t, Operation& o) { o.values.clear(); },
                 UINT64_MAX,
                 1});
  return out;
}

}  // namespace tetrad::bench
