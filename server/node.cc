// SPDX-License-Identifier: Apache-2.0
// How a node is put together of its options: what is opened, in which order, and what each part gets.
//
//   1. What can be checked without touching anything: addresses, names, guardrails, TLS files
//      (start_check.h), and that the threads can be made.
//   2. The lock of the data directory; from here on no other process writes it.
//   3. The metadata log: how the last life ended, and a note that this one has begun.
//   4. The logs of hints and batches, the shards, their stores, transports and replication, the
//      admin port.
//   5. Metrics, last, since they read what all others count.
#include "server/node.h"

#include <csignal>
#include <filesystem>
#include <sys/stat.h>

#include "cql/execute/aggregate_fold.h"
#include "cql/index/claim_maker.h"
#include "cql/views/view_maker.h"
#include "replication/membership/data_center_check.h"
#include "server/admin/admin_token.h"
#include "server/config/guardrails.h"
#include "server/node_impl.h"
#include "server/runtime/control_group.h"
#include "server/runtime/data_folder.h"
#include "server/runtime/os_random.h"
#include "server/runtime/process_facts.h"
#include "server/runtime/running_mark.h"
#include "server/runtime/thread_limit.h"
#include "server/start_check.h"
#include "storage/engine/ballast.h"
#include "storage/engine/local_log_front.h"

namespace tetrad::server {
namespace {

/// Of the pool.
/// TLS handshakes of peers run on one lane of the pool, off the loops.
constexpr uint32_t kInternodeHandshakeLane = 0x544C4E4F;
Result<void> check_disk_size(const Options& options, const DataDisk& disk) {
  const uint64_t asked_bytes = options.data_disk_usage_max_disk_size;
  if (asked_bytes == 0) return {};
  TETRAD_TRY(const uint64_t capacity_bytes, disk.capacity_bytes());
  if (asked_bytes <= capacity_bytes) return {};
  return fail(ErrorCode::kConfig,
              "data_disk_usage_max_disk_size: {} bytes are asked for, but the disk under {} has {}",
              asked_bytes, options.data_directory, capacity_bytes);
}

// More readers than cores: each mostly waits for the disk.
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

uint64_t background_threads(const Options& options) {
  return options.background_threads != 0 ? options.background_threads
                                         : std::max<uint64_t>(2, usable_cores() / 2);
}

/// All that the node makes: of the pool readers, others and lanes of shards and logs, of RocksDB, of
/// the shards, and a few that watch. RocksDB opens files with 16 that end again.
uint64_t threads_of(const Options& options) {
  constexpr uint64_t kOfLogs = 3, kOthers = 6 + 16;
  const uint64_t of_a_shard = options.client_encryption_enabled ? 4 : 3;
  const ThreadIoPoolOptions pool = pool_options(options);
  return pool.reader_threads + pool.maintenance_threads + kOfLogs + background_threads(options) +
         of_a_shard * std::max<uint64_t>(options.shards, 1) + kOthers;
}

/// What the data of this process is on.
Result<replication::MachineStart> machine_start(const std::string& data_directory) {
  struct stat folder {};
  if (::stat(data_directory.c_str(), &folder) != 0)
    return fail(ErrorCode::kIo, "{} cannot be looked at", data_directory);
  return replication::MachineStart{read_boot_id(), folder.st_dev};
}

// Off but for Cassandra's own authorizer, whose MONITOR counts what ENFORCE would refuse.
cql::AddressFilter::Options address_filter_of(const Options& options) {
  cql::AddressFilter::Options out;
  if (options.cidr_authorizer == "CassandraCIDRAuthorizer")
    out.mode = options.cidr_authorizer_mode == "ENFORCE" ? cql::AddressMode::kEnforce
                                                         : cql::AddressMode::kMonitor;
  out.checks_superusers = options.cidr_checks_for_superusers;
  return out;
}

}  // namespace

NodeImpl::NodeImpl(const Options& options, Logger logger, const RecentLog& log)
    : options_(options),
      logger_(std::move(logger)),
      log_lines_(log),
      disk_(options.data_directory),
      client_addresses_(address_filter_of(options), logger_),
      pool_(pool_options(options)) {
  reactors_.push_back(std::make_unique<AsioReactor>());
}

NodeImpl::~NodeImpl() {
  // Users before what they use; the pool's threads last post to reactors that still exist.
  join_shards();
  for (const auto& server : http_) server->stop();
  for (const auto& shard : shards_) shard->stop_serving();
  admin_.reset();
  snapshots_.reset();
  for (const auto& shard : shards_) shard->data.reset();
  for (const auto& shard : shards_) shard->replication.reset();
}

// After a power cut the end of a log may be torn; otherwise a torn log is damage.
storage::LogRecovery NodeImpl::log_recovery() const {
  return last_end_ == replication::LastEnd::kCut ? storage::LogRecovery::kAfterPowerCut
                                                 : storage::LogRecovery::kStrict;
}

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
  // Not refused: they may never be full. But then the kernel ends the process, with no word here.
  const uint64_t together_bytes = bytes_together(memory_, shards);
  if (together_bytes > memory_bytes)
    logger_.warn(
        "caches, memtables and requests may need more memory than this process may use: take less "
        "for block_cache_mb, row_cache_mb, vector_graphs_mb, write_buffer_mb, request_memory_mb "
        "together_mb={} memory_mb={}",
        together_bytes / kMiB, memory_bytes / kMiB);
  return {};
}

