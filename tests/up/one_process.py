#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What an operator does to one process: signals, an audit log that is moved away. Last line N passed, N failed.
# one_process.py PREFIX: of loopback, as 127.0.13; TETRAD_BIN: where tetrad is.
import json
import os
import shutil
import signal
import stat
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "tls"), str(TESTS / "overload")]
import wire  # noqa: E402
from node import Node, run_in_folder, wait_until  # noqa: E402

ADDRESS = "%s.141" % sys.argv[1]
results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    print("%s one_process: %s" % ("ok    " if holds else "FAILED", what), flush=True)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def ask(number):
    wire.ADDRESS = (ADDRESS, 9042)
    with wire.Client() as client:
        client.done("SELECT key FROM system.local WHERE key = 'local' LIMIT %d" % number)


def is_recorded(file, number):
    lines = file.read_text().splitlines() if file.exists() else []
    return any("LIMIT %d" % number in json.loads(line)["operation"] for line in lines)


def signals(top):
    node = Node(top, ADDRESS, "--audit-log-enabled", "--audit-log-excluded-keyspaces", "none")
    file = node.folder / "data" / "audit" / "audit.log"
    try:
        ask(101)
        wait_until("a statement is recorded", lambda: is_recorded(file, 101))
        shutil.rmtree(file.parent)
        wait_until("there is a new audit.log", file.exists)
        ask(102)
        wait_until("statements are recorded there", lambda: is_recorded(file, 102))
        check((mode(file.parent), mode(file)) == (0o700, 0o600), "an audit log that is removed is begun anew, for the node's user only")
        file.rename(file.with_name("rotated"))
        node.process.send_signal(signal.SIGHUP)
        node.expect_log("SIGHUP: audit.log is opened anew")
        wait_until("there is a new audit.log", file.exists)
        ask(103)
        wait_until("statements are recorded there", lambda: is_recorded(file, 103))
        check(True, "by SIGHUP audit.log is opened anew")
        for other in (signal.SIGUSR1, signal.SIGUSR2):
            node.process.send_signal(other)
            node.expect_log("%s has no meaning here and is ignored" % other.name)
        ask(104)
        check(node.process.poll() is None, "SIGHUP, SIGUSR1 and SIGUSR2 do not end a node")
        shutil.rmtree(file.parent)
        file.parent.write_text("no folder")
        wait_until("it is told", lambda: "audit log" in node.ask("/health") or "audit log" in node.ask("/status"))
        try:
            ask(105)
            refused = ""
        except Exception as error:
            refused = str(error)
        check("audit log cannot be written" in refused, "while it cannot be written statements are refused: %s" % refused)
        file.parent.unlink()
        node.expect_log("the audit log is written again")
        ask(106)
        wait_until("statements are recorded again", lambda: is_recorded(file, 106))
        node.process.send_signal(signal.SIGTERM)
        check(node.process.wait(20) == 0, "SIGTERM ends it")
    finally:
        node.stop()


def main(top):
    signals(top)


run_in_folder(main, check, results)
