#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# No statement is reached without its right: each kind is tried without any, with a wrong one and with the right one, as
# text, prepared before the right came, and prepared before it went; and what a client may send before it has logged in.
# That each kind is, the grammar's own list of them tells.
# matrix.py HOST: a server of one node, whose superuser is cassandra with the password cassandra. Last line N passed, N failed.
import os
import re
import socket
import struct
import sys
import time
from pathlib import Path

from cassandra import Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable
from cassandra.query import BatchStatement, SimpleStatement

HOST = sys.argv[1]
PORT = 9042
results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    if not holds:
        print("wrong: %s" % what)


def connect(user, password=None):
    return Cluster([HOST], auth_provider=PlainTextAuthProvider(user, password or user), protocol_version=5).connect()


def is_refused(session, statement):
    """Whether it is for want of a right; another error says that it was let in."""
    try:
        session.execute(statement)
    except Unauthorized:
        return True
    except Exception:
        return False
    return False


# A statement, the permission that it needs, one that is not enough, and what is there whenever it is tried. {n} is another
# number each time.
RIGHTS = [
    ("SELECT * FROM m.t", "SELECT ON m.t", "MODIFY ON m.t"),
    ("SELECT JSON * FROM m.t", "SELECT ON KEYSPACE m", "SELECT ON m.u"),
    ("SELECT count(*) FROM m.t", "SELECT ON ALL TABLES IN KEYSPACE m", "DROP ON m.t"),
    ("SELECT * FROM m.t WHERE a = 1", "SELECT ON ALL KEYSPACES", "SELECT ON ALL TABLES IN KEYSPACE m2"),
    ("INSERT INTO m.t (a) VALUES (1)", "MODIFY ON m.t", "SELECT ON m.t"),
    ("INSERT INTO m.t JSON '{{\"a\": 1}}'", "MODIFY ON KEYSPACE m", "MODIFY ON KEYSPACE m2"),
    ("UPDATE m.t SET b = 1 WHERE a = 1", "MODIFY ON m.t", "ALTER ON m.t"),
    ("DELETE FROM m.t WHERE a = 9", "MODIFY ON m.t", "DROP ON m.t"),
    ("BEGIN UNLOGGED BATCH INSERT INTO m.t (a) VALUES (1); APPLY BATCH", "MODIFY ON m.t", "MODIFY ON m.u"),
    ("TRUNCATE m.t", "MODIFY ON m.t", "SELECT ON KEYSPACE m"),
    ("EXPLAIN SELECT * FROM m.t", "SELECT ON m.t", "MODIFY ON m.t"),
    ("UPDATE m.n SET n = n + 1 WHERE a = 1", "MODIFY ON m.n", "SELECT ON m.n"),
    ("CREATE INDEX IF NOT EXISTS mi ON m.t (b)", "ALTER ON m.t", "CREATE ON KEYSPACE m"),
    ("DROP INDEX m.di", "ALTER ON m.u", "DROP ON KEYSPACE m", "CREATE INDEX IF NOT EXISTS di ON m.u (b)"),
    ("CREATE MATERIALIZED VIEW m.v{n} AS SELECT * FROM m.w WHERE a IS NOT NULL AND b IS NOT NULL PRIMARY KEY (b, a)",
     "ALTER ON m.w", "CREATE ON KEYSPACE m"),
    ("SELECT * FROM m.v", "SELECT ON m.w", "SELECT ON m.t"),
    ("ALTER MATERIALIZED VIEW m.v WITH comment = 'x'", "ALTER ON KEYSPACE m", "ALTER ON m.t"),
    ("DROP MATERIALIZED VIEW m.dv", "ALTER ON KEYSPACE m", "DROP ON KEYSPACE m",
     "CREATE MATERIALIZED VIEW IF NOT EXISTS m.dv AS SELECT * FROM m.w WHERE a IS NOT NULL AND b IS NOT NULL "
     "PRIMARY KEY (b, a)"),
    ("ALTER TABLE m.t ADD c{n} int", "ALTER ON m.t", "MODIFY ON m.t"),
    ("ALTER TABLE m.k ALTER b MASKED WITH DEFAULT", "ALTER ON m.k", "UNMASK ON m.k"),
    ("CREATE TABLE m.n{n} (a int PRIMARY KEY)", "CREATE ON ALL TABLES IN KEYSPACE m", "ALTER ON KEYSPACE m"),
    ("DROP TABLE IF EXISTS m.none", "DROP ON KEYSPACE m", "ALTER ON KEYSPACE m"),
    ("CREATE TYPE m.y{n} (a int)", "CREATE ON KEYSPACE m", "CREATE ON KEYSPACE m2"),
    ("ALTER TYPE m.y ADD f{n} int", "ALTER ON KEYSPACE m", "DROP ON KEYSPACE m"),
    ("DROP TYPE IF EXISTS m.none", "DROP ON KEYSPACE m", "ALTER ON KEYSPACE m"),
    ("ALTER KEYSPACE m WITH durable_writes = true", "ALTER ON KEYSPACE m", "ALTER ON ALL TABLES IN KEYSPACE m"),
    ("DROP KEYSPACE IF EXISTS m{n}x", "DROP ON ALL KEYSPACES", "DROP ON KEYSPACE m"),
    ("CREATE KEYSPACE m{n} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
     "CREATE ON ALL KEYSPACES", "CREATE ON KEYSPACE m"),
    ("CREATE FUNCTION m.f{n} (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return x'",
     "CREATE ON ALL FUNCTIONS IN KEYSPACE m", "CREATE ON KEYSPACE m"),
    ("CREATE OR REPLACE FUNCTION m.f (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return x'",
     "ALTER ON FUNCTION m.f(int)", "CREATE ON ALL FUNCTIONS IN KEYSPACE m"),
    ("DROP FUNCTION m.df(int)", "DROP ON ALL FUNCTIONS IN KEYSPACE m", "DROP ON KEYSPACE m",
     "CREATE OR REPLACE FUNCTION m.df (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return x'"),
    ("DROP AGGREGATE m.da(int)", "DROP ON ALL FUNCTIONS", "DROP ON KEYSPACE m",
     "CREATE OR REPLACE AGGREGATE m.da (int) SFUNC sf STYPE int"),
    ("CREATE ROLE made{n}", "CREATE ON ALL ROLES", "ALTER ON ALL ROLES"),
    ("ALTER ROLE other WITH LOGIN = true", "ALTER ON ROLE other", "DROP ON ROLE other"),
    ("DROP ROLE IF EXISTS none", "DROP ON ALL ROLES", "ALTER ON ALL ROLES"),
    ("GRANT third TO other", "AUTHORIZE ON ROLE third", "ALTER ON ROLE third"),
    ("REVOKE third FROM other", "AUTHORIZE ON ALL ROLES", "AUTHORIZE ON ALL KEYSPACES"),
    ("LIST ALL", "DESCRIBE ON ALL ROLES", "ALTER ON ALL ROLES"),
    ("LIST ROLES OF other", "DESCRIBE ON ALL ROLES", "ALTER ON ROLE other"),
    ("SELECT role FROM system_auth.roles", "SELECT ON system_auth.roles", "SELECT ON ALL KEYSPACES"),
    ("SELECT * FROM system_tetrad.nodes", "SELECT ON KEYSPACE system_tetrad", "SELECT ON ALL KEYSPACES"),
    ("SELECT * FROM tetrad.nodes", "SELECT ON KEYSPACE system_tetrad", "SELECT ON ALL KEYSPACES"),
]
# Two rights, of which each alone is not enough.
PAIRS = [
    ("INSERT INTO m.t (a) VALUES (77) IF NOT EXISTS", "MODIFY ON m.t", "SELECT ON m.t"),
    ("SELECT a FROM m.k WHERE b = 1 ALLOW FILTERING", "SELECT ON m.k", "SELECT_MASKED ON m.k"),
    ("SELECT a FROM m.k WHERE b = 1 ALLOW FILTERING", "SELECT ON KEYSPACE m", "UNMASK ON ALL KEYSPACES"),
    ("SELECT m.f(a) FROM m.t", "SELECT ON m.t", "EXECUTE ON FUNCTION m.f(int)"),
    ("INSERT INTO m.t (a) VALUES (m.f(1))", "MODIFY ON m.t", "EXECUTE ON FUNCTION m.f(int)"),
    ("UPDATE m.t SET b = 1 WHERE a = 77 IF b = 2", "MODIFY ON m.t", "SELECT ON m.t"),
    ("DELETE FROM m.t WHERE a = 77 IF EXISTS", "MODIFY ON m.t", "SELECT ON m.t"),
    ("CREATE OR REPLACE AGGREGATE m.ag (int) SFUNC sf STYPE int", "CREATE ON ALL FUNCTIONS IN KEYSPACE m",
     "EXECUTE ON FUNCTION m.sf(int, int)"),
    ("GRANT SELECT ON m.t TO other", "AUTHORIZE ON m.t", "SELECT ON m.t"),
    ("REVOKE SELECT ON m.t FROM other", "AUTHORIZE ON m.t", "SELECT ON m.t"),
    ("BEGIN UNLOGGED BATCH INSERT INTO m.t (a) VALUES (1); INSERT INTO m.u (a) VALUES (1); APPLY BATCH",
     "MODIFY ON m.t", "MODIFY ON m.u"),
]
# What needs no right: it reads nothing but the schema, which drivers need. And what is not there, for superusers either.
FREE = {"Use": "USE m", "Describe": "DESCRIBE TABLE m.t"}
UNSUPPORTED = {"CreateTrigger": "CREATE TRIGGER x ON m.t USING 'x'", "AddIdentity": "ADD IDENTITY 'x' TO ROLE other",
               "DropIdentity": "DROP IDENTITY 'x'"}
