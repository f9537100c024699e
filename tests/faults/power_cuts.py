# SPDX-License-Identifier: Apache-2.0
# Four real nodes whose machines lose power, on disks that forget what was not synced (forgetful_disk.cc): one at a
# time under load, also while another one hangs, nothing acknowledged is lost in either mode of the commit log. All at
# once: nothing in the mode group, in the mode periodic only what no sync had covered. Every other node encrypts its disk.
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.concurrent import execute_concurrent_with_args

from checks import BINARIES, PREFIX, TOP, check, connect, finish, tetractl_at, wait_for, with_retry
from forgetful_disk import ForgetfulDisk, now_us

SEED = int(os.environ.get("TETRAD_FAULTS_SEED", "1"))
LIBRARY = Path(BINARIES).parent / "tests/libforgetful_disk.so"
FOLDER = TOP / "build/cluster" / (PREFIX + ".41")
HOSTS = ["%s.%d" % (PREFIX, i) for i in range(41, 45)]
WRITERS, KEYS = 4, 40
ALL_KEYS = [writer * 1000 + number for writer in range(WRITERS) for number in range(KEYS)]
LIMIT_S = 120
HOLES = ("store-*", "hints", "log")
SYNC_LIMIT_US = 10_000_000  # a hundred periods: the machine may be busy
SELECT = "SELECT v FROM cut.t WHERE k = ?"
CUT = "the machine stopped without this node having stopped"
BEHIND, FETCHED = "a power cut took what was not on disk", "what a power cut took has been fetched"


class Node:
    def __init__(self, host, seeds, folder):
        self.host, self.seeds, self.process = host, seeds, None
        self.disk = ForgetfulDisk(folder / "disk", folder / "notes", LIBRARY)
        self.data = self.disk.data / "new/data"  # made by the node
        self.log = folder / "log.txt"
        self.disk_keys = None
        if int(host.split(".")[-1]) % 2 == 0:
            self.disk_keys = folder / "disk-keys"
            self.disk_keys.write_text("k1 %s\n" % os.urandom(32).hex())
            self.disk_keys.chmod(0o600)

    def start(self, sync, syncs="all"):
        command = [BINARIES + "/tetrad", "--data-directory", str(self.data), "--listen-address", self.host,
                   "--seeds", self.seeds, "--shards", "1", "--commit-log-sync", sync]
        if self.disk_keys:
            command += ["--disk-encryption-key-file", str(self.disk_keys)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(self.log, "ab"),
                                        stdin=subprocess.DEVNULL, env=self.disk.environment(syncs))

    def serves(self):
        if self.process.poll() is not None:
            raise RuntimeError("%s ended: %s" % (self.host, self.said()[-2000:]))
        try:
            with urllib.request.urlopen("http://%s:9180/health" % self.host, timeout=5) as answer:
                return answer.read().decode().split("\n")[0] == "serving"  # what it lacks is in other lines
        except OSError:
            return False

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def said(self):
        return self.log.read_text(errors="replace")

    def freeze(self, frozen):
        self.process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)


class Keys:
    """What a writer knows of its keys: what was acknowledged, and when, and the highest that anybody was shown."""

    def __init__(self):
        self.acked, self.shown = {}, {}  # key: [(number, time)] and number
        self.first_number = 0  # of the next writers, above all before
        self.lock = threading.Lock()

    def acknowledge(self, key, number):
        with self.lock:
            self.acked.setdefault(key, []).append((number, now_us()))

    def least(self, key, until_us=None):
        """What a QUORUM read that begins now has to show, or, after a cut of all, has by then."""
        with self.lock:
            known = [number for number, time_us in self.acked.get(key, []) if until_us is None or time_us < until_us]
            return max(known + ([self.shown.get(key, 0)] if until_us is None else []), default=0)

    def show(self, key, number):
        with self.lock:
            self.shown[key] = max(self.shown.get(key, 0), number)

    def begin_from(self, found):
        """What is there after a cut of all nodes."""
        with self.lock:
            self.acked, self.shown = {}, dict(found)


