# SPDX-License-Identifier: Apache-2.0
# The ring as the driver sees it: tokens, replicas, routing by token, nodes that go down and come up.
import os
import uuid

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import ExecutionProfile
from cassandra.metadata import Murmur3Token
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy
from cassandra.query import SimpleStatement
from conftest import HOSTS, wait_until


def test_every_host_is_known_with_its_place_and_tokens(session):
    hosts = session.cluster.metadata.all_hosts()
    assert {host.address for host in hosts} >= set(HOSTS)
    assert all(host.is_up and host.datacenter and host.rack and host.host_id for host in hosts)
    ring = session.cluster.metadata.token_map
    assert ring.ring and set(ring.token_to_host_owner.values()) == set(hosts)
    assert len({host.host_id for host in hosts}) == len(hosts)


def test_the_drivers_tokens_are_the_servers(session):
    session.execute("CREATE TABLE tokens (k blob PRIMARY KEY)")
    session.execute("CREATE TABLE tokens2 (a text, b int, PRIMARY KEY ((a, b)))")
    keys = [b"\x80", b"\xff" * 7, b"\x7f\x80\x81", "naïve".encode(), bytes(range(256)), b"a" * 15, b"\x90" * 17]
    keys += [os.urandom(length) for length in range(1, 80)]
    insert = session.prepare("INSERT INTO tokens (k) VALUES (?)")
    select = session.prepare("SELECT token(k) FROM tokens WHERE k = ?")
    for key in keys:
        session.execute(insert, (key,))
        assert session.execute(select, (key,)).one()[0] == Murmur3Token.from_key(key).value
    insert = session.prepare("INSERT INTO tokens2 (a, b) VALUES (?, ?)")
    select = session.prepare("SELECT token(a, b) FROM tokens2 WHERE a = ? AND b = ?")
    for number in range(40):
        values = ("é%d" % number, -number)
        session.execute(insert, values)
        routing_key = insert.bind(values).routing_key
        assert session.execute(select, values).one()[0] == Murmur3Token.from_key(routing_key).value


def test_every_key_has_replicas_and_token_aware_requests_go_to_one(session, connector):
    session.execute("CREATE TABLE routed (k uuid PRIMARY KEY, v int)")
    policy = TokenAwarePolicy(DCAwareRoundRobinPolicy(), shuffle_replicas=False)
    profile = ExecutionProfile(load_balancing_policy=policy, consistency_level=ConsistencyLevel.QUORUM)
    client = connector.session(session.keyspace, profile=profile)
    insert = client.prepare("INSERT INTO routed (k, v) VALUES (?, ?)")
    for number in range(100):
        bound = insert.bind((uuid.uuid4(), number))
        replicas = client.cluster.metadata.get_replicas(session.keyspace, bound.routing_key)
        assert replicas
        future = client.execute_async(bound)
        future.result()
        assert future.coordinator_host in [replica.endpoint for replica in replicas] + list(replicas)


def test_a_full_scan_by_token_ranges_sees_every_row_once(session):
    session.execute("CREATE TABLE ranges (k int PRIMARY KEY)")
    for key in range(200):
        session.execute("INSERT INTO ranges (k) VALUES (%s)", (key,))
    ring = sorted(token.value for token in session.cluster.metadata.token_map.ring)
    select = session.prepare("SELECT k FROM ranges WHERE token(k) > ? AND token(k) <= ?")
    seen = []
    for start, end in zip(ring, ring[1:]):
        seen += [row.k for row in session.execute(select, (start, end))]
    seen += [row.k for row in session.execute("SELECT k FROM ranges WHERE token(k) > %s", (ring[-1],))]
    seen += [row.k for row in session.execute("SELECT k FROM ranges WHERE token(k) <= %s", (ring[0],))]
    assert sorted(seen) == list(range(200))


def test_a_killed_node_goes_down_and_comes_up_while_requests_go_on(session, connector, node_control):
    others = [host for host in HOSTS if host != node_control.address]
    client = connector.session(hosts=others, keyspace=session.keyspace, idle_heartbeat_interval=2)
    session.execute("CREATE TABLE through (k int PRIMARY KEY, v int)")
    insert = client.prepare("INSERT INTO through (k, v) VALUES (?, ?)")
    insert.consistency_level = ConsistencyLevel.QUORUM
    insert.is_idempotent = True

    def node():
        return next(host for host in client.cluster.metadata.all_hosts() if host.address == node_control.address)

    events = []

    class Listener:
        def on_up(self, host):
            events.append(("up", host.address))

        def on_down(self, host):
            events.append(("down", host.address))

        def on_add(self, host):
            pass

        def on_remove(self, host):
            pass

    client.cluster.register_listener(Listener())
    wait_until(lambda: node().is_up, 30, "the node is up before the test")
    node_control.kill()
    written = 0
    while written < 300:
        client.execute(insert, (written, written), timeout=20)
        written += 1
    wait_until(lambda: not node().is_up, 60, "the driver sees the node down")
    node_control.start()
    wait_until(lambda: node().is_up, 90, "the driver sees the node up again")
    assert ("down", node_control.address) in events and ("up", node_control.address) in events
    select = SimpleStatement("SELECT count(*) FROM through", consistency_level=ConsistencyLevel.QUORUM)
    assert client.execute(select).one()[0] == written
