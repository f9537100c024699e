#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The audit log of a node: what clients ask is there with who asked and what came of it, and no secret is. Last line
# N passed, N failed. audit.py ADDRESS: where the node listens; TETRAD_BIN: where tetrad is.
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from cassandra.query import BatchStatement

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tls"))
from node import Node, tetractl, wait_until  # noqa: E402

ADDRESS = sys.argv[1]
results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    if not holds:
        print("wrong: %r" % (what,))


class AuditedNode(Node):
    started_nodes = []

    def __init__(self, top, *options):
        self.started_nodes.append(self)
        os.environ["TETRAD_SUPERUSER_PASSWORD"] = "cassandra"
        super().__init__(top, ADDRESS, "--audit-log-enabled", *options)

    def files(self):
        return sorted((self.folder / "data" / "audit").iterdir())

    def text(self):
        return "".join(file.read_text() for file in self.files())

    def lines(self):
        return [json.loads(line) for line in self.text().splitlines()]

    def find(self, **fields):
        """Those that have all of these, once there is one; within two seconds."""
        for _ in range(40):
            found = [line for line in self.lines() if all(line.get(name) == value for name, value in fields.items())]
            if found:
                return found
            time.sleep(0.05)
        return []


def connect(user, password):
    provider = PlainTextAuthProvider(user, password)
    return Cluster([ADDRESS], auth_provider=provider, protocol_version=5).connect()


def fails(call):
    try:
        call()
    except Exception:
        return True
    return False


