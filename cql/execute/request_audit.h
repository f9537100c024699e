// SPDX-License-Identifier: Apache-2.0
// What of one request goes into the audit log.
#pragma once

#include <vector>

#include "base/random.h"
#include "base/reactor.h"
#include "cql/execute/audit.h"
#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

/// An error's text for traces and logs: the parser's name what stands in the statement, so that of
/// a statement with the word "password" there is none.
std::string shown_error(const Request& request, const std::string& message);

/// Collects the statements of a request while it is answered, and records them at its end: one
/// record for each, for a BATCH of the protocol one more. Lives in the request's task. Without a
/// trail it does nothing.
class RequestAudit {
 public:
  /// All outlive it.
  RequestAudit(AuditTrail* trail, const ClientState& client, base::Reactor& reactor,
               base::Random& random)
      : trail_(trail),
        client_(client),
        reactor_(reactor),
        random_(random),
        begun_us_(trail == nullptr ? 0 : reactor.wall_time_us()) {}

  /// Errors: the log takes no record; the request must not begin.
  Result<void> check() const { return trail_ == nullptr ? Result<void>() : trail_->check(); }
  /// A statement that the request prepares or runs.
  void add(const Statement& statement, BytesView text) {
    if (trail_ != nullptr) take(statement, text);
  }
  /// The request begins again: what was noted of it counts for nothing.
  void begin_again() {
    parts_.clear();
    refused_ = {};
  }
  /// The statement of a QUERY or PREPARE that is not prepared, as far as it was understood.
  void note_refused(StatementSubject subject) { refused_ = std::move(subject); }
  /// Once. `error`: null when it was done.
  void finish(const Request& request, const Error* error) {
    if (trail_ != nullptr) record(request, error);
  }

 private:
  /// One statement that the request prepares or runs; a batch has several.
  struct Part {
    StatementSubject subject;
    std::string text;
    bool is_whole = false;  // it was understood, and the word "password" is not in it
  };
  void take(const Statement& statement, BytesView text);
  void record(const Request& request, const Error* error);
  /// Whether an error may be recorded as it is.
  bool is_open(const Request& request) const;

  AuditTrail* const trail_;
  const ClientState& client_;
  base::Reactor& reactor_;
  base::Random& random_;
  /// Of the wall's clock: the reactor's stands still within a turn, in which most requests end.
  const int64_t begun_us_;
  std::vector<Part> parts_;
  StatementSubject refused_;
};

}  // namespace tetrad::cql
