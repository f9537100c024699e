# SPDX-License-Identifier: Apache-2.0
"""Calls every verb of tetractl on a real cluster: exit codes, the shape of what is printed, JSON, wrong words."""
import datetime
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from cassandra import ConsistencyLevel, WriteTimeout
from cassandra.cluster import Cluster
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

TOP = Path(__file__).resolve().parents[2]
BIN = os.environ.get("TETRAD_BIN", str(TOP / "build/release/bin"))
FIRST = os.environ.get("TETRAD_TETRACTL_FIRST", "127.0.14.1")
PREFIX = FIRST.rsplit(".", 1)[0]
NODES = 3
SETTINGS = ["balance_start_percent", "burst_ru_per_s", "max_logical_partition_mb", "max_physical_partition_mb", "physical_partition_ru_per_s"]
TIMEOUTS = ["cascontention", "counterwrite", "range", "read", "truncate", "write"]

passed = failed = 0
said_verbs = set()
json_verbs = set()  # asked with --json, and answered so


def check(name, condition, detail=""):
    global passed, failed
    print("%s %s" % ("ok    " if condition else "FAILED", name), "" if condition else detail, flush=True)
    passed, failed = passed + bool(condition), failed + (not condition)


def up(*words):
    return subprocess.run([str(TOP / "tools/up"), "--first-address", FIRST, "--binaries", BIN, *words], capture_output=True,
                          text=True, timeout=120)


def tetractl(*words, host=FIRST):
    return subprocess.run([BIN + "/tetractl", "-h", host, *words], capture_output=True, text=True, timeout=120)


def case(line, pattern="", code=0, host=FIRST):
    """One call: its exit code, and a pattern in what it prints; `line` is split at blanks."""
    words = line.split()
    said_verbs.update(words)
    done = tetractl(*words, host=host)
    output = done.stdout + done.stderr
    check("tetractl " + line, done.returncode == code and re.search(pattern, output, re.M), "code %d:\n%s" % (done.returncode, output))
    return output


def order_status(path):
    """The status of an order by HTTP, with the token in the file that a refusal names."""
    headers = {}
    while True:
        try:
            return urllib.request.urlopen(urllib.request.Request("http://%s:9180/%s" % (FIRST, path), method="POST", headers=headers), timeout=10).status
        except urllib.error.HTTPError as error:
            if error.code != 401 or headers:
                return error.code
            headers = {"X-Tetrad-Token": Path(json.load(error)["token_file"]).read_text().strip()}


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


def as_json(line, has):
    """The same with --json: the output is JSON, with a key, or of a list's first item."""
    done = tetractl(*line.split(), "--json")
    try:
        found = json.loads(done.stdout)
        json_verbs.add(line.split()[0])
        found = found[0] if isinstance(found, list) else found
        check("tetractl %s --json" % line, has in found, done.stdout)
        return found
    except (ValueError, IndexError) as error:
        check("tetractl %s --json" % line, False, "%s\n%s%s" % (error, done.stdout, done.stderr))
        return {}


def wait_for(condition, seconds=10):
    """Whether it holds in time; what it throws counts as not yet."""
    deadline = time.time() + seconds
    while time.time() < deadline:
        try:
            if condition():
                return True
        except Exception:
            pass
        time.sleep(0.05)
    return False


def fill():
    cluster = Cluster([FIRST], load_balancing_policy=WhiteListRoundRobinPolicy([FIRST]),
                      reconnection_policy=ConstantReconnectionPolicy(0.1, None))
    session = cluster.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))")
    session.execute("CREATE TABLE ks.u (a text, b int, v text, PRIMARY KEY ((a, b)))")
    for _ in range(2):  # the second one is not applied
        session.execute("INSERT INTO ks.u (a, b, v) VALUES ('a', 1, 'x') IF NOT EXISTS")
    session.execute("UPDATE ks.u SET v = 'x' WHERE a = 'a' AND b = 1 IF v = 'x'")
    session.execute("CREATE TABLE ks.\"Camel\" (k int PRIMARY KEY)")
    insert = session.prepare("INSERT INTO ks.t (k, c, v) VALUES (?, ?, ?)")
    for i in range(300):
        session.execute(insert, (i % 30, i, "x" * 50))
    for i in range(30):
        session.execute("SELECT * FROM ks.t WHERE k = %d" % i)
    return cluster, session


