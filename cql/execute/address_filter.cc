// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/address_filter.h"

#include <algorithm>

#include "cql/prepare/prepared_statement.h"
#include "cql/types/inet.h"

namespace tetrad::cql {
namespace {

// One line of log a minute for the node, whatever the number of clients that are only monitored.
constexpr int64_t kLogEveryUs = 60'000'000;
// Cassandra's word in its metrics for an address that is in no group.
constexpr const char* kNoGroup = "Undefined";

/// None of what is no address, as of a local one with the name of an interface.
std::set<std::string> groups_of(const std::string& address, const AddressGroups& groups) {
  const auto bytes = parse_inet(std::string_view(address).substr(0, address.find('%')));
  return bytes ? groups.groups_of(*bytes) : std::set<std::string>();
}

}  // namespace

Result<void> AddressFilter::check(ClientState& client, const SchemaSnapshot& schema,
                                  base::MonotonicUs now_us) {
  if (client.address_checked_at == schema.version()) return {};
  const Role* const role = schema.roles()->find(client.user);
  if (role == nullptr) return {};  // who has no role is refused anyway
  if (!lets_in(client.client_address, *role, schema, now_us))
    return fail(ErrorCode::kUnauthorized, "You do not have access from this IP {}",
                client.client_address);
  client.address_checked_at = schema.version();
  return {};
}

bool AddressFilter::lets_in(const std::string& address, const Role& role,
                            const SchemaSnapshot& schema, base::MonotonicUs now_us) {
  // Superusers may come from anywhere unless the option says that they are looked at, too, and so
  // may a role that is bound to no group.
  const bool is_spared = !options_.checks_superusers && schema.roles()->is_superuser(role.name);
  const bool is_free = is_spared || role.address_groups.empty();
  if (is_free && options_.mode == AddressMode::kEnforce) return true;
  const std::set<std::string> groups = groups_of(address, *schema.address_groups());
  const bool may = is_free || std::ranges::any_of(groups, [&](const std::string& group) {
                     return role.address_groups.contains(group);
                   });
  const std::lock_guard lock(mutex_);
  const bool let_in = may || options_.mode == AddressMode::kMonitor;
  if (!may && let_in) log_monitored(address, role, groups, now_us);
  (let_in ? accepted_total_ : rejected_total_).add();
  count(let_in ? accepted_ : rejected_, groups);
  return let_in;
}

void AddressFilter::log_monitored(const std::string& address, const Role& role,
                                  const std::set<std::string>& groups, base::MonotonicUs now_us) {
  if (logged_us_ && now_us - *logged_us_ < kLogEveryUs) return;
  logged_us_ = now_us;
  logger_.warn("a role is used from where it may not be role={} client={} cidr_groups=[{}]",
               role.name, address, fmt::join(groups, ", "));
}

void AddressFilter::count(Counts& counts, const std::set<std::string>& groups) {
  const auto add = [&](const std::string& group) {
    if (counts.size() < kGroupsMax || counts.contains(group)) ++counts[group];
  };
  if (groups.empty()) add(kNoGroup);
  for (const std::string& group : groups) add(group);
}

AddressFilter::Counts AddressFilter::accepted() const {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

AddressFilter::Counts AddressFilter::rejected() const {
  const std::lock_guard lock(mutex_);
  return rejected_;
}

void AddressFilter::export_to(base::MetricsRegistry& metrics) const {
  constexpr const char* kName = "tetrad_cql_address_checks_total";
  constexpr const char* kHelp =
      "Clients whose address was looked at, with cidr_authorizer CassandraCIDRAuthorizer: when "
      "they "
      "first ask, and when roles or other objects of the schema have changed since.";
  metrics.add(kName, kHelp, "result=\"accepted\"", accepted_total_);
  metrics.add(kName, kHelp, "result=\"rejected\"", rejected_total_);
}

}  // namespace tetrad::cql
