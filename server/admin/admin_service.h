// SPDX-License-Identifier: Apache-2.0
// What the admin port answers: health, metrics, and the facts and orders of tetractl, as JSON. One
// table of routes says what there is; the facts are made in admin_views.cc.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/task_group.h"
#include "cql/execute/address_filter.h"
#include "replication/data_plane.h"
#include "replication/node.h"
#include "server/admin/http_server.h"
#include "server/admin/node_controls.h"
#include "server/admin/order_audit.h"
#include "server/admin/readiness.h"
#include "server/snapshots/snapshots.h"
#include "storage/encryption/encrypted_files.h"
#include "storage/engine/store.h"

namespace tetrad::server {

/// The routes of the admin port and what they answer. Owned by the node, on the first shard's
/// thread; other shards' stores are asked by posts to their own.
class AdminService {
 public:
  /// Its store belongs to its thread.
  struct Shard {
    base::Reactor& reactor;
    storage::Store& store;
    replication::DataPlane& data;
  };
  /// What the service speaks for; all of it outlives the service.
  struct Parts {
    replication::ReplicationNode& node;
    std::vector<Shard> shards;  // by number; the service runs on the first
    base::MetricsRegistry& metrics;
    Logger logger;
    // "serving", or what it does instead: "starting", "stopping", "store 0 is …"; and for a moment
    // before its end "out of the cluster", for which `tetractl decommission` waits.
    std::function<std::string()> health;
    std::string version;
    std::string token, token_file;      // what orders must carry, and where it is to be read
    std::string address = "127.0.0.1";  // where all of the service is reached
    /// What an operator should know although the node serves, a line each; `of_all`: also of others.
    std::function<std::vector<std::string>(bool of_all)> complaints = {};
    /// Reads certificates again; answers with a line for each.
    std::function<void(std::function<void(bool is_well, std::vector<std::string> lines)>)>
        reload_certificates = {};
    NodeControls* controls = nullptr;  // outlives the service; not null
    Snapshots* snapshots = nullptr;    // as well
    uint64_t start_number = 0;         // rises with every start of the node
    /// The id of the key that new files are encrypted under ("": none), and the files by that of theirs.
    std::function<void(std::function<void(std::string id, Result<storage::FileCounts> found)>)>
        count_encrypted = {};
    const cql::AddressFilter* addresses = nullptr;  // outlives the service; not null
    std::string data_directory = {};
    std::vector<replication::Endpoint> seeds = {};  // as the options name them
    /// Of the own disk, said behind its name where it is full: " (61 MB are left, …)".
    std::function<std::string()> disk_left = {};
    /// Where orders are recorded; null: nowhere. Outlives the service.
    cql::AuditTrail* audit = nullptr;
  };
  using Respond = HttpServer::Respond;

  /// Who may ask. kFact: over the admin address, under a name that no web page can point there.
  /// kOrder: whoever has the token besides, and no web page.
  enum class Access : uint8_t { kPublic, kFact, kOrder };

  /// One thing that is asked or ordered.
  struct Route {
    Access access;
    std::string_view method, path;
    void (AdminService::*answer)(const HttpRequest& request, Respond respond);
    std::vector<std::string_view> parameters = {};  // all that it takes
  };
  static const std::vector<Route>& routes();

  explicit AdminService(Parts parts)
      : parts_(std::move(parts)),
        statistics_(parts_.shards.size()),
        orders_(parts_.audit, parts_.shards.front().reactor) {}

  /// Answers once, now or later: 404 for what no route is called, 405 for another method, 400 for a
  /// parameter that the route does not take, 401 and 403 for who may not.
  void handle(const HttpRequest& request, Respond respond);
  /// Of a shard's store, as of the last request for metrics.
  const storage::StoreStatistics& statistics(size_t shard) const { return statistics_[shard]; }
  /// As of then, too.
  const Readiness& readiness() const { return readiness_; }

 private:
  /// What a shard's store says of itself, as of one moment of its thread.
  struct StoreFigures {
    storage::StoreStatistics statistics;
    bool compacts = true;                   // by itself
    std::map<TableId, uint64_t> bytes{};    // of all tables, where that was asked
    replication::TableMeasures measures{};  // those that were asked for
    std::vector<replication::ViewStatus> views{};
  };
  /// What a shard is asked for beside its store's statistics.
  struct FiguresWanted {
    bool bytes_of_tables = false;
    std::vector<replication::TableFigure> measures = {};
    size_t tables_max = SIZE_MAX;  // with measures: the busiest
    bool views = false;            // how far they are built
  };
  using AllFigures = std::vector<StoreFigures>;
  using NamedTable = std::shared_ptr<const replication::TableInfo>;

  std::optional<HttpResponse> refusal(const Route& route, const HttpRequest& request) const;

