# SPDX-License-Identifier: Apache-2.0
# system_views: what a node tells of itself. Each query goes to one node, which answers for itself alone.
import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement
from conftest import HOSTS, fresh_name, wait_until


@pytest.fixture(scope="module")
def node(module_connector):
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(HOSTS[:1]))
    return module_connector.session(hosts=HOSTS[:1], profile=profile)


def rows(node, table):
    return list(node.execute(f"SELECT * FROM system_views.{table}"))


def test_the_client_that_asks_is_listed_with_what_it_said_of_itself(node):
    mine = [row for row in rows(node, "clients") if row.connection_stage == "ready"]
    assert mine
    for row in mine:
        assert row.port > 0 and row.protocol_version >= 3 and row.request_count > 0
        assert row.username
        assert row.ssl_enabled == (row.ssl_protocol is not None) == (row.ssl_cipher_suite is not None)
    assert any("Python" in (row.driver_name or "") for row in mine)
    assert any(row.client_options.get("CQL_VERSION") for row in mine)
    address, port = mine[0].address, mine[0].port
    [found] = node.execute("SELECT port FROM system_views.clients WHERE address = %s AND port = %s", (address, port))
    assert found.port == port


def test_the_request_that_asks_is_among_the_running_ones(node):
    tasks = [row.task for row in rows(node, "queries")]
    assert any("system_views.queries" in task for task in tasks), tasks


def test_settings_come_in_pages_and_by_name(node):
    paged = list(node.execute(SimpleStatement("SELECT name, value FROM system_views.settings", fetch_size=7)))
    names = [row.name for row in paged]
    assert len(names) == len(set(names)) and len(names) > 100
    settings = {row.name: row.value for row in paged}
    assert settings["read_request_timeout"].endswith("ms")
    for name in ("cluster_name", "read_request_timeout", "allow_filtering_enabled"):
        [row] = node.execute("SELECT value FROM system_views.settings WHERE name = %s", (name,))
        assert row.value == settings[name]
    [local] = node.execute("SELECT cluster_name FROM system.local")
    assert settings["cluster_name"] == local.cluster_name


def test_executed_statements_are_counted(node):
    def figures():
        return {row.name: row.value for row in rows(node, "cql_metrics")}

    before = figures()
    prepared = node.prepare("SELECT cluster_name FROM system.local WHERE key = ?")
    for _ in range(5):
        node.execute(prepared, ("local",))
    after = figures()
    assert after["prepared_statements_count"] >= 1
    assert after["prepared_statements_executed"] >= before["prepared_statements_executed"] + 5
    assert after["regular_statements_executed"] > before["regular_statements_executed"]
    assert 0 < after["prepared_statements_ratio"] < 1


def test_caches_and_pools_have_true_figures(node):
    caches = {row.name: row for row in rows(node, "caches")}
    for name in "rows", "chunks":
        cache = caches[name]
        assert cache.request_count >= cache.hit_count >= 0, cache
        assert cache.request_count == 0 or cache.hit_ratio == pytest.approx(cache.hit_count / cache.request_count), cache
        assert cache.recent_request_rate_per_second >= cache.recent_hit_rate_per_second >= 0, cache
    pools = {row.name: row for row in rows(node, "thread_pools")}
    requests = pools["Native-Transport-Requests"]
    assert requests.active_tasks >= 1 and requests.completed_tasks > 0
    assert pools["CompactionExecutor"].active_tasks >= 0


def test_the_disk_usage_of_a_table_is_listed(node, session):
    session.execute("CREATE TABLE IF NOT EXISTS on_disk (k int PRIMARY KEY)")
    found = node.execute(
        "SELECT mebibytes FROM system_views.disk_usage WHERE keyspace_name = %s AND table_name = 'on_disk'",
        (session.keyspace,),
    )
    assert [row.mebibytes for row in found] in ([0], [1])


def latency(node, kind, keyspace, table):
    [found] = node.execute(
        f"SELECT * FROM system_views.{kind}_latency WHERE keyspace_name = %s AND table_name = %s", (keyspace, table)
    )
    return found


def test_the_latencies_of_a_table_are_measured(node, session):
    session.execute("CREATE TABLE IF NOT EXISTS timed (k int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE IF NOT EXISTS untouched (k int PRIMARY KEY)")
    kinds = ["coordinator_read", "coordinator_write", "coordinator_scan", "local_read", "local_write", "local_scan"]
    before = {kind: latency(node, kind, session.keyspace, "timed").count for kind in kinds}
    for i in range(50):
        node.execute(f"INSERT INTO {session.keyspace}.timed (k, v) VALUES (%s, 1)", (i,))
        node.execute(f"SELECT v FROM {session.keyspace}.timed WHERE k = %s", (i,))
    for _ in range(5):
        assert len(list(node.execute(f"SELECT * FROM {session.keyspace}.timed"))) == 50
    for kind, least in [("coordinator_read", 50), ("coordinator_write", 50), ("coordinator_scan", 5)]:
        found = latency(node, kind, session.keyspace, "timed")
        assert found.count >= before[kind] + least
        assert 0 < found.p50th_ms <= found.p99th_ms <= found.max_ms < 60_000
        assert found.per_second >= 0
        idle = latency(node, kind, session.keyspace, "untouched")
        assert idle.count == 0 == idle.max_ms
    # All nodes have replicas of this keyspace, but a write may be answered before this one has it.
    for kind in ("local_write", "local_read", "local_scan"):
        found = latency(node, kind, session.keyspace, "timed")
        assert 0 <= found.p50th_ms <= found.p99th_ms <= found.max_ms < 60_000
    assert latency(node, "local_write", session.keyspace, "timed").count > before["local_write"]


