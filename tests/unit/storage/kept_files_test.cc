// SPDX-License-Identifier: Apache-2.0
// Files that are kept of a store suffice to have its tables again.
#include "storage/engine/kept_files.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <rocksdb/db.h>

#include "storage/engine/rocks_options.h"
#include "storage/engine/table_summary.h"
#include "storage/engine/tombstone_filter.h"
#include "storage/engine/value_merge.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

namespace fs = std::filesystem;

constexpr TableIncarnation kOther{8}, kFar{0x1000};

/// A store on real files.
struct KeptStore {
  KeptStore()
      : top(fs::temp_directory_path() / ("tetrad-kept-" + std::to_string(::getpid()))),
        options(small_options()) {
    fs::remove_all(top);
    fs::create_directories(top / "snapshot");
    options.in_memory_files = false;
    rig.emplace(make_rocks_store_factory(options, Logger()), (top / "store-0").string());
  }
  ~KeptStore() {
    rig.reset();
    std::error_code ignored;
    fs::remove_all(top, ignored);
  }
  void write(TableIncarnation table, int key, int64_t timestamp, BytesView value) {
    Mutation m = mutation_of(key * 100, "p" + std::to_string(key), table);
    m.rows.push_back({"a", inserted(timestamp, value), false});
    REQUIRE(rig->apply(m, true).has_value());
  }
  Result<KeptFiles> keep(std::vector<TableIncarnation> tables, const std::string& name,
                         bool flushes = true) {
    std::optional<Result<KeptFiles>> kept;
    rig->store->keep_files({std::move(tables), (top / "snapshot" / name).string(), flushes},
                           [&](Result<KeptFiles> r) { kept = std::move(r); });
    REQUIRE(rig->comes([&] { return kept.has_value(); }));
    return std::move(*kept);
  }

  fs::path top;
  StoreOptions options;
  std::optional<StoreRig> rig;
};

/// Brings what is kept of a table into a new store at `folder`, as a restore would.
void restore(const KeptFiles& kept, const fs::path& from, const fs::path& folder,
             const StoreOptions& options, TableIncarnation table) {
  rocksdb::Options rocks =
      store_options(options, make_shared_resources(options, nullptr),
                    std::make_shared<MergeReport>(), std::make_shared<FilterState>());
  rocksdb::ExportImportFilesMetaData files;
  files.db_comparator_name = kept.comparator;
  for (const KeptFile& file : kept.files) {
    rocksdb::LiveFileMetaData& it = files.files.emplace_back();
    it.name = "/" + file.name;
    it.db_path = from.string();
    it.level = file.level;
    it.smallestkey = file.smallest_key;
    it.largestkey = file.largest_key;
    it.smallest_seqno = file.smallest_sequence;
    it.largest_seqno = file.largest_sequence;
  }
  const KeyRange keys = keys_of_incarnation(table);
  rocksdb::DB* db = nullptr;
  REQUIRE(rocksdb::DB::Open(rocks, (folder / "aside").string(), &db).ok());
  rocksdb::ColumnFamilyHandle* column_family = nullptr;
  const auto imported = db->CreateColumnFamilyWithImport(
      rocks, "kept", rocksdb::ImportColumnFamilyOptions(), files, &column_family);
  INFO(imported.ToString());
  REQUIRE(imported.ok());
  {
    rocksdb::DB* to = nullptr;
    REQUIRE(rocksdb::DB::Open(rocks, (folder / "store-0").string(), &to).ok());
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(read_options(), column_family));
    for (it->Seek(keys.start); it->Valid() && it->key().ToString() < keys.end; it->Next())
      REQUIRE(to->Put(rocksdb::WriteOptions(), it->key(), it->value()).ok());
    REQUIRE(it->status().ok());
    delete to;
  }
  REQUIRE(db->DestroyColumnFamilyHandle(column_family).ok());
  delete db;
  std::ofstream(folder / "store-0" / "TETRAD_FORMAT") << "tetrad store format 2\n";
}

}  // namespace

