# SPDX-License-Identifier: Apache-2.0
# The secret of a cluster, by which nodes know each other without TLS: who is let in, who is refused and what both sides say, and
# a cluster that is given a secret while it serves.
import socket

import pytest
from node import Node, certificates, ended_with, tetractl, wait_until
from test_nodes import all_live, encrypted, make_table, works

ADDRESSES = ["127.0.63.1", "127.0.63.2", "127.0.63.3"]
PREFACE = b"TETRAD\x00\x01"
OTHER = "its secret of the cluster is another one (cluster_secret_file)"


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return tmp_path_factory.mktemp("secret")


def secret_file(top, name, text, mode=0o600):
    path = top / name
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture(scope="module")
def ours(top):
    return ["--cluster-secret-file", secret_file(top, "ours", "the secret of our cluster\n")]


@pytest.fixture(scope="module")
def theirs(top):
    return ["--cluster-secret-file", secret_file(top, "theirs", "the secret of another cluster")]


@pytest.fixture
def start(top):
    nodes = []

    def run(address, *options, serves=True):
        nodes.append(Node(top, address, "--seeds", ADDRESSES[0], *options, serves=serves))
        return nodes[-1]

    yield run
    for node in nodes:
        node.stop()


def start_two(start, *options):
    nodes = [start(address, *options) for address in ADDRESSES[:2]]
    all_live(nodes)
    make_table(nodes[0])
    return nodes


def answer_of(address, said):
    """All that a node answers who says this to its port for nodes."""
    with socket.create_connection((address, 7000), timeout=10) as one:
        one.sendall(said)
        answer = b""
        while True:
            more = one.recv(1000)
            if not more:
                return answer
            answer += more


@pytest.mark.parametrize("shards", [1, 3])
def test_nodes_with_the_secret_are_a_cluster_and_come_back(start, ours, shards):
    nodes = start_two(start, *ours, "--shards", shards)
    for key in range(5):
        works(nodes, key)
    assert answer_of(ADDRESSES[0], PREFACE + bytes(100)) == b"\x81"
    nodes[0].expect_log("internode connection refused from=127.", "it does not show the cluster's secret, which this node demands")
    assert answer_of(ADDRESSES[0], b"GET / HTTP/1.1\r\n\r\n") == b""
    for node in nodes:
        node.process.kill()
        node.process.wait()
        node.start()
        all_live(nodes)
        works(nodes, 5)
    for node in nodes:
        assert "no connection to a node" not in node.log()


@pytest.mark.parametrize("who", ["without the secret", "with another secret", "with one where there is none"])
def test_who_has_not_the_secret_is_refused_and_both_sides_say_why(start, ours, theirs, who):
    first_has, other_has, first_says, other_says = {
        "without the secret": (
            ours, [], "it does not show the cluster's secret, which this node demands (cluster_secret_file)",
            "it demands the cluster's secret, and this node has none (cluster_secret_file)"),
        "with another secret": (ours, theirs, OTHER, OTHER),
        "with one where there is none": (
            [], ours, "it has a secret of a cluster, and this node has none (cluster_secret_file)",
            "it has no secret of the cluster, which this node demands (cluster_secret_file)"),
    }[who]
    first = start(ADDRESSES[0], *first_has, "--found")
    other = start(ADDRESSES[2], *other_has, serves=False)
    first.expect_log("internode connection refused from=127.", first_says)
    other.expect_log("no connection to a node peer=%s:7000" % ADDRESSES[0], other_says)
    other.expect_log("still waiting for a cluster: this node and seed %s:7000 do not speak: %s" % (ADDRESSES[0], other_says))
    assert "--found" not in other.log()
    assert first.live() == {ADDRESSES[0]}
    assert "Startup complete" not in other.log()
    # The right one lets it in.
    other.stop()
    other.options = [*other.options[: len(other.options) - len(other_has)], *first_has]
    other.start()
    all_live([first, other])


def test_a_member_that_comes_back_with_another_secret_says_so_and_gives_nobody_up(start, ours, theirs):
    nodes = start_two(start, *ours)
    nodes[1].stop()
    nodes[1].options = [*nodes[1].options[:2], *theirs]
    nodes[1].start()
    refused = "WARNING: this node and 1 of 2 nodes refuse each other: %s (%s)"
    for one, other in (nodes, nodes[::-1]):
        said = wait_until("a refusal", lambda: (text := tetractl("-h", one.address, "status")) and refused % (OTHER, other.address) in text
                          and "have too few live members" in text and text)
        assert "gone for good" not in said
    assert nodes[0].log().count("internode connection refused") <= 2  # once a minute, not for each attempt


def test_a_running_cluster_is_given_a_secret_and_another_one(start, ours, theirs):
    nodes = start_two(start)
    plain = nodes[0].options
    lax = ["--cluster-secret-required", "false"]
    key = 0
    for secret in ([*ours, *lax], ours, [*ours, *lax], [*theirs, *lax], theirs):
        for node in nodes:
            node.stop()
            node.options = [*plain, *secret]
            node.start()
            all_live(nodes)
            works(nodes, key)
            key += 1


def test_where_tls_is_optional_the_secret_is_asked_of_who_speaks_without(top, start, ours):
    folder = certificates(top / "tls", ADDRESSES[0], ADDRESSES[1])
    nodes = [start(address, *encrypted(folder, address, "optional"), *ours) for address in ADDRESSES[:2]]
    other = start(ADDRESSES[2], serves=False)
    nodes[0].expect_log("internode connection refused from=127.", "it does not show the cluster's secret")
    other.stop()
    other.options = [*other.options, *ours]
    other.start()
    all_live([*nodes, other])


def test_strangers_do_not_keep_nodes_out(start, ours):
    nodes = [start(ADDRESSES[0], *ours, "--found")]
    strangers = []
    for number in range(1500):
        one = socket.create_connection((ADDRESSES[0], 7000))
        one.sendall(b"TETRAD\x80\x01" + bytes(32 if number % 2 else 16))
        strangers.append(one)
    before = nodes[0].resident_mb()
    nodes.append(start(ADDRESSES[1], *ours))
    all_live(nodes)
    assert nodes[0].resident_mb() < before + 100
    nodes[0].expect_log("too many others", "connections that do not show the cluster's secret")
    for one in strangers:
        one.close()


def test_options_that_do_not_fit_are_refused(top, ours):
    def said(*options):
        return ended_with(top, "--listen-address", ADDRESSES[0], *options)

    short = secret_file(top, "short", "fifteen bytes..\n")
    assert "cluster_secret_file: %s has 15 bytes, at least 16 are needed" % short in said("--cluster-secret-file", short)
    open_to_all = secret_file(top, "open", "sixteen bytes...\n", 0o644)
    refusal = "cluster_secret_file: %s has the mode 644: others than its owner could come by the secret; chmod 600 it"
    assert refusal % open_to_all in said("--cluster-secret-file", open_to_all)
    assert "cluster_secret_file: cannot read %s/none: No such file" % top in said("--cluster-secret-file", top / "none")
    assert "cluster_secret_required: without effect without cluster_secret_file" in said("--cluster-secret-required", "false")
    folder = certificates(top / "all", ADDRESSES[0])
    assert "cluster_secret_file: without effect while internode_encryption is all" in said(*encrypted(folder, ADDRESSES[0]), *ours)
