// SPDX-License-Identifier: Apache-2.0
#include "server/node.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/signal_set.hpp>

#include "cql/execute/aggregate_fold.h"
#include "cql/index/claim_maker.h"
#include "cql/views/view_maker.h"
#include "replication/membership/node_life.h"
#include "replication/node.h"
#include "replication/rpc/shard_mailboxes.h"
#include "server/admin/admin_service.h"
#include "server/admin/admin_token.h"
#include "server/admin/http_server.h"
#include "server/audit/audit_log.h"
#include "server/auth/first_superuser.h"
#include "server/auth/login_limits.h"
#include "server/config/addresses.h"
#include "server/config/guardrails.h"
#include "server/config/memory_plan.h"
#include "server/config/seeds.h"
#include "server/node_tls.h"
#include "server/node_views.h"
#include "server/runtime/control_group.h"
#include "server/runtime/data_disk.h"
#include "server/runtime/data_folder.h"
#include "server/runtime/descriptors.h"
#include "server/runtime/directory_lock.h"
#include "server/runtime/loop_watch.h"
#include "server/runtime/os_random.h"
#include "server/runtime/process_facts.h"
#include "server/runtime/running_mark.h"
#include "server/runtime/thread_io_pool.h"
#include "server/serving.h"
#include "server/shard.h"
#include "storage/encryption/encrypted_files.h"
#include "storage/engine/ballast.h"
#include "storage/engine/local_log_front.h"
#include "storage/engine/log_recovery.h"
#include "storage/engine/store_status.h"

namespace tetrad::server {
namespace {

/// Of the pool.
constexpr uint32_t kInternodeHandshakeLane = 0x544C4E4F;
constexpr uint64_t kPreparedBytesLeast = 32u << 20;  // of a shard, if the node has as much
constexpr uint64_t kRoomPartMost = 20;               // of a disk, that inserts leave free
constexpr uint64_t kAnswerBytesLeast = 8u << 20;     // as well

Result<void> check_disk_size(const Options& options, const DataDisk& disk) {
  const uint64_t asked_bytes = options.data_disk_usage_max_disk_size;
  if (asked_bytes == 0) return {};
  TETRAD_TRY(const uint64_t capacity_bytes, disk.capacity_bytes());
  if (asked_bytes <= capacity_bytes) return {};
  return fail(ErrorCode::kConfig,
              "data_disk_usage_max_disk_size: {} bytes are asked for, but the disk under {} has {}",
              asked_bytes, options.data_directory, capacity_bytes);
}

/// Drivers and keyspaces name what these are called, so they are called something.
Result<void> check_names(const Options& options) {
  for (const auto& [option, value] :
       {std::pair("cluster_name", &options.cluster_name),
        std::pair("datacenter", &options.datacenter), std::pair("rack", &options.rack)}) {
    if (value->empty()) return fail(ErrorCode::kConfig, "{}: a name is missing", option);
  }
  return {};
}

ThreadIoPoolOptions pool_options(const Options& options) {
  constexpr uint64_t kReadersOfACore = 4, kReadersMost = 64, kReadsWaitingOfAReader = 256;
  const uint64_t readers = options.io_threads != 0
                               ? options.io_threads
                               : std::min(kReadersOfACore * usable_cores(), kReadersMost);
  ThreadIoPoolOptions out;
  out.reader_threads = static_cast<int>(readers);
  out.reads_waiting_max = readers * kReadsWaitingOfAReader;
  return out;
}

/// What the data of this process is on.
Result<replication::MachineStart> machine_start(const std::string& data_directory) {
  struct stat folder {};
  if (::stat(data_directory.c_str(), &folder) != 0)
    return fail(ErrorCode::kIo, "{} cannot be looked at", data_directory);
  return replication::MachineStart{read_boot_id(), folder.st_dev};
}

cql::AddressFilter::Options address_filter_of(const Options& options) {
  cql::AddressFilter::Options out;
  if (options.cidr_authorizer == "CassandraCIDRAuthorizer")
    out.mode = options.cidr_authorizer_mode == "ENFORCE" ? cql::AddressMode::kEnforce
                                                         : cql::AddressMode::kMonitor;
  out.checks_superusers = options.cidr_checks_for_superusers;
  return out;
}

class NodeImpl final : public Node {
 public:
  NodeImpl(const Options& options, Logger logger)
      : options_(options),
        logger_(std::move(logger)),
        disk_(options.data_directory),
        pool_(pool_options(options)) {
    reactors_.push_back(std::make_unique<AsioReactor>());
  }

  ~NodeImpl() override {
    // Users before what they use; the pool's threads last post to reactors that still exist.
    join_shards();
    for (const auto& server : http_) server->stop();
    for (const auto& shard : shards_) shard->stop_serving();
    admin_.reset();
    snapshots_.reset();
    for (const auto& shard : shards_) shard->data.reset();
    for (const auto& shard : shards_) shard->replication.reset();
  }

  Result<void> open();
  Result<NodeEnd> run() override;

 private:
  Result<void> begin_life();
  void end_life();
  storage::LogRecovery log_recovery() const {
    return last_end_ == replication::LastEnd::kCut ? storage::LogRecovery::kAfterPowerCut
                                                   : storage::LogRecovery::kStrict;
  }
  Result<uint32_t> choose_shards();
  Result<void> share_out(uint32_t shards);
  Result<void> open_disk_keys();
  void count_encrypted(std::function<void(std::string, Result<storage::FileCounts>)> done);
  Result<void> open_stores();
  Result<void> open_transports();
  Result<void> open_replication();
  Result<void> open_admin();
  ShardServing serving_options();
  replication::NodeEnvironment environment_of(Shard& shard);
  /// What a power cut took from the stores, by shard.
  std::vector<std::optional<replication::PowerLoss>> losses() const;
  /// What each store has for sure of what it told others in earlier lives.
  std::vector<uint64_t> whole() const;
  void store_lost(uint32_t store);
  std::function<void(uint32_t, replication::ShardMessage)> forward_from(uint32_t shard);
  /// On the first shard's thread, as all that follows.
  void shard_is_ready();
  void serve();
  void leave();
  void renew_store(uint32_t store);
  Result<NodeEnd> end_out_of_cluster();
  void stop(const std::string& reason);
  void finish_stop();
  void join_shards();
  void fatal(const Error& error);
  /// What a store can do has changed.
  void take_store_status(uint32_t store, storage::StoreStatus status);
  void take_loop_state(uint32_t shard, bool hangs);
  void tell_store_state(uint32_t store);
  uint64_t connections_open() const;
  std::string health() const;
  std::vector<std::string> complaints() const;
  void register_metrics();
  void register_store_metrics();
  void register_cluster_metrics();
  void register_process_metrics();
  replication::NodeOptions node_options();
  cql::QueryProcessorOptions query_options();
  ConnectionLimits connection_limits() const;

