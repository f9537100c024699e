// SPDX-License-Identifier: Apache-2.0
// What the parts of a node get of its options: units are changed here (ms to us, MB to bytes), and
// what is the node's as a whole is divided between its shards.
#include <algorithm>

#include "server/config/guardrails.h"
#include "server/node_impl.h"

namespace tetrad::server {
namespace {

constexpr uint64_t kPreparedBytesLeast = 32u << 20;  // of a shard, if the node has as much
constexpr uint64_t kRoomPartMost = 4;                // of a disk, that inserts leave free
constexpr uint64_t kAnswerBytesLeast = 8u << 20;     // as well

}  // namespace

NodeImpl::DiskRoom NodeImpl::disk_room() const {
  const auto capacity = disk_.capacity_bytes();
  if (!capacity) return {};
  DiskRoom room{*capacity, 2 * memory_.write_buffer * shards_.size() + *capacity / 100};
  room.kept_bytes = std::min(room.wanted_bytes, *capacity / kRoomPartMost);
  return room;
}

// For /health and `tetractl status`, behind the name of the disk.
std::string NodeImpl::disk_left() const {
  const auto usable = disk_.usable_bytes();
  if (!usable) return "";
  return fmt::format(" ({} MB are left, inserts leave {})", *usable >> 20,
                     disk_room().kept_bytes >> 20);
}

replication::NodeOptions NodeImpl::node_options() {
  replication::NodeOptions out;
  out.address = addresses_.broadcast;
  out.client_address = addresses_.broadcast_rpc;
  out.native_port = addresses_.broadcast_native_port;
  out.internode_port = static_cast<uint16_t>(options_.internode_port);
  out.admin_port = static_cast<uint16_t>(options_.admin_port);
  out.data_center = options_.datacenter;
  out.rack = options_.rack;
  out.cluster_name = options_.cluster_name;
  out.version = kProgramVersion;
  out.boot_id = life_.machine.boot_id;
  out.start_number = life_.start_number;
  // Never 0, which means "none".
  out.nonce = shards_[0]->random.next() | 1;
  out.store_lost = [this](uint32_t store) { store_lost(store); };
  out.is_open = !has_authentication(options_);
  out.let_clients_go = [this](bool leaves) { return let_clients_go(leaves); };
  out.shows_masked = !options_.dynamic_data_masking_enabled;
  out.seeds = seeds_;
  out.found = options_.found;
  out.voter_away_us = static_cast<int64_t>(options_.replace_after_s) * 1'000'000;
  out.shard_count = out.store_count = static_cast<uint32_t>(shards_.size());
  out.forward = forward_from(0);
  out.fatal = [this](const Error& error) { fatal(error); };
  out.leaving.replace_after_us = out.voter_away_us;
  out.moves.store_replace_after_us = out.voter_away_us;
  out.heat = {options_.split_by_heat, options_.heat_split_ru_per_s,
              options_.heat_split_mb_per_s << 20, options_.heat_split_busy_percent};
  out.merges.merge = options_.merge_when_cold;
  out.merges.age_us = static_cast<int64_t>(options_.merge_after_s) * 1'000'000;
  out.merges.tablets_asked_for = [this](const replication::TableInfo& table) {
    return shards_[0]->partitions_asked_for(table);
  };
  out.changes.retention_us =
      static_cast<int64_t>(options_.change_feed_retention_hours) * 3'600 * 1'000'000;
  // Until then the coordinator may still be at it.
  out.batches.replay_after_us = 2 * static_cast<int64_t>(options_.write_timeout_ms) * 1000;
  out.disk_usage.limits = disk_usage_limits_of(options_);
  const DiskRoom room = disk_room();
  out.disk_usage.room_bytes = room.kept_bytes;
  if (room.kept_bytes < room.wanted_bytes)
    logger_.warn(
        "the disk under {} is small: inserts leave {} of its {} MB, where the rows in memory of {} "
        "stores want {}; once it is full deletions may be refused as well (option write_buffer_mb)",
        options_.data_directory, room.kept_bytes >> 20, room.capacity_bytes >> 20, shards_.size(),
        room.wanted_bytes >> 20);
  out.ready = [this] { shard_is_ready(); };
  out.removed = [this] { leave(); };
  out.refusal = [this](const replication::Endpoint& peer) {
    return shards_[0]->transport->refusal(peer);
  };
  out.is_reached = [this](const replication::Endpoint& peer) {
    return shards_[0]->transport->is_reached(peer);
  };
  out.renew_store = [this](uint32_t store) {
    reactors_[0]->post_from_any_thread([this, store] { renew_store(store); });
  };
  return out;
}

cql::QueryProcessorOptions NodeImpl::query_options() {
  cql::QueryProcessorOptions out;
  out.settings.read_timeout_us = static_cast<int64_t>(options_.read_timeout_ms) * 1000;
  out.settings.slow_us = static_cast<int64_t>(options_.slow_query_log_timeout_ms) * 1000;
  out.settings.range_timeout_us = static_cast<int64_t>(options_.range_timeout_ms) * 1000;
  out.settings.counter_write_timeout_us =
      static_cast<int64_t>(options_.counter_write_timeout_ms) * 1000;
  out.settings.write_timeout_us = static_cast<int64_t>(options_.write_timeout_ms) * 1000;
  out.settings.cas_contention_timeout_us =
      static_cast<int64_t>(options_.cas_contention_timeout_ms) * 1000;
  out.settings.truncate_timeout_us = static_cast<int64_t>(options_.truncate_timeout_ms) * 1000;
  out.settings.mutation_bytes_max = options_.mutation_mb_max << 20;
  out.settings.batch_warn_bytes = static_cast<uint32_t>(options_.batch_warn_kb << 10);
  out.settings.batch_fail_bytes = static_cast<uint32_t>(options_.batch_fail_kb << 10);
  out.settings.guardrails = guardrails_of(options_);
  out.settings.user_functions_enabled = options_.user_defined_functions_enabled;
  out.settings.data_masking_enabled = options_.dynamic_data_masking_enabled;
  out.settings.script_limits.steps_max = options_.user_defined_functions_steps_max;
  out.settings.script_limits.memory_bytes_max = options_.user_defined_functions_memory_mb << 20;
  out.prepared_statements_max = options_.prepared_statements_max;
  out.tells_charge = options_.request_charge;
  out.answer_bytes_max =
      std::max(memory_.answers / shards_.size(), std::min(memory_.answers, kAnswerBytesLeast));
  out.prepared_bytes_max = memory_.prepared;
  // Each shard prepares for itself; the texts are the node's, so that a shard can prepare what
  // another one was given.
  if (shards_.size() > 1) {
    out.prepared_texts =
        std::make_shared<cql::PreparedTexts>(out.prepared_statements_max, out.prepared_bytes_max);
    out.prepared_bytes_max = std::max(memory_.prepared / shards_.size(),
                                      std::min(memory_.prepared, kPreparedBytesLeast));
  }
  out.work_pool = &pool_;
  out.audit = audit_.get();
  if (client_addresses_.is_on()) out.addresses = &client_addresses_;
  return out;
}

/// Memory of requests and answers is the node's: each shard has an even part, but enough for one
/// request of the largest size if the node has.
ConnectionLimits NodeImpl::connection_limits() const {
  ConnectionLimits out;
  out.frame.body_bytes_max = static_cast<uint32_t>(options_.native_frame_mb_max << 20);
  const uint64_t request_bytes = memory_.requests;
  out.shard_request_bytes_max = std::max(
      request_bytes / shards_.size(), std::min<uint64_t>(request_bytes, out.frame.body_bytes_max));
  out.requests_in_flight_max =
      static_cast<uint32_t>(options_.requests_in_flight_per_connection_max);
  return out;
}

ShardServing NodeImpl::serving_options() {
  ShardServing out;
  out.facts.listen_address = addresses_.listen;
  out.facts.address = addresses_.broadcast;
  out.facts.client_address = addresses_.broadcast_rpc;
  out.facts.native_port = addresses_.broadcast_native_port;
  out.facts.internode_port = static_cast<uint16_t>(options_.internode_port);
  out.facts.tetrad_version = kProgramVersion;
  out.query = query_options();
  out.limits = connection_limits();
  out.program_version = kProgramVersion;
  if (has_authentication(options_)) out.logins = &logins_;
  out.tls = tls_.clients;
  out.of_node = make_node_views(views_);
  return out;
}

}  // namespace tetrad::server
