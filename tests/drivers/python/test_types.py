# SPDX-License-Identifier: Apache-2.0
# Every type, its edges, its order as a clustering key, null, unset and empty values.
import datetime
import decimal
import ipaddress
import math
import uuid

import pytest
from cassandra import InvalidRequest
from cassandra.query import UNSET_VALUE
from cassandra.util import Date, Duration, OrderedMapSerializedKey, SortedSet, Time

D = decimal.Decimal
SCALARS = {
    "ascii": ["", "plain", "~" * 300],
    "bigint": [0, 1, -1, 2**63 - 1, -(2**63)],
    "blob": [b"", b"\x00", bytes(range(256)), b"\xff" * 5000],
    "boolean": [True, False],
    "date": [Date(0), Date(datetime.date(2024, 2, 29)), Date(datetime.date(1, 1, 1)), Date(2**31 - 1), Date(-(2**31))],
    "decimal": [D("0"), D("1.10"), D("-0.000001"), D("1E+20"), D("123456789012345678901234567890.123456789")],
    "double": [0.0, 1.5, -1e308, 5e-324, math.inf, -math.inf],
    "duration": [Duration(0, 0, 0), Duration(1, 2, 3), Duration(-1, -2, -3), Duration(2**31 - 1, 2**31 - 1, 2**63 - 1)],
    "float": [0.0, 1.5, -2.5, math.inf, -math.inf],
    "inet": ["127.0.0.1", "255.255.255.255", "::1", "2001:db8::ff00:42:8329"],
    "int": [0, 1, -1, 2**31 - 1, -(2**31)],
    "smallint": [0, 1, -1, 2**15 - 1, -(2**15)],
    "text": ["", "plain", "naïve 漢字 😀", "\x00 in the middle\x00", "x" * 70000],
    "time": [Time(0), Time(1), Time(86399999999999)],
    "timestamp": [
        datetime.datetime(1970, 1, 1),
        datetime.datetime(2024, 2, 29, 12, 34, 56, 789000),
        datetime.datetime(1900, 1, 1),
        datetime.datetime(2200, 12, 31, 23, 59, 59, 999000),
    ],
    "timeuuid": [uuid.UUID("00000000-0000-1000-8000-000000000000"), uuid.UUID("d2177dd0-eaa2-11de-a572-001b779c76e3")],
    "tinyint": [0, 1, -1, 127, -128],
    "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")],
    "varchar": ["", "same as text"],
    "varint": [0, 1, -1, 127, 128, -128, -129, 2**200, -(2**200)],
}


def as_read(cql_type, value):
    return str(ipaddress.ip_address(value)) if cql_type == "inet" else value


@pytest.mark.parametrize("cql_type", sorted(SCALARS))
def test_values_come_back_as_they_went_in(session, cql_type):
    session.execute("CREATE TABLE rt_%s (k int PRIMARY KEY, v %s)" % (cql_type, cql_type))
    insert = session.prepare("INSERT INTO rt_%s (k, v) VALUES (?, ?)" % cql_type)
    select = session.prepare("SELECT v FROM rt_%s WHERE k = ?" % cql_type)
    values = [None] + SCALARS[cql_type]
    for key, value in enumerate(values):
        session.execute(insert, (key, value))
    for key, value in enumerate(values):
        read = session.execute(select, (key,)).one().v
        assert read == (None if value is None else as_read(cql_type, value))
        if cql_type == "decimal" and value is not None:
            assert str(read) == str(value)  # the scale is kept


@pytest.mark.parametrize("cql_type", sorted(set(SCALARS) - {"duration"}))
def test_any_type_is_a_partition_key(session, cql_type):
    session.execute("CREATE TABLE pk_%s (k %s PRIMARY KEY, v int)" % (cql_type, cql_type))
    insert = session.prepare("INSERT INTO pk_%s (k, v) VALUES (?, ?)" % cql_type)
    select = session.prepare("SELECT k, v FROM pk_%s WHERE k = ?" % cql_type)
    values = [value for value in SCALARS[cql_type] if value not in ("", b"") and value != "x" * 70000]
    for number, value in enumerate(values):
        session.execute(insert, (value, number))
    for number, value in enumerate(values):
        assert tuple(session.execute(select, (value,)).one()) == (as_read(cql_type, value), number)
    assert len(list(session.execute("SELECT * FROM pk_%s" % cql_type))) == len(values)


