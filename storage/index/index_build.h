// SPDX-License-Identifier: Apache-2.0
// Building an index in a store: claims of the rows that are there, a page at a time.
//
//   1. From the moment that the schema has the index all that is applied leaves claims.
//   2. When what was applied before is in the store, a page of rows is read over a snapshot.
//   3. Its claims, and the place behind it, are written in one batch: a restart goes on from there.
//      Claims have no time, so those of rows that have changed since hide nothing; they are
//      disproved.
//   4. Behind the last page all is synced, then the index is noted as built.
#pragma once

#include "storage/engine/key_view.h"
#include "storage/index/claim.h"

namespace tetrad::storage {

/// What comes of one page of a build.
struct IndexBuildPage {
  bool built = false;  // it was the last one
  uint64_t claims = 0;
  /// Of the table's ring, how far the build is: the position behind this page.
  RingPosition position;
};

/// The claims of a page of rows.
struct BuiltClaims {
  Claims claims;
  bool exhausted = true;
  Bytes next;
  RingPosition position;
};

/// `after`: what the page before gave as `next`; "" at first. Errors: kCorruption, and those of the
/// view.
Result<BuiltClaims> claims_of_rows(KeyView& rows, TableIncarnation incarnation,
                                   const ClaimMaker& maker, uint16_t index_id, BytesView after,
                                   uint64_t bytes_max);

}  // namespace tetrad::storage
