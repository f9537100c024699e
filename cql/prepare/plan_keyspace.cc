// SPDX-License-Identifier: Apache-2.0
// Keyspaces: CREATE, ALTER, DROP.
//
// A plan (SchemaPlan) is what a statement proposes to the metadata group: texts of objects that are
// put or removed, tables that get or lose tablets, and the event for clients. Planning has no
// effect. execute() of prepare_schema.cc proposes the plan with the version of the schema that it
// was made from; if another change was first, the statement is planned anew from the new schema.
//
// Checks stand in Cassandra's order. nothing_to_do: IF [NOT] EXISTS, or no difference.
#include <algorithm>
#include <set>

#include "cql/prepare/schema_plan.h"
#include "cql/prepare/table_properties.h"
#include "cql/prepare/throughput_properties.h"
#include "cql/schema/schema_text.h"
#include "replication/meta/placed_in.h"

namespace tetrad::cql {
namespace {

using Kind = SchemaChange::Kind;
using Target = SchemaChange::Target;

/// Those that NetworkTopologyStrategy may name: of all nodes that have not left the cluster, also
/// of nodes that are down.
std::set<std::string> data_centers_of(const replication::MetaState& meta) {
  std::set<std::string> out;
  for (const auto& [host, node] : meta.nodes) {
    if (node.state != replication::NodeState::kRemoved) out.insert(node.data_center);
  }
  return out;
}

/// Replica sets are managed; another factor is kept and shown, and the client gets one warning.
void warn_about_factor(const std::map<std::string, std::string>& replication,
                       const PlanInput& input) {
  std::map<std::string, size_t> nodes;
  for (const auto& [host, node] : input.meta.nodes) {
    if (node.state != replication::NodeState::kRemoved) ++nodes[node.data_center];
  }
  if (nodes.empty()) nodes[""] = 1;
  const bool names_data_centers = nodes.size() > 1;
  // SimpleStrategy's factor is that of all data centres.
  const auto simple = replication.find("replication_factor");
  std::vector<std::string> kept, unheeded;
  for (const auto& [data_center, count] : nodes) {
    const auto found = simple != replication.end() ? simple : replication.find(data_center);
    if (found == replication.end() || found->second == "0") continue;
    const std::string replicas = std::to_string(std::min<size_t>(4, count));
    kept.push_back(names_data_centers ? replicas + " in " + data_center : replicas);
    const std::string& factor = found->second;
    if (factor == replicas || factor == "4") continue;
    const bool names_it = names_data_centers && found != simple;
    std::string text = names_it ? factor + " of " + data_center : factor;
    if (std::ranges::find(unheeded, text) == unheeded.end()) unheeded.push_back(std::move(text));
  }
  if (unheeded.empty()) return;
  input.warnings.push_back(fmt::format(
      "Tetrad manages replica sets by itself: every row has up to four replicas{}, {} with the "
      "nodes there are now; the replication factor {} is kept and shown but changes nothing",
      names_data_centers ? " in each data centre" : "", fmt::join(kept, " and "),
      fmt::join(unheeded, " and ")));
}

/// As Cassandra, which then writes no commit log, it is taken.
void warn_about_durable_writes(const KeyspaceProperties& given, const PlanInput& input) {
  if (given.durable_writes.value_or(true)) return;
  input.warnings.emplace_back(
      "durable_writes has no effect in Tetrad: every write goes through the store's log before it "
      "is acknowledged");
}

/// Those that NetworkTopologyStrategy names with a factor; none: all of the cluster.
std::set<std::string> data_centers_named(const std::map<std::string, std::string>& replication) {
  std::set<std::string> data_centers;
  const auto strategy = replication.find("class");
  if (strategy != replication.end() && strategy->second.ends_with("NetworkTopologyStrategy"))
    for (const auto& [option, factor] : replication)
      if (option != "class" && std::strtoll(factor.c_str(), nullptr, 10) != 0)
        data_centers.insert(option);
  return data_centers;
}

/// A data centre that is taken from a keyspace while it is lost keeps its members: the replica sets
/// that have them do not change.
void warn_about_lost(const std::map<std::string, std::string>& before,
                     const std::map<std::string, std::string>& now, const PlanInput& input) {
  const std::set<std::string> stays = data_centers_named(now);
  if (stays.empty() || !input.is_live) return;
  const std::set<std::string> named = data_centers_named(before);
  for (const std::string& data_center : named.empty() ? data_centers_of(input.meta) : named) {
    if (stays.contains(data_center)) continue;
    size_t nodes = 0, live = 0;
    for (const auto& [host, node] : input.meta.nodes) {
      if (node.state == replication::NodeState::kRemoved || node.data_center != data_center)
        continue;
      ++nodes;
      live += input.is_live(host);
    }
    if (nodes == 0 || live != 0) continue;
    input.warnings.push_back(fmt::format(
        "None of the {} nodes of data centre {} is live: the keyspace keeps its replicas there "
        "until they are back, or are given up by `tetractl remove-lost-nodes --data-center {}`",
        nodes, data_center, data_center));
  }
}

/// Where the keyspace's rows are.
// Of all that `replication` says only the data centres have an effect: replica sets have up to four
// members whatever the factor is.
void place(const std::string& name, const std::map<std::string, std::string>& replication,
           const PlanInput& input, replication::SchemaChange& change) {
  if (input.meta.format < replication::kFormatPlacement) return;
  const std::set<std::string> data_centers = data_centers_named(replication);
  const std::string key = replication::placement_key(name);
  if (!data_centers.empty()) {
    change.objects.emplace_back(key, replication::placement_text(data_centers));
  } else if (input.meta.schema_objects.contains(key)) {
    change.objects.emplace_back(key, std::nullopt);
  }
}

/// How many keyspaces users have made: what the guardrail `keyspaces` limits.
size_t count_keyspaces(const SchemaSnapshot& schema) {
  size_t count = 0;
  for (const auto& [name, keyspace] : schema.keyspaces()) count += is_system(*keyspace) ? 0 : 1;
  return count;
}

/// The guardrails on the strategy and on each data centre's factor. What may be written at all has
/// been checked before (read_keyspace_properties).
Result<void> check_replication(const std::string& keyspace,
                               const std::map<std::string, std::string>& replication,
                               const PlanInput& input) {
  const Guardrails& guardrails = input.settings.guardrails;
  const auto found = replication.find("class");
  TETRAD_TRY_VOID(check_enabled(guardrails.simplestrategy || found == replication.end() ||
                                    !found->second.ends_with("SimpleStrategy"),
                                "simplestrategy", "SimpleStrategy"));
  for (const auto& [name, value] : replication) {
    if (name == "class") continue;
    const auto factor = static_cast<uint64_t>(std::strtoll(value.c_str(), nullptr, 10));
    const auto text = [&](const char* side) {
      return [&, side](uint64_t limit, bool fails) {
        return fmt::format(
            "The keyspace {} has a replication factor of {}, {} the {} threshold of {}.", keyspace,
            factor, side, fails ? "failure" : "warning", limit);
      };
    };
    TETRAD_TRY_VOID(check_minimum(guardrails.minimum_replication_factor, factor,
                                  "minimum_replication_factor", input.warnings, text("below")));
    TETRAD_TRY_VOID(check_threshold(guardrails.maximum_replication_factor, factor,
                                    "maximum_replication_factor", input.warnings, text("above")));
  }
  return {};
}

}  // namespace

// Statements of schema and TRUNCATE; the others have find_table() of prepare_statement.cc.
Result<std::string> keyspace_of(const ast::QualifiedName& name, const PlanInput& input) {
  if (name.keyspace) return name.keyspace->text;
  if (input.keyspace.empty()) {
    return fail(
        ErrorCode::kInvalid,
        "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
  }
  return input.keyspace;
}

Result<void> check_modifiable(const SchemaSnapshot& schema, const std::string& keyspace) {
  const KeyspaceSchema* found = schema.keyspace(keyspace);
  if (found != nullptr && is_system(*found)) {
    return fail(ErrorCode::kUnauthorized, "{} keyspace is not user-modifiable.", keyspace);
  }
  return schema.check_readable(keyspace_key(keyspace));
}

// From the metadata and not from the schema: a table whose text does not read has tablets, too, and
// they must go with it.
void drop_tables(std::string_view keyspace, std::optional<std::string_view> table,
                 const replication::MetaState& meta, replication::SchemaChange& change) {
  for (const auto& [id, info] : meta.tables) {
    if (info->keyspace == keyspace && (!table || info->name == *table))
      change.dropped_tables.push_back(id);
  }
}

// In the C locale std::isalnum takes ASCII only, as Cassandra does.
bool is_valid_object_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

namespace {

Result<void> check_keyspace_name(const std::string& name) {
  if (is_valid_object_name(name)) return {};
  return fail(ErrorCode::kInvalid,
              "Keyspace name must not be empty and must contain alphanumeric or underscore "
              "characters only (got \"{}\")",
              name);
}

}  // namespace

// Without replication every data centre gets 4, and with a throughput alone SimpleStrategy: what
// DESCRIBE shows, since placement does not follow factors (warn_about_factor).
Result<SchemaPlan> plan(const ast::CreateKeyspace& statement, const PlanInput& input) {
  const std::string& name = statement.name.text;
  TETRAD_TRY_VOID(check_keyspace_name(name));
  if (name.size() > 48) {
    return fail(
        ErrorCode::kInvalid,
        "Keyspace name must not be more than 48 characters long (got {} characters for \"{}\")",
        name.size(), name);
  }
  const size_t keyspaces = count_keyspaces(input.schema) + 1;
  TETRAD_TRY_VOID(check_threshold(
      input.settings.guardrails.keyspaces, keyspaces, "keyspaces", input.warnings,
      [&](uint64_t limit, bool fails) {
        return fails ? fmt::format(
                           "Cannot have more than {} keyspaces, aborting the creation of "
                           "keyspace {}",
                           limit, name)
                     : fmt::format(
                           "Creating keyspace {}, current number of keyspaces {} exceeds "
                           "warning threshold of {}.",
                           name, keyspaces, limit);
      }));
  SchemaPlan out;
  if (const KeyspaceSchema* found = input.schema.keyspace(name); found != nullptr) {
    if (is_system(*found)) {
      return fail(ErrorCode::kInvalid, "System keyspace '{}' is not user-modifiable", name);
    }
    if (statement.if_not_exists) {
      out.nothing_to_do = true;
      return out;
    }
    return std::unexpected(Error(ErrorCode::kAlreadyExists,
                                 fmt::format("Cannot add existing keyspace \"{}\"", name),
                                 base::AlreadyExistsDetail{name, ""}));
  }
  // The name is taken where the object does not read: creating it anew would overwrite it.
  TETRAD_TRY_VOID(input.schema.check_readable(keyspace_key(name)));
  const std::set<std::string> data_centers = data_centers_of(input.meta);
  TETRAD_TRY(
      const KeyspaceProperties given,
      read_keyspace_properties(name, with_payload(statement.properties, input.throughput_payload),
                               data_centers, nullptr));
  KeyspaceSchema keyspace;
  keyspace.name = name;
  keyspace.durable_writes = given.durable_writes.value_or(true);
  warn_about_durable_writes(given, input);
  keyspace.throughput = given.throughput.value_or(ThroughputSetting());
  if (given.replication) {
    TETRAD_TRY_VOID(check_replication(name, *given.replication, input));
    keyspace.replication = *given.replication;
    warn_about_factor(keyspace.replication, input);
  } else if (given.throughput) {
    keyspace.replication = {{"class", "org.apache.cassandra.locator.SimpleStrategy"},
                            {"replication_factor", "4"}};
  } else {
    keyspace.replication["class"] = "org.apache.cassandra.locator.NetworkTopologyStrategy";
    for (const auto& data_center : data_centers) keyspace.replication[data_center] = "4";
  }
  out.change.objects.emplace_back(keyspace_key(name), keyspace_text(keyspace));
  place(name, keyspace.replication, input, out.change);
  out.answer = SchemaChange{Kind::kCreated, Target::kKeyspace, name, "", {}};
  return out;
}

/// Cassandra's keyspaces of a cluster, whose replication its operators have to set.
bool is_kept_by_all(std::string_view keyspace) {
  return keyspace == "system_auth" || keyspace == "system_distributed" ||
         keyspace == kTracesKeyspace;
}

// What is not named stays. place() writes in the same change which data centres hold the tables.
Result<SchemaPlan> plan(const ast::AlterKeyspace& statement, const PlanInput& input) {
  const std::string& name = statement.name.text;
  const bool is_kept = is_kept_by_all(name);
  if (!is_kept) TETRAD_TRY_VOID(check_modifiable(input.schema, name));
  const KeyspaceSchema* found = input.schema.keyspace(name);
  SchemaPlan out;
  if (found == nullptr) {
    if (!statement.if_exists) return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", name);
    out.nothing_to_do = true;
    return out;
  }
  TETRAD_TRY(
      const KeyspaceProperties given,
      read_keyspace_properties(name, with_payload(statement.properties, input.throughput_payload),
                               data_centers_of(input.meta), &found->replication));
  if (given.replication) TETRAD_TRY_VOID(check_replication(name, *given.replication, input));
  if (is_kept) {
    input.warnings.push_back(
        fmt::format("The cluster keeps {} by itself: ALTER KEYSPACE of it changes nothing", name));
    out.nothing_to_do = true;
    return out;
  }
  KeyspaceSchema keyspace;
  keyspace.name = name;
  keyspace.replication = given.replication.value_or(found->replication);
  keyspace.durable_writes = given.durable_writes.value_or(found->durable_writes);
  warn_about_durable_writes(given, input);
  keyspace.throughput = given.throughput.value_or(found->throughput);
  if (given.replication) {
    warn_about_factor(keyspace.replication, input);
    warn_about_lost(found->replication, keyspace.replication, input);
  }
  if (keyspace_text(keyspace) == keyspace_text(*found)) {
    out.nothing_to_do = true;
    return out;
  }
  out.change.objects.emplace_back(keyspace_key(name), keyspace_text(keyspace));
  place(name, keyspace.replication, input, out.change);
  // Tables without a throughput of their own share the keyspace's.
  if (keyspace.throughput.ru_per_s() != found->throughput.ru_per_s()) {
    for (const auto& [table_name, table] : found->tables)
      if (table->options.throughput.ru_per_s() == 0)
        out.change.altered_tables.push_back(altered_table(*table, keyspace));
  }
  out.answer = SchemaChange{Kind::kUpdated, Target::kKeyspace, name, "", {}};
  return out;
}

Result<SchemaPlan> plan(const ast::DropKeyspace& statement, const PlanInput& input) {
  TETRAD_TRY_VOID(check_enabled(input.settings.guardrails.drop_keyspace, "drop_keyspace_enabled",
                                "DROP KEYSPACE functionality"));
  const std::string& name = statement.name.text;
  TETRAD_TRY_VOID(check_keyspace_name(name));
  // A keyspace that does not read can be dropped, too; what it is cannot be checked.
  if (input.schema.unreadable(keyspace_key(name)) == nullptr) {
    TETRAD_TRY_VOID(check_modifiable(input.schema, name));
    if (input.schema.keyspace(name) == nullptr) {
      if (!statement.if_exists)
        return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", name);
      SchemaPlan nothing;
      nothing.nothing_to_do = true;
      return nothing;
    }
  }
  SchemaPlan out;
  // All objects of the keyspace, readable or not: keys are kind/keyspace/name.
  const std::string inside = "/" + name + "/";
  for (const auto& [key, text] : input.meta.schema_objects) {
    const size_t slash = key.find('/');
    if (key == keyspace_key(name) || (is_of_keyspace(key) && slash != std::string::npos &&
                                      key.compare(slash, inside.size(), inside) == 0)) {
      out.change.objects.emplace_back(key, std::nullopt);
    }
  }
  drop_tables(name, std::nullopt, input.meta, out.change);
  out.answer = SchemaChange{Kind::kDropped, Target::kKeyspace, name, "", {}};
  return out;
}

}  // namespace tetrad::cql
