// SPDX-License-Identifier: Apache-2.0
// Transport over TCP. Every handler holds its connection by a shared pointer and asks whether it
// was closed first, so the transport can be destroyed at any moment.
#include "replication/rpc/tcp_transport.h"

#include <array>
#include <charconv>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "base/assert.h"
#include "replication/rpc/frame.h"
#include "replication/rpc/verbs.h"

namespace tetrad::replication {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int64_t kBackoffFirstUs = 50'000;
constexpr int64_t kBackoffLastUs = 500'000;
constexpr int64_t kConnectAgainUs = 200'000;
constexpr int kUserTimeoutMs = 10'000;
constexpr size_t kReadBytes = 128 * 1024;
/// Where the first message of a stream has its verb (frame.h, envelope.h).
constexpr size_t kFirstVerbAt = kStreamPreface.size() + kFrameHeaderBytes + 2;
constexpr int64_t kLookAgainUs = 10'000;
constexpr int kLooksMax = 500;

/// "address:port" or "name:port" in its parts, an IPv6 address without its brackets.
Result<std::pair<std::string, uint16_t>> split_endpoint(const Endpoint& text) {
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] =
      std::from_chars(text.data() + (colon == std::string::npos ? 0 : colon + 1), end, port);
  if (colon == std::string::npos || colon == 0 || status != std::errc() || stop != end)
    return fail(ErrorCode::kConfig, "'{}' is not an address and a port", text);
  std::string address = text.substr(0, colon);
  if (address.size() >= 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  return std::pair(std::move(address), port);
}

void set_socket_options(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const int timeout_ms = kUserTimeoutMs;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
               sizeof(timeout_ms));
}

/// The connection to one peer, over which this node only sends.
struct Outgoing : std::enable_shared_from_this<Outgoing> {
  enum class State : uint8_t { kIdle, kConnecting, kConnected };

  Outgoing(asio::io_context& i, base::Reactor& r, Endpoint e, const TcpTransportOptions& o,
           std::shared_ptr<size_t> f, Logger l)
      : io(i),
        reactor(r),
        endpoint(std::move(e)),
        options(o),
        failing_peers(std::move(f)),
        logger(std::move(l)) {}

  asio::io_context& io;
  base::Reactor& reactor;
  const Endpoint endpoint;
  const TcpTransportOptions options;
  const std::shared_ptr<size_t> failing_peers;  // of the transport: how many are not connected
  const Logger logger;
  std::optional<tcp::socket> socket;
  std::optional<tcp::resolver> resolver;
  State state = State::kIdle;
  Bytes queued;   // frames that wait
  Bytes writing;  // frames the socket is being given
  bool write_under_way = false;
  bool closed = false;
  uint64_t connection = 0;  // counts connections: handlers of an earlier one do nothing
  int64_t backoff_us = kBackoffFirstUs;
  base::MonotonicUs not_before_us = 0, connecting_since_us = 0;
  bool failing = false;                        // since the last connection
  bool early = false, last_was_early = false;  // attempts that did not wait for the pause's end
  base::Reactor::TimerId connect_timer = 0;
  char discard[64];

  void flush() {
    if (closed || queued.empty()) return;
    if (state == State::kIdle) {
      if (reactor.now_us() < not_before_us) {
        queued.clear();
        return;
      }
      connect();
    } else if (state == State::kConnected && !write_under_way) {
      write();
    }
  }

  /// The peer is up. Not twice in a row: one that is heard and cannot be reached costs little.
  void try_now() {
    if (!failing || early || last_was_early) return;
    const base::MonotonicUs now_us = reactor.now_us();
    if (state == State::kIdle && now_us < not_before_us) {
      early = true;
      not_before_us = now_us;
    } else if (state == State::kConnecting && now_us > connecting_since_us + kConnectAgainUs) {
      early = true;  // what it waits for may have been lost on the way
      drop_socket();
      connect();
    }
  }

