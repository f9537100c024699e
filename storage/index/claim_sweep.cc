// SPDX-License-Identifier: Apache-2.0
#include "storage/index/claim_sweep.h"

#include "storage/engine/partition_reader.h"

namespace tetrad::storage {
namespace {

/// Keys of one row's partition that are looked at: dead rows before the first one.
constexpr uint64_t kKeysMax = 1000;

/// Whether what a claim names has its value.
class ValueSink final : public ClaimSink {
 public:
  explicit ValueSink(const ClaimView& claim) : claim_(claim) {}
  void take(uint16_t index_id, BytesView value) override {
    found = found || (index_id == claim_.index_id && value == claim_.value);
  }
  bool found = false;

 private:
  const ClaimView& claim_;
};

Result<bool> is_borne_out(KeyView& rows, const ClaimMaker& maker, const ClaimView& claim,
                          int64_t now_s) {
  ReadCommand command;
  command.incarnation = claim.incarnation;
  command.position = claim.position;
  command.partition_key = Bytes(claim.partition_key);
  command.live_only = false;
  if (claim.of_partition) {
    command.row_limit = 1;
  } else {
    command.rows.emplace_back(claim.clustering_key);
  }
  TableContents contents;
  contents.scattered_tombstones = true;
  TETRAD_TRY(const ReadResult result, read_partitions(rows, command, contents, kKeysMax));
  ValueSink sink(claim);
  if (result.partitions.empty()) return !result.exhausted;
  const PartitionData& partition = result.partitions.front();
  if (claim.of_partition) {
    const bool has_rows = !partition.rows.empty() || !result.exhausted;
    maker.of_partition(claim.partition_key, partition.header, has_rows, now_s, sink);
  }
  for (const RowData& row : partition.rows)
    if (!claim.of_partition) maker.of_row(row.clustering_key, row.record, now_s, sink);
  return sink.found;
}

}  // namespace

Result<CheckedClaims> check_claims(KeyView& rows, KeyView& claims, const ClaimMaker& maker,
                                   const ClaimSweepCommand& command, BytesView after,
                                   int64_t now_s) {
  CheckedClaims checked;
  const Bytes prefix = claims_of_index(command.incarnation, command.index_id);
  const std::unique_ptr<KeyIterator> it =
      claims.iterate({prefix, past_prefix(prefix), false, false});
  it->seek(after.empty() ? prefix : Bytes(after) + '\0');
  for (; it->valid(); it->next()) {
    if (checked.page.claims == command.claims_max) {
      checked.page.exhausted = false;
      break;
    }
    const auto claim = decode_claim(it->key(), it->value());
    if (!claim)
      return fail(ErrorCode::kCorruption, "a key of {} bytes is no claim", it->key().size());
    ++checked.page.claims;
    checked.page.next = Bytes(it->key());
    TETRAD_TRY(const bool stays, is_borne_out(rows, maker, *claim, now_s));
    if (!stays) checked.disproved.push_back({Bytes(it->key()), claim->position});
  }
  TETRAD_TRY_VOID(it->status());
  checked.page.disproved = checked.disproved.size();
  return checked;
}

}  // namespace tetrad::storage
