// SPDX-License-Identifier: Apache-2.0
#include "cql/types/value.h"

#include <limits>

#include <catch2/catch.hpp>

#include "cql/types/compare.h"
#include "cql/types/strict_utf8.h"
#include "tests/unit/cql_types/test_types.h"

namespace tetrad::cql {
namespace {
using test::hex;
using test::type_of;
}  // namespace

TEST_CASE("native values read back as they were made") {
  CHECK(read_int(make_int(-2)) == -2);
  CHECK(read_bigint(make_bigint(std::numeric_limits<int64_t>::min())) ==
        std::numeric_limits<int64_t>::min());
  CHECK(read_smallint(make_smallint(-300)) == -300);
  CHECK(read_tinyint(make_tinyint(-3)) == -3);
  CHECK(read_boolean(make_boolean(true)) == true);
  CHECK(read_float(make_float(1.5f)) == 1.5f);
  CHECK(read_double(make_double(-2.25)) == -2.25);
  CHECK(make_date_of_days(-1) == make_date(0x7fffffff));
  const Duration duration{-14, -3, std::numeric_limits<int64_t>::min() + 1};
  CHECK(read_duration(make_duration(duration)) == duration);
  CHECK_FALSE(read_int(""));
  CHECK_FALSE(read_int("12345"));
  CHECK_FALSE(read_duration("\xff"));
  for (const int64_t value : {0L, 1L, -1L, 127L, 128L, -128L, -129L, 65535L, 1L << 40}) {
    CHECK(to_string(*varint_type(), make_varint(value)) == std::to_string(value));
  }
  CHECK(make_varint(127).size() == 1);
  CHECK(make_varint(128).size() == 2);
  CHECK(make_varint(-128).size() == 1);
}

TEST_CASE("unsigned vints have the lengths of the protocol and read back") {
  for (int bits = 0; bits <= 64; ++bits) {
    const uint64_t value = bits == 0 ? 0 : ~uint64_t{0} >> (64 - bits);
    Bytes out;
    append_unsigned_vint(out, value);
    CHECK(out.size() == (bits <= 7 ? 1u : bits > 56 ? 9u : (static_cast<unsigned>(bits) + 6) / 7));
    BytesView in = out;
    CHECK(take_unsigned_vint(in) == value);
    CHECK(in.empty());
    BytesView cut = BytesView(out).substr(0, out.size() - 1);
    CHECK_FALSE(take_unsigned_vint(cut));
  }
}

TEST_CASE("a collection that claims more than it holds is refused before anything is reserved") {
  CHECK_FALSE(split_list(hex("7fffffff")));
  CHECK_FALSE(split_map(hex("7fffffff0000000000000000")));
  CHECK_FALSE(split_list(hex("0000000100000005aa")));
  CHECK_FALSE(split_list(hex("00000001ffffffff")));
  CHECK(split_list(hex("00000000"))->empty());
  const auto reader = CollectionReader::open(hex("ffffffff"), 1);
  REQUIRE(reader);
  CHECK(reader->at_end());
}

TEST_CASE("tuples may be short, never long") {
  const TypePtr type = type_of("tuple<int, text>");
  const auto fields = split_tuple(*type, hex("0000000400000001"));
  REQUIRE(fields);
  CHECK(fields->size() == 2);
  CHECK_FALSE((*fields)[1]);
  CHECK_FALSE(split_tuple(*type, hex("0000000400000001ffffffffffffffff")));
  const std::vector<OptionalView> parts = {BytesView("\0\0\0\1", 4), std::nullopt};
  CHECK(base::to_hex(join_tuple(parts)) == "0000000400000001ffffffff");
}

TEST_CASE("sets and maps are made in the order of their elements, each once") {
  const Bytes two = make_int(2), minus = make_int(-1), ten = make_int(10);
  CHECK(base::to_hex(join_sorted_set(*int_type(), {ten, two, minus, two})) ==
        "00000003"
        "00000004ffffffff"
        "0000000400000002"
        "000000040000000a");
  CHECK(base::to_hex(join_sorted_map(*text_type(), {{"b", "1"}, {"a", "2"}, {"b", "3"}})) ==
        "00000002"
        "0000000161"
        "0000000132"
        "0000000162"
        "0000000133");
}

TEST_CASE("vectors of fixed elements are bare, others carry lengths") {
  const TypePtr fixed = type_of("vector<int, 2>"), free = type_of("vector<text, 2>");
  const Bytes one = make_int(1);
  CHECK(base::to_hex(join_vector(*fixed, std::vector<BytesView>{one, one})) == "0000000100000001");
  CHECK(base::to_hex(join_vector(*free, std::vector<BytesView>{"", "ab"})) == "00026162");
  CHECK(split_vector(*free, hex("00026162"))->at(1) == "ab");
  CHECK_FALSE(split_vector(*free, hex("0003")));
  CHECK_FALSE(split_vector(*fixed, hex("00000001")));
}

TEST_CASE("validation accepts and refuses text as UTF-8") {
  CHECK(validate(*text_type(), "plain text that is longer than eight bytes"));
  CHECK(validate(*text_type(), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  CHECK(validate(*text_type(), hex("c080")));
  for (const char* bad : {"80", "c3", "e282", "f09f98", "e08080", "f0808080", "c1bf", "f8808080",
                          "6161616161616161ff", "c328", "e028a1", "f0288cbc"}) {
    const auto result = validate(*text_type(), hex(bad));
    REQUIRE_FALSE(result);
    CHECK(result.error().message == "String didn't validate.");
  }
}

TEST_CASE("strict UTF-8 is that of the Unicode standard") {
  for (const char* good : {"", "61", "00", "c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbf",
                           "f0908080", "f48fbfbf", "6161616161616161c3a9", "c3a96161616161616161"})
    CHECK(is_strict_utf8(hex(good)));
  for (const char* bad : {"80",       "c3",       "c080",     "c0af",     "c1bf",
                          "e08080",   "e09fbf",   "eda080",   "edbfbf",   "edb080eda080",
                          "f08080c0", "f08fbfbf", "f4908080", "f5808080", "f7bfbfbf",
                          "f8808080", "ff",       "e282",     "f09f98",   "61616161616161eda080"})
    CHECK_FALSE(is_strict_utf8(hex(bad)));
  for (const char* lax : {"c080", "eda080", "f7bfbfbf"}) {  // values of type text may be so
    CHECK(is_valid_utf8(hex(lax)));
    CHECK(validate(*text_type(), hex(lax)));
  }
}

TEST_CASE("null sorts before empty, empty before values") {
  CHECK(compare_nullable(*int_type(), std::nullopt, BytesView()) < 0);
  CHECK(compare_nullable(*int_type(), BytesView(), make_int(-5)) < 0);
  CHECK(compare_nullable(*int_type(), std::nullopt, std::nullopt) == 0);
  CHECK(compare(*blob_type(), BytesView(), BytesView("\0", 1)) < 0);
}

}  // namespace tetrad::cql