def cluster_verbs():
    case("status", r"^Datacenter: \S+\n=+\nStatus=Up/Down\n\|/ State=Normal/Leaving/Joining/Moving\n"
                   r"--  Address +Load +Tokens +Owns \(effective\) +Host ID +Rack *\n(UN  %s\.\d+ .* rack\d *\n){3}\nOwns is the node's part of all bytes" % re.escape(PREFIX))
    case("status ks", r"^UN  \S+ +(\?|\S+ \S+) +16 +100\.0%")
    case("status nosuch", "there is no keyspace nosuch", 1)
    case("ring ks", r"^Address +Rack +Status +State +Load +Owns +Token\n(\S+ +\S+ +Up +Normal +.* -?\d+\n){48}")
    for word in "describe-cluster", "describecluster":
        case(word, r"^Cluster Information:\n\tName: .*\n\tPartitioner: org.apache.cassandra.dht.Murmur3Partitioner\n"
                   r"\tSchema versions:\n\t\t[0-9a-f-]{36}: \[(%s\.\d, ){2}%s\.\d\]\n\n" % ((re.escape(PREFIX),) * 2) +
             r"Stats for all nodes:\n\tLive: 3\n\tJoining: 0\n\tMoving: 0\n\tLeaving: 0\n\tUnreachable: 0\n\n"
             r"Data Centers: \n\tdatacenter1 #Nodes: 3 #Down: 0\n\nDatabase versions:\n\t\S+: \[\S+, \S+, \S+\]\n")
    case("describering ks t", r"^Schema Version:[0-9a-f-]{36}\nTokenRange: \n\tTokenRange\(start_token:-?\d+, end_token:-?\d+, "
                              r"endpoints:\[(\S+, ){2}\S+\], rpc_endpoints:")
    case("describering nosuch", "there is no keyspace", 1)
    case("gossipinfo", r"^/%s\n(  .*\n)*  STATUS:NORMAL\n(  .*\n)*  RELEASE_VERSION:5\.\d" % re.escape(FIRST))
    for key in "5", "-5":
        case("getendpoints ks t " + key, r"\A(%s\.\d\n){3}\Z" % re.escape(PREFIX))
    case("getendpoints ks u a:1", r"^" + re.escape(PREFIX))
    case("getendpoints ks u a", r"has 2 columns, 'a' has 1 values", 1)
    case("getendpoints ks t x", "Unable to make int from 'x'", 1)
    case("getendpoints ks nosuch 1", "there is no table ks.nosuch", 1)
    case("getseeds", r"\ACurrent list of seed node IPs, excluding the current node's IP:( %s\.\d+){2}\n\Z" % re.escape(PREFIX))
    case("getdefaultrf", r"\A1\n\Z")
    case("partitions ks t", r"^keyspace +table +id ")
    for line, has in ("status", "nodes"), ("ring", "token"), ("describering ks", "replicas"), ("gossipinfo", "host_id"), (
            "partitions", "id"), ("describecluster", "schema_version"):
        as_json(line, has)
    case("rebalance --plan", r"0 moves, 0 bytes")
    case("rebalance --apply", r"0 moves, 0 bytes")
    case("rebalance", "rebalance --plan prints what rebalance --apply begins", 1)
    case("split 99999", "there is no partition 99999", 1)
    case("split x", "id is the number of a partition", 1)
    case("merge 99999", "there is no partition 99999", 1)
    case("merge x", "id is the number of a partition", 1)
    case("setting max_logical_partition_mb 20000")
    case("setting max_logical_partition_mb x", "is a whole number", 1)
    case("setting max_logical_partition_gb 1", r"there is no setting max_logical_partition_gb; did you mean max_logical_partition_mb\? Settings are ", 1)
    case("setting nosuch 1", r"there is no setting nosuch\. Settings are ", 1)
    settings = as_json("describe-cluster", "settings")["settings"]
    names = ", ".join(SETTINGS)
    case("setting", r"name is missing: tetractl setting name value \(name: %s\)" % names, 2)
    case("help setting", r"^name: %s$" % names)
    check("bash offers every setting", sorted(set(settings) - {"balance_orders"}) == SETTINGS, str(settings))  # that one rebalance counts
    for word in "remove-node", "removenode":
        case(word + " nonsense", "'nonsense' is no host id and no address of a node; `tetractl status` lists both", 1)
        case("%s %s" % (word, FIRST), r"node \S+ \(%s\) is alive" % re.escape(FIRST), 1)
    case("removenode status", r"\ARemovalStatus: no node is leaving or being removed\n\Z")
    check("removenode status --json is a list", json.loads(tetractl("removenode", "status", "--json").stdout) == [])
    case("removenode force", "a removal ends by itself", 1)
    live = as_json("status", "nodes")["nodes"][1]["host_id"]
    case("removenode " + live, "", 1)


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


def data_verbs(session):
    for word in "tablestats", "cfstats":
        case(word + " ks.t", r"\ATotal number of tables: 1\n-+\nKeyspace: ks\n\t\tTable: t\n\t\tSpace used \(live\): [1-9]\d*\n"
                                   r"\t\tLocal read count: [1-9]\d*\n\t\tLocal read latency: \d+\.\d{3} ms\n"
                                   r"\t\tLocal write count: [1-9]\d*\n\t\tLocal write latency: \d+\.\d{3} ms\n")
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


