// SPDX-License-Identifier: Apache-2.0
// Snapshots, as the admin port takes orders of them.
#include <limits>

#include "server/admin/admin_service.h"
#include "server/admin/json_text.h"

namespace tetrad::server {

using nlohmann::json;

namespace {

// Cassandra's least; and a bound so that milliseconds do not overflow.
constexpr int64_t kTtlLeast_s = 60, kTtlMost_s = int64_t{100} * 365 * 86'400;

/// "90s", "5m", "1h", "7d".
std::optional<int64_t> duration_s(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const char unit = text.back();
  const int64_t of_unit = unit == 's'   ? 1
                          : unit == 'm' ? 60
                          : unit == 'h' ? 3'600
                          : unit == 'd' ? 86'400
                                        : 0;
  const auto count = whole_number(text.substr(0, text.size() - 1));
  if (of_unit == 0 || !count || *count > static_cast<uint64_t>(kTtlMost_s / of_unit))
    return std::nullopt;
  const int64_t duration = static_cast<int64_t>(*count) * of_unit;
  return duration < kTtlLeast_s ? std::nullopt : std::optional(duration);
}

// 409: another snapshot, or another one of this tag, is in the way.
HttpResponse refused(const Error& error) {
  const int status = error.code == ErrorCode::kConflict ? 409 : 500;
  return http_error(status, error.message);
}

}  // namespace

Result<SnapshotOrder> AdminService::snapshot_order(const HttpRequest& request) const {
  SnapshotOrder order;
  order.tag = request.parameter("tag");
  // As nodetool does without -t.
  if (order.tag.empty()) {
    // As Cassandra; without the parameter it is the time, as nodetool's.
    if (request.query.contains("tag"))
      return fail(ErrorCode::kInvalid, "You must supply a snapshot name.");
    order.tag = std::to_string(wall_time_ms());
  }
  if (!is_snapshot_tag(order.tag)) {
    return fail(ErrorCode::kInvalid,
                "a tag has up to 100 letters, digits and _ - . and begins with none of the last "
                "two, not '{}'",
                order.tag);
  }
  if (const std::string ttl = request.parameter("ttl"); !ttl.empty()) {
    order.ttl_s = duration_s(ttl);
    if (!order.ttl_s)
      return fail(ErrorCode::kInvalid,
                  "ttl is a number of s, m, h or d, at least 60s, as 7d, not '{}'", ttl);
  }
  const std::string skip = request.parameter("skip_flush");
  if (!skip.empty() && skip != "true" && skip != "false")
    return fail(ErrorCode::kInvalid, "skip_flush is true or false");
  order.flushes = skip != "true";
  const auto keyspaces = words_of(request.parameter("keyspaces"));
  const auto tables = words_of(request.parameter("tables"));
  if (!keyspaces.empty() && !tables.empty())
    return fail(ErrorCode::kInvalid, "either keyspaces are named or tables");
  const auto check_has_files = [this](const std::string& keyspace) -> Result<void> {
    if (!parts_.controls->is_computed(keyspace, "")) return {};
    // An empty snapshot would be taken for a backup, of roles for example.
    return fail(
        ErrorCode::kInvalid,
        "{} has no files to keep: it is made of the cluster's metadata, which every node has",
        keyspace);
  };
  for (const std::string& keyspace : keyspaces) {
    if (keyspace.empty()) return fail(ErrorCode::kInvalid, "a name of keyspaces is empty");
    // Errors: kNotFound. A name that is wrong must not give a snapshot without its tables.
    TETRAD_TRY_VOID(check_named(keyspace, ""));
    TETRAD_TRY_VOID(check_has_files(keyspace));
  }
  for (const std::string& table : tables) {
    const size_t dot = table.find('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == table.size())
      return fail(ErrorCode::kInvalid, "tables are named with their keyspaces, as ks.t, not '{}'",
                  table);
    TETRAD_TRY_VOID(check_named(table.substr(0, dot), table.substr(dot + 1)));
    TETRAD_TRY_VOID(check_has_files(table.substr(0, dot)));
  }
  // Neither keyspaces nor tables are named: all of them.
  const auto state = parts_.node.meta().snapshot();
  for (const auto& [id, table] : state->tables) {
    const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
      return std::ranges::find(names, name) != names.end();
    };
    if ((keyspaces.empty() && tables.empty()) || is_in(keyspaces, table->keyspace) ||
        is_in(tables, table->keyspace + "." + table->name))
      order.tables.push_back(table);
  }
  return order;
}

// The answer comes when all stores have kept their files.
void AdminService::order_snapshot(const HttpRequest& request, Respond respond) {
  auto order = snapshot_order(request);
  if (!order) {
    const bool is_absent = order.error().code == ErrorCode::kNotFound;
    return respond(http_error(is_absent ? 404 : 400, order.error().message));
  }
  const json answer = {{"tag", order->tag}, {"tables", order->tables.size()}};
  parts_.snapshots->take(std::move(*order),
                         [respond = std::move(respond), answer](const Result<void>& taken) {
                           respond(taken ? json_response(answer) : refused(taken.error()));
                         });
}

void AdminService::answer_snapshots(const HttpRequest&, Respond respond) {
  parts_.snapshots->list([respond = std::move(respond)](const Result<SnapshotList>& found) {
    if (!found) return respond(refused(found.error()));
    json rows = json::array();
    for (const SnapshotRow& row : found->rows) {
      rows.push_back({{"tag", row.tag},
                      {"keyspace", row.keyspace},
                      {"table", row.table},
                      {"own_bytes", row.own_bytes},
                      {"bytes", row.bytes},
                      {"created_ms", row.created_ms}});
      if (row.expires_ms) rows.back()["expires_ms"] = *row.expires_ms;
    }
    respond(json_response({{"snapshots", rows},
                           {"own_bytes", found->own_bytes},
                           {"lasting_own_bytes", found->lasting_own_bytes}}));
  });
}

void AdminService::order_clear_snapshot(const HttpRequest& request, Respond respond) {
  const std::string tag = request.parameter("tag"), all = request.parameter("all");
  // All snapshots go only if the operator says so.
  if (tag.empty() == (all != "true"))
    return respond(http_error(400, tag.empty() ? "Specify snapshot name or --all"
                                               : "Specify only one of snapshot name or --all"));
  if (!tag.empty() && !is_snapshot_tag(tag))
    return respond(http_error(400, fmt::format("'{}' is no tag of a snapshot", tag)));
  parts_.snapshots->clear(tag, words_of(request.parameter("keyspaces")),
                          [respond = std::move(respond)](const Result<size_t>& cleared) {
                            if (!cleared) return respond(refused(cleared.error()));
                            respond(json_response({{"cleared", *cleared}}));
                          });
}

}  // namespace tetrad::server
