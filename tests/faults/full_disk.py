# SPDX-License-Identifier: Apache-2.0
# One real node on a small disk (a tmpfs of its own) that fills up: no end of the process, reads go on, writes are
# refused with the reason, a start on the full disk serves or says why not, and with room everything goes on.
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.policies import WhiteListRoundRobinPolicy

from checks import BINARIES, PREFIX, check, finish, wait_for, with_retry

HOST = PREFIX + ".9"
DISK_MB = 320
LIMIT_S = 120


def comes(condition):
    return wait_for(condition, LIMIT_S)


class Node:
    def __init__(self, disk):
        self.data, self.log = disk / "data", Path(str(disk) + ".log")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [BINARIES + "/tetrad", "--data-directory", str(self.data), "--listen-address", HOST, "--write-buffer-mb", "4"],
            stdout=subprocess.DEVNULL, stderr=open(self.log, "ab"))

    def health(self):
        try:
            with urllib.request.urlopen("http://%s:9180/health" % HOST, timeout=5) as answer:
                return answer.read().decode().strip()
        except urllib.error.HTTPError as error:
            return error.read().decode().strip()
        except OSError:
            return ""

    def runs(self):
        return self.process.poll() is None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "no end after SIGTERM"

    def said(self):
        return self.log.read_text(errors="replace")


def connect():
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([HOST]), request_timeout=10)
    cluster = Cluster([HOST], execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=10)
    return cluster, cluster.connect()


def nearly_full(node, session, disk):
    """Less is left than inserts leave: they are refused, deletions are not, and who asks is told."""
    space = os.statvfs(disk)
    with open(disk / "filler", "wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, space.f_bavail * space.f_frsize - (8 << 20))
    line = "the disk of %s is full: inserts of its rows are refused; deletions, DROP and TRUNCATE make room (%d MB are left, inserts leave %d)"
    told = re.compile(re.escape(line).replace("%s", re.escape(HOST)).replace("%d", r"\d+"))
    check("/health says that no inserts are taken", wait_for(lambda: told.search(node.health()), 20), node.health())
    check("and that the node serves", node.health().startswith("serving\n"), node.health())
    status = subprocess.run([BINARIES + "/tetractl", "-h", HOST, "status"], capture_output=True, text=True, timeout=30)
    check("tetractl status warns of it", re.search("^WARNING: " + told.pattern, status.stdout, re.M), status.stdout + status.stderr)
    reason = write_until_refused(session, list(range(1000)))
    check("an insert is refused as overload, with the disk", "code=1001" in reason and "the disk of %s is full" % HOST in reason, reason)
    for number in range(500, 600):
        session.execute("DELETE FROM filled.t WHERE k = %s", (number,))
    (disk / "filler").unlink()
    check("with room there is nothing to tell", comes(lambda: node.health() == "serving"), node.health())


def fill(disk):
    """Every byte that is left."""
    with open(disk / "filler", "ab", buffering=0) as filler:
        for size in (1 << 20, 4096):
            try:
                while True:
                    filler.write(b"\0" * size)
            except OSError:
                pass


def write_until_refused(session, acked):
    for number in range(len(acked), len(acked) + 10_000):
        try:
            session.execute("INSERT INTO filled.t (k, v) VALUES (%s, %s)", (number, "x" * 20_000))
            acked.append(number)
        except Exception as error:
            return str(error)
    return ""


def missing(session, acked):
    return [k for k in acked if session.execute("SELECT k FROM filled.t WHERE k = %s", (k,)).one() is None]


def main(node, disk):
    node.start()
    if not comes(lambda: node.health() == "serving"):
        return check("the node starts", False, node.said()[-2000:])
    cluster, session = connect()
    session.execute("CREATE KEYSPACE filled WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE filled.t (k int PRIMARY KEY, v text)")
    acked = list(range(200))
    for number in acked:
        session.execute("INSERT INTO filled.t (k, v) VALUES (%s, %s)", (number, "x" * 1000))

    nearly_full(node, session, disk)
    fill(disk)
    reason = write_until_refused(session, acked)
    check("a write on a full disk is refused as overload, with the reason",
          "code=1001" in reason and "full" in reason and str(disk) not in reason, reason)
    check("the node runs on", node.runs(), node.said()[-2000:])
    check("/health says that the disk is full", wait_for(lambda: "full" in node.health(), 20), node.health())
    for statement in "INSERT INTO filled.t (k, v) VALUES (-1, 'x') IF NOT EXISTS", "DELETE FROM filled.t WHERE k = 1 IF EXISTS":
        try:
            refused = "taken: %s" % (session.execute(statement).one(),)
        except Exception as error:
            refused = str(error)
        check("nothing is unknown of %s IF" % statement[:6], "code=1001" in refused and "is full" in refused, refused)
    status = subprocess.run([BINARIES + "/tetractl", "-h", HOST, "status"], capture_output=True, text=True, timeout=30)
    check("tetractl status says so", re.search(r"\b0 full\b", status.stdout) is not None, status.stdout + status.stderr)
    check("every acknowledged row is read", not missing(session, acked), str(missing(session, acked)[:5]))
    time.sleep(2)  # syncs of the log come due
    check("the node runs on after a while", node.runs(), node.said()[-2000:])

    (disk / "filler").unlink()
    check("with room it serves again by itself", comes(lambda: node.health() == "serving"), node.health())
    # Health is of the store; what coordinators know of the disk follows with the next measurement.
    with_retry(lambda: session.execute("INSERT INTO filled.t (k, v) VALUES (100000, 'after')"))
    acked.append(100_000)

    fill(disk)
    write_until_refused(session, acked)
    cluster.shutdown()
    code = node.stop()
    check("a node with a full disk ends without an abort", code in (0, 1), "exit code %s" % code)
    fill(disk)  # what the end may have given back
    before = len(node.said())
    node.start()
    wait_for(lambda: node.health() != "" or not node.runs(), 30)
    words = node.said()[before:]
    served = wait_for(lambda: node.health() not in ("", "starting"), 10) if node.runs() else False
    check("a start on a full disk serves, or says why not, without an abort",
          served or (re.search("full|No space|room", words) is not None and node.process.poll() in (None, 1, 2)),
          "exit code %s: %s" % (node.process.poll(), words[-2000:]))
    (disk / "filler").unlink()
    if not node.runs():
        node.start()
    check("with room it serves", comes(lambda: node.health() == "serving"), node.health() + node.said()[-2000:])
    cluster, session = connect()
    check("every acknowledged row is still there", not missing(session, acked), str(missing(session, acked)[:5]))
    session.execute("INSERT INTO filled.t (k, v) VALUES (100001, 'after')")
    cluster.shutdown()
    code = node.stop()
    check("it ends as always", code == 0, "exit code %s" % code)
    check("nothing was asserted", "Assertion" not in node.said(), node.said()[-2000:])


def run():
    with tempfile.TemporaryDirectory(prefix="tetrad-full-") as folder:
        disk = Path(folder) / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % DISK_MB, "none", str(disk)],
                                 capture_output=True, text=True)
        if mounted.returncode != 0:
            print("SKIPPED: the full disk needs the right to mount a tmpfs: %s" % mounted.stderr.strip(), flush=True)
            return
        node = Node(disk)
        try:
            main(node, disk)
        except Exception as error:  # counted, not hidden
            check("the run itself", False, "%s: %s" % (type(error).__name__, error))
        finally:
            if node.process is not None and node.runs():
                node.process.kill()
                node.process.wait()
            subprocess.run(["umount", "-l", str(disk)], check=False)


run()
finish()
