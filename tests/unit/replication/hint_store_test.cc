// SPDX-License-Identifier: Apache-2.0
#include "replication/hints/hint_store.h"

#include <catch2/catch.hpp>

#include "partitioner/token.h"
#include "storage/engine/memory_store.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::replication {

namespace {

storage::Mutation mutation_of(const std::string& key) {
  storage::Mutation mutation;
  mutation.incarnation = TableIncarnation{7};
  mutation.partition_key = key;
  mutation.position = partitioner::position_of(key);
  return mutation;
}

struct Hints {
  tests::ManualReactor reactor;
  std::shared_ptr<storage::MemoryDisk> disk = std::make_shared<storage::MemoryDisk>();
  std::unique_ptr<storage::LocalLog> log = storage::make_memory_local_log(disk, reactor, "hints");
  HintOptions options;
  std::unique_ptr<HintStore> store;
  StoreAddress peer{HostId{}, 1};

  Hints() { open(); }
  void open() {
    store = std::make_unique<HintStore>(*log, options);
    REQUIRE(store->open());
  }
  void add(const std::string& key, int64_t now_us = 1) {
    store->add(peer, mutation_of(key), now_us);
  }
  void settle() { reactor.run_until_idle(); }
  HintStore::Page page(size_t most = 10) {
    std::optional<HintStore::Page> got;
    store->read_page(peer, most, [&](Result<HintStore::Page> page) {
      REQUIRE(page);
      got = std::move(*page);
    });
    settle();
    REQUIRE(got);
    return std::move(*got);
  }
  std::string keys(const HintStore::Page& page) {
    std::string out;
    for (const auto& hint : page.hints) out += hint.mutation.partition_key;
    return out;
  }
};

}  // namespace

TEST_CASE("hints are read once each, in order, however late their removal is") {
  Hints hints;
  for (const char* key : {"a", "b", "c", "d", "e"}) hints.add(key);
  CHECK(hints.store->pending_count() == 5);
  hints.settle();
  HintStore::Page page = hints.page(2);
  CHECK(hints.keys(page) == "ab");
  hints.store->finish_page(hints.peer, page, {});
  CHECK(hints.store->pending_count(hints.peer) == 3);
  // Nothing was saved yet: the log still holds all of them.
  page = hints.page(2);
  CHECK(hints.keys(page) == "cd");
  hints.store->finish_page(hints.peer, page, {});
  page = hints.page(2);
  CHECK(hints.keys(page) == "e");
  hints.store->finish_page(hints.peer, page, {});
  CHECK(hints.store->pending_count() == 0);
  CHECK(hints.store->pending_bytes(hints.peer) == 0);
  CHECK(hints.store->replicas().empty());
  CHECK(hints.page().hints.empty());
}

TEST_CASE("a refused hint waits behind the others, as old as it was") {
  Hints hints;
  hints.add("a", 11);
  hints.add("b", 12);
  hints.add("c", 13);
  hints.settle();
  HintStore::Page page = hints.page(2);
  hints.store->finish_page(hints.peer, page, {&page.hints[0]});
  CHECK(hints.store->pending_count() == 2);
  hints.settle();
  page = hints.page();
  CHECK(hints.keys(page) == "ca");
  CHECK(page.hints[1].created_us == 11);
}

TEST_CASE("hints that are still on their way to disk are neither lost nor read too early") {
  Hints hints;
  hints.add("a");
  hints.settle();
  hints.add("b");
  std::optional<HintStore::Page> got;
  hints.store->read_page(hints.peer, 10,
                         [&](Result<HintStore::Page> page) { got = std::move(*page); });
  hints.settle();
  REQUIRE(got);
  hints.store->finish_page(hints.peer, *got, {});
  std::string all = hints.keys(*got);
  const HintStore::Page rest = hints.page();
  all += hints.keys(rest);
  hints.store->finish_page(hints.peer, rest, {});
  CHECK(all == "ab");
  CHECK(hints.store->pending_count() == 0);
}

TEST_CASE("after a restart hints are there again, but for what was done before the last save") {
  Hints hints;
  for (const char* key : {"a", "b", "c", "d"}) hints.add(key);
  hints.settle();
  HintStore::Page page = hints.page(2);
  hints.store->finish_page(hints.peer, page, {});
  hints.store->save_places();
  hints.add("e");
  hints.settle();
  page = hints.page(1);
  hints.store->finish_page(hints.peer, page, {});
  CHECK(hints.store->pending_count() == 2);
  const uint64_t bytes = hints.store->pending_bytes(hints.peer);
  hints.open();
  CHECK(hints.store->pending_count() == 3);
  CHECK(hints.store->pending_bytes(hints.peer) > bytes);
  CHECK(hints.keys(hints.page()) == "cde");
  // And where nothing was ever saved.
  Hints fresh;
  fresh.add("x");
  fresh.add("y");
  fresh.settle();
  fresh.open();
  CHECK(fresh.store->pending_count() == 2);
  CHECK(fresh.keys(fresh.page()) == "xy");
}

TEST_CASE("shards that share a log have queues of their own") {
  Hints hints;
  hints.add("a");
  HintOptions other;
  other.shard = 3;
  HintStore third(*hints.log, other);
  REQUIRE(third.open());
  third.add(hints.peer, mutation_of("z"), 1);
  hints.settle();
  hints.open();
  CHECK(hints.store->pending_count() == 1);
  CHECK(hints.keys(hints.page()) == "a");
  HintStore again(*hints.log, other);
  REQUIRE(again.open());
  CHECK(again.pending_count() == 1);
}

TEST_CASE("a place among another shard's hints is refused as damaged") {
  Hints hints;
  hints.add("a");
  hints.store->save_places();
  hints.settle();
  const auto saved = hints.log->scan("hinm/", "hinm0", 10);
  REQUIRE(saved);
  REQUIRE(saved->size() == 1);
  Bytes value = saved->front().second;
  REQUIRE(value.size() == 25);          // version, low, head, bytes
  value[1 + 1] = value[1 + 8 + 1] = 3;  // the shard, in low and in head
  hints.log->write({{saved->front().first, value}}, true, [](Result<void>) {});
  hints.settle();
  HintStore damaged(*hints.log, hints.options);
  const Result<void> opened = damaged.open();
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::kCorruption);
}

TEST_CASE("hints are bounded for a replica and for all, and a removed replica's go at once") {
  Hints hints;
  hints.add("a");
  const uint64_t one = hints.store->pending_bytes(hints.peer);
  hints.options.bytes_per_replica_max = 3 * one;
  hints.options.bytes_max = 4 * one;
  hints.settle();
  hints.open();
  for (const char* key : {"b", "c", "d", "e"}) hints.add(key);
  CHECK(hints.store->pending_count(hints.peer) == 3);
  CHECK(hints.store->metrics().refused.value() == 2);
  const StoreAddress other{HostId{}, 2};
  hints.store->add(other, mutation_of("f"), 1);
  hints.store->add(other, mutation_of("g"), 1);
  CHECK(hints.store->pending_count() == 4);
  hints.store->drop_all(hints.peer);
  CHECK(hints.store->pending_count() == 1);
  CHECK(hints.store->metrics().dropped.value() == 3);
  hints.settle();
  hints.store->save_places();
  hints.settle();
  hints.open();
  CHECK(hints.store->pending_count() == 1);
}

}  // namespace tetrad::replication
