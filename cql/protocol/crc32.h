// SPDX-License-Identifier: Apache-2.0
// CRC-32 as zlib computes it, by carry-less multiplication where the processor has it: every byte
// of a v5 connection goes through it, and zlib itself takes about a nanosecond for each.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace tetrad::cql {

/// crc32(crc32(0, a), b) is that of a and b joined.
uint32_t crc32(uint32_t crc, BytesView bytes);

}  // namespace tetrad::cql
