// SPDX-License-Identifier: Apache-2.0
// A file system under RocksDB that notes failed syncs, failed appends to the log and failed reads of
// tables, before RocksDB hears of them.
#include "storage/engine/disk_watch.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

namespace tetrad::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

/// After one has failed no other is tried: it would say that the disk has what the first has lost.
template <class Sync>
IOStatus noted(const std::string& file, DiskWatch& watch, const Sync& sync) {
  if (const auto failed = watch.failed_sync())
    return IOStatus::IOError("nothing is synced after a failed sync", *failed);
  IOStatus status = sync();
  if (!status.ok()) watch.note_failed_sync(file + ": " + status.ToString());
  return status;
}

class WatchedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WatchedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name,
              std::shared_ptr<DiskWatch> watch)
      : FSWritableFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        watch_(std::move(watch)) {}
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    return appended(FSWritableFileOwnerWrapper::Append(data, options, debug));
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& verification,
                  IODebugContext* debug) override {
    return appended(FSWritableFileOwnerWrapper::Append(data, options, verification, debug));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return noted(name_, *watch_, [&] { return FSWritableFileOwnerWrapper::Sync(options, debug); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return noted(name_, *watch_, [&] { return FSWritableFileOwnerWrapper::Fsync(options, debug); });
  }
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* debug) override {
    return noted(name_, *watch_, [&] {
      return FSWritableFileOwnerWrapper::RangeSync(offset, bytes, options, debug);
    });
  }

 private:
  IOStatus appended(IOStatus status) {
    if (!status.ok() && name_.ends_with(".log")) watch_->note_failed_append();
    return status;
  }

  const std::string name_;
  const std::shared_ptr<DiskWatch> watch_;
};

/// Tables are read through these two calls alone: neither reads ahead by threads of its own nor
/// asynchronous reads are used.
class WatchedTable final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  WatchedTable(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::shared_ptr<DiskWatch> watch)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), watch_(std::move(watch)) {}
  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& options, rocksdb::Slice* result,
                char* scratch, IODebugContext* debug) const override {
    return noted_read(
        FSRandomAccessFileOwnerWrapper::Read(offset, bytes, options, result, scratch, debug));
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    IOStatus status = FSRandomAccessFileOwnerWrapper::MultiRead(requests, count, options, debug);
    for (size_t i = 0; i < count; ++i) (void)noted_read(requests[i].status);
    return noted_read(std::move(status));
  }

 private:
  IOStatus noted_read(IOStatus status) const {
    if (status.IsIOError()) watch_->note_failed_read();
    return status;
  }

  const std::shared_ptr<DiskWatch> watch_;
};

class WatchedDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  WatchedDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, std::string name,
                   std::shared_ptr<DiskWatch> watch)
      : FSDirectoryWrapper(std::move(directory)),
        name_(std::move(name)),
        watch_(std::move(watch)) {}
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return noted(name_, *watch_, [&] { return FSDirectoryWrapper::Fsync(options, debug); });
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& what) override {
    return noted(name_, *watch_,
                 [&] { return FSDirectoryWrapper::FsyncWithDirOptions(options, debug, what); });
  }

 private:
  const std::string name_;
  const std::shared_ptr<DiskWatch> watch_;
};

class WatchedFiles final : public rocksdb::FileSystemWrapper {
 public:
  WatchedFiles(std::shared_ptr<rocksdb::FileSystem> files, std::shared_ptr<DiskWatch> watch)
      : FileSystemWrapper(std::move(files)), watch_(std::move(watch)) {}
  const char* Name() const override { return "WatchedFiles"; }
  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    return watch(FileSystemWrapper::NewWritableFile(name, options, file, debug), name, file);
  }
  IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* debug) override {
    return watch(FileSystemWrapper::ReopenWritableFile(name, options, file, debug), name, file);
  }
  IOStatus NewRandomAccessFile(const std::string& name, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               IODebugContext* debug) override {
    IOStatus made = FileSystemWrapper::NewRandomAccessFile(name, options, file, debug);
    if (made.ok()) *file = std::make_unique<WatchedTable>(std::move(*file), watch_);
    return made;
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        IODebugContext* debug) override {
    IOStatus made = FileSystemWrapper::NewDirectory(name, options, directory, debug);
    if (made.ok())
      *directory = std::make_unique<WatchedDirectory>(std::move(*directory), name, watch_);
    return made;
  }

 private:
  IOStatus watch(IOStatus made, const std::string& name,
                 std::unique_ptr<rocksdb::FSWritableFile>* file) {
    if (made.ok()) *file = std::make_unique<WatchedFile>(std::move(*file), name, watch_);
    return made;
  }

  const std::shared_ptr<DiskWatch> watch_;
};

}  // namespace

std::shared_ptr<rocksdb::Env> make_watched_env(std::shared_ptr<rocksdb::FileSystem> files,
                                               std::shared_ptr<DiskWatch> watch) {
  if (files == nullptr) files = rocksdb::FileSystem::Default();
  return rocksdb::NewCompositeEnv(
      std::make_shared<WatchedFiles>(std::move(files), std::move(watch)));
}

}  // namespace tetrad::storage