def with_passwords(top):
    node = AuditedNode(top, "--authenticator", "PasswordAuthenticator", "--init-superuser", "cassandra")
    session = wait_until("the superuser is made", lambda: attempt(lambda: connect("cassandra", "cassandra")))
    check(node.find(type="LOGIN_SUCCESS", category="AUTH", user="cassandra"), "a login")
    check(fails(lambda: connect("cassandra", "guessed-secret")), "a wrong password")
    failed = node.find(type="LOGIN_ERROR", category="AUTH", user="cassandra")
    check(failed and failed[0]["error"] and failed[0]["source"].startswith("127."), "a login that failed")

    statements = [
        ("CREATE KEYSPACE audited WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
         "CREATE_KEYSPACE", "DDL", "audited", None),
        ("CREATE TABLE audited.t (a int PRIMARY KEY, b text)", "CREATE_TABLE", "DDL", "audited", "t"),
        ("CREATE INDEX ON audited.t (b)", "CREATE_INDEX", "DDL", "audited", "t"),
        ("INSERT INTO audited.t (a, b) VALUES (1, 'one')", "UPDATE", "DML", "audited", "t"),
        ("DELETE FROM audited.t WHERE a = 2", "DELETE", "DML", "audited", "t"),
        ("SELECT * FROM audited.t", "SELECT", "QUERY", "audited", "t"),
        ("BEGIN BATCH INSERT INTO audited.t (a) VALUES (3); APPLY BATCH", "BATCH", "DML", None, None),
        ("TRUNCATE audited.t", "TRUNCATE", "DDL", "audited", "t"),
        ("USE audited", "USE_KEYSPACE", "OTHER", "audited", None),
        ("CREATE ROLE ann WITH PASSWORD = 'sekret-1' AND LOGIN = true", "CREATE_ROLE", "DCL", None, None),
        ("ALTER ROLE ann WITH PASSWORD = 'sekret-2'", "ALTER_ROLE", "DCL", None, None),
        ("GRANT SELECT ON audited.t TO ann", "GRANT", "DCL", None, None),
        ("LIST ROLES", "LIST_ROLES", "DCL", None, None),
    ]
    for text, kind, category, keyspace, scope in statements:
        session.execute(text)
        found = node.find(type=kind, user="cassandra")
        shown = text.split("PASSWORD")[0]  # the driver says USE once more
        check([line for line in found if line["category"] == category and line.get("ks") == keyspace
               and line.get("scope") == scope and "error" not in line and line["operation"].startswith(shown)], (text, found))
        check(all(line["duration_us"] > 0 for line in found), ("a statement takes some time", text, found))
    prepared = session.prepare("INSERT INTO audited.t (a, b) VALUES (?, ?)")
    check(node.find(type="PREPARE_STATEMENT", category="PREPARE", ks="audited", scope="t"), "PREPARE")
    session.execute(prepared, (5, "sekret-3"))
    check(node.find(type="UPDATE", operation="INSERT INTO audited.t (a, b) VALUES (?, ?)"), "EXECUTE")
    batch = BatchStatement()
    batch.add(prepared, (6, "sekret-4"))
    batch.add("DELETE FROM audited.t WHERE a = 77")
    session.execute(batch)
    whole = node.find(operation="BATCH of 2 statements", type="BATCH")
    check(whole and len(node.find(batch=whole[0]["batch"])) == 3, "the statements of a batch carry its id")

    for text, keyspace, scope in (("SELECT nonsense FROM audited.t", "audited", "t"), ("SELECT * FROM audited.none", "audited", "none"),
                                  ("INSERT INTO t (nonsense) VALUES (1)", "audited", "t"), ("SELEKT", None, None)):
        check(fails(lambda: session.execute(text)), text)
        found = node.find(type="REQUEST_FAILURE", category="ERROR", operation=text)
        check(found and found[0]["error"] and found[0]["user"] == "cassandra", text)
        check(found and (found[0].get("ks"), found[0].get("scope")) == (keyspace, scope), ("what it was about", text, found))
    for text in ("CREATE ROLE bob WITH PASSWORD = 'sekret-5' AND NONSENSE = 1",
                 "CREATE ROLE bob WITH pAssWord 'sekret-6'",
                 "ALTER ROLE nobody WITH PASSWORD = 'sekret-7'",
                 "CREATE ROLE bob WITH HASHED PASSWORD = 'sekret-8'",
                 "CREATE ROLE bob WITH PASSW/**/ORD = 'sekret-10'", "CREATE ROLE bob WITH PASWORD = 'sekret-11'",
                 "CRATE USER bob PASWORD 'sekret-12'", "ALTER ROEL ann SET PASWORD = sekret_13"):
        check(fails(lambda: session.execute(text)), text)
        check(fails(lambda: session.prepare(text)) or True, text)
    for text, told in (("DROP ROLE nobody", "nobody doesn't exist"), ("ALTER ROLE nobody WITH LOGIN = true", "nobody doesn't exist")):
        check(fails(lambda: session.execute(text)), text)
        found = node.find(type="REQUEST_FAILURE", category="ERROR", operation=text)
        check(found and told in found[0]["error"], (text, found))
    outside = BatchStatement()
    outside.add("CREATE ROLE bob WITH PASSWORD 'sekret-9'")
    check(fails(lambda: session.execute(outside)), "no modification in a batch")
    ann = connect("ann", "sekret-2")
    check(fails(lambda: ann.execute("DROP TABLE audited.t")), "ann may not")
    found = node.find(type="UNAUTHORIZED_ATTEMPT", category="AUTH", user="ann")
    check(found and found[-1]["operation"] == "DROP TABLE audited.t" and "permission" in found[-1]["error"], found)
    check(fails(lambda: ann.execute("CREATE ROLE eve")), "ann may not make roles")
    found = node.find(type="UNAUTHORIZED_ATTEMPT", category="AUTH", user="ann", operation="CREATE ROLE eve")
    check(found and "sufficient privileges" in found[-1]["error"], found)
    time.sleep(0.5)
    text = node.text()
    check("sekret" not in text and "guessed-secret" not in text,
          [line for line in text.splitlines() if "sekret" in line or "guessed-secret" in line])
    check("tetrad_audit_records_total" in node.ask("/metrics"), "a metric")
    ann.cluster.shutdown()
    session.cluster.shutdown()
    node.stop()


def with_guardrails(top):
    node = AuditedNode(top, "--group-by-enabled", "false", "--allow-filtering-enabled", "false")
    session = Cluster([ADDRESS], protocol_version=5).connect()
    session.execute("CREATE KEYSPACE railed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE railed.t (a int, b int, c int, PRIMARY KEY (a, b))")
    long_one = "SELECT * FROM railed.t WHERE c IN (%s) ALLOW FILTERING" % ", ".join(str(i) for i in range(5000))  # read off the loop
    for text in ("SELECT a, count(*) FROM railed.t GROUP BY a", "SELECT * FROM railed.t WHERE c = 1 ALLOW FILTERING", long_one):
        check(fails(lambda: session.execute(text)), text[:80])
        found = node.find(type="REQUEST_FAILURE", operation=text)
        check(found and (found[0].get("ks"), found[0].get("scope")) == ("railed", "t") and "Guardrail" in found[0]["error"], found or text[:80])
        known = len(found)
        check(fails(lambda: session.prepare(text)), "PREPARE " + text[:80])
        found = wait_until("PREPARE's record", lambda: node.find(type="REQUEST_FAILURE", operation=text)[known:])
        check((found[0].get("ks"), found[0].get("scope")) == ("railed", "t"), found)
    session.cluster.shutdown()
    node.stop()


