// SPDX-License-Identifier: Apache-2.0
// The longest word that begins at a place is found with an automaton over the classes of characters
// (word_tables.h); where none begins, one character is left out.
#include "cql/index/standard_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cql/index/code_points.h"
#include "cql/index/word_tables.h"

namespace tetrad::cql {

namespace {

WordClass look_up(char32_t c) {
  const auto after = std::ranges::upper_bound(word_runs(), c, {}, &WordRun::first);
  if (after == word_runs().begin()) return WordClass::kOther;
  const WordRun& run = *(after - 1);
  return c <= run.last ? run.word_class : WordClass::kOther;
}

WordClass class_of(char32_t c) {
  static const auto kAscii = [] {
    std::array<WordClass, 0x80> classes = {};
    for (char32_t i = 0; i < classes.size(); ++i) classes[i] = look_up(i);
    return classes;
  }();
  return c < kAscii.size() ? kAscii[c] : look_up(c);
}

/// What was read last of a word of letters, digits and Katakana.
enum class State : uint8_t {
  kStart,
  kJoiners,  // only low lines so far, which are no word
  kLetter,
  kHebrew,
  kNumber,
  kKatakana,
  kJoined,          // a low line behind others
  kClosed,          // in Hebrew an apostrophe, or what followed a quotation mark
  kAfterMidLetter,  // a word only if a letter follows
  kAfterMidNumber,
  kAfterDoubleQuote,
  kEnd,
};

bool is_word(State state) {
  switch (state) {
    case State::kLetter:
    case State::kHebrew:
    case State::kNumber:
    case State::kKatakana:
    case State::kJoined:
    case State::kClosed:
      return true;
    default:
      return false;
  }
}

/// Behind this any run may begin.
bool is_open(State state) {
  return state == State::kStart || state == State::kJoiners || state == State::kJoined;
}

/// Behind this letters and digits may stand.
bool takes_letters(State state) {
  return is_open(state) || state == State::kLetter || state == State::kHebrew ||
         state == State::kNumber || state == State::kClosed;
}

State letter_after(State state, State letter) {
  return takes_letters(state) || state == State::kAfterMidLetter ? letter : State::kEnd;
}

State mid_after(State state, bool of_letters, bool of_numbers) {
  if (of_letters && (state == State::kLetter || state == State::kHebrew))
    return State::kAfterMidLetter;
  return of_numbers && state == State::kNumber ? State::kAfterMidNumber : State::kEnd;
}

State next_state(State state, WordClass word_class) {
  switch (word_class) {
    case WordClass::kMark:
    case WordClass::kComplexMark:
      return state == State::kStart ? State::kEnd : state;
    case WordClass::kLetter:
      return letter_after(state, State::kLetter);
    case WordClass::kHebrew:
      if (state == State::kAfterDoubleQuote) return State::kClosed;
      // Behind a mark between letters it takes no quotation mark.
      if (state == State::kAfterMidLetter) return State::kLetter;
      return letter_after(state, State::kHebrew);
    case WordClass::kNumber:
      return takes_letters(state) || state == State::kAfterMidNumber ? State::kNumber : State::kEnd;
    case WordClass::kKatakana:
      return is_open(state) || state == State::kKatakana ? State::kKatakana : State::kEnd;
    case WordClass::kJoiner:
      if (state == State::kStart || state == State::kJoiners) return State::kJoiners;
      return is_word(state) ? State::kJoined : State::kEnd;
    case WordClass::kMidLetter:
      return mid_after(state, true, false);
    case WordClass::kMidNumber:
      return mid_after(state, false, true);
    case WordClass::kSingleQuote:
      if (state == State::kHebrew) return State::kClosed;
      return mid_after(state, true, true);
    case WordClass::kMidNumberLetter:
      return mid_after(state, true, true);
    case WordClass::kDoubleQuote:
      return state == State::kHebrew ? State::kAfterDoubleQuote : State::kEnd;
    case WordClass::kOther:
    case WordClass::kSingle:
    case WordClass::kComplex:
      return State::kEnd;
  }
  std::unreachable();
}

/// A prefix of a text.
struct Extent {
  size_t bytes = 0;
  size_t units = 0;  // characters of Java: two above U+FFFF
  void add(size_t size) {
    bytes += size;
    units += size == 4 ? 2 : 1;
  }
};

/// The characters of `text` as long as they are in `classes`.
void take_run(BytesView text, Extent& extent, std::pair<WordClass, WordClass> classes) {
  for (BytesView rest = text.substr(extent.bytes); !rest.empty();) {
    const size_t before = rest.size();
    const WordClass found = class_of(take_code_point(rest));
    if (found != classes.first && found != classes.second) return;
    extent.add(before - rest.size());
  }
}

}  // namespace

std::optional<BytesView> StandardWords::next() {
  while (!rest_.empty()) {
    const BytesView text = rest_;
    BytesView rest = text;
    WordClass found = class_of(take_code_point(rest));
    Extent read, word;  // `word`: of `read` what is surely a word
    read.add(text.size() - rest.size());
    const Extent first = read;
    if (found == WordClass::kComplex || found == WordClass::kComplexMark) {
      word = first;
      take_run(text, word, {WordClass::kComplex, WordClass::kComplexMark});
    } else if (found == WordClass::kSingle) {
      word = first;
      take_run(text, word, {WordClass::kMark, WordClass::kComplexMark});
    } else if (found != WordClass::kJoiner || text.size() <= barren_above_) {
      State state = next_state(State::kStart, found);
      if (is_word(state)) word = read;
      while (state != State::kEnd && !rest.empty()) {
        const size_t before = rest.size();
        state = next_state(state, class_of(take_code_point(rest)));
        if (state == State::kEnd) break;
        read.add(before - rest.size());
        if (is_word(state)) word = read;
      }
      // All low lines that were read come to the same end.
      if (found == WordClass::kJoiner && word.bytes == 0) barren_above_ = text.size() - read.bytes;
    }
    rest_.remove_prefix(word.bytes == 0 ? first.bytes : word.bytes);
    if (word.bytes != 0 && word.units <= kStandardWordMax) return text.substr(0, word.bytes);
  }
  return std::nullopt;
}

}  // namespace tetrad::cql
