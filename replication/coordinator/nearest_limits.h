// SPDX-License-Identifier: Apache-2.0
// How many names a search for near vectors holds, of all tablets together.
#pragma once

#include "replication/coordinator/nearest_names.h"

namespace tetrad::replication {

/// Leaves the nearest only: `rows_max` at most, and as many as have keys of `key_bytes_max` together,
/// one at least.
void keep_nearest(NearestNames& names, size_t rows_max, size_t key_bytes_max);

}  // namespace tetrad::replication
