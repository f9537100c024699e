# SPDX-License-Identifier: Apache-2.0
# Conditional statements on four real nodes of which two are killed, or stand still: what the client is told, in which
# protocol version, and that it is true. Not applied: it never is. Applied: it stays. Unknown: nothing else is promised.
import os
import signal
import time

from cassandra import ConsistencyLevel, ReadTimeout, Unavailable, WriteTimeout, WriteType
from cassandra.protocol import ErrorMessage
from cassandra.query import SimpleStatement

from checks import FIRST, HOSTS, TOP, check, connect, finish, start_four, up, wait_for, with_retry

CAS_WRITE_UNKNOWN = 0x1700  # the driver has no class for it
ROUNDS, STATEMENTS = 4, 150


class Paused:
    """Two nodes whose processes stand still."""

    def __enter__(self):
        self.pids = [int((TOP / "build/cluster" / FIRST / ("node%d" % n) / "pid").read_text().split()[0]) for n in (3, 4)]
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)

    def __exit__(self, *_):
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)


def insert(key, serial=ConsistencyLevel.SERIAL):
    return SimpleStatement("INSERT INTO cas.t (k, v) VALUES (%d, 1) IF NOT EXISTS" % key, serial_consistency_level=serial)


def read(key, level=ConsistencyLevel.SERIAL):
    return SimpleStatement("SELECT v FROM cas.t WHERE k = %d" % key, consistency_level=level)


def error_of(future):
    try:
        future.result()
        return None
    except Exception as error:
        return error


def describe(error):
    return "%s: %s" % (type(error).__name__, error)


def two_are_down(client):
    """Nothing was sent, so the statement is not applied, and may be tried again."""
    asked = [(name, make) for serial in (ConsistencyLevel.SERIAL, ConsistencyLevel.LOCAL_SERIAL) for name, make in (
        ("a conditional statement at %s" % ConsistencyLevel.value_to_name[serial], lambda at=serial: (insert(1, at), at)),
        ("a read at %s" % ConsistencyLevel.value_to_name[serial], lambda at=serial: (read(1, at), at)))]
    for name, make in asked:
        statement, level = make()
        seen = []

        def unavailable():
            seen.append(error_of(client.execute_async(statement)))
            return isinstance(seen[-1], Unavailable)

        wait_for(unavailable, 30)
        error = seen[-1]
        told = isinstance(error, Unavailable) and (error.consistency, error.required_replicas, error.alive_replicas)
        check("two of four down: %s is Unavailable, required 3, alive 2" % name, told == (level, 3, 2), describe(error))


def two_stand_still(clients):
    """Promises do not come: an ordinary timeout of a CAS in each version, and nothing is written."""
    ready = all(wait_for(lambda at=client: error_of(at.execute_async(insert(100))) is None, 30) for client in clients.values())
    check("conditional statements are answered again", ready)
    with Paused():
        asked = {version: (client.execute_async(insert(200 + version)), client.execute_async(read(300 + version)))
                 for version, client in clients.items()}
        errors = {version: tuple(map(error_of, futures)) for version, futures in asked.items()}
    for version, (write, serial_read) in errors.items():
        told = isinstance(write, WriteTimeout) and (write.write_type, write.consistency, write.required_responses)
        check("v%d: without promises a conditional statement is a CAS timeout" % version,
              told == (WriteType.CAS, ConsistencyLevel.SERIAL, 3), describe(write))
        check("v%d: and it says so" % version, "CAS operation timed out: received" in str(write), describe(write))
        told = isinstance(serial_read, ReadTimeout) and (serial_read.consistency, serial_read.required_responses)
        check("v%d: a SERIAL read is a read timeout" % version, told == (ConsistencyLevel.SERIAL, 3), describe(serial_read))
    for version, client in clients.items():
        rows = with_retry(lambda at=client, key=200 + version: at.execute(read(key)).all())
        check("v%d: the statement was not applied" % version, rows == [], str(rows))