def attempt(call):
    try:
        return call()
    except Exception:
        return None


def with_filters(top):
    node = AuditedNode(top, "--audit-log-included-categories", "DDL,QUERY", "--audit-log-excluded-keyspaces",
                       "system,system_schema,system_virtual_schema,quiet", "--audit-log-file-mb", 1, "--audit-log-files", 2)
    session = Cluster([ADDRESS], protocol_version=5).connect()
    for keyspace in ("loud", "quiet"):
        session.execute("CREATE KEYSPACE %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}" % keyspace)
        session.execute("CREATE TABLE %s.t (a int PRIMARY KEY)" % keyspace)
        session.execute("INSERT INTO %s.t (a) VALUES (1)" % keyspace)
    check(node.find(type="CREATE_TABLE", ks="loud", user="anonymous"), "what is asked for is recorded")
    time.sleep(0.5)
    others = [line for line in node.lines() if line.get("ks") not in ("loud", None)]
    check(not others, others[:3])
    check({line["category"] for line in node.lines()} <= {"DDL", "QUERY"}, "nothing of other categories")
    long_text = "SELECT * FROM loud.t WHERE a IN (%s)" % ", ".join(str(i) for i in range(3000))
    for _ in range(300):
        session.execute(long_text)
    time.sleep(0.5)
    files = node.files()
    check([file.name for file in files] == ["audit.1.log", "audit.2.log", "audit.log"], files)
    check(all(file.stat().st_size <= 1 << 20 for file in files), [file.stat().st_size for file in files])
    huge = "SELECT * FROM loud.t WHERE a IN (%s)" % ", ".join(["1"] * 60_000)
    session.execute(huge)
    check(wait_until("a long text", lambda: [line for line in node.lines() if line["operation"].endswith("bytes)")]),
          "a text is cut")
    session.cluster.shutdown()
    node.stop()


def with_orders(top):
    """Orders of tetractl: who, from where, what, with what outcome; facts are none."""
    node = AuditedNode(top)
    token = (node.folder / "data" / "admin_token").read_text().strip()
    to_node = ("-h", ADDRESS, "--token-file", node.folder / "data" / "admin_token")
    for words, operation in (
            (("setting", "burst_ru_per_s", 7), "setting name='burst_ru_per_s' value='7'"),
            (("settimeout", "read", 4000), "timeout type='read' ms='4000'"),
            (("snapshot", "-t", "before"), None), (("clearsnapshot", "-t", "before"), None),
            (("updatecidrgroup", "office", "10.0.0.0/8"), "update-cidr-group name='office' cidrs='10.0.0.0/8'"),
            (("dropcidrgroup", "office"), "drop-cidr-group name='office'"), (("flush",), "flush"),
            (("log-level", "debug"), "log-level level='debug'")):
        known = len(node.find(category="ADMIN")) if node.text() else 0
        tetractl(*to_node, *words)
        lines = wait_until(words, lambda: node.find(category="ADMIN")[known:])
        line = lines[-1]
        check(line["type"] == "ORDER" and line["user"] == "token" and line["source"].startswith("127.") and line["port"] > 0
              and line["host"] == ADDRESS and "error" not in line and "ks" not in line
              and line["duration_us"] > 0 and (line["operation"] == operation or operation is None), (words, line))
    tetractl(*to_node, "setting", "burst_ru_per_s", "many", fails=True)
    found = node.find(category="ADMIN", operation="setting name='burst_ru_per_s' value='many'")
    check(found and "is a whole number" in found[0]["error"], found)
    tetractl(*to_node, "decommission", fails=True)
    found = node.find(category="ADMIN", operation="decommission")
    check(found and found[0]["error"], found)
    wrong = Path(top) / "wrong_token"
    wrong.write_text("5e" * 32)
    tetractl("-h", ADDRESS, "--token-file", wrong, "drain", fails=True)
    found = node.find(category="AUTH", type="UNAUTHORIZED_ATTEMPT", operation="drain", user="anonymous")
    check(found and found[0]["error"].startswith("orders carry"), found)
    before = len(node.lines())
    tetractl("-h", ADDRESS, "flush")  # finds the token of a node of this machine
    found = wait_until("one line", lambda: node.lines()[before:])
    check([line["category"] for line in found] == ["ADMIN"], found)
    before = len(node.lines())
    for fact in ("status", "info", "gettimeout", "listsnapshots"):
        tetractl(*to_node, fact)
    time.sleep(0.5)
    check(len(node.lines()) == before, node.lines()[before:])
    tetractl(*to_node, "drain")
    check(node.find(category="ADMIN", operation="drain"), "drain")
    check(token not in node.text() and "5e" * 8 not in node.text(), "no token")
    node.stop()
    node = AuditedNode(top, "--audit-log-excluded-categories", "admin")
    to_node = ("-h", ADDRESS, "--token-file", node.folder / "data" / "admin_token")
    tetractl(*to_node, "flush")
    Cluster([ADDRESS], protocol_version=5).connect().execute("SELECT release_version FROM system.local")
    node.stop()  # what waits is written
    check(not [line for line in node.lines() if line["category"] == "ADMIN"], "a filter")
    node = AuditedNode(top, "--audit-log-included-categories", "ADMIN")
    to_node = ("-h", ADDRESS, "--token-file", node.folder / "data" / "admin_token")
    session = Cluster([ADDRESS], protocol_version=5).connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    tetractl(*to_node, "flush", "k")
    session.cluster.shutdown()
    node.stop()
    check([line["operation"] for line in node.lines()] == ["flush keyspace='k'"], node.lines())


