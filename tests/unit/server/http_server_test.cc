// SPDX-License-Identifier: Apache-2.0
// The admin port over real sockets of the loopback address, in one thread.
#include "server/admin/http_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

/// A server on a free port, and clients that send bytes and read what comes.
class Port {
 public:
  explicit Port(HttpServer::Handler handler) {
    for (uint16_t port = 20'000; server_ == nullptr && port < 30'000; ++port) {
      auto server = HttpServer::open(io, "127.0.13.99", port, true, handler, Logger());
      if (!server) continue;
      server_ = std::move(*server);
      port_ = port;
    }
    REQUIRE(server_ != nullptr);
  }
  ~Port() {
    server_.reset();
    io.poll();
  }
  tcp::socket connect() {
    tcp::socket socket(io);
    socket.connect(tcp::endpoint(asio::ip::make_address("127.0.13.99"), port_));
    return socket;
  }
  void send(tcp::socket& socket, const std::string& bytes) {
    asio::write(socket, asio::buffer(bytes));
  }
  /// What comes until the server closes, or until `end` is in it.
  std::string read(tcp::socket& socket, const std::string& end = "") {
    std::string out;
    bool done = false;
    std::array<char, 4096> chunk{};
    std::function<void()> more = [&] {
      socket.async_read_some(asio::buffer(chunk),
                             [&](const boost::system::error_code& error, size_t size) {
                               out.append(chunk.data(), size);
                               done = bool(error) || (!end.empty() && out.find(end) != out.npos);
                               if (!done) more();
                             });
    };
    more();
    while (!done) io.run_one();
    return out;
  }
  std::string ask(const std::string& bytes) {
    tcp::socket socket = connect();
    send(socket, bytes);
    return read(socket);
  }

  asio::io_context io;

 private:
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
};

HttpServer::Handler echo() {
  return [](const HttpRequest& request, HttpServer::Respond respond) {
    if (request.path == "/throw") throw std::runtime_error("on purpose");
    respond({200, "text/plain", request.method + " " + request.path});
  };
}

}  // namespace

TEST_CASE("the admin port answers GET, and HEAD without the body") {
  Port port(echo());
  const std::string got = port.ask("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  CHECK(got.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(got.ends_with("\r\n\r\nGET /a"));
  const std::string head = port.ask("HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  CHECK(head.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(head.find("Content-Length: 6\r\n") != head.npos);
  CHECK(head.ends_with("\r\n\r\n"));
}

TEST_CASE("the admin port survives what is no request, and what its handler throws") {
  Port port(echo());
  CHECK(port.ask("GET /%FF HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 400 "));
  CHECK(port.ask("GET /throw HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 500 "));
  CHECK(port.ask("\x16\x03\x01\x02 TLS perhaps\r\n\r\n").starts_with("HTTP/1.1 400 "));
  CHECK(port.ask("GET / HTTP/1.1\r\n" + std::string(20'000, 'x') + ": y\r\n\r\n")
            .starts_with("HTTP/1.1 431 "));
  CHECK(
      port.ask("POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n").starts_with("HTTP/1.1 413 "));
  CHECK(port.ask("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ends_with("GET /a"));
}

TEST_CASE("the admin port hands on who asks") {
  Port port([](const HttpRequest& request, HttpServer::Respond respond) {
    respond(
        {200, "text/plain",
         fmt::format("{} {} {} {}", request.host, request.origin, request.token, request.outside)});
  });
  CHECK(port.ask("POST / HTTP/1.1\r\nHost: x:1\r\nOrigin: y\r\nX-Tetrad-Token: z\r\n"
                 "Content-Length: 0\r\nConnection: close\r\n\r\n")
            .ends_with("\r\n\r\nx:1 y z true"));
}

TEST_CASE("connections that ask nothing do not shut others out of the admin port") {
  HttpServer::Respond late;
  Port port([&](const HttpRequest& request, HttpServer::Respond respond) {
    if (request.path == "/late") {
      late = std::move(respond);
      return;
    }
    respond({200, "text/plain", "here"});
  });
  tcp::socket waiting = port.connect();
  port.send(waiting, "GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  while (!late) port.io.run_one();
  std::vector<tcp::socket> idle;
  for (int i = 0; i < 150; ++i) {
    idle.push_back(port.connect());
    if (i % 3 == 0) port.send(idle.back(), "GET /half HTTP/1.1\r\nHo");
    if (i % 3 == 1) {  // kept alive after a request
      port.send(idle.back(), "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
      CHECK(port.read(idle.back(), "here").ends_with("here"));
    }
  }
  CHECK(port.ask("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ends_with("here"));
  CHECK(port.read(idle.front()).empty());  // it has made room
  late({200, "text/plain", "at last"});    // what is worked on has not
  CHECK(port.read(waiting).ends_with("at last"));
}

}  // namespace tetrad::server
