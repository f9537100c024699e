// SPDX-License-Identifier: Apache-2.0
// What the coordinator holds while it waits for the replicas of one read.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "replication/coordinator/coordinator_impl.h"
#include "replication/replica/replica_calls.h"

namespace tetrad::replication {

/// Answers on their way; shared by the callbacks of the replicas asked.
struct CoordinatorImpl::Gathering : std::enable_shared_from_this<Gathering> {
  storage::ReadCommand command;
  SetEpoch epoch;
  std::vector<StoreAddress> candidates;  // in the order they are asked
  size_t next = 0;                       // candidate
  size_t waited_for = 0;                 // those before it were asked when one more was asked
  // Replies that make it complete, where there are no quorums.
  size_t need = 1;
  bool digests = false;  // all but the first answer may be a digest
  base::Deadline deadline;
  TracePtr trace;
  // The request, encoded once for all nodes that are asked.
  Bytes encoded;

  /// While two sets are read, or where data centres count, what each set needs; none: any `need`
  /// replies.
  std::vector<ReadQuorum> quorums;
  std::vector<StoreAddress> failed_replicas;

  // In order of arrival; data[0] is compared with all the others.
  std::vector<storage::ReplicaReply> data;
  std::vector<std::pair<StoreAddress, DigestReply>> digest_replies;
  // What failed, by kind: it decides the client's error (read_error) and whether others are asked.
  size_t asked = 0, failed = 0, data_asked = 0, data_failed = 0;
  bool timed_out = false, overloaded = false, stale_schema = false, stale_epoch = false;
  bool behind = false, index_not_built = false;
  bool is_begun = false, is_over = false;  // the first are asked; it has been finished
  std::optional<Error> corruption;
  // True: complete. False: it cannot be any more.
  base::OneShot<bool> done;
  base::Reactor* reactor = nullptr;
  base::MonotonicUs timed_from_us = 0;  // 0: it is not timed
  // The timer that asks one more; 0: none runs.
  base::Reactor::TimerId speculation = 0;

  ~Gathering() {
    if (speculation != 0) reactor->cancel(speculation);
  }
  /// The first answer that was too large, if there is one.
  storage::ReadResult* withheld() {
    for (storage::ReplicaReply& reply : data)
      if (reply.result.withheld_bytes != 0) return &reply.result;
    return nullptr;
  }
  /// Of both kinds.
  size_t replies() const { return data.size() + digest_replies.size(); }
  std::vector<StoreAddress> answered() const {
    std::vector<StoreAddress> out;
    for (const auto& reply : data) out.push_back(reply.from);
    for (const auto& [from, reply] : digest_replies) out.push_back(from);
    return out;
  }
  /// Enough have answered, one of them with data.
  bool complete() const {
    if (data.empty()) return false;
    if (quorums.empty()) return replies() >= need;
    if (std::cmp_less(replies(), quorums.front().need.least())) return false;
    const std::vector<StoreAddress> from = answered();
    return std::ranges::all_of(quorums,
                               [&](const ReadQuorum& quorum) { return quorum.is_met_by(from); });
  }
  /// Not even with all replies that may still come.
  bool too_few() const {
    if (quorums.empty()) return asked - failed < need;
    std::vector<StoreAddress> left = candidates;
    std::erase_if(left, [this](const StoreAddress& replica) {
      return std::ranges::find(failed_replicas, replica) != failed_replicas.end();
    });
    return !std::ranges::all_of(quorums,
                                [&](const ReadQuorum& quorum) { return quorum.is_met_by(left); });
  }
  /// The replicas have another map: asking more of them is of no use.
  bool refused() const { return stale_schema || stale_epoch; }
  /// All that is asked for is asked for, and it cannot be enough. Looked at after each failure, and
  /// once all are asked: a store of this shard may fail while it is asked.
  void finish_if_hopeless() {
    if (complete()) return;
    const bool no_data = data.empty() && data_asked == data_failed;
    const bool all_came = is_begun && replies() + failed == asked;  // and the deadline, perhaps
    if (refused() || too_few() || no_data || all_came) finish(false);
  }
  /// Once; answers that come later are still noted, and change nothing.
  void finish(bool success) {
    is_over = true;
    if (speculation != 0) reactor->cancel(std::exchange(speculation, 0));
    done.setter().set(success);
  }
};

}  // namespace tetrad::replication
