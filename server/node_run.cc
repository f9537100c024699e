// SPDX-License-Identifier: Apache-2.0
// A node from its start to its end: when it serves, what it says of itself, why it stops, and what it
// does when everything is closed.
//
// The end, whatever its reason: stop() closes the port and lets requests end; the shards' threads
// are joined; run() then closes the stores, notes a good end in the log, closes the logs, and says
// how the node ended.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <pthread.h>

#include "server/node_impl.h"
#include "server/runtime/control_group.h"
#include "server/runtime/data_folder.h"
#include "server/runtime/heard_signals.h"
#include "server/runtime/loop_watch.h"
#include "server/runtime/running_mark.h"
#include "server/runtime/stop_signals.h"

namespace tetrad::server {

namespace {
constexpr const char* kOutOfCluster = "out of the cluster";
constexpr const char* kNobodyAdministers =
    "no superuser can log in: stop the node and start it with --init-superuser NAME (in a "
    "container: TETRAD_SUPERUSER and TETRAD_SUPERUSER_PASSWORD)";

/// Said of nodes that take clients without passwords where roles have them; "": there are none.
std::string open_door(const std::string& who, const cql::RoleSet& roles) {
  if (!roles.has_usable_superuser()) return "";
  return who +
         " asks nobody for a password, though a superuser of the cluster has one: who reaches it "
         "may do everything (option authenticator, the same for all nodes)";
}

/// A table of users with a masked column; empty: there is none.
std::string masked_table(const cql::SchemaSnapshot& schema) {
  for (const auto& [name, keyspace] : schema.keyspaces())
    for (const auto& [table_name, table] : keyspace->tables)
      for (const auto& column : table->columns())
        if (column.mask != nullptr) return fmt::format("{}.{}", name, table_name);
  return {};
}

}  // namespace

std::string NodeImpl::health() const {
  if (was_decommissioned_) return kOutOfCluster;
  if (stopping_) return "stopping";
  if (!serving_.has_begun()) return "starting";
  for (size_t i = 0; i < store_status_.size(); ++i) {
    const auto& [state, reason] = store_status_[i];
    // The first store that does not serve is what an operator has to look at.
    if (state != storage::StoreState::kServing)
      return fmt::format("store {} is {}: {}", i, storage::name_of(state), reason);
  }
  if (!lock_.is_in_place())
    return fmt::format(
        "the data directory {} was removed: what is written is lost when this node "
        "ends",
        options_.data_directory);
  return "serving";
}

/// Runs on the first shard, whose control lane has a connection to each member.
LinkFacts NodeImpl::link_facts() const {
  LinkFacts facts;
  for (const auto& shard : shards_) {
    const auto links = shard->transport->open_links();
    for (const auto direction :
         {replication::LinkDirection::kIn, replication::LinkDirection::kOut}) {
      facts.plain += links->count(direction, false);
      facts.encrypted += links->count(direction, true);
    }
  }
  for (const auto& [host, node] : node_->meta().snapshot()->nodes) {
    if (host == node_->self() || node.state == replication::NodeState::kRemoved) continue;
    const auto is_encrypted = shards_.front()->transport->is_encrypted(
        replication::make_endpoint(node.address, node.internode_port));
    if (!is_encrypted)
      facts.away_nodes.push_back(node.address);
    else if (!*is_encrypted)
      facts.plain_nodes.push_back(node.address);
  }
  // Host ids are random.
  std::ranges::sort(facts.plain_nodes);
  std::ranges::sort(facts.away_nodes);
  return facts;
}

/// Runs on the first shard, whose schema this is.
std::vector<std::string> NodeImpl::complaints(bool of_all) const {
  std::vector<std::string> lines;
  if (certificates_ != nullptr) lines = certificates_->complaints();
  if (audit_ != nullptr && !audit_->failure().empty()) {
    lines.push_back(fmt::format("the audit log cannot be written, statements are refused: {}",
                                audit_->failure()));
  }
  if (of_all && tls_.internode == replication::InternodeEncryption::kOptional)
    if (auto said = link_advice(link_facts()); !said.empty()) lines.push_back(std::move(said));
  const cql::QueryProcessor* const processor = shards_.front()->processor.get();
  if (processor == nullptr || processor->schema() == nullptr) return lines;
  const auto tell_open = [&](const std::string& who) {
    if (auto said = open_door(who, *processor->schema()->roles()); !said.empty())
      lines.push_back(std::move(said));
  };
  if (!has_authentication(options_))
    tell_open("this node");
  else if (serving_.has_begun() && !processor->schema()->roles()->has_usable_superuser())
    lines.emplace_back(kNobodyAdministers);
  if (of_all)
    for (const HostId host : node_->membership().open_hosts())
      tell_open(node_->meta().snapshot()->address_of(host));
  std::vector<std::string> unmasking;
  if (!options_.dynamic_data_masking_enabled) unmasking.emplace_back("this node");
  if (of_all)
    for (const HostId host : node_->membership().unmasking_hosts())
      unmasking.push_back(node_->meta().snapshot()->address_of(host));
  if (const auto table = unmasking.empty() ? "" : masked_table(*processor->schema());
      !table.empty())
    for (const std::string& who : unmasking)
      lines.push_back(
          fmt::format("{} shows the values of masked columns, as of {}, to every role "
                      "that may read them (option dynamic_data_masking_enabled, the "
                      "same for all nodes)",
                      who, table));
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
  serving_.on_change([this](bool serves) { node_->membership().set_takes_clients(serves); });
  if (const auto began = serving_.begin(addresses_.rpc, descriptors_.clients); !began)
    return fatal(began.error());
  // Once the node serves: the role goes through the metadata group, which may take its time.
  if (first_superuser_) {
    Shard& first = *shards_[0];
    first.connections->tasks.spawn(make_first_superuser(std::move(*first_superuser_), first.reactor,
                                                        first.random, *first.processor,
                                                        node_->meta(), logger_.named("auth")));
    first_superuser_.reset();
  } else {
    constexpr int64_t kRolesKnownUs = 3'000'000;  // a new node learns them from the others
    reactors_[0]->call_at(reactors_[0]->now_us() + kRolesKnownUs, [this] { look_at_logins(); });
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

/// Whether roles that can log in and what this node asks of clients fit each other.
void NodeImpl::look_at_logins() {
  const cql::SchemaPtr schema = shards_[0]->processor->schema();
  if (schema == nullptr) return;
  if (!has_authentication(options_)) {
    if (const auto said = open_door("this node", *schema->roles()); !said.empty())
      logger_.warn("{}", said);
  } else if (!schema->roles()->has_usable_superuser()) {
    logger_.warn("{}", kNobodyAdministers);
  }
}

/// Out of the cluster: by the operator's order, or while it was away. Of an order the mark is there
/// before anybody hears that the node has left, so that nothing starts it again.
void NodeImpl::leave() {
  const auto ordered = replication::is_decommissioned(*log_);
  if (!ordered) return fatal(ordered.error());
  was_decommissioned_ = *ordered;
  if (was_decommissioned_) {
    const auto marked =
        mark_decommissioned(options_.data_directory, node_->self(), reactors_[0]->wall_time_us());
    if (!marked) return fatal(marked.error());
  }
  is_out_ = true;
  stop(kOutOfCluster);
}

/// NodeOptions::let_clients_go. As after SIGTERM requests under way are answered, but while the others
/// still answer this node. Within a heartbeat, which who serves is part of: so that changes later.
bool NodeImpl::let_clients_go(bool leaves) {
  constexpr int64_t kLongestUs = 10'000'000;
  const auto serve = [this](bool serves) {
    reactors_[0]->post([this, serves] { (void)serving_.serve_clients(serves); });
  };
  if (!leaves) {
    clients_sent_away_us_.reset();
    if (std::exchange(clients_may_return_, false)) serve(true);  // it does not leave any more
    return true;
  }
  const base::MonotonicUs now_us = reactors_[0]->now_us();
  if (!clients_sent_away_us_) {
    clients_sent_away_us_ = now_us;
    if (serving_.serves_clients()) {
      logger_.info(
          "the node leaves the cluster and holds nothing any more: its clients go to others");
      clients_may_return_ = true;
      serve(false);
      return false;
    }
  }
  return connections_open() == 0 || now_us - *clients_sent_away_us_ > kLongestUs;
}

/// Everything is closed. One that was ordered to leave stays away; one that was replaced while it was
/// away comes back as a new node.
Result<NodeEnd> NodeImpl::end_out_of_cluster(bool was_signalled) {
  const std::string host = node_->self().to_string();
  const int64_t now_us = reactors_[0]->wall_time_us();
  if (was_decommissioned_) {
    logger_.warn(
        "this node was decommissioned and stays stopped; its data is of no more use "
        "host_id={} data_directory={}",
        host, options_.data_directory);
    return NodeEnd::kStopped;
  }
  TETRAD_TRY(const std::string aside,
             set_data_aside(options_.data_directory, node_->self(), now_us));
  logger_.warn(
      "this node was taken out of its cluster while it was away and starts {} as a new "
      "one; delete its old data when nothing is missing host_id={} set_aside={}",
      was_signalled ? "next time" : "again", host, aside);
  // Who was asked to stop does not start again by itself.
  return was_signalled ? NodeEnd::kStopped : NodeEnd::kTakenOut;
}

// On the first shard's thread, from any part that cannot go on.
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
  // First: who hears it asks other nodes from now on.
  node_->membership().say_goodbye();
  serving_.stop();
  finish_stop();
}

uint64_t NodeImpl::connections_open() const {
  uint64_t open = 0;
  for (const auto& shard : shards_) open += shard->connections->metrics.open_now();
  return open;
}

/// Waits for the requests in flight, for a second at most.
/// Also for what the node has said last to be on its way; and one that has left the cluster by order
/// stays for a moment, so that whoever waits for that (`tetractl decommission`) can read it from
/// /status.
void NodeImpl::finish_stop() {
  constexpr int64_t kDrainUs = 1'000'000, kGoodbyeUs = 20'000;
  AsioReactor& reactor = *reactors_[0];
  const int64_t waited_us = reactor.now_us() - stop_began_us_;
  const bool waits = connections_open() != 0 || waited_us < kGoodbyeUs || was_decommissioned_;
  if (waits && waited_us < kDrainUs && !fatal_error_) {
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

/// Of logrotate, of a terminal that closes, or of somebody who knows another server's signals.
void NodeImpl::hear(int signal) {
  if (signal != SIGHUP) {
    logger_.warn("{} has no meaning here and is ignored",
                 signal == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
    return;
  }
  if (audit_ != nullptr) audit_->reopen();
  logger_.info(
      "SIGHUP: {}; options are read at a start only, certificates when their files change",
      audit_ != nullptr ? "audit.log is opened anew" : "there is no audit log to open anew");
}

Result<NodeEnd> NodeImpl::run() {
  AsioReactor& reactor = *reactors_[0];
  // From here on a signal ends the node in an orderly way; a second one has no effect.
  StopSignals signals(reactor.context(),
                      [this](int signal) { stop(signal == SIGTERM ? "SIGTERM" : "SIGINT"); });
  const HeardSignals others(reactor.context(), [this](int signal) { hear(signal); });
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
  // Only a store that closed without an error has everything on disk.
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
  const bool was_signalled = signals.end() != 0;
  if (is_out_) return end_out_of_cluster(was_signalled);
  for (const uint32_t store : to_erase_) {
    TETRAD_TRY_VOID(erase_store(options_.data_directory, store));
    logger_.warn(
        "erased a damaged store; the node starts again and gets its data from others "
        "store={}",
        store);
  }
  // Who was asked to stop does not start again by itself.
  return to_erase_.empty() || was_signalled ? NodeEnd::kStopped : NodeEnd::kRenewed;
}

}  // namespace tetrad::server
