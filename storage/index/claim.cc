// SPDX-License-Identifier: Apache-2.0
// Making and taking apart of claims, and the claims of a mutation.
#include "storage/index/claim.h"

#include "base/assert.h"
#include "base/byte_io.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

constexpr size_t kIndexPrefixBytes = 4 + 4 + 2;
constexpr size_t kPlaceBytesMin = 8 + 8 + 2 + 1;  // of position, length and kind

/// Puts claims of one partition together; what they have in common is made once.
class ClaimCollector final : public ClaimSink {
 public:
  ClaimCollector(const Mutation& mutation, Claims& out)
      : incarnation_(mutation.incarnation), out_(out) {
    append_partition_prefix(place_, incarnation_, mutation.position, mutation.partition_key);
    place_.erase(0, sizeof(uint32_t));  // the incarnation comes before the value
    prefix_bytes_ = place_.size();
  }
  void begin(KeyKind kind, BytesView clustering_key) {
    place_.resize(prefix_bytes_);
    place_.push_back(static_cast<char>(kind));
    place_.append(clustering_key);
  }
  void take(uint16_t index_id, BytesView value) override {
    TETRAD_ASSERT(value.size() <= kClaimValueBytesMax);
    auto& [key, size] = out_.emplace_back();
    // One allocation for each claim: the parts are known.
    key.reserve(kIndexPrefixBytes + value.size() + place_.size());
    base::ByteWriter w(key);
    w.u32(kClaimsIncarnation.value);
    w.u32(incarnation_.value);
    w.u16(index_id);
    w.raw(value);
    w.raw(place_);
    base::ByteWriter(size).u16(static_cast<uint16_t>(value.size()));
  }

 private:
  const TableIncarnation incarnation_;
  Bytes place_;
  size_t prefix_bytes_;
  Claims& out_;
};

/// Whether a record says more than that something was deleted.
bool has_values(BytesView record) {
  RowRecordReader reader;
  if (!reader.open(record)) return false;
  if (reader.liveness().present()) return true;
  Cell cell;
  while (reader.next(cell))
    if (cell.kind == CellKind::kValue && cell.column_id != kKeyCellColumnId) return true;
  return false;
}

}  // namespace

Bytes claims_of_table(TableIncarnation incarnation) {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kClaimsIncarnation.value);
  w.u32(incarnation.value);
  return key;
}

Bytes claims_of_index(TableIncarnation incarnation, uint16_t index_id) {
  Bytes key = claims_of_table(incarnation);
  base::ByteWriter(key).u16(index_id);
  return key;
}

std::optional<ClaimView> decode_claim(BytesView key, BytesView value) {
  // The value of a claim is the length of its term: without it nobody knows where the place begins.
  if (value.size() != sizeof(uint16_t) || !is_claim_key(key)) return std::nullopt;
  const size_t value_bytes = base::load_big_endian<uint16_t>(value.data());
  if (key.size() < kIndexPrefixBytes + value_bytes + kPlaceBytesMin) return std::nullopt;
  ClaimView claim;
  claim.incarnation.value = base::load_big_endian<uint32_t>(key.data() + 4);
  claim.index_id = base::load_big_endian<uint16_t>(key.data() + 8);
  claim.value = key.substr(kIndexPrefixBytes, value_bytes);
  BytesView rest = key.substr(kIndexPrefixBytes + value_bytes);
  // Tokens are stored with their sign turned, so that memcmp orders them (storage_key.h).
  constexpr uint64_t kSignBit = uint64_t{1} << 63;
  claim.position.token =
      static_cast<int64_t>(base::load_big_endian<uint64_t>(rest.data()) ^ kSignBit);
  claim.position.hash = base::load_big_endian<uint64_t>(rest.data() + 8);
  const size_t length = base::load_big_endian<uint16_t>(rest.data() + 16);
  rest.remove_prefix(18);
  if (rest.size() < length + 1) return std::nullopt;
  claim.partition_key = rest.substr(0, length);
  const auto kind = static_cast<uint8_t>(rest[length]);
  claim.of_partition = kind == static_cast<uint8_t>(KeyKind::kHeader);
  if (!claim.of_partition && kind != static_cast<uint8_t>(KeyKind::kRow)) return std::nullopt;
  claim.clustering_key = rest.substr(length + 1);
  return claim;
}

Bytes past_prefix(Bytes prefix) {
  // A byte FF cannot be raised: the one before it is.
  while (!prefix.empty() && prefix.back() == '\xFF') prefix.pop_back();
  TETRAD_ASSERT(!prefix.empty());
  prefix.back() = static_cast<char>(static_cast<uint8_t>(prefix.back()) + 1);
  return prefix;
}

void add_claims(const ClaimMaker& maker, const Mutation& mutation, Claims& out) {
  ClaimCollector collector(mutation, out);
  bool has_rows = false;
  for (const RowChange& row : mutation.rows) has_rows = has_rows || has_values(row.record);
  // A mutation that only deletes makes no claims; those that are there are disproved by its rows.
  if (has_rows || !mutation.header.empty()) {
    collector.begin(KeyKind::kHeader, {});
    maker.of_partition(mutation.partition_key, mutation.header, has_rows, kBeforeAllTime_s,
                       collector);
  }
  if (!has_rows) return;
  for (const RowChange& row : mutation.rows) {
    collector.begin(KeyKind::kRow, row.clustering_key);
    maker.of_row(row.clustering_key, row.record, kBeforeAllTime_s, collector);
  }
}

}  // namespace tetrad::storage
