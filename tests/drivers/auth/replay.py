#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Statements about roles and permissions, by the roles that run them, and what Apache Cassandra 5.0 answers with
# PasswordAuthenticator, CassandraAuthorizer and CassandraNetworkAuthorizer, its caches off; last line N passed, N failed.
#   replay.py HOST SCRIPT...            compares with expected/SCRIPT.txt
#   replay.py --record HOST SCRIPT...   writes it, from a Cassandra of one node that has no role but its own
# A line `@role` or `@role:password` says who asks from there on; the password is the role's name if none is written.
import re
import sys
from pathlib import Path

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.query import SimpleStatement, tuple_factory

HERE = Path(__file__).resolve().parent


class Sessions:
    """One for each role, opened when it first asks."""

    def __init__(self, host):
        self.host, self.open = host, {}

    def of(self, user):
        if user not in self.open:
            name, _, password = user.partition(":")
            profile = ExecutionProfile(row_factory=tuple_factory, request_timeout=30)
            cluster = Cluster([self.host], auth_provider=PlainTextAuthProvider(name, password or name), protocol_version=4,
                              connect_timeout=20, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
            self.open[user] = cluster.connect()
        return self.open[user]


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
        result = sessions.of(user).execute(SimpleStatement(statement.rstrip(";")))
        if result.column_names:
            types = [kind.cql_parameterized_type() for kind in result.column_types]
            lines.append("columns %s" % ", ".join("%s %s" % pair for pair in zip(result.column_names, types)))
        rows = ["row %s" % ", ".join(shown(cell) for cell in row) for row in result]
        lines += sorted(rows) if "FROM system_auth" in statement else rows
    except Exception as error:
        text = re.search(r'code=(\w+) .*?message="(.*)"', str(error), re.S)
        lines.append("error %s %s" % text.groups() if text else "error %s" % type(error).__name__)
    return lines


def shown(cell):
    if cell is None or isinstance(cell, (str, int)):
        return re.sub(r"^\$(2a\$10|argon2id\$v=19\$m=19456,t=2,p=1)\$.*", "a hash", str(cell))
    return str(sorted(cell))


def run(sessions, name, lua):
    out = []
    for user, statement in statements(HERE / "scripts" / (name + ".cql")):
        sent = statement.replace("java AS 'return x;'", "lua AS 'return x'") if lua else statement
        out.append(["[%s] %s" % (user, statement)] + answer(sessions, user, sent))
    return out


def main(arguments):
    records = arguments[0] == "--record"
    host, names = arguments[records], arguments[records + 1:]
    passed = failed = 0
    differences = {line.split(" -- ")[0] for line in (HERE / "differences.txt").read_text().splitlines()}
    sessions = Sessions(host)
    for name in names:
        blocks = run(sessions, name, lua=not records)
        expected = HERE / "expected" / (name + ".txt")
        if records:
            expected.write_text("\n".join("\n".join(block) for block in blocks) + "\n")
            continue
        known = re.split(r"\n(?=\[)", expected.read_text().rstrip("\n"))
        if len(known) != len(blocks):
            print("%s: %d statements, %d recorded" % (name, len(blocks), len(known)))
            failed += 1
        for block, text in zip(blocks, known):
            if block[0] in differences or "\n".join(block) == text:
                passed += 1
                continue
            failed += 1
            print("%s: recorded\n  %s\nanswered\n  %s" % (name, text.replace("\n", "\n  "), "\n  ".join(block)))
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
