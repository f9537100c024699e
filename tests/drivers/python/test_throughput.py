# SPDX-License-Identifier: Apache-2.0
# The options that limit the throughput of tables and keyspaces, and the physical partitions they ask for. Tetrad's own.
import re
import time

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import ExecutionProfile
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.protocol import ConfigurationException, OverloadedErrorMessage
from conftest import fresh_name, wait_until

KEY = "cosmosdb_provisioned_throughput"


def ranges(session, table):
    """The ends of its physical partitions."""
    rows = session.execute("SELECT table_name, range_start, range_end FROM system_tetrad.partitions WHERE keyspace_name = %s", (session.keyspace,))
    return sorted((row.range_start, row.range_end) for row in rows if row.table_name == table)


def options_of(session, table):
    row = session.execute("SELECT * FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s", (session.keyspace, table)).one()
    return row.cosmosdb_provisioned_throughput, row.cosmosdb_autoscale_max_throughput


def test_more_throughput_is_more_physical_partitions_and_every_row_stays(tetrad):
    tetrad.execute("CREATE TABLE grows (k int PRIMARY KEY, v int) WITH cosmosdb_provisioned_throughput = 45000")
    widths = [end - start for start, end in ranges(tetrad, "grows")]
    assert len(widths) == 5
    assert max(widths) - min(widths) <= 2
    insert = tetrad.prepare("INSERT INTO grows (k, v) VALUES (?, ?)")
    select = tetrad.prepare("SELECT v FROM grows WHERE k = ?")
    for future in [tetrad.execute_async(insert, (k, -k)) for k in range(1000)]:
        future.result()
    tetrad.execute("ALTER TABLE grows WITH cosmosdb_provisioned_throughput = 100000")
    reads = 0

    def has_ten():
        nonlocal reads
        assert tetrad.execute(select, (reads % 1000,)).one().v == -(reads % 1000)
        reads += 1
        return len(ranges(tetrad, "grows")) >= 10

    wait_until(has_ten, 10, "ten physical partitions")
    assert tetrad.execute("SELECT count(*) FROM grows").one()[0] == 1000
    for k, future in [(k, tetrad.execute_async(select, (k,))) for k in range(1000)]:
        assert future.result().one().v == -k
    tetrad.execute("ALTER TABLE grows WITH cosmosdb_provisioned_throughput = 0")
    assert options_of(tetrad, "grows") == (None, None)
    assert len(ranges(tetrad, "grows")) == 10


def test_the_custom_payload_stands_for_the_option(tetrad):
    tetrad.execute("CREATE TABLE given (k int PRIMARY KEY)", custom_payload={KEY: b"25000"})
    assert options_of(tetrad, "given") == (25000, None)
    assert len(ranges(tetrad, "given")) == 3
    tetrad.execute("ALTER TABLE given WITH cosmosdb_autoscale_max_throughput = 2000", custom_payload={KEY: b"500"})
    assert options_of(tetrad, "given") == (None, 2000)
    altered = tetrad.prepare("ALTER TABLE given WITH comment = 'given'")
    tetrad.execute(altered, custom_payload={KEY: b"600"})
    assert options_of(tetrad, "given") == (600, None)
    tetrad.execute("INSERT INTO given (k) VALUES (1)", custom_payload={KEY: b"bad"})
    for value in (b"bad", b"450", b"", b"\xff\x00"):
        with pytest.raises(ConfigurationException, match="cosmosdb_provisioned_throughput must be 0, which is no limit, or a multiple of 100"):
            tetrad.execute("CREATE TABLE refused (k int PRIMARY KEY)", custom_payload={KEY: value})


