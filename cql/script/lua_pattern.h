// SPDX-License-Identifier: Apache-2.0
// Lua's patterns with a bound on the work: the library's own matcher goes back and forth without
// end inside one call, where no count of instructions sees it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tetrad::cql {

/// Matches one pattern (without a leading '^') against one subject.
class PatternMatcher {
 public:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  static constexpr size_t kCapturesMax = 32;

  /// What a parenthesis has matched: a part of the subject.
  struct Capture {
    /// A capture that is not closed yet, one of a text, or `()`, which captures a place.
    enum class Kind : uint8_t { kOpen, kClosed, kPosition };
    Kind kind = Kind::kOpen;
    size_t start = 0, length = 0;
  };

  /// `steps_left` is counted down; at 0 every match fails with an error.
  PatternMatcher(std::string_view subject, std::string_view pattern, uint64_t& steps_left)
      : subject_(subject), pattern_(pattern), steps_left_(steps_left) {}

  /// Where the match that begins at `start` ends, or kNone: there is none, or error() says why.
  size_t match_at(size_t start);
  const char* error() const { return error_; }
  size_t capture_count() const { return capture_count_; }
  const Capture& capture(size_t index) const { return captures_[index]; }

 private:
  // All of these give the end of the whole match in the subject, or kNone. `s` is a place in the
  // subject, `p` one in the pattern, `after` the place behind the single class at `p`.
  size_t match(size_t s, size_t p);
  size_t match_more(size_t s, size_t p, size_t after);
  size_t match_fewest(size_t s, size_t p, size_t after);
  size_t match_balanced(size_t s, size_t p);
  size_t match_capture_again(size_t s, char digit);
  size_t open_capture(size_t s, size_t p, Capture::Kind kind);
  size_t close_capture(size_t s, size_t p);
  /// Behind the single character class at `p`.
  size_t class_end(size_t p);
  // Whether the one character at `s` is in the class that begins at `p`.
  bool single_matches(size_t s, size_t p, size_t after);
  bool set_contains(unsigned char c, size_t p, size_t last) const;
  // %a, %d and so on, by its letter; an upper-case letter is the complement.
  static bool class_contains(unsigned char c, unsigned char letter);
  // False: nothing is left, and error_ says so.
  bool spend(uint64_t steps);
  size_t give_up(const char* why) {
    error_ = why;
    return kNone;
  }

  const std::string_view subject_, pattern_;
  uint64_t& steps_left_;
  int depth_ = 0;
  const char* error_ = nullptr;
  size_t capture_count_ = 0;
  std::array<Capture, kCapturesMax> captures_;
};

/// Where `needle` begins in `text`, at `from` or behind it; npos if nowhere. In time linear in both,
/// which the library's own search is not.
size_t find_plain(std::string_view text, std::string_view needle, size_t from);

}  // namespace tetrad::cql
