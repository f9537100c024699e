// SPDX-License-Identifier: Apache-2.0
// A file that holds room on the disk for what must go on when the disk is full: the local log, and
// a start. It is given away once and made again at the next start that finds room.
#pragma once

#include <string>

namespace tetrad::storage {

/// In `directory`, unless it is there or the disk has too little room to keep any back. Blocks.
void make_ballast(const std::string& directory);
/// True: there was one, and its room is free now. Blocks.
bool release_ballast(const std::string& directory);

}  // namespace tetrad::storage
