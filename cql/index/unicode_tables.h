// SPDX-License-Identifier: Apache-2.0
// What indexes know of Unicode, of one version for ever: see unicode_tables.cc.
#pragma once

#include <cstdint>
#include <span>

namespace tetrad::cql {

/// Every `step`th code point from `first` to `last` has its other case at that distance.
struct CaseRun {
  char32_t first, last;
  int32_t distance;
  uint32_t step;
};

/// A code point whose upper case is more than one; what is not used is 0.
struct UpperSpelling {
  char32_t code_point;
  char32_t capitals[3];
};

/// Canonical; `second` is 0 where there is one part only.
struct Decomposition {
  char32_t whole, first, second;
};

/// Two code points that become one in the canonical composition.
struct Composition {
  char32_t first, second, whole;
};

/// Code points of one combining class, which is not 0.
struct CombiningRun {
  char32_t first, last;
  uint32_t combining;
};

/// The letters of ASCII that a code point is written with where there is nothing else.
struct AsciiFold {
  char32_t code_point;
  char letters[5];
};

// Ascending by code point, compositions by first and second.
std::span<const CaseRun> lower_runs();
std::span<const CaseRun> upper_runs();
std::span<const UpperSpelling> upper_spellings();
std::span<const Decomposition> decompositions();
std::span<const Composition> compositions();
std::span<const CombiningRun> combining_runs();
std::span<const AsciiFold> ascii_folds();

}  // namespace tetrad::cql
