// SPDX-License-Identifier: Apache-2.0
// Transport over TCP. Every handler holds its connection by a shared pointer and asks whether it
//
// One connection for each lane and direction: what this node sends goes over Outgoing, what others
// send comes over Incoming, which is only read. A new connection is given to a shard by its first
// message's verb: control messages to shard 0, the rest in turn.
//   1. accept(); with TLS or a cluster secret the peer first proves that it is of the cluster
//      (Arrival).
//   2. The first bytes are looked at, and left in the socket or handed over with it.
//   3. give(): taken here, or handed to another shard as a descriptor.
//   4. Incoming reads, decrypts, cuts frames, and hands each message to the handler.
// was closed first, so the transport can be destroyed at any moment.
#include "replication/rpc/tcp_transport.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
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
#include "replication/rpc/outgoing.h"
#include "replication/rpc/verbs.h"

namespace tetrad::replication {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Bytes of one read; how often, at most, a connection's first bytes are waited for: 500 times 10
// ms.
constexpr size_t kReadBytes = 128 * 1024;
/// Where the first message of a stream has its verb (frame.h, envelope.h).
constexpr size_t kFirstVerbAt = kStreamPreface.size() + kFrameHeaderBytes + 2;
constexpr int64_t kLookAgainUs = 10'000;
constexpr int kLooksMax = 500;
constexpr size_t kArrivalsMax = 128;  // that have not proved yet who they are
/// Where messages come from is what they say themselves, and answers go there.
constexpr size_t kPeersKept = 1024;

struct Shared;

/// A connection somebody made to us: only read.
struct Incoming : std::enable_shared_from_this<Incoming> {
  Incoming(tcp::socket s, std::shared_ptr<Shared> o, std::unique_ptr<base::TlsSession> t,
           OpenLink l)
      : socket(std::move(s)), session(std::move(t)), open_link(std::move(l)), owner(std::move(o)) {}
  tcp::socket socket;
  std::unique_ptr<base::TlsSession> session;  // null: without TLS
  OpenLink open_link;                         // until it has ended
  std::shared_ptr<Shared> owner;
  FrameReader reader;
  Bytes buffer;
  std::shared_ptr<ReceivedTraffic> traffic;  // of the peer; null: nobody has named himself yet

  void read();
  /// False: it has ended.
  bool take(BytesView wire);
  bool deliver(BytesView bytes);
  /// Of what is no stream of ours; says so to a peer that can understand it.
  std::string refusal(BytesView bytes, const Error& error);
  void end(const std::string& why);
};

/// What handlers may still need after the transport is gone.
// Owned by the transport and by every handler that is out.
struct Shared {
  Transport::ReceiveHandler handler;
  Transport::RefusedHandler refused;
  std::unordered_set<std::shared_ptr<Incoming>> incoming;
  // By peer. They outlive connections, as long as there are no more than kPeersKept.
  std::unordered_map<Endpoint, std::shared_ptr<ReceivedTraffic>> received;
  Incoming* receiving = nullptr;  // whose message is handed over
  bool is_malformed = false;      // that message
  Logger logger;
  base::Reactor* reactor = nullptr;
  bool closed = false;

  /// Who is refused tries again all the time: of each address and reason one line a minute, with how
  /// many there were since the last one.
  void say_refused(const std::string& from, const std::string& why, base::MonotonicUs now_us);

