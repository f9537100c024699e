# SPDX-License-Identifier: Apache-2.0
"""Requests that are much work, one kind after another, beside a client of point reads. Each would hold its shard for
seconds, or take hundreds of megabytes, if it were done in one go on the loop."""

import multiprocessing
import pathlib
import struct
import time

import wire
from cases import case, expect
from wire import BATCH, ERROR, EXECUTE, INVALID, OVERLOADED, PREPARE, RESULT, Client, Failure

READ_TIMEOUT, WRITE_TIMEOUT, FUNCTION_FAILURE, SYNTAX = 0x1200, 0x1100, 0x1400, 0x2000
ANSWERS = (INVALID, OVERLOADED, READ_TIMEOUT, WRITE_TIMEOUT, FUNCTION_FAILURE, SYNTAX)  # but never silence
SECONDS_EACH = 1.5  # of each attack, one request at least
REQUEST_MB = 160  # what the node may take for requests
PREPARED_MB = 128  # what it keeps prepared
STORE_MB = 192  # its memtables, and flushes and compactions of values of 16 MiB
RSS_MAX_KB = (REQUEST_MB + PREPARED_MB + STORE_MB + 64) << 10  # more than before the attacks

ATTACKS = []


def attack(setup=None):
    def add(function):
        ATTACKS.append((function, setup))
        return function
    return add


def int4(number):
    return struct.pack(">i", number)


def collection(items):
    return int4(len(items)) + b"".join(map(wire.value, items))


def ints(count, first=0):
    """A list of ints as the protocol writes it, quickly."""
    pack = struct.Struct(">ii").pack
    return int4(count) + b"".join(pack(4, first + i) for i in range(count))


def execute(client, text, *values, identifier=None):
    identifier = identifier or client.prepare(text)
    return client.ask(EXECUTE, struct.pack(">H", 16) + identifier + wire.parameters(values=list(values)))


def decimal(scale, unscaled):
    return int4(scale) + unscaled


# --- the victim -----------------------------------------------------------------------------------------------------------


def read_points(ended, results):
    """In a process of its own: what attackers do to Python's lock is not what they do to the node."""
    waits, failure = [], None
    try:
        with Client(timeout=60) as client:
            identifier = client.prepare("SELECT v FROM ovl.t WHERE k = ?")
            while not ended.is_set():
                began = time.monotonic()
                answer = execute(client, None, int4(1), identifier=identifier)
                waits.append((began, time.monotonic() - began))
                if answer.opcode != RESULT or b"one" not in answer.body:
                    failure = repr(answer)
                    break
                time.sleep(0.002)
    except (Failure, OSError, EOFError) as e:
        failure = repr(e)
    results.put((waits, failure))


# --- the attacks ------------------------------------------------------------------------------------------------------------


def decimals(client):
    client.done("CREATE TABLE ovl.d (k int PRIMARY KEY, d decimal)")
    insert = client.prepare("INSERT INTO ovl.d (k, d) VALUES (?, ?)")
    for k in range(300):
        execute(client, None, int4(k), decimal(-315_000 - 2 * k, b"\x07"), identifier=insert)


@attack(decimals)
def scales_far_apart(client):
    """a decimal of 128 KiB against 300 of five bytes"""
    return execute(client, "SELECT k FROM ovl.d WHERE d > ? ALLOW FILTERING", decimal(0, b"\x01" + bytes(128 << 10)))


def json_table(client):
    client.done("CREATE TABLE ovl.j (k int PRIMARY KEY, fl frozen<list<int>>, l list<int>)")


@attack(json_table)
def json_of_many_values(client):
    """JSON of 15 MiB, two bytes a value"""
    return execute(client, "INSERT INTO ovl.j JSON ?", b'{"k": 1, "fl": [' + b"1," * (15 << 19) + b"1]}")


@attack()
def json_of_allowed_values(client):
    """JSON of 250,000 values"""
    return execute(client, "INSERT INTO ovl.j JSON ?", b'{"k": 2, "fl": [' + b"1," * 250_000 + b"1]}")


def long_list(client):
    client.done("CREATE TABLE ovl.l (k int PRIMARY KEY, l list<int>)")
    for part in range(4):
        answer = execute(client, "UPDATE ovl.l SET l = l + ? WHERE k = 1", ints(15_000, part * 15_000))
        expect(answer.opcode == RESULT, answer)


