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

TEST_CASE_METHOD(WholeRequests, "before v5 a statement whose columns have changed is unprepared") {
  const std::string_view all = "SELECT * FROM ks.t WHERE k = 1";
  const auto old = prepare_in(4, all);
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
  CHECK(error_of(run_in(4, id, {}, {.skip_metadata = true})).starts_with("2500 "));
  (void)prepare_in(4, all);
  // A client may still read rows by its first PREPARE, so the metadata is sent.
  CHECK(columns() == 3);
  REQUIRE(cql("ALTER TABLE ks.t DROP more") == "ok");
  CHECK(error_of(run_in(4, id, {}, {.skip_metadata = true})).starts_with("2500 "));
  std::unique_ptr<cql::QueryProcessor> second = another_shard();
  (void)prepare_in(4, all);
  // As at first; but some client may know the columns in between.
  CHECK(columns() == 2);
  std::swap(processor, second);
  CHECK(columns() == 2);
  REQUIRE(cql("DROP TABLE ks.t") == "ok");
  CHECK(error_of(run_in(4, id, {})).starts_with("2500 "));
}

TEST_CASE_METHOD(WholeRequests, "a shard hears that others have announced other columns") {
  const std::string_view all = "SELECT * FROM ks.t WHERE k = 1";
  const Bytes id(prepare_in(4, all).id);
  std::unique_ptr<cql::QueryProcessor> second = another_shard();
  const auto skips = [&] {
    const auto response = run_in(4, id, {}, {.skip_metadata = true});
    INFO(error_of(response));
    const auto* rows = std::get_if<cql::client::RowsReply>(&response.reply);
    return rows != nullptr && rows->metadata.no_metadata;
  };
  CHECK(skips());
  std::swap(processor, second);
  CHECK(skips());
  std::swap(processor, second);
  REQUIRE(cql("ALTER TABLE ks.t ADD more int") == "ok");
  (void)prepare_in(4, all);
  REQUIRE(cql("ALTER TABLE ks.t DROP more") == "ok");
  // It has not been asked meanwhile, and its columns are what they were.
  std::swap(processor, second);
  CHECK_FALSE(skips());
}

TEST_CASE_METHOD(WholeRequests, "ALTER TYPE ends what was prepared with the type") {
  for (const char* statement :
       {"CREATE TYPE ks.u (x int)", "CREATE TYPE ks.other (x int)",
        "CREATE TABLE ks.p (k int PRIMARY KEY, u frozen<u>, l list<frozen<u>>, n u)"})
    REQUIRE(cql(statement) == "ok");
  for (const int version : {4, 5}) {
    CAPTURE(version);
    const std::string field = "y" + std::to_string(version);
    std::vector<Bytes> ids, metadata;
    const std::string_view texts[] = {
        "SELECT u FROM ks.p WHERE k = 1", "SELECT JSON * FROM ks.p WHERE k = 1",
        "INSERT INTO ks.p (k, u) VALUES (1, ?)", "UPDATE ks.p SET l = ? WHERE k = 1",
        "DELETE FROM ks.p WHERE k = 1 IF n = ?"};
    for (const std::string_view text : texts) {
      const auto prepared = prepare_in(version, text);
      ids.emplace_back(prepared.id);
      metadata.emplace_back(prepared.result_metadata_id);
    }
    const auto is_unprepared = [&](size_t i) {
      return error_of(run_in(version, ids[i], metadata[i])).starts_with("2500 ");
    };
    REQUIRE(cql("ALTER TYPE ks.other ADD " + field + " int") == "ok");
    for (size_t i = 0; i < ids.size(); ++i) CHECK_FALSE(is_unprepared(i));
    REQUIRE(cql("ALTER TYPE ks.u ADD " + field + " int") == "ok");
    CHECK(is_unprepared(0));
    CHECK_FALSE(is_unprepared(1));  // a text, made by the type as it is now
    for (size_t i = 2; i < ids.size(); ++i) CHECK(is_unprepared(i));
    const auto batch = [&] {
      static const Bytes kUdt("\0\0\0\4\0\0\0\1", 8);
      const cql::WireValue value = cql::WireValue::of(kUdt);
      const cql::client::BatchStatement part{true, ids[2], {&value, 1}};
      Bytes bytes;
      cql::client::append_batch(bytes, {.version = version}, cql::BatchType::kUnlogged, {&part, 1},
                                {});
      return error_of(ask(bytes));
    };
    CHECK(batch().starts_with("2500 "));
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto again = prepare_in(version, texts[i]);
      CHECK(again.id == BytesView(ids[i]));
      metadata[i] = Bytes(again.result_metadata_id);
      CHECK_FALSE(is_unprepared(i));
    }
    CHECK(batch() == "");
  }
}

}  // namespace tetrad::tests
