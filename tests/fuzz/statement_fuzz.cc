// SPDX-License-Identifier: Apache-2.0
// Fuzz target: statements the whole way, from text to rows: parsed, prepared with values, planned,
// kept as the text of the schema, read again, and run on a MemoryStore. An input is
//   0 text                     statements, the byte 0x1e between them
//   1 statement (edit)*        a statement of the list below with some of its words replaced
//   2.. choices                statements of a small grammar, one byte for each choice
// After every change of the schema a node that starts now must read all of it, and see what one
// that followed the changes sees. What takes longer than two minutes hangs.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "base/assert.h"
#include "tests/fuzz/random_statement.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/local_cluster.h"

namespace {

using namespace tetrad;
using tests::Choices;
using tests::LocalCluster;

constexpr unsigned kHangS = 120;
constexpr int kInputsPerCluster = 200;

constexpr std::string_view kSetUp[] = {
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "USE ks",
    "CREATE TYPE u (x int, y text, z frozen<list<int>>)",
    "CREATE TYPE v (a frozen<u>, b frozen<map<text, int>>)",
    "CREATE TABLE t (k int, c int, d text, s text static, v int, m map<text, int>, l list<int>, e "
    "set<text>, PRIMARY KEY (k, c, d))",
    "CREATE TABLE w (k int PRIMARY KEY, i int, bi bigint, si smallint, ti tinyint, vi varint, de "
    "decimal, f float, d double, t text, a ascii, b blob, bo boolean, u uuid, tu timeuuid, ts "
    "timestamp, da date, ti2 time, du duration, ip inet, fl frozen<list<int>>, fm frozen<map<text, "
    "int>>, fu frozen<u>, nu v, tp tuple<int, text>, ve vector<float, 3>, ms map<int, "
    "frozen<set<text>>>) WITH cdc = true",
    "CREATE TABLE r (a text, b timestamp, c decimal, v blob, PRIMARY KEY ((a), b, c)) WITH "
    "CLUSTERING ORDER BY (b DESC, c ASC)",
    "CREATE FUNCTION f (s int, v int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return s'",
    "CREATE AGGREGATE g (int) SFUNC f STYPE int INITCOND 0",
    "INSERT INTO t (k, c, d, s, v, m, l, e) VALUES (1, 1, 'a', 'st', 5, {'a': 1, 'b': 2}, [3, 1], "
    "{'x', 'y'})",
    "INSERT INTO t (k, c, d, v) VALUES (1, 2, '', null)",
    "INSERT INTO t (k, c, d, v) VALUES (2, -1, 'zz', 7)",
    "INSERT INTO w (k, i, bi, si, ti, vi, de, f, d, t, a, b, bo, u, tu, ts, da, ti2, du, ip, fl, "
    "fm, fu, nu, tp, ve, ms) VALUES (1, 1, 9223372036854775807, -32768, 127, "
    "123456789012345678901234567890, 1E-40, 1.5, NaN, 'text', 'ascii', 0x00ff, true, "
    "123e4567-e89b-42d3-a456-426614174000, 50554d6e-29bb-11e5-b345-feff819cdc9f, "
    "9223372036854775807, '2020-02-29', '23:59:59.999999999', 1y2mo3w4d5h6m7s8ms, '::1', [1, 2], "
    "{'a': 1}, {x: 1, y: 'q', z: [1]}, {a: {x: 2}, b: {'k': 1}}, (1, 'b'), [1, 2, 3], {1: {'a'}})",
    "INSERT INTO w (k) VALUES (2)",
    "INSERT INTO r (a, b, c, v) VALUES ('p', -9223372036854775808, 1, 0x01)",
    "INSERT INTO r (a, b, c, v) VALUES ('p', '2020-01-01', -1E+30, 0x02)",
    "INSERT INTO r (a, b, c, v) VALUES ('p', 9223372036854775807, 0, 0x03)"};

/// What words are replaced in, beside the statements that set up.
constexpr std::string_view kStatements[] = {
    "SELECT * FROM t WHERE k = 1 AND c > 1 AND d = 'a' ALLOW FILTERING",
    "SELECT k, c, max(v), g(v) FROM t WHERE k IN (1, 2) GROUP BY k, c ORDER BY c DESC LIMIT 3",
    "SELECT JSON k, m, l, e, s FROM t PER PARTITION LIMIT 1",
    "SELECT floor(ts, 1mo), ts + 2d, da - 1mo, mintimeuuid(ts), cast(ts AS text) FROM w",
    "SELECT m['a'], m['a'..'b'], l, writetime(m), ttl(v), writetime(e['x']) FROM t WHERE m "
    "CONTAINS "
    "KEY 'a' AND l CONTAINS 3 ALLOW FILTERING",
    "SELECT fu.x, nu.a, tp, ve, token(k), to_json(nu), (text)t, [i, k], {i}, (i, t) FROM w WHERE i "
    "= ? ALLOW FILTERING",
    "SELECT similarity_cosine(ve, [1, 2, 3]), map_keys(fm), collection_count(fl), f(i, ?) FROM w",
    "SELECT count(*), sum(de), avg(vi), min(ts), max(u) FROM w",
    "SELECT DISTINCT a FROM r WHERE token(a) > ? AND token(a) <= 9223372036854775807",
    "SELECT b, c FROM r WHERE a = 'p' AND (b, c) >= ('2000-01-01', 1) AND (b) < (?)",
    "SELECT v FROM r WHERE a = :a AND b IN ? ORDER BY b ASC, c DESC",
    "SELECT k FROM w WHERE COSMOS_CHANGEFEED_START_TIME() = '2000-01-01'",
    "INSERT INTO w (k, nu, fu, tp, ms) VALUES (?, ?, {x: ?}, (?, 'a'), ?) USING TTL ? AND "
    "TIMESTAMP "
    "?",
    "INSERT INTO w JSON '{\"k\": 5, \"nu\": {\"a\": {\"x\": 1}}, \"ms\": {\"1\": [\"a\"]}, \"de\": "
    "1e400, \"du\": \"1d\"}' DEFAULT UNSET",
    "INSERT INTO t JSON ?",
    "UPDATE t USING TTL 10 SET v = 3, m['z'] = ?, l = l + [4], e = e - {'x'}, m = m + {'q': 1} "
    "WHERE "
    "k = 1 AND c = 1 AND d = 'a'",
    "UPDATE t SET l[0] = 9, s = 'n' WHERE k = 1 AND c = 1 AND d = 'a'",
    "UPDATE w SET nu.b = {'a': 1}, nu.a = ? WHERE k IN (1, 2)",
    "DELETE m['a'], l[0], v FROM t WHERE k = 1 AND c = 1 AND d = 'a'",
    "DELETE FROM t WHERE k = 1 AND c >= 1 AND c < 5",
    "DELETE nu.a FROM w USING TIMESTAMP 5 WHERE k = 1",
    "BEGIN UNLOGGED BATCH USING TIMESTAMP 3 INSERT INTO t (k, c, d) VALUES (7, 7, '7'); UPDATE w "
    "SET "
    "i = ? WHERE k = 1; DELETE FROM r WHERE a = 'x'; APPLY BATCH",
    "INSERT INTO t (k, c, d, v) VALUES (1, ?, 'a', now()) IF NOT EXISTS USING TTL ?",
    "INSERT INTO t JSON '{\"k\": 1, \"c\": 1, \"d\": \"a\", \"l\": [1]}' IF NOT EXISTS",
    "UPDATE t SET v = 4, l = l - [3], l[0] = ? WHERE k = 1 AND c = 1 AND d = 'a' IF v IN (5, ?) "
    "AND s != 'x' AND m['a'] = ? AND l[1] > ? AND e CONTAINS 'x' AND m CONTAINS KEY ?",
    "UPDATE t SET s = ? WHERE k = ? IF s IN ? AND s >= ?",
    "UPDATE w SET nu = ? WHERE k = 1 IF nu.a = {x: 2} AND tp = (1, ?) AND fu IN (?, ?) AND ve < ?",
    "DELETE v, s FROM t WHERE k = 1 AND c = 1 AND d = 'a' IF EXISTS",
    "BEGIN BATCH UPDATE t SET v = ? WHERE k = 1 AND c = 1 AND d = 'a' IF v = ?; INSERT INTO t (k, "
    "c, d, v) VALUES (1, 1, 'b', 1) IF NOT EXISTS; DELETE FROM t WHERE k = 1 AND c > 1; UPDATE t "
    "SET l = l + [?], s = 'z' WHERE k = 1 AND c = 2 AND d = ''; APPLY BATCH",
    "ALTER TABLE w ADD (n1 frozen<map<text, frozen<u>>>, n2 'MapType(Int32Type,UTF8Type)')",
    "ALTER TABLE t DROP (v, m) USING TIMESTAMP 5",
    "ALTER TABLE t ALTER v MASKED WITH f(100)",
    "ALTER TABLE t ALTER d MASKED WITH mask_inner(1, null, 'x')",
    "ALTER TABLE w ALTER nu MASKED WITH DEFAULT",
    "ALTER TABLE w ADD n1 frozen<list<u>> MASKED WITH mask_replace([{x: 1, y: ?}])",
    "CREATE TABLE n (k int MASKED WITH DEFAULT PRIMARY KEY, v blob MASKED WITH mask_hash('MD5'))",
    "ALTER TABLE t RENAME c TO cc AND d TO dd",
    "ALTER TABLE t WITH comment = 'c' AND gc_grace_seconds = 5 AND caching = {'keys': 'NONE'} AND "
    "extensions = {'a': 0x01}",
    "ALTER TYPE u ADD w frozen<tuple<int, text>>",
    "ALTER TYPE u RENAME x TO xx AND y TO yy",
    "CREATE TABLE n (k int PRIMARY KEY, v 'UserType(ks,75,78:Int32Type)')",
    "CREATE TABLE n (k frozen<tuple<int, list<text>>>, c frozen<u>, v vector<int, 3> STATIC, "
    "PRIMARY "
    "KEY (k, c)) WITH COMPACT STORAGE AND CLUSTERING ORDER BY (c DESC)",
    "CREATE TYPE n (a 'ListType(LongType)', b frozen<v>, \"C d\" 'CompositeType(Int32Type)')",
    "CREATE OR REPLACE FUNCTION h (a frozen<tuple<int>>, b v) RETURNS NULL ON NULL INPUT RETURNS "
    "set<text> LANGUAGE lua AS $$ return {b.a.y} $$",
    "CREATE AGGREGATE h (text) SFUNC f STYPE tuple<int, bigint> FINALFUNC h INITCOND (1, 2)",
    "DROP TABLE IF EXISTS t",
    "DROP TYPE u",
    "DROP FUNCTION f (int, int)",
    "DROP AGGREGATE g",
    "DROP KEYSPACE ks",
    "TRUNCATE t",
    "DESCRIBE KEYSPACE ks",
    "SELECT * FROM system_schema.columns WHERE keyspace_name = 'ks' AND column_name NOT CONTAINS "
    "KEY "
    "'a' ALLOW FILTERING",
    "SELECT * FROM system.local WHERE cluster_name NOT CONTAINS 'a' ALLOW FILTERING"};

/// A cluster of one node that lives for some inputs.
class Target {
 public:
  Target() {
    cluster_.settings.user_functions_enabled = cluster_.settings.data_masking_enabled = true;
    for (const std::string_view text : kSetUp) {
      const std::string answer = cluster_.cql(text);
      if (answer.starts_with("error")) std::fprintf(stderr, "%s\n", answer.c_str());
      TETRAD_ASSERT(!answer.starts_with("error"));
    }
    check_schema();
  }

