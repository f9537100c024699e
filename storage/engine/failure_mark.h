// SPDX-License-Identifier: Apache-2.0
// Files in a data directory that outlive the process whose disk failed.
//
//   FAILED  := line*      line := wall clock (us since 1970) in decimal, space, reason, newline
//   DAMAGED := reason     without a newline: the first line counts
// FAILED is appended to, once for each failure; a start more than an hour after the last one
// removes it. DAMAGED goes when the store's folder is erased.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/result.h"

namespace tetrad::storage {

/// Not synced: the disk has failed. Blocks for a write of the page cache.
void note_failure(const std::string& directory, int64_t wall_us, std::string_view reason);

/// Warns of a failure before this start. Errors: kIo, the disk failed twice within an hour; it must
/// be replaced, or the file removed.
Result<void> check_failures(const std::string& directory, int64_t wall_us, const Logger& logger);

/// Some of a store's data does not read: it stays damaged over restarts until it is erased as a
/// whole. File DAMAGED := reason. Synced; blocks.
void note_damage(const std::string& directory, std::string_view reason);
/// The reason; unset: none was noted.
std::optional<std::string> noted_damage(const std::string& directory);

}  // namespace tetrad::storage
