// SPDX-License-Identifier: Apache-2.0
// Dropping claims that no row bears out any more (rule 23).
//
//   1. A page of claims and the rows that they name are read from one snapshot. A claim is
//      disproved when its row, as it is stored, lacks the value. No clock decides: an expired cell
//      counts until it is purged.
//   2. On the loop, in the turn that drops: a claim whose partition was written since the snapshot
//      stays, whatever was read; so does one that `may_drop` keeps.
#pragma once

#include <functional>

#include "storage/engine/key_view.h"
#include "storage/index/claim.h"

namespace tetrad::storage {

/// What a sweep of claims is to look at.
struct ClaimSweepCommand {
  TableIncarnation incarnation;
  uint16_t index_id = 0;
  uint64_t claims_max = 1024;  // of a page: each takes a read of its row
  /// Whether a disproved claim of a row at this place may go: false where another member may still
  /// need it named. `hash`: of the claim; `number`: another one after each write of its bucket.
  /// Called on the loop, when the claim would go. Null: it may.
  std::function<bool(RingPosition position, uint64_t hash, uint64_t number)> may_drop;
};

/// What came of a page.
struct ClaimSweepPage {
  bool exhausted = true;
  Bytes next;  // opaque: give it back to go on
  uint64_t claims = 0, disproved = 0, dropped = 0;
};

/// A claim that its row does not bear out.
struct DisprovedClaim {
  Bytes key;
  RingPosition position;
};

/// A page of claims that has been looked at.
struct CheckedClaims {
  ClaimSweepPage page;
  std::vector<DisprovedClaim> disproved;
};

/// Looks at claims behind `after`. Both views are of one moment, but for a known mistake. Errors:
/// kCorruption, and those of the views. `now_s`: kBeforeAllTime_s, but for a known mistake.
Result<CheckedClaims> check_claims(KeyView& rows, KeyView& claims, const ClaimMaker& maker,
                                   const ClaimSweepCommand& command, BytesView after,
                                   int64_t now_s);

}  // namespace tetrad::storage
