# SPDX-License-Identifier: Apache-2.0
# Conditional statements: what was_applied says, what is shown of rows that do not fit, and that of many writers one wins.
from concurrent.futures import ThreadPoolExecutor

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, WriteTimeout
from cassandra.protocol import ErrorMessage
from cassandra.query import BatchStatement, BatchType, SimpleStatement

CAS_WRITE_UNKNOWN = 0x1700  # the driver has no class for it


@pytest.fixture(scope="module")
def accounts(session):
    session.execute("CREATE TABLE accounts (id int, part text, total int static, amount int, PRIMARY KEY (id, part))")
    return session


@pytest.mark.parametrize("version", [3, 4, 5])
def test_applied_or_the_row_that_is_in_the_way(connector, accounts, version):
    client = connector.session(accounts.keyspace, protocol_version=version)
    insert = "INSERT INTO accounts (id, part, amount) VALUES (%d, 'a', 10) IF NOT EXISTS" % version
    first = client.execute(insert)
    assert first.was_applied and first.column_names == ["[applied]"]
    second = client.execute(insert)
    assert not second.was_applied
    assert second.column_names == ["[applied]", "id", "part", "total", "amount"]
    assert tuple(second.one()) == (False, version, "a", None, 10)

    update = client.prepare("UPDATE accounts SET amount = ? WHERE id = ? AND part = ? IF amount = ?")
    for _ in range(2):  # each answer has metadata of its own
        refused = client.execute(update, (11, version, "a", 9))
        assert not refused.was_applied and tuple(refused.one()) == (False, 10)
    assert client.execute(update, (11, version, "a", 10)).was_applied
    missing = client.execute(update, (11, version, "nobody", 10))
    assert not missing.was_applied and missing.column_names == ["[applied]"]

    delete = client.prepare("DELETE FROM accounts WHERE id = ? AND part = ? IF EXISTS")
    assert client.execute(delete, (version, "a")).was_applied
    assert not client.execute(delete, (version, "a")).was_applied


def test_a_batch_is_applied_as_a_whole_or_not(connector, accounts):
    client = connector.session(accounts.keyspace)
    client.execute("INSERT INTO accounts (id, part, total, amount) VALUES (20, 'a', 30, 10)")
    client.execute("INSERT INTO accounts (id, part, amount) VALUES (20, 'b', 20)")
    update = client.prepare("UPDATE accounts SET amount = ? WHERE id = 20 AND part = ? IF amount = ?")
    total = client.prepare("UPDATE accounts SET total = ? WHERE id = 20")

    def move(old_b):
        batch = BatchStatement(BatchType.UNLOGGED)
        batch.add(update, (5, "a", 10))
        batch.add(update, (25, "b", old_b))
        batch.add(total, (31,))
        return client.execute(batch)

    refused = move(19)
    assert not refused.was_applied
    assert refused.column_names == ["[applied]", "id", "part", "amount"]
    assert [tuple(row) for row in refused] == [(False, 20, "a", 10), (False, 20, "b", 20)]
    assert move(20).was_applied
    rows = client.execute("SELECT part, total, amount FROM accounts WHERE id = 20").all()
    assert [tuple(row) for row in rows] == [("a", 31, 5), ("b", 31, 25)]


@pytest.mark.parametrize(
    "statement,words",
    [
        ("UPDATE accounts USING TIMESTAMP 5 SET amount = 1 WHERE id = 1 AND part = 'a' IF amount = 1", "custom timestamp for conditional update"),
        ("UPDATE accounts SET amount = 1 WHERE id IN (1, 2) AND part = 'a' IF amount = 1", "IN on the partition key is not supported"),
        ("DELETE FROM accounts WHERE id = 1 IF EXISTS", "must restrict all PRIMARY KEY columns"),
        ("UPDATE accounts SET amount = 1 WHERE id = 1 AND part = 'a' IF id = 1", "cannot have IF conditions"),
        (
            "BEGIN BATCH UPDATE accounts SET total = 1 WHERE id = 1 IF total = 1; UPDATE accounts SET total = 1 WHERE id = 2; APPLY BATCH",
            "Batch with conditions cannot span multiple partitions",
        ),
    ],
)
def test_what_is_refused(accounts, statement, words):
    with pytest.raises(InvalidRequest) as refused:
        accounts.execute(statement)
    assert words in str(refused.value)


def test_levels(accounts):
    for serial in (ConsistencyLevel.SERIAL, ConsistencyLevel.LOCAL_SERIAL):
        statement = SimpleStatement("INSERT INTO accounts (id, part) VALUES (30, 'a') IF NOT EXISTS", serial_consistency_level=serial)
        assert accounts.execute(statement).was_applied == (serial == ConsistencyLevel.SERIAL)
        read = SimpleStatement("SELECT part FROM accounts WHERE id = 30", consistency_level=serial)
        assert accounts.execute(read).one().part == "a"
    commit = SimpleStatement("INSERT INTO accounts (id, part) VALUES (31, 'a') IF NOT EXISTS", consistency_level=ConsistencyLevel.SERIAL)
    with pytest.raises(InvalidRequest, match="not supported as conditional update commit consistency"):
        accounts.execute(commit)


def test_of_many_writers_one_wins(accounts):
    """Four count up one number by comparing and setting it, through all nodes."""
    accounts.execute("INSERT INTO accounts (id, part, amount) VALUES (40, 'n', 0)")
    read = accounts.prepare("SELECT amount FROM accounts WHERE id = 40 AND part = 'n'")
    read.consistency_level = ConsistencyLevel.SERIAL
    update = accounts.prepare("UPDATE accounts SET amount = ? WHERE id = 40 AND part = 'n' IF amount = ?")

    def count_up(times):
        certain = unknown = 0
        while certain + unknown < times:
            seen = accounts.execute(read).one().amount
            try:
                certain += accounts.execute(update, (seen + 1, seen)).was_applied
            except (WriteTimeout, ErrorMessage) as error:
                if isinstance(error, ErrorMessage) and error.code != CAS_WRITE_UNKNOWN:
                    raise
                unknown += 1
        return certain, unknown

    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(count_up, [10] * 4))
    certain, unknown = (sum(counts) for counts in zip(*ended))
    assert certain <= accounts.execute(read).one().amount <= certain + unknown == 40