SUPERUSERS = [
    "SELECT salted_hash FROM system_auth.roles", "SELECT * FROM system_auth.roles",
    "SELECT role FROM system_auth.roles WHERE salted_hash = 'x' ALLOW FILTERING",
    "CREATE ROLE boss WITH SUPERUSER = true", "ALTER ROLE other WITH SUPERUSER = true",
    "ALTER ROLE cassandra WITH PASSWORD = 'x'", "DROP ROLE cassandra", "GRANT cassandra TO who",
    "INSERT INTO system.local (key) VALUES ('x')", "TRUNCATE system_auth.roles", "DROP TABLE system_auth.roles",
    "GRANT MODIFY ON KEYSPACE system_auth TO who", "DROP TRIGGER IF EXISTS x ON m.t",
]


def kind_of(statement):
    """What the grammar calls it."""
    words = statement.replace("OR REPLACE ", "").replace("MATERIALIZED ", "").split()
    if words[0] in ("GRANT", "REVOKE"):
        return words[0].title() + ("Permissions" if "ON" in words else "Role")
    if words[0] == "LIST":
        return "ListRoles" if words[1] == "ROLES" else "ListPermissions"
    if words[0] == "BEGIN":
        return "Batch"
    if words[:2] == ["INSERT", "INTO"] and words[3] == "JSON":
        return "InsertJson"
    return "".join(word.title() for word in words[: 2 if words[0] in ("CREATE", "ALTER", "DROP") else 1])


