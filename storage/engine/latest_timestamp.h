// SPDX-License-Identifier: Apache-2.0
// The highest timestamp of what is stored of some rows of a partition.
#pragma once

#include "storage/engine/key_view.h"
#include "storage/row/read_command.h"

namespace tetrad::storage {

/// As Store::latest_timestamp describes.
Result<int64_t> latest_timestamp_of(KeyView& view, const ReadCommand& command);

}  // namespace tetrad::storage
