// SPDX-License-Identifier: Apache-2.0
// The text of an order is its path and the parameters that it takes: setting name='x' value='7'.
#include "server/admin/order_audit.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cql/grammar/ast_print.h"

namespace tetrad::server {
namespace {

/// What the audit log says of who has the token.
constexpr std::string_view kTokenUser = "token";

// Of those that are refused. Anybody can make them, and what is recorded pushes the oldest records
// out: from here that takes weeks. The others are counted.
constexpr int64_t kRefusalsAgainUs = 60'000'000;
constexpr int kRefusalsMax = 60;
constexpr size_t kRefusedTextMax = 200;

/// "" of an order that was carried out.
std::string error_in(const HttpResponse& answer) {
  if (answer.status < 400) return "";
  const auto body = nlohmann::json::parse(answer.body, nullptr, false);
  if (body.is_object() && body.contains("error") && body["error"].is_string()) return body["error"];
  return fmt::format("status {}", answer.status);
}

}  // namespace

OrderAudit::~OrderAudit() {
  while (!begun_.empty()) end(begun_.begin()->first, "the node ended before the order did");
}

HttpServer::Respond OrderAudit::begin(const HttpRequest& request,
                                      std::span<const std::string_view> parameters,
                                      HttpServer::Respond respond) {
  if (trail_ == nullptr) return respond;
  const uint64_t number = next_++;
  cql::AuditRecord record = record_of(request, parameters);
  record.user = kTokenUser;
  begun_.emplace(number, Begun{std::move(record), reactor_.wall_time_us()});
  return [this, number, respond = std::move(respond)](HttpResponse answer) {
    end(number, error_in(answer));
    respond(std::move(answer));
  };
}

void OrderAudit::refuse(const HttpRequest& request, std::span<const std::string_view> parameters,
                        const HttpResponse& answer) {
  if (trail_ == nullptr) return;
  // So tetractl asks a node of its machine where the token is.
  constexpr int kUnauthorized = 401;
  if (answer.status == kUnauthorized && request.token.empty()) return;
  // Anybody can make these: while the log cannot be written none of them waits.
  if (!trail_->check()) return;
  const base::MonotonicUs now_us = reactor_.now_us();
  if (!refusals_since_us_ || now_us >= *refusals_since_us_ + kRefusalsAgainUs) {
    refusals_since_us_ = now_us;
    refusals_ = 0;
  }
  if (refusals_ == kRefusalsMax) {
    ++refusals_unrecorded_;
    return;
  }
  ++refusals_;
  cql::AuditRecord record = record_of(request, parameters);
  if (record.text.size() > kRefusedTextMax) {
    record.text.resize(kRefusedTextMax);
    record.text += "...";
  }
  record.subject = {"UNAUTHORIZED_ATTEMPT", cql::AuditCategory::kAuth, "", ""};
  record.error = error_in(answer);
  if (const uint64_t others = std::exchange(refusals_unrecorded_, 0); others != 0)
    record.error += fmt::format("; {} before it are not recorded", others);
  trail_->record(std::move(record));
}

// Without the keyspace that it may be about: the filters by keyspaces are for statements.
cql::AuditRecord OrderAudit::record_of(const HttpRequest& request,
                                       std::span<const std::string_view> parameters) const {
  cql::AuditRecord record;
  record.unix_ms = reactor_.wall_time_us() / 1000;
  record.client_address = request.client_address;
  record.client_port = request.client_port;
  record.subject = {"ORDER", cql::AuditCategory::kAdmin, "", ""};
  record.text = request.path.substr(1);
  for (const std::string_view name : parameters) {
    if (const auto found = request.query.find(std::string(name)); found != request.query.end())
      // Quoted, so that a value cannot look like another parameter.
      record.text += fmt::format(" {}={}", name, cql::ast::quote_string(found->second));
  }
  return record;
}

void OrderAudit::end(uint64_t number, std::string error) {
  const auto found = begun_.find(number);
  if (found == begun_.end()) return;
  cql::AuditRecord record = std::move(found->second.record);
  record.duration_us = std::max<int64_t>(0, reactor_.wall_time_us() - found->second.begun_us);
  record.error = std::move(error);
  begun_.erase(found);
  trail_->record(std::move(record));
}

}  // namespace tetrad::server