def node_verbs():
    case("info", r"\AID +: [0-9a-f-]{36}\nGossip active +: true\nNative Transport active: true\nLoad +: \S+ \S+\nGeneration No +: 1\n(.|\n)*"
                 r"^Disk Used +: \S+ \S+\nMemtables +: \S+ \S+\n(.|\n)*"
                 r"Data Center +: \S+\nRack +: \S+\n(.|\n)*^Token +: \(invoke with -T/--tokens to see all 16 tokens\)")
    case("info -T", r"(^Token +: -?\d+\n){16}")
    own = as_json("info", "host_id")
    [shown] = [node for node in as_json("status", "nodes")["nodes"] if node["host_id"] == own["host_id"]]
    check("info and status have one load of a node", abs(own["bytes"] - shown["bytes"]) <= own["bytes"] / 10, (own["bytes"], shown["bytes"]))
    case("version", r"\AReleaseVersion: 5\.")
    case("statusgossip", r"\Arunning\n")
    case("statushandoff", r"\AHinted handoff is running\n")
    case("getmaxhintwindow", r"\ACurrent max hint window: 10800000 ms\n\Z")
    case("getlogginglevels", r"^Logger Name +Log Level\nROOT +(INFO|WARN)\n")
    case("setlogginglevel org.apache.cassandra DEBUG", "one level of logging")
    case("getlogginglevels", r"^ROOT +DEBUG")
    case("setlogginglevel ROOT WARN", r"\A\Z")
    case("setlogginglevel", r"\A\Z")
    case("getlogginglevels", r"^ROOT +INFO")
    case("log-level warn", "level: warn")
    case("log-level loud", "level is one of", 1)
    case("log-level info")
    case("disk-encryption", "^new files: plain\nplain: \\d+ files, \\d+ bytes", 0)
    for word in "reload-certificates", "reloadssl":
        case(word, "no certificates", 1)


def address_groups():
    case("listcidrgroups", r"\A\Z")
    case("updatecidrgroup lab 10.1.2.3/8 2001:db8::/32", r"\A\Z")
    case("updatecidrgroup desk 10.0.0.3/32")
    case("updatecidrgroup lab 10.0.0.0/33", "10.0.0.0/33 is not a valid CIDR String", 1)
    case("updatecidrgroup lab", "at least one CIDR", 1)
    for short in "10.0.0/8", "192.168.1/24", "10/8":  # to Java the second is 192.168.0.0/24
        case("updatecidrgroup lab " + short, "%s is not a valid CIDR String" % short, 1)
    case("listcidrgroups", r"\ACIDR Groups\s*\ndesk\s*\nlab\s*\Z")
    case("listcidrgroups lab", r"\ACIDRs\s*\n10.0.0.0/8\s*\n2001:db8:0:0:0:0:0:0/32\s*\Z")
    case("listcidrgroups none", r"\A\Z")
    case("getcidrgroupsofip 10.0.0.3", r"\ACIDR Groups\s*\ndesk\s*\Z", host="%s.2" % PREFIX)
    case("getcidrgroupsofip 10.0.0.4", r"^lab")
    case("getcidrgroupsofip 2001:db8::1", r"^lab")
    case("getcidrgroupsofip 1.2.3.4", r"\A\Z")
    for wrong in "nonsense", "1.2.3", "10", "1.2.3.4.5":
        case("getcidrgroupsofip " + wrong, "Invalid IP %s$" % wrong, 1)
    as_json("listcidrgroups", "groups")
    case("dropcidrgroup desk", r"\A\Z")
    case("dropcidrgroup desk", "CIDR group 'desk' doesn't exists", 1)
    case("dropcidrgroup lab")
    case("cidrfilteringstats", "cidr_filtering_metrics_counts")


