// SPDX-License-Identifier: Apache-2.0
// Composite classes: names, constants and checks as Cassandra 5.0 has them.
#include "cql/types/composite_type.h"

#include <catch2/catch.hpp>

#include "cql/types/literal.h"
#include "cql/types/value.h"
#include "tests/unit/cql_types/test_types.h"

namespace tetrad::cql {
namespace {

const std::string kPackage = "org.apache.cassandra.db.marshal.";

TypePtr class_of(const std::string& class_name) {
  auto type = parse_class_name(class_name);
  INFO(class_name);
  REQUIRE(type);
  return *type;
}

std::string bytes_of(const TypePtr& type, const std::string& text) {
  const auto bytes = literal_to_bytes(LiteralKind::kString, text, *type);
  if (!bytes) return bytes.error().message;
  CHECK(validate(*type, *bytes));
  return base::to_hex(*bytes);
}

}  // namespace

TEST_CASE("class names of composites are kept in full") {
  CHECK(class_of("CompositeType(UTF8Type, Int32Type)")->class_name() ==
        kPackage + "CompositeType(" + kPackage + "UTF8Type," + kPackage + "Int32Type)");
  CHECK(class_of("DynamicCompositeType(s => UTF8Type, i=>Int32Type, a=>AsciiType)")->class_name() ==
        kPackage + "DynamicCompositeType(a=>" + kPackage + "AsciiType,s=>" + kPackage +
            "UTF8Type,i=>" + kPackage + "Int32Type)");
  CHECK(class_of("DynamicCompositeType")->class_name() == kPackage + "DynamicCompositeType()");
  CHECK(
      class_of("CompositeType(ReversedType(Int32Type), VectorType(FloatType , 3))")->class_name() ==
      kPackage + "CompositeType(" + kPackage + "ReversedType(" + kPackage + "Int32Type)," +
          kPackage + "VectorType(" + kPackage + "FloatType,3))");
  CHECK(class_of("LexicalUUIDType")->class_name() == kPackage + "LexicalUUIDType");
  const auto full = class_of(kPackage + "CompositeType(" + kPackage + "UTF8Type)");
  CHECK(*full == *class_of(full->class_name()));
  for (const auto* wrong :
       {"CompositeType", "CompositeType()", "CompositeType(NoType)", "CompositeType(UTF8Type",
        "DynamicCompositeType(ss=>UTF8Type)", "DynamicCompositeType(s=>UTF8Type,s=>Int32Type)"})
    CHECK_FALSE(parse_class_name(wrong));
  CHECK_FALSE(parse_class_name("CompositeType(ListType(UTF8Type,UTF8Type))"));
}

TEST_CASE("constants of a composite are its components") {
  const TypePtr type = class_of("CompositeType(UTF8Type,Int32Type)");
  CHECK(bytes_of(type, "ab:7") ==
        "0002616200"
        "00040000000700");
  CHECK(bytes_of(type, "ab") == "0002616200");
  CHECK(bytes_of(type, "ab:!") == "0002616201");
  CHECK(bytes_of(type, "ab:7:_") ==
        "0002616200"
        "000400000007ff");
  CHECK(bytes_of(type, "a\\:b:7") ==
        "0003613a6200"
        "00040000000700");
  CHECK(bytes_of(type, "ab:x") == "Unable to make int from 'x'");
  CHECK(bytes_of(type, "ab:7:8").starts_with("Too many components"));
}

TEST_CASE("constants of a dynamic composite name their comparators") {
  const TypePtr type = class_of("DynamicCompositeType(s=>UTF8Type,i=>Int32Type)");
  CHECK(bytes_of(type, "s@ab:i@7") ==
        "8073"
        "0002616200"
        "8069"
        "00040000000700");
  CHECK(bytes_of(type, "UTF8Type@ab") ==
        "0008"
        "5554463854797065"
        "0002616200");
  CHECK(bytes_of(type, "s@a@b") == "Invalid component representation: s@a@b");
  CHECK(bytes_of(type, "NoType@ab") ==
        "Unable to find abstract-type class '" + kPackage + "NoType'");
}

TEST_CASE("bytes that are no composite are refused") {
  const auto error = [](const std::string& class_name, const std::string& hex) {
    const auto valid = validate(*class_of(class_name), test::hex(hex));
    return valid ? std::string("valid") : valid.error().message;
  };
  const std::string two = "CompositeType(UTF8Type,Int32Type)";
  CHECK(error(two, "") == "valid");
  CHECK(error(two, "ffff0002616200") == "valid");
  CHECK(error(two, "00") == "Not enough bytes to read value size of component 0");
  CHECK(error(two, "000261") == "Not enough bytes to read value of component 0");
  CHECK(error(two, "00026162") ==
        "Not enough bytes to read the end-of-component byte of component0");
  CHECK(error(two, "000261620100040000000700") ==
        "Invalid bytes remaining after an end-of-component at component0");
  CHECK(error(two, "0002616200000300") == "Not enough bytes to read value of component 1");
  CHECK(error(two, "000261620000040000000700000000") == "Too many bytes for comparator");
  const std::string dynamic = "DynamicCompositeType(s=>UTF8Type)";
  CHECK(error(dynamic, "80") == "Not enough bytes to header of the comparator part of component 0");
  CHECK(error(dynamic, "8074000100") == "Cannot find comparator for component 0");
  CHECK(error(dynamic, "0009aa") == "Not enough bytes to read comparator name of component 0");
}

TEST_CASE("composites nest as deep as types may") {
  std::string deep = "UTF8Type";
  for (int i = 0; i < 40; ++i) deep = "CompositeType(" + deep + ")";
  CHECK(parse_class_name(deep));
  for (int i = 0; i < 10'000; ++i) deep = "CompositeType(" + deep + ")";
  CHECK_FALSE(parse_class_name(deep));
}

}  // namespace tetrad::cql
