// SPDX-License-Identifier: Apache-2.0
#include "replication/hints/hint_store.h"

#include "base/byte_io.h"

namespace tetrad::replication {
namespace {

constexpr BytesView kPrefix = "hint/";
constexpr BytesView kPrefixEnd = "hint0";  // '0' follows '/'
constexpr uint8_t kVersion = 1;
constexpr size_t kKeyBytes = 5 + 16 + 4 + 8;

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
      StoreAddress replica;
      replica.host = HostId{Uuid::from_bytes(BytesView(key).substr(5, 16))};
      replica.store = base::load_big_endian<uint32_t>(key.data() + 21);
      Pending& pending = pending_[replica];
      pending.bytes += key.size() + value.size();
      ++pending.count;
      pending.next_sequence = base::load_big_endian<uint64_t>(key.data() + 25) + 1;
    }
    from = page.back().first + '\0';
  }
}

void HintStore::add(const StoreAddress& replica, const storage::Mutation& mutation,
                    int64_t now_us) {
  Pending& pending = pending_[replica];
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
  ++pending.count;
  ++pending.next_sequence;
  metrics_.stored.add();
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({std::move(key), std::move(value)});
  log_.write(std::move(batch), false, [](Result<void>) {});
}

Result<std::vector<HintStore::Hint>> HintStore::oldest(const StoreAddress& replica,
                                                       size_t limit) const {
  const Bytes start = key_prefix(replica);
  TETRAD_TRY(const auto page, log_.scan(start, start + Bytes(9, '\xFF'), limit));
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
  Pending& pending = pending_[replica];
  Bytes value;
  storage::encode_mutation(hint.mutation, value);
  const uint64_t bytes = hint.key.size() + value.size() + 9;
  pending.bytes -= std::min(pending.bytes, bytes);
  if (pending.count > 0) --pending.count;
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

uint64_t HintStore::pending_count() const {
  uint64_t count = 0;
  for (const auto& [replica, pending] : pending_) count += pending.count;
  return count;
}

}  // namespace tetrad::replication