def client_verbs(session):
    case("clientstats", r"\ATotal connected clients: \d+\n\nUser +Connections\nanonymous +\d+\n")
    case("clientstats --all", r"^/\S+:\d+ +false +undefined +undefined +5 +anonymous +.*Python Driver")
    for option in "--client-options", "--metadata":
        case("clientstats " + option, r"^Address .* Driver-Version +Client-Options *\n/\S+:\d+ +false +undefined +undefined +5 +anonymous (.|\n)*"
                                      r"CQL_VERSION=\S+, DRIVER_NAME=(.*Python Driver.*), (.*, )?DRIVER_VERSION=(.|\n)*^Total connected clients: ")
    case("clientstats --clear-history", r"\Atetractl: --clear-history changes nothing: nothing is kept .*\n\Z")
    case("clientstats --by-protocol", r"^v5 +\d+$")
    as_json("clientstats", "clients")
    case("statusbinary", r"\Arunning\n")
    for verb in "disablebinary", "drain":
        case(verb, r"\A\Z")
        case("statusbinary", r"\Anot running\n")
        case("status", "WARNING: clients are not served.*enablebinary")
        case("netstats", r"\AMode: %s\n" % ("DRAINED" if verb == "drain" else "NORMAL"))
        check("other nodes tell of it", wait_for(lambda: re.search(
            "^WARNING: %s serves no clients, by order: " % re.escape(FIRST), tetractl("status", host=PREFIX + ".3").stdout, re.M)))
        check("no client is let in after " + verb, subprocess.run(
            ["bash", "-c", "exec 3<>/dev/tcp/%s/9042" % FIRST], capture_output=True).returncode != 0)
        case("enablebinary", r"\A\Z")
        case("statusbinary", r"\Arunning\n")
        case("netstats", r"\AMode: NORMAL\n")
        check("clients come back after " + verb, wait_for(lambda: session.execute("SELECT k FROM ks.t LIMIT 1").one()))
    case("gettimeout read", r"\ACurrent timeout for type read: 5000 ms\n")
    case("gettimeout", r"(^Current timeout for type \w+: \d+ ms\n){6}")
    case("gettimeout nosuch", r"there is no timeout type nosuch\. Timeout type requires one of \(", 1)
    case("gettimeout reads", r"there is no timeout type reads; did you mean read\? Timeout type requires one of \(", 1)
    case("settimeout reads 1000", r"there is no timeout type reads; did you mean read\? Timeout type requires one of \(", 1)
    case("settimeout read 6000", r"\A\Z")
    logged = list(session.execute("SELECT * FROM system_views.system_logs"))
    check("warnings are in system_logs", any(row.level == "WARN" and row.message.startswith("timeout changed by order type=read") and
                                             abs(row.timestamp.timestamp() - time.time()) < 60 for row in logged), logged)
    case("gettimeout read", "read: 6000 ms")
    case("settimeout write 3600000", "as the node was started", 1)
    case("settimeout nosuch 1", "Timeout type requires one of", 1)
    case("gettraceprobability", r"\ACurrent trace probability: 0\.0\n")
    case("settraceprobability 1", r"\A\Z")
    traced = "SELECT count(*) FROM system_traces.sessions"
    check("unasked requests are traced", wait_for(lambda: session.execute(traced).one()[0] > 0))
    case("settraceprobability 0")
    case("settraceprobability 1.5", "Trace probability must be between 0 and 1", 1)


def lost_to_others():
    """Of conditional statements on one row through all nodes at once, those at the first that gave up after others had won."""
    statement = SimpleStatement("UPDATE late.t SET v = 1 WHERE k = 5 IF v != 2", retry_policy=FallthroughRetryPolicy())
    nodes = ["%s.%d" % (PREFIX, int(FIRST.rsplit(".", 1)[1]) + number) for number in range(NODES)]
    clusters = [Cluster([node], load_balancing_policy=WhiteListRoundRobinPolicy([node])) for node in nodes]
    try:
        sessions = [cluster.connect() for cluster in clusters]
        futures = [[session.execute_async(statement) for session in sessions] for _ in range(40)]
        lost = 0
        for round_of_all in futures:
            for number, future in enumerate(round_of_all):
                try:
                    future.result()
                except WriteTimeout as error:
                    lost += number == 0 and "contention retries" in str(error) and "after 0 contention" not in str(error)
        return lost
    finally:
        for cluster in clusters:
            cluster.shutdown()


