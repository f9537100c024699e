// SPDX-License-Identifier: Apache-2.0
#include "replication/membership/introduction.h"

#include <algorithm>

#include "base/byte_io.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kFoundOrdered = 1;
constexpr uint64_t kSeedsMax = 256;

Result<Uuid> read_uuid(base::ByteReader& in) {
  TETRAD_TRY(const BytesView bytes, in.read_raw(16));
  return Uuid::from_bytes(bytes);
}

void add(std::string& text, std::string_view more) {
  if (!text.empty()) text += "; ";
  text += more;
}

/// Why the answer of a seed that has no cluster does not let this node found one; "" when it does.
std::string hindrance(const Introduction& self, const SeedAnswer& answer) {
  if (!answer.said && !answer.refusal.empty())
    return fmt::format("this node and seed {} do not speak: {}", answer.seed, answer.refusal);
  if (!answer.said && answer.is_reached)
    return fmt::format(
        "seed {} takes connections, but no answer comes here (it hangs, or "
        "broadcast_address is not this node's own)",
        answer.seed);
  if (!answer.said) return fmt::format("seed {} does not answer", answer.seed);
  const Introduction& said = *answer.said;
  if (said.cluster_name != self.cluster_name)
    return fmt::format("seed {} has the cluster_name '{}', not '{}'", answer.seed,
                       said.cluster_name, self.cluster_name);
  if (said.seeds != self.seeds)
    return fmt::format("seed {} was given other seeds ({}, here {})", answer.seed,
                       fmt::join(said.seeds, ","), fmt::join(self.seeds, ","));
  return "";
}

}  // namespace

Bytes encode_introduction(const Introduction& of) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.raw(of.host.value.view());
  writer.raw(of.cluster_id.view());
  writer.bytes(of.cluster_name);
  writer.u8(of.found_ordered ? kFoundOrdered : 0);
  writer.varint(of.applied.value);
  writer.u8(static_cast<uint8_t>(of.standing));
  writer.varint(of.seeds.size());
  for (const Endpoint& seed : of.seeds) writer.bytes(seed);
  return out;
}

Result<Introduction> decode_introduction(BytesView body) {
  base::ByteReader in(body);
  Introduction of;
  TETRAD_TRY(const uint8_t version, in.read_u8());
  if (version == 0) return fail(ErrorCode::kProtocol, "an introduction of version 0");
  TETRAD_TRY(of.host.value, read_uuid(in));
  TETRAD_TRY(of.cluster_id, read_uuid(in));
  TETRAD_TRY(const BytesView name, in.read_bytes());
  of.cluster_name = std::string(name);
  TETRAD_TRY(const uint8_t flags, in.read_u8());
  of.found_ordered = (flags & kFoundOrdered) != 0;
  TETRAD_TRY(of.applied.value, in.read_varint());
  TETRAD_TRY(const uint8_t standing, in.read_u8());
  if (standing > static_cast<uint8_t>(Standing::kRemoved))
    return fail(ErrorCode::kCorruption, "a standing of {}", standing);
  of.standing = static_cast<Standing>(standing);
  TETRAD_TRY(const uint64_t seeds, in.read_varint());
  if (seeds > kSeedsMax) return fail(ErrorCode::kCorruption, "{} seeds", seeds);
  for (uint64_t i = 0; i < seeds; ++i) {
    TETRAD_TRY(const BytesView seed, in.read_bytes());
    of.seeds.emplace_back(seed);
  }
  return of;
}

FormationStep next_formation_step(const Introduction& self,
                                  const std::vector<SeedAnswer>& answers) {
  FormationStep step;
  HostId least = self.host;
  bool least_is_ordered = self.found_ordered;
  bool is_seed = answers.empty();
  bool is_one_silent = false, is_one_reached = false;  // of those that have said nothing
  for (const SeedAnswer& answer : answers) {
    if (answer.said && answer.said->host == self.host) {
      is_seed = true;
    } else if (answer.is_older) {
      step.members.push_back(answer.seed);
    } else if (answer.said && answer.said->has_cluster()) {
      // What this node has was given to it by one cluster: it goes back to no other.
      if (!self.has_cluster() || answer.said->cluster_id == self.cluster_id)
        step.members.push_back(answer.seed);
      else
        add(step.waits_for, fmt::format("seed {} is of another cluster, {}", answer.seed,
                                        answer.said->cluster_id.to_string()));
    } else {
      const bool is_forgiven = TETRAD_MUTANT(first_seed_founds) && !answer.said;
      if (auto why = hindrance(self, answer); !why.empty() && !is_forgiven)
        add(step.waits_for, why);
      if (!answer.said) {
        is_one_reached |= answer.is_reached;
        is_one_silent |= !answer.is_reached && answer.refusal.empty();
        continue;
      }
      // Among those who were ordered one founds, too.
      const bool is_ordered = answer.said->found_ordered;
      if (is_ordered == least_is_ordered ? answer.said->host < least : is_ordered) {
        least = answer.said->host;
        least_is_ordered = is_ordered;
      }
    }
  }
  step.needs_order = !self.has_cluster() && is_one_silent && !is_one_reached;
  if (!step.members.empty()) {
    step.kind = FormationStep::Kind::kJoin;
  } else if (self.found_ordered && least == self.host) {
    step.kind = FormationStep::Kind::kFound;
  } else if (self.has_cluster()) {
    add(step.waits_for,
        fmt::format("no seed is of this node's cluster {} yet", self.cluster_id.to_string()));
  } else if (step.waits_for.empty() && !is_seed) {
    step.waits_for = "no seed has a cluster yet";
  } else if (step.waits_for.empty() && least != self.host) {
    step.waits_for = fmt::format("node {} founds the cluster", least.to_string());
  } else if (step.waits_for.empty()) {
    step.kind = FormationStep::Kind::kFound;
  }
  return step;
}

}  // namespace tetrad::replication
