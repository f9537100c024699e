// SPDX-License-Identifier: Apache-2.0
// Known mistakes of the store, to be switched on one at a time by its model tests, which must catch
// each. Exists in tests only: without TETRAD_MUTANTS every switch is the constant false.
#pragma once

namespace tetrad::storage {

#ifdef TETRAD_MUTANTS
struct StorageMutants {
  bool writes_back_blindly = false;  // rule 19: a write that came after the read is not looked for
};
inline StorageMutants storage_mutants;
#define TETRAD_STORAGE_MUTANT(name) (::tetrad::storage::storage_mutants.name)
#else
#define TETRAD_STORAGE_MUTANT(name) false
#endif

}  // namespace tetrad::storage
