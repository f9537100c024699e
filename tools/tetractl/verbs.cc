// SPDX-License-Identifier: Apache-2.0
// The table of verbs. To add one: a row here; a route in server/admin, if it asks something new;
// lines in tests/tetractl/run; `tetractl completion` writes completion.bash anew.
#include "tools/tetractl/orders.h"
#include "tools/tetractl/verb.h"
#include "tools/tetractl/views.h"

namespace tetrad::tools {
namespace {

using Times = Argument::Times;

// Arguments and options that several verbs have.
// A test compares the names with those that a node has.
constexpr std::string_view kSettings =
    "balance_start_percent burst_ru_per_s max_logical_partition_mb max_physical_partition_mb "
    "physical_partition_ru_per_s";
constexpr std::string_view kTimeouts = "cascontention counterwrite range read truncate write";
constexpr Argument kKeyspace{"keyspace", Times::kMaybe}, kTable{"table", Times::kMaybe},
    kTables{"tables", Times::kAny}, kKeyspaces{"keyspaces", Times::kAny};

// For scripts that look by themselves.
constexpr Option kNoWait{"--no-wait", "", "Begin it and return"};
// Of nodetool.
constexpr Option kResolve{"-r --resolve-ip", "", "", "nodes are known by their addresses"};
constexpr std::string_view kAllReplicas = "all replicas are compared, in ranges, one at a time";

// nodetool's; those without effect: see kAllReplicas.
std::vector<Option> repair_options() {
  return {
      {"-st --start-token", "TOKEN", "Only physical partitions that hold tokens after this one"},
      {"-et --end-token", "TOKEN", "Only those that hold tokens up to this one"},
      {"-local --in-local-dc", "", "", kAllReplicas},
      {"-dc --in-dc", "NAME", "", kAllReplicas},
      {"-hosts --in-hosts", "HOST", "", kAllReplicas},
      {"-pr --partitioner-range", "", "", kAllReplicas},
      {"-full --full", "", "", kAllReplicas},
      {"-seq --sequential", "", "", kAllReplicas},
      {"-dcpar --dc-parallel", "", "", kAllReplicas},
      {"-j --job-threads", "COUNT", "", kAllReplicas},
      {"-tr --trace", "", "", "the node's log tells what was repaired"}};
}

// Each function has the verbs of one theme; verbs() sets the theme and joins them in the order of
// the help.
std::vector<Verb> cluster_verbs() {
  return {
      Verb("status", "Nodes, whether they are live, what they hold; fails unless the node serves")
          .takes({kKeyspace})
          .with({kResolve})
          .done_by(show_status),
      Verb("ring", "Tokens of the ring and who owns them")
          .takes({kKeyspace})
          .with({kResolve})
          .done_by(show_ring),
      Verb("describe-cluster", "Name, schema version and settings of the cluster")
          .also({"describecluster"})
          .done_by(show_cluster),
      Verb("describering", "Ranges of a keyspace's tables, and who has them")
          .takes({{"keyspace", Times::kOnce}, kTable})
          .done_by(show_ranges),
      Verb("gossipinfo", "What this node knows of all nodes").with({kResolve}).done_by(show_gossip),
      Verb("getendpoints",
           "The nodes that have the replicas of a partition key (a:b of two columns)")
          .takes({{"keyspace", Times::kOnce}, {"table", Times::kOnce}, {"key", Times::kOnce}})
          .asks_for("/endpoints", {"keyspace", "table", "key"})
          .shown_by(print_endpoints),
      Verb("getseeds", "The seeds of this node, without itself")
          .asks_for("/info")
          .shown_by(print_seeds),
      Verb("getdefaultrf",
           "The factor stored of a keyspace that names none; rows have min(4, nodes)")
          .asks_for("/info")
          .shown_by(print_default_factor),
      Verb("partitions", "Physical partitions: ranges, replicas, sizes")
          .takes({kKeyspace, kTable})
          .asks_for("/partitions", {"keyspace", "table"})
          .shown_by(print_partitions),
      Verb("rebalance",
           "Shows (--plan) or begins (--apply) moves to equal parts, however near the nodes are")
          .with({{"--plan", "", "Print the moves that would make the nodes' parts equal"},
                 {"--apply", "", "Begin them now and print them"}})
          .done_by(rebalance),
      Verb("split", "Splits a physical partition in two (partitions tells its id)")
          .takes({{"id", Times::kOnce}})
          .orders("/split", {"id"}),
      Verb("merge", "Merges a physical partition with the one behind it in its table")
          .takes({{"id", Times::kOnce}})
          .orders("/merge", {"id"}),
      Verb("setting", "Changes a setting of the whole cluster (describe-cluster shows them)")
          .takes({{"name", Times::kOnce, kSettings}, {"value", Times::kOnce}})
          .orders("/setting", {"name", "value"}),
      Verb("remove-node", "Takes a dead node out: its replicas are rebuilt, its id is retired")
          .also({"removenode"})
          .takes({{"host_id_or_address", Times::kOnce}})
          .with({kNoWait})
          .done_by(remove_node),
      Verb("remove-lost-nodes",
           "Gives up nodes that are gone for good where too few are left to rebuild what they had")
          .takes({{"host_ids_or_addresses", Times::kAny}})
          .with({{"--data-center", "NAME", "All nodes of this data center"},
                 {"--accept-loss", "", "Without it only what may be lost is printed"},
                 {"--verbose", "", "Names each physical partition, not only how many of a table"}})
          .done_by(remove_lost_nodes),
      Verb("recover-metadata",
           "Most voters of the metadata group are gone for good: this node is the only one then")
          .with({{"--accept-loss", "", "Changes that no node has which is left are lost"}})
          .done_by(recover_metadata),
      Verb("decommission",
           "The node gives its replicas to others, leaves and stops; three stay, unless --force")
          .with({kNoWait,
                 {"-f --force", "",
                  "Also where fewer than three nodes remain in its data center, which had three"},
                 {"--cancel", "", "It stays, with what it has not given away yet"}})
          .done_by(decommission),
  };
}

// Verbs of one node's stores, but for repair and verify, which compare all members of a tablet.
std::vector<Verb> data_verbs() {
  return {
      Verb("tablestats", "Sizes, requests and latencies of tables on the node, and its stores")
          .also({"cfstats"})
          .takes({{"keyspaces_or_tables", Times::kAny}})
          .with({{"-H --human-readable", "", "Sizes in KiB, MiB and so on"},
                 {"-i --ignore", "", "All tables but those that are named"}})
          .done_by(show_table_stats),
      Verb("statusautocompaction", "Whether the node compacts its files")
          .takes({kKeyspace, kTables})
          .with({{"-a --all", "", "", "it is one for all tables"}})
          .asks_for("/info")
          .shown_by(print_compaction_runs),
      Verb("disableautocompaction",
           "The node compacts nothing by itself, until a store has 16 unsorted files, or a restart")
          .takes({kKeyspace, kTables})
          .done_by(set_auto_compaction),
      Verb("enableautocompaction", "The node compacts its files by itself again")
          .takes({kKeyspace, kTables})
          .done_by(set_auto_compaction),
      Verb("flush", "Writes the node's memtables to disk")
          .takes({kKeyspace, kTables})
          .orders("/flush", {"keyspace", "tables"}),
      Verb("compact", "Drops what may be purged on the node, then compacts its files")
          .takes({kKeyspace, kTables})
          .with({{"-s --split-output", "", "", "files are of one size anyway"}})
          .orders("/compact", {"keyspace", "tables"}),
      Verb("repair", "Compares all replicas now and makes them equal, which goes on all the time")
          .takes({kKeyspace, kTables})
          .with(repair_options())
          .done_by(repair),
      Verb("verify", "Reads every block of the node's files, compares replicas, writes nothing")
          .takes({kKeyspace, kTables})
          .with({{"-e --extended-verify", "", "", "every block is read anyway"},
                 {"-f --force", "", "", "it is always allowed"},
                 {"--mend", "", "Of `verify view KEYSPACE VIEW`: rows that differ are made anew"},
                 {"--stop", "", "Ends the comparison of a view that is under way"}})
          .done_by(verify),
      Verb("recover", "After a power cut: what the node can never fetch is given up")
          .with({{"--accept-loss", "", "Acknowledged writes may be lost; prints where"}})
          .done_by(recover),
      Verb("viewbuildstatus", "Whether this node has built a view; fails until it has")
          .takes({{"keyspace", Times::kOnce}, {"view", Times::kMaybe}})
          .done_by(show_view_build),
      Verb("datapaths", "Where the node keeps its tables: all of a store are in one folder")
          .takes({{"keyspaces_or_tables", Times::kAny}})
          .done_by(show_data_paths),
      Verb("drop-batches", "Drops the logged batches that do not decode, which /health tells of")
          .orders("/drop-batches"),
  };
}

// Facts that nodetool asks one by one are all in /info; each verb prints its own.
std::vector<Verb> node_verbs() {
  return {
      Verb("info", "What the node is and uses")
          .with({{"-T --tokens", "", "All its tokens"}})
          .asks_for("/info")
          .shown_by(print_info),
      Verb("version", "The version that drivers are told, and that of the node")
          .with({{"-v --verbose", "", "", "there is no build of another date or branch to tell"}})
          .asks_for("/info")
          .shown_by(print_version),
      Verb("statusgossip", "Running, if the node answers")
          .asks_for("/info")
          .shown_by(print_gossip_runs),
      Verb("statushandoff", "Running, if the node answers")
          .asks_for("/info")
          .shown_by(print_handoff_runs),
      Verb("getmaxhintwindow", "How long hints are kept for a replica that is away")
          .asks_for("/info")
          .shown_by(print_hint_window),
      Verb("getlogginglevels", "The least level that the node logs")
          .asks_for("/info")
          .shown_by(print_log_levels),
      Verb("setlogginglevel", "As log-level, in nodetool's words; without any: info")
          .takes({{"class_and_level", Times::kAny}})
          .done_by(set_log_level),
      Verb("log-level", "Changes the least level that the node logs: debug, info, warn, error")
          .takes({{"level", Times::kOnce, "debug info warn error"}})
          .orders("/log-level", {"level"}),
      Verb("disk-encryption", "The keys that the node's files on disk are encrypted with")
          .asks_for("/disk-encryption")
          .shown_by(print_disk_encryption),
      Verb("reload-certificates", "Reads the node's certificates again; it also looks by itself")
          .also({"reloadssl"})
          .orders("/reload-certificates")
          .shown_by(print_certificates),
  };
}

// What is changed here holds until the node ends; conf/tetrad.yaml has what holds at a start.
std::vector<Verb> client_verbs() {
  return {
      Verb("statusbinary", "Whether the node serves clients")
          .asks_for("/info")
          .shown_by(print_binary),
      Verb("disablebinary", "Clients are answered and cut off, new ones are refused")
          .done_by(set_binary),
      Verb("enablebinary", "Clients may connect again").done_by(set_binary),
      Verb("drain", "As disablebinary, then writes memtables to disk; replicas go on")
          .orders("/drain"),
      Verb("clientstats", "Connections of clients, by user")
          .with({{"--all", "", "Each of them"},
                 {"--verbose", "", "Each of them"},
                 {"--client-options", "", "Each of them, and what its driver says of itself"},
                 {"--metadata", "", "As --client-options"},
                 {"--by-protocol", "", "By version of the protocol"},
                 {"--clear-history", "", "", "nothing is kept of connections that have ended"}})
          .asks_for("/clients")
          .shown_by(print_clients),
      Verb("listcidrgroups", "Groups of addresses that roles may be bound to, or the CIDRs of one")
          .takes({{"name", Times::kMaybe}})
          .asks_for("/cidr-groups", {"name"})
          .shown_by(print_cidr_groups),
      Verb("getcidrgroupsofip", "The groups that an address is in")
          .takes({{"address", Times::kOnce}})
          .asks_for("/cidr-groups-of", {"address"})
          .shown_by(print_cidr_groups),
      Verb("updatecidrgroup",
           "Makes a group of addresses, 10.0.0.0/8 or 2001:db8::/32, or changes it")
          .takes({{"name", Times::kOnce}, {"cidrs", Times::kAny}})
          .orders("/update-cidr-group", {"name", "cidrs"}),
      Verb("dropcidrgroup",
           "Drops a group of addresses; who is bound to it alone is let in no more")
          .takes({{"name", Times::kOnce}})
          .orders("/drop-cidr-group", {"name"}),
      Verb("cidrfilteringstats", "How often clients were let in or refused, by group of addresses")
          .asks_for("/cidr-filtering")
          .shown_by(print_cidr_filtering),
      Verb("gettimeout", "How long statements may take: read, range, write, counterwrite, ...")
          .takes({{"timeout_types", Times::kAny, kTimeouts}})
          .done_by(show_timeout),
      Verb("settimeout", "Changes it, in milliseconds, until the node ends")
          .takes({{"timeout_type", Times::kOnce, kTimeouts}, {"timeout_in_ms", Times::kOnce}})
          .done_by(set_timeout),
      Verb("gettraceprobability", "Which part of requests is traced unasked")
          .asks_for("/info")
          .shown_by(print_trace_probability),
      Verb("settraceprobability", "Changes it, from 0 to 1, until the node ends")
          .takes({{"probability", Times::kOnce}})
          .orders("/trace-probability", {"probability"})
          .shown_by(print_nothing),
  };
}

// nodetool's tables, made of metrics: figures.cc.
std::vector<Verb> figure_verbs() {
  return {
      Verb("proxyhistograms",
           "Latencies that this node coordinates, as nodetool; CAS Wait: how long conditional "
           "statements wait until others of their partition are done")
          .done_by(show_proxy_histograms),
      Verb("tablehistograms", "Latencies of the reads and writes of a table in the node's stores")
          .also({"cfhistograms"})
          .takes({kKeyspace, kTable})
          .done_by(show_table_histograms),
      Verb("tpstats", "Requests and reads of disk: under way, waiting, refused; what was dropped")
          .done_by(show_pools),
      Verb("toppartitions", "The partition keys whose replicas on the node get most work")
          .takes({kKeyspace, kTable, {"duration_ms", Times::kMaybe}})
          .with({{"-k --top", "COUNT", "How many (10)"},
                 {"-a --samplers", "READS,WRITES", "Work of this kind only"},
                 {"-s --size", "COUNT", "", "64 keys of each physical partition are counted"}})
          .done_by(show_top_partitions),
      Verb("compactionstats", "Compactions that run, and what they have yet to do")
          .with({{"-H --human-readable", "", "", "sizes always are"}})
          .done_by(show_compactions),
      Verb("netstats", "Streams, read repairs, messages and hints")
          .with({{"-H --human-readable", "", "", "sizes always are"}})
          .done_by(show_network),
  };
}

std::vector<Verb> snapshot_verbs() {
  return {
      Verb("snapshot", "Keeps the node's tables as they are now, by hard links")
          .takes({kKeyspaces})
          .with({{"-t --tag", "NAME", "Its name; otherwise the time"},
                 {"-cf --column-family --table", "NAME", "Only this table of the one keyspace"},
                 {"-kt -kc --kc.list --kt-list", "KS.T,...", "Only these tables"},
                 {"--ttl", "TIME", "Until it is removed: 90s, 5m, 1h, 7d"},
                 {"-sf --skip-flush", "", "Without what is in memtables only"}})
          .done_by(take_snapshot),
      Verb("listsnapshots", "Snapshots of the node; the true size is what only they have")
          .with({{"-nt --no-ttl", "", "Without those that expire"},
                 {"-e --ephemeral", "", "", "there are none of that kind"}})
          .done_by(show_snapshots),
      Verb("clearsnapshot", "Removes a snapshot, or --all; with keyspaces only their tables")
          .takes({kKeyspaces})
          .with({{"-t --tag", "NAME", "Which one"}, {"--all", "", "All of them"}})
          .done_by(clear_snapshot),
  };
}

// They run where no node is.
std::vector<Verb> verbs_of_no_node() {
  return {
      Verb("certificates",
           "Makes an authority, and certificates for nodes (each its addresses and "
           "names, with commas between) and clients")
          .takes({{"directory", Times::kOnce, Argument::kDirectories}, {"nodes", Times::kAny}})
          .with({{"--client", "NAME", "A certificate for a client of this name"},
                 {"--days", "COUNT",
                  "How long certificates hold (default 825); the authority's holds 3650"},
                 {"--renew", "", "Make those anew that are there"}})
          .done_by(make_certificates),
      Verb("completion", "Prints a script by which bash completes verbs and options")
          .done_by(print_completion),
  };
}

constexpr std::string_view kNoBackups = "there are no incremental backups";

/// Orders that a node carries out by itself, or does not know.
/// The last member: what the word is for is the case anyway, so a script that says it goes on.
std::vector<OtherWord> orders_without_a_verb() {
  // Reasons that several words share.
  constexpr std::string_view kNoSuchCache = "there is no such cache";
  constexpr std::string_view kRolesAtOnce =
      "a change of roles, rights and groups is in force on all nodes at once";
  constexpr std::string_view kRaft = "metadata goes through the metadata group, there is no gossip";
  constexpr std::string_view kNoFiles =
      "files of Cassandra are not read; cqlsh's COPY and tools that write by CQL move rows";
  constexpr std::string_view kRepairs = "a node repairs all the time, by itself";
  return {
      {"bootstrap", "a node that starts joins by itself and goes on where it was", true},
      {"cleanup", "a node drops by itself what is not its own any more", true},
      {"garbagecollect", "what may be purged is dropped all the time; tetractl compact does it now",
       true},
      {"rebuild", "a node fetches what it lacks from its peers by itself", true},
      {"rebuild_index", "indexes are built and kept by themselves", true},
      {"recompress_sstables", "compactions do it", true},
      {"refreshsizeestimates", "estimates are made when system.size_estimates is read", true},
      {"repair_admin", "a repair ends with the command that began it", true},
      {"relocatesstables", "a node has one place for data", true},
      {"reloadlocalschema", "the schema is that of the metadata group", true},
      {"rebuildcdc", "change feeds are kept by themselves", true},
      {"resetlocalschema", "the schema is that of the metadata group", true},
      {"scrub",
       "a store whose files have rotted is filled anew by its peers; tetractl verify reads "
       "them now",
       true},
      {"upgradesstables", "the node reads all formats of its data, compactions write the newest",
       true},
      {"checktokenmetadata", kRaft, true},
      {"sstablerepairedset", "files keep no mark of a repair", true},
      {"setautorepairconfig", kRepairs, true},
      {"enablegossip", kRaft, true},
      {"enablehandoff", "hints are always kept", true},
      {"resumehandoff", "hints are always replayed", true},
      {"invalidatecredentialscache", kRolesAtOnce, true},
      {"invalidatepermissionscache", kRolesAtOnce, true},
      {"invalidaterolescache", kRolesAtOnce, true},
      {"invalidatenetworkpermissionscache", kRolesAtOnce, true},
      {"invalidatecidrpermissionscache", kRolesAtOnce, true},
      {"reloadcidrgroupscache", kRolesAtOnce, true},
      {"setauthcacheconfig", kRolesAtOnce, true},
      {"getauthcacheconfig", kRolesAtOnce, false},
      {"invalidaterowcache", "a row in the row cache goes when it is written", true},
      {"invalidatekeycache", kNoSuchCache, true},
      {"invalidatecountercache", kNoSuchCache, true},
      {"abortbootstrap",
       "a node that joins takes no tokens that others wait for: end its process, then tetractl "
       "remove-node HOST_ID_OR_ADDRESS",
       false},
      {"assassinate", "tetractl remove-node HOST_ID_OR_ADDRESS takes a dead node out", false},
      {"disablegossip", kRaft, false},
      {"disablehandoff", "hints are always kept", false},
      {"pausehandoff", "hints are always replayed", false},
      {"truncatehints", "hints are replayed or expire", false},
      {"import", kNoFiles, false},
      {"sstableloader", kNoFiles, false},
      {"restore",
       "there is no restore yet; snapshots keep what it will need, cqlsh's COPY moves rows", false},
      {"join", "a node that starts joins by itself", false},
      {"move", "tokens are fixed when a node joins; data moves by physical partition", false},
      {"stopdaemon", "end the process of the node with SIGTERM", false},
      {"enablebackup", kNoBackups, false},
      {"profileload", "tetractl toppartitions tells which partition keys get most work", false},
  };
}

/// Settings that are options here, and figures that are elsewhere.
/// Questions and settings that have another place here, or none.
std::vector<OtherWord> settings_without_a_verb() {
  constexpr std::string_view kPaced = "the node paces compactions, streams and hints by itself";
  constexpr std::string_view kCompactors =
      "option background_threads, read at the start of the node; system_views.settings has it";
  constexpr std::string_view kProtocols = "versions 3 to 5 of the protocol are always spoken";
  constexpr std::string_view kNoColumnIndex = "files have an index of all rows, in blocks";
  constexpr std::string_view kGuardrails =
      "options read at the start of the node; system_views.settings has them";
  constexpr std::string_view kRepairHistory =
      "a node repairs all the time, by itself; system_distributed.repair_history has its repairs";
  constexpr std::string_view kAudit = "options audit_log_*, read at the start of the node";
  return {
      {"setcompactionthroughput", kPaced, true},
      {"setconcurrentcompactors", kCompactors, false},
      {"setstreamthroughput", kPaced, true},
      {"setinterdcstreamthroughput", kPaced, true},
      {"sethintedhandoffthrottlekb", kPaced, true},
      {"setbatchlogreplaythrottle", kPaced, true},
      {"setsnapshotthrottle", kPaced, true},
      {"setconcurrentviewbuilders", kPaced, true},
      {"setcompactionthreshold", kPaced, true},
      {"setcolumnindexsize", kNoColumnIndex, true},
      {"setmaxhintwindow", "hints are replayed or expire by themselves", true},
      {"enablehintsfordc", "hints are always kept", true},
      {"replaybatchlog", "logged batches are replayed by themselves", true},
      {"reloadseeds", "seeds are asked by their names each time", true},
      {"reloadtriggers", "there are no triggers", true},
      {"forcecompact", "tetractl compact does all of the node", false},
      {"invalidatejmxpermissionscache", "there is no JMX", true},
      {"disablebackup", kNoBackups, true},
      {"statusbackup", "not running: there are no incremental backups", true},
      {"disableoldprotocolversions", kProtocols, false},
      {"enableoldprotocolversions", kProtocols, true},
      {"disablehintsfordc", "hints are always kept", false},
      {"getcompactionthroughput", kPaced, false},
      {"getconcurrentcompactors", kCompactors, false},
      {"getcompactionthreshold", kPaced, false},
      {"getbatchlogreplaythrottle", kPaced, false},
      {"getconcurrentviewbuilders", kPaced, false},
      {"getsnapshotthrottle", kPaced, false},
      {"getcolumnindexsize", kNoColumnIndex, false},
      {"getguardrailsconfig", kGuardrails, false},
      {"setguardrailsconfig", kGuardrails, false},
      {"setdefaultrf", "a keyspace that names no replication factor has 1", false},
      {"setcachecapacity", "options row_cache_mb and block_cache_mb, see conf/README.md", false},
      {"setcachekeystosave", "caches are filled anew after a start", false},
      {"autorepairstatus", kRepairHistory, false},
      {"getautorepairconfig", kRepairHistory, false},
      {"getstreamthroughput", kPaced, false},
      {"getinterdcstreamthroughput", kPaced, false},
      {"getconcurrency", "shards and io_threads, see conf/README.md", false},
      {"setconcurrency", "shards and io_threads, see conf/README.md", false},
      {"getsstables", "files are those of a store, with rows of all its tables", false},
      {"refresh", "files of Cassandra are not read", false},
      {"stop", "compactions cannot be stopped", false},
      {"gcstats", "there is no garbage collector", false},
      {"sjk", "there is no JVM", false},
      {"rangekeysample", "tetractl partitions tells the ranges and their sizes", false},
      {"failuredetector", "tetractl status tells which nodes are live", false},
      {"compactionhistory", "SELECT * FROM system.compaction_history tells the last ones", false},
      {"listpendinghints", "SELECT * FROM system_views.pending_hints tells them", false},
      {"enableauditlog", kAudit, false},
      {"disableauditlog", kAudit, false},
      {"getauditlog", kAudit, false},
      {"enablefullquerylog", kAudit, false},
      {"disablefullquerylog", kAudit, false},
      {"getfullquerylog", kAudit, false},
      {"resetfullquerylog", kAudit, false},
  };
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = [] {
    std::vector<Verb> all;
    const auto add = [&](std::string_view theme, std::vector<Verb> rows) {
      for (Verb& row : rows) {
        row.theme = theme;
        all.push_back(std::move(row));
      }
    };
    add("The cluster", cluster_verbs());
    add("Data", data_verbs());
    add("The node", node_verbs());
    add("Clients of the node", client_verbs());
    add("Figures of the node", figure_verbs());
    add("Snapshots", snapshot_verbs());
    add("Without a node", verbs_of_no_node());
    return all;
  }();
  return table;
}

const std::vector<OtherWord>& other_words() {
  static const std::vector<OtherWord> table = [] {
    std::vector<OtherWord> all = orders_without_a_verb();
    for (const OtherWord& word : settings_without_a_verb()) all.push_back(word);
    return all;
  }();
  return table;
}

}  // namespace tetrad::tools
