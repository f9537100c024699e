// SPDX-License-Identifier: Apache-2.0
// From rocksdb::Status to our errors: the kind is kept, not just the text.
#pragma once

#include <string_view>

#include "base/result.h"

namespace rocksdb {
class Status;
}

namespace tetrad::storage {

/// `what` was being done: "reading table 7". Corruption becomes kCorruption, shutdown kCancelled, a
/// refused option kConfig, no room or no file descriptors kLimit, everything else kIo.
Error error_of(const rocksdb::Status& status, std::string_view what);

/// The disk or a quota is full, or there are no file descriptors left: it may be over one day.
bool is_want_of_room(const rocksdb::Status& status);

}  // namespace tetrad::storage