@attack(long_list)
def list_minus_list(client):
    """a list of 60,000 less 30,000 that it has not"""
    return execute(client, "UPDATE ovl.l SET l = l - ? WHERE k = 1", ints(30_000, 1_000_000))


def many_rows(client):
    client.done("CREATE TABLE ovl.n (k int, c int, v int, fl frozen<list<int>>, PRIMARY KEY (k, c))")
    insert = client.prepare("INSERT INTO ovl.n (k, c, v, fl) VALUES (1, ?, ?, ?)")
    some = ints(50)
    for c in range(5000):
        client.send(wire.frame(EXECUTE, struct.pack(">H", 16) + insert + wire.parameters(values=[int4(c), int4(-c), some]), c % 1000))
        if c % 1000 == 999:
            for _ in range(1000):
                answer = client.answer()
                expect(answer.opcode == RESULT, answer)


@attack(many_rows)
def filter_of_in(client):
    """IN of 2,000,000 values as a filter of 5,000 rows"""
    return execute(client, "SELECT c FROM ovl.n WHERE v IN ? ALLOW FILTERING", TWO_MILLION_INTS)


def long_text(client):
    client.done("CREATE TABLE ovl.x (k int PRIMARY KEY, t text, fl frozen<list<int>>, fm frozen<map<int, int>>)")
    answer = execute(client, "INSERT INTO ovl.x (k, t, fl, fm) VALUES (1, ?, ?, ?)", b"x" * (1 << 20), ints(100_000),
                     int4(50_000) + b"".join(struct.pack(">iiii", 4, i, 4, i) for i in range(50_000)))
    expect(answer.opcode == RESULT, answer)


@attack(long_text)
def texts_joined(client):
    """60 times 1 MiB of text joined"""
    return client.query("SELECT " + "+".join(["t"] * 60) + " FROM ovl.x WHERE k = 1")


@attack()
def prepared_by_the_megabyte(client):
    """12 statements of 200,000 literals prepared"""
    for i in range(12):
        answer = client.ask(PREPARE, wire.long_string(f"SELECT v AS v{i} FROM ovl.t WHERE k IN (" + "1," * 199_999 + "1)"))
        if answer.opcode == ERROR:
            return answer
    return answer


def lua_functions(client):
    a, b = "x" * 100_000, "x" * 100_000 + "y"
    for name, body in (("long", f"local x, y, n = '{a}', '{b}', 0 for i = 1, 1e9 do if x < y then n = n + 1 end end return n"),
                       ("numbers", "local s = string.rep('1', 1e6) for i = 1, 1e9 do tonumber(s) end return 1"),
                       ("sizes", "local s = string.rep('i4', 3e5) for i = 1, 1e9 do string.packsize(s) end return 1"),
                       ("sorts", "local t = {} local s = string.rep('x', 5e5) for i = 1, 20 do t[i] = s .. i end for i = 1, 1e9 do table.sort(t) end return 1"),
                       ("spins", "local n = 0 while true do n = n + 1 end return n"),
                       ("adds", "return a + 1")):
        answer = client.query(f"CREATE FUNCTION ovl.{name} (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS $${body}$$")
        expect(answer.opcode == RESULT, answer)


@attack(lua_functions)
def lua_long_constants(client):
    """a function that compares two constants of 100 KB"""
    return client.query("SELECT ovl.long(k) FROM ovl.t WHERE k = 1")


@attack()
def lua_long_numbers(client):
    """a function that reads a number of a million digits again and again"""
    return client.query("SELECT ovl.numbers(k) FROM ovl.t WHERE k = 1")


@attack()
def lua_long_formats(client):
    """a function that measures a format of 600 KB again and again"""
    return client.query("SELECT ovl.sizes(k) FROM ovl.t WHERE k = 1")


@attack()
def lua_sorts_texts(client):
    """a function that sorts long texts"""
    return client.query("SELECT ovl.sorts(k) FROM ovl.t WHERE k = 1")


@attack()
def lua_by_the_hundred(client):
    """one row, 200 calls of functions that never end"""
    return client.query("SELECT " + ", ".join(["ovl.spins(k)"] * 200) + " FROM ovl.t WHERE k = 1")


