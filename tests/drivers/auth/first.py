#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# There is no default password: who the first superuser is, and where its password comes from. And what is done with
# credentials where nobody has to log in. first.py ADDRESS: where nodes listen; TETRAD_BIN: where tetrad is. Last line
# N passed, N failed.
import os
import re
import sys
import tempfile
import urllib.request
from pathlib import Path

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tls"))
from node import Node, tetractl, wait_until  # noqa: E402

ADDRESS = sys.argv[1]
results = {"passed": 0, "failed": 0}


def check(holds, what):
    results["passed" if holds else "failed"] += 1
    if not holds:
        print("wrong: %s" % what)


def says(user, password, statement):
    """Why the statement is refused; empty where it is not."""
    cluster = Cluster([ADDRESS], auth_provider=PlainTextAuthProvider(user, password), protocol_version=5)
    try:
        cluster.connect().execute(statement)
        return ""
    except Exception as error:
        return str(error)
    finally:
        cluster.shutdown()


def gets_in(user, password):
    cluster = Cluster([ADDRESS], auth_provider=PlainTextAuthProvider(user, password), protocol_version=5)
    try:
        cluster.connect().execute("SELECT key FROM system.local")
        return True
    except NoHostAvailable:
        return False
    finally:
        cluster.shutdown()


def main():
    os.environ.pop("TETRAD_SUPERUSER_PASSWORD", None)
    top = Path(tempfile.mkdtemp())
    options = ("--authenticator", "PasswordAuthenticator", "--init-superuser")
    printed = lambda node: re.findall(r"^superuser (\w+) has the password (\S+)$", node.log(), re.M)  # noqa: E731
    node = Node(top, ADDRESS, *options, "ann")
    wait_until("the password", lambda: printed(node))
    (name, password), = printed(node)
    check(name == "ann" and len(password) >= 16, "what is printed: %s" % name)
    check(gets_in("ann", password), "with the password that was made up")
    check(not gets_in("ann", password + "x"), "with another password")
    check(not gets_in("cassandra", "cassandra"), "there is a default password")
    refused = sum(int(count) for count in re.findall(r'^tetrad_cql_errors_by_code_total{.*code="bad_credentials".*} (\d+)$', node.ask("/metrics"), re.M))
    check(refused >= 2, "logins that are refused are counted: %d" % refused)
    node.stop()
    node.start()
    wait_until("a login", lambda: gets_in("ann", password))
    check(len(printed(node)) == 1, "the password is printed once")
    check(password not in "".join(path.read_text(errors="replace") for path in node.folder.rglob("*") if path.is_file()
                                  and path != node.log_path), "the password is in a file of the node")
    node.stop()
    secret = top / "secret"
    secret.write_text("from a file\nnot this\n")
    secret.chmod(0o600)
    node = Node(top, ADDRESS, *options, "bob", "--init-superuser-password-file", secret)
    wait_until("a superuser", lambda: "made a superuser" in node.log())
    check(not printed(node), "a given password is printed")
    check(gets_in("bob", "from a file"), "with the password of the file")
    check(says("bob", "from a file", "ALTER ROLE bob WITH PASSWORD = 'of his own'") == "", "the only superuser takes another password")
    check(gets_in("bob", "of his own") and not gets_in("bob", "from a file"), "which counts from then on")
    check("would leave no superuser" in says("bob", "of his own", "ALTER ROLE bob WITH LOGIN = false"), "it can still log in")
    check("would leave no superuser" in says("bob", "of his own", "ALTER ROLE bob WITH PASSWORD = ''"), "an empty password is none")
    node.stop()

    def again(*words):
        node.options = (*options, *words)
        node.start()

    again("eve")
    wait_until("what is said", lambda: "another one can log in" in node.log())
    check(not printed(node) and not gets_in("eve", "from a file"), "init_superuser makes no second superuser")
    node.stop()
    again("eve", "--reset-superuser", "bob", "--init-superuser-password-file", secret)
    wait_until("a new password", lambda: node.log().count("made a superuser") == 2)
    check(gets_in("bob", "from a file") and not gets_in("bob", "of his own"), "a lost password is replaced")
    node.stop()
    again("bob", "--reset-superuser", "eve")
    wait_until("the password", lambda: printed(node))
    (name, password), = printed(node)
    check(name == "eve" and gets_in("eve", password) and gets_in("bob", "from a file"), "another role is made a superuser")
    check(says("eve", password, "CREATE ROLE who") == "", "and has a superuser's rights")
    node.stop()
    again("bob", "--dynamic-data-masking-enabled", "true")
    wait_until("a login", lambda: gets_in("eve", password))
    for statement in ("CREATE KEYSPACE hides WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                      "CREATE TABLE hides.t (k int PRIMARY KEY, v text MASKED WITH DEFAULT)"):
        check(says("eve", password, statement) == "", statement)
    unmasked = "shows the values of masked columns, as of hides.t, to every role that may read them"
    check(unmasked not in tetractl("-h", ADDRESS, "status"), "a node that masks is warned of")
    node.stop()
    again("bob")
    wait_until("status tells that nothing is masked", lambda: "WARNING: this node " + unmasked in tetractl("-h", ADDRESS, "status"))
    node.stop()
    node.options = ()
    node.start()
    wait_until("a warning", lambda: "asks nobody for a password" in node.log())
    with urllib.request.urlopen("http://%s:9180/health" % ADDRESS, timeout=5) as health:
        check(b"asks nobody for a password" in health.read(), "health tells that roles are of no use")
    check("WARNING: this node asks nobody for a password" in tetractl("-h", ADDRESS, "status"), "and so does status")
    node.stop()
    node = Node(top, ADDRESS, "--authenticator", "PasswordAuthenticator")
    wait_until("status tells that nobody administers it",
               lambda: "WARNING: no superuser can log in: stop the node and start it with --init-superuser" in tetractl("-h", ADDRESS, "status"))
    with urllib.request.urlopen("http://%s:9180/health" % ADDRESS, timeout=5) as health:
        check(b"no superuser can log in" in health.read(), "and so does health")
    node.stop()
    node = Node(top, ADDRESS)
    check(gets_in("cassandra", "cassandra") and gets_in("anybody", "anything"), "credentials where nobody has to log in")
    node.stop()
    print("%(passed)d passed, %(failed)d failed" % results)
    sys.stdout.flush()
    os._exit(results["failed"] != 0)


if __name__ == "__main__":
    main()
