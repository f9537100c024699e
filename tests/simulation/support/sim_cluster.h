// SPDX-License-Identifier: Apache-2.0
// A cluster of real nodes in the simulated world. A node's life can end at any event (crash); its
// disk stays and is given to its next life.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_io.h"
#include "base/task_group.h"
#include "replication/data_plane.h"
#include "replication/node.h"
#include "replication/rpc/shard_mailboxes.h"
#include "replication/shard.h"
#include "storage/engine/local_log_front.h"
#include "storage/engine/memory_disk.h"
#include "storage/engine/memory_store.h"
#include "storage/row/storage_key.h"
#include "tests/simulation/support/faulty_local_log.h"
#include "tests/simulation/support/faulty_store.h"
#include "tests/simulation/support/sim_network.h"
#include "tests/simulation/support/sim_world.h"
#include "tests/simulation/support/sum_plan.h"

namespace tetrad::simulation {

/// Lines to standard error with the simulated time when TETRAD_SIM_LOG is set.
class SimLogSink final : public base::LogSink {
 public:
  SimLogSink(const World& world, std::string node) : world_(world), node_(std::move(node)) {}
  void write(base::LogLevel, std::string_view component, std::string_view line) override {
    std::fprintf(stderr, "%10.6f %s %.*s: %.*s\n", static_cast<double>(world_.now_us()) / 1e6,
                 node_.c_str(), static_cast<int>(component.size()), component.data(),
                 static_cast<int>(line.size()), line.data());
  }
  base::LogLevel level() const override {
    return std::getenv("TETRAD_SIM_LOG") != nullptr ? base::LogLevel::kDebug : base::LogLevel::kOff;
  }
  void set_level(base::LogLevel) override {}

 private:
  const World& world_;
  const std::string node_;
};

/// How many seeds a test tries: `usual`, or that many times TETRAD_SIM_SEEDS when it is set.
inline uint64_t seed_count(uint64_t usual) {
  const char* factor = std::getenv("TETRAD_SIM_SEEDS");
  return factor == nullptr ? usual : usual * std::strtoull(factor, nullptr, 10);
}

/// A disk of a thousand bytes.
struct SimDiskGauge final : replication::DiskGauge {
  Result<replication::DiskSpace> measure() override {
    ++measured;
    if (used_bytes > 1000) return fail(ErrorCode::kIo, "the disk does not answer");
    return replication::DiskSpace{used_bytes, 1000 - used_bytes};
  }
  Result<uint64_t> measure_usable() override {
    const auto space = measure();
    if (!space) return std::unexpected(space.error());
    return space->usable_bytes;
  }
  uint64_t used_bytes = 100, measured = 0;
};

/// One node: what survives a crash, and its present life.
class SimNode {
 public:
  SimNode(World& world, SimNetwork& network, replication::NodeOptions options)
      : world_(world),
        network_(network),
        options_(std::move(options)),
        disk_(std::make_shared<storage::MemoryDisk>()) {}
  ~SimNode() { kill(); }

  replication::Endpoint endpoint() const {
    return replication::make_endpoint(options_.address, options_.internode_port);
  }
  replication::NodeOptions& options() { return options_; }
  /// From the next life on.
  storage::CommitLogSync sync = storage::CommitLogSync::kPeriodic;
  int64_t sync_period_us = storage::StoreOptions().sync_period_us;
  /// From the next life on: that a page of a read looks at.
  uint64_t read_keys_max = 1'000'000;
  /// The stores are RocksDB's, over files in memory, not the model's. They know no power cut.
  bool on_rocks = false;
  /// From the next life on: which indexes tables have.
  replication::ClaimMakers claim_makers;
  /// From the next life on: which views tables have.
  replication::ViewMakersOf view_makers;
  /// From the next life on: how long its loops have worked; null: they are always busy.
  replication::HeatRunner::BusyUs busy_us;
  replication::DataPlaneOptions data_options;
  SimDiskGauge disk_gauge;
  /// Of the disk under a store, and under the local log; at any moment.
  StoreFaults& faults(uint32_t store) { return store_faults_[store]; }
  StoreFaults log_faults, hint_log_faults;
  /// How far the wall clock of a life may be off; each life's is another. 0: it stays as it is.
  int64_t clock_skew_max_us = 1'000'000;
  SimClock& clock() { return clock_; }
  World& world() { return world_; }
  bool is_up() const { return life_ != nullptr; }
  /// Every shard of it.
  bool is_ready() const {
    return life_ && life_->node->is_ready() && life_->shards_ready + 1 == options_.shard_count;
  }
  replication::ReplicationNode& node() { return *life_->node; }
  replication::DataPlane& data() { return *life_->shards.front()->data; }
  /// Shards of one node run in the one thread of the world, each as events of its own.
  uint32_t shard_count() const { return options_.shard_count; }
  replication::DataPlane& data(uint32_t shard) { return *life_->shards.at(shard)->data; }
  replication::MetaService& meta(uint32_t shard) {
    auto* const other = life_->shards.at(shard)->replication.get();
    return other == nullptr ? static_cast<replication::MetaService&>(life_->node->meta())
                            : other->meta();
  }
  base::Reactor& reactor(uint32_t shard) { return *life_->shards.at(shard)->reactor; }
  base::Reactor& reactor() { return reactor(0); }
  storage::Store& store(uint32_t number) { return *life_->stores.at(number); }
  storage::LocalLog& local_log() { return *life_->shards.front()->log; }
  replication::MetaSnapshot state() { return node().meta().snapshot(); }
  const std::optional<Error>& fatal() const { return fatal_; }

