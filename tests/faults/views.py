# SPDX-License-Identifier: Apache-2.0
# A materialized view on four real nodes of which one after another is killed (-9) and started again, while clients write and
# delete rows of its table: when they have ended the view shows what its query shows.
import random
import threading
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, WhiteListRoundRobinPolicy

from checks import FIRST, PREFIX, check, finish, up_at, with_retry

HOSTS = ["%s.%d" % (PREFIX, int(FIRST.rsplit(".", 1)[1]) + i) for i in range(4)]
CLIENTS, KILLS, QUIET_S = 8, 4, 60


def up(*words):
    return up_at(FIRST, *words)


def session():
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(HOSTS), request_timeout=15,
                               consistency_level=ConsistencyLevel.QUORUM, retry_policy=FallthroughRetryPolicy())
    return Cluster(HOSTS, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=10,
                   reconnection_policy=ConstantReconnectionPolicy(0.5, None)).connect()


def statement(chance):
    key, row, colour = chance.randrange(30), chance.randrange(10), "c%d" % chance.randrange(5)
    kind = chance.random()
    if kind < 0.1:
        return "DELETE FROM viewed.t WHERE k = %d AND c = %d" % (key, row)
    if kind < 0.12:
        return "DELETE FROM viewed.t WHERE k = %d AND c > %d" % (key, row)
    if kind < 0.14:
        return "DELETE col FROM viewed.t WHERE k = %d AND c = %d" % (key, row)
    return "UPDATE viewed.t SET col = '%s', v = %d WHERE k = %d AND c = %d" % (colour, chance.randrange(1000), key, row)


def work(client, number, stop, counts):
    chance = random.Random(number)
    while not stop.is_set():
        try:
            client.execute(statement(chance))
            counts[number] += 1
        except Exception:  # a node that dies; the view must follow whatever came of it
            time.sleep(0.05)


def shown(client, table):
    return sorted((row.col, row.k, row.c, row.v) for row in with_retry(lambda: client.execute("SELECT * FROM viewed." + table).all(), 30)
                  if row.col is not None)


def main():
    up("--wipe")
    started = up("--", "--shards", "2")
    check("four nodes start", started.returncode == 0, started.stderr + started.stdout)
    if started.returncode != 0:
        return
    client = session()
    client.execute("CREATE KEYSPACE viewed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    client.execute("CREATE TABLE viewed.t (k int, c int, col text, v int, PRIMARY KEY (k, c))")
    stop, counts = threading.Event(), [0] * CLIENTS
    clients = [threading.Thread(target=work, args=(client, number, stop, counts)) for number in range(CLIENTS)]
    for one in clients:
        one.start()
    time.sleep(1)
    client.execute("CREATE MATERIALIZED VIEW viewed.v AS SELECT * FROM viewed.t WHERE k IS NOT NULL AND c IS NOT NULL AND "
                   "col IS NOT NULL PRIMARY KEY (col, k, c)")
    for kill in range(KILLS):
        time.sleep(2)
        up("--kill", str(kill % 4 + 1))
        time.sleep(2)
        up("--start", str(kill % 4 + 1))
    stop.set()
    for one in clients:
        one.join()
    check("clients wrote while nodes were killed", sum(counts) > 1000, str(counts))
    began = time.monotonic()
    while (view := shown(client, "v")) != (table := shown(client, "t")) and time.monotonic() - began < QUIET_S:
        time.sleep(0.1)
    check("the view shows what its query shows, %.1f s after %d writes" % (time.monotonic() - began, sum(counts)), view == table,
          str(sorted(set(view) ^ set(table))[:5]))
    check("which is something", len(table) > 50, str(len(table)))
    client.cluster.shutdown()


try:
    main()
except Exception as error:  # counted, not hidden
    check("the run itself", False, "%s: %s" % (type(error).__name__, error))
finally:
    up("--wipe")
finish()