@attack()
def lua_in_a_batch(client):
    """500 statements of a batch, each with a call"""
    part = b"\x00" + wire.long_string("INSERT INTO ovl.n (k, c, v) VALUES (9, 1, ovl.adds(7))") + struct.pack(">H", 0)
    return client.ask(BATCH, b"\x01" + struct.pack(">H", 500) + part * 500 + struct.pack(">HB", 1, 0))


# --- of our own -------------------------------------------------------------------------------------------------------------


@attack()
def json_of_a_long_row(client):
    """SELECT JSON of a list of 100,000 and a map of 50,000"""
    return client.query("SELECT JSON fl, fm FROM ovl.x WHERE k = 1")


@attack()
def a_row_looked_at_often(client):
    """2,000 selectors of one row of 1.8 MB"""
    return client.query("SELECT " + ", ".join(f"fm[{i}]" for i in range(48_000, 50_000)) + " FROM ovl.x WHERE k = 1")


@attack()
def to_json_often(client):
    """500 times to_json of a list of 100,000"""
    return client.query("SELECT " + ", ".join(["to_json(fl)"] * 500) + " FROM ovl.x WHERE k = 1")


@attack()
def a_set_out_of_order(client):
    """a set of 1,000,000 in the wrong order as a value"""
    return execute(client, "SELECT k FROM ovl.j WHERE fl = ? ALLOW FILTERING", TWO_MILLION_INTS)


def one_map(client):
    client.done("CREATE TABLE ovl.m (k int PRIMARY KEY, m map<int, int>, s set<int>)")


@attack(one_map)
def a_batch_of_one_row(client):
    """20,000 statements of a batch, each an entry of one map"""
    identifier = client.prepare("UPDATE ovl.m SET m[?] = 1 WHERE k = 1")
    parts = b"".join(b"\x01" + struct.pack(">H", 16) + identifier + struct.pack(">H", 1) + wire.value(int4(i)) for i in range(20_000))
    return client.ask(BATCH, b"\x01" + struct.pack(">H", 20_000) + parts + struct.pack(">HB", 1, 0))


@attack()
def a_large_set(client):
    """a set of 1,000,000 written, in the wrong order"""
    return execute(client, "INSERT INTO ovl.m (k, s) VALUES (2, ?)", ints(1_000_000, -500_000))


@attack()
def a_large_literal(client):
    """a list of 250,000 literals"""
    return client.query("INSERT INTO ovl.j (k, fl) VALUES (3, [" + "1," * 249_999 + "1])")


@attack()
def many_relations(client):
    """500 times CONTAINS over 5,000 rows"""
    return client.query("SELECT c FROM ovl.n WHERE " + " AND ".join(f"fl CONTAINS {i % 50}" for i in range(500)) + " ALLOW FILTERING")


@attack()
def many_keys(client):
    """100,000 partitions by IN"""
    return execute(client, "SELECT k, c FROM ovl.n WHERE k IN ?", ints(100_000, 10))


@attack()
def numbers_of_16_kib(client):
    """100 products of decimals of 16,000 bytes"""
    number = decimal(0, b"\x11" * 16_000)
    return execute(client, "SELECT " + ", ".join(["(decimal)? * (decimal)?"] * 100) + " FROM ovl.t WHERE k = 1", *[number] * 200)


@attack()
def values_by_name(client):
    """60,000 values by name, in the wrong order"""
    names = [f"m{i}" for i in range(60_000)]
    body = wire.long_string("SELECT c FROM ovl.n WHERE k IN (" + ", ".join(":" + name for name in names) + ")")
    body += struct.pack(">HBH", 1, 0x41, len(names)) + b"".join(wire.string(name) + wire.value(int4(1)) for name in reversed(names))
    return client.ask(wire.QUERY, body)


@attack()
def texts_in_a_row(client):
    """200 statements of 16 KB at once on one connection"""
    body = wire.query_body("SELECT c FROM ovl.n WHERE k IN (" + "1," * 7_900 + "1) AND c = 1")
    client.send(b"".join(wire.frame(wire.QUERY, body, stream) for stream in range(200)))
    answers = [client.answer() for _ in range(200)]
    return next((answer for answer in answers if answer.opcode == ERROR), answers[0])


