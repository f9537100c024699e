// SPDX-License-Identifier: Apache-2.0
// How many connections between nodes are open, in each direction and with TLS or without: what an
// operator goes by who turns TLS on in a running cluster.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace tetrad::replication {

/// Who has made a connection: kIn, the peer; kOut, this node.
enum class LinkDirection : uint8_t { kIn, kOut };

/// Of one transport. Counted on its thread, read on any.
class OpenLinks {
 public:
  uint64_t count(LinkDirection direction, bool encrypted) const {
    return counts_[place(direction, encrypted)].load(std::memory_order_relaxed);
  }

 private:
  friend class OpenLink;
  using Count = std::atomic<uint64_t>;
  static size_t place(LinkDirection direction, bool encrypted) {
    return static_cast<size_t>(direction) * 2 + (encrypted ? 1 : 0);
  }
  std::array<Count, 4> counts_{};
};

/// One open connection: counted while it lives, or until it is reset.
class OpenLink {
 public:
  OpenLink() = default;
  OpenLink(std::shared_ptr<OpenLinks> links, LinkDirection direction, bool encrypted)
      : links_(std::move(links)), count_(&links_->counts_[OpenLinks::place(direction, encrypted)]) {
    count_->fetch_add(1, std::memory_order_relaxed);
  }
  OpenLink(OpenLink&& other) noexcept
      : links_(std::move(other.links_)), count_(std::exchange(other.count_, nullptr)) {}
  OpenLink& operator=(OpenLink&& other) noexcept {
    std::swap(links_, other.links_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~OpenLink() {
    if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<OpenLinks> links_;
  OpenLinks::Count* count_ = nullptr;
};

}  // namespace tetrad::replication
