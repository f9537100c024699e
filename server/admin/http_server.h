// SPDX-License-Identifier: Apache-2.0
// The admin port: a small HTTP or HTTPS server (Boost.Beast) for tetractl, /health and Prometheus. On the
// shard's loop; a handler answers now or later. Bounded: 64 connections, of which the one that has
// been idle longest makes room for a new one; 64 KiB a request, 10 s for it. A request that HTTP
// does not allow is answered with 400, and the connection closed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/log.h"
#include "base/result.h"
#include "base/tls_context.h"
#include "server/admin/http_request.h"

namespace tetrad::server {

/// An answer as a handler gives it; its head is the server's own.
struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

/// {"error": message}, whatever bytes the message has.
HttpResponse http_error(int status, const std::string& message);
/// Of an order that is refused: 404 for what is not there, else 409.
HttpResponse http_refusal(const Error& error);

/// The admin port's HTTP: connections, requests within their limits, answers. Owned by the node, on
/// the first shard's thread.
class HttpServer {
 public:
  /// Once for each request.
  using Respond = std::function<void(HttpResponse)>;
  /// An exception that leaves it is logged and answered with 500.
  using Handler = std::function<void(const HttpRequest&, Respond)>;

  /// `outside`: requests carry it. `tls`: null, it speaks plain HTTP. Errors: kConfig with the address and the reason. `io` and what
  /// the handler uses outlive it.
  static Result<std::unique_ptr<HttpServer>> open(boost::asio::io_context& io,
                                                  const std::string& address, uint16_t port,
                                                  bool outside, Handler handler, Logger logger,
                                                  std::shared_ptr<base::TlsCredentials> tls = {});
  virtual ~HttpServer() = default;
  /// Closes the listener and all connections; answers that come later go nowhere.
  virtual void stop() = 0;
};

}  // namespace tetrad::server
