// SPDX-License-Identifier: Apache-2.0
// The door to an audit log: who asked for what, from where, and with what outcome. Statements are
// recorded when they have ended. Where the log cannot take them they are refused before they begin,
// so that nothing happens without a record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/uuid.h"
#include "cql/prepare/statement_subject.h"

namespace tetrad::cql {

/// One line of the log.
struct AuditRecord {
  int64_t unix_ms = 0;
  std::string user;  // "" without authentication
  std::string client_address;
  uint16_t client_port = 0;
  StatementSubject subject;
  /// Of a statement as it was sent, up to a password. Values bound to markers are never in it.
  std::string text;
  std::string error;          // "" when it was done
  std::optional<Uuid> batch;  // of statements that came in one BATCH of the protocol
  int64_t duration_us = 0;
};

/// Shared by the shards of a node; all may be called from any thread, and none waits.
class AuditTrail {
 public:
  virtual ~AuditTrail() = default;

  /// Whether a record can be taken now. Errors: kOverloaded, kServerError when the log's disk fails.
  virtual Result<void> check() const = 0;
  /// Takes one, or drops it if the filters say so.
  virtual void record(AuditRecord record) = 0;
};

}  // namespace tetrad::cql
