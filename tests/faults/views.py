# SPDX-License-Identifier: Apache-2.0
# A materialized view on four real nodes of which one after another is killed (-9) and started again, while clients write and
# delete rows of its table: when they have ended the view shows what its query shows.
import random
import threading
import time

from checks import HOSTS, check, connect, finish, kill_in_turn, start_four, up, with_retry

CLIENTS, KILLS, QUIET_S = 8, 4, 60


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
    if not start_four("--shards", "2"):
        return
    client = connect(HOSTS, 15, retries=False)[1]
    client.execute("CREATE KEYSPACE viewed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    client.execute("CREATE TABLE viewed.t (k int, c int, col text, v int, PRIMARY KEY (k, c))")
    stop, counts = threading.Event(), [0] * CLIENTS
    clients = [threading.Thread(target=work, args=(client, number, stop, counts)) for number in range(CLIENTS)]
    for one in clients:
        one.start()
    time.sleep(1)
    client.execute("CREATE MATERIALIZED VIEW viewed.v AS SELECT * FROM viewed.t WHERE k IS NOT NULL AND c IS NOT NULL AND "
                   "col IS NOT NULL PRIMARY KEY (col, k, c)")
    kill_in_turn(KILLS)
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
