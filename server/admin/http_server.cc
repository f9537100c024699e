// SPDX-License-Identifier: Apache-2.0
#include "server/admin/http_server.h"

#include <chrono>
#include <optional>
#include <set>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>

namespace tetrad::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

constexpr size_t kConnectionsMax = 64;
constexpr size_t kRequestBytesMax = 64u << 10;
constexpr auto kRequestTime = std::chrono::seconds(10);

/// 0: nobody is there to be answered.
int status_of_bad_request(const beast::error_code& error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
  return error.category() == make_error_code(http::error::bad_method).category() ? 400 : 0;
}

class Server;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::shared_ptr<Server> server)
      : stream_(std::move(socket)), server_(std::move(server)) {}
  ~Connection();
  void read();
  void close();
  /// A handler has it and will answer.
  bool is_handled() const { return is_handled_; }
  std::chrono::steady_clock::time_point since() const { return since_; }

 private:
  void answer();
  /// 11: HTTP/1.1.
  void send(HttpResponse made, unsigned version, bool keep, bool head_only);
  template <class Message>
  void write(Message& message, bool keep);

  beast::tcp_stream stream_;
  std::shared_ptr<Server> server_;
  beast::flat_buffer buffer_{kRequestBytesMax};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  http::response<http::empty_body> head_;  // of an answer to HEAD
  bool is_handled_ = false;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

class Server : public std::enable_shared_from_this<Server> {
 public:
  Server(asio::io_context& io, bool outside_of_it, HttpServer::Handler handler, Logger logger)
      : acceptor(io),
        again(io),
        outside(outside_of_it),
        handler_(std::move(handler)),
        logger_(std::move(logger)) {}
  void accept() {
    acceptor.async_accept(
        [self = shared_from_this()](const boost::system::error_code& error, tcp::socket socket) {
          if (!self->acceptor.is_open() || error == asio::error::operation_aborted) return;
          if (error) {  // out of descriptors and the like: go on when some are free again
            self->again.expires_after(std::chrono::milliseconds(100));
            self->again.async_wait([self](const boost::system::error_code&) {
              if (self->acceptor.is_open()) self->accept();
            });
            return;
          }
          if (self->open_.size() < kConnectionsMax || self->make_room()) {
            const auto connection = std::make_shared<Connection>(std::move(socket), self);
            self->open_.insert(connection.get());
            connection->read();
          }
          self->accept();
        });
  }
  void forget(Connection* connection) { open_.erase(connection); }
  /// The last catch: no request ends the process.
  void handle(const HttpRequest& request, HttpServer::Respond respond) {
    if (!handler_) return;
    try {
      handler_(request, respond);
    } catch (const std::exception& error) {
      logger_.error("admin request failed method={} path={} error={}", request.method, request.path,
                    error.what());
      respond(http_error(500, "this request failed in the node; its log says why"));
    }
  }
  void stop() {
    boost::system::error_code ignored;
    acceptor.close(ignored);
    again.cancel();
    handler_ = nullptr;
  }
  tcp::acceptor acceptor;
  asio::steady_timer again;
  const bool outside;

 private:
  /// Closes the connection that has waited longest for a request or for its answer to be read.
  bool make_room() {
    Connection* oldest = nullptr;
    for (Connection* const connection : open_) {
      if (connection->is_handled()) continue;
      if (oldest == nullptr || connection->since() < oldest->since()) oldest = connection;
    }
    if (oldest == nullptr) return false;
    oldest->close();
    return true;
  }

  std::set<Connection*> open_;
  HttpServer::Handler handler_;
  const Logger logger_;
};

Connection::~Connection() { server_->forget(this); }

/// What it waits for ends with an error, and with that its life.
void Connection::close() {
  server_->forget(this);
  stream_.close();
}

void Connection::read() {
  parser_.emplace();
  parser_->body_limit(kRequestBytesMax);
  since_ = std::chrono::steady_clock::now();
  stream_.expires_after(kRequestTime);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](const beast::error_code& error, size_t) {
                     if (!error) return self->answer();
                     const int status = status_of_bad_request(error);
                     if (status != 0) {
                       self->send(http_error(status, "this is no HTTP request: " + error.message()),
                                  11, false, false);
                     }
                   });
}

void Connection::answer() {
  const auto& request = parser_->get();
  const bool keep = request.keep_alive(), head_only = request.method() == http::verb::head;
  const unsigned version = request.version();
  auto parsed = read_http_request(std::string_view(head_only ? "GET" : request.method_string()),
                                  std::string_view(request.target()));
  if (!parsed) return send(http_error(400, parsed.error().message), version, keep, head_only);
  const auto header = [&](const char* name) { return std::string(request[name]); };
  parsed->host = header("Host");
  parsed->origin = header("Origin");
  parsed->token = header(kTokenHeader);
  parsed->outside = server_->outside;
  stream_.expires_never();  // a compaction may take its time
  is_handled_ = true;
  // Who answers may keep `respond` for longer than the connection, and the loop, live.
  const auto waiting = std::make_shared<std::shared_ptr<Connection>>(shared_from_this());
  server_->handle(*parsed, [waiting, keep, version, head_only](HttpResponse made) {
    const auto self = std::exchange(*waiting, nullptr);
    if (self != nullptr) self->send(std::move(made), version, keep, head_only);
  });
}

void Connection::send(HttpResponse made, unsigned version, bool keep, bool head_only) {
  const auto fill = [&](auto& message) {
    message = {};
    message.version(version);
    message.result(static_cast<unsigned>(made.status));
    message.set(http::field::content_type, made.content_type);
    message.set(http::field::cache_control, "no-store");
    message.keep_alive(keep);
  };
  stream_.expires_after(kRequestTime);
  since_ = std::chrono::steady_clock::now();
  is_handled_ = false;
  if (head_only) {
    fill(head_);
    head_.content_length(made.body.size());
    return write(head_, keep);
  }
  fill(response_);
  response_.body() = std::move(made.body);
  response_.prepare_payload();
  write(response_, keep);
}

template <class Message>
void Connection::write(Message& message, bool keep) {
  http::async_write(stream_, message,
                    [self = shared_from_this(), keep](const beast::error_code& error, size_t) {
                      if (!error && keep) return self->read();
                      beast::error_code ignored;
                      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
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

HttpResponse http_error(int status, const std::string& message) {
  const nlohmann::json body = {{"error", message}};
  return {status, "application/json",
          body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

Result<std::unique_ptr<HttpServer>> HttpServer::open(asio::io_context& io,
                                                     const std::string& address, uint16_t port,
                                                     bool outside, Handler handler, Logger logger) {
  auto server = std::make_shared<Server>(io, outside, std::move(handler), std::move(logger));
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
