// SPDX-License-Identifier: Apache-2.0
// The node behind node.h. How it is put together is in node.cc, how it runs and ends in node_run.cc,
// what it counts in node_metrics.cc.
//
// open() and the functions beside it run before any shard's thread; when one fails, what was opened
// before is closed by the destructor. Members are in the order of their use: who uses another
// stands behind it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "replication/membership/node_life.h"
#include "replication/node.h"
#include "replication/rpc/shard_mailboxes.h"
#include "server/admin/admin_service.h"
#include "server/admin/http_server.h"
#include "server/audit/audit_log.h"
#include "server/auth/first_superuser.h"
#include "server/auth/login_limits.h"
#include "server/config/addresses.h"
#include "server/config/memory_plan.h"
#include "server/link_advice.h"
#include "server/node.h"
#include "server/node_tls.h"
#include "server/node_views.h"
#include "server/runtime/data_disk.h"
#include "server/runtime/descriptors.h"
#include "server/runtime/directory_lock.h"
#include "server/runtime/thread_io_pool.h"
#include "server/serving.h"
#include "server/shard.h"
#include "storage/encryption/encrypted_files.h"
#include "storage/engine/log_recovery.h"
#include "storage/engine/store_status.h"

namespace tetrad::server {

inline constexpr size_t kCompactionsKept = 1'000;  // for system.compaction_history

/// One node. Its functions run on the main thread, which is the first shard's, unless they say
/// otherwise.
/// open() → run() → destructor, once each.
class NodeImpl final : public Node {
 public:
  NodeImpl(const Options& options, Logger logger, const RecentLog& log);
  ~NodeImpl() override;

  /// Each part in turn, as node.cc orders it. Errors: kConfig, kIo, kCorruption.
  Result<void> open();
  Result<NodeEnd> run() override;

 private:
  // The steps of open(), each needs those before it.
  Result<void> begin_life();
  void end_life();
  storage::LogRecovery log_recovery() const;
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
  /// What each store has for sure of what it reported to others in earlier lives.
  std::vector<uint64_t> whole() const;
  // Called when a store finds that it lacks what it had acknowledged: its replicas count as behind.
  void store_lost(uint32_t store);
  // How shard `shard` hands messages to others: through the mailboxes.
  std::function<void(uint32_t, replication::ShardMessage)> forward_from(uint32_t shard);
  /// On the first shard's thread, as all that follows.
  void shard_is_ready();
  // All shards are ready: the listener opens. Nothing before may reach a client.
  void serve();
  void look_at_logins();
  /// See NodeOptions::let_clients_go.
  bool let_clients_go(bool leaves);
  // Out of the cluster: the node stops, and end_out_of_cluster() decides about its data when all is
  // closed.
  void leave();
  // For a damaged store: the node ends, the folder of the store is removed, and main() opens the
  // node again.
  void renew_store(uint32_t store);
  Result<NodeEnd> end_out_of_cluster(bool was_signalled);
  // The first call counts. Clients are no longer let in, requests in flight get a second, then the
  // loops end.
  void stop(const std::string& reason);
  void finish_stop();
  void hear(int signal);
  void join_shards();
  // run() answers the first of these.
  void fatal(const Error& error);
  /// What a store can do has changed.
  void take_store_status(uint32_t store, storage::StoreStatus status);
  // A loop that has not come round for seconds counts as hung, with its store, until it does.
  void take_loop_state(uint32_t shard, bool hangs);
  void tell_store_state(uint32_t store);
  // What /health, /metrics and the logs are made of.
  uint64_t connections_open() const;
  std::string health() const;
  std::vector<std::string> complaints(bool of_all) const;
  LinkFacts link_facts() const;
  /// What inserts leave free on the disk of the data.
  struct DiskRoom {
    uint64_t capacity_bytes = 0;
    uint64_t wanted_bytes = 0;  // for memtables to be flushed, and a hundredth of the disk
    uint64_t kept_bytes = 0;    // less than that on a small disk
  };
  DiskRoom disk_room() const;
  std::string disk_left() const;
  // Once, when everything that counts exists.
  void register_metrics();
  void register_store_metrics();
  void register_cluster_metrics();
  void register_process_metrics();
  // The options of other rooms, made of options_ and of what the machine has (node_options.cc).
  replication::NodeOptions node_options();
  cql::QueryProcessorOptions query_options();
  ConnectionLimits connection_limits() const;

