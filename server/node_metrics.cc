// SPDX-License-Identifier: Apache-2.0
// The metrics of a node that are of none of its parts alone, or of parts that register none.
#include "server/node_impl.h"
#include "server/runtime/process_facts.h"

namespace tetrad::server {

void NodeImpl::register_metrics() {
  register_store_metrics();
  register_cluster_metrics();
  register_process_metrics();
  certificates_->register_metrics(metrics_);
}

// One list: a metric for each figure of StoreStatistics, labelled by the store. Names stay as they
// are, dashboards use them.
void NodeImpl::register_store_metrics() {
  for (const auto& shard : shards_) {
    const std::string store = fmt::format("store=\"{}\"", shard->number);
    // admin_ keeps the last figures that each store has reported: the exporter's thread asks no
    // shard.
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
    metrics_.add_counter(
        "tetrad_storage_writes_paced_seconds_total",
        "Time during which writes had to wait for the disk.", store,
        [read = figure_of(&storage::StoreStatistics::writes_paced_us)] { return read() / 1e6; });
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
    counter("tetrad_storage_scrubbed_bytes_total", "Bytes of table files read to find damage.",
            &storage::StoreStatistics::scrubbed_bytes);
    counter("tetrad_storage_damaged_files_total",
            "Table files read to find damage that did not read, or not as they were written.",
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
    gauge("tetrad_storage_vector_graph_bytes",
          "Bytes of graphs of vectors, and of those that are being made.",
          &storage::StoreStatistics::vector_graph_bytes);
    counter("tetrad_storage_vector_graph_searches_total",
            "Searches for near vectors of a tablet that a graph answered.",
            &storage::StoreStatistics::vector_graph_searches);
    counter("tetrad_storage_vector_scans_total",
            "Searches for near vectors of a tablet that measured all of its rows.",
            &storage::StoreStatistics::vector_scans);
    gauge("tetrad_storage_block_cache_bytes", "Bytes of blocks in the cache, which stores share.",
          &storage::StoreStatistics::cache_bytes);
    counter("tetrad_storage_block_cache_hits_total",
            "Blocks of table files, also of indexes and filters, that reads found in the cache.",
            &storage::StoreStatistics::block_cache_hits);
    counter("tetrad_storage_block_cache_misses_total",
            "Blocks of table files that reads did not find in the cache.",
            &storage::StoreStatistics::block_cache_misses);
  }
}

// Of the metadata group and of the cluster as this node sees it: the same on all nodes once all
// have heard of all.
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
  for (const auto& shard : shards_) {
    for (const auto direction :
         {replication::LinkDirection::kIn, replication::LinkDirection::kOut}) {
      for (const bool encrypted : {false, true}) {
        metrics_.add_gauge(
            "tetrad_replication_connections_open",
            "Connections with other nodes that are open, made by them (in) or by this node (out).",
            fmt::format("shard=\"{}\",direction=\"{}\",encrypted=\"{}\"", shard->number,
                        direction == replication::LinkDirection::kIn ? "in" : "out",
                        encrypted ? "yes" : "no"),
            [links = shard->transport->open_links(), direction, encrypted] {
              return static_cast<double>(links->count(direction, encrypted));
            });
      }
    }
  }
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
  // Series of what is switched off are not exported.
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

}  // namespace tetrad::server
