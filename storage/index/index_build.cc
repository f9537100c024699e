// SPDX-License-Identifier: Apache-2.0
#include "storage/index/index_build.h"

#include "storage/engine/range_export.h"

namespace tetrad::storage {

Result<BuiltClaims> claims_of_rows(KeyView& rows, TableIncarnation incarnation,
                                   const ClaimMaker& maker, uint16_t index_id, BytesView after,
                                   uint64_t bytes_max) {
  TETRAD_TRY(const Store::ExportPage page,
             export_page(rows, incarnation, SchemaVersion{}, RingRange(), after, bytes_max,
                         ExportParts::kRows));
  BuiltClaims built;
  for (const Mutation& mutation : page.mutations) {
    add_claims(maker, mutation, built.claims);
    built.position = mutation.position;
  }
  const Bytes wanted = claims_of_index(incarnation, index_id);
  std::erase_if(built.claims, [&](const auto& claim) { return !claim.first.starts_with(wanted); });
  built.exhausted = page.exhausted;
  built.next = page.next;
  if (page.exhausted) built.position = RingPosition::highest();
  return built;
}

}  // namespace tetrad::storage
