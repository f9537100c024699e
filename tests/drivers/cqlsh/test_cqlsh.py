# SPDX-License-Identifier: Apache-2.0
# cqlsh from PyPI, unmodified: what people type into it and what they see.
import csv
import os
import re
import signal
import threading

import pytest


def table_of(text):
    """The cells of the first result table in cqlsh's output, as lists of stripped strings."""
    lines = text.splitlines()
    rule = next(i for i, line in enumerate(lines) if line.startswith("-") and set(line) <= set("-+"))
    rows = []
    for line in lines[rule + 1 :]:
        if "|" not in line and not line.startswith(" "):
            break
        rows.append([cell.strip() for cell in line.split("|")])
    return [cell.strip() for cell in lines[rule - 1].split("|")], [row for row in rows if row != [""]]


def test_it_connects_and_says_to_what(shell):
    out = shell("SHOW VERSION\nSHOW HOST\n").out
    assert "CQL spec 3.4.7" in out and "Native protocol v5" in out and "Cassandra 5.0." in out
    assert "Connected to " in out


@pytest.mark.parametrize("version", ["3", "4", "5"])
def test_it_speaks_every_protocol_version(shell, version):
    out = shell("SELECT key FROM system.local WHERE key = 'local';\n", "--protocol-version=" + version).out
    assert table_of(out) == (["key"], [["local"]])


def test_create_insert_select(shell, keyspace):
    out = shell(
        """
        CREATE TABLE %(k)s.users (name text, id int, message text, tags set<text>, PRIMARY KEY (name, id));
        INSERT INTO %(k)s.users (name, id, message, tags) VALUES ('theo', 2, 'hello again', {'b', 'a'});
        INSERT INTO %(k)s.users (name, id, message) VALUES ('theo', 1, 'hello');
        SELECT * FROM %(k)s.users WHERE name = 'theo';
        """ % {"k": keyspace}
    ).out
    assert table_of(out) == (
        ["name", "id", "message", "tags"],
        [["theo", "1", "hello", "null"], ["theo", "2", "hello again", "{'a', 'b'}"]],
    )
    assert "(2 rows)" in out


def test_values_of_all_types_are_printed(shell, keyspace):
    out = shell(
        """
        CREATE TABLE %(k)s.printed (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, g double,
          h duration, i float, j inet, l smallint, m text, n time, o timestamp, p timeuuid, q tinyint, r uuid, s varint,
          t list<int>, u map<text, int>, v tuple<int, text>);
        INSERT INTO %(k)s.printed (k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s, t, u, v) VALUES
          (1, 'ascii', 9223372036854775807, 0xcafe, true, '2024-02-29', 1.10, 2.5, 1mo2d3s, 1.5, '2001:db8::1', -7, 'naïve 漢字',
           '12:34:56.789', '2024-02-29T12:34:56.789Z', d2177dd0-eaa2-11de-a572-001b779c76e3, 127,
           f47ac10b-58cc-4372-a567-0e02b2c3d479, 123456789012345678901234567890, [3, 1, 2], {'x': 1}, (1, 'y'));
        EXPAND ON
        SELECT * FROM %(k)s.printed;
        """ % {"k": keyspace}
    ).out
    shown = dict(
        [part.strip() for part in line.split("|", 1)] for line in out.splitlines() if "|" in line
    )
    assert shown == {
        "k": "1", "a": "ascii", "b": "9223372036854775807", "c": "0xcafe", "d": "True", "e": "2024-02-29", "f": "1.10",
        "g": "2.5", "h": "1mo2d3s", "i": "1.5", "j": "2001:db8::1", "l": "-7", "m": "naïve 漢字",
        "n": "12:34:56.789000000", "o": "2024-02-29 12:34:56.789000+0000", "p": "d2177dd0-eaa2-11de-a572-001b779c76e3",
        "q": "127", "r": "f47ac10b-58cc-4372-a567-0e02b2c3d479", "s": "123456789012345678901234567890",
        "t": "[3, 1, 2]", "u": "{'x': 1}", "v": "(1, 'y')",
    }


DEFINITION = """CREATE TABLE %s.described (
    a int,
    "B" text,
    c timeuuid,
    s text static,
    m map<text, frozen<list<int>>>,
    PRIMARY KEY ((a, "B"), c)
) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'it''s a comment' AND default_time_to_live = 77;
"""


