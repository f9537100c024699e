// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/prepared_texts.h"

#include <catch2/catch.hpp>

namespace tetrad::cql {

TEST_CASE("what one shard prepares, another finds") {
  PreparedTexts texts(10, 1 << 20);
  CHECK_FALSE(texts.find("id"));
  AnnouncedColumns announced;
  announced.result[0] = 7;
  texts.put("id", {"ks", "SELECT 1", announced});
  const auto found = texts.find("id");
  REQUIRE(found);
  CHECK(found->keyspace == "ks");
  CHECK(found->text == "SELECT 1");
  CHECK(found->announced == announced);
  texts.put("id", {"ks", "SELECT 1", {}});
  CHECK(texts.find("id")->announced == AnnouncedColumns{});
}

TEST_CASE("a list has those that were used last first, and is no use") {
  PreparedTexts texts(3, 1 << 20);
  for (const char* id : {"a", "b", "c"}) texts.put(id, {"ks", std::string("text of ") + id, {}});
  CHECK(texts.find("a"));
  const auto ids = [&](size_t count_max) {
    std::string out;
    for (const auto& [id, entry] : texts.list(count_max)) {
      CHECK(entry->text == "text of " + id);
      out += id;
    }
    return out;
  };
  CHECK(ids(10) == "acb");
  CHECK(ids(2) == "ac");
  CHECK(ids(0).empty());
  const auto listed = texts.list(10);
  texts.put("d", {"ks", "text of d", {}});
  CHECK(ids(10) == "dac");
  CHECK(listed.back().second->text == "text of b");  // it may be gone meanwhile
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
