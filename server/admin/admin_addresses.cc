// SPDX-License-Identifier: Apache-2.0
// Groups of addresses (CIDR groups): what the admin port tells of them, and the orders that change
// them. They are objects of the metadata (cql/schema/address_groups.h).
#include <algorithm>

#include "base/sleep.h"
#include "cql/schema/address_groups.h"
#include "cql/types/inet.h"
#include "replication/meta/cluster_format.h"
#include "server/admin/admin_service.h"
#include "server/admin/json_text.h"

namespace tetrad::server {

using nlohmann::json;

namespace {

// A change is a proposal to the metadata group, made again when another change came first.
constexpr int64_t kChangeTimeoutUs = 20'000'000, kRetryUs = 2'000;

/// Those that read; one that does not has no addresses, and the log and /health tell of it.
cql::AddressGroups groups_in(const replication::MetaState& state) {
  cql::AddressGroups::Groups groups;
  for (auto at = state.schema_objects.lower_bound(std::string(cql::kAddressGroupPrefix));
       at != state.schema_objects.end() && at->first.starts_with(cql::kAddressGroupPrefix); ++at) {
    if (auto group = cql::read_address_group_text(at->second))
      groups.emplace((*group)->name, std::move(*group));
  }
  return cql::AddressGroups(std::move(groups));
}

/// Why there cannot be such a group as well, or in place of the one of its name; "" if there can.
std::string no_room_for(const cql::AddressGroup& group, const replication::MetaState& state) {
  const cql::AddressGroups known = groups_in(state);
  const auto before = known.all().find(group.name);
  const bool is_new = before == known.all().end();
  if (is_new && known.all().size() >= cql::kAddressGroupsMax)
    return fmt::format("there are {} CIDR groups at most", cql::kAddressGroupsMax);
  const size_t others = known.range_count() - (is_new ? 0 : before->second->ranges.size());
  if (others + group.ranges.size() > cql::kAddressRangesMax)
    return fmt::format("there are {} CIDRs at most in all groups, not {}", cql::kAddressRangesMax,
                       others + group.ranges.size());
  return "";
}

}  // namespace

/// Of one group its ranges, otherwise the names of all.
void AdminService::answer_cidr_groups(const HttpRequest& request, Respond respond) {
  const cql::AddressGroups groups = groups_in(*parts_.node.meta().snapshot());
  const std::string name = request.parameter("name");
  json out = json::array();
  if (name.empty()) {
    for (const auto& [known, group] : groups.all()) out.push_back(known);
    return respond(json_response({{"groups", out}}));
  }
  const auto found = groups.all().find(name);
  if (found != groups.all().end())
    for (const cql::AddressRange& range : found->second->ranges) out.push_back(range.text());
  respond(json_response({{"cidrs", out}}));
}

void AdminService::answer_cidr_groups_of(const HttpRequest& request, Respond respond) {
  const std::string text = request.parameter("address");
  const auto address = cql::parse_inet(text);
  // As of a range: "1.2.3", which is 1.2.0.3 to Java, is a slip.
  const bool is_whole = text.find(':') != std::string::npos || std::ranges::count(text, '.') == 3;
  if (!address || !is_whole) return respond(http_error(400, "Invalid IP " + text));
  const cql::AddressGroups groups = groups_in(*parts_.node.meta().snapshot());
  respond(json_response({{"groups", groups.groups_of(*address)}}));
}

void AdminService::answer_cidr_filtering(const HttpRequest&, Respond respond) {
  respond(json_response(
      {{"accepted", parts_.addresses->accepted()}, {"rejected", parts_.addresses->rejected()}}));
}

void AdminService::order_update_cidr_group(const HttpRequest& request, Respond respond) {
  const std::vector<std::string> ranges = words_of(request.parameter("cidrs"));
  const std::string name = request.parameter("name");
  auto group = cql::make_address_group(name, ranges);
  if (!group) return respond(http_error(400, group.error().message));
  spawn(change_cidr_group(this, name, std::move(*group)), std::move(respond));
}

void AdminService::order_drop_cidr_group(const HttpRequest& request, Respond respond) {
  const std::string name = request.parameter("name");
  if (name.empty()) return respond(http_error(400, "name is that of a CIDR group"));
  spawn(change_cidr_group(this, name, std::nullopt), std::move(respond));
}

Task<HttpResponse> AdminService::change_cidr_group(AdminService* self, std::string name,
                                                   std::optional<cql::AddressGroup> group) {
  replication::MetaService& meta = self->parts_.node.meta();
  base::Reactor& reactor = self->reactor();
  const std::string key = cql::address_group_key(name);
  const base::Deadline deadline{reactor.now_us() + kChangeTimeoutUs};
  while (true) {
    const replication::MetaSnapshot state = meta.snapshot();
    if (state->format < replication::kFormatAddressGroups)
      co_return http_error(409, "CIDR groups wait until all nodes run a program that knows them");
    if (!group && !state->schema_objects.contains(key))
      co_return http_error(404, fmt::format("CIDR group '{}' doesn't exists", name));
    if (const std::string why = group ? no_room_for(*group, *state) : ""; !why.empty())
      co_return http_error(409, why);
    replication::SchemaChange change;
    change.expected = state->schema_version;
    change.objects.emplace_back(
        key, group ? std::optional(cql::address_group_text(*group)) : std::nullopt);
    auto changed = co_await meta.change_schema(std::move(change), deadline, nullptr);
    if (changed) break;
    if (changed.error().code != ErrorCode::kConflict || reactor.now_us() >= deadline.at_us)
      co_return http_error(500, changed.error().message);
    co_await base::sleep_for(reactor, kRetryUs);
  }
  self->parts_.logger.warn("a CIDR group was {} by order name={} cidrs={}",
                           group ? "changed" : "dropped", name, group ? group->ranges.size() : 0);
  co_return json_response({{"ok", true}});
}

}  // namespace tetrad::server
