# SPDX-License-Identifier: Apache-2.0
# Models of cqlengine, the object mapper of the Python driver: tables out of classes, and what programs do with them.
import datetime
import os
import threading
import time
import uuid

os.environ["CQLENG_ALLOW_SCHEMA_MANAGEMENT"] = "1"

import pytest
from cassandra.cqlengine import columns, connection, functions, management
from cassandra.cqlengine.models import Model
from cassandra.cqlengine.query import BatchQuery, BatchType, ContextQuery, LWTException
from cassandra.cqlengine.usertype import UserType

HOSTS = os.environ.get("TETRAD_TEST_HOSTS", "127.0.0.1").split(",")
KEYSPACE = "cqlengine_models"


class Address(UserType):
    street = columns.Text()
    number = columns.Integer()


class Person(Model):
    id = columns.UUID(primary_key=True, default=uuid.uuid4)
    name = columns.Text(required=True)
    born = columns.Date()
    tags = columns.Set(columns.Text())
    notes = columns.List(columns.Text())
    scores = columns.Map(columns.Text(), columns.Integer())
    address = columns.UserDefinedType(Address)


class Event(Model):
    device = columns.Text(partition_key=True)
    day = columns.Integer(partition_key=True)
    at = columns.TimeUUID(primary_key=True, clustering_order="DESC")
    kind = columns.Text()
    owner = columns.Text(static=True)


class Visits(Model):
    page = columns.Text(primary_key=True)
    count = columns.Counter()


class Lease(Model):
    name = columns.Text(primary_key=True)
    holder = columns.Text()
    term = columns.Integer()


@pytest.fixture(scope="module", autouse=True)
def tables():
    connection.setup(HOSTS, "system", retry_connect=True)
    management.drop_keyspace(KEYSPACE)
    management.create_keyspace_simple(KEYSPACE, 3)
    for model in (Person, Event, Visits, Lease):
        model.__keyspace__ = KEYSPACE
        management.sync_table(model)
    yield
    management.drop_keyspace(KEYSPACE)
    connection.unregister_connection("default")


@pytest.fixture(autouse=True)
def empty(tables):
    for model in (Person, Event, Visits, Lease):
        connection.execute(f"TRUNCATE {model.column_family_name()}")


def test_a_row_with_all_kinds_of_values_comes_back():
    ada = Person.create(
        name="Ada",
        born=datetime.date(1815, 12, 10),
        tags={"maths", "engines"},
        notes=["first", "second"],
        scores={"a": 1},
        address=Address(street="St James's Square", number=12),
    )
    read = Person.get(id=ada.id)
    assert (read.name, read.tags, read.notes, read.scores) == ("Ada", {"maths", "engines"}, ["first", "second"], {"a": 1})
    assert (read.born.date(), read.address.number) == (datetime.date(1815, 12, 10), 12)


def test_changes_of_collections_are_sent_as_differences():
    ada = Person.create(name="Ada", tags={"a"}, notes=["n"], scores={"x": 1})
    ada.tags.add("b")
    ada.notes.append("m")
    ada.scores["y"] = 2
    ada.save()
    Person.objects(id=ada.id).update(tags__remove={"a"}, notes__prepend=["l"], scores__update={"x": 3})
    read = Person.get(id=ada.id)
    assert (read.tags, read.notes, read.scores) == ({"b"}, ["l", "n", "m"], {"x": 3, "y": 2})


def test_null_deletes_a_value():
    ada = Person.create(name="Ada", tags={"a"})
    ada.update(tags=None)
    assert Person.get(id=ada.id).tags == set()


def test_slices_limits_and_counts():
    ids = []
    for second in range(30):
        at = uuid.uuid1(clock_seq=second)
        ids.append(at)
        Event.create(device="d", day=1, at=at, kind=str(second % 3), owner="ada")
    query = Event.objects(device="d", day=1)
    assert query.count() == 30
    assert [event.at for event in query] == sorted(ids, key=lambda i: i.time, reverse=True)
    assert [event.at for event in query.order_by("at").limit(3)] == sorted(ids, key=lambda i: i.time)[:3]
    assert len(list(query.filter(at__lte=ids[9]))) == 10
    # A query keeps its count, and copies of it do.
    assert Event.objects(device="d", day=1).filter(kind="1").allow_filtering().count() == 10
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    assert list(query.filter(at__lt=functions.MinTimeUUID(now - datetime.timedelta(hours=1)))) == []
    assert query.first().owner == "ada"
    assert sorted(query.values_list("kind", flat=True)) == sorted(str(second % 3) for second in range(30))


