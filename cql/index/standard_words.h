// SPDX-License-Identifier: Apache-2.0
// Divides texts into words as Cassandra's StandardAnalyzer does: the word boundaries of Unicode's UAX #29
// as Lucene tells them, without what is no word (white space, punctuation, symbols).
//
//   word   := runs of letters, digits, Katakana, each with its marks. Letters and digits stand side by
//             side, other runs are joined by low lines, which may also stand before and behind. A full
//             stop, an apostrophe and the like are part of a word between two letters or two digits,
//             a colon between letters, a comma between digits
//           | one ideograph, or one character of Hiragana, with its marks
//           | a run of Thai, Lao, Khmer or Burmese
#pragma once

#include <optional>

#include "base/bytes.h"

namespace tetrad::cql {

/// In the characters of Java. Larger words are left out, as in Cassandra.
inline constexpr size_t kStandardWordMax = 255;

/// Takes the words of a text in their order; linear in its size. The text must outlive it.
class StandardWords {
 public:
  explicit StandardWords(BytesView text) : rest_(text) {}
  /// Unset: there are no more.
  std::optional<BytesView> next();

 private:
  BytesView rest_;
  // Low lines before this many bytes from the end begin no word.
  size_t barren_above_ = SIZE_MAX;
};

}  // namespace tetrad::cql
