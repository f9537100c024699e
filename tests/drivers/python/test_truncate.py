# SPDX-License-Identifier: Apache-2.0
# TRUNCATE beside requests of the same table: none of them fails, but for conditional ones of which nobody knows whether they were
# decided; and what was written after it stays.
import threading
import time

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import BatchStatement, BatchType, SimpleStatement
from conftest import wait_until


@pytest.fixture
def tables(session):
    session.execute("CREATE TABLE truncated (k int PRIMARY KEY, v text)")
    session.execute("CREATE TABLE kept (k int PRIMARY KEY, l list<int>)")
    session.execute("CREATE TABLE truncated_n (k int PRIMARY KEY, n counter)")


def requests(session, appended):
    """Each kind of request by name. `appended`: how often to the list of each key."""
    insert = session.prepare("INSERT INTO truncated (k, v) VALUES (?, 'x')")
    insert.consistency_level = ConsistencyLevel.QUORUM
    point = session.prepare("SELECT v FROM truncated WHERE k = ?")
    once = session.prepare("INSERT INTO truncated (k, v) VALUES (?, 'once') IF NOT EXISTS")

    append = session.prepare("UPDATE kept SET l = l + ? WHERE k = ?")
    append.consistency_level = ConsistencyLevel.QUORUM

    def over_tables(kind):
        counts = {}

        def run(k):
            k = k % 10 + (10 if kind == BatchType.LOGGED else 0)
            both = BatchStatement(kind)
            both.add(insert, (k,))
            both.add(append, ([counts.get(k, 0)], k))
            session.execute(both)
            counts[k] = counts.get(k, 0) + 1
            appended[k] = counts[k]

        return run

    def batch(k):
        both = BatchStatement(BatchType.LOGGED)
        both.add(insert, (k,))
        both.add(insert, (k + 1,))
        session.execute(both)

    return {
        "write": lambda k: session.execute(insert, (k,)),
        "text": lambda k: session.execute(SimpleStatement("INSERT INTO truncated (k, v) VALUES (%d, 'y')" % k)),
        "batch": batch,
        "logged over tables": over_tables(BatchType.LOGGED),
        "unlogged over tables": over_tables(BatchType.UNLOGGED),
        "point": lambda k: session.execute(point, (k,)),
        "scan": lambda k: list(session.execute("SELECT * FROM truncated")),
        "count": lambda k: session.execute("SELECT count(*) FROM truncated").one(),
        "conditional": lambda k: session.execute(once, (k,)),
        "counter": lambda k: session.execute("UPDATE truncated_n SET n = n + 1 WHERE k = %d" % k),
    }


def test_requests_beside_truncate(session, tables):
    failed, done, appended, stop = [], {}, {}, threading.Event()

    def run(name, request):
        k = 0
        while not stop.is_set():
            try:
                request(k % 1000)
                done[name] = done.get(name, 0) + 1
            except Exception as error:  # noqa: BLE001
                # Some members have accepted it, and the table went before it was known whether enough had.
                if name == "conditional" and "CAS" in str(error):
                    continue
                failed.append((name, type(error).__name__, str(error)))
            k += 1

    threads = [threading.Thread(target=run, args=one) for one in requests(session, appended).items()]
    for thread in threads:
        thread.start()
    for _ in range(8):
        session.execute("TRUNCATE truncated")
        session.execute("TRUNCATE truncated_n")
        time.sleep(0.1)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed, sorted(set((name, text) for name, _, text in failed))
    assert len(done) == len(threads) and min(done.values()) > 10, done
    # The other table has each part once, though it was sent again with a part for the truncated one.
    lists = {k: l for k, l in session.execute(SimpleStatement("SELECT k, l FROM kept", consistency_level=ConsistencyLevel.QUORUM))}
    assert lists == {k: list(range(count)) for k, count in appended.items()}
    # What begins after a TRUNCATE has ended is there, whichever node it goes to.
    for k in range(20):
        session.execute("TRUNCATE truncated")
        session.execute(SimpleStatement("INSERT INTO truncated (k, v) VALUES (%d, 'z')" % k, consistency_level=ConsistencyLevel.QUORUM))
        read = SimpleStatement("SELECT k FROM truncated", consistency_level=ConsistencyLevel.QUORUM)
        assert [row.k for row in session.execute(read)] == [k]


def test_views_of_a_truncated_table_have_no_rows_of_before(session):
    """An execution of a view's task makes the rows of all views in one write."""
    session.execute("CREATE TABLE seen (k int PRIMARY KEY, a int, b int)")
    for key in "a", "b":
        session.execute("CREATE MATERIALIZED VIEW seen_by_%s AS SELECT * FROM seen WHERE k IS NOT NULL AND %s IS NOT NULL PRIMARY KEY (%s, k)" % (key, key, key))
    insert = session.prepare("INSERT INTO seen (k, a, b) VALUES (?, ?, ?)")
    stop = threading.Event()

    def write(first):
        k = first
        while not stop.is_set():
            session.execute(insert, (k, k % 7, k % 11))
            k += 4

    threads = [threading.Thread(target=write, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        time.sleep(0.15)
        session.execute("TRUNCATE seen")
    time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()

    def rows(table):
        read = SimpleStatement("SELECT k, a, b FROM %s" % table, consistency_level=ConsistencyLevel.QUORUM)
        return {tuple(row) for row in session.execute(read)}

    base = rows("seen")
    assert base
    wait_until(lambda: rows("seen_by_a") == base == rows("seen_by_b"), 20, "the views have the rows of the table")
