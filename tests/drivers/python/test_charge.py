# SPDX-License-Identifier: Apache-2.0
# What a request costs, told in the custom payload, and the warning of ALLOW FILTERING. Tetrad's own.
import struct

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import BatchStatement, BatchType, SimpleStatement

ASKED = {"RequestCharge": b""}
KIB = "x" * 1024


@pytest.fixture(scope="module")
def charged(tetrad):
    tetrad.execute("CREATE TABLE charged (k int, c int, v text, PRIMARY KEY (k, c)) WITH tetrad_initial_partitions = 1")
    insert = tetrad.prepare("INSERT INTO charged (k, c, v) VALUES (?, ?, ?)")
    for future in [tetrad.execute_async(insert, (k, c, KIB)) for k in range(4) for c in range(10)]:
        future.result()
    return tetrad


def ask(session, statement, level=ConsistencyLevel.ONE, payload=ASKED, values=None, page=5000):
    """The charge, None without one; and the warnings."""
    if isinstance(statement, str):
        statement = SimpleStatement(statement, consistency_level=level, fetch_size=page)
    else:
        statement.consistency_level = level
    future = session.execute_async(statement, values, custom_payload=payload)
    future.result()
    told = future.custom_payload
    if told is None:
        return None, future.warnings
    assert list(told) == ["RequestCharge"] and len(told["RequestCharge"]) == 8
    return struct.unpack(">d", told["RequestCharge"])[0], future.warnings


@pytest.mark.parametrize("level, factor", [("ONE", 1), ("LOCAL_ONE", 1), ("LOCAL_QUORUM", 2), ("QUORUM", 2), ("ALL", 2)])
def test_the_charge_follows_the_level_and_repeats_itself(charged, level, factor):
    level = ConsistencyLevel.name_to_value[level]
    for _ in range(2):
        assert ask(charged, "SELECT * FROM charged WHERE k = 1 AND c = 1", level)[0] == factor
        assert ask(charged, "SELECT * FROM charged WHERE k = 1", level)[0] == 10 * factor
        assert ask(charged, "SELECT * FROM charged", level)[0] == 40 * factor
        assert ask(charged, "SELECT count(*) FROM charged", level)[0] == 40 * factor
        assert ask(charged, "INSERT INTO charged (k, c, v) VALUES (1, 1, '%s')" % KIB, level)[0] == 5


def test_only_who_asks_is_told(charged):
    assert ask(charged, "SELECT * FROM charged WHERE k = 1", payload=None)[0] is None
    assert ask(charged, "SELECT * FROM charged WHERE k = 1", payload={"Another": b"1"})[0] is None
    assert ask(charged, "SELECT * FROM charged WHERE k = 1", payload={"Another": b"1", "RequestCharge": b"yes"})[0] == 10


def test_prepared_statements_batches_schema_statements_and_pages_are_charged(charged):
    select = charged.prepare("SELECT * FROM charged WHERE k = ? AND c = ?")
    assert ask(charged, select.bind((1, 1)))[0] == 1
    batch = BatchStatement(BatchType.UNLOGGED)
    for c in range(3):
        batch.add("INSERT INTO charged (k, c, v) VALUES (2, %s, %s)", (c, KIB))
    assert ask(charged, batch)[0] == 15
    assert ask(charged, "CREATE TABLE IF NOT EXISTS charged_too (k int PRIMARY KEY)")[0] == 5
    assert ask(charged, "SELECT * FROM charged WHERE k = 1", page=3)[0] == 3


def test_protocol_3_knows_no_payload(charged, connector):
    session = connector.session(charged.keyspace, protocol_version=3)
    future = session.execute_async("SELECT * FROM charged WHERE v = 'none' ALLOW FILTERING")
    assert future.result().all() == []
    assert future.custom_payload is None and not future.warnings


def test_allow_filtering_says_what_it_read(charged):
    for level, cost in ((ConsistencyLevel.ONE, "40.00"), (ConsistencyLevel.QUORUM, "80.00")):
        for payload in (None, ASKED):
            _, warnings = ask(charged, "SELECT * FROM charged WHERE v < 'x' ALLOW FILTERING", level, payload)
            assert warnings == ["ALLOW FILTERING read 40 rows, returned 0 and cost %s request units." % cost]
    _, warnings = ask(charged, "SELECT * FROM charged WHERE k = 2 AND v > 'x' LIMIT 3 ALLOW FILTERING")
    assert warnings == ["ALLOW FILTERING read 3 rows, returned 3 and cost 3.00 request units."]
    _, warnings = ask(charged, "SELECT count(*) FROM charged WHERE c >= 8 AND v > 'x' ALLOW FILTERING")
    assert warnings[-1] == "ALLOW FILTERING read 8 rows, returned 1 and cost 8.00 request units."
    assert not ask(charged, "SELECT * FROM charged WHERE k = 2 ALLOW FILTERING")[1]


def test_a_conditional_statement_costs_its_read_and_its_write_if_it_is_applied(charged):
    insert = "INSERT INTO charged (k, c, v) VALUES (77, 1, '%s') IF NOT EXISTS" % KIB
    assert ask(charged, insert, ConsistencyLevel.QUORUM)[0] == 2 + 5
    assert ask(charged, insert, ConsistencyLevel.QUORUM)[0] == 2
    assert ask(charged, "DELETE FROM charged WHERE k = 77 AND c = 1 IF EXISTS", ConsistencyLevel.QUORUM)[0] == 2 + 5