def every_kind(root, who):
    """The grammar knows no kind of statement that is not tried here."""
    grammar = (Path(__file__).resolve().parents[3] / "cql/grammar/ast.h").read_text()
    listed = re.sub(r"//.*", "", re.search(r"using Statement = std::variant<(.*?)>;", grammar, re.S)[1])
    kinds = set(listed.replace(",", " ").split())
    tried = {kind_of(text) for text in [row[0] for row in RIGHTS + PAIRS] + SUPERUSERS} | set(FREE) | set(UNSUPPORTED)
    check(len(kinds) > 30 and tried == kinds, "kinds of statements: not tried %s, not there %s" % (kinds - tried, tried - kinds))
    for statement in FREE.values():
        check(not is_refused(who, statement), "without a right: %s" % statement)
    for statement in UNSUPPORTED.values():
        try:
            root.execute(statement)
            check(False, "supported, and not in the matrix: %s" % statement)
        except Exception as error:
            check("not supported" in str(error), "%s: %s" % (statement, error))


def matrix(root, who):
    number = 0
    for statement, right, wrong, *before in RIGHTS:

        def refused():
            nonlocal number
            number += 1
            for needed in before:
                root.execute(needed)
            return is_refused(who, statement.format(n=number))

        check(refused(), "without a right: %s" % statement)
        root.execute("GRANT %s TO who" % wrong)
        check(refused(), "with a wrong right: %s" % statement)
        root.execute("REVOKE %s FROM who" % wrong)
        root.execute("GRANT %s TO who" % right)
        check(not refused(), "with its right: %s" % statement)
        root.execute("REVOKE %s FROM who" % right)
        root.execute("GRANT helper TO who")
        root.execute("GRANT %s TO helper" % right)
        check(not refused(), "with its role's right: %s" % statement)
        root.execute("REVOKE %s FROM helper" % right)
        check(refused(), "after its role's right went: %s" % statement)
        root.execute("REVOKE helper FROM who")
    for statement, first, second in PAIRS:
        for only in (first, second):
            root.execute("GRANT %s TO who" % only)
            check(is_refused(who, statement), "with %s alone: %s" % (only, statement))
            root.execute("REVOKE %s FROM who" % only)
        root.execute("GRANT %s TO who" % first)
        root.execute("GRANT %s TO who" % second)
        check(not is_refused(who, statement), "with both rights: %s" % statement)
        root.execute("REVOKE %s FROM who" % first)
        root.execute("REVOKE %s FROM who" % second)