def timeouts_in_force(session):
    """Each type ends statements of its kind, while nobody else answers: not before it says, and in the order of all of them."""
    session.execute("CREATE KEYSPACE late WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}")
    session.execute("CREATE TABLE late.t (k int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE late.n (k int PRIMARY KEY, n counter)")
    statements = {"read": "SELECT * FROM late.t WHERE k = 1", "range": "SELECT * FROM late.t", "write": "INSERT INTO late.t (k) VALUES (1)",
                  "counterwrite": "UPDATE late.n SET n = n + 1 WHERE k = 1", "truncate": "TRUNCATE late.t"}
    before = as_json("gettimeout", "read")
    check("bash offers every type", sorted(before) == TIMEOUTS, str(before))
    check("every type is tried", set(before) == {*statements, "cascontention"}, "%s of %s" % (sorted(statements), sorted(before)))
    wanted_ms = {kind: 300 + 300 * number for number, kind in enumerate(statements)}
    for kind, timeout_ms in [*wanted_ms.items(), ("cascontention", 1)]:
        case("settimeout %s %d" % (kind, timeout_ms), r"\A\Z")
        case("gettimeout " + kind, r"\ACurrent timeout for type %s: %d ms\n\Z" % (kind, timeout_ms))
    check("and gettimeout has them all", as_json("gettimeout", "read") == {**wanted_ms, "cascontention": 1})
    others = [int((TOP / "build/cluster" / FIRST / ("node%d" % node) / "pid").read_text().split()[0]) for node in range(2, NODES + 1)]
    took_ms = {}
    for process in others:
        os.kill(process, signal.SIGSTOP)
    try:
        for kind, text in statements.items():
            def ended(error, kind=kind, since=time.monotonic()):
                took_ms[kind] = (time.monotonic() - since) * 1000, error
            statement = SimpleStatement(text, consistency_level=ConsistencyLevel.QUORUM, retry_policy=FallthroughRetryPolicy())
            session.execute_async(statement).add_callbacks(lambda rows, ended=ended: ended(rows), ended)
        wait_for(lambda: len(took_ms) == len(statements), 5)
    finally:
        for process in others:
            os.kill(process, signal.SIGCONT)
    for kind, timeout_ms in wanted_ms.items():
        took, error = took_ms.get(kind, (0, None))
        print("%s: %d ms are set, ended after %d ms: %s" % (kind, timeout_ms, took, str(error)[:120]))
        check("settimeout %s is in force" % kind, isinstance(error, Exception) and timeout_ms - 5 <= took, str(error))
    check("in their order", sorted(took_ms, key=lambda kind: took_ms[kind][0]) == list(statements), str(took_ms))
    for kind, timeout_ms in before.items():
        if kind != "cascontention":
            case("settimeout %s %d" % (kind, timeout_ms))
    whole = lambda: all(node["live"] for node in json.loads(tetractl("status", "--json").stdout)["nodes"])  # noqa: E731
    check("the others are back", wait_for(whole, 30))
    # The one whose time was over may be done late, in the midst of what follows; metadata changes one after the other.
    check("a TRUNCATE is done again", wait_for(lambda: session.execute("TRUNCATE late.t") is not None, 60))
    tries = []
    wait_for(lambda: tries.append(lost_to_others()) or sum(tries), 30)
    lost = sum(tries)
    case("settimeout cascontention %d" % before["cascontention"])
    again = lost_to_others()
    print("conditional statements that ended since they lost to others: %s at 1 ms, %d at %d ms" % (tries, again, before["cascontention"]))
    check("settimeout cascontention is in force", lost > 0 == again, "%d, %d" % (lost, again))
    check("and statements are done", wait_for(lambda: session.execute("DROP KEYSPACE late") is not None, 30))


def every_verb_as_json():
    """--json of what was not asked so yet: JSON, and nothing else, on standard output."""
    for line, has in (
            ("version", "release_version"), ("statusgossip", "host_id"), ("statushandoff", "host_id"), ("statusbinary", "native_transport_active"),
            ("getlogginglevels", "log_level"), ("gettraceprobability", "trace_probability"), ("getmaxhintwindow", "hint_window_ms"),
            ("getseeds", "seeds"), ("getdefaultrf", "default_replication_factor"), ("statusautocompaction", "auto_compaction_running"),
            ("getendpoints ks t 5", "endpoints"), ("disk-encryption", "keys"), ("cidrfilteringstats", "accepted"),
            ("getcidrgroupsofip 1.2.3.4", "groups"), ("updatecidrgroup json 10.0.0.0/8", "ok"), ("dropcidrgroup json", "ok"), ("gettimeout read", "read"),
            ("settimeout read 5000", "ok"), ("settraceprobability 0", "trace_probability"), ("flush", "ok"), ("compact ks t", "ok"),
            ("repair ks t", "repaired"), ("verify ks t", "compared"), ("rebalance --plan", "moves"), ("rebalance --apply", "moves"),
            ("drop-batches", "dropped"), ("setting max_logical_partition_mb 20000", "ok"), ("log-level info", "level"),
            ("setlogginglevel ROOT INFO", "level"), ("disableautocompaction", "ok"), ("enableautocompaction", "ok"),
            ("enableautocompaction ks t", "ok"), ("disablebinary", "ok"), ("drain", "ok"), ("enablebinary", "ok"),
            ("snapshot -t json ks", "tag"), ("clearsnapshot -t json", "cleared"), ("tablehistograms ks t", "tables"), ("cfstats", "tables"),
            ("cfhistograms ks t", "tables")):
        as_json(line, has)
    session_version = as_json("version", "version")
    check("--json of version has both", session_version["release_version"].startswith("5.0") and "." in session_version["version"])


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
    as_json("tpstats", "requests")
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


