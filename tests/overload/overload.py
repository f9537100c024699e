# SPDX-License-Identifier: Apache-2.0
"""Hostile and greedy clients. After each case the node lives, answers another client, and has stayed within its memory."""

import contextlib
import random
import resource
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback

import wire
from cases import CASES, case, expect, expect_error
from node import Node
from wire import (BATCH, ERROR, EXECUTE, INVALID, OPTIONS, OVERLOADED, PREPARE, PROTOCOL, QUERY, READY, REGISTER, RESULT,
                  STARTUP, SUPPORTED, SYNTAX, UNPREPARED, Client, Failure, frame, query_body, segment)

RSS_MAX_KB = 400 << 10
RSS_KEPT_KB = 250 << 10  # that a node keeps when a case is over
STARVED_S = 10  # nobody is left to wait that long; how long they do wait is printed, and depends on the machine
SECONDS_MAX = 240  # far more than it takes; the machine may be busy


class Bystander:
    """An honest client that asks all the time; how long it waits for its answers."""

    def __enter__(self):
        self.waits, self.failure, self.ended = [], None, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        try:
            with Client() as client:
                while not self.ended.is_set():
                    began = time.monotonic()
                    client.done("SELECT v FROM ovl.t WHERE k = 1")
                    self.waits.append(time.monotonic() - began)
                    self.ended.wait(0.01)
        except (Failure, OSError, EOFError) as e:
            self.failure = repr(e)

    def __exit__(self, kind, *_):
        self.ended.set()
        self.thread.join()
        if kind is None:
            expect(self.failure is None and self.waits, f"another client was not answered: {self.failure}")

    def words(self):
        waits = sorted(self.waits) or [0]
        return f"another client waited {waits[len(waits) // 2] * 1000:.1f} ms in the middle, {waits[-1] * 1000:.0f} ms at most"


