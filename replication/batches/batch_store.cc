// SPDX-License-Identifier: Apache-2.0
// Entries in the log, indexed in memory by id, by sequence, by due time and by creation. Removals
// are not synced one by one: until they are, oldest_us() counts what is erased as held, since a
// power cut could bring it back.
#include "replication/batches/batch_store.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::replication {

namespace {

constexpr BytesView kPrefix = "bat/";
constexpr BytesView kLowKey = "bal/";
constexpr BytesView kApartPrefix = "bax/";
constexpr uint8_t kFormat = 1;
constexpr size_t kPage = 64;
constexpr size_t kRemovedMax = 1'000'000;

Bytes key_of(uint64_t sequence, BytesView prefix = kPrefix) {
  Bytes key(prefix);
  base::ByteWriter(key).u64(sequence);
  return key;
}

Result<uint64_t> sequence_of(BytesView key, BytesView prefix) {
  if (key.size() != prefix.size() + sizeof(uint64_t))
    return fail(ErrorCode::kCorruption, "a batch's key of {} bytes", key.size());
  return base::load_big_endian<uint64_t>(key.data() + prefix.size());
}

Result<uint64_t> decode_low(const Bytes& value) {
  if (value.size() != 1 + sizeof(uint64_t) || static_cast<uint8_t>(value[0]) != kFormat)
    return fail(ErrorCode::kCorruption, "the place where batches begin is {}", base::to_hex(value));
  return base::load_big_endian<uint64_t>(value.data() + 1);
}

}  // namespace

Result<void> BatchStore::open(const std::function<base::MonotonicUs(uint8_t rank)>& due_us) {
  TETRAD_TRY(const auto low, log_.get(kLowKey));
  if (low) {
    TETRAD_TRY(low_, decode_low(*low));
  }
  next_sequence_ = std::max<uint64_t>(low_, 1);
  Bytes from = key_of(low_), end(kPrefix);
  ++end.back();
  while (true) {
    TETRAD_TRY(const auto page, log_.scan(from, end, kPage));
    if (page.empty()) return open_apart();
    for (const auto& [key, value] : page) {
      TETRAD_TRY(const uint64_t sequence, sequence_of(key, kPrefix));
      next_sequence_ = sequence + 1;
      const auto head = decode_batch_head(value);
      if (!head) {
        keep_apart(sequence, value);
        continue;
      }
      if (is_superseded(*head)) {
        erase(sequence);
        continue;
      }
      index(*head, sequence, value.size(), due_us(head->rank));
    }
    from = page.back().first + '\0';
  }
}

std::vector<BatchStore::Waiting> BatchStore::waiting(size_t count_max) const {
  std::vector<Waiting> out;
  for (const auto& [sequence, id] : by_sequence_) {
    if (out.size() == count_max) break;
    const auto held = entries_.find(id);
    TETRAD_ASSERT(held != entries_.end());
    out.push_back({id, held->second.created_us});
  }
  return out;
}

/// A log that is damaged, or in which a write has failed and is there all the same, may have an id
/// twice. What the earlier version has, the later one has, too.
bool BatchStore::is_superseded(const BatchHead& head) {
  const auto known = entries_.find(head.id);
  if (known == entries_.end()) return false;
  if (head.version <= known->second.version) return true;
  erase(forget(head.id).sequence);
  return false;
}

/// Not synced: a power cut only brings it back.
void BatchStore::erase(uint64_t sequence) {
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({key_of(sequence), std::nullopt});
  log_.write(std::move(batch), false, [](Result<void>) {});
}

/// Without their values: they may be of any number.
Result<void> BatchStore::open_apart() {
  Bytes from(kApartPrefix), end(kApartPrefix);
  ++end.back();
  while (true) {
    TETRAD_TRY(const auto page, log_.scan(from, end, kPage));
    if (page.empty()) return {};
    for (const auto& [key, value] : page) {
      TETRAD_TRY(const uint64_t sequence, sequence_of(key, kApartPrefix));
      apart_.insert(sequence);
      next_sequence_ = std::max(next_sequence_, sequence + 1);
    }
    from = page.back().first + '\0';
  }
}

void BatchStore::keep_apart(uint64_t sequence, Bytes found) {
  apart_.insert(sequence);
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({key_of(sequence), std::nullopt});
  batch.push_back({key_of(sequence, kApartPrefix), std::move(found)});
  // A power cut brings it back to where it was, and it is set apart again.
  log_.write(std::move(batch), true, [](Result<void>) {});
}