  void connect() {
    const auto target = split_endpoint(endpoint);
    if (!target) {
      failed(target.error().message);
      return;
    }
    TETRAD_ASSERT(state != State::kConnected && connect_timer == 0);
    state = State::kConnecting;
    connecting_since_us = reactor.now_us();
    const uint64_t mine = ++connection;
    connect_timer = reactor.call_at(reactor.now_us() + options.connect_timeout_us,
                                    [self = shared_from_this(), mine] {
                                      self->connect_timer = 0;
                                      if (self->is_connecting(mine))
                                        self->failed("no connection in time");
                                    });
    error_code error;
    const auto address = asio::ip::make_address(target->first, error);
    if (!error) {
      connect_to(tcp::endpoint(address, target->second), mine);
      return;
    }
    // A name, as seeds may have. Asio looks it up on a thread of its own.
    resolver.emplace(io);
    resolver->async_resolve(
        target->first, std::to_string(target->second),
        [self = shared_from_this(), mine](const error_code& failure,
                                          const tcp::resolver::results_type& found) {
          if (!self->is_connecting(mine)) return;
          if (failure || found.empty())
            self->failed(failure.message());
          else
            self->connect_to(found.begin()->endpoint(), mine);
        });
  }

  bool is_connecting(uint64_t mine) const {
    return !closed && connection == mine && state == State::kConnecting;
  }

  void connect_to(const tcp::endpoint& target, uint64_t mine) {
    socket.emplace(io);
    socket->async_connect(target, [self = shared_from_this(), mine](const error_code& error) {
      if (!self->is_connecting(mine)) return;
      self->cancel_timer();
      if (error) {
        self->failed(error.message());
        return;
      }
      self->state = State::kConnected;
      self->backoff_us = kBackoffFirstUs;
      self->set_failing(false);
      self->early = self->last_was_early = false;
      set_socket_options(*self->socket);
      self->queued.insert(0, kStreamPreface);
      self->watch_for_end();
      self->write();
    });
  }

  void write() {
    TETRAD_ASSERT(state == State::kConnected && !write_under_way);
    writing.clear();
    std::swap(writing, queued);
    write_under_way = true;
    const uint64_t mine = connection;
    asio::async_write(*socket, asio::buffer(writing),
                      [self = shared_from_this(), mine](const error_code& error, size_t) {
                        if (self->closed || self->connection != mine) return;
                        self->write_under_way = false;
                        if (error) {
                          self->failed(error.message());
                          return;
                        }
                        if (!self->queued.empty()) {
                          self->write();
                        } else if (self->writing.capacity() > (size_t{1} << 20)) {
                          Bytes().swap(self->writing);
                        }
                      });
  }

  /// The peer never sends here: a read ends when the connection does.
  void watch_for_end() {
    const uint64_t mine = connection;
    socket->async_read_some(asio::buffer(discard),
                            [self = shared_from_this(), mine](const error_code& error, size_t) {
                              if (self->closed || self->connection != mine) return;
                              if (error)
                                self->failed(error.message());
                              else
                                self->watch_for_end();
                            });
  }

  void failed(const std::string& why) {
    logger.debug("connection lost peer={} reason={}", endpoint, why);
    drop_socket();
    state = State::kIdle;
    set_failing(true);
    last_was_early = std::exchange(early, false);
    write_under_way = false;
    queued.clear();
    not_before_us = reactor.now_us() + backoff_us;
    backoff_us = std::min(backoff_us * 2, kBackoffLastUs);
  }

  void set_failing(bool now) {
    if (failing == now) return;
    failing = now;
    TETRAD_ASSERT(now || *failing_peers > 0);
    now ? ++*failing_peers : --*failing_peers;
  }

  void cancel_timer() {
    if (connect_timer != 0) reactor.cancel(std::exchange(connect_timer, 0));
  }

  void drop_socket() {
    cancel_timer();
    ++connection;
    // A write still under way refers to `writing`: it ends with an error once the socket is closed,
    // and the buffer stays until then because the handler holds this object.
    if (resolver) resolver->cancel();
    if (socket) {
      error_code ignored;
      socket->close(ignored);
    }
  }

  void close() {
    closed = true;
    drop_socket();
  }
};

struct Shared;

/// A connection somebody made to us: only read.
struct Incoming : std::enable_shared_from_this<Incoming> {
  Incoming(tcp::socket s, std::shared_ptr<Shared> o) : socket(std::move(s)), owner(std::move(o)) {}
  tcp::socket socket;
  std::shared_ptr<Shared> owner;
  FrameReader reader;
  Bytes buffer;

  void read();
  void end(const std::string& why);
};

