// SPDX-License-Identifier: Apache-2.0
#include "replication/hints/hint_store.h"

#include "base/byte_io.h"

namespace tetrad::replication {
namespace {

constexpr BytesView kPrefix = "hint/";
constexpr BytesView kPrefixEnd = "hint0";  // '0' follows '/'
constexpr uint8_t kVersion = 1;
constexpr size_t kKeyBytes = 5 + 16 + 4 + 8;
constexpr int kShardShift = 48;

Bytes key_prefix(const StoreAddress& replica) {
  Bytes key(kPrefix);
  key.append(replica.host.value.view());
  base::ByteWriter(key).u32(replica.store);
  return key;
}

}  // namespace

HintStore::HintStore(storage::LocalLog& log, HintOptions options) : log_(log), options_(options) {}

Result<void> HintStore::open() {
  Bytes from(kPrefix);
  while (true) {
    TETRAD_TRY(const auto page, log_.scan(from, kPrefixEnd, 1'000));
    if (page.empty()) return {};
    for (const auto& [key, value] : page) {
      if (key.size() != kKeyBytes)
        return fail(ErrorCode::kCorruption, "a hint's key of {} bytes", key.size());
      const auto sequence = base::load_big_endian<uint64_t>(key.data() + 25);
      if (sequence >> kShardShift != options_.shard) continue;
      StoreAddress replica;
      replica.host = HostId{Uuid::from_bytes(BytesView(key).substr(5, 16))};
      replica.store = base::load_big_endian<uint32_t>(key.data() + 21);
      Pending& pending = pending_of(replica);
      pending.bytes += key.size() + value.size();
      count(pending, 1);
      pending.next_sequence = sequence + 1;
    }
    from = page.back().first + '\0';
  }
}

HintStore::Pending& HintStore::pending_of(const StoreAddress& replica) {
  const auto [found, is_new] = pending_.try_emplace(replica);
  if (is_new) found->second.next_sequence = uint64_t{options_.shard} << kShardShift;
  return found->second;
}

void HintStore::count(Pending& pending, int64_t hints) {
  pending.count += static_cast<uint64_t>(hints);
  pending_count_.store(pending_count() + static_cast<uint64_t>(hints), std::memory_order_relaxed);
}

void HintStore::add(const StoreAddress& replica, const storage::Mutation& mutation,
                    int64_t now_us) {
  Pending& pending = pending_of(replica);
  Bytes key = key_prefix(replica);
  base::ByteWriter(key).u64(pending.next_sequence);
  Bytes value;
  base::ByteWriter writer(value);
  writer.u8(kVersion);
  writer.i64(now_us);
  storage::encode_mutation(mutation, value);
  const uint64_t bytes = key.size() + value.size();
  if (pending.bytes + bytes > options_.bytes_per_replica_max) {
    metrics_.refused.add();
    return;
  }
  pending.bytes += bytes;
  count(pending, 1);
  ++pending.next_sequence;
  metrics_.stored.add();
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({std::move(key), std::move(value)});
  log_.write(std::move(batch), false, [](Result<void>) {});
}

Result<std::vector<HintStore::Hint>> HintStore::oldest(const StoreAddress& replica,
                                                       size_t limit) const {
  Bytes start = key_prefix(replica), end = start;
  base::ByteWriter(start).u64(uint64_t{options_.shard} << kShardShift);
  base::ByteWriter(end).u64(uint64_t{options_.shard + 1} << kShardShift);
  TETRAD_TRY(const auto page, log_.scan(start, end, limit));
  std::vector<Hint> out;
  for (const auto& [key, value] : page) {
    base::ByteReader reader(value);
    Hint hint;
    hint.key = key;
    TETRAD_TRY(const uint8_t version, reader.read_u8());
    if (version != kVersion) return fail(ErrorCode::kCorruption, "a hint of version {}", version);
    TETRAD_TRY(hint.created_us, reader.read_i64());
    TETRAD_TRY(hint.mutation, storage::decode_mutation({reader.position(), reader.remaining()}));
    out.push_back(std::move(hint));
  }
  return out;
}

void HintStore::remove(const StoreAddress& replica, const Hint& hint) {
  Pending& pending = pending_of(replica);
  Bytes value;
  storage::encode_mutation(hint.mutation, value);
  const uint64_t bytes = hint.key.size() + value.size() + 9;
  pending.bytes -= std::min(pending.bytes, bytes);
  if (pending.count > 0) count(pending, -1);
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({hint.key, std::nullopt});
  log_.write(std::move(batch), false, [](Result<void>) {});
}

std::vector<StoreAddress> HintStore::replicas() const {
  std::vector<StoreAddress> out;
  for (const auto& [replica, pending] : pending_) {
    if (pending.count != 0) out.push_back(replica);
  }
  return out;
}

uint64_t HintStore::pending_bytes(const StoreAddress& replica) const {
  const auto found = pending_.find(replica);
  return found == pending_.end() ? 0 : found->second.bytes;
}

}  // namespace tetrad::replication
