// SPDX-License-Identifier: Apache-2.0
// What Apache Cassandra 5.0 answered to scripts of tests/conformance, on one store without a
// network: whatever the statements that need the cluster make of it, these are their answers.
#include <catch2/catch.hpp>

#include "tests/support/recorded_script.h"

using namespace tetrad;
using namespace tetrad::tests;

namespace {

void replay(const std::string& script) {
  const std::filesystem::path folder = TETRAD_CONFORMANCE_FOLDER;
  const auto statements = read_script(folder / "scripts" / (script + ".cql"));
  const auto recorded = read_recorded(folder / "expected" / (script + ".txt"));
  const auto differences = read_differences(folder / "differences.txt", script);
  REQUIRE(statements.size() == recorded.size());
  ScriptRunner runner(script);
  for (size_t i = 0; i < statements.size(); ++i) {
    CAPTURE(i);
    CAPTURE(statements[i].text);
    REQUIRE(statements[i].text == recorded[i].text);
    const auto lines = comparable(runner.answer(statements[i]));
    if (statements[i].text.starts_with("DESCRIBE")) continue;  // quotes are shown otherwise here
    if (std::ranges::any_of(differences, [&](const std::regex& pattern) {
          return std::regex_match(recorded[i].text, pattern);
        })) {
      continue;
    }
    CHECK(lines == comparable(recorded[i].lines));
  }
}

}  // namespace

TEST_CASE("conditional statements answer as Cassandra's") { replay("lwt"); }
TEST_CASE("applications' conditional statements answer as Cassandra's") {
  replay("lwt_applications");
}
TEST_CASE("conditional batches answer as Cassandra's") { replay("lwt_batches"); }
TEST_CASE("conditions on static columns answer as Cassandra's") { replay("lwt_static"); }
TEST_CASE("conditional statements with markers answer as Cassandra's") { replay("lwt_prepared"); }
TEST_CASE("conditional statements are refused as Cassandra refuses them") { replay("lwt_refused"); }
TEST_CASE("serial levels are taken and refused as Cassandra does") { replay("lwt_levels"); }
TEST_CASE("edges of conditional statements are Cassandra's") { replay("lwt_edges"); }
TEST_CASE("conditional statements add to numbers and texts as Cassandra's") { replay("lwt_sums"); }
TEST_CASE("conditions on every type hold as Cassandra's") { replay("gen_conditions"); }
TEST_CASE("what random conditions have found is mended") { replay("found_conditions"); }
TEST_CASE("indexes are made, changed and refused as Cassandra's") { replay("index_ddl"); }
TEST_CASE("classes and options of indexes are Cassandra's") { replay("index_classes"); }
TEST_CASE("native indexes serve and refuse what Cassandra's do") { replay("index_select"); }
TEST_CASE("storage-attached indexes serve and refuse what Cassandra's do") { replay("index_sai"); }
