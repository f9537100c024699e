#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A copy of a node's data directory, started beside it: it ends and says why, and the node that it was copied of goes on; while
# that one is gone it is the node that has moved. And a machine whose clocks count from elsewhere (another time namespace)
# moves nobody's time. Last line N passed, N failed.
# copied_data.py PREFIX: of loopback, as 127.0.13; TETRAD_BIN: where tetrad and tetractl are.
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tls"))
from node import BIN, Node, run_in_folder, wait_until  # noqa: E402

PREFIX = sys.argv[1]
ADDRESSES = ["%s.%d" % (PREFIX, 141 + i) for i in range(4)]
SEEDS = ("--seeds", ",".join(ADDRESSES[:3]))
results = {"passed": 0, "failed": 0}
started = []


def check(holds, text, shown=""):
    results["passed" if holds else "failed"] += 1
    print("%s %s%s" % ("ok    " if holds else "FAILED", text, "" if holds else "\n" + str(shown)))


def ahead_s(node):
    return float(re.search(r"^tetrad_replication_clock_ahead_seconds (\S+)", node.ask("/metrics"), re.M)[1])


def copies(folder, nodes):
    nodes[1].stop()
    copy = folder / "copy"
    shutil.copytree(nodes[1].folder / "data", copy)
    nodes[1].start()
    wait_until("all are live", lambda: nodes[0].live() == set(ADDRESSES[:3]))
    words = [BIN / "tetrad", "--data-directory", copy, "--listen-address", ADDRESSES[3], *SEEDS]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    check(done.returncode == 2 and "is a copy of another node's" in done.stderr and ADDRESSES[1] in done.stderr, "a copy ends, and says why",
          done.stderr)
    check("Startup complete" not in done.stderr, "it has served nobody")
    nodes[0].expect_log("two nodes have the same data directory", ADDRESSES[1], ADDRESSES[3])
    check(True, "the others say so")
    check(nodes[1].ask("/health").strip() == "serving", "the node that it was copied of serves", nodes[1].ask("/health"))
    check(nodes[0].live() == set(ADDRESSES[:3]), "and is where it was", nodes[0].live())
    nodes[1].process.send_signal(signal.SIGKILL)
    nodes[1].process.wait()
    log = open(folder / "moved.txt", "wb")
    moved = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    wait_until("the moved node is known", lambda: nodes[0].live() == {ADDRESSES[0], ADDRESSES[2], ADDRESSES[3]})
    check(moved.poll() is None, "when that one is gone, it is the node that has moved")
    moved.terminate()
    moved.wait(20)


def counts_from_elsewhere(nodes):
    apart = ["unshare", "--time", "--fork", "--boottime", "3600"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
        print("ok     (no time namespaces here)")
        return
    nodes[2].stop()
    log = open(nodes[2].log_path, "ab")
    process = subprocess.Popen([*apart, "--kill-child", BIN / "tetrad", "--data-directory", nodes[2].folder / "data", "--listen-address",
                                ADDRESSES[2], *SEEDS], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    wait_until("it is live", lambda: ADDRESSES[2] in nodes[0].live())
    wait_until("its clock is good", lambda: "tetrad_replication_clock_good 1" in nodes[2].ask("/metrics"))
    for node in (nodes[0], nodes[2]):
        check(abs(ahead_s(node)) < 2, "%s is not ahead of its clock" % node.address, ahead_s(node))
    process.kill()
    process.wait()
    nodes[2].start()
    wait_until("all are live again", lambda: nodes[0].live() == set(ADDRESSES[:3]))


def main(folder):
    try:
        for address in ADDRESSES[:3]:
            started.append(Node(folder, address, *SEEDS, serves=False))
        for node in started:
            wait_until("%s serves" % node.address, node.serves)
            wait_until("%s sees all" % node.address, lambda: node.live() == set(ADDRESSES[:3]))
        counts_from_elsewhere(started)
        copies(folder, started)
    finally:
        for node in started:
            node.stop()


if __name__ == "__main__":
    run_in_folder(main, check, results)
