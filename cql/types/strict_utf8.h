// SPDX-License-Identifier: Apache-2.0
// What travels as text must be so: statements, names, messages. Values of type text may be wider
// (is_valid_utf8).
#pragma once

#include "base/bytes.h"

namespace tetrad::cql {

/// True for UTF-8 of the Unicode standard: no C0 80, no surrogates, nothing past F4 8F BF BF.
bool is_strict_utf8(BytesView bytes);

}  // namespace tetrad::cql
