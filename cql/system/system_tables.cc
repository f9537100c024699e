// SPDX-License-Identifier: Apache-2.0
// The computed keyspaces: what drivers, cqlsh and people read about this cluster.
#include <algorithm>
#include <deque>
#include <functional>

#include "base/hash.h"
#include "cql/protocol/inet.h"
#include "cql/system/virtual_rows.h"
#include "cql/system/virtual_tables.h"
#include "cql/types/literal.h"
#include "cql/types/value.h"

namespace tetrad::cql {
namespace {

using Cell = VirtualCell;
using Rows = std::vector<VirtualRow>;

Cell text(std::string_view value) { return Bytes(value); }
Cell number(int32_t value) { return make_int(value); }
Cell big(int64_t value) { return make_bigint(value); }
Cell uuid(const Uuid& value) { return make_uuid(value); }
Cell flag(bool value) { return make_boolean(value); }
Cell real(double value) { return make_double(value); }
const Cell kNull = std::nullopt;

Cell inet(const std::string& address) {
  const auto parsed = Inet::parse(address, 0);
  return parsed ? Cell(Bytes(parsed->address())) : kNull;
}

Cell text_set(std::vector<std::string> values) {
  std::sort(values.begin(), values.end());
  const std::vector<BytesView> views(values.begin(), values.end());
  return join_list(views);
}

Cell text_list(const std::vector<std::string>& values) {
  const std::vector<BytesView> views(values.begin(), values.end());
  return join_list(views);
}

Cell type_list(const std::vector<TypePtr>& types) {
  std::vector<std::string> texts;
  for (const TypePtr& type : types) texts.push_back(type->cql_text());
  return text_list(texts);
}

template <class Map>
Cell text_map(const Map& map) {
  std::vector<std::pair<BytesView, BytesView>> entries;
  for (const auto& [key, value] : map) entries.emplace_back(key, value);
  return join_map(entries);
}

Cell token_set(const std::vector<int64_t>& tokens) {
  std::vector<std::string> texts;
  for (const int64_t token : tokens) texts.push_back(std::to_string(token));
  return text_set(std::move(texts));
}

const char* kind_text(ColumnKind kind) {
  constexpr const char* names[] = {"partition_key", "clustering", "static", "regular"};
  return names[static_cast<int>(kind)];
}

class SystemTables final : public VirtualTables {
 public:
  SystemTables(replication::MetaService& meta, LocalNodeFacts facts,
               std::shared_ptr<TraceSessions> traces)
      : meta_(meta), facts_(std::move(facts)), traces_(std::move(traces)) {
    define_system();
    define_schema();
    define_others();
    for (auto& [name, keyspace] : building_)
      keyspaces_.push_back(std::make_shared<const KeyspaceSchema>(keyspace));
    building_.clear();
  }

  const std::vector<std::shared_ptr<const KeyspaceSchema>>& keyspaces() const override {
    return keyspaces_;
  }

  Result<storage::ReadResult> read(const TableSchema& table, const storage::ReadCommand& command,
                                   const SchemaSnapshot& schema) override {
    const auto source = sources_.find(table.incarnation);
    if (source == sources_.end()) {
      return fail(ErrorCode::kInvalid, "table {} does not exist", table.qualified_name());
    }
    return select_virtual_rows(table, source->second(schema), command);
  }

  void add_trace_session(const Uuid& session, std::string command, std::string request,
                         std::string client, int64_t started_at_us, int64_t duration_us,
                         std::vector<std::pair<std::string, std::string>> parameters) override {
    for (auto& [name, value] : parameters) {
      if (value.size() > 1'000) value = value.substr(0, 1'000) + "…";
    }
    traces_->add({session, std::move(command), std::move(request), std::move(client), started_at_us,
                  duration_us, std::move(parameters)});
  }

 private:
  using Source = std::function<Rows(const SchemaSnapshot&)>;