def set_up():
    with Client() as client:
        client.done("CREATE KEYSPACE ovl WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.done("CREATE TABLE ovl.t (k int PRIMARY KEY, v text)")
        client.done("CREATE TABLE ovl.wide (k int, c int, v text, PRIMARY KEY (k, c))")
        client.done("INSERT INTO ovl.t (k, v) VALUES (1, 'one')")
        for c in range(16):
            client.done(f"INSERT INTO ovl.wide (k, c, v) VALUES (1, {c}, '{'x' * 65536}')")
        for c in range(1000):
            client.done(f"INSERT INTO ovl.wide (k, c, v) VALUES (2, {c}, 'v')")
        for c in range(280):
            client.done(f"INSERT INTO ovl.wide (k, c, v) VALUES (5, {c}, '{'x' * 65536}')")


# --- frames that lie ----------------------------------------------------------------------------------------------------


@case
def versions_are_refused(_):
    """versions 0x42, 1, 2 and 6 are refused in words that drivers look for"""
    for opcode, body in ((OPTIONS, b""), (STARTUP, wire.startup_body())):
        for version, answered, old in ((0x42, 0x85, False), (1, 0x81, True), (2, 0x82, True), (6, 0x85, False), (0, 0x85, False)):
            with Client(start=False) as client:
                head = struct.pack(">BBbBi", version, 0, 0, opcode, len(body)) if old else struct.pack(">BBhBi", version, 0, 0, opcode, len(body))
                client.send(head + body)
                if old:
                    got, _, _, kind, size = struct.unpack(">BBbBi", client.exactly(8))
                else:
                    got, _, _, kind, size = struct.unpack(">BBhBi", client.exactly(9))
                said = client.exactly(size)
                expect((got, kind) == (answered, ERROR), f"version {version}: header {got:#x} opcode {kind}")
                expect(struct.unpack_from(">i", said)[0] == PROTOCOL, said)
                for words in (f"Invalid or unsupported protocol version ({version})", "(3/v3, 4/v4, 5/v5)"):
                    expect(words in said.decode(errors="replace"), said)
                expect(client.closed(), f"version {version}: not closed")


@case
def startup_comes_first(_):
    """requests before STARTUP are refused; STARTUP needs CQL_VERSION, once"""
    with Client(start=False) as client:
        for opcode, body in ((EXECUTE, struct.pack(">H", 16) + b"i" * 16 + wire.parameters()), (QUERY, query_body("SELECT 1")),
                             (PREPARE, wire.long_string("x")), (REGISTER, struct.pack(">H", 0)), (0x0F, wire.value(b"\0u\0p"))):
            expect_error(client.ask(opcode, body), PROTOCOL)
        expect(client.ask(OPTIONS).opcode == SUPPORTED, "OPTIONS before STARTUP")
        expect_error(client.ask(STARTUP, struct.pack(">H", 0)), PROTOCOL)
        expect_error(client.ask(STARTUP, wire.startup_body(COMPRESSION="zip")), PROTOCOL)
        expect(client.ask(STARTUP, wire.startup_body()).opcode == READY, "a good STARTUP after bad ones")
        expect_error(client.ask(STARTUP, wire.startup_body()), PROTOCOL)
        client.done("SELECT v FROM ovl.t WHERE k = 1")


@case
def lengths_that_lie(_):
    """negative, oversize, 256 MiB and never filled body lengths"""
    with Client() as client:
        client.send(struct.pack(">BBhBi", 4, 0, 7, QUERY, -1))
        expect_error(client.answer(), PROTOCOL)
        expect(client.closed(), "not closed after a negative length")
    with Client() as client:  # skipped as it comes, and the connection goes on
        size = 17 << 20
        client.send(struct.pack(">BBhBi", 4, 0, 9, QUERY, size))
        answer = client.answer()
        expect_error(answer, INVALID, text=str(size))
        expect(answer.stream == 9, answer)
        for _ in range(17):
            client.send(b"x" * (1 << 20))
        client.done("SELECT v FROM ovl.t WHERE k = 1")
    with Client() as client:
        client.send(struct.pack(">BBhBi", 4, 0, 9, QUERY, 256 << 20))
        expect_error(client.answer(), INVALID, text=str(256 << 20))
    with Client(start=False) as client:
        client.send(struct.pack(">BBhBi", 4, 0, 9, STARTUP, 8 << 20))
        expect_error(client.answer(), INVALID, PROTOCOL)
    waiting = [Client() for _ in range(200)]
    for client in waiting:
        client.send(struct.pack(">BBhBi", 4, 0, 1, QUERY, 15 << 20) + b"x" * 1000)
    with Bystander():
        time.sleep(0.2)
    for client in waiting:
        client.socket.close()
    for opcode in (QUERY, PREPARE, EXECUTE, BATCH):  # the lengths inside the body
        with Client() as client:
            for body in (b"\x7f\xff\xff\xff", b"\xff" * 12, b"\x00\x00\x00\x01", b"", b"\x00\x10" + b"\x7f" * 20, b"\x00\xff\xff" + b"\x00" * 9):
                expect_error(client.ask(opcode, body), PROTOCOL, SYNTAX, UNPREPARED, INVALID)


def lz4_of_zeros(size):
    """A block of LZ4 that grows 255 times: one literal, then a match of itself."""
    match = size - 1 - 5 - 4
    extra, rest = divmod(match - 15, 255)
    return b"\x1f\x00\x01\x00" + b"\xff" * extra + bytes([rest]) + b"\x50" + b"\x00" * 5


@case
def lz4_bombs(_):
    """bodies that say they grow to 256 MiB, and bodies that do grow 255 times"""
    with Client(COMPRESSION="lz4") as client:
        for body in (struct.pack(">I", 256 << 20) + b"x" * 10, struct.pack(">I", 0xFFFFFFFF) + b"x" * 10, struct.pack(">I", 16 << 20) + b"x" * 10,
                     struct.pack(">I", 100) + lz4_of_zeros(16 << 20), b"", b"\x00"):
            expect_error(client.ask(QUERY, body, flags=1), PROTOCOL, INVALID)
        for _ in range(8):
            expect_error(client.ask(QUERY, struct.pack(">I", 15 << 20) + lz4_of_zeros(15 << 20), flags=1), PROTOCOL, SYNTAX)
    with Client(COMPRESSION="snappy") as client:
        for body in (b"\xff\xff\xff\xff\x0f" + b"x" * 10, b"", b"\x80\x80\x80\x08" + b"\xfe\x01\x00" * 50):
            expect_error(client.ask(QUERY, body, flags=1), PROTOCOL, INVALID)
    with Client() as client:
        expect_error(client.ask(QUERY, b"x" * 10, flags=1), PROTOCOL)


@case
def segments_with_bad_checksums(_):
    """v5: a bad checksum of a header or a payload ends the connection, with words"""
    with Client(version=5) as client:
        client.done("SELECT v FROM ovl.t WHERE k = 1")
    for spoil in ("header", "payload"):
        with Client(version=5) as client:
            good = segment(frame(OPTIONS, version=5))
            client.send(good + segment(frame(OPTIONS, version=5), spoil=spoil) + good)
            expect(client.answer().opcode == SUPPORTED, "the good segment before")
            expect_error(client.answer(), PROTOCOL)
            expect(client.closed(), "not closed")
    with Client(version=5) as client:  # a part of a large message that never goes on
        client.send(segment(struct.pack(">BBhBi", 5, 0, 1, QUERY, 15 << 20) + b"x" * 100, self_contained=False))
        client.send(segment(frame(OPTIONS, version=5)))
        expect_error(client.answer(), PROTOCOL)
    with Client(version=5) as client:
        client.send(segment(frame(OPTIONS, version=5)[:5]))
        expect_error(client.answer(), PROTOCOL)


@case
def random_garbage(_):
    """2,000 connections and messages of random bytes"""
    source = random.Random(7)
    opcodes = (ERROR, STARTUP, READY, OPTIONS, QUERY, PREPARE, EXECUTE, REGISTER, BATCH, 0x0F, 0x33)
    for _ in range(500):
        with Client(start=False) as client:
            try:
                client.send(source.randbytes(source.randrange(1, 400)))
            except OSError:
                pass
    for i in range(1500):
        if i % 50 == 0:
            client = Client(version=4 + i // 50 % 2, timeout=5)
        body = source.randbytes(source.randrange(0, 200))
        if i % 3 == 0:  # deeper: a good statement with garbage behind it
            body = wire.long_string("SELECT v FROM ovl.t WHERE k = ?") + body
        data = frame(source.choice(opcodes), body, source.randrange(0, 100), client.version, source.randrange(256) & ~1)
        try:
            client.send(segment(data) if client.segments else data)
            if i % 50 == 49:
                client.socket.shutdown(socket.SHUT_WR)
                expect(client.closed(), "not closed after the client's end")
        except (BrokenPipeError, ConnectionResetError):
            pass


# --- too many, too slow -------------------------------------------------------------------------------------------------


@case
def idle_connections(node):
    """10,000 idle connections opened and closed"""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    count = 10000 if most == resource.RLIM_INFINITY else min(10000, most - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 500, most))
    before = node.memory_kb()
    began = time.monotonic()
    idle = []
    for _ in range(count):
        idle.append(Client(start=False))
    for client in idle[:300]:  # the others leave after the first byte
        client.send(frame(STARTUP, wire.startup_body()))
    for client in idle[300:]:
        client.send(b"\x04")
    for client in idle[:300]:
        expect(client.answer().opcode == READY, "STARTUP among many")
    took = time.monotonic() - began
    with Bystander() as bystander:
        time.sleep(0.2)
    grown = node.memory_kb() - before
    for client in idle:
        client.socket.close()
    return f"{count} opened in {took:.1f} s, {grown} KiB more, {bystander.words()}"


@case
def clients_that_never_read(node):
    """200 clients that send requests and never read"""
    clients = [Client(receive_buffer=4096) for _ in range(200)]
    requests = b"".join(frame(QUERY, query_body("SELECT * FROM ovl.wide WHERE k = 1"), stream) for stream in range(100))
    with Bystander() as bystander:
        for client in clients:
            client.socket.setblocking(False)
        for _ in range(20):
            for client in clients:
                try:
                    client.socket.send(requests)
                except BlockingIOError:
                    pass
            time.sleep(0.1)
    expect(sorted(bystander.waits)[len(bystander.waits) // 2] < STARVED_S, bystander.words())
    for client in clients[1:]:
        client.socket.close()
    # One of them thinks better of it: all that it was promised comes.
    clients[0].socket.setblocking(True)
    clients[0].socket.settimeout(20)
    for _ in range(100):
        answer = clients[0].answer()
        expect(answer.opcode == RESULT or answer.code == OVERLOADED, answer)
    clients[0].socket.close()
    return bystander.words()


@case
def large_answers_that_nobody_reads(node):
    """12 clients that leave a page of 16 MiB unread, beside one that takes 1 MiB at a time"""
    request = frame(QUERY, query_body("SELECT * FROM ovl.wide WHERE k = 1"))
    with Client() as honest:
        honest.socket.settimeout(20)
        for c in range(280):
            honest.done(f"INSERT INTO ovl.wide (k, c, v) VALUES (4, {c}, '{'x' * 65536}')")
        honest.send(request)
        expect(honest.answer().opcode == RESULT, "1 MiB before")
        sleepers = [Client(receive_buffer=4096) for _ in range(12)]
        for client in sleepers:
            client.send(frame(QUERY, query_body("SELECT * FROM ovl.wide WHERE k = 4")))
            time.sleep(0.1)
        began, answered, refused = time.monotonic(), 0, 0
        # Those who read nothing are closed after a minute where nobody minds.
        while answered < 5:
            honest.send(request)
            answer = honest.answer()
            answered += answer.opcode == RESULT
            refused += answer.code == OVERLOADED
            expect(answer.opcode == RESULT or answer.code == OVERLOADED, answer)
            expect(time.monotonic() - began < 30, f"{answered} answers in half a minute for a client that reads, {refused} refused")
            time.sleep(0.1)
        waited = time.monotonic() - began
    for client in sleepers:
        client.socket.close()
    return f"the one that reads has five answers after {waited:.1f} s, refused {refused} times before"


@case
def large_answers_in_a_row(node):
    """a client that asks for 20 pages of 16 MiB at once and takes its time"""
    with Client(timeout=60) as client:
        with Bystander() as bystander:
            client.send(b"".join(frame(QUERY, query_body("SELECT * FROM ovl.wide WHERE k = 5"), stream) for stream in range(20)))
            for _ in range(20):
                answer = client.answer()
                expect(answer.opcode == RESULT, answer)
                time.sleep(0.2)
    return bystander.words()


@case
def a_small_answer_among_large_ones(_):
    """a point read behind 20 pages of 16 MiB of its own connection, and pages that wait for longer than a read may take"""
    with Client(timeout=60) as client:
        point = client.prepare("SELECT v FROM ovl.t WHERE k = ?")
        large = client.prepare("SELECT * FROM ovl.wide WHERE k = ?")
        execute = lambda identifier, k, stream: frame(EXECUTE, struct.pack(">H", 16) + identifier + wire.parameters(values=[struct.pack(">i", k)]), stream)
        client.send(execute(large, 5, 0))  # from now on it is known to be large
        expect(client.answer().opcode == RESULT, "a page")
        with Bystander() as bystander:
            client.send(b"".join(execute(large, 5, stream) for stream in range(20)) + execute(point, 1, 99))
            streams = []
            for _ in range(21):
                answer = client.answer()
                expect(answer.opcode == RESULT, answer)
                streams.append(answer.stream)
                if answer.stream != 99:
                    time.sleep(0.6)
    expect(streams.index(99) < 3, streams)
    return f"after {streams.index(99)} of them, {bystander.words()}"


@case
def large_answers_that_were_taken(node):
    """40 clients that have taken a page of 16 MiB each, and stay: nothing is kept for them"""
    before = node.give_back(RSS_KEPT_KB, 10)
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            client = stack.enter_context(Client(timeout=60, receive_buffer=65536))
            answer = client.query("SELECT * FROM ovl.wide WHERE k = 5")
            expect(answer.opcode == RESULT and len(answer.body) > 16 << 20, answer)
        time.sleep(2)
        kept = node.memory_kb() - before
        expect(kept < 80 << 10, f"{kept >> 10} MiB are kept")
    return f"{kept >> 10} MiB more than before"


@case
def small_answers_then_large_ones(node):
    """100 clients whose statement has answered little until all ask it for 1 MiB, and never read"""
    executed = lambda identifier, k, stream: frame(EXECUTE, struct.pack(">H", 16) + identifier + wire.parameters(values=[struct.pack(">i", k)]), stream)
    clients = [Client(receive_buffer=4096) for _ in range(100)]
    for client in clients:
        identifier = client.prepare("SELECT * FROM ovl.wide WHERE k = ?")
        for _ in range(5):
            client.send(b"".join(executed(identifier, 3, stream) for stream in range(100)))
            for _ in range(100):
                expect(client.answer().opcode == RESULT, "an empty answer")
    requests = b"".join(executed(identifier, 1, stream) for stream in range(500))
    with Bystander() as bystander:
        for client in clients:
            client.socket.setblocking(False)
            try:
                client.socket.send(requests)
            except BlockingIOError:
                pass
        time.sleep(2)
    expect(sorted(bystander.waits)[len(bystander.waits) // 2] < STARVED_S, bystander.words())
    for client in clients:
        client.socket.close()
    return bystander.words()


@case
def a_byte_at_a_time(_):
    """senders of one byte at a time"""
    for version in (4, 5):
        with Client(version=version) as client:
            data = frame(QUERY, query_body("SELECT v FROM ovl.t WHERE k = 1", version=version), 3, version)
            for byte in segment(data) if version == 5 else data:
                client.send(bytes([byte]))
            answer = client.answer()
            expect(answer.opcode == RESULT and answer.stream == 3 and b"one" in answer.body, answer)


@case
def streams_in_flight(_):
    """32,000 streams in flight on one connection"""
    with Client() as client, Bystander() as bystander:
        began = time.monotonic()
        body = query_body("SELECT v FROM ovl.t WHERE k = 1")
        data = b"".join(frame(QUERY, body, stream) for stream in range(32000))
        sender = threading.Thread(target=client.send, args=(data,))
        sender.start()
        seen = set()
        for _ in range(32000):
            answer = client.answer()
            expect(answer.opcode == RESULT or answer.code == OVERLOADED, answer)
            seen.add(answer.stream)
        sender.join()
        expect(len(seen) == 32000, f"{len(seen)} streams answered")
        took = time.monotonic() - began
    return f"{took:.1f} s, {bystander.words()}"


# --- statements that are too large --------------------------------------------------------------------------------------


@case
def texts_of_15_mib(_):
    """statements of 15 MiB"""
    size = 15 << 20
    remarks, took = [], []
    with Client(timeout=60) as client, Bystander() as bystander:
        for name, text in (("string", "INSERT INTO ovl.t (k, v) VALUES (2, '" + "x" * size + "')"), ("unclosed", "SELECT '" + "x" * size), ("spaces", " " * size),
                           ("brackets", "SELECT v FROM ovl.t WHERE k = " + "(" * size), ("IN", "SELECT v FROM ovl.t WHERE k IN (" + "1," * (size // 2) + "1)"),
                           ("columns", "SELECT " + "v," * (size // 2) + "v FROM ovl.t"), ("list", "INSERT INTO ovl.t (k, v) VALUES (1, [" + "1," * (size // 2) + "1])"),
                           ("comments", "/**/" * (size // 4)), ("batch", "BEGIN BATCH " + "DELETE FROM ovl.t WHERE k=3;" * (size // 28) + " APPLY BATCH"),
                           ("name", "SELECT " + "a" * size + " FROM ovl.t"), ("number", "SELECT v FROM ovl.t WHERE k = " + "9" * size)):
            began = time.monotonic()
            answer = client.query(text)
            expect(answer.opcode == RESULT or answer.code in (SYNTAX, INVALID), f"{name}: {answer}")
            expect(len(answer.body) < 70000, f"{name}: an answer of {len(answer.body)} bytes")
            took.append(time.monotonic() - began)
            remarks.append(f"{name} {took[-1] * 1000:.0f}")
        client.done("INSERT INTO ovl.t (k, v) VALUES (2, 'two')")
    # They are parsed off the loop: another client does not wait as long as they take.
    expect(sum(bystander.waits) < sum(took) / 2, f"{sum(bystander.waits):.1f} s of {sum(took):.1f} s; {bystander.words()}")
    return "ms: " + ", ".join(remarks) + "; " + bystander.words()


@case
def deep_nesting(_):
    """10,000 levels of everything that nests"""
    n = 10000
    texts = (f"CREATE TABLE ovl.d (k int PRIMARY KEY, v {'frozen<list<' * n}int{'>>' * n})", f"INSERT INTO ovl.t (k, v) VALUES (1, {'[' * n}1{']' * n})",
             f"INSERT INTO ovl.t (k, v) VALUES (1, {'{' * n}1{'}' * n})", f"INSERT INTO ovl.t (k, v) VALUES (1, {'(' * n}1{')' * n})",
             f"SELECT v FROM ovl.t WHERE k = {'(' * n}1{')' * n}", f"SELECT {'cast(' * n}v{' as text)' * n} FROM ovl.t", f"SELECT {'f(' * n}v{')' * n} FROM ovl.t",
             f"SELECT v FROM ovl.t WHERE k = {'-' * n}1", f"SELECT v FROM ovl.t WHERE k = {'1+' * n}1", f"SELECT v FROM ovl.t WHERE {'(' * n}k{')' * n} = 1",
             f"SELECT v{'.a' * n} FROM ovl.t", f"SELECT v{'[1]' * n} FROM ovl.t", f"INSERT INTO ovl.t JSON '{'[' * n}'", f"SELECT v FROM ovl.t WHERE k = {'(int)' * n}1",
             f"INSERT INTO ovl.t JSON '" + '{"k": ' * n + "'", f"{'/*' * n}", f"{'BEGIN BATCH ' * n}")
    with Client(timeout=60) as client:
        for text in texts:
            answer = client.query(text)
            expect(answer.opcode == RESULT or answer.code in (SYNTAX, INVALID), f"{text[:60]}: {answer}")


@case
def values_by_the_thousand(_):
    """65,535 values; IN of 65,535 markers; a batch of 65,535 statements"""
    n = 65535
    with Client(timeout=60) as client, Bystander() as bystander:
        began = time.monotonic()
        one = struct.pack(">i", 1)
        expect_error(client.query("SELECT v FROM ovl.t WHERE k = ?", values=[one] * n), INVALID)
        identifier = client.prepare("SELECT v FROM ovl.t WHERE k IN (" + "?," * (n - 1) + "?)")
        values = [struct.pack(">i", i) for i in range(n)]
        answer = client.ask(EXECUTE, struct.pack(">H", 16) + identifier + wire.parameters(values=values))
        expect(answer.opcode == RESULT or answer.code in (INVALID, 0x1200, OVERLOADED), answer)
        expect_error(client.query("SELECT v FROM ovl.t WHERE k IN (" + "?," * n + "?)", values=[one] * n), INVALID, SYNTAX, PROTOCOL)
        part = b"\x00" + wire.long_string("DELETE FROM ovl.t WHERE k = 3") + struct.pack(">H", 0)
        answer = client.ask(BATCH, b"\x01" + struct.pack(">H", n) + part * n + struct.pack(">HB", 1, 0))
        expect(answer.opcode == RESULT or answer.code in (INVALID, 0x1100, OVERLOADED), answer)
        took = time.monotonic() - began
    return f"{took:.1f} s, {bystander.words()}"


@case
def prepared_statements(_):
    """20,000 distinct prepared statements, then 40 of 60,000 markers each"""
    with Client(timeout=60) as client, Bystander() as bystander:
        began = time.monotonic()
        identifiers = []
        for i in range(0, 20000, 500):
            client.send(b"".join(frame(PREPARE, wire.long_string(f"SELECT v AS v{j} FROM ovl.t WHERE k = ?"), j - i) for j in range(i, i + 500)))
            for _ in range(500):
                answer = client.answer()
                expect(answer.opcode == RESULT, answer)
                if answer.stream in (0, 499):
                    identifiers.append(answer.body[6:22])
        run = lambda identifier: client.ask(EXECUTE, struct.pack(">H", 16) + identifier + wire.parameters(values=[struct.pack(">i", 1)]))
        answer = run(identifiers[0])
        expect_error(answer, UNPREPARED)
        expect(identifiers[0] in answer.body, "UNPREPARED names the statement")
        answer = run(identifiers[-1])
        expect(answer.opcode == RESULT and b"one" in answer.body, answer)
        small = time.monotonic() - began
        markers = "?," * 59999 + "?"
        for i in range(40):
            answer = client.ask(PREPARE, wire.long_string(f"SELECT v AS v{i} FROM ovl.t WHERE k IN ({markers})"))
            expect(answer.opcode == RESULT, answer)
    return f"{small:.1f} s and {time.monotonic() - began - small:.1f} s, {bystander.words()}"


@case
def paging(_):
    """a page of 2^31-1 rows; paging states that are forged, spoiled or another statement's or table's"""
    text = "SELECT c FROM ovl.wide WHERE k = 2"
    with Client() as client:
        answer = client.done(text, page_size=2**31 - 1)
        expect(struct.unpack_from(">i", answer.body, 4)[0] & 2 == 0, "more pages after a page of everything")
        answer = client.done(text, page_size=10)
        expect(struct.unpack_from(">i", answer.body, 4)[0] & 2 == 2, "no more pages")
        state = answer.body[16:16 + struct.unpack_from(">i", answer.body, 12)[0]]
        client.done(text, page_size=10, paging_state=state)
        # Statements of rows of the table go on from that place, wherever they begin and end; no others do.
        rows = "SELECT c FROM ovl.wide"
        for other in (f"{rows} WHERE k = 1", f"{text} ORDER BY c DESC", f"{text} AND c > 1000000", f"{text} AND c IN (1, 50)",
                      f"{rows} WHERE k IN (1, 2, 3)", f"{text} LIMIT 3", rows, f"{rows} WHERE c = 50 ALLOW FILTERING",
                      f"{rows} PER PARTITION LIMIT 2", f"{rows} WHERE token(k) >= token(2)"):
            client.done(other, page_size=10, paging_state=state)
        for other in ("SELECT count(*) FROM ovl.wide WHERE k = 2", "SELECT DISTINCT k FROM ovl.wide", "SELECT v FROM ovl.t",
                      "SELECT k, c FROM ovl.wide GROUP BY k", f"{rows} WHERE token(k) > 9223372036854775806"):
            expect_error(client.query(other, page_size=10, paging_state=state), PROTOCOL, INVALID)
        source = random.Random(3)
        for _ in range(300):
            forged = bytearray(state)
            forged[source.randrange(len(forged))] ^= 1 << source.randrange(8)
            expect_error(client.query(text, page_size=10, paging_state=bytes(forged)), PROTOCOL, INVALID)
            expect_error(client.query(text, page_size=10, paging_state=source.randbytes(source.randrange(100))), PROTOCOL, INVALID)
        expect_error(client.query(text, page_size=10, paging_state=state[:-1]), PROTOCOL, INVALID)
        expect_error(client.query(text, page_size=10, paging_state=state * 1000), PROTOCOL, INVALID)


@case
def register_again_and_again(_):
    """REGISTER 10,000 times; an event still comes once"""
    body = struct.pack(">H", 1) + wire.string("SCHEMA_CHANGE")
    with Client() as client:
        for _ in range(20):
            client.send(frame(REGISTER, body) * 500)
            for _ in range(500):
                expect(client.answer().opcode == READY, "REGISTER")
        with Client() as other:
            other.done("CREATE TABLE ovl.event (k int PRIMARY KEY)")
        expect(client.answer().opcode == 0x0C, "no event")
        expect(client.ask(OPTIONS).opcode == SUPPORTED, "a second event")


# --- start and stop -----------------------------------------------------------------------------------------------------


@case
def refuses_to_start(node):
    """a public address, unknown options, bad values: one line, exit code 2; what may pass, as a second node on the same data: 1"""
    taken = ("--data-directory", f"{node.folder}/other", "--native-port", "9142", "--internode-port", "7100", "--log-level", "error")
    for arguments, words in (((), "in use"), (taken, "cannot listen for admin requests"), (("--data-directory", "/proc/none"), "cannot make the data directory"),
                             (("--listen-address", "0.0.0.0"), "listen_address"), (("--listen-address", "192.0.2.1"), "insecure-listen"),
                             (("--no-such-option", "1"), "no-such-option"), (("--io-threads", "1000"), "io_threads"), (("--log-level", "loud"), "log_level"),
                             (("--config", "/no/such/file.yaml"), "/no/such/file.yaml"), (("--native-port", "9042x"), "native_port"),
                             (("--data-directory", f"{node.folder}/none", "--data-disk-usage-max-disk-size", "1000000GiB"), "data_disk_usage_max_disk_size")):
        code, said = node.refused(*arguments)
        passes = words == "in use" or words.startswith("cannot ")
        expect(code == (1 if passes else 2) and words in said and len(said.splitlines()) == 1, f"{arguments}: exit code {code}: {said}")


@case
def keeps_what_it_was_started_with(node):
    """another cluster name or number of shards than the data's: one line, exit code 2, and the node is back as it was"""
    node.stop()
    for arguments, words in ((("--cluster-name", "Other"), "the saved name 'tetrad' != the configured name 'Other'"), (("--shards", "7"), "first started with")):
        code, said = node.refused(*arguments)
        expect(code == 2 and words in said and len(said.splitlines()) == 1, f"{arguments}: exit code {code}: {said}")
    node.start()
    with Client() as client:
        expect(client.ask(OPTIONS).opcode == SUPPORTED, "not back")


@case
def stops_under_load(node):
    """SIGTERM under load: stopped without waiting for clients, and back with everything"""
    ended = threading.Event()

    def load():
        try:
            with Client() as client:
                data = b"".join(frame(QUERY, query_body("SELECT * FROM ovl.wide WHERE k = 1"), stream) for stream in range(50))
                while not ended.is_set():
                    client.send(data)
                    for _ in range(50):
                        client.answer()
        except (OSError, EOFError):
            pass

    threads = [threading.Thread(target=load) for _ in range(4)]
    silent = [Client() for _ in range(20)]
    for client in silent:
        client.socket.setblocking(False)
        client.socket.send(frame(QUERY, query_body("SELECT * FROM ovl.wide WHERE k = 1")) * 200)
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    node.peak_kb()
    took = node.stop(signal.SIGTERM)
    ended.set()
    for thread in threads:
        thread.join()
    code = node.process.returncode
    again = node.start()
    expect(code == 0, f"exit code {code}: {node.log_tail()}")
    expect(took < STARVED_S, f"stopped after {took:.2f} s: {node.log_tail()}")
    return f"stopped after {took * 1000:.0f} ms, the start after it took {again:.0f} ms"


# --- in files of their own; limits last, as they leave caches filled -------------------------------------------------------

import ending  # noqa: E402, F401
import budget  # noqa: E402, F401
import disk  # noqa: E402, F401
import throughput  # noqa: E402, F401
import rights  # noqa: E402, F401


def check(node):
    expect(node.alive(), f"the node died: exit code {node.process.poll()}: {node.log_tail()}")
    with Client() as client:
        answer = client.done("SELECT v FROM ovl.t WHERE k = 1")
        expect(b"one" in answer.body, "another client's row")
    peak = node.peak_kb()
    expect(peak < RSS_MAX_KB, f"RSS {peak >> 10} MiB")
    left = node.give_back(RSS_KEPT_KB, 10)
    expect(left <= RSS_KEPT_KB, f"RSS {left >> 10} MiB ten seconds later")
    return peak


def run(node, wanted):
    """How many cases passed and failed."""
    passed = failed = 0
    began_all = time.monotonic()

    def out_of_time(*_):
        raise TimeoutError(f"{SECONDS_MAX} s are over")

    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(SECONDS_MAX)
    try:
        first = node.start()
        print(f"{node.shards} shards; start to first answer: {first:.0f} ms" + (f"\n{node.log_tail()}" if first > 5000 else ""))
        time.sleep(0.5)
        print(f"idle RSS: {node.memory_kb() >> 10} MiB")
        set_up()
        node.peak_kb()
        for one in wanted:
            began = time.monotonic()
            try:
                remark = one(node)
                peak = check(node)
                passed += 1
                print(f"ok      {one.__doc__} ({time.monotonic() - began:.1f} s, RSS {peak >> 10} MiB{'; ' + remark if remark else ''})", flush=True)
            except TimeoutError as e:
                if "are over" in str(e):
                    raise
                failed += 1
                print(f"FAILED  {one.__doc__}: no answer: {traceback.format_exc()}", flush=True)
            except Exception as e:
                failed += 1
                print(f"FAILED  {one.__doc__}: {type(e).__name__} {e}\n{''.join(traceback.format_tb(e.__traceback__))}", flush=True)
            if not node.alive():
                print(f"the node ended with exit code {node.process.poll()}; started again\n{node.log_tail()}", flush=True)
                node.start()
    except Exception as e:
        failed += 1
        print(f"FAILED  {e}\n{traceback.format_exc()}")
    finally:
        signal.alarm(0)
        node.stop()
    print(f"highest RSS: {node.rss_max_kb >> 10} MiB; {time.monotonic() - began_all:.0f} s")
    return passed, failed


def main():
    wanted = [c for c in CASES if not sys.argv[1:] or c.__name__ in sys.argv[1:]]
    passed = failed = 0
    for shards in (1, 2):
        with tempfile.TemporaryDirectory(prefix="tetrad-overload-") as folder:
            of_these = run(Node(folder, shards), wanted)
        passed, failed = passed + of_these[0], failed + of_these[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
