# SPDX-License-Identifier: Apache-2.0
"""Verbs about data: tables, views, repairs, figures, hot keys, snapshots."""
import datetime
import json
import re
import subprocess
import threading
import time
import urllib.request

from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from calls import BIN, FIRST, NODES, PREFIX, TOP, as_json, case, check, order_status, tetractl, wait_for


def check_repaired_ranges(session):
    """Of a table in several parts, only those are repaired that hold tokens of the range: (start, end]."""
    def repaired(*line):
        done = tetractl("repair", *line, "halves", "t", "--json")
        return json.loads(done.stdout)["repaired"] if done.returncode == 0 else done.stdout + done.stderr

    def halves():
        return list(session.execute("SELECT id, range_end FROM system_tetrad.partitions WHERE keyspace_name = 'halves'"))
    session.execute("CREATE KEYSPACE halves WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE halves.t (k int PRIMARY KEY)")
    for i in range(100):
        session.execute("INSERT INTO halves.t (k) VALUES (%d)" % i)
    case("split %d" % halves()[0].id)
    check("it is split", wait_for(lambda: len(halves()) == 2), str(halves()))
    ends = sorted(row.range_end for row in halves())
    first, before, after, parts = str(ends[0]), str(ends[0] - 1), str(ends[0] + 1), len(ends)
    check("a repair takes all parts of a table", repaired() == parts > 1, "%s of %s" % (repaired(), ends))
    history = "SELECT * FROM system_distributed.repair_history WHERE keyspace_name = 'halves' AND columnfamily_name = 't'"
    listed, again = (list(session.execute(history)) for _ in range(2))
    check("and repair_history has each", sorted(int(row.range_end) for row in listed) == ends and listed == again and all(
        row.status == "SUCCESS" and len(row.participants) == NODES and row.participants_v2 == {"%s:7000" % host for host in row.participants}
        and abs(row.started_at.replace(tzinfo=datetime.timezone.utc).timestamp() - time.time()) < 60 for row in listed), str(listed))
    for line, expected in [(("-et", before), 1), (("-st", after), parts - 1), (("-st", before, "--end-token", after), 2),
                           (("-st", after, "-et", before), parts), (("-st", "x"), "a token is a whole number"),
                           (("-st", first, "-et", first), "are equal")]:
        done = repaired(*line)
        check("repair %s" % " ".join(line), done == expected if isinstance(expected, int) else expected in str(done), str(done))
    session.execute("DROP KEYSPACE halves")


def check_verify_unwatched():
    """A verification that nobody watches ends, too: the next one may begin."""
    first, end = order_status("verify"), time.time() + 30
    while (again := order_status("verify")) == 409 and time.time() < end:
        time.sleep(0.1)
    check("a verification that nobody watches ends", (first, again) == (200, 200), "%d, then %d" % (first, again))


def check_block_cache(session):
    """All rows are in files: each read asks for blocks, which the second one finds."""
    for _ in range(2):
        assert len(list(session.execute("SELECT * FROM ks.t"))) == 300
    chunks = session.execute("SELECT * FROM system_views.caches WHERE name = 'chunks'").one()
    check("system_views.caches counts what reads find in the block cache",
          0 < chunks.hit_count < chunks.request_count and chunks.hit_ratio == chunks.hit_count / chunks.request_count, chunks)
    with urllib.request.urlopen("http://%s:9180/metrics" % FIRST, timeout=10) as answer:
        metrics = answer.read().decode()
    counted = {what: sum(map(float, re.findall(r"^tetrad_storage_block_cache_%s_total\{.*\} (\S+)$" % what, metrics, re.M)))
               for what in ("hits", "misses")}
    check("and so does /metrics", counted["hits"] >= chunks.hit_count and counted["misses"] >= 1, (counted, chunks))
    case("info", r"^Chunk Cache +: size \S+ \S+, [1-9]\d* misses, [1-9]\d* requests, [01]\.\d{3} hit rate\n"
                 r"Row Cache +: size \S+ \S+, \d+ hits, \d+ requests, [01]\.\d{3} hit rate$")


