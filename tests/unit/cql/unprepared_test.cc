// SPDX-License-Identifier: Apache-2.0
// Prepared statements whose columns have changed since.
#include "tests/unit/cql/whole_requests.h"

namespace tetrad::tests {

TEST_CASE_METHOD(WholeRequests, "in v5 a statement whose columns have changed is unprepared") {
  const std::string_view all = "SELECT * FROM ks.t WHERE k = 1", some = "SELECT c FROM ks.t";
  const auto rows_of = [](const cql::client::Response& response) {
    INFO(error_of(response));
    const auto* rows = std::get_if<cql::client::RowsReply>(&response.reply);
    REQUIRE(rows != nullptr);
    return *rows;
  };
  const auto old = prepare_in(5, all), other = prepare_in(5, some);
  const Bytes id(old.id), old_metadata(old.result_metadata_id), other_id(other.id),
      other_metadata(other.result_metadata_id);
  REQUIRE(rows_of(run_in(5, id, old_metadata)).metadata.columns.size() == 2);
  std::unique_ptr<cql::QueryProcessor> second = another_shard();
  REQUIRE(cql("ALTER TABLE ks.t ADD more int") == "ok");
  // Whoever comes, until one has prepared it again: on any shard.
  for (int i = 0; i < 2; ++i)
    CHECK(error_of(run_in(5, id, old_metadata)).starts_with("2500 Prepared query with ID "));
  std::swap(processor, second);
  CHECK(error_of(run_in(5, id, old_metadata)).starts_with("2500 "));
  CHECK(error_of(run_in(5, other_id, other_metadata)).empty());  // has the columns that it had
  const auto again = prepare_in(5, all);
  CHECK(again.id == BytesView(id));
  const Bytes new_metadata(again.result_metadata_id);
  CHECK(new_metadata != old_metadata);
  for (int shard = 0; shard < 2; ++shard) {
    CHECK_FALSE(rows_of(run_in(5, id, new_metadata)).metadata.new_id);
    // A client that has not prepared it again is told with the rows.
    const auto late = rows_of(run_in(5, id, old_metadata));
    CHECK(late.metadata.new_id == BytesView(new_metadata));
    CHECK(late.metadata.columns.size() == 3);
    std::swap(processor, second);
  }
  REQUIRE(cql("TRUNCATE ks.t") == "ok");
  CHECK(error_of(run_in(5, id, new_metadata)).empty());
  CHECK(processor->metrics().unprepared.value() + second->metrics().unprepared.value() == 3);
}

TEST_CASE_METHOD(WholeRequests, "before v5 a statement whose columns have changed sends them") {
  const auto old = prepare_in(4, "SELECT * FROM ks.t WHERE k = 1");
  const Bytes id(old.id);
  const auto columns = [&] {
    const auto response = run_in(4, id, {}, {.skip_metadata = true});
    INFO(error_of(response));
    const auto* rows = std::get_if<cql::client::RowsReply>(&response.reply);
    REQUIRE(rows != nullptr);
    return rows->metadata.no_metadata ? 0 : rows->metadata.columns.size();
  };
  CHECK(columns() == 0);
  REQUIRE(cql("ALTER TABLE ks.t ADD more int") == "ok");
  CHECK(columns() == 3);
  (void)prepare_in(4, "SELECT * FROM ks.t WHERE k = 1");
  CHECK(columns() == 0);
  REQUIRE(cql("DROP TABLE ks.t") == "ok");
  CHECK(error_of(run_in(4, id, {})).starts_with("2500 "));
}

}  // namespace tetrad::tests
