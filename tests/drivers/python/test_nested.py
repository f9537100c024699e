# SPDX-License-Identifier: Apache-2.0
# User types, tuples, vectors and collections inside one another, and JSON, through the drivers' own classes.
import json
from collections import namedtuple

import pytest
from cassandra import InvalidRequest, ProtocolVersion
from cassandra.query import BatchStatement, BatchType
from cassandra.util import OrderedMapSerializedKey, SortedSet

Street = namedtuple("Street", "name number")
Address = namedtuple("Address", "street zip phones")


@pytest.fixture(scope="module")
def typed(session):
    keyspace = session.keyspace
    session.execute("CREATE TYPE street (name text, number int)")
    session.execute("CREATE TYPE address (street frozen<street>, zip text, phones frozen<map<text, frozen<list<text>>>>)")
    session.cluster.register_user_type(keyspace, "street", Street)
    session.cluster.register_user_type(keyspace, "address", Address)
    session.execute(
        "CREATE TABLE people (k int PRIMARY KEY, home frozen<address>, free address, all list<frozen<address>>, places map<frozen<street>, int>)"
    )
    return session


def home(number):
    return Address(Street("Main", number), "10115", {"work": ["1", "2"], "none": []})


def plain(value):
    """Drivers give collections of their own; what is compared is what they hold."""
    if isinstance(value, (OrderedMapSerializedKey, dict)):
        return {plain_key(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, SortedSet)):
        return [plain(each) for each in value]
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    return value


def plain_key(key):
    return tuple(key) if isinstance(key, (tuple, list)) else key


def test_user_types_inside_user_types_and_collections_come_back(typed):
    insert = typed.prepare("INSERT INTO people (k, home, free, all, places) VALUES (?, ?, ?, ?, ?)")
    typed.execute(insert, (1, home(1), home(2), [home(3), home(4)], {Street("Side", 9): 1}))
    row = typed.execute(typed.prepare("SELECT * FROM people WHERE k = ?"), (1,)).one()
    assert plain(row.home) == plain(home(1)) and row.home.street.number == 1
    assert plain(row.free) == plain(home(2))
    assert [plain(each) for each in row.all] == [plain(home(3)), plain(home(4))]
    assert plain(row.places) == {("Side", 9): 1}


def test_a_field_of_a_type_that_is_not_frozen_changes_alone(typed):
    typed.execute("INSERT INTO people (k, free) VALUES (2, {zip: '1', street: {name: 'a', number: 1}})")
    typed.execute(typed.prepare("UPDATE people SET free.zip = ? WHERE k = 2"), ("2",))
    typed.execute("UPDATE people SET free.phones = null WHERE k = 2")
    row = typed.execute("SELECT free, free.zip, free.street FROM people WHERE k = 2").one()
    assert row[0].street == Street("a", 1) and row[0].zip == "2" and row[0].phones is None
    assert row[1] == "2" and row[2] == Street("a", 1)
    with pytest.raises(InvalidRequest):
        typed.execute("UPDATE people SET home.zip = '3' WHERE k = 2")


def test_fields_left_out_are_null_and_a_type_grows(typed):
    typed.execute("CREATE TYPE growing (a int)")
    typed.execute("CREATE TABLE grown (k int PRIMARY KEY, v frozen<growing>)")
    typed.execute("INSERT INTO grown (k, v) VALUES (1, {a: 1})")
    typed.execute("ALTER TYPE growing ADD b text")
    typed.execute("INSERT INTO grown (k, v) VALUES (2, {b: 'new'})")
    rows = {row.k: tuple(row.v) for row in typed.execute("SELECT * FROM grown")}
    assert rows == {1: (1, None), 2: (None, "new")}
    typed.execute("ALTER TYPE growing RENAME a TO c")
    assert typed.execute("SELECT v.c FROM grown WHERE k = 1").one()[0] == 1


def test_the_metadata_shows_user_types(typed):
    types = typed.cluster.metadata.keyspaces[typed.keyspace].user_types
    assert types["address"].field_names == ["street", "zip", "phones"]
    assert "CREATE TYPE" in types["street"].as_cql_query()


def test_tuples_nest_and_hold_collections(session):
    session.execute("CREATE TABLE nested_tuples (k int PRIMARY KEY, t tuple<int, frozen<tuple<text, frozen<list<int>>>>, frozen<map<int, text>>>)")
    insert = session.prepare("INSERT INTO nested_tuples (k, t) VALUES (?, ?)")
    session.execute(insert, (1, (1, ("a", [1, 2]), {1: "x"})))
    session.execute(insert, (2, (None, (None, None), None)))
    rows = {row.k: row.t for row in session.execute("SELECT * FROM nested_tuples")}
    assert plain(rows[1]) == (1, ("a", [1, 2]), {1: "x"})
    assert rows[2][0] is None and rows[2][2] is None