def with_filters_of_roles(top):
    """Each filter by one node: what two roles ask, and what of it is there once a later line is."""
    def recorded(*options):
        node = AuditedNode(top, "--authenticator", "PasswordAuthenticator", "--init-superuser", "cassandra", *options)
        root = wait_until("the superuser is made", lambda: attempt(lambda: connect("cassandra", "cassandra")))
        for keyspace in ("loud", "quiet"):
            root.execute("CREATE KEYSPACE %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}" % keyspace)
            root.execute("CREATE TABLE %s.t (a int PRIMARY KEY)" % keyspace)
        for role in ("ann", "bob"):
            root.execute("CREATE ROLE %s WITH PASSWORD = '%s' AND LOGIN = true" % (role, role))
            root.execute("GRANT ALL ON ALL KEYSPACES TO %s" % role)
        sessions = [connect(role, role) for role in ("ann", "bob")]
        for session in sessions:
            for keyspace in ("loud", "quiet"):
                session.execute("INSERT INTO %s.t (a) VALUES (1)" % keyspace)
                session.execute("SELECT * FROM %s.t" % keyspace)
            session.prepare("SELECT a FROM loud.t")
            check(fails(lambda: session.execute("SELECT none FROM loud.t")), "an error")
        for session in [root] + sessions:
            session.cluster.shutdown()
        node.stop()  # what waits is written
        return node.lines()

    lines = recorded("--audit-log-included-users", "ann")
    check({line["user"] for line in lines} == {"ann"}, {line["user"] for line in lines})
    check({line["category"] for line in lines} >= {"AUTH", "DML", "QUERY", "PREPARE", "ERROR"}, {line["category"] for line in lines})
    lines = recorded("--audit-log-excluded-users", "ann,cassandra")
    check({line["user"] for line in lines} == {"bob"}, {line["user"] for line in lines})
    lines = recorded("--audit-log-excluded-categories", "QUERY,auth,PREPARE,ERROR,OTHER")
    check({line["category"] for line in lines} == {"DML", "DDL", "DCL"}, {line["category"] for line in lines})
    check({line["user"] for line in lines} == {"ann", "bob", "cassandra"}, {line["user"] for line in lines})
    lines = recorded("--audit-log-included-keyspaces", "loud", "--audit-log-excluded-categories", "OTHER")
    check({line.get("ks") for line in lines} == {"loud", None}, {line.get("ks") for line in lines})
    check(any(line["type"] == "CREATE_ROLE" for line in lines), "statements on no keyspace")
    lines = recorded("--audit-log-included-users", "ann,bob", "--audit-log-excluded-users", "bob", "--audit-log-included-categories",
                     "QUERY,DML", "--audit-log-excluded-categories", "DML", "--audit-log-included-keyspaces", "loud,quiet",
                     "--audit-log-excluded-keyspaces", "quiet")
    check({(line["user"], line["category"], line["ks"]) for line in lines} == {("ann", "QUERY", "loud")}, lines[:3])


with tempfile.TemporaryDirectory() as folder:
    for part in (with_passwords, with_guardrails, with_orders, with_filters, with_filters_of_roles):
        try:
            part(folder)
        finally:
            for node in AuditedNode.started_nodes:
                node.stop()
print("%d passed, %d failed" % (results["passed"], results["failed"]))
sys.exit(results["failed"] != 0)
