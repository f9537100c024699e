// SPDX-License-Identifier: Apache-2.0
#include "server/admin/admin_service.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "partitioner/split_policy.h"
#include "replication/membership/leaving.h"
#include "replication/meta/state_names.h"
#include "server/config/options.h"

namespace tetrad::server {
namespace {

using nlohmann::json;

/// What `tetractl setting` changes: whole numbers from 1 on.
struct ClusterSetting {
  std::string_view name;
  uint64_t otherwise, most;
  const char* unit;
};

constexpr ClusterSetting kClusterSettings[] = {
    {replication::kSettingPhysicalPartitionMb, replication::kPhysicalPartitionMbDefault, 1u << 24,
     "MiB"},
    {replication::kSettingLogicalPartitionMb, replication::kLogicalPartitionMbDefault, 1u << 24,
     "MiB"},
    {replication::kSettingPhysicalPartitionRuPerS, replication::kPhysicalPartitionRuPerSDefault,
     1'000'000, "RU/s"},
};

HttpResponse json_response(const json& body, int status = 200) {
  return {status, "application/json", body.dump(2) + "\n"};
}

HttpResponse error_response(int status, const std::string& message) {
  return json_response({{"error", message}}, status);
}

/// Answers once, when as many stores as it was made for are done.
struct StoreRound {
  size_t left;
  std::optional<Error> error;
  HttpServer::Respond respond;
  void finish_one(const Result<void>& result) {
    if (!result && !error) error = result.error();
    if (--left != 0) return;
    respond(error ? error_response(500, error->message) : json_response({{"ok", true}}));
  }
};

}  // namespace

void AdminService::handle(const HttpRequest& request, HttpServer::Respond respond) {
  if (request.path == "/health") {
    const std::string health = parts_.health();
    respond({health == "serving" ? 200 : 503, "text/plain", health + "\n"});
    return;
  }
  if (request.path == "/metrics") {
    gather_figures(false, [this, respond = std::move(respond)](const AllFigures& figures) {
      for (size_t i = 0; i < figures.size(); ++i) statistics_[i] = figures[i].statistics;
      respond({200, "text/plain; version=0.0.4", parts_.metrics.export_text()});
    });
    return;
  }
  const auto get = [&](const char* path) {
    return request.path == path && request.method == "GET";
  };
  const auto parameter = [&](const char* name) {
    const auto found = request.query.find(name);
    return found == request.query.end() ? std::string() : found->second;
  };
  if (get("/status")) return respond({200, "application/json", status()});
  if (get("/ring")) return respond({200, "application/json", ring()});
  if (get("/partitions")) {
    if (const auto named = check_named(parameter("keyspace"), parameter("table")); !named)
      return respond(error_response(404, named.error().message));
    return respond(
        {200, "application/json", partitions(parameter("keyspace"), parameter("table"))});
  }
  if (get("/describe-cluster")) return respond({200, "application/json", describe_cluster()});
  if (get("/tablestats")) {
    gather_figures(true, [this, respond = std::move(respond)](const AllFigures& figures) {
      respond({200, "application/json", table_stats(figures)});
    });
    return;
  }

  const auto is_order = [&](const char* path) {
    return request.path == path && request.method == "POST";
  };
  if (is_order("/flush") || is_order("/compact")) {
    const auto round =
        std::make_shared<StoreRound>(StoreRound{parts_.shards.size(), {}, std::move(respond)});
    for (const Shard& shard : parts_.shards) {
      shard.reactor.post_from_any_thread([&store = shard.store, &purges = shard.data.purges(),
                                          &main = reactor(), round,
                                          flush = request.path == "/flush"] {
        auto done = [&main, round](Result<void> result) {
          main.post_from_any_thread(
              [round, result = std::move(result)] { round->finish_one(result); });
        };
        if (flush) return store.flush(std::move(done));
        // First what may be purged goes, then the files are made smaller.
        purges.purge_now([&store, done] { store.compact(done); });
      });
    }
    return;
  }
  if (is_order("/log-level")) {
    const std::string level = parameter("level");
    if (level != "debug" && level != "info" && level != "warn" && level != "error") {
      return respond(error_response(400, "level is one of debug, info, warn, error"));
    }
    parts_.logger.sink().set_level(log_level_named(level));
    return respond(json_response({{"level", level}}));
  }
  if (is_order("/split")) {
    const std::string id = parameter("id");
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error != std::errc() || end != id.data() + id.size()) {
      return respond(
          error_response(400, "id is the number of a partition, see `tetractl partitions`"));
    }
    tasks_.spawn(split(this, number, std::move(respond)));
    return;
  }
  if (is_order("/repair")) {
    if (const auto named = check_named(parameter("keyspace"), parameter("table")); !named)
      return respond(error_response(404, named.error().message));
    parts_.shards.front().data.repairs().repair_now(
        parameter("keyspace"), parameter("table"),
        [respond = std::move(respond)](const replication::RepairRunner::Summary& summary) {
          if (summary.failed != 0) {
            return respond(error_response(
                500, fmt::format("{} physical partitions repaired, {} not: {}", summary.repaired,
                                 summary.failed, summary.first_error)));
          }
          respond(json_response({{"repaired", summary.repaired}}));
        });
    return;
  }
  if (is_order("/remove-node")) {
    const auto host = Uuid::parse(parameter("host"));
    if (!host) return respond(error_response(400, "host is a host id, see `tetractl status`"));
    return leave(HostId{*host}, true, std::move(respond));
  }
  if (is_order("/decommission")) return leave(parts_.node.self(), false, std::move(respond));
  if (is_order("/setting")) {
    const std::string name = parameter("name"), value = parameter("value");
    const auto setting = std::ranges::find(kClusterSettings, name, &ClusterSetting::name);
    if (setting == std::end(kClusterSettings)) {
      std::string names;
      for (const ClusterSetting& known : kClusterSettings)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
      return respond(error_response(400, "settings are " + names));
    }
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number == 0 ||
        number > setting->most) {
      return respond(error_response(400, fmt::format("{} is a whole number of {} from 1 to {}",
                                                     name, setting->unit, setting->most)));
    }
    tasks_.spawn(propose(this, replication::SetSetting{name, value}, std::move(respond)));
    return;
  }
  respond(error_response(404, "there is nothing at " + request.method + " " + request.path));
}

