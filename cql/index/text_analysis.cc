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
#include <span>
#include <string_view>
#include <vector>

#include "cql/index/code_points.h"
#include "cql/index/english.h"
#include "cql/index/standard_words.h"
#include "cql/index/unicode_tables.h"

namespace tetrad::cql {

namespace {

using Text = CodePoints;

/// The last entry that begins at or before `c`.
template <class Entry, class Member>
const Entry* at_or_before(std::span<const Entry> table, char32_t c, Member member) {
  const auto after = std::ranges::upper_bound(table, c, {}, member);
  return after == table.begin() ? nullptr : &*(after - 1);
}

char32_t in_case(std::span<const CaseRun> runs, char32_t c) {
  const CaseRun* const run = at_or_before(runs, c, &CaseRun::first);
  if (run == nullptr || c > run->last || (c - run->first) % run->step != 0) return c;
  return static_cast<char32_t>(static_cast<int64_t>(c) + run->distance);
}

constexpr char32_t kCapitalSigma = 0x3A3, kSigma = 0x3C3, kFinalSigma = 0x3C2;
// The only letter of which lower case makes two characters.
constexpr char32_t kDottedCapitalI = 0x130, kDotAbove = 0x307;

char32_t lower(char32_t c) {
  // The two small sigmas are one letter, wherever it stands.
  return c == kFinalSigma ? kSigma : in_case(lower_runs(), c);
}

Text to_lower(const Text& text) {
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

/// Makes those capital sigmas small that end a word of letters that have two cases.
// That is the last such letter before an end unless it is the first one, too. Within a standard word Java sees the
// end of a word at these.
void lower_final_sigmas(Text& text) {
  const auto is_cased = [](char32_t c) {
    if (c < 0x80) return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return in_case(lower_runs(), c) != c || in_case(upper_runs(), c) != c;
  };
  constexpr std::u32string_view kEnds =
      U":\u00B7\u02D7\u0387\u05F4\u2018\u2019\u2024\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  char32_t* last = nullptr;  // the last cased letter since an end, where another stands before it
  bool has_cased = false;    // since an end
  const auto end_word = [&] {
    if (last != nullptr && *last == kCapitalSigma) *last = kFinalSigma;
    last = nullptr;
    has_cased = false;
  };
  for (char32_t& c : text) {
    if (kEnds.contains(c)) {
      end_word();
    } else if (is_cased(c)) {
      if (has_cased) last = &c;
      has_cased = true;
    }
  }
  end_word();
}

Text to_java_lower(Text text) {
  if (text.contains(kCapitalSigma)) lower_final_sigmas(text);
  Text out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    if (c >= 'A' && c <= 'Z') {
      out += c + ('a' - 'A');
    } else if (c == kDottedCapitalI) {
      out += U'i';
      out += kDotAbove;
    } else {
      out += c < 0x80 ? c : in_case(lower_runs(), c);
    }
  }
  return out;
}

Text to_java_upper(const Text& text) {
  Text out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    if (c < 0x80) {
      out += c >= 'a' && c <= 'z' ? c - ('a' - 'A') : c;
      continue;
    }
    const auto spelling =
        std::ranges::lower_bound(upper_spellings(), c, {}, &UpperSpelling::code_point);
    if (spelling == upper_spellings().end() || spelling->code_point != c) {
      out += in_case(upper_runs(), c);
      continue;
    }
    for (const char32_t capital : spelling->capitals)
      if (capital != 0) out += capital;
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
  Text decoded = code_points_of(text);
  if (!analysis.case_sensitive) decoded = to_lower(decoded);
  if (analysis.normalize) decoded = to_composed(decoded);
  if (analysis.ascii) decoded = to_ascii(decoded);
  return utf8_of(decoded);
}

namespace {

// Stop words are looked for before words are stemmed, and both in any case that is kept, as in Cassandra.
std::optional<Bytes> standard_term(const TextAnalysis& analysis, BytesView word) {
  Bytes term(word);
  if (analysis.word_case == WordCase::kLower) term = utf8_of(to_java_lower(code_points_of(word)));
  if (analysis.word_case == WordCase::kUpper) term = utf8_of(to_java_upper(code_points_of(word)));
  if (analysis.skips_stop_words && is_english_stop_word(term)) return std::nullopt;
  if (analysis.stems) term = english_stem(term);
  return analyze(analysis, term);
}

}  // namespace

std::vector<Bytes> terms_of(const TextAnalysis& analysis, BytesView text) {
  if (!analysis.has_words()) return {analyze(analysis, text)};
  std::vector<Bytes> terms;
  if (analysis.has_standard_words) {
    StandardWords words(text);
    while (const auto word = words.next()) {
      if (auto term = standard_term(analysis, *word)) terms.push_back(std::move(*term));
    }
    return terms;
  }
  const BytesView delimiter = analysis.delimiter.data();
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(delimiter, from), text.size());
    if (to > from) terms.push_back(analyze(analysis, text.substr(from, to - from)));
    from = to + delimiter.size();
  }
  return terms;
}

}  // namespace tetrad::cql
