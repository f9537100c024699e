// SPDX-License-Identifier: Apache-2.0
// Who votes and who learns, as pure values. Sets are sorted and single, so equal configurations
// have equal bytes. One server changes at a time (Raft §6); `outgoing` belongs to joint
// configurations, which are read and never made here.
#include "replication/meta/raft_configuration.h"

namespace tetrad::replication {
namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kIdBytes = 16;

using Servers = std::vector<RaftServerId>;

bool holds(const Servers& set, RaftServerId server) {
  return std::binary_search(set.begin(), set.end(), server);
}
void insert(Servers& set, RaftServerId server) {
  set.insert(std::lower_bound(set.begin(), set.end(), server), server);
}
void erase(Servers& set, RaftServerId server) {
  set.erase(std::lower_bound(set.begin(), set.end(), server));
}

void encode_servers(const Servers& set, base::ByteWriter& out) {
  out.varint(set.size());
  for (const RaftServerId server : set) out.raw(server.value.view());
}

Result<Servers> decode_servers(base::ByteReader& in) {
  TETRAD_TRY(const uint64_t count, in.read_varint());
  // Both bounds before memory is taken: a damaged count must not take any.
  if (count > kRaftServersMax || count > in.remaining() / kIdBytes) {
    return fail(ErrorCode::kCorruption, "raft configuration of {} servers in {} bytes", count,
                in.remaining());
  }
  Servers set;
  set.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const BytesView id, in.read_raw(kIdBytes));
    const RaftServerId server{Uuid::from_bytes(id)};
    if (!set.empty() && !(set.back() < server)) {
      return fail(ErrorCode::kCorruption, "raft configuration out of order");
    }
    set.push_back(server);
  }
  return set;
}

}  // namespace

bool RaftConfiguration::is_voter(RaftServerId server) const {
  return holds(voters, server) || holds(outgoing, server);
}

bool RaftConfiguration::is_learner(RaftServerId server) const { return holds(learners, server); }

std::vector<RaftServerId> RaftConfiguration::servers() const {
  Servers all = voters;
  all.insert(all.end(), outgoing.begin(), outgoing.end());
  all.insert(all.end(), learners.begin(), learners.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Result<RaftConfiguration> change_membership(const RaftConfiguration& configuration,
                                            RaftMembershipChange change) {
  using Kind = RaftMembershipChange::Kind;
  const RaftServerId server = change.server;
  if (!configuration.outgoing.empty()) {
    return fail(ErrorCode::kInvalid, "a joint raft configuration is in force");
  }
  const bool voter = holds(configuration.voters, server);
  const bool learner = holds(configuration.learners, server);
  RaftConfiguration next = configuration;
  if (change.kind != Kind::kAddLearner && !voter && !learner) {
    return fail(ErrorCode::kNotFound, "{} is not a raft member", server.to_string());
  }
  // Without its last voter the group could never decide anything again.
  if (voter && (change.kind == Kind::kDemote || change.kind == Kind::kRemove) &&
      configuration.voters.size() == 1) {
    return fail(ErrorCode::kInvalid, "{} is the only raft voter", server.to_string());
  }
  switch (change.kind) {
    case Kind::kAddLearner:
      if (voter || learner) {
        return fail(ErrorCode::kAlreadyExists, "{} is a raft member", server.to_string());
      }
      insert(next.learners, server);
      break;
    case Kind::kPromote:
      if (voter) {
        return fail(ErrorCode::kAlreadyExists, "{} is a raft voter", server.to_string());
      }
      erase(next.learners, server);
      insert(next.voters, server);
      break;
    case Kind::kDemote:
      if (learner) {
        return fail(ErrorCode::kAlreadyExists, "{} is a raft learner", server.to_string());
      }
      erase(next.voters, server);
      insert(next.learners, server);
      break;
    case Kind::kRemove:
      erase(voter ? next.voters : next.learners, server);
      break;
  }
  if (next.voters.size() > kRaftServersMax || next.learners.size() > kRaftServersMax) {
    return fail(ErrorCode::kLimit, "more than {} raft servers", kRaftServersMax);
  }
  return next;
}

void encode(const RaftConfiguration& configuration, base::ByteWriter& out) {
  out.u8(kVersion);
  encode_servers(configuration.voters, out);
  encode_servers(configuration.outgoing, out);
  encode_servers(configuration.learners, out);
}

Result<RaftConfiguration> decode_raft_configuration(base::ByteReader& in) {
  TETRAD_TRY(const uint8_t version, in.read_u8());
  if (version != kVersion) {
    return fail(ErrorCode::kCorruption, "raft configuration of version {}", version);
  }
  RaftConfiguration configuration;
  TETRAD_TRY(configuration.voters, decode_servers(in));
  TETRAD_TRY(configuration.outgoing, decode_servers(in));
  TETRAD_TRY(configuration.learners, decode_servers(in));
  if (configuration.voters.empty() && !configuration.outgoing.empty()) {
    return fail(ErrorCode::kCorruption, "raft configuration without voters");
  }
  // One role each.
  for (const RaftServerId server : configuration.learners) {
    if (configuration.is_voter(server)) {
      return fail(ErrorCode::kCorruption, "{} both votes and learns", server.to_string());
    }
  }
  return configuration;
}

}  // namespace tetrad::replication
