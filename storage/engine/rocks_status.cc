// SPDX-License-Identifier: Apache-2.0
// Kinds of RocksDB's statuses as our codes.
#include "storage/engine/rocks_status.h"

#include <cerrno>
#include <cstring>

#include <rocksdb/status.h>

namespace tetrad::storage {

bool is_want_of_room(const rocksdb::Status& status) {
  if (status.IsNoSpace()) return true;
  if (!status.IsIOError()) return false;
  // RocksDB keeps no other errno but its text.
  const std::string text = status.ToString();
  for (const int error : {EDQUOT, EMFILE, ENFILE})
    if (text.find(std::strerror(error)) != std::string::npos) return true;
  return false;
}

Error error_of(const rocksdb::Status& status, std::string_view what) {
  ErrorCode code = ErrorCode::kIo;
  if (status.IsCorruption()) code = ErrorCode::kCorruption;
  if (status.IsShutdownInProgress()) code = ErrorCode::kCancelled;
  if (status.IsInvalidArgument() || status.IsNotSupported()) code = ErrorCode::kConfig;
  if (is_want_of_room(status)) code = ErrorCode::kLimit;
  if (status.IsNoSpace()) return Error(code, fmt::format("{}: the disk is full", what));
  return Error(code, fmt::format("{}: {}", what, status.ToString()));
}

}  // namespace tetrad::storage
