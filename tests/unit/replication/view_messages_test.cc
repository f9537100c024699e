// SPDX-License-Identifier: Apache-2.0
// Messages of materialized views, and what an execution writes (rule 24).
#include "replication/views/view_messages.h"

#include <catch2/catch.hpp>

#include "base/random.h"
#include "replication/views/view_image_plan.h"

namespace tetrad::replication {
namespace {

using storage::ViewNamesByView;
using storage::ViewRow;
using storage::ViewStamp;

const ViewRow kRow{{7}, {-2, 3}, "pk", "ck"};
const ViewNamesByView kNames{{{8}, {{"k", ""}, {"k2", "cell"}}}, {{9}, {{"", ""}}}};

/// By colour (column 2), with column 1 as its column 1.
class ByColour final : public storage::ViewMaker {
 public:
  TableIncarnation incarnation() const override { return {8}; }
  SchemaVersion schema_version() const override { return {4}; }
  std::optional<uint32_t> key_column() const override { return 2; }
  const std::vector<storage::ViewColumn>& columns() const override { return columns_; }
  std::optional<storage::ViewPlace> place_of(const storage::BaseRowName& row,
                                             BytesView key_value) const override {
    if (key_value.empty()) return std::nullopt;
    return storage::ViewPlace{Bytes(key_value), {5, 5}, Bytes(row.partition_key), {}};
  }
  std::optional<storage::ViewOrigin> origin_of(const storage::BaseRowName&) const override {
    return std::nullopt;
  }

