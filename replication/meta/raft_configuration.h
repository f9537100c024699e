// SPDX-License-Identifier: Apache-2.0
// Who votes and who learns in a Raft group, and how a majority of them is counted.
//
//   configuration := u8 version (1) | ids voters | ids outgoing | ids learners
//   ids           := varint count | count times 16 bytes, strictly ascending
// The bytes are in log entries and snapshots: never renumber.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/byte_io.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

namespace tetrad::replication {

/// A server of the group. A node that was removed comes back under a new id.
using RaftServerId = HostId;
using RaftTerm = uint64_t;
using RaftIndex = uint64_t;

/// Voters decide, learners only follow. With `outgoing` not empty the configuration is a joint one:
/// a majority of both sets is needed. Changes made here move one server at a time and leave
/// `outgoing` empty; the type, its encoding and the counting have room for more.
/// All three lists ascend without repetition; a learner is in neither of the other two.
struct RaftConfiguration {
  std::vector<RaftServerId> voters;
  std::vector<RaftServerId> outgoing;
  std::vector<RaftServerId> learners;

  friend bool operator==(const RaftConfiguration&, const RaftConfiguration&) = default;

  bool empty() const { return voters.empty() && outgoing.empty() && learners.empty(); }
  bool is_voter(RaftServerId server) const;
  bool is_learner(RaftServerId server) const;
  bool contains(RaftServerId server) const { return is_voter(server) || is_learner(server); }
  /// Voters of both sets and learners, ascending, each once.
  std::vector<RaftServerId> servers() const;

  /// True when a majority (of each set) satisfies the predicate. False without voters.
  template <class Predicate>
  bool majority(Predicate predicate) const {
    const auto holds = [&](const std::vector<RaftServerId>& set) {
      const auto count = static_cast<size_t>(std::count_if(set.begin(), set.end(), predicate));
      return count >= set.size() / 2 + 1;
    };
    return !voters.empty() && holds(voters) && (outgoing.empty() || holds(outgoing));
  }

  /// The largest value that a majority (of each set) has reached. 0 without voters.
  template <class ValueOf>
  uint64_t majority_value(ValueOf value_of) const {
    const auto reached = [&](const std::vector<RaftServerId>& set) {
      std::vector<uint64_t> values;
      values.reserve(set.size());
      for (const RaftServerId server : set) values.push_back(value_of(server));
      const size_t nth = set.size() / 2;
      std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(nth), values.end(),
                       std::greater<>());
      return values[nth];
    };
    if (voters.empty()) return 0;
    const uint64_t value = reached(voters);
    return outgoing.empty() ? value : std::min(value, reached(outgoing));
  }
};

/// One step: a server becomes a learner, a learner a voter, a voter a learner, or a member leaves.
struct RaftMembershipChange {
  /// What a change of members does; one server at a time.
  enum class Kind : uint8_t { kAddLearner, kPromote, kDemote, kRemove };
  Kind kind;
  RaftServerId server;
};

/// The configuration after one change. Errors: kAlreadyExists (it is so already), kNotFound (no
/// such member), kInvalid (would leave no voter; joint), kLimit (too many servers). Pure.
Result<RaftConfiguration> change_membership(const RaftConfiguration& configuration,
                                            RaftMembershipChange change);

/// At most this many servers in one configuration, each list counted for itself.
inline constexpr size_t kRaftServersMax = 4096;

void encode(const RaftConfiguration& configuration, base::ByteWriter& out);
/// Errors: kCorruption.
Result<RaftConfiguration> decode_raft_configuration(base::ByteReader& in);

}  // namespace tetrad::replication
