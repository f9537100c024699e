// SPDX-License-Identifier: Apache-2.0
// What registers of a quorum tell. Of proposals that were accepted the newest may be decided: a
// quorum may have accepted it, of which this one has seen a part. What is below a commit is over.
// Proposals from before the floor do not count: their members may have purged later values.
#include "replication/paxos/judgment.h"

#include <algorithm>

#include "base/data_mutants.h"

namespace tetrad::replication {

using storage::Ballot;
using storage::Proposal;

namespace {

// The answers of one round, summed up. Points into them.
struct Newest {
  const Proposal* accepted = nullptr;
  const Proposal* committed = nullptr;
  Ballot committed_last;  // the highest that anybody knows a commit by
  bool is_settled = false;

  // An accepted proposal at or below a commit is decided or can never be.
  bool accepted_is_last() const { return accepted != nullptr && committed_last < accepted->ballot; }
};

bool counts(const std::optional<Proposal>& proposal, PaxosFloor floor_us) {
  return proposal && is_above_floor(proposal->origin, floor_us);
}

// Of equal rank the order of answers does not matter: same origin means same value.
Newest newest_of(std::span<const RegistersOf> answers, PaxosFloor floor_us) {
  Newest newest;
  for (const auto& [from, registers] : answers) {
    const auto& accepted = registers.accepted;
    if (counts(accepted, floor_us) &&
        (newest.accepted == nullptr || newest.accepted->ballot < accepted->ballot))
      newest.accepted = &*accepted;
    const auto& committed = registers.committed;
    if (!counts(committed, floor_us)) continue;
    newest.committed_last = std::max(newest.committed_last, committed->ballot);
    // One value may be known by several ballots; one that still has its value is of more use.
    const bool is_newer = newest.committed == nullptr ||
                          newest.committed->origin < committed->origin ||
                          (newest.committed->origin == committed->origin &&
                           newest.committed->value.empty() && !committed->value.empty());
    const bool is_same =
        newest.committed != nullptr && newest.committed->origin == committed->origin;
    if (!is_same && is_newer) newest.is_settled = false;
    if (is_newer) newest.committed = &*committed;
    if (newest.committed->origin == committed->origin) newest.is_settled |= registers.settled;
  }
  return newest;
}

bool is_known_committed(const Ballot& origin, std::span<const RegistersOf> answers) {
  return std::ranges::any_of(answers, [&](const RegistersOf& answer) {
    const auto& committed = answer.registers.committed;
    return committed && committed->origin == origin;
  });
}

/// What the value of this origin was proposed after, if one of these members knows.
std::optional<Ballot> followed_by(const Ballot& origin, std::span<const RegistersOf> answers) {
  for (const auto& [from, registers] : answers)
    for (const auto* known : {&registers.accepted, &registers.committed})
      if (*known && (*known)->origin == origin) return (*known)->follows;
  return std::nullopt;
}

}  // namespace

// What a member knows to be decided: its commit, or what the proposal that it accepted was made
// after.
Ballot shown_by(const storage::PaxosRegisters& registers, PaxosFloor floor_us) {
  Ballot shown;
  if (counts(registers.committed, floor_us)) shown = registers.committed->origin;
  if (counts(registers.accepted, floor_us) && !TETRAD_MUTANT(lwt_followed_forgotten))
    shown = std::max(shown, registers.accepted->follows);
  return shown;
}

Judgment judge(std::span<const RegistersOf> answers, PaxosFloor floor_us) {
  const Newest newest = newest_of(answers, floor_us);
  Judgment out;
  for (const RegistersOf& answer : answers)
    out.newest = std::max(out.newest, shown_by(answer.registers, floor_us));
  out.committed = newest.committed;
  out.is_settled = newest.is_settled;
  // Not empty, and not known as committed: it may be on a majority.
  if (newest.accepted_is_last() && !newest.accepted->value.empty() &&
      !is_known_committed(newest.accepted->origin, answers))
    out.open = newest.accepted;
  if (newest.committed == nullptr) return out;
  // Whoever does not know the newest commit may lack its rows.
  for (const auto& [from, registers] : answers)
    if (!registers.committed || registers.committed->origin != newest.committed->origin)
      out.lacking.push_back(from);
  return out;
}

Proposal completion_of(const Proposal& open, const Ballot& ballot) {
  Proposal out = open;
  out.ballot = ballot;
  if (TETRAD_MUTANT(lwt_follows_wrong)) out.follows = {};
  return out;
}

// Of all that these members know, what time the next ballot and the next value must be above.
Earlier earlier_in(std::span<const RegistersOf> answers) {
  Earlier out;
  for (const auto& [from, registers] : answers) {
    for (const auto* known : {&registers.accepted, &registers.committed}) {
      if (!*known) continue;
      out.made_us = std::max(out.made_us, (*known)->ballot.made_us());
      out.value_us = std::max(out.value_us, (*known)->follows.us);
    }
    if (registers.committed) out.value_us = std::max(out.value_us, registers.committed->origin.us);
  }
  return out;
}

// Of a proposal that this coordinator sent:
//   1. from before the floor: nobody can tell;
//   2. a member knows it as committed: applied;
//   3. nothing at or above it was accepted or committed here: a quorum has promised a later ballot
//      without having it, so it cannot be decided any more;
//   4. it is the newest accepted one: open, it must be completed;
//   5. the newest follows it, or follows another one here that does, and so on: it was decided before;
//      or one of them follows something earlier: it was passed over.
Fate fate_of(const Ballot& origin, std::span<const RegistersOf> answers, PaxosFloor floor_us,
             Ballot* gap) {
  if (gap != nullptr) *gap = {};
  if (!is_above_floor(origin, floor_us)) return Fate::kUnknown;
  const Newest newest = newest_of(answers, floor_us);
  const Proposal* const last = newest.accepted_is_last() ? newest.accepted : newest.committed;
  if (is_known_committed(origin, answers)) return Fate::kApplied;
  if (last == nullptr || last->ballot < origin) return Fate::kNotDecided;
  if (last->origin == origin) return Fate::kOpen;
  // Whatever is decided after a value follows it or a later one. Each step goes back by one value
  // that was decided, as far as one of these members knows what that one follows.
  Ballot before = last->follows;
  while (origin < before) {
    const std::optional<Ballot> earlier = followed_by(before, answers);
    if (!earlier || !(*earlier < before)) {
      if (gap != nullptr) *gap = before;
      return Fate::kUnknown;
    }
    before = *earlier;
  }
  return before == origin ? Fate::kApplied : Fate::kNotDecided;
}

Fate fate_before(const Ballot& origin, const Ballot& decided, std::span<const Ballot> before) {
  Ballot at = decided;
  for (const Ballot& earlier : before) {
    if (!(origin < at) || !(earlier < at)) break;
    at = earlier;
  }
  if (origin < at) return Fate::kUnknown;
  return at == origin ? Fate::kApplied : Fate::kNotDecided;
}

}  // namespace tetrad::replication
