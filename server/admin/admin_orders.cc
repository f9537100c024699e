// SPDX-License-Identifier: Apache-2.0
// The orders of the admin port: what changes something, on this node or in the cluster.
//
// An order works on all stores of this node (flush, compact: StoreRound collects their answers), or
// it proposes a command to the metadata group (propose). It answers when that has happened, not
// when it was accepted.
#include <algorithm>

#include "base/closest_name.h"
#include "partitioner/split_policy.h"
#include "replication/membership/leaving.h"
#include "server/admin/admin_service.h"
#include "server/admin/cluster_settings.h"
#include "server/admin/json_text.h"
#include "server/config/options.h"
#include "storage/engine/auto_compaction.h"

namespace tetrad::server {
namespace {

/// Answers once, when as many stores as it was made for are done.
// Shared by the callbacks of all stores; only the main thread changes it. The first error wins, but
// the answer waits for all.
struct StoreRound {
  size_t left;
  std::optional<Error> error;
  HttpServer::Respond respond;
  void finish_one(const Result<void>& result) {
    if (!result && !error) error = result.error();
    if (--left != 0) return;
    respond(error ? http_error(500, error->message) : json_response({{"ok", true}}));
  }
};

/// Tells the round, on the main thread, that a store is done.
auto finishing(const std::shared_ptr<StoreRound>& round, base::Reactor& main) {
  return [&main, round](Result<void> result) {
    main.post_from_any_thread([round, result = std::move(result)] { round->finish_one(result); });
  };
}

/// The positions after the token `start` up to the token `end`, as nodetool's -st and -et have them:
/// over the end of the ring where `start` is above `end`. Empty: from, or to, the end of the ring.
Result<std::vector<RingRange>> ranges_of_tokens(const std::string& start, const std::string& end) {
  RingRange range;
  for (const auto& [text, position] : {std::pair(&start, &range.start), {&end, &range.end}}) {
    if (text->empty()) continue;
    const auto token = whole_number<int64_t>(*text);
    if (!token)
      return fail(ErrorCode::kInvalid, "a token is a whole number from -2^63 to 2^63-1: {}", *text);
    *position = RingPosition::end_of_token(*token);
  }
  if (range.start < range.end) return std::vector<RingRange>{range};
  if (range.start == range.end && end.empty())
    return fail(ErrorCode::kInvalid, "no token comes after {}", start);
  if (range.start == range.end)
    return fail(ErrorCode::kInvalid, "the tokens of start and end are equal");
  return std::vector<RingRange>{{range.start, RingPosition::highest()},
                                {RingPosition::lowest(), range.end}};
}

}  // namespace

void AdminService::order_flush(const HttpRequest& request, Respond respond) {
  if (const auto named = tables_named(request); !named)
    return respond(http_error(404, named.error().message));
  flush_stores(std::move(respond));  // a store has one memtable for all tables
}

void AdminService::order_compact(const HttpRequest& request, Respond respond) {
  const auto named = tables_named(request);
  if (!named) return respond(http_error(404, named.error().message));
  std::vector<TableIncarnation> tables;
  if (!request.parameter("keyspace").empty()) {
    for (const NamedTable& table : *named) tables.push_back(table->incarnation);
    if (tables.empty()) return respond(json_response({{"ok", true}}));  // an empty keyspace
  }
  compact_stores(std::move(tables), std::move(respond));
}

void AdminService::flush_stores(Respond respond) {
  const auto round =
      std::make_shared<StoreRound>(StoreRound{parts_.shards.size(), {}, std::move(respond)});
  for (const Shard& shard : parts_.shards) {
    shard.reactor.post_from_any_thread(
        [&store = shard.store, &main = reactor(), round] { store.flush(finishing(round, main)); });
  }
}

// No tables: all that the stores hold.
void AdminService::compact_stores(std::vector<TableIncarnation> tables, Respond respond) {
  const auto round =
      std::make_shared<StoreRound>(StoreRound{parts_.shards.size(), {}, std::move(respond)});
  for (const Shard& shard : parts_.shards) {
    shard.reactor.post_from_any_thread(
        [&store = shard.store, &purges = shard.data.purges(), &main = reactor(), round, tables] {
          // First what may be purged goes, then the files are made smaller.
          purges.purge_now(
              [&store, &main, round, tables] { store.compact(tables, finishing(round, main)); });
        });
  }
}

void AdminService::order_auto_compaction(const HttpRequest& request, Respond respond) {
  const std::string running = request.parameter("running");
  if (running != "true" && running != "false")
    return respond(http_error(400, "running is true or false"));
  const bool runs = running == "true";
  parts_.logger.warn("compactions are switched {} by order", runs ? "on" : "off");
  const auto round =
      std::make_shared<StoreRound>(StoreRound{parts_.shards.size(), {}, std::move(respond)});
  for (const Shard& shard : parts_.shards) {
    shard.reactor.post_from_any_thread([&store = shard.store, &main = reactor(), round, runs] {
      auto* const compactions = dynamic_cast<storage::AutoCompaction*>(&store);
      if (compactions != nullptr)
        return compactions->set_auto_compaction(runs, finishing(round, main));
      finishing(round, main)(fail(ErrorCode::kInvalid, "the store has no files to compact"));
    });
  }
}

void AdminService::order_log_level(const HttpRequest& request, Respond respond) {
  const std::string level = request.parameter("level");
  if (level != "debug" && level != "info" && level != "warn" && level != "error")
    return respond(http_error(400, "level is one of debug, info, warn, error"));
  parts_.logger.sink().set_level(log_level_named(level));
  respond(json_response({{"level", level}}));
}

/// The leader sees that the number has changed.
// Any node may be asked, but only the leader of the metadata group moves tablets, so the order
// travels as a setting.
void AdminService::order_rebalance(const HttpRequest&, Respond respond) {
  const uint64_t orders = replication::setting_or(*parts_.node.meta().snapshot(),
                                                  replication::kSettingBalanceOrders, 0);
  spawn(propose(this, replication::SetSetting{replication::kSettingBalanceOrders,
                                              std::to_string(orders + 1)}),
        std::move(respond));
}

void AdminService::order_split(const HttpRequest& request, Respond respond) {
  const auto id = whole_number(request.parameter("id"));
  if (!id)
    return respond(http_error(400, "id is the number of a partition, see `tetractl partitions`"));
  spawn(split(this, *id), std::move(respond));
}

/// Answers when they are one.
void AdminService::order_merge(const HttpRequest& request, Respond respond) {
  const auto id = whole_number(request.parameter("id"));
  if (!id)
    return respond(http_error(400, "id is the number of a partition, see `tetractl partitions`"));
  parts_.node.merges().order(TabletId{*id},
                             [respond = std::move(respond)](Result<void> merged) mutable {
                               if (merged) return respond(json_response({{"ok", true}}));
                               respond(http_refusal(merged.error()));
                             });
}

void AdminService::order_repair(const HttpRequest& request, Respond respond) {
  const std::string keyspace = request.parameter("keyspace"), table = request.parameter("table");
  if (const auto named = check_named(keyspace, table); !named)
    return respond(http_error(404, named.error().message));
  auto ranges = ranges_of_tokens(request.parameter("start_token"), request.parameter("end_token"));
  if (!ranges) return respond(http_error(400, ranges.error().message));
  parts_.shards.front().data.repairs().repair_now(
      keyspace, table, std::move(*ranges),
      [respond = std::move(respond)](const replication::RepairRunner::Summary& summary) {
        if (summary.failed != 0) {
          return respond(
              http_error(500, fmt::format("{} physical partitions repaired, {} not: {}",
                                          summary.repaired, summary.failed, summary.first_error)));
        }
        respond(json_response({{"repaired", summary.repaired}}));
      });
}

void AdminService::order_remove_node(const HttpRequest& request, Respond respond) {
  const auto host =
      replication::host_named(*parts_.node.meta().snapshot(), request.parameter("host"));
  if (!host) return respond(http_refusal(host.error()));
  // Who has said an address watches the node by its id.
  leave(*host, true,
        [respond = std::move(respond), id = host->to_string()](HttpResponse answer) mutable {
          if (answer.status == 200) answer = json_response({{"ok", true}, {"host_id", id}});
          respond(std::move(answer));
        });
}

void AdminService::order_decommission(const HttpRequest& request, Respond respond) {
  const auto cancel = request.query.find("cancel");
  const auto force = request.query.find("force");
  if (force != request.query.end() && force->second != "true")
    return respond(http_error(400, "force is true, or is not given"));
  if (cancel == request.query.end())
    return order_leaving(force != request.query.end(), std::move(respond));
  // Whoever gives it, even without a value, does not ask the node to leave.
  if (cancel->second != "true") return respond(http_error(400, "cancel is true, or is not given"));
  spawn(cancel_decommission(this), std::move(respond));
}

// What it costs is checked and told once, at the first order: a node that leaves goes on.
void AdminService::order_leaving(bool is_forced, Respond respond) {
  const auto state = parts_.node.meta().snapshot();
  const HostId self = parts_.node.self();
  const replication::NodeInfo* node = state->node(self);
  const auto without = replication::copies_without(*state, self);
  // The only one of its data center has other errors, or other data centers with the rows.
  if (node == nullptr || node->state != replication::NodeState::kNormal ||
      without.nodes_then == 0 || without.copies_then == without.copies_now)
    return leave(self, false, std::move(respond));
  const auto may = replication::check_copies(without);
  if (!may && !is_forced) return respond(http_error(409, may.error().message));
  leave(self, false, [respond = std::move(respond), without](HttpResponse answer) mutable {
    if (answer.status == 200)
      answer = json_response(
          {{"ok", true},
           {"note", fmt::format("{} nodes remain in data center {}: rows will have {} copies "
                                "instead of {}",
                                without.nodes_then, without.data_center, without.copies_then,
                                without.copies_now)}});
    respond(std::move(answer));
  });
}

/// Begins it; the metadata group moves the replicas and ends it.
// Checked here, where liveness is known; the metadata group takes the command as it comes.
void AdminService::leave(HostId host, bool dead, Respond respond) {
  const auto state = parts_.node.meta().snapshot();
  const auto may = replication::check_leaving(
      *state, host, dead, [this](HostId node) { return parts_.node.meta().is_live(node); });
  if (!may) return respond(http_error(409, may.error().message));
  if (dead)
    spawn(propose(this, replication::SetNodeState{host, replication::NodeState::kLeaving}),
          std::move(respond));
  else
    spawn(decommission(this), std::move(respond));
}

void AdminService::order_setting(const HttpRequest& request, Respond respond) {
  const std::string name = request.parameter("name"), value = request.parameter("value");
  const auto setting = std::ranges::find(kClusterSettings, name, &ClusterSetting::name);
  if (setting == std::end(kClusterSettings)) {
    std::vector<std::string> names;
    for (const ClusterSetting& known : kClusterSettings) names.emplace_back(known.name);
    return respond(
        http_error(400, fmt::format("there is no setting {}{} Settings are {}", name,
                                    base::did_you_mean(name, names, "."), fmt::join(names, ", "))));
  }
  // All settings of the cluster are whole numbers; the table has unit and bounds.
  const auto number = whole_number(value);
  if (!number || *number < setting->least || *number > setting->most) {
    return respond(http_error(400, fmt::format("{} is a whole number of {} from {} to {}", name,
                                               setting->unit, setting->least, setting->most)));
  }
  spawn(propose(this, replication::SetSetting{name, std::to_string(*number)}), std::move(respond));
}

void AdminService::answer_disk_encryption(const HttpRequest&, Respond respond) {
  parts_.count_encrypted([respond = std::make_shared<Respond>(std::move(respond))](
                             const std::string& id, Result<storage::FileCounts> found) {
    if (!found) return (*respond)(http_error(500, found.error().message));
    auto keys = nlohmann::json::array();
    for (const auto& [key, count] : *found)
      keys.push_back(
          {{"key", key}, {"new_files", key == id}, {"files", count.files}, {"bytes", count.bytes}});
    (*respond)(json_response({{"key_of_new_files", id}, {"keys", keys}}));
  });
}

void AdminService::order_reload_certificates(const HttpRequest&, Respond respond) {
  parts_.reload_certificates(
      [respond = std::move(respond)](bool is_well, const std::vector<std::string>& lines) {
        if (lines.empty())
          return respond(http_error(409, "this node has no certificates: nothing is encrypted"));
        if (is_well) return respond(json_response({{"certificates", lines}}));
        std::string all;
        for (const std::string& line : lines) all += (all.empty() ? "" : "\n") + line;
        respond(http_error(500, all));
      });
}

// The task belongs to this object and dies with it; then nobody is answered, and the connection
// closes.
void AdminService::spawn(Task<HttpResponse> task, Respond respond) {
  tasks_.spawn(run(this, std::move(task), std::move(respond)));
}

Task<void> AdminService::run(AdminService* self, Task<HttpResponse> task, Respond respond) {
  HttpResponse response = http_error(500, "this request failed in the node; its log says why");
  try {
    auto made = co_await task;
    response = std::move(made);
  } catch (const std::exception& error) {
    self->parts_.logger.error("admin request failed error={}", error.what());
  }
  respond(std::move(response));
}

Task<HttpResponse> AdminService::propose(AdminService* self, replication::MetaCommandBody body) {
  // A timeout does not mean that the command was not applied.
  const base::Deadline deadline{self->reactor().now_us() + 10'000'000};
  auto result = co_await self->parts_.node.meta_group().propose(std::move(body), deadline);
  co_return result ? json_response({{"ok", true}}) : http_error(500, result.error().message);
}

Task<HttpResponse> AdminService::decommission(AdminService* self) {
  const base::Deadline deadline{self->reactor().now_us() + 10'000'000};
  auto result = co_await self->parts_.node.decommission(deadline);
  co_return result ? json_response({{"ok", true}}) : http_error(500, result.error().message);
}

Task<HttpResponse> AdminService::cancel_decommission(AdminService* self) {
  const base::Deadline deadline{self->reactor().now_us() + 10'000'000};
  auto result = co_await self->parts_.node.cancel_decommission(deadline);
  if (result) co_return json_response({{"ok", true}});
  co_return http_error(result.error().code == ErrorCode::kConflict ? 409 : 500,
                       result.error().message);
}

// Halves a tablet at the middle of its bytes. Only a node that holds a replica can sample it. The
// command carries the range: if the tablet has changed meanwhile, the metadata group refuses it.
Task<HttpResponse> AdminService::split(AdminService* self, uint64_t tablet_id) {
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
    co_return http_error(404, fmt::format("there is no partition {}", tablet_id));
  }
  const Shard* shard = nullptr;
  for (const auto& replica : tablet->replicas) {
    if (replica.host == self->parts_.node.self() && replica.store < self->parts_.shards.size())
      shard = &self->parts_.shards[replica.store];
  }
  if (shard == nullptr) {
    co_return http_error(
        409, "this node holds no replica of it; ask one of those that `tetractl partitions` names");
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
    co_return http_error(500, samples.error().message);
  }
  std::vector<partitioner::SplitSample> points;
  for (const auto& sample : *samples) points.push_back({sample.position, sample.bytes});
  const auto at = partitioner::choose_split_point(*tablet, points);
  if (!at) {
    co_return http_error(409, at.error().message);
  }
  replication::SplitTablet command{table->incarnation, tablet->id, tablet->range, *at};
  auto answer = co_await propose(self, std::move(command));
  co_return answer;
}

}  // namespace tetrad::server
