// SPDX-License-Identifier: Apache-2.0
// The admin port: a small HTTP server (Boost.Beast) for tetractl, /health and Prometheus. On the
// shard's loop; a handler answers now or later. Bounded: 64 connections, 64 KiB a request, 10 s for
// it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/result.h"

namespace tetrad::server {

struct HttpRequest {
  std::string method, path;
  std::map<std::string, std::string> query;  // decoded
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

class HttpServer {
 public:
  using Respond = std::function<void(HttpResponse)>;
  using Handler = std::function<void(const HttpRequest&, Respond)>;

  /// Errors: kConfig with the address and the reason. `io` and what the handler uses outlive it.
  static Result<std::unique_ptr<HttpServer>> open(boost::asio::io_context& io,
                                                  const std::string& address, uint16_t port,
                                                  Handler handler);
  virtual ~HttpServer() = default;
  virtual void stop() = 0;
};

}  // namespace tetrad::server
