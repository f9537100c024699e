// SPDX-License-Identifier: Apache-2.0
// Files of a store that are kept beside it as they were at one moment: hard links. Together they
// have all there was of some tables then, and something of others, for a file is shared by tables.
// Whoever reads them gives RocksDB what stands here of each file (CreateColumnFamilyWithImport).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"

namespace tetrad::storage {

/// A table file, under the name that it has in the store.
struct KeptFile {
  std::string name;
  uint64_t bytes = 0;
  int level = 0;
  /// As RocksDB knows them: its own bounds, of keys of all tables in the file.
  Bytes smallest_key, largest_key;
  uint64_t smallest_sequence = 0, largest_sequence = 0;
  std::vector<TableIncarnation> tables;  // of those asked for, whose keys may be in it; ascending
};

/// What is kept of one store.
struct KeptFiles {
  std::string comparator;       // RocksDB's name of it
  std::vector<KeptFile> files;  // by name
};

/// What to keep.
struct KeepCommand {
  std::vector<TableIncarnation> tables;
  std::string directory;  // is made; its parent is there. On the file system of the store
  bool flushes = true;    // false: what is not in files yet is left out
};

}  // namespace tetrad::storage
