# SPDX-License-Identifier: Apache-2.0
# The options that limit the throughput of tables and keyspaces, and the physical partitions they ask for. Tetrad's own.
import pytest
from cassandra.protocol import ConfigurationException
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