def test_a_keyspace_with_a_throughput_needs_no_replication_and_the_driver_reads_it(tetrad, connector):
    name = fresh_name("drv_python_ru")
    future = tetrad.execute_async("CREATE KEYSPACE %s WITH cosmosdb_autoscale_max_throughput=5000" % name)
    future.result()
    try:
        assert not future.warnings
        tetrad.execute("CREATE TABLE %s.t (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400" % name)
        metadata = connector.session().cluster.metadata.keyspaces[name]
        assert metadata.replication_strategy.export_for_schema() == "{'class': 'SimpleStrategy', 'replication_factor': '4'}"
        assert list(metadata.tables) == ["t"]
        described = [row.create_statement for row in tetrad.execute("DESCRIBE KEYSPACE %s" % name)]
        assert "AND cosmosdb_autoscale_max_throughput = 5000;" in described[0]
        assert "\n    AND cosmosdb_provisioned_throughput = 400\n" in described[1]
        tetrad.execute("DROP KEYSPACE %s" % name)
        for text in described:
            tetrad.execute(text)
        assert [row.create_statement for row in tetrad.execute("DESCRIBE KEYSPACE %s" % name)] == described
    finally:
        tetrad.execute("DROP KEYSPACE IF EXISTS %s" % name)


def usage(session, table):
    return session.execute("SELECT * FROM system_tetrad.throughput WHERE keyspace_name = %s AND table_name = %s", (session.keyspace, table)).all()


def write_for(session, table, seconds):
    """As fast as it goes, and when a write is refused, after as long as the answer says; how many writes were taken and refused."""
    insert = session.prepare("INSERT INTO %s (k, v) VALUES (?, 0)" % table)
    taken = refused = 0
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        waits = []
        for future in [session.execute_async(insert, (k,)) for k in range(64)]:
            try:
                future.result()
                taken += 1
            except OverloadedErrorMessage as e:
                refused += 1
                waits.append(int(re.search(r"RetryAfterMs=(\d+)", str(e))[1]))
        time.sleep(max(waits, default=0) / 1000)
    return taken, refused


def test_who_writes_beyond_the_throughput_is_refused_and_the_use_is_shown(tetrad, connector):
    tetrad.execute("CREATE TABLE busy (k int PRIMARY KEY, v int) WITH cosmosdb_autoscale_max_throughput = 1000")
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), retry_policy=FallthroughRetryPolicy(),
                               consistency_level=ConsistencyLevel.QUORUM, request_timeout=20)
    session = connector.session(tetrad.keyspace, profile=profile)
    began = time.monotonic()
    taken, refused = write_for(session, "busy", 4)
    took = time.monotonic() - began
    # Each costs five request units. What the bucket held, what flowed in, and slices that are overdrawn.
    assert taken * 5 <= 1000 * (took + 1) + 200
    assert taken * 5 >= 1000 * 2
    assert refused > 0

    def shown():
        rows = usage(tetrad, "busy")
        return sum(row.refused for row in rows) >= 1 and max(row.booked_ru_per_s for row in rows) >= 300

    wait_until(shown, 30, "the use of the throughput")
    for row in usage(tetrad, "busy"):
        assert row.autoscaled
        assert row.provisioned_ru_per_s >= 100
        assert row.booked_ru_per_s * 10 >= row.provisioned_ru_per_s
        assert row.hour is not None
    wait_until(lambda: sum(row.used_ru_per_s for row in usage(tetrad, "busy")) == 0, 30, "nothing is used any more")


def test_a_provisioned_throughput_is_booked_as_a_whole(tetrad):
    tetrad.execute("CREATE TABLE calm (k int PRIMARY KEY, v int) WITH cosmosdb_provisioned_throughput = 25000")
    rows = usage(tetrad, "calm")
    assert len(rows) == 3
    for row in rows:
        assert not row.autoscaled
        assert (row.provisioned_ru_per_s, row.booked_ru_per_s, row.used_ru_per_s, row.refused) == (8333, 8333, 0, 0)
    name = fresh_name("drv_python_ru")
    tetrad.execute("CREATE KEYSPACE %s WITH cosmosdb_autoscale_max_throughput = 5000" % name)
    try:
        for table in "ab":
            tetrad.execute("CREATE TABLE %s.%s (k int PRIMARY KEY)" % (name, table))
        row = tetrad.execute("SELECT * FROM system_tetrad.throughput WHERE keyspace_name = %s", (name,)).one()
        assert (row.table_name, row.id, row.autoscaled, row.provisioned_ru_per_s, row.booked_ru_per_s) == ("", 0, True, 5000, 500)
    finally:
        tetrad.execute("DROP KEYSPACE %s" % name)
