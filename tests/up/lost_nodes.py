#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Nodes that never come back: two of five, two of four with a majority of the metadata's voters, and a data centre. `tetractl remove-lost-nodes` tells what may be lost, and takes
# them out; no row that a node has that is left is missed, and who comes back after all joins anew. Last line N passed, N failed.
# lost_nodes.py PREFIX: of loopback, as 127.0.13; TETRAD_BIN: where tetrad and tetractl are.
import json
import signal
import subprocess
import sys
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tls"))
from node import BIN, Node, run_in_folder, wait_until  # noqa: E402

PREFIX = sys.argv[1]
ROWS = 400
results = {"passed": 0, "failed": 0}
started = []


def check(holds, text, shown=""):
    results["passed" if holds else "failed"] += 1
    print("%s %s%s" % ("ok    " if holds else "FAILED", text, "" if holds else "\n" + str(shown)))


def tetractl(address, *words):
    return subprocess.run([BIN / "tetractl", "-h", address, *words], capture_output=True, text=True, timeout=60)


def session_at(node, level):
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([node.address]), consistency_level=level, request_timeout=20)
    cluster = Cluster([node.address], protocol_version=5, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    return cluster.connect()


def start(folder, first, centers):
    """A node for each of the data centres named, and a table with rows that all have."""
    addresses = ["%s.%d" % (PREFIX, first + i) for i in range(len(centers))]
    nodes = [Node(folder, address, "--seeds", ",".join(addresses), "--datacenter", center, serves=False)
             for address, center in zip(addresses, centers)]
    started.extend(nodes)
    for node in nodes:
        wait_until("%s serves" % node.address, node.serves)
        wait_until("%s sees all" % node.address, lambda: node.live() == set(addresses))
    session = session_at(nodes[0], ConsistencyLevel.QUORUM)
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 4}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
    insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
    for row in range(ROWS):
        session.execute(insert, (row, row))
    session.cluster.shutdown()
    return nodes


def lose(nodes, others):
    for node in nodes:
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
    lost = {node.address for node in nodes}
    for node in others:
        wait_until("%s knows" % node.address, lambda: not node.live() & lost)


def at_rest(node, members):
    partitions = json.loads(node.ask("/partitions"))
    mine = [one for one in partitions if one["keyspace"] == "ks"]
    return bool(mine) and all(one["state"] == "normal" and len(one["replicas"]) == members for one in mine)


def check_rows(node, text):
    session = session_at(node, ConsistencyLevel.QUORUM)
    found = {row.k for row in session.execute("SELECT k FROM ks.t")}
    check(found == set(range(ROWS)), text, sorted(set(range(ROWS)) - found)[:10])
    session.execute("INSERT INTO ks.t (k, v) VALUES (0, 1)")
    session.execute("CREATE TABLE IF NOT EXISTS ks.later (k int PRIMARY KEY)")
    session.cluster.shutdown()


def two_of_five(folder):
    nodes = start(folder, 131, ["dc1"] * 5)
    votes = set(json.loads(nodes[0].ask("/describe-cluster"))["metadata_voters"])
    check(len(votes) == 5, "the cluster of five has five voters, of which three stay", votes)
    lost, left = nodes[3:], nodes[:3]
    lose(lost, left)
    addresses = [node.address for node in lost]
    refused = tetractl(left[0].address, "remove-node", addresses[0])
    check(refused.returncode == 1 and "`tetractl remove-lost-nodes`" in refused.stderr, "one of them cannot be removed", refused.stderr)
    asked = tetractl(left[0].address, "remove-lost-nodes", *addresses)
    named = tetractl(left[0].address, "remove-lost-nodes", "--verbose", *addresses)
    check(asked.returncode == 1 and "ks.t: " in asked.stdout and not at_rest(left[0], 3)
          and "2 of 4 replicas are left" not in asked.stdout and "2 of 4 replicas are left" in named.stdout
          and "nothing was changed: say --accept-loss" in asked.stdout, "what may be lost is told, and nothing is done", asked.stdout + asked.stderr)
    asked = tetractl(left[0].address, "--json", "remove-lost-nodes", *addresses)
    check(json.loads(asked.stdout)["removed"] is False, "for programs, too", asked.stdout)
    done = tetractl(left[0].address, "remove-lost-nodes", "--accept-loss", *addresses)
    check(done.returncode == 0 and done.stdout.count("removed ") == 2, "they are removed", done.stdout + done.stderr)
    wait_until("all partitions have three replicas", lambda: at_rest(left[0], 3), 60)
    check_rows(left[1], "no row of the three that stay is missed")
    lost[0].start(serves=False)
    lost[0].expect_log("starts again as a new one", seconds=30)
    wait_until("it is a member", lambda: at_rest(left[0], 4), 60)
    check_rows(lost[0], "one that comes back joins as a new node")
    stop_all()


def a_data_centre(folder):
    nodes = start(folder, 141, ["east"] * 3 + ["west"] * 2)
    east, west = nodes[:3], nodes[3:]
    lose(west, east)
    done = tetractl(east[0].address, "remove-lost-nodes", "--data-center", "west", "--accept-loss")
    check(done.returncode == 0 and done.stdout.count("removed ") == 2, "a data centre is removed", done.stdout + done.stderr)
    wait_until("all partitions have three replicas", lambda: at_rest(east[0], 3), 60)
    check_rows(east[1], "QUORUM is that of the data centre that is left")


def two_of_four(folder):
    """With two of the three voters of the metadata group."""
    nodes = start(folder, 151, ["dc1"] * 4)
    votes = json.loads(nodes[0].ask("/describe-cluster"))["metadata_voters"]
    last = [node for node in nodes if node.address in votes][0]
    other = [node for node in nodes if node.address not in votes][0]
    lost = [node for node in nodes if node not in (last, other)]
    asked = tetractl(last.address, "recover-metadata", "--accept-loss")
    check(asked.returncode == 1 and "nothing of it is lost" in asked.stderr, "while enough voters are alive nobody takes over", asked.stderr)
    lose(lost, [last, other])
    asked = tetractl(last.address, "recover-metadata")
    check(asked.returncode == 1 and "Say --accept-loss" in asked.stderr, "the word is asked for", asked.stderr)
    asked = tetractl(other.address, "recover-metadata", "--accept-loss")
    check(asked.returncode == 1 and "node %s knows more" % last.address in asked.stderr, "a voter that is left goes first", asked.stderr)
    done = tetractl(last.address, "recover-metadata", "--accept-loss")
    check(done.returncode == 0 and "remove-lost-nodes" in done.stdout, "it takes over", done.stdout + done.stderr)
    wait_until("it leads", lambda: json.loads(last.ask("/describe-cluster"))["metadata_leader"] == last.address)
    done = tetractl(other.address, "remove-lost-nodes", "--accept-loss", *(node.address for node in lost))
    check(done.returncode == 0, "the lost nodes are removed, by an order to the other one", done.stdout + done.stderr)
    wait_until("all partitions have two replicas", lambda: at_rest(other, 2), 60)
    check_rows(other, "no row of the two that stay is missed")
    for node in lost:
        node.start(serves=False)
    for node in lost:
        node.expect_log("starts again as a new one", seconds=30)
    wait_until("they are members", lambda: at_rest(last, 4), 90)
    check_rows(lost[0], "those that come back, both of them, join as new nodes")
    stop_all()


def stop_all():
    while started:
        started.pop().stop()


def main(folder):
    try:
        two_of_five(folder)
        two_of_four(folder)
        a_data_centre(folder)
    finally:
        stop_all()


if __name__ == "__main__":
    run_in_folder(main, check, results)
