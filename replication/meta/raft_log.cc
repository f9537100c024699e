// SPDX-License-Identifier: Apache-2.0
#include "replication/meta/raft_log.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::replication {

Result<RaftLog> RaftLog::make(RaftSnapshotMeta snapshot, std::vector<RaftEntry> entries) {
  RaftLog log;
  log.base_index_ = snapshot.index;
  log.base_term_ = snapshot.term;
  log.configurations_.push_back({snapshot.index, snapshot.configuration});
  log.snapshot_ = std::move(snapshot);
  const RaftSnapshotMeta& base = log.snapshot_;
  auto next = entries.begin();
  if (!entries.empty() && entries.front().index <= base.index) {
    // Entries kept from before the snapshot. Of the first of them only the term can be used.
    if (entries.back().index < base.index) {
      return fail(ErrorCode::kCorruption, "raft log ends at {}, before its snapshot at {}",
                  entries.back().index, base.index);
    }
    log.base_index_ = entries.front().index;
    log.base_term_ = entries.front().term;
    ++next;
  }
  for (; next != entries.end(); ++next) {
    if (next->index != log.last_index() + 1 || next->term < log.last_term()) {
      return fail(ErrorCode::kCorruption, "raft log: entry {} of term {} after {} of term {}",
                  next->index, next->term, log.last_index(), log.last_term());
    }
    if (next->kind == RaftEntryKind::kConfiguration) {
      TETRAD_TRY_VOID(decode_configuration_data(next->data));
    }
    log.append(std::move(*next));
  }
  if (log.term_at(base.index) != base.term) {
    return fail(ErrorCode::kCorruption, "raft log and snapshot disagree at {}", base.index);
  }
  return log;
}

std::optional<RaftTerm> RaftLog::term_at(RaftIndex index) const {
  if (index < base_index_ || index > last_index()) return std::nullopt;
  return index == base_index_ ? base_term_ : entry(index).term;
}

const RaftEntry& RaftLog::entry(RaftIndex index) const {
  TETRAD_ASSERT(index > base_index_);
  TETRAD_ASSERT(index <= last_index());
  return entries_[static_cast<size_t>(index - base_index_ - 1)];
}

const RaftConfiguration& RaftLog::configuration_at(RaftIndex index) const {
  TETRAD_ASSERT(index >= configurations_.front().index);
  auto at = configurations_.end() - 1;
  while (at->index > index) --at;
  return at->configuration;
}

bool RaftLog::is_up_to_date(RaftIndex index, RaftTerm term) const {
  return term > last_term() || (term == last_term() && index >= last_index());
}

RaftIndex RaftLog::last_agreement(RaftIndex index, RaftTerm term) const {
  index = std::min(index, last_index());
  while (index > base_index_ && entry(index).term > term) --index;
  return index;
}

void RaftLog::append(RaftEntry entry) {
  TETRAD_ASSERT(entry.index == last_index() + 1);
  TETRAD_ASSERT(entry.term >= last_term());
  if (entry.kind == RaftEntryKind::kConfiguration && entry.index > snapshot_.index) {
    Result<RaftConfiguration> configuration = decode_configuration_data(entry.data);
    TETRAD_ASSERT(configuration.has_value());
    configurations_.push_back({entry.index, std::move(*configuration)});
  }
  bytes_ += size_of(entry);
  entries_.push_back(std::move(entry));
}

void RaftLog::truncate_from(RaftIndex index, bool keep_configuration) {
  TETRAD_ASSERT(index > base_index_);
  TETRAD_ASSERT(index > snapshot_.index);
  while (last_index() >= index) {
    bytes_ -= size_of(entries_.back());
    entries_.pop_back();
  }
  if (keep_configuration) return;
  while (configurations_.back().index >= index) configurations_.pop_back();
}

void RaftLog::compact(RaftSnapshotMeta snapshot, size_t trailing) {
  TETRAD_ASSERT(snapshot.index >= snapshot_.index);
  TETRAD_ASSERT(snapshot.index <= last_index());
  while (configurations_.size() > 1 && configurations_[1].index <= snapshot.index) {
    configurations_.erase(configurations_.begin());
  }
  while (base_index_ + trailing < snapshot.index) {
    base_term_ = entries_.front().term;
    bytes_ -= size_of(entries_.front());
    entries_.pop_front();
    ++base_index_;
  }
  snapshot_ = std::move(snapshot);
}

void RaftLog::reset(RaftSnapshotMeta snapshot) {
  entries_.clear();
  bytes_ = 0;
  base_index_ = snapshot.index;
  base_term_ = snapshot.term;
  configurations_.clear();
  configurations_.push_back({snapshot.index, snapshot.configuration});
  snapshot_ = std::move(snapshot);
}

std::vector<RaftEntry> RaftLog::copy(RaftIndex first, RaftIndex last, size_t bytes_max) const {
  std::vector<RaftEntry> copied;
  size_t total = 0;
  for (RaftIndex index = first; index <= last && copied.size() < kRaftMessageEntriesMax; ++index) {
    const RaftEntry& next = entry(index);
    total += size_of(next);
    if (!copied.empty() && total > bytes_max) break;
    copied.push_back(next);
  }
  return copied;
}

}  // namespace tetrad::replication
