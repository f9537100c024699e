// SPDX-License-Identifier: Apache-2.0
// The files of an audit log: audit.log, which is appended to, and those that were full, audit.1.log
// (the newest of them), audit.2.log and so on.
//
// Others may rename or remove audit.log, as logrotate does: look() finds that out, and begins a new
// one. Only their owner reads what is in the folder, whoever made it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tetrad::server {

/// Of one thread.
class AuditFile {
 public:
  /// Opens nothing yet.
  AuditFile(std::string folder, uint64_t bytes_max, size_t files_max);
  ~AuditFile();
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;

  /// Makes the folder, and opens audit.log or a new one. Errors: kIo; then nothing is open.
  Result<void> open();
  /// Opens anew where audit.log is no longer what is written, or nothing is open; true: it was
  /// another file. Errors: kIo.
  Result<bool> look();
  /// Whole lines: all of them are written, or none. Errors: kIo; the next call tries again.
  Result<void> append(std::string_view lines);

 private:
  std::string path(size_t number) const;  // 0: audit.log
  void close();
  /// audit.log becomes audit.1.log; a new one is begun.
  Result<void> rotate();

  const std::string folder_;
  const uint64_t bytes_max_;
  const size_t files_max_;
  int file_ = -1;
  uint64_t bytes_ = 0;  // of the open file
};

}  // namespace tetrad::server
