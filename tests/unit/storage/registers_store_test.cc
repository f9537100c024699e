// SPDX-License-Identifier: Apache-2.0
// Paxos registers beside the rows of a partition, in both kinds of store: what is written of them
// stays, nobody who reads rows sees them, and what carries, drops and measures rows does what it
// should with them.
#include <catch2/catch.hpp>

#include "storage/row/paxos_registers.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

Ballot ballot_of(int64_t us, uint8_t host = 1) {
  Ballot ballot{us, {}, 1, 0};
  ballot.host.value.octets[15] = host;
  return ballot;
}

PaxosRegisters promised(int64_t us) {
  PaxosRegisters registers;
  registers.promised = ballot_of(us);
  return registers;
}

PaxosRegisters committed(int64_t us, Bytes value) {
  PaxosRegisters registers = promised(us);
  registers.committed = Proposal{ballot_of(us), ballot_of(us), {}, std::move(value)};
  return registers;
}

struct RegistersRig : StoreRig {
  using StoreRig::StoreRig;

  Result<void> write(int64_t token, BytesView key, const PaxosRegisters& registers,
                     const Mutation* rows = nullptr, bool synced = true) {
    std::optional<Result<void>> answer;
    store->write_registers({{kTable, position_of(token), key}, registers, rows, synced}, {},
                           [&](Result<void> r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    return *answer;
  }
  Result<PaxosRegisters> registers(int64_t token, BytesView key) {
    std::optional<Result<PaxosRegisters>> answer;
    store->read_registers({kTable, position_of(token), key}, base::kNoDeadline,
                          [&](Result<PaxosRegisters> r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
  Result<Store::ExportPage> export_all(ExportParts parts) {
    std::optional<Result<Store::ExportPage>> answer;
    store->export_range(kTable, {}, "", 1 << 20, parts, [&](auto r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
  Result<Store::RegistersPage> list(Bytes after, size_t partitions_max) {
    std::optional<Result<Store::RegistersPage>> answer;
    store->list_registers(kTable, {}, std::move(after), partitions_max,
                          [&](auto r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
  int64_t latest(const ReadCommand& command) {
    std::optional<Result<int64_t>> answer;
    store->latest_timestamp(command, base::kNoDeadline, [&](auto r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    REQUIRE(answer->has_value());
    return **answer;
  }
  SweepPage sweep(const SweepCommand& command, SweepPlace from = {}) {
    std::optional<Result<SweepPage>> answer;
    store->sweep(command, std::move(from), [&](auto r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    if (!*answer) FAIL(answer->error().message);
    return **answer;
  }
};

struct Kind {
  const char* name;
  std::shared_ptr<StoreFactory> (*make)();
};
const Kind kKinds[] = {
    {"rocks", [] { return rocks_factory(); }},
    {"rocks group",
     [] {
       StoreOptions options = small_options();
       options.sync = CommitLogSync::kGroup;
       return rocks_factory(options);
     }},
    {"memory", [] { return memory_factory(); }},
};

Bytes value_of(const Mutation& m) {
  Bytes value;
  encode_mutation(m, value);
  return value;
}

TEST_CASE("registers of a partition are as they were written last") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    CHECK(rig.registers(1, "p")->empty());
    REQUIRE(rig.write(1, "p", promised(5)));
    CHECK(rig.registers(1, "p") == promised(5));
    CHECK(rig.registers(1, "q")->empty());
    CHECK(rig.registers(2, "p")->empty());
    // A Put: what is given is all there is, even if it is less.
    REQUIRE(rig.write(1, "p", promised(4), nullptr, false));
    CHECK(rig.registers(1, "p") == promised(4));
    REQUIRE(rig.flush());
    CHECK(rig.registers(1, "p") == promised(4));
    REQUIRE(rig.compact());
    CHECK(rig.registers(1, "p") == promised(4));
    rig.close();
    rig.open();
    CHECK(rig.registers(1, "p") == promised(4));
    rig.store->retire(kTable);
    CHECK(rig.registers(1, "p").error().code == ErrorCode::kStaleSchema);
    CHECK(rig.write(1, "p", promised(9)).error().code == ErrorCode::kStaleSchema);
  }
}

TEST_CASE("a commit writes its rows and its registers") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    const Mutation rows = row_mutation(1, "p", "a", inserted(50, "v"), true);
    REQUIRE(rig.write(1, "p", committed(50, value_of(rows)), &rows));
    CHECK(rig.registers(1, "p") == committed(50, value_of(rows)));
    CHECK(rig.read_keys(partition_read(1, "p")) == "p/a");
    CHECK(rig.store->high_water_timestamp(kTable, position_of(1)) == 50);
    // Neither of two partitions.
    CHECK(rig.write(2, "p", committed(60, value_of(rows)), &rows).error().code ==
          ErrorCode::kInvalid);
    CHECK(rig.registers(2, "p")->empty());
    Mutation broken = rows;
    broken.rows[0].record = "\x7f";
    CHECK(rig.write(1, "p", committed(60, value_of(rows)), &broken).error().code ==
          ErrorCode::kCorruption);
    CHECK(rig.registers(1, "p") == committed(50, value_of(rows)));
    const Bytes long_key(kPartitionKeyBytesMax + 1, 'k');
    CHECK(rig.write(1, long_key, promised(1)).error().code == ErrorCode::kInvalid);
    CHECK(rig.registers(1, long_key).error().code == ErrorCode::kInvalid);
  }
}

TEST_CASE("promises and accepts raise no mark, commits do") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    Mutation value = row_mutation(1, "p", "a", inserted(900, "v"));
    PaxosRegisters accepted = promised(900);
    accepted.accepted = Proposal{ballot_of(900), ballot_of(900), {}, value_of(value)};
    REQUIRE(rig.write(1, "p", accepted));
    REQUIRE(rig.flush());
    CHECK(rig.store->high_water_timestamp(kTable, position_of(1)) == kNoTimestamp);
    rig.close();
    rig.open();  // marks come from the files
    CHECK(rig.store->high_water_timestamp(kTable, position_of(1)) == kNoTimestamp);
    CHECK(rig.store->dead_seen(kTable) == (BytesView(kind.name) == "memory" ? 1 : 0));
    REQUIRE(rig.write(1, "p", committed(900, value_of(value)), &value));
    CHECK(rig.store->high_water_timestamp(kTable, position_of(1)) == 900);
  }
}

TEST_CASE("a write of registers waits for the one before, and a read for both") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    std::vector<std::string> told;
    const auto tell = [&](const std::string& what) {
      return [&told, what](const Result<void>& r) {
        told.push_back(r ? what : what + " " + std::to_string(static_cast<int>(r.error().code)));
      };
    };
    const PartitionName p{kTable, position_of(1), "p"}, q{kTable, position_of(2), "q"};
    const PaxosRegisters five = promised(5), six = promised(6);
    rig.store->write_registers({p, five}, {}, tell("five"));
    CHECK(told.empty());
    rig.store->write_registers({p, six}, {}, tell("six"));  // at once
    REQUIRE(told.size() == 1);
    CHECK(told[0] == "six " + std::to_string(static_cast<int>(ErrorCode::kOverloaded)));
    rig.store->write_registers({q, six}, {}, tell("other"));
    std::optional<Result<PaxosRegisters>> read;
    rig.store->read_registers(p, base::kNoDeadline, [&](auto r) { read = std::move(r); });
    CHECK(!read);
    REQUIRE(rig.comes([&] { return read && told.size() == 3; }));
    CHECK(*read == five);
    CHECK(told[1] == "five");
    CHECK(told[2] == "other");
    REQUIRE(rig.write(1, "p", six));
    CHECK(rig.registers(1, "p") == six);
  }
}

TEST_CASE("what reads rows sees no registers") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    RegistersRig plain(kind.make());
    for (int64_t token = 1; token <= 4; ++token) {
      const Bytes key = "p" + std::to_string(token);
      REQUIRE(rig.write(token, key, committed(100 + token, "bytes")));
      if (token % 2 == 0) continue;  // those have nothing else
      for (StoreRig* store : {static_cast<StoreRig*>(&rig), static_cast<StoreRig*>(&plain)}) {
        REQUIRE(store->apply(row_mutation(token, key, "a", inserted(5, "v"))));
        REQUIRE(store->apply(row_mutation(token, key, "b", inserted(6, "v"))));
      }
    }
    REQUIRE(rig.flush());
    REQUIRE(plain.flush());
    const auto same = [&](const ReadCommand& command, const std::string& keys) {
      const auto a = rig.read(command), b = plain.read(command);
      REQUIRE((a && b));
      CHECK(keys_of(*a) == keys);
      CHECK(keys_of(*b) == keys);
      CHECK(a->exhausted == b->exhausted);
      CHECK(a->complete_up_to == b->complete_up_to);
      CHECK(a->live_row_count == b->live_row_count);
      CHECK(digest_of(*a) == digest_of(*b));
      if (!command.live_only) return;
      const auto here = rig.read_here(command);
      REQUIRE(here.has_value());
      CHECK(keys_of(*here) == keys);
    };
    for (const bool live_only : {true, false})
      for (const bool reversed : {false, true}) {
        ReadCommand all = range_read();
        all.live_only = live_only;
        all.reversed = reversed;
        same(all, reversed ? "p1/b p1/a p3/b p3/a" : "p1/a p1/b p3/a p3/b");
        ReadCommand distinct = all;
        distinct.distinct_partitions = true;
        same(distinct, reversed ? "p1/b p3/b" : "p1/a p3/a");
        ReadCommand two = all;
        two.row_limit = 2;
        same(two, reversed ? "p1/b p1/a" : "p1/a p1/b");
        ReadCommand rest = all;  // the last partition has registers only
        rest.row_limit = 2;
        rest.resume_after = ReadPosition{position_of(1), "p1", std::nullopt};
        same(rest, reversed ? "p3/b p3/a" : "p3/a p3/b");
        ReadCommand one = partition_read(1, "p1");
        one.live_only = live_only;
        one.reversed = reversed;
        same(one, reversed ? "p1/b p1/a" : "p1/a p1/b");
        same(one, reversed ? "p1/b p1/a" : "p1/a p1/b");  // the row cache may answer
        ReadCommand none = partition_read(2, "p2");
        none.live_only = live_only;
        none.reversed = reversed;
        same(none, "");
      }
    const auto samples = rig.sample_sizes({}, 10), expected = plain.sample_sizes({}, 10);
    REQUIRE((samples && expected));
    REQUIRE(samples->size() == expected->size());
    for (size_t i = 0; i < samples->size(); ++i) {
      CHECK((*samples)[i].position == (*expected)[i].position);
      CHECK((*samples)[i].bytes == (*expected)[i].bytes);
    }
    const auto rows = rig.export_all(ExportParts::kRows),
               same_rows = plain.export_all(ExportParts::kRows);
    REQUIRE((rows && same_rows));
    REQUIRE(rows->mutations.size() == 2);
    CHECK(same_rows->mutations.size() == 2);
    for (const Mutation& m : rows->mutations) CHECK(m.registers.empty());
  }
}

TEST_CASE("a range read counts no registers as keys that it has looked at") {
  StoreOptions options = small_options();
  options.read_keys_max = 3;
  for (const auto& factory : {rocks_factory(options), memory_factory(options)}) {
    RegistersRig rig(factory);
    for (int64_t token = 1; token <= 20; ++token)
      REQUIRE(rig.write(token, "p" + std::to_string(token), promised(5)));
    REQUIRE(rig.apply(row_mutation(21, "p21", "a", inserted(5, "v"))));
    const auto result = rig.read(range_read());
    REQUIRE(result.has_value());
    CHECK(keys_of(*result) == "p21/a");
    CHECK(result->exhausted);
  }
}

TEST_CASE("a stream carries registers, and an import joins them and writes a commit's rows") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig from(kind.make()), to(kind.make());
    const Mutation decided = row_mutation(1, "p", "a", inserted(50, "decided"), true);
    REQUIRE(from.apply(row_mutation(1, "p", "b", inserted(40, "row"))));
    REQUIRE(from.write(1, "p", committed(50, value_of(decided))));  // the page has no rows of it
    REQUIRE(from.write(2, "q", promised(70)));
    const auto page = from.export_all(ExportParts::kRowsAndRegisters);
    REQUIRE(page.has_value());
    REQUIRE(page->mutations.size() == 2);

    PaxosRegisters there = promised(60);
    there.accepted = Proposal{ballot_of(60), ballot_of(60), {}, {}};
    REQUIRE(to.write(1, "p", there));
    REQUIRE(to.write(2, "q", promised(80)));
    for (const Mutation& m : page->mutations) {
      Bytes bytes;
      encode_streamed_mutation(m, bytes);
      CHECK(!decode_mutation(bytes).has_value());
      const auto sent = decode_streamed_mutation(bytes);
      REQUIRE(sent.has_value());
      REQUIRE(!sent->registers.empty());
      CHECK(to.apply(*sent).error().code == ErrorCode::kInvalid);
      REQUIRE(to.apply(*sent, true));
      REQUIRE(to.apply(*sent, true));  // again
    }
    const PaxosRegisters joined = join_registers(there, committed(50, value_of(decided)));
    CHECK(to.registers(1, "p") == joined);
    CHECK(to.registers(2, "q") == promised(80));
    CHECK(to.read_keys(partition_read(1, "p")) == "p/a p/b");
    CHECK(to.store->high_water_timestamp(kTable, position_of(1)) == 50);
    REQUIRE(to.flush());
    REQUIRE(to.compact());
    CHECK(to.registers(1, "p") == joined);

    Mutation bad = page->mutations[0];
    bad.registers = "\x09";
    CHECK(to.apply(bad, true).error().code == ErrorCode::kCorruption);
    bad.registers.clear();
    encode_registers(committed(99, "no mutation"), bad.registers);
    CHECK(to.apply(bad, true).error().code == ErrorCode::kCorruption);
    bad.registers.clear();
    encode_registers(committed(99, value_of(row_mutation(3, "r", "a", inserted(1, "v")))),
                     bad.registers);
    CHECK(to.apply(bad, true).error().code == ErrorCode::kCorruption);
    CHECK(to.registers(1, "p") == joined);
  }
}

TEST_CASE("registers of a range are listed in pages") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    for (int64_t token = 1; token <= 9; ++token) {
      const Bytes key = "p" + std::to_string(token);
      if (token % 3 != 0)
        for (const char* row : {"a", "b", "c"})
          REQUIRE(rig.apply(row_mutation(token, key, row, inserted(5, "v"))));
      if (token % 2 != 0) REQUIRE(rig.write(token, key, promised(token)));
    }
    for (const size_t partitions_max : {1, 2, 3, 100}) {
      std::vector<int64_t> seen;
      Bytes after;
      for (int pages = 0;; ++pages) {
        REQUIRE(pages < 20);
        const auto page = rig.list(after, partitions_max);
        REQUIRE(page.has_value());
        CHECK(page->entries.size() <= partitions_max);
        for (const auto& entry : page->entries) {
          CHECK(entry.partition_key == "p" + std::to_string(entry.position.token));
          CHECK(entry.registers == promised(entry.position.token));
          seen.push_back(entry.position.token);
        }
        if (page->exhausted) break;
        after = page->next;
      }
      CHECK(seen == std::vector<int64_t>{1, 3, 5, 7, 9});
    }
  }
}

TEST_CASE("a sweep purges registers below the floor, and takes all of a range that is given up") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    const Mutation rows = row_mutation(1, "p", "a", inserted(5, "v"));
    REQUIRE(rig.write(1, "p", committed(5, value_of(rows)), &rows));
    REQUIRE(rig.write(2, "q", promised(8)));
    REQUIRE(rig.write(3, "r", promised(9)));
    SweepCommand command;
    command.incarnation = kTable;
    CHECK(rig.sweep(command).erased == 0);
    command.registers_floor = ballot_of(9);
    const SweepPage page = rig.sweep(command);
    CHECK(page.erased == 2);
    CHECK(page.exhausted);
    CHECK(rig.registers(1, "p")->empty());
    CHECK(rig.registers(2, "q")->empty());
    CHECK(rig.registers(3, "r") == promised(9));
    CHECK(rig.read_keys(partition_read(1, "p")) == "p/a");
    command.everything = true;
    CHECK(rig.sweep(command).erased == 2);
    CHECK(rig.registers(3, "r")->empty());
    REQUIRE(rig.list("", 10).has_value());
    CHECK(rig.list("", 10)->entries.empty());
  }
}

