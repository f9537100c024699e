// SPDX-License-Identifier: Apache-2.0
// What the coordinator holds while it waits for the replicas of one read.
#pragma once

#include <algorithm>

#include "replication/coordinator/coordinator_impl.h"
#include "replication/replica/replica_calls.h"

namespace tetrad::replication {

/// Answers on their way; shared by the callbacks of the replicas asked.
struct CoordinatorImpl::Gathering {
  storage::ReadCommand command;
  SetEpoch epoch;
  std::vector<StoreAddress> candidates;  // in the order they are asked
  size_t next = 0;                       // candidate
  size_t need = 1;
  bool digests = false;  // all but the first answer may be a digest
  base::Deadline deadline;
  TracePtr trace;
  Bytes encoded;

  /// While two sets are read each has its own number; none: any `need` replies.
  struct Quorum {
    std::vector<StoreAddress> set;
    size_t need;
    bool has(const StoreAddress& replica) const {
      return std::find(set.begin(), set.end(), replica) != set.end();
    }
  };
  std::vector<Quorum> quorums;
  std::vector<StoreAddress> failed_replicas;

  std::vector<storage::ReplicaReply> data;
  std::vector<std::pair<StoreAddress, DigestReply>> digest_replies;
  size_t asked = 0, failed = 0, data_asked = 0, data_failed = 0;
  bool timed_out = false, overloaded = false, stale_schema = false, stale_epoch = false;
  bool behind = false, index_not_built = false;
  std::optional<Error> corruption;
  base::OneShot<bool> done;
  base::Reactor* reactor = nullptr;
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
  size_t replies() const { return data.size() + digest_replies.size(); }
  size_t replies_of(const Quorum& quorum) const {
    const auto from_data = std::count_if(data.begin(), data.end(),
                                         [&](const auto& reply) { return quorum.has(reply.from); });
    const auto digests_of =
        std::count_if(digest_replies.begin(), digest_replies.end(),
                      [&](const auto& reply) { return quorum.has(reply.first); });
    return static_cast<size_t>(from_data + digests_of);
  }
  bool complete() const {
    if (data.empty()) return false;
    if (quorums.empty()) return replies() >= need;
    return std::all_of(quorums.begin(), quorums.end(),
                       [this](const Quorum& quorum) { return replies_of(quorum) >= quorum.need; });
  }
  /// Not even with all replies that may still come.
  bool too_few() const {
    if (quorums.empty()) return asked - failed < need;
    return std::any_of(quorums.begin(), quorums.end(), [this](const Quorum& quorum) {
      const auto left = std::count_if(candidates.begin(), candidates.end(), [&](const auto& c) {
        return quorum.has(c) && std::find(failed_replicas.begin(), failed_replicas.end(), c) ==
                                    failed_replicas.end();
      });
      return static_cast<size_t>(left) < quorum.need;
    });
  }
  /// The replicas have another map: asking more of them is of no use.
  bool refused() const { return stale_schema || stale_epoch; }
  /// All that is asked for is asked for, and it cannot be enough. Looked at after each failure, and
  /// once all are asked: a store of this shard may fail while it is asked.
  void finish_if_hopeless() {
    if (complete()) return;
    const bool no_data = data.empty() && data_asked == data_failed;
    if (refused() || too_few() || no_data) finish(false);
  }
  void finish(bool success) {
    if (speculation != 0) reactor->cancel(std::exchange(speculation, 0));
    done.setter().set(success);
  }
};

}  // namespace tetrad::replication
