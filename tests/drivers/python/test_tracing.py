# SPDX-License-Identifier: Apache-2.0
# Query traces, custom payloads and warnings: what travels beside a request and its answer.
import pytest
from cassandra import ConsistencyLevel, InvalidRequest, ProtocolVersion
from cassandra.cluster import ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import BatchStatement, BatchType, SimpleStatement
from conftest import HOSTS


@pytest.fixture(scope="module")
def traced(session):
    session.execute("CREATE TABLE traced (k int, c int, v text, PRIMARY KEY (k, c))")
    return session


def test_simple_prepared_and_batched_requests_are_traced(traced):
    insert = traced.prepare("INSERT INTO traced (k, c, v) VALUES (?, ?, ?)")
    batch = BatchStatement(batch_type=BatchType.UNLOGGED)
    batch.add(insert, (1, 2, "b"))
    batch.add(insert, (1, 3, "c"))
    requests = [
        (SimpleStatement("SELECT * FROM traced WHERE k = 1"), None, "Execute CQL3 query"),
        (insert, (1, 1, "a"), "Execute CQL3 prepared query"),
        (batch, None, "Execute batch of CQL3 queries"),
        (SimpleStatement("SELECT count(*) FROM traced"), None, "Execute CQL3 query"),
    ]
    for statement, values, request in requests:
        trace = traced.execute(statement, values, trace=True).get_query_trace()
        assert trace.request_type == request and trace.duration.total_seconds() > 0
        assert trace.coordinator in HOSTS or str(trace.coordinator) in HOSTS
        assert trace.parameters["consistency_level"] == "QUORUM"
        if values is not None or "query" in trace.parameters:
            assert "traced" in trace.parameters["query"]
        assert len(trace.events) >= 2
        elapsed = [event.source_elapsed for event in trace.events]
        assert elapsed == sorted(elapsed)
        assert all(event.description and event.source and event.thread_name for event in trace.events)


def test_a_trace_names_the_replicas(traced):
    trace = traced.execute(SimpleStatement("INSERT INTO traced (k, c) VALUES (5, 5)"), trace=True).get_query_trace()
    text = "\n".join(event.description for event in trace.events)
    if len(HOSTS) > 1:
        assert text.count("Sending MUTATE message") == min(4, len(HOSTS)) - 1
        # At QUORUM two others at least have said what they did, each in its own name.
        of_replicas = [event for event in trace.events if event.source != trace.coordinator]
        assert len({event.source for event in of_replicas}) >= 2
        assert sum(event.description.startswith("MUTATE message received from /") for event in of_replicas) >= 2
        assert sum(event.description.startswith("Answered after ") for event in of_replicas) >= 2
    assert "traced" in text


def test_a_trace_says_what_the_answers_hold(traced):
    for c in (1, 2):
        traced.execute("INSERT INTO traced (k, c, v) VALUES (7, %s, 'x')", (c,))
    for selected, expected in [("*", "2 live rows of 1 partitions"), ("count(*)", "2 live rows, counted there")]:
        statement = SimpleStatement("SELECT %s FROM traced WHERE k = 7" % selected)
        trace = traced.execute(statement, trace=True).get_query_trace()
        assert any(expected in event.description for event in trace.events), [event.description for event in trace.events]


def test_every_node_answers_for_a_trace(connector, traced):
    trace_id = traced.execute(SimpleStatement("SELECT * FROM traced WHERE k = 1"), trace=True).get_query_trace().trace_id
    for host in HOSTS:
        profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([host]), consistency_level=ConsistencyLevel.QUORUM)
        session = connector.session(hosts=[host], profile=profile)
        assert session.execute("SELECT duration FROM system_traces.sessions WHERE session_id = %s", (trace_id,)).one().duration > 0
        assert session.execute("SELECT count(*) FROM system_traces.events WHERE session_id = %s", (trace_id,)).one()[0] >= 2


def test_a_request_that_fails_is_traced_too(traced):
    future = traced.execute_async(SimpleStatement("SELECT nothing FROM traced"), trace=True)
    with pytest.raises(InvalidRequest):
        future.result()


def test_nobody_asked_nothing_kept(traced):
    assert traced.execute("SELECT * FROM traced WHERE k = 1").get_query_trace() is None


@pytest.mark.parametrize("version", [ProtocolVersion.V4, ProtocolVersion.V5])
def test_a_custom_payload_is_taken(connector, traced, version):
    session = connector.session(traced.keyspace, protocol_version=version)
    future = session.execute_async("SELECT * FROM traced WHERE k = 1", custom_payload={"key": b"value", "empty": b""})
    assert future.result().one().k == 1


@pytest.mark.parametrize("version", [ProtocolVersion.V4, ProtocolVersion.V5])
def test_warnings_come_with_the_answer(connector, traced, version):
    session = connector.session(traced.keyspace, protocol_version=version)
    future = session.execute_async(SimpleStatement("SELECT sum(c) FROM traced"))
    future.result()
    assert any("Aggregation query used without partition key" in warning for warning in future.warnings)
    batch = BatchStatement(batch_type=BatchType.UNLOGGED)
    for key in range(12):
        batch.add(SimpleStatement("INSERT INTO traced (k, c, v) VALUES (%d, 0, '%s')" % (key, "x" * 600)))
    future = session.execute_async(batch)
    future.result()
    assert any("exceeding specified threshold" in warning for warning in future.warnings)
    assert any("Unlogged batch covering 12 partitions" in warning for warning in future.warnings)