/// Begins it; the metadata group moves the replicas and ends it.
void AdminService::leave(HostId host, bool dead, HttpServer::Respond respond) {
  const auto state = parts_.node.meta().snapshot();
  const auto may = replication::check_leaving(
      *state, host, dead, [this](HostId node) { return parts_.node.meta().is_live(node); });
  if (!may) return respond(error_response(409, may.error().message));
  tasks_.spawn(propose(this, replication::SetNodeState{host, replication::NodeState::kLeaving},
                       std::move(respond)));
}

std::string AdminService::status() const {
  const auto state = parts_.node.meta().snapshot();
  json nodes = json::array();
  for (const auto& [host, node] : state->nodes) {
    if (node.state == replication::NodeState::kRemoved) continue;
    uint64_t tablets = 0, bytes = 0;
    for (const auto& [id, table] : state->tables) {
      for (const auto& tablet : table->tablets.tablets()) {
        for (const auto& replica : tablet.replicas) {
          if (replica.host != host) continue;
          ++tablets;
          bytes += parts_.node.meta().tablet_bytes(tablet.id);
        }
      }
    }
    nodes.push_back({{"address", node.address},
                     {"host_id", host.to_string()},
                     {"state", replication::name_of(node.state)},
                     {"live", parts_.node.meta().is_live(host)},
                     {"data_center", node.data_center},
                     {"rack", node.rack},
                     {"native_port", node.native_port},
                     {"version", node.version},
                     {"partitions", tablets},
                     {"bytes", bytes}});
  }
  json out = {{"cluster", state->cluster_name},
              {"self", parts_.node.self().to_string()},
              {"health", parts_.health()},
              {"nodes", nodes}};
  return out.dump(2) + "\n";
}

std::string AdminService::ring() const {
  const auto state = parts_.node.meta().snapshot();
  std::vector<std::pair<int64_t, const replication::NodeInfo*>> tokens;
  for (const auto& [host, node] : state->nodes) {
    if (node.state == replication::NodeState::kRemoved) continue;
    for (const int64_t token : node.tokens) tokens.emplace_back(token, &node);
  }
  std::sort(tokens.begin(), tokens.end());
  json out = json::array();
  for (const auto& [token, node] : tokens) {
    out.push_back({{"token", token},
                   {"address", node->address},
                   {"rack", node->rack},
                   {"live", parts_.node.meta().is_live(node->host)}});
  }
  return out.dump(2) + "\n";
}

