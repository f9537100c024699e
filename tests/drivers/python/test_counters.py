# SPDX-License-Identifier: Apache-2.0
# Counters through the driver: types and sums, counter batches, many writers of one counter, what is refused.
from concurrent.futures import ThreadPoolExecutor

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.query import BatchStatement, BatchType, SimpleStatement

WRITERS, EACH = 16, 40


@pytest.fixture(scope="module")
def views(session):
    session.execute("CREATE TABLE views (page text, day int, total counter static, hits counter, misses counter, PRIMARY KEY (page, day))")
    return session


@pytest.mark.parametrize("version", [3, 4, 5])
def test_counts_up_and_down(connector, views, version):
    client = connector.session(views.keyspace, protocol_version=version)
    page = "p%d" % version
    add = client.prepare("UPDATE views SET hits = hits + ?, total = total + ? WHERE page = ? AND day = ?")
    take = client.prepare("UPDATE views SET hits = hits - ? WHERE page = ? AND day = ?")
    client.execute(add, (5, 5, page, 1))
    client.execute(add, (7, 7, page, 2))
    client.execute(take, (2, page, 1))
    rows = client.execute("SELECT day, hits, misses, total FROM views WHERE page = '%s'" % page).all()
    assert [tuple(row) for row in rows] == [(1, 3, None, 12), (2, 7, None, 12)]
    result = client.execute("SELECT sum(hits), max(hits) FROM views WHERE page = '%s'" % page)
    assert tuple(result.one()) == (10, 7)
    client.execute("DELETE hits FROM views WHERE page = '%s' AND day = 1" % page)
    # As in Cassandra a replica that has missed the deletion would count on from 3. After a read at ALL none has.
    gone = SimpleStatement("SELECT hits FROM views WHERE page = '%s' AND day = 1" % page, consistency_level=ConsistencyLevel.ALL)
    assert [row.hits for row in client.execute(gone)] in ([], [None])
    client.execute(add, (1, 0, page, 1))
    assert client.execute("SELECT hits FROM views WHERE page = '%s' AND day = 1" % page).one().hits == 1


def test_a_counter_batch_counts_in_several_partitions(connector, views):
    client = connector.session(views.keyspace)
    add = client.prepare("UPDATE views SET misses = misses + ? WHERE page = ? AND day = ?")
    batch = BatchStatement(BatchType.COUNTER)
    for number in range(20):
        batch.add(add, (number, "batch%d" % (number % 5), 1))
    client.execute(batch)
    found = {row.page: row.misses for row in client.execute("SELECT page, misses FROM views WHERE day = 1 ALLOW FILTERING")
             if row.page.startswith("batch")}
    assert found == {"batch%d" % i: 4 * i + 30 for i in range(5)}
    with pytest.raises(InvalidRequest, match="Cannot include a counter statement in a logged batch"):
        client.execute("BEGIN BATCH UPDATE views SET misses = misses + 1 WHERE page = 'x' AND day = 1; APPLY BATCH")


def test_many_writers_of_one_counter(connector, views):
    client = connector.session(views.keyspace)
    add = client.prepare("UPDATE views SET hits = hits + 1 WHERE page = 'many' AND day = 1")
    take = client.prepare("UPDATE views SET hits = hits - 3 WHERE page = 'many' AND day = 1")

    def work(writer):
        for _ in range(EACH):
            client.execute(take if writer % 4 == 0 else add)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))
    expected = EACH * (WRITERS * 3 // 4) - 3 * EACH * (WRITERS // 4)
    assert client.execute("SELECT hits FROM views WHERE page = 'many'").one().hits == expected


@pytest.mark.parametrize("level", [ConsistencyLevel.ONE, ConsistencyLevel.QUORUM, ConsistencyLevel.ALL])
def test_counts_at_each_level(views, level):
    statement = "UPDATE views SET hits = hits + 1 WHERE page = 'level%d' AND day = 1" % level
    for _ in range(3):
        views.execute(SimpleStatement(statement, consistency_level=level))
    read = SimpleStatement("SELECT hits FROM views WHERE page = 'level%d'" % level, consistency_level=ConsistencyLevel.QUORUM)
    assert views.execute(read).one().hits == 3


@pytest.mark.parametrize("statement, words", [
    ("INSERT INTO views (page, day, hits) VALUES ('x', 1, 1)", "use UPDATE instead"),
    ("UPDATE views SET hits = 1 WHERE page = 'x' AND day = 1", "not set"),
    ("UPDATE views USING TTL 5 SET hits = hits + 1 WHERE page = 'x' AND day = 1", "custom TTL"),
    ("UPDATE views USING TIMESTAMP 5 SET hits = hits + 1 WHERE page = 'x' AND day = 1", "custom timestamp"),
    ("ALTER TABLE views ADD name text", "in a counter table"),
])
def test_what_is_refused(views, statement, words):
    with pytest.raises(Exception, match=words):
        views.execute(statement)
