# SPDX-License-Identifier: Apache-2.0
# What a node keeps on its disk is unreadable without its keys, and a node says what it lacks.
import os
import signal
import subprocess

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy

from node import BIN, Node, tetractl, wait_until

ADDRESS = "127.0.37.81"
THREE = ["127.0.37.82", "127.0.37.83", "127.0.37.84"]
MARKER = "the-marker-of-this-test"


def key_line(name):
    return "%s %s\n" % (name, os.urandom(32).hex())


def write_keys(path, *lines):
    path.write_text("# the newest first\n" + "".join(lines))
    path.chmod(0o600)


def files_with(folder, *texts):
    found = set()
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "LOG":
            content = path.read_bytes()
            found.update(str(path) for text in texts if text.encode() in content)
    return found


class Rows:
    """Those of one table, written and read through a node."""

    def __init__(self, first=True):
        self.cluster = Cluster([ADDRESS], protocol_version=4)
        self.session = self.cluster.connect()
        if first:
            self.session.execute("CREATE KEYSPACE secrets WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            self.session.execute("CREATE TABLE secrets.hidden_table (k int PRIMARY KEY, v text)")

    def write(self, numbers):
        insert = self.session.prepare("INSERT INTO secrets.hidden_table (k, v) VALUES (?, ?)")
        for number in numbers:
            self.session.execute(insert, (number, "%s-%d" % (MARKER, number)))
        self.session.execute("BEGIN BATCH INSERT INTO secrets.hidden_table (k, v) VALUES (-1, '%s'); "
                             "INSERT INTO secrets.hidden_table (k, v) VALUES (-2, '%s'); APPLY BATCH" % (MARKER, MARKER))

    def check(self, numbers):
        rows = {row.k: row.v for row in self.session.execute("SELECT k, v FROM secrets.hidden_table")}
        assert rows == {-1: MARKER, -2: MARKER, **{number: "%s-%d" % (MARKER, number) for number in numbers}}

    def close(self):
        self.cluster.shutdown()


def keys_in_use():
    lines = tetractl("-h", ADDRESS, "disk-encryption").splitlines()
    return lines[0], {line.split(":")[0] for line in lines[1:]}


def refused(node, *options):
    done = subprocess.run([BIN / "tetrad", "--data-directory", node.folder / "data", "--listen-address", ADDRESS, *map(str, options)],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    return done.stderr


def restart(node, keys):
    node.stop()
    node.options = ("--disk-encryption-key-file", keys) if keys else ()
    node.start()


def test_nothing_that_was_written_is_on_the_disk(tmp_path):
    keys = tmp_path / "keys"
    first = key_line("first")
    write_keys(keys, first)
    node = Node(tmp_path, ADDRESS, "--disk-encryption-key-file", keys)
    try:
        rows = Rows()
        rows.write(range(500))
        tetractl("-h", ADDRESS, "flush")
        rows.write(range(500, 1000))
        rows.close()
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
        assert not files_with(node.folder / "data", MARKER, "hidden_table", first.split()[1])
        node.start()
        rows = Rows(first=False)
        rows.check(range(1000))
        assert keys_in_use() == ("new files: key first", {"key first"})
        rows.close()
        # Another key: files are read by the old line, and named when it is not there.
        second = key_line("second")
        node.stop()
        write_keys(keys, second)
        said = refused(node, "--disk-encryption-key-file", keys)
        assert 'is encrypted with key "first", which is not in' in said and "add it as a further line" in said, said
        write_keys(keys, second, first)
        node.start()
        rows = Rows(first=False)
        rows.write(range(1000, 1200))
        rows.check(range(1200))
        assert keys_in_use() == ("new files: key second", {"key second"})
        assert "files were under an older key" in node.log()
        rows.close()
        # The old line is not needed any more.
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
        write_keys(keys, second)
        node.start()
        rows = Rows(first=False)
        rows.check(range(1200))
        rows.close()
        assert not files_with(node.folder / "data", MARKER, "hidden_table")
    finally:
        node.stop()


def test_a_node_without_its_keys_does_not_start(tmp_path):
    keys = tmp_path / "keys"
    line = key_line("only")
    write_keys(keys, line)
    node = Node(tmp_path, ADDRESS, "--disk-encryption-key-file", keys)
    node.stop()
    said = refused(node)
    assert 'is encrypted with key "only" and disk_encryption_key_file is not set' in said, said
    write_keys(keys, key_line("other"))
    said = refused(node, "--disk-encryption-key-file", keys)
    assert 'is encrypted with key "only", which is not in' in said, said
    write_keys(keys, key_line("only"))
    said = refused(node, "--disk-encryption-key-file", keys)
    assert 'with another key "only"' in said, said
    for content, words in [("", "has no key in it"), ("only\n", "a line is an id of up to 32 letters"), (line[:-3] + "\n", "hexadecimal digits"),
                           ("only " + "z" * 64 + "\n", "is not of hexadecimal digits"), ("only " + "ab" * 32 + "\n", "anybody can guess"),
                           (line + line, "there is a key only already"), (line + "a" + line, "is the same as key only")]:
        write_keys(keys, content)
        said = refused(node, "--disk-encryption-key-file", keys)
        assert words in said and line.split()[1] not in said, said
    write_keys(keys, line)
    keys.chmod(0o644)
    said = refused(node, "--disk-encryption-key-file", keys)
    assert "has the mode 644" in said and "chmod 600" in said, said
    said = refused(node, "--disk-encryption-key-file", tmp_path / "none")
    assert "cannot read" in said and "No such file" in said, said
    keys.chmod(0o600)
    node.start()
    node.stop()


def test_a_node_that_was_plain_is_encrypted_as_it_goes(tmp_path):
    node = Node(tmp_path, ADDRESS)
    try:
        rows = Rows()
        rows.write(range(300))
        tetractl("-h", ADDRESS, "flush")
        assert keys_in_use() == ("new files: plain", {"plain"})
        assert files_with(node.folder / "data", "hidden_table")
        rows.close()
        keys = tmp_path / "keys"
        write_keys(keys, key_line("k"))
        restart(node, keys)
        rows = Rows(first=False)
        rows.check(range(300))
        rows.write(range(300, 400))
        rows.check(range(400))
        assert keys_in_use() == ("new files: key k", {"plain", "key k"})
        rows.close()
        node.stop()
        said = refused(node)
        assert 'is encrypted with key "k" and disk_encryption_key_file is not set' in said, said
    finally:
        node.stop()


def test_the_audit_log_is_no_file_to_be_encrypted(tmp_path):
    keys = tmp_path / "keys"
    write_keys(keys, key_line("k"))
    node = Node(tmp_path, ADDRESS, "--disk-encryption-key-file", keys, "--audit-log-enabled", "true")
    try:
        rows = Rows()
        rows.write(range(10))
        rows.close()
        wait_until("the log has the statements", lambda: files_with(node.folder / "data" / "audit", "hidden_table"))
        assert keys_in_use() == ("new files: key k", {"key k"})
    finally:
        node.stop()


def session_at(address, level):
    """Of a driver that asks this node only."""
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([address]), consistency_level=level)
    return Cluster([address], protocol_version=4, execution_profiles={EXEC_PROFILE_DEFAULT: profile}).connect()


def test_hints_are_unreadable_on_the_disk_and_arrive(tmp_path):
    """Of two coordinators one is encrypted; the other shows where a hint would be seen."""
    keys = tmp_path / "keys"
    write_keys(keys, key_line("k"))
    nodes = [Node(tmp_path, address, "--seeds", ",".join(THREE), *(("--disk-encryption-key-file", keys) if address == THREE[0] else ()),
                  serves=False) for address in THREE]
    hidden, plain, away = nodes
    sessions = []
    try:
        for node in nodes:
            wait_until("%s serves" % node.address, node.serves)
        for node in nodes:
            wait_until("%s sees all" % node.address, lambda: node.live() == set(THREE))
        sessions.extend(session_at(node.address, ConsistencyLevel.QUORUM) for node in (hidden, plain))
        sessions[0].execute("CREATE KEYSPACE secrets WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
        sessions[0].execute("CREATE TABLE secrets.hidden_table (k int PRIMARY KEY, v text)")
        away.stop()
        wait_until("it is seen to be away", lambda: all(away.address not in node.live() for node in (hidden, plain)))
        for number in range(200):
            sessions[number % 2].execute("INSERT INTO secrets.hidden_table (k, v) VALUES (%d, '%s-%d')" % (number, MARKER, number))
        for node in (hidden, plain):
            wait_until("hints", lambda: node.metric("tetrad_replication_hints_pending") == 100)
        # The log of hints is written without waiting.
        wait_until("a hint on the disk that is not encrypted", lambda: files_with(plain.folder / "data" / "hints", MARKER + "-199"))
        assert sum(path.stat().st_size for path in (hidden.folder / "data" / "hints").rglob("*.log")) > 100 * len(MARKER)
        tetractl("-h", hidden.address, "flush")
        assert not files_with(hidden.folder / "data", MARKER, "hidden_table")
        # Also when it has been killed: what is read again is what was written.
        hidden.process.send_signal(signal.SIGKILL)
        hidden.process.wait()
        assert not files_with(hidden.folder / "data", MARKER, "hidden_table")
        hidden.start()
        away.start()
        for node in (hidden, plain):
            wait_until("the hints of %s are replayed" % node.address, lambda: node.metric("tetrad_replication_hints_replayed_total") == 100
                       and node.metric("tetrad_replication_hints_pending") == 0)
        for node in (hidden, plain):
            node.stop()
        sessions.append(session_at(away.address, ConsistencyLevel.ONE))
        for number in range(200):
            row = sessions[2].execute("SELECT v FROM secrets.hidden_table WHERE k = %d" % number).one()
            assert row and row.v == "%s-%d" % (MARKER, number)
    finally:
        for session in sessions:
            session.cluster.shutdown()
        for node in nodes:
            node.stop()
