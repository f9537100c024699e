// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 over Beast, plain or with TLS, for the admin port. Bounded on purpose: at most
// kConnectionsMax connections, kRequestBytesMax bytes a request, kRequestTime to send it, one
// request of a connection at a time.
//
// 1. Server::accept takes a connection; beyond the maximum it closes the oldest one that waits for
//    its client (make_room).
// 2. Connection: handshake (TLS), then read, answer, send, and read again while the client keeps it
//    alive.
// 3. answer() gives the request to the handler with a function that may be called later, once, on
//    the main thread.
//
// Everything runs on the main thread's io_context. A Connection is kept alive by the handlers that
// wait for its socket; Server knows it by a plain pointer that the destructor takes out.
// HttpServerImpl owns the server; after stop() no handler is called.
#include "server/admin/http_server.h"

#include <chrono>
#include <optional>
#include <set>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <nlohmann/json.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>

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
// Beast's errors of parsing become statuses; errors of the socket do not, since no answer would
// arrive.
int status_of_bad_request(const beast::error_code& error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
  return error.category() == make_error_code(http::error::bad_method).category() ? 400 : 0;
}

/// A context of Asio's over ours.
// asio::ssl::context frees what it is given, so the count is raised first.
asio::ssl::context asio_context_of(const base::TlsContext& context) {
  SSL_CTX_up_ref(context.native());
  return asio::ssl::context(context.native());
}

class Server;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

/// As its server sees it.
class AnyConnection {
 public:
  virtual ~AnyConnection() = default;
  virtual void close() = 0;
  /// A handler has it and will answer.
  bool is_handled() const { return is_handled_; }
  std::chrono::steady_clock::time_point since() const { return since_; }

 protected:
  bool is_handled_ = false;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

template <class Stream>
class Connection final : public AnyConnection,
                         public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Stream stream, std::shared_ptr<Server> server)
      : stream_(std::move(stream)), server_(std::move(server)) {}
  ~Connection() override;
  /// With TLS the handshake first.
  void begin();
  void close() override;

 private:
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;
  void read();
  void shake_hands();
  void refuse_plain();
  void answer();
  /// 11: HTTP/1.1.
  void send(HttpResponse made, unsigned version, bool keep, bool head_only);
  template <class Message>
  void write(Message& message, bool keep);
  auto self() { return this->shared_from_this(); }
  beast::tcp_stream& tcp() { return beast::get_lowest_layer(stream_); }

  Stream stream_;
  std::shared_ptr<Server> server_;
  beast::flat_buffer buffer_{kRequestBytesMax};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  http::response<http::empty_body> head_;  // of an answer to HEAD
};

class Server : public std::enable_shared_from_this<Server> {
 public:
  Server(asio::io_context& io, bool outside_of_it, std::shared_ptr<base::TlsCredentials> tls,
         HttpServer::Handler handler, Logger logger)
      : acceptor(io),
        again(io),
        outside(outside_of_it),
        tls_(std::move(tls)),
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
          if (self->open_.size() < kConnectionsMax || self->make_room())
            self->take(std::move(socket));
          self->accept();
        });
  }
  void forget(AnyConnection* connection) { open_.erase(connection); }
  /// The last catch: no request ends the process.
  void handle(const HttpRequest& request, HttpServer::Respond respond) {
    // After stop(): `respond` is dropped, and with it the connection.
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
    // The handler refers to the node, which is about to go.
    handler_ = nullptr;
  }
  tcp::acceptor acceptor;
  asio::steady_timer again;
  const bool outside;

 private:
  void take(tcp::socket socket) {
    if (tls_ == nullptr) return take_stream(PlainStream(std::move(socket)));
    auto context = asio_context_of(*tls_->current());
    take_stream(TlsStream(std::move(socket), context));
  }
  template <class Stream>
  void take_stream(Stream stream) {
    const auto connection =
        std::make_shared<Connection<Stream>>(std::move(stream), shared_from_this());
    open_.insert(connection.get());
    connection->begin();
  }
  /// Closes the connection that has waited longest for a request or for its answer to be read.
  bool make_room() {
    AnyConnection* oldest = nullptr;
    for (AnyConnection* const connection : open_) {
      // An order that runs (a compaction, for example) is not cut off for a newcomer.
      if (connection->is_handled()) continue;
      if (oldest == nullptr || connection->since() < oldest->since()) oldest = connection;
    }
    if (oldest == nullptr) return false;
    oldest->close();
    return true;
  }

  const std::shared_ptr<base::TlsCredentials> tls_;  // null: plain
  std::set<AnyConnection*> open_;
  HttpServer::Handler handler_;
  const Logger logger_;
};

template <class Stream>
Connection<Stream>::~Connection() {
  server_->forget(this);
}

/// What it waits for ends with an error, and with that its life.
template <class Stream>
void Connection<Stream>::close() {
  server_->forget(this);
  tcp().close();
}

