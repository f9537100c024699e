#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What is changed of roles, rights, masks and groups of addresses by one node is in force on all of them with the next
# statement, on connections that are open already. everywhere.py HOST HOST...: nodes with PasswordAuthenticator, masks and
# CassandraCIDRAuthorizer in mode ENFORCE; TETRAD_BINARIES: where tetractl is. Last line N passed, N failed.
import os
import subprocess
import sys
import time

from cassandra import Unauthorized
from cassandra.cluster import NoHostAvailable
from cassandra.query import tuple_factory

import sessions

HOSTS = sys.argv[1:]
AT_ONCE_S = 0.5  # other nodes get a change with the leader's next message
results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    if not holds:
        print("wrong: %s" % what)


def connect(host, user):
    return sessions.connect(host, user, row_factory=tuple_factory)


def answer(session, statement):
    try:
        return list(session.execute(statement))
    except Unauthorized as error:
        return str(error)


def soon(session, statement, holds):
    """Whether the answer is as it should be within a moment."""
    until = time.monotonic() + AT_ONCE_S
    while not holds(answer(session, statement)):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def order(*words):
    subprocess.run([os.environ["TETRAD_BINARIES"] + "/tetractl", "-h", HOSTS[0], *words], check=True, capture_output=True)


def main():
    root = connect(HOSTS[0], "cassandra")
    for statement in (
            "CREATE KEYSPACE e WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}",
            "CREATE TABLE e.t (k int PRIMARY KEY, v text MASKED WITH DEFAULT)",
            "INSERT INTO e.t (k, v) VALUES (1, 'seen')",
            "CREATE ROLE who WITH PASSWORD = 'who' AND LOGIN = true"):
        root.execute(statement)
    sessions = {host: connect(host, "who") for host in HOSTS}
    refused = lambda found: isinstance(found, str)  # noqa: E731
    masked, seen = (lambda found: found == [("****",)]), (lambda found: found == [("seen",)])
    select, search = "SELECT v FROM e.t", "SELECT v FROM e.t WHERE v = 'seen' ALLOW FILTERING"
    steps = [
        ("GRANT SELECT ON e.t TO who", select, masked),
        ("GRANT SELECT_MASKED ON e.t TO who", search, masked),
        ("REVOKE SELECT_MASKED ON e.t FROM who", search, refused),
        ("GRANT UNMASK ON e.t TO who", search, seen),
        ("REVOKE UNMASK ON e.t FROM who", select, masked),
        ("ALTER TABLE e.t ALTER v DROP MASKED", select, seen),
        ("ALTER TABLE e.t ALTER v MASKED WITH DEFAULT", select, masked),
        ("REVOKE SELECT ON e.t FROM who", select, refused),
    ]
    for number in range(5):
        for statement, asked, holds in steps:
            root.execute(statement)
            for host, session in sessions.items():
                check(soon(session, asked, holds), "round %d, %s asks after %s" % (number, host, statement))
    anybody = "SELECT key FROM system.local"
    local = lambda found: found == [("local",)]  # noqa: E731
    order("updatecidrgroup", "here", "127.0.0.0/8")
    order("updatecidrgroup", "away", "10.0.0.0/8", "2001:db8::/32")
    for group, holds in (("away", refused), ("here", local), ("away", refused)):
        root.execute("ALTER ROLE who WITH ACCESS FROM CIDRS {'%s'}" % group)
        for host, session in sessions.items():
            check(soon(session, anybody, holds), "%s asks from %s" % (host, group))
    order("updatecidrgroup", "away", "127.0.0.0/8")  # of as many bits: both count
    for host, session in sessions.items():
        check(soon(session, anybody, local), "%s asks after its group has changed" % host)
    order("dropcidrgroup", "away")
    for host, session in sessions.items():
        check(soon(session, anybody, refused), "%s asks after its group has gone" % host)
    for host in HOSTS:
        try:
            connect(host, "who")
            check(False, "%s lets in who is bound to a group that is gone" % host)
        except (NoHostAvailable, Unauthorized):
            check(True, host)
    print("%(passed)d passed, %(failed)d failed" % results)
    sys.stdout.flush()
    os._exit(results["failed"] != 0)


if __name__ == "__main__":
    main()
