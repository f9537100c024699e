#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A role that is bound to data centres is served in these and refused in others, on connections that are open already too.
# datacenters.py HOST HOST: where two nodes listen, in data centres east and west; TETRAD_BIN: where tetrad is. Last line
# N passed, N failed.
import os
import shutil
import sys
import tempfile
from pathlib import Path

from cassandra import Unauthorized
from cassandra.cluster import NoHostAvailable

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tls"))
from node import Node, wait_until  # noqa: E402

import sessions  # noqa: E402

CENTERS = {"east": sys.argv[1], "west": sys.argv[2]}
STATEMENTS = ("SELECT * FROM d.t", "INSERT INTO d.t (k) VALUES (1)", "SELECT key FROM system.local")
results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    if not holds:
        print("wrong: %s" % what)


def connect(center, user):
    return sessions.connect(CENTERS[center], user)


def answer(ask, *arguments):
    """"" when it is let in, else the server's words."""
    try:
        ask(*arguments)
        return ""
    except Unauthorized as error:
        return str(error)
    except NoHostAvailable as error:
        return " ".join(map(str, error.errors.values()))


def is_refusal(said, center):
    return "You do not have access to this datacenter (%s)" % center in said


def bound(sessions, root, centers):
    """Every statement, as text and prepared before, once the role may use these data centres."""
    root.execute("ALTER ROLE who WITH ACCESS TO " + (
        "DATACENTERS {%s}" % ", ".join("'%s'" % center for center in centers) if centers else "ALL DATACENTERS"))
    for center, (session, prepared) in sessions.items():
        may = center in centers or not centers

        def right(statement):
            said = answer(session.execute, statement)
            return said == "" if may else is_refusal(said, center)

        for statement in STATEMENTS:
            # The other node gets the change with the leader's next message.
            wait_until("%s at %s, bound to %s" % (statement, center, centers), lambda: right(statement), 5)
            check(True, statement)
        said = answer(session.execute, prepared)
        check(said == "" if may else is_refusal(said, center), "prepared before, at %s, bound to %s: %s" % (center, centers, said))
        said = answer(connect, center, "who")
        check(said == "" if may else is_refusal(said, center), "who comes to %s, bound to %s: %s" % (center, centers, said))


def main(top):
    os.environ["TETRAD_SUPERUSER_PASSWORD"] = "cassandra"
    nodes = [Node(top, address, "--datacenter", center, "--seeds", ",".join(CENTERS.values()), "--authenticator",
                  "PasswordAuthenticator", "--init-superuser", "cassandra", serves=False) for center, address in CENTERS.items()]
    try:
        for node in nodes:
            wait_until("%s serves" % node.address, node.serves)
        wait_until("a superuser", lambda: any("made a superuser" in node.log() for node in nodes))
        root = connect("east", "cassandra")
        for statement in ("CREATE KEYSPACE d WITH replication = {'class': 'NetworkTopologyStrategy', 'east': 1, 'west': 1}",
                          "CREATE TABLE d.t (k int PRIMARY KEY)", "CREATE ROLE who WITH PASSWORD = 'who' AND LOGIN = true",
                          "GRANT ALL ON KEYSPACE d TO who", "GRANT SELECT ON KEYSPACE system TO who"):
            root.execute(statement)
        sessions = {}
        for center in CENTERS:
            session = wait_until("a login at %s" % center, lambda: not answer(connect, center, "who") and connect(center, "who"))
            sessions[center] = session, session.prepare("SELECT * FROM d.t WHERE k = 1").bind(())
        for centers in (["east"], ["west"], ["east", "west"], ["east"], []):
            bound(sessions, root, centers)
        root.execute("CREATE ROLE boss WITH PASSWORD = 'boss' AND LOGIN = true AND SUPERUSER = true "
                     "AND ACCESS TO DATACENTERS {'east'}")
        check(answer(connect, "east", "boss") == "", "a superuser in its data centre")
        wait_until("a superuser is bound, too", lambda: is_refusal(answer(connect, "west", "boss"), "west"), 5)
    finally:
        for node in nodes:
            node.stop()
        shutil.rmtree(top, ignore_errors=True)
    print("%(passed)d passed, %(failed)d failed" % results)
    sys.stdout.flush()
    os._exit(results["failed"] != 0)


if __name__ == "__main__":
    main(Path(tempfile.mkdtemp()))
