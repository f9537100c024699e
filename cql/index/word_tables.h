// SPDX-License-Identifier: Apache-2.0
// What a character is to the rules that divide texts into words, of one version of Unicode for ever: see
// word_tables.cc.
#pragma once

#include <cstdint>
#include <span>

namespace tetrad::cql {

/// Of UAX #29, merged where the tokenizer (standard_words.h) treats characters alike.
enum class WordClass : uint8_t {
  kOther,   // belongs to no word
  kLetter,  // Hangul too
  kHebrew,  // a letter that can have quotation marks in its words
  kNumber,  // a digit
  kKatakana,
  kSingle,           // ideographs and Hiragana: each is a word
  kComplex,          // Thai, Lao, Khmer, Burmese: a run is a word
  kComplexMark,      // a mark of these, which other words take in as a mark
  kMark,             // belongs to the character before
  kJoiner,           // low lines
  kMidLetter,        // between letters
  kMidNumber,        // between digits
  kMidNumberLetter,  // between letters, between digits
  kSingleQuote,      // as kMidNumberLetter, also behind a Hebrew letter
  kDoubleQuote,      // between Hebrew letters
};

/// All code points from `first` to `last`.
struct WordRun {
  char32_t first, last;
  WordClass word_class;
};

/// Ascending; what is in none is kOther.
std::span<const WordRun> word_runs();

}  // namespace tetrad::cql
