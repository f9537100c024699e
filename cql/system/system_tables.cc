// SPDX-License-Identifier: Apache-2.0
// The computed keyspaces: what drivers, cqlsh and people read about this cluster.
#include <algorithm>
#include <map>

#include "base/task.h"
#include "cql/system/computed_tables.h"
#include "cql/system/size_estimates.h"
#include "cql/system/virtual_tables.h"
#include "replication/meta/state_names.h"

namespace tetrad::cql {
namespace {

using namespace cells;

VirtualCell token_set(const std::vector<int64_t>& tokens) {
  std::vector<std::string> texts;
  for (const int64_t token : tokens) texts.push_back(std::to_string(token));
  return text_set(std::move(texts));
}

class SystemTables final : public VirtualTables {
 public:
  SystemTables(replication::MetaService& meta, LocalNodeFacts facts, NodeTables of_node)
      : meta_(meta), facts_(std::move(facts)), of_node_(std::move(of_node)), estimates_(meta) {
    define_system();
    define_schema_tables(tables_);
    define_others();
    define_role_tables(tables_);
    define_empty_tables(tables_);
    define_empty_views(tables_);
    define_gossip_table(tables_, meta_, facts_);
    define_throughput_table(tables_, meta_);
    define_placement_tables(tables_, meta_);
    define_partition_sizes(tables_, meta_);
    define_repair_tables(tables_, meta_);
    define_tables_of_node();
    // The server's own know which indexes are built.
    if (of_node_ == nullptr) define_index_tables(tables_);
    comment_own_tables(tables_);
    keyspaces_ = tables_.keyspaces();
  }

  const std::vector<std::shared_ptr<const KeyspaceSchema>>& keyspaces() const override {
    return keyspaces_;
  }

  Task<Result<void>> prepare_read(const TableSchema& table, const storage::ReadCommand& command,
                                  base::Reactor& reactor,
                                  replication::Coordinator& coordinator) override {
    if (is_of_node(table)) {
      auto gathered = co_await gather(table.name, reactor);
      co_return gathered;
    }
    if (table.keyspace != "system" || !table.name.ends_with("_estimates")) co_return Result<void>();
    std::optional<std::string> keyspace;
    if (!command.is_range) keyspace = std::string(command.partition_key);
    co_await estimates_.refresh(std::move(keyspace), reactor, coordinator);
    co_return Result<void>();
  }

  Result<storage::ReadResult> read(const TableSchema& table, const storage::ReadCommand& command,
                                   const SchemaSnapshot& schema) override {
    const ComputedTables::Source* source = tables_.source(table.incarnation);
    if (source == nullptr) {
      return fail(ErrorCode::kInvalid, "table {} does not exist", table.qualified_name());
    }
    TETRAD_TRY(VirtualRows rows, (*source)(schema, command));
    return select_virtual_rows(table, std::move(rows), command);
  }

 private:
  std::vector<const replication::NodeInfo*> peers(const replication::MetaState& state) const {
    std::vector<const replication::NodeInfo*> out;
    for (const auto& [host, node] : state.nodes) {
      const bool complete = (node.state == replication::NodeState::kNormal ||
                             node.state == replication::NodeState::kLeaving) &&
                            !node.tokens.empty() && !node.address.empty();
      if (complete && host != meta_.self()) out.push_back(&node);
    }
    return out;
  }

  bool is_of_node(const TableSchema& table) const {
    return of_node_ != nullptr && std::ranges::any_of(*of_node_, [&](const NodeTable& known) {
             return known.keyspace == table.keyspace && known.name == table.name;
           });
  }

  void define_tables_of_node() {
    if (of_node_ == nullptr) return;
    for (const NodeTable& table : *of_node_)
      tables_.define(table.keyspace, table.name, table.columns,
                     [this, name = table.name](const SchemaSnapshot&) {
                       const auto found = gathered_.find(name);
                       return found == gathered_.end() ? VirtualRows() : *found->second;
                     });
  }

  /// Asks for what read() gives then. Requests that overlap see the newest rows of them.
  Task<Result<void>> gather(std::string name, base::Reactor& reactor) {
    constexpr int64_t kWaitUs = 5'000'000;
    const auto table = std::ranges::find(*of_node_, name, &NodeTable::name);
    using Rows = std::shared_ptr<const VirtualRows>;  // null: they did not come
    base::OneShot<Rows> arrived;
    table->gather(reactor, [setter = arrived.setter()](VirtualRows rows) {
      setter.set(std::make_shared<const VirtualRows>(std::move(rows)));
    });
    const auto timer = reactor.call_at(reactor.now_us() + kWaitUs,
                                       [setter = arrived.setter()] { setter.set(Rows()); });
    Rows rows = co_await arrived;
    reactor.cancel(timer);
    if (rows == nullptr)
      co_return fail(ErrorCode::kServerError, "a part of this node does not answer: no {}", name);
    gathered_[name] = std::move(rows);
    co_return Result<void>();
  }

