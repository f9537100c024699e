// SPDX-License-Identifier: Apache-2.0
// What indexes know of the English language, for ever: terms on disk are made with it.
#pragma once

#include "base/bytes.h"

namespace tetrad::cql {

/// Words that are too common to search for: the list of the SMART system (G. Salton, C. Buckley, Cornell
/// University), which Cassandra uses. Lower case only.
bool is_english_stop_word(BytesView word);

/// The stem of a word in lower case, by the algorithm "Porter2" of Snowball (M. F. Porter, R. Boulton): running, runs
/// -> run. Letters outside a to z are consonants.
Bytes english_stem(BytesView word);

}  // namespace tetrad::cql
