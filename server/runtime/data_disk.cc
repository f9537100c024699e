// SPDX-License-Identifier: Apache-2.0
// Walks the data directory, which RocksDB changes meanwhile: files that vanish are left out, so the
// sum is near, never exact. Symbolic links are not followed.
#include "server/runtime/data_disk.h"

#include <filesystem>

namespace tetrad::server {

namespace {

namespace fs = std::filesystem;

// Bounds the recursion, whatever somebody has put into the directory.
constexpr int kDepthMax = 16;

/// What goes away meanwhile counts for nothing.
uint64_t bytes_in(const fs::path& directory, int depth) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const fs::file_status status = at->symlink_status(gone);
    if (gone) continue;
    if (fs::is_directory(status)) {
      if (depth < kDepthMax) bytes += bytes_in(at->path(), depth + 1);
    } else if (fs::is_regular_file(status)) {
      const uintmax_t size = at->file_size(gone);
      if (!gone) bytes += size;
    }
  }
  return bytes;
}

Result<fs::space_info> space_of(const std::string& directory) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error)
    return fail(ErrorCode::kIo, "cannot tell the space of {}: {}", directory, error.message());
  return space;
}

}  // namespace

Result<replication::DiskSpace> DataDisk::measure() {
  TETRAD_TRY(const fs::space_info space, space_of(directory_));
  return replication::DiskSpace{bytes_in(directory_, 0), space.available};
}

Result<uint64_t> DataDisk::measure_usable() { return usable_bytes(); }

Result<uint64_t> DataDisk::capacity_bytes() const {
  TETRAD_TRY(const fs::space_info space, space_of(directory_));
  return space.capacity;
}

Result<uint64_t> DataDisk::usable_bytes() const {
  TETRAD_TRY(const fs::space_info space, space_of(directory_));
  return space.available;
}

}  // namespace tetrad::server
