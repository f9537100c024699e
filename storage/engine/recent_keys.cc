// SPDX-License-Identifier: Apache-2.0
// Pages of what was written lately.
//
//   1. The log is read from the place's number on: every key that it writes and that is of the
//      ranges. RocksDB hands out whole batches; a number that is missing between two is a hole, and
//      a reason to take the whole range instead.
//   2. The page ends where enough of the log, or enough keys, have been seen; the place says where.
//   3. The records at these keys are read as they are now, over a snapshot, in key order. With the
//      rows of a partition comes what may hide them.
#include "storage/engine/recent_keys.h"

#include <algorithm>

#include <rocksdb/db.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "base/byte_io.h"
#include "storage/engine/range_export.h"

namespace tetrad::storage {
namespace {

constexpr int kLogTries = 3;  // to read on at the end of a log that is being written

/// What a batch writes.
class KeysOfBatch final : public rocksdb::WriteBatch::Handler {
 public:
  explicit KeysOfBatch(RecentKeys& keys) : keys_(keys) {}
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice&) override {
    return see(key);
  }
  rocksdb::Status MergeCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice&) override {
    return see(key);
  }
  /// A sweep's: what it has left of its partition it has put, and what is gone is not sent.
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice&) override {
    return rocksdb::Status::OK();
  }
  void LogData(const rocksdb::Slice&) override {}

 private:
  rocksdb::Status see(const rocksdb::Slice& key) {
    keys_.see({key.data(), key.size()});
    return rocksdb::Status::OK();
  }
  RecentKeys& keys_;
};

std::unexpected<Error> not_covered(std::string_view why) {
  return fail(ErrorCode::kNotFound, "the log does not reach back that far: {}", why);
}

/// What may hide rows of the partition: its header and its range tombstones. Returns the bytes.
Result<uint64_t> add_covers(KeyView& view, const Bytes& prefix, Mutation& mutation) {
  const std::unique_ptr<KeyIterator> it = view.iterate(
      {prefix + static_cast<char>(KeyKind::kHeader), prefix + static_cast<char>(KeyKind::kRow)});
  uint64_t bytes = 0;
  for (it->seek(prefix); it->valid(); it->next()) {
    const auto key = decode_storage_key(it->key());
    if (!key)
      return fail(ErrorCode::kCorruption, "a key of {} bytes is no row's", it->key().size());
    bytes += it->key().size() + it->value().size();
    if (bytes > kRecentKeyBytes)
      return fail(ErrorCode::kNotFound, "a partition has more range tombstones than fit a page");
    TETRAD_TRY_VOID(add_to_mutation(mutation, *key, it->value()));
  }
  TETRAD_TRY_VOID(it->status());
  return bytes;
}

/// All that was written to its last partition is gone.
void drop_if_nothing(Store::RecentPage& page) {
  if (page.mutations.empty()) return;
  const Mutation& last = page.mutations.back();
  if (last.header.empty() && last.range_tombstones.empty() && last.rows.empty())
    page.mutations.pop_back();
}

/// What one pass over the log has come to.
struct LogPass {
  uint64_t next;  // everything below has been seen
  uint64_t bytes = 0;

  bool is_enough(const RecentKeys& keys, uint64_t until) const {
    return next >= until || bytes >= kRecentLogBytes || keys.is_full();
  }
};

Result<void> read_on(rocksdb::DB& db, uint64_t until, RecentKeys& keys, LogPass& pass) {
  std::unique_ptr<rocksdb::TransactionLogIterator> it;
  if (const auto opened = db.GetUpdatesSince(pass.next, &it); !opened.ok())
    return not_covered(opened.ToString());
  for (; it->Valid() && !pass.is_enough(keys, until); it->Next()) {
    const rocksdb::BatchResult batch = it->GetBatch();
    if (batch.sequence > pass.next) return not_covered("there is a hole in it");
    const uint64_t end = batch.sequence + batch.writeBatchPtr->Count();
    pass.bytes += batch.writeBatchPtr->GetDataSize();
    if (end <= pass.next) continue;
    KeysOfBatch seen(keys);
    const rocksdb::Status status = batch.writeBatchPtr->Iterate(&seen);
    if (!status.ok()) return not_covered(status.ToString());
    pass.next = end;
  }
  return {};
}

}  // namespace

Bytes RecentPlace::encode() const {
  Bytes out;
  base::ByteWriter w(out);
  w.u64(life);
  w.u64(from);
  w.u64(end);
  w.u64(until);
  w.raw(after);
  return out;
}

