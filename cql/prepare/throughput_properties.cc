// SPDX-License-Identifier: Apache-2.0
// Throughput in request units for each second, with the names and the steps of Cosmos DB:
// provisioned from 400 by 100, autoscale from 1,000 by 1,000. 0 takes the limit away.
#include "cql/prepare/throughput_properties.h"

#include <algorithm>

#include "cql/prepare/option_values.h"

namespace tetrad::cql {
namespace {

/// What one of the two may be, beside 0.
struct Kind {
  std::string_view name, alias;
  uint32_t least, step;
};

// RU/s, for one table or keyspace.
constexpr uint32_t kMost = 1'000'000;
constexpr Kind kProvisioned = {kProvisionedThroughput, "tetrad_provisioned_throughput", 400, 100};
constexpr Kind kAutoscaleMax = {kAutoscaleMaxThroughput, "tetrad_autoscale_max_throughput", 1'000,
                                1'000};

bool is_of(const Kind& kind, std::string_view name) {
  return name == kind.name || name == kind.alias;
}

/// A value that may be any bytes of any length, for an error.
std::string shown(const std::string& value) {
  constexpr size_t kShown = 32;
  if (!std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; }))
    return "0x" + base::to_hex(BytesView(value).substr(0, kShown / 2));
  return value.size() <= kShown ? value : value.substr(0, kShown) + "...";
}

/// Unset: it is not named.
Result<std::optional<uint32_t>> named(const ast::Properties& properties, const Kind& kind) {
  std::optional<uint32_t> out;
  for (const ast::Property& property : properties) {
    const std::string& name = property.name.text;
    if (!is_of(kind, name)) continue;
    if (out) return fail(ErrorCode::kSyntax, "Multiple definitions for property '{}'", kind.name);
    const auto* literal = std::get_if<ast::Literal>(&property.value.value);
    if (literal == nullptr)
      return fail(ErrorCode::kSyntax, "Invalid value for property '{}'. It should be a string",
                  name);
    if (all_digits(literal->text)) out = whole<uint32_t>(literal->text);
    if (!out || (*out != 0 && (*out < kind.least || *out > kMost || *out % kind.step != 0))) {
      return fail(ErrorCode::kConfig,
                  "{} must be 0, which is no limit, or a multiple of {} from {} to {} (got {})",
                  name, kind.step, kind.least, kMost, shown(literal->text));
    }
  }
  return out;
}

}  // namespace

bool is_throughput_property(std::string_view name) {
  return is_of(kProvisioned, name) || is_of(kAutoscaleMax, name);
}

// A statement that names a throughput itself is not changed: the text wins over the payload. The
// payload's value goes the way of a written one, so it has the same checks and errors.
ast::Properties with_payload(ast::Properties properties, std::optional<BytesView> payload) {
  const auto of_throughput = [](const ast::Property& property) {
    return is_throughput_property(property.name.text);
  };
  if (!payload || std::ranges::any_of(properties, of_throughput)) return properties;
  ast::Property given;
  given.name.text = kProvisionedThroughput;
  given.value.value = ast::Literal{ast::Literal::Kind::kInteger, std::string(*payload)};
  properties.push_back(std::move(given));
  return properties;
}

// Named alone, each of the two sets the other to 0: a table has one kind of limit.
Result<void> apply_throughput(const ast::Properties& properties, ThroughputSetting& options) {
  TETRAD_TRY(const auto provisioned, named(properties, kProvisioned));
  TETRAD_TRY(const auto autoscale_max, named(properties, kAutoscaleMax));
  if (!provisioned && !autoscale_max) return {};
  const ThroughputSetting given{provisioned.value_or(0), autoscale_max.value_or(0)};
  if (given.provisioned != 0 && given.autoscale_max != 0) {
    return fail(ErrorCode::kConfig,
                "{} (got {}) and {} (got {}) cannot both be given: one of them is the limit",
                kProvisionedThroughput, given.provisioned, kAutoscaleMaxThroughput,
                given.autoscale_max);
  }
  options = given;
  return {};
}

replication::Throughput throughput_of(const TableOptions& table, const KeyspaceSchema& keyspace) {
  if (const uint32_t own = table.throughput.ru_per_s()) return {own, false};
  const uint32_t shared = keyspace.throughput.ru_per_s();
  return {shared, shared != 0};
}

replication::SchemaChange::AlteredTable altered_table(const TableSchema& table,
                                                      const KeyspaceSchema& keyspace) {
  return {table.id,          table.keyspace,
          table.name,        table.options.max_partition_mb,
          table.options.cdc, throughput_of(table.options, keyspace)};
}

}  // namespace tetrad::cql