  void run(std::string_view text, Choices& c) {
    const auto prepared = cluster_.try_prepare(text);
    if (prepared) {
      std::vector<Bytes> kept;
      kept.reserve((*prepared)->bind_variables().size());
      std::vector<cql::BoundValue> values;
      for (const cql::ColumnSpec& marker : (*prepared)->bind_variables())
        values.push_back(value(*marker.type, c, kept));
      constexpr int32_t kPages[] = {-1, 1, 2, 5000};
      cluster_.options.page_size = kPages[c.below(4)];
      cluster_.options.paging_position.reset();
      // Who has not logged in as anybody sees masks.
      cluster_.client.must_log_in = (*prepared)->result_metadata() != nullptr && c.one_in(2);
      for (int page = 0; page < 3; ++page) {
        const auto result = cluster_.execute(*prepared, values);
        (void)cluster_.print(result);
        const auto* rows = result ? std::get_if<cql::RowsResult>(&*result) : nullptr;
        if (rows == nullptr || !rows->next_position) break;
        cluster_.options.paging_position = rows->next_position;
      }
      cluster_.options.paging_position.reset();
      cluster_.client.must_log_in = false;
    } else {
      TETRAD_ASSERT(!prepared.error().message.empty());
    }
    if (cluster_.meta.snapshot()->schema_version != checked_) check_schema();
    cluster_.client.keyspace = "ks";
  }

