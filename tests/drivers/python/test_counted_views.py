# SPDX-License-Identifier: Apache-2.0
# Tables of system_views about what a node has counted: messages to and from others, batches, tombstones of reads.
import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement
from conftest import HOSTS, wait_until

needs_peers = pytest.mark.skipif(len(HOSTS) < 2, reason="one node has no peers")


@pytest.fixture(scope="module")
def node(module_connector):
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(HOSTS[:1]), request_timeout=30)
    return module_connector.session(hosts=HOSTS[:1], profile=profile)


@pytest.fixture(scope="module")
def counted(tetrad):
    tetrad.execute("CREATE TABLE IF NOT EXISTS counted (k int, c int, v int, w int, PRIMARY KEY (k, c))")
    tetrad.execute("CREATE TABLE IF NOT EXISTS counters (k int PRIMARY KEY, n counter)")
    return tetrad.keyspace


def peers(node, table):
    return {str(row.address): row for row in node.execute(f"SELECT * FROM system_views.{table}")}


def counted_over_100(node, table, query):
    """What the table says of each other node before and after a hundred times the query at ALL."""
    wait_until(lambda: set(peers(node, table)) == set(HOSTS[1:]), 30, "a row for each other node")
    before = peers(node, table)
    for _ in range(100):
        node.execute(SimpleStatement(query, consistency_level=ConsistencyLevel.ALL))
    return before, peers(node, table)


@needs_peers
def test_a_node_counts_what_it_sends_to_each_other_one(node, counted):
    insert = f"INSERT INTO {counted}.counted (k, c, v) VALUES (1, 1, 1)"
    before, after = counted_over_100(node, "internode_outbound", insert)
    assert sum(row.sent_count for row in after.values()) >= sum(row.sent_count for row in before.values()) + 100
    for address, row in after.items():
        assert row.port > 0 and row.dc and row.rack
        assert row.sent_count >= before[address].sent_count and row.sent_bytes > 80 * row.sent_count
        assert 0 < row.active_connections <= row.successful_connection_attempts <= row.connection_attempts
        assert row.pending_count >= 0 and row.pending_bytes == row.using_bytes
        assert row.error_count >= 0 and row.overload_count >= 0 and row.expired_count == 0 == row.expired_bytes
        assert row.using_reserve_bytes is None


@needs_peers
def test_a_node_counts_what_comes_from_each_other_one(node, counted):
    read = f"SELECT v FROM {counted}.counted WHERE k = 1"
    before, after = counted_over_100(node, "internode_inbound", read)
    assert sum(row.received_count for row in after.values()) >= sum(row.received_count for row in before.values()) + 100
    for address, row in after.items():
        assert row.received_count >= before[address].received_count and row.received_bytes > 80 * row.received_count
        assert (row.processed_count, row.processed_bytes) == (row.received_count, row.received_bytes)
        assert row.error_count == row.corrupt_frames_recovered == row.corrupt_frames_unrecovered == 0
        assert row.scheduled_count == row.throttled_count == row.throttled_nanos == 0
        assert row.expired_count is None and row.using_bytes is None
    [address, row] = next(iter(after.items()))
    query = "SELECT dc, rack FROM system_views.internode_inbound WHERE address = %s AND port = %s"
    assert [tuple(found) for found in node.execute(query, (address, row.port))] == [(row.dc, row.rack)]


@needs_peers
def test_attempts_to_reach_a_node_that_is_down_are_counted(node, counted, node_control):
    def row():
        return peers(node, "internode_outbound")[node_control.address]

    wait_until(lambda: node_control.address in peers(node, "internode_outbound"), 30, "it is a peer")
    before = row()
    node_control.kill()
    wait_until(
        lambda: row().active_connections == 0 and row().connection_attempts > before.connection_attempts,
        60,
        "an attempt fails",
    )
    away = row()
    assert away.error_count > before.error_count and away.sent_count >= before.sent_count
    node_control.start()
    wait_until(lambda: row().successful_connection_attempts > before.successful_connection_attempts, 120, "it is back")
    back = row()
    assert back.connection_attempts > back.successful_connection_attempts and back.active_connections > 0


def batch_metrics(node):
    return {row.name: row for row in node.execute("SELECT * FROM system_views.batch_metrics")}


def test_partitions_of_batches_are_counted_by_kind(node, counted):
    names = {f"partitions_per_{kind}_batch" for kind in ("counter", "logged", "unlogged")}
    assert set(batch_metrics(node)) == names
    add = "UPDATE {}.counters SET n = n + 1 WHERE k = {}; "
    put = "INSERT INTO {}.counted (k, c, v) VALUES ({}, 1, 1); "
    for kind, begin, part, partitions in [
        ("counter", "BEGIN COUNTER BATCH ", add, 23),
        ("logged", "BEGIN BATCH ", put, 37),
        ("unlogged", "BEGIN UNLOGGED BATCH ", put, 51),
    ]:
        parts = [part.format(counted, k) for k in range(partitions)]
        text = begin + "".join(parts + parts) + "APPLY BATCH"  # two parts of each partition
        for _ in range(10):
            node.execute(text)
        row = batch_metrics(node)[f"partitions_per_{kind}_batch"]
        assert partitions <= row.max
        assert 1 <= row.p50th <= row.p99th <= row.p999th <= row.max


def test_the_tombstones_of_reads_are_counted(node, counted):
    def figures():
        query = "SELECT * FROM system_views.tombstones_per_read WHERE keyspace_name = %s AND table_name = 'pits'"
        [row] = node.execute(query, (counted,))
        return row

    node.execute(f"CREATE TABLE IF NOT EXISTS {counted}.pits (k int, c int, v int, w int, PRIMARY KEY (k, c))")
    fresh = figures()
    assert (fresh.count, fresh.max, fresh.p50th, fresh.p99th) == (0, 0, 0, 0)
    # At ALL, since then this node has read what it is a replica of.
    reads = [SimpleStatement(f"SELECT * FROM {counted}.pits WHERE k = {k}", consistency_level=ConsistencyLevel.ALL) for k in range(30)]
    for k in range(30):
        node.execute(f"INSERT INTO {counted}.pits (k, c, v) VALUES ({k}, 1, 1)")
    for read in reads:
        node.execute(read)
    assert figures().count > 0 and figures().max == 0
    for k in range(30):
        for c in range(40):
            what = "w" if c % 2 else ""  # a cell, or the row
            node.execute(f"DELETE {what} FROM {counted}.pits WHERE k = {k} AND c = {100 + c}")
    for _ in range(10):
        for read in reads:
            assert [row.c for row in node.execute(read)] == [1]
    found = figures()
    assert found.count >= 10
    # A statement may read a partition in two parts, each of which counts.
    assert 10 <= found.p50th <= found.p99th <= found.max <= 50
    assert found.max >= 20
