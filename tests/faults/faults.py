# SPDX-License-Identifier: Apache-2.0
# Faults on real processes: four nodes on loopback addresses, writers and readers at QUORUM, kill -9 and restarts.
# Every write that was acknowledged must be read again at QUORUM, at the end and after a restart of all nodes.
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

from cassandra import ConsistencyLevel, OperationTimedOut, ReadTimeout, Unavailable, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.query import SimpleStatement

import formation
from checks import BINARIES, FIRST, HOSTS, TOP, check, connect, finish, tetractl_at, up, wait_for, with_retry

SECONDS = int(os.environ.get("TETRAD_FAULTS_SECONDS", "40"))
SEED = int(os.environ.get("TETRAD_FAULTS_SEED", "1"))


class Load:
    """Writers on their own keys; every acknowledged write is kept."""

    def __init__(self, hosts, first_number=0):
        # Numbers rise from load to load: a write of unknown outcome may show, but never below an acknowledged one.
        self.first_number = first_number
        self.cluster, self.session = connect(hosts)
        self.insert = self.session.prepare("INSERT INTO faults.t (pk, ck, v) VALUES (?, ?, ?)")
        self.select = self.session.prepare("SELECT v FROM faults.t WHERE pk = ? AND ck = ?")
        for statement in (self.insert, self.select):
            statement.consistency_level = ConsistencyLevel.QUORUM
        self.acked, self.errors, self.stale = {}, [], []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(w,)) for w in range(4)]

    def work(self, writer):
        rng = random.Random(SEED * 1000 + writer)
        number = self.first_number
        while not self.stopping.is_set():
            pk, ck = writer * 1000 + rng.randrange(50), rng.randrange(20)
            number += 1
            try:
                self.session.execute(self.insert, (pk, ck, number))
                self.acked[(pk, ck)] = number
                if number % 3 == 0:
                    row = self.session.execute(self.select, (pk, ck)).one()
                    if row is None or row.v < number:
                        self.stale.append(((pk, ck), number, row))
            except (Unavailable, WriteTimeout, ReadTimeout, OperationTimedOut, NoHostAvailable, Exception) as error:
                self.errors.append("%s: %s" % (type(error).__name__, str(error)[:200]))
                # Its outcome is unknown: a later write of the same key has a higher number.
                time.sleep(0.02)

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)
        self.cluster.shutdown()


def verify(hosts, acked, name):
    cluster, session = connect(hosts)
    select = session.prepare("SELECT v FROM faults.t WHERE pk = ? AND ck = ?")
    select.consistency_level = ConsistencyLevel.QUORUM
    lost = []
    for (pk, ck), number in sorted(acked.items()):
        row = session.execute(select, (pk, ck)).one()
        if row is None or row.v < number:
            lost.append(((pk, ck), number, None if row is None else row.v))
    cluster.shutdown()
    check("%s: every one of %d acknowledged writes is there" % (name, len(acked)), not lost, str(lost[:5]))


def tetractl(*words, timeout=120):
    return tetractl_at(HOSTS[0], *words, timeout=timeout)


def metrics(host):
    """The series of a node's /metrics and their values."""
    with urllib.request.urlopen("http://%s:9180/metrics" % host, timeout=10) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line and not line.startswith("#")]
    return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines)}


def nodes():
    return {node["address"]: node for node in json.loads(tetractl("--json", "status").stdout)["nodes"]}


def replica_sets():
    partitions = json.loads(tetractl("--json", "partitions", "faults").stdout)
    return {(tuple(sorted(p["replicas"])), p["state"]) for p in partitions}


def read_all(hosts, acked, level, name):
    cluster, session = connect(hosts)
    select = session.prepare("SELECT v FROM faults.t WHERE pk = ? AND ck = ?")
    select.consistency_level = level
    wrong = []
    for (pk, ck), number in sorted(acked.items()):
        try:
            row = session.execute(select, (pk, ck)).one()
            if row is None or row.v < number:
                wrong.append(((pk, ck), number, row))
        except Exception as error:
            wrong.append(((pk, ck), number, str(error)))
    cluster.shutdown()
    check(name, not wrong, str(wrong[:3]))


