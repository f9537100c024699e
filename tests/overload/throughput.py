# SPDX-License-Identifier: Apache-2.0
"""Tables with a limit on their throughput: as clients of Azure Cosmos DB's API for Cassandra would use them."""

import re
import struct
import threading
import time

from cases import case, expect, expect_error
from wire import OVERLOADED, QUERY, RESULT, Client, frame, query_body

RETRY = re.compile(r"^Request rate is large: ActivityID=[0-9a-f-]{36}, RetryAfterMs=(\d+), Additional details='Response status code does "
                   r"not indicate success: TooManyRequests \(429\); Substatus: 3200; ActivityId: [0-9a-f-]{36}; Reason: \((.*)\)'$")


def retry_after_s(answer):
    found = RETRY.match(answer.text)
    expect(answer.code == OVERLOADED and found, answer)
    return int(found[1]) / 1000, found[2]


def served_in_time(client, text):
    """Asks again as it is told, until it is served."""
    until = time.monotonic() + 20
    while (answer := client.query(text)).opcode != RESULT:
        expect(time.monotonic() < until, answer)
        time.sleep(retry_after_s(answer)[0])


def in_debt(client, text, other):
    """After what costs more than there is everything is refused, for ten seconds at most. The debt is paid off after a second:
    asked again where this machine took that long between one request and the next."""
    for _ in range(10):
        served_in_time(client, text)
        began = time.monotonic()
        answers = [client.query(text), client.query(other)]
        if time.monotonic() - began < 0.5:
            break
    for answer in answers:
        wait, _ = retry_after_s(answer)
        expect(wait <= 10, wait)


def hammer(text, seconds, clients=6):
    """How many of the requests were served and how many refused; each client waits as it is told."""
    counts, failures = [0, 0], []

    def run(number):
        try:
            with Client() as client:
                k = number
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    answer = client.query(text.format(k))
                    k += clients
                    if answer.opcode == RESULT:
                        counts[0] += 1
                    else:
                        counts[1] += 1
                        time.sleep(retry_after_s(answer)[0])
        except Exception as e:
            failures.append(repr(e))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, failures)
    return counts


@case
def a_limited_table(_):
    """a table of 400 RU/s takes 80 writes a second, in any form, and is free again when the limit is taken away"""
    with Client() as client:
        client.done("CREATE TABLE ovl.limited (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400")
        began = time.monotonic()
        served, refused = hammer("INSERT INTO ovl.limited (k, v) VALUES ({}, 'v')", 4, clients=30)
        took = time.monotonic() - began
        # What the bucket held, what flowed in, what a slice and the requests in flight overdrew.
        expect(served * 5 <= 400 * (took + 1) + 100, f"{served} writes in {took:.1f} s")
        expect(served * 5 >= 400 * 2, f"{served} writes in {took:.1f} s")
        expect(refused > 0, "nothing was refused")

        # All at once: those are served that the wait has room for.
        body = query_body("INSERT INTO ovl.limited (k, v) VALUES (1, 'v')")
        client.send(b"".join(frame(QUERY, body, stream) for stream in range(1000)))
        answers = [client.answer() for _ in range(1000)]
        over = [answer for answer in answers if answer.opcode != RESULT]
        expect(500 <= len(over) <= 995, f"{len(over)} of 1000 were refused")
        waits = [retry_after_s(answer) for answer in over]
        expect(all(reason == "physical partition {} of ovl.limited has 400 request units a second".format(reason.split()[2]) for _, reason in waits),
               waits[0])
        batch = "BEGIN UNLOGGED BATCH " + "".join(f"INSERT INTO ovl.limited (k, v) VALUES ({k}, 'v'); " for k in range(10)) + "APPLY BATCH"
        client.send(b"".join(frame(QUERY, query_body(batch), stream) for stream in range(50)))
        codes = [client.answer().code for _ in range(50)]
        expect(codes.count(OVERLOADED) >= 40, codes)
        # Other tables, and the schema, are not held up.
        client.done("SELECT v FROM ovl.t WHERE k = 1")
        client.done("ALTER TABLE ovl.limited WITH cosmosdb_provisioned_throughput = 0")
        served, refused = hammer("INSERT INTO ovl.limited (k, v) VALUES ({}, 'v')", 1)
        expect(refused == 0 and served > 0, f"{served} served, {refused} refused")
        client.done("DROP TABLE ovl.limited")


@case
def conditional_statements_of_a_limited_table(_):
    """they are paid for as what they have come to, read and written or read alone"""
    with Client() as client:
        client.done("CREATE TABLE ovl.limited (k int PRIMARY KEY, v text) WITH cosmosdb_provisioned_throughput = 400")
        began = time.monotonic()
        served, refused = hammer("INSERT INTO ovl.limited (k, v) VALUES ({}, 'v') IF NOT EXISTS", 4, clients=30)  # 7 RU each
        took = time.monotonic() - began
        # Beside the bucket: they go by what a read costs until they have ended, so those under way overdraw by their writes.
        expect(served * 7 <= 400 * (took + 2) + 30 * 7, f"{served} conditional writes in {took:.1f} s")
        expect(served * 7 >= 400 * 1.5, f"{served} conditional writes in {took:.1f} s")
        expect(refused > 0, "nothing was refused")
        client.done("DROP TABLE ovl.limited")


