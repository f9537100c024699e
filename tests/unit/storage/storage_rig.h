// SPDX-License-Identifier: Apache-2.0
// A store on a manual reactor with calls that wait, and short ways to write records and mutations.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "storage/engine/memory_store.h"
#include "storage/engine/store.h"
#include "storage/row/reconcile.h"
#include "storage/row/storage_key.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::storage {

inline constexpr int64_t kNow_s = tests::ManualReactor::kWallStartUs / 1'000'000;
inline constexpr TableIncarnation kTable{7};

inline Cell value_cell(uint32_t column, int64_t timestamp, BytesView value, int32_t ttl = 0,
                       int64_t expiry = 0) {
  Cell cell;
  cell.column_id = column;
  cell.timestamp_us = timestamp;
  cell.value = value;
  cell.ttl_s = ttl;
  cell.expiry_s = expiry;
  return cell;
}
inline Cell tombstone_cell(uint32_t column, int64_t timestamp, int64_t deletion_time = 5) {
  Cell cell = value_cell(column, timestamp, "");
  cell.kind = CellKind::kTombstone;
  cell.expiry_s = deletion_time;
  return cell;
}
inline Cell element_cell(uint32_t column, int64_t timestamp, BytesView path, BytesView value) {
  Cell cell = value_cell(column, timestamp, value);
  cell.has_path = true;
  cell.path = path;
  return cell;
}
inline Cell column_deletion(uint32_t column, int64_t timestamp, int64_t deletion_time = 5) {
  Cell cell = tombstone_cell(column, timestamp, deletion_time);
  cell.kind = CellKind::kColumnDeletion;
  return cell;
}
inline RowRecord record_of(std::vector<Cell> cells, Liveness liveness = {},
                           Deletion deletion = {}) {
  return {liveness, deletion, std::move(cells)};
}
inline Bytes encoded(const RowRecord& record) {
  Bytes out;
  encode_row_record(record, out);
  return out;
}
/// INSERT of column 1.
inline Bytes inserted(int64_t timestamp, BytesView value) {
  return encoded(record_of({value_cell(1, timestamp, value)}, {timestamp, 0, 0}));
}

inline RingPosition position_of(int64_t token) { return {token, static_cast<uint64_t>(token) * 3}; }

inline Mutation mutation_of(int64_t token, BytesView partition_key,
                            TableIncarnation incarnation = kTable) {
  Mutation m;
  m.incarnation = incarnation;
  m.schema_version = {1};
  m.position = position_of(token);
  m.partition_key = Bytes(partition_key);
  return m;
}
inline Mutation row_mutation(int64_t token, BytesView partition_key, BytesView clustering_key,
                             Bytes record, bool complete = false) {
  Mutation m = mutation_of(token, partition_key);
  m.rows.push_back({Bytes(clustering_key), std::move(record), complete});
  return m;
}
inline ReadCommand partition_read(int64_t token, BytesView partition_key) {
  ReadCommand c;
  c.incarnation = kTable;
  c.schema_version = {1};
  c.position = position_of(token);
  c.partition_key = Bytes(partition_key);
  c.now_s = kNow_s;
  return c;
}
inline ReadCommand range_read(RingRange range = {}) {
  ReadCommand c;
  c.incarnation = kTable;
  c.schema_version = {1};
  c.is_range = true;
  c.range = range;
  c.now_s = kNow_s;
  return c;
}