def remove_nodes(acked):
    # One dies for good and is removed; under load; its replicas are given up and everything is there.
    alive = nodes()[HOSTS[3]]["host_id"]
    refused = tetractl("remove-node", alive)
    check("remove-node refuses a node that is alive", refused.returncode == 1 and "is alive" in refused.stderr, refused.stderr)
    load = Load(HOSTS[:3], first_number=2_000_000)
    load.start()
    up("--kill", "4")
    check("the killed node looks down", wait_for(lambda: not nodes()[HOSTS[3]]["live"], 20))
    removed = tetractl("remove-node", alive)
    check("remove-node takes out a dead node", removed.returncode == 0, removed.stdout + removed.stderr)
    load.stop()
    acked.update(load.acked)
    check("meanwhile no request at the other three fails", not load.errors, "%d errors, first: %s" % (len(load.errors), load.errors[:3]))
    check("it is in no list of nodes any more", HOSTS[3] not in nodes())
    check("no physical partition names it", replica_sets() == {(tuple(HOSTS[:3]), "normal")}, str(replica_sets()))
    read_all(HOSTS[:3], acked, ConsistencyLevel.QUORUM, "after remove-node every acknowledged write is there at QUORUM")
    read_all(HOSTS[:3], acked, ConsistencyLevel.ALL, "after remove-node every acknowledged write is there at ALL")
    back = up("--start", "4")
    folder = TOP / "build/cluster" / FIRST / "node4"
    check("when it comes back it does so as a new node", back.returncode == 0 and nodes()[HOSTS[3]]["host_id"] != alive, back.stdout + back.stderr)
    check("the sets have four members again", wait_for(lambda: replica_sets() == {(tuple(HOSTS), "normal")}, 60), str(replica_sets()))
    read_all(HOSTS, acked, ConsistencyLevel.ALL, "on four members every acknowledged write is there at ALL")
    # Background repair has been here, or comes when it is told to.
    repaired = tetractl("repair", "faults")
    check("tetractl repair compares all replicas", repaired.returncode == 0, repaired.stdout + repaired.stderr)
    cluster, session = connect(HOSTS)
    times = [row.repaired_at for row in session.execute("SELECT repaired_at FROM system_tetrad.partitions WHERE keyspace_name = 'faults'")]
    check("and the time is told", len(times) > 0 and None not in times, str(times))
    cluster.shutdown()
    # It leaves while it lives.
    left = subprocess.run([BINARIES + "/tetractl", "-h", HOSTS[3], "decommission"], capture_output=True, text=True, timeout=120)
    check("decommission: a note tells how many copies rows keep", "3 nodes remain in data center datacenter1: rows will have 3 copies instead of 4" in left.stderr,
          left.stderr)
    check("decommission: the node leaves and stops", left.returncode == 0 and wait_for(lambda: HOSTS[3] not in nodes(), 10), left.stdout + left.stderr)
    read_all(HOSTS[:3], acked, ConsistencyLevel.ALL, "after decommission every acknowledged write is there at ALL")
    shutil.rmtree(folder / "data", ignore_errors=True)
    again = up("--start", "4")
    check("the sets have four members once more", again.returncode == 0 and wait_for(lambda: replica_sets() == {(tuple(HOSTS), "normal")}, 60), str(replica_sets()))


def fill_up():
    # A logical partition nears its limit, is full, and takes inserts again when it was emptied.
    limited = tetractl("setting", "max_logical_partition_mb", "1")
    check("the limit of a logical partition is set", limited.returncode == 0, limited.stdout + limited.stderr)
    cluster, session = connect(HOSTS)
    session.execute("CREATE TABLE faults.large (pk int, ck int, v text, PRIMARY KEY (pk, ck))")
    insert = session.prepare("INSERT INTO faults.large (pk, ck, v) VALUES (1, ?, ?)")
    warnings, refused, rows = set(), "", 0

    def insert_row():
        future = session.execute_async(insert, (rows, random.randbytes(10_000).hex()))
        future.result()
        warnings.update(future.warnings or [])

    deadline = time.time() + 120
    while time.time() < deadline and not refused:
        try:
            insert_row()
            rows += 1
        except Exception as error:
            refused = str(error)
        # What is measured lags behind, and is rough for what is in memory only.
        if rows % 3 == 0:
            for host in HOSTS:
                tetractl_at(host, "flush")
            time.sleep(0 if rows < 39 else 3)
    check("a logical partition past its limit is refused inserts", "Partition key reached maximum size of 1 MB" in refused, "%d rows: %s" % (rows, refused))
    check("clients are warned before", warnings == {"Partition key reached 80% of its maximum size of 1 MB"}, str(warnings))
    session.execute("DELETE FROM faults.large WHERE pk = 1")

    def taken():
        try:
            insert_row()
            return True
        except Exception:
            return False

    begun = time.time()
    check("when it is emptied it takes inserts again", wait_for(taken, 60), "")
    print("       full after %d rows, taken again after %.1f s" % (rows, time.time() - begun))
    session.execute("DROP TABLE faults.large")
    cluster.shutdown()
    tetractl("setting", "max_logical_partition_mb", "20480")


