// SPDX-License-Identifier: Apache-2.0
// A script of statements with the answers that Cassandra 5.0.9 gave to it.
#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

struct Step {
  std::string_view statement, answer;
};

// clang-format off
constexpr Step kScript[] = {
    {R"~(BEGIN UNLOGGED BATCH INSERT INTO seme.q (k,a,b,v,s) VALUES (1,1,1,1,1); INSERT INTO seme.q (k,a,b,v) VALUES (1,1,2,2); INSERT INTO seme.q (k,a,b,v) VALUES (1,2,1,3); INSERT INTO seme.q (k,a,b,v) VALUES (1,3,1,4); INSERT INTO seme.q (k,s) VALUES (2,7); APPLY BATCH)~",
     R"~(ok)~"},
    {R"~(SELECT * FROM seme.q)~",
     R"~(k | a | b | s | v
1 | 3 | 1 | 1 | 4
1 | 2 | 1 | 1 | 3
1 | 1 | 1 | 1 | 1
1 | 1 | 2 | 1 | 2
2 | null | null | 7 | null)~"},
    {R"~(SELECT * FROM seme.q WHERE k=1 ORDER BY a ASC)~",
     R"~(k | a | b | s | v
1 | 1 | 2 | 1 | 2
1 | 1 | 1 | 1 | 1
1 | 2 | 1 | 1 | 3
1 | 3 | 1 | 1 | 4)~"},
    {R"~(SELECT * FROM seme.q WHERE k=1 AND a>1)~",
     R"~(k | a | b | s | v
1 | 3 | 1 | 1 | 4
1 | 2 | 1 | 1 | 3)~"},
    {R"~(SELECT * FROM seme.q WHERE k=1 AND a>=2 ORDER BY a ASC, b DESC)~",
     R"~(k | a | b | s | v
1 | 2 | 1 | 1 | 3
1 | 3 | 1 | 1 | 4)~"},
    {R"~(SELECT * FROM seme.q WHERE k=1 AND a IN (1,3) ORDER BY a ASC)~",
     R"~(k | a | b | s | v
1 | 1 | 2 | 1 | 2
1 | 1 | 1 | 1 | 1
1 | 3 | 1 | 1 | 4)~"},
    {R"~(SELECT * FROM seme.q WHERE k=1 AND (a,b) > (1,1))~",
     R"~(k | a | b | s | v
1 | 3 | 1 | 1 | 4
1 | 2 | 1 | 1 | 3
1 | 1 | 2 | 1 | 2)~"},
    {R"~(SELECT * FROM seme.q WHERE k=1 AND b=1 ALLOW FILTERING)~",
     R"~(k | a | b | s | v
1 | 3 | 1 | 1 | 4
1 | 2 | 1 | 1 | 3
1 | 1 | 1 | 1 | 1)~"},
    {R"~(SELECT * FROM seme.q WHERE b=1 ALLOW FILTERING)~",
     R"~(k | a | b | s | v
1 | 3 | 1 | 1 | 4
1 | 2 | 1 | 1 | 3
1 | 1 | 1 | 1 | 1)~"},
    {R"~(SELECT * FROM seme.q WHERE s=7 AND v=1 ALLOW FILTERING)~",
     R"~(k | a | b | s | v)~"},
    {R"~(SELECT s FROM seme.q WHERE k=2)~",
     R"~(s
7)~"},
    {R"~(SELECT s FROM seme.q)~",
     R"~(s
1
1
1
1
7)~"},
    {R"~(SELECT k, a, count(*) FROM seme.q WHERE k=1 GROUP BY a)~",
     R"~(k | a | count
1 | 3 | 1
1 | 2 | 1
1 | 1 | 2)~"},
    {R"~(SELECT k, a, sum(v) AS t FROM seme.q GROUP BY k, a)~",
     R"~(k | a | t
1 | 3 | 4
1 | 2 | 3
1 | 1 | 3
2 | null | 0)~"},
    {R"~(SELECT k, max(s), count(*) FROM seme.q GROUP BY k)~",
     R"~(k | system.max(s) | count
1 | 1 | 4
2 | 7 | 1)~"},
    {R"~(SELECT DISTINCT k, s FROM seme.q WHERE k IN (1,2,3))~",
     R"~(k | s
1 | 1
2 | 7)~"},
    {R"~(SELECT DISTINCT k FROM seme.q WHERE s = 7 ALLOW FILTERING)~",
     R"~(k
2)~"},
    {R"~(SELECT a FROM seme.q WHERE k=1 LIMIT 2)~",
     R"~(a
3
2)~"},
    {R"~(SELECT a, b FROM seme.q WHERE k=1 PER PARTITION LIMIT 2)~",
     R"~(a | b
3 | 1
2 | 1)~"},
    {R"~(DELETE FROM seme.q WHERE k=1 AND a > 2)~",
     R"~(ok)~"},
    {R"~(SELECT a, b FROM seme.q WHERE k=1)~",
     R"~(a | b
2 | 1
1 | 1
1 | 2)~"},
    {R"~(DELETE FROM seme.q WHERE k=1 AND (a,b) <= (1,1))~",
     R"~(ok)~"},
    {R"~(SELECT a, b FROM seme.q WHERE k=1)~",
     R"~(a | b
2 | 1
1 | 2)~"},
    {R"~(UPDATE seme.q SET v=null WHERE k=1 AND a=1 AND b=2)~",
     R"~(ok)~"},
    {R"~(SELECT a, b, v FROM seme.q WHERE k=1)~",
     R"~(a | b | v
2 | 1 | 3
1 | 2 | null)~"},
    {R"~(SELECT count(*) FROM seme.q)~",
     R"~(count
3)~"},
    {R"~(SELECT sum(v), avg(v), min(a), max(b) FROM seme.q)~",
     R"~(system.sum(v) | system.avg(v) | system.min(a) | system.max(b)
3 | 3 | 1 | 2)~"},
    {R"~(SELECT k FROM seme.q WHERE k=2 AND v=1 ALLOW FILTERING)~",
     R"~(k)~"},
    {R"~(SELECT token(k), k FROM seme.q WHERE token(k) > token(1))~",
     R"~(system.token(k) | k
-3248873570005575792 | 2)~"},
    {R"~(SELECT JSON k, a FROM seme.q WHERE k=2)~",
     R"~([json]
'{"k": 2, "a": null}')~"},
    {R"~(SELECT k, v FROM seme.q WHERE k=1 AND a=1 AND b IN (1,2,3))~",
     R"~(k | v
1 | null)~"},
    {R"~(SELECT a+b AS c, a*1.5, cast(a AS text) FROM seme.q WHERE k=1 LIMIT 1)~",
     R"~(c | a * 1.5 | cast(a as text)
3 | 3.0 | '2')~"},
    {R"~(SELECT blobasint(intasblob(a)), bigint_as_blob(5), text_as_blob('x') FROM seme.q WHERE k=1 LIMIT 1)~",
     R"~(system.blobasint(system.intasblob(a)) | system.bigint_as_blob(5) | system.text_as_blob('x')
2 | 0x0000000000000005 | 0x78)~"},
    {R"~(SELECT a, b, v FROM seme.q WHERE k=1 AND a=1 AND b>=1 AND b<=2 ORDER BY b DESC)~",
     R"~(a | b | v
1 | 2 | null)~"},
    {R"~(INSERT INTO seme.q (k,a,b) VALUES (5,1,1) USING TTL 100 AND TIMESTAMP 12345)~",
     R"~(ok)~"},
    {R"~(SELECT writetime(v), ttl(v), v, a FROM seme.q WHERE k=5)~",
     R"~(writetime(v) | ttl(v) | v | a
null | null | null | 1)~"},
    {R"~(DELETE FROM seme.q USING TIMESTAMP 12344 WHERE k=5)~",
     R"~(ok)~"},
    {R"~(SELECT a FROM seme.q WHERE k=5)~",
     R"~(a
1)~"},
    {R"~(DELETE FROM seme.q USING TIMESTAMP 12345 WHERE k=5)~",
     R"~(ok)~"},
    {R"~(SELECT a FROM seme.q WHERE k=5)~",
     R"~(a)~"},
    {R"~(SELECT mask_inner('abcdef',1,1), mask_outer('abcdef',1,1), mask_default(a), mask_hash('x') FROM seme.q WHERE k=1 LIMIT 1)~",
     R"~(system.mask_inner('abcdef', 1, 1) | system.mask_outer('abcdef', 1, 1) | system.mask_default(a) | system.mask_hash('x')
'a****f' | '*bcde*' | 0 | 0x2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881)~"},
};
// clang-format on

TEST_CASE("a script answers as Cassandra answered it") {
  LocalCluster node;
  REQUIRE(node.cql("CREATE KEYSPACE seme WITH replication = {'class': 'SimpleStrategy', "
                   "'replication_factor': 1}") == "ok");
  REQUIRE(node.cql("CREATE TABLE seme.q (k int, a int, b int, v int, s int static, PRIMARY KEY (k, "
                   "a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)") == "ok");
  for (const Step& step : kScript) {
    INFO(step.statement);
    CHECK(node.cql(step.statement) == step.answer);
  }
}

}  // namespace
}  // namespace tetrad::tests
