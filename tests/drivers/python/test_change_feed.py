# SPDX-License-Identifier: Apache-2.0
# The change feed, read page by page with the paging state on one node after another. Tetrad's own.
import itertools
import threading
import time

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.query import SimpleStatement
from conftest import HOSTS, wait_until

SINCE = "2020-01-01 00:00:00"
FEED = "SELECT k, c, v FROM %s WHERE COSMOS_CHANGEFEED_START_TIME() = '" + SINCE + "'"


def make_table(session, name):
    session.execute("CREATE TABLE %s (k int, c int, v int, PRIMARY KEY (k, c)) WITH cdc = true" % name)


class Reader:
    """Asks for page after page; `seen` has the newest version that was delivered of each row."""

    def __init__(self, session, text, page=100, values=None, level=ConsistencyLevel.ONE):
        self.session, self.text, self.page, self.values, self.level = session, text, page, values, level
        self.state, self.seen, self.pages = None, {}, 0

    def next(self, host=None):
        statement = self.text
        if isinstance(statement, str):
            statement = SimpleStatement(statement)
        else:
            statement = statement.bind(self.values)
        statement.fetch_size, statement.consistency_level = self.page, self.level
        result = self.session.execute(statement, paging_state=self.state, host=host, timeout=20)
        assert result.has_more_pages and result.paging_state
        rows = result.current_rows
        assert len(rows) <= self.page
        self.state = result.paging_state
        self.pages += 1
        for row in rows:
            self.seen[(row.k, row.c)] = row.v
        return rows


def hosts_of(session):
    return sorted(session.cluster.metadata.all_hosts(), key=lambda host: host.address)


def test_pages_go_on_where_the_last_one_ended_on_any_node(tetrad):
    make_table(tetrad, "onward")
    insert = tetrad.prepare("INSERT INTO onward (k, c, v) VALUES (?, ?, ?)")
    written = {}
    for n in range(250):
        tetrad.execute(insert, (n % 17, n, 0))
        written[(n % 17, n)] = 0
    reader = Reader(tetrad, FEED % "onward", page=30)
    hosts = itertools.cycle(hosts_of(tetrad))
    for _ in range(100):
        if not reader.next(next(hosts)) and reader.seen == written:
            break
    assert reader.seen == written
    # It polls for ever, and what is written next is what comes next.
    while reader.next(next(hosts)):
        pass
    for n in range(5):
        tetrad.execute(insert, (1, n, 7))
        wait_until(lambda: [(row.c, row.v) for row in reader.next(next(hosts)) if row.v == 7] == [(n, 7)], 10, "the row %d" % n)
    tetrad.execute("DELETE FROM onward WHERE k = 2")
    assert all(row.k != 2 for _ in range(3) for row in reader.next(next(hosts)))


def test_the_feed_of_a_partition_and_prepared_statements(tetrad):
    make_table(tetrad, "parts")
    for k in range(5):
        for c in range(5):
            tetrad.execute("INSERT INTO parts (k, c, v) VALUES (%s, %s, %s)", (k, c, c))
    select = tetrad.prepare("SELECT k, c, v FROM parts WHERE COSMOS_CHANGEFEED_START_TIME() = ? AND k = ?")
    assert [column.name for column in select.column_metadata] == ["cosmos_changefeed_start_time()", "k"]
    assert select.routing_key_indexes == [1]
    reader = Reader(tetrad, select, page=2, values=(0, 3))
    for _ in range(20):
        reader.next()
    assert reader.seen == {(3, c): c for c in range(5)}
    with pytest.raises(InvalidRequest):
        tetrad.execute(select.bind((None, 3)))
    # A place in one feed is none in another.
    other = Reader(tetrad, select, page=2, values=(0, 4))
    other.state = reader.state
    with pytest.raises(InvalidRequest):
        other.next()


def test_a_table_without_a_log_says_how_to_switch_it_on(tetrad):
    tetrad.execute("CREATE TABLE silent (k int, c int, v int, PRIMARY KEY (k, c))")
    with pytest.raises(InvalidRequest, match="ALTER TABLE .*silent WITH cdc = true"):
        tetrad.execute(FEED % "silent")
    tetrad.execute("INSERT INTO silent (k, c, v) VALUES (1, 1, 1)")
    tetrad.execute("ALTER TABLE silent WITH cdc = true")
    assert "cdc = true" in tetrad.execute("DESCRIBE TABLE silent").one().create_statement
    tetrad.execute("INSERT INTO silent (k, c, v) VALUES (2, 2, 2)")
    reader = Reader(tetrad, FEED % "silent")
    for _ in range(5):
        reader.next()
    # What was there before is found by a scan.
    assert reader.seen == {(1, 1): 1, (2, 2): 2}
    tetrad.execute("ALTER TABLE silent WITH cdc = false")
    with pytest.raises(InvalidRequest, match="keeps no log"):
        reader.next()


def test_a_place_does_not_outlive_its_table(tetrad):
    make_table(tetrad, "mortal")
    tetrad.execute("INSERT INTO mortal (k, c, v) VALUES (1, 1, 1)")
    reader = Reader(tetrad, FEED % "mortal")
    reader.next()
    tetrad.execute("TRUNCATE mortal")
    with pytest.raises(InvalidRequest):
        reader.next()
    reader.state = None
    reader.next()
    tetrad.execute("DROP TABLE mortal")
    make_table(tetrad, "mortal")
    with pytest.raises(InvalidRequest):
        reader.next()


def test_nothing_is_missed_while_a_node_is_killed_and_started(tetrad, connector, node_control):
    others = [host for host in HOSTS if host != node_control.address]
    client = connector.session(hosts=others, keyspace=tetrad.keyspace, idle_heartbeat_interval=2)
    make_table(tetrad, "through_feed")
    insert = client.prepare("INSERT INTO through_feed (k, c, v) VALUES (?, ?, ?)")
    insert.consistency_level = ConsistencyLevel.QUORUM
    insert.is_idempotent = True
    written, ends = {}, threading.Event()

    def write():
        version = 0
        while not ends.is_set():
            version += 1
            key = (version % 37, version % 211)
            client.execute(insert, (*key, version), timeout=20)
            written[key] = version

    def live_hosts():
        return [host for host in hosts_of(client) if host.is_up and host.address != node_control.address]

    writer = threading.Thread(target=write)
    writer.start()
    reader = Reader(client, FEED % "through_feed", page=50)

    def read_for(seconds):
        until = time.monotonic() + seconds
        for n in itertools.count():
            if time.monotonic() > until:
                return
            hosts = live_hosts()
            reader.next(hosts[n % len(hosts)])

    try:
        read_for(2)
        node_control.kill()
        read_for(5)
        node_control.start()
        read_for(5)
    finally:
        ends.set()
        writer.join()
    assert len(written) > 200
    # Of each row the last version.
    hosts = itertools.cycle(hosts_of(client))

    def all_seen():
        reader.next(next(h for h in hosts if h.is_up))
        return reader.seen == written

    wait_until(all_seen, 60, "everything that was written is delivered, %d rows" % len(written))
