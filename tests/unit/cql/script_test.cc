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

constexpr Step kTypesScript[] = {
    {R"~(INSERT INTO seme.w (k,t,i,bi,f,do,de,vi,bo,bl,ts,da,ti,du,uu,tu,ine) VALUES (1,'a''b',1,2,1.5,2.25,3.140,99999999999999999999,true,0xcafe,'2020-01-02 03:04:05.678+0000','2021-02-03','10:11:12.131415',1y2mo3d4h,c24a9f1a-9b0c-4b0a-8a7e-3e4d0f8a5a11,50554d6e-29bb-11e5-b345-feff819cdc9f,'1.2.3.4'))~",
     R"~(ok)~"},
    {R"~(UPDATE seme.w SET li=[3,1,2], se={3,1,2}, ma={'b':2,'a':1}, fl=[1,2], fm={'y':2,'x':1}, u1={x:1,y:'z'}, fu={y:'q'}, tp=(1,'one'), ve=[1.5,2,-3] WHERE k=1)~",
     R"~(ok)~"},
    {R"~(SELECT JSON * FROM seme.w WHERE k=1)~",
     R"~([json]
'{"k": 1, "bi": 2, "bl": "0xcafe", "bo": true, "da": "2021-02-03", "de": 3.140, "do": 2.25, "du": "1y2mo3d4h", "f": 1.5, "fl": [1, 2], "fm": {"x": 1, "y": 2}, "fu": {"x": null, "y": "q"}, "i": 1, "ine": "1.2.3.4", "li": [3, 1, 2], "ma": {"a": 1, "b": 2}, "se": [1, 2, 3], "t": "a''b", "ti": "10:11:12.131415000", "tp": [1, "one"], "ts": "2020-01-02 03:04:05.678Z", "tu": "50554d6e-29bb-11e5-b345-feff819cdc9f", "u1": {"x": 1, "y": "z"}, "uu": "c24a9f1a-9b0c-4b0a-8a7e-3e4d0f8a5a11", "ve": [1.5, 2.0, -3.0], "vi": 99999999999999999999}')~"},
    {R"~(SELECT JSON cast(i as text) AS a, cast(f as text) AS b, cast(de as text) AS c, cast(ts as text) AS d, cast(da as text) AS e, cast(ti as text) AS g, cast(uu as text) AS h, cast(ine as text) AS j, cast(bo as text) AS l, cast(vi as text) AS m FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": "1", "b": "1.5", "c": "3.140", "d": "2020-01-02T03:04:05.678Z", "e": "2021-02-03", "g": "10:11:12.131415000", "h": "c24a9f1a-9b0c-4b0a-8a7e-3e4d0f8a5a11", "j": "1.2.3.4", "l": "true", "m": "99999999999999999999"}')~"},
    {R"~(SELECT JSON cast(f as int) AS a, cast(do as bigint) AS b, cast(de as double) AS c, cast(vi as int) AS d, cast(i as decimal) AS e, cast(de as varint) AS g, cast(ts as date) AS h, cast(da as timestamp) AS j, cast(tu as timestamp) AS l FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": 1, "b": 2, "c": 3.14, "d": 1661992959, "e": 1, "g": 3, "h": "2020-01-02", "j": "2021-02-03 00:00:00.000Z", "l": "2015-07-14 00:00:18.805Z"}')~"},
    {R"~(SELECT JSON i+bi AS a, i*f AS b, i/de AS c, vi%i AS d, f+do AS e, bi+f AS g, de+f AS h, i - 1.5 AS j, t+'x' AS l, i/2 AS m, -de AS n, -vi AS o, do/3 AS p FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": 3, "b": 1.5, "c": 0.31847133757961783439490445859873, "d": 0, "e": 3.75, "g": 3.5, "h": 4.640, "j": -0.5, "l": "a''bx", "m": 0, "n": -3.140, "o": -99999999999999999999, "p": 0.75}')~"},
    {R"~(SELECT JSON ts + 1mo AS a, ts - 2d AS b, da + 1y AS c, da - 3d AS d, floor(ts, 2h) AS e, floor(da, 5d) AS g, floor(ti, 30m) AS h, floor(tu, 1d) AS j FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": "2020-02-02 03:04:05.678Z", "b": "2019-12-31 03:04:05.678Z", "c": "2022-02-03", "d": "2021-01-31", "e": "2020-01-02 02:00:00.000Z", "g": "2021-02-02", "h": "10:00:00.000000000", "j": "2015-07-14 00:00:00.000Z"}')~"},
   {R"~(SELECT JSON to_date(ts) AS a, to_timestamp(da) AS b, to_unix_timestamp(tu) AS c, min_timeuuid(ts) AS d, max_timeuuid(ts) AS e FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": "2020-01-02", "b": "2021-02-03 00:00:00.000Z", "c": 1436832018805, "d": "896e34e0-2d0c-11ea-8080-808080808080", "e": "896e5bef-2d0c-11ea-7f7f-7f7f7f7f7f7f"}')~"},
    {R"~(SELECT JSON int_as_blob(i) AS a, float_as_blob(f) AS b, text_as_blob(t) AS c, decimal_as_blob(de) AS d, timestampasblob(ts) AS e, inet_as_blob(ine) AS g, blob_as_int(int_as_blob(i)) AS h FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": "0x00000001", "b": "0x3fc00000", "c": "0x612762", "d": "0x000000030c44", "e": "0x0000016f6435cf2e", "g": "0x01020304", "h": 1}')~"},
   {R"~(SELECT JSON ma['a'] AS a, se[2] AS b, ma['a'..'a'] AS c, u1.y AS d, fu.x AS e, fm['x'] AS g FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": 1, "b": 2, "c": {"a": 1}, "d": "z", "e": null, "g": 1}')~"},
    {R"~(SELECT JSON map_keys(ma) AS a, map_values(ma) AS b, collection_count(ma) AS c, collection_min(li) AS d, collection_max(se) AS e, collection_sum(li) AS g, collection_avg(li) AS h FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": ["a", "b"], "b": [1, 2], "c": 2, "d": 1, "e": 3, "g": 6, "h": 2}')~"},
    {R"~(SELECT JSON to_json(u1) AS a, to_json(ve) AS b, to_json(de) AS c FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": "{\"x\": 1, \"y\": \"z\"}", "b": "[1.5, 2.0, -3.0]", "c": "3.140"}')~"},
    {R"~(SELECT JSON [i, k] AS a, {i, k} AS b, (i, t) AS c, (map<int,text>){i: t} AS d, (u){x: i, y: t} AS e FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": [1, 1], "b": [1], "c": [1, "a''b"], "d": {"1": "a''b"}, "e": {"x": 1, "y": "a''b"}}')~"},
    {R"~(SELECT JSON (i + 1) * 2 AS a, (int)5 AS b, (bigint)7 AS c, token(k) AS d FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": 4, "b": 5, "c": 7, "d": -4069959284402364209}')~"},
    {R"~(SELECT JSON mask_default(t) AS a, mask_default(de) AS b, mask_default(ts) AS c, mask_default(li) AS d, mask_inner(t, 1, null) AS e, mask_replace(i, 5) AS g, mask_null(t) AS h FROM seme.w WHERE k=1)~",
     R"~([json]
'{"a": "****", "b": 0, "c": "1970-01-01 00:00:00.000Z", "d": [], "e": "a**", "g": 5, "h": null}')~"},
    {R"~(UPDATE seme.w SET li = li + [4], li[0] = 9 WHERE k=1)~",
     R"~(ok)~"},
    {R"~(UPDATE seme.w SET li = li + [4] WHERE k=1)~",
     R"~(ok)~"},
    {R"~(UPDATE seme.w SET li[0] = 9 WHERE k=1)~",
     R"~(ok)~"},
    {R"~(UPDATE seme.w SET li = [0] + li WHERE k=1)~",
     R"~(ok)~"},
    {R"~(UPDATE seme.w SET se = se - {1}, ma = ma - {'a'}, u1.x = null WHERE k=1)~",
     R"~(ok)~"},
    {R"~(SELECT JSON li, se, ma, u1 FROM seme.w WHERE k=1)~",
     R"~([json]
'{"li": [0, 9, 1, 2, 4, 4], "se": [2, 3], "ma": {"b": 2}, "u1": {"x": null, "y": "z"}}')~"},
    {R"~(DELETE li[0], ma['b'], se[2] FROM seme.w WHERE k=1)~",
     R"~(ok)~"},
    {R"~(SELECT JSON li, se, ma, u1 FROM seme.w WHERE k=1)~",
     R"~([json]
'{"li": [9, 1, 2, 4, 4], "se": [3], "ma": null, "u1": {"x": null, "y": "z"}}')~"},
    {R"~(UPDATE seme.w SET li = li - [9, 4] WHERE k=1)~",
     R"~(ok)~"},
    {R"~(SELECT JSON li FROM seme.w WHERE k=1)~",
     R"~([json]
'{"li": [1, 2]}')~"},
    {R"~(UPDATE seme.w SET u1 = {x: 2} WHERE k=1)~",
     R"~(ok)~"},
    {R"~(SELECT JSON u1 FROM seme.w WHERE k=1)~",
     R"~([json]
'{"u1": {"x": 2, "y": null}}')~"},
    {R"~(UPDATE seme.w SET u1 = null, li = null, se = {} WHERE k=1)~",
     R"~(ok)~"},
    {R"~(SELECT JSON u1, li, se FROM seme.w WHERE k=1)~",
     R"~([json]
'{"u1": null, "li": null, "se": null}')~"},
    {R"~(SELECT k FROM seme.w WHERE fl = [1,2] ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE fl > [1] AND fl < [1,3] ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE tp = (1,'one') ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE tp > (1,'a') ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE de = 3.14 ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE ve = [1.5,2,-3] ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE fm CONTAINS 2 AND fm CONTAINS KEY 'x' ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE t IN ('q','a''b') ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE ts > '2020-01-01' AND ts < '2020-02-01' ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE bo = true AND i >= 1 AND f < 2 ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(SELECT k FROM seme.w WHERE i IN (1, 2) AND i = 1 ALLOW FILTERING)~",
     R"~(error: i cannot be restricted by more than one relation if it includes a IN)~"},
    {R"~(SELECT k FROM seme.w WHERE fu = {y: 'q'} ALLOW FILTERING)~",
     R"~(k
1)~"},
    {R"~(INSERT INTO seme.w JSON '{"k": 3, "ts": "2020-01-01T00:00:00Z", "da": "2020-05-05", "ti": "01:02:03", "du": "1h", "ine": "::1", "bl": "0xff", "ve": [1, 2, 3], "tp": [1, null], "fl": [], "de": 1.10, "vi": 5, "bo": false, "f": 1.5, "tu": "50554d6e-29bb-11e5-b345-feff819cdc9f"}')~",
     R"~(ok)~"},
    {R"~(SELECT JSON ts, da, ti, du, ine, bl, ve, tp, fl, de, vi, bo, f, tu FROM seme.w WHERE k=3)~",
     R"~([json]
'{"ts": "2020-01-01 00:00:00.000Z", "da": "2020-05-05", "ti": "01:02:03.000000000", "du": "1h", "ine": "0:0:0:0:0:0:0:1", "bl": "0xff", "ve": [1.0, 2.0, 3.0], "tp": [1, null], "fl": [], "de": 1.1, "vi": 5, "bo": false, "f": 1.5, "tu": "50554d6e-29bb-11e5-b345-feff819cdc9f"}')~"},
    {R"~(INSERT INTO seme.w JSON '{"k": "x"}')~",
     R"~(error: Error decoding JSON value for k: Unable to make int from 'x')~"},
    {R"~(INSERT INTO seme.w JSON '{"k": 3, "bo": "maybe"}')~",
     R"~(error: Error decoding JSON value for bo: Unable to make boolean from 'maybe')~"},
    {R"~(INSERT INTO seme.w JSON '{"k": 3, "ma": [1]}')~",
     R"~(error: Error decoding JSON value for ma: Expected a map, but got a ArrayList: [1])~"},
    {R"~(INSERT INTO seme.w JSON '{"k": 3, "li": [null]}')~",
     R"~(error: Error decoding JSON value for li: Invalid null element in list)~"},
    {R"~(INSERT INTO seme.w (k, i) VALUES (4, from_json('7')))~",
     R"~(ok)~"},
    {R"~(INSERT INTO seme.w (k, ma) VALUES (4, from_json('{"a": 1}')))~",
     R"~(ok)~"},
    {R"~(SELECT JSON i, ma FROM seme.w WHERE k=4)~",
     R"~([json]
'{"i": 7, "ma": {"a": 1}}')~"},
    {R"~(SELECT count(i), min(i), max(t), sum(do), avg(f), min(ts) AS m FROM seme.w WHERE k=99)~",
     R"~(system.count(i) | system.min(i) | system.max(t) | system.sum(do) | system.avg(f) | m
0 | null | null | 0.0 | 0.0 | null)~"},
    {R"~(SELECT JSON sum(i) AS a, avg(i) AS b, sum(de) AS c, avg(de) AS d, avg(do) AS e, max(ts) AS g, min(fl) AS h, count(li) AS j, max(tp) AS l FROM seme.w)~",
     R"~([json]
'{"a": 8, "b": 4, "c": 4.240, "d": 2.120, "e": 2.25, "g": "2020-01-02 03:04:05.678Z", "h": [], "j": 0, "l": [1, "one"]}')~"},
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

TEST_CASE("every type answers as Cassandra's") {
  LocalCluster node;
  for (const std::string_view statement :
       {"CREATE KEYSPACE seme WITH replication = {'class': 'SimpleStrategy', "
        "'replication_factor': 1}",
        "CREATE TYPE seme.u (x int, y text)",
        "CREATE TABLE seme.w (k int PRIMARY KEY, t text, i int, bi bigint, f float, do double, de "
        "decimal, vi varint, bo boolean, bl blob, ts timestamp, da date, ti time, du duration, uu "
        "uuid, tu timeuuid, ine inet, li list<int>, se set<int>, ma map<text, int>, fl "
        "frozen<list<int>>, fm frozen<map<text, int>>, u1 u, fu frozen<u>, tp tuple<int, text>, ve "
        "vector<float, 3>)"}) {
    REQUIRE(node.cql(statement) == "ok");
  }
  for (const Step& step : kTypesScript) {
    INFO(step.statement);
    CHECK(node.cql(step.statement) == step.answer);
  }
}

}  // namespace
}  // namespace tetrad::tests