ORDERS = {
    "ascii": ["", "A", "B", "a", "aa", "b"],
    "bigint": [-(2**63), -1, 0, 1, 2**63 - 1],
    "blob": [b"", b"\x00", b"\x00\x00", b"\x00\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff"],
    "boolean": [False, True],
    "date": [Date(-(2**31)), Date(-1), Date(0), Date(1), Date(2**31 - 1)],
    "decimal": [D("-1E+30"), D("-2"), D("-1.5"), D("-0.01"), D("0"), D("0.001"), D("0.01"), D("1"), D("1.5"), D("15"), D("1E+30")],
    "double": [-math.inf, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e300, math.inf],
    "float": [-math.inf, -1.5, 0.0, 1.5, math.inf],
    "inet": ["0.0.0.0", "9.255.255.255", "10.0.0.1", "127.0.0.1", "128.0.0.1"],
    "int": [-(2**31), -256, -1, 0, 1, 255, 256, 2**31 - 1],
    "smallint": [-(2**15), -1, 0, 1, 2**15 - 1],
    "text": ["", "\x00", "\x00a", "A", "a", "a\x00", "a\x00b", "ab", "b", "ü", "漢"],
    "time": [Time(0), Time(1), Time(86399999999999)],
    "timestamp": [datetime.datetime(1900, 1, 1), datetime.datetime(1970, 1, 1), datetime.datetime(2024, 1, 1)],
    "timeuuid": [
        uuid.UUID("00000000-0000-1000-8000-000000000000"),
        uuid.UUID("ffffffff-0000-1000-8000-000000000000"),
        uuid.UUID("00000000-0001-1000-8000-000000000000"),
        uuid.UUID("00000000-0000-1001-8000-000000000000"),
    ],
    "tinyint": [-128, -1, 0, 1, 127],
    "uuid": [
        uuid.UUID("00000000-0000-1000-8000-000000000000"),
        uuid.UUID("00000000-0000-4000-8000-000000000000"),
        uuid.UUID("7fffffff-0000-4000-8000-000000000000"),
        uuid.UUID("80000000-0000-4000-8000-000000000000"),
    ],
    "varint": [-(2**200), -(2**64), -129, -128, -1, 0, 1, 127, 128, 255, 256, 2**64, 2**200],
}


@pytest.mark.parametrize("order", ["ASC", "DESC"])
@pytest.mark.parametrize("cql_type", sorted(ORDERS))
def test_rows_come_in_the_order_of_their_type(session, cql_type, order):
    table = "ord_%s_%s" % (cql_type, order.lower())
    session.execute(
        "CREATE TABLE %s (k int, c %s, v int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c %s)" % (table, cql_type, order)
    )
    insert = session.prepare("INSERT INTO %s (k, c, v) VALUES (1, ?, ?)" % table)
    values = ORDERS[cql_type]
    for number in sorted(range(len(values)), key=lambda n: n * 7919 % 31):
        session.execute(insert, (values[number], number))
    ascending = list(range(len(values)))
    read = [row.v for row in session.execute("SELECT v FROM %s WHERE k = 1" % table)]
    assert read == (ascending if order == "ASC" else ascending[::-1])
    read = [row.v for row in session.execute("SELECT v FROM %s WHERE k = 1 ORDER BY c ASC" % table)]
    assert read == ascending
    middle = len(values) // 2
    above = session.prepare("SELECT v FROM %s WHERE k = 1 AND c > ? ORDER BY c DESC" % table)
    assert [row.v for row in session.execute(above, (values[middle],))] == ascending[:middle:-1]
    upto = session.prepare("SELECT v FROM %s WHERE k = 1 AND c <= ? ORDER BY c ASC" % table)
    assert [row.v for row in session.execute(upto, (values[middle],))] == ascending[: middle + 1]


def test_collections_tuples_and_nesting_come_back(session):
    session.execute(
        "CREATE TABLE collections (k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>,"
        " fl frozen<list<text>>, fs frozen<set<int>>, fm frozen<map<int, text>>, t tuple<int, text, boolean>,"
        " n map<int, frozen<list<frozen<set<text>>>>>, ft frozen<tuple<int, frozen<map<text, frozen<tuple<int, int>>>>>>)"
    )
    insert = session.prepare("INSERT INTO collections (k, l, s, m, fl, fs, fm, t, n, ft) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    row = (
        1, [3, 1, 2, 1], {"b", "a", "é"}, {"x": 1, "": 2}, ["z", "", "a"], {3, -1, 2}, {2: "two", -1: "minus"},
        (1, "text", None), {1: [{"a", "b"}, set()]}, (5, {"a": (1, 2)}),
    )
    session.execute(insert, row)
    read = session.execute("SELECT * FROM collections WHERE k = 1").one()
    assert read.l == row[1] and read.fl == row[4] and read.t == row[7]
    assert list(read.s) == ["a", "b", "é"] and list(read.fs) == [-1, 2, 3]
    assert dict(read.m) == row[3] and list(read.fm.items()) == [(-1, "minus"), (2, "two")]
    assert [set(x) for x in read.n[1]] == row[8][1] and read.ft[0] == 5 and dict(read.ft[1]) == {"a": (1, 2)}
    session.execute(insert, (2, [], set(), {}, [], set(), {}, (None, None, None), {}, None))
    read = session.execute("SELECT * FROM collections WHERE k = 2").one()
    assert read.l is None and read.s is None and read.m is None and read.n is None  # empty non-frozen is null
    assert read.fl == [] and read.fs == SortedSet() and read.fm == OrderedMapSerializedKey(None, 5) or read.fm == {}


