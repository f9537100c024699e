# SPDX-License-Identifier: Apache-2.0
"""A cluster grows and shrinks under load: what moves, how long it takes, and that no client notices. Prints its figures."""
import json
import sys
import tempfile
import threading
import time
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.policies import WhiteListRoundRobinPolicy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tls"))
from node import Node, tetractl, wait_until  # noqa: E402

PREFIX = "127.0.48."
TABLETS, ROWS, VALUE_BYTES = 40, 6000, 2000
passed = failed = 0


def check(name, holds, detail=""):
    global passed, failed
    print("%s %s %s" % ("ok    " if holds else "FAILED", name, "" if holds else detail), flush=True)
    passed, failed = passed + bool(holds), failed + (not holds)


class Load:
    """Writes new rows and reads old ones at QUORUM through the first four nodes, all the time."""

    def __init__(self, addresses):
        profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(addresses), request_timeout=10,
                                   consistency_level=ConsistencyLevel.QUORUM)
        self.cluster = Cluster(addresses, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, protocol_version=4)
        self.session = self.cluster.connect()
        self.session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 4}")
        self.session.execute("CREATE TABLE ks.t (a int PRIMARY KEY, b text) WITH tetrad_initial_partitions = %d" % TABLETS)
        self.insert = self.session.prepare("INSERT INTO ks.t (a, b) VALUES (?, ?)")
        self.select = self.session.prepare("SELECT b FROM ks.t WHERE a = ?")
        self.written, self.errors, self.slowest = 0, [], 0.0
        self.ends = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def value(self, key):
        return ("%d " % key) * (VALUE_BYTES // len("%d " % key))

    def fill(self, rows):
        for begin in range(0, rows, 100):
            futures = [self.session.execute_async(self.insert, (key, self.value(key))) for key in range(begin, begin + 100)]
            for future in futures:
                future.result()
        self.written = rows

    def run(self):
        while not self.ends:
            key = self.written
            began = time.monotonic()
            try:
                self.session.execute(self.insert, (key, self.value(key)))
                self.written += 1
                old = key * 7919 % self.written
                found = self.session.execute(self.select, (old,)).one()
                if found is None or found.b != self.value(old):
                    self.errors.append("row %d is gone" % old)
            except Exception as error:  # what a client would see
                self.errors.append("%s: %s" % (type(error).__name__, error))
            self.slowest = max(self.slowest, time.monotonic() - began)
            time.sleep(0.002)

    def count_missing(self):
        missing = 0
        for begin in range(0, self.written, 200):
            keys = range(begin, min(begin + 200, self.written))
            futures = [self.session.execute_async(self.select, (key,)) for key in keys]
            for key, future in zip(keys, futures):
                found = future.result().one()
                missing += found is None or found.b != self.value(key)
        return missing


def start(top, number, seeds):
    # Timeouts are those of a machine that does other things, too: how long the slowest request took is printed.
    return Node(top, PREFIX + str(number), "--seeds", ",".join(seeds), "--write-timeout-ms", 8000, "--read-timeout-ms", 8000, serves=False)


class Sets:
    """Who has which tablets, and how much that is: an empty one counts as 1 MiB, as for the balance."""

    def __init__(self, node):
        partitions = [p for p in json.loads(node.ask("/partitions")) if p["keyspace"] == "ks"]
        self.change = any(p["state"] != "normal" for p in partitions)
        self.of = {p["id"]: {member.split("/")[0] for member in p["replicas"]} for p in partitions}
        self.weights = {p["id"]: p["size_bytes"] + (1 << 20) for p in partitions}

    def held(self, address):
        return sum(self.weights[tablet] for tablet, members in self.of.items() if address in members)

    def mean(self, addresses):
        return sum(self.held(address) for address in addresses) / len(addresses)


def level(node, addresses):
    """The sets, once nothing changes and each of the addresses holds an equal part."""
    found = Sets(node)
    if found.change or any(len(members) != 4 or not members <= set(addresses) for members in found.of.values()):
        return None
    mean = found.mean(addresses)
    return found if all(abs(found.held(address) - mean) <= 0.12 * mean for address in addresses) else None


def moved_bytes(nodes):
    """Of all leaders there have been."""
    total = 0
    for node in nodes:
        for line in node.ask("/metrics").splitlines():
            if line.startswith("tetrad_replication_balance_bytes_total"):
                total += float(line.split()[-1])
    return total


def grown(before, after, new):
    """How many members of sets came where no new node is: moved for nothing."""
    return sum(len(after.of[tablet] - before.of[tablet] - new) for tablet in before.of)


def main(top):
    addresses = [PREFIX + str(number) for number in (1, 2, 3, 4)]
    nodes = []
    try:
        for number in (1, 2, 3, 4):
            nodes.append(start(top, number, addresses))
        wait_until("four nodes serve", lambda: all(node.serves() for node in nodes))
        wait_until("four nodes are live", lambda: len(nodes[0].live()) == 4)
        load = Load(addresses)
        wait_until("all sets have four members", lambda: level(nodes[0], addresses))
        load.fill(ROWS)
        load.thread.start()
        time.sleep(5)  # sizes are reported, and nodes made equal

        before, bytes_before = wait_until("level", lambda: level(nodes[0], addresses)), moved_bytes(nodes)
        began = time.monotonic()
        nodes.append(start(top, 5, addresses))
        five = addresses + [PREFIX + "5"]
        after = wait_until("the fifth node has its share", lambda: level(nodes[0], five), 90)
        print("one node joins four: level after %.1f s, %.1f MB moved"
              % (time.monotonic() - began, (moved_bytes(nodes) - bytes_before) / 1e6))
        check("hardly any but the fifth node has gained members", grown(before, after, {five[-1]}) <= 2, (before.of, after.of))
        check("it holds at most 1.1 times its part", after.held(five[-1]) <= 1.1 * after.mean(five), after.held(five[-1]))

        began = time.monotonic()
        nodes += [start(top, number, addresses) for number in (6, 7)]
        seven = five + [PREFIX + "6", PREFIX + "7"]
        last = wait_until("two more have their share", lambda: level(nodes[0], seven), 90)
        print("two nodes join five at once: level after %.1f s" % (time.monotonic() - began))
        # The two take 46 members of the 160. Sizes grow meanwhile, and one may join before the other: moves between the rest come of it.
        others = grown(after, last, set(seven[-2:]))
        print("moves to others than these two: %d" % others)
        check("hardly any but the two has gained members", others <= 9, others)

        began = time.monotonic()
        tetractl("-h", seven[4], "decommission", "--no-wait")
        nodes[4].process.wait(90)
        check("the node that left ends with 0", nodes[4].process.returncode == 0, nodes[4].process.returncode)
        six = [address for address in seven if address != seven[4]]
        wait_until("six nodes are level", lambda: level(nodes[0], six), 90)
        print("one node of seven is decommissioned: level after %.1f s" % (time.monotonic() - began))

        lost = nodes[6]
        host_id = next(n["host_id"] for n in json.loads(nodes[0].ask("/status"))["nodes"] if n["address"] == seven[6])
        lost.process.kill()
        lost.process.wait()
        began = time.monotonic()
        wait_until("it is seen as dead", lambda: seven[6] not in nodes[0].live())
        tetractl("-h", seven[0], "remove-node", host_id)
        left = [address for address in six if address != seven[6]]
        wait_until("five nodes are level", lambda: level(nodes[0], left), 90)
        print("one node of six dies for good: level after %.1f s" % (time.monotonic() - began))

        load.ends = True
        load.thread.join()
        print("%d rows written meanwhile, slowest write and read %.0f ms" % (load.written - ROWS, load.slowest * 1000))
        check("no client has seen an error", not load.errors, load.errors[:5])
        missing = load.count_missing()
        check("every acknowledged row is there", missing == 0, missing)
        load.cluster.shutdown()
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
