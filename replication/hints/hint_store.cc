// SPDX-License-Identifier: Apache-2.0
// Queues of hints in a log; hint_store.h has keys and rules. Positions are given in memory and
// never twice: after a restart a queue goes on behind the last key that is there (find_head).
//
// A queue for each replica and shard: positions [low, head) in the log. `cursor` is where the next
// page begins, `on_disk` up to where writes have ended, `saved_*` what is written of the places.
// Hints are not synced: one that is lost is healed by repair. A page:
//   1. read_page() takes hints from the cursor on, one page of a queue at a time.
//   2. The dispatcher sends them, and says which are to be kept.
//   3. finish_page() appends those to the end again, then moves cursor and low; save_places()
//      erases what lies before low.
#include "replication/hints/hint_store.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"

namespace tetrad::replication {
namespace {

constexpr BytesView kPrefix = "hint/";
constexpr BytesView kPlacePrefix = "hinm/";
constexpr size_t kPrefixBytes = 5;
constexpr uint8_t kVersion = 1;
constexpr size_t kQueueKeyBytes = kPrefixBytes + 16 + 4;  // without shard and position
// Keys: "hint/", 16 bytes host, u32 store, u64 position; "hinm/", host, store, u16 shard for the
// places.
constexpr size_t kHintKeyBytes = kQueueKeyBytes + 8;
constexpr size_t kHintHeadBytes = 1 + 8;
// A shard's positions begin at shard << 48, so shards share a log without asking each other.
constexpr int kShardShift = 48;
constexpr uint64_t kPageBytesMax = 1u << 20;

Bytes queue_key(BytesView prefix, const StoreAddress& replica) {
  Bytes key(prefix);
  key.append(replica.host.value.view());
  base::ByteWriter(key).u32(replica.store);
  return key;
}

Bytes hint_key(const StoreAddress& replica, uint64_t position) {
  Bytes key = queue_key(kPrefix, replica);
  base::ByteWriter(key).u64(position);
  return key;
}

Bytes place_key(const StoreAddress& replica, uint32_t shard) {
  Bytes key = queue_key(kPlacePrefix, replica);
  base::ByteWriter(key).u16(static_cast<uint16_t>(shard));
  return key;
}

StoreAddress replica_of(BytesView key) {
  StoreAddress replica;
  replica.host = HostId{Uuid::from_bytes(key.substr(kPrefixBytes, 16))};
  replica.store = base::load_big_endian<uint32_t>(key.data() + kPrefixBytes + 16);
  return replica;
}

uint64_t position_of_key(BytesView key) {
  return base::load_big_endian<uint64_t>(key.data() + kQueueKeyBytes);
}

Result<HintStore::Hint> decode_hint(BytesView value) {
  base::ByteReader reader(value);
  HintStore::Hint hint;
  TETRAD_TRY(const uint8_t version, reader.read_u8());
  if (version != kVersion) return fail(ErrorCode::kCorruption, "a hint of version {}", version);
  TETRAD_TRY(hint.created_us, reader.read_i64());
  TETRAD_TRY(const BytesView encoded, reader.read_raw(reader.remaining()));
  hint.encoded = Bytes(encoded);
  hint.bytes = kHintKeyBytes + value.size();
  TETRAD_TRY(hint.mutation, storage::decode_mutation(encoded));
  return hint;
}

}  // namespace

HintStore::HintStore(storage::LocalLog& log, HintOptions options) : log_(log), options_(options) {}

Result<void> HintStore::open() {
  TETRAD_TRY_VOID(open_saved());
  return open_others();
}

/// Queues whose places were saved, and what has been appended since: the saved head may be old, so
/// find_head() looks for what came behind it.
Result<void> HintStore::open_saved() {
  Bytes from(kPlacePrefix), end(kPlacePrefix);
  ++end.back();
  while (true) {
    TETRAD_TRY(const auto page, log_.scan(from, end, 1'000));
    if (page.empty()) return {};
    for (const auto& [key, value] : page) {
      if (key.size() != kQueueKeyBytes + 2)
        return fail(ErrorCode::kCorruption, "a key of {} bytes among the hints", key.size());
      const auto shard = base::load_big_endian<uint16_t>(key.data() + kQueueKeyBytes);
      if (shard != options_.shard) continue;
      const StoreAddress replica = replica_of(key);
      base::ByteReader reader(value);
      TETRAD_TRY(const uint8_t version, reader.read_u8());
      if (version != kVersion) return fail(ErrorCode::kCorruption, "hints of version {}", version);
      Queue& queue = queue_of(replica);
      TETRAD_TRY(queue.low, reader.read_u64());
      TETRAD_TRY(queue.head, reader.read_u64());
      TETRAD_TRY(queue.bytes, reader.read_u64());
      if (queue.low > queue.head) return fail(ErrorCode::kCorruption, "hints that end too early");
      if (queue.low >> kShardShift != shard || queue.head >> kShardShift != shard)
        return fail(ErrorCode::kCorruption, "hints of shard {} at {} to {}", shard, queue.low,
                    queue.head);
      // Without hints no bytes: what a lost write of places had left is forgotten.
      if (queue.low == queue.head) queue.bytes = 0;
      queue.saved_low = queue.low;
      queue.saved_head = queue.head;
      add_pending(static_cast<int64_t>(queue.head - queue.low), static_cast<int64_t>(queue.bytes));
      TETRAD_TRY_VOID(find_head(replica, queue));
    }
    from = page.back().first + '\0';
  }
}

/// Queues of which nothing was saved yet. One look-up for each: its first key of this shard.
Result<void> HintStore::open_others() {
  Bytes from(kPrefix), end(kPrefix);
  ++end.back();
  while (true) {
    TETRAD_TRY(const auto first, log_.scan(from, end, 1));
    if (first.empty()) return {};
    const Bytes& key = first.front().first;
    if (key.size() != kHintKeyBytes)
      return fail(ErrorCode::kCorruption, "a hint's key of {} bytes", key.size());
    const StoreAddress replica = replica_of(key);
    const uint64_t position = position_of_key(key);
    // Keys of one replica lie in order of shards.
    const uint64_t own = uint64_t{options_.shard} << kShardShift;
    if (position < own) {  // another shard's, before this one's
      from = hint_key(replica, own);
      continue;
    }
    if (position >> kShardShift == options_.shard && !queues_.contains(replica)) {
      Queue& queue = queue_of(replica);
      queue.low = queue.head = position;
      TETRAD_TRY_VOID(find_head(replica, queue));
    }
    from = hint_key(replica, UINT64_MAX);
  }
}

/// From queue.head on.
Result<void> HintStore::find_head(const StoreAddress& replica, Queue& queue) {
  const Bytes end = hint_key(replica, uint64_t{options_.shard + 1} << kShardShift);
  while (true) {
    TETRAD_TRY(const auto page, log_.scan(hint_key(replica, queue.head), end, 1'000));
    if (page.empty()) break;
    uint64_t bytes = 0;
    for (const auto& [key, value] : page) bytes += key.size() + value.size();
    const uint64_t head = position_of_key(page.back().first) + 1;
    add_pending(static_cast<int64_t>(head - queue.head), static_cast<int64_t>(bytes));
    queue.bytes += bytes;
    queue.head = head;
  }
  queue.cursor = queue.low;
  queue.on_disk = queue.head;
  // All that is there was written.
  return {};
}

HintStore::Queue& HintStore::queue_of(const StoreAddress& replica) {
  const auto [found, is_new] = queues_.try_emplace(replica);
  Queue& queue = found->second;
  if (is_new) {
    queue.low = queue.cursor = queue.head = queue.on_disk = queue.saved_low = queue.saved_head =
        uint64_t{options_.shard} << kShardShift;
  }
  return queue;
}

// Read by other threads for metrics, written by this one.
void HintStore::add_pending(int64_t count, int64_t bytes) {
  pending_bytes_ += static_cast<uint64_t>(bytes);
  pending_count_.store(pending_count() + static_cast<uint64_t>(count), std::memory_order_relaxed);
}

void HintStore::add(const StoreAddress& replica, const storage::Mutation& mutation,
                    int64_t now_us) {
  Bytes encoded;
  storage::encode_mutation(mutation, encoded);
  const uint64_t bytes = kHintKeyBytes + kHintHeadBytes + encoded.size();
  // Refused silently, but counted: the write itself does not depend on it.
  if (queue_of(replica).bytes + bytes > options_.bytes_per_replica_max ||
      pending_bytes_ + bytes > options_.bytes_max) {
    metrics_.refused.add();
    return;
  }
  metrics_.stored.add();
  append(replica, encoded, now_us);
}

void HintStore::append(const StoreAddress& replica, BytesView mutation, int64_t created_us) {
  Queue& queue = queue_of(replica);
  // Given in memory: the order of calls is the order of the log.
  const uint64_t position = queue.head++;
  // The next shard's hints begin there.
  TETRAD_ASSERT(position >> kShardShift == options_.shard);
  Bytes value;
  value.reserve(kHintHeadBytes + mutation.size());
  base::ByteWriter writer(value);
  writer.u8(kVersion);
  writer.i64(created_us);
  writer.raw(mutation);
  const uint64_t bytes = kHintKeyBytes + value.size();
  queue.bytes += bytes;
  add_pending(1, static_cast<int64_t>(bytes));
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({hint_key(replica, position), std::move(value)});
  log_.write(std::move(batch), false, [this, alive = alive_, replica, position](Result<void>) {
    // One that could not be written is missing later, and passed over.
    if (*alive) queues_[replica].on_disk = position + 1;
  });
}

void HintStore::read_page(const StoreAddress& replica, size_t hints_max, PageCallback done) {
  Queue& queue = queue_of(replica);
  TETRAD_ASSERT(!queue.is_reading);
  TETRAD_ASSERT(queue.on_disk <= queue.head);
  TETRAD_ASSERT(queue.cursor <= queue.head);
  queue.is_reading = true;
  // A known mistake begins at the saved place again.
  const uint64_t from = TETRAD_MUTANT(hint_count_per_remove) ? queue.saved_low : queue.cursor;
  log_.scan_later(hint_key(replica, from), hint_key(replica, queue.head), hints_max, kPageBytesMax,
                  [this, alive = alive_, replica, on_disk = queue.on_disk,
                   done = std::move(done)](Result<storage::LocalLog::Pairs> pairs) mutable {
                    if (*alive) take_page(replica, on_disk, std::move(pairs), done);
                  });
}

void HintStore::take_page(const StoreAddress& replica, uint64_t on_disk,
                          Result<storage::LocalLog::Pairs> pairs, PageCallback& done) {
  Queue& queue = queue_of(replica);
  TETRAD_ASSERT(queue.is_reading);
  // An empty page ends the reading; one with hints is ended by finish_page().
  const auto answer = [&](Result<Page> page) {
    if (!page || page->hints.empty()) queue.is_reading = false;
    done(std::move(page));
  };
  if (!pairs) return answer(std::unexpected<Error>(pairs.error()));
  Page page;
  page.next = queue.cursor;
  for (const auto& [key, value] : *pairs) {
    page.next = position_of_key(key) + 1;
    auto hint = decode_hint(value);
    if (!hint) {
      // A hint that cannot be decoded is passed over.
      metrics_.dropped.add();  // repair heals it
      page.bytes += key.size() + value.size();
      continue;
    }
    page.bytes += hint->bytes;
    page.hints.push_back(std::move(*hint));
  }
  if (!page.hints.empty()) return answer(std::move(page));
  // Only gaps were left: the cursor must not wait for what will never come.
  // What was on disk before the read, and is not there, is nowhere.
  page.next = std::max(page.next, on_disk);
  if (page.next > queue.cursor) {
    queue.cursor = page.next;
    move_low(queue, page.next, page.bytes);
  }
  answer(std::move(page));
}

void HintStore::finish_page(const StoreAddress& replica, const Page& page,
                            std::vector<const Hint*> kept) {
  Queue& queue = queue_of(replica);
  queue.is_reading = false;
  // First at the end, then away from the front: between the two it is there twice, not never.
  for (const Hint* const hint : kept) append(replica, hint->encoded, hint->created_us);
  if (TETRAD_MUTANT(hint_count_per_remove))
    return move_low(queue, std::min(queue.low + page.hints.size(), queue.head), page.bytes);
  TETRAD_ASSERT(page.next >= queue.cursor);
  queue.cursor = page.next;
  move_low(queue, page.next, page.bytes);
}

/// `bytes`: of what is pending no more.
void HintStore::move_low(Queue& queue, uint64_t low, uint64_t bytes) {
  TETRAD_ASSERT(low >= queue.low);
  TETRAD_ASSERT(low <= queue.head);
  // Bytes of hints that were lost cannot be told one by one: with the last hint all are gone.
  if (low == queue.head || bytes > queue.bytes) bytes = queue.bytes;
  add_pending(-static_cast<int64_t>(low - queue.low), -static_cast<int64_t>(bytes));
  queue.low = low;
  queue.bytes -= bytes;
}

void HintStore::drop_all(const StoreAddress& replica) {
  Queue& queue = queue_of(replica);
  // A page is out: its end moves the queue, the next look drops it.
  if (queue.is_reading) return;
  metrics_.dropped.add(queue.head - queue.low);
  queue.cursor = queue.head;
  move_low(queue, queue.head, queue.bytes);
}

void HintStore::save_places() {
  for (auto& [replica, queue] : queues_) {
    if (queue.low == queue.saved_low && queue.head == queue.saved_head) continue;
    TETRAD_ASSERT(queue.saved_low <= queue.low);
    // Before the places are written; a power cut between the two only finds less.
    if (queue.low != queue.saved_low)
      log_.erase_range(hint_key(replica, queue.saved_low), hint_key(replica, queue.low),
                       [](Result<void>) {});
    Bytes value;
    base::ByteWriter writer(value);
    writer.u8(kVersion);
    writer.u64(queue.low);
    writer.u64(queue.head);
    writer.u64(queue.bytes);
    std::vector<storage::LocalLog::Operation> batch;
    batch.push_back({place_key(replica, options_.shard), std::move(value)});
    log_.write(std::move(batch), false, [](Result<void>) {});
    queue.saved_low = queue.low;
    queue.saved_head = queue.head;
  }
}

std::vector<StoreAddress> HintStore::replicas() const {
  std::vector<StoreAddress> out;
  for (const auto& [replica, queue] : queues_)
    if (queue.low != queue.head) out.push_back(replica);
  return out;
}

uint64_t HintStore::pending_bytes(const StoreAddress& replica) const {
  const auto found = queues_.find(replica);
  return found == queues_.end() ? 0 : found->second.bytes;
}

uint64_t HintStore::pending_count(const StoreAddress& replica) const {
  const auto found = queues_.find(replica);
  return found == queues_.end() ? 0 : found->second.head - found->second.low;
}

}  // namespace tetrad::replication
