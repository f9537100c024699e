// SPDX-License-Identifier: Apache-2.0
// What an operator changes while the node runs: whether clients are served, timeouts of statements,
// the probability of traces. All of it lasts until the next start; the options file has what a
// start begins with.
//
// The main thread calls; on_each() carries work to each shard: at once to shard 0, which runs here,
// by a post to the others. So shards change a moment apart, and nothing may rely on all having
// changed.
#include "server/serving.h"

#include <algorithm>
#include <functional>

#include "base/closest_name.h"
#include "cql/schema/partition_key_text.h"
#include "server/hot_keys.h"

namespace tetrad::server {

namespace {

/// A timeout under nodetool's name.
struct TimeoutKind {
  const char* type;
  uint64_t Options::*option;
  int64_t cql::QuerySettings::*setting;
  /// Other nodes, batches and what is fetched after a power cut count on writes being over then.
  bool is_bounded_by_start;
};

// The names are nodetool settimeout's.
constexpr TimeoutKind kTimeouts[] = {
    {"read", &Options::read_timeout_ms, &cql::QuerySettings::read_timeout_us, false},
    {"range", &Options::range_timeout_ms, &cql::QuerySettings::range_timeout_us, false},
    {"write", &Options::write_timeout_ms, &cql::QuerySettings::write_timeout_us, true},
    {"counterwrite", &Options::counter_write_timeout_ms,
     &cql::QuerySettings::counter_write_timeout_us, true},
    {"cascontention", &Options::cas_contention_timeout_ms,
     &cql::QuerySettings::cas_contention_timeout_us, false},
    {"truncate", &Options::truncate_timeout_ms, &cql::QuerySettings::truncate_timeout_us, false},
};

/// As the table of options has it.
uint64_t most_of(uint64_t Options::*option) {
  for (const OptionEntry& entry : option_table()) {
    const auto* number = std::get_if<uint64_t Options::*>(&entry.target);
    if (number != nullptr && *number == option) return entry.most;
  }
  return 0;
}

}  // namespace

Serving::Serving(const Options& options, const Shards& shards, Logger logger)
    : options_(options), shards_(shards), logger_(std::move(logger)) {
  for (const TimeoutKind& kind : kTimeouts) timeouts_ms_.push_back(options.*kind.option);
}

Result<void> Serving::begin(std::string rpc_address, uint32_t connections_max) {
  rpc_address_ = std::move(rpc_address);
  std::vector<Listener::Shard> places;
  for (const auto& shard : shards_)
    places.push_back({shard->reactor.context(), *shard->connections});
  auto listener =
      std::make_unique<Listener>(std::move(places), connections_max, logger_.named("listener"));
  TETRAD_TRY_VOID(listener->listen(rpc_address_, static_cast<uint16_t>(options_.native_port)));
  listener_ = std::move(listener);
  serves_ = true;
  return {};
}

void Serving::stop() {
  stopped_ = true;
  serves_ = false;
  if (listener_ != nullptr) listener_->stop();
  on_each([](Shard& shard) { shard.drain(); });
}

// `tetractl disablebinary` and `enablebinary`. Disabling lets requests in flight end
// (Shard::drain).
Result<void> Serving::serve_clients(bool serves) {
  if (stopped_) return fail(ErrorCode::kConflict, "the node is stopping");
  if (listener_ == nullptr) return fail(ErrorCode::kConflict, "the node is starting");
  if (serves == serves_) return {};
  if (serves) {
    // Before listening: a shard that still drains would close the new client.
    on_each([](Shard& shard) { shard.connections->draining = false; });
    TETRAD_TRY_VOID(listener_->listen(rpc_address_, static_cast<uint16_t>(options_.native_port)));
  } else {
    listener_->stop();
    on_each([](Shard& shard) { shard.drain(); });
  }
  serves_ = serves;
  if (changed_) changed_(serves);
  logger_.warn("clients {} by order", serves ? "may connect again" : "are not served any more");
  return {};
}

// `find` runs on each shard's thread, `done` once on the main thread. Results come in any order, so
// callers sort.
template <class T>
void Serving::gather(std::function<std::vector<T>(Shard&)> find,
                     std::function<void(std::vector<T>)> done) {
  struct Round {
    size_t left;
    std::vector<T> found;
    std::function<void(std::vector<T>)> done;
  };
  const auto round = std::make_shared<Round>(Round{shards_.size(), {}, std::move(done)});
  on_each([round, find = std::move(find), &main = shards_.front()->reactor](Shard& shard) {
    main.post_from_any_thread([round, found = find(shard)] {
      round->found.insert(round->found.end(), found.begin(), found.end());
      if (--round->left == 0) round->done(std::move(round->found));
    });
  });
}

void Serving::clients(std::function<void(std::vector<ClientFacts>)> done) {
  gather<ClientFacts>(
      [](Shard& shard) {
        std::vector<ClientFacts> found;
        for (const auto& connection : shard.connections->open) found.push_back(connection->facts());
        return found;
      },
      [done = std::move(done)](std::vector<ClientFacts> all) {
        std::ranges::sort(all, {}, [](const ClientFacts& client) {
          return std::pair(client.address, client.port);
        });
        done(std::move(all));
      });
}

void Serving::hot_keys(std::function<void(std::vector<HotKey>)> done) {
  gather<HotKey>(hot_keys_of, [done = std::move(done)](std::vector<HotKey> all) {
    std::ranges::stable_sort(all, std::greater(),
                             [](const HotKey& key) { return key.reads + key.writes; });
    done(std::move(all));
  });
}

std::vector<StatementTimeout> Serving::timeouts() const {
  std::vector<StatementTimeout> out;
  for (size_t i = 0; i < timeouts_ms_.size(); ++i)
    out.push_back({kTimeouts[i].type, timeouts_ms_[i]});
  return out;
}

Result<void> Serving::set_timeout(const std::string& type, uint64_t timeout_ms) {
  const auto kind = std::ranges::find(kTimeouts, type, &TimeoutKind::type);
  if (kind == std::end(kTimeouts)) {
    std::vector<std::string> types;
    for (const TimeoutKind& known : kTimeouts) types.emplace_back(known.type);
    return fail(ErrorCode::kInvalid,
                "there is no timeout type {}{} Timeout type requires one of ({})", type,
                base::did_you_mean(type, types, "."), fmt::join(types, ", "));
  }
  // Lowering is always allowed.
  const uint64_t most = kind->is_bounded_by_start ? options_.*kind->option : most_of(kind->option);
  if (timeout_ms == 0 || timeout_ms > most) {
    return fail(
        ErrorCode::kInvalid, "the timeout of {} is from 1 to {} ms{}, not {}", type, most,
        kind->is_bounded_by_start ? " (as the node was started: its peers count on it)" : "",
        timeout_ms);
  }
  timeouts_ms_[static_cast<size_t>(kind - std::begin(kTimeouts))] = timeout_ms;
  on_each([setting = kind->setting, timeout_ms](Shard& shard) {
    shard.processor->settings().*setting = static_cast<int64_t>(timeout_ms) * 1000;
  });
  logger_.warn("timeout changed by order type={} timeout_ms={}", type, timeout_ms);
  return {};
}

void Serving::set_trace_probability(double probability) {
  trace_probability_ = probability;
  on_each([probability](Shard& shard) { shard.processor->set_trace_probability(probability); });
}

Result<Bytes> Serving::partition_key(const std::string& keyspace, const std::string& table,
                                     const std::string& text) const {
  const cql::SchemaPtr& schema = shards_.front()->processor->schema();
  const cql::TablePtr known = schema == nullptr ? nullptr : schema->table(keyspace, table);
  if (known == nullptr || known->is_virtual)
    return fail(ErrorCode::kNotFound, "there is no table {}.{}", keyspace, table);
  return cql::partition_key_of_text(*known, text);
}

bool Serving::is_computed(const std::string& keyspace, const std::string& table) const {
  const cql::SchemaPtr& schema = shards_.front()->processor->schema();
  const cql::KeyspaceSchema* const known = schema == nullptr ? nullptr : schema->keyspace(keyspace);
  if (known == nullptr || !known->is_virtual) return false;
  return table.empty() || schema->table(keyspace, table) != nullptr;
}

void Serving::on_each(const std::function<void(Shard&)>& work) {
  work(*shards_.front());
  for (size_t i = 1; i < shards_.size(); ++i)
    shards_[i]->reactor.post_from_any_thread([work, shard = shards_[i].get()] { work(*shard); });
}

}  // namespace tetrad::server
