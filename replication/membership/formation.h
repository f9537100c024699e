// SPDX-License-Identifier: Apache-2.0
// How a node comes to its cluster: it founds one, asks seeds to be taken in, or goes on with what
// its local log holds.
//
//   "node/h"  16 B host id, made at the first start
//   "node/c"  16 B cluster id, once the node has one
//   "node/s"  u32 stores of the node, written with the other two; absent in older logs: 1
//   "node/n"  cluster name, written with them; absent in older logs
//
//   join   := u8 version (1), 16 B cluster id (nil: none yet), cluster name, node, u64 token seed
//   answer := 16 B cluster id, varint count, (16 B host, endpoint)*
// A node without seeds, or whose only seed is itself, founds a cluster at once. One that is the
// first of several seeds does so when none of the others has a cluster. Everyone else asks its
// seeds until one takes it in.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/meta/meta_service_impl.h"

namespace tetrad::replication {

struct NodeIdentity {
  HostId host;
  Uuid cluster_id;      // nil: none yet
  bool stored = false;  // the host id is in the local log
};
/// The stores this node was first started with; unset: it has not been started yet. Errors: kIo,
/// kCorruption.
Result<std::optional<uint32_t>> load_store_count(storage::LocalLog& log);
/// What a node has is one cluster's, whose name does not change. Errors: kConfig, kIo.
Result<void> check_cluster_name(storage::LocalLog& log, std::string_view configured);
/// Errors: kIo, kCorruption.
Result<NodeIdentity> load_identity(storage::LocalLog& log, base::Random& random);

struct FormationOptions {
  NodeInfo self;
  std::vector<Endpoint> seeds;
  std::string cluster_name;
  int64_t retry_us = 50'000;
  /// How long the first of several seeds looks for a cluster of the others.
  int64_t look_for_others_us = 3'000'000;
  std::function<void(const Error&)> fatal;
  /// Once, when this node is a member as far as it can know: it has founded or joined the cluster,
  /// or is back and nobody it could ask has refused it. Not from the constructor.
  std::function<void()> member;
};

class Formation {
 public:
  /// Everything handed in outlives it.
  Formation(base::Reactor& reactor, base::Random& random, storage::LocalLog& log, RpcNode& rpc,
            MetaServiceImpl& meta, NodeIdentity identity, FormationOptions options, Logger logger);
  ~Formation();
  void start() { tasks_.spawn(run()); }

 private:
  Task<void> run();
  Task<Result<void>> found();
  Task<Result<bool>> ask_seeds(bool join);
  Task<Result<void>> store_identity();
  Task<void> keep_known();
  Task<void> serve_join(Bytes body, RpcContext context, RpcNode::Reply reply);
  Result<void> begin(Bytes answer);
  void confirm();
  Bytes join_request() const;
  Bytes join_answer() const;
  Result<void> check_state() const;
  bool known_as_is() const;
  bool known_to_leader() const;
  bool is_first_seed() const;
  std::vector<Endpoint> other_seeds() const;

  base::Reactor& reactor_;
  base::Random& random_;
  storage::LocalLog& log_;
  RpcNode& rpc_;
  MetaServiceImpl& meta_;
  NodeIdentity identity_;
  const FormationOptions options_;
  const Logger logger_;
  const uint64_t token_seed_;
  std::set<Endpoint> own_seeds_;  // seeds that turned out to be this node, by name perhaps
  bool cluster_seen_ = false;     // a seed has one, even if it could not take this node in yet
  bool confirmed_ = false;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
