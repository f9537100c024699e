// SPDX-License-Identifier: Apache-2.0
// Backtracking over the pattern, as Lua's own matcher: match(s, p) is where the rest of the pattern
// ends, from s in the subject and p in the pattern on.
//
//   1. Single characters and classes are compared in a loop; only a choice calls match() again.
//   2. A choice ('?', '*', '+', '-' and captures) tries the rest of the pattern, and takes its own
//      step back when that fails.
//   3. Each step is charged before it is made, so that a pattern that goes back and forth ends with
//      an error and not with time. The depth of the calls is bounded, as the C++ stack is.
#include "cql/script/lua_pattern.h"

#include <cctype>
#include <vector>

namespace tetrad::cql {

namespace {
// As in Lua's own matcher (MAXCCALLS), so that the same patterns are too complex.
constexpr int kDepthMax = 200;
constexpr char kEscape = '%';
constexpr const char* kTooMuch = "the function does too much work";
}  // namespace

size_t find_plain(std::string_view text, std::string_view needle, size_t from) {
  if (needle.empty()) return from;
  // Knuth, Morris and Pratt: fallback[i] is the length of the longest proper prefix of needle[0..i]
  // that is also its end.
  std::vector<size_t> fallback(needle.size(), 0);
  for (size_t i = 1, matched = 0; i < needle.size(); ++i) {
    while (matched != 0 && needle[i] != needle[matched]) matched = fallback[matched - 1];
    if (needle[i] == needle[matched]) ++matched;
    fallback[i] = matched;
  }
  for (size_t i = from, matched = 0; i < text.size(); ++i) {
    while (matched != 0 && text[i] != needle[matched]) matched = fallback[matched - 1];
    if (text[i] == needle[matched]) ++matched;
    if (matched == needle.size()) return i + 1 - needle.size();
  }
  return std::string_view::npos;
}

bool PatternMatcher::spend(uint64_t steps) {
  if (steps_left_ < steps) {
    steps_left_ = 0;
    error_ = kTooMuch;
    return false;
  }
  steps_left_ -= steps;
  return true;
}

size_t PatternMatcher::match_at(size_t start) {
  capture_count_ = 0;
  depth_ = 0;
  return match(start, 0);
}

size_t PatternMatcher::match(size_t s, size_t p) {
  if (depth_ == kDepthMax) return give_up("pattern too complex");
  ++depth_;
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{depth_};
  while (true) {
    if (!spend(1)) return kNone;
    if (p == pattern_.size()) return s;
    const char c = pattern_[p];
    const char next = p + 1 < pattern_.size() ? pattern_[p + 1] : '\0';
    if (c == '(') {
      return next == ')' ? open_capture(s, p + 2, Capture::Kind::kPosition)
                         : open_capture(s, p + 1, Capture::Kind::kOpen);
    }
    if (c == ')') return close_capture(s, p + 1);
    if (c == '$' && p + 1 == pattern_.size()) return s == subject_.size() ? s : kNone;
    // %bxy: from an x to the y that balances it.
    if (c == kEscape && next == 'b') {
      s = match_balanced(s, p + 2);
      if (s == kNone) return kNone;
      p += 4;
      continue;
    }
    // %f[set]: a frontier: the character before is not in the set and this one is. Both ends of the
    // subject count as '\0'.
    if (c == kEscape && next == 'f') {
      p += 2;
      if (p == pattern_.size() || pattern_[p] != '[') {
        return give_up("missing '[' after '%f' in pattern");
      }
      const size_t after = class_end(p);
      if (after == kNone) return kNone;
      const auto before = static_cast<unsigned char>(s == 0 ? '\0' : subject_[s - 1]);
      const auto here = static_cast<unsigned char>(s < subject_.size() ? subject_[s] : '\0');
      if (set_contains(before, p, after - 1) || !set_contains(here, p, after - 1)) return kNone;
      p = after;
      continue;
    }
    if (c == kEscape && std::isdigit(static_cast<unsigned char>(next)) != 0) {
      s = match_capture_again(s, next);
      if (s == kNone) return kNone;
      p += 2;
      continue;
    }
    const size_t after = class_end(p);
    if (after == kNone) return kNone;
    switch (after < pattern_.size() ? pattern_[after] : '\0') {
      case '?':
        if (single_matches(s, p, after)) {
          const size_t end = match(s + 1, after + 1);
          if (end != kNone || error_ != nullptr) return end;
        }
        p = after + 1;
        continue;
      case '+':
        return single_matches(s, p, after) ? match_more(s + 1, p, after) : kNone;
      case '*':
        return match_more(s, p, after);
      case '-':
        return match_fewest(s, p, after);
      default:
        if (!single_matches(s, p, after)) return kNone;
        ++s;
        p = after;
    }
  }
}

/// As many as there are, then fewer.
size_t PatternMatcher::match_more(size_t s, size_t p, size_t after) {
  size_t count = 0;
  while (single_matches(s + count, p, after)) {
    ++count;
    if (!spend(1)) return kNone;
  }
  while (true) {
    const size_t end = match(s + count, after + 1);
    if (end != kNone || error_ != nullptr || count == 0) return end;
    --count;
  }
}

// First none, then one more for each time that the rest does not match.
size_t PatternMatcher::match_fewest(size_t s, size_t p, size_t after) {
  while (true) {
    const size_t end = match(s, after + 1);
    if (end != kNone || error_ != nullptr) return end;
    if (!single_matches(s, p, after)) return kNone;
    ++s;
  }
}

// The bracket that opens is where `s` is; nested pairs are counted.
size_t PatternMatcher::match_balanced(size_t s, size_t p) {
  if (p + 1 >= pattern_.size()) return give_up("malformed pattern (missing arguments to '%b')");
  if (s >= subject_.size() || subject_[s] != pattern_[p]) return kNone;
  const char open = pattern_[p], close = pattern_[p + 1];
  size_t depth = 1;
  for (size_t i = s + 1; i < subject_.size(); ++i) {
    if (!spend(1)) return kNone;
    if (subject_[i] == close) {
      if (--depth == 0) return i + 1;
    } else if (subject_[i] == open) {
      ++depth;
    }
  }
  return kNone;
}

// %1 to %9: the text of an earlier capture once more.
size_t PatternMatcher::match_capture_again(size_t s, char digit) {
  const auto index = static_cast<size_t>(digit - '1');
  if (digit == '0' || index >= capture_count_ || captures_[index].kind != Capture::Kind::kClosed) {
    return give_up("invalid capture index in pattern");
  }
  const Capture& capture = captures_[index];
  if (!spend(capture.length / 16)) return kNone;
  const std::string_view text = subject_.substr(capture.start, capture.length);
  return subject_.substr(s).starts_with(text) ? s + text.size() : kNone;
}

// A capture that does not lead to a match is taken back, so that another way finds the list as it
// was.
size_t PatternMatcher::open_capture(size_t s, size_t p, Capture::Kind kind) {
  if (capture_count_ == kCapturesMax) return give_up("too many captures");
  captures_[capture_count_++] = {kind, s, 0};
  const size_t end = match(s, p);
  if (end == kNone) --capture_count_;
  return end;
}

// The capture opened last that is not closed yet.
size_t PatternMatcher::close_capture(size_t s, size_t p) {
  size_t index = capture_count_;
  while (index != 0 && captures_[index - 1].kind != Capture::Kind::kOpen) --index;
  if (index == 0) return give_up("invalid pattern capture");
  Capture& capture = captures_[index - 1];
  capture.kind = Capture::Kind::kClosed;
  capture.length = s - capture.start;
  const size_t end = match(s, p);
  if (end == kNone) capture.kind = Capture::Kind::kOpen;
  return end;
}

// One character, %x, or [set]; errors are those of Lua's own matcher.
size_t PatternMatcher::class_end(size_t p) {
  const char c = pattern_[p++];
  if (c == kEscape) {
    if (p == pattern_.size()) return give_up("malformed pattern (ends with '%')");
    return p + 1;
  }
  if (c != '[') return p;
  if (p < pattern_.size() && pattern_[p] == '^') ++p;
  do {  // a ']' that comes first stands for itself
    if (p == pattern_.size()) return give_up("malformed pattern (missing ']')");
    if (pattern_[p++] == kEscape) {
      if (p == pattern_.size()) return give_up("malformed pattern (missing ']')");
      ++p;
    }
  } while (p == pattern_.size() || pattern_[p] != ']');
  return p + 1;
}

// A set is charged by its length, since it is walked for each character.
bool PatternMatcher::single_matches(size_t s, size_t p, size_t after) {
  if (s >= subject_.size()) return false;
  const auto c = static_cast<unsigned char>(subject_[s]);
  switch (pattern_[p]) {
    case '.':
      return true;
    case kEscape:
      return class_contains(c, static_cast<unsigned char>(pattern_[p + 1]));
    case '[':
      return spend((after - p) / 4) && set_contains(c, p, after - 1);
    default:
      return static_cast<unsigned char>(pattern_[p]) == c;
  }
}

/// The set from '[' at `p` to ']' at `last`.
bool PatternMatcher::set_contains(unsigned char c, size_t p, size_t last) const {
  bool wanted = true;
  if (pattern_[p + 1] == '^') {
    wanted = false;
    ++p;
  }
  while (++p < last) {
    const auto here = static_cast<unsigned char>(pattern_[p]);
    if (here == kEscape) {
      ++p;
      if (class_contains(c, static_cast<unsigned char>(pattern_[p]))) return wanted;
    } else if (p + 2 < last && pattern_[p + 1] == '-') {
      p += 2;
      if (here <= c && c <= static_cast<unsigned char>(pattern_[p])) return wanted;
    } else if (here == c) {
      return wanted;
    }
  }
  return !wanted;
}

bool PatternMatcher::class_contains(unsigned char c, unsigned char letter) {
  // By the C library in the locale "C", which the server never leaves: ASCII only.
  int inside = 0;
  switch (std::tolower(letter)) {
    case 'a':
      inside = std::isalpha(c);
      break;
    case 'c':
      inside = std::iscntrl(c);
      break;
    case 'd':
      inside = std::isdigit(c);
      break;
    case 'g':
      inside = std::isgraph(c);
      break;
    case 'l':
      inside = std::islower(c);
      break;
    case 'p':
      inside = std::ispunct(c);
      break;
    case 's':
      inside = std::isspace(c);
      break;
    case 'u':
      inside = std::isupper(c);
      break;
    case 'w':
      inside = std::isalnum(c);
      break;
    case 'x':
      inside = std::isxdigit(c);
      break;
    default:
      return letter == c;
  }
  return (std::isupper(letter) != 0) != (inside != 0);
}

}  // namespace tetrad::cql
