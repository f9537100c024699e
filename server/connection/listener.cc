// SPDX-License-Identifier: Apache-2.0
#include "server/connection/listener.h"

#include <sys/socket.h>

namespace tetrad::server {
namespace asio = boost::asio;

Listener::Listener(asio::io_context& io, ConnectionContext& context, uint32_t connections_max)
    : acceptor_(io), context_(context), connections_max_(connections_max) {}

Result<std::unique_ptr<Listener>> Listener::open(asio::io_context& io, ConnectionContext& context,
                                                 const std::string& address, uint16_t port,
                                                 uint32_t connections_max) {
  auto listener = std::make_unique<Listener>(io, context, connections_max);
  boost::system::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return fail(ErrorCode::kConfig, "'{}' is no IP address to listen on", address);
  const asio::ip::tcp::endpoint endpoint(ip, port);
  auto& acceptor = listener->acceptor_;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(4096, error);
  if (error) {
    return fail(ErrorCode::kConfig, "cannot listen for clients on {}:{}: {}", address, port,
                error.message());
  }
  listener->accept();
  return listener;
}

void Listener::accept() {
  acceptor_.async_accept(
      [this](const boost::system::error_code& error, asio::ip::tcp::socket socket) {
        if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
        if (error) {  // out of descriptors and the like: go on when some are free again
          context_.metrics.refused.add();
          context_.reactor.call_at(context_.reactor.now_us() + 100'000, [this] {
            if (acceptor_.is_open()) accept();
          });
          return;
        }
        if (context_.open.size() >= connections_max_) {
          context_.metrics.refused.add();
          boost::system::error_code ignored;
          socket.close(ignored);
        } else {
          std::make_shared<Connection>(std::move(socket), context_)->start();
        }
        accept();
      });
}

void Listener::stop() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

}  // namespace tetrad::server
