// SPDX-License-Identifier: Apache-2.0
#include "cql/protocol/response.h"

#include <catch2/catch.hpp>

#include "tests/unit/cql_protocol/wire.h"

using namespace tetrad;
using namespace tetrad::cql;

namespace {

constexpr int kVersions[] = {3, 4, 5};

struct Spec {
  std::string keyspace, table, name;
  TypePtr type;
};

std::vector<Spec> columns_of_one_table() {
  return {{"ks", "t", "k", int_type()},
          {"ks", "t", "v", make_list(text_type(), true)},
          {"ks", "t", "d", duration_type()},
          {"ks", "t", "s", smallint_type()}};
}

EncodedMetadata metadata_of(const std::vector<Spec>& specs) {
  return EncodedMetadata(wire_columns(specs));
}

}  // namespace

TEST_CASE("the simple answers are read back") {
  for (const int version : kVersions) {
    const ReplyHead head{.version = version, .stream = 300};
    Bytes out;
    append_ready(out, head);
    CHECK(only_envelope(out, FrameDecoder::Role::kClient).stream() == 300);
    reply_of<client::ReadyReply>(out);
    out.clear();
    append_authenticate(out, head, "org.apache.cassandra.auth.PasswordAuthenticator");
    CHECK(reply_of<client::AuthenticateReply>(out).authenticator ==
          "org.apache.cassandra.auth.PasswordAuthenticator");
    out.clear();
    append_auth_success(out, head);
    CHECK_FALSE(reply_of<client::AuthSuccessReply>(out).token);
    out.clear();
    append_auth_challenge(out, head, "more");
    CHECK(reply_of<client::AuthChallengeReply>(out).token == BytesView("more"));
    out.clear();
    append_void(out, head);
    reply_of<client::VoidReply>(out);
    out.clear();
    append_set_keyspace(out, head, "ks");
    CHECK(reply_of<client::SetKeyspaceReply>(out).keyspace == "ks");
    out.clear();
    const SupportedOption options[] = {{"CQL_VERSION", {"3.4.7"}},
                                       {"COMPRESSION", {"lz4", "snappy"}}};
    append_supported(out, head, options);
    const auto supported = reply_of<client::SupportedReply>(out);
    CHECK(supported.options.at("COMPRESSION") == std::vector<std::string>{"lz4", "snappy"});
  }
}

TEST_CASE("the prefix is tracing id, warnings, payload; the last two from v4 only") {
  const Uuid id = *Uuid::parse("6bddc89a-5644-11e4-97fc-56847afe9799");
  const std::string warnings[] = {"first", "second"};
  const std::pair<std::string, Bytes> payload[] = {{"RequestCharge", "1.5"}};
  for (const int version : kVersions) {
    Bytes out;
    append_void(out, {.version = version,
                      .stream = 1,
                      .tracing_id = &id,
                      .warnings = warnings,
                      .custom_payload = payload});
    const auto response = response_of(out);
    CHECK(response.tracing_id == id);
    CHECK(response.warnings.size() == (version >= 4 ? 2 : 0));
    CHECK(response.custom_payload.size() == (version >= 4 ? 1 : 0));
    if (version >= 4) {
      CHECK(response.warnings[1] == "second");
      CHECK(response.custom_payload[0].second == BytesView("1.5"));
    }
    CHECK(std::holds_alternative<client::VoidReply>(response.reply));
  }
}

TEST_CASE("rows are read back with their metadata in every version") {
  const auto specs = columns_of_one_table();
  const EncodedMetadata metadata = metadata_of(specs);
  CHECK(metadata.global_table());
  for (const int version : kVersions) {
    Bytes out = "earlier";
    RowsWriter rows(out, {.version = version, .stream = 2}, metadata, {});
    for (int i = 0; i < 3; ++i) {
      rows.cell("abcd");
      rows.null_cell();
      rows.cell("");
      rows.cell(Bytes(static_cast<size_t>(i), 'x'));
      rows.end_row();
    }
    rows.finish();
    const auto reply = reply_of<client::RowsReply>(out.substr(7));
    CHECK(reply.row_count == 3);
    CHECK_FALSE(reply.metadata.paging_state);
    REQUIRE(reply.metadata.columns.size() == 4);
    CHECK(reply.metadata.columns[1].keyspace == "ks");
    CHECK(reply.metadata.columns[1].name == "v");
    CHECK(*reply.metadata.columns[0].type == *specs[0].type);
    CHECK(*reply.metadata.columns[1].type == *specs[1].type);
    const auto cells = reply.all_cells();
    REQUIRE(cells.size() == 12);
    CHECK(cells[0] == BytesView("abcd"));
    CHECK_FALSE(cells[1]);
    CHECK(cells[2] == BytesView(""));
    CHECK(cells[11] == BytesView("xx"));
  }
}