/// What handlers may still need after the transport is gone.
struct Shared {
  Transport::ReceiveHandler handler;
  std::unordered_set<std::shared_ptr<Incoming>> incoming;
  Logger logger;
  bool closed = false;
};

void Incoming::read() {
  buffer.resize(kReadBytes);
  socket.async_read_some(asio::buffer(buffer),
                         [self = shared_from_this()](const error_code& error, size_t size) {
                           if (self->owner->closed) return;
                           if (error) {
                             self->end("");
                             return;
                           }
                           self->reader.feed(BytesView(self->buffer).substr(0, size));
                           while (true) {
                             auto message = self->reader.next();
                             if (!message) {
                               self->end(message.error().message);
                               return;
                             }
                             if (!*message) break;
                             if (self->owner->handler) {
                               const auto handler = self->owner->handler;
                               handler(std::move(**message));
                             }
                             if (self->owner->closed) return;
                           }
                           self->read();
                         });
}

void Incoming::end(const std::string& why) {
  error_code ignored;
  if (!why.empty()) {
    const auto remote = socket.remote_endpoint(ignored);
    owner->logger.warn("internode connection refused from={} reason={}",
                       remote.address().to_string(), why);
  }
  socket.close(ignored);
  owner->incoming.erase(shared_from_this());
}

class TcpTransportImpl final : public TcpTransport {
 public:
  TcpTransportImpl(asio::io_context& io, base::Reactor& reactor, TcpTransportOptions options,
                   Logger logger)
      : io_(io),
        reactor_(reactor),
        options_(std::move(options)),
        logger_(std::move(logger)),
        shared_(std::make_shared<Shared>()),
        acceptor_(std::make_shared<tcp::acceptor>(io)) {
    shared_->logger = logger_;
  }

  ~TcpTransportImpl() override {
    shared_->closed = true;
    error_code ignored;
    acceptor_->close(ignored);
    for (auto& [endpoint, lanes] : peers_)
      for (const auto& outgoing : lanes)
        if (outgoing) outgoing->close();
    for (const auto& arriving : arriving_) arriving->socket.close(ignored);
    for (const auto& incoming : shared_->incoming) incoming->socket.close(ignored);
    shared_->incoming.clear();
  }

  Result<void> listen() {
    if (!options_.listen) return {};
    error_code error;
    const auto address = asio::ip::make_address(options_.listen_address, error);
    if (error)
      return fail(ErrorCode::kConfig, "listen address '{}' is no IP address",
                  options_.listen_address);
    const tcp::endpoint endpoint(address, options_.listen_port);
    acceptor_->open(endpoint.protocol(), error);
    if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_->bind(endpoint, error);
    if (!error) acceptor_->listen(asio::socket_base::max_listen_connections, error);
    if (error)
      return fail(ErrorCode::kIo, "cannot listen on {}: {}",
                  make_endpoint(options_.listen_address, options_.listen_port), error.message());
    port_ = acceptor_->local_endpoint(error).port();
    accept();
    return {};
  }

  uint16_t port() const override { return port_; }

