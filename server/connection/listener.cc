// SPDX-License-Identifier: Apache-2.0
// Accepts clients on the main thread and gives each to the shard with the fewest open connections.
// Sockets are accepted as descriptors and no loop's until their shard's takes them: at once, or from
// its door (tls_door.h) after the TLS handshake.
//
// given_ counts connections when they are placed, metrics.closed when they end, so that the
// difference is right even while a handle is on its way to its shard.
#include "server/connection/listener.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace tetrad::server {
namespace asio = boost::asio;

namespace {

/// On the shard's own thread.
// A socket that comes too late must be closed and counted, or the place would be lost for good.
void adopt(const Listener::Shard& shard, Accepted accepted) {
  if (!shard.context.draining) {
    std::make_shared<Connection>(shard.io, std::move(accepted), shard.context)->start();
    return;
  }
  shard.context.metrics.accepted.add();
  shard.context.metrics.closed.add();
}

std::unexpected<Error> cannot_listen(const std::string& address, uint16_t port,
                                     const boost::system::error_code& error) {
  return fail(ErrorCode::kIo,
              "cannot listen for clients on {}:{}: {} (options rpc_address, native_port)", address,
              port, error.message());
}

Result<void> bind_to(asio::ip::tcp::acceptor& acceptor, const std::string& address, uint16_t port) {
  boost::system::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return fail(ErrorCode::kConfig, "'{}' is no IP address to listen on", address);
  const asio::ip::tcp::endpoint endpoint(ip, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (error) return cannot_listen(address, port, error);
  return {};
}

}  // namespace

Result<void> check_free(asio::io_context& io, const std::string& address, uint16_t port) {
  asio::ip::tcp::acceptor acceptor(io);
  return bind_to(acceptor, address, port);
}

Listener::Listener(std::vector<Shard> shards, uint32_t connections_max, Logger logger)
    : shards_(std::move(shards)),
      given_(shards_.size()),
      acceptor_(shards_.front().io),
      connections_max_(connections_max),
      logger_(std::move(logger)) {}

// May be called again after stop(), by `tetractl enablebinary`.
Result<void> Listener::listen(const std::string& address, uint16_t port) {
  boost::system::error_code error, ignored;
  const auto bound = bind_to(acceptor_, address, port);
  // Linux hands these down to what is accepted. Answers are sent whole, so Nagle's delay would only
  // cost latency; keep-alive finds clients whose machine is gone.
  if (bound) {
    acceptor_.set_option(asio::ip::tcp::no_delay(true), ignored);
    acceptor_.set_option(asio::socket_base::keep_alive(true), ignored);
    acceptor_.non_blocking(true, error);
  }
  if (bound && !error) acceptor_.listen(4096, error);
  if (!bound || error) {
    acceptor_.close(ignored);
    return bound ? Result<void>(cannot_listen(address, port, error)) : bound;
  }
  // round_ lets a pending handler of an earlier listen() find out that it is too late.
  accept(++round_);
  return {};
}

// One in a step: a wait that begins anew ends at once where another client waits.
void Listener::accept(uint64_t round) {
  acceptor_.async_wait(asio::socket_base::wait_read,
                       [this, round](const boost::system::error_code& error) {
                         if (error == asio::error::operation_aborted || round != round_) return;
                         if (accept_one()) return accept(round);
                         // At once it would spin, since the error stays until something is closed.
                         ConnectionContext& own = shards_.front().context;
                         own.reactor.call_at(own.reactor.now_us() + 100'000, [this, round] {
                           if (round == round_) accept(round);
                         });
                       });
}

bool Listener::accept_one() {
  asio::ip::tcp::endpoint remote;
  auto size = static_cast<socklen_t>(remote.capacity());
  base::OpenFile socket(
      ::accept4(acceptor_.native_handle(), remote.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) {
    remote.resize(size);
    place({std::move(socket), remote});
    return true;
  }
  // The client has gone again, or there was none.
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return true;
  refused(std::strerror(errno));  // out of descriptors and the like
  return false;
}

// closed is written by the shard's thread and may be a moment old: the number is at most too high.
uint64_t Listener::open_at(size_t shard) const {
  return given_[shard] - shards_[shard].context.metrics.closed.value();
}

// Ties go to the lower shard. Beyond connections_max the socket is closed without a word: before
// STARTUP there is no version to answer in.
void Listener::place(Accepted accepted) {
  size_t least = 0;
  uint64_t open = 0;
  for (size_t i = 0; i < shards_.size(); ++i) {
    open += open_at(i);
    if (open_at(i) < open_at(least)) least = i;
  }
  if (open >= connections_max_) return refused(fmt::format("{} are open, as many as may be", open));
  ++given_[least];
  const Shard& shard = shards_[least];
  // Shard 0 runs on this thread.
  if (least == 0) return adopt(shard, std::move(accepted));
  shard.context.reactor.post_from_any_thread(
      [shard, accepted = std::move(accepted)]() mutable { adopt(shard, std::move(accepted)); });
}

// At most one line in ten seconds, with the number since the last one.
void Listener::refused(const std::string& why) {
  constexpr int64_t kSayAgainUs = 10'000'000;
  ConnectionContext& own = shards_.front().context;
  own.metrics.refused.add();
  ++refused_unsaid_;
  const base::MonotonicUs now_us = own.reactor.now_us();
  if (refused_said_us_ && now_us < *refused_said_us_ + kSayAgainUs) return;
  logger_.warn("client connections refused count={} connections_max={} reason={}", refused_unsaid_,
               connections_max_, why);
  refused_said_us_ = now_us;
  refused_unsaid_ = 0;
}

void Listener::stop() {
  boost::system::error_code ignored;
  ++round_;
  acceptor_.close(ignored);
}

}  // namespace tetrad::server
