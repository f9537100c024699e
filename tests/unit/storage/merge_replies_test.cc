// SPDX-License-Identifier: Apache-2.0
// Merging the answers of replicas: short reads, the cut of rule 5, repairs.
#include <catch2/catch.hpp>

#include "tests/unit/storage/naive_model.h"

namespace tetrad::storage {
namespace {

/// Replicas that hold what each was given.
struct Replicas {
  std::vector<std::unique_ptr<StoreRig>> rigs;
  explicit Replicas(size_t count) {
    for (size_t i = 0; i < count; ++i) rigs.push_back(std::make_unique<StoreRig>(memory_factory()));
  }
  void apply(size_t replica, const Mutation& m) { REQUIRE(rigs[replica]->apply(m).has_value()); }
  std::vector<ReplicaReply> read(ReadCommand command) {
    command.live_only = false;
    std::vector<ReplicaReply> replies;
    for (auto& rig : rigs) {
      auto result = rig->read(command);
      REQUIRE(result.has_value());
      Bytes bytes;  // as it comes from another node
      encode_read_result(*result, bytes);
      auto decoded = decode_read_result(std::move(bytes));
      REQUIRE(decoded.has_value());
      replies.push_back({{}, std::move(*decoded)});
    }
    return replies;
  }
  MergedRead merge(const ReadCommand& command) {
    const auto replies = read(command);
    auto merged = merge_replies(command, replies);
    REQUIRE(merged.has_value());
    return std::move(*merged);
  }
  void repair(const MergedRead& merged) {
    for (size_t i = 0; i < rigs.size(); ++i)
      for (const Mutation& m : merged.repairs[i]) REQUIRE(rigs[i]->apply(m, true).has_value());
  }
};

size_t repair_count(const MergedRead& merged) {
  size_t count = 0;
  for (const auto& repairs : merged.repairs) count += repairs.size();
  return count;
}

TEST_CASE("replies that agree are merged to themselves without repairs") {
  Replicas replicas(3);
  for (size_t i = 0; i < 3; ++i)
    for (const char* ck : {"a", "b", "c"})
      replicas.apply(i, row_mutation(1, "p", ck, inserted(5, ck)));
  const MergedRead merged = replicas.merge(partition_read(1, "p"));
  CHECK(keys_of(merged.result) == "p/a p/b p/c");
  CHECK(merged.result.exhausted);
  CHECK_FALSE(merged.short_read);
  CHECK(repair_count(merged) == 0);
}

TEST_CASE("a row that one replica lacks is in the merge and in its repair alone") {
  Replicas replicas(2);
  replicas.apply(0, row_mutation(1, "p", "a", inserted(5, "x")));
  replicas.apply(1, row_mutation(1, "p", "b", inserted(5, "y")));
  const MergedRead merged = replicas.merge(partition_read(1, "p"));
  CHECK(keys_of(merged.result) == "p/a p/b");
  REQUIRE(merged.repairs[0].size() == 1);
  REQUIRE(merged.repairs[0][0].rows.size() == 1);
  CHECK(merged.repairs[0][0].rows[0].clustering_key == "b");
  CHECK(merged.repairs[1][0].rows[0].clustering_key == "a");
  CHECK_FALSE(merged.repairs[1][0].rows[0].complete);
}

TEST_CASE("of a row that differs in one cell only that cell is repaired") {
  Replicas replicas(2);
  for (size_t i = 0; i < 2; ++i) replicas.apply(i, row_mutation(1, "p", "a", inserted(5, "x")));
  const Bytes update = encoded(record_of({value_cell(2, 6, "new")}));
  replicas.apply(1, row_mutation(1, "p", "a", update));
  const MergedRead merged = replicas.merge(partition_read(1, "p"));
  REQUIRE(merged.repairs[0].size() == 1);
  CHECK(merged.repairs[0][0].rows[0].record == update);
  CHECK(merged.repairs[1].empty());
}

TEST_CASE("a deletion known to one replica hides what the others hold, and reaches them") {
  for (const bool range : {false, true}) {
    Replicas replicas(3);
    for (size_t i = 0; i < 3; ++i)
      for (const char* ck : {"a", "b", "c"})
        replicas.apply(i, row_mutation(1, "p", ck, inserted(5, ck)));
    Mutation deletion = mutation_of(1, "p");
    if (range) {
      deletion.range_tombstones.push_back({{"a", "b\xFF"}, {6, 9}});
    } else {
      deletion.header = encoded(record_of({}, {}, {6, 9}));
    }
    replicas.apply(1, deletion);
    const MergedRead merged = replicas.merge(partition_read(1, "p"));
    CHECK(keys_of(merged.result) == (range ? "p/c" : ""));
    CHECK(merged.repairs[1].empty());
    REQUIRE(merged.repairs[0].size() == 1);
    CHECK(merged.repairs[0][0].rows.empty());
    CHECK(merged.repairs[0][0].range_tombstones == deletion.range_tombstones);
    CHECK(merged.repairs[0][0].header == deletion.header);
    replicas.repair(merged);
    CHECK(repair_count(replicas.merge(partition_read(1, "p"))) == 0);
  }
}

TEST_CASE("the merge goes no further than the reply that went least far") {
  // Replica 0 has a, b, c; replica 1 has deleted a and b and has d: with a limit of 2 replica 0
  // stops at b and says nothing of c, so d must not be shown yet.
  Replicas replicas(2);
  for (const char* ck : {"a", "b", "c"})
    replicas.apply(0, row_mutation(1, "p", ck, inserted(5, ck)));
  for (const char* ck : {"a", "b"})
    replicas.apply(1, row_mutation(1, "p", ck, encoded(record_of({}, {}, {9, 9}))));
  replicas.apply(1, row_mutation(1, "p", "d", inserted(5, "d")));
  ReadCommand command = partition_read(1, "p");
  command.row_limit = 2;
  const MergedRead first = replicas.merge(command);
  CHECK(keys_of(first.result) == "");
  CHECK(first.short_read);
  CHECK_FALSE(first.result.exhausted);
  CHECK(first.result.complete_up_to == ReadPosition{position_of(1), "p", "b"});
  go_on(command, first.result);
  const MergedRead second = replicas.merge(command);
  CHECK(keys_of(second.result) == "p/c p/d");
  CHECK_FALSE(second.short_read);
}

TEST_CASE("a per-partition limit that cut one reply cuts the merge inside that partition") {
  Replicas replicas(2);
  for (const char* ck : {"a", "b", "c"})
    replicas.apply(0, row_mutation(1, "p", ck, inserted(5, ck)));
  replicas.apply(1, row_mutation(1, "p", "a", encoded(record_of({}, {}, {9, 9}))));
  for (size_t i = 0; i < 2; ++i) replicas.apply(i, row_mutation(2, "q", "a", inserted(5, "a")));
  ReadCommand command = range_read();
  command.per_partition_limit = 1;
  const MergedRead first = replicas.merge(command);
  CHECK(keys_of(first.result) == "");
  CHECK(first.short_read);
  CHECK(first.result.complete_up_to == ReadPosition{position_of(1), "p", "a"});
  go_on(command, first.result);
  const MergedRead second = replicas.merge(command);
  CHECK(keys_of(second.result) == "p/b q/a");
  CHECK(second.result.exhausted);
}

TEST_CASE("static cells count as a row where there is no other") {
  Replicas replicas(2);
  Mutation header = mutation_of(1, "p");
  header.header = encoded(record_of({value_cell(9, 5, "s")}));
  replicas.apply(0, header);
  const MergedRead merged = replicas.merge(partition_read(1, "p"));
  CHECK(keys_of(merged.result) == "p/-");
  CHECK(merged.result.live_row_count == 1);
  CHECK(merged.repairs[1][0].header == header.header);
  ReadCommand command = partition_read(1, "p");
  command.wants_static = false;
  CHECK(keys_of(replicas.merge(command).result) == "");
}

TEST_CASE("a reply with a broken record is an error, not a row") {
  ReadResult result;
  PartitionData p{position_of(1), "p", "", {}, {{"a", "\x55zzz"}}};
  result.partitions.push_back(p);
  std::vector<ReplicaReply> replies;
  replies.push_back({{}, std::move(result)});
  const auto merged = merge_replies(partition_read(1, "p"), replies);
  REQUIRE_FALSE(merged.has_value());
  CHECK(merged.error().code == ErrorCode::kCorruption);
}

TEST_CASE("merged pages of replicas that hold different parts show their union, and repairs heal") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    RandomTraffic traffic(seed);
    NaiveModel model;
    Replicas replicas(3);
    for (int i = 0; i < 40; ++i) {
      const Mutation m = traffic.mutation();
      model.apply(m);
      const uint64_t to = 1 + traffic.rows.below(7);
      for (size_t r = 0; r < 3; ++r)
        if (to & (1u << r)) replicas.apply(r, m);
    }
    for (int i = 0; i < 12; ++i) {
      ReadCommand command = traffic.command();
      const auto expected = model.live_rows(command);
      const bool heal = traffic.rows.one_in(2);
      std::vector<NaiveModel::Row> got;
      std::vector<MergedRead> pages;
      for (int page = 0;; ++page) {
        REQUIRE(page < 300);
        command.row_limit = traffic.rows.one_in(3)
                                ? ReadCommand::kNoLimit
                                : 1 + static_cast<uint32_t>(traffic.rows.below(5));
        command.bytes_limit = traffic.rows.one_in(4) ? 1 + traffic.rows.below(60) : 1 << 20;
        MergedRead merged = replicas.merge(command);
        const auto rows = rows_of(merged.result);
        REQUIRE(rows.size() == merged.result.live_row_count);
        REQUIRE(merged.result.live_row_count <= command.row_limit);
        got.insert(got.end(), rows.begin(), rows.end());
        if (heal) {
          replicas.repair(merged);
          const auto healed = replicas.read(command);
          if (command.row_limit == ReadCommand::kNoLimit && merged.result.exhausted) {
            INFO("range " << command.is_range << " rows " << command.rows.size() << " ranges "
                          << command.clustering_ranges.size() << " reversed " << command.reversed
                          << " ppl " << command.per_partition_limit << " distinct "
                          << command.distinct_partitions << " resumed "
                          << command.resume_after.has_value());
            REQUIRE(digest_of(healed[0].result) == digest_of(healed[1].result));
            REQUIRE(digest_of(healed[0].result) == digest_of(healed[2].result));
          }
        }
        const bool exhausted = merged.result.exhausted;
        if (!exhausted) go_on(command, merged.result);
        pages.push_back(std::move(merged));
        if (exhausted) break;
      }
      REQUIRE(got == expected);
    }
  }
}

}  // namespace
}  // namespace tetrad::storage