  void adopt(int native) override {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    ::getsockname(native, reinterpret_cast<sockaddr*>(&address), &size);
    tcp::socket socket(io_);
    error_code error;
    socket.assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), native, error);
    if (error)
      ::close(native);
    else
      take(std::move(socket));
  }

  bool send(const Endpoint& to, Bytes message, Lane lane) override {
    if (message.size() > kMessageBytesMax) return false;
    auto& outgoing = peers_[to][static_cast<size_t>(lane)];
    if (!outgoing)
      outgoing = std::make_shared<Outgoing>(io_, reactor_, to, options_, failing_peers_, logger_);
    // One that is too long for the limit goes alone.
    if (!outgoing->queued.empty() &&
        outgoing->queued.size() + message.size() > options_.queue_bytes_max)
      return false;
    if (outgoing->queued.empty()) dirty_.push_back(outgoing.get());
    append_frame(message, outgoing->queued);
    if (flush_asked_) return true;
    flush_asked_ = true;
    reactor_.at_turn_end([this, shared = std::weak_ptr<Shared>(shared_)] {
      const auto alive = shared.lock();
      if (!alive || alive->closed) return;
      TETRAD_ASSERT(flush_asked_);
      flush_asked_ = false;
      std::vector<Outgoing*> dirty;
      dirty.swap(dirty_);
      for (Outgoing* peer : dirty) peer->flush();
    });
    return true;
  }

  void heard_from(const Endpoint& peer) override {
    if (*failing_peers_ == 0) return;
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return;
    for (const auto& outgoing : found->second)
      if (outgoing) outgoing->try_now();
  }

  void set_receive_handler(ReceiveHandler handler) override {
    shared_->handler = std::move(handler);
  }

  uint64_t queued_bytes(const Endpoint& to) const override {
    const auto found = peers_.find(to);
    if (found == peers_.end()) return 0;
    uint64_t bytes = 0;
    for (const auto& lane : found->second)
      if (lane) bytes += lane->queued.size() + (lane->write_under_way ? lane->writing.size() : 0);
    return bytes;
  }

 private:
  void accept() {
    acceptor_->async_accept([this, acceptor = acceptor_, shared = shared_](const error_code& error,
                                                                           tcp::socket socket) {
      if (shared->closed) return;
      if (error) {
        if (error == asio::error::operation_aborted) return;
        // Out of descriptors, most likely: not in a tight loop.
        reactor_.call_at(reactor_.now_us() + 100'000, [this, shared] {
          if (!shared->closed) accept();
        });
        return;
      }
      if (options_.shard_count == 1)
        take(std::move(socket));
      else if (arriving_.size() < options_.accepted_connections_max)
        place(std::make_shared<Arriving>(Arriving{std::move(socket)}));
      accept();
    });
  }

  /// A connection whose first message is not there yet.
  struct Arriving {
    tcp::socket socket;
    int looks = 0;
  };

  /// By its first message, which is looked at and left where it is.
  void place(std::shared_ptr<Arriving> arriving) {
    arriving_.insert(arriving);
    arriving->socket.async_wait(
        tcp::socket::wait_read, [this, arriving, shared = shared_](const error_code& error) {
          if (shared->closed) return;
          arriving_.erase(arriving);
          char first[kFirstVerbAt + 1];
          const ssize_t size = error ? 0
                                     : ::recv(arriving->socket.native_handle(), first,
                                              sizeof(first), MSG_PEEK | MSG_DONTWAIT);
          if (size <= 0) return;  // it ended
          if (size < static_cast<ssize_t>(sizeof(first))) {
            if (++arriving->looks > kLooksMax) return take(std::move(arriving->socket));
            arriving_.insert(arriving);
            reactor_.call_at(reactor_.now_us() + kLookAgainUs, [this, arriving, shared] {
              if (!shared->closed) place(arriving);
            });
            return;
          }
          const auto verb = static_cast<Verb>(first[kFirstVerbAt]);
          uint32_t shard = 0;
          if (lane_of(verb, false) != Lane::kControl) shard = next_shard_++ % options_.shard_count;
          if (shard == 0) {
            take(std::move(arriving->socket));
          } else {
            error_code ignored;
            options_.hand_over(shard, arriving->socket.release(ignored));
          }
        });
  }

  void take(tcp::socket socket) {
    if (shared_->incoming.size() >= options_.accepted_connections_max) return;
    set_socket_options(socket);
    auto incoming = std::make_shared<Incoming>(std::move(socket), shared_);
    shared_->incoming.insert(incoming);
    incoming->read();
  }

  asio::io_context& io_;
  base::Reactor& reactor_;
  const TcpTransportOptions options_;
  const Logger logger_;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<tcp::acceptor> acceptor_;
  uint16_t port_ = 0;
  uint32_t next_shard_ = 0;
  std::unordered_map<Endpoint, std::array<std::shared_ptr<Outgoing>, kLanes>> peers_;
  std::unordered_set<std::shared_ptr<Arriving>> arriving_;
  const std::shared_ptr<size_t> failing_peers_ = std::make_shared<size_t>(0);
  std::vector<Outgoing*> dirty_;
  bool flush_asked_ = false;
};

}  // namespace

Result<std::unique_ptr<TcpTransport>> TcpTransport::open(asio::io_context& io,
                                                         base::Reactor& reactor,
                                                         TcpTransportOptions options,
                                                         Logger logger) {
  auto transport =
      std::make_unique<TcpTransportImpl>(io, reactor, std::move(options), std::move(logger));
  TETRAD_TRY_VOID(transport->listen());
  return std::unique_ptr<TcpTransport>(std::move(transport));
}

}  // namespace tetrad::replication