def test_the_rows_of_reads_are_counted(node, session):
    session.execute("CREATE TABLE IF NOT EXISTS wide (k int, c int, PRIMARY KEY (k, c))")
    for c in range(100):
        session.execute("INSERT INTO wide (k, c) VALUES (1, %s)", (c,))
    for _ in range(40):
        node.execute(f"SELECT c FROM {session.keyspace}.wide WHERE k = 1")
    [found] = node.execute(
        "SELECT * FROM system_views.rows_per_read WHERE keyspace_name = %s AND table_name = 'wide'", (session.keyspace,)
    )
    assert found.count > 0
    assert 80 <= found.p50th <= found.p99th <= found.max <= 130


def index_names(node, keyspace):
    return {row.index_name for row in node.execute('SELECT index_name FROM system."IndexInfo" WHERE table_name = %s', (keyspace,))}


def test_an_index_is_listed_once_it_is_built(node, session):
    session.execute("CREATE TABLE IF NOT EXISTS indexed (k int PRIMARY KEY, a int, b text)")
    for k in range(200):
        session.execute("INSERT INTO indexed (k, a, b) VALUES (%s, %s, 'x')", (k, k % 10))
    session.execute("CREATE INDEX indexed_a ON indexed (a)")
    session.execute("CREATE INDEX indexed_b ON indexed (b) USING 'sai'")
    wait_until(lambda: {"indexed_a", "indexed_b"} <= index_names(node, session.keyspace), 30, "the indexes are built")
    [found] = node.execute(
        "SELECT * FROM system_views.sai_column_indexes WHERE keyspace_name = %s AND index_name = 'indexed_b'", (session.keyspace,)
    )
    assert (found.is_building, found.is_queryable, found.column_name) == (False, True, "b")
    session.execute("DROP INDEX indexed_a")
    wait_until(lambda: "indexed_a" not in index_names(node, session.keyspace), 10, "it is gone")
    assert "indexed_b" in index_names(node, session.keyspace)


def test_a_view_is_listed_while_and_after_it_is_built(node, tetrad):
    keyspace = tetrad.keyspace
    [local] = node.execute("SELECT host_id FROM system.local")
    tetrad.execute("CREATE TABLE IF NOT EXISTS viewed (k int PRIMARY KEY, v int)")
    insert = tetrad.prepare("INSERT INTO viewed (k, v) VALUES (?, ?)")
    for k in range(500):
        tetrad.execute(insert, (k, k % 7))
    name = fresh_name("view")

    def of_this_view(query):
        return [row for row in node.execute(query, (keyspace,)) if row.view_name == name]

    in_progress = "SELECT * FROM system.view_builds_in_progress WHERE keyspace_name = %s"
    built = "SELECT * FROM system.built_views WHERE keyspace_name = %s"
    assert not of_this_view(built)
    tetrad.execute(
        f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM viewed WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)"
    )
    seen = []

    def is_built():
        seen.extend(of_this_view(in_progress))
        return of_this_view(built)

    wait_until(is_built, 60, "the view is built")
    assert not of_this_view(in_progress)
    for row in seen:
        assert int(row.start_token) <= int(row.last_token) <= int(row.end_token) and row.keys_built >= 0
    status = "SELECT host_id, status FROM system_distributed.view_build_status WHERE keyspace_name = %s AND view_name = %s"
    assert [tuple(row) for row in node.execute(status, (keyspace, name))] == [(local.host_id, "SUCCESS")]
    tetrad.execute(f"DROP MATERIALIZED VIEW {name}")
    wait_until(lambda: not of_this_view(built), 10, "it is gone")


def test_what_waits_for_a_node_that_is_down_is_listed(node, session, node_control):
    [away] = [row for row in rows(node, "gossip_info") if str(row.address) == node_control.address]
    session.execute("CREATE TABLE IF NOT EXISTS missed (k int PRIMARY KEY)")
    # As text: the type of gossip_info's host_id.
    pending = lambda: {str(row.host_id): row for row in rows(node, "pending_hints")}  # noqa: E731
    node_control.kill()

    def has_hints():
        for k in range(20):
            node.execute(SimpleStatement(f"INSERT INTO {session.keyspace}.missed (k) VALUES ({k})", consistency_level=ConsistencyLevel.ONE))
        return away.host_id in pending() and pending()[away.host_id].status == "DOWN"

    wait_until(has_hints, 60, "hints wait")
    row = pending()[away.host_id]
    assert str(row.address) == node_control.address and row.dc and row.rack and row.port > 0
    node_control.start()
    wait_until(lambda: away.host_id not in pending(), 120, "the hints are delivered")


def test_trouble_is_in_the_logs(node, tetrad):
    found = rows(node, "system_logs")
    assert len({(row.timestamp, row.order_in_millisecond) for row in found}) == len(found)
    for row in found:
        assert row.level in ("WARN", "ERROR") and row.logger and row.message
        assert list(node.execute("SELECT level FROM system_views.system_logs WHERE timestamp = %s", (row.timestamp,)))


def test_all_nodes_are_in_gossip_info(node):
    found = {str(row.address): row for row in rows(node, "gossip_info")}
    for host in HOSTS:
        assert found[host].status.startswith("NORMAL") and found[host].dc and found[host].rack
    [local] = node.execute("SELECT host_id FROM system.local")
    assert str(local.host_id) in [row.host_id for row in found.values()]


def test_every_table_of_system_views_can_be_read(node):
    names = [
        row.table_name
        for row in node.execute(
            "SELECT table_name FROM system_virtual_schema.tables WHERE keyspace_name = 'system_views'"
        )
    ]
    assert len(names) > 35
    for name in names:
        rows(node, name)