TEST_CASE("types that a version lacks are custom there") {
  const auto specs = columns_of_one_table();
  const EncodedMetadata metadata = metadata_of(specs);
  const BytesView duration_class = "org.apache.cassandra.db.marshal.DurationType";
  const BytesView short_class = "org.apache.cassandra.db.marshal.ShortType";
  const auto has = [&](int version, BytesView text) {
    return metadata.encoded(version).find(text) != BytesView::npos;
  };
  CHECK(has(3, duration_class));
  CHECK(has(4, duration_class));
  CHECK_FALSE(has(5, duration_class));
  CHECK(has(3, short_class));
  CHECK_FALSE(has(4, short_class));
  const EncodedMetadata only_v4(wire_columns(specs), {}, 4);
  CHECK(only_v4.encoded(4) == metadata.encoded(4));
}

TEST_CASE("columns of several tables name theirs") {
  const std::vector<Spec> specs = {{"ks", "t", "k", int_type()}, {"ks", "u", "k", int_type()}};
  const EncodedMetadata metadata = metadata_of(specs);
  CHECK_FALSE(metadata.global_table());
  Bytes out;
  append_rows(out, {.version = 4}, metadata, {}, 0, "");
  const auto reply = reply_of<client::RowsReply>(out);
  CHECK(reply.metadata.columns[0].table == "t");
  CHECK(reply.metadata.columns[1].table == "u");
}

TEST_CASE("the metadata id follows names and types") {
  auto specs = columns_of_one_table();
  const MetadataId id = metadata_of(specs).id();
  CHECK(metadata_of(specs).id() == id);
  specs[0].type = bigint_type();
  CHECK(metadata_of(specs).id() != id);
  specs = columns_of_one_table();
  specs[0].name = "kk";
  CHECK(metadata_of(specs).id() != id);
  CHECK(view_of(EncodedMetadata(wire_columns(specs), "0123456789abcdef").id()) ==
        "0123456789abcdef");
}

TEST_CASE("a client that has the metadata gets none; changed metadata comes with its id in v5") {
  const EncodedMetadata metadata = metadata_of(columns_of_one_table());
  for (const int version : kVersions) {
    Bytes out;
    append_rows(out, {.version = version}, metadata,
                {.paging_state = "next", .skip_metadata = true}, 0, "");
    auto reply = reply_of<client::RowsReply>(out);
    CHECK(reply.metadata.no_metadata);
    CHECK((static_cast<uint8_t>(out[kEnvelopeHeaderBytes + 7]) & 0x05) == 0x05);  // as Cassandra
    CHECK(reply.metadata.column_count == 4);
    CHECK(reply.metadata.paging_state == BytesView("next"));
    out.clear();
    append_rows(out, {.version = version}, metadata,
                {.paging_state = "next", .metadata_changed = true}, 0, "");
    reply = reply_of<client::RowsReply>(out);
    CHECK(reply.metadata.paging_state == BytesView("next"));
    CHECK(reply.metadata.new_id.has_value() == (version == 5));
    if (version == 5) CHECK(reply.metadata.new_id == view_of(metadata.id()));
    CHECK(reply.metadata.columns.size() == 4);
  }
}

TEST_CASE("a paging state that is known last gives the same bytes as one known first") {
  const EncodedMetadata metadata = metadata_of(columns_of_one_table());
  for (const int version : kVersions) {
    const auto write = [&](RowsWriter& rows) {
      for (int i = 0; i < 4; ++i) rows.cell("cell");
      rows.end_row();
    };
    Bytes first, last, whole;
    RowsWriter a(first, {.version = version}, metadata, {.paging_state = "where"});
    write(a);
    a.finish();
    RowsWriter b(last, {.version = version}, metadata, {});
    write(b);
    b.finish_with_more_pages("where");
    CHECK(first == last);
    Bytes cells;
    for (int i = 0; i < 4; ++i) append_cell(cells, "cell");
    append_rows(whole, {.version = version}, metadata, {.paging_state = "where"}, 1, cells);
    CHECK(whole == first);
    CHECK(reply_of<client::RowsReply>(first).metadata.paging_state == BytesView("where"));
  }
}

TEST_CASE("an abandoned result leaves the buffer as it was") {
  Bytes out;
  append_void(out, {.version = 4});
  const Bytes before = out;
  RowsWriter rows(out, {.version = 4}, metadata_of(columns_of_one_table()), {});
  rows.cell("x");
  rows.abandon();
  CHECK(out == before);
}

TEST_CASE("answers need no more memory once the buffer has grown") {
  const EncodedMetadata metadata = metadata_of(columns_of_one_table());
  Bytes out;
  const auto turn = [&] {
    out.clear();
    for (int i = 0; i < 64; ++i) {
      RowsWriter rows(out, {.version = 5}, metadata, {});
      for (int cell = 0; cell < 4; ++cell) rows.cell("12345678");
      rows.end_row();
      rows.finish();
    }
  };
  turn();
  const char* where = out.data();
  const size_t capacity = out.capacity();
  for (int i = 0; i < 10; ++i) turn();
  CHECK(out.data() == where);
  CHECK(out.capacity() == capacity);
}

