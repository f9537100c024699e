# SPDX-License-Identifier: Apache-2.0
"""What the fault tests share: the count of checks, waiting, a cluster that tools/up has started, and sessions with it."""
import os
import subprocess
import sys
import time
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, RetryPolicy, WhiteListRoundRobinPolicy

TOP = Path(__file__).resolve().parents[2]
BINARIES = os.environ.get("TETRAD_BINARIES", str(TOP / "build/release/bin"))
FIRST = os.environ.get("TETRAD_FAULTS_FIRST", "127.0.7.1")
PREFIX = FIRST.rsplit(".", 1)[0]
HOSTS = ["%s.%d" % (PREFIX, int(FIRST.rsplit(".", 1)[1]) + i) for i in range(4)]

_passed = _failed = 0


def check(name, condition, detail=""):
    global _passed, _failed
    if condition:
        _passed += 1
        print("ok    ", name, flush=True)
    else:
        _failed += 1
        print("FAILED", name, detail, flush=True)


def finish():
    """Prints the count and ends the process."""
    print("%d passed, %d failed" % (_passed, _failed))
    sys.exit(1 if _failed else 0)


def wait_for(condition, seconds):
    deadline = time.time() + seconds
    while time.time() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def with_retry(action, seconds=20):
    deadline = time.time() + seconds
    while True:
        try:
            return action()
        except Exception:
            if time.time() > deadline:
                raise
            time.sleep(0.3)


def up_at(first, *words):
    return subprocess.run([str(TOP / "tools/up"), "--first-address", first, "--binaries", BINARIES, *words],
                          capture_output=True, text=True, timeout=120)


def up(*words):
    return up_at(FIRST, *words)


def connect(hosts, request_timeout=10, retries=True, **options):
    """Reads and writes at QUORUM; without `retries` the driver repeats nothing."""
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(hosts), request_timeout=request_timeout,
                               consistency_level=ConsistencyLevel.QUORUM,
                               retry_policy=RetryPolicy() if retries else FallthroughRetryPolicy())
    cluster = Cluster(hosts, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=10,
                      reconnection_policy=ConstantReconnectionPolicy(0.5, None), **options)
    return cluster, cluster.connect()


def start_four(*words):
    """A new cluster of four nodes at HOSTS. False: it does not start, which is counted."""
    up("--wipe")
    started = up("--", *words)
    check("four nodes start", started.returncode == 0, started.stderr + started.stdout)
    return started.returncode == 0


def kill_in_turn(kills):
    """One node after another is killed (-9), and started again two seconds later."""
    for kill in range(kills):
        time.sleep(2)
        up("--kill", str(kill % 4 + 1))
        time.sleep(2)
        up("--start", str(kill % 4 + 1))


def tetractl_at(host, *words, timeout=120):
    return subprocess.run([BINARIES + "/tetractl", "-h", host, *words], capture_output=True, text=True, timeout=timeout)