 private:
  /// Of a marker: of the right size mostly, any bytes otherwise, null, unset.
  cql::BoundValue value(const cql::DataType& type, Choices& c, std::vector<Bytes>& kept) {
    cql::BoundValue out;
    switch (c.below(8)) {
      case 0:
        out.kind = cql::BoundValue::Kind::kNull;
        return out;
      case 1:
        out.kind = cql::BoundValue::Kind::kUnset;
        return out;
      default:
        break;
    }
    const size_t size = type.is_fixed_length() && !c.one_in(6)
                            ? std::min<size_t>(*type.fixed_length(), 64)
                            : c.below(40);
    Bytes bytes;
    const bool edges = c.one_in(2);
    for (size_t i = 0; i < size; ++i) {
      bytes.push_back(edges ? static_cast<char>(i == 0 ? 0x7f : 0xff)
                            : static_cast<char>(c.below(c.one_in(3) ? 4 : 256)));
    }
    kept.push_back(std::move(bytes));
    out.kind = cql::BoundValue::Kind::kBytes;
    out.bytes = kept.back();
    return out;
  }

  void check_schema() {
    const replication::MetaSnapshot meta = cluster_.meta.snapshot();
    checked_ = meta->schema_version;
    const cql::SchemaPtr fresh = cql::SchemaSnapshot::build(*meta, nullptr, {});
    for (const auto& [key, object] : fresh->unreadable())
      std::fprintf(stderr, "%s: %s\n", key.c_str(), object.reason.c_str());
    TETRAD_ASSERT(fresh->unreadable().empty());
    followed_ = cql::SchemaSnapshot::build(*meta, followed_.get(), {});
    TETRAD_ASSERT(followed_->unreadable().empty());
    TETRAD_ASSERT(fresh->keyspaces().size() == followed_->keyspaces().size());
    for (const auto& [name, keyspace] : fresh->keyspaces()) {
      const cql::KeyspaceSchema* const other = followed_->keyspace(name);
      TETRAD_ASSERT(other != nullptr && other->tables.size() == keyspace->tables.size());
      TETRAD_ASSERT(other->types.size() == keyspace->types.size());
      for (const auto& [type_name, known] : keyspace->types)
        TETRAD_ASSERT(other->types.contains(type_name) && *other->types.at(type_name) == *known);
      for (const auto& [table_name, table] : keyspace->tables) {
        const cql::TablePtr same = followed_->table(name, table_name);
        TETRAD_ASSERT(same != nullptr && same->columns().size() == table->columns().size());
        for (size_t i = 0; i < table->columns().size(); ++i)
          TETRAD_ASSERT(*same->columns()[i].type == *table->columns()[i].type);
      }
    }
  }