class Load:
    """Writers on their own keys, which they read again through any node."""

    def __init__(self, hosts, keys):
        self.keys = keys
        self.clients = {}
        for host in hosts:
            cluster, session = with_retry(lambda: connect([host], request_timeout=3), LIMIT_S)
            statements = [session.prepare(text) for text in ("INSERT INTO cut.t (k, v) VALUES (?, ?)", SELECT)]
            self.clients[host] = (cluster, session, *statements)
        self.avoided, self.stale, self.written, self.errors = set(), [], 0, 0
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(writer,), daemon=True) for writer in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def work(self, writer):
        rng, number = random.Random(SEED * 100 + writer), self.keys.first_number
        while not self.stopping.is_set():
            number += 1
            key = writer * 1000 + rng.randrange(KEYS)
            try:
                _, session, insert, _ = self.any_client(rng)
                session.execute(insert, (key, number))
                self.keys.acknowledge(key, number)
                self.written += 1
                if number % 2 == 0:
                    self.read(rng, writer * 1000 + rng.randrange(KEYS))
            except Exception:  # its outcome is unknown: a later write of the key has a higher number
                self.errors += 1
                self.stopping.wait(0.02)

    def any_client(self, rng):
        return self.clients[rng.choice([host for host in self.clients if host not in self.avoided])]

    def read(self, rng, key):
        _, session, _, select = self.any_client(rng)
        least = self.keys.least(key)
        row = session.execute(select, (key,)).one()
        value = 0 if row is None else row.v
        self.keys.show(key, value)
        if value < least:
            self.stale.append((key, value, least))

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        self.keys.first_number += 1_000_000
        for cluster, *_ in self.clients.values():
            cluster.shutdown()


def read_some(session, level, left=None):
    """The keys that are answered, and what the read shows."""
    select = session.prepare(SELECT)
    select.consistency_level = level
    left = [(key,) for key in (ALL_KEYS if left is None else left)]
    answers = execute_concurrent_with_args(session, select, left, concurrency=len(ALL_KEYS), raise_on_first_error=False)
    rows = [(key, rows.one()) for (key,), (success, rows) in zip(left, answers) if success]
    return {key: 0 if row is None else row.v for key, row in rows}


def read_all(session, level):
    found = {}

    def ask():
        found.update(read_some(session, level, [key for key in ALL_KEYS if key not in found]))
        if len(found) < len(ALL_KEYS):
            raise RuntimeError("%d of %d reads are answered" % (len(found), len(ALL_KEYS)))

    with_retry(ask, LIMIT_S)
    return found


def lost_of(keys, session, level, until_us=None):
    """What was acknowledged, or shown, before the read and is not shown by it."""
    least = {key: keys.least(key, until_us) for key in ALL_KEYS}
    return [(key, value, least[key]) for key, value in read_all(session, level).items() if value < least[key]]


def lost_at_all(keys, until_us=None):
    """The same through each node. Of four replicas a write is on three: any two show it."""
    lost = []
    for host in HOSTS:
        cluster, session = with_retry(lambda: connect([host]), LIMIT_S)
        for level in (ConsistencyLevel.TWO, ConsistencyLevel.QUORUM):
            lost += lost_of(keys, session, level, until_us)
        cluster.shutdown()
    return lost


def check_lost(name, lost):
    check(name, not lost, "%d, first (key, found, acknowledged): %s" % (len(lost), lost[:3]))


def cut_one(victim, seed, sync, worst=False):
    """Its machine loses power and starts anew."""
    victim.kill()
    ballast = victim.data / "log/BALLAST"
    bytes_before, before = size_of(ballast), victim.said().count(CUT)
    report = victim.disk.cut(seed, worst, holes=HOLES)
    victim.start(sync)
    served = wait_for(victim.serves, LIMIT_S)
    check("%s serves after a power cut" % victim.host, served, victim.said()[-2000:])
    check("and says that there was one", victim.said().count(CUT) == before + 1)
    check("its ballast is whole", size_of(ballast) == bytes_before, "%d bytes" % size_of(ballast))
    print("       lost: %s" % report, flush=True)