  void define_system() {
    define_local();
    define_peers();
    define_peers_v2();
    define_estimates("size_estimates", {});
    define_estimates("table_estimates", {"local_primary", "primary"});
  }

  /// system.local: its one row. Drivers read it first on each control connection.
  void define_local() {
    tables_.define(
        "system", "local", {{"key", "text", "pk"},         {"bootstrapped", "text"},
                            {"broadcast_address", "inet"}, {"broadcast_port", "int"},
                            {"cluster_name", "text"},      {"cql_version", "text"},
                            {"data_center", "text"},       {"gossip_generation", "int"},
                            {"host_id", "uuid"},           {"listen_address", "inet"},
                            {"listen_port", "int"},        {"native_protocol_version", "text"},
                            {"partitioner", "text"},       {"rack", "text"},
                            {"release_version", "text"},   {"rpc_address", "inet"},
                            {"rpc_port", "int"},           {"schema_version", "uuid"},
                            {"tokens", "set<text>"},       {"truncated_at", "map<uuid, blob>"},
                            {"tetrad_version", "text"}},
        [this](const SchemaSnapshot& schema) -> VirtualRows {
          const replication::MetaSnapshot state = meta_.snapshot();
          const auto self = state->nodes.find(meta_.self());
          const replication::NodeInfo* node = self == state->nodes.end() ? nullptr : &self->second;
          return {{text("local"),
                   text("COMPLETED"),
                   inet(facts_.address),
                   number(facts_.internode_port),
                   text(state->cluster_name),
                   text(facts_.cql_version),
                   node != nullptr ? text(node->data_center) : kNull,
                   number(1),
                   uuid(meta_.self().value),
                   inet(facts_.listen_address),
                   number(facts_.internode_port),
                   text("5"),
                   text("org.apache.cassandra.dht.Murmur3Partitioner"),
                   node != nullptr ? text(node->rack) : kNull,
                   text(facts_.release_version),
                   inet(facts_.client_address),
                   number(facts_.native_port),
                   uuid(schema.version_uuid()),
                   token_set(node != nullptr ? node->tokens : std::vector<int64_t>()),
                   kNull,
                   text(facts_.tetrad_version)}};
        });
  }

  /// system.peers, the form that drivers of Cassandra 3 read; both forms have the same nodes. A peer
  /// may be behind for a moment; what drivers compare is what this node knows it will be.
  void define_peers() {
    tables_.define(
        "system", "peers",
        {{"peer", "inet", "pk"},
         {"data_center", "text"},
         {"host_id", "uuid"},
         {"preferred_ip", "inet"},
         {"rack", "text"},
         {"release_version", "text"},
         {"rpc_address", "inet"},
         {"schema_version", "uuid"},
         {"tokens", "set<text>"}},
        [this](const SchemaSnapshot& schema) {
          const replication::MetaSnapshot state = meta_.snapshot();
          VirtualRows rows;
          for (const auto* node : peers(*state)) {
            rows.push_back({inet(node->address), text(node->data_center), uuid(node->host.value),
                            kNull, text(node->rack), text(facts_.release_version),
                            inet(node->address_of_clients()), uuid(schema.version_uuid()),
                            token_set(node->tokens)});
          }
          return rows;
        });
  }

  /// The form of Cassandra 4 and later, with ports: several nodes may share an address.
  void define_peers_v2() {
    tables_.define("system", "peers_v2",
                   {{"peer", "inet", "pk"},
                    {"peer_port", "int", "ck"},
                    {"data_center", "text"},
                    {"host_id", "uuid"},
                    {"native_address", "inet"},
                    {"native_port", "int"},
                    {"preferred_ip", "inet"},
                    {"preferred_port", "int"},
                    {"rack", "text"},
                    {"release_version", "text"},
                    {"schema_version", "uuid"},
                    {"tokens", "set<text>"}},
                   [this](const SchemaSnapshot& schema) {
                     const replication::MetaSnapshot state = meta_.snapshot();
                     VirtualRows rows;
                     for (const auto* node : peers(*state)) {
                       rows.push_back({inet(node->address), number(node->internode_port),
                                       text(node->data_center), uuid(node->host.value),
                                       inet(node->address_of_clients()), number(node->native_port),
                                       kNull, kNull, text(node->rack), text(facts_.release_version),
                                       uuid(schema.version_uuid()), token_set(node->tokens)});
                     }
                     return rows;
                   });
  }

