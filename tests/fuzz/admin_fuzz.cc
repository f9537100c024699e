// SPDX-License-Identifier: Apache-2.0
// Fuzzes the admin port: the bytes of a connection, read as HTTP, asked and ordered of the service
// of a simulated node; inputs that begin with G or P and a NUL are the address of one GET or POST.
// Each request gets one answer with a status that HTTP knows, and what says that it is JSON is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>

#include "tests/fuzz/seeds.h"
#include "tests/support/admin_node.h"

namespace {

namespace http = boost::beast::http;
using tetrad::server::HttpResponse;

void check(const HttpResponse& response) {
  const int known[] = {200, 400, 401, 403, 404, 405, 409, 500, 503};
  if (std::find(std::begin(known), std::end(known), response.status) == std::end(known))
    std::abort();
  if (response.content_type == "application/json" && !nlohmann::json::accept(response.body))
    std::abort();
  if (response.status != 200 && response.body.empty()) std::abort();
}

void ask(tetrad::tests::AdminNode& node, std::string_view method, std::string_view target) {
  auto request = tetrad::server::read_http_request(method, target);
  if (request) request->token = "secret";
  check(request ? node.ask(*request) : tetrad::server::http_error(400, request.error().message));
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> out;
  for (const auto& route : tetrad::server::AdminService::routes()) {
    std::string target(route.path);
    for (const auto name : route.parameters)
      target += (target.find('?') == std::string::npos ? "?" : "&") + std::string(name) + "=ks";
    out.push_back(std::string(route.method) + " " + target + " HTTP/1.1\r\nHost: a\r\n\r\n");
    out.push_back(std::string(route.method.substr(0, 1)) + '\0' + target);
  }
  for (const char* target :
       {"/%FF", "/partitions?keyspace=%FF", "/split?id=1", "/log-level?level=warn",
        "/setting?name=max_logical_partition_mb&value=7", "/repair?keyspace=ks&table=t",
        "/remove-node?host=00000000-0000-0000-0000-000000000001", "/partitions?keyspace=%C0%80",
        "/partitions?keyspace=%ED%A0%80", "http://a/status"})
    for (const char* method : {"GET ", "POST "})
      out.push_back(std::string(method) + target + " HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  return out;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tetrad::tests::AdminNode node;
  if (size >= 2 && data[1] == 0 && (data[0] == 'G' || data[0] == 'P')) {
    const std::string_view target(reinterpret_cast<const char*>(data) + 2, size - 2);
    ask(node, data[0] == 'G' ? "GET" : "POST", target);
    return 0;
  }
  while (size > 0) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(64u << 10);
    parser.eager(true);
    boost::beast::error_code error;
    const size_t used = parser.put(boost::asio::buffer(data, size), error);
    if (error || !parser.is_done()) return 0;
    const auto& message = parser.get();
    ask(node, std::string_view(message.method_string()), std::string_view(message.target()));
    data += used;
    size -= used;
  }
  return 0;
}
