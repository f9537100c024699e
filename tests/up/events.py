#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# How soon a client that has sent REGISTER hears of what happens at other nodes: a schema that changes, a node that comes,
# dies, is back and leaves. Last line N passed, N failed. events.py PREFIX: of loopback, as 127.0.13; TETRAD_BIN: where tetrad and
# tetractl are.
import queue
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "tls"), str(TESTS / "overload")]
import wire  # noqa: E402
from node import Node, run_in_folder, tetractl, wait_until  # noqa: E402

ADDRESSES = ["%s.%d" % (sys.argv[1], number) for number in (131, 132, 133)]
SOON_S = 10  # "at once" is a figure, which is printed; this only tells what has been forgotten
results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    print("%s events: %s" % ("ok    " if holds else "FAILED", what), flush=True)


def strings(body):
    """All short strings of a body, up to what is none: the address of a node, which is the last item."""
    out, at = [], 0
    while at < len(body):
        if len(out) == 2 and out[0] in ("STATUS_CHANGE", "TOPOLOGY_CHANGE"):
            return out + [socket.inet_ntop(socket.AF_INET, body[at + 1:at + 1 + body[at]])]
        size = struct.unpack_from(">H", body, at)[0]
        out.append(body[at + 2:at + 2 + size].decode())
        at += 2 + size
    return out


class Hearer:
    """A connection that has asked for all events."""

    def __init__(self, address):
        wire.ADDRESS = (address, 9042)
        self.client = wire.Client(timeout=None)
        kinds = ("SCHEMA_CHANGE", "STATUS_CHANGE", "TOPOLOGY_CHANGE")
        answer = self.client.ask(wire.REGISTER, struct.pack(">H", len(kinds)) + b"".join(map(wire.string, kinds)))
        check(answer.opcode == wire.READY, "REGISTER is answered by READY: %s" % answer)
        self.heard = queue.Queue()
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        try:
            while True:
                answer = self.client.answer()
                self.heard.put((time.monotonic(), answer.stream, answer.opcode, strings(answer.body)))
        except (OSError, EOFError):
            pass

    def expect(self, since, what, *wanted):
        """Each of these events, in any order and no other but of status, within a moment."""
        missing = [list(one) for one in wanted]
        while missing:
            try:
                at, stream, opcode, event = self.heard.get(timeout=max(since + SOON_S - time.monotonic(), 0.01))
            except queue.Empty:
                return check(False, "%s: within %d s no %s" % (what, SOON_S, missing))
            if event[0] == "STATUS_CHANGE" and event not in missing:
                print("also heard: %s" % " ".join(event))  # on a machine that is busy for seconds a node may seem down
                continue
            if (stream, opcode) != (-1, 0x0C) or event not in missing:
                return check(False, "%s: stream %d, opcode %d, %s instead of %s" % (what, stream, opcode, event, missing))
            missing.remove(event)
        check(True, "%s: heard after %.0f ms: %s" % (what, (at - since) * 1000, ", ".join(" ".join(one) for one in wanted)))


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
        hearer = Hearer(ADDRESSES[0])
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
        tetractl("-h", third, "decommission", "--force")  # two remain
        nodes[2].process.wait(20)
        hearer.expect(time.monotonic(), "a node that has left", ("TOPOLOGY_CHANGE", "REMOVED_NODE", third))
        rest = [event for _, _, _, event in list(hearer.heard.queue) if event[0] != "STATUS_CHANGE"]
        check(not rest, "no other event comes: %s" % rest)
    finally:
        for node in nodes:
            node.stop()


run_in_folder(main, check, results)