def computed_tables(root, who):
    """All that there are: anybody may read what drivers need, and nothing else; rights on a neighbour do not help."""
    free = {("system", name) for name in ("local", "peers", "peers_v2", "size_estimates", "table_estimates")}
    names = set()
    for schema in ("system_schema", "system_virtual_schema"):
        for keyspace, table in root.execute("SELECT keyspace_name, table_name FROM %s.tables" % schema):
            if keyspace.startswith("system") or keyspace == "tetrad":
                names.add((keyspace, table))
    check(len(names) > 60, "only %d tables of system keyspaces" % len(names))
    wrong = 0
    for keyspace, table in sorted(names):
        name = '%s."%s"' % (keyspace, table)
        # What everybody who may read it sees: hashes of passwords are for superusers.
        select = "SELECT %s FROM %s LIMIT 1" % ("role" if (keyspace, table) == ("system_auth", "roles") else "*", name)
        is_free = keyspace in ("system_schema", "system_virtual_schema", "system_traces") or (keyspace, table) in free
        check(is_refused(who, select) != is_free, "without a right: %s" % name)
        if is_free:
            continue
        for right in wrong_rights(keyspace, table, names):
            root.execute("GRANT %s TO who" % right)
            check(is_refused(who, select), "with %s: %s" % (right, name))
            root.execute("REVOKE %s FROM who" % right)
            wrong += 1
        for resource in (name, "ALL TABLES IN KEYSPACE %s" % keyspace, "KEYSPACE %s" % keyspace):
            root.execute("GRANT SELECT ON %s TO who" % resource)
            check(not is_refused(who, select), "with SELECT ON %s: %s" % (resource, name))
            root.execute("REVOKE SELECT ON %s FROM who" % resource)
            check(is_refused(who, select), "after SELECT ON %s went: %s" % (resource, name))
    tables_of_roles(root, who, {table for keyspace, table in names if keyspace == "system_auth"})
    check(wrong > 150, "only %d wrong rights on tables of system keyspaces" % wrong)


