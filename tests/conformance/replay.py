# SPDX-License-Identifier: Apache-2.0
"""replay.py --hosts A,B,... [SCRIPT...]: compares a server's answers with expected/."""

import argparse
import os
import queue
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from answers import Server, run_script
from expected import comparable, read_differences, read_expected
from scripts import read_script

WORKERS = 4  # scripts at a time, each with a session and a keyspace of its own


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--protocol", type=int, default=4)
    parser.add_argument("--all", action="store_true", help="show the listed differences too")
    parser.add_argument("--folder", default="scripts", help="of the scripts: scripts, settings")
    parser.add_argument("scripts", nargs="*")
    options = parser.parse_args()
    here = Path(__file__).parent
    differences = read_differences(here / "differences.txt")
    counts = Counter()
    started = time.monotonic()
    port = int(os.environ.get("TETRAD_TEST_PORT", "9042"))
    work, waiting = [], {}
    for path in sorted((here / options.folder).glob("*.cql")):
        if options.scripts and path.stem not in options.scripts:
            continue
        statements = read_script(path)
        recorded_path = here / "expected" / (path.stem + ".txt")
        recorded = read_expected(recorded_path) if recorded_path.exists() else []
        if [text for text, _ in recorded] != [statement.text for statement in statements]:
            print(f"{path.stem}: the answers were recorded for another script; run tests/conformance/record {path.stem}")
            counts["failed"] += 1
            continue
        work.append((path, statements, recorded))
    idle = queue.SimpleQueue()
    servers = [Server(options.hosts.split(","), port, options.protocol) for _ in range(WORKERS)]
    for server in servers:
        idle.put(server)

    def answers_of(path, statements):
        server = idle.get()
        script_started = time.monotonic()
        try:
            return run_script(server, path.stem, statements), time.monotonic() - script_started
        finally:
            idle.put(server)

    pool = ThreadPoolExecutor(WORKERS)
    for path, statements, _ in sorted(work, key=lambda item: -len(item[1])):  # the longest first
        waiting[path.stem] = pool.submit(answers_of, path, statements)
    for path, _, recorded in work:
        before = Counter(counts)
        answers, seconds = waiting[path.stem].result()
        for (text, wanted), got in zip(recorded, answers):
            if comparable(wanted) == comparable(got):
                counts["passed"] += 1
                continue
            known = [d for d in differences if d.script in ("*", path.stem) and d.pattern.fullmatch(text)]
            for difference in known:
                difference.met += 1
            counts["skipped" if known else "failed"] += 1
            if not known or options.all:
                show(path.stem, text, wanted, got)
        now = counts - before
        print(f"{path.stem}: {now['passed']} passed, {now['failed']} failed, {now['skipped']} listed"
              f" ({seconds:.1f} s)", flush=True)
    for server in servers:
        server.close()
    if not options.scripts:
        stems = {path.stem for path, _, _ in work} | {"*"}
        for difference in differences:
            if not difference.met and difference.script in stems:
                print(f"differences.txt lists what does not differ: {difference.source}")
    print(f"in {time.monotonic() - started:.0f} s")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


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
