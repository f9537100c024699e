// SPDX-License-Identifier: Apache-2.0
// What others are shown of a request: traces, logs of slow statements, system_views.queries. Never a
// password, nor more of a text than fits a line.
#include "cql/execute/password.h"
#include "cql/execute/query_processor.h"

namespace tetrad::cql {
namespace {

/// The beginning of what the request says, for the log.
std::string shown_text(BytesView text) {
  constexpr size_t kShownBytes = 200;
  return std::string(up_to_secret(text.substr(0, kShownBytes)));
}

}  // namespace

TraceSession QueryProcessor::describe(const Request& request) const {
  TraceSession out;
  const QueryParameters* parameters = nullptr;
  if (const auto* query = std::get_if<QueryRequest>(&request.message)) {
    out.request = "Execute CQL3 query";
    out.parameters["query"] = std::string(up_to_secret(query->text));
    parameters = &query->parameters;
  } else if (const auto* prepare = std::get_if<PrepareRequest>(&request.message)) {
    out.request = "Preparing CQL3 query";
    out.parameters["query"] = std::string(up_to_secret(prepare->text));
  } else if (const auto* execute = std::get_if<ExecuteRequest>(&request.message)) {
    out.request = "Execute CQL3 prepared query";
    const auto found = prepared_.find(Bytes(execute->id));
    if (found != prepared_.end()) out.parameters["query"] = up_to_secret(found->second->text);
    parameters = &execute->parameters;
  } else if (const auto* batch = std::get_if<BatchRequest>(&request.message)) {
    out.request = "Execute batch of CQL3 queries";
    parameters = &batch->parameters;
  }
  if (parameters != nullptr) {
    out.parameters["consistency_level"] = base::name_of(parameters->consistency);
    out.parameters["serial_consistency_level"] =
        base::name_of(parameters->serial_consistency.value_or(ConsistencyLevel::kSerial));
    if (parameters->page_size) {
      out.parameters["page_size"] = std::to_string(*parameters->page_size);
    }
  }
  return out;
}

std::vector<RunningRequest> QueryProcessor::running(size_t count_max) const {
  std::vector<RunningRequest> out;
  running_.for_each([&](const RunningRequests::Entry& entry) {
    if (out.size() == count_max) return;
    out.push_back({task_of(entry.request), reactor_.now_us() - entry.began_us});
  });
  return out;
}

std::string QueryProcessor::text_of_prepared(BytesView id) const {
  const auto found = prepared_.find(Bytes(id));
  return found != prepared_.end() ? shown_text(found->second->text)
                                  : "prepared " + base::to_hex(id);
}

std::string QueryProcessor::task_of(const Request& request) const {
  if (const auto* query = std::get_if<QueryRequest>(&request.message))
    return "QUERY " + shown_text(query->text);
  if (const auto* prepare = std::get_if<PrepareRequest>(&request.message))
    return "PREPARE " + shown_text(prepare->text);
  if (const auto* execute = std::get_if<ExecuteRequest>(&request.message))
    return "EXECUTE " + text_of_prepared(execute->id);
  const auto* const batch = std::get_if<BatchRequest>(&request.message);
  if (batch == nullptr || batch->statements.empty()) return "BATCH of 0";
  const BatchRequest::Statement& first = batch->statements[0];
  return fmt::format(
      "BATCH of {}, the first: {}", batch->statements.size(),
      first.prepared ? text_of_prepared(first.text_or_id) : shown_text(first.text_or_id));
}

}  // namespace tetrad::cql
