# SPDX-License-Identifier: Apache-2.0
# Runs cqlsh as a user would: a process of its own, statements in, text out.
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

HOST = os.environ.get("TETRAD_TEST_HOSTS", "127.0.0.1").split(",")[0]
PORT = os.environ.get("TETRAD_TEST_PORT", "9042")
CQLSH = Path(sys.executable).with_name("cqlsh")


class Result:
    def __init__(self, done):
        remark = "WARNING: cqlsh was built against"  # said of a newer Cassandra, not of Tetrad
        out = "".join(line for line in done.stdout.splitlines(True) if not line.startswith(remark))
        out = out.replace("Consistency level set to QUORUM.\n", "", 1)  # what every script here begins with
        self.code, self.out, self.err = done.returncode, out, done.stderr

    def __repr__(self):
        return "exit %d\n--- stdout\n%s\n--- stderr\n%s" % (self.code, self.out, self.err)


@pytest.fixture(scope="session")
def shell(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")

    environment = dict(os.environ, HOME=str(home), LC_ALL="C.UTF-8", TZ="UTC", CQLSH_NO_BUNDLED="1")
    command = [str(CQLSH), "--no-color", "--request-timeout=60", "--connect-timeout=20"]

    def start(statement):
        """cqlsh -e as a process that goes on, its output unbuffered."""
        return subprocess.Popen(
            [*command, "-e", statement, HOST, PORT], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=dict(environment, PYTHONUNBUFFERED="1"), cwd=str(home),
        )

    def run(text, *options, fails=False):
        done = subprocess.run(
            [*command, *options, HOST, PORT],
            input="CONSISTENCY QUORUM\n" + text, capture_output=True, text=True, timeout=110, env=environment, cwd=str(home),
        )
        result = Result(done)
        if not fails:
            assert result.code == 0 and not errors_of(result), result
        return result

    run.home, run.start = home, start
    return run


def errors_of(result):
    """What cqlsh wrote to stderr, without the remarks that are not errors."""
    lines = result.err.splitlines()
    return [line for line in lines if line.strip() and not line.startswith("WARNING") and "Warnings" not in line]


@pytest.fixture(scope="session")
def keyspace(shell):
    name = "drv_cqlsh_%08x" % random.getrandbits(32)
    factor = os.environ.get("TETRAD_TEST_HOSTS", "127.0.0.1").count(",") + 1
    shell(
        "CREATE KEYSPACE %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': %d};"
        % (name, min(4, factor))
    )
    yield name
    shell("DROP KEYSPACE IF EXISTS %s;" % name)
