#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# How soon a client that has sent REGISTER hears of what happens at other nodes: a schema that changes, a node that comes,
# dies, is back and leaves. Last line N passed, N failed. events.py PREFIX: of loopback, as 127.0.13; TETRAD_BIN: where tetrad and
# tetractl are.
import signal
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "tls"), str(TESTS / "overload")]
import wire  # noqa: E402
from hearer import Hearer  # noqa: E402
from node import Node, run_in_folder, tetractl, wait_until  # noqa: E402

ADDRESSES = ["%s.%d" % (sys.argv[1], number) for number in (131, 132, 133)]
results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    print("%s events: %s" % ("ok    " if holds else "FAILED", what), flush=True)


def ask(address, *statements):
    wire.ADDRESS = (address, 9042)
    with wire.Client() as client:
        for statement in statements:
            client.done(statement)
    return time.monotonic()


def main(top):
    seeds = ("--seeds", ",".join(ADDRESSES[:2]))
    nodes = [Node(top, address, *seeds, serves=False) for address in ADDRESSES[:2]]
    try:
        for node in nodes:
            wait_until("%s serves" % node.address, node.serves)
        wait_until("each sees both", lambda: all(node.live() == set(ADDRESSES[:2]) for node in nodes))
        hearer = Hearer(check, ADDRESSES[0])
        # Times are since the other node has answered, begins to serve, is killed or has ended.
        since = ask(ADDRESSES[1], "CREATE KEYSPACE e WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}")
        hearer.expect(since, "a keyspace made at the other node", ("SCHEMA_CHANGE", "CREATED", "KEYSPACE", "e"))
        since = ask(ADDRESSES[1], "CREATE TABLE e.t (k int PRIMARY KEY)")
        hearer.expect(since, "a table", ("SCHEMA_CHANGE", "CREATED", "TABLE", "e", "t"))
        since = ask(ADDRESSES[1], "DROP KEYSPACE e")
        hearer.expect(since, "a keyspace that goes", ("SCHEMA_CHANGE", "DROPPED", "KEYSPACE", "e"))
        third = ADDRESSES[2]
        nodes.append(Node(top, third, *seeds))
        hearer.expect(time.monotonic(), "a new node", ("TOPOLOGY_CHANGE", "NEW_NODE", third), ("STATUS_CHANGE", "UP", third))
        wait_until("both see it", lambda: all(third in node.live() for node in nodes[:2]))
        since = time.monotonic()
        nodes[2].process.send_signal(signal.SIGKILL)
        hearer.expect(since, "a node that is killed", ("STATUS_CHANGE", "DOWN", third))
        nodes[2].process.wait(20)
        for node in nodes[:2]:
            node.expect_log("node is down", third)
        # Known by its port, where nobody listens, at one of them at least: who is not run for seconds takes it for silence.
        wait_until("a refusal tells it", lambda: any("nobody listens there" in node.log() for node in nodes[:2]), 5)
        nodes[2].start()
        hearer.expect(time.monotonic(), "a node that is back", ("STATUS_CHANGE", "UP", third))
        wait_until("both see it", lambda: all(third in node.live() for node in nodes[:2]))
        since = time.monotonic()
        nodes[2].process.send_signal(signal.SIGTERM)
        hearer.expect(since, "a node that is told to stop", ("STATUS_CHANGE", "DOWN", third))
        nodes[2].process.wait(20)
        for node in nodes[:2]:  # from its own word, not from its silence
            node.expect_log("node is down", third, "it has said that it ends")
        nodes[2].start()
        hearer.expect(time.monotonic(), "a node that is back again", ("STATUS_CHANGE", "UP", third))
        wait_until("both see it", lambda: all(third in node.live() for node in nodes[:2]))
        # What is ordered counts from the order: it ends when the node has written what it has.
        for order, change in (("disablebinary", "DOWN"), ("enablebinary", "UP"), ("drain", "DOWN")):
            since = time.monotonic()
            tetractl("-h", third, order)
            hearer.expect(since, "a node after %s" % order, ("STATUS_CHANGE", change, third))
        check(all(third in node.live() for node in nodes[:2]), "for the nodes it is live")
        nodes[2].process.send_signal(signal.SIGTERM)
        nodes[2].process.wait(20)
        nodes[2].start()
        hearer.expect(time.monotonic(), "a drained node that is back", ("STATUS_CHANGE", "UP", third))
        wait_until("both see it", lambda: all(third in node.live() for node in nodes[:2]))
        tetractl("-h", third, "decommission", "--force")  # two remain
        nodes[2].process.wait(20)
        hearer.expect(time.monotonic(), "a node that has left", ("TOPOLOGY_CHANGE", "REMOVED_NODE", third))
        rest = [event for _, _, _, event in list(hearer.heard.queue) if event[0] != "STATUS_CHANGE"]
        check(not rest, "no other event comes: %s" % rest)
    finally:
        for node in nodes:
            node.stop()


run_in_folder(main, check, results)
