// SPDX-License-Identifier: Apache-2.0
// The Node.js driver: versions, schema, types, statements, the ring, a node that dies.
'use strict';

const assert = require('node:assert/strict');
const { execSync } = require('node:child_process');
const { test, before, after } = require('node:test');
const { inspect, isDeepStrictEqual } = require('node:util');
const cassandra = require('cassandra-driver');
const security = require('./security');

const { types } = cassandra;
const hosts = (process.env.TETRAD_TEST_HOSTS || '127.0.0.1').split(',');
const port = Number(process.env.TETRAD_TEST_PORT || 9042);
const keyspace = 'drv_node_' + Math.floor(Math.random() * 2 ** 32).toString(16).padStart(8, '0');
const prepared = { prepare: true };
const clients = [];
let client;

async function connect(options = {}) {
  const { TokenAwarePolicy, RoundRobinPolicy } = cassandra.policies.loadBalancing;
  const opened = new cassandra.Client({
    ...security,
    contactPoints: hosts,
    protocolOptions: { port },
    socketOptions: { readTimeout: 20000, connectTimeout: 10000 },
    queryOptions: { consistency: types.consistencies.quorum },
    policies: { loadBalancing: new TokenAwarePolicy(new RoundRobinPolicy()) },
    ...options,
  });
  clients.push(opened);
  await opened.connect();
  return opened;
}

