// SPDX-License-Identifier: Apache-2.0
// Names of a store's states, as logs and the admin port show them.
#include "storage/engine/store_status.h"

namespace tetrad::storage {

std::string_view name_of(StoreState state) {
  switch (state) {
    case StoreState::kServing:
      break;
    case StoreState::kFull:
      return "full";
    case StoreState::kHung:
      return "hung";
    case StoreState::kDamaged:
      return "damaged";
    case StoreState::kFailed:
      return "failed";
  }
  return "serving";
}

StoreState store_state_numbered(uint8_t number) {
  return number <= static_cast<uint8_t>(StoreState::kFailed) ? static_cast<StoreState>(number)
                                                             : StoreState::kServing;
}

}  // namespace tetrad::storage
