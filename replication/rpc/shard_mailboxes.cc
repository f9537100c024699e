// SPDX-License-Identifier: Apache-2.0
// Handing messages over between threads.
#include "replication/rpc/shard_mailboxes.h"

#include <mutex>

#include "base/assert.h"

namespace tetrad::replication {

namespace {
/// Then other work of the shard comes in between.
constexpr size_t kMessagesPerStep = 256;
}  // namespace

struct ShardMailboxes::Core : std::enable_shared_from_this<ShardMailboxes::Core> {
  /// What others have for a shard.
  struct alignas(64) Inbox {
    std::mutex mutex;
    std::vector<ShardMessage> waiting;  // under the mutex, as the next two
    uint64_t waiting_bytes = 0;
    bool woken = false;
    // Of the shard's own thread:
    Deliver deliver;
    std::vector<ShardMessage> taken;
    size_t taken_next = 0;
  };
  /// What a shard has for others; of its own thread.
  struct alignas(64) Outbox {
    std::vector<std::vector<ShardMessage>> for_shard;
    bool turn_begun = false;
  };
  struct Shard {
    base::Reactor* reactor;
    Inbox inbox;
    Outbox outbox;
  };
  std::vector<std::unique_ptr<Shard>> shards;

  void send(uint32_t from, uint32_t to, ShardMessage message) {
    TETRAD_ASSERT(from < shards.size() && to < shards.size() && from != to);
    Outbox& outbox = shards[from]->outbox;
    outbox.for_shard[to].push_back(std::move(message));
    if (outbox.turn_begun) return;
    outbox.turn_begun = true;
    shards[from]->reactor->at_turn_end([core = shared_from_this(), from] { core->flush(from); });
  }

  void flush(uint32_t from) {
    Outbox& outbox = shards[from]->outbox;
    TETRAD_ASSERT(outbox.turn_begun);
    outbox.turn_begun = false;
    for (size_t to = 0; to < shards.size(); ++to)
      if (!outbox.for_shard[to].empty()) hand_over(outbox.for_shard[to], *shards[to]);
  }

  void hand_over(std::vector<ShardMessage>& messages, Shard& to) {
    TETRAD_ASSERT(!messages.empty());
    uint64_t bytes = 0;
    for (const ShardMessage& message : messages) bytes += message.bytes.size();
    bool wake = false;
    {
      const std::lock_guard lock(to.inbox.mutex);
      if (to.inbox.waiting_bytes + bytes > kInboxBytesMax) {
        std::erase_if(messages,
                      [](const ShardMessage& message) { return message.call == nullptr; });
        bytes = 0;
      }
      if (!messages.empty()) {
        if (to.inbox.waiting.empty())
          to.inbox.waiting.swap(messages);
        else
          std::move(messages.begin(), messages.end(), std::back_inserter(to.inbox.waiting));
        to.inbox.waiting_bytes += bytes;
        wake = !std::exchange(to.inbox.woken, true);
      }
    }
    messages.clear();
    if (wake)
      to.reactor->post_from_any_thread([core = shared_from_this(), &to] { core->take(to); });
  }

  void take(Shard& shard) {
    Inbox& inbox = shard.inbox;
    TETRAD_ASSERT(inbox.taken_next <= inbox.taken.size());
    for (size_t n = 0; n < kMessagesPerStep; ++n) {
      if (inbox.taken_next == inbox.taken.size()) {
        inbox.taken.clear();
        inbox.taken_next = 0;
        const std::lock_guard lock(inbox.mutex);
        inbox.waiting.swap(inbox.taken);
        inbox.waiting_bytes = 0;
        if (inbox.taken.empty()) {
          inbox.woken = false;
          return;
        }
      }
      TETRAD_ASSERT(inbox.taken_next < inbox.taken.size());
      ShardMessage message = std::move(inbox.taken[inbox.taken_next++]);
      if (inbox.deliver) inbox.deliver(std::move(message));
    }
    shard.reactor->post([core = shared_from_this(), &shard] { core->take(shard); });
  }
};

ShardMailboxes::ShardMailboxes(std::vector<base::Reactor*> reactors)
    : core_(std::make_shared<Core>()) {
  for (base::Reactor* reactor : reactors) {
    auto shard = std::make_unique<Core::Shard>();
    shard->reactor = reactor;
    shard->outbox.for_shard.resize(reactors.size());
    core_->shards.push_back(std::move(shard));
  }
}

/// Messages go now, while the reactors are there that they may have timers with: an event that nobody
/// runs any more may keep the rest for longer.
ShardMailboxes::~ShardMailboxes() {
  std::vector<std::vector<ShardMessage>> left;
  for (const auto& shard : core_->shards) {
    shard->inbox.deliver = nullptr;
    {
      const std::lock_guard lock(shard->inbox.mutex);
      left.push_back(std::exchange(shard->inbox.waiting, {}));
    }
    left.push_back(std::exchange(shard->inbox.taken, {}));
    shard->inbox.taken_next = 0;
    for (auto& messages : shard->outbox.for_shard) left.push_back(std::exchange(messages, {}));
  }
}

void ShardMailboxes::deliver_to(uint32_t shard, Deliver deliver) {
  core_->shards.at(shard)->inbox.deliver = std::move(deliver);
}

void ShardMailboxes::send(uint32_t from, uint32_t to, ShardMessage message) {
  core_->send(from, to, std::move(message));
}

}  // namespace tetrad::replication
