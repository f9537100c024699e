// SPDX-License-Identifier: Apache-2.0
// JSON as the admin port writes it.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "server/admin/http_server.h"

namespace tetrad::server {

/// Bytes that are no UTF-8 are replaced: a name in the metadata never ends an answer.
/// Indented by two, with an end of line: answers are read with curl, too.
inline std::string json_text(const nlohmann::json& body) {
  return body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

inline HttpResponse json_response(const nlohmann::json& body, int status = 200) {
  return {status, "application/json", json_text(body)};
}

}  // namespace tetrad::server