 private:
  const std::vector<storage::ViewColumn> columns_{{1, 1, false}};
};

Bytes base_row(BytesView colour, BytesView value) {
  storage::RowRecord record;
  record.liveness.timestamp_us = 10;
  storage::Cell cell;
  cell.timestamp_us = 10;
  cell.column_id = 1;
  cell.value = value;
  record.cells.push_back(cell);
  cell.column_id = 2;
  cell.value = colour;
  if (!colour.empty()) record.cells.push_back(cell);
  Bytes out;
  storage::encode_row_record(record, out);
  return out;
}

TEST_CASE("messages of views come back as they were") {
  const auto read = decode_view_read(encode_view_read({SetEpoch{5}, {7}, kRow, ViewStamp{1002}}));
  REQUIRE(read);
  CHECK(read->epoch == SetEpoch{5});
  CHECK(read->schema_version == SchemaVersion{7});
  CHECK(read->row == kRow);
  CHECK(read->stamp == ViewStamp{1002});

  storage::ViewRowAnswer answer;
  answer.record = base_row("red", "v");
  answer.names = kNames;
  answer.sequences = {1, 9, storage::kViewNotes + 1000};
  auto back = decode_view_answer(encode_view_answer(answer));
  REQUIRE(back);
  CHECK_FALSE(back->seen);
  CHECK(back->record == answer.record);
  CHECK(back->names == kNames);
  CHECK(back->sequences == answer.sequences);
  answer.seen = ViewStamp{1004};
  back = decode_view_answer(encode_view_answer(answer));
  REQUIRE(back);
  CHECK(back->seen == ViewStamp{1004});

  const auto settled =
      decode_view_settlement(encode_view_settlement({kRow, {1, 9}, kNames, ViewStamp{1002}}));
  REQUIRE(settled);
  CHECK(settled->row == kRow);
  CHECK(settled->sequences == std::vector<uint64_t>{1, 9});
  CHECK(settled->names == kNames);
  CHECK(settled->stamp == ViewStamp{1002});

  const auto awaited = decode_view_await(encode_view_await({kRow, true, {"", "ck", "ck2"}}));
  REQUIRE(awaited);
  CHECK(awaited->partition == kRow);
  CHECK(awaited->ranges);
  CHECK(awaited->clustering_keys == std::vector<Bytes>{"", "ck", "ck2"});
}

TEST_CASE("what is no message of views does not decode, and takes no memory") {
  storage::ViewRowAnswer answer;
  answer.names = kNames;
  answer.sequences = {1, 2, 3};
  const Bytes messages[] = {encode_view_read({SetEpoch{5}, {7}, kRow, ViewStamp{1002}}),
                            encode_view_answer(answer),
                            encode_view_settlement({kRow, {1, 9}, kNames, ViewStamp{1002}}),
                            encode_view_await({kRow, true, {"", "ck"}})};
  const auto decodes = [](int kind, BytesView body) {
    if (kind == 0) return decode_view_read(body).has_value();
    if (kind == 1) return decode_view_answer(body).has_value();
    if (kind == 2) return decode_view_settlement(body).has_value();
    return decode_view_await(body).has_value();
  };
  base::Random random(3);
  for (int kind = 0; kind < 4; ++kind) {
    for (size_t size = 0; size < messages[kind].size(); ++size)
      CHECK_FALSE(decodes(kind, BytesView(messages[kind]).substr(0, size)));
    CHECK_FALSE(decodes(kind, messages[kind] + "x"));
    for (int i = 0; i < 5'000; ++i) {
      Bytes bad = messages[kind];
      bad[random.below(bad.size())] = static_cast<char>(random.below(256));
      (void)decodes(kind, bad);
    }
  }
}

TEST_CASE("an execution writes the row as it is, and takes away what it was called before") {
  const storage::ViewMakers makers{std::make_shared<ByColour>()};
  const ViewNamesByView names{{{8}, {{"red", ""}, {"blue", ""}, {"", ""}}}};
  const auto values = shown_values(base_row("red", "v"), 0);
  REQUIRE(values);
  auto images = view_images(makers, kRow, *values, names, ViewStamp{1002});
  REQUIRE(images);
  REQUIRE(images->mutations.size() == 2);  // "" is no key
  CHECK(images->mutations[0].partition_key == "red");
  CHECK(images->mutations[0].schema_version == SchemaVersion{4});
  auto record = storage::decode_row_record(images->mutations[0].rows[0].record);
  REQUIRE(record);
  CHECK(record->liveness.timestamp_us == 1002);
  CHECK(images->mutations[1].partition_key == "blue");
  record = storage::decode_row_record(images->mutations[1].rows[0].record);
  REQUIRE(record);
  CHECK(record->deletion.timestamp_us == 1002);
  CHECK(images->current == ViewNamesByView{{{8}, {{"red", ""}}}});

  images = view_images(makers, kRow, "", names, ViewStamp{1004});  // the base row is gone
  REQUIRE(images);
  CHECK(images->mutations.size() == 2);
  CHECK(images->current.empty());
}

TEST_CASE("an image that no mutation has room for is written in pieces of one stamp") {
  // Rows grow by many writes; a mutation has a limit, which refused such an image for ever.
  class Wide final : public storage::ViewMaker {
   public:
    TableIncarnation incarnation() const override { return {8}; }
    SchemaVersion schema_version() const override { return {4}; }
    std::optional<uint32_t> key_column() const override { return std::nullopt; }
    const std::vector<storage::ViewColumn>& columns() const override { return columns_; }
    std::optional<storage::ViewPlace> place_of(const storage::BaseRowName& row,
                                               BytesView) const override {
      return storage::ViewPlace{Bytes(row.partition_key), {5, 5}, "c", {}};
    }
    std::optional<storage::ViewOrigin> origin_of(const storage::BaseRowName&) const override {
      return std::nullopt;
    }

   private:
    const std::vector<storage::ViewColumn> columns_{{1, 1, true}};
  };
  const Bytes large(700'000, 'x');
  const std::vector<Bytes> paths{"a", "b", "c", "d", "e"};
  storage::RowRecord record;
  record.liveness.timestamp_us = 10;
  for (const Bytes& path : paths) {
    storage::Cell& cell = record.cells.emplace_back();
    cell.column_id = 1;
    cell.timestamp_us = 10;
    cell.has_path = true;
    cell.path = path;
    cell.value = large;
  }
  Bytes values;
  storage::encode_row_record(record, values);
  const storage::ViewMakers makers{std::make_shared<Wide>()};
  const auto images = view_images(makers, kRow, values, {}, ViewStamp{1002});
  REQUIRE(images);
  CHECK(images->mutations.size() == 5);
  size_t markers = 0, elements = 0, deletions = 0;
  for (const storage::Mutation& mutation : images->mutations) {
    CHECK(mutation.size_bytes() < 1'100'000);
    CHECK(mutation.partition_key == "pk");
    const auto piece = storage::decode_row_record(mutation.rows.at(0).record);
    REQUIRE(piece);
    markers += piece->liveness.present() ? 1 : 0;
    for (const storage::Cell& cell : piece->cells)
      ++(cell.kind == storage::CellKind::kColumnDeletion ? deletions : elements);
  }
  CHECK(markers == 1);
  CHECK(deletions == 1);
  CHECK(elements == 5);
}

TEST_CASE("what members may hold otherwise does not count: tombstones, and what expired long ago") {
  storage::RowRecord record;
  record.deletion = {5, 5};
  storage::Cell cell;
  cell.column_id = 1;
  cell.timestamp_us = 10;
  cell.ttl_s = 10;
  cell.expiry_s = 1000;
  cell.value = "v";
  record.cells.push_back(cell);
  cell = {};
  cell.column_id = 2;
  cell.kind = storage::CellKind::kTombstone;
  cell.timestamp_us = 10;
  record.cells.push_back(cell);
  Bytes bytes;
  storage::encode_row_record(record, bytes);
  const auto soon = shown_values(bytes, 1500), late = shown_values(bytes, 1600);
  REQUIRE(soon);
  REQUIRE(late);
  CHECK_FALSE(soon->empty());
  CHECK(late->empty());
  CHECK_FALSE(shown_values("\x7f", 0));
}

}  // namespace
}  // namespace tetrad::replication
