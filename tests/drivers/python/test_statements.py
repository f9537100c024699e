# SPDX-License-Identifier: Apache-2.0
# Statements: prepared ones, paging, batches, timestamps, errors, warnings.
import time

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, ProtocolVersion
from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra.protocol import SyntaxException
from cassandra.query import BatchStatement, BatchType, SimpleStatement, dict_factory
from conftest import HOSTS, wait_until


@pytest.fixture(scope="module")
def wide(session):
    """100 rows in each of 5 partitions."""
    session.execute("CREATE TABLE wide (k int, c int, v text, s int static, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO wide (k, c, v, s) VALUES (?, ?, ?, ?)")
    futures = [session.execute_async(insert, (k, c, "v%d.%d" % (k, c), 10 * k)) for k in range(5) for c in range(100)]
    for future in futures:
        future.result()
    return session


def test_a_prepared_statement_knows_its_key_and_its_columns(session):
    session.execute("CREATE TABLE known (a int, b text, c int, v double, PRIMARY KEY ((a, b), c))")
    insert = session.prepare("INSERT INTO known (v, c, b, a) VALUES (?, ?, ?, ?)")
    assert insert.routing_key_indexes == [3, 2]
    assert [column.name for column in insert.column_metadata] == ["v", "c", "b", "a"]
    assert [column.type.typename for column in insert.column_metadata] == ["double", "int", "varchar", "int"] or [
        column.type.typename for column in insert.column_metadata
    ] == ["double", "int", "text", "int"]
    named = session.prepare("SELECT * FROM known WHERE a = :first AND b = :second AND c IN :several LIMIT :most")
    assert [column.name for column in named.column_metadata] == ["first", "second", "several", "most"]
    session.execute(insert, {"a": 1, "b": "x", "c": 2, "v": 0.5})
    rows = session.execute(named, {"first": 1, "second": "x", "several": [1, 2, 3], "most": 10})
    assert [tuple(row) for row in rows] == [(1, "x", 2, 0.5)]


def test_a_prepared_statement_survives_a_change_of_its_table(session):
    session.execute("CREATE TABLE changing (k int PRIMARY KEY, v int)")
    select = session.prepare("SELECT * FROM changing WHERE k = ?")
    session.execute("INSERT INTO changing (k, v) VALUES (1, 2)")
    assert tuple(session.execute(select, (1,)).one()) == (1, 2)
    session.execute("ALTER TABLE changing ADD w text")
    session.execute("UPDATE changing SET w = 'new' WHERE k = 1")
    row = session.execute(select, (1,)).one()
    if session.cluster.protocol_version >= ProtocolVersion.V5:
        assert (row.k, row.v, row.w) == (1, 2, "new")
    assert session.execute("SELECT * FROM changing WHERE k = 1").one().w == "new"


def test_a_prepared_statement_works_on_every_node(connector, session):
    from cassandra.cluster import ExecutionProfile
    from cassandra.policies import WhiteListRoundRobinPolicy

    session.execute("CREATE TABLE everywhere (k int PRIMARY KEY, v int)")
    ids = set()
    for number, host in enumerate(HOSTS):
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([host]), consistency_level=ConsistencyLevel.QUORUM
        )
        client = connector.session(session.keyspace, hosts=[host], profile=profile)
        insert = client.prepare("INSERT INTO everywhere (k, v) VALUES (?, ?)")
        ids.add(insert.query_id)
        client.execute(insert, (number, number))
    assert len(ids) == 1
    assert len(list(session.execute("SELECT * FROM everywhere"))) == len(HOSTS)


@pytest.mark.parametrize("size", [1, 7, 100, 499, 500, 5000])
def test_pages_hold_every_row_once_and_in_order(wide, size):
    statement = SimpleStatement("SELECT k, c, v FROM wide", fetch_size=size)
    result = wide.execute(statement)
    pages = [len(result.current_rows)]
    rows = list(result.current_rows)
    while result.has_more_pages:
        result.fetch_next_page()
        pages.append(len(result.current_rows))
        rows.extend(result.current_rows)
    assert len(rows) == 500 and len({(row.k, row.c) for row in rows}) == 500
    assert all(page == size for page in pages[:-1]) and pages[0] == min(size, 500)
    for key in range(5):
        assert [row.c for row in rows if row.k == key] == list(range(100))


