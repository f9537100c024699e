// SPDX-License-Identifier: Apache-2.0
#include "server/node.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/signal_set.hpp>

#include "cql/execute/query_processor.h"
#include "replication/data_plane.h"
#include "replication/node.h"
#include "replication/rpc/tcp_transport.h"
#include "server/admin/admin_service.h"
#include "server/admin/http_server.h"
#include "server/connection/listener.h"
#include "server/runtime/asio_reactor.h"
#include "server/runtime/thread_io_pool.h"

namespace tetrad::server {
namespace {

uint64_t random_seed() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

/// Holds an exclusive lock on the data directory; a second server on it ends here.
class DirectoryLock {
 public:
  static Result<DirectoryLock> take(const std::string& directory) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error)
      return fail(ErrorCode::kConfig, "cannot make the data directory {}: {}", directory,
                  error.message());
    const std::string path = directory + "/LOCK";
    DirectoryLock lock;
    lock.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock.file_ < 0)
      return fail(ErrorCode::kConfig, "cannot write in the data directory {}", directory);
    if (::flock(lock.file_, LOCK_EX | LOCK_NB) != 0) {
      return fail(ErrorCode::kConfig, "the data directory {} is in use by another tetrad",
                  directory);
    }
    return lock;
  }
  DirectoryLock() = default;
  DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~DirectoryLock() {
    if (file_ >= 0) ::close(file_);
  }

 private:
  int file_ = -1;
};

Result<void> check_listen_address(const Options& options) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(options.listen_address, error);
  if (error)
    return fail(ErrorCode::kConfig, "listen_address: '{}' is no IP address",
                options.listen_address);
  if (address.is_unspecified()) {
    return fail(ErrorCode::kConfig,
                "listen_address: '{}' is no address that other nodes and drivers could be told; "
                "name one of this machine",
                options.listen_address);
  }
  if (!address.is_loopback() && !options.insecure_listen) {
    return fail(ErrorCode::kConfig,
                "listen_address: {} is not on loopback and there is no authentication yet: whoever "
                "reaches it may read and "
                "write everything; say --insecure-listen if that is meant",
                options.listen_address);
  }
  return {};
}

std::vector<replication::Endpoint> parse_seeds(const Options& options) {
  std::vector<replication::Endpoint> out;
  std::string_view left = options.seeds;
  while (!left.empty()) {
    const size_t comma = left.find(',');
    std::string_view one = left.substr(0, comma);
    left = comma == std::string_view::npos ? std::string_view() : left.substr(comma + 1);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.empty()) continue;
    const size_t colon = one.rfind(':');
    const bool has_port = colon != std::string_view::npos && one.find(':') == colon;
    out.push_back(has_port ? std::string(one)
                           : replication::make_endpoint(
                                 std::string(one), static_cast<uint16_t>(options.internode_port)));
  }
  return out;
}