  /// `columns`: "name type kind" lines in table order, where kind is pk, ck, desc or empty.
  void define(const std::string& keyspace, const std::string& name,
              std::vector<std::vector<std::string>> columns, Source source) {
    auto table = std::make_shared<TableSchema>();
    table->keyspace = keyspace;
    table->name = name;
    table->incarnation = TableIncarnation{0xF0000000u + static_cast<uint32_t>(sources_.size())};
    table->version = SchemaVersion{1};
    table->is_virtual = true;
    // Ids that are the same on every node and at every start: made of the name.
    const auto digest = base::sha256(keyspace + "." + name);
    table->id =
        TableId{Uuid::from_bytes(BytesView(reinterpret_cast<const char*>(digest.data()), 16))};
    table->options.caching = {{"keys", "ALL"}, {"rows_per_partition", "NONE"}};
    table->options.compaction = {
        {"class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"},
        {"max_threshold", "32"},
        {"min_threshold", "4"}};
    table->options.compression = {{"chunk_length_in_kb", "16"},
                                  {"class", "org.apache.cassandra.io.compress.LZ4Compressor"}};
    std::vector<ColumnSchema> list;
    uint32_t partition = 0, clustering = 0;
    std::vector<std::string> order;
    for (const auto& words : columns) {
      ColumnSchema column;
      column.name = words[0];
      auto type = parse_type(words[1]);
      TETRAD_ASSERT(type.has_value());
      column.type = *type;
      const std::string kind = words.size() > 2 ? words[2] : "";
      column.kind = kind == "pk"   ? ColumnKind::kPartitionKey
                    : kind.empty() ? ColumnKind::kRegular
                                   : ColumnKind::kClustering;
      column.descending = kind == "desc";
      if (column.kind == ColumnKind::kPartitionKey) column.position = partition++;
      if (column.kind == ColumnKind::kClustering) column.position = clustering++;
      if (!column.is_primary_key()) column.id = table->next_column_id++;
      order.push_back(column.name);
      list.push_back(std::move(column));
    }
    table->set_columns(std::move(list));
    // Sources give cells in the order of definition; rows are kept in the order of the table's
    // columns.
    std::vector<size_t> place;
    for (const auto& column : table->columns()) {
      place.push_back(
          static_cast<size_t>(std::find(order.begin(), order.end(), column.name) - order.begin()));
    }
    sources_.emplace(table->incarnation,
                     [place, source = std::move(source)](const SchemaSnapshot& schema) {
                       Rows rows = source(schema);
                       for (VirtualRow& row : rows) {
                         VirtualRow ordered;
                         ordered.reserve(place.size());
                         for (const size_t at : place) ordered.push_back(std::move(row[at]));
                         row = std::move(ordered);
                       }
                       return rows;
                     });
    KeyspaceSchema& in = building_[keyspace];
    in.name = keyspace;
    in.is_virtual = true;
    in.replication = {{"class", "org.apache.cassandra.locator.LocalStrategy"}};
    in.tables.emplace(name, std::move(table));
  }

  static Rows none(const SchemaSnapshot&) { return {}; }

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

