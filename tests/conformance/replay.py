# SPDX-License-Identifier: Apache-2.0
"""replay.py --hosts A,B,... [SCRIPT...]: compares a server's answers with expected/.

--protocol, --prepared, --page: the manner in which the statements are asked (manners.py). --split, --down, --restart: what
happens to the cluster meanwhile (troubles.py)."""

import argparse
import os
import queue
import re
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from answers import ScriptRun, Server
from expected import comparable, read_differences, read_expected, recorded_path
from manners import Manner
from scripts import read_script
from troubles import Down, Nodes, Splits, Trouble

WORKERS = 4  # scripts at a time, each with a session and a keyspace of its own


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--protocol", type=int, default=4)
    parser.add_argument("--prepared", action="store_true", help="prepare plain statements, too")
    parser.add_argument("--page", type=int, help="rows a page where the script does not say")
    parser.add_argument("--split", action="store_true", help="split all tablets, over and over")
    parser.add_argument("--down", type=int, metavar="N", help="kill node N over and over; not one of the hosts")
    parser.add_argument("--restart", type=int, default=0, metavar="N", help="restart all nodes N times, between writes and reads")
    parser.add_argument("--first-address", help="of the cluster that tools/up started, for --down and --restart")
    parser.add_argument("--binaries", help="of this cluster")
    parser.add_argument("--reference", action="store_true", help="the server is Cassandra: functions are asked in Java")
    parser.add_argument("--all", action="store_true", help="show the listed differences too")
    parser.add_argument("--folder", default="scripts", help="of the scripts: scripts, settings")
    parser.add_argument("scripts", nargs="*")
    options = parser.parse_args()
    here = Path(__file__).parent
    manner = Manner(options.protocol, options.prepared, options.page)
    happening = [name for name in ("split", "down", "restart") if getattr(options, name)]
    happening += ["v3"] * (manner.protocol < 4) + ["prepared"] * manner.prepared + ["pages"] * (manner.page is not None)
    differences = [d for d in read_differences(here / "differences.txt") if d.when is None or d.when in happening]
    counts = Counter()
    started = time.monotonic()
    port = int(os.environ.get("TETRAD_TEST_PORT", "9042"))
    hosts = options.hosts.split(",")
    work = []
    for path in sorted((here / options.folder).glob("*.cql")):
        if options.scripts and path.stem not in options.scripts:
            continue
        statements = read_script(path)
        expected = recorded_path(path, statements, manner.protocol)
        recorded = read_expected(expected) if expected.exists() else []
        if [text for text, _ in recorded] != [statement.text for statement in statements]:
            print(f"{path.stem}: the answers were recorded for another script; run tests/conformance/record {path.stem}")
            counts["failed"] += 1
            continue
        asked = [statement.for_reference() for statement in statements] if options.reference else statements
        work.append(Replayed(path.stem, asked, recorded, options.restart, manner))

    nodes = Nodes(options.first_address, options.binaries)
    if options.split:
        trouble = Splits(hosts, "conf_")
    elif options.down:
        trouble = Down(nodes, options.down)
    else:
        trouble = Trouble([])
    servers = [Server(hosts, port, manner) for _ in range(WORKERS)]
    with trouble:
        for part in range(options.restart + 1):
            if part:
                nodes.restart(abruptly=part % 2 == 1, count=len(hosts))
                for server in servers:
                    server.reopen()
            run_parts(work, part, servers, trouble)
    for server in servers:
        server.close()

    for replayed in work:
        before = Counter(counts)
        for (text, wanted), got in zip(replayed.recorded, replayed.run.answers):
            if comparable(manner.lines(wanted)) == comparable(manner.lines(got)):
                counts["passed"] += 1
                continue
            known = [d for d in differences if d.script in ("*", replayed.name) and d.pattern.fullmatch(text)]
            for difference in known:
                difference.met += 1
            counts["skipped" if known else "failed"] += 1
            if not known or options.all:
                show(replayed.name, text, wanted, got)
        now = counts - before
        print(f"{replayed.name}: {now['passed']} passed, {now['failed']} failed, {now['skipped']} listed"
              f" ({replayed.seconds:.1f} s)", flush=True)
    if not options.scripts and not happening:
        names = {replayed.name for replayed in work} | {"*"}
        for difference in differences:
            if not difference.met and difference.script in names:
                print(f"differences.txt lists what does not differ: {difference.source}")
    if not options.scripts:
        report, enough = trouble.report(len(work))
        if options.restart:
            cuts = sum(len(replayed.cuts) for replayed in work)
            report, enough = f"{options.restart} restarts, {cuts} times between a script's writes and its reads", cuts > 10
        if report:
            print(report + ("" if enough else ": not what was meant"))
            counts["passed" if enough else "failed"] += 1
    print(f"in {time.monotonic() - started:.0f} s")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


class Replayed:
    """A script, what was recorded, and the places where it waits for a restart."""

    def __init__(self, name, statements, recorded, restarts, manner):
        self.name, self.recorded = name, recorded
        self.run = ScriptRun(name, statements, lambda at, lines: comparable(manner.lines(recorded[at][1])) == comparable(manner.lines(lines)))
        self.seconds = 0
        reads = [READ.match(statement.text) is not None for statement in statements]
        turns = [at for at in range(1, len(reads)) if reads[at] and not reads[at - 1] and not statements[at].wait]
        wanted = min(restarts, len(turns))
        self.cuts = [turns[(2 * i + 1) * len(turns) // (2 * wanted)] for i in range(wanted)]

    def ends(self, part):
        """Where a part of it ends; None: it is the last."""
        return self.cuts[part] if part < len(self.cuts) else None


READ = re.compile(r"SELECT\b|DESC", re.IGNORECASE)


def run_parts(work, part, servers, trouble):
    """Of each script the part until the next restart, the longest scripts first."""
    idle = queue.SimpleQueue()
    for server in servers:
        idle.put(server)

    def run_part(replayed):
        run, end = replayed.run, replayed.ends(part)
        if part > len(replayed.cuts):
            return
        server = idle.get()
        started = time.monotonic()
        try:
            if part == 0:
                run.begin(server)
            run.advance(server, end, trouble.answered)
        finally:
            if end is None:
                run.end(server)
            replayed.seconds += time.monotonic() - started
            idle.put(server)

    with ThreadPoolExecutor(len(servers)) as pool:
        for done in [pool.submit(run_part, one) for one in sorted(work, key=lambda one: -len(one.recorded))]:
            done.result()


def show(script, text, wanted, got):
    print(f"--- {script}: {text}")
    missing, extra = list(wanted), []
    for line in got:
        if line in missing:
            missing.remove(line)
        else:
            extra.append(line)
    if not missing and not extra:
        missing, extra = wanted, got  # another order
    for line in missing[:12]:
        print(f"    - {line}")
    for line in extra[:12]:
        print(f"    + {line}")


sys.exit(main())
