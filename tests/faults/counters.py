# SPDX-License-Identifier: Apache-2.0
# Counters on four real nodes of which one after another is killed (-9) and started again, while clients add and take away:
# what was acknowledged is there, what was not may be there once, and reads never go back.
import random
import threading
import time

from cassandra import ConsistencyLevel, OperationTimedOut, Unavailable, WriteTimeout, WriteType

from checks import HOSTS, check, connect, finish, kill_in_turn, start_four, up, with_retry

KEYS, CLIENTS, KILLS = 3, 16, 8


class Sums:
    """Of each key what is certain, and what may be beside it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.certain, self.low, self.high = [0] * KEYS, [0] * KEYS, [0] * KEYS
        self.outcomes = {}

    def add(self, key, delta, error):
        with self.lock:
            name = "certain" if error is None else type(error).__name__
            self.outcomes[name] = self.outcomes.get(name, 0) + 1
            if error is None:
                self.certain[key] += delta
            elif not isinstance(error, Unavailable):
                (self.low if delta < 0 else self.high)[key] += delta


def work(client, sums, stop, wrong_types):
    add = client.prepare("UPDATE cnt.t SET n = n + ? WHERE k = ?")
    while not stop.is_set():
        key, delta = random.randrange(KEYS), random.choice((1, 2, 5, -1, -3))
        try:
            client.execute(add, (delta, key))
            sums.add(key, delta, None)
        except Exception as error:
            if isinstance(error, WriteTimeout) and error.write_type != WriteType.COUNTER:
                wrong_types.append(str(error))
            sums.add(key, delta, error)
            if not isinstance(error, (WriteTimeout, OperationTimedOut)):
                time.sleep(0.05)


def main():
    if not start_four("--shards", "2"):
        return
    client = connect(HOSTS, 15, retries=False)[1]
    client.execute("CREATE KEYSPACE cnt WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 4}")
    client.execute("CREATE TABLE cnt.t (k int PRIMARY KEY, n counter)")
    sums, stop, wrong_types = Sums(), threading.Event(), []
    threads = [threading.Thread(target=work, args=(client, sums, stop, wrong_types)) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    kill_in_turn(KILLS)
    time.sleep(2)
    stop.set()
    for thread in threads:
        thread.join()
    print("       outcomes: %s" % sums.outcomes, flush=True)
    check("most increments are acknowledged", sums.outcomes.get("certain", 0) > 1000, str(sums.outcomes))
    check("a timeout is one of a counter", not wrong_types, str(wrong_types[:3]))
    for key in range(KEYS):
        low, high = sums.certain[key] + sums.low[key], sums.certain[key] + sums.high[key]
        values = {}
        for host in HOSTS:
            statement = client.prepare("SELECT n FROM cnt.t WHERE k = ?")
            statement.consistency_level = ConsistencyLevel.ALL
            values[host] = with_retry(lambda at=statement: client.execute(at, (key,)).one().n, 60)
        check("counter %d lies between %d and %d" % (key, low, high), all(low <= value <= high for value in values.values()), str(values))
        check("counter %d is the same everywhere" % key, len(set(values.values())) == 1, str(values))
    client.cluster.shutdown()


try:
    main()
except Exception as error:  # counted, not hidden
    check("the run itself", False, "%s: %s" % (type(error).__name__, error))
finally:
    up("--wipe")
finish()
