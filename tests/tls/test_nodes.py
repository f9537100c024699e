# SPDX-License-Identifier: Apache-2.0
# TLS between nodes: who is let in, who is refused and what both sides say, and a cluster that changes over while it serves.
import shutil
import socket
import ssl

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster
from cassandra.query import SimpleStatement
from node import Node, certificates, check_config, ended_with, signed_by, tetractl, wait_until

ADDRESSES = ["127.0.37.43", "127.0.37.44", "127.0.37.45"]


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def ours(top):
    return certificates(top / "ours", *ADDRESSES, "--client", "alice")


@pytest.fixture(scope="module")
def theirs(top):
    return certificates(top / "theirs", *ADDRESSES)


@pytest.fixture
def start(top):
    nodes = []

    def run(address, *options, serves=True):
        nodes.append(Node(top, address, "--seeds", ",".join(ADDRESSES[:2]), *options, serves=serves))
        return nodes[-1]

    yield run
    for node in nodes:
        node.stop()


def encrypted(folder, name, how="all", ca=None):
    return ["--internode-encryption", how, "--internode-encryption-certificate-file", folder / (name + ".pem"),
            "--internode-encryption-key-file", folder / (name + "-key.pem"),
            "--internode-encryption-ca-file", (ca or folder) / "ca.pem"]


def start_all(start, options):
    """Waits for them together: a new cluster is founded once all seeds are there."""
    nodes = [start(address, *options(address), serves=False) for address in ADDRESSES]
    for node in nodes:
        wait_until("%s serves" % node.address, node.serves)
    all_live(nodes)
    return nodes


def all_live(nodes):
    addresses = {node.address for node in nodes}
    for node in nodes:
        wait_until("%s sees all" % node.address, lambda: node.live() == addresses)


def works(nodes, key):
    """A write through the first is read at ALL through the last."""
    for node, statement in ((nodes[0], "INSERT INTO k.t (id) VALUES (%d)" % key), (nodes[-1], "SELECT id FROM k.t WHERE id = %d" % key)):
        cluster = Cluster([node.address])
        try:
            rows = list(cluster.connect().execute(SimpleStatement(statement, consistency_level=ConsistencyLevel.ALL), timeout=20))
        finally:
            cluster.shutdown()
    assert len(rows) == 1


def make_table(node):
    cluster = Cluster([node.address])
    session = cluster.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}", timeout=60)
    session.execute("CREATE TABLE k.t (id int PRIMARY KEY) WITH tetrad_initial_partitions = 8", timeout=60)
    cluster.shutdown()


@pytest.mark.parametrize("shards", [1, 3])
def test_nodes_speak_tls_and_take_no_others(start, ours, theirs, shards):
    nodes = start_all(start, lambda address: [*encrypted(ours, address), "--shards", shards])
    make_table(nodes[0])
    for key in range(5):
        works(nodes, key)
    # The port demands a certificate, and one of a node.
    for client, why in ((None, "the peer has no certificate"), ("alice", "unsuitable certificate purpose (subject CN=alice")):
        context = ssl.create_default_context(cafile=ours / "ca.pem")
        if client:
            context.load_cert_chain(ours / (client + ".pem"), ours / (client + "-key.pem"))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            with socket.create_connection((ADDRESSES[0], 7000), timeout=10) as plain:
                with context.wrap_socket(plain, server_hostname=ADDRESSES[0]) as tls:
                    tls.sendall(b"TETRAD\x00\x01")
                    assert tls.recv(1) != b""
                    raise AssertionError("it answers")
        nodes[0].expect_log("internode connection refused from=127.", why)


@pytest.mark.parametrize("who", ["without TLS", "of another cluster"])
def test_who_is_not_of_the_cluster_is_refused_and_both_sides_say_why(start, ours, theirs, who):
    first = start(ADDRESSES[0], *encrypted(ours, ADDRESSES[0]), "--found")
    if who == "without TLS":
        other = start(ADDRESSES[2], serves=False)
        first.expect_log("internode connection refused from=127.", "it speaks without TLS, which this node demands")
        other.expect_log("no connection to a node peer=%s:7000" % ADDRESSES[0], "it demands TLS, and this node speaks without")
        other.expect_log("still waiting for a cluster: this node and seed %s:7000 do not speak: it demands TLS" % ADDRESSES[0])
    else:
        other = start(ADDRESSES[2], *encrypted(theirs, ADDRESSES[2]), serves=False)
        first.expect_log("internode connection refused from=127.", "the peer refuses our certificate: its authority is unknown there")
        other.expect_log("no connection to a node peer=%s:7000" % ADDRESSES[0], "the certificate of the peer is refused",
                         "unable to get local issuer certificate (subject CN=%s, issuer CN=Tetrad authority" % ADDRESSES[0])
    assert first.live() == {ADDRESSES[0]}
    assert "Startup complete" not in other.log()


def test_a_stranger_with_our_authority_in_its_trust_is_refused_by_us(top, start, ours, theirs):
    first = start(ADDRESSES[0], *encrypted(ours, ADDRESSES[0]), "--found")
    both = top / "both"
    both.mkdir()
    (both / "ca.pem").write_text((ours / "ca.pem").read_text() + (theirs / "ca.pem").read_text())
    other = start(ADDRESSES[2], *encrypted(theirs, ADDRESSES[2], ca=both), serves=False)
    first.expect_log("internode connection refused from=127.", "the certificate of the peer is refused: unable to get local issuer",
                     "subject CN=%s" % ADDRESSES[2])
    other.expect_log("no connection to a node peer=%s:7000" % ADDRESSES[0], "the peer refuses our certificate: its authority is unknown there")
    assert "Startup complete" not in other.log()