def test_describe_table_prints_a_definition_that_runs_again(shell, keyspace):
    first = shell(DEFINITION % keyspace + "DESCRIBE TABLE %s.described;\n" % keyspace).out
    for line in (
        "CREATE TABLE %s.described (" % keyspace, '    "B" text,', "    s text static,",
        '    PRIMARY KEY ((a, "B"), c)', ") WITH CLUSTERING ORDER BY (c DESC)", "AND comment = 'it''s a comment'",
        "AND default_time_to_live = 77",
    ):
        assert line in first, first
    second = shell("DROP TABLE %s.described;\n%s\nDESCRIBE TABLE %s.described;\n" % (keyspace, first, keyspace)).out
    assert second.strip() == first.strip()


def test_describe_of_everything_there_is(shell, keyspace):
    shell("CREATE TABLE %s.seen (k int PRIMARY KEY, v int);\n" % keyspace)
    keyspaces = shell("DESCRIBE KEYSPACES\n").out.split()
    assert keyspace in keyspaces and "system" in keyspaces and "system_schema" in keyspaces
    assert "seen" in shell("USE %s;\nDESCRIBE TABLES\n" % keyspace).out.split()
    assert "Keyspace %s\n" % keyspace in shell("DESC TABLES\n").out
    whole = shell("DESC KEYSPACE %s\n" % keyspace).out
    assert "CREATE KEYSPACE %s WITH replication = {" % keyspace in whole
    assert "CREATE TABLE %s.seen (" % keyspace in whole
    assert "CREATE TABLE %s.seen (" % keyspace in shell("DESCRIBE SCHEMA\n").out
    assert "CREATE TABLE %s.seen (" % keyspace in shell("DESC %s.seen\n" % keyspace).out
    assert "CREATE TABLE %s.seen (" % keyspace in shell("USE %s;\nDESC seen\n" % keyspace).out
    only = shell("DESCRIBE ONLY KEYSPACE %s\n" % keyspace).out
    assert "CREATE KEYSPACE" in only and "CREATE TABLE" not in only
    cluster = shell("DESCRIBE CLUSTER\n").out
    assert "Cluster: " in cluster and "Partitioner: Murmur3Partitioner" in cluster and "Snitch: " in cluster
    # Each token's range with the nodes that have rows of it, all of them.
    owned = re.findall(r"^ +-?\d+ +(\[.*\])$", shell("USE %s;\nDESCRIBE CLUSTER\n" % keyspace).out, re.M)
    replicas = min(4, len(os.environ.get("TETRAD_TEST_HOSTS", "127.0.0.1").split(",")))
    assert owned and all(len(set(re.findall(r"/[\d.]+:\d+", one))) == replicas for one in owned), owned
    assert "CREATE TABLE system.local (" in shell("DESCRIBE TABLE system.local\n").out
    shell("USE %s;\nDESC TYPES\nDESC FUNCTIONS\nDESC AGGREGATES\n" % keyspace)


@pytest.mark.parametrize(
    "statement,words",
    [
        ("DESCRIBE TABLE system.nosuchtable", "Table 'nosuchtable' not found in keyspace 'system'"),
        ("DESCRIBE KEYSPACE nosuchkeyspace", "'nosuchkeyspace' not found in keyspaces"),
        ("DESCRIBE nosuchthing", "'nosuchthing' not found in keyspaces"),
    ],
)
def test_describe_of_what_is_not_there(shell, statement, words):
    result = shell(statement + "\n", fails=True)
    assert words in result.err


@pytest.mark.parametrize(
    "statement,words",
    [
        ("SELECT * FROM nosuchkeyspace.t;", "InvalidRequest: Error from server: code=2200 [Invalid query] message=\"keyspace nosuchkeyspace does not exist\""),
        ("SELECT * FROM system.nosuchtable;", "code=2200 [Invalid query] message=\"table nosuchtable does not exist\""),
        ("SELEC key FROM system.local;", "SyntaxException: line 1:0 no viable alternative at input 'SELEC' ([SELEC]...)"),
        ("SELECT nosuch FROM system.local;", "Undefined column name nosuch in table system.local"),
        ("USE nosuchkeyspace;", "Keyspace 'nosuchkeyspace' does not exist"),
    ],
)
def test_errors_are_printed_and_the_exit_code_is_two(shell, statement, words):
    result = shell(statement + "\n", fails=True)
    assert words in result.err, result
    assert result.code == 2


def test_paging_shows_every_row(shell, keyspace):
    text = "CREATE TABLE %s.paged (k int, c int, PRIMARY KEY (k, c));\nBEGIN UNLOGGED BATCH\n" % keyspace
    text += "".join("INSERT INTO %s.paged (k, c) VALUES (%d, %d);\n" % (keyspace, c % 3, c) for c in range(250))
    text += "APPLY BATCH;\n"
    out = shell(
        text + "PAGING 7\nSELECT k, c FROM %s.paged;\nPAGING OFF\nSELECT c FROM %s.paged WHERE k = 1;\n" % (keyspace, keyspace)
    ).out
    assert "Page size: 7" in out and "PAGING set to OFF" in out
    assert "(250 rows)" in out and "(83 rows)" in out


