// SPDX-License-Identifier: Apache-2.0
#include "cql/types/literal.h"

#include <limits>

#include <catch2/catch.hpp>

#include "cql/types/json.h"
#include "cql/types/number.h"
#include "cql/types/temporal.h"
#include "tests/unit/cql_types/test_types.h"

namespace tetrad::cql {
namespace {
using test::hex;
using test::type_of;
}  // namespace

TEST_CASE("calendar days convert both ways over the whole range of date") {
  for (int64_t days = -3000000; days < 3000000; days += 97) {
    const CivilDate date = civil_from_days(days);
    REQUIRE(days_from_civil(date) == days);
  }
  for (const uint32_t days : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    CHECK(*parse_date(format_date(days)) == days);
  }
}

TEST_CASE("timestamps know the summer time of the zones they may name") {
  CHECK(format_timestamp(*parse_timestamp("2024-03-10 01:59:59 PST")) ==
        "2024-03-10T09:59:59.000Z");
  CHECK(format_timestamp(*parse_timestamp("2024-03-10 03:00:00 PST")) ==
        "2024-03-10T10:00:00.000Z");
  CHECK(format_timestamp(*parse_timestamp("2024-11-03 01:30:00 America/New_York")) ==
        "2024-11-03T05:30:00.000Z");
  CHECK(format_timestamp(*parse_timestamp("2024-07-01 12:00 Europe/Berlin")) ==
        "2024-07-01T10:00:00.000Z");
  CHECK_FALSE(parse_timestamp("1980-07-01 12:00 Europe/Berlin"));
  CHECK_FALSE(parse_timestamp("2024-07-01 12:00 Mars/Base"));
}

TEST_CASE("now is what the caller says, and nothing without one") {
  CHECK(parse_timestamp("nOw", 42) == 42);
  CHECK_FALSE(parse_timestamp("now"));
  CHECK(**from_json(*timestamp_type(), "\"now\"", 7) == make_timestamp(7));
}

TEST_CASE("a blob constant keeps its bytes, a counter takes integers") {
  CHECK(*literal_to_bytes(LiteralKind::kHex, "0x00Ff", *blob_type()) == hex("00ff"));
  CHECK(*literal_to_bytes(LiteralKind::kInteger, "-1", *counter_type()) == make_bigint(-1));
  CHECK(literal_to_bytes(LiteralKind::kString, "x", *inet_type()).error().message ==
        "Unable to make inet address from 'x'");
}

TEST_CASE("constants written out read back as the same value") {
  const std::pair<const char*, const char*> cases[] = {
      {"text", "'it''s'"}, {"blob", "0x00ff"}, {"inet", "'1.2.3.4'"}, {"duration", "1y2mo3d4h"}};
  for (const auto& [type, literal] : cases) {
    std::string_view inner = literal;
    std::string unquoted;
    for (size_t i = 0; i < inner.size(); ++i) {
      if (inner[i] == '\'') {
        if (i > 0 && i + 1 < inner.size()) unquoted += inner[i++];
        continue;
      }
      unquoted += inner[i];
    }
    const LiteralKind kind =
        std::string_view(type) == "blob" ? LiteralKind::kHex : LiteralKind::kString;
    const auto value = literal_to_bytes(kind, unquoted, *type_of(type));
    REQUIRE(value);
    CHECK(to_cql_literal(*type_of(type), *value) == literal);
  }
  CHECK(to_cql_literal(*int_type(), std::nullopt) == "null");
  CHECK(to_cql_literal(*int_type(), BytesView("xyz")) == "0x78797a");
  CHECK(to_cql_literal(*type_of("frozen<list<int>>"), BytesView("x")) == "0x78");
}

TEST_CASE("INSERT JSON is split into its columns") {
  const auto columns = split_json_object(
      R"({"A": 1, "\"B\"": [1.50, {"x": null}], "c": "t\"\n", "A": 12345678901234567890, "d": 1E400})");
  REQUIRE(columns);
  REQUIRE(columns->size() == 4);
  CHECK(json_column_name((*columns)[0].first) == "a");
  CHECK((*columns)[0].second.text == "12345678901234567890");
  CHECK(json_column_name((*columns)[1].first) == "B");
  CHECK((*columns)[1].second.java_text() == "[1.5, {x=null}]");
  CHECK((*columns)[2].second.text == "t\"\n");
  CHECK(from_json(*double_type(), (*columns)[3].second));
  CHECK_FALSE(split_json_object("[1]"));
  CHECK_FALSE(split_json_object("{\"a\": 1"));
}

