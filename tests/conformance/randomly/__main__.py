# SPDX-License-Identifier: Apache-2.0
"""random --seed N --statements M --reference HOST --subject HOST: see README.md."""

import argparse
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from cassandra import OperationTimedOut
from cassandra.cluster import NoHostAvailable

from answers import Server
from manners import Manner
from troubles import Down, Nodes, Splits, Trouble

from .areas import AREAS, make_area
from .findings import Finding, as_script, differ, explains, group_of, read_reasons, reason_for, reduced
from .rounds import make_round

HERE = Path(__file__).parent


def insist(server, text, attempts=10):
    """On a busy machine a server may be late, and the driver gives the connection up."""
    for attempt in range(attempts):
        try:
            if attempt:
                server.reopen()
            return server.quietly(text)
        except (OperationTimedOut, NoHostAvailable):
            if attempt + 1 == attempts:
                raise
            time.sleep(3)


class Reference:
    """What the reference has answered so far, for the subject: rows of a view are there a moment after their table's."""

    SETTLE_S, LATER_S = 15, 1  # the second of what has not settled before: a view that differs is asked often

    def __init__(self, reasons):
        self.reasons = reasons
        self.answers = []
        self.over = False
        self.changed = threading.Condition()
        self.unsettled = set()

    def add(self, lines):
        with self.changed:
            self.answers.append(lines)
            self.changed.notify_all()

    def end(self):
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def settled(self, step, at, answer):
        """The subject's answer, asked again until it is the reference's, for a while."""
        with self.changed:
            self.changed.wait_for(lambda: self.over or len(self.answers) > at)
            if len(self.answers) <= at:
                return answer()
        until = time.monotonic() + (self.LATER_S if self.unsettled.intersection(step.tables[-1:]) else self.SETTLE_S)
        while (difference := differ(self.answers[at], lines := answer())) is not None:
            if explains(self.reasons, step.statement.text, difference):
                break
            if time.monotonic() > until:
                self.unsettled.update(step.tables[-1:])
                break
            time.sleep(0.05)
        return lines


def wait_until_built(server, keyspace, step, lines):
    """Of the reference: the rows that a table had before its view."""
    if not step.statement.text.startswith("CREATE MATERIALIZED VIEW") or not any(line.startswith("schema CREATED") for line in lines):
        return
    until = time.monotonic() + 10
    while time.monotonic() < until:
        built, made = (server.session.execute(f"SELECT view_name FROM {table} WHERE keyspace_name = '{keyspace}'").all() for table in ("system.built_views", "system_schema.views"))
        if len(built) >= len(made):
            return
        time.sleep(0.05)