  const Options options_;
  Logger logger_;
  std::vector<replication::Endpoint> seeds_;
  NodeAddresses addresses_;
  MemoryPlan memory_;
  DescriptorPlan descriptors_;
  DirectoryLock lock_;
  replication::NodeLife life_;
  replication::LastEnd last_end_ = replication::LastEnd::kUnknown;
  base::MetricsRegistry metrics_;
  std::vector<std::unique_ptr<AsioReactor>> reactors_;  // by shard
  DataDisk disk_;
  LoginLimits logins_;
  cql::AddressFilter client_addresses_{address_filter_of(options_), logger_};
  NodeTls tls_;
  std::shared_ptr<const storage::DiskKeys> disk_keys_;  // null: nothing is encrypted
  std::shared_ptr<rocksdb::FileSystem> files_;          // with them; null: the system's
  std::unique_ptr<AuditLog> audit_;                     // null: nothing is recorded
  std::optional<FirstSuperuser> first_superuser_;
  ThreadIoPool pool_;
  std::unique_ptr<boost::asio::signal_set> signals_;
  std::unique_ptr<storage::StoreFactory> store_factory_;
  std::unique_ptr<storage::LocalLog> log_, hint_log_, batch_log_;
  std::unique_ptr<replication::ShardMailboxes> mailboxes_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<replication::ReplicationNode> node_;
  Serving serving_{options_, shards_, logger_};
  const NodeViewSources views_{options_,
                               memory_,
                               shards_,
                               serving_,
                               [this]() -> Snapshots& { return *snapshots_; },
                               [this]() -> replication::MetaService& { return node_->meta(); },
                               client_addresses_};
  std::unique_ptr<CertificateWatch> certificates_;
  std::unique_ptr<Snapshots> snapshots_;
  std::unique_ptr<AdminService> admin_;
  std::vector<std::unique_ptr<HttpServer>> http_;  // of all, and of what is public
  size_t shards_ready_ = 0;
  bool stopping_ = false;
  base::MonotonicUs stop_began_us_ = 0;
  std::optional<Error> fatal_error_;
  bool is_out_ = false, was_decommissioned_ = false;  // of its cluster
  std::set<uint32_t> to_erase_;                       // stores, when all is closed
  std::set<uint32_t> hung_loops_;                     // of shards
  bool was_signalled_ = false;
  std::vector<storage::StoreStatus> store_status_;  // by store, as last told
};

/// How the last life ended is found, and that there is another one is on disk before anything is
/// written or listened to.
Result<void> NodeImpl::begin_life() {
  constexpr int64_t kRoomWaitUs = 10'000'000;
  TETRAD_TRY(const auto kept, replication::load_lives(*log_));
  TETRAD_TRY(const auto machine, machine_start(options_.data_directory));
  last_end_ = replication::end_of(kept.last, kept.clean_mark, machine);
  life_ = replication::next_life(kept.last, last_end_, machine);
  if (last_end_ == replication::LastEnd::kCut)
    logger_.warn(
        "the machine stopped without this node having stopped: what was not synced may be gone "
        "start_number={}",
        life_.start_number);
  // The log may outlive this call.
  const auto noted = std::make_shared<std::optional<Result<void>>>();
  log_->write(replication::begin_life(life_), true, [noted](Result<void> r) { *noted = r; });
  AsioReactor& reactor = *reactors_[0];
  const base::MonotonicUs until_us = reactor.now_us() + kRoomWaitUs;
  const auto give_up = reactor.call_at(until_us, [] {});
  reactor.run_until([&] { return noted->has_value() || reactor.now_us() >= until_us; });
  reactor.cancel(give_up);
  if (!*noted)
    return fail(ErrorCode::kLimit, "the disk of {} is full: there is no room to note a start",
                options_.data_directory);
  return **noted;
}

/// All stores have closed.
void NodeImpl::end_life() {
  log_->write(replication::end_life(life_), true, [this](const Result<void>& noted) {
    if (!noted) logger_.warn("the end of this life is not noted error={}", noted.error().message);
  });
}

/// As many as the node was first started with.
Result<uint32_t> NodeImpl::choose_shards() {
  TETRAD_TRY(const auto known, replication::load_store_count(*log_));
  if (!known) return static_cast<uint32_t>(std::max<uint64_t>(options_.shards, 1));
  if (options_.shards != 0 && options_.shards != *known) {
    return fail(ErrorCode::kConfig,
                "shards: {} is asked for, but this node was first started with {} and keeps that "
                "number; leave the option out, or make it {}",
                options_.shards, *known, *known);
  }
  return *known;
}

/// Memory and descriptors, between the stores, the clients and the other nodes.
Result<void> NodeImpl::share_out(uint32_t shards) {
  const uint64_t memory_bytes = usable_memory_bytes();
  memory_ = plan_memory(options_, memory_bytes, shards);
  const uint64_t limit = raise_descriptor_limit();
  TETRAD_TRY(descriptors_, plan_descriptors(limit, shards, options_.connections_max));
  constexpr uint64_t kMiB = 1 << 20;
  logger_.info(
      "memory_mb={} cores={} block_cache_mb={} row_cache_mb={} write_buffer_mb={} "
      "request_memory_mb={} open_files_max={} connections_max={}",
      memory_bytes / kMiB, usable_cores(), memory_.block_cache / kMiB, memory_.row_cache / kMiB,
      memory_.write_buffer / kMiB, memory_.requests / kMiB, limit, descriptors_.clients);
  return {};
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
  out.nonce = shards_[0]->random.next() | 1;
  out.store_lost = [this](uint32_t store) { store_lost(store); };
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
  out.batches.replay_after_us = 2 * static_cast<int64_t>(options_.write_timeout_ms) * 1000;
  out.disk_usage.limits = disk_usage_limits_of(options_);
  if (const auto capacity = disk_.capacity_bytes())
    out.disk_usage.room_bytes = std::min(
        2 * memory_.write_buffer * shards_.size() + *capacity / 100, *capacity / kRoomPartMost);
  out.ready = [this] { shard_is_ready(); };
  out.removed = [this] { leave(); };
  out.refusal = [this](const replication::Endpoint& peer) {
    return shards_[0]->transport->refusal(peer);
  };
  out.renew_store = [this](uint32_t store) {
    reactors_[0]->post_from_any_thread([this, store] { renew_store(store); });
  };
  return out;
}

cql::QueryProcessorOptions NodeImpl::query_options() {
  cql::QueryProcessorOptions out;
  out.settings.read_timeout_us = static_cast<int64_t>(options_.read_timeout_ms) * 1000;
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

std::function<void(uint32_t, replication::ShardMessage)> NodeImpl::forward_from(uint32_t shard) {
  return [this, shard](uint32_t to, replication::ShardMessage message) {
    mailboxes_->send(shard, to, std::move(message));
  };
}

replication::NodeEnvironment NodeImpl::environment_of(Shard& shard) {
  std::vector<storage::Store*> stores(shards_.size());
  stores[shard.number] = shard.store.get();
  return {shard.reactor,
          pool_,
          shard.random,
          *shard.transport,
          shard.number == 0 ? *log_ : *shard.log,
          std::move(stores),
          logger_,
          metrics_,
          cql::read_aggregate_fold,
          &disk_,
          shard.number == 0 ? hint_log_.get() : shard.hint_log.get(),
          losses(),
          whole(),
          shard.number == 0 ? batch_log_.get() : nullptr,
          cql::claim_maker_of,
          cql::view_makers_of,
          [&reactor = shard.reactor] { return reactor.busy_us(); }};
}

std::vector<uint64_t> NodeImpl::whole() const {
  std::vector<uint64_t> out;
  for (const auto& shard : shards_)
    out.push_back(replication::whole_to_compare(shard->store->recovered(),
                                                last_end_ == replication::LastEnd::kCut));
  return out;
}

/// On the first shard's thread.
void NodeImpl::store_lost(uint32_t store) {
  Shard& shard = *shards_[store];
  shard.reactor.post_from_any_thread([this, &shard, store] {
    replication::PowerLoss loss;
    if (const auto& last = shard.store->recovered().last_sync) loss.since_us = last->time_us;
    (shard.replication == nullptr ? node_->behind() : shard.replication->behind())
        .lost(store, loss);
  });
}

std::vector<std::optional<replication::PowerLoss>> NodeImpl::losses() const {
  std::vector<std::optional<replication::PowerLoss>> out;
  if (last_end_ != replication::LastEnd::kCut) return out;
  for (const auto& shard : shards_) {
    replication::PowerLoss& loss = out.emplace_back().emplace();
    if (const auto& last = shard->store->recovered().last_sync) loss.since_us = last->time_us;
  }
  return out;
}

Result<void> NodeImpl::open_stores() {
  finish_erasing(options_.data_directory);
  storage::StoreOptions options;
  options.sync = options_.commit_log_sync == "group" ? storage::CommitLogSync::kGroup
                                                     : storage::CommitLogSync::kPeriodic;
  options.sync_period_us = static_cast<int64_t>(options_.commit_log_sync_period_ms) * 1000;
  options.block_cache_bytes = memory_.block_cache;
  options.row_cache_bytes = memory_.row_cache / shards_.size();
  options.vector_graph_bytes = memory_.vector_graphs / shards_.size();
  options.write_buffer_bytes = memory_.write_buffer;
  options.write_queue_max_bytes = memory_.write_queue;
  options.open_files_max = descriptors_.store_files;
  options.scrub_period_us = static_cast<int64_t>(options_.scrub_period_s) * 1'000'000;
  // One store alone is bounded by its number of memtables.
  if (shards_.size() > 1)
    options.write_buffers_total_bytes =
        options.write_buffer_bytes * std::max<uint64_t>(4, 2 * shards_.size());
  options.background_threads = static_cast<uint32_t>(
      options_.background_threads != 0 ? options_.background_threads
                                       : std::max<uint64_t>(2, usable_cores() / 2));
  store_factory_ =
      storage::make_rocks_store_factory(options, logger_.named("store"), files_, log_recovery());
  for (const auto& shard : shards_) {
    const std::string directory =
        fmt::format("{}/store-{}", options_.data_directory, shard->number);
    auto opened = store_factory_->open(directory, shard->reactor, pool_);
    if (!opened && opened.error().code == ErrorCode::kLimit &&
        storage::release_ballast(options_.data_directory + "/log")) {
      logger_.warn("the ballast of a full disk is given away to open a store: {}",
                   opened.error().message);
      opened = store_factory_->open(directory, shard->reactor, pool_);
    }
    TETRAD_TRY(shard->store, std::move(opened));
    shard->store->on_status([this, number = shard->number](const storage::StoreStatus& status) {
      reactors_[0]->post_from_any_thread(
          [this, number, status] { take_store_status(number, status); });
    });
    if (shard->number != 0) {
      shard->log = storage::make_local_log_front(*log_, *reactors_[0], shard->reactor);
      shard->hint_log = storage::make_local_log_front(*hint_log_, *reactors_[0], shard->reactor);
    }
  }
  return {};
}

/// Every shard sends over connections of its own. Those that other nodes make come in on the first
/// and are given to all in turn.
Result<void> NodeImpl::open_transports() {
  for (const auto& shard : shards_) {
    replication::TcpTransportOptions options;
    options.listen_address = addresses_.listen;
    options.listen_port = static_cast<uint16_t>(options_.internode_port);
    options.listen = shard->number == 0;
    options.shard_count = static_cast<uint32_t>(shards_.size());
    options.queue_bytes_max = memory_.peer_queue;
    options.accepted_connections_max = descriptors_.peers;
    options.hand_over = [this](uint32_t to, replication::Accepted accepted) {
      Shard& other = *shards_[to];
      other.reactor.post_from_any_thread(
          [transport = other.transport.get(), accepted = std::move(accepted)]() mutable {
            transport->adopt(std::move(accepted));
          });
    };
    options.encryption = tls_.internode;
    options.credentials = tls_.nodes;
    options.secret = tls_.secret;
    options.random = &shard->random;
    options.off_loop = [this, &reactor = shard->reactor](base::Callback work, base::Callback done) {
      pool_.run(reactor, base::IoDuty::kParse, kInternodeHandshakeLane, std::move(work),
                std::move(done));
    };
    auto transport = replication::TcpTransport::open(shard->reactor.context(), shard->reactor,
                                                     std::move(options), logger_.named("rpc"));
    if (!transport) {
      return fail(ErrorCode::kConfig,
                  "cannot listen for nodes on {}:{}: {} (options listen_address, internode_port)",
                  addresses_.listen, options_.internode_port, transport.error().message);
    }
    shard->transport = std::move(*transport);
  }
  return {};
}

Result<void> NodeImpl::open_replication() {
  std::vector<base::Reactor*> loops;
  for (const auto& reactor : reactors_) loops.push_back(reactor.get());
  mailboxes_ = std::make_unique<replication::ShardMailboxes>(std::move(loops));
  TETRAD_TRY(node_,
             replication::ReplicationNode::make(environment_of(*shards_[0]), node_options()));
  const ShardServing serving = serving_options();
  for (const auto& shard : shards_) {
    if (shard->number != 0) {
      replication::ShardOptions options;
      options.shard = shard->number;
      options.forward = forward_from(shard->number);
      options.ready = [this] { reactors_[0]->post_from_any_thread([this] { shard_is_ready(); }); };
      shard->replication = std::make_unique<replication::ReplicationShard>(
          environment_of(*shard), *node_, std::move(options));
    }
    auto* const replication = shard->replication.get();
    replication::RpcNode& rpc = replication == nullptr ? node_->rpc() : replication->rpc();
    replication::MetaService& meta = replication == nullptr ? node_->meta() : replication->meta();
    replication::StoreCleanup& cleanup =
        replication == nullptr ? node_->cleanup() : replication->cleanup();
    const replication::Fences& fences =
        replication == nullptr ? node_->fences() : replication->fences();
    replication::ChangeLogs& changes =
        replication == nullptr ? node_->changes() : replication->changes();
    replication::BehindStores& behind =
        replication == nullptr ? node_->behind() : replication->behind();
    replication::PaxosKeys& paxos_keys =
        replication == nullptr ? node_->paxos_keys() : replication->paxos_keys();
    mailboxes_->deliver_to(shard->number, [&rpc](replication::ShardMessage message) {
      rpc.receive_forwarded(std::move(message));
    });
    replication::DataPlaneOptions data_options;
    data_options.coordinator.mutation_bytes_max = options_.mutation_mb_max << 20;
    data_options.throughput.wait_us = static_cast<int64_t>(options_.throughput_wait_ms) * 1000;
    const uint64_t longest_write_ms =
        std::max(options_.write_timeout_ms, options_.counter_write_timeout_ms);
    data_options.recent_fetch.write_us =
        std::max(data_options.recent_fetch.write_us, static_cast<int64_t>(longest_write_ms) * 1000);
    data_options.recent_fetch.acknowledges_synced = options_.commit_log_sync == "group";
    data_options.shard = shard->number;
    data_options.shard_count = static_cast<uint32_t>(shards_.size());
    data_options.start_number = life_.start_number;
    data_options.tell_store = [this](uint32_t store, replication::StoreFacts facts) {
      reactors_[0]->post_from_any_thread([this, store, facts = std::move(facts)]() mutable {
        node_->membership().set_store_facts(store, std::move(facts));
      });
    };
    if (shard->number == 0) data_options.batches = &node_->batches();
    data_options.purge.partitions = partition_thresholds_of(options_);
    data_options.purge.gc_grace_s = [it = shard.get()](const replication::TableInfo& table) {
      return it->gc_grace_s(table);
    };
    TETRAD_TRY(shard->data, replication::DataPlane::make(
                                environment_of(*shard), rpc, meta, node_->clock(), fences, cleanup,
                                changes, behind, paxos_keys, std::move(data_options)));
    shard->prepare_serving(meta, serving, logger_, metrics_);
  }
  return {};
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

Result<void> NodeImpl::open_admin() {
  const std::string token_file = std::filesystem::absolute(options_.data_directory) / "admin_token";
  TETRAD_TRY(std::string token, load_admin_token(token_file, os_random));
  std::vector<AdminService::Shard> parts;
  for (const auto& shard : shards_) parts.push_back({shard->reactor, *shard->store, *shard->data});
  std::vector<Snapshots::Store> stores;
  for (const auto& shard : shards_) stores.push_back({shard->reactor, *shard->store});
  snapshots_ = std::make_unique<Snapshots>(Snapshots::Parts{
      std::move(stores), pool_, options_.data_directory,
      [this] { return node_->meta().snapshot(); }, [this] { return node_->self(); },
      kProgramVersion, logger_.named("snapshots")});
  certificates_ =
      std::make_unique<CertificateWatch>(tls_, *reactors_[0], pool_, logger_.named("tls"));
  admin_ = std::make_unique<AdminService>(AdminService::Parts{
      *node_, std::move(parts), metrics_, logger_, [this] { return health(); }, kProgramVersion,
      std::move(token), token_file, addresses_.admin, [this] { return complaints(); },
      [this](auto done) { certificates_->reload_now(std::move(done)); }, &serving_,
      snapshots_.get(), life_.start_number,
      [this](std::function<void(std::string, Result<storage::FileCounts>)> done) {
        count_encrypted(std::move(done));
      },
      &client_addresses_});
  const auto listen = [&](const std::string& at, bool outside) -> Result<void> {
    TETRAD_TRY(auto server,
               HttpServer::open(
                   reactors_[0]->context(), at, static_cast<uint16_t>(options_.admin_port), outside,
                   [this](const HttpRequest& request, HttpServer::Respond respond) {
                     admin_->handle(request, std::move(respond));
                   },
                   logger_.named("admin"), tls_.admin));
    http_.push_back(std::move(server));
    return {};
  };
  TETRAD_TRY_VOID(listen(addresses_.admin, false));
  if (!addresses_.admin_outside.empty()) TETRAD_TRY_VOID(listen(addresses_.admin_outside, true));
  return {};
}

Result<void> NodeImpl::open_disk_keys() {
  if (options_.disk_encryption_key_file.empty()) return {};
  auto keys = storage::DiskKeys::read(options_.disk_encryption_key_file, os_random);
  if (!keys) return fail(keys.error().code, "disk_encryption_key_file: {}", keys.error().message);
  disk_keys_ = std::move(*keys);
  TETRAD_TRY_VOID(storage::check_encrypted_files(options_.data_directory, *disk_keys_));
  files_ = storage::make_encrypted_files(nullptr, disk_keys_);
  logger_.info("new files are encrypted key={} keys={}", disk_keys_->of_new_files().id,
               disk_keys_->all().size());
  return {};
}

/// Tells the id of the key of new files ("": they are plain), and what is there.
void NodeImpl::count_encrypted(std::function<void(std::string, Result<storage::FileCounts>)> done) {
  const auto counted = std::make_shared<Result<storage::FileCounts>>(storage::FileCounts());
  const std::string id = disk_keys_ == nullptr ? "" : disk_keys_->of_new_files().id;
  pool_.run(
      *reactors_[0], base::IoDuty::kMaintenance, 0,
      [counted, directory = options_.data_directory] {
        *counted = storage::count_encrypted_files(directory);
      },
      [counted, id, done = std::move(done)] { done(id, std::move(*counted)); });
}

Result<void> NodeImpl::open() {
  TETRAD_TRY(addresses_, addresses_of(options_));
  TETRAD_TRY_VOID(check_names(options_));
  TETRAD_TRY_VOID(check_guardrails(options_));
  if (!options_.init_superuser.empty()) {
    base::Random random(os_random);
    TETRAD_TRY(first_superuser_, first_superuser(options_.init_superuser,
                                                 options_.init_superuser_password_file, random));
  }
  if (client_addresses_.is_on() && !has_authentication(options_))
    return fail(ErrorCode::kConfig,
                "cidr_authorizer: CassandraCIDRAuthorizer is about roles: it needs authenticator "
                "PasswordAuthenticator");
  TETRAD_TRY(tls_, open_node_tls(options_));
  TETRAD_TRY(seeds_, read_seeds(options_.seeds, static_cast<uint16_t>(options_.internode_port)));
  std::signal(SIGPIPE, SIG_IGN);
  TETRAD_TRY(lock_, DirectoryLock::take(options_.data_directory));
  TETRAD_TRY_VOID(check_disk_size(options_, disk_));
  TETRAD_TRY(audit_, open_audit_log(options_, logger_));
  TETRAD_TRY_VOID(open_disk_keys());
  TETRAD_TRY(const auto machine, machine_start(options_.data_directory));
  TETRAD_TRY(
      log_, storage::open_rocks_local_log(options_.data_directory + "/log", *reactors_[0], pool_, 0,
                                          logger_.named("log"), files_,
                                          log_recovery_of(options_.data_directory, machine)));
  // On a full disk not: then a log that a power cut has torn may have to be looked at by hand.
  if (auto marked = mark_running(options_.data_directory, machine); !marked)
    logger_.warn("that a process runs is not noted error={}", marked.error().message);
  TETRAD_TRY_VOID(replication::check_cluster_name(*log_, options_.cluster_name));
  TETRAD_TRY_VOID(begin_life());
  // Apart, so that a storm of hints holds up nothing of the metadata group.
  TETRAD_TRY(hint_log_,
             storage::open_rocks_local_log(options_.data_directory + "/hints", *reactors_[0], pool_,
                                           1, logger_.named("hints"), files_, log_recovery()));
  TETRAD_TRY(batch_log_, storage::open_rocks_local_log(
                             options_.data_directory + "/batches", *reactors_[0], pool_, 2,
                             logger_.named("batches"), files_, log_recovery()));
  TETRAD_TRY(const uint32_t shards, choose_shards());
  TETRAD_TRY_VOID(share_out(shards));
  for (uint32_t i = 0; i < shards; ++i) {
    if (i != 0) reactors_.push_back(std::make_unique<AsioReactor>());
    shards_.push_back(std::make_unique<Shard>(i, *reactors_[i]));
  }
  TETRAD_TRY_VOID(open_stores());
  TETRAD_TRY_VOID(open_transports());
  TETRAD_TRY_VOID(open_replication());
  TETRAD_TRY_VOID(open_admin());
  register_metrics();
  return {};
}

void NodeImpl::register_metrics() {
  register_store_metrics();
  register_cluster_metrics();
  register_process_metrics();
  certificates_->register_metrics(metrics_);
}

void NodeImpl::register_store_metrics() {
  for (const auto& shard : shards_) {
    const std::string store = fmt::format("store=\"{}\"", shard->number);
    const auto figure_of = [&](auto storage::StoreStatistics::*figure) {
      return [this, number = shard->number, figure] {
        return static_cast<double>(admin_->statistics(number).*figure);
      };
    };
    const auto gauge = [&](const char* name, const char* help,
                           auto storage::StoreStatistics::*figure) {
      metrics_.add_gauge(name, help, store, figure_of(figure));
    };
    const auto counter = [&](const char* name, const char* help,
                             uint64_t storage::StoreStatistics::*figure) {
      metrics_.add_counter(name, help, store, figure_of(figure));
    };
    gauge("tetrad_storage_disk_bytes", "Bytes of table files.",
          &storage::StoreStatistics::disk_bytes);
    gauge("tetrad_storage_memtable_bytes", "Bytes in memtables.",
          &storage::StoreStatistics::memtable_bytes);
    gauge("tetrad_storage_pending_compaction_bytes", "Bytes that compactions have yet to rewrite.",
          &storage::StoreStatistics::pending_compaction_bytes);
    gauge("tetrad_storage_level0_files", "Table files that are not sorted into levels yet.",
          &storage::StoreStatistics::level0_files);
    gauge("tetrad_storage_delayed_write_bytes_per_second",
          "Bytes of writes let through while compactions are behind; 0: all.",
          &storage::StoreStatistics::delayed_write_bytes_per_s);
    counter("tetrad_storage_writes_paced_microseconds_total",
            "Time during which writes had to wait for the disk.",
            &storage::StoreStatistics::writes_paced_us);
    gauge("tetrad_storage_compactions_running", "Compactions that run.",
          &storage::StoreStatistics::compactions_running);
    gauge("tetrad_storage_flushes_running", "Flushes of memtables that run.",
          &storage::StoreStatistics::flushes_running);
    counter("tetrad_storage_background_errors_total", "Flushes and compactions that failed.",
            &storage::StoreStatistics::background_errors);
    counter("tetrad_storage_corruptions_total", "Reads that found damaged data.",
            &storage::StoreStatistics::corruptions);
    counter("tetrad_storage_scrubbed_files_total", "Table files read to find damage.",
            &storage::StoreStatistics::scrubbed_files);
    counter("tetrad_storage_scrubbed_bytes_total", "Bytes of them.",
            &storage::StoreStatistics::scrubbed_bytes);
    counter("tetrad_storage_damaged_files_total", "Of them, how many did not read.",
            &storage::StoreStatistics::damaged_files);
    metrics_.add_gauge("tetrad_storage_writes_stopped", "1 while the store takes no writes.", store,
                       [this, number = shard->number] {
                         return admin_->statistics(number).writes_stopped ? 1.0 : 0.0;
                       });
    gauge("tetrad_storage_row_cache_bytes", "Bytes of rows kept in the row cache.",
          &storage::StoreStatistics::row_cache_bytes);
    counter("tetrad_storage_row_cache_hits_total", "Slices of partitions found in the row cache.",
            &storage::StoreStatistics::row_cache_hits);
    counter("tetrad_storage_row_cache_misses_total",
            "Slices of partitions not found in the row cache.",
            &storage::StoreStatistics::row_cache_misses);
    counter("tetrad_storage_values_written_back_total",
            "Values stored as one after reads that had to join too many versions.",
            &storage::StoreStatistics::values_written_back);
    gauge("tetrad_storage_vector_graphs", "Graphs of vectors that serve searches.",
          &storage::StoreStatistics::vector_graphs);
    gauge("tetrad_storage_vector_graph_bytes", "Bytes of them, and of those that are being made.",
          &storage::StoreStatistics::vector_graph_bytes);
    counter("tetrad_storage_vector_graph_searches_total",
            "Searches for near vectors of a tablet that a graph answered.",
            &storage::StoreStatistics::vector_graph_searches);
    counter("tetrad_storage_vector_scans_total",
            "Searches for near vectors of a tablet that measured all of its rows.",
            &storage::StoreStatistics::vector_scans);
    gauge("tetrad_storage_block_cache_bytes", "Bytes of blocks in the cache, which stores share.",
          &storage::StoreStatistics::cache_bytes);
  }
}

void NodeImpl::register_cluster_metrics() {
  const auto gauge = [&](const char* name, const char* help, auto read) {
    metrics_.add_gauge(name, help, "", [read] { return static_cast<double>(read()); });
  };
  gauge("tetrad_replication_metadata_index", "Index of the last metadata command applied.",
        [this] { return node_->meta().snapshot()->applied.value; });
  gauge("tetrad_io_reads_waiting", "Reads that wait for a thread.",
        [this] { return pool_.read_figures().waiting; });
  metrics_.add_counter("tetrad_io_reads_refused_total",
                       "Reads refused because too many waited for a thread.", "",
                       [this] { return static_cast<double>(pool_.read_figures().refused); });
  metrics_.add_counter("tetrad_io_reads_late_total",
                       "Reads whose time was over before a thread was free for them.", "",
                       [this] { return static_cast<double>(pool_.read_figures().late); });
  const auto raft_gauge = [&](const char* name, const char* help, auto figure) {
    gauge(name, help, [this, figure]() -> double {
      const replication::RaftDriver* driver = node_->meta_group().driver();
      return driver == nullptr ? 0 : static_cast<double>(figure(driver->core()));
    });
  };
  raft_gauge("tetrad_replication_raft_term", "Term of the metadata group.",
             [](const auto& core) { return core.term(); });
  raft_gauge("tetrad_replication_raft_leads", "1 when this node leads the metadata group.",
             [this](const auto& core) { return core.leader() == node_->self() ? 1 : 0; });
  raft_gauge("tetrad_replication_raft_votes", "1 when this node votes in the metadata group.",
             [this](const auto& core) { return core.configuration().is_voter(node_->self()); });
  gauge("tetrad_replication_replicas", "Replicas of physical partitions on this node.", [this] {
    size_t count = 0;
    const auto state = node_->meta().snapshot();
    for (const auto& [id, table] : state->tables)
      for (const auto& tablet : table->tablets.tablets())
        for (const auto& replica : tablet.replicas) count += replica.host == node_->self();
    return count;
  });
  gauge("tetrad_replication_nodes_live", "Nodes of the cluster that are live, this one among them.",
        [this] { return admin_->readiness().nodes - admin_->readiness().away.size(); });
  gauge("tetrad_replication_nodes_away", "Nodes of the cluster that are not live.",
        [this] { return admin_->readiness().away.size(); });
  gauge("tetrad_replication_partitions_under_replicated",
        "Physical partitions of the cluster with a member that is away.",
        [this] { return admin_->readiness().partial; });
  gauge("tetrad_replication_partitions_unavailable",
        "Physical partitions of the cluster with too few live members for QUORUM.",
        [this] { return admin_->readiness().unavailable; });
  gauge("tetrad_server_data_disk_free_bytes", "What is left on the disk of the data directory.",
        [this] { return disk_.usable_bytes().value_or(0); });
  gauge("tetrad_server_data_disk_bytes", "Size of the disk of the data directory.",
        [this] { return disk_.capacity_bytes().value_or(0); });
}

/// Under the names that Prometheus's own clients use.
void NodeImpl::register_process_metrics() {
  const auto gauge = [&](const char* name, const char* help, auto ProcessFacts::*fact) {
    metrics_.add_gauge(name, help, "",
                       [fact] { return static_cast<double>(read_process_facts().*fact); });
  };
  metrics_.add_gauge("tetrad_build_info", "1; the label is the version.",
                     fmt::format("version=\"{}\"", kProgramVersion), [] { return 1.0; });
  if (client_addresses_.is_on()) client_addresses_.export_to(metrics_);
  if (audit_ != nullptr) {
    metrics_.add_counter("tetrad_audit_records_total", "Records of the audit log.", "",
                         [this] { return static_cast<double>(audit_->recorded()); });
    metrics_.add_counter("tetrad_audit_refused_total",
                         "Requests refused because the audit log took no record.", "",
                         [this] { return static_cast<double>(audit_->refused()); });
  }
  metrics_.add_counter("process_cpu_seconds_total", "CPU time of the process.", "",
                       [] { return read_process_facts().cpu_seconds; });
  gauge("process_start_time_seconds", "When the process was started, since the epoch.",
        &ProcessFacts::start_time_seconds);
  gauge("process_resident_memory_bytes", "Memory of the process.", &ProcessFacts::resident_bytes);
  gauge("process_virtual_memory_bytes", "Address space of the process.",
        &ProcessFacts::virtual_bytes);
  gauge("process_open_fds", "Open file descriptors.", &ProcessFacts::open_files);
  gauge("process_max_fds", "How many may be open.", &ProcessFacts::open_files_max);
}

std::string NodeImpl::health() const {
  if (stopping_) return "stopping";
  if (!serving_.has_begun()) return "starting";
  for (size_t i = 0; i < store_status_.size(); ++i) {
    const auto& [state, reason] = store_status_[i];
    if (state != storage::StoreState::kServing)
      return fmt::format("store {} is {}: {}", i, storage::name_of(state), reason);
  }
  return "serving";
}

/// Runs on the first shard, whose schema this is.
std::vector<std::string> NodeImpl::complaints() const {
  std::vector<std::string> lines;
  if (audit_ != nullptr && !audit_->failure().empty()) {
    lines.push_back(fmt::format("the audit log cannot be written, statements are refused: {}",
                                audit_->failure()));
  }
  const cql::QueryProcessor* const processor = shards_.front()->processor.get();
  if (processor == nullptr || processor->schema() == nullptr) return lines;
  for (const auto& [key, object] : processor->schema()->unreadable())
    lines.push_back(
        fmt::format("the schema of {} does not read: {}", object.title(), object.reason));
  return lines;
}

/// The process begins anew without it: nothing of what it knew of the store is left.
void NodeImpl::renew_store(uint32_t store) {
  to_erase_.insert(store);
  stop("a damaged store is erased");
}

void NodeImpl::shard_is_ready() {
  if (++shards_ready_ == shards_.size()) serve();
}

void NodeImpl::serve() {
  if (serving_.has_begun() || stopping_) return;
  if (const auto began = serving_.begin(addresses_.rpc, descriptors_.clients); !began)
    return fatal(began.error());
  if (first_superuser_) {
    Shard& first = *shards_[0];
    first.connections->tasks.spawn(make_first_superuser(std::move(*first_superuser_), first.reactor,
                                                        first.random, *first.processor,
                                                        node_->meta(), logger_.named("auth")));
    first_superuser_.reset();
  } else if (has_authentication(options_)) {
    constexpr int64_t kRolesKnownUs = 3'000'000;  // a new node learns them from the others
    reactors_[0]->call_at(reactors_[0]->now_us() + kRolesKnownUs, [this] {
      const cql::SchemaPtr schema = shards_[0]->processor->schema();
      if (schema == nullptr || schema->roles()->has_usable_superuser()) return;
      logger_.warn(
          "no superuser can log in: stop the node and start it with --init-superuser NAME");
    });
  }
  logger_.info(
      "serving address={} native_port={} admin_port={} shards={} host_id={} data_directory={}",
      addresses_.rpc, options_.native_port, options_.admin_port, shards_.size(),
      node_->self().to_string(), options_.data_directory);
  if (options_.shards == 0 && shards_.size() == 1 && usable_cores() > 1)
    logger_.info("one of {} cores serves; a new data directory started with --shards N uses N",
                 usable_cores());
  logger_.info("Startup complete");  // harnesses of tests wait for these words in Cassandra's log
}

/// Out of the cluster: by the operator's order, or while it was away.
void NodeImpl::leave() {
  is_out_ = true;
  stop("out of the cluster");
}

/// Everything is closed. One that was told to leave stays away; one that was replaced while it was
/// away comes back as a new node.
Result<NodeEnd> NodeImpl::end_out_of_cluster() {
  const std::string host = node_->self().to_string();
  const int64_t now_us = reactors_[0]->wall_time_us();
  if (was_decommissioned_) {
    TETRAD_TRY_VOID(mark_decommissioned(options_.data_directory, node_->self(), now_us));
    logger_.warn(
        "this node was decommissioned and stays stopped; its data is of no more use "
        "host_id={} data_directory={}",
        host, options_.data_directory);
    return NodeEnd::kStopped;
  }
  TETRAD_TRY(const std::string aside,
             set_data_aside(options_.data_directory, node_->self(), now_us));
  logger_.warn(
      "this node was taken out of its cluster while it was away and starts again as a new "
      "one; delete its old data when nothing is missing host_id={} set_aside={}",
      host, aside);
  return NodeEnd::kTakenOut;
}

void NodeImpl::fatal(const Error& error) {
  if (fatal_error_) return;
  fatal_error_ = error;
  logger_.error("stopping because of error={}", error.message);
  stop("error");
}

void NodeImpl::take_store_status(uint32_t store, storage::StoreStatus status) {
  store_status_.resize(shards_.size());
  store_status_[store] = std::move(status);
  const auto& [state, reason] = store_status_[store];
  tell_store_state(store);
  if (state != storage::StoreState::kFailed || stopping_) return;
  logger_.error("ending because the disk of a store has failed store={} reason=\"{}\"", store,
                reason);
  // The other nodes hear of it first. Nothing is synced or closed: a sync that says that all is
  // well would be believed by the next start.
  constexpr int64_t kLastWordsUs = 200'000;
  reactors_[0]->call_at(reactors_[0]->now_us() + kLastWordsUs, [] { std::_Exit(1); });
}

/// A store's shard is part of it.
void NodeImpl::tell_store_state(uint32_t store) {
  const bool hangs = hung_loops_.contains(store);
  node_->membership().set_store_state(
      store, hangs ? storage::StoreState::kHung : store_status_[store].state);
}

void NodeImpl::take_loop_state(uint32_t shard, bool hangs) {
  logger_.warn("the loop of a shard {} shard={}", hangs ? "hangs" : "comes round again", shard);
  if (hangs)
    hung_loops_.insert(shard);
  else
    hung_loops_.erase(shard);
  store_status_.resize(shards_.size());
  tell_store_state(shard);
}

void NodeImpl::stop(const std::string& reason) {
  if (stopping_) return;
  stopping_ = true;
  stop_began_us_ = reactors_[0]->now_us();
  logger_.info("stopping reason={}", reason);
  serving_.stop();
  finish_stop();
}

uint64_t NodeImpl::connections_open() const {
  uint64_t open = 0;
  for (const auto& shard : shards_) open += shard->connections->metrics.open_now();
  return open;
}

/// Waits for the requests in flight, for a second at most.
void NodeImpl::finish_stop() {
  constexpr int64_t kDrainUs = 1'000'000;
  AsioReactor& reactor = *reactors_[0];
  if (connections_open() != 0 && reactor.now_us() < stop_began_us_ + kDrainUs && !fatal_error_) {
    reactor.call_at(reactor.now_us() + 5'000, [this] { finish_stop(); });
    return;
  }
  join_shards();  // before the first one's last turn, which takes what they have handed over
  reactor.stop();
}

void NodeImpl::join_shards() {
  for (const auto& shard : shards_)
    if (shard->thread.joinable()) shard->reactor.stop();
  for (const auto& shard : shards_)
    if (shard->thread.joinable()) shard->thread.join();
}

Result<NodeEnd> NodeImpl::run() {
  AsioReactor& reactor = *reactors_[0];
  signals_ = std::make_unique<boost::asio::signal_set>(reactor.context(), SIGTERM, SIGINT);
  signals_->async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    was_signalled_ = true;
    stop(signal == SIGTERM ? "SIGTERM" : "SIGINT");
  });
  for (size_t i = 1; i < shards_.size(); ++i) {
    Shard& shard = *shards_[i];
    shard.replication->start();
    shard.thread = std::thread([&shard] {
      pthread_setname_np(pthread_self(), fmt::format("shard-{}", shard.number).c_str());
      shard.reactor.run();
    });
  }
  std::vector<base::Reactor*> loops;
  for (const auto& loop : reactors_) loops.push_back(loop.get());
  LoopWatch watch(std::move(loops),
                  [this](uint32_t shard, bool hangs) { take_loop_state(shard, hangs); });
  watch.start();
  certificates_->start();
  snapshots_->start();
  node_->start();
  reactor.run();
  bool all_closed = !fatal_error_;
  for (const auto& shard : shards_) {
    const auto closed = shard->store->close();
    if (closed) continue;
    all_closed = false;
    logger_.error("store did not close store={} error={}", shard->number, closed.error().message);
  }
  if (is_out_) {
    TETRAD_TRY(was_decommissioned_, replication::is_decommissioned(*log_));
  }
  if (all_closed) end_life();
  if (auto closed = hint_log_->close(); !closed)
    logger_.error("log of hints did not close error={}", closed.error().message);
  if (auto closed = batch_log_->close(); !closed)
    logger_.error("log of batches did not close error={}", closed.error().message);
  if (auto closed = log_->close(); !closed)
    logger_.error("log did not close error={}", closed.error().message);
  else if (auto unmarked = unmark_running(options_.data_directory); !unmarked)
    logger_.warn("that nothing is running is not noted error={}", unmarked.error().message);
  if (fatal_error_) return std::unexpected(*fatal_error_);
  // The loop has ended, and its clock with it.
  logger_.info("stopped after_ms={}", (monotonic_now_us() - stop_began_us_) / 1000);
  if (is_out_) return end_out_of_cluster();
  for (const uint32_t store : to_erase_) {
    TETRAD_TRY_VOID(erase_store(options_.data_directory, store));
    logger_.warn(
        "erased a damaged store; the node starts again and gets its data from others "
        "store={}",
        store);
  }
  return to_erase_.empty() || was_signalled_ ? NodeEnd::kStopped : NodeEnd::kRenewed;
}

}  // namespace

Result<std::unique_ptr<Node>> Node::open(const Options& options, Logger logger) {
  auto node = std::make_unique<NodeImpl>(options, std::move(logger));
  TETRAD_TRY_VOID(node->open());
  return std::unique_ptr<Node>(std::move(node));
}

}  // namespace tetrad::server