 private:
  struct Refusals {
    base::MonotonicUs said_us = 0;
    uint64_t unsaid = 0;
  };
  std::map<std::pair<std::string, std::string>, Refusals> refusals_;
};

void Shared::say_refused(const std::string& from, const std::string& why,
                         base::MonotonicUs now_us) {
  constexpr int64_t kSayAgainUs = 60'000'000;
  constexpr size_t kKept = 100;
  const auto is_old = [&](const auto& entry) {
    return now_us >= entry.second.said_us + kSayAgainUs;
  };
  std::pair<std::string, std::string> key(from, why);
  if (refusals_.size() >= kKept && !refusals_.contains(key)) {
    std::erase_if(refusals_, is_old);
    // Strangers may have any number of addresses: all others count as one.
    if (refusals_.size() >= kKept) key = {"", ""};
  }
  const auto [entry, is_new] = refusals_.try_emplace(key);
  Refusals& refusals = entry->second;
  if (!is_new && !is_old(*entry)) {
    ++refusals.unsaid;
    return;
  }
  logger.warn("internode connection refused from={} reason={} not_logged_before={}", from, why,
              refusals.unsaid);
  refusals = {now_us, 0};
}

/// Names are the peers' own: beyond the bound those without a connection are forgotten, so that
/// there are never many more than connections.
std::shared_ptr<ReceivedTraffic> traffic_from(Shared& shared, const Endpoint& sender) {
  const auto found = shared.received.find(sender);
  if (found != shared.received.end()) return found->second;
  if (shared.received.size() >= kPeersKept)
    std::erase_if(shared.received, [](const auto& entry) { return entry.second.use_count() == 1; });
  return shared.received.emplace(sender, std::make_shared<ReceivedTraffic>()).first->second;
}

void Incoming::read() {
  buffer.resize(kReadBytes);
  // One read at a time; the buffer is this connection's own.
  socket.async_read_some(asio::buffer(buffer),
                         [self = shared_from_this()](const error_code& error, size_t size) {
                           if (self->owner->closed) return;
                           if (error) {
                             self->end("");
                             return;
                           }
                           if (self->take(BytesView(self->buffer).substr(0, size))) self->read();
                         });
}

bool Incoming::take(BytesView wire) {
  if (session == nullptr) return deliver(wire);
  session->feed(wire);
  // What was read has been fed: its room serves again.
  while (true) {
    // Ciphertext may hold several pieces of plain text, or none yet.
    const auto size = session->read(buffer.data(), buffer.size());
    if (!size || (*size == 0 && session->has_ended())) {
      end(size ? "" : size.error().message);
      return false;
    }
    if (*size == 0) return true;
    if (!deliver(BytesView(buffer).substr(0, *size))) return false;
  }
}

bool Incoming::deliver(BytesView bytes) {
  reader.feed(bytes);
  while (true) {
    auto message = reader.next();
    if (!message) {
      if (traffic && message.error().code != ErrorCode::kProtocol) ++traffic->corrupt_frames;
      end(session == nullptr ? refusal(bytes, message.error()) : message.error().message);
      return false;
    }
    if (!*message) return true;
    // A copy: the handler may be replaced by what it does.
    if (owner->handler) {
      const auto handler = owner->handler;
      const size_t size = kFrameHeaderBytes + (*message)->size();
      owner->receiving = this;
      owner->is_malformed = false;
      handler(std::move(**message));
      owner->receiving = nullptr;
      if (traffic) traffic->received.add(1, size);
      if (traffic && owner->is_malformed) traffic->malformed.add(1, size);
    }
    if (owner->closed) return false;
  }
}

// A node whose internode settings differ gets a sign, so that its log says why.
std::string Incoming::refusal(BytesView bytes, const Error& error) {
  if (bytes.front() == base::kTlsHandshakeByte) return kSpeaksTls;
  if (!bytes.starts_with(kSecretPreface)) return error.message;
  error_code ignored;
  const auto sign = SecretSign::kNone;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(&sign, sizeof(sign)), ignored);
  return "it has a secret of a cluster, and this node has none (cluster_secret_file)";
}

