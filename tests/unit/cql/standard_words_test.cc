// SPDX-License-Identifier: Apache-2.0
// What Cassandra's StandardAnalyzer makes of the same texts. The expected words are its answers.
#include "cql/index/standard_words.h"

#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "cql/index/english.h"
#include "cql/index/text_analysis.h"
#include "cql/index/word_tables.h"

namespace tetrad::cql {
namespace {

/// The words with | between them.
std::string words(BytesView text) {
  StandardWords reader(text);
  std::string out;
  while (const auto word = reader.next()) out += (out.empty() ? "" : "|") + std::string(*word);
  return out;
}

std::string terms(const TextAnalysis& analysis, BytesView text) {
  std::string out;
  for (const Bytes& term : terms_of(analysis, text)) out += (out.empty() ? "" : "|") + term;
  return out;
}

TextAnalysis standard() {
  TextAnalysis analysis;
  analysis.has_standard_words = true;
  analysis.normalize = true;
  return analysis;
}

TEST_CASE("texts are divided where Unicode says that words end") {
  CHECK(words("Hello World, it's a test-case.") == "Hello|World|it's|a|test|case");
  CHECK(words("foo_bar 3.14 1,000.5 a.b.c user@example.com http://x.y/z?q=1") ==
        "foo_bar|3.14|1,000.5|a.b.c|user|example.com|http|x.y|z|q|1");
  CHECK(words("1:2 1;2 a;b 1.a a.1 1'2 a'1 a:b _ __ _a_ a_1_ア C++ .NET foxes'") ==
        "1|2|1;2|a|b|1|a|a|1|1'2|a|1|a:b|_a_|a_1_ア|C|NET|foxes");
  CHECK(words("‘tis can’t O'Neil $5 #tag") == "tis|can’t|O'Neil|5|tag");
  CHECK(words("") == "");
  CHECK(words("... --- !!! ░") == "");
  CHECK(words("a\u0308b \u0308 _\u0308") == "a\u0308b");
}

TEST_CASE("scripts have words of their own") {
  CHECK(words("東京都に行きました カタカナ 漢字kanji 한국어") ==
        "東|京|都|に|行|き|ま|し|た|カタカナ|漢|字|kanji|한국어");
  CHECK(words("ภาษาไทย naïve Straße ﬁ 👍 🇫🇷 x") == "ภาษาไทย|naïve|Straße|ﬁ|x");
  CHECK(words("aア ア1 ア_1 中a ก\u0308 \u0E31a a\u0E31") ==
        "a|ア|ア|1|ア_1|中|a|ก|\u0E31|a|a\u0E31");
  CHECK(words("צה\"ל ג' ג'א א\"א\"א א:א' a\"b") == "צה\"ל|ג'|ג'א|א\"א|א|א:א|a|b");
  CHECK(words("𐐀𐐀 𠀀𠀀") == "𐐀𐐀|𠀀|𠀀");
}

TEST_CASE("words of more than 255 characters are left out") {
  CHECK(words(Bytes(255, 'a') + " b") == Bytes(255, 'a') + "|b");
  CHECK(words("c " + Bytes(256, 'a') + " b") == "c|b");
  std::string wide;
  for (int i = 0; i < 127; ++i) wide += "𐐀";
  CHECK(words(wide) == wide);
  CHECK(words(wide + "aa") == "");  // one above U+FFFF counts twice, as in Java
}

TEST_CASE("any bytes have words in their order, each once") {
  std::mt19937 random(5);
  const std::vector<std::string> parts = {"a",      "1",      "_", "'",    "\"",  ":",
                                          ",",      ".",      "א", "ア",   "中",  "ก",
                                          "\u0E31", "\u0308", " ", "\xff", "\xe4"};
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (size_t n = random() % 14; n > 0; --n) text += parts[random() % parts.size()];
    StandardWords reader(text);
    size_t at = 0;
    while (const auto word = reader.next()) {
      REQUIRE_FALSE(word->empty());
      const auto from = static_cast<size_t>(word->data() - text.data());
      REQUIRE(from >= at);
      at = from + word->size();
      REQUIRE(at <= text.size());
      CHECK(words(*word) == *word);
    }
  }
}

// One pass over the text, or this takes minutes.
TEST_CASE("low lines that are no word are not read again and again") {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "_\u0E31";
  size_t count = 0;
  StandardWords reader(text);
  while (reader.next()) ++count;
  CHECK(count == 200'000);
}

TEST_CASE("the classes of characters are in order") {
  char32_t end = 0;
  for (const WordRun& run : word_runs()) {
    CHECK(run.first >= end);
    CHECK(run.last >= run.first);
    end = run.last + 1;
  }
}

TEST_CASE("words are changed, then left out, then stemmed, then composed") {
  TextAnalysis analysis = standard();
  CHECK(terms(analysis, "The cafe\u0301s") == "The|cafés");
  analysis.word_case = WordCase::kLower;
  CHECK(terms(analysis, "The İx ΟΔΟΣ ΑΣ'Α Α:Σ J\u030C STRASSE") ==
        "the|i̇x|οδος|ασ'α|α:σ|ǰ|strasse");
  CHECK(terms(analysis, "ΑΣΣ:ΣΣ:Σ Σ ΣΣبΣب ΑΣς") == "ασς:σς:σ|σ|σσبςب|ασς");
  analysis.word_case = WordCase::kUpper;
  CHECK(terms(analysis, "the straße οδος ﬁ ა ı") == "THE|STRASSE|ΟΔΟΣ|FI|Ა|I");
  analysis.skips_stop_words = true;
  CHECK(terms(analysis, "the fox") == "THE|FOX");
  analysis.word_case = WordCase::kKept;
  CHECK(terms(analysis, "the The ta\u212Aen it's fox and of") == "The|taKen|fox");
  analysis.stems = true;
  CHECK(terms(analysis, "tooks its others Running RUNNING cafe\u0301s dog’s") ==
        "took|Run|RUNNING|café|dog’");
  analysis.word_case = WordCase::kLower;
  CHECK(terms(analysis, "THE Foxes and its Running") == "fox|run");
}

TEST_CASE("English words have stems") {
  const auto stem = [](BytesView word) { return english_stem(word); };
  CHECK(stem("running") == "run");
  CHECK(stem("generously") == "generous");
  CHECK(stem("dog's") == "dog");
  CHECK(stem("o'neill's") == "o'neil");
  CHECK(stem("ties") == "tie");
  CHECK(stem("cries") == "cri");
  CHECK(stem("gas") == "gas");
  CHECK(stem("gaps") == "gap");
  CHECK(stem("agreed") == "agre");
  CHECK(stem("hoping") == "hope");
  CHECK(stem("hopping") == "hop");
  CHECK(stem("luxuriated") == "luxuri");
  CHECK(stem("youthful") == "youth");
  CHECK(stem("enjoyment") == "enjoy");
  CHECK(stem("nationalization") == "nation");
  CHECK(stem("relational") == "relat");
  CHECK(stem("skies") == "sky");
  CHECK(stem("proceed") == "proceed");
  CHECK(stem("by") == "by");
  CHECK(stem("'s") == "'s");
  CHECK(stem("Youth") == "Youth");
  CHECK(stem("café") == "café");
  CHECK(stem("𐐀ing") == "𐐀ing");
}

TEST_CASE("English stop words are those of a list, in lower case") {
  for (const char* word : {"a", "the", "it's", "yourselves", "zero", "uucp", "wouldn't"})
    CHECK(is_english_stop_word(word));
  for (const char* word : {"", "The", "fox", "it’s", "a b", "zero ", "took "})
    CHECK_FALSE(is_english_stop_word(word));
}

}  // namespace
}  // namespace tetrad::cql
