#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Statements about roles, permissions, masks and groups of addresses, by the roles that run them, and what Apache Cassandra
# 5.0 answers with PasswordAuthenticator, CassandraAuthorizer and CassandraNetworkAuthorizer, its caches off, and with
# -Dcassandra.role_password_update_min_interval_in_ms=0; last line N passed, N failed.
#   replay.py [--manner MANNER] HOST SCRIPT...   compares with expected/SCRIPT.txt
#   replay.py --record HOST SCRIPT...            writes it, from a Cassandra of one node that has no role but its own
#   replay.py --differ HOST SCRIPT...            writes differences/SCRIPT.txt: what Tetrad answers in another way, each with
#                                                its reason, or "why?" where it is new. Such an answer has to stay as it is there.
# Manners: v4 (each statement as a text), v5, v3, prepared (each is prepared and run by its id), paged (pages of one row).
# A line of a script is a statement, or
#   @role   @role:password   @role from ADDRESS   who asks from there on, from where; the password is the role's name if
#                                                 none is written
#   &name STATEMENT, then &name                   a statement that is prepared and kept, run then and again later
#   ~STATEMENT                                    a view's rows: asked again until they are as recorded, for 15 seconds
#   !WORDS                                        an order to the node, by nodetool (of $NODETOOL) or by tetractl
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

from cassandra import connection
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement, tuple_factory

HERE = Path(__file__).resolve().parent
MANNERS = ("v4", "v5", "v3", "prepared", "paged")


class SocketsFrom:
    """The module socket as the driver uses it, with connections that leave from one address."""

    def __init__(self):
        self.address = None

    def __getattr__(self, name):
        return getattr(socket, name)

    def socket(self, *arguments, **named):
        made = socket.socket(*arguments, **named)
        if self.address:
            made.bind((self.address, 0))
        return made


SOCKETS = SocketsFrom()


class Connection(Cluster().connection_class):
    _socket_impl = SOCKETS


class Sessions:
    """One for each role and address, opened when it first asks."""

    def __init__(self, host, manner):
        self.host, self.manner, self.open, self.kept = host, manner, {}, {}

    def of(self, user):
        if user not in self.open:
            role, _, address = user.partition(" from ")
            name, _, password = role.partition(":")
            profile = ExecutionProfile(row_factory=tuple_factory, request_timeout=30,
                                       load_balancing_policy=WhiteListRoundRobinPolicy([self.host]))
            version = {"v3": 3, "v5": 5}.get(self.manner, 4)
            cluster = Cluster([self.host], auth_provider=PlainTextAuthProvider(name, password or name),
                              protocol_version=version, connect_timeout=20, connection_class=Connection,
                              execution_profiles={EXEC_PROFILE_DEFAULT: profile}, reprepare_on_up=False)
            SOCKETS.address = address or None
            try:
                session = cluster.connect()
            except Exception:
                cluster.shutdown()
                raise
            finally:
                SOCKETS.address = None
            self.open[user] = session
        return self.open[user]

    def run(self, user, statement):
        session = self.of(user)
        kept = re.fullmatch(r"&(\w+)(?: (.*))?", statement)
        if kept:
            if kept[2]:
                self.kept[kept[1]] = session.prepare(kept[2].rstrip(";"))
            return session.execute(self.kept[kept[1]])
        text = statement.rstrip(";")
        if self.manner == "prepared":
            return session.execute(session.prepare(text))
        return session.execute(SimpleStatement(text, fetch_size=1 if self.manner == "paged" else 5000))


def statements(path):
    """(who, statement) in order."""
    user = "cassandra"
    for line in path.read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("--"):
            continue
        if line.startswith("@"):
            user = line[1:]
            continue
        yield user, line


def answer(sessions, user, statement):
    lines = []
    try:
        result = sessions.run(user, statement)
        if result.column_names:
            types = [kind.cql_parameterized_type() for kind in result.column_types]
            lines.append("columns %s" % ", ".join("%s %s" % pair for pair in zip(result.column_names, types)))
        rows = ["row %s" % ", ".join(shown(cell) for cell in row) for row in result]
        lines += sorted(rows) if "FROM system_auth" in statement else rows
    except Exception as error:
        text = re.search(r'code=(\w+) .*?message="(.*)"', str(error), re.S)
        lines.append("error %s %s" % text.groups() if text else "error %s" % type(error).__name__)
    return [line for one in lines for line in one.split("\n")]


