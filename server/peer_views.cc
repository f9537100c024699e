// SPDX-License-Identifier: Apache-2.0
// Tables of system_views about the messages between this node and each other one: what all shards
// have sent to it and got from it since the node began. A row for each node of the cluster that
// there was something for; whoever has left it has none.
//
// What Cassandra counts there and does not happen here is 0: nothing waits before it is sent for so
// long that it expires, a frame that is wrong ends its connection, nobody is made to wait before
// more is read. Null is what is not counted by peer: requests that come too late are given up
// where they wait, and there are no reserves of memory.
#include "server/shard_views.h"

namespace tetrad::server {
namespace {

using cql::NodeTable;
using cql::VirtualRow;
using cql::VirtualRows;
using namespace cql::cells;
using replication::MessageLoad;
using replication::ReceivedTraffic;
using replication::SentTraffic;

template <class Traffic>
using OfPeers = std::map<replication::Endpoint, Traffic>;

/// `row` makes the cells behind the four that name the peer.
template <class Traffic>
NodeTable peer_table(const NodeViewSources& from, std::string name,
                     const std::vector<cql::ComputedTables::Column>& columns,
                     std::function<OfPeers<Traffic>(const replication::TcpTransport&)> traffic_of,
                     std::function<VirtualRow(const Traffic&)> row) {
  std::vector<cql::ComputedTables::Column> all = {{"address", "inet", "pk"},
                                                  {"port", "int", "pk"},
                                                  {"dc", "text", "ck"},
                                                  {"rack", "text", "ck"}};
  all.insert(all.end(), columns.begin(), columns.end());
  const auto join = [&from, row](const std::vector<OfPeers<Traffic>>& parts) {
    VirtualRows rows;
    const replication::MetaSnapshot state = from.meta().snapshot();
    for (const auto& [host, node] : state->nodes) {
      if (host == from.meta().self() || node.state == replication::NodeState::kRemoved) continue;
      const auto endpoint = replication::make_endpoint(node.address, node.internode_port);
      Traffic all_shards;
      bool is_known = false;
      for (const OfPeers<Traffic>& part : parts) {
        const auto found = part.find(endpoint);
        if (found == part.end()) continue;
        is_known = true;
        all_shards.add(found->second);
      }
      if (!is_known || !inet(node.address)) continue;
      VirtualRow cells = {inet(node.address), number(node.internode_port), text(node.data_center),
                          text(node.rack)};
      for (cql::VirtualCell& cell : row(all_shards)) cells.push_back(std::move(cell));
      rows.push_back(std::move(cells));
    }
    return rows;
  };
  return {std::move(name), std::move(all),
          [&from, traffic_of, join](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<OfPeers<Traffic>>(
                from, asker, [traffic_of](Shard& shard) { return traffic_of(*shard.transport); },
                join, std::move(done));
          }};
}

VirtualRow row_of_sent(const SentTraffic& of) {
  return {count(of.connections),
          count(of.attempts),
          count(of.lost.bytes),
          count(of.lost.count),
          count(0),  // expired
          count(0),
          count(of.overloaded.bytes),
          count(of.overloaded.count),
          count(of.pending.bytes),
          count(of.pending.count),
          count(of.sent.bytes),
          count(of.sent.count),
          count(of.connected),
          count(of.pending.bytes),  // what the limit of the queue is for
          kNull};
}

NodeTable outbound_table(const NodeViewSources& from) {
  return peer_table<SentTraffic>(
      from, "internode_outbound",
      {{"active_connections", "bigint"},
       {"connection_attempts", "bigint"},
       {"error_bytes", "bigint"},
       {"error_count", "bigint"},
       {"expired_bytes", "bigint"},
       {"expired_count", "bigint"},
       {"overload_bytes", "bigint"},
       {"overload_count", "bigint"},
       {"pending_bytes", "bigint"},
       {"pending_count", "bigint"},
       {"sent_bytes", "bigint"},
       {"sent_count", "bigint"},
       {"successful_connection_attempts", "bigint"},
       {"using_bytes", "bigint"},
       {"using_reserve_bytes", "bigint"}},
      [](const replication::TcpTransport& transport) { return transport.sent(); }, row_of_sent);
}

/// A message is given to its handler as it comes, so what was received and could be read has been
/// processed, and none is scheduled.
VirtualRow row_of_received(const ReceivedTraffic& of) {
  return {count(0),  // corrupt, and the connection went on
          count(of.corrupt_frames),
          count(of.malformed.bytes),
          count(of.malformed.count),
          kNull,  // expired
          kNull,
          count(of.received.bytes - of.malformed.bytes),
          count(of.received.count - of.malformed.count),
          count(of.received.bytes),
          count(of.received.count),
          count(0),  // scheduled
          count(0),
          count(0),  // throttled
          count(0),
          kNull,
          kNull};
}

NodeTable inbound_table(const NodeViewSources& from) {
  return peer_table<ReceivedTraffic>(
      from, "internode_inbound",
      {{"corrupt_frames_recovered", "bigint"},
       {"corrupt_frames_unrecovered", "bigint"},
       {"error_bytes", "bigint"},
       {"error_count", "bigint"},
       {"expired_bytes", "bigint"},
       {"expired_count", "bigint"},
       {"processed_bytes", "bigint"},
       {"processed_count", "bigint"},
       {"received_bytes", "bigint"},
       {"received_count", "bigint"},
       {"scheduled_bytes", "bigint"},
       {"scheduled_count", "bigint"},
       {"throttled_count", "bigint"},
       {"throttled_nanos", "bigint"},
       {"using_bytes", "bigint"},
       {"using_reserve_bytes", "bigint"}},
      [](const replication::TcpTransport& transport) { return transport.received(); },
      row_of_received);
}

}  // namespace

std::vector<NodeTable> peer_views(const NodeViewSources& from) {
  return {inbound_table(from), outbound_table(from)};
}

}  // namespace tetrad::server