Result<RecentPlace> RecentPlace::decode(BytesView encoded, uint64_t life) {
  base::ByteReader r(encoded);
  RecentPlace place;
  TETRAD_TRY(place.life, r.read_u64());
  TETRAD_TRY(place.from, r.read_u64());
  TETRAD_TRY(place.end, r.read_u64());
  TETRAD_TRY(place.until, r.read_u64());
  place.after = Bytes(encoded.substr(encoded.size() - r.remaining()));
  if (place.life != life)
    return fail(ErrorCode::kCancelled, "the store was opened anew since the page before");
  return place;
}

RecentKeys::RecentKeys(const Store::RecentCommand& command) {
  for (const auto& [incarnation, range] : command.ranges)
    if (!range.empty()) ranges_[incarnation.value].push_back(range);
  for (auto& [incarnation, ranges] : ranges_) {
    std::ranges::sort(ranges);
    size_t joined = 0;
    for (const RingRange& range : ranges) {
      if (joined > 0 && range.start <= ranges[joined - 1].end) {
        ranges[joined - 1].end = std::max(ranges[joined - 1].end, range.end);
      } else {
        ranges[joined++] = range;
      }
    }
    TETRAD_ASSERT(joined <= ranges.size());
    ranges.resize(joined);
  }
}

void RecentKeys::see(BytesView key) {
  const auto place = decode_storage_key(key);
  if (!place) return;  // the store's own
  // Registers are synced before an answer shows them: nobody has lost them, and others have their
  // own.
  if (place->kind == KeyKind::kRegisters) return;
  const auto table = ranges_.find(place->incarnation.value);
  if (table == ranges_.end()) return;
  const auto behind = std::ranges::partition_point(
      table->second, [&](const RingRange& range) { return range.start < place->position; });
  if (behind == table->second.begin() || !std::prev(behind)->contains(place->position)) return;
  if (keys_.emplace(key).second) bytes_ += key.size();
}

Result<uint64_t> read_log(rocksdb::DB& db, uint64_t from, uint64_t until, RecentKeys& keys) {
  LogPass pass{from};
  for (int tries = 0; !pass.is_enough(keys, until);) {
    const uint64_t before = pass.next;
    TETRAD_TRY_VOID(read_on(db, until, keys, pass));
    tries = pass.next == before ? tries + 1 : 0;
    if (tries == kLogTries) return not_covered("it ends before it should");
  }
  return pass.next;
}

Result<Store::RecentPage> recent_page(
    KeyView& view, const RecentPlace& place, const RecentKeys& keys, uint64_t end,
    uint64_t bytes_max, const std::function<SchemaVersion(TableIncarnation)>& version_of) {
  Store::RecentPage page;
  uint64_t bytes = 0;
  Bytes prefix;  // of the partition being collected
  for (auto it = keys.keys().upper_bound(place.after); it != keys.keys().end(); ++it) {
    if (bytes > 0 && bytes >= bytes_max) {
      drop_if_nothing(page);
      page.exhausted = false;
      page.next = RecentPlace{place.life, place.from, end, place.until, *std::prev(it)}.encode();
      return page;
    }
    bytes += it->size();
    const auto key = decode_storage_key(*it);
    TETRAD_ASSERT(key.has_value());  // see() takes no other
    if (prefix != key->partition_prefix) {
      drop_if_nothing(page);
      prefix.assign(key->partition_prefix);
      Mutation& mutation = page.mutations.emplace_back();
      mutation.incarnation = key->incarnation;
      mutation.schema_version = version_of(key->incarnation);
      mutation.position = key->position;
      mutation.partition_key = Bytes(key->partition_key);
      TETRAD_TRY(const uint64_t cover_bytes, add_covers(view, prefix, mutation));
      bytes += cover_bytes;
    }
    if (key->kind != KeyKind::kRow) continue;  // it has come with its partition
    TETRAD_TRY(const auto value, view.get(*it));
    if (!value) continue;
    bytes += value->size();
    TETRAD_TRY_VOID(add_to_mutation(page.mutations.back(), *key, *value));
  }
  drop_if_nothing(page);
  page.exhausted = end >= place.until;
  if (!page.exhausted) page.next = RecentPlace{place.life, end, 0, place.until, {}}.encode();
  return page;
}

}  // namespace tetrad::storage