def tables_of_roles(root, who, tables):
    """Read only, whoever asks: as tried on Cassandra 5.0.9, where no right to change one can be given."""
    check(tables == {"roles", "role_members", "role_permissions", "resource_role_permissons_index", "network_permissions", "cidr_permissions",
                     "cidr_groups", "identity_to_role"}, "tables of system_auth: %s" % tables)
    for resource in ("ALL KEYSPACES", "ALL ROLES"):
        root.execute("GRANT ALL ON %s TO who" % resource)
    for table in sorted(tables):
        name = "system_auth.%s" % table
        check(is_refused(who, "SELECT * FROM %s" % name), "with all rights on all keyspaces and roles: %s" % name)
        check(is_refused(who, "TRUNCATE %s" % name), "TRUNCATE with all rights on all keyspaces: %s" % name)
        for right in ("MODIFY", "ALTER", "DROP", "AUTHORIZE"):
            check(is_refused(root, "GRANT %s ON %s TO who" % (right, name)), "GRANT %s ON %s" % (right, name))
    for resource in ("ALL KEYSPACES", "ALL ROLES"):
        root.execute("REVOKE ALL ON %s FROM who" % resource)


def wrong_rights(keyspace, table, names):
    """To read its neighbours, tables of others, and all keyspaces, among which virtual ones do not count."""
    neighbours = sorted(other for of, other in names if of == keyspace and other != table)
    out = ['SELECT ON %s."%s"' % (keyspace, other) for other in neighbours[:1] + neighbours[-1:]]
    out += ["SELECT ON ALL TABLES IN KEYSPACE m", "MODIFY ON ALL KEYSPACES", "DESCRIBE ON ALL ROLES"]
    return out if keyspace in ("system", "system_distributed") else out + ["SELECT ON ALL KEYSPACES"]


def everything_but_superuser(root, who):
    for resource in ("ALL KEYSPACES", "ALL ROLES", "ALL FUNCTIONS", "ALL MBEANS"):
        root.execute("GRANT ALL ON %s TO who" % resource)
    root.execute("GRANT SELECT ON KEYSPACE system_auth TO who")
    for statement in SUPERUSERS:
        try:
            who.execute(statement)
            check(False, "not a superuser, and reached: %s" % statement)
        except Exception:
            check(True, statement)
    for resource in ("ALL KEYSPACES", "ALL ROLES", "ALL FUNCTIONS", "ALL MBEANS"):
        root.execute("REVOKE ALL ON %s FROM who" % resource)
    root.execute("REVOKE SELECT ON KEYSPACE system_auth FROM who")


def prepared(root, who):
    root.execute("GRANT SELECT, MODIFY ON m.t TO who")
    select = who.prepare("SELECT * FROM m.t WHERE a = ?")
    insert = who.prepare("INSERT INTO m.t (a) VALUES (?)")
    allowed = who.prepare("SELECT key FROM system.local")
    for number in range(40):
        who.execute(insert, (number,))
    page = SimpleStatement("SELECT * FROM m.t", fetch_size=5)
    first = who.execute(page)
    check(not is_refused(who, select.bind((1,))), "prepared, with its right")
    root.execute("REVOKE SELECT, MODIFY ON m.t FROM who")
    check(is_refused(who, select.bind((1,))), "a SELECT prepared before its right went")
    check(is_refused(who, insert.bind((1,))), "an INSERT prepared before its right went")
    batch = BatchStatement()
    batch.add(insert, (1,))
    check(is_refused(who, batch), "a batch of the protocol, of what was prepared")
    batch = BatchStatement()
    batch.add(SimpleStatement("INSERT INTO m.t (a) VALUES (1)"))
    check(is_refused(who, batch), "a batch of the protocol, of texts")
    try:
        first.fetch_next_page()
        check(False, "the next page after the right went")
    except Unauthorized:
        check(True, "page")
    later = who.prepare("SELECT * FROM m.t")
    check(is_refused(who, later.bind(())), "prepared without a right")
    who.execute("USE m")
    check(is_refused(who, "SELECT * FROM t"), "the keyspace in use")
    check(not is_refused(who, allowed.bind(())), "what everybody may read")


