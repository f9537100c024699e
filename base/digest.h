// SPDX-License-Identifier: Apache-2.0
// Digests that are chosen by name (OpenSSL).
//
// The names come from a client's function call (HASH functions, masks), so only those that Java has
// are known.
#pragma once

#include <optional>

#include "base/bytes.h"

namespace tetrad::base {

/// By the name that Java has for it, in any case: MD5, SHA-1, SHA-224 to SHA-512, SHA-512/256,
/// SHA3-256 and their like. Unset for another name.
/// The bytes of the digest, 16 to 64 of them; not in hexadecimal.
std::optional<Bytes> digest_named(BytesView name, BytesView bytes);

}  // namespace tetrad::base
