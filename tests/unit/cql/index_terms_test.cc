// SPDX-License-Identifier: Apache-2.0
#include "cql/index/index_terms.h"

#include <algorithm>
#include <map>
#include <random>

#include <catch2/catch.hpp>

#include "cql/index/index_options.h"
#include "cql/types/compare.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"

namespace tetrad::cql {
namespace {

ColumnSchema column(std::string name, TypePtr type, ColumnKind kind, uint32_t position,
                    uint32_t id) {
  ColumnSchema made;
  made.name = std::move(name);
  made.type = std::move(type);
  made.kind = kind;
  made.position = position;
  made.id = id;
  return made;
}

/// t (k1 int, k2 text, c1 int DESC, c2 text, v <type>, PRIMARY KEY ((k1, k2), c1, c2))
TableSchema table_of(const TypePtr& type) {
  TableSchema table;
  table.keyspace = "ks";
  table.name = "t";
  std::vector<ColumnSchema> columns = {
      column("k1", int_type(), ColumnKind::kPartitionKey, 0, 0),
      column("k2", text_type(), ColumnKind::kPartitionKey, 1, 0),
      column("c1", int_type(), ColumnKind::kClustering, 0, 0),
      column("c2", text_type(), ColumnKind::kClustering, 1, 0),
      column("v", type, ColumnKind::kRegular, 0, 1),
  };
  columns[2].descending = true;
  table.set_columns(std::move(columns));
  return table;
}

IndexSchema on(std::string name, IndexTarget target = IndexTarget::kSimple) {
  IndexSchema index;
  index.name = name + "_idx";
  index.column = std::move(name);
  index.target = target;
  index.id = 7;
  return index;
}

IndexTerms terms_of(const TypePtr& type, const IndexSchema& index) {
  return IndexTerms::of(table_of(type), index).value();
}

bool is_inside(const Bytes& component, const storage::IndexBounds& bounds) {
  return component >= bounds.lower && (!bounds.upper || component <= *bounds.upper);
}

Bytes component_of(const IndexTerms& terms, BytesView value) {
  std::vector<Bytes> components;
  REQUIRE(terms.add_value(value, components));
  REQUIRE(components.size() == 1);
  return components.front();
}

TEST_CASE("components sort as the values, and bounds take in what is between them") {
  std::mt19937 random(3);
  const auto text = [&] {
    // Long ones that differ only behind what is kept, too.
    Bytes value(random() % 3 == 0 ? 300 : random() % 4, 'a');
    for (char& c : value) c = random() % 40 == 0 ? 'b' : 'a';
    return value;
  };
  const auto number = [&] { return make_int(static_cast<int32_t>(random() % 7) - 3); };
  for (const TypePtr& type : {int_type(), text_type()}) {
    const IndexTerms terms = terms_of(type, on("v"));
    for (int i = 0; i < 5000; ++i) {
      const bool is_text = type->kind() == TypeKind::kText;
      const Bytes a = is_text ? text() : number(), b = is_text ? text() : number();
      const Bytes of_a = component_of(terms, a), of_b = component_of(terms, b);
      CHECK(of_a.size() <= kTermBytesMax + 8);
      const int order = compare(*type, a, b);
      CHECK((order == 0) == (of_a == of_b));
      if (order < 0) {
        CHECK(of_a.substr(0, kTermBytesMax) <= of_b.substr(0, kTermBytesMax));
        CHECK_FALSE(of_b.starts_with(of_a));
      }
      CHECK(is_inside(of_a, terms.equal(a).value()));
      CHECK(is_inside(of_b, terms.equal(a).value()) == (order == 0));
      if (order >= 0) {
        CHECK(is_inside(of_a, terms.between(b, std::nullopt).value()));
        CHECK(is_inside(of_b, terms.between(std::nullopt, a).value()));
        CHECK(is_inside(of_a, terms.between(b, a).value()));
      }
    }
  }
}

TEST_CASE("a cell has the component of its element") {
  const auto bytes = [](const TypePtr& type, BytesView value) {
    Bytes path;
    REQUIRE(append_ordered(path, *type, value, false));
    return path;
  };
  const Bytes key = make_text("k"), value = make_int(5);
  storage::Cell cell;
  cell.has_path = true;
  std::vector<Bytes> of_cell;

  const IndexTerms set = terms_of(make_set(text_type(), false), on("v", IndexTarget::kValues));
  const Bytes path = bytes(text_type(), key);
  cell.path = path;
  REQUIRE(set.add_cell(cell, of_cell));
  CHECK(of_cell == std::vector{component_of(set, join_list(std::vector<BytesView>{key}))});
  CHECK(is_inside(of_cell.front(), set.equal(key).value()));

  const IndexTerms list = terms_of(make_list(int_type(), false), on("v", IndexTarget::kValues));
  cell.path = "anywhere";
  cell.value = value;
  of_cell.clear();
  REQUIRE(list.add_cell(cell, of_cell));
  CHECK(is_inside(of_cell.front(), list.equal(value).value()));

  // Keys of this type have a mark behind the value.
  for (const TypePtr& key_type : {text_type(), varint_type()}) {
    const TypePtr map_type = make_map(key_type, int_type(), false);
    const Bytes map_key = key_type->kind() == TypeKind::kText ? key : Bytes("\0\1", 2);
    const Bytes map_path = bytes(key_type, map_key);
    const Bytes entry =
        key_type->kind() == TypeKind::kText ? value : value + map_key + Bytes("\0\0\0\2\1", 5);
    cell.path = map_path;
    cell.value = entry;
    const std::vector<std::pair<BytesView, BytesView>> entries = {{map_key, value}};
    for (const IndexTarget target :
         {IndexTarget::kKeys, IndexTarget::kValues, IndexTarget::kEntries}) {
      const IndexTerms map = terms_of(map_type, on("v", target));
      of_cell.clear();
      REQUIRE(map.add_cell(cell, of_cell));
      CHECK(of_cell == std::vector{component_of(map, join_map(entries))});
      const auto bounds = target == IndexTarget::kEntries ? map.entry(map_key, value)
                          : target == IndexTarget::kKeys  ? map.equal(map_key)
                                                          : map.equal(value);
      CHECK(is_inside(of_cell.front(), bounds.value()));
    }
  }
}

TEST_CASE("key columns have components, whatever their direction") {
  const std::vector<BytesView> key_values = {"\0\0\0\1", "two"};
  const TypePtr type = int_type();
  std::vector<Bytes> components;
  const IndexTerms k2 = terms_of(type, on("k2"));
  REQUIRE(
      k2.add_partition_key(partitioner::serialize_partition_key(key_values).value(), components));
  CHECK(is_inside(components.front(), k2.equal("two").value()));

  Bytes clustering;
  REQUIRE(append_ordered(clustering, *int_type(), make_int(4), true));
  const Bytes prefix = clustering;
  REQUIRE(append_ordered(clustering, *text_type(), "c", false));
  for (const char* const name : {"c1", "c2"}) {
    const IndexTerms terms = terms_of(type, on(name));
    components.clear();
    REQUIRE(terms.add_clustering_key(clustering, components));
    REQUIRE(components.size() == 1);
    const Bytes value = std::string_view(name) == "c1" ? make_int(4) : Bytes("c");
    CHECK(components.front() == component_of(terms, value));
  }
  components.clear();
  REQUIRE(terms_of(type, on("c2")).add_clustering_key(prefix, components));
  CHECK(components.empty());
  CHECK_FALSE(terms_of(type, on("c2")).add_clustering_key("\x33", components));
}

TEST_CASE("grams of a text are found by any part of it") {
  IndexSchema index = on("v");
  index.index_class = IndexClass::kSasi;
  index.options = {
      {"target", "v"},
      {"mode", "CONTAINS"},
      {"analyzer_class", "org.apache.cassandra.index.sasi.analyzer.NonTokenizingAnalyzer"},
      {"case_sensitive", "false"}};
  const IndexTerms terms = terms_of(text_type(), index);
  std::mt19937 random(11);
  const std::vector<std::string> letters = {"a", "B", "ä", "ẞ", "漢", "𐐀", "\x7f"};
  const auto text = [&](size_t size) {
    Bytes out;
    for (size_t i = 0; i < size; ++i) out += letters[random() % letters.size()];
    return out;
  };
  for (int i = 0; i < 500; ++i) {
    const Bytes before = text(random() % 4), part = text(1 + random() % 5),
                behind = text(random() % 4);
    const Bytes value = before + part + behind;
    std::vector<Bytes> components;
    REQUIRE(terms.add_value(value, components));
    const auto has = [&](const Result<storage::IndexBounds>& bounds) {
      return std::ranges::any_of(
          components, [&](const Bytes& component) { return is_inside(component, bounds.value()); });
    };
    CHECK(has(terms.having(part)));
    CHECK(has(terms.beginning(before + part)));
    CHECK(has(terms.ending(part + behind)));
    CHECK(has(terms.equal(value)));
    for (const Bytes& a : components) {
      for (const Bytes& b : components) CHECK((a == b || !b.starts_with(a)));
    }
  }
  std::vector<Bytes> components;
  REQUIRE(terms.add_value("", components));
  REQUIRE(terms.add_value(Bytes(1024, 'x'), components));
  CHECK(components.empty());
  REQUIRE(terms.add_value(Bytes(1023, 'x'), components));
  CHECK(components.size() == 1024);
  CHECK(is_inside(components.front(), terms.beginning(Bytes(300, 'X')).value()));
}

TEST_CASE("words between delimiters are terms of their own") {
  IndexSchema index = on("v");
  index.index_class = IndexClass::kSasi;
  index.options = {{"target", "v"},
                   {"analyzed", "true"},
                   {"analyzer_class", "org.apache.cassandra.index.sasi.analyzer.DelimiterAnalyzer"},
                   {"delimiter", "░"}};
  const IndexTerms terms = terms_of(text_type(), index);
  std::vector<Bytes> components;
  REQUIRE(
      terms.add_value("░one░two░░" + Bytes(1023, 'x') + "░" + Bytes(1024, 'y') + "░▒", components));
  REQUIRE(components.size() == 4);
  const auto found = [&](const Result<storage::IndexBounds>& bounds) {
    std::string out;
    for (const Bytes& component : components)
      out += is_inside(component, bounds.value()) ? 'y' : 'n';
    return out;
  };
  CHECK(found(terms.equal("one")) == "ynnn");
  CHECK(found(terms.equal("░two")) == "nynn");
  CHECK(found(terms.equal("on")) == "nnnn");
  CHECK(found(terms.beginning("on")) == "ynnn");
  CHECK(found(terms.beginning(Bytes(300, 'x'))) == "nnyn");
  CHECK(found(terms.equal("▒")) == "nnny");
  // Of several words, what sorts between them, too; of none, all.
  CHECK(found(terms.equal("one░▒")) == "yyyy");
  CHECK(found(terms.beginning("tw░on")) == "yynn");
  CHECK(found(terms.equal("░░")) == "yyyy");
  components.clear();
  REQUIRE(terms.add_value("░░", components));
  REQUIRE(terms.add_value("", components));
  CHECK(components.empty());
}

TEST_CASE("parts of words are found in the mode CONTAINS") {
  const std::string analyzers = "org.apache.cassandra.index.sasi.analyzer.";
  IndexSchema index = on("v");
  index.index_class = IndexClass::kSasi;
  index.options = {{"target", "v"},
                   {"mode", "CONTAINS"},
                   {"analyzer_class", analyzers + "StandardAnalyzer"},
                   {"tokenization_locale", "en"},
                   {"tokenization_normalize_lowercase", "true"},
                   {"tokenization_skip_stop_words", "true"},
                   {"tokenization_enable_stemming", "true"}};
  std::vector<Bytes> components;
  const auto has = [&](const Result<storage::IndexBounds>& bounds) {
    return std::ranges::any_of(
        components, [&](const Bytes& component) { return is_inside(component, bounds.value()); });
  };
  const IndexTerms terms = terms_of(text_type(), index);
  REQUIRE(terms.add_value("The Quick foxes, quick connections!", components));
  CHECK(components.size() == 3 + 5 + 3 + 7);  // quick, fox, connect, their grams: each once
  CHECK(has(terms.having("UIC")));
  CHECK(has(terms.having("nec")));
  CHECK(has(terms.ending("ck")));
  CHECK(has(terms.equal("fox")));
  CHECK(has(terms.equal("connecting")));
  CHECK_FALSE(terms.having("the")->upper);  // no word: the whole index
  CHECK_FALSE(has(terms.having("ions")));
  CHECK_FALSE(has(terms.ending("qui")));
  CHECK_FALSE(has(terms.equal("qui")));
  // The grams and the terms between those of both words.
  CHECK(has(terms.having("nothing quick")));
  components.clear();
  REQUIRE(terms.add_value("the and of ...", components));
  REQUIRE(terms.add_value(Bytes(kSasiPartsBytesMax + 1, 'x'), components));
  CHECK(components.empty());
}

TEST_CASE("where a row must have every word, the longest one is looked up") {
  TableSchema table = table_of(text_type());
  IndexSchema index = on("v");
  index.index_class = IndexClass::kSasi;
  index.options = {{"target", "v"}, {"analyzed", "true"}};
  CHECK_FALSE(needs_every_word(table, *table.find("v")));
  CHECK(IndexTerms::of(table, index)->equal("big b")->lower !=
        IndexTerms::of(table, index)->equal("big b")->upper);
  table.set_columns({column("k", int_type(), ColumnKind::kPartitionKey, 0, 0),
                     column("v", text_type(), ColumnKind::kRegular, 0, 1)});
  CHECK(needs_every_word(table, *table.find("v")));
  const IndexTerms terms = IndexTerms::of(table, index).value();
  CHECK(terms.equal("b big c")->lower == terms.equal("big")->lower);
  CHECK(terms.equal("b big c")->upper == terms.equal("big")->upper);
}

TEST_CASE("options of words of SASI indexes are checked") {
  const std::string standard = "org.apache.cassandra.index.sasi.analyzer.StandardAnalyzer";
  const auto answer = [&](std::map<std::string, std::string> options) {
    const TableSchema table = table_of(text_type());
    options.try_emplace("analyzer_class", standard);
    const auto checked = check_sasi_index(table, *table.find("v"), options);
    return checked ? std::string() : checked.error().message;
  };
  const char* const stems = "tokenization_enable_stemming";
  const char* const skips = "tokenization_skip_stop_words";
  const char* const locale = "tokenization_locale";
  CHECK(answer({}).empty());
  CHECK(
      answer({{"mode", "CONTAINS"}, {stems, "true"}, {skips, "true"}, {locale, "en_GB"}}).empty());
  // A language for which Cassandra has nothing, or of which nothing is asked.
  CHECK(answer({{stems, "true"}, {skips, "true"}, {locale, "ja"}}).empty());
  CHECK(answer({{stems, "false"}, {locale, "de"}}).empty());
  CHECK(answer({{skips, "true"}, {locale, "nl"}}).empty());
  CHECK(answer({{stems, "true"}, {locale, "DE_at"}}) ==
        "not supported yet: tokenization_enable_stemming with the tokenization_locale 'DE_at'");
  CHECK(answer({{skips, "true"}, {locale, "fr"}}) ==
        "not supported yet: tokenization_skip_stop_words with the tokenization_locale 'fr'");
  CHECK(answer({{"is_literal", "false"}}) ==
        "not supported yet: SASI indexes on the words of texts with is_literal false");
  CHECK(answer({{stems, "true"}, {skips, "true"}, {locale, "de"}, {"analyzed", "false"}}).empty());
}

TEST_CASE("an index that does not fit its column is refused") {
  CHECK_FALSE(IndexTerms::of(table_of(int_type()), on("nowhere")));
  CHECK_FALSE(IndexTerms::of(table_of(int_type()), on("v", IndexTarget::kKeys)));
  CHECK_FALSE(IndexTerms::of(table_of(make_list(int_type(), false)), on("v")));
  CHECK_FALSE(IndexTerms::of(table_of(make_list(int_type(), false)), on("v", IndexTarget::kFull)));
  const TypePtr frozen = make_list(int_type(), true);
  CHECK(IndexTerms::of(table_of(frozen), on("v", IndexTarget::kFull)));
  std::vector<Bytes> components;
  CHECK_FALSE(terms_of(int_type(), on("v")).add_value("abc", components));
  CHECK(components.empty());
}

}  // namespace
}  // namespace tetrad::cql
