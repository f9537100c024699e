// SPDX-License-Identifier: Apache-2.0
// What becomes of a data directory whose node is no member of its cluster any more, or whose store
// is damaged.
//
//   <data directory>/set-aside-<host id>-<UTC time>/   what a node held that was taken out while it
//                                                      was away: it starts again as a new node
//   <data directory>/decommissioned                    the node has left by its operator's order:
//                                                      it does not start again
//   <data directory>/erased-store-<number>/            a damaged store that is being removed
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace tetrad::server {

/// Whether a node may begin here: nothing is there yet, or something of a node is. What is hidden, a
/// file system's own (lost+found), a configuration, key or log, and the paths `named` count for
/// nothing. Errors: kConfig: the folder is somebody else's, as /usr.
Result<void> check_data_folder(const std::string& data_directory,
                               const std::vector<std::string>& named);

/// Whether files can be kept in `path`: it is a folder that may be written, or can be made. Leaves
/// nothing behind. Errors: kIo, with the path that stands in the way.
Result<void> check_can_hold_files(const std::string& path);

/// Of an errno; said behind an error where a service may have been forbidden to write. "": nothing.
const char* read_only_hint(int error);

/// Moves log, stores and hints into a new folder beside them, whose path is answered. The log goes
/// last: killed before, the node comes back as the one it was and hears again that it is out.
/// Errors: kIo.
Result<std::string> set_data_aside(const std::string& data_directory, HostId host, int64_t wall_us);

/// What is in it stays there when the power goes. Errors: kIo.
Result<void> sync_folder(const std::string& path);

/// Removes a store's folder, which nobody has open. Errors: kIo.
Result<void> erase_store(const std::string& data_directory, uint32_t store);
/// What an end of the process in the middle of it left; at a start.
void finish_erasing(const std::string& data_directory);

/// Errors: kIo.
Result<void> mark_decommissioned(const std::string& data_directory, HostId host, int64_t wall_us);
/// The text of the mark; unset: there is none.
std::optional<std::string> decommission_mark(const std::string& data_directory);

}  // namespace tetrad::server
