// SPDX-License-Identifier: Apache-2.0
// The simulated network: messages take a while, overtake each other, get lost, and do not pass
// where a way is cut. Ways are cut one direction at a time.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "replication/rpc/envelope.h"
#include "replication/rpc/transport.h"
#include "tests/simulation/support/sim_world.h"

namespace tetrad::simulation {

struct NetworkOptions {
  int64_t delay_min_us = 50, delay_max_us = 500;
  uint32_t lost_in_million = 0;
  /// One in so many messages is late by up to slow_us; 0: none.
  uint32_t slow_one_in = 0;
  int64_t slow_us = 200'000;
  /// One in so many messages comes twice; 0: none.
  uint32_t twice_one_in = 0;
};

class SimNetwork;

/// One node's, for one life of it.
class SimTransport final : public replication::Transport {
 public:
  SimTransport(SimNetwork& network, replication::Endpoint self);
  ~SimTransport() override;
  bool send(const replication::Endpoint& to, Bytes message, replication::Lane) override;
  void set_receive_handler(ReceiveHandler handler) override { *handler_ = std::move(handler); }
  void set_refused_handler(RefusedHandler handler) override { *refused_ = std::move(handler); }
  uint64_t queued_bytes(const replication::Endpoint&) const override { return 0; }

 private:
  friend class SimNetwork;
  SimNetwork& network_;
  const replication::Endpoint self_;
  std::shared_ptr<ReceiveHandler> handler_ = std::make_shared<ReceiveHandler>();
  std::shared_ptr<RefusedHandler> refused_ = std::make_shared<RefusedHandler>();
};

class SimNetwork {
 public:
  explicit SimNetwork(World& world) : world_(world) {}

  NetworkOptions options;

  void cut(const replication::Endpoint& from, const replication::Endpoint& to) {
    cuts_.insert({from, to});
  }
  void mend(const replication::Endpoint& from, const replication::Endpoint& to) {
    cuts_.erase({from, to});
  }
  void mend_all() { cuts_.clear(); }
  bool is_cut(const replication::Endpoint& from, const replication::Endpoint& to) const {
    return cuts_.contains({from, to});
  }
  uint64_t delivered() const { return delivered_; }
  /// A node that hears nothing of the metadata group: its state falls behind, all else goes on.
  void set_deaf(const replication::Endpoint& node, bool deaf) {
    if (deaf) {
      deaf_.insert(node);
    } else {
      deaf_.erase(node);
    }
  }
  void hear_all() { deaf_.clear(); }
  /// A node that nobody of the metadata group hears, and all else of it.
  void set_mute(const replication::Endpoint& node, bool mute) {
    if (mute) {
      mute_.insert(node);
    } else {
      mute_.erase(node);
    }
  }
  /// Sees each message that is sent.
  using Watch = std::function<void(const replication::Endpoint& to, BytesView message)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  /// Messages of a verb to a node, and no others, stay on their way until they are released.
  void hold(replication::Verb verb, const replication::Endpoint& to) { holding_ = {{verb, to}}; }
  void hold_also(replication::Verb verb, const replication::Endpoint& to) {
    holding_.insert({verb, to});
  }
  void hold_no_more() { holding_.clear(); }
  size_t held() const { return held_.size(); }
  void release_held() {
    for (Held& held : std::exchange(held_, {})) send(held.from, held.to, std::move(held.message));
  }
  /// The first of them, in their order, while others stay.
  void release_first(size_t count) {
    std::vector<Held> rest;
    for (Held& held : std::exchange(held_, {})) {
      if (count == 0) {
        rest.push_back(std::move(held));
      } else {
        --count;
        deliver_later(held.from, held.to, std::move(held.message));
      }
    }
    held_ = std::move(rest);
  }