uint64_t request_memory_bytes(const Options& options) {
  if (options.request_memory_mb != 0) return options.request_memory_mb << 20;
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 10;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

class NodeImpl final : public Node {
 public:
  NodeImpl(const Options& options, Logger logger)
      : options_(options),
        logger_(std::move(logger)),
        random_(random_seed()),
        pool_(static_cast<int>(options.io_threads)),
        signals_(reactor_.context()) {}

  ~NodeImpl() override {
    // Users before what they use; the pool's threads last post to a reactor that still exists.
    if (http_ != nullptr) http_->stop();
    if (connections_ != nullptr) {
      const auto open = connections_->open;
      for (const auto& connection : open) connection->close();
      connections_->tasks.destroy_all();
    }
  }

  Result<void> open();
  Result<void> run() override;

 private:
  void serve();
  void leave();
  void stop(const std::string& reason);
  void finish_stop();
  void fatal(const Error& error);
  std::string health() const;
  void register_metrics();
  replication::NodeOptions node_options();
  cql::QueryProcessorOptions query_options() const;
  ConnectionLimits connection_limits() const;

  const Options options_;
  Logger logger_;
  DirectoryLock lock_;
  base::MetricsRegistry metrics_;
  base::Random random_;
  AsioReactor reactor_;
  ThreadIoPool pool_;
  boost::asio::signal_set signals_;
  std::unique_ptr<storage::StoreFactory> store_factory_;
  std::unique_ptr<storage::LocalLog> log_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<replication::TcpTransport> transport_;
  std::unique_ptr<replication::ReplicationNode> node_;
  std::unique_ptr<replication::DataPlane> data_;
  std::unique_ptr<cql::VirtualTables> virtual_tables_;
  std::unique_ptr<cql::QueryProcessor> processor_;
  std::unique_ptr<EventHub> events_;
  std::unique_ptr<ConnectionContext> connections_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<AdminService> admin_;
  std::unique_ptr<HttpServer> http_;
  bool serving_ = false, stopping_ = false;
  base::MonotonicUs opened_us_ = 0, stop_began_us_ = 0;
  std::optional<Error> fatal_error_;
};

replication::NodeOptions NodeImpl::node_options() {
  replication::NodeOptions out;
  out.address = options_.listen_address;
  out.native_port = static_cast<uint16_t>(options_.native_port);
  out.internode_port = static_cast<uint16_t>(options_.internode_port);
  out.admin_port = static_cast<uint16_t>(options_.admin_port);
  out.data_center = options_.datacenter;
  out.rack = options_.rack;
  out.cluster_name = options_.cluster_name;
  out.version = kProgramVersion;
  out.seeds = parse_seeds(options_);
  out.voter_away_us = static_cast<int64_t>(options_.replace_after_s) * 1'000'000;
  out.fatal = [this](const Error& error) { fatal(error); };
  out.leaving.replace_after_us = out.voter_away_us;
  out.ready = [this] { serve(); };
  out.removed = [this] { leave(); };
  return out;
}

cql::QueryProcessorOptions NodeImpl::query_options() const {
  cql::QueryProcessorOptions out;
  out.settings.read_timeout_us = static_cast<int64_t>(options_.read_timeout_ms) * 1000;
  out.settings.range_timeout_us = static_cast<int64_t>(options_.range_timeout_ms) * 1000;
  out.settings.write_timeout_us = static_cast<int64_t>(options_.write_timeout_ms) * 1000;
  out.settings.truncate_timeout_us = static_cast<int64_t>(options_.truncate_timeout_ms) * 1000;
  out.settings.mutation_bytes_max = options_.mutation_mb_max << 20;
  out.settings.batch_warn_bytes = static_cast<uint32_t>(options_.batch_warn_kb << 10);
  out.settings.batch_fail_bytes = static_cast<uint32_t>(options_.batch_fail_kb << 10);
  out.prepared_statements_max = options_.prepared_statements_max;
  return out;
}

ConnectionLimits NodeImpl::connection_limits() const {
  ConnectionLimits out;
  out.frame.body_bytes_max = static_cast<uint32_t>(options_.native_frame_mb_max << 20);
  out.requests_in_flight_max =
      static_cast<uint32_t>(options_.requests_in_flight_per_connection_max);
  out.node_request_bytes_max = request_memory_bytes(options_);
  return out;
}

Result<void> NodeImpl::open() {
  opened_us_ = reactor_.now_us();
  TETRAD_TRY_VOID(check_listen_address(options_));
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);
  TETRAD_TRY(lock_, DirectoryLock::take(options_.data_directory));

  storage::StoreOptions store_options;
  store_options.sync = options_.commit_log_sync == "group" ? storage::CommitLogSync::kGroup
                                                           : storage::CommitLogSync::kPeriodic;
  store_options.sync_period_us = static_cast<int64_t>(options_.commit_log_sync_period_ms) * 1000;
  store_options.block_cache_bytes = options_.block_cache_mb << 20;
  store_options.write_buffer_bytes = options_.write_buffer_mb << 20;
  store_options.background_threads = static_cast<uint32_t>(options_.background_threads);
  store_factory_ = storage::make_rocks_store_factory(store_options, logger_.named("store"));
  TETRAD_TRY(log_,
             storage::open_rocks_local_log(options_.data_directory + "/log", reactor_, pool_));
  TETRAD_TRY(store_, store_factory_->open(options_.data_directory + "/store-0", reactor_, pool_));

  replication::TcpTransportOptions transport_options;
  transport_options.listen_address = options_.listen_address;
  transport_options.listen_port = static_cast<uint16_t>(options_.internode_port);
  transport_options.reuse_port = false;
  auto transport = replication::TcpTransport::open(reactor_.context(), reactor_, transport_options,
                                                   logger_.named("rpc"));
  if (!transport) {
    return fail(ErrorCode::kConfig, "cannot listen for nodes on {}:{}: {}", options_.listen_address,
                options_.internode_port, transport.error().message);
  }
  transport_ = std::move(*transport);

  const replication::NodeEnvironment environment{reactor_, pool_,          random_, *transport_,
                                                 *log_,    {store_.get()}, logger_, metrics_};
  TETRAD_TRY(node_, replication::ReplicationNode::make(environment, node_options()));
  replication::DataPlaneOptions data_options;
  data_options.coordinator.mutation_bytes_max = options_.mutation_mb_max << 20;
  TETRAD_TRY(data_, replication::DataPlane::make(environment, *node_, data_options));

  cql::LocalNodeFacts facts;
  facts.listen_address = options_.listen_address;
  facts.native_port = static_cast<uint16_t>(options_.native_port);
  facts.internode_port = static_cast<uint16_t>(options_.internode_port);
  facts.tetrad_version = kProgramVersion;
  virtual_tables_ = cql::make_system_tables(node_->meta(), facts);
  processor_ =
      std::make_unique<cql::QueryProcessor>(reactor_, random_, data_->coordinator(), node_->meta(),
                                            *virtual_tables_, query_options(), logger_);
  events_ = std::make_unique<EventHub>(node_->meta());
  processor_->set_schema_listener(
      [this](const cql::SchemaSnapshot* before, const cql::SchemaSnapshot& now) {
        events_->schema_changed(before, now);
      });
  connections_ =
      std::make_unique<ConnectionContext>(reactor_, *processor_, *events_, connection_limits(),
                                          kProgramVersion, logger_.named("connection"));

  admin_ = std::make_unique<AdminService>(AdminService::Parts{reactor_,
                                                              *node_,
                                                              *data_,
                                                              {store_.get()},
                                                              metrics_,
                                                              logger_,
                                                              [this] { return health(); },
                                                              kProgramVersion});
  TETRAD_TRY(http_,
             HttpServer::open(reactor_.context(), options_.listen_address,
                              static_cast<uint16_t>(options_.admin_port),
                              [this](const HttpRequest& request, HttpServer::Respond respond) {
                                admin_->handle(request, std::move(respond));
                              }));
  register_metrics();
  return {};
}

