// SPDX-License-Identifier: Apache-2.0
// Vectors: distances, searches without and with a graph, and what a store does with its graphs.
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "base/random.h"
#include "storage/index/graph_search.h"
#include "storage/index/store_graphs.h"
#include "storage/vectors/search_width.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

constexpr uint32_t kVectorColumn = 4;

Bytes vector_bytes(const std::vector<float>& elements) {
  Bytes bytes(4 * elements.size(), '\0');
  for (size_t i = 0; i < elements.size(); ++i)
    base::store_big_endian(bytes.data() + 4 * i, std::bit_cast<uint32_t>(elements[i]));
  return bytes;
}

std::vector<float> random_vector(base::Random& random, size_t dimension) {
  std::vector<float> vector;
  for (size_t i = 0; i < dimension; ++i)
    vector.push_back(static_cast<float>(random.below(20'001)) / 10'000 - 1);
  return vector;
}

ReadCommand search_for(const std::vector<float>& vector, uint32_t rows_max,
                       Similarity similarity = Similarity::kEuclidean) {
  ReadCommand command = range_read();
  command.nearest = {kVectorColumn, similarity, vector_bytes(vector), rows_max, false, {}};
  return command;
}

/// "key" and the distance of each row that is named.
std::map<std::string, double> named(const ReadResult& result) {
  std::map<std::string, double> all;
  for (const PartitionData& partition : result.partitions)
    for (const RowData& row : partition.rows)
      all[std::string(partition.partition_key) + "/" + std::string(row.clustering_key)] =
          std::bit_cast<double>(base::load_big_endian<uint64_t>(row.record.data()));
  return all;
}

/// Rows with vectors, as they are.
struct Model {
  std::map<std::string, std::vector<float>> rows;

  std::set<std::string> nearest(const std::vector<float>& to, size_t count, Similarity s) const {
    const QueryVector query(s, vector_bytes(to));
    std::vector<std::pair<double, std::string>> all;
    for (const auto& [key, vector] : rows)
      all.emplace_back(*query.distance_of(vector_bytes(vector)), key);
    std::ranges::sort(all);
    std::set<std::string> keys;
    for (size_t i = 0; i < std::min(count, all.size()); ++i) keys.insert(all[i].second);
    return keys;
  }
};

struct Vectors : StoreRig {
  Model model;
  int64_t timestamp = 10;

  explicit Vectors(std::shared_ptr<StoreFactory> made) : StoreRig(std::move(made)) {}

  void put(int key, const std::vector<float>& vector, int32_t ttl = 0, int64_t expiry = 0) {
    const std::string name = "k" + std::to_string(key);
    const Bytes bytes = vector_bytes(vector);
    REQUIRE(apply(row_mutation(key * 1000, name, "c",
                               encoded(record_of(
                                   {value_cell(kVectorColumn, ++timestamp, bytes, ttl, expiry)},
                                   {timestamp, 0, 0}))))
                .has_value());
    model.rows[name + "/c"] = vector;
  }
  void erase(int key) {
    const std::string name = "k" + std::to_string(key);
    REQUIRE(apply(row_mutation(key * 1000, name, "c",
                               encoded(record_of({}, {}, {++timestamp, kNow_s}))))
                .has_value());
    model.rows.erase(name + "/c");
  }
  std::map<std::string, double> search(const std::vector<float>& vector, uint32_t rows_max,
                                       Similarity similarity = Similarity::kEuclidean) {
    auto result = read(search_for(vector, rows_max, similarity));
    if (!result) FAIL(result.error().message);
    last_exhausted = result->exhausted;
    return named(*result);
  }
  /// Named rows are there, with their distances of now; how many of the nearest are among them.
  size_t check(const std::vector<float>& vector, uint32_t count, uint32_t rows_max,
               Similarity similarity = Similarity::kEuclidean) {
    const auto found = search(vector, rows_max, similarity);
    const QueryVector query(similarity, vector_bytes(vector));
    for (const auto& [key, distance] : found) {
      const auto row = model.rows.find(key);
      REQUIRE(row != model.rows.end());
      CHECK(query.distance_of(vector_bytes(row->second)) == distance);
    }
    size_t hits = 0;
    for (const std::string& key : model.nearest(vector, count, similarity))
      hits += found.contains(key);
    return hits;
  }
  bool last_exhausted = false;
};

StoreOptions with_graphs(uint64_t bytes = 64 << 20) {
  StoreOptions options = small_options();
  options.vector_graph_bytes = bytes;
  options.vector_graph_min = 200;
  return options;
}

}  // namespace

TEST_CASE("distances put vectors in the order of their similarities") {
  const Bytes query = vector_bytes({1, 0});
  const auto distance = [&](Similarity similarity, const std::vector<float>& vector) {
    return QueryVector(similarity, query).distance_of(vector_bytes(vector));
  };
  CHECK(distance(Similarity::kEuclidean, {4, 4}) == 25.0);
  CHECK(distance(Similarity::kDotProduct, {4, 4}) == -4.0);
  CHECK(*distance(Similarity::kCosine, {5, 0}) == Approx(-1));
  CHECK(*distance(Similarity::kCosine, {0, 5}) == Approx(0).margin(1e-12));
  CHECK(*distance(Similarity::kCosine, {-5, 0}) == Approx(1));
  // What has no distance.
  CHECK_FALSE(distance(Similarity::kCosine, {0, 0}));
  CHECK_FALSE(distance(Similarity::kEuclidean, {1, 2, 3}));
  CHECK_FALSE(distance(Similarity::kEuclidean, {std::numeric_limits<float>::quiet_NaN(), 0}));
  CHECK_FALSE(distance(Similarity::kDotProduct, {std::numeric_limits<float>::infinity(), 0}));
  CHECK(fault_of(Similarity::kCosine, vector_bytes({0, -0.0F})) == VectorFault::kZero);
  CHECK(fault_of(Similarity::kDotProduct, vector_bytes({0, 0})) == VectorFault::kNone);
  CHECK(fault_of(Similarity::kEuclidean,
                 vector_bytes({0, -std::numeric_limits<float>::infinity()})) ==
        VectorFault::kNotFinite);
}

TEST_CASE("a search for the nearest travels as it is, and damaged ones are refused") {
  ReadCommand command = search_for({1, 2, 3}, 17, Similarity::kDotProduct);
  command.nearest->favours_recall = true;
  command.nearest->graph_range = {position_of(-5), position_of(9)};
  Bytes bytes;
  encode_read_command(command, bytes);
  const auto back = decode_read_command(bytes);
  REQUIRE(back.has_value());
  CHECK(back->nearest == command.nearest);
  CHECK(back->range == command.range);
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(decode_read_command(BytesView(bytes).substr(0, size)).has_value());
  for (auto [rows, dimension] : {std::pair{0U, 3}, {kNearestRowsMax + 1, 3}, {5U, 0}}) {
    ReadCommand wrong = search_for(std::vector<float>(static_cast<size_t>(dimension), 1), rows);
    Bytes encoded_wrong;
    encode_read_command(wrong, encoded_wrong);
    CHECK_FALSE(decode_read_command(encoded_wrong).has_value());
  }
}

TEST_CASE("without a graph the nearest rows are named, all of them and no others") {
  for (const bool is_rocks : {false, true}) {
    CAPTURE(is_rocks);
    Vectors rig(is_rocks ? rocks_factory() : memory_factory());
    base::Random random(5);
    for (int key = 0; key < 300; ++key) rig.put(key, random_vector(random, 3));
    for (int key = 0; key < 300; key += 3) rig.put(key, random_vector(random, 3));
    for (int key = 0; key < 300; key += 7) rig.erase(key);
    rig.put(500, {0, 0, 0}, 10, kNow_s - 1);  // expired
    rig.model.rows.erase("k500/c");
    rig.put(501, {9, 9, 9}, 10, kNow_s + 5);
    for (int i = 0; i < 10; ++i) {
      const auto vector = random_vector(random, 3);
      CHECK(rig.check(vector, 10, 10) == 10);
      CHECK_FALSE(rig.last_exhausted);
    }
    CHECK(rig.search({0, 0, 0}, 1000).size() == rig.model.rows.size());
    CHECK(rig.last_exhausted);
  }
}

TEST_CASE("a part of the ring is searched alone") {
  Vectors rig(rocks_factory());
  for (int key = 0; key < 20; ++key) rig.put(key, {static_cast<float>(key)});
  ReadCommand command = search_for({0}, 5);
  command.range = {position_of(9'999), position_of(14'000)};
  const auto result = rig.read(command);
  REQUIRE(result.has_value());
  CHECK(keys_of(*result) == "k10/c k11/c k12/c k13/c k14/c");
}

TEST_CASE("a graph finds most of the nearest, grows, and says when it is full") {
  for (const Similarity similarity :
       {Similarity::kCosine, Similarity::kDotProduct, Similarity::kEuclidean}) {
    auto graph = make_vector_graph(similarity, 8, 1000);
    REQUIRE(graph.has_value());
    base::Random random(7);
    Model model;
    const auto add = [&](int key) {
      const auto vector = random_vector(random, 8);
      model.rows["k" + std::to_string(key)] = vector;
      return (*graph)->add({position_of(key), "k" + std::to_string(key), ""}, vector_bytes(vector));
    };
    for (int key = 0; key < 1000; ++key) REQUIRE(add(key).has_value());
    const auto full = add(1000);
    REQUIRE_FALSE(full.has_value());
    CHECK(full.error().code == ErrorCode::kLimit);
    model.rows.erase("k1000");
    REQUIRE((*graph)->grow(1500).has_value());
    for (int key = 1001; key < 1500; ++key) REQUIRE(add(key).has_value());
    size_t hits = 0;
    for (int i = 0; i < 50; ++i) {
      const auto vector = random_vector(random, 8);
      const auto found = (*graph)->search(QueryVector(similarity, vector_bytes(vector)), 10, 128);
      REQUIRE(found.has_value());
      CHECK(found->size() == 10);
      const auto nearest = model.nearest(vector, 10, similarity);
      for (const auto& one : *found) hits += nearest.contains(std::string(one.place.partition_key));
    }
    CHECK(hits >= 475);
  }
}

TEST_CASE("vectors that are all about as far from each other are found, too") {
  constexpr int kVectors = 9'000, kDimension = 64, kSearches = 40;
  for (const Similarity similarity : {Similarity::kCosine, Similarity::kEuclidean}) {
    auto graph = make_vector_graph(similarity, kDimension, kVectors);
    REQUIRE(graph.has_value());
    base::Random random(21);
    Model model;
    for (int key = 0; key < kVectors; ++key) {
      const auto vector = random_vector(random, kDimension);
      model.rows["k" + std::to_string(key)] = vector;
      REQUIRE(
          (*graph)->add({position_of(key), "k" + std::to_string(key), ""}, vector_bytes(vector)));
    }
    size_t hits = 0;
    for (int i = 0; i < kSearches; ++i) {
      const auto vector = random_vector(random, kDimension);
      const auto found = (*graph)->search(QueryVector(similarity, vector_bytes(vector)), 20, 128);
      REQUIRE(found.has_value());
      CHECK(found->size() == 20);
      const auto nearest = model.nearest(vector, 10, similarity);
      for (const auto& one : *found) hits += nearest.contains(std::string(one.place.partition_key));
    }
    // By the graph alone it is half of them.
    CHECK(hits >= kSearches * 10 * 95 / 100);
  }
}

TEST_CASE("a search is as wide as its checks have shown it to be needed") {
  SearchWidth width;
  CHECK(width.width(128) == 128);
  for (int i = 0; i < 10; ++i) CHECK(width.is_checked(true));
  // Most are missed: four times as wide at once. What was searched with the old width counts no more.
  for (int i = 0; i < 3; ++i) width.note(128, 128, 5, 15);
  CHECK(width.width(128) == 512);
  for (int i = 0; i < 100; ++i) width.note(128, 128, 5, 15);
  CHECK(width.width(128) == 512);
  // One of ten.
  for (int i = 0; i < 3; ++i) width.note(128, 512, 18, 2);
  CHECK(width.width(128) == 1024);
  CHECK(width.is_checked(true));
  // One of a hundred is well enough, and then few are checked.
  for (int i = 0; i < 30; ++i) width.note(128, 1024, 20, i % 5 == 0 ? 1 : 0);
  CHECK(width.width(128) == 1024);
  int checked = 0;
  for (int i = 0; i < 640; ++i) checked += width.is_checked(true) ? 1 : 0;
  CHECK(checked == 10);
  // Other vectors come.
  for (int i = 0; i < 60; ++i) width.note(128, 1024, 15, 5);
  CHECK(width.width(128) == 2048);
  for (int i = 0; i < 1'000; ++i) width.note(128, width.width(128), 0, 20);
  CHECK(width.width(128) == 128 * 256);
}

TEST_CASE("a store with many vectors makes a graph, which shows rows as they are") {
  Vectors rig(rocks_factory(with_graphs()));
  base::Random random(11);
  for (int key = 0; key < 600; ++key) rig.put(key, random_vector(random, 4));
  CHECK(rig.check({0, 0, 0, 0}, 10, 20) == 10);  // all rows are read; it begins a graph
  CHECK(rig.store->statistics().vector_scans == 1);
  const auto hits_of = [&](int queries) {
    size_t hits = 0;
    for (int i = 0; i < queries; ++i) hits += rig.check(random_vector(random, 4), 10, 20);
    return hits;
  };
  rig.reactor.advance_us(1'000'000);
  CHECK(hits_of(30) >= 285);
  CHECK(rig.store->statistics().vector_graphs == 1);
  CHECK(rig.store->statistics().vector_graph_bytes > 0);
  CHECK(rig.store->statistics().vector_graph_searches == 30);
  // New ones, moved ones, deleted ones: at once.
  for (int key = 600; key < 800; ++key) rig.put(key, random_vector(random, 4));
  for (int key = 0; key < 600; key += 4) rig.put(key, random_vector(random, 4));
  for (int key = 1; key < 600; key += 6) rig.erase(key);
  CHECK(hits_of(30) >= 285);
  rig.put(900, {5, 5, 5, 5});
  CHECK(rig.search({5, 5, 5, 5}, 3).contains("k900/c"));
  rig.erase(900);
  CHECK_FALSE(rig.search({5, 5, 5, 5}, 3).contains("k900/c"));
  // As much of the graph as is worth reading all rows: it is exact then.
  CHECK(rig.search({0, 0, 0, 0}, 4000).size() == rig.model.rows.size());
  CHECK(rig.last_exhausted);
}

TEST_CASE("half of a tablet is served from the graph of the whole one") {
  Vectors rig(rocks_factory(with_graphs()));
  base::Random random(13);
  for (int key = 0; key < 600; ++key) rig.put(key, random_vector(random, 4));
  rig.search({0, 0, 0, 0}, 10);
  rig.reactor.advance_us(1'000'000);
  ReadCommand half = search_for({0, 0, 0, 0}, 10);
  half.range = half.nearest->graph_range = {position_of(299'000), position_of(700'000)};
  const auto result = rig.read(half);
  REQUIRE(result.has_value());
  CHECK_FALSE(result->exhausted);
  const auto found = named(*result);
  CHECK(found.size() >= 8);
  for (const auto& [key, distance] : found) CHECK(std::stoi(key.substr(1)) >= 300);
}

TEST_CASE("graphs have a bound: beyond it all rows are read") {
  Vectors rig(rocks_factory(with_graphs(1000)));
  base::Random random(17);
  for (int key = 0; key < 400; ++key) rig.put(key, random_vector(random, 4));
  for (int i = 0; i < 5; ++i) {
    CHECK(rig.check(random_vector(random, 4), 10, 10) == 10);
    rig.reactor.advance_us(100'000);
  }
}

TEST_CASE("graphs: begun where there are many vectors, given up and made anew") {
  StoreGraphs graphs({.bytes_max = 16 << 20, .vectors_min = 100, .idle_us = 1'000'000});
  ReadCommand command = search_for({1, 2}, 5);
  std::optional<Error> refused;
  CHECK(graphs.begin(command, 99, 1, refused) == nullptr);
  CHECK_FALSE(refused);
  ReadCommand part = command;
  part.range = {position_of(1), position_of(5)};
  CHECK(graphs.begin(part, 1000, 1, refused) == nullptr);  // of no whole tablet
  auto graph = graphs.begin(command, 1000, 1, refused);
  REQUIRE(graph != nullptr);
  CHECK(graphs.bytes() > 0);
  CHECK_FALSE(graphs.find(command, 2));  // it is not built
  CHECK(graphs.begin(command, 1000, 3, refused) == nullptr);
  const Bytes vector = vector_bytes({1, 2});
  Mutation mutation =
      row_mutation(5, "k", "c", encoded(record_of({value_cell(kVectorColumn, 1, vector)})));
  graphs.note(mutation);
  mutation.incarnation = {99};
  graphs.note(mutation);  // another table's
  CHECK(graph->noted_count == 1);
  graphs.finish(graph);
  const auto view = graphs.find(command, 4);
  REQUIRE(view);
  CHECK(view->noted.size() == 1);
  CHECK_FALSE(view->is_of_more);
  CHECK(graphs.find(part, 4)->is_of_more);
  CHECK(graphs.note_search(command, {5000, 0, 1000}, 5, refused) == nullptr);
  const auto next =
      graphs.note_search(command, {5000, 0, 2000}, 5, refused);  // much of it is stale
  REQUIRE(next != nullptr);
  CHECK(graphs.find(command, 6)->vectors == graph->vectors);
  graphs.finish(next);
  CHECK(graphs.find(command, 7)->vectors == next->vectors);
  // No room: refused once with a reason, then silently for some time.
  ReadCommand large = search_for(std::vector<float>(64, 1), 5);
  CHECK(graphs.begin(large, 100'000, 10, refused) == nullptr);
  REQUIRE(refused);
  CHECK(refused->code == ErrorCode::kLimit);
  refused.reset();
  CHECK(graphs.begin(large, 100'000, 11, refused) == nullptr);
  CHECK_FALSE(refused);
  graphs.forget_idle(2'000'000);
  CHECK(graphs.bytes() == 0);
  CHECK(graphs.is_empty());
  CHECK_FALSE(graphs.find(part, 2'000'001));
}

TEST_CASE("graphs of halves take the place of that of the whole when both are made") {
  StoreGraphs graphs({.bytes_max = 16 << 20, .vectors_min = 100});
  std::optional<Error> refused;
  ReadCommand whole = search_for({1, 2}, 5);
  whole.range = whole.nearest->graph_range = {position_of(0), position_of(100)};
  ReadCommand left = whole, right = whole;
  left.range = left.nearest->graph_range = {position_of(0), position_of(40)};
  right.range = right.nearest->graph_range = {position_of(40), position_of(100)};
  const auto begun = graphs.begin(whole, 1000, 1, refused);
  REQUIRE(begun != nullptr);
  for (int i = 0; i < 1000; ++i)
    REQUIRE(begun->vectors->add({position_of(i % 100), "k", ""}, vector_bytes({1, 2})));
  graphs.finish(begun);
  // A search by a wider graph begins one of the half that it asks for, as large as its part.
  CHECK(graphs.note_search(left, {0, 0, 0}, 2, refused) == nullptr);
  CHECK(graphs.note_search(left, {40, 38, 0}, 2, refused) == nullptr);  // of few vectors
  const auto of_left = graphs.note_search(left, {40, 20, 0}, 2, refused);
  REQUIRE(of_left != nullptr);
  CHECK(graphs.note_search(left, {40, 20, 0}, 2, refused) == nullptr);  // it is on its way
  graphs.finish(of_left);
  CHECK(graphs.find(left, 3)->vectors == of_left->vectors);
  CHECK_FALSE(graphs.find(left, 3)->is_of_more);
  CHECK(graphs.find(right, 3)->vectors == begun->vectors);
  const auto of_right = graphs.note_search(right, {40, 20, 0}, 4, refused);
  REQUIRE(of_right != nullptr);
  graphs.finish(of_right);
  CHECK(graphs.count() == 2);
  CHECK_FALSE(graphs.find(whole, 5));
  // Merged again: the whole one's takes the place of both.
  const auto merged = graphs.begin(whole, 1000, 6, refused);
  REQUIRE(merged != nullptr);
  graphs.finish(merged);
  CHECK(graphs.count() == 1);
  CHECK(graphs.find(right, 7)->vectors == merged->vectors);
}

TEST_CASE("graphs that fail are not begun again at once, and are let go of elsewhere") {
  size_t gone = 0;
  StoreGraphs graphs(
      {.bytes_max = 4 << 20, .vectors_min = 10},
      [&](const std::shared_ptr<GraphInMaking>& graph) { gone += graph != nullptr; });
  const ReadCommand command = search_for({1, 2}, 5);
  std::optional<Error> refused;
  auto graph = graphs.begin(command, 100, 1, refused);
  REQUIRE(graph != nullptr);
  graphs.drop(graph, 2);
  CHECK(gone == 1);
  CHECK(graphs.bytes() == 0);
  CHECK(graphs.begin(command, 100, 3, refused) == nullptr);
  CHECK_FALSE(refused);
  graph = graphs.begin(command, 100, 700'000'000, refused);
  REQUIRE(graph != nullptr);
  graphs.finish(graph);
  // A vector whose distances floats cannot have.
  const Bytes vector = vector_bytes({3e19F, 0});
  graphs.note(
      row_mutation(5, "k", "c", encoded(record_of({value_cell(kVectorColumn, 1, vector)}))));
  CHECK_FALSE(graphs.find(command, 700'000'001));
  CHECK(graphs.begin(command, 100, 700'000'002, refused) == nullptr);
  CHECK(gone == 2);
}

TEST_CASE("long keys of rows in a graph are charged") {
  StoreGraphs graphs({.bytes_max = 4 << 20, .vectors_min = 10});
  std::optional<Error> refused;
  const ReadCommand command = search_for({1, 2}, 5);
  const auto graph = graphs.begin(command, 100, 1, refused);
  REQUIRE(graph != nullptr);
  const uint64_t before = graphs.bytes();
  REQUIRE(graph->vectors->add({position_of(1), Bytes(10'064, 'k'), ""}, vector_bytes({1, 2})));
  CHECK(graphs.charge_keys(*graph));
  CHECK(graphs.bytes() == before + 10'000);
  REQUIRE(graph->vectors->add({position_of(1), Bytes(2 << 20, 'k'), ""}, vector_bytes({1, 2})));
  CHECK_FALSE(graphs.charge_keys(*graph));
  graphs.drop(graph, 2);
  CHECK(graphs.bytes() == 0);
}

TEST_CASE("what is named has a bound in bytes, and nothing is nearer than what is left out") {
  for (const bool is_rocks : {false, true}) {
    Vectors rig(is_rocks ? rocks_factory() : memory_factory());
    const std::string filler(60'000, 'x');
    for (int i = 0; i < 40; ++i) {
      const std::string name = i % 2 == 0 ? filler + std::to_string(i) : std::to_string(i);
      const Bytes bytes = vector_bytes({static_cast<float>(i)});
      REQUIRE(rig.apply(
          row_mutation(1000 - i, name, "c",
                       encoded(record_of({value_cell(kVectorColumn, 5, bytes)}, {5, 0, 0})))));
    }
    // Those before row 34 have keys of 1.02 MB, with its key there is no more room.
    const auto found = rig.search({0}, 100);
    CHECK_FALSE(rig.last_exhausted);
    CHECK(found.size() == 34);
    for (const auto& [key, distance] : found) CHECK(distance <= 33 * 33);
  }
}

TEST_CASE("a store measures all rows where a graph cannot have the vectors") {
  Vectors rig(rocks_factory(with_graphs()));
  base::Random random(23);
  for (int key = 0; key < 300; ++key) rig.put(key, random_vector(random, 4));
  rig.put(300, {3e38F, -3e38F, 3e38F, -3e38F});
  for (int i = 0; i < 3; ++i) {
    CHECK(rig.check(random_vector(random, 4), 10, 10, Similarity::kDotProduct) == 10);
    rig.reactor.advance_us(1'000'000);
  }
  // A graph of others is not asked for such a one.
  rig.erase(300);
  rig.reactor.advance_us(700'000'000);
  for (int i = 0; i < 3; ++i) {
    rig.check(random_vector(random, 4), 10, 10);
    rig.reactor.advance_us(1'000'000);
  }
  rig.check({3e38F, 3e38F, 3e38F, 3e38F}, 10, 10);
  CHECK(rig.search({3e38F, 3e38F, 3e38F, 3e38F}, 10).size() == 10);
}

TEST_CASE("a graph whose rows have moved is made anew") {
  Vectors rig(rocks_factory(with_graphs()));
  base::Random random(29);
  for (int key = 0; key < 300; ++key) rig.put(key, random_vector(random, 4));
  rig.search({0, 0, 0, 0}, 10);
  rig.reactor.advance_us(1'000'000);
  for (int round = 0; round < 8; ++round) {
    for (int key = 0; key < 300; ++key) rig.put(key, random_vector(random, 4));
    rig.reactor.advance_us(1'000'000);
  }
  // Eight of nine in the graph are of no row any more.
  size_t hits = 0;
  for (int i = 0; i < 400; ++i) {
    rig.search(random_vector(random, 4), 20);
    if (i % 50 == 0) rig.reactor.advance_us(1'000'000);
  }
  for (int i = 0; i < 30; ++i) hits += rig.check(random_vector(random, 4), 10, 20);
  CHECK(hits >= 285);
}

TEST_CASE("a graph that cannot keep up with writes is given up") {
  StoreGraphs graphs({.bytes_max = 4 << 20, .vectors_min = 10});
  const ReadCommand command = search_for({1, 2}, 5);
  std::optional<Error> refused;
  const auto graph = graphs.begin(command, 100, 1, refused);
  REQUIRE(graph != nullptr);
  const Bytes vector = vector_bytes({1, 2});
  const Mutation mutation =
      row_mutation(5, "k", "c", encoded(record_of({value_cell(kVectorColumn, 1, vector)})));
  for (int i = 0; i < 10'000 && graphs.has(graph); ++i) graphs.note(mutation);
  CHECK_FALSE(graphs.has(graph));
  CHECK(graphs.bytes() == 0);
}

}  // namespace tetrad::storage