def cut_one_while_another_hangs(nodes, victim, seed, sync, keys):
    """The victim loses all that was not synced, the other has not got it yet: whoever can ask only these two gets no
    answer, or the right one."""
    others = [node for node in nodes if node is not victim]
    hung = others.pop(seed % len(others))
    hung.freeze(True)
    time.sleep(1)
    cut_one(victim, seed, sync, worst=True)
    cluster, session = with_retry(lambda: connect([victim.host], request_timeout=2), LIMIT_S)
    for node in others:
        node.freeze(True)
    hung.freeze(False)
    found = read_some(session, ConsistencyLevel.TWO)
    for node in others:
        node.freeze(False)
    cluster.shutdown()
    least = {key: keys.least(key) for key in found}
    print("       %d reads answered by it and %s, which had hung" % (len(found), hung.host), flush=True)
    check_lost("and no acknowledged write is lost", [(key, value, least[key]) for key, value in found.items() if value < least[key]])


def is_complete(node):
    """Nothing that a cut took is still lacking."""
    said = node.said()
    return said.rfind(CUT) < said.rfind(BEHIND) < said.rfind(FETCHED)


def cut_one_at_a_time(nodes, keys, rounds, sync):
    rng = random.Random(SEED)
    load = Load(HOSTS, keys)
    time.sleep(2)
    victims = rng.sample(nodes, len(nodes))
    for number in range(rounds):
        victim = victims[number % len(victims)]
        before, seed = load.written, SEED * 1000 + number
        if number % 2 == 0:
            load.avoided = {victim.host}
            cut_one_while_another_hangs(nodes, victim, seed, sync, keys)
        else:
            cut_one(victim, seed, sync)
        load.avoided = set()
        check_lost("every acknowledged write is there through every node", lost_at_all(keys))
        check("writes go on", wait_for(lambda: load.written > before, LIMIT_S))
        check("the node has again what it may have lost", wait_for(lambda: is_complete(victim), LIMIT_S), victim.said()[-2000:])
    load.stop()
    print("       %d writes acknowledged, %d errors at clients" % (load.written, load.errors), flush=True)
    check("no QUORUM read goes back", not load.stale, "%d, first: %s" % (len(load.stale), load.stale[:3]))
    check_lost("in the end every acknowledged write is there", lost_at_all(keys))


def size_of(file):
    return file.stat().st_size if file.exists() else 0


def start_all(nodes, sync, syncs="all"):
    for node in nodes:
        node.start(sync, syncs)
    check("%d nodes start, mode %s" % (len(nodes), sync), all(wait_for(node.serves, LIMIT_S) for node in nodes))


def stop_all(nodes):
    check("they stop", [node.stop() for node in nodes] == [0] * len(nodes))


def cut_all(nodes, keys, seed):
    """Under load. When it was, and a time before which everything that a node had was synced."""
    load = Load([node.host for node in nodes], keys)
    check("writes are acknowledged", wait_for(lambda: load.written > 1000, LIMIT_S))
    for node in nodes:
        node.process.kill()
    killed_us = now_us()
    for node in nodes:
        node.process.wait()
    load.stop()
    check("no QUORUM read goes back before the cut", not load.stale, str(load.stale[:3]))
    reports = [node.disk.cut(seed + i, worst=i == 0, holes=HOLES) for i, node in enumerate(nodes)]
    for report in reports:
        print("       lost: %s" % report, flush=True)
    return killed_us, min(report.log_synced_us or 0 for report in reports)


def cut_all_periodic(nodes, keys):
    killed_us, synced_us = cut_all(nodes, keys, SEED * 1000 + 100)
    start_all(nodes, "periodic")
    check_lost("a cut of all, mode periodic: what was acknowledged before the last syncs began is there",
               lost_at_all(keys, synced_us))
    print("       that is %d ms before the cut" % ((killed_us - synced_us) / 1000), flush=True)
    check("and that was not long before", killed_us - synced_us < SYNC_LIMIT_US, "%d us" % (killed_us - synced_us))
    keys.begin_from(with_session(HOSTS[0], lambda session: read_all(session, ConsistencyLevel.QUORUM)))
    check_lost("what was read after it stays", lost_at_all(keys))
    check("all nodes have again what they may have lost",
          wait_for(lambda: all(map(is_complete, nodes)), LIMIT_S), str(list(map(is_complete, nodes))))