def shown(cell):
    if isinstance(cell, str):
        return re.sub(r"^\$(2a\$10|argon2id\$v=19\$m=19456,t=2,p=1)\$.*", "a hash", cell)
    if hasattr(cell, "items"):
        return str(sorted(cell.items()))
    if type(cell).__name__ in ("SortedSet", "set", "frozenset"):
        return str(sorted(cell))
    return str(cell)


def order(words, host, records):
    """What a node's tool says to words."""
    tool = shlex.split(os.environ["NODETOOL"]) if records else [os.environ["TETRAD_BINARIES"] + "/tetractl", "-h", host]
    done = subprocess.run(tool + shlex.split(words), capture_output=True, text=True, timeout=60)
    if done.returncode:
        return ["fails"]  # in words of its own
    lines = [line.rstrip() for line in done.stdout.splitlines() if line.strip()]
    return lines[:1] + sorted(lines[1:])  # Cassandra's are in the order of a hash table


def run(sessions, name, lua, known):
    out = []
    for user, statement in statements(HERE / "scripts" / (name + ".cql")):
        sent = statement.replace("LANGUAGE java", "LANGUAGE lua") if lua else statement
        title = "[%s] %s" % (user, statement)
        if sent.startswith("!"):
            out.append([title] + order(sent[1:], sessions.host, not lua))
            continue
        until = time.monotonic() + 15
        while True:
            block = [title] + answer(sessions, user, sent.removeprefix("~"))
            recorded = known[len(out)] if known and len(out) < len(known) else None
            settled = "\n".join(block) == recorded if lua else len(block) > 2
            if not sent.startswith("~") or settled or time.monotonic() > until:
                break
            time.sleep(0.1)
        out.append(block)
    return out


def blocks_of(path):
    return re.split(r"\n(?=\[)", path.read_text().rstrip("\n")) if path.exists() else []


class Differences:
    """Where a script is answered in another way than Cassandra does, in the order of the script."""

    def __init__(self, name):
        self.path = HERE / "differences" / (name + ".txt")
        self.open, self.reasons = [], {}
        for block in blocks_of(self.path):
            head, _, answered = block.partition("\n")
            title, _, reason = head.rpartition(" -- ")
            self.reasons[title] = reason
            self.open.append([title, answered])

    def take(self, block):
        """Whether it is the next one of its statement."""
        found = next((one for one in self.open if one[0] == block[0]), None)
        if found is None or found[1] != "\n".join(block[1:]):
            return False
        self.open.remove(found)
        return True

    def write(self, blocks):
        heads = ["%s -- %s" % (block[0], self.reasons.get(block[0], "why?")) for block in blocks]
        text = "\n".join("\n".join([head] + block[1:]) for head, block in zip(heads, blocks))
        self.path.unlink(missing_ok=True)
        if blocks:
            self.path.write_text(text + "\n")


def compare(name, manner, blocks, known):
    """How many are as recorded or as their difference says, and how many are not."""
    differences = Differences(name)
    failed = int(len(known) != len(blocks))
    if failed:
        print("%s: %d statements, %d recorded" % (name, len(blocks), len(known)))
    wrong = [(block, text) for block, text in zip(blocks, known) if "\n".join(block) != text and not differences.take(block)]
    for block, text in wrong:
        print("%s (%s): recorded\n  %s\nanswered\n  %s" % (name, manner, text.replace("\n", "\n  "), "\n  ".join(block)))
    for title, _ in differences.open:
        print("%s (%s): does not differ as its difference says: %s" % (name, manner, title))
    return len(blocks) - len(wrong), failed + len(wrong) + len(differences.open)


def main(arguments):
    order_of = arguments.pop(0) if arguments[0] in ("--record", "--differ") else None
    manner = "v4"
    if arguments[0] == "--manner":
        manner, arguments = arguments[1], arguments[2:]
    host, names = arguments[0], arguments[1:]
    passed = failed = 0
    sessions = Sessions(host, manner)
    for name in names:
        expected = HERE / "expected" / (name + ".txt")
        known = None if order_of == "--record" else blocks_of(expected)
        blocks = run(sessions, name, order_of != "--record", known)
        if order_of == "--record":
            expected.write_text("\n".join("\n".join(block) for block in blocks) + "\n")
        elif order_of == "--differ":
            Differences(name).write([block for block, text in zip(blocks, known) if "\n".join(block) != text])
        else:
            good, bad = compare(name, manner, blocks, known)
            passed, failed = passed + good, failed + bad
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # the driver's threads would each report that the interpreter ends
