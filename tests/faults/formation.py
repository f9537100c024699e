# SPDX-License-Identifier: Apache-2.0
# Seeds and members on real processes: a seed whose data was deleted, a seed that stays silent, a node that was replaced
# while it was away, one that was decommissioned. Nobody ends of it, and there is one cluster.
import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from checks import BINARIES, FIRST, HOSTS, PREFIX, TOP, check, connect, tetractl_at, up, wait_for, with_retry


def check_comes(f, text, action):
    # It may take a while until the cluster has settled.
    try:
        with_retry(action, 60)
        check(text, True)
    except Exception as error:
        check(text, False, repr(error))


def folder(f, node):
    return TOP / "build/cluster" / FIRST / ("node%d" % node)


def log_of(f, node):
    return (folder(f, node) / "log.txt").read_text(errors="replace")


def statuses(f, hosts):
    """What each node says of itself; None where it does not answer."""
    found = []
    for host in hosts:
        try:
            found.append(json.loads(tetractl_at(host, "--json", "status", timeout=20).stdout))
        except ValueError:
            found.append(None)
    return found


def host_ids(f, hosts):
    return [status and status["self"] for status in statuses(f, hosts)]


def leader_of(f, hosts):
    for number, host in enumerate(hosts, 1):
        try:
            if f.metrics(host).get("tetrad_replication_raft_leads") == 1:
                return number
        except OSError:
            pass
    return None


def serving(f):
    return sum("serving" in line and "not serving" not in line for line in up("--status").stdout.splitlines())


def wiped_seed(f):
    # The exact order of events that once ended all of them.
    cluster, session = connect(HOSTS)
    session.execute("CREATE KEYSPACE formed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 4}")
    session.execute("CREATE TABLE formed.t (k int PRIMARY KEY, v int)")
    for k in range(50):
        session.execute(SimpleStatement("INSERT INTO formed.t (k, v) VALUES (%d, %d)" % (k, k),
                                          consistency_level=ConsistencyLevel.QUORUM))
    cluster.shutdown()
    before = host_ids(f, HOSTS)
    up("--kill", "1")
    shutil.rmtree(folder(f, 1) / "data")
    started = up("--start", "1")
    check("the first seed starts again without its data", started.returncode == 0, started.stdout + started.stderr)
    after = host_ids(f, HOSTS)
    check("it is a new node, the others are who they were", after[0] not in before and after[1:] == before[1:], str((before, after)))

    def known():
        found = statuses(f, HOSTS)
        return all(s is not None and {n["host_id"] for n in s["nodes"]} >= set(after) for s in found)

    check("it is of the others' cluster", wait_for(known, 30), str(statuses(f, HOSTS)))
    time.sleep(3)  # the metadata group takes the new node in
    leads = leader_of(f, HOSTS) or 2
    up("--kill", str(leads))
    left = [host for number, host in enumerate(HOSTS, 1) if number != leads]

    def ddl():
        one, session = connect(left)
        try:
            session.execute("CREATE TABLE IF NOT EXISTS formed.after (k int PRIMARY KEY)")
        finally:
            one.shutdown()

    check_comes(f, "with the leader killed too the cluster goes on", ddl)
    check("nobody ended", serving(f) == 3, up("--status").stdout)
    started = up("--start", str(leads))
    check("the leader comes back", started.returncode == 0, started.stdout + started.stderr)

    def read_all():
        one, session = connect(HOSTS)
        try:
            rows = session.execute(SimpleStatement("SELECT k, v FROM formed.t", consistency_level=ConsistencyLevel.QUORUM))
            assert sorted((row.k, row.v) for row in rows) == [(k, k) for k in range(50)]
        finally:
            one.shutdown()

    check_comes(f, "what was acknowledged is read at QUORUM", read_all)