std::function<void(uint32_t, replication::ShardMessage)> NodeImpl::forward_from(uint32_t shard) {
  return [this, shard](uint32_t to, replication::ShardMessage message) {
    mailboxes_->send(shard, to, std::move(message));
  };
}

// Each shard sees its own store; logs of the first shard are reached by others through fronts that
// post.
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

// Others compare it with what the stores reported before: a store that has less was put back from a
// copy.
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
  // A damaged store of the last life may be half removed.
  finish_erasing(options_.data_directory);
  storage::StoreOptions options;
  options.sync = options_.commit_log_sync == "group" ? storage::CommitLogSync::kGroup
                                                     : storage::CommitLogSync::kPeriodic;
  options.sync_period_us = static_cast<int64_t>(options_.commit_log_sync_period_ms) * 1000;
  options.block_cache_bytes = memory_.block_cache;
  // Blocks are in one cache for all stores; rows and graphs are each store's own.
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
  options.background_threads = static_cast<uint32_t>(background_threads(options_));
  store_factory_ = storage::make_rocks_store_factory(options, logger_.named("store"), files_,
                                                     log_recovery(), compactions_);
  for (const auto& shard : shards_) {
    const std::string directory =
        fmt::format("{}/store-{}", options_.data_directory, shard->number);
    auto opened = store_factory_->open(directory, shard->reactor, pool_);
    // A full disk must not keep a node from opening the store that would free it: the ballast is a
    // file kept for this.
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
      return fail(ErrorCode::kIo,
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
    // The first shard has the node's own parts; the others have a front of each in
    // ReplicationShard.
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
    // A write may be under way for so long before a power cut, so what is fetched after one reaches
    // back as far.
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

// All requests on admin_address; where clients and nodes listen, only what everybody may know
// (admin_outside).
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
      *node_,
      std::move(parts),
      metrics_,
      logger_,
      [this] { return health(); },
      kProgramVersion,
      std::move(token),
      token_file,
      addresses_.admin,
      [this](bool of_all) { return complaints(of_all); },
      [this](auto done) { certificates_->reload_now(std::move(done)); },
      &serving_,
      snapshots_.get(),
      life_.start_number,
      [this](std::function<void(std::string, Result<storage::FileCounts>)> done) {
        count_encrypted(std::move(done));
      },
      &client_addresses_,
      std::filesystem::absolute(options_.data_directory),
      seeds_,
      [this] { return disk_left(); },
      audit_.get()});
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
  // A key that is missing is noticed here, and not by the first read of an old file.
  TETRAD_TRY_VOID(storage::check_encrypted_files(options_.data_directory, *disk_keys_));
  const auto renewed = storage::renew_encrypted_files(options_.data_directory, *disk_keys_);
  if (!renewed) {
    logger_.warn("files stay under an older key error={}", renewed.error().message);
  } else if (*renewed != 0) {
    logger_.info("files were under an older key renewed={} key={}", *renewed,
                 disk_keys_->of_new_files().id);
  }
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
  TETRAD_TRY(CheckedStart checked, check_start(options_, std::nullopt));
  addresses_ = std::move(checked.addresses);
  first_superuser_ = std::move(checked.first_superuser);
  tls_ = std::move(checked.tls);
  seeds_ = std::move(checked.seeds);
  // A peer that closes must not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  // A file that may not grow any more (ulimit -f) is an error of the write.
  std::signal(SIGXFSZ, SIG_IGN);
  TETRAD_TRY(lock_, DirectoryLock::take(options_.data_directory));
  TETRAD_TRY_VOID(check_disk_size(options_, disk_));
  TETRAD_TRY_VOID(check_free(reactors_[0]->context(), addresses_.rpc,
                             static_cast<uint16_t>(options_.native_port)));
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
  TETRAD_TRY_VOID(replication::check_data_center(*log_, options_.datacenter));
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

Result<std::unique_ptr<Node>> Node::open(const Options& options, Logger logger,
                                         const RecentLog& log) {
  // The pool's threads are made first.
  TETRAD_TRY_VOID(check_threads(threads_of(options)));
  auto node = std::make_unique<NodeImpl>(options, std::move(logger), log);
  TETRAD_TRY_VOID(node->open());
  return std::unique_ptr<Node>(std::move(node));
}

}  // namespace tetrad::server
