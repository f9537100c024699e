// SPDX-License-Identifier: Apache-2.0
// How clients speak TLS to a node, and what bounds those that never come to an end with it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/reactor.h"
#include "base/tls_context.h"

namespace tetrad::server {

/// What of a client's certificate may be the role that it is: then it need not log in.
enum class CertificateIdentity : uint8_t { kNone, kCommonName, kAlternativeName };

/// Of all shards.
/// Made by open_node_tls(). `identity` counts for certificates that an authority of the credentials
/// has signed; whoever shows none logs in.
struct ClientTlsRules {
  std::shared_ptr<base::TlsCredentials> credentials;
  bool optional = false;  // plain clients are served on the same port
  CertificateIdentity identity = CertificateIdentity::kNone;
};

/// Of a shard at a time. Beyond it one that its client keeps waiting is closed (tls_door.h).
// A handshake costs a core milliseconds, and a client can begin many without ending one.
inline constexpr size_t kHandshakesMax = 512;

/// Lines about clients that do what they should not, five a second.
struct Notices {
  std::optional<base::MonotonicUs> since_us;
  int said = 0;  // since then
  uint64_t unsaid = 0;
};

}  // namespace tetrad::server
