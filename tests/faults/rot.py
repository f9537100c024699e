# SPDX-License-Identifier: Apache-2.0
# Four real nodes, one of which has a table file whose bytes are no longer what was written: every read stays right, the
# scrub finds it, the node's tablets leave, its store is erased, and it holds everything again by itself.
import json
import os
import urllib.request

from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from checks import PREFIX, TOP, check, connect, finish, tetractl_at, up_at, wait_for, with_retry

FIRST = PREFIX + ".31"
HOSTS = ["%s.%d" % (PREFIX, i) for i in range(31, 35)]
ROWS, GONE = 1000, range(0, 1000, 7)
LIMIT_S = 180


def up(*words):
    return up_at(FIRST, *words)


def tetractl(host, *words):
    return tetractl_at(host, *words, timeout=300)


def answered(ask):
    """Asks again while the node starts anew: what it answers in the end is what counts."""
    return with_retry(ask, LIMIT_S)


def comes(condition):
    return wait_for(condition, LIMIT_S)


def metric(host, name):
    try:
        with urllib.request.urlopen("http://%s:9180/metrics" % host, timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return -1
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def text_of(number):
    return ("%d " % number) * 200


def wrong_rows(host, level=ConsistencyLevel.QUORUM):
    """Rows that are not what they should be, read one by one and in a scan."""
    cluster, session = answered(lambda: connect([host], 20))

    def select(text, values=()):
        statement = SimpleStatement(text, consistency_level=level)
        return answered(lambda: list(session.execute(statement, values)))

    wrong = []
    for number in range(ROWS):
        found = [row.v for row in select("SELECT v FROM rot.t WHERE k = %s", (number,))]
        if found != ([] if number in GONE else [text_of(number)]):
            wrong.append((number, found))
    seen = sorted(row.k for row in select("SELECT k FROM rot.t"))
    if seen != [number for number in range(ROWS) if number not in GONE]:
        wrong.append("a scan of %d rows" % len(seen))
    cluster.shutdown()
    return wrong


def check_rows(name, *where):
    wrong = wrong_rows(*where)
    check(name, not wrong, "%d, first: %s" % (len(wrong), wrong[:3]))


def members():
    partitions = json.loads(tetractl(HOSTS[0], "--json", "partitions", "rot").stdout)
    return {(tuple(sorted(p["replicas"])), p["state"]) for p in partitions}


def flip(folder):
    """Bytes in the middle of each table file of the first level that has any."""
    files = sorted(folder.glob("store-*/*.sst"), key=lambda file: file.stat().st_size)
    largest = files[-1]
    with open(largest, "r+b") as file:
        place = largest.stat().st_size // 2
        file.seek(place)
        old = file.read(64)
        file.seek(place)
        file.write(bytes(byte ^ 0x5A for byte in old))
        file.flush()
        os.fsync(file.fileno())
    return largest.name


def main():
    up("--wipe")
    started = up("--", "--shards", "1", "--write-buffer-mb", "4", "--scrub-period-s", "15")
    check("four nodes start", started.returncode == 0, started.stdout + started.stderr)
    if started.returncode != 0:
        return
    cluster, session = connect(HOSTS, 20)
    session.execute("CREATE KEYSPACE rot WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 4}")
    session.execute("CREATE TABLE rot.t (k int PRIMARY KEY, v text)")
    insert = session.prepare("INSERT INTO rot.t (k, v) VALUES (?, ?)")
    for number in range(ROWS):
        session.execute(insert, (number, text_of(number)))
    for number in GONE:
        session.execute("DELETE FROM rot.t WHERE k = %d" % number)
    check("the sets have four members", comes(lambda: members() == {(tuple(HOSTS), "normal")}), str(members()))
    for host in HOSTS:
        tetractl(host, "flush")
        tetractl(host, "compact")
    verified = tetractl(HOSTS[2], "verify", "rot")
    check("tetractl verify finds nothing wrong", verified.returncode == 0, verified.stdout + verified.stderr)

    node = TOP / "build/cluster" / FIRST / "node3"
    name = flip(node / "data")
    log = node / "log.txt"
    check_rows("with rot in %s every row is read through its node" % name, HOSTS[2])
    check_rows("and through another", HOSTS[0])

    def said(words):
        return words in log.read_text(errors="replace")

    check("the scrub, or a read, finds it", comes(lambda: said("store_damaged")), log.read_text(errors="replace")[-2000:])
    check("the tablets leave the store", comes(lambda: said("has no tablets any more and is erased")), str(members()))
    check("no file goes alone: the store is erased", comes(lambda: said("erased a damaged store")), log.read_text(errors="replace")[-2000:])
    check("the node is a member of all sets again", comes(lambda: members() == {(tuple(HOSTS), "normal")}), str(members()))
    check("nobody says damaged any more", comes(lambda: "damaged" not in tetractl(HOSTS[0], "status").stdout), tetractl(HOSTS[0], "status").stdout)
    check_rows("every row is right at ALL", HOSTS[2], ConsistencyLevel.ALL)
    check_rows("the node serves the rows itself", HOSTS[2], ConsistencyLevel.ONE)
    verified = tetractl(HOSTS[2], "verify", "rot", "t")
    check("tetractl verify finds nothing wrong once more", verified.returncode == 0, verified.stdout + verified.stderr)

    # What nobody reads is found by the scrub.
    tetractl(HOSTS[1], "flush")
    tetractl(HOSTS[1], "compact")
    second = TOP / "build/cluster" / FIRST / "node2"
    flip(second / "data")
    check("the scrub finds what nobody reads",
          comes(lambda: "store_damaged" in (second / "log.txt").read_text(errors="replace")),
          "%s files read" % metric(HOSTS[1], "tetrad_storage_scrubbed_files_total"))
    check("and that is mended, too", comes(lambda: "erased a damaged store" in (second / "log.txt").read_text(errors="replace")
                                              and members() == {(tuple(HOSTS), "normal")}), str(members()))
    check_rows("every row is right at ALL again", HOSTS[1], ConsistencyLevel.ALL)
    cluster.shutdown()


try:
    main()
except Exception as error:  # counted, not hidden
    check("the run itself", False, "%s: %s" % (type(error).__name__, error))
finally:
    up("--wipe")
finish()
