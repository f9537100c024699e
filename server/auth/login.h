// SPDX-License-Identifier: Apache-2.0
// Logging in with a name and a password (SASL PLAIN), as Cassandra's PasswordAuthenticator.
#pragma once

#include <string>

#include "base/reactor.h"
#include "base/task.h"
#include "cql/execute/query_processor.h"
#include "server/auth/login_limits.h"

namespace tetrad::server {

/// The class that drivers know and answer with PLAIN.
/// Named in AUTHENTICATE; a driver without this name refuses to log in.
inline constexpr std::string_view kPasswordAuthenticator =
    "org.apache.cassandra.auth.PasswordAuthenticator";

/// Whose password it is: the role's name. The password is hashed off the loop; roles are those that
/// the shard knows, so that it works without a quorum of the metadata. Errors: kBadCredentials with
/// Cassandra's texts, kOverloaded. All references outlive the task.
Task<Result<std::string>> log_in(std::string address, std::optional<Bytes> token,
                                 base::Reactor& reactor, cql::QueryProcessor& processor,
                                 LoginLimits& limits, LoginWait& wait);

/// For the audit log; `error`: null when it succeeded. Nothing without a trail.
void record_login(cql::AuditTrail* trail, const cql::ClientState& client, const std::string& user,
                  const Error* error, base::Reactor& reactor);

/// The name in a token; "" where there is none.
std::string user_in_token(const std::optional<Bytes>& token);

}  // namespace tetrad::server