def test_pages_are_read_to_the_end():
    with BatchQuery(batch_type=BatchType.Unlogged) as batch:
        for number in range(300):
            Event.batch(batch).create(device="p", day=2, at=uuid.uuid1(clock_seq=number % 1000), kind="k")
    assert len(list(Event.objects(device="p", day=2).fetch_size(17).limit(None))) == 300


def test_counters_add_and_subtract():
    Visits.create(page="home")
    home = Visits.get(page="home")
    home.count += 5
    home.save()
    home.count -= 2
    home.save()
    assert Visits.get(page="home").count == 3


def test_counters_of_threads_add_up():
    def visit():
        for _ in range(20):
            connection.execute(f"UPDATE {Visits.column_family_name()} SET count = count + 1 WHERE page = 'busy'")

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Visits.get(page="busy").count == 80


def test_a_lease_is_taken_once_and_handed_on():
    Lease.if_not_exists().create(name="leader", holder="a", term=1)
    with pytest.raises(LWTException) as refused:
        Lease.if_not_exists().create(name="leader", holder="b", term=1)
    assert refused.value.existing["holder"] == "a"
    with pytest.raises(LWTException):
        Lease.objects(name="leader").iff(holder="b").update(holder="c")
    Lease.objects(name="leader").iff(holder="a", term=1).update(holder="b", term=2)
    assert Lease.get(name="leader").holder == "b"
    with pytest.raises(LWTException):
        Lease.objects(name="leader").iff(holder="a").delete()
    Lease.objects(name="leader").if_exists().delete()
    with pytest.raises(LWTException):
        Lease.objects(name="leader").if_exists().update(holder="z")


def test_conditional_batches_are_all_or_nothing():
    Lease.create(name="one", holder="a", term=1)
    with pytest.raises(LWTException):
        with BatchQuery() as batch:
            Lease.objects(name="one").batch(batch).iff(term=2).update(holder="b")
    with BatchQuery() as batch:
        Lease.objects(name="one").batch(batch).iff(term=1).update(holder="b")
    assert Lease.get(name="one").holder == "b"


def test_a_logged_batch_over_tables():
    who = uuid.uuid4()
    with BatchQuery() as batch:
        Person.batch(batch).create(id=who, name="Grace")
        Lease.batch(batch).create(name="grace", holder=str(who), term=1)
    assert Person.get(id=who).name == "Grace"
    assert Lease.get(name="grace").holder == str(who)


def test_timestamps_and_times_to_live():
    Person.ttl(1).create(id=uuid.UUID(int=1), name="short")
    Person.timestamp(datetime.timedelta(seconds=-100)).create(id=uuid.UUID(int=2), name="old")
    Person.timestamp(datetime.timedelta(seconds=-200)).create(id=uuid.UUID(int=2), name="older")
    assert Person.get(id=uuid.UUID(int=2)).name == "old"
    time.sleep(2.1)
    assert Person.objects(id=uuid.UUID(int=1)).first() is None


def test_in_and_token_queries():
    ids = [uuid.uuid4() for _ in range(20)]
    for one in ids:
        Person.create(id=one, name="n")
    assert {person.id for person in Person.objects(id__in=ids)} == set(ids)
    seen, last = set(), None
    while True:
        query = Person.objects.limit(7)
        page = list(query.filter(pk__token__gt=functions.Token(last)) if last else query)
        if not page:
            break
        seen |= {person.id for person in page}
        last = page[-1].pk
    assert seen == set(ids)


def test_a_model_that_has_grown_adds_its_column():
    class Grown(Model):
        __table_name__ = "lease"
        __keyspace__ = KEYSPACE
        name = columns.Text(primary_key=True)
        holder = columns.Text()
        term = columns.Integer()
        since = columns.DateTime()

    management.sync_table(Grown)
    Grown.create(name="g", since=datetime.datetime(2026, 1, 1))
    assert Grown.get(name="g").since == datetime.datetime(2026, 1, 1)
    with ContextQuery(Grown, keyspace=KEYSPACE) as model:
        assert model.objects(name="g").count() == 1