TEST_CASE("registers are no part of how large a partition is") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(5, "v"))));
    REQUIRE(rig.write(1, "p", committed(5, Bytes(10'000, 'v'))));
    SweepCommand command;
    command.incarnation = kTable;
    command.told_beyond = {1000, 0};
    CHECK(rig.sweep(command).large.empty());
    command.told_beyond = {1, 0};
    REQUIRE(rig.sweep(command).large.size() == 1);
    CHECK(rig.sweep(command).large[0].extent.bytes < 200);
  }
}

TEST_CASE("a purge leaves registers that were written since its page was read") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    REQUIRE(rig.write(1, "p", promised(5)));
    REQUIRE(rig.write(2, "q", promised(6)));
    SweepCommand command;
    command.incarnation = kTable;
    command.registers_floor = ballot_of(100);
    std::optional<Result<SweepPage>> page;
    rig.store->sweep(command, {}, [&](auto r) { page = std::move(r); });
    // The page may have been read, and is not written yet.
    const PaxosRegisters later = promised(200);
    std::optional<Result<void>> written;
    rig.store->write_registers({{kTable, position_of(1), "p"}, later}, {},
                               [&](auto r) { written = std::move(r); });
    REQUIRE(rig.comes([&] { return page && written; }));
    REQUIRE(page->has_value());
    CHECK(rig.registers(1, "p") == later);
    CHECK(rig.registers(2, "q")->empty());
  }
}