def run(server, keyspace, steps, reference, is_subject, answered=lambda: None):
    insist(server, f"DROP KEYSPACE IF EXISTS {keyspace}")
    insist(server, f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    insist(server, f"USE {keyspace}")
    try:
        answers = []
        for at, step in enumerate(steps):
            asked = in_keyspace(step.statement, keyspace)
            if is_subject and asked.settles:
                answers.append(reference.settled(step, at, lambda: server.answer(asked)))
            else:
                answers.append(server.answer(asked))
            if not is_subject:
                wait_until_built(server, keyspace, step, answers[-1])
                reference.add(answers[-1])
            if any(line.startswith(("error 0x000a", "no answer")) for line in answers[-1]):
                server.reopen()
                insist(server, f"USE {keyspace}")
            answered()
        return answers
    finally:
        if not is_subject:
            reference.end()
        insist(server, f"DROP KEYSPACE IF EXISTS {keyspace}")


def in_keyspace(statement, keyspace):
    return replace(statement, text=statement.text.replace("%KS%", keyspace))


def main():
    parser = argparse.ArgumentParser(prog="tests/conformance/random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=10000)
    parser.add_argument("--round", type=int, help="only this round of the seed")
    parser.add_argument("--first", type=int, default=0, help="the round to begin with")
    parser.add_argument("--per-round", type=int, default=400)
    parser.add_argument("--area", choices=sorted(AREAS), help="rounds about this area alone (areas.py)")
    parser.add_argument("--reference", default="127.0.0.1")
    parser.add_argument("--subject", default="127.0.9.1")
    parser.add_argument("--protocol", type=int, default=4)
    parser.add_argument("--split", action="store_true", help="split all tablets of the subject, over and over")
    parser.add_argument("--down", type=int, metavar="N", help="kill node N of the subject over and over; not one of the hosts")
    parser.add_argument("--first-address", help="of the subject, which tools/up started, for --down")
    parser.add_argument("--binaries", help="of the subject")
    parser.add_argument("--reduce", type=int, default=10, help="how many findings to make small")
    parser.add_argument("--keep", help="a folder for all statements and answers of the rounds with unexplained differences")
    parser.add_argument("--print", action="store_true", help="only print the statements; no server is asked")
    options = parser.parse_args()
    rounds = [options.round] if options.round is not None else range(options.first, options.first + -(-options.statements // options.per_round))

    def make(number):
        if options.area:
            return make_area(options.area, options.seed, number, options.per_round)
        return make_round(options.seed, number, options.per_round)

    if options.print:
        for number in rounds:
            for step in make(number):
                print(as_script(step))
        return 0
    manner = Manner(options.protocol)
    servers = [Server(hosts.split(","), 9042, manner) for hosts in (options.reference, options.subject)]
    if options.split:
        trouble = Splits(options.subject.split(","), "rnd_")
    elif options.down:
        trouble = Down(Nodes(options.first_address, options.binaries), options.down)
    else:
        trouble = Trouble([])
    reasons = read_reasons(HERE / "differences.txt")
    pool = ThreadPoolExecutor(2)

    def both(steps, keyspace):
        for _ in range(3):  # a statement that one of them was too late for may have been done or not
            reference = Reference(reasons)
            asked = [(servers[0], False, lambda: None), (servers[1], True, trouble.answered)]
            answers = list(pool.map(lambda one: run(one[0], keyspace, steps, reference, *one[1:]), asked))
            if not any(line.startswith("no answer") for server in answers for lines in server for line in lines):
                break
        return answers

    started = time.monotonic()
    total = explained = following = 0
    errors = rows = prepared = 0
    findings = {}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    trouble.__enter__()
    try:
        for number in rounds:
            steps = make(number)
            answers = both(steps, f"rnd_{options.seed}_{number}")
            apart = set()  # tables that only one of the two has written to
            before = sum(f.count for f in findings.values())
            for at, (step, reference, subject) in enumerate(zip(steps, *answers)):
                total += 1
                errors += any(line.startswith("error") for line in reference)
                rows += sum(line.startswith("|") for line in reference)
                prepared += step.statement.values is not None
                difference = differ(reference, subject)
                if difference is None:
                    continue
                if reason_for(reasons, step.statement.text, difference, schema_of(steps[:at], step)):
                    explained += 1
                    if any(line.startswith(DONE) for side in difference for line in side):
                        apart.update(step.tables)
                    continue
                if apart.intersection(step.tables) and is_of_rows(step, difference):
                    following += 1
                    continue
                group = group_of(step.statement.text, difference)
                if group in findings:
                    findings[group].count += 1
                else:
                    findings[group] = Finding(group, number, at, steps, difference)
            if options.keep and sum(f.count for f in findings.values()) > before:
                keep(Path(options.keep) / f"{options.seed}_{number}.txt", steps, answers)
            if number % 10 == 9:
                print(f"... {total} statements, {sum(f.count for f in findings.values())} unexplained in {len(findings)} groups, "
                      f"{explained + following} explained ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
    except KeyboardInterrupt:  # what there is so far is told
        pass
    finally:
        trouble.__exit__()
    enough = True
    if options.split or options.down:
        report, enough = trouble.report(len(rounds))
        print(report + ("" if enough else ": not what was meant"))
    ordered = sorted(findings.values(), key=lambda f: -f.count)
    for place, finding in enumerate(ordered):
        show(finding, both if place < options.reduce else None, options.seed)
    for reason in reasons:
        if reason.met:
            print(f"{reason.met} explained: {reason.reason}")
    if following:
        print(f"{following} explained: what follows from a write that only one of the two did")
    unexplained = sum(f.count for f in ordered)
    print(f"seed {options.seed}: {total} statements ({errors} errors, {prepared} prepared, {rows} rows) in {time.monotonic() - started:.0f} s: "
          f"{unexplained} unexplained differences in {len(ordered)} groups, {explained + following} explained")
    for server in servers:
        server.close()
    return 0 if enough and not unexplained else 1


# Of a write that was done, or may have been in part.
DONE = ("OK", "schema ", "| true", "error 0x1100", "error 0x0000")


def schema_of(steps, step):
    return "\n".join(s.statement.text for s in steps if s.is_ddl and set(s.tables) & set(step.tables))


def is_of_rows(step, difference):
    """A read, or a conditional write, that both answer, with other rows."""
    lines = [line for side in difference for line in side]
    return (step.statement.text.startswith("SELECT") or " IF " in step.statement.text) and not any(line.startswith(("error", "no answer")) for line in lines)


def keep(path, steps, answers):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as out:
        for step, reference, subject in zip(steps, *answers):
            out.write(as_script(step) + "\n" + "".join(f"    - {line}\n" for line in reference))
            out.write("" if reference == subject else "".join(f"    + {line}\n" for line in subject))


def show(finding, both, seed):
    print(f"=== {finding.count} x {finding.group}   (round {finding.round}, statement {finding.at})")
    difference = finding.difference
    if both is None:
        print(as_script(finding.steps[finding.at]))
    else:
        last = {}

        def shows(steps):
            reference, subject = both(steps, "rnd_small")
            found = differ(reference[-1], subject[-1])
            same = found is not None and group_of(steps[-1].statement.text, found) == finding.group
            if same:
                last["difference"] = found
            return same

        small = reduced(finding.steps, finding.at, shows)
        if small is None:
            print("    (does not show again)")
            print(as_script(finding.steps[finding.at]))
        else:
            difference = last["difference"]
            print("\n".join(as_script(step) for step in small))
    for line in difference[0][:4]:
        print(f"    - {line[:600]}")
    for line in difference[1][:4]:
        print(f"    + {line[:600]}")
    sys.stdout.flush()


sys.exit(main())