  /// Begins a life. From outside of this node's events.
  void start() {
    kill();
    dead_.reset();
    fatal_.reset();
    life_ = std::make_unique<Life>();
    Life& life = *life_;
    if (clock_skew_max_us != 0) {
      const auto range_us = static_cast<uint64_t>(2 * clock_skew_max_us);
      clock_.set_offset_us(static_cast<int64_t>(world_.random().below(range_us)) -
                           clock_skew_max_us);
    }
    life.pool = std::make_unique<SimIoPool>(world_);
    std::vector<base::Reactor*> reactors;
    for (uint32_t i = 0; i < options_.shard_count; ++i) {
      auto shard = std::make_unique<Shard>();
      shard->reactor = std::make_unique<SimReactor>(world_, clock_);
      shard->random = std::make_unique<base::Random>(world_.random().next());
      shard->transport = std::make_unique<SimTransport>(network_, endpoint());
      reactors.push_back(shard->reactor.get());
      life.shards.push_back(std::move(shard));
    }
    Shard& main = *life.shards.front();
    network_.listen(endpoint(), *main.transport, *main.reactor);
    life.mailboxes = std::make_unique<replication::ShardMailboxes>(reactors);
    main.log = std::make_unique<FaultyLocalLog>(
        storage::make_memory_local_log(disk_, *main.reactor), log_faults, *main.reactor);
    main.hint_log = std::make_unique<FaultyLocalLog>(
        storage::make_memory_local_log(disk_, *main.reactor, "hints"), hint_log_faults,
        *main.reactor);
    life.factory = factory();
    for (uint32_t i = 0; i < options_.store_count; ++i) {
      base::Reactor& reactor = *reactors[i % options_.shard_count];
      auto store = open_store(*life.factory, i, reactor, *life.pool);
      life.stores.push_back(std::make_unique<FaultyStore>(std::move(store), faults(i), reactor));
    }
    replication::NodeOptions options = options_;
    options.boot_id = "machine" + std::to_string(boots_);  // its SimClock outlives the node
    options.start_number = ++starts_;
    options.nonce = ++nonces_;
    options.store_lost = [this](uint32_t store) { store_lost(store); };
    options.fatal = [this](const Error& error) { fatal_ = error; };
    options.renew_store = [this](uint32_t store) { renew(store); };
    options.forward = forward_from(0);
    auto node = replication::ReplicationNode::make(environment_of(0), std::move(options));
    if (!node) throw std::runtime_error(node.error().message);
    life.node = std::move(*node);
    life.mailboxes->deliver_to(0, [rpc = &life.node->rpc()](replication::ShardMessage message) {
      rpc->receive_forwarded(std::move(message));
    });
    for (uint32_t i = 1; i < options_.shard_count; ++i) start_shard(i);
    make_data(0, life.node->rpc(), life.node->meta(), life.node->fences(), life.node->cleanup(),
              life.node->changes(), life.node->behind(), life.node->paxos_keys());
    for (uint32_t i = 0; i < options_.store_count; ++i) {
      life.stores[i]->on_status([&life, i](const storage::StoreStatus& status) {
        life.node->membership().set_store_state(i, status.state);
      });
    }
    life.node->start();
  }
  /// The process is killed: nothing written is lost. From outside of this node's events.
  void kill() {
    is_cut_ = is_cut_ && !has_noted_losses();
    life_.reset();
  }
  /// The machine loses power.
  void power_cut() {
    life_.reset();
    disk_->lose_unsynced(world_.random());
    ++boots_;
    is_cut_ = true;
  }
  /// The process is killed, and the disk has lost what was not synced: the machine knows of no cut.
  void kill_and_lose() {
    life_.reset();
    disk_->lose_unsynced(world_.random());
  }
  /// A copy of its disk, of a node that is down; and that copy in its place.
  struct DiskCopy {
    storage::MemoryDisk::Impl content;
    uint64_t starts = 0;
  };
  DiskCopy copy_disk() const { return {disk_->impl(), starts_}; }
  void put_back(const DiskCopy& copy) {
    life_.reset();
    disk_->impl() = copy.content;
    starts_ = copy.starts;
  }
  /// One of its stores lacks what a power cut took.
  bool is_behind() {
    for (auto& shard : life_->shards)
      if (shard->data->behind().any()) return true;
    return false;
  }
  /// A new disk: the next life is a new node.
  void wipe() {
    life_.reset();
    dead_.reset();
    disk_ = std::make_shared<storage::MemoryDisk>();
    rocks_.reset();
    is_cut_ = false;
  }
  /// What a store holds, also of a node that is down. With RocksDB the world goes on meanwhile.
  Result<storage::ReadResult> peek(uint32_t number, storage::ReadCommand command) {
    std::optional<Result<storage::ReadResult>> answer;
    const auto take = [&](Result<storage::ReadResult> result) { answer = std::move(result); };
    if (on_rocks) {
      if (!is_up() && !dead_) dead_ = std::make_unique<Dead>(*this);
      (is_up() ? life_->stores.at(number)->inner() : *dead_->stores.at(number))
          .read(std::move(command), base::kNoDeadline, take);
      world_.run_until([&] { return answer.has_value(); }, 1'000'000);
    } else {
      SimReactor reactor(world_, clock_);
      SimIoPool pool(world_);
      open_store(*factory(), number, reactor, pool)
          ->read(std::move(command), base::kNoDeadline, take);
    }
    if (!answer) return fail(ErrorCode::kServerError, "no answer");
    return std::move(*answer);
  }
  /// Half of what a store holds is gone, and it has found out. On the model store.
  void rot(uint32_t store) {
    auto& data = disk_->impl().areas.at("store " + folder_of(store)).data;
    Bytes own;
    base::ByteWriter(own).u32(storage::kStoreIncarnation.value);
    std::erase_if(data, [&](const auto& entry) {
      return !entry.first.starts_with(own) && world_.random().one_in(2);
    });
    faults(store).rotten = true;
    faults(store).state = storage::StoreState::kDamaged;
  }
  uint64_t stores_renewed() const { return stores_renewed_; }
  /// Runs a task until the node's life ends.
  void spawn(Task<void> task) { life_->tasks.spawn(std::move(task)); }

