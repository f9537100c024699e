// SPDX-License-Identifier: Apache-2.0
// What the admin port tells of the node itself and its clients, and orders that change how it
// serves them.
#include <algorithm>
#include <charconv>

#include "cql/prepare/table_properties.h"
#include "cql/system/virtual_tables.h"
#include "partitioner/token.h"
#include "partitioner/topology.h"
#include "replication/meta/state_names.h"
#include "server/admin/admin_service.h"
#include "server/admin/json_text.h"
#include "server/runtime/process_facts.h"

namespace tetrad::server {

using nlohmann::json;

namespace {

// One table; the words of log_level_named().
const char* level_name(base::LogLevel level) {
  switch (level) {
    case base::LogLevel::kDebug:
      return "debug";
    case base::LogLevel::kInfo:
      return "info";
    case base::LogLevel::kWarn:
      return "warn";
    case base::LogLevel::kError:
      return "error";
    case base::LogLevel::kOff:
      break;
  }
  return "off";
}

// The HTTP status of an error: 500 is a fault of the server.
int status_of(const Error& error) {
  return error.code == ErrorCode::kConflict   ? 409
         : error.code == ErrorCode::kNotFound ? 404
         : error.code == ErrorCode::kInvalid  ? 400
                                              : 500;
}

HttpResponse response_of(const Result<void>& result) {
  if (!result) return http_error(status_of(result.error()), result.error().message);
  return json_response({{"ok", true}});
}

/// In the data centre of the node that asks; whatever factor a keyspace names.
size_t replicas_of_a_row(const replication::MetaState& state, const replication::NodeInfo* own) {
  size_t nodes = 0;
  for (const auto& [host, node] : state.nodes)
    nodes += own != nullptr && node.state == replication::NodeState::kNormal &&
             node.data_center == own->data_center;
  return std::min<size_t>(nodes, partitioner::kReplicasPerDataCenter);
}

}  // namespace

// Figures of the stores come from their threads, so the answer comes later.
void AdminService::answer_info(const HttpRequest&, Respond respond) {
  with_figures({}, std::move(respond), [this](const AllFigures& figures) { return info(figures); });
}

HttpResponse AdminService::info(const AllFigures& figures) const {
  const auto state = parts_.node.meta().snapshot();
  const replication::NodeInfo* const own = state->node(parts_.node.self());
  const ProcessFacts process = read_process_facts();
  uint64_t disk_bytes = 0, memtable_bytes = 0, block_cache_bytes = 0, errors = 0;
  uint64_t block_hits = 0, block_misses = 0, cache_bytes = 0, hits = 0, misses = 0;
  for (const StoreFigures& store : figures) {
    const storage::StoreStatistics& s = store.statistics;
    // Stores are summed up, but for the block cache.
    disk_bytes += s.disk_bytes;
    memtable_bytes += s.memtable_bytes;
    block_cache_bytes = std::max(block_cache_bytes, s.cache_bytes);  // stores share it
    block_hits += s.block_cache_hits;
    block_misses += s.block_cache_misses;
    errors += s.background_errors + s.corruptions;
    cache_bytes += s.row_cache_bytes;
    hits += s.row_cache_hits;
    misses += s.row_cache_misses;
  }
  // The same figure as in /status.
  const std::optional<uint64_t> load = parts_.node.meta_group().host_bytes(parts_.node.self());
  json timeouts = json::object();
  for (const StatementTimeout& timeout : parts_.controls->timeouts())
    timeouts[timeout.type] = timeout.timeout_ms;
  // By the wall clock, as the kernel has the start of the process.
  const double now_s = static_cast<double>(parts_.shards.front().reactor.wall_time_us()) / 1e6;
  json out = {
      {"host_id", parts_.node.self().to_string()},
      {"version", parts_.version},
      {"release_version", cql::LocalNodeFacts().release_version},
      {"health", health()},
      {"native_transport_active", parts_.controls->serves_clients()},
      {"drained", is_drained_ && !parts_.controls->serves_clients()},
      {"auto_compaction_running", std::ranges::all_of(figures, &StoreFigures::compacts)},
      {"bytes", load ? json(*load) : json()},
      {"disk_bytes", disk_bytes},
      {"memtable_bytes", memtable_bytes},
      {"start_number", parts_.start_number},
      {"uptime_s", std::max<int64_t>(0, static_cast<int64_t>(now_s - process.start_time_seconds))},
      {"memory_bytes", process.resident_bytes},
      {"shards", parts_.shards.size()},
      {"store_errors", errors},
      {"block_cache_bytes", block_cache_bytes},
      {"block_cache_hits", block_hits},
      {"block_cache_misses", block_misses},
      {"row_cache", {{"bytes", cache_bytes}, {"hits", hits}, {"misses", misses}}},
      {"log_level", level_name(parts_.logger.sink().level())},
      {"timeouts_ms", timeouts},
      {"trace_probability", parts_.controls->trace_probability()},
      {"hint_window_ms", parts_.shards.front().data.hints().age_max_us() / 1000},
      {"default_replication_factor", cql::kDefaultReplicationFactor},
      {"replicas_of_a_row", replicas_of_a_row(*state, own)},
      {"data_directory", parts_.data_directory},
      {"seeds", parts_.seeds}};
  if (own != nullptr) {
    out["address"] = own->address;
    out["data_center"] = own->data_center;
    out["rack"] = own->rack;
    out["state"] = replication::name_of(own->state);
    out["tokens"] = own->tokens;
  }
  return json_response(out);
}

// The key is hashed as the partitioner does; which nodes have it is in the metadata, so nobody else
// is asked.
void AdminService::answer_endpoints(const HttpRequest& request, Respond respond) {
  const std::string keyspace = request.parameter("keyspace"), name = request.parameter("table");
  if (parts_.controls->is_computed(keyspace, name) && !name.empty()) {
    std::vector<std::string> all;
    for (const auto& [host, node] : parts_.node.meta().snapshot()->nodes)
      if (node.state != replication::NodeState::kRemoved) all.push_back(node.address);
    return respond(json_response({{"token", json()}, {"partition", json()}, {"endpoints", all}}));
  }
  const auto key = parts_.controls->partition_key(keyspace, name, request.parameter("key"));
  if (!key) return respond(http_error(status_of(key.error()), key.error().message));
  const RingPosition position = partitioner::position_of(*key);
  const auto state = parts_.node.meta().snapshot();
  for (const auto& [id, table] : state->tables) {
    if (table->keyspace != keyspace || table->name != name) continue;
    const partitioner::Tablet& tablet = table->tablets.find(position);
    return respond(json_response({{"token", position.token},
                                  {"partition", tablet.id.value},
                                  {"endpoints", state->addresses_of(tablet.replicas)}}));
  }
  respond(http_error(404, fmt::format("there is no table {}.{}", keyspace, name)));
}

void AdminService::answer_clients(const HttpRequest&, Respond respond) {
  parts_.controls->clients([respond = std::move(respond)](const std::vector<ClientFacts>& found) {
    json out = json::array();
    for (const ClientFacts& client : found) {
      out.push_back({{"address", client.address},
                     {"port", client.port},
                     {"user", client.user.empty() ? "anonymous" : client.user},
                     {"keyspace", client.keyspace},
                     {"protocol_version", client.protocol_version},
                     {"encrypted", client.is_encrypted},
                     {"cipher_suite", client.cipher_suite},
                     {"tls_version", client.tls_version},
                     {"requests", client.requests},
                     {"driver_name", client.driver_name},
                     {"driver_version", client.driver_version},
                     {"options", client.options}});
    }
    respond(json_response({{"clients", out}}));
  });
}

void AdminService::answer_hot_keys(const HttpRequest& request, Respond respond) {
  const std::string keyspace = request.parameter("keyspace"), name = request.parameter("table");
  if (const auto known = check_named(keyspace, name); !known)
    return respond(http_error(status_of(known.error()), known.error().message));
  parts_.controls->hot_keys([keyspace, name, respond = std::move(respond)](const auto& found) {
    json out = json::array();
    for (const HotKey& key : found) {
      if ((!keyspace.empty() && key.keyspace != keyspace) || (!name.empty() && key.table != name))
        continue;
      out.push_back({{"keyspace", key.keyspace},
                     {"table", key.table},
                     {"key", key.key},
                     {"partition", key.partition},
                     {"token", key.token},
                     {"reads_ru_per_s", key.reads},
                     {"writes_ru_per_s", key.writes},
                     {"share", key.share}});
    }
    respond(json_response({{"hot_keys", out}}));
  });
}

void AdminService::order_binary(const HttpRequest& request, Respond respond) {
  const std::string running = request.parameter("running");
  if (running != "true" && running != "false")
    return respond(http_error(400, "running is true or false"));
  is_drained_ = false;
  respond(response_of(parts_.controls->serve_clients(running == "true")));
}

void AdminService::order_drain(const HttpRequest&, Respond respond) {
  is_drained_ = false;
  // Clients first: otherwise new writes would fill the memtables that are being flushed.
  if (const auto closed = parts_.controls->serve_clients(false); !closed)
    return respond(response_of(closed));
  flush_stores([this, respond = std::move(respond)](HttpResponse response) mutable {
    is_drained_ = response.status == 200;
    respond(std::move(response));
  });
}

void AdminService::order_timeout(const HttpRequest& request, Respond respond) {
  const auto timeout_ms = whole_number(request.parameter("ms"));
  if (!timeout_ms) return respond(http_error(400, "ms is a whole number"));
  respond(response_of(parts_.controls->set_timeout(request.parameter("type"), *timeout_ms)));
}

void AdminService::order_trace_probability(const HttpRequest& request, Respond respond) {
  const std::string text = request.parameter("probability");
  double probability = -1;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, probability);
  // Written so that NaN is refused.
  if (error != std::errc() || last != end || !(probability >= 0 && probability <= 1))
    return respond(http_error(400, "Trace probability must be between 0 and 1"));
  parts_.controls->set_trace_probability(probability);
  respond(json_response({{"trace_probability", probability}}));
}

}  // namespace tetrad::server
