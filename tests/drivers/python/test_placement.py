# SPDX-License-Identifier: Apache-2.0
# Where the rows of a key are, how evenly a table's work is spread, and what moves: tables of system_tetrad. Tetrad's own.
import pytest
from cassandra import InvalidRequest
from cassandra.metadata import Murmur3Token
from conftest import fresh_name, wait_until

WHERE = "SELECT * FROM system_tetrad.key_location WHERE keyspace_name = %s AND table_name = %s AND key = %s"


def located(session, table, key):
    return session.execute(WHERE, (session.keyspace, table, key)).all()


def test_a_key_is_found_on_the_nodes_that_the_driver_sends_it_to(tetrad):
    table = fresh_name("located")
    tetrad.execute("CREATE TABLE %s (k int PRIMARY KEY, v int) WITH cosmosdb_provisioned_throughput = 45000" % table)
    for key in (0, 1, 7, -5, 2147483647):
        row, = located(tetrad, table, str(key))
        packed = key.to_bytes(4, "big", signed=True)
        assert row.token == Murmur3Token.from_key(packed).value
        parts = tetrad.execute("SELECT * FROM system_tetrad.partitions WHERE keyspace_name = %s AND table_name = %s", (tetrad.keyspace, table)).all()
        part, = [one for one in parts if one.id == row.partition_id]
        assert row.token > part.range_start or part.range_start == -2**63
        assert row.token <= part.range_end
        assert row.replicas == part.replicas
        assert sorted(row.live) == sorted(row.replicas)
        assert row.state == "normal"
    tetrad.execute("DROP TABLE %s" % table)


def test_a_key_of_several_columns_has_colons_between_them(tetrad):
    table = fresh_name("located")
    tetrad.execute("CREATE TABLE %s (a text, b int, c int, PRIMARY KEY ((a, b), c))" % table)
    row, = located(tetrad, table, "x\\:y:7")
    tetrad.execute("INSERT INTO %s (a, b, c) VALUES ('x:y', 7, 0)" % table)
    assert tetrad.execute("SELECT token(a, b) AS t FROM %s" % table).one().t == row.token
    both = tetrad.execute(WHERE.replace("key = %s", "key IN ('p:1', 'q:2')"), (tetrad.keyspace, table)).all()
    assert [one.key for one in both] == ["p:1", "q:2"]
    tetrad.execute("DROP TABLE %s" % table)


def test_what_cannot_be_located_is_refused_with_the_reason(tetrad):
    table = fresh_name("located")
    tetrad.execute("CREATE TABLE %s (k int PRIMARY KEY)" % table)
    for statement, values, reason in (
            ("SELECT * FROM system_tetrad.key_location", (), "is read with keyspace_name"),
            (WHERE.replace(" AND key = %s", ""), (tetrad.keyspace, table), "is read with keyspace_name"),
            (WHERE, (tetrad.keyspace, table, "seven"), "seven"),
            (WHERE, (tetrad.keyspace, "nothing", "7"), "is no table"),
            (WHERE, ("system", "local", "local"), "is no table")):
        with pytest.raises(InvalidRequest, match=reason):
            tetrad.execute(statement, values or None)
    tetrad.execute("DROP TABLE %s" % table)


def test_the_work_and_the_bytes_of_a_table_are_summed(tetrad):
    table = fresh_name("skewed")
    tetrad.execute("CREATE TABLE %s (k int PRIMARY KEY, v blob) WITH cosmosdb_provisioned_throughput = 45000" % table)
    query = "SELECT * FROM system_tetrad.partition_skew WHERE keyspace_name = %s AND table_name = %s"
    row = tetrad.execute(query, (tetrad.keyspace, table)).one()
    assert (row.partitions, row.ru_per_s, row.busiest_id, row.ru_skew) == (5, 0, None, None)
    insert = tetrad.prepare("INSERT INTO %s (k, v) VALUES (1, ?)" % table)

    def is_seen():
        for future in [tetrad.execute_async(insert, (bytes(1000),)) for _ in range(200)]:
            future.result()
        row = tetrad.execute(query, (tetrad.keyspace, table)).one()
        return row.ru_per_s_most > 0 and row.ru_skew

    assert wait_until_value(is_seen) == pytest.approx(5)  # one of five gets all
    busiest = tetrad.execute(query, (tetrad.keyspace, table)).one().busiest_id
    assert busiest in (None, located(tetrad, table, "1")[0].partition_id)
    tetrad.execute("DROP TABLE %s" % table)


def wait_until_value(condition):
    found = []

    def is_there():
        found[:] = [condition()]
        return found[0]

    wait_until(is_there, 30, "work is seen")
    return found[0]


def test_nothing_moves_where_nothing_changes(tetrad):
    wait_until(lambda: not tetrad.execute("SELECT * FROM system_tetrad.moves").all(), 60, "moves have ended")
