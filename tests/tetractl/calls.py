# SPDX-License-Identifier: Apache-2.0
"""Calls of tetractl against the nodes of this test, and what counts them."""
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BIN = os.environ.get("TETRAD_BIN", str(TOP / "build/release/bin"))
FIRST = os.environ.get("TETRAD_TETRACTL_FIRST", "127.0.14.1")
PREFIX = FIRST.rsplit(".", 1)[0]
NODES = 3
SETTINGS = ["balance_start_percent", "burst_ru_per_s", "max_logical_partition_mb", "max_physical_partition_mb", "physical_partition_ru_per_s"]
TIMEOUTS = ["cascontention", "counterwrite", "range", "read", "truncate", "write"]

passed = failed = 0
said_verbs = set()
json_verbs = set()  # asked with --json, and answered so


def check(name, condition, detail=""):
    global passed, failed
    print("%s %s" % ("ok    " if condition else "FAILED", name), "" if condition else detail, flush=True)
    passed, failed = passed + bool(condition), failed + (not condition)


def up(*words):
    return subprocess.run([str(TOP / "tools/up"), "--first-address", FIRST, "--binaries", BIN, *words], capture_output=True,
                          text=True, timeout=120)


def tetractl(*words, host=FIRST):
    return subprocess.run([BIN + "/tetractl", "-h", host, *words], capture_output=True, text=True, timeout=120)


def case(line, pattern="", code=0, host=FIRST):
    """One call: its exit code, and a pattern in what it prints; `line` is split at blanks."""
    words = line.split()
    said_verbs.update(words)
    done = tetractl(*words, host=host)
    output = done.stdout + done.stderr
    check("tetractl " + line, done.returncode == code and re.search(pattern, output, re.M), "code %d:\n%s" % (done.returncode, output))
    return output


def order_status(path):
    """The status of an order by HTTP, with the token in the file that a refusal names."""
    headers = {}
    while True:
        try:
            return urllib.request.urlopen(urllib.request.Request("http://%s:9180/%s" % (FIRST, path), method="POST", headers=headers), timeout=10).status
        except urllib.error.HTTPError as error:
            if error.code != 401 or headers:
                return error.code
            headers = {"X-Tetrad-Token": Path(json.load(error)["token_file"]).read_text().strip()}


def as_json(line, has):
    """The same with --json: the output is JSON, with a key, or of a list's first item."""
    done = tetractl(*line.split(), "--json")
    try:
        found = json.loads(done.stdout)
        json_verbs.add(line.split()[0])
        found = found[0] if isinstance(found, list) else found
        check("tetractl %s --json" % line, has in found, done.stdout)
        return found
    except (ValueError, IndexError) as error:
        check("tetractl %s --json" % line, False, "%s\n%s%s" % (error, done.stdout, done.stderr))
        return {}


def wait_for(condition, seconds=10):
    """Whether it holds in time; what it throws counts as not yet."""
    deadline = time.time() + seconds
    while time.time() < deadline:
        try:
            if condition():
                return True
        except Exception:
            pass
        time.sleep(0.05)
    return False
