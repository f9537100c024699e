// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/request_audit.h"

#include <algorithm>

#include "cql/execute/password.h"

namespace tetrad::cql {
namespace {

constexpr size_t kRecordedBytesMax = 64u << 10;  // of a text

/// `open`, what of `text` may be recorded, and not longer than a record may be.
std::string recorded(BytesView text, BytesView open) {
  std::string out(open.substr(0, kRecordedBytesMax));
  if (open.size() > kRecordedBytesMax) {
    out += fmt::format("... ({} bytes)", text.size());
  } else if (open.size() < text.size()) {
    out += "*******";
  }
  return out;
}

/// What of a text is looked at: a little more than is recorded, so that its end shows.
BytesView beginning_of(BytesView text) { return text.substr(0, kRecordedBytesMax + 1); }

/// Of a request none of whose statements was understood.
std::string text_of(const Request& request) {
  if (const auto* query = std::get_if<QueryRequest>(&request.message))
    return recorded(query->text, up_to_secret(beginning_of(query->text)));
  if (const auto* prepare = std::get_if<PrepareRequest>(&request.message))
    return recorded(prepare->text, up_to_secret(beginning_of(prepare->text)));
  if (const auto* execute = std::get_if<ExecuteRequest>(&request.message))
    return "prepared " + base::to_hex(execute->id);
  return "BATCH";
}

/// As Cassandra: what failed is of a type of its own.
void mark_failed(ErrorCode code, StatementSubject& subject) {
  const bool is_right = code == ErrorCode::kUnauthorized;
  subject.type = is_right ? "UNAUTHORIZED_ATTEMPT" : "REQUEST_FAILURE";
  subject.category = is_right ? AuditCategory::kAuth : AuditCategory::kError;
}

}  // namespace

std::string shown_error(const Request& request, const std::string& message) {
  // Of a longer text it is not known.
  const auto has_password = [](BytesView text) {
    return up_to_secret(beginning_of(text)).size() < text.size();
  };
  bool hides = false;
  if (const auto* query = std::get_if<QueryRequest>(&request.message)) {
    hides = has_password(query->text);
  } else if (const auto* prepare = std::get_if<PrepareRequest>(&request.message)) {
    hides = has_password(prepare->text);
  } else if (const auto* batch = std::get_if<BatchRequest>(&request.message)) {
    hides = std::ranges::any_of(batch->statements, [&](const auto& part) {
      return !part.prepared && has_password(part.text_or_id);
    });
  }
  return hides ? "not shown: the statement may have a password" : recorded(message, message);
}

void RequestAudit::take(const Statement& statement, BytesView text) {
  const BytesView open = up_to_password(text);
  parts_.push_back({statement.subject(), recorded(text, open), open.size() == text.size()});
}

// A batch may have statements that were not understood beside those that were.
bool RequestAudit::is_open(const Request& request) const {
  return !std::holds_alternative<BatchRequest>(request.message) && !parts_.empty() &&
         std::ranges::all_of(parts_, &Part::is_whole);
}

void RequestAudit::record(const Request& request, const Error* error) {
  AuditRecord common;
  const int64_t now_us = reactor_.wall_time_us();
  common.unix_ms = now_us / 1000;
  common.user = client_.user;
  common.client_address = client_.client_address;
  common.client_port = client_.client_port;
  common.duration_us = std::max<int64_t>(0, now_us - begun_us_);
  if (error != nullptr)
    common.error = is_open(request) ? recorded(error->message, error->message)
                                    : shown_error(request, error->message);
  if (const auto* batch = std::get_if<BatchRequest>(&request.message)) {
    common.batch = base::make_time_uuid(base::uuid_ticks_of_unix_us(now_us),
                                        static_cast<uint16_t>(random_.next()), random_.next());
    common.subject = {"BATCH", AuditCategory::kDml, "", ""};
    common.text = fmt::format("BATCH of {} statements", batch->statements.size());
    AuditRecord whole = common;
    if (error != nullptr) mark_failed(error->code, whole.subject);
    trail_->record(std::move(whole));
  } else if (parts_.empty()) {
    parts_.push_back({std::move(refused_), text_of(request), false});
  }
  for (Part& part : parts_) {
    AuditRecord one = common;
    one.subject = std::move(part.subject);
    one.text = std::move(part.text);
    if (error != nullptr) {
      mark_failed(error->code, one.subject);
    } else if (std::holds_alternative<PrepareRequest>(request.message)) {
      one.subject.type = "PREPARE_STATEMENT";
      one.subject.category = AuditCategory::kPrepare;
    }
    trail_->record(std::move(one));
  }
}

}  // namespace tetrad::cql