def test_consistency_serial_consistency_and_tracing_commands(shell, keyspace):
    out = shell(
        """CONSISTENCY TWO
        CONSISTENCY QUORUM
        CONSISTENCY
        SERIAL CONSISTENCY LOCAL_SERIAL
        TRACING OFF
        CREATE TABLE %(k)s.levels (k int PRIMARY KEY, v int);
        INSERT INTO %(k)s.levels (k, v) VALUES (1, 2);
        SELECT v FROM %(k)s.levels WHERE k = 1;
        CONSISTENCY ALL
        SELECT v FROM %(k)s.levels;
        """ % {"k": keyspace}
    ).out
    assert "Consistency level set to TWO." in out and "Consistency level set to QUORUM." in out and "Current consistency level is QUORUM." in out
    assert "Serial consistency level set to LOCAL_SERIAL." in out and "TRACING" in out.upper()
    assert out.count("(1 rows)") == 2


def test_conditional_statements_show_what_is_in_the_way(shell, keyspace):
    out = shell(
        """CREATE TABLE %(k)s.leases (name text PRIMARY KEY, owner text, v int);
        INSERT INTO %(k)s.leases (name, owner, v) VALUES ('a', 'one', 1) IF NOT EXISTS;
        INSERT INTO %(k)s.leases (name, owner, v) VALUES ('a', 'two', 1) IF NOT EXISTS;
        SERIAL CONSISTENCY LOCAL_SERIAL
        UPDATE %(k)s.leases SET owner = 'two' WHERE name = 'a' IF v = 2;
        CONSISTENCY SERIAL
        SELECT owner FROM %(k)s.leases WHERE name = 'a';
        """ % {"k": keyspace}
    ).out
    assert "[applied]\n-----------\n      True" in out
    assert "[applied] | name | owner | v\n-----------+------+-------+---\n     False |    a |   one | 1" in out
    assert "[applied] | v\n-----------+---\n     False | 1" in out
    assert "owner\n-------\n   one" in out


def test_tracing_prints_what_happened(shell, keyspace):
    out = shell(
        """CONSISTENCY QUORUM
        CREATE TABLE %(k)s.traced (k int PRIMARY KEY, v int);
        TRACING ON
        INSERT INTO %(k)s.traced (k, v) VALUES (1, 2);
        SELECT v FROM %(k)s.traced WHERE k = 1;
        TRACING OFF
        """ % {"k": keyspace}
    ).out
    assert out.count("Tracing session: ") == 2 and out.count("Execute CQL3 query") == 2 and out.count("Request complete") == 2
    assert "INSERT INTO %s.traced" % keyspace in out and "source_elapsed" in out


def test_source_and_capture(shell, keyspace):
    script, captured = shell.home / "script.cql", shell.home / "captured.txt"
    script.write_text(
        "CREATE TABLE %(k)s.sourced (k int PRIMARY KEY, v text);\nINSERT INTO %(k)s.sourced (k, v) VALUES (1, 'it''s; here');\n"
        % {"k": keyspace}
    )
    shell("SOURCE '%s'\nCAPTURE '%s'\nSELECT v FROM %s.sourced;\nCAPTURE OFF\n" % (script, captured, keyspace))
    assert "it's; here" in captured.read_text()


def test_a_script_file_and_a_statement_on_the_command_line(shell, keyspace):
    script = shell.home / "file.cql"
    script.write_text("-- a comment\nUSE %s;\n/* and\n another */ CREATE TABLE filed (k int PRIMARY KEY);\n" % keyspace)
    shell("", "-f", str(script))
    out = shell("", "-k", keyspace, "-e", "SELECT * FROM filed")
    assert "(0 rows)" in out.out


COPIED = (
    "k int, c timeuuid, b blob, d decimal, e date, t text, ts timestamp, l list<int>, m map<text, frozen<set<int>>>,"
    " u tuple<int, text>, PRIMARY KEY (k, c)"
)


CSV = {"doublequote": False, "escapechar": "\\"}  # as cqlsh's COPY writes and reads by default