  /// One row a range, or one a range and type.
  void define_estimates(const char* name, std::vector<const char*> types) {
    std::vector<ComputedTables::Column> columns = {{"keyspace_name", "text", "pk"},
                                                   {"table_name", "text", "ck"}};
    if (!types.empty()) columns.push_back({"range_type", "text", "ck"});
    columns.insert(columns.end(), {{"range_start", "text", "ck"},
                                   {"range_end", "text", "ck"},
                                   {"mean_partition_size", "bigint"},
                                   {"partitions_count", "bigint"}});
    tables_.define("system", name, std::move(columns), [this, types](const SchemaSnapshot&) {
      VirtualRows rows;
      for_each_estimate([&](const replication::TableInfo& table, const RingRange& range,
                            TabletEstimate estimate) {
        const auto add = [&](const char* type) {
          auto& row = rows.emplace_back();
          row = {text(table.keyspace), text(table.name)};
          if (type != nullptr) row.push_back(text(type));
          row.insert(row.end(), {text(std::to_string(range.start.token)),
                                 text(std::to_string(range.end.token)), big(estimate.mean_bytes),
                                 big(estimate.partitions)});
        };
        if (types.empty()) add(nullptr);
        for (const char* type : types) add(type);
      });
      return rows;
    });
  }

  /// This node's parts of the ring, as Cassandra lists primary ranges.
  template <class Visit>
  void for_each_estimate(Visit visit) const {
    const replication::MetaSnapshot state = meta_.snapshot();
    for (const auto& [id, table] : state->tables) {
      for (const auto& tablet : table->tablets.tablets()) {
        const std::optional<RingRange> part = primary_part(tablet, meta_.self());
        if (part) visit(*table, *part, estimates_.of(tablet.id));
      }
    }
  }

  void define_others() {
    // The form of the tables that traces are kept in (execute/trace_store.h).
    tables_.define("system_traces", "sessions",
                   {{"session_id", "uuid", "pk"},
                    {"client", "inet"},
                    {"command", "text"},
                    {"coordinator", "inet"},
                    {"coordinator_port", "int"},
                    {"duration", "int"},
                    {"parameters", "map<text, text>"},
                    {"request", "text"},
                    {"started_at", "timestamp"}},
                   no_rows);
    tables_.define("system_traces", "events",
                   {{"session_id", "uuid", "pk"},
                    {"event_id", "timeuuid", "ck"},
                    {"activity", "text"},
                    {"source", "inet"},
                    {"source_elapsed", "int"},
                    {"source_port", "int"},
                    {"thread", "text"}},
                   no_rows);
    tables_.set_replication(
        std::string(kTracesKeyspace),
        {{"class", "org.apache.cassandra.locator.SimpleStrategy"}, {"replication_factor", "2"}});
    tables_.define("system_tetrad", "unreadable_objects",
                   {{"keyspace_name", "text", "pk"},
                    {"kind", "text", "ck"},
                    {"name", "text", "ck"},
                    {"reason", "text"}},
                   [](const SchemaSnapshot& schema) {
                     VirtualRows rows;
                     for (const auto& [key, object] : schema.unreadable())
                       rows.push_back({text(object.keyspace), text(object.kind), text(object.name),
                                       text(object.reason)});
                     return rows;
                   });
    tables_.define(
        "system_tetrad", "nodes",
        {{"host_id", "uuid", "pk"},
         {"address", "text"},
         {"data_center", "text"},
         {"live", "boolean"},
         {"rack", "text"},
         {"state", "text"},
         {"stores", "int"},
         {"version", "text"}},
        [this](const SchemaSnapshot&) {
          const replication::MetaSnapshot state = meta_.snapshot();
          VirtualRows rows;
          for (const auto& [host, node] : state->nodes) {
            // The metadata keeps who was removed for ever, so that it is never taken in again.
            if (node.state == replication::NodeState::kRemoved) continue;
            rows.push_back({uuid(host.value), text(node.address), text(node.data_center),
                            flag(meta_.is_live(host)), text(node.rack),
                            text(replication::name_of(node.state)),
                            number(static_cast<int32_t>(node.store_count)), text(node.version)});
          }
          return rows;
        });
  }

  replication::MetaService& meta_;
  const LocalNodeFacts facts_;
  const NodeTables of_node_;                                            // null: none
  std::map<std::string, std::shared_ptr<const VirtualRows>> gathered_;  // by table, as last asked
  SizeEstimates estimates_;
  ComputedTables tables_;
  std::vector<std::shared_ptr<const KeyspaceSchema>> keyspaces_;
};

}  // namespace

std::unique_ptr<VirtualTables> make_system_tables(replication::MetaService& meta,
                                                  LocalNodeFacts facts, NodeTables of_node) {
  return std::make_unique<SystemTables>(meta, std::move(facts), std::move(of_node));
}

}  // namespace tetrad::cql