template <class Stream>
void Connection<Stream>::begin() {
  if constexpr (kTls)
    shake_hands();
  else
    read();
}

template <class Stream>
void Connection<Stream>::shake_hands() {
  if constexpr (kTls) {
    tcp().expires_after(kRequestTime);
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [self = self()](const beast::error_code& error) {
                              if (!error) return self->read();
                              const auto code = static_cast<unsigned long>(error.value());
                              // OpenSSL recognizes the first line of a plain request.
                              if (ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST) self->refuse_plain();
                            });
  }
}

/// Who asks without TLS gets the refusal without it.
template <class Stream>
void Connection<Stream>::refuse_plain() {
  const HttpResponse made = http_error(
      400, "this port takes HTTPS only: give tetractl --ca-file (admin_encryption_enabled)");
  response_.version(11);
  response_.result(http::status::bad_request);
  response_.set(http::field::content_type, made.content_type);
  response_.keep_alive(false);
  response_.body() = made.body;
  response_.prepare_payload();
  http::async_write(tcp(), response_, [self = self()](const beast::error_code&, size_t) {
    beast::error_code ignored;
    self->tcp().socket().shutdown(tcp::socket::shutdown_send, ignored);
  });
}

template <class Stream>
void Connection<Stream>::read() {
  parser_.emplace();
  // flat_buffer bounds the header, this the body.
  parser_->body_limit(kRequestBytesMax);
  since_ = std::chrono::steady_clock::now();
  tcp().expires_after(kRequestTime);
  http::async_read(stream_, buffer_, *parser_,
                   [self = self()](const beast::error_code& error, size_t) {
                     if (!error) return self->answer();
                     const int status = status_of_bad_request(error);
                     if (status != 0) {
                       self->send(http_error(status, "this is no HTTP request: " + error.message()),
                                  11, false, false);
                     }
                   });
}

template <class Stream>
void Connection<Stream>::answer() {
  // HEAD runs as GET, and send() leaves out the body.
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
  beast::error_code gone;
  if (const auto client = tcp().socket().remote_endpoint(gone); !gone) {
    parsed->client_address = client.address().to_string();
    parsed->client_port = client.port();
  }
  tcp().expires_never();  // a compaction may take its time
  is_handled_ = true;
  // Who answers may keep `respond` for longer than the connection, and the loop, live.
  const auto waiting = std::make_shared<std::shared_ptr<Connection>>(self());
  server_->handle(*parsed, [waiting, keep, version, head_only](HttpResponse made) {
    const auto self = std::exchange(*waiting, nullptr);
    // exchange() makes a second call harmless.
    if (self != nullptr) self->send(std::move(made), version, keep, head_only);
  });
}

template <class Stream>
void Connection<Stream>::send(HttpResponse made, unsigned version, bool keep, bool head_only) {
  const auto fill = [&](auto& message) {
    message = {};
    message.version(version);
    message.result(static_cast<unsigned>(made.status));
    message.set(http::field::content_type, made.content_type);
    // Facts are of this moment.
    message.set(http::field::cache_control, "no-store");
    message.keep_alive(keep);
  };
  tcp().expires_after(kRequestTime);
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

template <class Stream>
template <class Message>
void Connection<Stream>::write(Message& message, bool keep) {
  http::async_write(stream_, message,
                    [self = self(), keep](const beast::error_code& error, size_t) {
                      if (!error && keep) return self->read();
                      beast::error_code ignored;
                      if constexpr (kTls) {
                        if (!error)
                          return self->stream_.async_shutdown([self](const beast::error_code&) {});
                      }
                      self->tcp().socket().shutdown(tcp::socket::shutdown_send, ignored);
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

HttpResponse http_refusal(const Error& error) {
  return http_error(error.code == ErrorCode::kNotFound ? 404 : 409, error.message);
}

Result<std::unique_ptr<HttpServer>> HttpServer::open(asio::io_context& io,
                                                     const std::string& address, uint16_t port,
                                                     bool outside, Handler handler, Logger logger,
                                                     std::shared_ptr<base::TlsCredentials> tls) {
  auto server =
      std::make_shared<Server>(io, outside, std::move(tls), std::move(handler), std::move(logger));
  boost::system::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return fail(ErrorCode::kConfig, "'{}' is no IP address to listen on", address);
  const tcp::endpoint endpoint(ip, port);
  server->acceptor.open(endpoint.protocol(), error);
  if (!error) server->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) server->acceptor.bind(endpoint, error);
  if (!error) server->acceptor.listen(128, error);
  if (error)
    return fail(ErrorCode::kIo,
                "cannot listen for admin requests on {}:{}: {} (options admin_address, admin_port)",
                address, port, error.message());
  server->accept();
  return std::make_unique<HttpServerImpl>(std::move(server));
}

}  // namespace tetrad::server
