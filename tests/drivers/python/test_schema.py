# SPDX-License-Identifier: Apache-2.0
# DDL, the schema as the driver sees it, and agreement between the nodes.
import pytest
from cassandra import AlreadyExists, InvalidRequest
from cassandra.query import SimpleStatement
from conftest import fresh_name, replication_of, wait_until


def test_a_table_shows_in_the_metadata_with_kinds_types_and_orders(session):
    session.execute(
        "CREATE TABLE shown (a int, b text, c timeuuid, d decimal, s text static, m map<text, frozen<list<int>>>,"
        " t frozen<tuple<int, text>>, v blob, PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)"
        " AND comment = 'it''s shown' AND gc_grace_seconds = 1000 AND default_time_to_live = 5000"
        " AND compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 6}"
        " AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 32}"
        " AND speculative_retry = '50ms' AND caching = {'keys': 'ALL', 'rows_per_partition': '10'}"
    )
    table = session.cluster.metadata.keyspaces[session.keyspace].tables["shown"]
    assert [c.name for c in table.partition_key] == ["a", "b"]
    assert [(c.name, c.is_reversed) for c in table.clustering_key] == [("c", True), ("d", False)]
    assert table.columns["s"].is_static and not table.columns["v"].is_static
    assert table.columns["m"].cql_type == "map<text, frozen<list<int>>>"
    assert table.columns["t"].cql_type == "frozen<tuple<int, text>>"
    assert table.options["comment"] == "it's shown" and table.options["gc_grace_seconds"] == 1000
    assert table.options["default_time_to_live"] == 5000
    assert table.options["compaction"]["min_threshold"] == "6"
    assert table.options["compression"]["chunk_length_in_kb"] == "32"
    assert table.options["speculative_retry"] == "50ms" and table.options["caching"]["rows_per_partition"] == "10"
    assert not table.is_compact_storage


def test_indexes_show_in_the_metadata_as_they_come_and_go(session):
    session.execute("CREATE TABLE indexed (k int PRIMARY KEY, a int, b text, m map<text, int>)")
    session.execute("CREATE INDEX ON indexed (a)")
    session.execute("CREATE INDEX by_key ON indexed (keys(m))")
    session.execute("CREATE CUSTOM INDEX by_text ON indexed (b) USING 'StorageAttachedIndex' WITH OPTIONS = {'case_sensitive': 'false'}")
    keyspace = session.cluster.metadata.keyspaces[session.keyspace]
    indexes = keyspace.tables["indexed"].indexes
    assert {name: index.kind for name, index in indexes.items()} == {
        "indexed_a_idx": "COMPOSITES", "by_key": "COMPOSITES", "by_text": "CUSTOM"}
    assert dict(indexes["by_key"].index_options) == {"target": "keys(m)"}
    assert dict(indexes["by_text"].index_options) == {
        "class_name": "StorageAttachedIndex", "target": "b", "case_sensitive": "false"}
    assert "by_text" in keyspace.indexes
    definition = keyspace.tables["indexed"].export_as_string()
    session.execute("DROP INDEX by_key")
    assert set(session.cluster.metadata.keyspaces[session.keyspace].tables["indexed"].indexes) == {"indexed_a_idx", "by_text"}
    session.execute("DROP TABLE indexed")
    for statement in definition.split(";\n"):
        session.execute(statement)
    assert session.cluster.metadata.keyspaces[session.keyspace].tables["indexed"].export_as_string() == definition


def test_the_exported_definition_makes_the_same_table_again(session):
    session.execute("CREATE TABLE again (k int, c int, v set<int>, \"Odd Name\" text, PRIMARY KEY (k, c)) WITH comment = 'x'")
    tables = session.cluster.metadata.keyspaces[session.keyspace].tables
    before = tables["again"].export_as_string()
    session.execute("DROP TABLE again")
    assert "again" not in tables
    session.execute(before)
    assert tables["again"].export_as_string() == before


def test_alter_table_adds_renames_and_drops(session):
    session.execute("CREATE TABLE altered (k int, c int, v int, PRIMARY KEY (k, c))")
    session.execute("INSERT INTO altered (k, c, v) VALUES (1, 2, 3)")
    session.execute("ALTER TABLE altered ADD (w text, x list<int>)")
    session.execute("ALTER TABLE altered RENAME c TO renamed")
    session.execute("ALTER TABLE altered WITH comment = 'changed' AND default_time_to_live = 100")
    columns = session.cluster.metadata.keyspaces[session.keyspace].tables["altered"].columns
    assert set(columns) == {"k", "renamed", "v", "w", "x"}
    session.execute("UPDATE altered SET w = 'w', x = [1] WHERE k = 1 AND renamed = 2")
    assert tuple(session.execute("SELECT k, renamed, v, w, x FROM altered").one()) == (1, 2, 3, "w", [1])
    session.execute("ALTER TABLE altered DROP v")
    assert "v" not in session.cluster.metadata.keyspaces[session.keyspace].tables["altered"].columns
    with pytest.raises(InvalidRequest, match="Undefined column name v"):
        session.execute("SELECT v FROM altered")
    assert session.cluster.metadata.keyspaces[session.keyspace].tables["altered"].options["comment"] == "changed"


