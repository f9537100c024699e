#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What a client of a single node has written, it finds in the materialized views of the table as soon as it is answered, as on a
# single node of Cassandra: with one shard and with two, one client and eight of one partition. Last line N passed, N failed.
# own_views.py PREFIX: of loopback, as 127.0.13; TETRAD_BIN: where tetrad is.
import sys
import threading
from pathlib import Path

from cassandra.cluster import Cluster
from cassandra.query import BatchStatement, BatchType

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tls"))
from node import Node, run_in_folder  # noqa: E402

PREFIX = sys.argv[1]
ROUNDS, CLIENTS, LARGE = 100, 8, 20_000
results = {"passed": 0, "failed": 0}


def check(holds, text):
    results["passed" if holds else "failed"] += 1
    print("%s own_views: %s" % ("ok    " if holds else "FAILED", text))


def check_none(missed, text):
    check(missed == 0, "%s: %d missed" % (text, missed))


class Writer:
    """Writes rows of one partition, and looks in the view by v after each write. `base`: its values are its own."""

    def __init__(self, session, partition, base):
        self.session, self.partition, self.base = session, partition, base
        self.missed = dict.fromkeys(["INSERT", "UPDATE", "the name before", "DELETE", "IF NOT EXISTS", "batch"], 0)
        self.by_v = session.prepare("SELECT k, c FROM ks.by_v WHERE v = ?")
        self.insert = session.prepare("INSERT INTO ks.t (k, c, v) VALUES (?, ?, ?)")
        self.insert_new = session.prepare("INSERT INTO ks.t (k, c, v) VALUES (?, ?, ?) IF NOT EXISTS")
        self.update = session.prepare("UPDATE ks.t SET v = ? WHERE k = ? AND c = ?")
        self.delete = session.prepare("DELETE FROM ks.t WHERE k = ? AND c = ?")

    def expect(self, kind, v, rows):
        self.missed[kind] += len(list(self.session.execute(self.by_v, (v,)))) != rows

    def round(self, number):
        k, c, v = self.partition, self.base + 4 * number, self.base + 4 * number
        self.session.execute(self.insert, (k, c, v))
        self.expect("INSERT", v, 1)
        self.session.execute(self.update, (v + 1, k, c))
        self.expect("UPDATE", v + 1, 1)
        self.expect("the name before", v, 0)
        self.session.execute(self.delete, (k, c))
        self.expect("DELETE", v + 1, 0)
        self.session.execute(self.insert_new, (k, c + 1, v + 2))
        self.expect("IF NOT EXISTS", v + 2, 1)
        rows = ["INSERT INTO ks.t (k, c, v) VALUES (%d, %d, %d);" % (k + i, c + 2, v + 3) for i in range(5)]
        self.session.execute("BEGIN BATCH %s APPLY BATCH" % " ".join(rows))
        self.expect("batch", v + 3, 5)

    def run(self):
        for number in range(ROUNDS):
            self.round(number)


def large_batch(session, text, values):
    """Rows in one batch. The node lives, and answers within its time, whether all of them are in the view by then or not."""
    insert = session.prepare(text)
    batch = BatchStatement(BatchType.UNLOGGED)
    for i in range(LARGE):
        batch.add(insert, values(i))
    session.execute(batch)


def rows_left(session, where):
    session.execute("DELETE FROM ks.t WHERE " + where)
    left = session.execute("SELECT count(*) FROM ks.t WHERE " + where).one()[0]
    return left + session.execute("SELECT count(*) FROM ks.by_c WHERE %s ALLOW FILTERING" % where).one()[0]


def of_node(folder, last, shards):
    node = Node(folder, "%s.%d" % (PREFIX, last), "--shards", str(shards))
    cluster = Cluster([node.address], protocol_version=5)
    try:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))")
        for view, key in (("by_v", "v, k, c"), ("by_c", "c, k")):
            session.execute("CREATE MATERIALIZED VIEW ks.%s AS SELECT * FROM ks.t WHERE v IS NOT NULL AND k IS NOT NULL "
                            "AND c IS NOT NULL PRIMARY KEY (%s)" % (view, key))
        one = Writer(session, 1, 0)
        one.run()
        for kind, missed in one.missed.items():
            check_none(missed, "%d shards, one client, %s" % (shards, kind))
        many = [Writer(session, 10, 1_000_000 * (i + 1)) for i in range(CLIENTS)]
        threads = [threading.Thread(target=writer.run) for writer in many]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        check_none(sum(sum(writer.missed.values()) for writer in many), "%d shards, clients of one partition" % shards)
        check_none(rows_left(session, "k = 10 AND c < 2000000"), "%d shards, a range that is deleted" % shards)
        check_none(rows_left(session, "k = 10"), "%d shards, a partition that is deleted" % shards)
        # Executions that find nothing to write end at once: one within the other they filled the stack.
        large_batch(session, "INSERT INTO ks.t (k, c) VALUES (?, ?)", lambda i: (20, i))
        check_none(session.execute("SELECT count(*) FROM ks.t WHERE k = 20").one()[0] != LARGE, "%d shards, a batch of rows of no view" % shards)
    finally:
        cluster.shutdown()
        node.stop()


def main(folder):
    for last, shards in ((171, 1), (172, 2)):
        of_node(folder, last, shards)


if __name__ == "__main__":
    run_in_folder(main, check, results)
