# SPDX-License-Identifier: Apache-2.0
"""Two data centres of three nodes: levels count by data centre, one that stands still stops nothing in the other, and a keyspace is in
those that it names, also after ALTER KEYSPACE. Prints its figures."""
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from cassandra import ConsistencyLevel, Unavailable
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tls"))
from node import Node, wait_until  # noqa: E402

PREFIX = "127.0.57."
CENTERS = {"east": [PREFIX + str(n) for n in (1, 2, 3)], "west": [PREFIX + str(n) for n in (4, 5, 6)]}
STILL_S = 8  # so long one data centre stands still
passed = failed = 0


def check(name, holds, detail=""):
    global passed, failed
    print("%s %s %s" % ("ok    " if holds else "FAILED", name, "" if holds else detail), flush=True)
    passed, failed = passed + bool(holds), failed + (not holds)


def connect(center):
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(CENTERS[center]), request_timeout=15,
                               consistency_level=ConsistencyLevel.LOCAL_QUORUM, retry_policy=FallthroughRetryPolicy())
    cluster = Cluster(CENTERS[center], execution_profiles={EXEC_PROFILE_DEFAULT: profile}, protocol_version=4,
                      reconnection_policy=ConstantReconnectionPolicy(0.5, None))
    return cluster.connect()


class Writer:
    """Writes row after row at LOCAL_QUORUM, and reads each again, until it is stopped."""

    def __init__(self, session, first):
        self.session, self.next, self.acknowledged = session, first, []
        self.errors, self.stale, self.took, self.ends = [], [], [], False
        self.insert = session.prepare("INSERT INTO both.t (a, b) VALUES (?, ?)")
        self.select = session.prepare("SELECT b FROM both.t WHERE a = ?")
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ends:
            number, began = self.next, time.monotonic()
            self.next += 1
            try:
                self.session.execute(self.insert, (number, "row %d" % number))
                self.acknowledged.append(number)
                if [row.b for row in self.session.execute(self.select, (number,))] != ["row %d" % number]:
                    self.stale.append(number)
            except Exception as error:  # whatever it is, a client saw it
                self.errors.append(repr(error))
            self.took.append(time.monotonic() - began)

    def stop(self):
        self.ends = True
        self.thread.join()


def lacking(session, numbers):
    select = session.prepare("SELECT b FROM both.t WHERE a = ?")
    return [number for number in numbers if not session.execute(select, (number,)).one()]


def fails_at(session, level, words):
    try:
        session.execute(SimpleStatement("SELECT b FROM both.t WHERE a = 1", consistency_level=level))
        return "it is answered"
    except Unavailable as error:
        return "" if words in str(error) else str(error)
    except Exception as error:
        return repr(error)


def members(nodes, keyspace):
    """Of each partition: how many are in each data centre."""
    counts = []
    for partition in json.loads(nodes[0].ask("/partitions")):
        if partition["keyspace"] == keyspace and partition["state"] == "normal":
            counts.append(tuple(sum(replica in CENTERS[center] for replica in partition["replicas"]) for center in ("east", "west")))
        elif partition["keyspace"] == keyspace:
            counts.append(partition["state"])
    return set(counts)