def columns_apart(root):
    """Columns that only some may see, in a table of their own with the same key: one role reads and writes one of both."""
    root.execute("CREATE TABLE m.person (id int PRIMARY KEY, name text)")
    root.execute("CREATE TABLE m.person_pay (id int PRIMARY KEY, pay int)")
    for role, rights in (("clerk", ("ALL ON m.person",)), ("payroll", ("SELECT ON m.person", "ALL ON m.person_pay"))):
        root.execute("CREATE ROLE %s WITH PASSWORD = '%s' AND LOGIN = true" % (role, role))
        for right in rights:
            root.execute("GRANT %s TO %s" % (right, role))
    clerk, payroll = connect("clerk"), connect("payroll")
    both = ("BEGIN BATCH INSERT INTO m.person (id, name) VALUES (1, 'Ann'); INSERT INTO m.person_pay (id, pay) VALUES (1, 100); "
            "APPLY BATCH")
    check(is_refused(clerk, both) and is_refused(payroll, both), "a batch into both tables needs the rights on both")
    check(root.execute("SELECT * FROM m.person").one() is None, "nothing of a batch that is refused is written")
    root.execute(both)
    clerk.execute("UPDATE m.person SET name = 'Ann B.' WHERE id = 1")
    payroll.execute("UPDATE m.person_pay SET pay = 101 WHERE id = 1")
    check(clerk.execute("SELECT name FROM m.person WHERE id = 1").one().name == "Ann B.", "one role sees one table")
    seen = [payroll.execute("SELECT * FROM m.%s WHERE id = 1" % table).one() for table in ("person", "person_pay")]
    check(seen == [(1, "Ann B."), (1, 101)], "another role sees both: %s" % seen)
    for statement in ("SELECT pay FROM m.person_pay WHERE id = 1", "SELECT JSON * FROM m.person_pay", "SELECT count(*) FROM m.person_pay",
                      "SELECT sum(pay) FROM m.person_pay", "UPDATE m.person_pay SET pay = 1 WHERE id = 1 IF pay = 101",
                      "INSERT INTO m.person_pay (id) VALUES (1) IF NOT EXISTS", "CREATE INDEX ON m.person_pay (pay)",
                      "CREATE MATERIALIZED VIEW m.pays AS SELECT * FROM m.person_pay WHERE pay IS NOT NULL AND id IS NOT NULL "
                      "PRIMARY KEY (pay, id)", "GRANT SELECT ON m.person_pay TO clerk"):
        check(is_refused(clerk, statement), "what is in the other table stays unseen: %s" % statement)
    check(is_refused(payroll, "UPDATE m.person SET name = 'x' WHERE id = 1"), "who may read a table does not write it")


