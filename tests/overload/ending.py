# SPDX-License-Identifier: Apache-2.0
"""Clients at the moment when a node stops serving them: by SIGTERM, `tetractl disablebinary`, `tetractl drain`."""

import signal
import subprocess
import threading

import wire
from cases import case, expect
from node import PROGRAM
from wire import BOOTSTRAPPING, ERROR, QUERY, RESULT, SERVER_ERROR, Client, frame, query_body

CONNECTIONS = 3
REQUESTS_MIN = 400  # of each connection; doubled until some of them are under way when the order comes
REQUESTS_MAX = 6400
SLOW = "SELECT count(*) FROM ovl.wide WHERE k = 2"
FAST = "SELECT v FROM ovl.t WHERE k = 1"
# What was not begun may be asked of another node; what was begun, and takes longer than a node that ends may wait, may not.
UNDONE = "this node has stopped before the request was done; whether it was done in part is not known"
REFUSALS = ((BOOTSTRAPPING, "this node serves no clients any more"), (SERVER_ERROR, UNDONE))
WRITE = "INSERT INTO ovl.t (k, v) VALUES (1, 'one')"


class Asker:
    """A connection with many requests under way, and what became of each: its stream's answer."""

    def __init__(self, count, version):
        self.client = Client(version=version)
        self.count, self.answers, self.end = count, {}, ""
        self.thread = threading.Thread(target=self.read)

    def send(self):
        """All of them in one go; each eighth is a write, each eighth a fast read."""
        self.thread.start()
        out = bytearray()
        for stream in range(self.count):
            text = {0: WRITE, 1: FAST}.get(stream % 8, SLOW)
            data = frame(QUERY, query_body(text, version=self.client.version), stream, self.client.version)
            out += wire.segment(data) if self.client.segments else data
        self.client.send(out)

    def read(self):
        try:
            while True:
                answer = self.client.answer()
                expect(answer.stream not in self.answers, f"stream {answer.stream} is answered twice")
                self.answers[answer.stream] = answer
        except Exception as error:
            self.end = f"{type(error).__name__}: {error}"

    def unanswered(self):
        return self.count - len(self.answers)

    def check(self):
        """Each has an answer, then the connection ends. How many are refused."""
        self.thread.join(20)
        refused = 0
        for answer in self.answers.values():
            if answer.opcode == ERROR:
                refused += 1
                expect((answer.code, answer.text) in REFUSALS, answer)
            else:
                expect(answer.opcode == RESULT, answer)
        expect(not self.unanswered(), f"{self.unanswered()} of {self.count} requests are cut off ({refused} refused): {self.end}")
        expect(self.end == "EOFError: closed with 0 of 9 bytes" or (self.client.segments and self.end.startswith("EOFError: closed with 0 of 6")),
               f"it does not end with a close: {self.end}")
        return refused


def ends_with_requests(order, again, version, count=REQUESTS_MIN):
    """Gives the order while requests are under way. How many are refused; `again` serves clients again."""
    while True:
        askers = [Asker(count, version) for _ in range(CONNECTIONS)]
        idle = Client(version=version)
        for asker in askers:
            asker.send()
        order()
        try:
            unanswered = [asker.unanswered() for asker in askers]
            refused = sum(asker.check() for asker in askers)
            expect(idle.closed(), "a client without requests is not closed")
            lets_nobody_in()
        finally:
            again()
        if refused or all(unanswered):
            return f"{refused} of {count * CONNECTIONS} refused"
        expect(count < REQUESTS_MAX, "nothing was under way")
        count *= 2


def lets_nobody_in():
    try:
        Client().socket.close()
    except (ConnectionRefusedError, ConnectionResetError):
        return
    expect(False, "a new client is let in")


def start_again(node):
    node.process.wait(20)
    expect(node.process.returncode == 0, f"exit code {node.process.returncode}: {node.log_tail()}")
    node.start()


def tetractl(*words):
    done = subprocess.run([PROGRAM.parent / "tetractl", "-h", wire.ADDRESS[0], *words], capture_output=True, text=True, timeout=30)
    expect(done.returncode == 0, f"tetractl {words}: {done.stdout}{done.stderr}")


def after_orders(word):
    return ", ".join(f"v{version}: " + ends_with_requests(lambda: tetractl(word), lambda: tetractl("enablebinary"), version) for version in (4, 5))


@case
def sigterm_answers_first(node):
    """SIGTERM: what was sent before is answered, or refused in words, before connections close; nobody is let in"""

    return ", ".join(f"v{version}: " + ends_with_requests(lambda: node.process.send_signal(signal.SIGTERM), lambda: start_again(node), version)
                     for version in (4, 5))


@case
def sigterm_after_disablebinary(node):
    """tetractl disablebinary, then SIGTERM: the same"""

    def order():
        tetractl("disablebinary")
        node.process.send_signal(signal.SIGTERM)

    return ends_with_requests(order, lambda: start_again(node), 5, REQUESTS_MAX)  # so many that the first order is not done


@case
def disablebinary_answers_first(_):
    """tetractl disablebinary: the same"""
    return after_orders("disablebinary")


@case
def drain_answers_first(_):
    """tetractl drain: the same"""
    return after_orders("drain")


@case
def sigterm_waits_a_second(node):
    """SIGTERM: a request that takes longer is told that it has no answer"""
    node.stop()
    node.start("--throughput-wait-ms", "20000")
    client = Client()
    client.done("CREATE TABLE ovl.waiting (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400")
    for _ in range(10):  # until the limit is in force
        client.query(f"INSERT INTO ovl.waiting (k, v) VALUES (1, '{'x' * (4 << 20)}')")  # 1,900 RU: a debt of nearly four seconds
        client.socket.settimeout(1)
        client.send(frame(QUERY, query_body("SELECT k FROM ovl.waiting WHERE k = 1"), 7))
        try:
            client.answer()
        except TimeoutError:
            break
        finally:
            client.socket.settimeout(20)
    else:
        expect(False, "no request has to wait")
    took = node.stop()
    answer = client.answer()
    expect((answer.stream, answer.code, answer.text) == (7, SERVER_ERROR, UNDONE), answer)
    expect(client.closed(), "the connection does not end")
    node.start()
    with Client() as other:
        other.done("DROP TABLE ovl.waiting")
    return f"stopped after {took * 1000:.0f} ms"