async function until(what, seconds, condition) {
  for (const deadline = Date.now() + seconds * 1000; !condition();) {
    assert.ok(Date.now() < deadline, `not within ${seconds} s: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}

before(async () => {
  client = await connect();
  const factor = Math.min(4, hosts.length);
  await client.execute(`CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': ${factor}}`);
  await client.execute(`USE ${keyspace}`);
});

after(async () => {
  await client?.execute(`DROP KEYSPACE IF EXISTS ${keyspace}`);
  await Promise.all(clients.map(each => each.shutdown()));
});

for (const version of [3, 4]) {
  test(`protocol version ${version} carries rows both ways`, async () => {
    const other = await connect({ keyspace, protocolOptions: { port, maxVersion: version } });
    assert.equal(other.controlConnection.protocolVersion, version);
    const table = `ways_${version}`;
    await other.execute(`CREATE TABLE ${table} (k int PRIMARY KEY, v text, b blob)`);
    const text = 'tetrad '.repeat(30000);
    const blob = Buffer.from(Array.from({ length: 100000 }, (_, i) => (i * 7919 >> 3) & 255));
    await other.execute(`INSERT INTO ${table} (k, v, b) VALUES (?, ?, ?)`, [1, text, blob], prepared);
    const row = (await other.execute(`SELECT v, b FROM ${table} WHERE k = ?`, [1], prepared)).first();
    assert.equal(row.v, text);
    assert.ok(row.b.equals(blob));
  });
}

test('a driver left alone is led from its own versions to one both speak', async () => {
  assert.equal(client.controlConnection.protocolVersion, 4);
});

test('a table shows in the metadata with kinds, types and orders', async () => {
  await client.execute(`CREATE TABLE shown (a int, b text, c timeuuid, s text static, m map<text, frozen<list<int>>>,
    PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'shown' AND gc_grace_seconds = 77`);
  const table = await client.metadata.getTable(keyspace, 'shown');
  assert.deepEqual(table.partitionKeys.map(column => column.name), ['a', 'b']);
  assert.deepEqual(table.clusteringKeys.map(column => column.name), ['c']);
  assert.deepEqual(table.clusteringOrder, ['DESC']);
  assert.ok(table.columnsByName.s.isStatic);
  assert.equal(table.columnsByName.m.type.code, types.dataTypes.map);
  assert.equal(table.comment, 'shown');
  assert.equal(table.gcGraceSeconds, 77);
  assert.ok(client.metadata.keyspaces[keyspace].strategy.endsWith('SimpleStrategy'));
});

test('all nodes agree on the schema, and a dropped name is free at once', async () => {
  for (let round = 0; round < 4; round++) {
    const made = await client.execute('CREATE TABLE reborn (k int PRIMARY KEY, v int)');
    assert.ok(made.info.isSchemaInAgreement);
    assert.ok(await client.metadata.checkSchemaAgreement());
    assert.equal((await client.execute('SELECT * FROM reborn')).rowLength, 0);
    await client.execute('INSERT INTO reborn (k, v) VALUES (1, 2)');
    await client.execute('DROP TABLE reborn');
  }
});

const uuid = types.Uuid.fromString('f47ac10b-58cc-4372-a567-0e02b2c3d479');
const scalars = {
  ascii: ['', 'plain'],
  bigint: [types.Long.fromString('9223372036854775807'), types.Long.fromString('-9223372036854775808'), types.Long.ZERO],
  blob: [Buffer.alloc(0), Buffer.from([0, 255, 128])],
  boolean: [true, false],
  date: [types.LocalDate.fromString('2024-02-29'), types.LocalDate.fromString('1900-01-01')],
  decimal: [types.BigDecimal.fromString('1.10'), types.BigDecimal.fromString('-0.000001')],
  double: [0, 1.5, Infinity, Number.MIN_VALUE],
  duration: [new types.Duration(1, 2, types.Long.fromNumber(3)), new types.Duration(-1, -2, types.Long.fromNumber(-3))],
  float: [0, -2.5],
  inet: [types.InetAddress.fromString('127.0.0.1'), types.InetAddress.fromString('2001:db8::1')],
  int: [0, -1, 2147483647, -2147483648],
  smallint: [32767, -32768],
  text: ['', 'naïve 漢字 😀', '\0', 'x'.repeat(70000)],
  time: [types.LocalTime.fromString('12:34:56.789000001')],
  timestamp: [new Date('2024-02-29T12:34:56.789Z'), new Date(0), new Date('1900-01-01')],
  timeuuid: [types.TimeUuid.fromString('d2177dd0-eaa2-11de-a572-001b779c76e3')],
  tinyint: [127, -128],
  uuid: [uuid, types.Uuid.fromString('00000000-0000-0000-0000-000000000000')],
  varint: [types.Integer.fromString('0'), types.Integer.fromString('-129'), types.Integer.fromString('1606938044258990275541962092341162602522202993782792835301376')],
  'list<int>': [[3, 1, 2, 1]],
  'set<text>': [['a', 'b', 'é']],
  'map<text, int>': [{ '': 1, x: 2 }],
  'tuple<int, text>': [new types.Tuple(1, 'one'), new types.Tuple(2, null)],
  'frozen<list<frozen<map<text, int>>>>': [[{ a: 1 }, { b: 2 }]],
};

function same(left, right) {
  if (Buffer.isBuffer(left)) return left.equals(right);
  if (left instanceof Date) return left.getTime() === right.getTime();
  if (left && typeof left.equals === 'function') return left.equals(right);
  if (left instanceof types.Tuple) return left.elements.every((element, i) => (element ?? null) === (right.elements[i] ?? null));
  return isDeepStrictEqual(left, right);
}

for (const [number, [type, values]] of Object.entries(scalars).entries()) {
  test(`${type} comes back as it went in`, async () => {
    const table = `type_${number}`;
    await client.execute(`CREATE TABLE ${table} (k int PRIMARY KEY, v ${type})`);
    for (const [key, value] of [...values, null].entries()) {
      await client.execute(`INSERT INTO ${table} (k, v) VALUES (?, ?)`, [key, value], prepared);
      const read = (await client.execute(`SELECT v FROM ${table} WHERE k = ?`, [key], prepared)).first().v;
      assert.ok(same(value, read), `${inspect(value)} went in, ${inspect(read)} came out`);
    }
  });
}

test('unset leaves a column and null removes it', async () => {
  await client.execute('CREATE TABLE unset (k int PRIMARY KEY, v int)');
  const insert = 'INSERT INTO unset (k, v) VALUES (?, ?)';
  await client.execute(insert, [1, 5], prepared);
  await client.execute(insert, [1, types.unset], prepared);
  assert.equal((await client.execute('SELECT v FROM unset')).first().v, 5);
  await client.execute(insert, [1, null], prepared);
  assert.equal((await client.execute('SELECT v FROM unset')).first().v, null);
});

async function wide() {
  await client.execute('CREATE TABLE IF NOT EXISTS wide (k int, c int, v text, PRIMARY KEY (k, c))');
  const insert = 'INSERT INTO wide (k, c, v) VALUES (?, ?, ?)';
  for (let k = 0; k < 3; k++) {
    await client.batch(Array.from({ length: 100 }, (_, c) => ({ query: insert, params: [k, c, `v${k}.${c}`] })), { prepare: true, logged: false });
  }
}

test('pages hold every row once, with a state that goes on, and as a stream', async () => {
  await wide();
  for (const fetchSize of [1, 7, 299, 300, 5000]) {
    const seen = new Set();
    for await (const row of await client.execute('SELECT k, c FROM wide', [], { prepare: true, fetchSize })) seen.add(`${row.k}.${row.c}`);
    assert.equal(seen.size, 300);
  }
  let state; const order = [];
  do {
    const page = await client.execute('SELECT c FROM wide WHERE k = 1 ORDER BY c DESC', [], { prepare: true, fetchSize: 30, pageState: state });
    order.push(...page.rows.map(row => row.c));
    state = page.pageState;
  } while (state);
  assert.deepEqual(order, Array.from({ length: 100 }, (_, i) => 99 - i));
  let streamed = 0;
  await new Promise((resolve, reject) => {
    client.stream('SELECT * FROM wide', [], { prepare: true, autoPage: true, fetchSize: 11 })
      .on('readable', function () { while (this.read()) streamed++; }).on('end', resolve).on('error', reject);
  });
  assert.equal(streamed, 300);
});

test('batches, named parameters and timestamps', async () => {
  await client.execute('CREATE TABLE batched (k int, c int, v text, PRIMARY KEY (k, c))');
  const queries = Array.from({ length: 10 }, (_, c) => ({ query: 'INSERT INTO batched (k, c, v) VALUES (?, ?, ?)', params: [1, c, 'v'] }));
  queries.push({ query: 'DELETE FROM batched WHERE k = ? AND c = ?', params: [1, 5] });
  await client.batch(queries, { prepare: true, logged: true, timestamp: types.Long.fromNumber(1000) });
  const rows = (await client.execute('SELECT c, writetime(v) AS w FROM batched WHERE k = :key', { key: 1 }, prepared)).rows;
  assert.deepEqual(rows.map(row => row.c), [0, 1, 2, 3, 4, 6, 7, 8, 9]);
  assert.ok(rows.every(row => row.w.toString() === '1000'));
});

for (const [statement, code, words] of [
  ['SELEC * FROM wide', 0x2000, "no viable alternative at input 'SELEC'"],
  ['SELECT * FROM nosuchtable', 0x2200, 'table nosuchtable does not exist'],
  ['SELECT nosuch FROM system.local', 0x2200, 'Undefined column name nosuch'],
  ["SELECT * FROM system.local WHERE rack = 'x'", 0x2200, 'ALLOW FILTERING'],
  [`CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`, 0x2400, `${keyspace}`],
]) {
  test(`an error of code ${code.toString(16)}: ${words.replace(keyspace, '...')}`, async () => {
    await assert.rejects(client.execute(statement), error => {
      assert.equal(error.code, code);
      assert.ok(error.message.includes(words), error.message);
      return true;
    });
  });
}

test('a scan that aggregates warns', async () => {
  await wide();
  const { info } = await client.execute('SELECT max(c) FROM wide');
  assert.ok(info.warnings.some(warning => warning.includes('Aggregation query used without partition key')));
});

test('the ring is known, and token-aware requests go to a replica', async () => {
  const known = client.hosts.values();
  assert.ok(known.length >= hosts.length);
  for (const host of known) assert.ok(host.isUp() && host.datacenter && host.rack && host.hostId && host.tokens.length > 0);
  await client.execute('CREATE TABLE routed (k text PRIMARY KEY, v int)');
  for (let i = 0; i < 100; i++) {
    const key = `é${i}`;
    const replicas = client.getReplicas(keyspace, Buffer.from(key)).map(host => host.address);
    assert.ok(replicas.length > 0);
    const { info } = await client.execute('INSERT INTO routed (k, v) VALUES (?, ?)', [key, i], prepared);
    assert.ok(replicas.includes(info.queriedHost), `${info.queriedHost} is none of ${replicas}`);
    const { t } = (await client.execute('SELECT token(k) AS t FROM routed WHERE k = ?', [key], prepared)).first();
    assert.equal(t.toString(), client.metadata.newToken([Buffer.from(key)]).getValue().toString());
  }
});

const node = process.env.TETRAD_TEST_NODE;
const kill = process.env.TETRAD_TEST_NODE_KILL;
const start = process.env.TETRAD_TEST_NODE_START;
test('a node that dies goes down and comes up while requests go on', { skip: !(node && kill && start) }, async () => {
  const other = await connect({ keyspace, contactPoints: hosts.filter(host => host !== node),
    queryOptions: { consistency: types.consistencies.quorum, isIdempotent: true } });
  const heard = { hostDown: false, hostUp: false };
  for (const event of Object.keys(heard)) {
    other.on(event, host => { if (host.address.startsWith(`${node}:`)) heard[event] = true; });
  }
  await other.execute('CREATE TABLE through (k int PRIMARY KEY, v int)');
  execSync(kill, { stdio: 'ignore' });
  try {
    for (let key = 0; key < 200; key++) {
      await other.execute('INSERT INTO through (k, v) VALUES (?, ?)', [key, key], prepared);
    }
    await until('the driver hears that the node is down', 60, () => heard.hostDown);
  } finally {
    execSync(start, { stdio: 'ignore' });
  }
  await until('the driver hears that the node is up', 90, () => heard.hostUp);
  assert.equal((await other.execute('SELECT count(*) AS n FROM through')).first().n.toString(), '200');
});
