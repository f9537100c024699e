// SPDX-License-Identifier: Apache-2.0
// RocksDB's files, encrypted (file_header.h) as they are written and decrypted as they are read.
// Every file that a database makes is encrypted, whatever is in it; files that were there before
// stay plain until a compaction replaces them. Offsets and sizes that a database asks for are
// those of the content alone.
//
// A file that a power cut has left without its header, or with zeros in its place, is an empty one:
// its content was never synced either, as a sync covers the whole file.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "storage/encryption/disk_keys.h"

namespace rocksdb {
class FileSystem;
}

namespace tetrad::storage {

/// `files`: of the disk; null: the system's. `keys` null: new files are plain, and encrypted ones
/// are refused with an error that names the option.
std::shared_ptr<rocksdb::FileSystem> make_encrypted_files(
    std::shared_ptr<rocksdb::FileSystem> files, std::shared_ptr<const DiskKeys> keys);

/// Files, and their bytes on the disk.
struct FileCount {
  uint64_t files = 0, bytes = 0;
};
/// What is in the folder and those below it, by the id of the master key; "": plain. Those in which
/// no rows are (locks, logs in words, plain ones that tell of formats and settings) are left out. Reads the first bytes of each file: blocks.
/// Errors: kIo.
using FileCounts = std::map<std::string, FileCount>;
Result<FileCounts> count_encrypted_files(const std::string& directory);

/// Writes the headers of files anew that are under an older key, so that its line can go; their content
/// stays as it is. Before a database is open there. A file whose header is damaged is left as it is.
/// Blocks. Returns how many. Errors: kIo.
Result<uint64_t> renew_encrypted_files(const std::string& directory, const DiskKeys& keys);

/// Whether each file there can be read with the keys: a database opens its files when it needs
/// them, which may be much later. A damaged header does not count: that is found as other damage
/// is. Blocks. Errors: kIo; kConfig, with a file whose key is not there.
Result<void> check_encrypted_files(const std::string& directory, const DiskKeys& keys);

}  // namespace tetrad::storage
