# SPDX-License-Identifier: Apache-2.0
# TRUNCATE beside requests of the same table: none of them fails, but for conditional ones of which nobody knows whether they were
# decided; and what was written after it stays.
import threading
import time

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import BatchStatement, BatchType, SimpleStatement


@pytest.fixture
def tables(session):
    session.execute("CREATE TABLE truncated (k int PRIMARY KEY, v text)")
    session.execute("CREATE TABLE truncated_n (k int PRIMARY KEY, n counter)")


def requests(session):
    """Each kind of request by name."""
    insert = session.prepare("INSERT INTO truncated (k, v) VALUES (?, 'x')")
    insert.consistency_level = ConsistencyLevel.QUORUM
    point = session.prepare("SELECT v FROM truncated WHERE k = ?")
    once = session.prepare("INSERT INTO truncated (k, v) VALUES (?, 'once') IF NOT EXISTS")

    def batch(k):
        both = BatchStatement(BatchType.LOGGED)
        both.add(insert, (k,))
        both.add(insert, (k + 1,))
        session.execute(both)

    return {
        "write": lambda k: session.execute(insert, (k,)),
        "text": lambda k: session.execute(SimpleStatement("INSERT INTO truncated (k, v) VALUES (%d, 'y')" % k)),
        "batch": batch,
        "point": lambda k: session.execute(point, (k,)),
        "scan": lambda k: list(session.execute("SELECT * FROM truncated")),
        "count": lambda k: session.execute("SELECT count(*) FROM truncated").one(),
        "conditional": lambda k: session.execute(once, (k,)),
        "counter": lambda k: session.execute("UPDATE truncated_n SET n = n + 1 WHERE k = %d" % k),
    }


def test_requests_beside_truncate(session, tables):
    failed, done, stop = [], {}, threading.Event()

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

    threads = [threading.Thread(target=run, args=one) for one in requests(session).items()]
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
    # What begins after a TRUNCATE has ended is there, whichever node it goes to.
    for k in range(20):
        session.execute("TRUNCATE truncated")
        session.execute(SimpleStatement("INSERT INTO truncated (k, v) VALUES (%d, 'z')" % k, consistency_level=ConsistencyLevel.QUORUM))
        read = SimpleStatement("SELECT k FROM truncated", consistency_level=ConsistencyLevel.QUORUM)
        assert [row.k for row in session.execute(read)] == [k]
