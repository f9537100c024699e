// SPDX-License-Identifier: Apache-2.0
#include "cql/types/data_type.h"

#include <catch2/catch.hpp>

#include "tests/unit/cql_types/test_types.h"

namespace tetrad::cql {
namespace {
using test::type_of;

Bytes option_of(const DataType& type, int version) {
  Bytes out;
  base::ByteWriter writer(out);
  write_type_option(writer, type, version);
  return out;
}
}  // namespace

TEST_CASE("freezing reaches inside, and unfreezing keeps the inside frozen") {
  const TypePtr nested = type_of("map<text, frozen<list<int>>>");
  CHECK(nested->is_multi_cell());
  CHECK(freeze(nested)->cql_text() == "frozen<map<text, frozen<list<int>>>>");
  CHECK(freeze(nested)->cql_text_without_frozen() == "map<text, frozen<list<int>>>");
  CHECK(*unfreeze(freeze(nested)) == *nested);
  CHECK_FALSE(*freeze(nested) == *nested);
  CHECK(*make_list(nested, false) == *type_of("list<frozen<map<text, frozen<list<int>>>>>"));
}

TEST_CASE("references are found at any depth") {
  const TypePtr type = type_of("frozen<map<text, frozen<list<frozen<\"Outer\">>>>>");
  CHECK(type->references_udt());
  CHECK(type->references_udt("ks", "addr"));
  CHECK_FALSE(type->references_udt("other", "addr"));
  CHECK_FALSE(int_type()->references_udt());
  CHECK(type_of("list<frozen<tuple<duration>>>")->references_duration());
  CHECK(!type_of("list<frozen<tuple<vector<duration, 2>>>>")->references_duration());
  CHECK(type->depth() == 5);
}

TEST_CASE("type options are those of the protocol's versions and read back") {
  CHECK(base::to_hex(option_of(*int_type(), 5)) == "0009");
  CHECK(base::to_hex(option_of(*date_type(), 4)) == "0011");
  CHECK(option_of(*date_type(), 3) == test::hex("0000"
                                                "002e") +
                                          "org.apache.cassandra.db.marshal.SimpleDateType");
  CHECK(option_of(*duration_type(), 4).substr(0, 2) == test::hex("0000"));
  CHECK(base::to_hex(option_of(*duration_type(), 5)) == "0015");
  CHECK(base::to_hex(option_of(*type_of("frozen<map<text, int>>"), 4)) == "0021000d0009");
  CHECK(base::to_hex(option_of(*type_of("tuple<int, text>"), 4)) == "003100020009000d");
  CHECK(base::to_hex(option_of(*type_of("addr"), 4)) ==
        "0030"
        "00026b73"
        "000461646472"
        "0002"
        "000161"
        "0009"
        "0003422063"
        "000d");
  for (const char* text : {"int", "frozen<addr>", "vector<float, 3>", "frozen<set<timeuuid>>",
                           "tuple<int, duration>", "smallint", "frozen<list<frozen<addr>>>"}) {
    for (const int version : {3, 4, 5}) {
      const Bytes option = option_of(*type_of(text), version);
      base::ByteReader reader(option);
      const auto type = read_type_option(reader);
      REQUIRE(type);
      CHECK(reader.at_end());
      CHECK(**type == *type_of(text));
      for (size_t cut = 0; cut < option.size(); ++cut) {
        base::ByteReader short_reader(BytesView(option).substr(0, cut));
        CHECK_FALSE(read_type_option(short_reader));
      }
    }
  }
}

TEST_CASE("deep nesting and monstrous vectors are refused") {
  std::string deep = "int";
  for (int i = 0; i < 5000; ++i) deep = "frozen<list<" + deep + ">>";
  CHECK_FALSE(parse_type(deep));
  std::string classes(100000, 'a');
  CHECK(parse_class_name(classes));
  std::string open;
  for (int i = 0; i < 5000; ++i) open += "ListType(";
  CHECK_FALSE(parse_class_name(open));
  Bytes lists;
  for (int i = 0; i < 5000; ++i) lists += test::hex("0020");
  base::ByteReader reader(lists);
  CHECK_FALSE(read_type_option(reader));
  CHECK_FALSE(parse_type("vector<vector<bigint, 8192>, 8192>"));
  CHECK(parse_type("vector<float, 67108864>"));
  CHECK_FALSE(parse_type("vector<float, 67108865>"));
  CHECK_FALSE(parse_type("vector<text, 268435457>"));
  // Of no bytes there could be any number.
  const std::string none = "org.apache.cassandra.db.marshal.VectorType(EmptyType, 2)";
  CHECK(parse_type("vector<empty, 2>").error().message ==
        "vectors of empty are not supported: its values have no bytes");
  CHECK_FALSE(parse_type("'" + none + "'"));
  CHECK_FALSE(parse_type("vector<'EmptyType', 2>"));
  CHECK_FALSE(parse_type("list<int"));
  CHECK_FALSE(parse_type("list<int>>"));
  CHECK_FALSE(parse_type(""));
}

TEST_CASE("counters stay out of collections and tuples") {
  CHECK(parse_type("list<counter>").error().message ==
        "Counters are not allowed inside collections: list<counter>");
  CHECK(parse_type("tuple<counter>").error().message == "Counters are not allowed inside tuples");
}

TEST_CASE("unknown classes become custom types that keep their text") {
  const TypePtr type = type_of("'com.example.Thing(a, b)'");
  CHECK(type->kind() == TypeKind::kCustom);
  CHECK(type->cql_text() == "'com.example.Thing(a, b)'");
  CHECK(type->class_name() == "com.example.Thing(a, b)");
  CHECK(type_of("'DateType'") == timestamp_type());
  CHECK(type_of("'ReversedType(Int32Type)'") == int_type());
}

}  // namespace tetrad::cql
