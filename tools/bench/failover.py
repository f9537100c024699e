#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What clients of the other nodes meet when one node dies or hangs: reads and writes done, median, p99 and errors, by seconds since.
#   tools/bench/failover.py --hosts A,B,... --pid PID [--signal NAME] [--level NAME]
#     --hosts   nodes that stay; the clients talk to these alone
#     --pid     the process of another node, which gets the signal after five seconds: SIGKILL, SIGTERM or SIGSTOP
# Tables are made in a keyspace of its own, failover. Needs the Python driver of Cassandra
# (tests/drivers/python/requirements.txt), which bounds the rates: four clients that wait 2 ms between pairs of requests.
import argparse
import os
import signal
import threading
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy

BEFORE_S, AFTER_S = 5, 8
PARTS = [(-4, 0), (0, 0.5), (0.5, 2), (2, 4), (4, 8)]  # seconds since the signal
KEYS = 1000


class Clients:
    def __init__(self, session, count):
        self.session = session
        self.write = session.prepare("INSERT INTO failover.t (k, v) VALUES (?, 'x')")
        self.read = session.prepare("SELECT v FROM failover.t WHERE k = ?")
        self.done = []  # (begun, seconds, is a read, failed)
        self.ends = False
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, key):
        while not self.ends:
            key = (key + 7) % KEYS
            for statement in (self.write, self.read):
                begun, failed = time.monotonic(), False
                try:
                    self.session.execute(statement, (key,))
                except Exception:  # counted, whatever it is
                    failed = True
                self.done.append((begun, time.monotonic() - begun, statement is self.read, failed))
            time.sleep(0.002)

    def stop(self):
        self.ends = True
        for thread in self.threads:
            thread.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--signal", default="SIGKILL", choices=["SIGKILL", "SIGTERM", "SIGSTOP"])
    parser.add_argument("--level", default="QUORUM")
    options = parser.parse_args()
    hosts = options.hosts.split(",")
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(hosts),
                               consistency_level=ConsistencyLevel.name_to_value[options.level])
    cluster = Cluster(hosts, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    session = cluster.connect()
    session.execute("CREATE KEYSPACE IF NOT EXISTS failover WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE IF NOT EXISTS failover.t (k int PRIMARY KEY, v text)")
    clients = Clients(session, 4)
    try:
        time.sleep(BEFORE_S)
        sent = time.monotonic()
        os.kill(options.pid, getattr(signal, options.signal))
        time.sleep(AFTER_S)
    finally:
        clients.stop()
        if options.signal == "SIGSTOP":
            os.kill(options.pid, signal.SIGCONT)
    for begin_s, end_s in PARTS:
        for is_read in (False, True):
            found = [one for one in clients.done if one[2] == is_read and begin_s <= one[0] - sent < end_s]
            took_ms = sorted(1000 * one[1] for one in found)
            if took_ms:
                print("%-6s from %4.1f to %4.1f s: %5d done, p50 %6.1f ms, p99 %6.1f, longest %6.1f, errors %d" % (
                    "reads" if is_read else "writes", begin_s, end_s, len(found), took_ms[len(took_ms) // 2],
                    took_ms[len(took_ms) * 99 // 100], took_ms[-1], sum(one[3] for one in found)))
    cluster.shutdown()


if __name__ == "__main__":
    main()
