# SPDX-License-Identifier: Apache-2.0
# Tables of system and system_distributed about what has been: repairs, compactions, prepared statements, batches,
# and system_views.streaming. Each query goes to one node, which answers for itself alone.
import datetime
import itertools
import os
import random
import subprocess
import threading
import uuid

import pytest
from cassandra.cluster import ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import BatchStatement, BatchType, SimpleStatement
from cassandra.util import datetime_from_uuid1
from conftest import HOSTS, fresh_name, wait_until


def session_of(connector, host):
    return connector.session(hosts=[host], profile=ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([host])))


@pytest.fixture(scope="module")
def node(module_connector, tetrad):
    return session_of(module_connector, HOSTS[0])


@pytest.fixture(scope="module")
def order():
    """An order to the first node, through its admin port."""
    program = os.path.join(os.environ.get("TETRAD_BIN", ""), "tetractl")
    if not os.path.isabs(program):
        pytest.skip("no TETRAD_BIN")

    def give(*words):
        done = subprocess.run([program, "-h", HOSTS[0], *words], timeout=120, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip("orders are not taken: " + done.stderr.strip())

    return give


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)


def test_the_repairs_of_a_table_are_in_the_history(node, tetrad, order):
    tetrad.execute("CREATE TABLE IF NOT EXISTS repaired (k int PRIMARY KEY, v int)")
    for k in range(20):
        tetrad.execute("INSERT INTO repaired (k, v) VALUES (%s, 1)", (k,))
    keyspace = tetrad.keyspace
    query = "SELECT * FROM system_distributed.repair_history WHERE keyspace_name = %s AND columnfamily_name = 'repaired'"
    partitions = {
        row.id
        for row in node.execute("SELECT * FROM system_tetrad.partitions WHERE keyspace_name = %s", (keyspace,))
        if row.table_name == "repaired"
    }
    began = now() - datetime.timedelta(minutes=1)

    def is_repaired():
        # A logged batch that waits may keep the time of a repair below that of the one before.
        order("repair", keyspace, "repaired")
        return len(list(node.execute(query, (keyspace,)))) == len(partitions)

    wait_until(is_repaired, 60, "each partition has a repair")
    found = list(node.execute(query, (keyspace,)))
    assert len({row.id for row in found}) == len(partitions)
    ranges = sorted((int(row.range_begin), int(row.range_end)) for row in found)
    assert ranges[0][0] == -(2**63) and ranges[-1][1] == 2**63 - 1
    assert all(ranges[i][1] == ranges[i + 1][0] for i in range(len(ranges) - 1))
    for row in found:
        assert row.status == "SUCCESS" and row.id.version == 1
        assert began <= row.started_at <= now() + datetime.timedelta(minutes=1)
        assert abs(datetime_from_uuid1(row.id) - row.started_at) < datetime.timedelta(milliseconds=2)
        assert {str(address) for address in row.participants} <= set(HOSTS)
        assert {endpoint.rsplit(":", 1)[0] for endpoint in row.participants_v2} == {str(one) for one in row.participants}
        assert row.finished_at is None and row.coordinator is None


def test_the_repairs_are_the_same_on_all_nodes(module_connector, node, tetrad):
    query = "SELECT id FROM system_distributed.repair_history WHERE keyspace_name = %s AND columnfamily_name = 'repaired'"

    def ids(session):
        return {row.id for row in session.execute(query, (tetrad.keyspace,))}

    for host in HOSTS[1:]:
        other = session_of(module_connector, host)
        wait_until(lambda: ids(node) == ids(other), 30, "the metadata has come")


def prepared(node):
    return [tuple(row) for row in node.execute(SimpleStatement("SELECT * FROM system.prepared_statements", fetch_size=100))]


def test_what_was_prepared_is_listed_once_and_without_passwords(module_connector, node, tetrad):
    tetrad.execute("CREATE TABLE IF NOT EXISTS asked (k int PRIMARY KEY)")
    mark = fresh_name("mark")
    text = "SELECT k AS %s FROM %s.asked WHERE k = ?" % (mark, tetrad.keyspace)
    # Several connections are on several shards.
    sessions = [node] + [session_of(module_connector, HOSTS[0]) for _ in range(4)]
    for session in sessions:
        statement = session.prepare(text)
        session.execute(statement, (1,))
    other = session_of(module_connector, HOSTS[0])
    other.set_keyspace(tetrad.keyspace)
    other.prepare("SELECT k AS %s FROM asked WHERE k = ?" % mark)
    mine = [row for row in prepared(node) if mark in row[2]]
    assert sorted((row[1], row[2]) for row in mine if row[1] is None) == [(None, text)]
    assert [row[1] for row in mine if row[1] is not None] == [tetrad.keyspace]
    assert bytes(statement.query_id) in [bytes(row[0]) for row in mine]
    [one] = node.execute("SELECT query_string FROM system.prepared_statements WHERE prepared_id = %s", (bytes(statement.query_id),))
    assert one.query_string == text
    secret = fresh_name("secret")
    node.prepare("CREATE ROLE %s WITH PASSWORD = '%s'" % (mark, secret))
    listed = [row[2] for row in prepared(node)]
    assert "CREATE ROLE %s" % mark in listed
    assert not any(secret in text for text in listed)