void NodeImpl::register_metrics() {
  const ConnectionMetrics& c = connections_->metrics;
  const auto counter = [this](const char* name, const char* help, const base::Counter& value) {
    metrics_.add(fmt::format("tetrad_server_{}_total", name), help, "", value);
  };
  counter("connections_accepted", "Client connections accepted.", c.accepted);
  counter("connections_closed", "Client connections closed.", c.closed);
  counter("connections_refused", "Client connections refused (connections_max, descriptors).",
          c.refused);
  counter("requests", "Requests of clients.", c.requests);
  counter("protocol_errors", "Frames that broke the protocol.", c.protocol_errors);
  counter("overloaded", "Requests refused with OVERLOADED for memory.", c.overloaded);
  counter("received_bytes", "Bytes received from clients.", c.bytes_in);
  counter("sent_bytes", "Bytes sent to clients.", c.bytes_out);
  metrics_.add_gauge("tetrad_server_connections_open", "Client connections open now.", "",
                     [this] { return static_cast<double>(connections_->open.size()); });
  metrics_.add_gauge("tetrad_server_requests_in_flight", "Requests being worked on.", "",
                     [this] { return static_cast<double>(connections_->requests_in_flight); });
  const cql::QueryMetrics& q = processor_->metrics();
  const char* help = "Latency of client requests in this node.";
  metrics_.add("tetrad_cql_request_seconds", help, "verb=\"query\"", q.query);
  metrics_.add("tetrad_cql_request_seconds", help, "verb=\"prepare\"", q.prepare);
  metrics_.add("tetrad_cql_request_seconds", help, "verb=\"execute\"", q.execute);
  metrics_.add("tetrad_cql_request_seconds", help, "verb=\"batch\"", q.batch);
  metrics_.add("tetrad_cql_errors_total", "Requests answered with an error.", "", q.errors);
  metrics_.add("tetrad_cql_prepared_evicted_total", "Prepared statements dropped for room.", "",
               q.prepared_evicted);
  metrics_.add_gauge("tetrad_storage_disk_bytes", "Bytes of table files.", "store=\"0\"",
                     [this] { return static_cast<double>(store_->statistics().disk_bytes); });
  metrics_.add_gauge("tetrad_storage_memtable_bytes", "Bytes in memtables.", "store=\"0\"",
                     [this] { return static_cast<double>(store_->statistics().memtable_bytes); });
  metrics_.add_gauge("tetrad_replication_hints_pending", "Hints waiting for their replicas.", "",
                     [this] { return static_cast<double>(data_->hints().pending_count()); });
  metrics_.add_gauge(
      "tetrad_replication_metadata_index", "Index of the last metadata command applied.", "",
      [this] { return static_cast<double>(node_->meta().snapshot()->applied.value); });
}

