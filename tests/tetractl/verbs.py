# SPDX-License-Identifier: Apache-2.0
"""Calls every verb of tetractl on a real cluster: exit codes, the shape of what is printed, JSON, wrong words.

Those of the cluster, its nodes and their clients here, those about data in data_verbs.py, what stands around a verb in words.py.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

from cassandra import ConsistencyLevel, WriteTimeout
from cassandra.cluster import Cluster
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

import calls
from calls import BIN, FIRST, NODES, PREFIX, SETTINGS, TIMEOUTS, TOP, as_json, case, check, json_verbs, tetractl, up, wait_for
from data_verbs import data_verbs, figure_verbs, hot_keys, snapshot_verbs, system_keyspaces
from words import answers_of_others, lines_of_words, without_a_node, words_of_nodetool


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
    print("%d passed, %d failed" % (calls.passed, calls.failed))
    return 1 if calls.failed else 0


if __name__ == "__main__":
    sys.exit(main())