def check_view_verification(session):
    """A comparison says how far it is, is followed by who orders it again, and ends when it is told to."""
    from cassandra.concurrent import execute_concurrent_with_args
    session.execute("CREATE TABLE ks.many (k int PRIMARY KEY, v int)")
    session.execute("CREATE MATERIALIZED VIEW ks.of_many AS SELECT * FROM ks.many WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)")
    insert = session.prepare("INSERT INTO ks.many (k, v) VALUES (?, ?)")
    execute_concurrent_with_args(session, insert, [(i, i) for i in range(20000)])
    ordered = subprocess.Popen([BIN + "/tetractl", "-h", FIRST, "verify", "view", "ks", "of_many"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = ordered.stdout.readline()
    check("a comparison says how far it is", re.match(r"compared: \d+\.\d % of the base \(\d+ rows\), 0\.0 % of the view \(0\)$", first), first)
    case("verify view ks v", "comparing the view ks.of_many already, .* verify view ks of_many` follows it, `tetractl verify --stop` ends it", 1)
    follows = subprocess.Popen([BIN + "/tetractl", "-h", FIRST, "verify", "view", "ks", "of_many"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check("who orders it again follows it", follows.stdout.readline().startswith("compared: "))
    case("verify --stop", r"\A\Z")
    for one in ordered, follows:
        rest, errors = one.communicate(timeout=60)
        check("stopped, it has failed", one.returncode == 1 and "the comparison was stopped\nrows compared: " in rest, rest + errors)
        check("and has said few lines", len(rest.splitlines()) < 20, rest)
    session.execute("DROP MATERIALIZED VIEW ks.of_many")
    session.execute("DROP TABLE ks.many")


def data_verbs(session):
    for word in "tablestats", "cfstats":
        case(word + " ks.t", r"\ATotal number of tables: 1\n-+\nKeyspace : ks\n\tRead Count: [1-9]\d*\n\tRead Latency: \d+\.\d{3} ms\n"
                                   r"\tWrite Count: [1-9]\d*\n\tWrite Latency: \d+\.\d{3} ms\n\t\tTable: t\n\t\tSpace used \(live\): [1-9]\d*\n"
                                   r"\t\tLocal read count: [1-9]\d*\n\t\tLocal read latency: \d+\.\d{3} ms\n"
                                   r"\t\tLocal write count: [1-9]\d*\n\t\tLocal write latency: \d+\.\d{3} ms\n"
                                   r"\t\tAverage live cells per slice \(last five minutes\): \d+\.\d\n"
                                   r"\t\tMaximum live cells per slice \(last five minutes\): \d+\.\d\n"
                                   r"\t\tAverage tombstones per slice \(last five minutes\): \d+\.\d\n"
                                   r"\t\tMaximum tombstones per slice \(last five minutes\): \d+\.\d\n")
    case("tablestats", r"\ATotal number of tables: 3\n")
    case("tablestats -H ks", r"Space used \(live\): \S+ (KiB|bytes)")
    case("tablestats -i ks.t", r"\ATotal number of tables: 2\n(.|\n)*Table: u\n(.|\n)*Table: Camel$")
    case("statusautocompaction -a", "-a changes nothing: it is one for all tables")
    case("tablestats ks.nosuch", "there is no table in, or called, ks.nosuch", 1)
    stats = {table["table"]: table for table in as_json("tablestats", "tables")["tables"]}
    check("each write of a table is counted on its replica", stats["t"]["local_writes"]["count"] == 300, str(stats["t"]))
    check("and so is each conditional write that was applied", stats["u"]["local_writes"]["count"] == 2, str(stats["u"]))
    check("what nobody asks for has no latency", stats["Camel"]["local_reads"]["count"] == 0 == stats["Camel"]["local_reads"]["max_us"])
    case("flush")
    case("flush ks t u")
    case("flush ks nosuch", "there is no table ks.nosuch", 1)
    case("compact ks t")
    case("compact nosuch", "there is no keyspace nosuch", 1)
    case("repair", "physical partitions repaired: [1-9]")
    case("repair -pr --full ks t u", "-pr changes nothing: .*")
    case("repair -local -dc datacenter1 ks t", "-local changes nothing: .*\n.*-dc changes nothing: .*")
    check_repaired_ranges(session)
    case("verify ks t", "all members hold the same")
    check_verify_unwatched()
    case("verify view ks nosuch", "there is no materialized view ks.nosuch", 1)
    case("verify --mend ks t", "--mend is of: verify view KEYSPACE VIEW", 1)
    case("verify --stop", "this node is comparing no view", 1)
    case("remove-lost-nodes", "say which nodes, or --data-center NAME", 1)
    case("remove-lost-nodes %s --data-center datacenter1" % FIRST, "say which nodes, or --data-center NAME", 1)
    case("remove-lost-nodes %s" % FIRST, "is alive: nothing of it is lost", 1)
    case("remove-lost-nodes 127.9.9.9", "is no host id and no address of a node", 1)
    case("remove-lost-nodes --data-center nowhere --accept-loss", "no node is in a data center 'nowhere'", 1)
    case("recover-metadata", "Say --accept-loss if that is meant", 1)
    case("recover-metadata --accept-loss", "which are enough: nothing of it is lost", 1)
    case("recover", "--accept-loss", 1)
    case("recover --accept-loss", "no store of this node is behind", 1)
    case("drop-batches")
    data = TOP / "build/cluster" / FIRST / "node1/data"
    case("datapaths ks.t", r"\AKeyspace: ks\n\tTable: t\n\tPaths:\n\t\t%s\n\n-+\n\Z" % re.escape(str(data)))
    case("datapaths", r"\AKeyspace: ks\n(\tTable: (Camel|t|u)\n\tPaths:\n\t\t%s\n\n){3}-+\n\Z" % re.escape(str(data)))
    case("datapaths nosuch", "there is no table in, or called, nosuch", 1)
    check("and they are there", as_json("datapaths ks", "ks")["ks"]["t"] == [str(data)] and list(data.glob("store-*/*.sst")))
    session.execute("CREATE MATERIALIZED VIEW ks.v AS SELECT * FROM ks.t WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)")
    check("a view is built in time", wait_for(lambda: tetractl("viewbuildstatus", "ks", "v").returncode == 0, 60))
    counts = [session.execute(SimpleStatement("SELECT count(*) FROM ks.%s" % table, consistency_level=ConsistencyLevel.QUORUM)).one()[0]
              for table in ("t", "v")]
    check("and then has all rows of this node", counts[0] == counts[1] >= 300, str(counts))
    for line in "viewbuildstatus ks v", "viewbuildstatus ks.v":
        case(line, r"\Aks\.v has finished building on this node\n\Z")
    case("viewbuildstatus ks.v v", "ks.v names a view already", 1)
    case("viewbuildstatus ks", "requires keyspace and view name", 1)
    case("viewbuildstatus ks t", "there is no materialized view ks.t", 1)
    check("--json says so, too", as_json("viewbuildstatus ks v", "built") == {"keyspace": "ks", "view": "v", "built": True})
    case("verify view ks v", r"^rows compared: \d+ of the base, \d+ of the view; missing: 0, ")
    check_view_verification(session)
    session.execute("DROP MATERIALIZED VIEW ks.v")
    case("statusautocompaction ks t", r"\Arunning\n")
    case("disableautocompaction", r"\A\Z")
    case("statusautocompaction ks t", r"\Anot running\n")
    case("disableautocompaction ks t", "files have rows of all tables", 1)
    case("enableautocompaction ks t", "files have rows of all tables", 1)
    case("compact")
    case("statusautocompaction", r"\Anot running\n")
    case("enableautocompaction", r"\A\Z")
    case("enableautocompaction ks t", r"\A\Z")
    case("statusautocompaction", r"\Arunning\n")
    case("setcompactionthroughput 64", "paces compactions, streams and hints by itself")
    case("gcstats", "there is no garbage collector", 1)
    check_block_cache(session)


def check_latencies_by_level(session):
    """Also those of reads that end within the turn of the loop in which they began."""
    def sums(room, label):
        text = urllib.request.urlopen("http://%s:9180/metrics" % FIRST, timeout=10).read().decode()
        return [sum(float(value) for value in re.findall(r"^tetrad_%s_seconds_%s{.*%s.*} (\S+)$" % (room, part, label), text, re.M)) for part in ("count", "sum")]
    def mean_us(room, label, before):
        count, seconds = (now - then for now, then in zip(sums(room, label), before))
        return count, seconds * 1e6 / max(count, 1)
    for level in "ONE", "LOCAL_ONE":
        read = SimpleStatement("SELECT v FROM ks.t WHERE k = 3", consistency_level=ConsistencyLevel.name_to_value[level])
        label = 'level="%s"' % level
        before = sums("replication_read", label)
        for _ in range(400):
            session.execute(read)
        count, mean = mean_us("replication_read", label, before)
        check("reads at %s take some time" % level, count == 400 and 1 < mean < 100_000, "%d reads, %.2f us" % (count, mean))
    before = sums("cql_request", 'verb="query"')
    for _ in range(400):
        session.execute(read)
    count, mean = mean_us("cql_request", 'verb="query"', before)
    check("and so do the requests", count >= 400 and 5 < mean < 1_000_000, "%d requests, %.2f us" % (count, mean))
    read = as_json("proxyhistograms", "read")["read"]
    check("percentiles of reads rise", 0 < read["min_us"] <= read["p50_us"] <= read["p99_us"] <= read["max_us"] and 1 < read["p50_us"], str(read))


def check_kinds_of_requests(session):
    def counts():
        return {kind: figures["count"] for kind, figures in as_json("proxyhistograms", "view_write").items()}
    before = counts()
    check("as many writes as there were", before["write"] >= 300)
    session.execute("CREATE TABLE ks.kinds (k int PRIMARY KEY, v int)")
    session.execute("CREATE MATERIALIZED VIEW ks.kinds_by_v AS SELECT k, v FROM ks.kinds WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)")
    for k in range(20):
        session.execute("INSERT INTO ks.kinds (k, v) VALUES (%d, 1)" % k)
        session.execute("UPDATE ks.kinds SET v = 2 WHERE k = %d IF v = 1" % k)
        session.execute("SELECT v FROM ks.kinds WHERE k = %d" % k)
        session.execute(SimpleStatement("SELECT v FROM ks.kinds WHERE k = %d" % k, consistency_level=ConsistencyLevel.SERIAL))
        session.execute("SELECT v FROM ks.kinds")
    until = time.monotonic() + 10
    while counts()["view_write"] == before["view_write"] and time.monotonic() < until:
        time.sleep(0.1)
    grown = {kind: count - before[kind] for kind, count in counts().items()}
    # Others read and write, too; each task of a view is executed by one of the three nodes.
    check("requests count under their kind", grown["write"] in range(20, 40) and grown["read"] >= 40 and grown["range"] in range(20, 40)
          and grown["conditional_read"] == 20 and grown["conditional_write"] == 20 and 0 < grown["view_write"] <= 40, str(grown))
    session.execute("DROP MATERIALIZED VIEW ks.kinds_by_v")
    session.execute("DROP TABLE ks.kinds")


def figure_verbs(session):
    check_latencies_by_level(session)
    latency = r"(?: +\d+\.\d\d){%d}"
    kinds = "Read Latency", "Write Latency", "Range Latency", "CAS Read Latency", "CAS Write Latency", "View Write Latency", "CAS Wait"
    case("proxyhistograms", r"\Aproxy histograms\nPercentile +%s\n(?: +\(micros\)){7}\n"
                            r"50%% +[1-9]\d*\.00 +[1-9]\d*\.00 .*\n(\d\d%%%s\n){4}Min%s\nMax%s\n" % ((" +".join(kinds),) + (latency % 7,) * 3))
    check_kinds_of_requests(session)
    case("tpstats", r"\APool Name +Active +Pending +Completed +Blocked +All time blocked\nNative-Transport-Requests +\d+ +0 +[1-9]")
    pools = as_json("tpstats", "requests")
    check("counts are whole numbers for programs, too", isinstance(pools["requests"]["completed"], int), str(pools))
    case("compactionstats", r"^pending tasks +\d+\nrunning compactions +\d+\n(.|\n)*^pending compaction data +")
    as_json("compactionstats", "pending_bytes")
    case("netstats", r"\AMode: NORMAL\n(.|\n)*^Pool Name +Active +Pending +Completed +Dropped\nMessages sent +n/a +n/a +[1-9]")
    as_json("netstats", "mode")
    for line in "tablehistograms ks t", "tablehistograms ks.t", "cfhistograms ks t":
        case(line, r"\Aks/t histograms\nPercentile +Read Latency +Write Latency +Scan Latency\n +\(micros\) +\(micros\) +\(micros\)\n"
                   r"50%% +[1-9]\d*\.00 +[1-9]\d*\.00 .*\n(\d\d%%%s\n){4}Min%s\nMax%s\n\nSSTables, .* are not measured" % ((latency % 3,) * 3))
    case("tablehistograms ks", r"^ks/Camel histograms(.|\n)*^ks/t histograms(.|\n)*^ks/u histograms")
    case("tablehistograms ks nosuch", "there is no table ks.nosuch", 1)
    case("tablehistograms ks.t t", "ks.t names a table already", 1)
    [table] = as_json("tablehistograms ks t", "tables")["tables"]
    check("its coordinator and its replica have the same writes", table["coordinator_writes"]["count"] == table["local_writes"]["count"] == 300,
          str(table))
    for name in "coordinator_reads", "coordinator_writes", "local_writes":
        figures = table[name]
        check("percentiles of %s rise" % name, 0 < figures["min_us"] <= figures["p50_us"] <= figures["p99_us"] <= figures["max_us"], str(figures))
    metrics = urllib.request.urlopen("http://%s:9180/metrics" % FIRST, timeout=10).read().decode()
    labels = r'{keyspace="ks",table="t"'
    check("metrics have the latencies of a table",
          re.search(r"^# TYPE tetrad_table_write_seconds summary\n(.|\n)*^tetrad_table_write_seconds%s,quantile=\"0\.99\"} [\d.e-]+\n"
                    r"tetrad_table_write_seconds_sum%s} [\d.]+\ntetrad_table_write_seconds_count%s} 300$" % ((re.escape(labels),) * 3), metrics, re.M))
    case("profileload", "tetractl toppartitions", 1)


def hot_keys(session):
    case("toppartitions ks nosuch 100", "there is no table ks.nosuch", 1)
    case("toppartitions ks t 0", "duration_ms is a whole number from 1 to", 1)
    case("toppartitions -k x", "--top is a whole number from 1 to", 1)
    case("toppartitions -a CAS_CONTENTIONS", "--samplers is of READS and WRITES, not 'CAS_CONTENTIONS'", 1)
    case("toppartitions ks Camel", "no physical partition gets enough")
    read = session.prepare("SELECT v FROM ks.t WHERE k = 3")
    write = session.prepare("INSERT INTO ks.t (k, c, v) VALUES (4, 1, 'x')")

    over = threading.Event()

    def load():
        """Until the last question is answered: what was hot before fades, and the rates of these two stay."""
        while not over.is_set():
            for future in [session.execute_async(statement) for statement in [read] * 200 + [write] * 200]:
                future.result()

    def lead():
        keys = json.loads(tetractl("toppartitions", "ks", "t", "--json").stdout)["hot_keys"]
        most = {kind: max(keys, key=lambda key: key[kind + "_ru_per_s"])["key"] for kind in ("reads", "writes")} if keys else {}
        return most == {"reads": "3", "writes": "4"}

    loading = threading.Thread(target=load)
    loading.start()
    try:
        check("keys that get work are found", wait_for(lead, 60))
        row = r"^Table +Partition +RU/s +Reads +Writes +Share\nks\.t +%s +[1-9]\d* +%s +%s +\d+\.\d%%\n"
        case("toppartitions -s 256 -k 1 -a READS ks t", row % ("3", r"[1-9]\d*", r"\d+"))
        case("toppartitions -a WRITES ks t", row % ("4", r"\d+", r"[1-9]\d*"))
        case("toppartitions 50", r"^ks\.t +3 ")
    finally:
        over.set()
        loading.join()
    as_json("toppartitions ks t", "hot_keys")


def snapshot_verbs(session):
    empty = r"\ASnapshot Details: \nThere are no snapshots\n"
    row = r"^%s +ks +%s +\S+ \S+ +[1-9]\S* (KiB|bytes) +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z *%s$"
    for keyspace in "ks2", "ks3":
        session.execute("CREATE KEYSPACE %s WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}" % keyspace)
        session.execute("CREATE TABLE %s.t (k int PRIMARY KEY)" % keyspace)
        session.execute("INSERT INTO %s.t (k) VALUES (1)" % keyspace)
    case("listsnapshots", empty)
    case("snapshot -t one ks", r"\ARequested creating snapshot\(s\) for \[ks\] with snapshot name \[one\] and options "
                               r"\{skipFlush=false\}\nSnapshot directory: one\n")
    case("snapshot -t one ks", "Snapshot one already exists", 1)
    case("snapshot -t two --table t ks", r"for \[ks\.t\]")
    case("snapshot -t three --ttl 1h -sf -kt ks.t,ks.u", r"skipFlush=true, ttl=1h")
    case("snapshot -t four --column-family t", "--table goes with one keyspace", 1)
    unnamed = tetractl("snapshot", "-t", "", "ks")
    check("a snapshot has a name, or the time for one", unnamed.returncode == 1 and "must supply a snapshot name" in unnamed.stderr, unnamed.stderr)
    check("by HTTP as well", order_status("snapshot?tag=&keyspaces=ks") == 400)
    case("snapshot -t a/b ks", "a tag has up to 100 letters", 1)
    case("snapshot --ttl 1w ks", "ttl is a number of s, m, h or d", 1)
    case("snapshot nosuch", "there is no keyspace nosuch", 1)
    listed = case("listsnapshots", r"\ASnapshot Details: \nSnapshot name +Keyspace name +Column family name +True size +Size on disk "
                                   r"+Creation time +Expiration time\n(.|\n)*^Total TrueDiskSpaceUsed: \d")
    for name, table, expires in ("one", "t", ""), ("one", "u", ""), ("two", "t", ""), ("three", "t", r"\S+Z"):
        check("%s of %s is listed" % (table, name), re.search(row % (name, table, expires), listed, re.M), listed)
    check("nothing else of two is", "two" in listed and not re.search(r"^two +ks +u", listed, re.M), listed)
    as_json("listsnapshots", "snapshots")
    for word in "-nt", "--no-ttl":
        lasting = case("listsnapshots " + word, r"\ASnapshot Details: \n(.|\n)*^Total TrueDiskSpaceUsed: \d")
        check("those that expire are left out", re.search("^two", lasting, re.M) and not re.search("^three", lasting, re.M), lasting)
    check("for programs, too", {row["tag"] for row in as_json("listsnapshots -nt", "snapshots")["snapshots"]} == {"one", "two"})
    case("listsnapshots -e", r"^three(.|\n)*-e changes nothing: there are none of that kind")
    rows = {(row.name, row.table_name): row for row in session.execute("SELECT * FROM system_views.snapshots") if row.keyspace_name == "ks"}
    check("system_views.snapshots has the same", {"one", "two", "three"} == {name for name, _ in rows} and ("two", "u") not in rows, rows)
    check("with sizes and times", all(row.size_on_disk >= row.true_size and abs(row.created_at.timestamp() - time.time()) < 600 and
                                      not row.ephemeral and (row.expires_at is not None) == (name == "three")
                                      for (name, _), row in rows.items()) and rows["one", "t"].size_on_disk > 0, rows)
    store = TOP / "build/cluster" / FIRST / "node1/data"
    kept = [path for path in store.glob("snapshots/two/store-*/*.sst")]
    check("files are hard links", kept and all(path.stat().st_nlink >= 2 for path in kept), kept)
    case("snapshot", r"^Snapshot directory: \d{13}$")
    case("clearsnapshot", "Specify snapshot name or --all", 1)
    case("clearsnapshot -t one --all", "Specify only one", 1)
    case("clearsnapshot -t one ks", r"\ARequested clearing snapshot\(s\) for \[ks\] with snapshot name \[one\]\n")
    check("the others stay", not re.search("^one", case("listsnapshots", "^two"), re.M))
    case("snapshot -t five ks ks2", r"for \[ks, ks2\] with snapshot name \[five\]")
    case("snapshot -t six ks ks2 nosuch", "there is no keyspace nosuch", 1)
    case("snapshot -t six --table t ks ks2", "--table goes with one keyspace", 1)
    has = lambda: {(row["tag"], row["keyspace"], row["table"]) for row in json.loads(tetractl("listsnapshots", "--json").stdout)["snapshots"]}  # noqa: E731
    five = {("five", "ks", "Camel"), ("five", "ks", "t"), ("five", "ks", "u"), ("five", "ks2", "t")}
    check("a snapshot of several keyspaces has the tables of both", {row for row in has() if row[0] in ("five", "six")} == five, has())
    case("snapshot -t six ks ks2 ks3")
    case("clearsnapshot -t six ks ks2", r"\ARequested clearing snapshot\(s\) for \[ks, ks2\] with snapshot name \[six\]\n")
    check("of several keyspaces only their tables go", {row for row in has() if row[0] == "six"} == {("six", "ks3", "t")}, has())
    check("and another snapshot's stay", five <= has(), has())
    case("clearsnapshot --all ks ks3", r"for \[ks, ks3\] with \[all snapshots\]")
    check("--all of several keyspaces leaves the others'", not {row[1] for row in has()} & {"ks", "ks3"} and ("five", "ks2", "t") in has(), has())
    case("clearsnapshot --all", r"\ARequested clearing snapshot\(s\) for \[all keyspaces\] with \[all snapshots\]\n")
    case("listsnapshots", empty)
    check("nothing of them is left", not list(store.glob("snapshots/*")))
    for keyspace in "ks2", "ks3":
        session.execute("DROP KEYSPACE " + keyspace)


def system_keyspaces():
    """Scripts for nodetool name them; every node makes them of the metadata."""
    for line in "flush system", "compact system_auth", "verify system_auth", "cleanup system_auth":
        case(line)
    case("repair system_auth", "physical partitions repaired: 0")
    case("repair -pr system_distributed", "physical partitions repaired: 0")
    case("status system_auth", r"^UN +%s +.* 100\.0%% " % re.escape(FIRST))
    case("getendpoints system_auth roles cassandra", r"\A(%s\d\n){%d}\Z" % (re.escape(PREFIX + "."), NODES))
    case("getendpoints system_auth rolls cassandra", "there is no table system_auth.rolls", 1)
    case("tablestats system")
    case("describering system_auth")
    case("flush system_oath", "there is no keyspace system_oath", 1)
    # That would be taken for a backup of the roles.
    case("snapshot -t roles system_auth", "system_auth has no files to keep", 1)
    case("snapshot -t roles -kt system_auth.roles", "system_auth has no files to keep", 1)