  // Routes.
  /// A page for a browser, with the facts of this node.
  void answer_page(const HttpRequest& request, Respond respond);
  /// 200 as long as restarting the node would not help; lines for an operator.
  void answer_health(const HttpRequest& request, Respond respond);
  /// 200 when clients' requests can be done here; otherwise 503 and what is in the way.
  void answer_ready(const HttpRequest& request, Respond respond);
  /// All metrics in Prometheus' text format.
  void answer_metrics(const HttpRequest& request, Respond respond);
  /// tetractl status: nodes, their states and what they hold of a keyspace. "stores" of a node that
  /// is down are null, "bytes" what it held before, null if that was never known here.
  void answer_status(const HttpRequest& request, Respond respond);
  /// tetractl ring: the tokens of each node that drivers read from the system tables.
  void answer_ring(const HttpRequest& request, Respond respond);
  /// tetractl partitions: physical partitions of a table, or of all.
  void answer_partitions(const HttpRequest& request, Respond respond);
  /// What a rebalance would move now.
  void answer_rebalance(const HttpRequest& request, Respond respond);
  /// Lets the leader of the metadata group balance once.
  void order_rebalance(const HttpRequest& request, Respond respond);
  void answer_describe_cluster(const HttpRequest& request, Respond respond);
  /// Bytes of each table in this node's stores.
  void answer_table_stats(const HttpRequest& request, Respond respond);
  /// Latencies of the requests of a table, of a keyspace's or of all.
  void answer_table_histograms(const HttpRequest& request, Respond respond);
  /// Materialized views that this node's stores have, and whether they have built them.
  void answer_view_builds(const HttpRequest& request, Respond respond);
  void answer_info(const HttpRequest& request, Respond respond);
  void answer_endpoints(const HttpRequest& request, Respond respond);
  /// Connections of all shards with their drivers and counts.
  void answer_clients(const HttpRequest& request, Respond respond);
  void answer_cidr_groups(const HttpRequest& request, Respond respond);
  void answer_cidr_groups_of(const HttpRequest& request, Respond respond);
  void answer_cidr_filtering(const HttpRequest& request, Respond respond);
  void order_update_cidr_group(const HttpRequest& request, Respond respond);
  void order_drop_cidr_group(const HttpRequest& request, Respond respond);
  void answer_hot_keys(const HttpRequest& request, Respond respond);
  void answer_snapshots(const HttpRequest& request, Respond respond);
  void answer_verification(const HttpRequest& request, Respond respond);
  void answer_view_verification(const HttpRequest& request, Respond respond);
  /// Writes all memtables of this node's stores to disk; answers when it is done.
  void order_flush(const HttpRequest& request, Respond respond);
  /// Purges what may be purged, then compacts; answers when it is done.
  void order_compact(const HttpRequest& request, Respond respond);
  /// Whether stores begin compactions by themselves.
  void order_auto_compaction(const HttpRequest& request, Respond respond);
  void order_log_level(const HttpRequest& request, Respond respond);
  void answer_disk_encryption(const HttpRequest& request, Respond respond);
  /// Halves a physical partition of which this node holds a replica.
  void order_split(const HttpRequest& request, Respond respond);
  /// Joins a physical partition with a neighbour; answers when they are one.
  void order_merge(const HttpRequest& request, Respond respond);
  /// Repairs the tablets of a table, of a keyspace or of all that this node's repairs run for, now.
  void order_repair(const HttpRequest& request, Respond respond);
  void order_verify(const HttpRequest& request, Respond respond);
  void order_verify_view(const HttpRequest& request, Respond respond);
  /// Takes a dead node out of the cluster; its replicas are made anew elsewhere.
  void order_remove_node(const HttpRequest& request, Respond respond);
  /// Nodes by host id or address, or all of a data center; what only they have is given up.
  void order_remove_lost_nodes(const HttpRequest& request, Respond respond);
  /// When most voters of the metadata group are gone for good.
  void order_recover_metadata(const HttpRequest& request, Respond respond);
  /// This node leaves the cluster once its replicas have moved; the answer notes how many copies
  /// rows then have, if that is fewer.
  void order_decommission(const HttpRequest& request, Respond respond);
  /// Sets a setting of the whole cluster (cluster_settings.h).
  void order_setting(const HttpRequest& request, Respond respond);
  /// Reads the certificates' files again; open connections keep theirs.
  void order_reload_certificates(const HttpRequest& request, Respond respond);
  /// Stops serving clients, or serves them again.
  void order_binary(const HttpRequest& request, Respond respond);
  void order_drain(const HttpRequest& request, Respond respond);
  void order_timeout(const HttpRequest& request, Respond respond);
  void order_trace_probability(const HttpRequest& request, Respond respond);
  void order_snapshot(const HttpRequest& request, Respond respond);
  void order_clear_snapshot(const HttpRequest& request, Respond respond);
  void order_recover(const HttpRequest& request, Respond respond);
  void order_drop_batches(const HttpRequest& request, Respond respond);
  /// Gives it up unless it can still be fetched.
  template <class Stores>
  void accept_loss(const Stores& stores, Respond respond);
  /// A line for each disk that is full or filling: of all nodes, or of this one.
  std::vector<std::string> disk_lines(bool of_all) const;
  /// A line for each store that a power cut has put behind.
  std::vector<std::string> behind_lines(bool of_others) const;