MAY_BE_ALL = "all connections of this node with others are encrypted: internode_encryption may be all\n"


def links(node, encrypted):
    """How many connections with other nodes are open."""
    lines = [line for line in node.ask("/metrics").splitlines() if line.startswith("tetrad_replication_connections_open{")]
    return sum(float(line.split()[-1]) for line in lines if 'encrypted="%s"' % encrypted in line)


def test_a_running_cluster_changes_over(start, ours):
    nodes = start_all(start, lambda address: [])
    make_table(nodes[0])
    plain = nodes[0].options
    key = 0
    for how in ("optional", "all", "optional", "none"):
        for node in nodes:
            node.stop()
            node.options = [*plain, *encrypted(ours, node.address, how)]
            node.start()
            all_live(nodes)
            works(nodes, key)
            key += 1
            if key == 1:  # the first of three
                told = "encrypted (%s)\n" % " ".join(other.address for other in nodes[1:])
                wait_until("it tells who does not encrypt", lambda: told in tetractl("-h", node.address, "status"))
                assert "WARNING: internode_encryption is optional, and " in tetractl("-h", node.address, "status")
                assert links(node, "no") >= 4
        for node in nodes:
            if how == "optional":
                wait_until("it tells that all do", lambda: "WARNING: " + MAY_BE_ALL in tetractl("-h", node.address, "status"))
                assert MAY_BE_ALL not in node.ask("/health")
            else:
                assert "internode_encryption" not in tetractl("-h", node.address, "status")
            if how != "none":
                assert links(node, "no") == 0 and links(node, "yes") >= 4
    nodes[2].stop()
    for node in nodes[:2]:
        node.stop()
        node.options = [*plain, *encrypted(ours, node.address, "optional")]
        node.start(serves=False)
    wait_until("it does not say so of who is away", lambda: "there is none with %s: keep optional" % nodes[2].address in
               tetractl("-h", nodes[0].address, "status", fails=None))


def test_strangers_do_not_keep_nodes_out(start, ours):
    nodes = [start(ADDRESSES[0], *encrypted(ours, ADDRESSES[0]), "--found")]
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=ours / "ca.pem").wrap_bio(incoming, outgoing, server_hostname="x")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    strangers = []
    for number in range(1500):
        one = socket.create_connection((ADDRESSES[0], 7000))
        one.sendall(hello[: len(hello) // 2] if number % 2 else hello)
        strangers.append(one)
    before = nodes[0].resident_mb()
    nodes.append(start(ADDRESSES[1], *encrypted(ours, ADDRESSES[1])))
    all_live(nodes)
    assert nodes[0].resident_mb() < before + 100
    nodes[0].expect_log("too many others")
    for one in strangers:
        one.close()


def test_certificates_of_nodes_are_renewed_while_they_run(top, start):
    folder = certificates(top / "renewed", *ADDRESSES)
    nodes = start_all(start, lambda address: encrypted(folder, address))
    make_table(nodes[0])
    certificates(folder, *ADDRESSES, "--renew")
    for node in nodes:
        assert "nodes: read anew" in tetractl("-h", node.address, "reload-certificates")
    nodes[1].stop()
    nodes[1].start()
    all_live(nodes)
    works(nodes, 1)


def test_certificates_that_no_node_takes_are_refused(top, start, ours, theirs):
    folder = certificates(top / "own", ADDRESSES[0])
    for name, source in (("stranger", theirs / ADDRESSES[0]), ("expired", None)):
        if source is None:
            signed_by(folder, name, days=0)
        else:
            for end in (".pem", "-key.pem"):
                shutil.copy("%s%s" % (source, end), folder / (name + end))
    signed_by(folder, "client", usage="clientAuth")
    wrong = {"stranger": "%s: the certificate is not signed by an authority in %s: other nodes refuse it" % ("%s", folder / "ca.pem"),
             "client": "unsuitable certificate purpose (subject CN=client",
             "expired": "%s: the certificate has expired, on 20"}

    def said_of(path, name):
        return wrong[name] % path if "%s" in wrong[name] else wrong[name]

    for name in wrong:
        options = encrypted(folder, name)
        code, said = check_config(top, *options)
        assert code == 2 and "internode_encryption: " in said and said_of(folder / (name + ".pem"), name) in said
        if name != "expired":
            assert said_of(folder / (name + ".pem"), name) in ended_with(top, *options)
    # One that has expired keeps no node from its start.
    expired = start(ADDRESSES[0], *encrypted(folder, "expired"), "--found")
    expired.expect_log("the certificate has expired, peers refuse it of=nodes")
    expired.stop()
    node = start(ADDRESSES[0], *encrypted(folder, ADDRESSES[0]), "--found")
    for name in wrong:
        for end in ("-key.pem", ".pem"):
            shutil.copy(folder / (name + end), folder / (ADDRESSES[0] + end))
        said = tetractl("-h", node.address, "reload-certificates", fails=True)
        assert said_of(folder / (ADDRESSES[0] + ".pem"), name) in said and "the certificate from before goes on to hold" in said
        with socket.create_connection((node.address, 7000), timeout=10) as plain:  # those that hold
            with ssl.create_default_context(cafile=folder / "ca.pem").wrap_socket(plain, server_hostname=node.address) as tls:
                assert dict(pair[0] for pair in tls.getpeercert()["subject"]) == {"commonName": ADDRESSES[0]}


def test_options_that_do_not_fit_are_refused(top, ours):
    assert "internode_encryption_certificate_file: a file is needed" in ended_with(top, "--internode-encryption", "all")
    without = encrypted(ours, ADDRESSES[0])[:-2]
    assert "internode_encryption_ca_file: a file is needed" in ended_with(top, *without)
