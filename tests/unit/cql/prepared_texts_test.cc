// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/prepared_texts.h"

#include <catch2/catch.hpp>

namespace tetrad::cql {

TEST_CASE("what one shard prepares, another finds") {
  PreparedTexts texts(10, 1 << 20);
  CHECK_FALSE(texts.find("id"));
  MetadataId announced{};
  announced[0] = 7;
  texts.put("id", {"ks", "SELECT 1", announced});
  const auto found = texts.find("id");
  REQUIRE(found);
  CHECK(found->keyspace == "ks");
  CHECK(found->text == "SELECT 1");
  CHECK(found->announced == announced);
  texts.put("id", {"ks", "SELECT 1", MetadataId{}});
  CHECK(texts.find("id")->announced == MetadataId{});
}

TEST_CASE("beyond the limits the one used longest ago goes") {
  PreparedTexts texts(3, 1 << 20);
  for (const char* id : {"a", "b", "c"}) texts.put(id, {"", id, {}});
  CHECK(texts.find("a"));
  texts.put("d", {"", "d", {}});
  CHECK_FALSE(texts.find("b"));
  for (const char* id : {"a", "c", "d"}) CHECK(texts.find(id));

  PreparedTexts small(100, 2'000);
  for (const char* id : {"a", "b", "c"}) small.put(id, {"", std::string(600, 'x'), {}});
  CHECK_FALSE(small.find("a"));
  CHECK(small.find("c"));
  small.put("large", {"", std::string(5'000, 'x'), {}});  // the only one may be larger
  CHECK(small.find("large"));
  CHECK_FALSE(small.find("c"));
}

}  // namespace tetrad::cql
