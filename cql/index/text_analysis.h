// SPDX-License-Identifier: Apache-2.0
// What an index does to a text: one function for what is written, what is asked for and what is
// compared.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace tetrad::cql {

/// What becomes of the letters of a standard word.
enum class WordCase : uint8_t { kKept, kLower, kUpper };

/// What is done to a text before it is indexed, looked for or compared, in this order.
struct TextAnalysis {
  bool case_sensitive = true;  // false: to lower case, the final sigma like any other
  bool normalize = false;      // to the canonical composition (NFC)
  bool ascii = false;          // letters with marks to those without, ligatures to their letters
  /// A character in UTF-8: each piece of the text between two of them is a term. Empty: the text is one.
  std::array<char, 4> delimiter = {};
  /// The terms are the words that Cassandra's StandardAnalyzer finds (standard_words.h). To each the next three
  /// are done before what stands above.
  bool has_standard_words = false;
  WordCase word_case = WordCase::kKept;  // as Java does it: the final sigma is a letter of its own
  bool skips_stop_words = false;         // of English
  bool stems = false;                    // by the rules of English
  bool has_words() const { return has_standard_words || delimiter.front() != 0; }
  /// Of the characters of a term.
  bool does_nothing() const { return case_sensitive && !normalize && !ascii; }
};

/// `text` is UTF-8 as is_valid_utf8() takes it; bytes that are not stay as they are.
Bytes analyze(const TextAnalysis& analysis, BytesView text);

/// What an index keeps of `text`, analyzed: the words that are not empty, else all of it, empty or not.
std::vector<Bytes> terms_of(const TextAnalysis& analysis, BytesView text);

}  // namespace tetrad::cql
