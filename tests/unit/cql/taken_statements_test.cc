// SPDX-License-Identifier: Apache-2.0
// Statements that Cassandra 5.0 takes, some of them like those that it refuses
// (statement_errors_test.cc), and the metadata of their markers and results.
#include "tests/unit/cql/seme_tables.h"

namespace tetrad::tests {
namespace {

// clang-format off
constexpr std::string_view kAccepted[] = {
    R"~(DROP INDEX IF EXISTS seme.x)~",
    R"~(DROP MATERIALIZED VIEW IF EXISTS seme.x)~",
    R"~(DROP TRIGGER IF EXISTS x ON seme.t)~",
    R"~(SELECT * FROM seme.t WHERE a>1 AND b=1 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.t WHERE a=1 AND b=1 AND c>1 AND d='x' ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.t WHERE c=1 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.t WHERE d='x' ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.t WHERE a=1 AND b=1 AND (c,d) > (1,'a') AND c < 3)~",
    R"~(SELECT * FROM seme.t WHERE a=1 AND b=1 AND (c,d) > (1,'a') AND (c) < (3))~",
    R"~(SELECT * FROM seme.t WHERE a=1 AND b=1 AND c>null)~",
    R"~(SELECT * FROM seme.t WHERE m CONTAINS 1 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.t WHERE v IN (1,2) ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.t WHERE a IN (1,2) AND b=1 AND v=3 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.t WHERE token(a,b)>1 AND a=1 AND b=1)~",
    R"~(SELECT * FROM seme.t WHERE token(a,b)>token(1,2))~",
    R"~(SELECT * FROM seme.t WHERE s='x' ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.t WHERE a=1 AND b=1 ORDER BY c DESC, d DESC)~",
    R"~(SELECT * FROM seme.t WHERE a=1 AND b=1 AND c=1 ORDER BY d DESC)~",
    R"~(SELECT DISTINCT a,b,s FROM seme.t WHERE s='a' ALLOW FILTERING)~",
    R"~(SELECT DISTINCT a,b,count(*) FROM seme.t)~",
    R"~(SELECT DISTINCT a,b FROM seme.t WHERE a=1 AND b=2 ORDER BY c)~",
    R"~(SELECT count(*) FROM seme.t LIMIT 1)~",
    R"~(SELECT a,b,count(*) FROM seme.t GROUP BY a,b)~",
    R"~(SELECT a,b,count(*) FROM seme.t GROUP BY a,b,c,d)~",
    R"~(SELECT a,b,count(*) FROM seme.t WHERE a=1 AND b=1 AND c=1 GROUP BY d)~",
    R"~(SELECT DISTINCT a,b FROM seme.t GROUP BY a,b)~",
    R"~(SELECT ttl(s), writetime(s) FROM seme.t)~",
    R"~(SELECT writetime(m['a']) FROM seme.t)~",
    R"~(SELECT writetime(l) FROM seme.t)~",
    R"~(SELECT m['a'..'b'] FROM seme.t)~",
    R"~(SELECT toTimestamp(v) FROM seme.t)~",
    R"~(SELECT v, max(v) FROM seme.t)~",
    R"~(SELECT k FROM seme.w WHERE du = 1d ALLOW FILTERING)~",
    R"~(SELECT k FROM seme.w WHERE fu = {x:1} ALLOW FILTERING)~",
    R"~(SELECT k FROM seme.w WHERE fl > [1] ALLOW FILTERING)~",
    R"~(SELECT k FROM seme.w WHERE tp > (1,'a') ALLOW FILTERING)~",
    R"~(SELECT k FROM seme.w WHERE tp IN ((1,'a')) ALLOW FILTERING)~",
    R"~(SELECT k FROM seme.w WHERE k IN ())~",
    R"~(SELECT k FROM seme.w WHERE k = 1 AND i IN () ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.r WHERE a=1 AND (b,c,d) > (1,2,3))~",
    R"~(SELECT * FROM seme.r WHERE a=1 AND b=1 AND (c,d) > (1,2) AND (c,d)<(4,5))~",
    R"~(SELECT * FROM seme.r WHERE a=1 AND (b,c) = (1,2) AND d=1)~",
    R"~(SELECT * FROM seme.r WHERE a=1 AND (b,c) IN ((1,2)) AND d=1)~",
    R"~(SELECT * FROM seme.r WHERE a=1 AND b IN (1,2) AND c > 1)~",
    R"~(SELECT * FROM seme.r WHERE a=1 AND b > 1 AND c > 1 ALLOW FILTERING)~",
    R"~(INSERT INTO seme.t (a,b,s) VALUES (1,2,'x'))~",
    R"~(INSERT INTO seme.t (a,b,c,d,v) VALUES (1,2,3,'4',5) USING TTL 0)~",
    R"~(INSERT INTO seme.w (k,tp) VALUES (1,1))~",
    R"~(INSERT INTO seme.w (k,i) VALUES (1,1+2))~",
    R"~(INSERT INTO seme.w (k,i) VALUES (1,(int)2))~",
    R"~(UPDATE seme.t SET v=1 WHERE a=1 AND b=2 AND c IN (1,2) AND d='a')~",
    R"~(UPDATE seme.t SET s='x' WHERE a=1 AND b=2)~",
    R"~(UPDATE seme.t SET m=m+{'a':1} WHERE a=1 AND b=2 AND c=1 AND d='a')~",
    R"~(UPDATE seme.t SET m=m-{'a'} WHERE a=1 AND b=2 AND c=1 AND d='a')~",
    R"~(UPDATE seme.t SET l=l-[1] WHERE a=1 AND b=2 AND c=1 AND d='a')~",
    R"~(UPDATE seme.t SET l=[1,2] WHERE a=1 AND b=2 AND c=1 AND d='a')~",
    R"~(UPDATE seme.t SET m['a']=null WHERE a=1 AND b=2 AND c=1 AND d='a')~",
    R"~(UPDATE seme.w SET ma['a']=1, ma['b']=2 WHERE k=1)~",
    R"~(UPDATE seme.w SET li=li+null WHERE k=1)~",
    R"~(UPDATE seme.w SET se=se+null WHERE k=1)~",
    R"~(DELETE s FROM seme.t WHERE a=1 AND b=2)~",
    R"~(DELETE v,v FROM seme.t WHERE a=1 AND b=2 AND c=1 AND d='x')~",
    R"~(DELETE l[0] FROM seme.t WHERE a=1 AND b=2 AND c=1 AND d='a')~",
    R"~(DELETE FROM seme.r WHERE a=1 AND (b,c)>(1,2))~",
    R"~(DELETE FROM seme.r WHERE a=1 AND (b,c) IN ((1,2)))~",
    R"~(DELETE FROM seme.r WHERE a=1 AND b IN (1,2) AND c > 1)~",
    R"~(DELETE v FROM seme.r WHERE a=1 AND b=1 AND c=1 AND d IN (1,2))~",
    R"~(INSERT INTO seme.w JSON '{"k":1, "ma":{"a":1}, "li":[1,2], "u1":{"x":1}, "tp":[1,"a"], "ts":"2020-01-01", "i":null}')~",
    R"~(SELECT JSON * FROM seme.w WHERE k=1)~",
    R"~(SELECT * FROM seme.w WHERE k=1)~",
    R"~(BEGIN BATCH APPLY BATCH)~",
    R"~(SELECT * FROM seme.r WHERE a=1 AND b>null)~",
    R"~(INSERT INTO seme.p (k,c,v) VALUES (1,1,1))~",
    R"~(INSERT INTO seme.p (k,c,v) VALUES (1,2,2))~",
    R"~(INSERT INTO seme.p (k,c,v,s) VALUES (2,1,1,5))~",
    R"~(INSERT INTO seme.p (k,c,v) VALUES (3,1,1))~",
    R"~(INSERT INTO seme.p (k,s) VALUES (4,9))~",
    R"~(SELECT * FROM seme.p WHERE k IN (3,1,2,4,3))~",
    R"~(SELECT * FROM seme.p WHERE k IN (3,1,2,4) AND c IN (2,1))~",
    R"~(SELECT * FROM seme.p WHERE k=1 AND c IN (2,1,2))~",
    R"~(SELECT * FROM seme.p WHERE k=1 AND c > null)~",
    R"~(SELECT * FROM seme.p WHERE k=1 AND c < null)~",
    R"~(SELECT * FROM seme.p)~",
    R"~(SELECT DISTINCT k, s FROM seme.p)~",
    R"~(SELECT * FROM seme.p WHERE s=9 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.p WHERE v=1 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.p WHERE token(k) > 0 AND c=1 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.p WHERE c>1 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.p PER PARTITION LIMIT 1)~",
    R"~(SELECT k,c,max(v) FROM seme.p GROUP BY k)~",
    R"~(SELECT k,c,count(*),count(v),sum(v),avg(v) FROM seme.p GROUP BY k LIMIT 2)~",
    R"~(SELECT k,c,v FROM seme.p GROUP BY k,c PER PARTITION LIMIT 1)~",
    R"~(SELECT count(*), count(v), count(s) FROM seme.p)~",
    R"~(SELECT k,c FROM seme.p WHERE k=4)~",
    R"~(SELECT k,c FROM seme.p WHERE k=4 AND c=1)~",
    R"~(SELECT k,c,s FROM seme.p WHERE k=4 AND c>1)~",
    R"~(SELECT k, writetime(v) FROM seme.p WHERE k=1 AND c IN ())~",
    R"~(SELECT v,v FROM seme.p WHERE k=1)~",
    R"~(SELECT (int)v AS q, cast(v as text) AS z, v+1 AS w, -v, v*2, v/2, v%2 FROM seme.p WHERE k=1)~",
    R"~(SELECT min(v), max(v), sum(v), avg(v), min(k), count(k) FROM seme.p WHERE k=99)~",
    R"~(SELECT v AS a, v AS a FROM seme.p WHERE k=1)~",
    R"~(SELECT v AS zz FROM seme.p WHERE k=1 ORDER BY c DESC LIMIT 1)~",
    R"~(P SELECT [k], {k}, (k,v) FROM seme.p)~",
    R"~(P SELECT [k,v], (list<int>)[k,v], (map<int,int>){k:v}, (int)1, (text)'a', (bigint)? , (list<int>)[1,2] FROM seme.p)~",
    R"~(P SELECT cast(k as text), cast(k as bigint), CAST(count(*) AS int), cast(v as int), cast(k as double) FROM seme.p)~",
    R"~(P SELECT uuid(), currentTimestamp(), current_date(), currentTimeUUID(), toUnixTimestamp(now()), to_unix_timestamp(now()) FROM seme.p)~",
    R"~(P SELECT token(1), token(k), token(?) , intasblob(k), blobasint(intasblob(k)), bigintasblob(?), text_as_blob('a'), blob_as_text(0x61) FROM seme.p)~",
    R"~(P SELECT to_json(k), toJson(v), abs(k), abs(-1), exp(v), log(v), log10(v), round(v) FROM seme.p)~",
    R"~(P SELECT map_keys(ma), map_values(ma), collection_count(li), collection_min(se), collection_max(se), collection_sum(se), collection_avg(li) FROM seme.w)~",
    R"~(P SELECT to_date(ts), to_timestamp(da), toDate(tu), to_unix_timestamp(ts), minTimeuuid('2020-01-01'), max_timeuuid(ts), floor(ts, 1h), floor(ti,1h), floor(da, 2d), floor(tu, 1h), floor(ts,1h,'2020-01-01') FROM seme.w)~",
    R"~(P SELECT mask_default(t), mask_inner(t,1,1), mask_outer(t,1,1), mask_null(i), mask_hash(t), mask_replace(t,'x'), similarity_cosine(ve,ve), similarity_euclidean(ve,[1,2,3]), similarity_dot_product([1,2],[3,4]) FROM seme.w)~",
    R"~(P SELECT ts - 1h, ts + 1h, da + 2d, da - 1d FROM seme.w)~",
    R"~(P SELECT u1.x, fu.y, ma['a'], se[1], ma['a'..], se[..3], fm['x'], writetime(u1.x), writetime(ma['a']), ttl(ma['a'..'b']), writetime(ma), maxwritetime(ma), writetime(fu), writetime(u1) FROM seme.w)~",
    R"~(P SELECT JSON k, i AS "Q", u1, count(*) FROM seme.w)~",
    R"~(SELECT k, v FROM seme.p WHERE k=1 AND (c) IN ((2),(1)))~",
    R"~(SELECT k, v FROM seme.p WHERE k=1 AND (c) >= (1) AND (c) < (2))~",
    R"~(SELECT system.now() FROM seme.p WHERE k=12345)~",
    R"~(P SELECT i+bi,i*f,i/de,vi%i,i+do,f+do,bi+f,vi+f,vi+bi,de+f,i - 1.5,t+'x','x'+t,t+t FROM seme.w)~",
    R"~(P SELECT * FROM seme.p WHERE k = abs(?))~",
    R"~(P SELECT * FROM seme.p WHERE k = abs(-5))~",
    R"~(P SELECT * FROM seme.p WHERE k = blobasint(?))~",
    R"~(P INSERT INTO seme.w (k, ts, uu, bl) VALUES (?, totimestamp(now()), uuid(), textAsBlob(?)))~",
    R"~(P SELECT count(*) FROM seme.p WHERE k IN (?, ?, 5) AND c = ? LIMIT :l)~",
    R"~(P SELECT k FROM seme.w WHERE tp = (?, ?) ALLOW FILTERING)~",
    R"~(P SELECT k FROM seme.p WHERE token(k) > token(?))~",
    R"~(P SELECT k FROM seme.p WHERE (c) > (?) AND k=1)~",
    R"~(P SELECT k FROM seme.p WHERE (c) > ? AND k=1)~",
    R"~(P SELECT k FROM seme.p WHERE (c) IN ((?)) AND k=1)~",
    R"~(P UPDATE seme.w SET li = ? + li, ma = ma + ?, se = se - ? WHERE k=1)~",
    R"~(UPDATE seme.w SET li=[1,2,3], ma={'a':1,'b':2,'c':3}, se={3,1,2}, u1={x:1,y:'q'}, fm={'z':1}, fu={x:5} WHERE k=2)~",
    R"~(SELECT ma['a'], ma['zz'], se[1], se[9], ma['b'..], ma[..'a'], se[2..3], se[8..], fm['z'], fm['q'], u1.x, fu.y, fm['a'..'z'] FROM seme.w WHERE k=2)~",
    R"~(SELECT JSON ma, se, u1, fu, tp, bo, t FROM seme.w WHERE k=2)~",
    R"~(SELECT cast(k as text), cast(de as int), cast(do as int) FROM seme.w WHERE k=2)~",
    R"~(SELECT k FROM seme.w WHERE li CONTAINS 2 ALLOW FILTERING)~",
    R"~(SELECT k FROM seme.w WHERE ma['b']=2 ALLOW FILTERING)~",
    R"~(SELECT k FROM seme.w WHERE ma CONTAINS KEY 'b' AND ma CONTAINS 3 ALLOW FILTERING)~",
    R"~(SELECT k FROM seme.w WHERE fm = {'z':1} ALLOW FILTERING)~",
    R"~(UPDATE seme.w USING TTL 1000 SET i=1, ma['x']=9 WHERE k=2)~",
    R"~(UPDATE seme.w SET se=se+{}, li=li+[], ma=ma+{} WHERE k=7)~",
    R"~(SELECT k FROM seme.w WHERE k=7)~",
    R"~(INSERT INTO seme.w (k, li) VALUES (8, []))~",
    R"~(SELECT k, li FROM seme.w WHERE k=8)~",
    R"~(INSERT INTO seme.w (k, fl) VALUES (8, []))~",
    R"~(SELECT k, fl FROM seme.w WHERE k=8)~",
    R"~(INSERT INTO seme.w (k, u1) VALUES (9, {x:null}))~",
    R"~(SELECT k, u1 FROM seme.w WHERE k=9)~",
    R"~(INSERT INTO seme.tx (k,c,v) VALUES ('a','',''))~",
    R"~(SELECT * FROM seme.tx WHERE k='a' AND c='')~",
    R"~(SELECT * FROM seme.tx WHERE k='a' AND c>'')~",
    R"~(SELECT min(c), max(v), count(v) FROM seme.tx WHERE k='a')~",
    R"~(SELECT count(*) FROM seme.w WHERE k IN (1,2) AND i > 0 ALLOW FILTERING)~",
    R"~(SELECT k, max(i), count(*) FROM seme.w WHERE k IN (1,2) GROUP BY k)~",
    R"~(SELECT * FROM seme.p WHERE k=1 AND s=1 AND c=1 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.p WHERE k IN (1,2) AND v=1 ALLOW FILTERING)~",
    R"~(SELECT * FROM seme.t WHERE a IN (1,2) AND b IN (3,4))~",
    R"~(SELECT DISTINCT a, b FROM seme.t WHERE a IN (1,2) AND b IN (3,4))~",
    R"~(SELECT * FROM seme.t WHERE (c) IN ((1),(2)) AND a=1 AND b=1 AND d IN ('a','b'))~",
    R"~(SELECT * FROM seme.r WHERE a=1 ORDER BY b ASC, c DESC)~",
    R"~(SELECT * FROM seme.r WHERE a=1 ORDER BY b DESC, c ASC, d DESC)~",
    R"~(SELECT * FROM seme.r WHERE a=1 AND b=1 ORDER BY c DESC)~",
    R"~(P INSERT INTO seme.w (k,u1,tp) VALUES (1,{x:?},(?,?)))~",
    R"~(P INSERT INTO seme.w (k,ve) VALUES (1,[?,?,?]))~",
    R"~(P SELECT (list<int>)[?] FROM seme.w)~",
};

constexpr RecordedStatement kMetadata[] = {
    {R"~(SELECT [k], {k}, (k,v) FROM seme.p)~",
     R"~( | pk | [k] _, {k} _, (k, v) _)~"},
    {R"~(SELECT [k,v], (list<int>)[k,v], (map<int,int>){k:v}, (int)1, (text)'a', (bigint)? , (list<int>)[1,2] FROM seme.p)~",
     R"~([selection] bigint | pk | [k, v] _, (list<int>)[k, v] _, (map<int, int>){k: v} _, (int)1 int, (text)'a' text, (bigint)? bigint, (list<int>)[1, 2] _)~"},
    {R"~(SELECT cast(k as text), cast(k as bigint), CAST(count(*) AS int), cast(v as int), cast(k as double) FROM seme.p)~",
     R"~( | pk | cast(k as text) text, cast(k as bigint) bigint, cast(count as int) int, v int, cast(k as double) double)~"},
    {R"~(SELECT uuid(), currentTimestamp(), current_date(), currentTimeUUID(), toUnixTimestamp(now()), to_unix_timestamp(now()) FROM seme.p)~",
     R"~( | pk | system.uuid() uuid, system.currenttimestamp() timestamp, system.current_date() date, system.currenttimeuuid() timeuuid, system.tounixtimestamp(system.now()) bigint, system.to_unix_timestamp(system.now()) bigint)~"},
    {R"~(SELECT token(1), token(k), token(?) , intasblob(k), blobasint(intasblob(k)), bigintasblob(?), text_as_blob('a'), blob_as_text(0x61) FROM seme.p)~",
     R"~([selection] int, [selection] bigint | pk | system.token(1) bigint, system.token(k) bigint, system.token(?) bigint, system.intasblob(k) blob, system.blobasint(system.intasblob(k)) int, system.bigintasblob(?) blob, system.text_as_blob('a') blob, system.blob_as_text(0x61) text)~"},
    {R"~(SELECT to_json(k), toJson(v), abs(k), abs(-1), exp(v), log(v), log10(v), round(v) FROM seme.p)~",
     R"~( | pk | system.to_json(k) text, system.tojson(v) text, system.abs(k) int, system.abs(-1) int, system.exp(v) int, system.log(v) int, system.log10(v) int, system.round(v) int)~"},
    {R"~(SELECT map_keys(ma), map_values(ma), collection_count(li), collection_min(se), collection_max(se), collection_sum(se), collection_avg(li) FROM seme.w)~",
     R"~( | pk | system.map_keys(ma) _, system.map_values(ma) _, system.collection_count(li) int, system.collection_min(se) int, system.collection_max(se) int, system.collection_sum(se) int, system.collection_avg(li) int)~"},
    {R"~(SELECT to_date(ts), to_timestamp(da), toDate(tu), to_unix_timestamp(ts), minTimeuuid('2020-01-01'), max_timeuuid(ts), floor(ts, 1h), floor(ti,1h), floor(da, 2d), floor(tu, 1h), floor(ts,1h,'2020-01-01') FROM seme.w)~",
     R"~( | pk | system.to_date(ts) date, system.to_timestamp(da) timestamp, system.todate(tu) date, system.to_unix_timestamp(ts) bigint, system.mintimeuuid('2020-01-01') timeuuid, system.max_timeuuid(ts) timeuuid, system.floor(ts, 1h) timestamp, system.floor(ti, 1h) time, system.floor(da, 2d) date, system.floor(tu, 1h) timestamp, system.floor(ts, 1h, '2020-01-01') timestamp)~"},
    {R"~(SELECT mask_default(t), mask_inner(t,1,1), mask_outer(t,1,1), mask_null(i), mask_hash(t), mask_replace(t,'x'), similarity_cosine(ve,ve), similarity_euclidean(ve,[1,2,3]), similarity_dot_product([1,2],[3,4]) FROM seme.w)~",
     R"~( | pk | system.mask_default(t) text, system.mask_inner(t, 1, 1) text, system.mask_outer(t, 1, 1) text, system.mask_null(i) int, system.mask_hash(t) blob, system.mask_replace(t, 'x') text, system.similarity_cosine(ve, ve) float, system.similarity_euclidean(ve, [1, 2, 3]) float, system.similarity_dot_product([1, 2], [3, 4]) float)~"},
    {R"~(SELECT ts - 1h, ts + 1h, da + 2d, da - 1d FROM seme.w)~",
     R"~( | pk | ts - 1h timestamp, ts + 1h timestamp, da + 2d date, da - 1d date)~"},
    {R"~(SELECT u1.x, fu.y, ma['a'], se[1], ma['a'..], se[..3], fm['x'], writetime(u1.x), writetime(ma['a']), ttl(ma['a'..'b']), writetime(ma), maxwritetime(ma), writetime(fu), writetime(u1) FROM seme.w)~",
     R"~( | pk | u1.x int, fu.y text, ma['a'] int, se[1] int, ma['a'..] _, se[..3] _, fm['x'] int, writetime(u1.x) bigint, writetime(ma['a']) bigint, ttl(ma['a'..'b']) _, writetime(ma) _, maxwritetime(ma) bigint, writetime(fu) bigint, writetime(u1) _)~"},
    {R"~(SELECT JSON k, i AS "Q", u1, count(*) FROM seme.w)~",
     R"~( | pk | [json] text)~"},
    {R"~(SELECT i+bi,i*f,i/de,vi%i,i+do,f+do,bi+f,vi+f,vi+bi,de+f,i - 1.5,t+'x','x'+t,t+t FROM seme.w)~",
     R"~( | pk | i + bi bigint, i * f float, i / de decimal, vi % i varint, i + do double, f + do double, bi + f double, vi + f decimal, vi + bi varint, de + f decimal, i - 1.5 double, t + 'x' text, 'x' + t text, t + t text)~"},
    {R"~(SELECT * FROM seme.p WHERE k = abs(?))~",
     R"~(arg0(system.abs) int | pk | k int, c int, s int, v int)~"},
    {R"~(SELECT * FROM seme.p WHERE k = abs(-5))~",
     R"~( | pk | k int, c int, s int, v int)~"},
    {R"~(SELECT * FROM seme.p WHERE k = blobasint(?))~",
     R"~(arg0(system.blobasint) blob | pk | k int, c int, s int, v int)~"},
    {R"~(INSERT INTO seme.w (k, ts, uu, bl) VALUES (?, totimestamp(now()), uuid(), textAsBlob(?)))~",
     R"~(k int, arg0(system.textasblob) text | pk 0)~"},
    {R"~(SELECT count(*) FROM seme.p WHERE k IN (?, ?, 5) AND c = ? LIMIT :l)~",
     R"~(k int, k int, c int, l int | pk 1 | count bigint)~"},
    {R"~(SELECT k FROM seme.w WHERE tp = (?, ?) ALLOW FILTERING)~",
     R"~(tp[0] int, tp[1] text | pk | k int)~"},
    {R"~(SELECT k FROM seme.p WHERE token(k) > token(?))~",
     R"~(arg0(system.token) int | pk | k int)~"},
    {R"~(SELECT k FROM seme.p WHERE (c) > (?) AND k=1)~",
     R"~(c int | pk | k int)~"},
    {R"~(SELECT k FROM seme.p WHERE (c) > ? AND k=1)~",
     R"~((c) _ | pk | k int)~"},
    {R"~(SELECT k FROM seme.p WHERE (c) IN ((?)) AND k=1)~",
     R"~(c int | pk | k int)~"},
    {R"~(UPDATE seme.w SET li = ? + li, ma = ma + ?, se = se - ? WHERE k=1)~",
     R"~(li _, ma _, se _ | pk)~"},
    {R"~(INSERT INTO seme.w (k,u1,tp) VALUES (1,{x:?},(?,?)))~",
     R"~(u1.x int, tp[0] int, tp[1] text | pk)~"},
    {R"~(INSERT INTO seme.w (k,ve) VALUES (1,[?,?,?]))~",
     R"~(value(ve) float, value(ve) float, value(ve) float | pk)~"},
    {R"~(SELECT (list<int>)[?] FROM seme.w)~",
     R"~([selection] int | pk | (list<int>)[?] _)~"},
};
// clang-format on

TEST_CASE_METHOD(SemeTables, "metadata of markers and results is Cassandra's") {
  const auto list = [](const auto& columns) {
    std::string text;
    for (const auto& column : columns) {
      if (!text.empty()) text += ", ";
      text += column.name + " " + (column.type->is_native() ? column.type->cql_text() : "_");
    }
    return text;
  };
  for (const RecordedStatement& recorded : kMetadata) {
    INFO(recorded.statement);
    const auto statement = try_prepare(recorded.statement);
    if (!statement) {
      CHECK("error: " + statement.error().message == recorded.answer);
      continue;
    }
    std::string text = list((*statement)->bind_variables()) + " | pk";
    for (const auto index : (*statement)->partition_key_indexes()) {
      text += " " + std::to_string(index);
    }
    if ((*statement)->result_metadata()) {
      text += " | " + list((*statement)->result_metadata()->columns);
    }
    CHECK(text == recorded.answer);
  }
}

TEST_CASE_METHOD(SemeTables, "what Cassandra takes is taken") {
  for (const std::string_view statement : kAccepted) {
    INFO(statement);
    std::string prepared = statement.starts_with("P ") ? bind(statement.substr(2)) : cql(statement);
    CHECK_FALSE(prepared.starts_with("error: "));
    if (prepared.starts_with("error: ")) CHECK(prepared.empty());
  }
}

}  // namespace
}  // namespace tetrad::tests