void Incoming::end(const std::string& why) {
  error_code ignored;
  if (!why.empty()) {
    const auto remote = socket.remote_endpoint(ignored);
    owner->say_refused(remote.address().to_string(), why, owner->reactor->now_us());
  }
  socket.close(ignored);
  open_link = {};
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
    shared_->reactor = &reactor_;
  }

  // Handlers see `closed` and do nothing any more.
  ~TcpTransportImpl() override {
    shared_->closed = true;
    error_code ignored;
    acceptor_->close(ignored);
    for (auto& [endpoint, lanes] : peers_)
      for (const auto& outgoing : lanes)
        if (outgoing) outgoing->close();
    for (const auto& arriving : arriving_) arriving->socket.close(ignored);
    for (const auto& [number, arrival] : arrivals_) arrival->close();
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
    if (error) return fail(ErrorCode::kIo, "{}", error.message());  // who opens it says where
    port_ = acceptor_->local_endpoint(error).port();
    accept();
    return {};
  }

  uint16_t port() const override { return port_; }

  void adopt(Accepted accepted) override {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    ::getsockname(accepted.socket, reinterpret_cast<sockaddr*>(&address), &size);
    tcp::socket socket(io_);
    error_code error;
    socket.assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), accepted.socket, error);
    if (error)
      ::close(accepted.socket);
    else
      take(std::move(socket), std::move(accepted.session), std::move(accepted.first));
  }

  bool send(const Endpoint& to, Bytes message, Lane lane) override {
    auto& outgoing = peers_[to][static_cast<size_t>(lane)];
    if (!outgoing) outgoing = make_outgoing(to, lane);
    if (message.size() > kMessageBytesMax) {
      outgoing->traffic.lost.add(1, message.size());
      return false;
    }
    // One that is too long for the limit goes alone.
    if (!outgoing->queued.empty() &&
        outgoing->queued.size() + message.size() > options_.queue_bytes_max) {
      outgoing->traffic.overloaded.add(1, message.size());
      return false;
    }
    if (outgoing->queued.empty()) dirty_.push_back(outgoing.get());
    outgoing->queue(message);
    if (flush_asked_) return true;
    flush_asked_ = true;
    // All messages of a turn leave together.
    reactor_.at_turn_end([this, shared = std::weak_ptr<Shared>(shared_)] {
      const auto alive = shared.lock();
      if (!alive || alive->closed) return;
      TETRAD_ASSERT(flush_asked_);
      flush_asked_ = false;
      std::vector<Outgoing*> dirty;
      dirty.swap(dirty_);
      for (Outgoing* peer : dirty) peer->flush();
      if (peers_.size() > peers_max_) forget_peers();
    });
    return true;
  }

  void heard_from(const Endpoint& peer) override {
    // Cheap while nobody fails.
    if (*failing_peers_ == 0) return;
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return;
    for (const auto& outgoing : found->second)
      if (outgoing) outgoing->try_now();
  }

  void note_sender(const Endpoint* sender) override {
    if (sender == nullptr)
      shared_->is_malformed = true;
    else if (shared_->receiving != nullptr && shared_->receiving->traffic == nullptr)
      shared_->receiving->traffic = traffic_from(*shared_, *sender);
  }

  void note_overload(const Endpoint& peer, uint64_t bytes) override {
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return;
    // There is a lane at least, and it does not matter which one.
    for (const auto& outgoing : found->second)
      if (outgoing) return outgoing->traffic.overloaded.add(1, bytes);
  }

  std::optional<bool> is_encrypted(const Endpoint& peer) const override {
    const Outgoing* const control = control_lane(peer);
    if (control == nullptr || control->state != Outgoing::State::kConnected) return std::nullopt;
    return control->session != nullptr;
  }

  std::shared_ptr<const OpenLinks> open_links() const override { return open_links_; }

  std::map<Endpoint, SentTraffic> sent() const override {
    std::map<Endpoint, SentTraffic> out;
    for (const auto& [peer, lanes] : peers_)
      for (const auto& outgoing : lanes)
        if (outgoing) out[peer].add(outgoing->traffic_now());
    return out;
  }

  std::map<Endpoint, ReceivedTraffic> received() const override {
    std::map<Endpoint, ReceivedTraffic> out;
    for (const auto& [peer, traffic] : shared_->received) out.emplace(peer, *traffic);
    return out;
  }

  std::string refusal(const Endpoint& peer) const override {
    const Outgoing* const control = control_lane(peer);
    return control != nullptr ? control->refused_for() : "";
  }

  bool is_reached(const Endpoint& peer) const override {
    const Outgoing* const control = control_lane(peer);
    return control != nullptr && control->is_reached();
  }

  void set_receive_handler(ReceiveHandler handler) override {
    shared_->handler = std::move(handler);
  }

  void set_refused_handler(RefusedHandler handler) override {
    shared_->refused = std::move(handler);
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
  /// Null: nothing was to be sent over it.
  const Outgoing* control_lane(const Endpoint& peer) const {
    const auto found = peers_.find(peer);
    return found == peers_.end() ? nullptr
                                 : found->second[static_cast<size_t>(Lane::kControl)].get();
  }

  std::shared_ptr<Outgoing> make_outgoing(const Endpoint& to, Lane lane) {
    auto made = std::make_shared<Outgoing>(io_, reactor_, to, lane, options_, failing_peers_,
                                           open_links_, logger_);
    if (lane != Lane::kControl) return made;
    made->nobody_listens = [to, weak = std::weak_ptr<Shared>(shared_)] {
      const auto alive = weak.lock();
      if (!alive || alive->closed || !alive->refused) return;
      const auto handler = alive->refused;  // it may be replaced by what it does
      handler(to);
    };
    return made;
  }

  /// Those that are not reached. At the end of a turn, when nothing of dirty_ is left.
  void forget_peers() {
    TETRAD_ASSERT(dirty_.empty());
    std::erase_if(peers_, [](const auto& peer) {
      const bool is_gone = std::ranges::all_of(
          peer.second, [](const auto& lane) { return !lane || lane->is_idle(); });
      if (is_gone)
        for (const auto& lane : peer.second)
          if (lane) lane->close();
      return is_gone;
    });
    peers_max_ = std::max(kPeersKept, 2 * peers_.size());
  }

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
      // Nobody may talk to a handler before that.
      if (options_.credentials != nullptr || options_.secret != nullptr)
        await_proof(std::move(socket));
      else if (options_.shard_count == 1)
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
          // A look without reading: the shard that gets the socket reads from the start.
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
          // The verb's place in the first message is fixed by the format.
          give(Arrived{std::move(arriving->socket), nullptr, {}},
               static_cast<Verb>(first[kFirstVerbAt]));
        });
  }

  /// To the shard that its first message is for.
  void give(Arrived arrived, Verb first) {
    uint32_t shard = 0;
    // Control messages are shard 0's; data goes round.
    if (lane_of(first, false) != Lane::kControl) shard = next_shard_++ % options_.shard_count;
    if (shard == 0)
      return take(std::move(arrived.socket), std::move(arrived.session), std::move(arrived.first));
    error_code ignored;
    options_.hand_over(shard, Accepted{arrived.socket.release(ignored), std::move(arrived.session),
                                       std::move(arrived.first)});
  }

  /// Until it has proved that it is of the cluster, and has sent the beginning of a message.
  void await_proof(tcp::socket socket) {
    // The oldest that does not prove itself makes room: strangers cannot shut members out.
    if (arrivals_.size() >= kArrivalsMax) {
      const auto oldest = std::find_if(arrivals_.begin(), arrivals_.end(),
                                       [](const auto& one) { return !one.second->is_stepping(); });
      if (oldest == arrivals_.end()) return;
      oldest->second->close();
      arrivals_.erase(oldest);
      shared_->say_refused("too many others",
                           options_.credentials != nullptr
                               ? "TLS handshakes that do not end"
                               : "connections that do not show the cluster's secret",
                           reactor_.now_us());
    }
    error_code ignored;
    const std::string from = socket.remote_endpoint(ignored).address().to_string();
    Arrival::Terms terms;
    if (options_.credentials != nullptr) terms.context = options_.credentials->current();
    terms.encryption = options_.encryption;
    terms.secret = options_.secret;
    terms.random = options_.random;
    terms.off_loop = options_.off_loop;
    terms.bytes_wanted = kFirstVerbAt + 1;
    const uint64_t number = next_arrival_++;
    const auto arrival = std::make_shared<Arrival>(
        std::move(socket), reactor_, std::move(terms),
        [this, number, from, shared = shared_](Result<Arrived> arrived) {
          if (shared->closed) return;
          arrivals_.erase(number);
          if (!arrived)
            return shared->say_refused(from, arrived.error().message, shared->reactor->now_us());
          const auto verb = static_cast<Verb>(arrived->first[kFirstVerbAt]);
          give(std::move(*arrived), verb);
        });
    arrivals_.emplace(number, arrival);
    arrival->start();
  }

  void take(tcp::socket socket, std::unique_ptr<base::TlsSession> session = nullptr,
            const Bytes& first = {}) {
    // Beyond the bound a connection is dropped: it closes as the socket goes.
    if (shared_->incoming.size() >= options_.accepted_connections_max) return;
    set_socket_options(socket);
    OpenLink link(open_links_, LinkDirection::kIn, session != nullptr);
    auto incoming =
        std::make_shared<Incoming>(std::move(socket), shared_, std::move(session), std::move(link));
    shared_->incoming.insert(incoming);
    if (first.empty() || incoming->deliver(first)) incoming->read();
  }

  asio::io_context& io_;
  base::Reactor& reactor_;
  const TcpTransportOptions options_;
  const Logger logger_;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<tcp::acceptor> acceptor_;
  uint16_t port_ = 0;
  uint32_t next_shard_ = 0;
  // Made when first used.
  std::unordered_map<Endpoint, std::array<std::shared_ptr<Outgoing>, kLanes>> peers_;
  size_t peers_max_ = kPeersKept;  // above, those that are not reached are forgotten
  std::unordered_set<std::shared_ptr<Arriving>> arriving_;
  std::map<uint64_t, std::shared_ptr<Arrival>> arrivals_;  // oldest first
  uint64_t next_arrival_ = 0;
  const std::shared_ptr<size_t> failing_peers_ = std::make_shared<size_t>(0);
  const std::shared_ptr<OpenLinks> open_links_ = std::make_shared<OpenLinks>();
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
