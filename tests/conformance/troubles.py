# SPDX-License-Identifier: Apache-2.0
"""What happens to the cluster while scripts run: tablets split, a node is down, all nodes are restarted."""

import json
import random
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

UP = Path(__file__).resolve().parents[2] / "tools/up"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy


class Nodes:
    """The processes of a cluster that tools/up has started."""

    def __init__(self, first, binaries):
        self.command = [str(UP), "--first-address", first, "--binaries", binaries]

    def up(self, *words):
        done = subprocess.run([*self.command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180)
        if done.returncode:
            raise RuntimeError(f"tools/up {' '.join(words)}: {done.stdout}")

    def restart(self, abruptly, count):
        if abruptly:
            for number in range(1, count + 1):
                self.up("--kill", str(number))
        else:
            self.up("--stop")
        self.up()


class Trouble:
    """Threads that run beside the scripts; what one of them raises is told at the end."""

    def __init__(self, works):
        self.over = threading.Event()
        self.failure = None
        self.threads = [threading.Thread(target=self._run, args=(work,)) for work in works]

    def _run(self, work):
        try:
            work()
        except Exception as error:  # noqa: BLE001
            self.failure = f"{type(error).__name__}: {error}"

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def answered(self):
        """Called after each statement."""

    def report(self, keyspaces):
        """A sentence, and whether there was as much trouble as meant, for so many keyspaces."""
        return self.failure or "", self.failure is None


def order(host, path):
    """An order to a node, with the token that it keeps in the file it names to who has none."""
    url = f"http://{host}:9180/{path}"
    try:
        return DIRECT.open(urllib.request.Request(url, method="POST"), timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code != 401:
            raise
        token = open(json.load(error)["token_file"]).read().strip()
    return DIRECT.open(urllib.request.Request(url, method="POST", headers={"X-Tetrad-Token": token}), timeout=30).close()


class Splits(Trouble):
    """All tablets of tables in keyspaces with this prefix are split, again and again, by orders to each node."""

    TABLETS = 24  # of a table, not more: some live for long

    def __init__(self, hosts, prefix):
        super().__init__([lambda host=host: self._split_all(host) for host in hosts])
        self.prefix = prefix
        self.done = Counter()

    def _split_all(self, host):
        chance = random.Random(host)
        not_before = {}  # a tablet of one logical partition has nothing to cut; more may come
        while not self.over.is_set():
            with DIRECT.open(f"http://{host}:9180/partitions", timeout=30) as answer:
                tablets = [tablet for tablet in json.load(answer) if tablet["keyspace"].startswith(self.prefix)]
            tables = Counter((tablet["keyspace"], tablet["table"]) for tablet in tablets)
            tablets = [tablet for tablet in tablets if not_before.get(tablet["id"], 0) <= time.monotonic()]
            for tablet in chance.sample(tablets, min(10, len(tablets))):
                table = tablet["keyspace"], tablet["table"]
                if self.over.is_set() or tables[table] >= self.TABLETS:
                    continue
                try:
                    order(host, f"split?id={tablet['id']}")
                    self.done[tablet["keyspace"]] += 1
                    tables[table] += 1
                except urllib.error.HTTPError as error:
                    if error.code not in (404, 409, 500):  # gone meanwhile, one logical partition, another was first
                        raise
                    not_before[tablet["id"]] = time.monotonic() + 0.2
            time.sleep(0.005)

    def report(self, keyspaces):
        text, good = super().report(keyspaces)
        splits, split = sum(self.done.values()), len(self.done)
        enough = splits >= 4 * keyspaces and split >= keyspaces // 2
        return f"{text}{splits} splits in {split} of {keyspaces} keyspaces", good and enough


class Down(Trouble):
    """One node is killed and started again, over and over; it is away for a good part of the time."""

    AWAY_S, BACK_S = 4, 0.5

    def __init__(self, nodes, number):
        super().__init__([self._kill_and_start])
        self.nodes, self.number = nodes, number
        self.kills = 0
        self.away = False
        self.statements = Counter()

    def _kill_and_start(self):
        while not self.over.is_set():
            self.nodes.up("--kill", str(self.number))
            self.away = True
            self.kills += 1
            self.over.wait(self.AWAY_S)
            self.away = False
            self.nodes.up("--start", str(self.number))
            self.over.wait(self.BACK_S)

    def answered(self):
        self.statements[self.away] += 1

    def report(self, keyspaces):
        text, good = super().report(keyspaces)
        away, total = self.statements[True], sum(self.statements.values())
        return (f"{text}node {self.number} killed {self.kills} times, down for {away} of {total} statements",
                good and self.kills > 1 and away * 4 > total)
