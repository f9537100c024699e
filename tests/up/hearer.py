# SPDX-License-Identifier: Apache-2.0
"""A client that has sent REGISTER, and how soon it hears of what happens."""
import queue
import socket
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "overload"))
import wire  # noqa: E402

SOON_S = 10  # "at once" is a figure, which is printed; this only tells what has been forgotten


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
    """A connection that has asked for all events. `check(holds, what)` counts."""

    def __init__(self, check, address, port=9042):
        self.check = check
        wire.ADDRESS = (address, port)
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

    def expect(self, since, what, *wanted, within_s=SOON_S):
        """Each of these events, in any order and no other but of status, within a moment."""
        missing = [list(one) for one in wanted]
        while missing:
            try:
                at, stream, opcode, event = self.heard.get(timeout=max(since + within_s - time.monotonic(), 0.01))
            except queue.Empty:
                return self.check(False, "%s: within %d s no %s" % (what, within_s, missing))
            if event[0] == "STATUS_CHANGE" and event not in missing:
                print("also heard: %s" % " ".join(event))  # on a machine that is busy for seconds a node may seem down
                continue
            if (stream, opcode) != (-1, 0x0C) or event not in missing:
                return self.check(False, "%s: stream %d, opcode %d, %s instead of %s" % (what, stream, opcode, event, missing))
            missing.remove(event)
        self.check(True, "%s: heard after %.0f ms: %s" % (what, (at - since) * 1000, ", ".join(" ".join(one) for one in wanted)))
