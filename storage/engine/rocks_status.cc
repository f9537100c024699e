// SPDX-License-Identifier: Apache-2.0
#include "storage/engine/rocks_status.h"

#include <rocksdb/status.h>

namespace tetrad::storage {

Error error_of(const rocksdb::Status& status, std::string_view what) {
  ErrorCode code = ErrorCode::kIo;
  if (status.IsCorruption()) code = ErrorCode::kCorruption;
  if (status.IsShutdownInProgress()) code = ErrorCode::kCancelled;
  if (status.IsInvalidArgument() || status.IsNotSupported()) code = ErrorCode::kConfig;
  if (status.IsNoSpace()) return Error(code, fmt::format("{}: the disk is full", what));
  return Error(code, fmt::format("{}: {}", what, status.ToString()));
}

}  // namespace tetrad::storage