@attack()
def lua_in_a_row(client):
    """200 calls of a function that never ends at once on one connection"""
    body = wire.query_body("SELECT ovl.spins(k) FROM ovl.t WHERE k = 1")
    client.send(b"".join(wire.frame(wire.QUERY, body, stream) for stream in range(200)))
    answers = [client.answer() for _ in range(200)]
    return next((answer for answer in answers if answer.opcode == ERROR), answers[0])


@attack()
def a_large_function(client):
    """a function of 15 MiB"""
    return client.query("CREATE OR REPLACE FUNCTION ovl.large (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS $$local n = 0 " +
                        "n = n + 1 " * (15 << 20 >> 4) + "return n$$")


@attack()
def sorted_rows(client):
    """5,000 rows of IN sorted"""
    return client.query("SELECT c FROM ovl.n WHERE k IN (1, " + ", ".join(map(str, range(100, 150))) + ") ORDER BY c DESC")


@attack()
def re_prepared(client):
    """a large statement prepared again after each change of its table"""
    identifier = client.prepare("SELECT c FROM ovl.n WHERE k IN (" + "1," * 59_999 + "1)")
    client.done("ALTER TABLE ovl.n WITH comment = 'x'")
    client.done("ALTER TABLE ovl.n WITH comment = 'y'")
    return execute(client, None, identifier=identifier)


@attack()
def masked_texts(client):
    """hashes of texts of 15 MiB"""
    return execute(client, "SELECT mask_hash((text)?) FROM ovl.t WHERE k = 1", b"x" * (15 << 20))


TWO_MILLION_INTS = b""


@case
def work_beside_point_reads(node):
    """every request that is much work, beside a client of point reads"""
    global TWO_MILLION_INTS
    TWO_MILLION_INTS = ints(1_900_000, -1_000_000)
    node.stop()
    node.start("--user-defined-functions-enabled", "true", "--request-memory-mb", str(REQUEST_MB))
    with Client(timeout=60) as client:
        for _, setup in ATTACKS:
            if setup is not None:
                setup(client)
    time.sleep(0.5)
    node.peak_kb()
    before_kb = node.memory_kb()
    ended, results = multiprocessing.Event(), multiprocessing.Queue()
    victim = multiprocessing.Process(target=read_points, args=(ended, results))
    victim.start()
    times, peaks = [], []
    try:
        with Client(timeout=60) as client:
            for function, _ in ATTACKS:
                began = time.monotonic()
                count, said, longest = 0, set(), 0
                while count == 0 or time.monotonic() < began + SECONDS_EACH:
                    asked = time.monotonic()
                    answer = function(client)
                    expect(answer.opcode == RESULT or answer.code in ANSWERS, f"{function.__doc__}: {answer}")
                    said.add("done" if answer.opcode == RESULT else answer.text[:60])
                    longest = max(longest, time.monotonic() - asked)
                    count += 1
                times.append((began, time.monotonic(), function, count, said, longest))
                peaks.append(node.peak_kb())
    finally:
        ended.set()
        waits, failure = results.get(timeout=60)
        victim.join()
    expect(failure is None and waits, f"a point read failed: {failure}")
    for (began, until, function, count, said, longest), peak in zip(times, peaks):
        of_it = sorted(wait for at, wait in waits if began - 1 <= at <= until and at + wait >= began) or [0]
        p99 = of_it[len(of_it) * 99 // 100 if len(of_it) > 100 else -1]
        print(f"        {function.__doc__}: {count} times, {longest * 1000:.0f} ms at most, RSS {peak >> 10} MiB; reads p99 {p99 * 1000:.1f} ms, "
              f"at most {of_it[-1] * 1000:.1f} ms of {len(of_it)}; {' | '.join(sorted(said))}", flush=True)
    for (_, _, function, *_), peak in zip(times, peaks):
        expect(peak - before_kb < RSS_MAX_KB, f"{function.__doc__}: RSS {before_kb >> 10} MiB before, {peak >> 10} MiB")
    stalls = [line for line in pathlib.Path(f"{node.folder}/log.txt").read_text(errors="replace").splitlines() if "the event loop was held up" in line]
    for line in stalls[:20]:
        print(f"        {line[:300]}", flush=True)
    all_waits = sorted(wait for _, wait in waits)
    node.stop()
    node.start()
    return f"reads p99 {all_waits[len(all_waits) * 99 // 100] * 1000:.1f} ms, {all_waits[-1] * 1000:.0f} ms at most, of {len(all_waits)}; {len(stalls)} stalls logged"
