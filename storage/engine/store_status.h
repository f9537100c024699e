// SPDX-License-Identifier: Apache-2.0
// Names of store states, for logs, `/health` and `tetractl status`.
#pragma once

#include <string_view>

#include "storage/engine/store.h"

namespace tetrad::storage {

/// "serving", "full", "hung", "damaged", "failed".
std::string_view name_of(StoreState state);
/// Of a number that a newer node may have sent: what is not known serves.
StoreState store_state_numbered(uint8_t number);

}  // namespace tetrad::storage