def test_a_dropped_name_is_free_at_once_and_nothing_old_reappears(session):
    for round_number in range(5):
        session.execute("CREATE TABLE reborn (k int PRIMARY KEY, v int)")
        assert list(session.execute("SELECT * FROM reborn")) == []
        for key in range(20):
            session.execute("INSERT INTO reborn (k, v) VALUES (%s, %s)", (key, round_number))
        session.execute("DROP TABLE reborn")
        with pytest.raises(InvalidRequest, match="table reborn does not exist"):
            session.execute("SELECT * FROM reborn")


def test_truncate_empties_a_table_and_leaves_it_usable(session):
    session.execute("CREATE TABLE emptied (k int, c int, s int static, PRIMARY KEY (k, c))")
    for key in range(50):
        session.execute("INSERT INTO emptied (k, c, s) VALUES (%s, 1, 2)", (key,))
    session.execute("TRUNCATE emptied", timeout=60)
    assert session.execute("SELECT count(*) FROM emptied").one()[0] == 0
    session.execute("INSERT INTO emptied (k, c) VALUES (1, 2)")
    assert list(session.execute("SELECT * FROM emptied")) == [(1, 2, None)]


def test_if_exists_and_if_not_exists_say_nothing_and_the_plain_forms_do(session):
    session.execute("CREATE TABLE once (k int PRIMARY KEY)")
    session.execute("CREATE TABLE IF NOT EXISTS once (k int PRIMARY KEY)")
    with pytest.raises(AlreadyExists) as raised:
        session.execute("CREATE TABLE once (k int PRIMARY KEY)")
    assert (raised.value.keyspace, raised.value.table) == (session.keyspace, "once")
    with pytest.raises(AlreadyExists) as raised:
        session.execute("CREATE KEYSPACE %s WITH replication = %s" % (session.keyspace, replication_of(session)))
    assert raised.value.keyspace == session.keyspace and not raised.value.table
    session.execute("DROP TABLE once")
    session.execute("DROP TABLE IF EXISTS once")
    with pytest.raises(InvalidRequest, match="doesn't exist"):
        session.execute("DROP TABLE once")


def test_keyspace_options_are_echoed(session):
    name = fresh_name("drv_python_ks")
    session.execute("CREATE KEYSPACE %s WITH replication = %s AND durable_writes = true" % (name, replication_of(session)))
    try:
        meta = session.cluster.metadata.keyspaces[name]
        assert meta.durable_writes and "SimpleStrategy" in meta.export_as_string()
        data_center = session.cluster.metadata.all_hosts()[0].datacenter
        session.execute(
            "ALTER KEYSPACE %s WITH replication = {'class': 'NetworkTopologyStrategy', '%s': 1}"
            % (name, data_center)
        )
        assert "NetworkTopologyStrategy" in session.cluster.metadata.keyspaces[name].export_as_string()
        row = session.execute(
            SimpleStatement("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '%s'" % name)
        ).one()
        assert row.replication == {
            "class": "org.apache.cassandra.locator.NetworkTopologyStrategy",
            data_center: "1",
        }
    finally:
        session.execute("DROP KEYSPACE %s" % name)
    assert name not in session.cluster.metadata.keyspaces


def test_all_nodes_agree_on_the_schema_after_every_change(session, connector):
    for step in range(5):
        session.execute("CREATE TABLE agreed_%d (k int PRIMARY KEY, v int)" % step)
        versions = {row[0] for row in session.execute("SELECT schema_version FROM system.local")}
        versions |= {row[0] for row in session.execute("SELECT schema_version FROM system.peers")}
        assert len(versions) == 1
    future = session.execute_async("CREATE TABLE agreed_last (k int PRIMARY KEY)")
    future.result()
    assert future.is_schema_agreed


def test_another_client_hears_of_schema_changes_by_events(session, connector):
    watcher = connector.cluster(schema_event_refresh_window=0)
    watcher.connect()

    def tables():
        return watcher.metadata.keyspaces[session.keyspace].tables

    session.execute("CREATE TABLE heard (k int PRIMARY KEY)")
    wait_until(lambda: "heard" in tables(), 10, "CREATE TABLE heard of")
    session.execute("ALTER TABLE heard ADD v text")
    wait_until(lambda: "v" in tables()["heard"].columns, 10, "ALTER TABLE heard of")
    session.execute("DROP TABLE heard")
    wait_until(lambda: "heard" not in tables(), 10, "DROP TABLE heard of")


