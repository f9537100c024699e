// SPDX-License-Identifier: Apache-2.0
// How a node comes to its cluster: it founds one, asks seeds to be taken in, or goes on with what
// its local log holds. Its data belongs to one cluster: an answer of another cluster, or one older
// than what the node knows, neither ends it nor changes its cluster.
//
//   "node/h"  16 B host id, made at the first start
//   "node/c"  16 B cluster id, once the node has one
//   "node/s"  u32 stores of the node, written with the other two; absent in older logs: 1
//   "node/n"  cluster name, written with them; absent in older logs
//   "node/d"  the operator has ordered this node to leave for good
//   "node/t"  i64 own time of the node (us since 1970), each second while its clock is good
//
//   join   := u8 version (1), 16 B cluster id (nil: none yet), cluster name, node, u64 token seed
//   answer := 16 B cluster id, varint count, (16 B host, endpoint)*
// A node without seeds founds a cluster at once. One with seeds asks all of them at once who they
// are (Verb::kIdentify), until one is of a cluster that takes it in, or next_formation_step() lets
// it found one. A seed that stays silent is waited for, and named in the log. The founder stores
// what it is and the first state of its group in one synced batch before anybody hears of it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/membership/introduction.h"
#include "replication/meta/meta_service_impl.h"

namespace tetrad::replication {

/// Who this node is, from its local log or made anew.
struct NodeIdentity {
  HostId host;
  Uuid cluster_id;      // nil: none yet
  bool stored = false;  // the host id is in the local log
};
/// An id as the local log and answers have it, 16 bytes. Errors: kCorruption.
Result<Uuid> uuid_of(BytesView bytes);
/// The stores this node was first started with; unset: it has not been started yet. Errors: kIo,
/// kCorruption.
Result<std::optional<uint32_t>> load_store_count(storage::LocalLog& log);
/// What a node has is one cluster's, whose name does not change. Errors: kConfig, kIo.
Result<void> check_cluster_name(storage::LocalLog& log, std::string_view configured);
/// Whether the operator has ordered this node to leave for good.
Result<bool> is_decommissioned(storage::LocalLog& log);
/// Until it is on disk. Errors: kIo.
Task<Result<void>> note_decommission(storage::LocalLog& log, bool leaves);
/// Errors: kIo, kCorruption.
Result<NodeIdentity> load_identity(storage::LocalLog& log, base::Random& random);

/// What a node knows of its cluster before it is a member.
struct FormationOptions {
  NodeInfo self;
  std::vector<Endpoint> seeds;
  std::string cluster_name;
  /// The operator's word that no seed has a cluster, also those that are silent.
  bool found = false;
  int64_t retry_us = 50'000;
  std::function<void(const Error&)> fatal;
  /// Once, when this node is a member as far as it can know: it has founded or joined the cluster,
  /// or is back and nobody it could ask has refused it. Not from the constructor.
  std::function<void()> member;
  /// Its own cluster has taken this node out while it was away. Not from the constructor.
  std::function<void()> removed;
  /// Why this node and the one there refuse each other; "": it is not known. Null: it never is.
  std::function<std::string(const Endpoint&)> refusal = nullptr;
  /// Whether something takes connections there. Null: it is not known.
  std::function<bool(const Endpoint&)> is_reached = nullptr;
};

/// Makes the node a member of a cluster: founds one, joins one, or comes back to its own. Belongs
/// to the first shard's thread; its task ends when the node is a member.
class Formation {
 public:
  /// Everything handed in outlives it.
  Formation(base::Reactor& reactor, base::Random& random, storage::LocalLog& log, RpcNode& rpc,
            MetaServiceImpl& meta, NodeIdentity identity, FormationOptions options, Logger logger);
  ~Formation();
  void start() { tasks_.spawn(run()); }
  /// Seeds of the options that are of another cluster than this node, as they have said last, with
  /// the name and id of theirs.
  const std::map<Endpoint, std::string>& foreign_seeds() const { return foreign_seeds_; }
  /// The options name seeds, and this node is none of them: it is meant to be with others.
  bool is_told_to_join() const {
    return !options_.seeds.empty() && other_seeds().size() == options_.seeds.size();
  }

 private:
  /// Between two lines of the log that say the same of the same node.
  static constexpr int64_t kSayAgainUs = 60'000'000;
  /// How asking to be taken in, or to be known again, has ended.
  enum class Asked : uint8_t { kNot, kTakenIn, kRemoved, kIsCopy };

  Task<void> run();
  Task<Result<void>> become_member(bool has_group);
  Task<Result<void>> store_host();
  Task<Result<void>> found();
  Task<Result<bool>> join_or_found();
  Task<std::vector<SeedAnswer>> identify_seeds();
  Task<SeedAnswer> identify(Endpoint seed);
  /// What is known of a seed after it has been asked.
  void learn_seed(SeedAnswer& answer);
  Task<Result<Bytes>> ask(Endpoint seed, Verb verb, Bytes body);
  Task<Result<bool>> join_through(std::vector<Endpoint> members, bool all_answered);
  Task<Result<void>> begin_joined(Uuid cluster_id);
  /// Asks seeds that are no members who they are, each at most once a minute.
  Task<void> look_at_seeds();
  void note_seed(const Endpoint& seed, const Introduction& said);
  Task<Asked> ask_to_be_known();
  Task<Result<void>> write_identity(std::vector<storage::LocalLog::Operation> with);
  Task<void> keep_known();
  Task<void> serve_join(Bytes body, RpcContext context, RpcNode::Reply reply);
  void serve_identify(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  /// Answers to who asks go to another member: the log of who knows both says so.
  void note_mistaken(const Endpoint& from, HostId asks);
  Introduction introduction(HostId to) const;
  Result<void> learn_members(BytesView answer);
  Task<void> catch_up();
  void confirm();
  void be_removed(const std::string& by);
  /// Within two seconds, then every ten.
  void log_waiting(const std::string& what_for, bool needs_order = false);
  /// Skips a seed that cannot help now for a while; logs the reason once a minute.
  void leave_alone(const Endpoint& seed, const std::string& why);
  Bytes join_request() const;
  Bytes join_answer() const;
  Result<void> check_state() const;
  bool known_as_is() const;
  bool known_to_leader() const;
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
  /// Until when a seed is not asked, and when that was last logged.
  struct LeftAlone {
    base::MonotonicUs until_us = 0, said_us = 0;
  };
  std::map<Endpoint, LeftAlone> left_alone_;
  std::map<Endpoint, std::string> foreign_seeds_;
  std::map<Endpoint, base::MonotonicUs> looked_at_us_;        // seeds
  std::map<Endpoint, base::MonotonicUs> mistaken_said_us_;    // by the place of a member
  base::MonotonicUs waiting_since_us_ = 0, next_log_us_ = 0;  // 0: it waits for nobody
  MetaIndex members_applied_;  // what a member had applied when it was asked; 0: none was
  std::string copy_of_;        // what was said to a copy
  base::MonotonicUs is_copy_since_us_ = 0;  // 0: nobody has said so
  bool host_stored_ = false;
  bool confirmed_ = false, removed_ = false;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
