// SPDX-License-Identifier: Apache-2.0
// Records the orders of the admin port in the audit log: each with its sender and its result.
//
// An order is recorded when it has been answered, under the category ADMIN; its user is "token",
// since whoever has the node's token may give orders. One with a wrong token is recorded as a
// statement is that its role may not run; so is one of a web page. An order runs also while the log
// cannot be written, since it may be what makes room on the disk; its record waits until it can.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/reactor.h"
#include "cql/execute/audit.h"
#include "server/admin/http_server.h"

namespace tetrad::server {

/// On the thread of the admin port. Answers are not to be called after its end, as those of
/// AdminService are not.
class OrderAudit {
 public:
  /// `trail`: null, and nothing is recorded. Both outlive this object.
  OrderAudit(cql::AuditTrail* trail, base::Reactor& reactor) : trail_(trail), reactor_(reactor) {}
  /// Records those that have no answer yet.
  ~OrderAudit();
  OrderAudit(const OrderAudit&) = delete;
  OrderAudit& operator=(const OrderAudit&) = delete;

  /// An order begins; the answer that goes through what is returned is recorded with it.
  /// `parameters`: those that it takes. The values of others are never recorded.
  HttpServer::Respond begin(const HttpRequest& request,
                            std::span<const std::string_view> parameters,
                            HttpServer::Respond respond);
  /// An order that is not carried out, since who gave it may not. Of these 60 in a minute are
  /// recorded, each with the begin of its text.
  void refuse(const HttpRequest& request, std::span<const std::string_view> parameters,
              const HttpResponse& answer);

 private:
  /// An order that has no answer yet.
  struct Begun {
    cql::AuditRecord record;
    int64_t begun_us;  // of the wall's clock: the reactor's stands still within a turn
  };
  cql::AuditRecord record_of(const HttpRequest& request,
                             std::span<const std::string_view> parameters) const;
  void end(uint64_t number, std::string error);

  cql::AuditTrail* const trail_;
  base::Reactor& reactor_;
  std::map<uint64_t, Begun> begun_;
  uint64_t next_ = 0;
  std::optional<base::MonotonicUs> refusals_since_us_;
  int refusals_ = 0;  // since then
  uint64_t refusals_unrecorded_ = 0;
};

}  // namespace tetrad::server
