# SPDX-License-Identifier: Apache-2.0
# Nodes and certificates of the tests of TLS: real processes on loopback addresses, a folder that goes at the end.
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

BIN = Path(os.environ["TETRAD_BIN"])
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy


def tetractl(*words, fails=False):
    """What it says; fails=None: it may end either way."""
    done = subprocess.run([BIN / "tetractl", *map(str, words)], capture_output=True, text=True, timeout=60)
    assert fails is None or (done.returncode != 0) == fails, (words, done.stdout, done.stderr)
    return done.stderr if fails else done.stdout


def certificates(folder, *words):
    """What `tetractl certificates` makes; returns the folder."""
    tetractl("certificates", folder, *words)
    return Path(folder)


def signed_by(folder, name, names="IP:127.0.0.1", days=9, usage="serverAuth"):
    """A certificate and its key, signed by the authority in the folder: FOLDER/NAME.pem, FOLDER/NAME-key.pem. Of 0 days: it has expired."""
    folder = Path(folder)
    key, request, extensions, out = (folder / (name + end) for end in ("-key.pem", ".csr", ".ext", ".pem"))
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request,
                    "-subj", "/CN=" + name], check=True, capture_output=True)
    extensions.write_text("subjectAltName=%s\nextendedKeyUsage=%s\n" % (names, usage))
    subprocess.run(["openssl", "x509", "-req", "-in", request, "-CA", folder / "ca.pem", "-CAkey", folder / "ca-key.pem", "-CAcreateserial",
                    "-days", str(days), "-extfile", extensions, "-out", out], check=True, capture_output=True)
    return out, key


def wait_until(what, condition, seconds=30):
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, "not within %d s: %s" % (seconds, what)
        time.sleep(0.05)


def run_in_folder(main, check, results):
    """Runs main(folder), prints the line that counts, and ends; what was begun is counted all the same."""
    folder = tempfile.mkdtemp()
    try:
        main(Path(folder))
    except Exception as error:
        check(False, "%s: %s" % (type(error).__name__, error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("%(passed)d passed, %(failed)d failed" % results)
    sys.exit(results["failed"] != 0)


class Node:
    """A process of tetrad."""

    context = None  # of the admin port: for HTTPS

    def __init__(self, top, address, *options, serves=True):
        self.address, self.folder = address, Path(tempfile.mkdtemp(dir=top))
        self.log_path = self.folder / "log.txt"
        self.options = options
        self.start(serves)

    def start(self, serves=True):
        self.started = self.log().count("Startup complete") + 1 if self.log_path.exists() else 1
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [BIN / "tetrad", "--data-directory", self.folder / "data", "--listen-address", self.address, *map(str, self.options)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )
        if serves:
            wait_until("%s serves: %s" % (self.address, self.options), self.serves)

    def serves(self):
        assert self.process.poll() is None, self.log()
        return self.log().count("Startup complete") >= self.started

    def log(self):
        return self.log_path.read_text(errors="replace")

    def expect_log(self, *parts, seconds=15):
        """A line that has all of these."""
        wait_until(
            "a line with %s in the log of %s" % (parts, self.address),
            lambda: any(all(part in line for part in parts) for line in self.log().splitlines()), seconds,
        )

    def ask(self, path):
        opener = direct if self.context is None else urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.context))
        scheme = "http" if self.context is None else "https"
        with opener.open("%s://%s:9180%s" % (scheme, self.address, path), timeout=5) as answer:
            return answer.read().decode()

    def metric(self, name):
        return sum(float(line.split()[-1]) for line in self.ask("/metrics").splitlines() if line.startswith(name + "{"))

    def live(self):
        """Addresses of the nodes that it sees live, itself among them."""
        status = json.loads(self.ask("/status"))
        return {node["address"] for node in status["nodes"] if node["live"] or node["host_id"] == status["self"]}

    def resident_mb(self):
        for line in Path("/proc/%d/status" % self.process.pid).read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def ended_with(top, *options):
    """What tetrad says that does not start with these options."""
    done = subprocess.run(
        [BIN / "tetrad", "--data-directory", tempfile.mkdtemp(dir=top), *map(str, options)],
        capture_output=True, text=True, timeout=30,
    )
    assert done.returncode == 2, (done.returncode, done.stderr)
    return done.stderr


def check_config(top, *options):
    """What --check-config ends with and says."""
    done = subprocess.run(
        [BIN / "tetrad", "--check-config", "--data-directory", tempfile.mkdtemp(dir=top), *map(str, options)],
        capture_output=True, text=True, timeout=30,
    )
    return done.returncode, done.stdout + done.stderr
