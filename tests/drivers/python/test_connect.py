# SPDX-License-Identifier: Apache-2.0
# Connections: protocol versions, compression, negotiation, what a client sees of the cluster at once.
import socket
import struct

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import NoHostAvailable
from conftest import HOSTS, PORT, fresh_name, wrapped

COMPRESSIONS = [False, "lz4", "snappy"]
WAYS = [(v, c) for v in (3, 4, 5) for c in COMPRESSIONS if not (v == 5 and c == "snappy")]


@pytest.mark.parametrize("version,compression", WAYS)
def test_every_version_and_compression_carries_rows_both_ways(connector, session, version, compression):
    table = fresh_name("ways")
    session.execute("CREATE TABLE %s (k int PRIMARY KEY, v text, b blob)" % table)
    client = connector.session(session.keyspace, protocol_version=version, compression=compression)
    assert client._protocol_version == version
    insert = client.prepare("INSERT INTO %s (k, v, b) VALUES (?, ?, ?)" % table)
    compressible, random_like = "tetrad " * 30000, bytes((i * 7919 >> 3) & 0xFF for i in range(200000))
    for key in range(10):
        client.execute(insert, (key, compressible if key % 2 else "small", random_like if key % 3 else None))
    select = client.prepare("SELECT v, b FROM %s WHERE k = ?" % table)
    for key in range(10):
        row = client.execute(select, (key,)).one()
        assert row.v == (compressible if key % 2 else "small")
        assert row.b == (random_like if key % 3 else None)
    assert len(list(client.execute("SELECT k FROM %s" % table))) == 10


def test_a_driver_left_alone_lands_on_a_version_it_and_the_server_speak(connector):
    client = connector.session(compression=True)
    assert client._protocol_version in (4, 5)
    assert client.execute("SELECT release_version FROM system.local WHERE key='local'").one()[0].startswith("5.0")


def test_local_names_the_server_as_drivers_expect(session):
    row = session.execute("SELECT * FROM system.local WHERE key='local'").one()
    assert row.key == "local" and row.bootstrapped == "COMPLETED"
    assert row.cql_version == "3.4.7" and row.native_protocol_version == "5"
    assert row.partitioner == "org.apache.cassandra.dht.Murmur3Partitioner"
    assert row.host_id and row.schema_version and row.cluster_name and row.data_center and row.rack
    assert len(row.tokens) >= 1 and row.rpc_address


def test_peers_and_peers_v2_agree_and_leave_out_the_node_itself(connector):
    from cassandra.policies import WhiteListRoundRobinPolicy
    from cassandra.cluster import ExecutionProfile

    for host in HOSTS:
        client = connector.session(
            hosts=[host], profile=ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([host]))
        )
        local = client.execute("SELECT host_id FROM system.local WHERE key='local'").one()
        old = {row.host_id: row for row in client.execute("SELECT * FROM system.peers")}
        new = {row.host_id: row for row in client.execute("SELECT * FROM system.peers_v2")}
        assert set(old) == set(new) and local.host_id not in new
        for host_id, row in new.items():
            assert row.native_address == old[host_id].rpc_address and row.native_port == PORT
            assert row.tokens and row.tokens == old[host_id].tokens
            assert row.schema_version and row.data_center and row.rack and row.release_version


def test_a_missing_keyspace_is_refused_at_connect_and_by_use(connector):
    with pytest.raises(NoHostAvailable):
        connector.session("no_such_keyspace_anywhere")
    client = connector.session()
    with pytest.raises(InvalidRequest, match="Keyspace 'no_such_keyspace_anywhere' does not exist"):
        client.execute("USE no_such_keyspace_anywhere")


def test_an_idle_connection_stays_open_through_heartbeats(connector):
    import time

    client = connector.session(idle_heartbeat_interval=0.5)
    time.sleep(2.5)
    assert client.execute("SELECT key FROM system.local WHERE key = 'local'").one().key == "local"
    assert all(host.is_up for host in client.cluster.metadata.all_hosts())


def read_exactly(sock, count):
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        assert piece, "closed after %d of %d bytes" % (len(data), count)
        data += piece
    return data


def exchange(frame):
    """One frame on a connection of its own: (version byte, opcode, body) of the answer."""
    with wrapped(socket.create_connection((HOSTS[0], PORT), timeout=5)) as sock:
        sock.sendall(frame)
        version = read_exactly(sock, 1)[0]
        if version & 0x7F < 3:
            flags, stream, opcode, length = struct.unpack(">BbBi", read_exactly(sock, 7))
        else:
            flags, stream, opcode, length = struct.unpack(">BhBi", read_exactly(sock, 8))
        return version, opcode, read_exactly(sock, length)


@pytest.mark.parametrize("version", [0x41, 0x42, 7])
def test_an_unknown_version_is_refused_by_a_text_drivers_look_for(version):
    _, opcode, body = exchange(struct.pack(">BBhBi", version, 0, 0, 5, 0))
    assert opcode == 0 and struct.unpack(">i", body[:4])[0] == 0x000A
    assert b"Invalid or unsupported protocol version" in body
    assert b"3/v3, 4/v4, 5/v5" in body


def test_options_answers_before_startup():
    version, opcode, body = exchange(struct.pack(">BBhBi", 4, 0, 0, 5, 0))
    assert (version, opcode) == (0x84, 6)
    for word in (b"CQL_VERSION", b"3.4.7", b"COMPRESSION", b"lz4", b"snappy", b"PROTOCOL_VERSIONS", b"5/v5"):
        assert word in body


def test_a_query_before_startup_is_a_protocol_error():
    query = b"SELECT * FROM system.local"
    body = struct.pack(">i", len(query)) + query + struct.pack(">HB", 1, 0)
    _, opcode, answer = exchange(struct.pack(">BBhBi", 4, 0, 0, 7, len(body)) + body)
    assert opcode == 0 and struct.unpack(">i", answer[:4])[0] == 0x000A


def test_many_clients_at_once(connector, session):
    table = fresh_name("many")
    session.execute("CREATE TABLE %s (k int PRIMARY KEY, v int)" % table)
    clients = [connector.session(session.keyspace) for _ in range(10)]
    futures = [
        client.execute_async("INSERT INTO %s (k, v) VALUES (%d, %d)" % (table, 100 * i + j, j))
        for i, client in enumerate(clients)
        for j in range(50)
    ]
    for future in futures:
        future.result()
    assert session.execute("SELECT count(*) FROM %s" % table).one()[0] == 500
