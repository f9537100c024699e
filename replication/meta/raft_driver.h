// SPDX-License-Identifier: Apache-2.0
// Runs the Raft core of the metadata group: gives it ticks and messages, writes what it wants
// written to the local log, sends what it wants sent, hands out what is committed.
//
//   "raft/h"               hard state
//   "raft/e" u64 index BE  entry
//   "raft/s"               varint size, snapshot description, image of the state
//   "raft/c"               u64: committed and applied up to here; saves a restarted node from
//                          forgetting what it has already said that it knows
// Each write of the core is one synced batch. A failed one ends the process. While one hangs for
// longer than an election takes, this server neither leads nor stands for election.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/log.h"
#include "base/reactor.h"
#include "replication/meta/raft_core.h"
#include "replication/rpc/rpc.h"
#include "storage/engine/local_log.h"

namespace tetrad::replication {

/// How the driver of a group keeps time and takes images.
struct RaftDriverOptions {
  Uuid cluster_id;
  uint64_t seed = 0;
  int64_t tick_us = 100'000;
  uint64_t snapshot_every = 1000;  // applied entries
};

/// What the driver calls. All of them run outside of the core.
struct RaftDriverHooks {
  /// An error ends the process: a node that left a committed command out would go on with another
  /// state than the others.
  std::function<Result<void>(RaftIndex, BytesView command)> apply;
  /// After a batch of apply() calls, or entries that carry no command, and once what install() has
  /// taken is durable.
  std::function<void(RaftIndex applied)> applied;
  std::function<Bytes()> image;  // of the state as of the last apply()
  std::function<Result<void>(BytesView image, RaftIndex)> install;
  std::function<void(const RaftRoleChange&)> role_changed;
  /// A node that was removed: once it is in no configuration here either, it has nothing to say. One
  /// that was given up, and lives, may yet be elected by others that were. Null: there is none.
  std::function<bool(RaftServerId)> is_removed;
  /// The disk failed or holds nonsense: does not return to normal work.
  std::function<void(const Error&)> fatal;
};

/// Runs a RaftCore over the local log and messages between nodes. Belongs to the first shard's
/// thread.
class RaftDriver {
 public:
  /// What the local log holds of the group; unset: nothing. Errors: kCorruption, kIo.
  struct Stored {
    RaftStored raft;
    Bytes image;
  };
  static Result<std::optional<Stored>> load(storage::LocalLog& log);

  /// What the local log of a new group's first member holds.
  static std::vector<storage::LocalLog::Operation> founding_state(
      const RaftConfiguration& configuration);

  /// Everything handed in outlives it. start() follows.
  RaftDriver(base::Reactor& reactor, storage::LocalLog& log, RpcNode& rpc,
             RaftDriverOptions options, RaftDriverHooks hooks, Logger logger);
  ~RaftDriver();
  RaftDriver(const RaftDriver&) = delete;
  RaftDriver& operator=(const RaftDriver&) = delete;

  /// Installs the stored image, applies what is known to be committed, begins to tick. A group of
  /// this one voter elects it at once. Errors: kCorruption.
  Result<void> start(Stored stored);

  RaftCore& core() { return *core_; }
  const RaftCore& core() const { return *core_; }
  /// As RaftCore::propose().
  Result<RaftPosition> propose(Bytes command);
  Result<RaftPosition> change_configuration(RaftMembershipChange change);
  Result<void> transfer_leadership(RaftServerId to);
  Result<void> take_over();
  RaftIndex applied_index() const { return applied_; }
  /// The entry at applied_index(), for other nodes to learn from; of their own, to learn from them:
  /// RaftCore::learn_committed().
  RaftPosition applied_position() const {
    return {core_->log().term_at(applied_).value_or(0), applied_};
  }
  void learn_committed(RaftPosition position, RaftServerId from);
  /// `done` once all that is applied now would be applied again after a restart.
  void sync_applied(std::function<void()> done);

 private:
  /// Held while the driver lives; callbacks look whether it does.
  struct Alive {};
  void on_message(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  void tick();
  /// The oldest write of the core has been under way for longer than an election takes.
  bool is_disk_hung() const;
  void say_refused(const Endpoint& from, const Error& error);
  void drain();
  void write(RaftPersist persist);
  void apply(std::vector<RaftEntry> entries);
  void send(const RaftMessage& message);
  void send_image(RaftSnapshotSend send);
  void maybe_take_image();
  void write_batch(std::vector<storage::LocalLog::Operation> batch, bool sync,
                   std::function<void()> done);
  void fail_fatally(const Error& error);

  base::Reactor& reactor_;
  storage::LocalLog& log_;
  RpcNode& rpc_;
  const RaftDriverOptions options_;
  const RaftDriverHooks hooks_;
  const Logger logger_;
  std::optional<RaftCore> core_;
  RaftIndex first_stored_ = 1, last_stored_ = 0;  // entries in the local log
  RaftIndex applied_ = 0;
  RaftIndex image_asked_ = 0;  // index of the newest image taken or being written
  std::deque<base::MonotonicUs> writing_since_us_;  // the core's writes that are under way
  bool draining_ = false;
  bool failed_ = false;
  Bytes received_image_;                              // beside the message that is being handled
  std::optional<base::MonotonicUs> contradicted_us_;  // when that was logged
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
};

}  // namespace tetrad::replication