/// "pk/ck ..." in order, for comparisons that can be read; a static-only partition is "pk/-".
inline std::string keys_of(const ReadResult& result) {
  std::string text;
  for (const PartitionData& p : result.partitions) {
    for (const RowData& row : p.rows)
      text += std::string(p.partition_key) + "/" + std::string(row.clustering_key) + " ";
    if (p.rows.empty()) text += std::string(p.partition_key) + "/- ";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

/// What a sink gets, as the result that read() gives.
struct CollectingSink final : RowSink {
  ReadResult result;
  Result<void> begin_partition(RingPosition position, BytesView partition_key,
                               const RowRecord& header, bool) override {
    PartitionData& p = result.partitions.emplace_back();
    p.position = position;
    p.partition_key = result.arena.copy(partition_key);
    if (!header.cells.empty()) p.header = result.arena.copy(encoded(header));
    return {};
  }
  Result<void> take_row(BytesView clustering_key, const RowRecord& row) override {
    result.partitions.back().rows.push_back(
        {result.arena.copy(clustering_key), result.arena.copy(encoded(row))});
    return {};
  }
};

struct StoreRig {
  tests::ManualReactor reactor;
  tests::InlineIoPool pool;
  std::shared_ptr<StoreFactory> factory;
  std::string directory;
  std::unique_ptr<Store> store;

  explicit StoreRig(std::shared_ptr<StoreFactory> f, std::string folder = "/tetrad/store-0")
      : factory(std::move(f)), directory(std::move(folder)) {
    open();
  }
  ~StoreRig() { crash(); }

  void open() {
    auto opened = factory->open(directory, reactor, pool);
    if (!opened) FAIL(opened.error().message);
    store = std::move(*opened);
  }
  void crash() {
    store.reset();
    pool.drop_all();
    reactor.drop_all();
  }
  void close() {
    const auto closed = store->close();
    if (!closed) FAIL(closed.error().message);
    crash();
  }
  /// RocksDB flushes on threads of its own, which the reactor's time does not wait for.
  bool comes(const std::function<bool()>& condition) {
    for (int i = 0; i < 30'000; ++i) {
      if (reactor.run_until(condition, int64_t{100'000} << std::min(i, 9))) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  Result<void> apply(const Mutation& m, bool merged = false) {
    std::optional<Result<void>> answer;
    const auto done = [&](Result<void> r) { answer = std::move(r); };
    merged ? store->apply_merged(m, done) : store->apply(m, done);
    REQUIRE(comes([&] { return answer.has_value(); }));
    return *answer;
  }
  Result<ReadResult> read(const ReadCommand& command) {
    std::optional<Result<ReadResult>> answer;
    store->read(command, base::kNoDeadline, [&](Result<ReadResult> r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
  /// As read(), through read_here() if the store can.
  Result<ReadResult> read_here(const ReadCommand& command) {
    CollectingSink sink;
    auto end = store->read_here(command, sink);
    if (!end) return read(command);
    if (!*end) return std::unexpected(end->error());
    static_cast<ReadEnd&>(sink.result) = std::move(**end);
    return std::move(sink.result);
  }
  std::string read_keys(const ReadCommand& command) {
    const auto result = read(command);
    return result ? keys_of(*result) : "error: " + result.error().message;
  }
  Result<void> flush() {
    std::optional<Result<void>> answer;
    store->flush([&](Result<void> r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    return *answer;
  }
  Result<void> compact() {
    std::optional<Result<void>> answer;
    store->compact([&](Result<void> r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    return *answer;
  }
  Result<std::vector<SizeSample>> sample_sizes(const RingRange& range, size_t count) {
    std::optional<Result<std::vector<SizeSample>>> answer;
    store->sample_sizes(kTable, range, count, [&](auto r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
  Result<Store::ExportPage> export_range(const RingRange& range, Bytes after, uint64_t bytes_max) {
    std::optional<Result<Store::ExportPage>> answer;
    store->export_range(kTable, range, std::move(after), bytes_max,
                        [&](auto r) { answer = std::move(r); });
    REQUIRE(comes([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
};

inline StoreOptions small_options() {
  StoreOptions options;
  options.in_memory_files = true;
  options.block_cache_bytes = 1 << 20;
  options.write_buffer_bytes = 1 << 20;
  return options;
}
inline std::shared_ptr<StoreFactory> rocks_factory(StoreOptions options = small_options()) {
  return make_rocks_store_factory(options, Logger());
}
inline std::shared_ptr<StoreFactory> memory_factory(StoreOptions options = small_options()) {
  return make_memory_store_factory(std::make_shared<MemoryDisk>(), options);
}

}  // namespace tetrad::storage
