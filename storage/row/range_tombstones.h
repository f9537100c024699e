// SPDX-License-Identifier: Apache-2.0
// The one algebra of range tombstones: the set kept under one start bound on disk, and the step
// function over clustering keys that any number of overlapping tombstones amount to.
//
//   set := u8 version (1), varint count, (bytes end, zigzag timestamp, zigzag deletion time)*
//          sorted by end, later ends have older deletions (else they would hide the shorter one)
//   example: 01 02 01 62 0e 04 01 64 08 12
//            up to "b" at 7 us, made at 2 s; up to "d" at 4 us, made at 9 s
//
//   place := start                             of all keys with one prefix: [p, p + 0xFF) lies at p
//          | 0xFF, u8 bytes in common, start   of any other range; 255: that many or more
//   example: 6162           the place of ["ab", "ab" 0xFF)
//   example: ff 01 6162     the place of ["ab", "ac"): start and end have one byte in common
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/row/read_command.h"
#include "storage/row/row_record.h"

namespace tetrad::storage {

/// A range tombstone of a set, whose start is that of the set's key.
struct TombstoneEnd {
  BytesView end;
  Deletion deletion;
  friend bool operator==(const TombstoneEnd&, const TombstoneEnd&) = default;
};

/// Where a range tombstone lies in its partition, behind the kind's byte. Of all keys with one
/// prefix, [p, p + 0xFF): at p. Of any other range: at kStraddlingPlace, u8 how many bytes start
/// and end have in common (255: or more), start. No key begins with kStraddlingPlace.
inline constexpr char kStraddlingPlace = '\xFF';
bool is_of_one_prefix(BytesView start, BytesView end);
void append_tombstone_place(BytesView start, BytesView end, Bytes& out);
/// The start of what lies at `place`, a view into it. Errors: kCorruption.
Result<BytesView> start_at_place(BytesView place);

/// Sorts and drops every element that another one covers: longer or equal, and later or equal.
/// What is left does not depend on the order of joining.
void reduce_tombstone_set(std::vector<TombstoneEnd>& set);
/// `set` must be reduced.
void encode_tombstone_set(const std::vector<TombstoneEnd>& set, Bytes& out);
/// Appends the elements of an encoded set; their views point into it. Errors: kCorruption.
Result<void> decode_tombstone_set(BytesView encoded, std::vector<TombstoneEnd>& set);

/// A step function: ascending, disjoint, adjacent steps differ. The canonical form of range
/// tombstones.
using TombstoneSteps = std::vector<RangeTombstoneView>;

/// The steps of tombstones in any order, less what `partition` hides.
TombstoneSteps make_steps(std::vector<RangeTombstoneView> tombstones, const Deletion& partition);
/// The deletion in force at `key`; absent if none.
Deletion deletion_at(const TombstoneSteps& steps, BytesView key);
/// Appends what of `steps` lies in [start, end).
void append_cut_steps(const TombstoneSteps& steps, BytesView start, BytesView end,
                      TombstoneSteps& out);
/// Where `wanted` has a step that `held` does not have likewise.
TombstoneSteps missing_steps(const TombstoneSteps& wanted, const TombstoneSteps& held);

}  // namespace tetrad::storage