class Answers:
    """A server of one's own in the place of a node's admin port: what it answers to a path, after so many seconds; None: nothing."""
    def __init__(self, host, answers):
        self.host, self.answers, self.listens = host, answers, socket.create_server((host, 9180))
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                taken = self.listens.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.answer, args=(taken,), daemon=True).start()

    def answer(self, taken):
        path = taken.recv(4096).split(b" ")[1].decode()
        status, body, seconds = self.answers(path)
        time.sleep(seconds)
        with taken:
            if body is not None:
                taken.sendall(("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)).encode())

    def close(self):
        self.listens.shutdown(socket.SHUT_RDWR)
        self.listens.close()


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


def answers_of_others():
    """Nodes that hang, orders that take long, web servers."""
    other = "%s.%d" % (PREFIX, NODES + 2)
    began = time.monotonic()
    hangs = Answers(other, lambda path: ("200 OK", None, 60))
    case("--timeout 1 status", r"\Atetractl: %s:9180 does not answer within 1 s \(--timeout\)\n\Z" % re.escape(other), 1, host=other)
    case("compact --timeout 1", r"\Atetractl: \S+ does not answer within 1 s \(--timeout\), to /health neither; what was ordered may be under way", 1, host=other)
    check("nobody waits for long", time.monotonic() - began < 20)
    hangs.close()
    slow = Answers(other, lambda path: ("200 OK", "serving\n", 0) if path == "/health" else ("200 OK", '{"ok": true}', 4))
    case("--timeout 1 compact", r"\A\Z", host=other)
    case("--timeout 1 info", "does not answer within 1 s", 1, host=other)
    slow.close()
    web = Answers(other, lambda path: ("404 Not Found", "<html>404</html>", 0))
    for line in "status", "flush", "info":
        case(line, r"\Atetractl: no Tetrad answers at %s:9180: the answer is no JSON \(HTTP status 404\); a node's admin port is 9180" % re.escape(other), 1, host=other)
    web.close()
    for status, body in ("200 OK", "{}"), ("200 OK", "[1]"), ("401 Unauthorized", "{}"), ("401 Unauthorized", "no"), ("500 Oops", '{"error": 7}'):
        odd = Answers(other, lambda path: (status, body, 0))
        for line in "status", "ring", "verify ks":
            output = case(line, r"^tetractl: no Tetrad ", 1, host=other)
            check("nothing of the library is said", "json.exception" not in output, output)
        odd.close()
    for wrong in "0", "x", "86401", "-1":
        case("status --timeout " + wrong, "--timeout is a whole number of seconds from 1 to 86400", 2)


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


def lines_of_words():
    """What stands before and after the verb, and wrong words."""
    case("status -p 9180 -h " + FIRST, "^UN")
    for line in "tablestats -F json ks", "tablestats --format=yaml", "-F json tpstats":
        check("tetractl %s is --json" % line, isinstance(json.loads(tetractl(*line.split()).stdout), dict))
    case("tablestats -F xml", "--format is json or yaml, not 'xml'", 2)
    case("-u cassandra -pw cassandra status", "^UN(.|\n)*-pw changes nothing: ")
    case("-p 7199 status", r"\Acluster: (.|\n)*^tetractl: nothing listens at %s:7199, the port of nodetool: 9180 is asked\n\Z" % re.escape(FIRST))
    case("-p 7199 flush", r"\Atetractl: nothing listens at \S+:7199, the port of nodetool: 9180 is asked\n\Z")
    check("and programs read no such line", "nodes" in json.loads(tetractl("-p", "7199", "status", "--json").stdout))
    case("-p 7198 status", "7198 does not answer: Connection refused", 1)
    nobody = "%s.%d" % (PREFIX, NODES + 1)
    case("-p 7199 status", "nothing listens at %s:7199(.|\n)*%s:9180 does not answer" % ((re.escape(nobody),) * 2), 1, host=nobody)
    with socket.create_server((FIRST, 7199)) as jmx:  # as Cassandra: what listens there is asked, and nobody else
        def answer():
            for _ in range(2):  # whether it listens, and the request
                jmx.accept()[0].sendall(b"JRMI\0\2\x4b\0\0")
        threading.Thread(target=answer, daemon=True).start()
        case("-p 7199 status", "7199 is where Cassandra listens for nodetool, a node of Tetrad listens on 9180", 1)
    case("-p x status", "'x' is no port", 2)
    case("stats", "did you mean status", 2)
    case("table", "did you mean tablestats", 2)
    case("status --jsn", "did you mean --json", 2)
    case("status a b", "'b' is too much: tetractl status", 2)
    case("split", "id is missing", 2)
    case("merge", "id is missing", 2)
    case("", "a command is missing", 2)
    case("status -h", r"^tetractl status \[keyspace\]")
    case("-h", "-h needs a value: HOST", 2)
    case("status --timeout", "--timeout needs a value: SECONDS", 2)
    case("help flush", r"^tetractl flush \[keyspace\] \[tables...\]")
    case("flush --help", r"^tetractl flush")
    case("--version", r"^tetractl \d")
    for word in "cleanup", "upgradesstables", "garbagecollect", "rebuild", "refreshsizeestimates":
        case(word + " ks t", r"^tetractl: %s: \S+ " % word)
    for word in "move 7", "disablehandoff", "assassinate 127.0.0.1", "import ks t /tmp":
        case(word, "tetractl: ", 1)


def words_of_nodetool():
    """A script for nodetool gets what it asks for, or a line that says why not."""
    listed = (TOP / "tests/tetractl/nodetool_words.txt").read_text().splitlines()
    words = [line for line in listed if not line.startswith("#")]
    check("nodetool's words were recorded", len(words) == 149 and "status" in words)
    for word in words:
        done = tetractl("help", word)
        known = done.returncode == 0 and done.stdout.startswith("tetractl ")
        said = re.fullmatch(r"tetractl: %s: \S.*\n" % word, done.stdout + done.stderr) and done.returncode in (0, 1)
        if said:  # also where a program reads the answer
            asked = tetractl(word, "ks", "--json"), tetractl("-F", "json", word)
            is_json = all(one.returncode == done.returncode and (not one.stderr and json.loads(one.stdout)["ok"] if done.returncode == 0
                                                                 else not one.stdout and one.stderr) for one in asked)
            check("tetractl %s --json" % word, is_json, str(asked))
        check("nodetool's %s is known" % word, known or said, "code %d:\n%s%s" % (done.returncode, done.stdout, done.stderr))
    for word in "setauthcacheconfig", "invalidaterowcache", "sstablerepairedset", "setautorepairconfig", "setcolumnindexsize", (
            "checktokenmetadata"):
        case(word + " ks t", r"^tetractl: %s: \S+ " % word)
    for word in "getauthcacheconfig", "getguardrailsconfig", "setguardrailsconfig", "setdefaultrf 3", "setcachecapacity 1 2 3", (
            "autorepairstatus"), "getautorepairconfig", "resetfullquerylog", "getsnapshotthrottle":
        case(word, r"\Atetractl: %s: \S+ .*\n\Z" % word.split()[0], 1)


def without_a_node():
    printed = case("completion", "complete -F _tetractl tetractl")
    check("tools/tetractl/completion.bash is what completion prints", printed == (TOP / "tools/tetractl/completion.bash").read_text())
    script = "%s\nCOMP_WORDS=(tetractl %s)\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tetractl\necho ${COMPREPLY[*]}"
    for begun, whole in (
            ("-h x describ", "describe-cluster describecluster describering"), ("-h x --js", "--json"), ("log-level ''", "debug info warn error"),
            ("log-level w", "warn"), ("setting max_l", "max_logical_partition_mb"), ("setting ''", " ".join(SETTINGS)), ("setting x ''", ""),
            ("flush ''", ""), ("gettimeout ''", " ".join(TIMEOUTS)), ("settimeout re", "read"), ("--ca-file /etc/host", "/etc/host.conf /etc/hostname /etc/hosts"),
            ("certificates /et", "/etc"), ("-F ''", "json yaml")):
        done = subprocess.run(["bash", "-c", script % (printed, begun)], capture_output=True, text=True)
        found = set(done.stdout.split())
        check("bash completes %s" % begun, found and found <= set(whole.split()) if "/etc/" in whole else done.stdout.strip() == whole,
              done.stdout + done.stderr)
    as_json("completion", "bash")
    folder = TOP / "build/tetractl-certificates"
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    case("certificates %s/for/one/ 127.0.0.1" % folder, "made .*/for/one/*ca.pem")
    check("the folder of keys is its owner's alone", stat.S_IMODE((folder / "for/one").stat().st_mode) == 0o700)
    case("certificates %s/for/one/ca.pem/two 127.0.0.1" % folder, "cannot make the folder .*/ca.pem: Not a directory", 1)
    case("certificates %s 127.0.0.1" % folder, "made .*/ca.pem")
    as_json("certificates %s 127.0.0.1" % folder, "kept")
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    verbs = re.search(r'verbs="help (.*)"', printed)[1].split()
    check("every verb is called here", not set(verbs) - said_verbs, sorted(set(verbs) - said_verbs))
    # What these say of a cluster as this one is an error, which is a sentence.
    no_json = {"recover", "recover-metadata", "remove-lost-nodes", "split", "merge", "remove-node", "removenode", "reload-certificates", "reloadssl"}
    check("every verb is called with --json", not set(verbs) - json_verbs - no_json, sorted(set(verbs) - json_verbs - no_json))


def lost():
    """Two of three are down: what that may cost is told by table, and each physical partition on demand."""
    others = ["%s.%d" % (PREFIX, number) for number in range(2, NODES + 1)]
    for number in range(2, NODES + 1):
        up("--kill", str(number))
    order = ["remove-lost-nodes", *others]
    refused = lambda: "  ks.t: " in tetractl(*order).stdout  # noqa: E731
    check("both count as dead", wait_for(refused, 60))
    said = tetractl(*order)
    counts = dict(re.findall(r"^  (\S+): (\d+) physical partitions$", said.stdout, re.M))
    check("a line for each table", said.returncode == 1 and "ks.t" in counts and "tokens" not in said.stdout, said.stdout)
    each = re.findall(r"^  (\S+): physical partition \d+, tokens ", tetractl(*order, "--verbose").stdout, re.M)
    check("--verbose names what is counted", {name: each.count(name) for name in counts} == {name: int(n) for name, n in counts.items()}, counts)
    answer = json.loads(tetractl(*order, "--json").stdout)
    check("--json has both", len(answer["may_have_lost"]) == sum(answer["in_doubt_by_table"].values()) == answer["in_doubt"], answer)
    for number in range(2, NODES + 1):
        up("--start", str(number))
    whole = lambda: all(node["live"] for node in json.loads(tetractl("status", "--json").stdout)["nodes"])  # noqa: E731
    check("all three are back", wait_for(whole, 60))


def killed_while_leaving():
    """A node that dies with replicas to move has not left, and nobody says so. Nothing moves while a third node is down."""
    last = "%s.%d" % (PREFIX, NODES)
    up("--kill", str(NODES - 1))
    down = lambda: re.search(r"^DN  \S+ +\d\S* \S+ +16 +\S+ +\S+ +\S+ *$", tetractl("status").stdout, re.M)  # noqa: E731
    check("of a node that is down the last load is told", wait_for(down, 30), tetractl("status").stdout)
    order = subprocess.Popen([BIN + "/tetractl", "-h", last, "decommission", "--force"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = order.stdout.readline()
    check("decommission waits for replicas to move", re.fullmatch(r"replicas to move: [1-9]\d*\n", line), line)
    up("--kill", str(NODES))
    rest, errors = order.communicate(timeout=60)
    check("a node that was killed has not left", order.returncode == 1 and "left" not in rest and "replicas were still to move" in errors,
          "code %d:\n%s%s" % (order.returncode, rest, errors))
    up("--start", str(NODES))
    stays = lambda: tetractl("decommission", "--cancel", host=last).returncode == 0  # noqa: E731
    check("it goes on leaving when it is back, until that is cancelled", wait_for(stays, 60))
    up("--start", str(NODES - 1))
    whole = lambda: all(node["live"] and node["state"] == "normal" for node in json.loads(tetractl("status", "--json").stdout)["nodes"])  # noqa: E731
    check("all three are back", wait_for(whole, 60))


def leaving():
    """Last: one node less."""
    case("decommission --cancel", "this node is not leaving", code=1, host="%s.%d" % (PREFIX, NODES))
    case("decommission", "only 2 nodes would remain in data center datacenter1: rows would have 2 copies", code=1, host="%s.%d" % (PREFIX, NODES))
    case("decommission --help", "-f, --force +Also where fewer than three nodes remain")
    left = tetractl("decommission", "--json", "--force", host="%s.%d" % (PREFIX, NODES))
    check("tetractl decommission --json", list(json.loads(left.stdout)) == ["left"] and left.returncode == 0, left.stdout + left.stderr)
    check("and a note tells what it costs", left.stderr == "tetractl: 2 nodes remain in data center datacenter1: "
                                                          "rows will have 2 copies instead of 3\n", left.stderr)
    json_verbs.add("decommission")
    check("two are left", len(as_json("status", "nodes")["nodes"]) == NODES - 1)
    described = as_json("describe-cluster", "nodes")
    check("and counted", described["nodes"] == NODES - 1, described)
    check("and have the schema", len(described["schema_nodes"]["current"]) == NODES - 1 and not described["schema_nodes"]["unreachable"], described)
    with Cluster([FIRST], load_balancing_policy=WhiteListRoundRobinPolicy([FIRST])) as cluster:
        listed = [row.state for row in cluster.connect().execute("SELECT state FROM system_tetrad.nodes")]
    check("who has left is in no row of system_tetrad.nodes", listed == ["normal"] * (NODES - 1), listed)
    # Alone, one of them names whom it misses; nobody need wait for the seed that left.
    for node in range(1, NODES):
        up("--kill", str(node))
    log = TOP / "build/cluster" / FIRST / "node2/log.txt"
    with subprocess.Popen([str(TOP / "tools/up"), "--first-address", FIRST, "--binaries", BIN, "--start", "2"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as start:
        said = r"no answer from %s:7000.*, %s.%d:7000 \(has left for good\)" % (re.escape(FIRST), re.escape(PREFIX), NODES)
        check("a seed that has left is named as such", wait_for(lambda: re.search(said, log.read_text())), log.read_text()[-2000:])
        start.terminate()


def main():
    up("--wipe")
    try:
        # Warm enough for toppartitions at a rate that Python reaches on a busy machine.
        started = up("--nodes", str(NODES), "--", "--split-by-heat=false", "--heat-split-ru-per-s", "200")
        check("three nodes serve", started.returncode == 0, started.stdout + started.stderr)
        cluster, session = fill()
        cluster_verbs()
        data_verbs(session)
        node_verbs()
        client_verbs(session)
        timeouts_in_force(session)
        figure_verbs(session)
        hot_keys(session)
        snapshot_verbs(session)
        system_keyspaces()
        address_groups()
        every_verb_as_json()
        lines_of_words()
        answers_of_others()
        words_of_nodetool()
        cluster.shutdown()
        lost()
        killed_while_leaving()
        leaving()
        without_a_node()
    finally:
        up("--wipe")
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
