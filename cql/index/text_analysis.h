// SPDX-License-Identifier: Apache-2.0
// What an index does to a text: one function for what is written, what is asked for and what is
// compared.
#pragma once

#include <array>
#include <vector>

#include "base/bytes.h"

namespace tetrad::cql {

/// What is done to a text before it is indexed, looked for or compared, in this order.
struct TextAnalysis {
  bool case_sensitive = true;  // false: to lower case, the final sigma like any other
  bool normalize = false;      // to the canonical composition (NFC)
  bool ascii = false;          // letters with marks to those without, ligatures to their letters
  /// A character in UTF-8: each piece of the text between two of them is a term. Empty: the text is one.
  std::array<char, 4> delimiter = {};
  bool has_words() const { return delimiter.front() != 0; }
  /// Of the characters of a term.
  bool does_nothing() const { return case_sensitive && !normalize && !ascii; }
};

/// `text` is UTF-8 as is_valid_utf8() takes it; bytes that are not stay as they are.
Bytes analyze(const TextAnalysis& analysis, BytesView text);

/// The pieces of `text` that are not empty; all of it, empty or not, without a delimiter.
std::vector<BytesView> words_of(const TextAnalysis& analysis, BytesView text);

}  // namespace tetrad::cql