std::string NodeImpl::health() const {
  if (stopping_) return "stopping";
  return serving_ ? "serving" : "starting";
}

void NodeImpl::serve() {
  if (listener_ != nullptr || stopping_) return;
  auto listener = Listener::open(reactor_.context(), *connections_, options_.listen_address,
                                 static_cast<uint16_t>(options_.native_port),
                                 static_cast<uint32_t>(options_.connections_max));
  if (!listener) {
    fatal(listener.error());
    return;
  }
  listener_ = std::move(*listener);
  serving_ = true;
  logger_.info("serving address={} native_port={} admin_port={} host_id={} data_directory={}",
               options_.listen_address, options_.native_port, options_.admin_port,
               node_->self().to_string(), options_.data_directory);
}

/// Out of the cluster: by the operator's order, or while it was away.
void NodeImpl::leave() {
  if (!serving_) {
    fatal(Error(ErrorCode::kConfig,
                fmt::format("host {} was removed from the cluster; wipe its data to join as a new "
                            "node",
                            node_->self().to_string())));
    return;
  }
  logger_.warn("this node has left its cluster; its data is of no more use host_id={}",
               node_->self().to_string());
  stop("decommissioned");
}

void NodeImpl::fatal(const Error& error) {
  if (fatal_error_) return;
  fatal_error_ = error;
  logger_.error("stopping because of error={}", error.message);
  stop("error");
}

void NodeImpl::stop(const std::string& reason) {
  if (stopping_) return;
  stopping_ = true;
  stop_began_us_ = reactor_.now_us();
  logger_.info("stopping reason={}", reason);
  if (listener_ != nullptr) listener_->stop();
  connections_->draining = true;
  const auto open = connections_->open;
  for (const auto& connection : open) connection->drain();
  finish_stop();
}

/// Waits for the requests in flight, for a second at most.
void NodeImpl::finish_stop() {
  constexpr int64_t kDrainUs = 1'000'000;
  if (!connections_->open.empty() && reactor_.now_us() < stop_began_us_ + kDrainUs &&
      !fatal_error_) {
    reactor_.call_at(reactor_.now_us() + 5'000, [this] { finish_stop(); });
    return;
  }
  reactor_.stop();
}

Result<void> NodeImpl::run() {
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (!error) stop(signal == SIGTERM ? "SIGTERM" : "SIGINT");
  });
  node_->start();
  reactor_.run();
  if (auto closed = store_->close(); !closed)
    logger_.error("store did not close error={}", closed.error().message);
  if (auto closed = log_->close(); !closed)
    logger_.error("log did not close error={}", closed.error().message);
  if (fatal_error_) return std::unexpected(*fatal_error_);
  logger_.info("stopped after_ms={}", (reactor_.now_us() - stop_began_us_) / 1000);
  return {};
}

}  // namespace

Result<std::unique_ptr<Node>> Node::open(const Options& options, Logger logger) {
  auto node = std::make_unique<NodeImpl>(options, std::move(logger));
  TETRAD_TRY_VOID(node->open());
  return std::unique_ptr<Node>(std::move(node));
}

}  // namespace tetrad::server