  // Plans are made once, in open(), and never change.
  const Options options_;
  Logger logger_;
  const RecentLog& log_lines_;
  std::vector<replication::Endpoint> seeds_;
  NodeAddresses addresses_;
  MemoryPlan memory_;
  DescriptorPlan descriptors_;
  DirectoryLock lock_;
  replication::NodeLife life_;
  replication::LastEnd last_end_ = replication::LastEnd::kUnknown;
  // Before all that registers in it: the registry keeps pointers to counters.
  base::MetricsRegistry metrics_;
  std::vector<std::unique_ptr<AsioReactor>> reactors_;  // by shard
  DataDisk disk_;
  LoginLimits logins_;
  cql::AddressFilter client_addresses_;
  NodeTls tls_;
  std::shared_ptr<const storage::DiskKeys> disk_keys_;  // null: nothing is encrypted
  std::shared_ptr<rocksdb::FileSystem> files_;          // with them; null: the system's
  std::unique_ptr<AuditLog> audit_;                     // null: nothing is recorded
  std::optional<FirstSuperuser> first_superuser_;
  ThreadIoPool pool_;
  // The stores' listeners share it.
  const std::shared_ptr<storage::CompactionLog> compactions_ =
      std::make_shared<storage::CompactionLog>(
          kCompactionsKept, [this] { return reactors_.front()->wall_time_us(); });
  std::unique_ptr<storage::StoreFactory> store_factory_;
  // log_: the metadata group's and the node's own notes. The others are apart, so that a storm of
  // hints or batches holds up nothing of it.
  std::unique_ptr<storage::LocalLog> log_, hint_log_, batch_log_;
  std::unique_ptr<replication::ShardMailboxes> mailboxes_;
  // By number; the first belongs to the main thread.
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<replication::ReplicationNode> node_;
  // Behind what it refers to, which it must not outlive.
  Serving serving_{options_, shards_, logger_};
  const NodeViewSources views_{
      options_,
      memory_,
      shards_,
      serving_,
      [this]() -> Snapshots& { return *snapshots_; },
      [this]() -> replication::MetaService& { return node_->meta(); },
      client_addresses_,
      log_lines_,
      [this](const Shard& shard) -> const replication::IndexRunner& {
        return shard.replication == nullptr ? node_->indexes() : shard.replication->indexes();
      },
      [this](const Shard& shard) -> const replication::TabletStream& {
        return shard.replication == nullptr ? node_->stream() : shard.replication->stream();
      },
      [this]() -> const replication::BatchService& { return node_->batches(); },
      *compactions_};
  std::unique_ptr<CertificateWatch> certificates_;
  std::unique_ptr<Snapshots> snapshots_;
  std::unique_ptr<AdminService> admin_;
  std::vector<std::unique_ptr<HttpServer>> http_;  // of all, and of what is public
  size_t shards_ready_ = 0;
  // stopping_ is set once. Of the others several may hold.
  bool stopping_ = false;
  base::MonotonicUs stop_began_us_ = 0;
  // The first error that ended the node; run() gives it.
  std::optional<Error> fatal_error_;
  bool is_out_ = false, was_decommissioned_ = false;       // of its cluster; by order
  std::optional<base::MonotonicUs> clients_sent_away_us_;  // since when, as it leaves
  bool clients_may_return_ = false;                        // if it does not leave after all
  std::set<uint32_t> to_erase_;                            // stores, when all is closed
  std::set<uint32_t> hung_loops_;                          // of shards
  std::vector<storage::StoreStatus> store_status_;         // by store, as last reported
};

}  // namespace tetrad::server