def silent_seed(f):
    # A seed that does not answer is waited for and named; by the operator's word it is not waited for.
    last = int(PREFIX.split(".")[-1])
    address, silent = "%s.%d" % (PREFIX, 40), "%s.%d" % (PREFIX, 41)
    place = TOP / "build/cluster" / ("silent-%d" % last)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    log = place / "log.txt"

    def start(*more):
        with open(log, "ab") as out:
            return subprocess.Popen([BINARIES + "/tetrad", "--data-directory", str(place / "data"), "--listen-address", address,
                                     "--seeds", address + "," + silent, *more], stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def serves():
        return tetractl_at(address, "status", timeout=20).returncode == 0

    node = start()
    try:
        named = wait_for(lambda: "seed %s:7000 does not answer" % silent in log.read_text(errors="replace"), 30)
        check("a silent seed is named in the log", named, log.read_text(errors="replace")[-500:])
        check("and waited for", node.poll() is None and " serving " not in log.read_text(errors="replace"))
        node.send_signal(signal.SIGTERM)
        check("meanwhile SIGTERM stops the node", node.wait(20) == 0)
        node = start("--found")
        check("with --found it founds", wait_for(lambda: node.poll() is None and serves(), 30), log.read_text(errors="replace")[-500:])
    finally:
        if node.poll() is None:
            node.terminate()
            node.wait(20)
        shutil.rmtree(place, ignore_errors=True)


def replaced_while_away(f):
    host = HOSTS[3]
    old = host_ids(f, [host])[0]
    command = Path("/proc/%s/cmdline" % (folder(f, 4) / "pid").read_text().split()[0]).read_bytes().decode().split("\0")[:-1]
    up("--kill", "4")
    check("a killed node looks down", wait_for(lambda: not f.nodes()[host]["live"], 30))
    removed = f.tetractl("remove-node", old)
    check("it is removed", removed.returncode == 0, removed.stdout + removed.stderr)
    # It hears that it is out, and is told to stop while it ends.
    ends = log_of(f, 4).count("out of the cluster")
    with open(folder(f, 4) / "log.txt", "ab") as log:
        node = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    wait_for(lambda: log_of(f, 4).count("out of the cluster") > ends, 30)
    node.send_signal(signal.SIGTERM)
    try:
        # Between its two lives the signal ends the process where it stands.
        check("told to stop meanwhile, it does not start again by itself", node.wait(20) in (0, -signal.SIGTERM))
    finally:
        node.kill()
    back = up("--start", "4")
    check("it comes back by itself as a new node", back.returncode == 0 and host_ids(f, [host])[0] not in (None, old), back.stdout + back.stderr)
    aside = [p for p in (folder(f, 4) / "data").iterdir() if p.name.startswith("set-aside-" + old)]
    check("its old data is set aside, and the log says where", len(aside) == 1 and (aside[0] / "log").is_dir() and str(aside[0]) in log_of(f, 4), str(aside))


def decommissioned(f):
    host = HOSTS[3]
    left = tetractl_at(host, "decommission")
    check("a node is decommissioned", left.returncode == 0 and wait_for(lambda: host not in f.nodes(), 60), left.stdout + left.stderr)
    mark = folder(f, 4) / "data" / "decommissioned"
    check("it leaves a mark, before anybody hears that it has left", mark.exists())
    for _ in range(2):
        ended = subprocess.run([BINARIES + "/tetrad", "--data-directory", str(folder(f, 4) / "data"), "--listen-address", host],
                               capture_output=True, text=True, timeout=60)
        check("started again it exits with 0 and one line", ended.returncode == 0 and ended.stderr.count("\n") == 1 and "has left its cluster" in ended.stderr,
                "%d %s" % (ended.returncode, ended.stderr))
    shutil.rmtree(folder(f, 4) / "data", ignore_errors=True)
    again = up("--start", "4")
    check("without its data it joins as a new node", again.returncode == 0, again.stdout + again.stderr)


def run(f):
    """`f`: the module of the suite, with its checks and its cluster."""
    up("--wipe")
    started = up("--", "--shards", "1")
    check("four nodes with the same seeds form a cluster", started.returncode == 0, started.stdout + started.stderr)
    if started.returncode != 0:
        return
    wiped_seed(f)
    replaced = [n["host_id"] for n in json.loads(f.tetractl("--json", "status").stdout)["nodes"] if not n["live"]]
    for host in replaced:  # the host that the first node was
        if host != host_ids(f, HOSTS[:1])[0]:
            with_retry(lambda host=host: check("what the wiped node was is removed", f.tetractl("remove-node", host).returncode == 0))
    replaced_while_away(f)
    decommissioned(f)
    silent_seed(f)
