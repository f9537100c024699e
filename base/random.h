// SPDX-License-Identifier: Apache-2.0
// Randomness: every jitter, id and secret of a node comes from one of these. Seeded (xoshiro256**,
// seeded by splitmix64) it runs the same way again, for simulations; a server's comes from a source
// whose words nobody can foresee, since clients see ids and pages that are signed with secrets.
//
// Of one seed a simulation draws all its numbers in one order; so a number that is drawn for a log
// line or a test only would change the whole run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tetrad::base {

/// Owned by whoever draws from it; not thread-safe. Made of a seed it draws the same numbers again;
/// made of a source it keeps none of what it has given out.
/// Each shard has one of its own; so has each component that must not disturb the draws of others.
class Random {
 public:
  /// Fills all the words. Thread-safe.
  /// os_random() of the server; a simulation has none.
  using Source = void (*)(std::span<uint64_t> words);

  explicit Random(Source source) : state_{}, source_(source) {}
  explicit Random(uint64_t seed) {
    // splitmix64 makes four good words even of small and similar seeds.
    for (auto& word : state_) {
      seed += 0x9E3779B97F4A7C15ULL;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
      word = z ^ (z >> 31);
    }
  }

  /// 64 bits, all of them equally good.
  uint64_t next() {
    if (source_ != nullptr) return next_of_source();
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  /// Uniform in [0, bound); bound > 0. The bias is below 2^-32 for bounds below 2^32.
  /// One multiplication, no division (Lemire).
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  /// True once in `n`.
  bool one_in(uint64_t n) { return below(n) == 0; }
  /// Uniform in [0, 1).
  /// 53 bits, as many as a double has.
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  // `k` from 1 to 63: a shift by 64 has no meaning.
  static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  /// One word of the source's last batch; asks for the next batch when all are used.
  uint64_t next_of_source() {
    if (drawn_left_ == 0) {
      source_(drawn_);
      drawn_left_ = drawn_.size();
    }
    uint64_t& word = drawn_[--drawn_left_];
    const uint64_t result = word;
    word = 0;  // what was given out is not in memory any more
    return result;
  }

  // Of the seeded generator; never all zero, or it would draw zeros for ever. Unused with a source.
  uint64_t state_[4];
  Source source_ = nullptr;
  // Words of the source that are not given out yet: the first drawn_left_ of drawn_.
  size_t drawn_left_ = 0;
  std::array<uint64_t, 32> drawn_{};  // a call of the kernel for 32 words
};

}  // namespace tetrad::base