def test_collection_elements_change_in_place(session):
    session.execute("CREATE TABLE elements (k int PRIMARY KEY, l list<int>, s set<int>, m map<text, int>)")
    session.execute("INSERT INTO elements (k, l, s, m) VALUES (1, [2, 3], {1, 2}, {'a': 1})")
    for statement in (
        "UPDATE elements SET l = l + [4], s = s + {3}, m = m + {'b': 2} WHERE k = 1",
        "UPDATE elements SET l = [1] + l, s = s - {1}, m['c'] = 3 WHERE k = 1",
        "UPDATE elements SET l[1] = 20, m = m - {'a'} WHERE k = 1",
        "DELETE l[2], m['b'] FROM elements WHERE k = 1",
        "UPDATE elements SET l = l - [4] WHERE k = 1",
    ):
        session.execute(statement)
    row = session.execute("SELECT l, s, m FROM elements WHERE k = 1").one()
    assert (row.l, set(row.s), dict(row.m)) == ([1, 20], {2, 3}, {"c": 3})
    with pytest.raises(InvalidRequest, match="List index 7 out of bound, list has size 2"):
        session.execute("UPDATE elements SET l[7] = 1 WHERE k = 1")


def test_unset_leaves_a_column_and_null_removes_it(session):
    session.execute("CREATE TABLE unset (k int PRIMARY KEY, a int, b int, c list<int>)")
    session.execute("INSERT INTO unset (k, a, b, c) VALUES (1, 10, 20, [1])")
    update = session.prepare("INSERT INTO unset (k, a, b, c) VALUES (?, ?, ?, ?)")
    session.execute(update, (1, UNSET_VALUE, None, UNSET_VALUE))
    assert tuple(session.execute("SELECT a, b, c FROM unset").one()) == (10, None, [1])
    session.execute(update, (1, 11))  # missing ones are unset too
    assert tuple(session.execute("SELECT a, b, c FROM unset").one()) == (11, None, [1])
    session.execute("CREATE TABLE unset_key (k int, c int, v int, PRIMARY KEY (k, c))")
    update = session.prepare("INSERT INTO unset_key (k, c, v) VALUES (?, ?, ?)")
    with pytest.raises(InvalidRequest, match="Invalid unset value for column c"):
        session.execute(update, (1, UNSET_VALUE, 1))
    with pytest.raises(InvalidRequest, match="Invalid null value in condition for column c"):
        session.execute(update, (1, None, 1))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_every_protocol_version_carries_every_type(connector, session, version):
    columns = sorted(set(SCALARS) - {"varchar"})
    table = "versions_%d" % version
    session.execute(
        "CREATE TABLE %s (k int PRIMARY KEY, %s, l list<frozen<tuple<int, text>>>, m map<text, time>)"
        % (table, ", ".join("c_%s %s" % (name, name) for name in columns))
    )
    client = connector.session(session.keyspace, protocol_version=version, compression="lz4")
    names = ["k"] + ["c_" + name for name in columns] + ["l", "m"]
    insert = client.prepare(
        "INSERT INTO %s (%s) VALUES (%s)" % (table, ", ".join(names), ", ".join("?" for _ in names))
    )
    values = [1] + [SCALARS[name][1] for name in columns] + [[(1, "a"), (2, None)], {"noon": Time(43200 * 10**9)}]
    client.execute(insert, values)
    row = client.execute("SELECT %s FROM %s" % (", ".join(names), table)).one()
    for name, value in zip(columns, values[1:]):
        assert getattr(row, "c_" + name) == as_read(name, value)
    assert row.l == values[-2] and dict(row.m) == values[-1]


def test_tuples_are_clustering_keys_and_sort_field_by_field(session):
    session.execute("CREATE TABLE by_tuple (k int, c frozen<tuple<int, text>>, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO by_tuple (k, c) VALUES (1, ?)")
    values = [(-1, "z"), (0, "a"), (0, "b"), (1, ""), (1, "a")]
    for value in reversed(values):
        session.execute(insert, (value,))
    assert [row.c for row in session.execute("SELECT c FROM by_tuple WHERE k = 1")] == values
