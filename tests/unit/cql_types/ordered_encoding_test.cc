// SPDX-License-Identifier: Apache-2.0
#include "cql/types/ordered_encoding.h"

#include <algorithm>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

#include "cql/types/compare.h"
#include "cql/types/number.h"
#include "tests/unit/cql_types/test_types.h"

namespace tetrad::cql {
namespace {

using test::hex;
using test::type_of;

Bytes encode(const DataType& type, OptionalView value, bool descending = false) {
  Bytes out;
  REQUIRE(append_ordered(out, type, value, descending));
  return out;
}

Bytes decimal(std::string_view text) { return *from_string(*decimal_type(), text); }

}  // namespace

TEST_CASE("the encodings on disk stay as they are") {
  const auto shown = [](const char* type, const char* value, bool descending = false) {
    return base::to_hex(encode(*type_of(type), hex(value), descending));
  };
  CHECK(base::to_hex(encode(*int_type(), std::nullopt)) == "10");
  CHECK(base::to_hex(encode(*int_type(), std::nullopt, true)) == "ef");
  CHECK(shown("int", "") == "20");
  CHECK(shown("int", "", true) == "df");
  CHECK(shown("int", "00000001") == "3080000001");
  CHECK(shown("int", "00000001", true) == "cf7ffffffe");
  CHECK(shown("bigint", "ffffffffffffffff") == "307fffffffffffffff");
  CHECK(shown("smallint", "8000") == "300000");
  CHECK(shown("tinyint", "7f") == "30ff");
  CHECK(shown("boolean", "05") == "3001");
  CHECK(shown("date", "80000000") == "3080000000");
  CHECK(shown("float", "3f800000") == "30bf800000");
  CHECK(shown("float", "bf800000") == "30407fffff");
  CHECK(shown("float", "ffc00001") == "30ffc00000");
  CHECK(shown("text", "610062") == "306100ff620001");
  CHECK(shown("text", "6100", true) == "cf9eff00fffe");
  CHECK(shown("varint", "01") == "308101");
  CHECK(shown("varint", "ff") == "307eff");
  CHECK(shown("varint", "00000100") == "30820100");
  CHECK(shown("decimal", "0000000100") == "3080");
  CHECK(shown("decimal", "000000010f") ==
        "30c08000000000000001"
        "1000");  // 1.5
  CHECK(shown("decimal", "00000001f1") ==
        "30407ffffffffffffffe"
        "efff");  // -1.5
  CHECK(shown("uuid", "123456789abc4def8011223344556677") == "304123456789abcdef8011223344556677");
  CHECK(shown("uuid", "123456789abc1def8011223344556677") == "301def9abc123456788011223344556677");
  CHECK(shown("timeuuid", "123456789abc1def8011223344556677") ==
        "301def9abc123456780091a2b3c4d5e6f7");
  CHECK(shown("frozen<list<int>>", "000000010000000400000001") ==
        "30"
        "3080000001"
        "00");
  CHECK(shown("frozen<tuple<int, text>>", "0000000400000001ffffffff") ==
        "30"
        "3080000001"
        "00");
  CHECK(shown("vector<float, 2>", "3f8000003f800000") ==
        "30"
        "bf800000"
        "bf800000");
  CHECK(shown("vector<text, 2>", "00016f") ==
        "30"
        "20"
        "306f0001");
}

TEST_CASE("a prefix sorts before its extensions and prefix + FF after them") {
  std::mt19937_64 random(1);
  const TypePtr types[] = {int_type(), text_type(), decimal_type(), type_of("frozen<addr>")};
  const OptionalBytes samples[] = {std::nullopt, Bytes(), hex("ffffffff"), hex("00000000"),
                                   hex("7f800000")};
  for (const TypePtr& first : types) {
    for (const bool descending : {false, true}) {
      for (const OptionalBytes& value : samples) {
        Bytes prefix;
        if (!append_ordered(prefix, *first, value, descending)) continue;
        for (const TypePtr& second : types) {
          for (const OptionalBytes& next : samples) {
            Bytes whole = prefix;
            if (!append_ordered(whole, *second, next, descending)) continue;
            CHECK(prefix < whole);
            CHECK(whole < prefix + '\xff');
          }
        }
      }
    }
  }
}

TEST_CASE("decimals sort by value whatever their scale, at both ends of the scale") {
  const char* sorted[] = {"-1E+2147483647",
                          "-1E+10",
                          "-10.01",
                          "-10.0",
                          "-9.99",
                          "-1",
                          "-1E-5",
                          "-1E-2147483647",
                          "0",
                          "1E-2147483647",
                          "1E-30",
                          "0.1",
                          "0.11",
                          "0.12",
                          "1.0",
                          "1.00000000000000000000001",
                          "9.9",
                          "10",
                          "99",
                          "100",
                          "101",
                          "1E+2147483647"};
  for (size_t i = 0; i < std::size(sorted); ++i) {
    for (size_t j = 0; j < std::size(sorted); ++j) {
      const int expected = (i > j) - (i < j);
      const Bytes a = decimal(sorted[i]), b = decimal(sorted[j]);
      INFO(sorted[i] << " and " << sorted[j]);
      CHECK(compare(*decimal_type(), a, b) == expected);
      const int order = encode(*decimal_type(), a).compare(encode(*decimal_type(), b));
      CHECK((order > 0) - (order < 0) == expected);
    }
  }
  CHECK(encode(*decimal_type(), decimal("1.0")) == encode(*decimal_type(), decimal("1.000")));
  CHECK(is_lossy(*decimal_type(), decimal("1.0")));
  CHECK_FALSE(is_lossy(*decimal_type(), decimal("1")));
  // Digits that no smaller scale can show.
  const Bytes lowest = hex("8000000064");
  BytesView in;
  const Bytes encoded = encode(*decimal_type(), lowest);
  in = encoded;
  CHECK(**decode_ordered(in, *decimal_type(), false) == lowest);
}

TEST_CASE("long varints keep their order and huge decimals are refused") {
  std::vector<Bytes> sorted;
  for (const size_t size : {130u, 121u, 120u, 119u, 118u}) {
    Bytes negative(size, '\0');
    negative[0] = '\x80';
    sorted.push_back(negative);
  }
  sorted.push_back(hex("ff"));
  sorted.push_back(hex("00"));
  for (const size_t size : {118u, 119u, 120u, 121u, 130u}) {
    Bytes positive(size, '\xff');
    positive[0] = '\x7f';
    sorted.push_back(positive);
  }
  for (size_t i = 0; i + 1 < sorted.size(); ++i) {
    CHECK(compare(*varint_type(), sorted[i], sorted[i + 1]) < 0);
    const Bytes a = encode(*varint_type(), sorted[i]), b = encode(*varint_type(), sorted[i + 1]);
    CHECK(a < b);
    BytesView in = a;
    CHECK(**decode_ordered(in, *varint_type(), false) == sorted[i]);
  }
  Bytes out;
  CHECK_FALSE(append_ordered(out, *decimal_type(), Bytes(kNumberBytesMax + 1, '\x11'), false));
}

TEST_CASE("an encoded user type still sorts and decodes after fields were added") {
  const TypePtr before = make_udt("ks", "t", {"a"}, {int_type()}, true);
  const TypePtr after = make_udt("ks", "t", {"a", "b"}, {int_type(), text_type()}, true);
  const Bytes old_value = hex("0000000400000001");
  const Bytes old_key = encode(*before, old_value);
  CHECK(old_key == encode(*after, old_value));
  BytesView in = old_key;
  CHECK(base::to_hex(**decode_ordered(in, *after, false)) == "0000000400000001ffffffff");
}

TEST_CASE("decoding damaged or foreign bytes fails or gives a valid value, never more") {
  std::mt19937_64 random(7);
  const char* types[] = {"int",
                         "text",
                         "varint",
                         "decimal",
                         "uuid",
                         "frozen<map<text, int>>",
                         "frozen<addr>",
                         "vector<text, 2>",
                         "frozen<list<frozen<list<float>>>>"};
  for (const char* text : types) {
    const TypePtr type = type_of(text);
    for (int round = 0; round < 3000; ++round) {
      Bytes bytes(random() % 24, '\0');
      for (char& c : bytes) {
        const uint64_t r = random();
        c = r % 3 == 0 ? "\x30\x20\x10\x00\xff\x80"[r / 3 % 6] : static_cast<char>(r >> 8);
      }
      if (!bytes.empty() && round % 2 == 0) bytes[0] = '\x30';
      BytesView in = bytes;
      const auto value = decode_ordered(in, *type, false);
      if (!value || !*value) continue;
      // What decodes without error may still be text that is not UTF-8; it must encode again.
      Bytes again;
      CHECK(append_ordered(again, *type, **value, false));
      BytesView rest = again;
      const auto second = decode_ordered(rest, *type, false);
      REQUIRE(second);
      CHECK(**second == **value);
    }
  }
}

TEST_CASE("values that are not of the type are refused, not encoded") {
  Bytes out;
  for (const TypePtr& type : {int_type(), bigint_type(), uuid_type(), float_type(), date_type(),
                              boolean_type(), decimal_type(), native_type(TypeKind::kEmpty)}) {
    CHECK_FALSE(append_ordered(out, *type, hex("010203"), false));
  }
  CHECK_FALSE(append_ordered(out, *type_of("frozen<list<int>>"), hex("00000002"), false));
  CHECK_FALSE(append_ordered(out, *type_of("frozen<tuple<int>>"), hex("00000009"), false));
  CHECK_FALSE(append_ordered(out, *type_of("vector<float, 2>"), hex("00000009"), false));
}

TEST_CASE("skip_ordered finds the end of each component of a key") {
  Bytes key;
  const TypePtr map = type_of("frozen<map<text, int>>");
  REQUIRE(append_ordered(key, *text_type(), Bytes("a\0b", 3), true));
  const size_t first = key.size();
  REQUIRE(append_ordered(key, *map, hex("0000000100000001610000000400000001"), false));
  const size_t second = key.size();
  REQUIRE(append_ordered(key, *int_type(), std::nullopt, false));
  BytesView in = key;
  CHECK(skip_ordered(in, *text_type(), true)->size() == first);
  CHECK(skip_ordered(in, *map, false)->size() == second - first);
  CHECK(skip_ordered(in, *int_type(), false)->size() == 1);
  CHECK(in.empty());
}

}  // namespace tetrad::cql
