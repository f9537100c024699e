// SPDX-License-Identifier: Apache-2.0
#include "replication/batches/batch_store.h"

#include <catch2/catch.hpp>

#include "storage/engine/memory_store.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::replication {

namespace {

Uuid id_of(uint8_t number) {
  Uuid id;
  id.octets[15] = number;
  return id;
}

BatchHead head_of(uint8_t number, int64_t created_us = 100) {
  BatchHead head;
  head.id = id_of(number);
  head.created_us = created_us;
  return head;
}

/// Writes fail while it is told to.
class RefusingLog final : public storage::LocalLog {
 public:
  explicit RefusingLog(storage::LocalLog& inner) : inner_(inner) {}
  void write(std::vector<Operation> batch, bool sync, DoneCallback done) override {
    if (refuses) return done(fail(ErrorCode::kIo, "no room"));
    inner_.write(std::move(batch), sync, std::move(done));
  }
  Result<std::optional<Bytes>> get(BytesView key) override { return inner_.get(key); }
  Result<Pairs> scan(BytesView start, BytesView end, size_t limit) override {
    return inner_.scan(start, end, limit);
  }
  void scan_later(Bytes start, Bytes end, size_t limit, uint64_t bytes_max,
                  PairsCallback done) override {
    inner_.scan_later(std::move(start), std::move(end), limit, bytes_max, std::move(done));
  }
  void erase_range(Bytes start, Bytes end, DoneCallback done) override {
    inner_.erase_range(std::move(start), std::move(end), std::move(done));
  }
  Result<void> close() override { return {}; }

  bool refuses = false;

 private:
  storage::LocalLog& inner_;
};

struct Batches {
  tests::ManualReactor reactor;
  std::shared_ptr<storage::MemoryDisk> disk = std::make_shared<storage::MemoryDisk>();
  std::unique_ptr<storage::LocalLog> log = storage::make_memory_local_log(disk, reactor, "batches");
  BatchStoreOptions options;
  std::unique_ptr<BatchStore> store;

  Batches() { open(); }
  void open() {
    store = std::make_unique<BatchStore>(*log, reactor, options);
    REQUIRE(store->open([](uint8_t rank) { return 1000 * (1 + rank); }));
  }
  Result<void> add(const BatchHead& head) {
    std::optional<Result<void>> stored;
    store->store(head, encode_batch_entry(head, {}), 1000,
                 [&](Result<void> result) { stored = std::move(result); });
    reactor.run_until_idle();
    REQUIRE(stored.has_value());
    return *stored;
  }
};

}  // namespace

TEST_CASE("the example of an entry in the header decodes") {
  const char bytes[] =
      "\x01\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x01\xc8\x01"
      "\x00\x00\x00\x00\x00\x00\x00\xc8\x07\x00"
      "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
  const Bytes encoded(bytes, sizeof(bytes) - 1);
  const auto entry = decode_batch_entry(encoded);
  REQUIRE(entry);
  CHECK(entry->head.id.octets[15] == 0x10);
  CHECK(entry->head.version == 1);
  CHECK(entry->head.stamp_us == 100);
  CHECK(entry->head.created_us == 200);
  CHECK(entry->head.applied == MetaIndex{7});
  CHECK(entry->head.rank == 0);
  CHECK(entry->head.other.value.is_nil());
  CHECK(entry->parts.empty());
  CHECK(encode_batch_entry(entry->head, entry->parts) == encoded);
  for (size_t size = 0; size < encoded.size(); ++size)
    CHECK(!decode_batch_entry(BytesView(encoded).substr(0, size)));
  CHECK(!decode_batch_entry(encoded + "x"));
}

TEST_CASE("entries are found again, removed ones are not") {
  Batches batches;
  REQUIRE(batches.add(head_of(1, 50)));
  REQUIRE(batches.add(head_of(2, 40)));
  CHECK(batches.store->oldest_us() == 40);
  batches.store->remove(id_of(2));
  batches.reactor.run_until_idle();
  CHECK(batches.store->count() == 1);
  CHECK(batches.store->oldest_us() == 40);  // a power cut could bring it back
  batches.store->sync_removed();
  batches.reactor.run_until_idle();
  CHECK(batches.store->oldest_us() == 50);
  batches.open();
  CHECK(batches.store->count() == 1);
  CHECK(batches.store->version_of(id_of(1)) == 1u);
  CHECK(batches.store->was_used());
}

TEST_CASE("a store that comes after its removal is refused") {
  Batches batches;
  batches.store->remove(id_of(1));
  const auto stored = batches.add(head_of(1));
  REQUIRE(!stored);
  CHECK(stored.error().code == ErrorCode::kNotFound);
  CHECK(batches.store->count() == 0);
}

TEST_CASE("a later version takes the place of an earlier one, never the other way") {
  Batches batches;
  REQUIRE(batches.add(head_of(1)));
  BatchHead later = head_of(1);
  later.version = 2;
  REQUIRE(batches.add(later));
  CHECK(batches.store->version_of(id_of(1)) == 2u);
  const auto earlier = batches.add(head_of(1));
  REQUIRE(!earlier);
  CHECK(earlier.error().code == ErrorCode::kConflict);
  batches.open();
  CHECK(batches.store->count() == 1);
  CHECK(batches.store->version_of(id_of(1)) == 2u);
}

