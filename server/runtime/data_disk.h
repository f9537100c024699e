// SPDX-License-Identifier: Apache-2.0
// The disk under the data directory.
//
// What is measured here decides when writes are refused for want of room
// (cql/execute/disk_guard.h).
#pragma once

#include <string>

#include "replication/membership/disk_usage.h"

namespace tetrad::server {

/// Measures the disk under one directory. Blocks: to be used on a thread of the pool.
class DataDisk final : public replication::DiskGauge {
 public:
  explicit DataDisk(std::string directory) : directory_(std::move(directory)) {}

  /// The lengths of the directory's files, and what is left on its file system for others than the
  /// superuser.
  Result<replication::DiskSpace> measure() override;
  /// What is left alone, which costs one call of the system.
  Result<uint64_t> measure_usable() override;
  /// Of the whole file system. Errors: kIo.
  Result<uint64_t> capacity_bytes() const;
  /// What is left on it for others than the superuser. Errors: kIo.
  Result<uint64_t> usable_bytes() const;

 private:
  const std::string directory_;
};

}  // namespace tetrad::server