def test_collections_nest_deeply(session):
    session.execute("CREATE TABLE deep (k int PRIMARY KEY, v map<text, frozen<list<frozen<map<int, frozen<set<text>>>>>>>)")
    value = {"a": [{1: {"x", "y"}}, {}], "b": []}
    session.execute(session.prepare("INSERT INTO deep (k, v) VALUES (1, ?)"), (value,))
    got = session.execute("SELECT v FROM deep WHERE k = 1").one().v
    assert {key: [{number: set(each) for number, each in part.items()} for part in parts] for key, parts in got.items()} == value
    assert session.execute("SELECT v['a'] FROM deep WHERE k = 1").one()[0] is not None


@pytest.mark.parametrize("element, values", [("float", [0.5, -1.0, 2.25]), ("int", [1, -2, 3]), ("text", ["a", "", "ccc"])])
def test_vectors_come_back(session, element, values):
    pytest.importorskip("cassandra.cqltypes").lookup_casstype  # every driver has it
    import cassandra.cqltypes as cqltypes

    if not hasattr(cqltypes, "VectorType"):
        pytest.skip("this driver does not know vectors")
    session.execute("CREATE TABLE vectors_%s (k int PRIMARY KEY, v vector<%s, 3>)" % (element, element))
    session.execute(session.prepare("INSERT INTO vectors_%s (k, v) VALUES (1, ?)" % element), (values,))
    assert list(session.execute("SELECT v FROM vectors_%s WHERE k = 1" % element).one().v) == values
    if element == "float":
        near = session.execute("SELECT similarity_cosine(v, [0.5, -1.0, 2.25]) FROM vectors_float WHERE k = 1").one()[0]
        assert abs(near - 1) < 1e-6
        with pytest.raises(InvalidRequest):
            session.execute("INSERT INTO vectors_float (k, v) VALUES (2, [1.0, 2.0])")


def test_json_in_and_out(typed):
    text = json.dumps({"k": 7, "home": {"street": {"name": "J", "number": 7}, "zip": "z", "phones": {"p": ["1"]}}, "all": []})
    typed.execute(typed.prepare("INSERT INTO people JSON ?"), (text,))
    out = json.loads(typed.execute("SELECT JSON k, home, all FROM people WHERE k = 7").one()[0])
    assert out["k"] == 7 and out["home"]["street"] == {"name": "J", "number": 7} and out["home"]["phones"] == {"p": ["1"]}
    typed.execute("INSERT INTO people JSON '{\"k\": 7}' DEFAULT UNSET")
    assert typed.execute("SELECT home FROM people WHERE k = 7").one().home is not None
    typed.execute("INSERT INTO people JSON '{\"k\": 7}'")
    assert typed.execute("SELECT home FROM people WHERE k = 7").one().home is None
    assert json.loads(typed.execute("SELECT to_json(places) FROM people WHERE k = 1").one()[0] or "{}") is not None


@pytest.mark.parametrize("version", [ProtocolVersion.V3, ProtocolVersion.V4, ProtocolVersion.V5])
def test_every_version_carries_nested_types(connector, typed, version):
    session = connector.session(typed.keyspace, protocol_version=version)
    session.cluster.register_user_type(typed.keyspace, "street", Street)
    session.cluster.register_user_type(typed.keyspace, "address", Address)
    key = 100 + version
    session.execute(session.prepare("INSERT INTO people (k, home) VALUES (?, ?)"), (key, home(version)))
    assert plain(session.execute("SELECT home FROM people WHERE k = %d" % key).one().home) == plain(home(version))


def test_a_custom_payload_is_taken_and_warnings_come_with_the_answer(typed):
    payload = {"a": b"b", "empty": b"", "binary": bytes(range(256))}
    assert typed.execute("SELECT key FROM system.local", custom_payload=payload).one().key == "local"
    prepared = typed.prepare("SELECT key FROM system.local WHERE key = ?", custom_payload=payload)
    assert typed.execute(prepared, ("local",), custom_payload=payload).one().key == "local"
    typed.execute("CREATE TABLE warned (k int PRIMARY KEY, v text)")
    insert = typed.prepare("INSERT INTO warned (k, v) VALUES (?, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for k in range(12):
        batch.add(insert, (k, "x" * 600))
    future = typed.execute_async(batch, custom_payload=payload)
    future.result()
    assert any("exceeding specified threshold" in text for text in future.warnings)
    assert any("Unlogged batch covering 12 partitions" in text for text in future.warnings)
