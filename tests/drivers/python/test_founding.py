# SPDX-License-Identifier: Apache-2.0
# The statements of the documents Tetrad was founded on: simple, compound and composite primary keys
# (partitioning in Azure Cosmos DB for Apache Cassandra) and composite partition keys (DataStax).
import uuid

import pytest
from cassandra import InvalidRequest, ReadFailure
from conftest import replication_of, wait_until


@pytest.fixture
def founding(session):
    previous = session.keyspace
    for keyspace in ("uprofile", "cycling"):
        session.execute("DROP KEYSPACE IF EXISTS %s" % keyspace, timeout=60)
        session.execute("CREATE KEYSPACE %s WITH replication = %s" % (keyspace, replication_of(session)))
    yield session
    session.set_keyspace(previous)
    for keyspace in ("uprofile", "cycling"):
        session.execute("DROP KEYSPACE IF EXISTS %s" % keyspace, timeout=60)


def keys_of(session, keyspace, table):
    session.cluster.refresh_table_metadata(keyspace, table)
    meta = session.cluster.metadata.keyspaces[keyspace].tables[table]
    return [c.name for c in meta.partition_key], [c.name for c in meta.clustering_key]


def rows_of(session, statement):
    """None while an index is not built."""
    try:
        return list(session.execute(statement))
    except ReadFailure:
        return None


def test_simple_primary_key(founding):
    founding.execute("""CREATE TABLE uprofile.user (
   id UUID PRIMARY KEY,
   user text,
   message text);""")
    assert keys_of(founding, "uprofile", "user") == (["id"], [])
    ids = [uuid.uuid4() for _ in range(10)]
    for number, user_id in enumerate(ids):
        founding.execute("INSERT INTO uprofile.user (id, user, message) VALUES (%s, %s, 'hello')", (user_id, "u%d" % number))
    assert founding.execute("SELECT user FROM uprofile.user WHERE id = %s", (ids[3],)).one().user == "u3"
    assert len(list(founding.execute("SELECT * FROM uprofile.user"))) == 10


def test_compound_primary_key_and_the_rows_of_theo_in_order(founding):
    founding.execute("""CREATE TABLE uprofile.user (
   user text,
   id int,
   message text,
   PRIMARY KEY (user, id));""")
    assert keys_of(founding, "uprofile", "user") == (["user"], ["id"])
    founding.execute("insert into uprofile.user (user, id, message) values ('theo', 2, 'hello again');")
    founding.execute("insert into uprofile.user (user, id, message) values ('theo', 1, 'hello');")
    rows = [tuple(row) for row in founding.execute("SELECT user, id, message FROM uprofile.user WHERE user = 'theo'")]
    assert rows == [("theo", 1, "hello"), ("theo", 2, "hello again")]


def test_composite_primary_key(founding):
    founding.execute("""CREATE TABLE uprofile.user (
   firstname text,
   lastname text,
   id int,
   message text,
   PRIMARY KEY ((firstname, lastname), id) );""")
    assert keys_of(founding, "uprofile", "user") == (["firstname", "lastname"], ["id"])
    for number in (3, 1, 2):
        founding.execute(
            "INSERT INTO uprofile.user (firstname, lastname, id, message) VALUES ('theo', 'v', %s, 'hello')", (number,)
        )
    rows = founding.execute("SELECT id FROM uprofile.user WHERE firstname = 'theo' AND lastname = 'v'")
    assert [row.id for row in rows] == [1, 2, 3]


def test_composite_partition_key_with_use(founding):
    founding.execute("USE cycling;")
    founding.execute("""CREATE TABLE rank_by_year_and_name (
race_year int,
race_name text,
cyclist_name text,
rank int,
PRIMARY KEY ((race_year, race_name), rank)
);""")
    assert keys_of(founding, "cycling", "rank_by_year_and_name") == (["race_year", "race_name"], ["rank"])


def test_composite_partition_key_with_the_keyspace_named(founding):
    founding.execute("""CREATE TABLE cycling.rank_by_year_and_name (
race_year int,
race_name text,
cyclist_name text,
rank int,
PRIMARY KEY ((race_year, race_name), rank)
);""")
    race = "Tour of Japan - Stage 4 - Minami > Shinshu"
    for rank, name in ((2, "Daniel MARTIN"), (1, "Benjamin PRADES"), (3, "Johan Esteban CHAVES")):
        founding.execute(
            "INSERT INTO cycling.rank_by_year_and_name (race_year, race_name, cyclist_name, rank) VALUES (2015, %s, %s, %s)",
            (race, name, rank),
        )
    rows = founding.execute(
        "SELECT cyclist_name FROM cycling.rank_by_year_and_name WHERE race_year = 2015 AND race_name = %s", (race,)
    )
    assert [row.cyclist_name for row in rows] == ["Benjamin PRADES", "Daniel MARTIN", "Johan Esteban CHAVES"]
    # A part of the partition key is enough where it has an index.
    by_year = "SELECT cyclist_name FROM cycling.rank_by_year_and_name WHERE race_year = 2015"
    with pytest.raises(InvalidRequest, match="ALLOW FILTERING"):
        founding.execute(by_year)
    founding.execute("CREATE INDEX ryear ON cycling.rank_by_year_and_name (race_year)")
    wait_until(lambda: rows_of(founding, by_year) is not None, 30, "the index is built")
    assert len(rows_of(founding, by_year)) == 3