def lifecycle(root):
    root.execute("CREATE ROLE maker WITH PASSWORD = 'maker' AND LOGIN = true")
    root.execute("GRANT CREATE ON KEYSPACE m TO maker")
    maker = connect("maker")
    maker.execute("CREATE TABLE m.own (a int PRIMARY KEY)")
    check(not is_refused(maker, "SELECT * FROM m.own"), "a creator's own table")
    root.execute("DROP TABLE m.own")
    root.execute("CREATE TABLE m.own (a int PRIMARY KEY)")
    check(is_refused(maker, "SELECT * FROM m.own"), "a table of the same name as one that was dropped")
    root.execute("ALTER ROLE maker WITH LOGIN = false")
    check(is_refused(maker, "SELECT key FROM system.local"), "a session of a role that may not log in any more")
    root.execute("DROP ROLE maker")
    check(is_refused(maker, "SELECT key FROM system.local"), "a session of a role that was dropped")
    for statement in ("ALTER ROLE cassandra WITH LOGIN = false", "DROP ROLE cassandra",
                      "ALTER ROLE cassandra WITH ACCESS TO DATACENTERS {'datacenter1'}"):
        try:
            root.execute(statement)
            check(False, "everybody is locked out: %s" % statement)
        except Exception:
            check(True, statement)


class Wire:
    """The protocol by hand, v4."""

    def __init__(self, from_address=""):
        self.socket = socket.create_connection((HOST, PORT), 5, (from_address, 0) if from_address else None)
        self.socket.settimeout(20)

    def send(self, opcode, body):
        self.socket.sendall(struct.pack(">BBhBI", 4, 0, 1, opcode, len(body)) + body)

    def ask(self, opcode, body):
        """The opcode of the answer and its body; 0 when the connection is closed."""
        try:
            self.send(opcode, body)
            head = self.take(9)
            return head[4], self.take(struct.unpack(">I", head[5:])[0])
        except (OSError, EOFError):
            return 0, b""

    def take(self, size):
        out = b""
        while len(out) < size:
            part = self.socket.recv(size - len(out))
            if not part:
                raise EOFError
            out += part
        return out

    def start(self):
        return self.ask(1, struct.pack(">HH11sH5s", 1, 11, b"CQL_VERSION", 5, b"3.0.0"))


def token(user, password):
    text = b"\0" + user + b"\0" + password
    return struct.pack(">i", len(text)) + text


def handshake():
    query = b"SELECT key FROM system.local"
    requests = {
        "QUERY": (7, struct.pack(">I", len(query)) + query + struct.pack(">HB", 1, 0)),
        "PREPARE": (9, struct.pack(">I", len(query)) + query),
        "EXECUTE": (10, struct.pack(">H", 16) + bytes(16) + struct.pack(">HB", 1, 0)),
        "BATCH": (13, struct.pack(">BHHB", 0, 0, 1, 0)),
        "REGISTER": (11, struct.pack(">HH13s", 1, 13, b"SCHEMA_CHANGE")),
        "STARTUP": (1, struct.pack(">HH11sH5s", 1, 11, b"CQL_VERSION", 5, b"3.0.0")),
    }
    for name, (opcode, body) in requests.items():
        wire = Wire()
        check(wire.start()[0] == 3, "AUTHENTICATE to STARTUP")
        check(wire.ask(opcode, body)[0] == 0, "%s before the login" % name)
        check(wire.ask(15, token(b"cassandra", b"wrong"))[0] == 0, "a wrong password after %s" % name)
        check(wire.ask(opcode, body)[0] == 0, "%s after a failed login" % name)
        check(wire.ask(15, token(b"cassandra", b"cassandra"))[0] == 16, "the right password after all of it")
        check(wire.ask(*requests["QUERY"])[0] == 8, "QUERY after the login")
        check(wire.ask(15, token(b"cassandra", b"cassandra"))[0] == 0, "a second login")
        wire.socket.close()
    generator = __import__("random").Random(11)
    for number in range(400):
        wire = Wire()
        if number % 4:
            wire.start()
        size = generator.randrange(0, 200)
        body = bytes(generator.randrange(256) for _ in range(size))
        opcode = generator.choice([1, 5, 7, 9, 10, 11, 13, 15, 15, 15])
        if opcode == 15 and number % 3 == 0:
            body = struct.pack(">i", generator.choice([-1, -5, size, size + 7, 2**31 - 1])) + body
        answer, _ = wire.ask(opcode, body)
        check(answer in (0, 2, 3, 6), "opcode %d of random bytes was answered with %d" % (opcode, answer))
        wire.socket.close()
    for name, password in ((b"", b"x"), (b"cassandra", b""), (b"cassandra", b"a\0b"), (b"none", b"none"),
                           (b"cassandra\0", b"cassandra"), (b"x" * 5000, b"y" * 5000)):
        wire = Wire()
        wire.start()
        check(wire.ask(15, token(name, password))[0] == 0, "credentials %r" % name[:20])
        wire.socket.close()