def cut_all_group(nodes, keys):
    stop_all(nodes)
    start_all(nodes, "group")
    for number in range(2):
        cut_all(nodes, keys, SEED * 1000 + 200 + 10 * number)
        start_all(nodes, "group")
        check_lost("a cut of all, mode group: no acknowledged write is lost", lost_at_all(keys))


def find_a_mistake():
    """A node whose syncs do nothing has to fail what the others pass."""
    node = Node(HOSTS[0], HOSTS[0], FOLDER / "mistaken")
    try:
        start_all([node], "group")
        with_session(node.host, lambda session: make_table(session, 1))
        stop_all([node])
        start_all([node], "group", syncs="none")
        keys = Keys()
        cut_all([node], keys, SEED)
        node.start("group")
        try:
            wait_for(node.serves, LIMIT_S)
            lost = with_session(node.host, lambda session: lost_of(keys, session, ConsistencyLevel.ONE))
        except Exception as error:
            lost = [error]
        check("a node whose syncs do nothing is found", lost)
        print("       %d keys: %s" % (len(lost), lost[:1]), flush=True)
    finally:
        node.kill()


def keep_a_mark():
    """What a node has found damaged is so after a cut, too."""
    node = Node(HOSTS[0], HOSTS[0], FOLDER / "damaged")
    mark = node.data / "store-0/DAMAGED"
    try:
        start_all([node], "periodic")
        with_session(node.host, lambda session: make_table(session, 1))
        with_session(node.host, lambda session: [session.execute("INSERT INTO cut.t (k, v) VALUES (%s, 1)", (key,)) for key in ALL_KEYS])
        flushed = tetractl_at(node.host, "flush").returncode == 0 and tetractl_at(node.host, "compact").returncode == 0
        files = sorted(node.data.glob("store-0/*.sst"), key=size_of)
        with open(files[-1], "r+b") as file:
            file.seek(size_of(files[-1]) // 4)
            file.write(b"rot" * 20)
        tetractl_at(node.host, "verify", "cut")
        check("a node notes that a file of it is damaged", flushed and wait_for(mark.exists, LIMIT_S), node.said()[-2000:])
        node.kill()
        node.disk.cut(SEED, worst=True)
        check("the note is there after a cut", mark.exists())
    finally:
        node.kill()


def with_session(host, action):
    cluster, session = with_retry(lambda: connect([host]), LIMIT_S)
    try:
        return action(session)
    finally:
        cluster.shutdown()


def make_table(session, count):
    session.execute("CREATE KEYSPACE cut WITH replication = {'class': 'SimpleStrategy', 'replication_factor': %d}" % count)
    session.execute("CREATE TABLE cut.t (k int PRIMARY KEY, v int)")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    nodes = [Node(host, ",".join(HOSTS), FOLDER / host) for host in HOSTS]
    try:
        start_all(nodes, "periodic")
        with_session(HOSTS[0], lambda session: make_table(session, 4))
        keys = Keys()
        cut_one_at_a_time(nodes, keys, 6, "periodic")
        cut_all_periodic(nodes, keys)
        cut_all_group(nodes, keys)
    finally:
        for node in nodes:
            node.kill()
    keep_a_mark()
    find_a_mistake()


try:
    begun = time.time()
    main()
    print("       %.0f s" % (time.time() - begun))
    for node in FOLDER.iterdir():  # the logs stay
        shutil.rmtree(node / "disk")
        shutil.rmtree(node / "notes")
except Exception as error:  # counted, not hidden
    check("the run itself", False, "%s: %s" % (type(error).__name__, error))
finish()