def test_pages_go_on_in_another_session_and_backwards(wide, connector):
    query = "SELECT c FROM wide WHERE k = 3 ORDER BY c DESC"
    first = wide.execute(SimpleStatement(query, fetch_size=30))
    rows, state = [row.c for row in first.current_rows], first.paging_state
    other = connector.session(wide.keyspace)
    while state:
        page = other.execute(SimpleStatement(query, fetch_size=30), paging_state=state)
        rows.extend(row.c for row in page.current_rows)
        state = page.paging_state
    assert rows == list(range(99, -1, -1))


def test_limits_and_distinct_page_as_they_should(wide):
    def read(query, size):
        return [tuple(row) for row in wide.execute(SimpleStatement(query, fetch_size=size))]

    assert len(read("SELECT c FROM wide LIMIT 250", 40)) == 250
    assert len(read("SELECT c FROM wide PER PARTITION LIMIT 3", 2)) == 15
    assert len(read("SELECT c FROM wide PER PARTITION LIMIT 3 LIMIT 7", 2)) == 7
    assert sorted(read("SELECT DISTINCT k, s FROM wide", 2)) == [(k, 10 * k) for k in range(5)]
    assert read("SELECT c FROM wide WHERE k = 2 AND c IN (5, 3, 99, 1000)", 1) == [(3,), (5,), (99,)]


def test_restrictions_on_a_compound_key(session):
    session.execute("CREATE TABLE compound (k int, a int, b int, v int, PRIMARY KEY (k, a, b))")
    for a in range(4):
        for b in range(4):
            session.execute("INSERT INTO compound (k, a, b, v) VALUES (0, %d, %d, %d)" % (a, b, 10 * a + b))

    def values(where):
        return [row.v for row in session.execute("SELECT v FROM compound WHERE k = 0 AND " + where)]

    assert values("a = 2") == [20, 21, 22, 23]
    assert values("a = 2 AND b > 1") == [22, 23]
    assert values("(a, b) > (1, 2) AND (a, b) <= (2, 1)") == [13, 20, 21]
    assert values("(a, b) IN ((3, 3), (0, 1))") == [1, 33]
    assert values("a IN (3, 1) AND b = 2") == [12, 32]
    assert values("a >= 1 AND a < 2") == [10, 11, 12, 13]
    session.execute("DELETE FROM compound WHERE k = 0 AND a = 1 AND b >= 2")
    session.execute("DELETE FROM compound WHERE k = 0 AND a > 2")
    assert values("a >= 1") == [10, 11, 20, 21, 22, 23]
    session.execute("DELETE FROM compound WHERE k = 0")
    assert list(session.execute("SELECT * FROM compound")) == []


@pytest.mark.parametrize("batch_type", [BatchType.UNLOGGED, BatchType.LOGGED])
def test_a_batch_in_one_partition_is_applied_whole(session, batch_type):
    session.execute("CREATE TABLE IF NOT EXISTS batched (k int, c int, v text, s text static, PRIMARY KEY (k, c))")
    session.execute("TRUNCATE batched", timeout=60)
    insert = session.prepare("INSERT INTO batched (k, c, v) VALUES (?, ?, ?)")
    session.execute(insert, (1, 99, "to go"))
    batch = BatchStatement(batch_type=batch_type)
    for c in range(20):
        batch.add(insert, (1, c, "v%d" % c))
    batch.add(SimpleStatement("UPDATE batched SET s = 'static' WHERE k = 1"))
    batch.add(SimpleStatement("DELETE FROM batched WHERE k = 1 AND c = %s"), (99,))
    session.execute(batch)
    rows = list(session.execute("SELECT c, v, s FROM batched WHERE k = 1"))
    assert [tuple(row) for row in rows] == [(c, "v%d" % c, "static") for c in range(20)]
    session.execute("BEGIN UNLOGGED BATCH USING TIMESTAMP 1 INSERT INTO batched (k, c, v) VALUES (2, 1, 'old'); APPLY BATCH")
    assert session.execute("SELECT writetime(v) FROM batched WHERE k = 2").one()[0] == 1
    session.execute("BEGIN BATCH APPLY BATCH")


def test_an_unlogged_batch_over_partitions_writes_them_all(session):
    session.execute("CREATE TABLE spread (k int PRIMARY KEY, v int)")
    insert = session.prepare("INSERT INTO spread (k, v) VALUES (?, ?)")
    batch = BatchStatement(batch_type=BatchType.UNLOGGED)
    for key in range(30):
        batch.add(insert, (key, key))
    session.execute(batch)
    assert session.execute("SELECT count(*) FROM spread").one()[0] == 30


