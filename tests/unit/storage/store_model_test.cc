// SPDX-License-Identifier: Apache-2.0
// Random operations on both engines against the naive model: writes of every kind, reads of every
// shape with random limits and paging, flush, compact, reopen, crash.
#include <catch2/catch.hpp>

#include "storage/engine/tombstone_filter.h"
#include "tests/unit/storage/naive_model.h"

namespace tetrad::storage {
namespace {

bool equal(const TombstoneSteps& a, const TombstoneSteps& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.start == y.start && x.end == y.end && x.deletion == y.deletion;
  });
}

/// The same read that only counts gives the numbers of the one that delivers.
void check_count(StoreRig& rig, ReadCommand command, const ReadResult& delivered) {
  // A limit of bytes is of what is delivered.
  if (command.live_only && command.bytes_limit < 1 << 20) return;
  command.count_only = true;
  const auto counted = rig.read(command);
  REQUIRE(counted.has_value());
  REQUIRE(counted->partitions.empty());
  REQUIRE(counted->live_row_count == delivered.live_row_count);
  REQUIRE(counted->exhausted == delivered.exhausted);
  REQUIRE(counted->count.has_value());
  if (!command.live_only) REQUIRE(counted->count->digest == digest_of(delivered));
  if (delivered.exhausted) return;
  REQUIRE(counted->complete_up_to == delivered.complete_up_to);
  if (!command.live_only) return;
  const bool inside =
      delivered.complete_up_to.clustering_key && !delivered.partitions.empty() &&
      delivered.partitions.back().partition_key == delivered.complete_up_to.partition_key;
  REQUIRE(counted->count->rows_of_last == (inside ? delivered.partitions.back().rows.size() : 0));
}

/// Pages through a live read with random limits and compares with the model.
void check_live(StoreRig& rig, const NaiveModel& model, ReadCommand command, RandomTraffic& t) {
  const std::vector<NaiveModel::Row> expected = model.live_rows(command);
  std::vector<NaiveModel::Row> got;
  std::vector<ReadResult> pages;  // views are into them
  for (int page = 0;; ++page) {
    REQUIRE(page < 200);
    command.row_limit =
        t.rows.one_in(3) ? ReadCommand::kNoLimit : 1 + static_cast<uint32_t>(t.rows.below(5));
    command.bytes_limit = t.rows.one_in(4) ? 1 + t.rows.below(40) : 1 << 20;
    auto result = t.rows.one_in(2) ? rig.read_here(command) : rig.read(command);
    INFO((result ? "" : result.error().message));
    REQUIRE(result.has_value());
    REQUIRE(result->live_row_count <= command.row_limit);
    check_count(rig, command, *result);
    const auto rows = rows_of(*result);
    REQUIRE(rows.size() == result->live_row_count);
    got.insert(got.end(), rows.begin(), rows.end());
    const bool exhausted = result->exhausted;
    if (!exhausted) go_on(command, *result);
    pages.push_back(std::move(*result));
    if (exhausted) break;
  }
  REQUIRE(got == expected);
}

