// SPDX-License-Identifier: Apache-2.0
// The system's files with faults: from the nth call on, an operation on files of a kind fails in a
// way that a disk does, until the fault is taken away.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

namespace tetrad::storage {

enum class FileCall { kOpen, kAppend, kSync, kRead };

/// On any thread.
class FileFaults {
 public:
  /// `suffix`: of the files' names, or "MANIFEST". `error`: an errno. `after`: so many calls are
  /// still good, and so many fail then.
  void fail(FileCall call, std::string part, int error, int after = 0, int times = 1 << 30) {
    const std::lock_guard lock(mutex_);
    faults_[{call, std::move(part)}] = {error, after, times};
  }
  void heal() {
    const std::lock_guard lock(mutex_);
    faults_.clear();
  }
  void set_free_bytes(uint64_t bytes) { free_bytes_ = bytes; }
  uint64_t free_bytes() const { return free_bytes_; }
  /// Calls that were let through since the start.
  uint64_t calls(FileCall call) const { return calls_[static_cast<size_t>(call)]; }

  rocksdb::IOStatus check(FileCall call, const std::string& file) {
    const std::lock_guard lock(mutex_);
    for (auto& [where, fault] : faults_) {
      if (where.first != call || file.find(where.second) == std::string::npos) continue;
      if (fault.after-- > 0 || fault.times-- <= 0) continue;
      return status_of(fault.error, file);
    }
    ++calls_[static_cast<size_t>(call)];
    return rocksdb::IOStatus::OK();
  }

 private:
  /// As RocksDB's own file system makes them.
  static rocksdb::IOStatus status_of(int error, const std::string& file) {
    if (error != ENOSPC)
      return rocksdb::IOStatus::IOError("While testing: " + file, strerror(error));
    rocksdb::IOStatus status =
        rocksdb::IOStatus::NoSpace("While testing: " + file, strerror(error));
    status.SetRetryable(true);
    return status;
  }

  struct Fault {
    int error = 0, after = 0, times = 0;
  };
  std::mutex mutex_;
  std::map<std::pair<FileCall, std::string>, Fault> faults_;
  std::atomic<uint64_t> free_bytes_ = uint64_t{1} << 40;
  std::atomic<uint64_t> calls_[4] = {};
};

class FaultyWritable final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyWritable(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name,
                 std::shared_ptr<FileFaults> faults)
      : FSWritableFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        faults_(std::move(faults)) {}
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    const auto status = faults_->check(FileCall::kAppend, name_);
    return status.ok() ? FSWritableFileOwnerWrapper::Append(data, options, debug) : status;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* debug) override {
    const auto status = faults_->check(FileCall::kAppend, name_);
    if (!status.ok()) return status;
    return FSWritableFileOwnerWrapper::Append(data, options, verification, debug);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    const auto status = faults_->check(FileCall::kSync, name_);
    return status.ok() ? FSWritableFileOwnerWrapper::Sync(options, debug) : status;
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    const auto status = faults_->check(FileCall::kSync, name_);
    return status.ok() ? FSWritableFileOwnerWrapper::Fsync(options, debug) : status;
  }

 private:
  const std::string name_;
  const std::shared_ptr<FileFaults> faults_;
};

class FaultyReadable final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultyReadable(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string name,
                 std::shared_ptr<FileFaults> faults)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        faults_(std::move(faults)) {}
  rocksdb::IOStatus Read(uint64_t offset, size_t bytes, const rocksdb::IOOptions& options,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext* debug) const override {
    const auto status = faults_->check(FileCall::kRead, name_);
    if (!status.ok()) return status;
    return FSRandomAccessFileOwnerWrapper::Read(offset, bytes, options, result, scratch, debug);
  }

 private:
  const std::string name_;
  const std::shared_ptr<FileFaults> faults_;
};

class FaultyFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultyFiles(std::shared_ptr<FileFaults> faults)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), faults_(std::move(faults)) {}
  const char* Name() const override { return "FaultyFiles"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    const auto status = faults_->check(FileCall::kOpen, name);
    if (!status.ok()) return status;
    const auto made = FileSystemWrapper::NewWritableFile(name, options, file, debug);
    if (made.ok()) *file = std::make_unique<FaultyWritable>(std::move(*file), name, faults_);
    return made;
  }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override {
    const auto made = FileSystemWrapper::NewRandomAccessFile(name, options, file, debug);
    if (made.ok()) *file = std::make_unique<FaultyReadable>(std::move(*file), name, faults_);
    return made;
  }
  rocksdb::IOStatus GetFreeSpace(const std::string&, const rocksdb::IOOptions&, uint64_t* bytes,
                                 rocksdb::IODebugContext*) override {
    *bytes = faults_->free_bytes();
    return rocksdb::IOStatus::OK();
  }

 private:
  const std::shared_ptr<FileFaults> faults_;
};

}  // namespace tetrad::storage
