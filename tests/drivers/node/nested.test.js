// SPDX-License-Identifier: Apache-2.0
// The Node.js driver: user types, tuples, vectors and collections inside one another, JSON, traces, payloads, warnings.
'use strict';

const assert = require('node:assert/strict');
const { test, before, after } = require('node:test');
const cassandra = require('cassandra-driver');
const security = require('./security');

const { types } = cassandra;
const hosts = (process.env.TETRAD_TEST_HOSTS || '127.0.0.1').split(',');
const port = Number(process.env.TETRAD_TEST_PORT || 9042);
const keyspace = 'drv_node_nested_' + Math.floor(Math.random() * 2 ** 32).toString(16).padStart(8, '0');
const prepared = { prepare: true };
const clients = [];
let client;

async function connect(maxVersion) {
  const opened = new cassandra.Client({
    ...security,
    contactPoints: hosts,
    protocolOptions: { port, maxVersion },
    socketOptions: { readTimeout: 20000, connectTimeout: 10000 },
    queryOptions: { consistency: types.consistencies.quorum },
    policies: { loadBalancing: new cassandra.policies.loadBalancing.RoundRobinPolicy() },
  });
  clients.push(opened);
  await opened.connect();
  return opened;
}

const home = number => ({ street: { name: 'Main', number }, zip: '10115', phones: { work: ['1', '2'] } });
const plain = value => JSON.parse(JSON.stringify(value));

before(async () => {
  client = await connect();
  const factor = Math.min(4, hosts.length);
  await client.execute(`CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': ${factor}}`);
  await client.execute(`USE ${keyspace}`);
  await client.execute('CREATE TYPE street (name text, number int)');
  await client.execute('CREATE TYPE address (street frozen<street>, zip text, phones frozen<map<text, frozen<list<text>>>>)');
  await client.execute('CREATE TABLE people (k int PRIMARY KEY, home frozen<address>, free address, every list<frozen<address>>)');
});

after(async () => {
  await client?.execute(`DROP KEYSPACE IF EXISTS ${keyspace}`);
  await Promise.all(clients.map(each => each.shutdown()));
});

for (const version of [3, 4]) {
  test(`version ${version} carries user types inside user types and collections`, async () => {
    const other = await connect(version);
    const insert = `INSERT INTO ${keyspace}.people (k, home, free, every) VALUES (?, ?, ?, ?)`;
    await other.execute(insert, [version, home(1), home(2), [home(3), home(4)]], prepared);
    const row = (await other.execute(`SELECT * FROM ${keyspace}.people WHERE k = ?`, [version], prepared)).first();
    assert.deepEqual(plain(row.home), home(1));
    assert.deepEqual(plain(row.free), home(2));
    assert.deepEqual(plain(row.every), [home(3), home(4)]);
  });
}

test('a field of a type that is not frozen changes alone', async () => {
  await client.execute('INSERT INTO people (k, free) VALUES (?, ?)', [20, home(1)], prepared);
  await client.execute('UPDATE people SET free.zip = ?, free.phones = null WHERE k = ?', ['2', 20], prepared);
  const row = (await client.execute('SELECT free, free.zip AS zip, free.street AS street FROM people WHERE k = 20')).first();
  assert.equal(row.zip, '2');
  assert.deepEqual(plain(row.street), { name: 'Main', number: 1 });
  assert.equal(row.free.phones, null);
  await assert.rejects(client.execute('UPDATE people SET home.zip = ? WHERE k = 20', ['3'], prepared));
});

test('the metadata shows user types', async () => {
  const udt = await client.metadata.getUdt(keyspace, 'address');
  assert.deepEqual(udt.fields.map(field => field.name), ['street', 'zip', 'phones']);
});

test('tuples and collections nest', async () => {
  await client.execute('CREATE TABLE deep (k int PRIMARY KEY, v map<text, frozen<list<frozen<map<int, frozen<set<text>>>>>>>, t tuple<int, frozen<tuple<text, boolean>>>)');
  const value = { a: [{ 1: ['x', 'y'] }, { 2: ['z'] }], b: [{ 3: ['w'] }] };
  const tuple = new types.Tuple(7, new types.Tuple('seven', true));
  await client.execute('INSERT INTO deep (k, v, t) VALUES (1, ?, ?)', [value, tuple], prepared);
  const row = (await client.execute('SELECT * FROM deep WHERE k = 1')).first();
  assert.deepEqual(plain(row.v), value);
  assert.equal(row.t.get(0), 7);
  assert.equal(row.t.get(1).get(0), 'seven');
  assert.equal(row.t.get(1).get(1), true);
});

test('vectors come back', { skip: typeof types.Vector === 'undefined' && !cassandra.types.dataTypes.vector && 'this driver does not know vectors' }, async () => {
  const Vector = types.Vector || require('cassandra-driver/lib/types/vector');
  await client.execute('CREATE TABLE vectors (k int PRIMARY KEY, v vector<float, 3>)');
  await client.execute('INSERT INTO vectors (k, v) VALUES (1, ?)', [new Vector([0.5, -1, 2.25], 'float')], prepared);
  const row = (await client.execute('SELECT v, similarity_cosine(v, [0.5, -1.0, 2.25]) AS near FROM vectors WHERE k = 1')).first();
  assert.deepEqual(Array.from(row.v), [0.5, -1, 2.25]);
  assert.ok(Math.abs(row.near - 1) < 1e-6);
});

test('JSON goes in and out', async () => {
  await client.execute('INSERT INTO people JSON ?', [JSON.stringify({ k: 70, home: home(7) })], prepared);
  const row = (await client.execute('SELECT JSON k, home FROM people WHERE k = 70')).first();
  assert.deepEqual(JSON.parse(row['[json]']), { k: 70, home: home(7) });
});

test('a traced request has its session and its events', async () => {
  for (const options of [{}, prepared]) {
    const result = await client.execute('SELECT * FROM people WHERE k = ?', [70], { ...options, prepare: true, traceQuery: true });
    const trace = await client.metadata.getTrace(result.info.traceId);
    assert.equal(trace.requestType, 'Execute CQL3 prepared query');
    assert.ok(trace.duration > 0 && trace.events.length >= 2);
    assert.ok(trace.events.every(event => event.activity && event.source && event.thread));
  }
  const batch = [{ query: 'INSERT INTO people (k) VALUES (80)' }, { query: 'INSERT INTO people (k) VALUES (81)' }];
  const result = await client.batch(batch, { logged: false, traceQuery: true });
  const trace = await client.metadata.getTrace(result.info.traceId);
  assert.equal(trace.requestType, 'Execute batch of CQL3 queries');
});

test('a custom payload is taken, and warnings come with the answer', async () => {
  const row = (await client.execute('SELECT key FROM system.local', [], { customPayload: { a: Buffer.from('b') } })).first();
  assert.equal(row.key, 'local');
  await client.execute('CREATE TABLE warned (k int PRIMARY KEY, v text)');
  const batch = Array.from({ length: 12 }, (_, k) => ({ query: 'INSERT INTO warned (k, v) VALUES (?, ?)', params: [k, 'x'.repeat(600)] }));
  const result = await client.batch(batch, { logged: false, prepare: true });
  assert.ok(result.info.warnings.some(text => text.includes('exceeding specified threshold')));
  assert.ok(result.info.warnings.some(text => text.includes('Unlogged batch covering 12 partitions')));
});
