# SPDX-License-Identifier: Apache-2.0
"""The node under test: a process of its own, its memory, its end."""

import os
import pathlib
import signal
import subprocess
import time

import wire

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("TETRAD_BINARIES") or os.environ.get("TETRAD_BIN") or TOP / "build/release/bin") / "tetrad"


class Node:
    def __init__(self, folder, shards):
        self.folder = folder
        self.shards = shards
        self.process = None
        self.rss_max_kb = 0

    def arguments(self, *more):
        return [str(PROGRAM), "--listen-address", wire.ADDRESS[0], "--data-directory", f"{self.folder}/data", "--shards", str(self.shards), *more]

    def start(self, *more):
        """Starts it, with these arguments as well, and waits for its first answer to a query; milliseconds."""
        began = time.monotonic()
        self.log = open(f"{self.folder}/log.txt", "ab")
        self.process = subprocess.Popen(self.arguments(*more), stdout=self.log, stderr=self.log)
        while time.monotonic() < began + 30:
            if self.process.poll() is not None:
                raise wire.Failure(f"the node ended at once: {self.log_tail()}")
            try:
                with wire.Client() as client:
                    client.done("SELECT key FROM system.local")
                    return (time.monotonic() - began) * 1000
            except ConnectionRefusedError:
                time.sleep(0.002)
        raise wire.Failure(f"the node does not answer: {self.log_tail()}")

    def log_tail(self):
        return pathlib.Path(f"{self.folder}/log.txt").read_text(errors="replace")[-1500:]

    def alive(self):
        return self.process.poll() is None

    def memory_kb(self, name="VmRSS"):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith(name + ":"):
                return int(line.split()[1])
        return 0

    def peak_kb(self):
        """The highest RSS since the last call."""
        peak = self.memory_kb("VmHWM")
        self.rss_max_kb = max(self.rss_max_kb, peak)
        try:
            with open(f"/proc/{self.process.pid}/clear_refs", "w") as refs:
                refs.write("5")
        except OSError:
            pass  # then the peak is that of all cases so far
        return peak

    def give_back(self, below_kb, seconds_max):
        """Waits until what a case took has gone back to the system, so that the next is measured by itself; kB that are left."""
        until = time.monotonic() + seconds_max
        while self.alive() and self.memory_kb() > below_kb and time.monotonic() < until:
            time.sleep(0.1)
        left = self.memory_kb()
        self.peak_kb()
        return left

    def stop(self, how=signal.SIGTERM):
        """Seconds until it has ended."""
        began = time.monotonic()
        if self.process is not None and self.alive():
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return time.monotonic() - began

    def refused(self, *more):
        """Starts another with these arguments, which must not run: its exit code and what it said."""
        arguments = self.arguments(*more)
        for option in ("--listen-address", "--shards", "--data-directory"):
            if option in more:
                first = arguments.index(option)
                del arguments[first:first + 2]
        ended = subprocess.run(arguments, capture_output=True, text=True, timeout=20)
        return ended.returncode, ended.stderr.strip()
