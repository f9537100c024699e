// SPDX-License-Identifier: Apache-2.0
#include "server/admin/http_server.h"

#include <chrono>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace tetrad::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

constexpr size_t kConnectionsMax = 64;
constexpr size_t kRequestBytesMax = 64u << 10;
constexpr auto kRequestTime = std::chrono::seconds(10);

std::string url_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto hex = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}

HttpRequest parse_target(std::string_view method, std::string_view target) {
  HttpRequest out;
  out.method = std::string(method);
  const size_t mark = target.find('?');
  out.path = url_decoded(target.substr(0, mark));
  while (mark != std::string_view::npos && !target.empty()) {
    target.remove_prefix(std::min(target.size(), target.find_first_of("?&") + 1));
    const std::string_view pair = target.substr(0, target.find('&'));
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos) {
      out.query[url_decoded(pair.substr(0, equals))] = url_decoded(pair.substr(equals + 1));
    }
    if (target.find('&') == std::string_view::npos) break;
  }
  return out;
}

class Server;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::shared_ptr<Server> server)
      : stream_(std::move(socket)), server_(std::move(server)) {}
  ~Connection();
  void read();

 private:
  void answer();
  beast::tcp_stream stream_;
  std::shared_ptr<Server> server_;
  beast::flat_buffer buffer_{kRequestBytesMax};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

class Server : public std::enable_shared_from_this<Server> {
 public:
  Server(asio::io_context& io, HttpServer::Handler handler)
      : acceptor(io), again(io), handler_(std::move(handler)) {}
  void accept() {
    acceptor.async_accept(
        [self = shared_from_this()](const boost::system::error_code& error, tcp::socket socket) {
          if (!self->acceptor.is_open() || error == asio::error::operation_aborted) return;
          if (!error && self->connections < kConnectionsMax) {
            ++self->connections;
            std::make_shared<Connection>(std::move(socket), self)->read();
          }
          if (error) {  // out of descriptors and the like: go on when some are free again
            self->again.expires_after(std::chrono::milliseconds(100));
            self->again.async_wait([self](const boost::system::error_code&) {
              if (self->acceptor.is_open()) self->accept();
            });
            return;
          }
          self->accept();
        });
  }
  void handle(const HttpRequest& request, HttpServer::Respond respond) {
    if (handler_) handler_(request, std::move(respond));
  }
  void stop() {
    boost::system::error_code ignored;
    acceptor.close(ignored);
    again.cancel();
    handler_ = nullptr;
  }
  tcp::acceptor acceptor;
  asio::steady_timer again;
  size_t connections = 0;

 private:
  HttpServer::Handler handler_;
};

Connection::~Connection() { --server_->connections; }

void Connection::read() {
  parser_.emplace();
  parser_->body_limit(kRequestBytesMax);
  stream_.expires_after(kRequestTime);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](const beast::error_code& error, size_t) {
                     if (!error) self->answer();
                   });
}

void Connection::answer() {
  const auto& request = parser_->get();
  const bool keep = request.keep_alive();
  const unsigned version = request.version();
  const HttpRequest parsed =
      parse_target(std::string_view(request.method_string()), std::string_view(request.target()));
  stream_.expires_after(std::chrono::minutes(10));  // a compaction may take its time
  server_->handle(parsed, [self = shared_from_this(), keep, version](HttpResponse made) {
    self->response_ = {};
    self->response_.version(version);
    self->response_.result(static_cast<unsigned>(made.status));
    self->response_.set(http::field::content_type, made.content_type);
    self->response_.keep_alive(keep);
    self->response_.body() = std::move(made.body);
    self->response_.prepare_payload();
    http::async_write(self->stream_, self->response_,
                      [self, keep](const beast::error_code& error, size_t) {
                        if (error || !keep) {
                          beast::error_code ignored;
                          self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                          return;
                        }
                        self->read();
                      });
  });
}

class HttpServerImpl final : public HttpServer {
 public:
  explicit HttpServerImpl(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  ~HttpServerImpl() override { server_->stop(); }
  void stop() override { server_->stop(); }

 private:
  std::shared_ptr<Server> server_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::open(asio::io_context& io,
                                                     const std::string& address, uint16_t port,
                                                     Handler handler) {
  auto server = std::make_shared<Server>(io, std::move(handler));
  boost::system::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return fail(ErrorCode::kConfig, "'{}' is no IP address to listen on", address);
  const tcp::endpoint endpoint(ip, port);
  server->acceptor.open(endpoint.protocol(), error);
  if (!error) server->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) server->acceptor.bind(endpoint, error);
  if (!error) server->acceptor.listen(128, error);
  if (error)
    return fail(ErrorCode::kConfig, "cannot listen for admin requests on {}:{}: {}", address, port,
                error.message());
  server->accept();
  return std::make_unique<HttpServerImpl>(std::move(server));
}

}  // namespace tetrad::server
