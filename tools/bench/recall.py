#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Recall and CPU of ORDER BY ... ANN OF, beside an exact search that this program does by itself.
#   tools/bench/recall.py --hosts A,B,... [--rows N] [--dimension N] [--queries N] [--similarity NAME] [--limit N]
#                         [--clusters N]   of the vectors; 0: each element is uniform in -1..1, the hardest to search
#                         [--rounds N] [--level NAME] [--pids P,...]   the servers', whose CPU and memory are told
#                         [--log FILE,...]   of each server: waits until each has made its graphs
# Needs the Python driver of Cassandra (tests/drivers/python/requirements.txt). Vectors come from a seed.
import argparse
import array
import heapq
import operator
import os
import random
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_mb(pids):
    pages = 0
    for pid in pids:
        with open(f"/proc/{pid}/statm") as statm:
            pages += int(statm.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", default="127.0.0.1")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--similarity", default="cosine", choices=["cosine", "dot_product", "euclidean"])
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--level", default="QUORUM")
    parser.add_argument("--pids", default="")
    parser.add_argument("--log", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pids = [int(pid) for pid in options.pids.split(",") if pid]
    chance = random.Random(options.seed)
    centres = [[chance.gauss(0, 1) for _ in range(options.dimension)] for _ in range(options.clusters)]

    # In single precision, as servers keep it: else the exact search would measure other vectors.
    def vector():
        if not centres:
            return array.array("f", (chance.uniform(-1, 1) for _ in range(options.dimension)))
        return array.array("f", (centre + chance.gauss(0, 0.7) for centre in chance.choice(centres)))

    rows = [vector() for _ in range(options.rows)]
    lengths = [sum(map(operator.mul, row, row)) ** 0.5 for row in rows]

    def distance(query, i):
        product = sum(map(operator.mul, query, rows[i]))
        if options.similarity == "cosine":
            return -product / lengths[i]
        return -product if options.similarity == "dot_product" else lengths[i] ** 2 - 2 * product

    hosts = options.hosts.split(",")
    session = Cluster(hosts, connect_timeout=60).connect()
    session.default_timeout = 120
    replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {min(len(hosts), 4)}}}"
    session.execute("DROP KEYSPACE IF EXISTS recall", timeout=120)
    session.execute(f"CREATE KEYSPACE recall WITH replication = {replication}", timeout=120)
    session.execute(f"CREATE TABLE recall.t (k int PRIMARY KEY, v vector<float, {options.dimension}>)", timeout=120)
    session.execute(
        "CREATE INDEX ON recall.t (v) USING 'sai' WITH OPTIONS = "
        f"{{'similarity_function': '{options.similarity}'}}",
        timeout=120,
    )
    insert = session.prepare("INSERT INTO recall.t (k, v) VALUES (?, ?)")
    insert.consistency_level = ConsistencyLevel.QUORUM
    began, cpu = time.time(), cpu_seconds(pids)
    execute_concurrent_with_args(session, insert, enumerate(rows), concurrency=64)
    print(f"written: {options.rows} rows, {time.time() - began:.1f} s, CPU {cpu_seconds(pids) - cpu:.1f} s, {resident_mb(pids):.0f} MB resident")
    select = session.prepare(f"SELECT k FROM recall.t ORDER BY v ANN OF ? LIMIT {options.limit}")
    select.consistency_level = ConsistencyLevel.name_to_value[options.level]
    queries = [vector() for _ in range(options.queries)]
    exact = [
        set(heapq.nsmallest(options.limit, range(options.rows), key=lambda i: distance(query, i))) for query in queries
    ]

    def ask(name, queries, exact, rounds):
        hits, took_ms, cpu = 0, [], cpu_seconds(pids)
        for query, nearest in list(zip(queries, exact)) * rounds:
            began = time.time()
            found = {row.k for row in session.execute(select, (query,))}
            took_ms.append((time.time() - began) * 1e3)
            hits += len(nearest & found)
        count = len(took_ms)
        took_ms.sort()
        print(
            f"{name}: recall@{options.limit} {hits / (options.limit * count):.4f}, "
            f"p50 {took_ms[count // 2]:.2f} and p99 {took_ms[count * 99 // 100]:.2f} ms, "
            f"{(cpu_seconds(pids) - cpu) / count * 1e3:.2f} ms of CPU a query, {resident_mb(pids):.0f} MB resident"
        )

    def graphs():
        made = 0
        for log in options.log.split(","):
            with open(log) as lines:
                made += sum("graph_of_vectors_made" in line for line in lines)
        return made

    before = graphs() if options.log else 0
    began, cpu = time.time(), cpu_seconds(pids)
    ask("all rows measured", queries[:1], exact[:1], 1)
    if options.log:
        last, end = -1, time.time() + 300
        while (graphs() == before or graphs() != last) and time.time() < end:
            last = graphs()
            time.sleep(2)
        print(f"{last - before} graphs made: {time.time() - began:.0f} s, CPU {cpu_seconds(pids) - cpu:.1f} s")
    ask("by graphs", queries, exact, options.rounds)


main()
