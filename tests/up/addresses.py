#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Nodes behind a translation of addresses: each listens at one address and says that it is reached at another, where
# forwarders stand. Last line N passed, N failed. addresses.py PREFIX: of loopback, as 127.0.13; TETRAD_BIN: where tetrad is.
import asyncio
import json
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.connection import DefaultEndPoint
from cassandra.policies import RoundRobinPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tls"))
from hearer import Hearer  # noqa: E402
from node import Node, ended_with, wait_until  # noqa: E402

PREFIX = sys.argv[1]
# Drivers hear of it at once: some 0.2 s after the node has taken part again, on a machine that is not busy.
SECONDS_MAX = 5
results = {"passed": 0, "failed": 0}
nodes = []


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    print("%s %s" % ("ok    " if holds else "FAILED", what))


def inside(number):
    return "%s.%d" % (PREFIX, 100 + number)


def outside(number):
    return "%s.%d" % (PREFIX, 110 + number)


def moved(number):
    return "%s.%d" % (PREFIX, 120 + number)


class Forwarders:
    """From an address and port to another, as a router does."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def add(self, come, go):
        asyncio.run_coroutine_threadsafe(self.listen(come, go), self.loop).result(10)

    async def listen(self, come, go):
        await asyncio.start_server(lambda reader, writer: self.carry(reader, writer, go), *come)

    async def carry(self, reader, writer, go):
        try:
            far_reader, far_writer = await asyncio.open_connection(*go)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.copy(reader, far_writer), self.copy(far_reader, writer))

    async def copy(self, reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


def options(number, clients=outside):
    return ("--broadcast-address", outside(number), "--broadcast-rpc-address", clients(number),
            "--broadcast-native-port", 9142, "--seeds", "%s,%s" % (outside(1), outside(2)))


def refusals(top):
    def refused(said, *words):
        check(said in ended_with(top, *words), "refused: " + " ".join(words))

    refused("listen_address: '0.0.0.0' is no address that other nodes and drivers could be told; say broadcast_address",
            "--listen-address", "0.0.0.0", "--insecure-listen")
    refused("rpc_address: '::' is no address that drivers could be told; say broadcast_rpc_address",
            "--rpc-address", "::", "--insecure-listen")
    refused("broadcast_address: '0.0.0.0' is no address that other nodes", "--broadcast-address", "0.0.0.0")
    refused("broadcast_rpc_address: 'here' is no IP address", "--broadcast-rpc-address", "here")
    refused("rpc_address: 10.1.2.3 is not on loopback and no client has to log in", "--rpc-address", "10.1.2.3")
    refused("broadcast_native_port: '65536' is no whole number from 0 to 65535", "--broadcast-native-port", "65536")


def main(top):
    refusals(top)
    forwarders = Forwarders()
    for number in (1, 2):
        forwarders.add((outside(number), 7000), (inside(number), 7000))
        forwarders.add((outside(number), 9142), (inside(number), 9042))
        forwarders.add((moved(number), 9142), (inside(number), 9042))
    nodes.extend(Node(top, inside(number), *options(number), serves=False) for number in (1, 2))
    for node in nodes:
        wait_until("%s serves" % node.address, node.serves)
    wait_until("each sees both", lambda: all(node.live() == {outside(1), outside(2)} for node in nodes))
    check(True, "two nodes found a cluster through forwarders")

    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy())
    # Without the random seconds that the driver itself waits after an event.
    cluster = Cluster([DefaultEndPoint(outside(1), 9142)], protocol_version=5, execution_profiles={EXEC_PROFILE_DEFAULT: profile},
                      topology_event_refresh_window=0, status_event_refresh_window=0)
    session = cluster.connect()
    hosts = {(host.endpoint.address, host.endpoint.port) for host in cluster.metadata.all_hosts()}
    check(hosts == {(outside(1), 9142), (outside(2), 9142)}, "a driver is told where it reaches them: %s" % hosts)
    session.execute("CREATE KEYSPACE far WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}")
    session.execute("CREATE TABLE far.t (k int PRIMARY KEY)")
    asked = {session.execute_async("INSERT INTO far.t (k) VALUES (%s)", (k,)) for k in range(20)}
    for future in asked:
        future.result()
    check({future.coordinator_host.endpoint.address for future in asked} == {outside(1), outside(2)}, "and uses both")
    local = session.execute("SELECT * FROM system.local").one()
    check((local.listen_address, local.broadcast_address, local.rpc_address, local.rpc_port) in
          [(inside(n), outside(n), outside(n), 9142) for n in (1, 2)], "system.local says what it listens at and what others are told")
    peer = session.execute("SELECT * FROM system.peers_v2").one()
    check((peer.peer, peer.native_address, peer.native_port) in [(outside(n), outside(n), 9142) for n in (1, 2)],
          "system.peers_v2 says where drivers reach the other")

    hearer = Hearer(check, outside(1), 9142)
    nodes[1].stop()
    nodes[1].options = options(2, clients=moved)
    since = time.monotonic()
    nodes[1].start(serves=False)
    hearer.expect(since, "a node whose address for drivers is another, since its start", ("TOPOLOGY_CHANGE", "REMOVED_NODE", outside(2)),
                  ("TOPOLOGY_CHANGE", "NEW_NODE", moved(2)), ("STATUS_CHANGE", "UP", moved(2)), within_s=SECONDS_MAX)
    wait_until("the driver follows", lambda: (moved(2), 9142) in {
        (host.endpoint.address, host.endpoint.port) for host in cluster.metadata.all_hosts() if host.is_up})
    took_s = time.monotonic() - since
    check(took_s < SECONDS_MAX, "a driver follows a node that is reached elsewhere from now on: %.1f s after its start" % took_s)
    futures = [session.execute_async("SELECT * FROM far.t") for _ in range(20)]
    check(all(len(future.result().all()) == 20 for future in futures), "which has what it had")
    check(moved(2) in {future.coordinator_host.endpoint.address for future in futures}, "and is asked there")
    cluster.shutdown()


def elsewhere(top):
    """Three nodes, of which one comes back at another address, and then behind one; a seed, too."""
    start, later, behind = ["%s.%d" % (PREFIX, n) for n in (141, 142, 143)], ["%s.%d" % (PREFIX, n) for n in (151, 152, 153)], PREFIX + ".163"
    seeds = ("--seeds", ",".join(start[:2]))
    trio = [Node(top, address, *seeds, serves=False) for address in start]
    nodes.extend(trio)
    for node in trio:
        wait_until("%s serves" % node.address, node.serves)
    wait_until("each sees all", lambda: all(node.live() == set(start) for node in trio))
    ids = {node["address"]: node["host_id"] for node in json.loads(trio[0].ask("/status"))["nodes"]}
    cluster = Cluster([start[0]], protocol_version=5, topology_event_refresh_window=0, status_event_refresh_window=0)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE far WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE far.t (k int PRIMARY KEY)")
    forwarders = Forwarders()
    for port in (7000, 9042):
        forwarders.add((behind, port), (later[2], port))
    where = list(start)

    def comes_back(number, what, listens, told, *options):
        """Node `number` is stopped, and started so that it listens at one address and the others are told another."""
        others = [node for node in trio if node is not trio[number]]
        hearer = Hearer(check, others[0].address)
        old, where[number] = where[number], told
        trio[number].stop()
        trio[number].address, trio[number].options = listens, seeds + options
        since = time.monotonic()
        trio[number].start(serves=False)
        hearer.expect(since, what + ", since its start", ("TOPOLOGY_CHANGE", "REMOVED_NODE", old), ("TOPOLOGY_CHANGE", "NEW_NODE", told),
                      ("STATUS_CHANGE", "UP", told), within_s=SECONDS_MAX)
        wait_until("%s serves again" % what, trio[number].serves)
        wait_until("%s: each sees all" % what, lambda: all(node.live() == set(where) for node in trio))
        rows = [{node["address"]: node["host_id"] for node in json.loads(node.ask("/status"))["nodes"]} for node in trio]
        check(all(row == {**{a: i for a, i in ids.items() if a != old}, told: ids[old]} for row in rows),
              "%s: the metadata has its new address and its old id on all nodes: %s" % (what, rows))
        ids[told] = ids.pop(old)
        known = lambda: {host.endpoint.address for host in cluster.metadata.all_hosts() if host.is_up}  # noqa: E731
        wait_until("%s: the driver follows" % what, lambda: known() == set(where))
        took_s = time.monotonic() - since
        check(took_s < SECONDS_MAX, "%s: a driver follows %.1f s after its start" % (what, took_s))
        direct = Cluster([others[0].address], protocol_version=5, load_balancing_policy=WhiteListRoundRobinPolicy([others[0].address]))
        one = direct.connect()
        peers = [{row.peer for row in one.execute("SELECT peer FROM system." + table)} for table in ("peers", "peers_v2")]
        direct.shutdown()
        check(all(told in row and old not in row and len(row) == 2 for row in peers), "%s: nor is the old one in system.peers: %s" % (what, peers))
        insert = SimpleStatement("INSERT INTO far.t (k) VALUES (%s)", consistency_level=ConsistencyLevel.ALL)
        for k in range(20):
            session.execute(insert, (k,))
        all_rows = SimpleStatement("SELECT * FROM far.t", consistency_level=ConsistencyLevel.ALL)
        check(len(session.execute(all_rows).all()) == 20, "%s: all three are asked for a write and a read" % what)

    comes_back(2, "another listen_address", later[2], later[2])
    comes_back(2, "another broadcast_address", later[2], behind, "--broadcast-address", behind)
    comes_back(1, "a seed with another listen_address", later[1], later[1])
    session.execute("CREATE TABLE far.u (k int PRIMARY KEY)")
    check(True, "metadata changes go on")
    trio[0].stop()  # who starts again finds the others, though a seed is elsewhere
    trio[0].start()
    wait_until("each sees all again", lambda: all(node.live() == set(where) for node in trio))
    check(True, "a node that starts again finds those that are elsewhere")
    cluster.shutdown()


folder = tempfile.mkdtemp()
try:
    main(folder)
    elsewhere(folder)
except Exception as error:  # what was begun is counted all the same
    print("FAILED %s: %s" % (type(error).__name__, error))
    for node in nodes:
        print(node.log()[-2000:])
    results["failed"] += 1
finally:
    for node in nodes:
        node.stop()
    shutil.rmtree(folder, ignore_errors=True)
print("%(passed)d passed, %(failed)d failed" % results)
sys.exit(results["failed"] != 0)