 private:
  struct Shard {
    std::unique_ptr<SimReactor> reactor;
    std::unique_ptr<base::Random> random;
    std::unique_ptr<SimTransport> transport;
    std::unique_ptr<storage::LocalLog> log, hint_log;
    std::unique_ptr<replication::ReplicationShard> replication;  // null: the first
    std::unique_ptr<replication::DataPlane> data;
  };
  struct Life {
    ~Life() {  // users before what they use, over all shards
      tasks.destroy_all();
      for (auto& shard : shards) shard->data.reset();
      for (auto& shard : shards) shard->replication.reset();
      node.reset();
    }
    base::MetricsRegistry metrics;
    std::unique_ptr<SimIoPool> pool;
    std::vector<std::unique_ptr<Shard>> shards;
    std::unique_ptr<replication::ShardMailboxes> mailboxes;
    std::shared_ptr<storage::StoreFactory> factory;
    std::vector<std::unique_ptr<FaultyStore>> stores;
    std::unique_ptr<replication::ReplicationNode> node;
    uint32_t shards_ready = 0;  // but the first
    base::TaskGroup tasks;      // destroyed before what they use
  };

  /// The stores of a node that is down, for who looks at them.
  struct Dead {
    explicit Dead(SimNode& node) : reactor(node.world_, node.clock_), pool(node.world_) {
      factory = node.factory();
      for (uint32_t i = 0; i < node.options_.store_count; ++i)
        stores.push_back(node.open_store(*factory, i, reactor, pool));
    }
    SimReactor reactor;
    SimIoPool pool;
    std::shared_ptr<storage::StoreFactory> factory;
    std::vector<std::unique_ptr<storage::Store>> stores;
  };