def test_timestamps_decide_and_ttl_counts_down(session):
    session.execute("CREATE TABLE timed (k int PRIMARY KEY, v int, w int)")
    session.execute("INSERT INTO timed (k, v) VALUES (1, 10) USING TIMESTAMP 1000")
    session.execute("INSERT INTO timed (k, v) VALUES (1, 9) USING TIMESTAMP 999")
    assert tuple(session.execute("SELECT v, writetime(v) FROM timed WHERE k = 1").one()) == (10, 1000)
    session.execute("UPDATE timed USING TIMESTAMP 1000 SET v = 11 WHERE k = 1")  # a tie: the larger value
    assert session.execute("SELECT v FROM timed WHERE k = 1").one().v == 11
    session.execute("DELETE v FROM timed USING TIMESTAMP 1000 WHERE k = 1")  # a tie: the tombstone
    assert session.execute("SELECT v FROM timed WHERE k = 1").one().v is None
    session.execute("INSERT INTO timed (k, v, w) VALUES (2, 1, 2) USING TTL 1000")
    left = session.execute("SELECT ttl(v), ttl(w) FROM timed WHERE k = 2").one()
    assert 990 <= left[0] <= 1000 and 990 <= left[1] <= 1000
    session.execute("UPDATE timed USING TTL 1 SET w = 3 WHERE k = 2")
    time.sleep(2.1)
    assert tuple(session.execute("SELECT v, w, ttl(w) FROM timed WHERE k = 2").one()) == (1, None, None)
    session.execute("INSERT INTO timed (k, v) VALUES (3, 1) USING TTL 1")
    time.sleep(2.1)
    assert list(session.execute("SELECT * FROM timed WHERE k = 3")) == []


def test_aggregates_functions_and_token(wide):
    row = wide.execute("SELECT count(*), min(c), max(c), sum(c), avg(c) FROM wide WHERE k = 1").one()
    assert tuple(row) == (100, 0, 99, 4950, 49)
    assert wide.execute("SELECT token(k), c FROM wide WHERE k = 1 LIMIT 1").one()[0] == -4069959284402364209
    row = wide.execute("SELECT now(), uuid(), blobasint(intasblob(c)) AS same FROM wide WHERE k = 1 AND c = 7").one()
    assert row[0].version == 1 and row[1].version == 4 and row.same == 7
    lower = wide.execute("SELECT count(*) FROM wide WHERE token(k) <= 0").one()[0]
    upper = wide.execute("SELECT count(*) FROM wide WHERE token(k) > 0").one()[0]
    assert lower + upper == 500


def test_allow_filtering_is_asked_for_and_then_works(wide):
    with pytest.raises(InvalidRequest, match="ALLOW FILTERING"):
        wide.execute("SELECT * FROM wide WHERE v = 'v2.7'")
    rows = list(wide.execute("SELECT k, c FROM wide WHERE v = 'v2.7' ALLOW FILTERING"))
    assert [tuple(row) for row in rows] == [(2, 7)]
    assert len(list(wide.execute("SELECT k FROM wide WHERE c = 5 ALLOW FILTERING"))) == 5


@pytest.mark.parametrize("level", ["ONE", "QUORUM", "ALL", "LOCAL_ONE", "LOCAL_QUORUM", "EACH_QUORUM"])
def test_consistency_levels_write_and_read(wide, level):
    value = getattr(ConsistencyLevel, level)
    wide.execute(
        SimpleStatement("INSERT INTO wide (k, c, v) VALUES (77, %s, 'level')", consistency_level=value), (value,)
    )
    query = SimpleStatement("SELECT v FROM wide WHERE k = 77 AND c = %s", consistency_level=value)

    def arrived():  # ONE promises nothing about the replica that is asked next
        row = wide.execute(query, (value,)).one()
        return row is not None and row.v == "level"

    assert arrived() or level in ("ONE", "LOCAL_ONE")
    wait_until(arrived, 5, "the write is read back")
    wide.execute("DELETE FROM wide WHERE k = 77 AND c = %s", (value,))