  /// A peer may be behind for a moment; what drivers compare is what this node knows it will be.
  void define_system() {
    define("system", "local",
           {{"key", "text", "pk"},
            {"bootstrapped", "text"},
            {"broadcast_address", "inet"},
            {"broadcast_port", "int"},
            {"cluster_name", "text"},
            {"cql_version", "text"},
            {"data_center", "text"},
            {"gossip_generation", "int"},
            {"host_id", "uuid"},
            {"listen_address", "inet"},
            {"listen_port", "int"},
            {"native_protocol_version", "text"},
            {"partitioner", "text"},
            {"rack", "text"},
            {"release_version", "text"},
            {"rpc_address", "inet"},
            {"rpc_port", "int"},
            {"schema_version", "uuid"},
            {"tokens", "frozen<set<text>>"},
            {"truncated_at", "frozen<map<uuid, blob>>"},
            {"tetrad_version", "text"}},
           [this](const SchemaSnapshot& schema) -> Rows {
             const replication::MetaSnapshot state = meta_.snapshot();
             const auto self = state->nodes.find(meta_.self());
             const replication::NodeInfo* node =
                 self == state->nodes.end() ? nullptr : &self->second;
             return {{text("local"),
                      text("COMPLETED"),
                      inet(facts_.listen_address),
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
                      inet(facts_.listen_address),
                      number(facts_.native_port),
                      uuid(schema.version_uuid()),
                      token_set(node != nullptr ? node->tokens : std::vector<int64_t>()),
                      kNull,
                      text(facts_.tetrad_version)}};
           });
    define("system", "peers",
           {{"peer", "inet", "pk"},
            {"data_center", "text"},
            {"host_id", "uuid"},
            {"preferred_ip", "inet"},
            {"rack", "text"},
            {"release_version", "text"},
            {"rpc_address", "inet"},
            {"schema_version", "uuid"},
            {"tokens", "frozen<set<text>>"}},
           [this](const SchemaSnapshot& schema) {
             const replication::MetaSnapshot state = meta_.snapshot();
             Rows rows;
             for (const auto* node : peers(*state)) {
               rows.push_back({inet(node->address), text(node->data_center), uuid(node->host.value),
                               kNull, text(node->rack), text(facts_.release_version),
                               inet(node->address), uuid(schema.version_uuid()),
                               token_set(node->tokens)});
             }
             return rows;
           });
    define("system", "peers_v2",
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
            {"tokens", "frozen<set<text>>"}},
           [this](const SchemaSnapshot& schema) {
             const replication::MetaSnapshot state = meta_.snapshot();
             Rows rows;
             for (const auto* node : peers(*state)) {
               rows.push_back({inet(node->address), number(node->internode_port),
                               text(node->data_center), uuid(node->host.value), inet(node->address),
                               number(node->native_port), kNull, kNull, text(node->rack),
                               text(facts_.release_version), uuid(schema.version_uuid()),
                               token_set(node->tokens)});
             }
             return rows;
           });
    define("system", "size_estimates",
           {{"keyspace_name", "text", "pk"},
            {"table_name", "text", "ck"},
            {"range_start", "text", "ck"},
            {"range_end", "text", "ck"},
            {"mean_partition_size", "bigint"},
            {"partitions_count", "bigint"}},
           [this](const SchemaSnapshot&) {
             // Bytes are what readers of this table split by: a tablet counts as one partition of
             // its size.
             const replication::MetaSnapshot state = meta_.snapshot();
             Rows rows;
             for (const auto& [id, table] : state->tables) {
               for (const auto& tablet : table->tablets.tablets()) {
                 if (tablet.replicas.empty() || tablet.replicas.front().host != meta_.self())
                   continue;
                 const auto bytes = static_cast<int64_t>(meta_.tablet_bytes(tablet.id));
                 rows.push_back({text(table->keyspace), text(table->name),
                                 text(std::to_string(tablet.range.start.token)),
                                 text(std::to_string(tablet.range.end.token)), big(bytes),
                                 big(bytes > 0 ? 1 : 0)});
               }
             }
             return rows;
           });
  }

  /// Every keyspace that system_schema, or else system_virtual_schema, lists.
  template <class Visit>
  static void for_each_keyspace(const SchemaSnapshot& schema, bool as_virtual, Visit visit) {
    for (const auto& [name, keyspace] : schema.keyspaces()) {
      if (is_listed_as_virtual(name) == as_virtual) visit(*keyspace);
    }
  }

  static Rows column_rows(const SchemaSnapshot& schema, bool as_virtual) {
    Rows rows;
    for_each_keyspace(schema, as_virtual, [&](const KeyspaceSchema& keyspace) {
      for (const auto& [name, table] : keyspace.tables) {
        for (const auto& column : table->columns()) {
          const char* order = column.kind != ColumnKind::kClustering ? "none"
                              : column.descending                    ? "desc"
                                                                     : "asc";
          rows.push_back(
              {text(keyspace.name), text(name), text(column.name), text(order),
               Cell(Bytes(column.name)), text(kind_text(column.kind)),
               number(column.is_primary_key() ? static_cast<int32_t>(column.position) : -1),
               text(column.type->cql_text())});
        }
      }
    });
    return rows;
  }