  std::shared_ptr<storage::StoreFactory> factory() {
    storage::StoreOptions options;
    options.sync = sync;
    options.sync_period_us = sync_period_us;
    options.read_keys_max = read_keys_max;
    if (!on_rocks) return storage::make_memory_store_factory(disk_, options);
    if (rocks_ == nullptr) {
      options.in_memory_files = true;
      options.block_cache_bytes = 1 << 20;
      options.write_buffer_bytes = 1 << 20;
      rocks_ = storage::make_rocks_store_factory(options, Logger());
    }
    return rocks_;
  }
  static std::string folder_of(uint32_t store) { return "/store" + std::to_string(store); }
  /// As the server does: the process begins anew without what the store held.
  void renew(uint32_t store) {
    world_.schedule(world_.now_us(), [this, store] {
      life_.reset();
      disk_->impl().areas.erase("store " + folder_of(store));
      faults(store).heal();
      ++stores_renewed_;
      start();
    });
  }
  std::unique_ptr<storage::Store> open_store(storage::StoreFactory& from, uint32_t number,
                                             base::Reactor& reactor, base::IoPool& pool) {
    auto store = from.open(folder_of(number), reactor, pool);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }

  replication::NodeEnvironment environment_of(uint32_t shard) {
    Shard& own = *life_->shards[shard];
    std::vector<storage::Store*> stores;
    for (uint32_t i = 0; i < options_.store_count; ++i)
      stores.push_back(i % options_.shard_count == shard ? life_->stores[i].get() : nullptr);
    return {*own.reactor,
            *life_->pool,
            *own.random,
            *own.transport,
            *own.log,
            std::move(stores),
            Logger(std::make_shared<SimLogSink>(world_, endpoint()), ""),
            life_->metrics,
            SumPlan::read,
            &disk_gauge,
            own.hint_log.get(),
            losses(),
            whole(),
            nullptr,
            claim_makers,
            view_makers,
            busy_us};
  }
  std::vector<uint64_t> whole() const {
    std::vector<uint64_t> out;
    for (const auto& store : life_->stores)
      out.push_back(replication::whole_to_compare(store->recovered(), is_cut_));
    return out;
  }
  void store_lost(uint32_t store) {
    replication::PowerLoss loss;
    if (const auto& last = life_->stores[store]->recovered().last_sync)
      loss.since_us = last->time_us;
    Shard& shard = *life_->shards[store % options_.shard_count];
    (shard.replication == nullptr ? life_->node->behind() : shard.replication->behind())
        .lost(store, loss);
  }
  /// What the next life need not find out again.
  bool has_noted_losses() const {
    if (!life_) return false;
    for (uint32_t store = 0; store < options_.store_count; ++store) {
      const Shard& shard = *life_->shards[store % options_.shard_count];
      const auto& behind =
          shard.replication == nullptr ? life_->node->behind() : shard.replication->behind();
      if (!behind.is_noted(store)) return false;
    }
    return true;
  }
  /// All that came to the stores since the last sync that is known of; but for the first life.
  std::vector<std::optional<replication::PowerLoss>> losses() const {
    std::vector<std::optional<replication::PowerLoss>> out;
    if (!is_cut_) return out;
    for (const auto& store : life_->stores) {
      replication::PowerLoss& loss = out.emplace_back().emplace();
      if (const auto& last = store->recovered().last_sync) loss.since_us = last->time_us;
    }
    return out;
  }
  std::function<void(uint32_t, replication::ShardMessage)> forward_from(uint32_t shard) {
    return [mailboxes = life_->mailboxes.get(), shard](uint32_t to,
                                                       replication::ShardMessage message) {
      mailboxes->send(shard, to, std::move(message));
    };
  }
  void make_data(uint32_t shard, replication::RpcNode& rpc, replication::MetaService& meta,
                 const replication::Fences& fences, replication::StoreCleanup& cleanup,
                 replication::ChangeLogs& changes, replication::BehindStores& behind,
                 replication::PaxosKeys& paxos_keys) {
    replication::DataPlaneOptions options = data_options;
    options.shard = shard;
    options.shard_count = options_.shard_count;
    options.tell_store = [this](uint32_t store, replication::StoreFacts facts) {
      life_->node->membership().set_store_facts(store, std::move(facts));
    };
    if (shard == 0) options.batches = &life_->node->batches();
    auto data = replication::DataPlane::make(environment_of(shard), rpc, meta, life_->node->clock(),
                                             fences, cleanup, changes, behind, paxos_keys, options);
    if (!data) throw std::runtime_error(data.error().message);
    life_->shards[shard]->data = std::move(*data);
  }
  void start_shard(uint32_t number) {
    Life& life = *life_;
    Shard& shard = *life.shards[number];
    shard.log = storage::make_local_log_front(*life.shards[0]->log, *life.shards[0]->reactor,
                                              *shard.reactor);
    shard.hint_log = storage::make_local_log_front(*life.shards[0]->hint_log,
                                                   *life.shards[0]->reactor, *shard.reactor);
    replication::ShardOptions options;
    options.shard = number;
    options.forward = forward_from(number);
    options.ready = [&life] { ++life.shards_ready; };
    shard.replication = std::make_unique<replication::ReplicationShard>(
        environment_of(number), *life.node, std::move(options));
    life.mailboxes->deliver_to(
        number, [rpc = &shard.replication->rpc()](replication::ShardMessage message) {
          rpc->receive_forwarded(std::move(message));
        });
    make_data(number, shard.replication->rpc(), shard.replication->meta(),
              shard.replication->fences(), shard.replication->cleanup(),
              shard.replication->changes(), shard.replication->behind(),
              shard.replication->paxos_keys());
    shard.replication->start();
  }