void BatchStore::set_apart(const Uuid& id, Bytes found) {
  if (!entries_.contains(id)) return;
  keep_apart(forget(id).sequence, std::move(found));
}

void BatchStore::drop_apart(std::move_only_function<void(Result<size_t>)> done) {
  std::vector<storage::LocalLog::Operation> batch;
  for (const uint64_t sequence : apart_)
    batch.push_back({key_of(sequence, kApartPrefix), std::nullopt});
  if (batch.empty()) return done(0);
  log_.write(
      std::move(batch), true,
      [this, alive = alive_, dropped = apart_, done = std::move(done)](Result<void> r) mutable {
        if (!r) return done(std::unexpected(std::move(r.error())));
        if (*alive)
          for (const uint64_t sequence : dropped) apart_.erase(sequence);
        done(dropped.size());
      });
}

void BatchStore::index(const BatchHead& head, uint64_t sequence, uint64_t bytes,
                       base::MonotonicUs due_us) {
  Held held;
  held.sequence = sequence;
  held.version = head.version;
  held.rank = head.rank;
  held.created_us = head.created_us;
  held.bytes = bytes;
  held.due_us = due_us;
  const bool is_new = entries_.try_emplace(head.id, held).second;
  TETRAD_ASSERT(is_new);
  by_sequence_.emplace(sequence, head.id);
  by_due_.emplace(due_us, head.id);
  created_us_.insert(head.created_us);
  bytes_ += bytes;
}

void BatchStore::store(const BatchHead& head, Bytes encoded, base::MonotonicUs due_us,
                       DoneCallback done) {
  forget_old_removals();
  if (removed_.contains(head.id)) return done(fail(ErrorCode::kNotFound, "the batch was removed"));
  const auto known = entries_.find(head.id);
  uint64_t sequence = 0, bytes_before = 0;
  uint32_t version_before = 0;
  if (known == entries_.end()) {
    // Two limits, since many small batches cost as much to keep in memory as a few large ones to
    // write.
    if (entries_.size() >= options_.count_max || bytes_ + encoded.size() > options_.bytes_max)
      return done(fail(ErrorCode::kOverloaded, "too many logged batches wait on this node"));
    sequence = next_sequence_++;
    index(head, sequence, encoded.size(), due_us);
  } else {
    Held& held = known->second;
    sequence = held.sequence;
    // A message that was late: what is held is newer.
    if (head.version < held.version)
      return done(fail(ErrorCode::kConflict, "a later version of the batch is held"));
    bytes_before = held.bytes;
    version_before = held.version;
    // Unsigned and wrapping: right also where the new version is smaller.
    bytes_ += encoded.size() - held.bytes;
    held.bytes = encoded.size();
    held.version = head.version;
  }
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({key_of(sequence), std::move(encoded)});
  log_.write(std::move(batch), true,
             [this, alive = alive_, id = head.id, version = head.version, version_before,
              bytes_before, done = std::move(done)](Result<void> written) mutable {
               if (!written && *alive) take_back(id, version, version_before, bytes_before);
               done(std::move(written));
             });
}

/// The log does not have the version: else it would be due for ever, and hold the horizon down.
void BatchStore::take_back(const Uuid& id, uint32_t version, uint32_t version_before,
                           uint64_t bytes_before) {
  const auto found = entries_.find(id);
  // Removed or replaced while it was written: the failure concerns nobody any more.
  if (found == entries_.end() || found->second.version != version) return;
  if (version_before == 0) {
    forget(id);
    return;
  }
  bytes_ += bytes_before - found->second.bytes;
  found->second.bytes = bytes_before;
  found->second.version = version_before;
}

BatchStore::Held BatchStore::forget(const Uuid& id) {
  const auto found = entries_.find(id);
  TETRAD_ASSERT(found != entries_.end());
  const Held held = found->second;
  entries_.erase(found);
  const size_t of_sequence = by_sequence_.erase({held.sequence, id});
  TETRAD_ASSERT(of_sequence == 1);
  const size_t of_due = by_due_.erase({held.due_us, id});
  TETRAD_ASSERT(of_due == 1);
  // A multiset: two batches may be of the same microsecond, and one of them is erased.
  const auto created = created_us_.find(held.created_us);
  TETRAD_ASSERT(created != created_us_.end());
  created_us_.erase(created);
  TETRAD_ASSERT(bytes_ >= held.bytes);
  bytes_ -= held.bytes;
  return held;
}