  void define_schema() {
    const std::vector<std::vector<std::string>> column_columns = {{"keyspace_name", "text", "pk"},
                                                                  {"table_name", "text", "ck"},
                                                                  {"column_name", "text", "ck"},
                                                                  {"clustering_order", "text"},
                                                                  {"column_name_bytes", "blob"},
                                                                  {"kind", "text"},
                                                                  {"position", "int"},
                                                                  {"type", "text"}};
    define("system_schema", "keyspaces",
           {{"keyspace_name", "text", "pk"},
            {"durable_writes", "boolean"},
            {"replication", "frozen<map<text, text>>"}},
           [](const SchemaSnapshot& schema) {
             Rows rows;
             for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
               rows.push_back({text(keyspace.name), flag(keyspace.durable_writes),
                               text_map(keyspace.replication)});
             });
             return rows;
           });
    define("system_schema", "tables",
           {{"keyspace_name", "text", "pk"},
            {"table_name", "text", "ck"},
            {"additional_write_policy", "text"},
            {"allow_auto_snapshot", "boolean"},
            {"bloom_filter_fp_chance", "double"},
            {"caching", "frozen<map<text, text>>"},
            {"cdc", "boolean"},
            {"comment", "text"},
            {"compaction", "frozen<map<text, text>>"},
            {"compression", "frozen<map<text, text>>"},
            {"crc_check_chance", "double"},
            {"dclocal_read_repair_chance", "double"},
            {"default_time_to_live", "int"},
            {"extensions", "frozen<map<text, blob>>"},
            {"flags", "frozen<set<text>>"},
            {"gc_grace_seconds", "int"},
            {"id", "uuid"},
            {"incremental_backups", "boolean"},
            {"max_index_interval", "int"},
            {"memtable", "text"},
            {"memtable_flush_period_in_ms", "int"},
            {"min_index_interval", "int"},
            {"read_repair", "text"},
            {"read_repair_chance", "double"},
            {"speculative_retry", "text"},
            {"tetrad_max_partition_mb", "int"}},
           [](const SchemaSnapshot& schema) {
             Rows rows;
             for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
               for (const auto& [name, table] : keyspace.tables) {
                 const TableOptions& o = table->options;
                 std::vector<std::string> flags = {"compound"};
                 if (table->is_counter) flags.push_back("counter");
                 rows.push_back({text(keyspace.name),
                                 text(name),
                                 text(o.additional_write_policy),
                                 kNull,
                                 real(o.bloom_filter_fp_chance),
                                 text_map(o.caching),
                                 kNull,
                                 text(o.comment),
                                 text_map(o.compaction),
                                 text_map(o.compression),
                                 real(o.crc_check_chance),
                                 real(0),
                                 number(o.default_time_to_live_s),
                                 text_map(o.extensions),
                                 text_set(flags),
                                 number(o.gc_grace_seconds.value_or(864'000)),
                                 uuid(table->id.value),
                                 kNull,
                                 number(o.max_index_interval),
                                 kNull,
                                 number(o.memtable_flush_period_in_ms),
                                 number(o.min_index_interval),
                                 text(o.read_repair),
                                 real(0),
                                 text(o.speculative_retry),
                                 o.max_partition_mb != 0
                                     ? number(static_cast<int32_t>(o.max_partition_mb))
                                     : kNull});
               }
             });
             return rows;
           });
    define("system_schema", "columns", column_columns,
           [](const SchemaSnapshot& schema) { return column_rows(schema, false); });
    define("system_schema", "dropped_columns",
           {{"keyspace_name", "text", "pk"},
            {"table_name", "text", "ck"},
            {"column_name", "text", "ck"},
            {"dropped_time", "timestamp"},
            {"kind", "text"},
            {"type", "text"}},
           [](const SchemaSnapshot& schema) {
             Rows rows;
             for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
               for (const auto& [name, table] : keyspace.tables) {
                 for (const auto& dropped : table->dropped_columns) {
                   rows.push_back({text(keyspace.name), text(name), text(dropped.name),
                                   big(dropped.dropped_time_us / 1000),
                                   text(kind_text(dropped.kind)), text(dropped.type_text)});
                 }
               }
             });
             return rows;
           });
    define(
        "system_schema", "types",
        {{"keyspace_name", "text", "pk"},
         {"type_name", "text", "ck"},
         {"field_names", "frozen<list<text>>"},
         {"field_types", "frozen<list<text>>"}},
        [](const SchemaSnapshot& schema) {
          Rows rows;
          for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
            for (const auto& [name, type] : keyspace.types) {
              std::vector<std::string> names(type->field_names().begin(),
                                             type->field_names().end()),
                  types;
              for (const auto& field : type->components()) types.push_back(field->cql_text());
              rows.push_back({text(keyspace.name), text(name), text_list(names), text_list(types)});
            }
          });
          return rows;
        });
    define("system_schema", "column_masks",
           {{"keyspace_name", "text", "pk"},
            {"table_name", "text", "ck"},
            {"column_name", "text", "ck"},
            {"function_argument_nulls", "frozen<list<boolean>>"},
            {"function_argument_types", "frozen<list<text>>"},
            {"function_argument_values", "frozen<list<text>>"},
            {"function_keyspace", "text"},
            {"function_name", "text"}},
           none);
    define("system_schema", "indexes",
           {{"keyspace_name", "text", "pk"},
            {"table_name", "text", "ck"},
            {"index_name", "text", "ck"},
            {"kind", "text"},
            {"options", "frozen<map<text, text>>"}},
           none);
    define("system_schema", "functions",
           {{"keyspace_name", "text", "pk"},
            {"function_name", "text", "ck"},
            {"argument_types", "frozen<list<text>>", "ck"},
            {"argument_names", "frozen<list<text>>"},
            {"body", "text"},
            {"called_on_null_input", "boolean"},
            {"language", "text"},
            {"return_type", "text"}},
           [](const SchemaSnapshot& schema) {
             Rows rows;
             for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
               for (const FunctionPtr& function : keyspace.functions) {
                 rows.push_back({text(keyspace.name), text(function->name),
                                 type_list(function->argument_types),
                                 text_list(function->argument_names), text(function->body),
                                 flag(function->called_on_null_input), text(function->language),
                                 text(function->return_type->cql_text())});
               }
             });
             return rows;
           });
    define(
        "system_schema", "aggregates",
        {{"keyspace_name", "text", "pk"},
         {"aggregate_name", "text", "ck"},
         {"argument_types", "frozen<list<text>>", "ck"},
         {"final_func", "text"},
         {"initcond", "text"},
         {"return_type", "text"},
         {"state_func", "text"},
         {"state_type", "text"}},
        [](const SchemaSnapshot& schema) {
          Rows rows;
          for_each_keyspace(schema, false, [&](const KeyspaceSchema& keyspace) {
            for (const AggregatePtr& aggregate : keyspace.aggregates) {
              const auto& initial = aggregate->initial_condition;
              rows.push_back(
                  {text(keyspace.name), text(aggregate->name), type_list(aggregate->argument_types),
                   aggregate->final_function.empty() ? kNull : text(aggregate->final_function),
                   initial ? text(to_cql_literal(*aggregate->state_type, *initial)) : kNull,
                   text(aggregate->return_type->cql_text()), text(aggregate->state_function),
                   text(aggregate->state_type->cql_text())});
            }
          });
          return rows;
        });
    define("system_schema", "triggers",
           {{"keyspace_name", "text", "pk"},
            {"table_name", "text", "ck"},
            {"trigger_name", "text", "ck"},
            {"options", "frozen<map<text, text>>"}},
           none);
    define("system_schema", "views",
           {{"keyspace_name", "text", "pk"},
            {"view_name", "text", "ck"},
            {"additional_write_policy", "text"},
            {"allow_auto_snapshot", "boolean"},
            {"base_table_id", "uuid"},
            {"base_table_name", "text"},
            {"bloom_filter_fp_chance", "double"},
            {"caching", "frozen<map<text, text>>"},
            {"cdc", "boolean"},
            {"comment", "text"},
            {"compaction", "frozen<map<text, text>>"},
            {"compression", "frozen<map<text, text>>"},
            {"crc_check_chance", "double"},
            {"dclocal_read_repair_chance", "double"},
            {"default_time_to_live", "int"},
            {"extensions", "frozen<map<text, blob>>"},
            {"gc_grace_seconds", "int"},
            {"id", "uuid"},
            {"include_all_columns", "boolean"},
            {"incremental_backups", "boolean"},
            {"max_index_interval", "int"},
            {"memtable", "text"},
            {"memtable_flush_period_in_ms", "int"},
            {"min_index_interval", "int"},
            {"read_repair", "text"},
            {"read_repair_chance", "double"},
            {"speculative_retry", "text"},
            {"where_clause", "text"}},
           none);
    define("system_virtual_schema", "keyspaces", {{"keyspace_name", "text", "pk"}},
           [](const SchemaSnapshot& schema) {
             Rows rows;
             for_each_keyspace(schema, true, [&](const KeyspaceSchema& keyspace) {
               rows.push_back({text(keyspace.name)});
             });
             return rows;
           });
    define("system_virtual_schema", "tables",
           {{"keyspace_name", "text", "pk"}, {"table_name", "text", "ck"}, {"comment", "text"}},
           [](const SchemaSnapshot& schema) {
             Rows rows;
             for_each_keyspace(schema, true, [&](const KeyspaceSchema& keyspace) {
               for (const auto& [name, table] : keyspace.tables) {
                 rows.push_back({text(keyspace.name), text(name), text(table->options.comment)});
               }
             });
             return rows;
           });
    define("system_virtual_schema", "columns", column_columns,
           [](const SchemaSnapshot& schema) { return column_rows(schema, true); });
  }

  void define_others() {
    define("system_auth", "roles",
           {{"role", "text", "pk"},
            {"can_login", "boolean"},
            {"is_superuser", "boolean"},
            {"member_of", "frozen<set<text>>"},
            {"salted_hash", "text"}},
           none);
    define(
        "system_traces", "sessions",
        {{"session_id", "uuid", "pk"},
         {"client", "inet"},
         {"command", "text"},
         {"coordinator", "inet"},
         {"coordinator_port", "int"},
         {"duration", "int"},
         {"parameters", "frozen<map<text, text>>"},
         {"request", "text"},
         {"started_at", "timestamp"}},
        [this](const SchemaSnapshot&) {
          Rows rows;
          for (const TraceSession& trace : traces_->all()) {
            auto parameters = trace.parameters;
            std::sort(parameters.begin(), parameters.end());
            rows.push_back({uuid(trace.session), inet(trace.client), text(trace.command),
                            inet(facts_.listen_address), number(facts_.internode_port),
                            number(static_cast<int32_t>(trace.duration_us)), text_map(parameters),
                            text(trace.request), big(trace.started_at_us / 1000)});
          }
          return rows;
        });
    define("system_traces", "events",
           {{"session_id", "uuid", "pk"},
            {"event_id", "timeuuid", "ck"},
            {"activity", "text"},
            {"source", "inet"},
            {"source_elapsed", "int"},
            {"source_port", "int"},
            {"thread", "text"}},
           none);
    define("tetrad", "partitions",
           {{"keyspace_name", "text", "pk"},
            {"table_name", "text", "ck"},
            {"id", "bigint", "ck"},
            {"range_start", "bigint"},
            {"range_end", "bigint"},
            {"repaired_at", "timestamp"},
            {"replicas", "frozen<list<text>>"},
            {"size_bytes", "bigint"},
            {"state", "text"}},
           [this](const SchemaSnapshot&) {
             const replication::MetaSnapshot state = meta_.snapshot();
             constexpr const char* stages[] = {"normal", "write-both", "stream", "read-new",
                                               "write-new"};
             Rows rows;
             for (const auto& [id, table] : state->tables) {
               for (const auto& tablet : table->tablets.tablets()) {
                 std::vector<std::string> replicas;
                 for (const StoreAddress& replica : tablet.replicas) {
                   const auto node = state->nodes.find(replica.host);
                   replicas.push_back(node == state->nodes.end() ? replica.host.to_string()
                                                                 : node->second.address);
                 }
                 rows.push_back(
                     {text(table->keyspace), text(table->name),
                      big(static_cast<int64_t>(tablet.id.value)), big(tablet.range.start.token),
                      big(tablet.range.end.token),
                      tablet.repaired_us == 0 ? std::nullopt : big(tablet.repaired_us / 1000),
                      text_list(replicas), big(static_cast<int64_t>(meta_.tablet_bytes(tablet.id))),
                      text(tablet.full ? "full" : stages[static_cast<int>(tablet.stage)])});
               }
             }
             return rows;
           });
    define("tetrad", "nodes",
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
             constexpr const char* states[] = {"joining", "normal", "leaving", "removed"};
             Rows rows;
             for (const auto& [host, node] : state->nodes) {
               rows.push_back({uuid(host.value), text(node.address), text(node.data_center),
                               flag(meta_.is_live(host)), text(node.rack),
                               text(states[static_cast<int>(node.state)]),
                               number(static_cast<int32_t>(node.store_count)), text(node.version)});
             }
             return rows;
           });
  }

  replication::MetaService& meta_;
  const LocalNodeFacts facts_;
  std::map<std::string, KeyspaceSchema> building_;
  std::vector<std::shared_ptr<const KeyspaceSchema>> keyspaces_;
  std::unordered_map<TableIncarnation, Source> sources_;
  const std::shared_ptr<TraceSessions> traces_;
};

}  // namespace

std::unique_ptr<VirtualTables> make_system_tables(replication::MetaService& meta,
                                                  LocalNodeFacts facts,
                                                  std::shared_ptr<TraceSessions> traces) {
  return std::make_unique<SystemTables>(meta, std::move(facts), std::move(traces));
}

}  // namespace tetrad::cql
