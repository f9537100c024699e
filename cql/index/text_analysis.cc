// SPDX-License-Identifier: Apache-2.0
// The Unicode standard's algorithms, chapters 3.11 (canonical ordering and composition) and 3.12
// (Hangul syllables).
//
// analyze(), the steps of a text that is not all ASCII:
//
// 1. Decode UTF-8. A byte that belongs to no character is carried as it is (kRawByte) and comes out
//    unchanged.
// 2. Lower case, unless case_sensitive.
// 3. NFC, with `normalize`: decompose, order the marks, compose.
// 4. Letters to ASCII, with `ascii`.
// 5. Encode.
//
// Entries of an index and values in WHERE go through the same steps. Entries on the disk were made
// by them, so a change of any result needs indexes that are built anew.
#include "cql/index/text_analysis.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cql/index/unicode_tables.h"

namespace tetrad::cql {

namespace {

using Text = std::u32string;

constexpr char32_t kRawByte = 0x80000000;  // of what is no UTF-8: the byte itself

/// Takes a code point off the front, or a byte that belongs to none.
char32_t take(BytesView& text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char head = byte(0);
  // By the first byte; 0 for one that may only follow.
  const size_t size = head < 0x80 ? 1 : head < 0xC0 ? 0 : head < 0xE0 ? 2 : head < 0xF0 ? 3 : 4;
  bool is_whole = size != 0 && size <= text.size() && head < 0xF8;
  for (size_t i = 1; is_whole && i < size; ++i) is_whole = (byte(i) & 0xC0) == 0x80;
  if (!is_whole) {
    text.remove_prefix(1);
    return kRawByte | head;
  }
  char32_t code_point = size == 1 ? head : head & (0x7F >> size);
  for (size_t i = 1; i < size; ++i) code_point = code_point << 6 | (byte(i) & 0x3F);
  text.remove_prefix(size);
  return code_point;
}

void append(Bytes& out, char32_t c) {
  if (c >= kRawByte || c < 0x80) {
    out += static_cast<char>(c & 0xFF);
    return;
  }
  const int size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  out += static_cast<char>((0xF00 >> size & 0xFF) | c >> (6 * (size - 1)));
  for (int i = size - 2; i >= 0; --i) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

/// The last entry that begins at or before `c`.
template <class Entry, class Member>
const Entry* at_or_before(std::span<const Entry> table, char32_t c, Member member) {
  const auto after = std::ranges::upper_bound(table, c, {}, member);
  return after == table.begin() ? nullptr : &*(after - 1);
}

char32_t lower(char32_t c) {
  // The two small sigmas are one letter, wherever it stands.
  constexpr char32_t kSigma = 0x3C3, kFinalSigma = 0x3C2;
  if (c == kFinalSigma) return kSigma;
  const LowerRun* const run = at_or_before(lower_runs(), c, &LowerRun::first);
  if (run == nullptr || c > run->last || (c - run->first) % run->step != 0) return c;
  return static_cast<char32_t>(static_cast<int64_t>(c) + run->distance);
}

Text to_lower(const Text& text) {
  // The only letter of which lower case makes two characters.
  constexpr char32_t kDottedCapitalI = 0x130, kDotAbove = 0x307;
  Text out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    if (c >= 'A' && c <= 'Z') {
      out += c + ('a' - 'A');
    } else if (c == kDottedCapitalI) {
      out += U'i';
      out += kDotAbove;
    } else {
      out += c < 0x80 ? c : lower(c);
    }
  }
  return out;
}

uint32_t combining_class(char32_t c) {
  const CombiningRun* const run = at_or_before(combining_runs(), c, &CombiningRun::first);
  return run == nullptr || c > run->last ? 0 : run->combining;
}

// Hangul syllables are made of a leading consonant, a vowel and perhaps a trailing consonant.
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kLeadingCount = 19, kVowelCount = 21, kTrailingCount = 28;
constexpr char32_t kSyllableCount = kLeadingCount * kVowelCount * kTrailingCount;

void decompose(char32_t c, Text& out) {
  if (c >= kSyllables && c < kSyllables + kSyllableCount) {
    const char32_t syllable = c - kSyllables;
    out += kLeading + syllable / (kVowelCount * kTrailingCount);
    out += kVowels + syllable % (kVowelCount * kTrailingCount) / kTrailingCount;
    if (syllable % kTrailingCount != 0) out += kTrailing + syllable % kTrailingCount;
    return;
  }
  const Decomposition* const found = at_or_before(decompositions(), c, &Decomposition::whole);
  if (found == nullptr || found->whole != c) {
    out += c;
    return;
  }
  // Only the first part may be decomposed further, by the standard's data.
  decompose(found->first, out);  // at most a few deep
  if (found->second != 0) out += found->second;
}

std::optional<char32_t> compose(char32_t first, char32_t second) {
  if (first >= kLeading && first < kLeading + kLeadingCount && second >= kVowels &&
      second < kVowels + kVowelCount) {
    return kSyllables + ((first - kLeading) * kVowelCount + (second - kVowels)) * kTrailingCount;
  }
  if (first >= kSyllables && first < kSyllables + kSyllableCount &&
      (first - kSyllables) % kTrailingCount == 0 && second > kTrailing &&
      second < kTrailing + kTrailingCount) {
    return first + (second - kTrailing);
  }
  const std::pair wanted{first, second};
  const auto parts = [](const Composition& c) { return std::pair{c.first, c.second}; };
  const auto found = std::ranges::lower_bound(compositions(), wanted, {}, parts);
  if (found == compositions().end() || parts(*found) != wanted) return std::nullopt;
  return found->whole;
}

Text to_composed(const Text& text) {
  Text parts;
  parts.reserve(text.size());
  for (const char32_t c : text) {
    // Nothing below U+00C0 is decomposed, nothing below U+0300 is a mark: texts in Latin letters
    // skip the tables.
    if (c < 0xC0)
      parts += c;
    else
      decompose(c, parts);
  }
  std::vector<uint32_t> classes;
  classes.reserve(parts.size());
  for (const char32_t c : parts) classes.push_back(c < 0x300 ? 0 : combining_class(c));
  // Marks of one character, in the order of their classes.
  for (size_t from = 0; from < parts.size(); ++from) {
    if (classes[from] == 0) continue;
    size_t to = from;
    while (to < parts.size() && classes[to] != 0) ++to;
    std::vector<std::pair<uint32_t, char32_t>> marks;
    for (size_t i = from; i < to; ++i) marks.emplace_back(classes[i], parts[i]);
    std::ranges::stable_sort(marks, {}, &std::pair<uint32_t, char32_t>::first);
    for (size_t i = from; i < to; ++i) std::tie(classes[i], parts[i]) = marks[i - from];
    from = to;
  }
  Text out;
  std::optional<size_t> starter;  // the place of the last character that is no mark
  uint32_t last_class = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    // A mark combines with the starter unless a mark of the same or a higher class stands between
    // (D115, "blocked"); a character that is no mark only if it follows directly.
    const bool is_free =
        starter && (last_class < classes[i] || (last_class == 0 && *starter + 1 == out.size()));
    const auto whole =
        is_free && parts[i] >= 0x300 ? compose(out[*starter], parts[i]) : std::optional<char32_t>();
    if (whole) {
      out[*starter] = *whole;
      continue;
    }
    if (classes[i] == 0) starter = out.size();
    last_class = classes[i];
    out += parts[i];
  }
  return out;
}

Text to_ascii(const Text& text) {
  Text out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    const AsciiFold* const fold =
        c < 0x80 ? nullptr : at_or_before(ascii_folds(), c, &AsciiFold::code_point);
    if (fold == nullptr || fold->code_point != c) {
      out += c;
      continue;
    }
    for (const char* letter = fold->letters; *letter != 0; ++letter) {
      out += static_cast<char32_t>(*letter);
    }
  }
  return out;
}

}  // namespace

Bytes analyze(const TextAnalysis& analysis, BytesView text) {
  if (analysis.does_nothing()) return Bytes(text);
  // The common case: only step 2 can change ASCII.
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
    Bytes out(text);
    if (!analysis.case_sensitive) {
      for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    }
    return out;
  }
  Text decoded;
  decoded.reserve(text.size());
  while (!text.empty()) decoded += take(text);
  if (!analysis.case_sensitive) decoded = to_lower(decoded);
  if (analysis.normalize) decoded = to_composed(decoded);
  if (analysis.ascii) decoded = to_ascii(decoded);
  Bytes out;
  out.reserve(decoded.size());
  for (const char32_t c : decoded) append(out, c);
  return out;
}

std::vector<BytesView> words_of(const TextAnalysis& analysis, BytesView text) {
  if (!analysis.has_words()) return {text};
  const BytesView delimiter = analysis.delimiter.data();
  std::vector<BytesView> words;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(delimiter, from), text.size());
    if (to > from) words.push_back(text.substr(from, to - from));
    from = to + delimiter.size();
  }
  return words;
}

}  // namespace tetrad::cql
