// SPDX-License-Identifier: Apache-2.0
// Whether peers will take the own certificate, asked before it is put to use: what they would say
// comes too late, when connections fail one after another.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/tls_context.h"

namespace tetrad::base {

/// Of a context that was read from `files` for such peers. For kServerRequired, where both sides
/// have the same authority, it is what the peer's handshake checks: the chain to the authority,
/// signatures, purpose. For all others the authority is that of the peers, who have their own for
/// us. `now_s`, since 1970: the dates count, too, and that the certificate is one for servers.
/// Without a certificate all is well. Errors: kConfig, with the file and what is wrong.
Result<void> check_own_certificate(const TlsContext& context, const TlsFiles& files, TlsPeer peer,
                                   std::optional<int64_t> now_s);

}  // namespace tetrad::base
