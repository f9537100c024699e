#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What an operator does to one process: signals, an audit log that is moved away; and starts that are refused before anything
# is written: a folder of somebody else, one port twice, too few threads, what --check-config finds. Last line N passed, N failed.
# one_process.py PREFIX: of loopback, as 127.0.13; TETRAD_BIN: where tetrad is.
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import urllib.error
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "tls"), str(TESTS / "overload")]
import wire  # noqa: E402
from node import BIN, Node, run_in_folder, wait_until  # noqa: E402

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
    os.environ["TZ"] = "EST5"
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
        times = {bool(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}-05:00 [DIWE] ", line)) for line in node.log().splitlines()}
        check(times == {True}, "lines of the log have local time and its offset")
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


def tetrad(*options, limit=None):
    """Exit code and what is said, on both outputs, by a tetrad that is to end by itself."""
    command = [str(BIN / "tetrad"), "--listen-address", ADDRESS, *map(str, options)]
    if limit:  # for a user whom limits hold
        # A shell's own words "Cannot fork" are no part of the test: exec makes no process.
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", limit + '; exec "$0" "$@"', *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


def refusals(top):
    foreign = top / "foreign"
    foreign.mkdir()
    (foreign / "photo").write_text("x")
    code, said = tetrad("--data-directory", foreign)
    check(code == 2 and "foreign is not empty and is no data directory of tetrad: 'photo' is in it" in said and
          os.listdir(foreign) == ["photo"], "a folder of somebody else is refused, and nothing is written there: %s" % said)
    twice = top / "twice"
    code, said = tetrad("--data-directory", twice, "--native-port", 7000)
    check(code == 2 and "native_port and internode_port are both 7000 on %s" % ADDRESS in said and not twice.exists(),
          "one port twice is refused before anything is founded: %s" % said)
    if os.geteuid() == 0:
        few = top / "few"
        few.mkdir()
        os.chown(few, 65534, 65534)
        os.chmod(top, 0o755)
        for limit in ("ulimit -u 12", "ulimit -v 300000"):
            code, said = tetrad("--data-directory", few, "--io-threads", 64, limit=limit)
            check(code == 1 and len(said.splitlines()) == 1 and "threads are needed, and only" in said and "ulimit -u" in said,
                  "%s ends a start with one line: %s" % (limit, said))


def narrow(top):
    """With little memory for stacks a node serves, or ends with a line that says why."""
    said = {}
    for kb in range(300000, 1000000, 100000):
        with open(top / "narrow.log", "w+b") as log:
            process = subprocess.Popen(
                ["bash", "-c", 'ulimit -v %d; exec "$0" "$@"' % kb, str(BIN / "tetrad"), "--listen-address", ADDRESS,
                 "--data-directory", str(top / ("narrow%d" % kb))], stdout=log, stderr=log)
            try:
                wait_until("it serves or ends", lambda: process.poll() is not None or
                           b"Startup complete" in (top / "narrow.log").read_bytes())
            finally:
                process.terminate()
                code = process.wait(20)
        text = (top / "narrow.log").read_text()
        own = [line for line in text.splitlines() if line.startswith("tetrad: ")]
        if "terminate called" in text or (code, len(own)) not in ((0, 0), (1, 1)):
            said[kb] = code, text
    check(not said, "too little memory for stacks ends a start with one line: %s" % said)


def checks(top):
    file = top / "tetrad.yaml"

    def said(text, *options):
        file.write_text(text)
        return tetrad("--config", file, "--check-config", "--data-directory", top / "unused", *options)

    check(said("rack: r7\n") == (0, "ok\n"), "--check-config says ok")
    code, text = said("native_port: x\nrakc: a\n")
    check(code == 2 and "line 1: native_port" in text and "line 2: there is no option 'rakc'" in text,
          "--check-config tells all that is wrong in the file: %s" % text)
    code, text = said("native_port: 7000\nrack: ''\ncluster_secret_file: %s/none\nseeds: a b\n" % top)
    check(code == 2 and len(text.splitlines()) == 4 and all(line.startswith("tetrad: ") for line in text.splitlines()),
          "and in the options together, a line for each: %s" % text)
    check(not (top / "unused").exists(), "--check-config writes nothing")
    code, text = tetrad("--config", file, "--print-config", "--rack", "a: b")
    given = top / "given.yaml"
    given.write_text(text)
    again = tetrad("--config", given, "--print-config")
    check('\nrack: "a: b"\n' in text and "\nnative_port: 7000\n" in text and again == (0, text),
          "--print-config prints options as they are given, and reads what it prints")
    (top / "file").write_text("")
    for folder, why in (("/proc/x", "/proc/x cannot hold files: /proc: "), (top / "file" / "x", "Not a directory"), (top / "file", "Not a directory")):
        code, text = said("rack: r7\n", "--audit-log-enabled", "--audit-log-directory", folder)
        check(code == 2 and "audit_log_directory: %s cannot hold files" % folder in text and why in text,
              "--check-config tells that a folder cannot be: %s" % text)
    before = sorted(top.iterdir())
    for folder in (top / "audits" / "of" / "n1", top):
        check(said("rack: r7\n", "--audit-log-directory", folder) == (0, "ok\n"), "a folder that is there, or can be made, is well: %s" % folder)
    check(sorted(top.iterdir()) == before, "and nothing is left there")


def health(node):
    try:
        return node.ask("/health")
    except urllib.error.HTTPError as error:
        return "%d %s" % (error.code, error.read().decode())


def removed_folder(top):
    node = Node(top, ADDRESS)
    try:
        check("serving" in health(node), "a node serves")
        shutil.rmtree(node.folder / "data")
        said = health(node)
        check(said.startswith("503 the data directory ") and "was removed" in said, "whose data directory is removed says so: %s" % said.strip())
        (node.folder / "data").mkdir()
        (node.folder / "data" / "LOCK").touch()
        check(health(node).startswith("503 "), "and another one in its place is none of its own")
    finally:
        node.stop()


def main(top):
    checks(top)
    refusals(top)
    narrow(top)
    signals(top)
    removed_folder(top)


run_in_folder(main, check, results)
