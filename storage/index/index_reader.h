// SPDX-License-Identifier: Apache-2.0
// A read that an index narrows (ReadCommand::by_index), over claims and rows of one moment.
//
//   1. The places that claims name are collected in the order of the read, up to a number of them:
//      of one value claims lie in that order; of several values all claims in the range are looked
//      at, and the first places kept. Looking at too many of these ends in a read of all rows.
//   2. Each partition's rows among them are read as any read does it.
//   3. A row that has no such value is left out, unless the coordinator wants it: another member
//      may hold what makes it match, and where W is small nobody else may name it (rule 23).
//   4. The answer ends at the last place that was kept, or at a limit of the command.
#pragma once

#include <functional>

#include "storage/engine/partition_reader.h"
#include "storage/index/claim.h"

namespace tetrad::storage {

/// How much a page may look at.
struct IndexReadLimits {
  uint64_t places_max = 1000;     // that are kept, and read
  uint64_t claims_max = 200'000;  // of several values
  uint64_t keys_max = 1'000'000;  // of rows
};

/// What an index read needs of a store at one moment.
struct IndexReadSource {
  KeyView& view;
  const ClaimMaker& maker;
  /// What the partition of a command is known not to have.
  std::function<TableContents(const ReadCommand&)> contents_of;
};

/// Answers a command that names an index which is built here. Errors: kCorruption, and those of the
/// views.
Result<ReadResult> read_by_index(const IndexReadSource& source, const ReadCommand& command,
                                 const IndexReadLimits& limits);

}  // namespace tetrad::storage