  World& world_;
  SimClock clock_{world_};
  SimNetwork& network_;
  replication::NodeOptions options_;
  std::shared_ptr<storage::MemoryDisk> disk_;
  std::shared_ptr<storage::StoreFactory> rocks_;  // its files with it
  std::unique_ptr<Dead> dead_;
  std::map<uint32_t, StoreFaults> store_faults_;
  std::optional<Error> fatal_;
  uint64_t stores_renewed_ = 0;
  uint64_t boots_ = 0;   // of the machine
  uint64_t starts_ = 0;  // as the disk knows it
  uint64_t nonces_ = 0;
  bool is_cut_ = false;  // since the last life that came to note what it lacks
  std::unique_ptr<Life> life_;
};

/// Nodes 127.0.0.1, .2 and so on. All have the same seeds, as tools/up gives them: those of the
/// first nodes that are there at once, four at most.
class SimCluster {
 public:
  explicit SimCluster(uint64_t seed, size_t nodes = 0, uint32_t stores = 1, uint32_t shards = 1)
      : world_(seed), network_(world_) {
    for (size_t i = 1; i <= std::clamp<size_t>(nodes, 1, 4); ++i)
      seeds_.push_back(replication::make_endpoint("127.0.0." + std::to_string(i), 7000));
    for (size_t i = 0; i < nodes; ++i) add(stores, shards);
  }

  World& world() { return world_; }
  SimNetwork& network() { return network_; }
  size_t size() const { return nodes_.size(); }
  SimNode& operator[](size_t index) { return *nodes_.at(index); }

  SimNode& add(uint32_t stores = 1, uint32_t shards = 1) {
    replication::NodeOptions options;
    const size_t number = nodes_.size() + 1;
    options.address = "127.0.0." + std::to_string(number);
    options.rack = "rack" + std::to_string(number);
    options.store_count = stores;
    options.shard_count = shards;
    options.seeds = seeds_;
    options.merges.merge = false;  // but where merges are looked at: tables begin with many tablets
    nodes_.push_back(std::make_unique<SimNode>(world_, network_, std::move(options)));
    return *nodes_.back();
  }
  void start_all() {
    for (auto& node : nodes_) node->start();
  }
  /// Every node that is up knows every node of the cluster.
  bool is_formed() {
    size_t up = 0;
    for (auto& node : nodes_) up += node->is_up() ? 1 : 0;
    for (auto& node : nodes_) {
      if (!node->is_up()) continue;
      if (!node->is_ready() || node->state()->nodes.size() < up) return false;
    }
    return true;
  }
  bool form(int64_t at_most_us = 10'000'000) {
    start_all();
    return world_.run_until([this] { return is_formed(); }, at_most_us);
  }
  /// The node that leads the metadata group, if exactly one that is up thinks so.
  std::optional<size_t> leader() {
    std::optional<size_t> found;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i]->is_up() || !nodes_[i]->node().meta_group().is_leader()) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }
  /// Cuts both ways between two nodes.
  void cut(size_t a, size_t b) {
    network_.cut(nodes_[a]->endpoint(), nodes_[b]->endpoint());
    network_.cut(nodes_[b]->endpoint(), nodes_[a]->endpoint());
  }
  void isolate(size_t index) {
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (i != index) cut(i, index);
  }

 private:
  World world_;
  SimNetwork network_;
  std::vector<replication::Endpoint> seeds_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
};

}  // namespace tetrad::simulation
