// SPDX-License-Identifier: Apache-2.0
// Which words are keywords: by a hash table of open addressing that is filled at compile time,
// since the lexer asks for every word of every statement. The words and the use of each are in
// keyword.h.
#include "cql/types/keyword.h"

#include <array>
#include <string_view>

namespace tetrad::cql {
namespace {

struct KeywordEntry {
  std::string_view text;
  KeywordUse use;
};

constexpr KeywordEntry kKeywords[] = {
#define TETRAD_CQL_KEYWORD(name, text, use) {text, KeywordUse::use},
    TETRAD_CQL_KEYWORDS(TETRAD_CQL_KEYWORD)
#undef TETRAD_CQL_KEYWORD
        {"-nan", KeywordUse::R},
    {"-infinity", KeywordUse::R},
};
constexpr size_t kWordCount = static_cast<size_t>(Keyword::kNegativeNan);
constexpr size_t kWordBytesMax = 13;
constexpr size_t kSlotCount = 1024;

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// FNV-1a over lower-case letters.
constexpr uint32_t slot_of(std::string_view word) {
  uint32_t h = 2166136261u;
  for (char c : word) h = (h ^ static_cast<uint8_t>(lower(c))) * 16777619u;
  return (h ^ (h >> 15)) % kSlotCount;
}

// Open addressing, filled at compile time; 0 is an empty slot, otherwise keyword + 1.
constexpr std::array<uint8_t, kSlotCount> make_slots() {
  std::array<uint8_t, kSlotCount> slots{};
  for (size_t k = 0; k < kWordCount; ++k) {
    uint32_t at = slot_of(kKeywords[k].text);
    while (slots[at] != 0) at = (at + 1) % kSlotCount;
    slots[at] = static_cast<uint8_t>(k + 1);
  }
  return slots;
}
constexpr auto kSlots = make_slots();
static_assert(kWordCount < 255);

bool equal_words(std::string_view lower_case, std::string_view word) {
  if (lower_case.size() != word.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (lower(word[i]) != lower_case[i]) return false;
  }
  return true;
}

}  // namespace

KeywordUse keyword_use(Keyword keyword) { return kKeywords[static_cast<size_t>(keyword)].use; }

std::string_view keyword_text(Keyword keyword) {
  return kKeywords[static_cast<size_t>(keyword)].text;
}

std::optional<Keyword> find_keyword(std::string_view word) {
  // Longer than any keyword: most names end here or at an empty slot.
  if (word.size() > kWordBytesMax) return std::nullopt;
  for (uint32_t at = slot_of(word); kSlots[at] != 0; at = (at + 1) % kSlotCount) {
    const size_t k = kSlots[at] - 1u;
    if (equal_words(kKeywords[k].text, word)) return static_cast<Keyword>(k);
  }
  return std::nullopt;
}

// Quotes where the bare word would be read as another one or as none: Cassandra's
// ColumnIdentifier.maybeQuote.
std::string quote_identifier(std::string_view name) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  bool plain = !name.empty() && is_lower(name.front());
  for (char c : name) plain = plain && (is_lower(c) || is_digit(c) || c == '_');
  if (plain) {
    const auto keyword = find_keyword(name);
    if (!keyword) return std::string(name);
    const KeywordUse use = keyword_use(*keyword);
    if (use != KeywordUse::R && use != KeywordUse::F) return std::string(name);
  }
  std::string quoted = "\"";
  for (char c : name) {
    quoted.push_back(c);
    if (c == '"') quoted.push_back(c);
  }
  quoted.push_back('"');
  return quoted;
}

}  // namespace tetrad::cql