Result<void> AdminService::check_named(const std::string& keyspace, const std::string& name) const {
  const auto state = parts_.node.meta().snapshot();
  if (!keyspace.empty() && !state->schema_objects.contains("keyspace/" + keyspace))
    return fail(ErrorCode::kNotFound, "there is no keyspace {}", keyspace);
  if (!name.empty() && !state->schema_objects.contains("table/" + keyspace + "/" + name))
    return fail(ErrorCode::kNotFound, "there is no table {}.{}", keyspace, name);
  return {};
}

std::string AdminService::partitions(const std::string& keyspace, const std::string& name) const {
  const auto state = parts_.node.meta().snapshot();
  json out = json::array();
  for (const auto& [id, table] : state->tables) {
    if (!keyspace.empty() && keyspace != table->keyspace) continue;
    if (!name.empty() && name != table->name) continue;
    for (const auto& tablet : table->tablets.tablets()) {
      json replicas = json::array();
      for (const auto& replica : tablet.replicas) {
        const auto* node = state->node(replica.host);
        replicas.push_back(node == nullptr ? replica.host.to_string() : node->address);
      }
      out.push_back(
          {{"keyspace", table->keyspace},
           {"table", table->name},
           {"id", tablet.id.value},
           {"range_start", tablet.range.start.token},
           {"range_end", tablet.range.end.token},
           {"replicas", replicas},
           {"size_bytes", parts_.node.meta().tablet_bytes(tablet.id)},
           {"state", tablet.full ? std::string_view("full") : replication::name_of(tablet.stage)}});
    }
  }
  return out.dump(2) + "\n";
}

std::string AdminService::describe_cluster() const {
  const auto state = parts_.node.meta().snapshot();
  json settings = json::object();
  for (const auto& [name, value] : state->settings) settings[name] = value;
  for (const ClusterSetting& known : kClusterSettings)
    settings.emplace(std::string(known.name), std::to_string(known.otherwise));
  json voters = json::array();
  std::string leader;
  if (const replication::RaftDriver* driver = parts_.node.meta_group().driver()) {
    const auto address_of = [&](HostId host) {
      const replication::NodeInfo* node = state->node(host);
      return node == nullptr ? host.to_string() : node->address;
    };
    for (const HostId host : driver->core().configuration().voters)
      voters.push_back(address_of(host));
    if (const auto host = driver->core().leader()) leader = address_of(*host);
  }
  json out = {{"cluster", state->cluster_name},
              {"metadata_leader", leader},
              {"metadata_voters", voters},
              {"cluster_id", state->cluster_id.to_string()},
              {"partitioner", "org.apache.cassandra.dht.Murmur3Partitioner"},
              {"schema_version", state->schema_version_uuid().to_string()},
              {"metadata_index", state->applied.value},
              {"nodes", state->nodes.size()},
              {"tables", state->tables.size()},
              {"settings", settings},
              {"version", parts_.version}};
  return out.dump(2) + "\n";
}

void AdminService::gather_figures(bool of_tables, std::function<void(const AllFigures&)> done) {
  struct Round {
    size_t left;
    AllFigures figures;
    std::function<void(const AllFigures&)> done;
  };
  const auto round = std::make_shared<Round>(
      Round{parts_.shards.size(), AllFigures(parts_.shards.size()), std::move(done)});
  const auto state = of_tables ? parts_.node.meta().snapshot() : nullptr;
  for (size_t number = 0; number < parts_.shards.size(); ++number) {
    const Shard& shard = parts_.shards[number];
    const StoreAddress address{parts_.node.self(), static_cast<uint32_t>(number)};
    shard.reactor.post_from_any_thread(
        [&store = shard.store, &main = reactor(), round, state, address, number] {
          StoreFigures figures{store.statistics(), {}};
          if (state != nullptr) {
            for (const auto& [id, table] : state->tables) {
              for (const auto& tablet : table->tablets.tablets()) {
                if (std::ranges::find(tablet.replicas, address) == tablet.replicas.end()) continue;
                figures.bytes[id] += store.approximate_bytes(table->incarnation, tablet.range);
              }
            }
          }
          main.post_from_any_thread([round, figures = std::move(figures), number]() mutable {
            round->figures[number] = std::move(figures);
            if (--round->left == 0) round->done(round->figures);
          });
        });
  }
}