def test_a_compaction_is_in_the_history(node, tetrad, order):
    tetrad.execute("CREATE TABLE IF NOT EXISTS compacted (k int PRIMARY KEY, v text)")
    insert = tetrad.prepare("INSERT INTO compacted (k, v) VALUES (?, ?)")
    history = lambda: {row.id: row for row in node.execute("SELECT * FROM system.compaction_history")}  # noqa: E731
    before = history()
    began = now() - datetime.timedelta(minutes=1)
    for _ in range(2):
        for k in range(100):
            tetrad.execute(insert, (k, "v" * 200))
        order("flush", tetrad.keyspace)
    order("compact", tetrad.keyspace)
    wait_until(lambda: set(history()) - set(before), 30, "a compaction has ended")
    found = history()
    assert len(found) <= 1000
    for id, row in found.items():
        assert row.bytes_in > 0 and row.bytes_out >= 0 and row.columnfamily_name == "default"
        assert row.keyspace_name is None and row.rows_merged is None
        assert dict(row.compaction_properties) == {"compaction_type": "Compaction"}
        assert abs(datetime_from_uuid1(id) - row.compacted_at) < datetime.timedelta(milliseconds=2)
        if id not in before:
            assert began <= row.compacted_at <= now() + datetime.timedelta(minutes=1)


def test_a_batch_of_another_node_is_listed_while_it_waits(module_connector, node, tetrad):
    if len(HOSTS) < 3:
        pytest.skip("a batch waits on two nodes beside its coordinator")
    tetrad.execute("CREATE TABLE IF NOT EXISTS batched (k int PRIMARY KEY, v text)")
    others = [session_of(module_connector, host) for host in HOSTS[1:]]
    ended = threading.Event()

    def write(session, first):
        insert = session.prepare("INSERT INTO %s.batched (k, v) VALUES (?, ?)" % tetrad.keyspace)
        while not ended.is_set():
            batch = BatchStatement(batch_type=BatchType.LOGGED)
            for k in range(20):
                batch.add(insert, (first + k, "v" * 100))
            session.execute(batch)

    threads = [threading.Thread(target=write, args=(others[i % len(others)], 100 * i)) for i in range(6)]
    for thread in threads:
        thread.start()
    seen = []
    try:
        wait_until(lambda: seen.extend(node.execute("SELECT * FROM system.batches")) or seen, 60, "a batch is seen")
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    for row in seen:
        assert isinstance(row.id, uuid.UUID) and row.id.version == 1 and row.version == 1 and row.mutations is None
        assert abs(datetime_from_uuid1(row.id) - now()) < datetime.timedelta(minutes=5)
    wait_until(lambda: not list(node.execute("SELECT * FROM system.batches")), 60, "all are done")


def test_what_comes_to_a_node_is_in_streaming(node):
    for row in node.execute("SELECT * FROM system_views.streaming"):
        assert row.operation == "Relocation" and row.status in ("start", "success") and row.follower is False
        assert row.bytes_received >= 0 and row.bytes_sent == 0 == row.bytes_to_send and row.duration_millis >= 0
        assert (row.progress_percentage == 100) == (row.status == "success") == (row.status_success_timestamp is not None)
        assert {peer.rsplit(":", 1)[0] for peer in row.peers} <= set(HOSTS)
        assert row.id.version == 1 and row.status_init_timestamp <= row.last_updated_at


def test_the_largest_partition_of_a_table_is_known_once_it_is_alone(node, tetrad, order):
    tetrad.execute("CREATE TABLE IF NOT EXISTS grown (k int, c int, v blob, PRIMARY KEY (k, c)) WITH tetrad_max_partition_mb = 4")
    insert = tetrad.prepare("INSERT INTO grown (k, c, v) VALUES (?, ?, ?)")
    for k in range(2, 10):
        tetrad.execute(insert, (k, 0, b"x"))
    rows = iter(range(60))
    query = "SELECT mebibytes FROM system_views.max_partition_size WHERE keyspace_name = %s AND table_name = 'grown'"

    def found():
        return [row.mebibytes for row in node.execute(query, (tetrad.keyspace,))]

    assert not found()

    def is_known():
        for c in itertools.islice(rows, 10):
            tetrad.execute(insert, (1, c, random.randbytes(1 << 19)))
        order("flush", tetrad.keyspace)
        return found()

    wait_until(is_known, 120, "the partition is alone")
    assert 1 <= found()[0] <= 60