 private:
  friend class SimTransport;
  struct Held {
    replication::Endpoint from, to;
    Bytes message;
  };
  bool is_held(const replication::Endpoint& to, BytesView message) const {
    if (std::ranges::none_of(holding_, [&](const auto& held) { return held.second == to; }))
      return false;
    const auto decoded = replication::decode_envelope(message);
    return decoded && holding_.contains({decoded->envelope.verb, to});
  }
  bool is_lost(const replication::Endpoint& from, const replication::Endpoint& to,
               BytesView message) {
    if (world_.random().below(1'000'000) < options.lost_in_million) return true;
    if (!deaf_.contains(to) && !mute_.contains(from)) return false;
    const auto decoded = replication::decode_envelope(message);
    return decoded && decoded->envelope.verb == replication::Verb::kRaft;
  }
  void send(const replication::Endpoint& from, const replication::Endpoint& to, Bytes message) {
    if (watch_) watch_(to, message);
    if (is_cut(from, to) || is_lost(from, to, message)) return;
    if (is_held(to, message)) {
      held_.push_back({from, to, std::move(message)});
      return;
    }
    if (options.twice_one_in != 0 && world_.random().one_in(options.twice_one_in))
      deliver_later(from, to, Bytes(message));
    deliver_later(from, to, std::move(message));
  }
  void deliver_later(const replication::Endpoint& from, const replication::Endpoint& to,
                     Bytes message) {
    base::Random& random = world_.random();
    int64_t delay_us = options.delay_min_us +
                       static_cast<int64_t>(random.below(
                           static_cast<uint64_t>(options.delay_max_us - options.delay_min_us + 1)));
    if (options.slow_one_in != 0 && random.one_in(options.slow_one_in))
      delay_us += static_cast<int64_t>(random.below(static_cast<uint64_t>(options.slow_us)));
    world_.schedule(world_.now_us() + delay_us,
                    [this, from, to, message = std::move(message)]() mutable {
                      const auto found = listening_.find(to);
                      if (found == listening_.end() || is_cut(from, to)) return;
                      found->second.deliver(std::move(message));
                      ++delivered_;
                    });
  }

 public:
  /// Where messages to an endpoint go: into an event of the reactor that lives there.
  struct Listening {
    base::Reactor* reactor;
    std::weak_ptr<replication::Transport::ReceiveHandler> handler;
    std::weak_ptr<replication::Transport::RefusedHandler> refused;
    void deliver(Bytes message) {
      reactor->post([handler = handler, message = std::move(message)]() mutable {
        const auto alive = handler.lock();
        if (!alive || !*alive) return;
        const auto copy = *alive;
        copy(std::move(message));
      });
    }
  };
  void listen(const replication::Endpoint& at, SimTransport& transport, base::Reactor& reactor) {
    listening_[at] = {&reactor, transport.handler_, transport.refused_};
  }
  /// The node at `to` has tried to connect to `peer`, and nobody listens there.
  void refuse(const replication::Endpoint& to, const replication::Endpoint& peer) {
    const Listening& node = listening_.at(to);
    node.reactor->post([refused = node.refused, peer] {
      const auto alive = refused.lock();
      if (alive && *alive) (*alive)(peer);
    });
  }

 private:
  World& world_;
  std::set<std::pair<replication::Endpoint, replication::Endpoint>> cuts_;
  std::set<replication::Endpoint> deaf_, mute_;
  std::set<std::pair<replication::Verb, replication::Endpoint>> holding_;
  std::vector<Held> held_;
  Watch watch_;
  std::map<replication::Endpoint, Listening> listening_;
  uint64_t delivered_ = 0;
};

inline SimTransport::SimTransport(SimNetwork& network, replication::Endpoint self)
    : network_(network), self_(std::move(self)) {}
inline SimTransport::~SimTransport() {
  const auto found = network_.listening_.find(self_);
  if (found != network_.listening_.end() && found->second.handler.lock() == handler_)
    network_.listening_.erase(found);
}
inline bool SimTransport::send(const replication::Endpoint& to, Bytes message, replication::Lane) {
  network_.send(self_, to, std::move(message));
  return true;
}

}  // namespace tetrad::simulation