/// A full read, paged by bytes, holds what the model holds, in canonical form.
void check_full(StoreRig& rig, const NaiveModel& model, ReadCommand command, RandomTraffic& t) {
  command.live_only = false;
  command.distinct_partitions = false;
  command.per_partition_limit = ReadCommand::kNoLimit;
  command.clustering_ranges.clear();
  command.rows.clear();
  std::map<std::pair<RingPosition, std::string>, std::map<std::string, RowRecord>> rows;
  std::map<std::pair<RingPosition, std::string>, TombstoneSteps> steps;
  std::map<std::pair<RingPosition, std::string>, RowRecord> headers;
  std::vector<ReadResult> pages;
  for (int page = 0;; ++page) {
    REQUIRE(page < 200);
    command.bytes_limit = t.rows.one_in(2) ? 1 + t.rows.below(60) : 1 << 20;
    auto result = rig.read(command);
    INFO((result ? "" : result.error().message));
    REQUIRE(result.has_value());
    check_count(rig, command, *result);
    for (const PartitionData& p : result->partitions) {
      const std::pair key(p.position, std::string(p.partition_key));
      if (!p.header.empty()) headers[key] = *decode_row_record(p.header);
      for (const RowData& row : p.rows)
        REQUIRE(rows[key]
                    .emplace(std::string(row.clustering_key), *decode_row_record(row.record))
                    .second);
      for (const RangeTombstoneView& step : p.range_tombstones) steps[key].push_back(step);
    }
    const bool exhausted = result->exhausted;
    if (!exhausted) command.resume_after = result->complete_up_to;
    pages.push_back(std::move(*result));
    if (exhausted) break;
  }
  static const std::pair<RingPosition, std::string> all[] = {
      {{-7, 1}, "p"}, {{0, 5}, "q"}, {{0, 5}, "aa"}, {{0, 6}, "r"}, {{90, 0}, "s"}};
  for (const auto& key : all) {
    const bool in = command.is_range
                        ? command.range.contains(key.first)
                        : command.position == key.first && command.partition_key == key.second;
    const NaiveModel::Partition expected =
        in ? model.partition(key.first, key.second) : NaiveModel::Partition();
    RowRecord header = expected.header;
    if (!command.wants_static) header = record_of({}, {}, header.deletion);
    drop_expired_values(header, command.now_s - kExpiredValueMargin_s);
    REQUIRE(headers[key] == header);
    std::map<std::string, RowRecord> wanted;
    for (const auto& [clustering, record] : expected.rows) {
      RowRecord r = record;
      drop_expired_values(r, command.now_s - kExpiredValueMargin_s);
      if (!r.empty()) wanted.emplace(clustering, r);
    }
    REQUIRE(rows[key] == wanted);
    REQUIRE(equal(make_steps(steps[key], {}),
                  make_steps(expected.tombstones, expected.header.deletion)));
  }
}

void run_model(const std::shared_ptr<StoreFactory>& factory, uint64_t seed, int operations) {
  INFO("seed " << seed);
  RandomTraffic traffic(seed);
  NaiveModel model;
  StoreRig rig(factory);
  rig.directory = "/tetrad/model-" + std::to_string(seed);
  rig.crash();
  rig.open();
  const uint64_t disruption = 20 + traffic.rows.below(100);
  for (int i = 0; i < operations; ++i) {
    const uint64_t what = traffic.rows.below(10);
    if (what < 6) {
      const Mutation m = traffic.mutation();
      REQUIRE(rig.apply(m, traffic.rows.one_in(5)).has_value());
      model.apply(m);
    } else if (what < 9) {
      check_live(rig, model, traffic.command(), traffic);
    } else {
      check_full(rig, model, traffic.command(), traffic);
    }
    if (!traffic.rows.one_in(disruption)) continue;
    switch (traffic.rows.below(4)) {
      case 0:
        REQUIRE(rig.flush().has_value());
        break;
      case 1:
        REQUIRE(rig.compact().has_value());
        break;
      case 2:
        rig.close();
        rig.open();
        break;
      default:  // killed: whatever was acknowledged is with the operating system
        rig.crash();
        rig.open();
    }
  }
}

TEST_CASE("MemoryStore answers as the naive model") {
  for (uint64_t seed = 1; seed <= 25; ++seed) run_model(memory_factory(), seed, 300);
}

TEST_CASE("RocksStore answers as the naive model") {
  const auto factory = rocks_factory();
  for (uint64_t seed = 1; seed <= 20; ++seed) run_model(factory, seed, 300);
}

TEST_CASE("RocksStore that writes back what reads join answers as the naive model") {
  for (const auto sync : {CommitLogSync::kPeriodic, CommitLogSync::kGroup}) {
    StoreOptions options = small_options();
    options.sync = sync;
    options.read_operands_max = 1;
    const auto factory = rocks_factory(options);
    for (uint64_t seed = 201; seed <= 206; ++seed) run_model(factory, seed, 300);
  }
}

TEST_CASE("RocksStore in group mode answers as the naive model") {
  StoreOptions options = small_options();
  options.sync = CommitLogSync::kGroup;
  const auto factory = rocks_factory(options);
  for (uint64_t seed = 101; seed <= 106; ++seed) run_model(factory, seed, 200);
}

}  // namespace
}  // namespace tetrad::storage