def one_stands_still(nodes, east, west):
    first = Writer(west, 1_000_000)
    time.sleep(2)
    first.stop()
    check("both data centers serve", len(first.acknowledged) > 100 and not first.errors and not first.stale,
          (len(first.acknowledged), first.errors[:3]))
    still = [node for node in nodes if node.address in CENTERS["west"]]
    writer = Writer(east, 1)
    for node in still:
        os.kill(node.process.pid, signal.SIGSTOP)
    time.sleep(STILL_S)
    quorum = fails_at(east, ConsistencyLevel.QUORUM, "QUORUM")
    each = fails_at(east, ConsistencyLevel.EACH_QUORUM, "EACH_QUORUM")
    one = east.execute(SimpleStatement("SELECT b FROM both.t WHERE a = 1", consistency_level=ConsistencyLevel.ONE)).one()
    writer.stop()
    for node in still:
        os.kill(node.process.pid, signal.SIGCONT)
    took = sorted(writer.took)
    print("while west stood still %d rows were written and read in east, p99 %.0f ms, longest %.0f ms"
          % (len(writer.acknowledged), 1000 * took[len(took) * 99 // 100], 1000 * took[-1]))
    check("LOCAL_QUORUM is served in the other one", len(writer.acknowledged) > 100 and not writer.errors, writer.errors[:3])
    check("each row is read again at once", not writer.stale, writer.stale[:3])
    check("QUORUM is unavailable", not quorum, quorum)
    check("EACH_QUORUM is unavailable", not each, each)
    check("ONE is served", one is not None and one.b == "row 1", one)
    began = time.monotonic()
    left = writer.acknowledged
    while left and time.monotonic() - began < 60:
        time.sleep(0.2)
        try:
            left = lacking(west, left)
        except Exception:  # the sessions come back
            time.sleep(0.5)
    print("west has all of it %.1f s after it goes on" % (time.monotonic() - began))
    check("what it missed comes to it", not left, left[:5])
    far = east.execute(SimpleStatement("SELECT b FROM both.t WHERE a = 1000000", consistency_level=ConsistencyLevel.QUORUM)).one()
    check("QUORUM is served again", far is not None and far.b == "row 1000000", far)


def keyspace_moves(nodes, east, west):
    check("a keyspace is in the data center that it names", members(nodes, "here") == {(3, 0)}, members(nodes, "here"))
    insert = east.prepare("INSERT INTO here.t (a, b) VALUES (?, ?)")
    for number in range(200):
        east.execute(insert, (number, "row"))
    refused = fails_at_local(west)
    check("LOCAL_QUORUM is unavailable in the other one", "Unavailable" in refused, refused)
    for replication, expected, session in (("'east': 3, 'west': 3", {(3, 3)}, west), ("'west': 3", {(0, 3)}, west)):
        began = time.monotonic()
        east.execute("ALTER KEYSPACE here WITH replication = {'class': 'NetworkTopologyStrategy', %s}" % replication)
        wait_until("the members are as %s says" % replication, lambda: members(nodes, "here") == expected, 60)
        print("as {%s} says after %.1f s" % (replication, time.monotonic() - began))
        rows = session.execute("SELECT a FROM here.t").all()
        check("with {%s} west has all rows" % replication, sorted(row.a for row in rows) == list(range(200)), len(rows))


def fails_at_local(session):
    try:
        session.execute("SELECT b FROM here.t WHERE a = 1")
        return "it is answered"
    except Exception as error:
        return repr(error)


def main(top):
    addresses = CENTERS["east"] + CENTERS["west"]
    nodes = []
    try:
        for center, of_center in CENTERS.items():
            for address in of_center:
                nodes.append(Node(top, address, "--seeds", ",".join(addresses[:4]), "--datacenter", center, "--shards", 1, serves=False))
        wait_until("six nodes serve", lambda: all(node.serves() for node in nodes), 60)
        wait_until("six nodes are live", lambda: all(len(node.live()) == 6 for node in nodes))
        east, west = connect("east"), connect("west")
        east.execute("CREATE KEYSPACE both WITH replication = {'class': 'NetworkTopologyStrategy', 'east': 3, 'west': 3}")
        east.execute("CREATE KEYSPACE here WITH replication = {'class': 'NetworkTopologyStrategy', 'east': 3}")
        for keyspace in ("both", "here"):
            east.execute("CREATE TABLE %s.t (a int PRIMARY KEY, b text)" % keyspace)
        check("a keyspace is in both data centers", members(nodes, "both") == {(3, 3)}, members(nodes, "both"))
        one_stands_still(nodes, east, west)
        keyspace_moves(nodes, east, west)
        for session in (east, west):
            session.cluster.shutdown()
    finally:
        for node in nodes:
            node.stop()


with tempfile.TemporaryDirectory() as folder:
    try:
        main(folder)
    except AssertionError as error:
        check("to the end", False, error)
print("%d passed, %d failed" % (passed, failed))
sys.exit(failed != 0)