void BatchStore::remove(const Uuid& id, int64_t under_way_us) {
  forget_old_removals();
  const base::MonotonicUs until_us = reactor_.now_us() + options_.removed_for_us;
  // Remembered also when it was never here: the batch itself may still be on its way.
  if (removed_.size() < kRemovedMax && removed_.try_emplace(id, until_us).second)
    removed_until_us_.emplace(until_us, id);
  if (!entries_.contains(id)) return;
  const Held held = forget(id);
  removed_created_us_.insert(held.created_us);
  if (under_way_us != 0) under_way_us_.emplace(reactor_.now_us() + under_way_us, held.created_us);
  erase(held.sequence);
}

void BatchStore::forget_old_removals() {
  while (!under_way_us_.empty() && under_way_us_.begin()->first < reactor_.now_us())
    under_way_us_.erase(under_way_us_.begin());
  while (!removed_until_us_.empty() && removed_until_us_.begin()->first < reactor_.now_us()) {
    removed_.erase(removed_until_us_.begin()->second);
    removed_until_us_.erase(removed_until_us_.begin());
  }
}

void BatchStore::read(const Uuid& id, ReadCallback done) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return done(std::optional<Bytes>());
  const uint64_t sequence = found->second.sequence;
  // The entry is read from the log each time; memory has only what is needed to find it.
  log_.scan_later(key_of(sequence), key_of(sequence + 1), 1, 1,
                  [done = std::move(done)](Result<storage::LocalLog::Pairs> pairs) mutable {
                    if (!pairs) return done(std::unexpected<Error>(pairs.error()));
                    if (pairs->empty()) return done(std::optional<Bytes>());
                    done(std::optional<Bytes>(std::move(pairs->front().second)));
                  });
}

void BatchStore::set_due(const Uuid& id, base::MonotonicUs due_us) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  // The set is keyed by the time, so the entry is taken out before the time changes.
  by_due_.erase({found->second.due_us, id});
  found->second.due_us = due_us;
  by_due_.emplace(due_us, id);
}

std::vector<BatchStore::Due> BatchStore::due(base::MonotonicUs now_us, size_t count_max) const {
  std::vector<Due> out;
  for (const auto& [due_us, id] : by_due_) {
    if (due_us > now_us || out.size() == count_max) break;
    const Held& held = entries_.at(id);
    out.push_back({id, held.version, held.rank});
  }
  return out;
}

std::optional<uint32_t> BatchStore::version_of(const Uuid& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  return found->second.version;
}

int64_t BatchStore::oldest_us() const {
  int64_t oldest_us = kNone;
  if (!created_us_.empty()) oldest_us = *created_us_.begin();
  // What was removed counts until its erasure is on the disk: after a power cut it would be
  // replayed.
  if (!removed_created_us_.empty()) oldest_us = std::min(oldest_us, *removed_created_us_.begin());
  for (const auto& [until_us, created_us] : under_way_us_)
    oldest_us = std::min(oldest_us, created_us);
  return oldest_us;
}

void BatchStore::sync_removed() {
  forget_old_removals();
  if (removed_created_us_.empty() || is_syncing_) return;
  is_syncing_ = true;
  // All entries below this number are removed. A reader of the log after a crash starts there, and
  // skips erasures that were not synced.
  const uint64_t low = by_sequence_.empty() ? next_sequence_ : by_sequence_.begin()->first;
  Bytes value;
  base::ByteWriter out(value);
  out.u8(kFormat);
  out.u64(low);
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({Bytes(kLowKey), std::move(value)});
  // What is removed while this is written waits for the next time.
  const std::vector<int64_t> erased(removed_created_us_.begin(), removed_created_us_.end());
  log_.write(std::move(batch), true, [this, alive = alive_, erased, low](Result<void> written) {
    if (!*alive) return;
    TETRAD_ASSERT(is_syncing_);
    is_syncing_ = false;
    if (!written) return;
    TETRAD_ASSERT(low_ <= low);
    low_ = low;
    for (const int64_t created_us : erased) {
      const auto removed = removed_created_us_.find(created_us);
      TETRAD_ASSERT(removed != removed_created_us_.end());
      removed_created_us_.erase(removed);
    }
  });
}

}  // namespace tetrad::replication