std::string AdminService::table_stats(const AllFigures& figures) const {
  const auto state = parts_.node.meta().snapshot();
  json tables = json::array();
  for (const auto& [id, table] : state->tables) {
    uint64_t bytes = 0, here = 0;
    for (const auto& tablet : table->tablets.tablets()) {
      for (const auto& replica : tablet.replicas)
        here += replica.host == parts_.node.self() ? 1 : 0;
    }
    for (const StoreFigures& store : figures) {
      const auto found = store.bytes.find(id);
      if (found != store.bytes.end()) bytes += found->second;
    }
    tables.push_back({{"keyspace", table->keyspace},
                      {"table", table->name},
                      {"partitions", table->tablets.tablets().size()},
                      {"partitions_here", here},
                      {"bytes_here", bytes}});
  }
  json stores = json::array();
  for (const StoreFigures& store : figures) {
    const auto& s = store.statistics;
    stores.push_back({{"disk_bytes", s.disk_bytes},
                      {"memtable_bytes", s.memtable_bytes},
                      {"cache_bytes", s.cache_bytes},
                      {"row_cache_bytes", s.row_cache_bytes},
                      {"estimated_keys", s.estimated_keys},
                      {"pending_compaction_bytes", s.pending_compaction_bytes},
                      {"writes_stopped", s.writes_stopped}});
  }
  uint64_t hints = 0;
  for (const Shard& shard : parts_.shards) hints += shard.data.hints().pending_count();
  json out = {{"tables", tables}, {"stores", stores}, {"hints_pending", hints}};
  return out.dump(2) + "\n";
}

Task<void> AdminService::propose(AdminService* self, replication::MetaCommandBody body,
                                 HttpServer::Respond respond) {
  const base::Deadline deadline{self->reactor().now_us() + 10'000'000};
  auto result = co_await self->parts_.node.meta_group().propose(std::move(body), deadline);
  respond(result ? json_response({{"ok", true}}) : error_response(500, result.error().message));
}

Task<void> AdminService::split(AdminService* self, uint64_t tablet_id,
                               HttpServer::Respond respond) {
  const auto state = self->parts_.node.meta().snapshot();
  const replication::TableInfo* table = nullptr;
  const partitioner::Tablet* tablet = nullptr;
  for (const auto& [id, info] : state->tables) {
    for (const auto& candidate : info->tablets.tablets()) {
      if (candidate.id.value != tablet_id) continue;
      table = info.get();
      tablet = &candidate;
    }
  }
  if (tablet == nullptr) {
    respond(error_response(404, fmt::format("there is no partition {}", tablet_id)));
    co_return;
  }
  const Shard* shard = nullptr;
  for (const auto& replica : tablet->replicas) {
    if (replica.host == self->parts_.node.self() && replica.store < self->parts_.shards.size())
      shard = &self->parts_.shards[replica.store];
  }
  if (shard == nullptr) {
    respond(error_response(
        409,
        "this node holds no replica of it; ask one of those that `tetractl partitions` names"));
    co_return;
  }
  base::OneShot<Result<std::vector<storage::SizeSample>>> sampled;
  shard->reactor.post_from_any_thread([&store = shard->store, &main = self->reactor(),
                                       incarnation = table->incarnation, range = tablet->range,
                                       setter = sampled.setter()] {
    store.sample_sizes(
        incarnation, range, 256, [&main, setter](Result<std::vector<storage::SizeSample>> samples) {
          main.post_from_any_thread(
              [setter, samples = std::move(samples)]() mutable { setter.set(std::move(samples)); });
        });
  });
  auto samples = co_await sampled;
  if (!samples) {
    respond(error_response(500, samples.error().message));
    co_return;
  }
  std::vector<partitioner::SplitSample> points;
  for (const auto& sample : *samples) points.push_back({sample.position, sample.bytes});
  const auto at = partitioner::choose_split_point(*tablet, points);
  if (!at) {
    respond(error_response(409, at.error().message));
    co_return;
  }
  co_await propose(
      self, replication::SplitTablet{table->incarnation, tablet->id, tablet->range, *at}, respond);
}

}  // namespace tetrad::server