TEST_CASE("files that are kept of a table have all that it had then, and nothing from later") {
  KeptStore store;
  for (int round = 0; round < 3; ++round) {  // values in pieces, in several files
    for (int key = 0; key < 50; ++key) {
      store.write(kTable, key, 10 + round, std::to_string(round));
      store.write(kOther, key, 10 + round, "other");
    }
    if (round < 2) REQUIRE(store.rig->flush().has_value());
  }
  const std::string before = store.rig->read_keys(range_read());
  const auto kept = store.keep({kTable}, "s");
  REQUIRE(kept.has_value());
  REQUIRE(kept->files.size() == 3);
  for (const KeptFile& file : kept->files) {
    CHECK(file.tables == std::vector{kTable});
    CHECK(fs::file_size(store.top / "snapshot" / "s" / file.name) == file.bytes);
    // A link, unless a compaction has replaced the store's file by now.
    std::error_code gone;
    const fs::path of_store = store.top / "store-0" / file.name;
    const bool is_link = fs::equivalent(store.top / "snapshot" / "s" / file.name, of_store, gone);
    CHECK((is_link || !fs::exists(of_store)));
  }
  for (int key = 0; key < 100; ++key) store.write(kTable, key, 99, "later");
  REQUIRE(store.rig->compact().has_value());
  for (const KeptFile& file : kept->files)  // compactions have replaced them
    CHECK(fs::hard_link_count(store.top / "snapshot" / "s" / file.name) == 1);

  const fs::path folder = store.top / "restored";
  fs::create_directories(folder);
  restore(*kept, store.top / "snapshot" / "s", folder, store.options, kTable);
  StoreRig restored(make_rocks_store_factory(store.options, Logger()),
                    (folder / "store-0").string());
  CHECK(restored.read_keys(range_read()) == before);
  const auto row = restored.read(partition_read(300, "p3"));
  REQUIRE(row.has_value());
  CHECK(row->partitions.at(0).rows.at(0).record == BytesView(inserted(12, "2")));
}

TEST_CASE("the files of one table are compacted, and its rows stay") {
  KeptStore store;
  for (const TableIncarnation table : {kTable, kFar}) {
    for (int64_t timestamp : {1, 2}) {
      store.write(table, 1, timestamp, "x");
      REQUIRE(store.rig->flush().has_value());
    }
  }
  std::optional<Result<void>> compacted;
  store.rig->store->compact({kTable}, [&](Result<void> r) { compacted = std::move(r); });
  REQUIRE(store.rig->comes([&] { return compacted.has_value(); }));
  REQUIRE(compacted->has_value());
  const auto table = store.keep({kTable}, "table");
  REQUIRE(table.has_value());
  CHECK(table->files.size() == 1);
  CHECK(store.rig->read_keys(range_read()) == "p1/a");
}

TEST_CASE("files in which there is nothing of a table are not kept for it") {
  KeptStore store;
  store.write(kTable, 1, 5, "x");
  REQUIRE(store.rig->flush().has_value());
  store.write(kFar, 1, 5, "x");
  REQUIRE(store.rig->flush().has_value());
  store.write(kTable, 2, 5, "in memory");
  const auto far = store.keep({kFar}, "far", false);
  REQUIRE(far.has_value());
  CHECK(far->files.size() == 1);
  const auto both = store.keep({kFar, kTable}, "both", false);
  REQUIRE(both.has_value());
  CHECK(both->files.size() == 2);  // without what is in memory
  const auto flushed = store.keep({kTable}, "flushed");
  REQUIRE(flushed.has_value());
  CHECK(flushed->files.size() == 2);
  const auto none = store.keep({TableIncarnation{99}}, "none");
  REQUIRE(none.has_value());
  CHECK(none->files.empty());
  CHECK_FALSE(store.keep({kTable}, "no/such/parent").has_value());
}

}  // namespace tetrad::storage