TEST_CASE("the latest timestamp is that of everything a statement looks at") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    RegistersRig rig(kind.make());
    ReadCommand all = partition_read(1, "p");
    CHECK(rig.latest(all) == kNoTimestamp);
    const auto of = [&](std::vector<Bytes> rows) {
      ReadCommand command = all;
      command.rows = std::move(rows);
      return rig.latest(command);
    };
    REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(10, "v"))));
    REQUIRE(rig.apply(row_mutation(1, "p", "c", encoded(record_of({value_cell(1, 30, "v")})))));
    REQUIRE(rig.apply(row_mutation(1, "o", "a", inserted(1000, "v"))));
    REQUIRE(rig.write(1, "p", promised(5000)));
    CHECK(rig.latest(all) == 30);
    CHECK(of({"a"}) == 10);
    CHECK(of({"b"}) == kNoTimestamp);
    CHECK(of({"a", "c"}) == 30);
    ReadCommand slice = all;
    slice.clustering_ranges = {{"a", "b"}};
    CHECK(rig.latest(slice) == 10);
    slice.clustering_ranges = {{"0", "1"}, {"b", "d"}};
    CHECK(rig.latest(slice) == 30);
    // A range tombstone counts where it lies, though it hides nothing any more or has no row.
    Mutation ranges = mutation_of(1, "p");
    ranges.range_tombstones.push_back({{"b", "d"}, {40, 1}});
    REQUIRE(rig.apply(ranges));
    CHECK(of({"a"}) == 10);
    CHECK(of({"b"}) == 40);
    CHECK(rig.latest(slice) == 40);
    slice.clustering_ranges = {{"a", "b"}};
    CHECK(rig.latest(slice) == 10);
    slice.clustering_ranges = {{"d", "e"}};
    CHECK(rig.latest(slice) == kNoTimestamp);
    // A row tombstone, a tombstone of a cell, something that has expired.
    REQUIRE(rig.apply(row_mutation(1, "p", "a", encoded(record_of({}, {}, {50, 1})))));
    CHECK(of({"a"}) == 50);
    // Statics and the partition's tombstone count for every row.
    Mutation header = mutation_of(1, "p");
    header.header = encoded(record_of({value_cell(9, 60, "s")}));
    REQUIRE(rig.apply(header));
    CHECK(of({"zzz"}) == 60);
    header.header = encoded(record_of({}, {}, {70, 1}));
    REQUIRE(rig.apply(header));
    REQUIRE(rig.flush());
    CHECK(of({"zzz"}) == 70);
    CHECK(rig.latest(all) == 70);
  }
}

}  // namespace
}  // namespace tetrad::storage