def test_an_event_is_of_what_changed_and_of_nothing_else(session, connector):
    watcher = connector.cluster()
    watcher.connect()
    heard = []
    watcher.control_connection._connection.register_watcher("SCHEMA_CHANGE", heard.append, register_timeout=10)
    session.execute("CREATE TABLE beside (k int PRIMARY KEY)")
    session.execute("CREATE TYPE field (a int)")
    session.execute("INSERT INTO beside (k) VALUES (1)")
    session.execute("TRUNCATE beside")
    session.execute("CREATE TABLE used (k int PRIMARY KEY, f frozen<field>)")
    session.execute("ALTER TYPE field ADD b int")
    session.execute("DROP TABLE used")
    session.execute("DROP TYPE field")

    def of_keyspace():
        return [(e["change_type"], e["target_type"], e.get("table") or e.get("type"))
                for e in heard if e["keyspace"] == session.keyspace]

    wait_until(lambda: ("DROPPED", "TYPE", "field") in of_keyspace(), 10, "DROP TYPE heard of")
    assert sorted(of_keyspace()) == sorted([
        ("CREATED", "TABLE", "beside"), ("CREATED", "TYPE", "field"), ("CREATED", "TABLE", "used"),
        ("UPDATED", "TYPE", "field"), ("UPDATED", "TABLE", "used"), ("DROPPED", "TABLE", "used"),
        ("DROPPED", "TYPE", "field")])


def test_every_schema_query_of_the_driver_is_answered(session):
    session.cluster.refresh_schema_metadata()
    keyspaces = session.cluster.metadata.keyspaces
    for name in ("system", "system_schema", "system_auth", "system_traces"):
        assert name in keyspaces, name
    assert {"local", "peers", "peers_v2", "size_estimates"} <= set(keyspaces["system"].tables)
    assert {"sessions", "events"} <= set(keyspaces["system_traces"].tables)
    assert {"keyspaces", "tables", "columns", "types", "functions", "aggregates", "indexes", "views", "triggers",
            "dropped_columns"} <= set(keyspaces["system_schema"].tables)


@pytest.mark.parametrize(
    "statement,words",
    [
        ("CREATE TABLE bad (k int)", "No PRIMARY KEY specifed"),
        ("CREATE TABLE bad (k int, PRIMARY KEY (k, nope))", "nope"),
        ("CREATE TABLE bad (k int PRIMARY KEY, k text)", "Duplicate column"),
        ("CREATE TABLE bad (k int PRIMARY KEY, v nosuchtype)", "nosuchtype"),
        ("CREATE TABLE bad (k int PRIMARY KEY) WITH nosuchoption = 1", "Unknown property 'nosuchoption'"),
        ("CREATE TABLE bad (k int PRIMARY KEY, s text static)", "Static columns are only useful"),
        ("CREATE TABLE nosuchkeyspace.bad (k int PRIMARY KEY)", "Keyspace 'nosuchkeyspace' doesn't exist"),
        ("ALTER TABLE nosuchtable ADD v int", "nosuchtable"),
        ("CREATE TABLE bad (k list<int> PRIMARY KEY)", "Invalid non-frozen collection type"),
    ],
)
def test_bad_definitions_are_refused_with_a_reason(session, statement, words):
    from cassandra import ConfigurationException
    from cassandra.protocol import ConfigurationException as ProtocolConfiguration
    from cassandra.protocol import SyntaxException

    with pytest.raises((InvalidRequest, SyntaxException, ConfigurationException, ProtocolConfiguration)) as raised:
        session.execute(statement)
    assert words.lower() in str(raised.value).lower()


@pytest.mark.parametrize("keyspace", ["system_auth", "system_distributed", "system_traces"])
def test_the_replication_of_what_the_cluster_keeps_may_be_set(session, keyspace):
    """Operators of Cassandra begin with it."""
    data_center = session.execute("SELECT data_center FROM system.local").one().data_center
    shown = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '%s'" % keyspace
    before = session.execute(shown).one()
    for factors in "{'class': 'NetworkTopologyStrategy', '%s': 3}" % data_center, "{'class': 'SimpleStrategy', 'replication_factor': 3}":
        future = session.execute_async("ALTER KEYSPACE %s WITH replication = %s" % (keyspace, factors))
        future.result()
        assert "The cluster keeps %s by itself: ALTER KEYSPACE of it changes nothing" % keyspace in future.warnings
    assert session.execute(shown).one() == before
    with pytest.raises(Exception, match="nosuchdc"):
        session.execute("ALTER KEYSPACE %s WITH replication = {'class': 'NetworkTopologyStrategy', 'nosuchdc': 3}" % keyspace)


def test_traces_are_cleared(session):
    for table in "sessions", "events":
        session.execute("TRUNCATE system_traces.%s" % table)
    session.execute("SELECT key FROM system.local", trace=True).get_query_trace()
    assert session.execute("SELECT * FROM system_traces.sessions LIMIT 1").one()
    session.execute("TRUNCATE system_traces.sessions")
    assert not session.execute("SELECT * FROM system_traces.sessions LIMIT 1").one()
    with pytest.raises(Exception, match="is not user-modifiable|Cannot truncate virtual"):
        session.execute("TRUNCATE system_auth.roles")
