// SPDX-License-Identifier: Apache-2.0
// What an index does to a text: one function for what is written, what is asked for and what is
// compared.
#pragma once

#include "base/bytes.h"

namespace tetrad::cql {

/// What is done to a text before it is indexed, looked for or compared, in this order.
struct TextAnalysis {
  bool case_sensitive = true;  // false: to lower case, the final sigma like any other
  bool normalize = false;      // to the canonical composition (NFC)
  bool ascii = false;          // letters with marks to those without, ligatures to their letters
  bool does_nothing() const { return case_sensitive && !normalize && !ascii; }
};

/// `text` is UTF-8 as is_valid_utf8() takes it; bytes that are not stay as they are.
Bytes analyze(const TextAnalysis& analysis, BytesView text);

}  // namespace tetrad::cql