@case
def reads_of_a_limited_table(_):
    """reads are paid for when their cost is known: a large one leaves a debt of ten seconds at most"""
    with Client() as client:
        client.done("CREATE TABLE ovl.limited (k int, c int, v text, PRIMARY KEY (k, c)) WITH tetrad_initial_partitions = 1")
        for k in range(8):
            for c in range(16):
                client.done(f"INSERT INTO ovl.limited (k, c, v) VALUES ({k}, {c}, '{'x' * 65536}')")
        client.done("ALTER TABLE ovl.limited WITH cosmosdb_provisioned_throughput = 400")
        began = time.monotonic()
        served, _ = hammer("SELECT k FROM ovl.limited WHERE k = 1 AND c = 1", 3)  # 6.7 RU each
        took = time.monotonic() - began
        expect(served * 6.7 <= 400 * (took + 2) and served * 6.7 >= 400 * 1.5, f"{served} reads in {took:.1f} s")
        for text in ("SELECT count(*) FROM ovl.limited", "SELECT * FROM ovl.limited", "SELECT * FROM ovl.limited WHERE k IN (0, 1, 2, 3, 4, 5, 6, 7)"):
            in_debt(client, text, "INSERT INTO ovl.limited (k, c) VALUES (1, 99)")  # 860 RU: more than there is
            client.done("ALTER TABLE ovl.limited WITH cosmosdb_provisioned_throughput = 100000")
            served_in_time(client, "SELECT k FROM ovl.limited WHERE k = 1 AND c = 1")
            client.done("ALTER TABLE ovl.limited WITH cosmosdb_provisioned_throughput = 400")
        client.done("DROP TABLE ovl.limited")


@case
def a_limited_change_feed(_):
    """a page of a change feed that is refused is empty"""
    with Client() as client:
        client.done("CREATE TABLE ovl.feed (k int PRIMARY KEY, v text) WITH cdc = true AND cosmosdb_provisioned_throughput = 400")
        client.done("INSERT INTO ovl.feed (k, v) VALUES (1, 'v')")
        client.done(f"INSERT INTO ovl.feed (k, v) VALUES (2, '{'x' * (3 << 20)}')")  # 1,400 RU: a debt of two seconds and a half
        text = "SELECT k FROM ovl.feed WHERE COSMOS_CHANGEFEED_START_TIME() = '2020-01-01'"
        expect_error(client.query(text), OVERLOADED, text="RetryAfterMs=")
        rows, pages, state = 0, 0, None
        until = time.monotonic() + 10
        while rows < 2 and time.monotonic() < until:
            answer = client.done(text, page_size=10, **({"paging_state": state} if state else {}))
            flags, columns = struct.unpack_from(">ii", answer.body, 4)
            expect(flags & 2, "no more pages")
            size = struct.unpack_from(">i", answer.body, 12)[0]
            state = answer.body[16:16 + size]
            at = 16 + size
            for _ in range(2):  # keyspace and table
                at += 2 + struct.unpack_from(">H", answer.body, at)[0]
            for _ in range(columns):
                at += 4 + struct.unpack_from(">H", answer.body, at)[0]
            rows += struct.unpack_from(">i", answer.body, at)[0]
            pages += 1
        expect(rows == 2 and pages > 1, f"{rows} rows in {pages} pages")
        client.done("DROP TABLE ovl.feed")


@case
def a_limited_keyspace(_):
    """tables of a keyspace share its limit, but for those that have one of their own"""
    with Client() as client:
        client.done("CREATE KEYSPACE shared WITH cosmosdb_autoscale_max_throughput = 1000")
        for table, options in (("a", ""), ("b", ""), ("c", " WITH cosmosdb_provisioned_throughput = 400")):
            client.done(f"CREATE TABLE shared.{table} (k int PRIMARY KEY){options}")
        counts = {}
        threads = [threading.Thread(target=lambda t=table: counts.update({t: hammer("INSERT INTO shared." + t + " (k) VALUES ({})", 3, 3)}))
                   for table in "abc"]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        expect(set(counts) == set("abc"), counts)
        shared = counts["a"][0] + counts["b"][0]
        expect(1000 * 1.5 <= shared * 5 <= 1000 * (took + 1) + 250, f"{counts} in {took:.1f} s")
        expect(400 * 1.5 <= counts["c"][0] * 5 <= 400 * (took + 1) + 100, f"{counts} in {took:.1f} s")
        client.done("DROP KEYSPACE shared")