  LocalCluster cluster_;
  cql::SchemaPtr followed_;
  SchemaVersion checked_;
};

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const std::string_view text : kSetUp) seeds.push_back('\0' + std::string(text));
  for (const std::string_view text : kStatements) seeds.push_back('\0' + std::string(text));
  base::Random random(11);
  for (int i = 0; i < 200; ++i) {
    std::string seed(200, '\0');
    for (char& byte : seed) byte = static_cast<char>(random.next());
    seed[0] = static_cast<char>(1 + random.below(3));
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const auto hangs = std::signal(SIGALRM, [](int) { std::abort(); });
  (void)hangs;
  static std::unique_ptr<Target> target;
  static int inputs = 0;
  if (inputs++ % kInputsPerCluster == 0) target.reset();
  if (target == nullptr) target = std::make_unique<Target>();
  ::alarm(kHangS);
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  Choices choices(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      for (size_t at = 0; at < rest.size();) {
        const size_t end = std::min(rest.find('\x1e', at), rest.size());
        Choices values(data + 1, size - 1);
        target->run(rest.substr(at, end - at), values);
        at = end + 1;
      }
      break;
    case 1: {
      const size_t which = choices.below(std::size(kSetUp) + std::size(kStatements));
      target->run(
          edited(which < std::size(kSetUp) ? kSetUp[which] : kStatements[which - std::size(kSetUp)],
                 choices),
          choices);
      break;
    }
    default:
      for (int i = 0; i < 8 && !choices.at_end(); ++i) {
        const std::string text = random_statement(choices);
        target->run(text, choices);
      }
  }
  ::alarm(0);
  return 0;
}