  /// "serving", "serving, no quorum", or what the node does instead.
  std::string health() const;
  Readiness measure() const;
  /// Of seeds that are of another cluster. `obstacles`: only where this node cannot be what it is meant
  /// to be.
  std::vector<std::string> foreign_lines(bool obstacles) const;
  /// What an operator should know of the whole cluster, and of what was ordered of this node.
  std::vector<std::string> warnings() const;
  /// A small page for a browser.
  std::string page() const;

  // Facts, as JSON.
  /// From one snapshot of the metadata; the names are those of the routes.
  std::string status(const std::string& keyspace) const;
  std::string ring() const;
  std::string partitions(const std::string& keyspace, const std::string& name) const;
  std::string rebalance_plan() const;
  std::string describe_cluster() const;
  std::string table_stats(const AllFigures& figures) const;
  std::string table_histograms(const std::vector<NamedTable>& tables,
                               const AllFigures& figures) const;
  std::string view_builds(const AllFigures& figures) const;
  HttpResponse info(const AllFigures& figures) const;

  base::Reactor& reactor() { return parts_.shards.front().reactor; }
  /// Asks every shard on its thread, then answers with what `view` makes of it on this one.
  void with_figures(FiguresWanted wanted, Respond respond,
                    std::function<HttpResponse(const AllFigures&)> view);
  /// `done` runs on this thread, once, when all shards have answered.
  void gather_figures(FiguresWanted wanted, std::function<void(const AllFigures&)> done);
  /// Of all shards together.
  static replication::TableMeasures measures_of(const AllFigures& figures);
  /// An empty name is any. Errors: kNotFound.
  Result<void> check_named(const std::string& keyspace, const std::string& name) const;
  /// Those of the parameters `keyspace` and `tables` (names with commas between); without `tables`
  /// all of the keyspace, without both all there are. Errors: kNotFound.
  Result<std::vector<NamedTable>> tables_named(const HttpRequest& request) const;
  /// Errors: kNotFound, kInvalid.
  Result<SnapshotOrder> snapshot_order(const HttpRequest& request) const;
  int64_t wall_time_ms() const { return parts_.shards.front().reactor.wall_time_us() / 1000; }
  /// One store's result of a verification; on this thread.
  void take_verified(const Result<storage::ScrubSummary>& summary, const std::string& keyspace,
                     const std::string& table);
  bool is_verifying() const;
  HttpResponse verify_progress(const AllFigures& figures);
  /// One order to every store, each on its thread.
  void flush_stores(Respond respond);
  /// All tables without any.
  void compact_stores(std::vector<TableIncarnation> tables, Respond respond);
  /// This node leaves; `is_forced`: also where rows then have too few copies for a quorum.
  void order_leaving(bool is_forced, Respond respond);
  /// `dead`: the node is gone already and is only taken out. Answers 409 where it may not leave.
  void leave(HostId host, bool dead, Respond respond);
  /// Runs what answers later; an exception in it is answered with 500.
  void spawn(Task<HttpResponse> task, Respond respond);
  static Task<void> run(AdminService* self, Task<HttpResponse> task, Respond respond);
  /// Answers when the command was applied, or with its error after ten seconds at most.
  static Task<HttpResponse> propose(AdminService* self, replication::MetaCommandBody body);
  static Task<HttpResponse> decommission(AdminService* self);
  static Task<HttpResponse> cancel_decommission(AdminService* self);
  /// `group`: unset, it goes. Answers 404 if there is none to go.
  static Task<HttpResponse> change_cidr_group(AdminService* self, std::string name,
                                              std::optional<cql::AddressGroup> group);
  static Task<HttpResponse> split(AdminService* self, uint64_t tablet_id);

  Parts parts_;
  std::vector<storage::StoreStatistics> statistics_;  // by shard
  Readiness readiness_;
  /// A verification that is under way, or the last one; one at a time.
  struct Verifying {
    bool is_comparing = false;
    size_t stores_left = 0;  // that are still read
    uint64_t files_before = 0, files = 0, bytes = 0;
    std::vector<std::string> damaged, failed;
  } verifying_;
  bool is_drained_ = false;  // by the last order about clients
  OrderAudit orders_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::server
