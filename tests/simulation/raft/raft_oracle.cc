// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/raft/raft_oracle.h"

namespace tetrad::replication {
namespace {

template <class... Args>
[[noreturn]] void violated(fmt::format_string<Args...> text, Args&&... args) {
  throw Violation{fmt::format(text, std::forward<Args>(args)...)};
}

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9E3779B97F4A7C15ULL + b + 0x7F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace

std::optional<RaftTerm> RaftDisk::term_at(RaftIndex index) const {
  if (!entries.empty() && index >= entries.front().index && index <= entries.back().index) {
    return entries[static_cast<size_t>(index - entries.front().index)].term;
  }
  if (index == image.meta.index) return image.meta.term;
  return std::nullopt;
}

void RaftDisk::apply(const RaftPersist& write, const RaftImage& image_to_install) {
  if (write.snapshot) {
    if (image_to_install.meta != *write.snapshot) violated("an image installed that was not sent");
    image = image_to_install;
    entries.clear();
  }
  if (write.truncate_from) {
    while (!entries.empty() && entries.back().index >= *write.truncate_from) entries.pop_back();
  }
  for (const RaftEntry& entry : write.entries) {
    if (entry.index != last_index() + 1) {
      violated("entry {} written after {}", entry.index, last_index());
    }
    entries.push_back(entry);
  }
  if (write.drop_through) {
    while (!entries.empty() && entries.front().index <= *write.drop_through) entries.pop_front();
  }
  if (write.hard_state.term < hard_state.term) {
    violated("term {} written after {}", write.hard_state.term, hard_state.term);
  }
  if (write.hard_state.commit > last_index()) {
    violated("commit {} written, log ends at {}", write.hard_state.commit, last_index());
  }
  if (write.hard_state.term == hard_state.term && hard_state.vote &&
      write.hard_state.vote != hard_state.vote) {
    violated("a second vote in term {}", hard_state.term);
  }
  hard_state = write.hard_state;
}

uint64_t RaftOracle::content_of(const RaftEntry& entry) {
  uint64_t hash = static_cast<uint64_t>(entry.kind) + 1;
  for (const char c : entry.data) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
  return mix(hash, entry.data.size());
}

void RaftOracle::on_entries(const RaftCore& core, const std::vector<RaftEntry>& entries) {
  for (const RaftEntry& entry : entries) {
    if (entry.index >= seen_.size()) seen_.resize(entry.index + 1);
    const RaftTerm previous = core.log().term_at(entry.index - 1).value_or(0);
    const uint64_t content = content_of(entry);
    bool known = false;
    for (const Seen& seen : seen_[entry.index]) {
      if (seen.term != entry.term) continue;
      known = true;
      if (seen.content != content || seen.previous_term != previous) {
        violated("log matching: entry {} of term {} differs", entry.index, entry.term);
      }
    }
    if (!known) seen_[entry.index].push_back({entry.term, previous, content});
  }
}

void RaftOracle::on_commit(const RaftCore& core, RaftIndex before) {
  const RaftIndex now = core.commit_index();
  if (now < before) violated("commit index fell from {} to {}", before, now);
  if (now == before) return;
  const RaftLog& log = core.log();
  for (RaftIndex index = std::max(before, log.base_index()) + 1; index <= now; ++index) {
    const RaftEntry& entry = log.entry(index);
    const uint64_t content = content_of(entry);
    if (index < committed_.size()) {
      if (committed_[index].term != entry.term || committed_[index].content != content) {
        violated("state machine safety: entry {} committed with terms {} and {}", index,
                 committed_[index].term, entry.term);
      }
      continue;
    }
    if (index != committed_.size()) violated("entry {} committed before {}", index, index - 1);
    // An image that covers the entry has no term for it, but holds it all the same.
    const bool on_majority = core.configuration().majority([&](RaftServerId server) {
      const RaftDisk& disk = *disks_[place_of_(server)];
      return disk.term_at(index) == entry.term || disk.image.meta.index >= index;
    });
    if (!on_majority) {
      violated("entry {} of term {} committed without a majority of disks", index, entry.term);
    }
    committed_.push_back(
        {entry.term, content, core.term(), mix(committed_.back().chain, content ^ entry.term)});
    if (entry.kind == RaftEntryKind::kConfiguration) ++configurations_;
  }
}

void RaftOracle::on_leader(const RaftCore& core) {
  const auto [leader, first] = leaders_.emplace(core.term(), core.options().self);
  if (!first) {
    if (leader->second != core.options().self) {
      violated("election safety: two leaders in term {}", core.term());
    }
    return;
  }
  const RaftLog& log = core.log();
  for (RaftIndex index = log.base_index() + 1; index < committed_.size(); ++index) {
    if (committed_[index].in_term < core.term() && log.term_at(index) != committed_[index].term) {
      violated("leader completeness: the leader of term {} lacks entry {} of term {}", core.term(),
               index, committed_[index].term);
    }
  }
}

void RaftOracle::on_send(const RaftCore& core, const RaftDisk& disk,
                         const RaftMessage& message) const {
  if (const auto* vote = std::get_if<RaftVoteReply>(&message.body); vote && vote->granted) {
    if (disk.hard_state.term != message.term || disk.hard_state.vote != message.to) {
      violated("promise: a vote of term {} before it is on disk", message.term);
    }
  } else if (const auto* request = std::get_if<RaftVoteRequest>(&message.body)) {
    if (disk.hard_state.term != message.term || disk.hard_state.vote != message.from) {
      violated("promise: a campaign in term {} before it is on disk", message.term);
    }
    if (disk.last_index() != request->last_index || disk.last_term() != request->last_term) {
      violated("promise: {} campaigns with a log to {}, its disk ends at {}",
               place_of_(message.from), request->last_index, disk.last_index());
    }
  } else if (const auto* ack = std::get_if<RaftAppendReply>(&message.body); ack && ack->accepted) {
    if (disk.hard_state.term != message.term) {
      violated("promise: entries of term {} acknowledged before the term is on disk", message.term);
    }
    std::optional<RaftTerm> term = core.log().term_at(ack->index);
    // The log in memory may be waiting for an image that replaces the one on disk.
    if (!term && ack->index < committed_.size()) term = committed_[ack->index].term;
    const bool held = disk.last_index() >= ack->index &&
                      (disk.image.meta.index >= ack->index || disk.term_at(ack->index) == term);
    if (!held) {
      violated("promise: entry {} acknowledged by {}, whose disk ends at {}", ack->index,
               place_of_(message.from), disk.last_index());
    }
  }
}

uint64_t RaftOracle::on_apply(const RaftEntry& entry, uint64_t chain_before) const {
  if (entry.index >= committed_.size()) violated("entry {} applied, not committed", entry.index);
  const Committed& committed = committed_[entry.index];
  const uint64_t chain = mix(chain_before, content_of(entry) ^ entry.term);
  if (committed.term != entry.term || committed.chain != chain) {
    violated("state machine safety: entry {} of term {} applied, committed is term {}", entry.index,
             entry.term, committed.term);
  }
  return chain;
}

void RaftOracle::on_image(const RaftImage& image) const {
  if (image.meta.index >= committed_.size() || committed_[image.meta.index].chain != image.chain ||
      committed_[image.meta.index].term != image.meta.term) {
    violated("an image at {} that is not what was committed", image.meta.index);
  }
}

void RaftOracle::on_read_state(const RaftReadState& state) {
  const auto floor = read_floors_.find(state.context);
  if (floor == read_floors_.end()) return;
  if (state.confirmed) {
    ++reads_confirmed_;
    if (state.index < floor->second) {
      violated("a read at {} that misses entry {}, committed before it was asked", state.index,
               floor->second);
    }
  }
  read_floors_.erase(floor);
}

}  // namespace tetrad::replication
