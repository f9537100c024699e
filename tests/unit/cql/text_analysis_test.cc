// SPDX-License-Identifier: Apache-2.0
#include "cql/index/text_analysis.h"

#include <algorithm>
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include "cql/index/unicode_tables.h"

namespace tetrad::cql {
namespace {

constexpr TextAnalysis kLower{false, false, false};
constexpr TextAnalysis kNormal{true, true, false};
constexpr TextAnalysis kAscii{true, false, true};
constexpr TextAnalysis kAll{false, true, true};

TEST_CASE("texts become lower case, whatever their script") {
  CHECK(analyze(kLower, "Abc 1Z") == "abc 1z");
  CHECK(analyze(kLower, "ÀÉÎ ŁÓDŹ ΑΒΓ ДОМ ՀԱՅ") == "àéî łódź αβγ дом հայ");
  CHECK(analyze(kLower, "ΟΔΟΣ") == analyze(kLower, "οδος"));
  CHECK(analyze(kLower, "İ") == "i\xCC\x87");
  CHECK(analyze(kLower, "ẞ") == "ß");
  CHECK(analyze(kLower, "𐐀") == "𐐨");
}

TEST_CASE("composed and decomposed texts become the same") {
  CHECK(analyze(kNormal, "A\xCC\x8A") == "Å");
  CHECK(analyze(kNormal, "\xE2\x84\xAB") == "Å");  // the sign of the unit
  // Marks in the wrong order: dot below after dot above.
  CHECK(analyze(kNormal, "s\xCC\x87\xCC\xA3") == "ṩ");
  CHECK(analyze(kNormal, "ḍ\xCC\x87") == "ḍ\xCC\x87");
  CHECK(analyze(kNormal, "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB") == "한");
  CHECK(analyze(kNormal, "한") == "한");
  CHECK(analyze(kNormal, "\xEF\xA4\x80") == "豈");
  CHECK(analyze(kNormal, "plain") == "plain");
  // Excluded from composition.
  CHECK(analyze(kNormal, "\xE0\xA5\x98") == "\xE0\xA4\x95\xE0\xA4\xBC");
}

TEST_CASE("letters with marks and ligatures become those of ASCII") {
  CHECK(analyze(kAscii, "Ångström Übergröße Æther œuvre łódź ﬁn đ Þ") ==
        "Angstrom Ubergrosse AEther oeuvre lodz fin d TH");
  CHECK(analyze(kAscii, "“x” – ‘y’") == "\"x\" - 'y'");
  CHECK(analyze(kAscii, "дом 漢") == "дом 漢");
  CHECK(analyze(kAll,
                "A\xCC\x88"
                "CHZ") == "achz");
}

TEST_CASE("any bytes are analyzed, and what is no UTF-8 stays") {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    Bytes text(random() % 12, ' ');
    for (char& c : text) c = static_cast<char>(random());
    for (const TextAnalysis& analysis : {kLower, kNormal, kAscii, kAll}) {
      const Bytes once = analyze(analysis, text);
      CHECK(once.size() <= 4 * text.size());
    }
  }
  CHECK(analyze(kAll,
                "\xFF\x80"
                "A\xC3") ==
        "\xFF\x80"
        "a\xC3");
}

TEST_CASE("tables are in the order in which they are searched") {
  CHECK(std::ranges::is_sorted(lower_runs(), {}, &CaseRun::first));
  CHECK(std::ranges::is_sorted(decompositions(), {}, &Decomposition::whole));
  CHECK(std::ranges::is_sorted(combining_runs(), {}, &CombiningRun::first));
  CHECK(std::ranges::is_sorted(ascii_folds(), {}, &AsciiFold::code_point));
  CHECK(std::ranges::is_sorted(compositions(), {}, [](const Composition& c) {
    return std::pair{c.first, c.second};
  }));
}

}  // namespace
}  // namespace tetrad::cql