def test_any_writes_and_does_not_read_and_serial_reads(wide):
    wide.execute(SimpleStatement("INSERT INTO wide (k, c) VALUES (78, 1)", consistency_level=ConsistencyLevel.ANY))
    with pytest.raises(InvalidRequest, match="ANY ConsistencyLevel is only supported for writes"):
        wide.execute(SimpleStatement("SELECT * FROM wide WHERE k = 78", consistency_level=ConsistencyLevel.ANY))
    serial = SimpleStatement("SELECT c FROM wide WHERE k = 78", consistency_level=ConsistencyLevel.SERIAL)
    wait_until(lambda: wide.execute(serial).one() is not None, 5, "the write is read back")
    wide.execute("DELETE FROM wide WHERE k = 78")


@pytest.mark.parametrize(
    "statement,error,words",
    [
        ("SELEC * FROM wide", SyntaxException, "line 1:0 no viable alternative at input 'SELEC'"),
        ("SELECT * FROM wide WHERE", SyntaxException, "no viable alternative at input '<EOF>'"),
        ("SELECT * FROM nosuchtable", InvalidRequest, "table nosuchtable does not exist"),
        ("SELECT * FROM nosuchkeyspace.t", InvalidRequest, "keyspace nosuchkeyspace does not exist"),
        ("SELECT nosuchcolumn FROM wide", InvalidRequest, "Undefined column name nosuchcolumn"),
        ("SELECT * FROM wide WHERE k = 'text'", InvalidRequest, "Invalid STRING constant (text)"),
        ("INSERT INTO wide (k) VALUES (1)", InvalidRequest, "Some clustering keys are missing: c"),
        ("INSERT INTO wide (k, v) VALUES (1, 'x')", InvalidRequest, "Some clustering keys are missing: c"),
        ("INSERT INTO wide (c, v) VALUES (1, 'x')", InvalidRequest, "Some partition key parts are missing: k"),
        ("INSERT INTO wide (k, c) VALUES (1)", InvalidRequest, "Unmatched column names/values"),
        ("UPDATE wide SET c = 1 WHERE k = 1", InvalidRequest, "PRIMARY KEY part c found in SET part"),
        ("SELECT * FROM wide WHERE k = 1 AND k = 2", InvalidRequest, "more than one relation"),
        ("SELECT * FROM wide ORDER BY c", InvalidRequest, "ORDER BY is only supported when the partition key"),
        ("SELECT * FROM wide WHERE k = 1 ORDER BY v", InvalidRequest, "Order by is currently only supported on the clustered columns"),
        ("SELECT * FROM wide LIMIT 0", InvalidRequest, "LIMIT must be strictly positive"),
        ("SELECT nosuchfunction(c) FROM wide", InvalidRequest, "Unknown function 'nosuchfunction'"),
        ("INSERT INTO wide (k, c) VALUES (1, 2) USING TTL -1", InvalidRequest, "A TTL must be greater or equal to 0"),
    ],
)
def test_errors_have_cassandras_code_and_words(wide, statement, error, words):
    with pytest.raises(error) as raised:
        wide.execute(statement)
    assert words in str(raised.value)


def test_values_of_a_wrong_length_are_refused(wide):
    insert = wide.prepare("INSERT INTO wide (k, c, v) VALUES (?, ?, ?)")
    bound = insert.bind((1, 2, "x"))
    bound.values[1] = b"\x00\x01"
    with pytest.raises(InvalidRequest, match="Expected 4 or 0 byte int \\(2\\)"):
        wide.execute(bound)


def test_a_scan_that_aggregates_warns(wide):
    future = wide.execute_async("SELECT max(c) FROM wide")
    assert future.result().one()[0] == 99
    assert any("Aggregation query used without partition key" in warning for warning in future.warnings or [])


def test_positional_named_and_dict_rows(wide):
    assert wide.execute("SELECT v FROM wide WHERE k = %s AND c = %s", (1, 2)).one().v == "v1.2"
    assert wide.execute("SELECT v FROM wide WHERE k = %(k)s AND c = %(c)s", {"k": 1, "c": 3}).one().v == "v1.3"
    profile = wide.execution_profile_clone_update(
        EXEC_PROFILE_DEFAULT,
        row_factory=dict_factory,
    )
    rows = list(wide.execute("SELECT c, v AS value FROM wide WHERE k = 1 AND c < 2", execution_profile=profile))
    assert rows == [{"c": 0, "value": "v1.0"}, {"c": 1, "value": "v1.1"}]