def floods(root):
    """Logins that fail are slowed down, others are served meanwhile."""
    begin = time.monotonic()
    wires = [Wire() for _ in range(300)]
    for wire in wires:
        wire.start()
    for wire in wires:
        wire.send(15, token(b"other", b"wrong"))
    good = Wire("127.1.2.3")
    good.start()
    check(good.ask(15, token(b"who", b"who"))[0] == 16, "a right login from elsewhere beside a flood of wrong ones")
    check(not is_refused(root, "SELECT key FROM system.local"), "a query beside a flood of logins")
    answers = []
    for wire in wires:
        head = wire.take(9)
        answers.append((head[4], wire.take(struct.unpack(">I", head[5:])[0])))
    # An ERROR, bad credentials; which of both depends on how many had failed when it came.
    limited = sum(b"Too many logins" in text for _, text in answers)
    wrong = sum(b"are incorrect" in text for _, text in answers)
    print("of %d logins that fail at once %d were tried, %d refused untried" % (len(answers), wrong, limited))
    check(all((opcode, text[:4]) == (0, bytes((0, 0, 1, 0))) for opcode, text in answers), "bad credentials: %s" % answers)
    check(limited + wrong == len(answers), "all were answered: %s" % answers)
    # 20 at once, and one more every two seconds.
    check(wrong <= 21 + (time.monotonic() - begin) / 2, "%d passwords of an address were looked at" % wrong)
    wire = Wire()
    wire.start()
    check(b"Too many logins" in wire.ask(15, token(b"other", b"wrong"))[1], "failures of an address are limited")


def main():
    root = connect("cassandra")
    for statement in (
            "CREATE KEYSPACE m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE KEYSPACE m2 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE m.t (a int PRIMARY KEY, b int)", "CREATE TABLE m.u (a int PRIMARY KEY, b int)",
            "CREATE TABLE m.n (a int PRIMARY KEY, n counter)", "CREATE TABLE m.w (a int PRIMARY KEY, b int)",
            "CREATE MATERIALIZED VIEW m.v AS SELECT * FROM m.w WHERE a IS NOT NULL AND b IS NOT NULL PRIMARY KEY (b, a)",
            "CREATE FUNCTION m.sf (s int, x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return x'",
            "CREATE TYPE m.y (a int)", "CREATE TABLE m.k (a int PRIMARY KEY, b int MASKED WITH DEFAULT)",
            "CREATE FUNCTION m.f (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return x'",
            "CREATE ROLE other", "CREATE ROLE helper", "CREATE ROLE third",
            "CREATE ROLE who WITH PASSWORD = 'who' AND LOGIN = true"):
        root.execute(statement)
    who = connect("who")
    every_kind(root, who)
    matrix(root, who)
    computed_tables(root, who)
    everything_but_superuser(root, who)
    prepared(root, who)
    columns_apart(root)
    lifecycle(root)
    for user, password in (("who", "wrong"), ("nobody", "nobody"), ("other", "other")):
        try:
            connect(user, password)
            check(False, "logged in as %s" % user)
        except NoHostAvailable:
            check(True, user)
    handshake()
    floods(root)
    print("%(passed)d passed, %(failed)d failed" % results)
    os._exit(results["failed"] != 0)


if __name__ == "__main__":
    main()
