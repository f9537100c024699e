# SPDX-License-Identifier: Apache-2.0
"""Physical partitions of a real cluster are merged under load: those that a throughput asked for which was lowered since, by themselves, down
to as many as the table keeps; and two by order. No client sees an error, nothing is lost. Prints its figures."""
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tls"))
from node import Node, tetractl, wait_until  # noqa: E402

PREFIX = "127.0.58."
KEYS, THREADS = 400, 4
LEADS_FOR_S = 36  # a leader merges nothing before: it has not heard of all that tablets get
passed = failed = 0


def check(name, holds, detail=""):
    global passed, failed
    print("%s %s %s" % ("ok    " if holds else "FAILED", name, "" if holds else detail), flush=True)
    passed, failed = passed + bool(holds), failed + (not holds)


class Load:
    """Each thread counts its own keys up at QUORUM and reads them back, until it is stopped."""

    def __init__(self, session, table, pause_s):
        self.session, self.pause_s = session, pause_s
        self.select = session.prepare("SELECT v FROM ks.%s WHERE k = ?" % table)
        self.insert = session.prepare("INSERT INTO ks.%s (k, v) VALUES (?, ?)" % table)
        self.errors, self.wrong, self.took, self.values = [], [], [], {}
        self.ends = False
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        draw = random.Random(number)
        while not self.ends:
            key = draw.randrange(KEYS) // THREADS * THREADS + number
            began = time.monotonic()
            try:
                value = self.values.get(key, 0) + 1
                self.session.execute(self.insert, (key, value))
                self.values[key] = value
                row = self.session.execute(self.select, (key,)).one()
                if row is None or row.v != value:
                    self.wrong.append((key, value, row))
            except Exception as error:  # whatever it is, a client saw it
                self.errors.append(repr(error))
            self.took.append(time.monotonic() - began)
            time.sleep(self.pause_s)

    def stop(self):
        self.ends = True
        for thread in self.threads:
            thread.join()

    def p99_ms(self):
        took = sorted(self.took)
        return took[len(took) * 99 // 100] * 1000 if took else 0


def partitions(session, table):
    query = "SELECT id, range_start, range_end FROM system_tetrad.partitions WHERE keyspace_name = 'ks' AND table_name = '%s'"
    return sorted(session.execute(query % table), key=lambda row: row.range_end)


def by_order(session, node):
    session.execute("CREATE TABLE ks.ordered (k int PRIMARY KEY, v int) WITH tetrad_initial_partitions = 4")
    load = Load(session, "ordered", 0.002)
    time.sleep(3)
    rows = partitions(session, "ordered")
    began = time.monotonic()
    tetractl("-h", node.address, "merge", rows[1].id)
    took_s = time.monotonic() - began
    wait_until("the table shows it", lambda: len(partitions(session, "ordered")) == 3)
    now = partitions(session, "ordered")
    time.sleep(1)
    load.stop()
    print("by order: two of four are one after %.2f s, %d requests, p99 %.0f ms" % (took_s, len(load.took), load.p99_ms()))
    check("one by order in the place of two", (now[1].range_start, now[1].range_end) == (rows[1].range_start, rows[2].range_end), now)
    check("no error meanwhile", not load.errors and not load.wrong, (load.errors[:3], load.wrong[:3]))
    last = tetractl("-h", node.address, "merge", now[2].id, fails=True)
    check("the last has none behind it", "is the last of its table" in last, last)
    unknown = tetractl("-h", node.address, "merge", 99999, fails=True)
    check("one that there is not", "there is no partition 99999" in unknown, unknown)
    check("another id", "id is the number of a partition" in tetractl("-h", node.address, "merge", "some", fails=True))


def by_themselves(session, nodes, formed):
    session.execute("CREATE TABLE ks.cooled (k int PRIMARY KEY, v int) WITH cosmosdb_provisioned_throughput = 80000")
    check("a throughput asks for eight", len(partitions(session, "cooled")) == 8, partitions(session, "cooled"))
    load = Load(session, "cooled", 0.01)
    time.sleep(max(0, formed + LEADS_FOR_S - time.monotonic()))
    check("they stay while it does", len(partitions(session, "cooled")) == 8, partitions(session, "cooled"))
    began, requests = time.monotonic(), len(load.took)
    session.execute("ALTER TABLE ks.cooled WITH cosmosdb_provisioned_throughput = 20000")
    wait_until("they are merged", lambda: len(partitions(session, "cooled")) == 2, 90)
    took_s = time.monotonic() - began
    time.sleep(2)
    load.stop()
    print("from 80,000 to 20,000 RU/s: eight partitions are two after %.1f s, %d requests meanwhile, p99 of all %.0f ms"
          % (took_s, len(load.took) - requests, load.p99_ms()))
    check("no error meanwhile", not load.errors, load.errors[:5])
    check("each write was read at once", not load.wrong, load.wrong[:5])
    statement = SimpleStatement("SELECT k, v FROM ks.cooled", consistency_level=ConsistencyLevel.ALL, fetch_size=50)
    found = {row.k: row.v for row in session.execute(statement)}
    check("all is there", found == load.values, set(load.values.items()) - set(found.items()))
    check("as many as it keeps", len(partitions(session, "cooled")) == 2 and len(partitions(session, "ordered")) == 3)
    merges = sum(float(line.split()[-1]) for node in nodes for line in node.ask("/metrics").splitlines()
                 if line.startswith("tetrad_replication_merges_total"))
    check("each merge is counted", merges == 7, merges)


def main(top):
    addresses = [PREFIX + str(number) for number in (1, 2, 3, 4)]
    nodes = []
    try:
        for address in addresses:
            nodes.append(Node(top, address, "--seeds", ",".join(addresses), "--write-timeout-ms", 8000, "--read-timeout-ms", 8000,
                              "--shards", 2, "--merge-after-s", 4, serves=False))
        wait_until("four nodes serve", lambda: all(node.serves() for node in nodes))
        wait_until("four nodes are live", lambda: len(nodes[0].live()) == 4)
        formed = time.monotonic()
        profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(addresses), request_timeout=10,
                                   consistency_level=ConsistencyLevel.QUORUM)
        cluster = Cluster(addresses, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, protocol_version=4)
        session = cluster.connect()
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 4}")
        by_order(session, nodes[2])
        by_themselves(session, nodes, formed)
        cluster.shutdown()
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