TEST_CASE("PREPARED tells markers and, from v4, which of them are the partition key") {
  const std::vector<Spec> markers = {{"ks", "t", "a", int_type()}, {"ks", "t", "b", text_type()}};
  const auto views = wire_columns(markers);
  const uint16_t key[] = {1, 0};
  const EncodedMetadata result = metadata_of(columns_of_one_table());
  for (const int version : kVersions) {
    Bytes out;
    append_prepared(out, {.version = version}, {"0123456789abcdef", views, key, &result});
    auto prepared = reply_of<client::PreparedReply>(out);
    CHECK(prepared.id == "0123456789abcdef");
    CHECK(prepared.result_metadata_id == (version == 5 ? view_of(result.id()) : BytesView()));
    CHECK(prepared.markers.columns.size() == 2);
    CHECK(prepared.markers.columns[1].name == "b");
    CHECK(prepared.markers.partition_key_markers ==
          (version >= 4 ? std::vector<uint16_t>{1, 0} : std::vector<uint16_t>{}));
    CHECK(prepared.result.columns.size() == 4);
    out.clear();
    append_prepared(out, {.version = version}, {"0123456789abcdef", {}, {}, nullptr});
    prepared = reply_of<client::PreparedReply>(out);
    CHECK(prepared.result.no_metadata);
    CHECK(prepared.result.column_count == 0);
    if (version == 5) CHECK(prepared.result_metadata_id.size() == 16);
  }
}

TEST_CASE("schema changes are told in results and events; v3 knows no functions") {
  using Change = SchemaChange;
  const Change changes[] = {
      {Change::Kind::kCreated, Change::Target::kKeyspace, "ks", "", {}},
      {Change::Kind::kUpdated, Change::Target::kTable, "ks", "t", {}},
      {Change::Kind::kDropped, Change::Target::kType, "ks", "ty", {}},
      {Change::Kind::kCreated, Change::Target::kFunction, "ks", "f", {"int", "text"}},
      {Change::Kind::kDropped, Change::Target::kAggregate, "ks", "a", {}},
  };
  for (const int version : kVersions) {
    for (const Change& change : changes) {
      const bool untold = version == 3 && (change.target == Change::Target::kFunction ||
                                           change.target == Change::Target::kAggregate);
      const Change expected =
          untold ? Change{Change::Kind::kUpdated, Change::Target::kKeyspace, "ks", "", {}} : change;
      Bytes out;
      append_schema_change(out, {.version = version}, change);
      CHECK(reply_of<client::SchemaChangeReply>(out).change == expected);
      out.clear();
      append_schema_event(out, version, change);
      CHECK(only_envelope(out, FrameDecoder::Role::kClient).stream() == kEventStream);
      CHECK(reply_of<client::SchemaEvent>(out).change == expected);
    }
  }
}

TEST_CASE("events of nodes carry address and port") {
  for (const char* address : {"127.0.0.1", "::1", "[2001:db8::7]"}) {
    const auto node = Inet::parse(address, 9042);
    REQUIRE(node);
    Bytes out;
    append_status_event(out, 4, StatusChange::kUp, *node);
    auto event = reply_of<client::NodeEvent>(out);
    CHECK(event.type == "STATUS_CHANGE");
    CHECK(event.change == "UP");
    CHECK(event.node == *node);
    out.clear();
    append_topology_event(out, 4, TopologyChange::kRemovedNode, *node);
    event = reply_of<client::NodeEvent>(out);
    CHECK(event.type == "TOPOLOGY_CHANGE");
    CHECK(event.change == "REMOVED_NODE");
  }
  CHECK_FALSE(Inet::parse("localhost", 1));
  CHECK(Inet::parse("[::1]", 1)->address_text() == "::1");
}

TEST_CASE("every truncation of a response is refused by the client") {
  const EncodedMetadata metadata = metadata_of(columns_of_one_table());
  Bytes whole;
  RowsWriter rows(whole, {.version = 5}, metadata, {.paging_state = "p", .metadata_changed = true});
  for (int i = 0; i < 4; ++i) rows.cell("abc");
  rows.end_row();
  rows.finish();
  for (size_t size = kEnvelopeHeaderBytes; size < whole.size(); ++size) {
    Bytes cut = whole.substr(0, size);
    base::store_big_endian(cut.data() + 5, static_cast<int32_t>(size - kEnvelopeHeaderBytes));
    REQUIRE_FALSE(client::decode_response(only_envelope(cut, FrameDecoder::Role::kClient)));
  }
}