def waiting_in_line(client):
    """Statements of one partition go one after another. Who does not get its turn is told so after cas_contention_timeout, a
    second, not after the time of a write, two: only the one at the head of each shard's line waits so long."""
    check("conditional statements are answered before", wait_for(lambda: error_of(client.execute_async(insert(400))) is None, 30))
    took = []
    with Paused():
        began = time.time()
        futures = [client.execute_async(insert(401)) for _ in range(12)]
        for future in futures:
            future.add_callbacks(lambda _: took.append(None), lambda _: took.append(time.time() - began))
        errors = [error_of(future) for future in futures]
        wait_for(lambda: len(took) == len(futures), 5)
    told = {isinstance(error, WriteTimeout) and (error.write_type, error.consistency, error.required_responses) for error in errors}
    check("each is a CAS timeout that asks for three", told == {(WriteType.CAS, ConsistencyLevel.SERIAL, 3)}, describe(errors[0]))
    in_line = [seconds for seconds in took if seconds is not None and 0.9 <= seconds < 1.7]
    heads = [seconds for seconds in took if seconds is not None and 1.7 <= seconds < 5]
    check("who waits in line ends with the time of contention", len(in_line) >= 8 and len(in_line) + len(heads) == 12, str(took))
    rows = with_retry(lambda: client.execute(read(401)).all())
    check("none of them was applied", rows == [], str(rows))


def standing_still_under_way(client):
    """Statements are caught in all their stages: each outcome must be what it is called."""
    update = client.prepare("INSERT INTO cas.t (k, v) VALUES (?, ?) IF NOT EXISTS")
    outcomes = {}
    for number in range(ROUNDS):
        first = 1000 * (number + 1)
        check("round %d begins with all four" % number, wait_for(lambda key=first: error_of(client.execute_async(insert(key))) is None, 30))
        futures = {key: client.execute_async(update, (key, key)) for key in range(first + 1, first + 1 + STATEMENTS)}
        futures[first + 1].result()  # the others are on their way
        with Paused():
            for key, future in futures.items():
                error = error_of(future)
                if error is None:
                    outcomes[key] = "applied" if future.result().was_applied else "refused"
                elif isinstance(error, (Unavailable, WriteTimeout)) and getattr(error, "write_type", WriteType.CAS) == WriteType.CAS:
                    outcomes[key] = "not applied"
                elif isinstance(error, WriteTimeout) and error.write_type == WriteType.SIMPLE:
                    outcomes[key] = "applied"  # it is decided, and not on as many as were asked for
                elif isinstance(error, ErrorMessage) and error.code == CAS_WRITE_UNKNOWN:
                    outcomes[key] = "unknown"
                else:
                    outcomes[key] = describe(error)
    counts = {outcome: list(outcomes.values()).count(outcome) for outcome in sorted(set(outcomes.values()))}
    print("       outcomes: %s" % counts, flush=True)
    check("each outcome is one of those there are", set(counts) <= {"applied", "not applied", "unknown"}, str(counts))
    wrong = []
    for key, outcome in outcomes.items():
        rows = [row.v for row in with_retry(lambda at=key: client.execute(read(at)).all())]
        if rows != {"applied": [key], "not applied": []}.get(outcome, rows) or rows not in ([], [key]):
            wrong.append((key, outcome, rows))
    check("each of %d outcomes is true" % len(outcomes), not wrong, str(wrong[:5]))


def main():
    if not start_four("--shards", "2"):
        return
    clients = {version: connect(HOSTS[:2], 30, retries=False, protocol_version=version)[1] for version in (3, 4, 5)}
    client = clients[5]
    client.execute("CREATE KEYSPACE cas WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 4}")
    client.execute("CREATE TABLE cas.t (k int PRIMARY KEY, v int)")
    for node in "34":
        up("--kill", node)
    two_are_down(client)
    for node in "34":
        up("--start", node)
    two_stand_still(clients)
    waiting_in_line(client)
    standing_still_under_way(client)
    for each in clients.values():
        each.cluster.shutdown()


try:
    main()
except Exception as error:  # counted, not hidden
    check("the run itself", False, "%s: %s" % (type(error).__name__, error))
finally:
    up("--wipe")
finish()
