// SPDX-License-Identifier: Apache-2.0
// The edit distance between a word and each name, row by row.
#include "base/closest_name.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tetrad::base {
namespace {

/// Letters put in, taken out or changed (Levenshtein), row by row.
size_t edits_between(std::string_view a, std::string_view b) {
  // row[j]: edits between the first i letters of `a` and the first j of `b`.
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string closest_name(std::string_view word, std::span<const std::string> names) {
  // The work grows with the product of both lengths, and the word may be a client's.
  constexpr size_t kWordMax = 100;
  if (word.size() > kWordMax) return "";
  std::string best;
  // A third of the letters, rounded down, may be wrong: of a word of less than three none.
  size_t fewest = word.size() / 3 + 1;
  for (const std::string& name : names) {
    const size_t edits = edits_between(word, name);
    if (edits >= fewest) continue;
    fewest = edits;
    best = name;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names,
                         std::string_view otherwise) {
  const std::string closest = closest_name(word, names);
  return closest.empty() ? std::string(otherwise) : "; did you mean " + closest + "?";
}

}  // namespace tetrad::base