def main():
    rng = random.Random(SEED)
    up("--wipe")
    # Two shards each, whatever the machine has; fixed with the first start.
    started = up("--", "--shards", "2")
    check("four nodes start", started.returncode == 0, started.stderr + started.stdout)
    if started.returncode != 0:
        return
    cluster, session = connect(HOSTS)
    session.execute("CREATE KEYSPACE faults WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 4}")
    session.execute("CREATE TABLE faults.t (pk int, ck int, v int, PRIMARY KEY (pk, ck))")

    # One node of four killed: no write and no QUORUM read fails that goes to the other three.
    load = Load(HOSTS[:3])
    load.start()
    time.sleep(2)
    up("--kill", "4")
    time.sleep(4)
    up("--start", "4")
    time.sleep(2)
    load.stop()
    check("a node of four is killed and comes back: no request at the other three fails", not load.errors,
          "%d errors, first: %s" % (len(load.errors), load.errors[:3]))
    check("no QUORUM read goes back", not load.stale, str(load.stale[:3]))
    verify(HOSTS, load.acked, "after a kill")
    acked = dict(load.acked)

    # Two killed: QUORUM answers Unavailable with the right numbers, ONE reads still work.
    up("--kill", "3")
    up("--kill", "4")
    two, two_session = with_retry(lambda: connect(HOSTS[:2]))

    def unavailable(text):
        deadline = time.time() + 15
        while time.time() < deadline:
            try:
                two_session.execute(SimpleStatement(text, consistency_level=ConsistencyLevel.QUORUM))
            except Unavailable as error:
                return (error.required_replicas, error.alive_replicas)
            except Exception:
                pass
            time.sleep(0.3)
        return None

    got = unavailable("INSERT INTO faults.t (pk, ck, v) VALUES (999999, 1, 1)")
    check("two of four down: a QUORUM write is Unavailable, required 3, alive 2", got == (3, 2), str(got))
    got = unavailable("SELECT v FROM faults.t WHERE pk = 1 AND ck = 1")
    check("two of four down: a QUORUM read is Unavailable, required 3, alive 2", got == (3, 2), str(got))
    try:
        rows = list(two_session.execute(SimpleStatement("SELECT * FROM faults.t WHERE pk = %d" % next(iter(acked))[0],
                                                        consistency_level=ConsistencyLevel.ONE)))
        check("two of four down: a ONE read works", len(rows) > 0)
    except Exception as error:
        check("two of four down: a ONE read works", False, str(error))
    two.shutdown()
    counted = metrics(HOSTS[0]) | {name: value for name, value in metrics(HOSTS[1]).items() if value}
    for name in ("tetrad_replication_unavailable_total", "tetrad_replication_write_seconds_count",
                 "tetrad_replication_read_seconds_count"):
        of_level = [value for series, value in counted.items() if series.startswith(name) and 'level="QUORUM"' in series]
        check("/metrics counts by level: " + name, sum(of_level) > 0, str(of_level))
    check("/metrics counts errors by verb", sum(value for series, value in counted.items()
                                                if "verb=" in series and "errors" in series) > 0)
    up("--start", "3")
    up("--start", "4")

    # Random kills of any node, one at a time, under load through all nodes.
    load = Load(HOSTS, first_number=1_000_000)
    load.start()
    end = time.time() + SECONDS
    cycles = 0
    while time.time() < end:
        victim = str(rng.randrange(1, 5))
        up("--kill", victim)
        time.sleep(rng.uniform(0.2, 1.5))
        started = up("--start", victim)
        if started.returncode != 0:
            check("node %s starts again" % victim, False, started.stderr)
            break
        cycles += 1
        time.sleep(rng.uniform(0.5, 1.5))
    load.stop()
    print("       %d kills, %d writes acknowledged, %d errors at clients" % (cycles, len(load.acked), len(load.errors)))
    acked.update(load.acked)
    check("random kills: no QUORUM read goes back", not load.stale, str(load.stale[:3]))
    verify(HOSTS, acked, "after %d random kills" % cycles)

    fill_up()
    remove_nodes(acked)

    # All at once.
    for node in range(1, 5):
        up("--kill", str(node))
    started = up()
    check("all four killed at once start again", started.returncode == 0, started.stderr)
    with_retry(lambda: connect(HOSTS)[0].shutdown())
    verify(HOSTS, acked, "after a kill of all four")
    cluster.shutdown()

    begun = time.time()
    stopped = up("--stop")
    check("SIGTERM stops all nodes in under 8 s", stopped.returncode == 0 and time.time() - begun < 8,
          "%.1f s %s" % (time.time() - begun, stopped.stderr))


def program(file, what):
    """A fault test that is a program of its own counts as one check."""
    path = str(Path(__file__).parent / file)
    command = [sys.executable, "-W", "ignore", path] if file.endswith(".py") else [path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    print(done.stdout, end="", flush=True)
    check(what, done.returncode == 0, done.stderr[-2000:])


try:
    main()
    formation.run(sys.modules[__name__])
    program("counters.py", "counters while one node after another is killed and started again")
    program("views.py", "a materialized view while one node after another is killed and started again")
    program("conditional.py", "conditional statements while two of four nodes are down, or stand still")
    program("linearizable/run", "histories of conditional statements are linearizable")
    program("full_disk.py", "a node on a disk that fills up")
    program("rot.py", "a node whose files rot")
    program("forgetful_disk_test.py", "the layer that forgets what was not synced")
    program("power_cuts.py", "nodes whose machines lose power")
except Exception as error:  # counted, not hidden
    check("the run itself", False, "%s: %s" % (type(error).__name__, error))
finally:
    up("--wipe")
finish()
