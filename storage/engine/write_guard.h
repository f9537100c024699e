// SPDX-License-Identifier: Apache-2.0
// What a write that may have to wait carries with it: until when it is worth anything, and the pass
// it was let in by. Both are tested again when it is handed to RocksDB. All on the shard's thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/reactor.h"
#include "base/result.h"

namespace tetrad::storage {

/// Lets writes in until it is closed, for good; knows how many of those have not ended. It lives as
/// long as its owner or a pass does.
class WriteGate {
 public:
  WriteGate() = default;
  WriteGate(const WriteGate&) = delete;
  WriteGate& operator=(const WriteGate&) = delete;

  bool is_open() const { return open_; }
  /// Passes that are out become invalid; who holds one finds that when it asks.
  void close() { open_ = false; }
  /// Passes out.
  uint32_t out() const { return out_; }
  /// The owner needs it no more.
  void let_go() {
    owned_ = false;
    if (out_ == 0) delete this;
  }

 protected:
  virtual ~WriteGate() = default;
  /// The last pass was given back.
  virtual void on_empty() {}

 private:
  friend class WritePass;
  uint32_t out_ = 0;
  /// Deleted by itself when it is not owned and no pass is out: passes may outlive their owner.
  bool open_ = true, owned_ = true;
};

/// One write's, from where it was let in until it has ended. Without a gate: always valid.
class WritePass {
 public:
  WritePass() = default;
  explicit WritePass(WriteGate& gate) : gate_(&gate) {
    TETRAD_ASSERT(gate.is_open());
    ++gate.out_;
  }
  /// A copy counts: the write has ended when all copies were given back.
  WritePass(const WritePass& other) : gate_(other.gate_) {
    if (gate_ != nullptr) ++gate_->out_;
  }
  WritePass(WritePass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
  WritePass& operator=(WritePass other) noexcept {
    std::swap(gate_, other.gate_);
    return *this;
  }
  ~WritePass() { give_back(); }

  bool is_valid() const { return gate_ == nullptr || gate_->is_open(); }
  /// Once; the destructor does it otherwise. The gate may be gone afterwards.
  void give_back() {
    if (gate_ == nullptr) return;
    WriteGate* const gate = std::exchange(gate_, nullptr);
    TETRAD_ASSERT(gate->out_ > 0);
    if (--gate->out_ != 0) return;
    if (gate->owned_) {
      gate->on_empty();
    } else {
      delete gate;
    }
  }

 private:
  WriteGate* gate_ = nullptr;
};

/// Travels with a write; tested where it is let in and again where it leaves the queue.
struct WriteGuard {
  static constexpr base::MonotonicUs kNever = std::numeric_limits<base::MonotonicUs>::max();
  WritePass pass;
  base::MonotonicUs deadline_us = kNever;

  /// Both can only change from true to false.
  bool may_write(base::MonotonicUs now_us) const { return pass.is_valid() && now_us < deadline_us; }
};

/// Why a write must not be handed to the disk now; unset: it may. kStaleEpoch, kTimedOut.
std::optional<Error> refusal_of(const WriteGuard& guard, base::MonotonicUs now_us);

}  // namespace tetrad::storage