def test_copy_to_and_from_move_a_table(shell, keyspace):
    shell("CREATE TABLE %s.copied (%s);\nCREATE TABLE %s.copied2 (%s);\n" % (keyspace, COPIED, keyspace, COPIED))
    source, exported, again = shell.home / "in.csv", shell.home / "out.csv", shell.home / "again.csv"
    with source.open("w", newline="") as file:
        writer = csv.writer(file, **CSV)
        for number in range(600):
            writer.writerow(
                [
                    number % 50, "%08x-0000-1000-8000-000000000000" % number, "0x%04x" % number, "%d.50" % number,
                    "2024-02-%02d" % (number % 28 + 1), "text, with 'quotes' and \"more\" é %d" % number,
                    "2024-02-29 12:34:56.789+0000", "[%d, 2]" % number, "{'a': {1, %d}}" % (number + 2), "(%d, 'x')" % number,
                ]
            )
    columns = "(k, c, b, d, e, t, ts, l, m, u)"
    out = shell("COPY %s.copied %s FROM '%s' WITH NUMPROCESSES = 2 AND CHUNKSIZE = 100;\n" % (keyspace, columns, source)).out
    assert "600 rows imported from 1 files" in out, out
    out = shell("SELECT count(*) FROM %s.copied;\n" % keyspace).out
    assert table_of(out)[1] == [["600"]]
    out = shell("COPY %s.copied %s TO '%s' WITH HEADER = TRUE AND NUMPROCESSES = 2;\n" % (keyspace, columns, exported)).out
    assert "600 rows exported to 1 files" in out, out
    with exported.open(newline="") as file:
        rows = list(csv.reader(file, **CSV))
    assert rows[0] == ["k", "c", "b", "d", "e", "t", "ts", "l", "m", "u"] and len(rows) == 601
    by_key = {(row[0], row[1]): row for row in rows[1:]}
    assert len(by_key) == 600
    row = by_key["7", "00000007-0000-1000-8000-000000000000"]
    assert row[2:6] == ["0x0007", "7.50", "2024-02-08", "text, with 'quotes' and \"more\" é 7"]
    assert row[7:] == ["[7, 2]", "{'a': {1, 9}}", "(7, 'x')"]
    shell("COPY %s.copied2 %s FROM '%s' WITH HEADER = TRUE AND NUMPROCESSES = 2;\n" % (keyspace, columns, exported))
    shell("COPY %s.copied2 %s TO '%s' WITH HEADER = TRUE AND NUMPROCESSES = 2;\n" % (keyspace, columns, again))
    with again.open(newline="") as file:
        assert sorted(csv.reader(file, **CSV)) == sorted(rows)


def test_the_founding_statements_as_typed(shell):
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    out = shell(
        """DROP KEYSPACE IF EXISTS uprofile;
CREATE KEYSPACE uprofile WITH replication = %s;
CREATE TABLE uprofile.user (
   id UUID PRIMARY KEY,
   user text,
   message text);
DROP TABLE uprofile.user;
CREATE TABLE uprofile.user (
   user text,
   id int,
   message text,
   PRIMARY KEY (user, id));
insert into uprofile.user (user, id, message) values ('theo', 1, 'hello');
insert into uprofile.user (user, id, message) values ('theo', 2, 'hello again');
SELECT * FROM uprofile.user WHERE user = 'theo';
DROP TABLE uprofile.user;
CREATE TABLE uprofile.user (
   firstname text,
   lastname text,
   id int,
   message text,
   PRIMARY KEY ((firstname, lastname), id) );
DROP KEYSPACE uprofile;
DROP KEYSPACE IF EXISTS cycling;
CREATE KEYSPACE cycling WITH replication = %s;
USE cycling;
CREATE TABLE rank_by_year_and_name (
race_year int,
race_name text,
cyclist_name text,
rank int,
PRIMARY KEY ((race_year, race_name), rank)
);
DROP TABLE rank_by_year_and_name;
CREATE TABLE cycling.rank_by_year_and_name (
race_year int,
race_name text,
cyclist_name text,
rank int,
PRIMARY KEY ((race_year, race_name), rank)
);
DROP KEYSPACE cycling;
""" % (replication, replication)
    ).out
    assert table_of(out) == (["user", "id", "message"], [["theo", "1", "hello"], ["theo", "2", "hello again"]])


def test_the_change_feed_is_followed_until_it_is_interrupted(shell, keyspace):
    if "tetrad" not in shell("DESCRIBE KEYSPACES;\n").out:
        pytest.skip("Tetrad only")
    insert = "INSERT INTO %s.followed (k, v) VALUES (%%d, 'value %%d');\n" % keyspace
    shell("CREATE TABLE %s.followed (k int PRIMARY KEY, v text) WITH cdc = true;\n" % keyspace + insert % (1, 1))
    process = shell.start("SELECT * FROM %s.followed WHERE COSMOS_CHANGEFEED_START_TIME() = '2020-01-01'" % keyspace)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        def sees(text):
            return any(text in line for line in process.stdout)

        assert sees("value 1")
        shell(insert % (2, 2))
        assert sees("value 2")
        process.send_signal(signal.SIGINT)
        process.wait()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