TEST_CASE("JSON that nests without end is refused") {
  CHECK_FALSE(from_json(*type_of("frozen<list<int>>"), std::string(1000000, '[')));
  std::string object;
  for (int i = 0; i < 100000; ++i) object += "{\"a\":";
  CHECK_FALSE(split_json_object(object));
  CHECK_FALSE(from_json(*varint_type(), std::string(2000, '7')));
}

TEST_CASE("a JSON document of too many values is refused") {
  const auto list = [](size_t count) {
    std::string text = "[1";
    for (size_t i = 1; i < count; ++i) text += ",1";
    return text + "]";
  };
  const TypePtr type = type_of("frozen<list<int>>");
  const auto most = from_json(*type, list(kJsonValuesMax - 1));
  REQUIRE(most);
  CHECK((*most)->size() == 4 + 8 * (kJsonValuesMax - 1));
  CHECK_FALSE(from_json(*type, list(kJsonValuesMax)));
  CHECK_FALSE(split_json_object("{\"a\":" + list(kJsonValuesMax) + "}"));
}

TEST_CASE("broken JSON strings are refused and surrogate pairs joined") {
  CHECK(**from_json(*text_type(), "\"\\ud83d\\ude00\"") == "\xf0\x9f\x98\x80");
  CHECK(**from_json(*text_type(), "\"\\ud83d!\"") == "?!");
  for (const char* bad : {"\"abc", "\"\\u12\"", "\"\\u12x4\"", "\"\\q\"", "\"\x01\"", "\"\xff\"",
                          "\"\\", "nul", "nullx", "-", "1.", "01", "1e", "[1 2]", "{1:2}", ""}) {
    INFO(bad);
    CHECK_FALSE(from_json(*text_type(), bad));
  }
}

TEST_CASE("numbers that would take long to compute with are refused") {
  const Bytes huge(kNumberBytesMax + 1, '\x7f');
  CHECK_FALSE(varint_to_text(huge));
  CHECK_FALSE(varint_arithmetic(ArithmeticOp::kMultiply, huge, huge));
  CHECK_FALSE(varint_from_text(std::string(100000, '9')));
  CHECK(to_cql_literal(*varint_type(), huge).starts_with("0x7f7f"));
  const Bytes tiny = *decimal_from_text("1E-2147483647"),
              large = *decimal_from_text("1E+2147483647");
  CHECK(decimal_arithmetic(ArithmeticOp::kAdd, tiny, large));
  CHECK_FALSE(decimal_arithmetic(ArithmeticOp::kDivide, large, tiny));
  CHECK_FALSE(decimal_arithmetic(ArithmeticOp::kRemainder, large, tiny));
  CHECK_FALSE(decimal_to_varint(large));
  CHECK(decimal_to_double(large) == std::numeric_limits<double>::infinity());
  CHECK(decimal_to_double(tiny) == 0);
  CHECK(compare_decimal(tiny, large) < 0);
}

TEST_CASE("decimals convert from and to the other numbers") {
  CHECK(*decimal_to_text(*decimal_from_double(0.1)) == "0.1");
  CHECK(*decimal_to_text(*decimal_from_double(1e7)) == "1.0E+7");
  CHECK_FALSE(decimal_from_double(std::numeric_limits<double>::quiet_NaN()));
  CHECK(decimal_to_double(*decimal_from_text("-12.5")) == -12.5);
  CHECK(*varint_to_text(*decimal_to_varint(*decimal_from_text("-12.9"))) == "-12");
  CHECK(*varint_to_text(*decimal_to_varint(*decimal_from_text("1.5E+3"))) == "1500");
  CHECK(*varint_to_text(varint_from_double(-1e20)) == "-100000000000000000000");
  CHECK(varint_to_int64(make_varint(-5)) == -5);
  CHECK_FALSE(varint_to_int64(hex("010000000000000000")));
  CHECK(varint_low_bits(hex("010000000000000007")) == 7);
  CHECK(*decimal_to_text(decimal_negate(*decimal_from_text("1.50"))) == "-1.50");
}

}  // namespace tetrad::cql
