// SPDX-License-Identifier: Apache-2.0
// The admin port's answers. The main thread runs all of it; figures of other shards come by posts
// and are put together there.
//
// 1. handle() finds the route by path and method, then checks access (refusal), then that each
//    parameter is known. A wrong name must not be ignored: an operator would believe that it had an
//    effect.
// 2. A fact answers from snapshots of the metadata, at once or when each shard has given its
//    figures (with_figures).
// 3. Orders are in admin_orders.cc, facts as JSON in admin_views.cc and admin_node.cc.
//
// CONTRIBUTING.md lists the files that a new route touches. AdminService outlives its requests:
// destroying it destroys tasks_.
#include "server/admin/admin_service.h"

#include <algorithm>

#include "server/admin/admin_token.h"
#include "server/admin/json_text.h"
#include "server/admin/table_figures.h"
#include "storage/engine/auto_compaction.h"

namespace tetrad::server {

using replication::TableFigure;

namespace {

/// Logged batches that wait longer are worth a look: replicas of one of their parts are down.
constexpr int64_t kBatchOld_s = 600;

constexpr std::string_view kNoClients =
    "clients are not served by order; tetractl enablebinary lets them in again";

/// What `make` makes, or 500 with what it threw.
template <class Make>
HttpResponse made_by(const Logger& logger, Make make) {
  try {
    return make();
  } catch (const std::exception& error) {
    logger.error("admin request failed error={}", error.what());
    return http_error(500, "this request failed in the node; its log says why");
  }
}

}  // namespace

// kPublic: for probes and Prometheus, from anywhere. kFact: only at admin_address. kOrder: also
// needs the token, since a page in a browser on the machine could send requests, too.
const std::vector<AdminService::Route>& AdminService::routes() {
  using Self = AdminService;
  static const std::vector<Route> table = {
      {Access::kFact, "GET", "/", &Self::answer_page},
      {Access::kPublic, "GET", "/health", &Self::answer_health},
      {Access::kPublic, "GET", "/ready", &Self::answer_ready},
      {Access::kPublic, "GET", "/metrics", &Self::answer_metrics},
      {Access::kFact, "GET", "/status", &Self::answer_status, {"keyspace"}},
      {Access::kFact, "GET", "/ring", &Self::answer_ring},
      {Access::kFact, "GET", "/partitions", &Self::answer_partitions, {"keyspace", "table"}},
      {Access::kFact, "GET", "/describe-cluster", &Self::answer_describe_cluster},
      {Access::kFact, "GET", "/rebalance-plan", &Self::answer_rebalance},
      {Access::kFact, "GET", "/tablestats", &Self::answer_table_stats},
      {Access::kFact,
       "GET",
       "/table-histograms",
       &Self::answer_table_histograms,
       {"keyspace", "tables"}},
      {Access::kFact, "GET", "/view-builds", &Self::answer_view_builds},
      {Access::kFact, "GET", "/info", &Self::answer_info},
      {Access::kFact, "GET", "/endpoints", &Self::answer_endpoints, {"keyspace", "table", "key"}},
      {Access::kFact, "GET", "/clients", &Self::answer_clients},
      {Access::kFact, "GET", "/hot-keys", &Self::answer_hot_keys, {"keyspace", "table"}},
      {Access::kFact, "GET", "/snapshots", &Self::answer_snapshots},
      {Access::kFact, "GET", "/cidr-groups", &Self::answer_cidr_groups, {"name"}},
      {Access::kFact, "GET", "/cidr-groups-of", &Self::answer_cidr_groups_of, {"address"}},
      {Access::kFact, "GET", "/cidr-filtering", &Self::answer_cidr_filtering},
      {Access::kFact, "GET", "/disk-encryption", &Self::answer_disk_encryption},
      {Access::kOrder,
       "POST",
       "/snapshot",
       &Self::order_snapshot,
       {"tag", "keyspaces", "tables", "ttl", "skip_flush"}},
      {Access::kOrder,
       "POST",
       "/clear-snapshot",
       &Self::order_clear_snapshot,
       {"tag", "keyspaces", "all"}},
      {Access::kOrder,
       "POST",
       "/update-cidr-group",
       &Self::order_update_cidr_group,
       {"name", "cidrs"}},
      {Access::kOrder, "POST", "/drop-cidr-group", &Self::order_drop_cidr_group, {"name"}},
      {Access::kOrder, "POST", "/rebalance", &Self::order_rebalance},
      {Access::kOrder, "POST", "/flush", &Self::order_flush, {"keyspace", "tables"}},
      {Access::kOrder, "POST", "/compact", &Self::order_compact, {"keyspace", "tables"}},
      {Access::kOrder, "POST", "/auto-compaction", &Self::order_auto_compaction, {"running"}},
      {Access::kOrder, "POST", "/log-level", &Self::order_log_level, {"level"}},
      {Access::kOrder, "POST", "/binary", &Self::order_binary, {"running"}},
      {Access::kOrder, "POST", "/drain", &Self::order_drain},
      {Access::kOrder, "POST", "/timeout", &Self::order_timeout, {"type", "ms"}},
      {Access::kOrder,
       "POST",
       "/trace-probability",
       &Self::order_trace_probability,
       {"probability"}},
      {Access::kOrder, "POST", "/split", &Self::order_split, {"id"}},
      {Access::kOrder, "POST", "/merge", &Self::order_merge, {"id"}},
      {Access::kOrder,
       "POST",
       "/repair",
       &Self::order_repair,
       {"keyspace", "table", "start_token", "end_token"}},
      {Access::kFact, "GET", "/verification", &Self::answer_verification},
      {Access::kFact, "GET", "/view-verification", &Self::answer_view_verification},
      {Access::kOrder, "POST", "/verify", &Self::order_verify, {"keyspace", "table"}},
      {Access::kOrder,
       "POST",
       "/verify-view",
       &Self::order_verify_view,
       {"keyspace", "view", "mend", "stop"}},
      {Access::kOrder, "POST", "/remove-node", &Self::order_remove_node, {"host"}},
      {Access::kOrder,
       "POST",
       "/remove-lost-nodes",
       &Self::order_remove_lost_nodes,
       {"nodes", "data_center", "loss"}},
      {Access::kOrder, "POST", "/decommission", &Self::order_decommission, {"cancel", "force"}},
      {Access::kOrder, "POST", "/setting", &Self::order_setting, {"name", "value"}},
      {Access::kOrder, "POST", "/reload-certificates", &Self::order_reload_certificates},
      {Access::kOrder, "POST", "/recover", &Self::order_recover, {"loss"}},
      {Access::kOrder, "POST", "/recover-metadata", &Self::order_recover_metadata, {"loss"}},
      {Access::kOrder, "POST", "/drop-batches", &Self::order_drop_batches},
  };
  return table;
}

void AdminService::handle(const HttpRequest& request, Respond respond) {
  const Route* found = nullptr;
  std::string methods;
  for (const Route& route : routes()) {
    if (route.path != request.path) continue;
    methods += (methods.empty() ? "" : ", ") + std::string(route.method);
    if (route.method == request.method) found = &route;
  }
  if (found == nullptr) {
    if (methods.empty()) return respond(http_error(404, "there is nothing at " + request.path));
    return respond(http_error(
        405, fmt::format("{} is asked with {}, not {}", request.path, methods, request.method)));
  }
  const bool is_order = found->access == Access::kOrder;
  if (auto refused = refusal(*found, request)) {
    if (is_order) orders_.refuse(request, found->parameters, *refused);
    return respond(std::move(*refused));
  }
  if (is_order) respond = orders_.begin(request, found->parameters, std::move(respond));
  for (const auto& [name, value] : request.query) {
    if (std::ranges::find(found->parameters, name) == found->parameters.end())
      return respond(http_error(400, fmt::format("{} takes no parameter {}", request.path, name)));
  }
  (this->*found->answer)(request, std::move(respond));
}

// Unset: the request may go on. The header Host is checked against DNS rebinding: a name of an
// attacker's that resolves to this machine.
std::optional<HttpResponse> AdminService::refusal(const Route& route,
                                                  const HttpRequest& request) const {
  if (route.access == Access::kPublic) return std::nullopt;
  if (request.outside) {
    return http_error(403, fmt::format("{} is answered at {} only, see the option admin_address",
                                       route.path, parts_.address));
  }
  if (!names_local_host(request.host))
    return http_error(403, "the header Host is neither an IP address nor localhost");
  if (route.access == Access::kFact) return std::nullopt;
  // Browsers send Origin with each POST of a page; tetractl and curl do not.
  if (!request.origin.empty()) return http_error(403, "web pages may not give orders");
  if (!is_same_token(request.token, parts_.token)) {
    return json_response({{"error", fmt::format("orders carry the content of {} in the header {}",
                                                parts_.token_file, kTokenHeader)},
                          {"token_file", parts_.token_file}},
                         401);
  }
  return std::nullopt;
}

// --- facts -------------------------------------------------------------------------------------

void AdminService::answer_page(const HttpRequest&, Respond respond) {
  respond({200, "text/html; charset=utf-8", page()});
}

/// Alive: restarting this node would not help.
void AdminService::answer_health(const HttpRequest&, Respond respond) {
  // The status code tells an orchestrator whether to restart the node; the lines are for people.
  const std::string text = health();
  std::string body = text + "\n";
  if (parts_.complaints)
    for (const std::string& line : parts_.complaints(false)) body += line + "\n";
  for (const std::string& line : disk_lines(false)) body += line + "\n";
  for (const std::string& line : behind_lines(false)) body += line + "\n";
  const int64_t oldest_s = parts_.node.batches().oldest_age_us() / 1'000'000;
  if (oldest_s >= kBatchOld_s)
    body += fmt::format("{} logged batches wait for their replicas, the oldest for {} s\n",
                        parts_.node.batches().count(), oldest_s);
  if (const size_t apart = parts_.node.batches().apart_count(); apart != 0)
    body += fmt::format(
        "{} logged batches do not decode and are set apart, see the log and tetractl "
        "drop-batches\n",
        apart);
  respond({text.starts_with("serving") ? 200 : 503, "text/plain", std::move(body)});
}

/// Useful: what clients ask of this node can be done.
void AdminService::answer_ready(const HttpRequest&, Respond respond) {
  const std::string own = parts_.health();
  std::string text;
  if (!own.starts_with("serving")) {
    text = own + "\n";
  } else {
    for (const std::string& line : measure().obstacles()) text += line + "\n";
    for (const std::string& line : foreign_lines(true)) text += line + "\n";
    if (!parts_.controls->serves_clients()) text += std::string(kNoClients) + "\n";
    const replication::HybridClock& clock = parts_.node.clock();
    if (!clock.is_good()) text += clock.refusal().message + "\n";
  }
  const bool ready = text.empty();
  respond({ready ? 200 : 503, "text/plain", ready ? "ready\n" : text});
}

// Begins with "serving" exactly when a restart would not help.
std::string AdminService::health() const {
  const std::string own = parts_.health();
  const replication::HybridClock& clock = parts_.node.clock();
  if (own == "serving" && clock.standing() == replication::ClockStanding::kQuarantine)
    return "serving no clients: " + clock.refusal().message;
  return own != "serving" || measure().has_quorum() ? own : "serving, no quorum";
}

std::vector<std::string> AdminService::warnings() const {
  std::vector<std::string> lines = measure().warnings();
  for (std::string& line : foreign_lines(false)) lines.push_back(std::move(line));
  if (parts_.complaints)
    for (std::string& line : parts_.complaints(true)) lines.push_back(std::move(line));
  for (std::string& line : disk_lines(true)) lines.push_back(std::move(line));
  for (std::string& line : behind_lines(true)) lines.push_back(std::move(line));
  if (parts_.health() == "serving" && !parts_.controls->serves_clients())
    lines.emplace_back(kNoClients);
  const auto state = parts_.node.meta().snapshot();
  for (const auto& [host, node] : state->nodes) {
    const bool is_other = host != parts_.node.self() && parts_.node.meta().is_live(host);
    if (is_other && !parts_.node.meta().takes_clients(host))
      lines.push_back(fmt::format(
          "{} serves no clients, by order: `tetractl -h {} enablebinary` opens its port again",
          node.address, node.address));
  }
  const base::Reactor& shard = parts_.shards.front().reactor;
  const replication::HybridClock& clock = parts_.node.clock();
  const int64_t ahead_us = clock.own_us(shard) - shard.wall_time_us();
  if (ahead_us > clock.skew_max_us() / 2)
    lines.push_back(
        fmt::format("the time of this node is {} s ahead of the wall clock, since it never goes "
                    "back: it runs at "
                    "half speed until they meet; meanwhile what clients stamp themselves is older "
                    "than what the "
                    "node stamps",
                    ahead_us / 1'000'000));
  return lines;
}

// A node alone that was given only other nodes for seeds serves clients what the cluster that they
// want does not have.
std::vector<std::string> AdminService::foreign_lines(bool obstacles) const {
  const auto state = parts_.node.meta().snapshot();
  const replication::Formation& formation = parts_.node.formation();
  const bool is_alone = std::ranges::count_if(state->nodes, [](const auto& entry) {
                          return entry.second.state != replication::NodeState::kRemoved;
                        }) == 1;
  std::vector<std::string> lines;
  if (obstacles && !(is_alone && formation.is_told_to_join())) return lines;
  for (const auto& [seed, cluster] : formation.foreign_seeds()) {
    lines.push_back(fmt::format(
        "seed {} is of another cluster, {}; this node is {} '{}' {}: {}", seed, cluster,
        is_alone ? "alone in" : "of", state->cluster_name, state->cluster_id.to_string(),
        is_alone ? "to join the seed's, stop this node, empty its data directory (what was written "
                   "here is lost) and start it again"
                 : "take the seed out of the options"));
  }
  return lines;
}

// Heartbeats carry the states; what is left in bytes a node knows of its own disk only.
std::vector<std::string> AdminService::disk_lines(bool of_all) const {
  std::vector<std::string> lines;
  const auto state = parts_.node.meta().snapshot();
  for (const auto& [host, usage] : parts_.node.meta().filling_disks()) {
    const bool is_own = host == parts_.node.self();
    if (!of_all && !is_own) continue;
    // It keeps nothing from being written while it is away.
    if (!is_own && !parts_.node.meta().is_live(host)) continue;
    std::string line = "the disk of " + state->address_of(host);
    if (usage == replication::DiskUsage::kStuffed) {
      line += " is above data_disk_usage_percentage_warn_threshold";
    } else if (usage == replication::DiskUsage::kFull) {
      line += " is above data_disk_usage_percentage_fail_threshold: writes to its rows are refused";
    } else {
      line += " is full: inserts of its rows are refused; deletions, DROP and TRUNCATE make room";
    }
    if (is_own && parts_.disk_left) line += parts_.disk_left();
    lines.push_back(std::move(line));
  }
  return lines;
}

// From this node's view of the metadata and of who is alive. Without a driver (the node has not
// joined yet) there are no voters.
Readiness AdminService::measure() const {
  const auto state = parts_.node.meta().snapshot();
  const replication::RaftDriver* driver = parts_.node.meta_group().driver();
  std::vector<HostId> voters;
  bool leader_known = false;
  if (driver != nullptr) {
    for (const HostId host : driver->core().configuration().voters) voters.push_back(host);
    leader_known = driver->core().leader().has_value();
  }
  return measure_readiness(
      *state, parts_.node.self(), voters, leader_known,
      [this](HostId host) {
        return host == parts_.node.self() || parts_.node.meta().is_live(host);
      },
      [this](HostId host) { return parts_.node.refusal(host); });
}

// Gauges of stores read statistics_, which only this request refreshes: the stores' own numbers
// belong to other threads.
void AdminService::answer_metrics(const HttpRequest&, Respond respond) {
  FiguresWanted wanted;
  for (const ExportedFigure& exported : kExportedFigures)
    wanted.measures.push_back(exported.figure);
  wanted.tables_max = kTablesExported;
  with_figures(std::move(wanted), std::move(respond), [this](const AllFigures& figures) {
    for (size_t i = 0; i < figures.size(); ++i) statistics_[i] = figures[i].statistics;
    readiness_ = measure();
    return HttpResponse{
        200, "text/plain; version=0.0.4",
        parts_.metrics.export_text() +
            export_table_figures(*parts_.node.meta().snapshot(), measures_of(figures))};
  });
}

void AdminService::answer_status(const HttpRequest& request, Respond respond) {
  const std::string keyspace = request.parameter("keyspace");
  if (const auto named = check_named(keyspace, ""); !named)
    return respond(http_error(404, named.error().message));
  respond({200, "application/json", status(keyspace)});
}

void AdminService::answer_ring(const HttpRequest&, Respond respond) {
  respond({200, "application/json", ring()});
}

void AdminService::answer_partitions(const HttpRequest& request, Respond respond) {
  const std::string keyspace = request.parameter("keyspace"), table = request.parameter("table");
  if (const auto named = check_named(keyspace, table); !named)
    return respond(http_error(404, named.error().message));
  respond({200, "application/json", partitions(keyspace, table)});
}

void AdminService::answer_rebalance(const HttpRequest&, Respond respond) {
  respond({200, "application/json", rebalance_plan()});
}

void AdminService::answer_describe_cluster(const HttpRequest&, Respond respond) {
  respond({200, "application/json", describe_cluster()});
}

void AdminService::answer_table_stats(const HttpRequest&, Respond respond) {
  FiguresWanted wanted{true,
                       {TableFigure::kLocalRead, TableFigure::kLocalWrite, TableFigure::kRowsOfRead,
                        TableFigure::kTombstonesOfRead}};
  with_figures(std::move(wanted), std::move(respond), [this](const AllFigures& figures) {
    return HttpResponse{200, "application/json", table_stats(figures)};
  });
}

void AdminService::with_figures(FiguresWanted wanted, Respond respond,
                                std::function<HttpResponse(const AllFigures&)> view) {
  gather_figures(std::move(wanted), [this, respond = std::move(respond),
                                     view = std::move(view)](const AllFigures& figures) {
    respond(made_by(parts_.logger, [&] { return view(figures); }));
  });
}

// Each shard fills its own figures on its thread and posts them to the main thread, which counts
// them down. No lock: a Round is touched by the main thread only.
void AdminService::gather_figures(FiguresWanted wanted,
                                  std::function<void(const AllFigures&)> done) {
  struct Round {
    size_t left;
    AllFigures figures;
    std::function<void(const AllFigures&)> done;
  };
  const auto round = std::make_shared<Round>(
      Round{parts_.shards.size(), AllFigures(parts_.shards.size()), std::move(done)});
  const auto state = wanted.bytes_of_tables ? parts_.node.meta().snapshot() : nullptr;
  for (size_t number = 0; number < parts_.shards.size(); ++number) {
    const Shard& shard = parts_.shards[number];
    const StoreAddress address{parts_.node.self(), static_cast<uint32_t>(number)};
    shard.reactor.post_from_any_thread([&store = shard.store, &data = shard.data, &main = reactor(),
                                        round, state, wanted, address, number] {
      StoreFigures figures{store.statistics()};
      if (const auto* compactions = dynamic_cast<const storage::AutoCompaction*>(&store))
        figures.compacts = compactions->auto_compaction_runs();
      if (!wanted.measures.empty())
        figures.measures = data.replicas().latencies().measures(wanted.measures, wanted.tables_max);
      if (wanted.views) figures.views = data.views().statuses();
      if (state != nullptr) {
        for (const auto& [id, table] : state->tables) {
          for (const auto& tablet : table->tablets.tablets()) {
            // Bytes of tablets that this store holds; what is left over of moved ones does not
            // count.
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

Result<void> AdminService::check_named(const std::string& keyspace, const std::string& name) const {
  // An order for a keyspace of the system finds no table of it, and is done.
  if (!keyspace.empty() && parts_.controls->is_computed(keyspace, name)) return {};
  const auto state = parts_.node.meta().snapshot();
  if (!keyspace.empty() && !state->schema_objects.contains("keyspace/" + keyspace))
    return fail(ErrorCode::kNotFound, "there is no keyspace {}", keyspace);
  if (!name.empty() && !state->schema_objects.contains("table/" + keyspace + "/" + name))
    return fail(ErrorCode::kNotFound, "there is no table {}.{}", keyspace, name);
  return {};
}

// No keyspace: all tables; a keyspace alone: all of its tables. Errors: kNotFound.
Result<std::vector<AdminService::NamedTable>> AdminService::tables_named(
    const HttpRequest& request) const {
  const std::string keyspace = request.parameter("keyspace"), tables = request.parameter("tables");
  if (keyspace.empty() && !tables.empty())
    return fail(ErrorCode::kNotFound, "tables are named with their keyspace");
  TETRAD_TRY_VOID(check_named(keyspace, ""));
  const std::vector<std::string> wanted = words_of(tables);
  for (const std::string& name : wanted) {
    if (name.empty()) return fail(ErrorCode::kNotFound, "a name in '{}' is empty", tables);
    TETRAD_TRY_VOID(check_named(keyspace, name));
  }
  const auto state = parts_.node.meta().snapshot();
  std::vector<NamedTable> found;
  for (const auto& [id, table] : state->tables) {
    if (!keyspace.empty() && table->keyspace != keyspace) continue;
    if (wanted.empty() || std::ranges::find(wanted, table->name) != wanted.end())
      found.push_back(table);
  }
  return found;
}

}  // namespace tetrad::server