TEST_CASE("what does not decode is set apart, holds no horizon, and is kept until it is dropped") {
  Batches batches;
  REQUIRE(batches.add(head_of(1, 50)));
  REQUIRE(batches.add(head_of(2, 40)));
  batches.store->set_apart(id_of(2), "what was found");
  batches.store->set_apart(id_of(7), "never held");
  batches.reactor.run_until_idle();
  const auto check = [&](size_t apart) {
    CHECK(batches.store->count() == 1);
    CHECK(batches.store->oldest_us() == 50);
    CHECK(batches.store->apart_count() == apart);
    CHECK(batches.store->due(1'000'000, 10).size() == 1);
  };
  check(1);
  batches.open();
  check(1);
  // The head of another one has rotted.
  REQUIRE(batches.add(head_of(3, 30)));
  const auto pages = batches.log->scan("bat/", "bat0", 10);
  REQUIRE(pages);
  REQUIRE(pages->size() == 2);
  std::vector<storage::LocalLog::Operation> rot;
  rot.push_back({pages->back().first, Bytes("\x07nonsense")});
  batches.log->write(std::move(rot), true, [](Result<void>) {});
  batches.reactor.run_until_idle();
  batches.open();
  batches.reactor.run_until_idle();
  check(2);
  const auto kept = batches.log->scan("bax/", "bax0", 10);
  REQUIRE(kept);
  REQUIRE(kept->size() == 2);
  CHECK((*kept)[0].second == "what was found");
  CHECK((*kept)[1].second == "\x07nonsense");
  REQUIRE(batches.add(head_of(4, 60)));  // of a sequence of its own
  batches.store->remove(id_of(4));
  batches.store->sync_removed();
  batches.reactor.run_until_idle();
  check(2);

  std::optional<size_t> dropped;
  const auto drop = [&] {
    batches.store->drop_apart([&](Result<size_t> result) {
      if (result) dropped = *result;
    });
    batches.reactor.run_until_idle();
  };
  drop();
  CHECK(dropped == 2u);
  check(0);
  drop();
  CHECK(dropped == 0u);
  batches.open();
  check(0);
}

TEST_CASE("of two entries of one id in the log the later version is held, and the other goes") {
  for (const bool later_is_first : {true, false}) {
    Batches batches;
    BatchHead later = head_of(1, 50);
    later.version = 2;
    REQUIRE(batches.add(later_is_first ? later : head_of(1, 50)));
    REQUIRE(batches.add(head_of(2, 60)));  // its place in the log is taken for the second one
    const auto pages = batches.log->scan("bat/", "bat0", 10);
    REQUIRE(pages);
    REQUIRE(pages->size() == 2);
    std::vector<storage::LocalLog::Operation> twice;
    twice.push_back(
        {pages->back().first, encode_batch_entry(later_is_first ? head_of(1, 50) : later, {})});
    batches.log->write(std::move(twice), true, [](Result<void>) {});
    batches.reactor.run_until_idle();
    batches.open();
    batches.reactor.run_until_idle();
    CHECK(batches.store->count() == 1);
    CHECK(batches.store->version_of(id_of(1)) == 2u);
    CHECK(batches.store->apart_count() == 0);
    CHECK(batches.store->due(1'000'000, 10).size() == 1);
    const auto left = batches.log->scan("bat/", "bat0", 10);
    REQUIRE(left);
    REQUIRE(left->size() == 1);
    CHECK(left->front().first == (later_is_first ? pages->front() : pages->back()).first);
    // Nothing of either holds the horizon once the batch is done.
    batches.store->remove(id_of(1));
    batches.store->sync_removed();
    batches.reactor.run_until_idle();
    CHECK(batches.store->oldest_us() == BatchStore::kNone);
    CHECK(batches.store->bytes() == 0);
    CHECK(batches.store->due(1'000'000, 10).empty());
  }
}

TEST_CASE("entries that wait are told in the order in which they came") {
  Batches batches;
  for (uint8_t number : {3, 1, 2}) REQUIRE(batches.add(head_of(number, 100 + number)));
  BatchHead later = head_of(3, 103);
  later.version = 2;
  REQUIRE(batches.add(later));
  const auto numbers = [&](size_t count_max) {
    std::string out;
    for (const BatchStore::Waiting& one : batches.store->waiting(count_max)) {
      CHECK(one.created_us == 100 + one.id.octets[15]);
      out += static_cast<char>('0' + one.id.octets[15]);
    }
    return out;
  };
  CHECK(numbers(10) == "312");
  CHECK(numbers(2) == "31");
  batches.store->remove(id_of(1));
  batches.reactor.run_until_idle();
  CHECK(numbers(10) == "32");
  batches.open();
  CHECK(numbers(10) == "32");
}

TEST_CASE("the number of entries is bounded") {
  Batches batches;
  batches.options.count_max = 2;
  batches.open();
  REQUIRE(batches.add(head_of(1)));
  REQUIRE(batches.add(head_of(2)));
  const auto stored = batches.add(head_of(3));
  REQUIRE(!stored);
  CHECK(stored.error().code == ErrorCode::kOverloaded);
}

TEST_CASE("an entry that its log has not taken is not held") {
  Batches batches;
  RefusingLog log(*batches.log);
  BatchStore store(log, batches.reactor, {});
  REQUIRE(store.open([](uint8_t) { return 1000; }));
  const auto add = [&](const BatchHead& head) {
    std::optional<Result<void>> stored;
    store.store(head, encode_batch_entry(head, {}), 1000,
                [&](Result<void> result) { stored = std::move(result); });
    batches.reactor.run_until_idle();
    return stored && *stored;
  };
  log.refuses = true;
  CHECK_FALSE(add(head_of(1, 100)));
  CHECK(store.count() == 0);
  CHECK(store.oldest_us() == BatchStore::kNone);
  CHECK(store.due(5000, 10).empty());
  log.refuses = false;
  CHECK(add(head_of(1, 100)));
  log.refuses = true;
  BatchHead later = head_of(1, 100);
  later.version = 2;
  CHECK_FALSE(add(later));
  CHECK(store.version_of(id_of(1)) == 1);
  CHECK(store.oldest_us() == 100);
}

}  // namespace tetrad::replication
