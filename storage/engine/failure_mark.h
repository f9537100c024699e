// SPDX-License-Identifier: Apache-2.0
// A file that tells the next start that the disk has lost writes.
//
//   FAILED := line*      line := wall clock (us since 1970), space, reason, newline
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
