// SPDX-License-Identifier: Apache-2.0
// From where roles may use the node: the addresses of clients against the groups that roles are
// bound to, as Cassandra's CassandraCIDRAuthorizer.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "base/reactor.h"
#include "base/result.h"
#include "cql/schema/schema_snapshot.h"

namespace tetrad::cql {

struct ClientState;

/// What is done with a client whose address is in none of its role's groups.
enum class AddressMode : uint8_t {
  kAllowAll,  // nothing is looked at
  kMonitor,   // it is let in, logged and counted
  kEnforce,   // it is refused
};

/// One per node, for all its shards. Thread-safe.
class AddressFilter {
 public:
  /// Fixed when the filter is made.
  struct Options {
    AddressMode mode = AddressMode::kAllowAll;
    bool checks_superusers = false;
  };
  /// By group; what comes beyond is counted in total only.
  using Counts = std::map<std::string, uint64_t>;
  static constexpr size_t kGroupsMax = 1'000;

  AddressFilter(Options options, Logger logger)
      : options_(options), logger_(logger.named("auth")) {}

  bool is_on() const { return options_.mode != AddressMode::kAllowAll; }
  /// Whether the client, who has logged in, may use the node from where it is. Costs a comparison
  /// as long as the schema is the one it was last let in with.
  /// Errors: kUnauthorized "You do not have access from this IP …".
  Result<void> check(ClientState& client, const SchemaSnapshot& schema, base::MonotonicUs now_us);

  /// How often clients of a group were let in and refused; of none: "Undefined", as Cassandra has
  /// it. Counted when a client first asks, and again when the schema has changed since.
  Counts accepted() const;
  Counts rejected() const;
  void export_to(base::MetricsRegistry& metrics) const;

 private:
  bool lets_in(const std::string& address, const Role& role, const SchemaSnapshot& schema,
               base::MonotonicUs now_us);
  void log_monitored(const std::string& address, const Role& role,
                     const std::set<std::string>& groups, base::MonotonicUs now_us);
  static void count(Counts& counts, const std::set<std::string>& groups);

  const Options options_;
  const Logger logger_;
  mutable std::mutex mutex_;  // guards what follows
  Counts accepted_, rejected_;
  std::optional<base::MonotonicUs> logged_us_;
  base::Counter accepted_total_, rejected_total_;
};

}  // namespace tetrad::cql
