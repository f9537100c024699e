// SPDX-License-Identifier: Apache-2.0
// RocksStore: keeping files for a snapshot.
#include <rocksdb/env.h>
#include <rocksdb/metadata.h>
#include <rocksdb/table_properties.h>

#include "storage/engine/rocks_store.h"

namespace tetrad::storage {

namespace {

/// While it lives, RocksDB deletes no file.
class FilesStay {
 public:
  explicit FilesStay(rocksdb::DB& db) : db_(db), status_(db.DisableFileDeletions()) {}
  ~FilesStay() {
    if (status_.ok()) db_.EnableFileDeletions(false).PermitUncheckedError();
  }
  FilesStay(const FilesStay&) = delete;
  FilesStay& operator=(const FilesStay&) = delete;
  const rocksdb::Status& status() const { return status_; }

 private:
  rocksdb::DB& db_;
  const rocksdb::Status status_;
};

/// Of those asked for, which the file has something of: as its properties say, otherwise as its
/// first and last key do. (Keys of the store itself make these reach far.)
std::vector<TableIncarnation> tables_in(const rocksdb::LiveFileMetaData& file,
                                        const rocksdb::TableProperties* properties,
                                        const std::vector<TableIncarnation>& asked) {
  TablesKnown known;
  const bool is_told = properties != nullptr &&
                       join_summary(properties->user_collected_properties, known) &&
                       !known.unknown();
  std::vector<TableIncarnation> found;
  for (const TableIncarnation table : asked) {
    const KeyRange keys = keys_of_incarnation(table);
    const bool may_be = file.smallestkey < keys.end && file.largestkey >= keys.start;
    if (may_be && (!is_told || known.find(table) != nullptr)) found.push_back(table);
  }
  std::ranges::sort(found);
  return found;
}

Result<KeptFiles> keep(rocksdb::DB& db, const KeepCommand& command) {
  if (command.flushes) {
    const rocksdb::Status flushed = db.Flush(rocksdb::FlushOptions());
    if (!flushed.ok()) return std::unexpected(error_of(flushed, "flushing"));
  }
  rocksdb::Env& env = *db.GetEnv();
  rocksdb::Status status = env.CreateDir(command.directory);
  if (!status.ok())
    return std::unexpected(error_of(status, "making the folder " + command.directory));
  const FilesStay stay(db);
  if (!stay.status().ok()) return std::unexpected(error_of(stay.status(), "keeping files"));
  std::vector<rocksdb::LiveFileMetaData> live;  // of one version of the database
  db.GetLiveFilesMetaData(&live);
  rocksdb::TablePropertiesCollection properties;  // by path
  status = db.GetPropertiesOfAllTables(&properties);
  if (!status.ok()) return std::unexpected(error_of(status, "reading properties of files"));
  KeptFiles kept;
  kept.comparator = db.GetOptions().comparator->Name();
  for (const rocksdb::LiveFileMetaData& file : live) {
    const std::string name = file.name.substr(file.name.find_first_not_of('/'));
    const auto of_file = properties.find(file.db_path + "/" + name);
    auto tables = tables_in(file, of_file == properties.end() ? nullptr : of_file->second.get(),
                            command.tables);
    if (tables.empty()) continue;
    status = env.LinkFile(db.GetName() + "/" + name, command.directory + "/" + name);
    if (!status.ok()) return std::unexpected(error_of(status, "linking " + name));
    kept.files.push_back({name, file.size, file.level, file.smallestkey, file.largestkey,
                          file.smallest_seqno, file.largest_seqno, std::move(tables)});
  }
  std::ranges::sort(kept.files, {}, &KeptFile::name);
  std::unique_ptr<rocksdb::Directory> folder;
  status = env.NewDirectory(command.directory, &folder);
  if (status.ok()) status = folder->Fsync();
  if (!status.ok()) return std::unexpected(error_of(status, "syncing " + command.directory));
  return kept;
}

}  // namespace

// Behind all earlier writes, so that what the caller has written is kept.
void RocksStore::keep_files(KeepCommand command,
                            std::move_only_function<void(Result<KeptFiles>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  turn_.after_writes(
      [this, alive = alive_, command = std::move(command), done = std::move(done)]() mutable {
        if (!*alive) return done(closed_error());
        if (const auto why = unusable()) return done(std::unexpected(*why));
        in_maintenance<KeptFiles>(
            0,
            [database = state_.database, command = std::move(command)] {
              return keep(database->db(), command);
            },
            std::move(done));
      });
}

}  // namespace tetrad::storage
