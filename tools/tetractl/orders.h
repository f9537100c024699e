// SPDX-License-Identifier: Apache-2.0
// Verbs that are more than one question: orders that are waited for, facts that are put together,
// and what asks no node. Each gives the exit code. Errors: NodeError.
//
// How they are shown stands beside each: cluster_views.cc (status to gossip), table_stats.cc,
// figures.cc (histograms to compactions), top_partitions.cc, and orders.cc for what waits or
// changes something. `call` has the words of the command line, which the table of verbs has
// checked.
#pragma once

#include "tools/tetractl/verb.h"

namespace tetrad::tools {

// Facts.
// Exit code 1 unless the node serves: scripts wait for it.
int show_status(AdminClient& node, const Invocation& call);
int show_cluster(AdminClient& node, const Invocation& call);
// With a word: of that keyspace, whose replicas decide what a node owns.
int show_ring(AdminClient& node, const Invocation& call);
int show_ranges(AdminClient& node, const Invocation& call);
int show_gossip(AdminClient& node, const Invocation& call);
int show_table_stats(AdminClient& node, const Invocation& call);
int show_data_paths(AdminClient& node, const Invocation& call);
// Exit code 1 until this node has built it.
int show_view_build(AdminClient& node, const Invocation& call);
int show_table_histograms(AdminClient& node, const Invocation& call);
// From /metrics, like show_pools, show_network and show_compactions.
int show_proxy_histograms(AdminClient& node, const Invocation& call);
int show_pools(AdminClient& node, const Invocation& call);
int show_top_partitions(AdminClient& node, const Invocation& call);
int show_network(AdminClient& node, const Invocation& call);
int show_compactions(AdminClient& node, const Invocation& call);
int show_timeout(AdminClient& node, const Invocation& call);
// Orders. Those that are waited for ask the node again and again until it has done them, or is
// away.
int set_timeout(AdminClient& node, const Invocation& call);
int set_binary(AdminClient& node, const Invocation& call);
// Of all tables of the node at once; exit code 1 where some are named.
int set_auto_compaction(AdminClient& node, const Invocation& call);
int set_log_level(AdminClient& node, const Invocation& call);
// nodetool's listsnapshots, in its columns.
int show_snapshots(AdminClient& node, const Invocation& call);
// A snapshot's order answers when it is done; clearing one says how many it has removed.
int take_snapshot(AdminClient& node, const Invocation& call);
int clear_snapshot(AdminClient& node, const Invocation& call);
int repair(AdminClient& node, const Invocation& call);
// Exit code 1: something is damaged or differs. repair mends what it finds and gives 0.
int verify(AdminClient& node, const Invocation& call);
// Either --plan or --apply.
int rebalance(AdminClient& node, const Invocation& call);
int remove_node(AdminClient& node, const Invocation& call);
int recover_metadata(AdminClient& node, const Invocation& call);
int remove_lost_nodes(AdminClient& node, const Invocation& call);
// Of the node that is asked; remove_node names another one, which is dead.
int decommission(AdminClient& node, const Invocation& call);
// After a power cut. Refused without --accept-loss.
int recover(AdminClient& node, const Invocation& call);
// These ask no node: `node` is not used.
int make_certificates(AdminClient& node, const Invocation& call);
int print_completion(AdminClient& node, const Invocation& call);

}  // namespace tetrad::tools
