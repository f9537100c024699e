// SPDX-License-Identifier: Apache-2.0
// A file system below RocksDB. Offsets and sizes that RocksDB sees are of the content; what is on
// disk begins with a header of kFileHeaderBytes (file_header.h), so each call moves its offset by
// that much.
//
//   what a file begins with   with keys                      without keys
//   a header of ours          decrypted, or an error that    an error that names the key
//                             names the key
//   a header and no content   empty                          empty
//   zeros                     empty: its header was never    as it is
//                             synced
//   anything else             as it is                       as it is
//
// New files are encrypted where there are keys, so a folder turns over from one to the other as
// files are written anew. Called by RocksDB from any thread; the objects keep no state but the
// file's own.
#include "storage/encryption/encrypted_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <rocksdb/file_system.h>

#include "base/assert.h"
#include "base/open_file.h"
#include "storage/encryption/file_cipher.h"

namespace tetrad::storage {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using CipherPtr = std::shared_ptr<const FileCipher>;

// RocksDB asks others for a block only if it hears of corruption as such.
IOStatus status_of(const Error& error) {
  return error.code == ErrorCode::kCorruption ? IOStatus::Corruption(error.message)
                                              : IOStatus::IOError(error.message);
}

/// Appends behind the header.
class EncryptedWriter final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  /// `size`: of the content that is there already.
  EncryptedWriter(std::unique_ptr<rocksdb::FSWritableFile> file, CipherPtr cipher, uint64_t size)
      : FSWritableFileOwnerWrapper(std::move(file)), cipher_(std::move(cipher)), size_(size) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const Slice encrypted = encrypt(size_, data);
    IOStatus done = FSWritableFileOwnerWrapper::Append(encrypted, options, debug);
    // The position counts only what was written: a failed append is repeated at the same place of
    // the key stream.
    if (done.ok()) size_ += data.size();
    return done;
  }
  /// What would be verified is of the plain bytes.
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    const Slice encrypted = encrypt(offset, data);
    IOStatus done = FSWritableFileOwnerWrapper::PositionedAppend(
        encrypted, offset + kFileHeaderBytes, options, debug);
    if (done.ok()) size_ = std::max(size_, offset + data.size());
    return done;
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }
  /// RocksDB cuts off what it had padded: nothing is written there again.
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    IOStatus done = FSWritableFileOwnerWrapper::Truncate(size + kFileHeaderBytes, options, debug);
    if (done.ok()) size_ = size;
    return done;
  }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_; }
  IOStatus InvalidateCache(size_t offset, size_t length) override {
    return FSWritableFileOwnerWrapper::InvalidateCache(offset + kFileHeaderBytes, length);
  }
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* debug) override {
    return FSWritableFileOwnerWrapper::RangeSync(offset + kFileHeaderBytes, bytes, options, debug);
  }
  void PrepareWrite(size_t offset, size_t length, const IOOptions& options,
                    IODebugContext* debug) override {
    FSWritableFileOwnerWrapper::PrepareWrite(offset + kFileHeaderBytes, length, options, debug);
  }
  IOStatus Allocate(uint64_t offset, uint64_t length, const IOOptions& options,
                    IODebugContext* debug) override {
    return FSWritableFileOwnerWrapper::Allocate(offset + kFileHeaderBytes, length, options, debug);
  }

 private:
  /// Good until the next call; RocksDB writes a file from one thread at a time.
  Slice encrypt(uint64_t offset, const Slice& data) {
    if (buffer_.size() < data.size()) buffer_.resize(data.size());
    cipher_->apply(offset, data.data(), buffer_.data(), data.size());
    const Slice encrypted(buffer_.data(), data.size());
    return encrypted;
  }

  const CipherPtr cipher_;
  uint64_t size_;
  std::string buffer_;
};

// Reads at any offset, from several threads: nothing in it changes.
class EncryptedReader final : public rocksdb::FSRandomAccessFile {
 public:
  EncryptedReader(std::unique_ptr<rocksdb::FSRandomAccessFile> file, CipherPtr cipher)
      : file_(std::move(file)), cipher_(std::move(cipher)) {}

  IOStatus Read(uint64_t offset, size_t size, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* debug) const override {
    IOStatus done = file_->Read(offset + kFileHeaderBytes, size, options, result, scratch, debug);
    if (!done.ok()) return done;
    // What was read may be in the file's own memory.
    cipher_->apply(offset, result->data(), scratch, result->size());
    *result = Slice(scratch, result->size());
    return done;
  }
  IOStatus Prefetch(uint64_t offset, size_t size, const IOOptions& options,
                    IODebugContext* debug) override {
    return file_->Prefetch(offset + kFileHeaderBytes, size, options, debug);
  }
  size_t GetUniqueId(char* id, size_t size) const override { return file_->GetUniqueId(id, size); }
  void Hint(AccessPattern pattern) override { file_->Hint(pattern); }
  bool use_direct_io() const override { return file_->use_direct_io(); }
  size_t GetRequiredBufferAlignment() const override { return file_->GetRequiredBufferAlignment(); }
  IOStatus InvalidateCache(size_t offset, size_t size) override {
    return file_->InvalidateCache(offset + kFileHeaderBytes, size);
  }

 private:
  const std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  const CipherPtr cipher_;
};

/// Reads from the beginning, as the log and the manifest are read. `file` stands behind the header.
class EncryptedSequence final : public rocksdb::FSSequentialFile {
 public:
  EncryptedSequence(std::unique_ptr<rocksdb::FSSequentialFile> file, CipherPtr cipher)
      : file_(std::move(file)), cipher_(std::move(cipher)) {}

  IOStatus Read(size_t size, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) override {
    IOStatus done = file_->Read(size, options, result, scratch, debug);
    if (!done.ok()) return done;
    cipher_->apply(at_, result->data(), scratch, result->size());
    *result = Slice(scratch, result->size());
    at_ += result->size();
    return done;
  }
  IOStatus PositionedRead(uint64_t offset, size_t size, const IOOptions& options, Slice* result,
                          char* scratch, IODebugContext* debug) override {
    IOStatus done =
        file_->PositionedRead(offset + kFileHeaderBytes, size, options, result, scratch, debug);
    if (!done.ok()) return done;
    cipher_->apply(offset, result->data(), scratch, result->size());
    *result = Slice(scratch, result->size());
    return done;
  }
  IOStatus Skip(uint64_t size) override {
    at_ += size;
    // `at_` moves with the file, so the key stream stays in step.
    return file_->Skip(size);
  }
  bool use_direct_io() const override { return file_->use_direct_io(); }
  size_t GetRequiredBufferAlignment() const override { return file_->GetRequiredBufferAlignment(); }
  IOStatus InvalidateCache(size_t offset, size_t size) override {
    return file_->InvalidateCache(offset + kFileHeaderBytes, size);
  }

 private:
  const std::unique_ptr<rocksdb::FSSequentialFile> file_;
  const CipherPtr cipher_;
  uint64_t at_ = 0;
};

// What a file of zeros reads as.
class EmptySequence final : public rocksdb::FSSequentialFile {
 public:
  IOStatus Read(size_t, const IOOptions&, Slice* result, char* scratch, IODebugContext*) override {
    *result = Slice(scratch, 0);
    return IOStatus::OK();
  }
  IOStatus Skip(uint64_t) override { return IOStatus::OK(); }
};

class EmptyReader final : public rocksdb::FSRandomAccessFile {
 public:
  IOStatus Read(uint64_t, size_t, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    *result = Slice(scratch, 0);
    return IOStatus::OK();
  }
};

class EncryptedFiles final : public rocksdb::FileSystemWrapper {
 public:
  EncryptedFiles(std::shared_ptr<rocksdb::FileSystem> files, std::shared_ptr<const DiskKeys> keys)
      : FileSystemWrapper(std::move(files)), keys_(std::move(keys)) {}
  const char* Name() const override { return "EncryptedFiles"; }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                             IODebugContext* debug) override {
    Look look;
    IOStatus done = look_at(name, options.io_options, debug, look);
    if (done.ok() && look.kind == FileKind::kPlain)
      return FileSystemWrapper::NewSequentialFile(name, options, file, debug);
    // Zeros, or a header alone: see the table.
    if (done.ok() && look.kind != FileKind::kEncrypted) {
      *file = std::make_unique<EmptySequence>();
      return done;
    }
    std::unique_ptr<rocksdb::FSSequentialFile> inner;
    if (done.ok()) done = FileSystemWrapper::NewSequentialFile(name, options, &inner, debug);
    // With direct I/O all reads say where.
    if (done.ok() && !inner->use_direct_io()) done = inner->Skip(kFileHeaderBytes);
    if (done.ok())
      *file = std::make_unique<EncryptedSequence>(std::move(inner), std::move(look.cipher));
    return done;
  }

  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               IODebugContext* debug) override {
    Look look;
    IOStatus done = look_at(name, options.io_options, debug, look);
    if (done.ok() && look.kind == FileKind::kPlain)
      return FileSystemWrapper::NewRandomAccessFile(name, options, file, debug);
    if (done.ok() && look.kind != FileKind::kEncrypted) {
      *file = std::make_unique<EmptyReader>();
      return done;
    }
    std::unique_ptr<rocksdb::FSRandomAccessFile> inner;
    if (done.ok()) done = FileSystemWrapper::NewRandomAccessFile(name, options, &inner, debug);
    if (done.ok())
      *file = std::make_unique<EncryptedReader>(std::move(inner), std::move(look.cipher));
    return done;
  }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSWritableFile> inner;
    IOStatus done = FileSystemWrapper::NewWritableFile(name, options, &inner, debug);
    if (!done.ok()) return done;
    return begin(std::move(inner), options.io_options, file, debug);
  }

  /// What is there is gone on with in its own way.
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* debug) override {
    uint64_t bytes = 0;
    const bool exists =
        FileSystemWrapper::GetFileSize(name, options.io_options, &bytes, debug).ok() && bytes != 0;
    Look look;
    // A file that is empty begins anew, with a header.
    if (exists) {
      IOStatus done = look_at(name, options.io_options, debug, look);
      if (!done.ok()) return done;
      if (look.kind == FileKind::kPlain)
        return FileSystemWrapper::ReopenWritableFile(name, options, file, debug);
    }
    if (!exists || look.kind != FileKind::kEncrypted)
      return NewWritableFile(name, options, file, debug);
    std::unique_ptr<rocksdb::FSWritableFile> inner;
    IOStatus done = FileSystemWrapper::ReopenWritableFile(name, options, &inner, debug);
    if (done.ok())
      *file = std::make_unique<EncryptedWriter>(std::move(inner), std::move(look.cipher),
                                                bytes - kFileHeaderBytes);
    return done;
  }

  /// A new file has a new key, so nothing of the old one is written over.
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                             IODebugContext* debug) override {
    IOStatus done = FileSystemWrapper::DeleteFile(old_name, options.io_options, debug);
    return done.ok() ? NewWritableFile(name, options, file, debug) : done;
  }

  // RocksDB needs neither of the two for its databases.
  IOStatus NewRandomRWFile(const std::string& name, const FileOptions&,
                           std::unique_ptr<rocksdb::FSRandomRWFile>*, IODebugContext*) override {
    return IOStatus::NotSupported(name + " cannot be written in place: it may be encrypted");
  }
  IOStatus NewMemoryMappedFileBuffer(const std::string& name,
                                     std::unique_ptr<rocksdb::MemoryMappedFileBuffer>*) override {
    return IOStatus::NotSupported(name + " cannot be mapped: it may be encrypted");
  }

  IOStatus GetFileSize(const std::string& name, const IOOptions& options, uint64_t* size,
                       IODebugContext* debug) override {
    IOStatus done = FileSystemWrapper::GetFileSize(name, options, size, debug);
    if (!done.ok() || *size == 0) return done;
    // Sizes decide where logs are read to and which files are whole: they must be of the content.
    FileKind kind = FileKind::kPlain;
    done = kind_of(name, options, debug, *size, kind, nullptr);
    if (done.ok() && kind != FileKind::kPlain)
      *size = kind == FileKind::kEncrypted ? *size - kFileHeaderBytes : 0;
    return done;
  }
  IOStatus GetChildrenFileAttributes(const std::string& directory, const IOOptions& options,
                                     std::vector<rocksdb::FileAttributes>* found,
                                     IODebugContext* debug) override {
    IOStatus done = FileSystemWrapper::GetChildrenFileAttributes(directory, options, found, debug);
    if (!done.ok()) return done;
    for (rocksdb::FileAttributes& file : *found) {
      bool is_directory = false;
      const std::string name = directory + "/" + file.name;
      if (IsDirectory(name, options, &is_directory, debug).ok() && is_directory) continue;
      // It may be gone meanwhile.
      GetFileSize(name, options, &file.size_bytes, debug).PermitUncheckedError();
    }
    return done;
  }
  IOStatus Truncate(const std::string& name, size_t size, const IOOptions& options,
                    IODebugContext* debug) override {
    uint64_t bytes = 0;
    IOStatus done = FileSystemWrapper::GetFileSize(name, options, &bytes, debug);
    FileKind kind = FileKind::kPlain;
    if (done.ok() && bytes != 0) done = kind_of(name, options, debug, bytes, kind, nullptr);
    if (!done.ok()) return done;
    const size_t header = kind == FileKind::kEncrypted ? kFileHeaderBytes : 0;
    return FileSystemWrapper::Truncate(name, size + header, options, debug);
  }

 private:
  struct Look {
    FileKind kind = FileKind::kPlain;
    CipherPtr cipher;  // of an encrypted file
  };

  // The header is appended first, and becomes durable with the file's first sync.
  IOStatus begin(std::unique_ptr<rocksdb::FSWritableFile> inner, const IOOptions& options,
                 std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* debug) {
    if (keys_ == nullptr) {
      *file = std::move(inner);
      return IOStatus::OK();
    }
    FileKey key;
    const Bytes header = make_file_header(*keys_, key);
    IOStatus done = inner->Append(header, options, debug);
    if (done.ok())
      *file = std::make_unique<EncryptedWriter>(std::move(inner),
                                                std::make_shared<const FileCipher>(keys_, key), 0);
    return done;
  }

  /// `header` gets the first bytes.
  IOStatus kind_of(const std::string& name, const IOOptions& options, IODebugContext* debug,
                   uint64_t bytes, FileKind& kind, Bytes* header) {
    // A read of its own: the caller's file is not moved.
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    FileOptions plain;
    plain.io_options = options;
    IOStatus done = FileSystemWrapper::NewSequentialFile(name, plain, &file, debug);
    if (!done.ok()) return done;
    Bytes first(kFileHeaderUsedBytes, '\0');
    size_t filled = 0;
    while (filled < first.size()) {
      Slice got;
      done = file->Read(first.size() - filled, options, &got, first.data() + filled, debug);
      if (!done.ok()) return done;
      if (got.empty()) break;
      if (got.data() != first.data() + filled)
        std::copy_n(got.data(), got.size(), first.data() + filled);
      filled += got.size();
    }
    first.resize(filled);
    kind = file_kind(first, bytes);
    // Without keys nobody has begun a file whose header could be lacking.
    if (keys_ == nullptr && kind == FileKind::kZeros) kind = FileKind::kPlain;
    if (header != nullptr) *header = std::move(first);
    return done;
  }

  IOStatus look_at(const std::string& name, const IOOptions& options, IODebugContext* debug,
                   Look& look) {
    uint64_t bytes = 0;
    IOStatus done = FileSystemWrapper::GetFileSize(name, options, &bytes, debug);
    if (!done.ok() || bytes == 0) return done;
    Bytes header;
    done = kind_of(name, options, debug, bytes, look.kind, &header);
    if (!done.ok()) return done;
    if (look.kind != FileKind::kEncrypted) return done;
    // Encrypted, and no keys are configured: the error names the key that is missing.
    if (keys_ == nullptr) {
      const auto master = master_key_of(header, name);
      if (!master) return status_of(master.error());
      return status_of(find_master_key(*master, nullptr, name).error());
    }
    const auto key = open_file_header(header, *keys_, name);
    if (!key) return status_of(key.error());
    look.cipher = std::make_shared<const FileCipher>(keys_, *key);
    return done;
  }

  const std::shared_ptr<const DiskKeys> keys_;
};

/// Files of RocksDB, or of ours, that hold no rows, or are never encrypted as the audit log: left out
/// when files are counted and checked.
bool has_no_rows(const std::filesystem::path& path) {
  const std::string name = path.filename();
  static constexpr std::string_view kNames[] = {"LOCK", "BALLAST", "RUNNING", "admin_token"};
  if (name.starts_with("audit") && name.ends_with(".log")) return true;
  return name.starts_with("LOG") || std::ranges::find(kNames, name) != std::end(kNames);
}

/// Files of RocksDB, or of ours, that say nothing of rows or tables. Encrypted ones need their key
/// all the same.
bool may_be_plain(const std::filesystem::path& path, uint64_t bytes) {
  const std::string name = path.filename();
  static constexpr std::string_view kNames[] = {"CURRENT", "IDENTITY", "TETRAD_FORMAT"};
  return bytes == 0 || name.starts_with("OPTIONS-") ||
         std::ranges::find(kNames, name) != std::end(kNames);
}

/// `look` gets the first bytes of each file, and its size.
template <class Look>
Result<void> for_each_file(const std::string& directory, Look look) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;  // files come and go meanwhile
    if (!at->is_regular_file(gone) || gone || has_no_rows(at->path())) continue;
    const uint64_t bytes = at->file_size(gone);
    if (gone) continue;
    std::ifstream file(at->path(), std::ios::binary);
    Bytes first(kFileHeaderUsedBytes, '\0');
    file.read(first.data(), static_cast<std::streamsize>(first.size()));
    first.resize(static_cast<size_t>(file.gcount()));
    TETRAD_TRY_VOID(look(at->path().string(), first, bytes));
  }
  if (error) return fail(ErrorCode::kIo, "cannot read {}: {}", directory, error.message());
  return {};
}

Result<void> overwrite_start(const std::string& file, BytesView bytes) {
  const base::OpenFile opened(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  const bool done = opened.is_open() && ::pwrite(*opened, bytes.data(), bytes.size(), 0) ==
                                            static_cast<ssize_t>(bytes.size());
  if (!done) return fail(ErrorCode::kIo, "cannot write {}: {}", file, std::strerror(errno));
  return {};
}

/// One call for the whole file system: there may be thousands of files.
Result<void> sync_all(const std::string& directory) {
  const base::OpenFile opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open() || ::syncfs(*opened) != 0)
    return fail(ErrorCode::kIo, "cannot sync {}: {}", directory, std::strerror(errno));
  return {};
}

}  // namespace

std::shared_ptr<rocksdb::FileSystem> make_encrypted_files(
    std::shared_ptr<rocksdb::FileSystem> files, std::shared_ptr<const DiskKeys> keys) {
  if (files == nullptr) files = rocksdb::FileSystem::Default();
  return std::make_shared<EncryptedFiles>(std::move(files), std::move(keys));
}

// By the id of the master key; "" are files without encryption.
Result<FileCounts> count_encrypted_files(const std::string& directory) {
  FileCounts out;
  TETRAD_TRY_VOID(
      for_each_file(directory, [&](const std::string& file, BytesView first, uint64_t bytes) {
        std::string id;
        if (file_kind(first, bytes) == FileKind::kEncrypted) {
          if (const auto master = master_key_of(first, file)) id = master->id;
        } else if (may_be_plain(file, bytes)) {
          return Result<void>();
        }
        FileCount& count = out[id];
        ++count.files;
        count.bytes += bytes;
        return Result<void>();
      }));
  return out;
}

// At the start, before any store is opened: a missing key is better found here than by the first
// read.
Result<void> check_encrypted_files(const std::string& directory, const DiskKeys& keys) {
  return for_each_file(
      directory, [&](const std::string& file, BytesView first, uint64_t bytes) -> Result<void> {
        if (file_kind(first, bytes) != FileKind::kEncrypted) return {};
        const auto opened = open_file_header(first, keys, file);
        // Rot is the store's to find, and others' to mend.
        if (opened || opened.error().code == ErrorCode::kCorruption) return {};
        return std::unexpected(opened.error());
      });
}

Result<uint64_t> renew_encrypted_files(const std::string& directory, const DiskKeys& keys) {
  uint64_t renewed = 0;
  TETRAD_TRY_VOID(for_each_file(
      directory, [&](const std::string& file, BytesView first, uint64_t bytes) -> Result<void> {
        if (file_kind(first, bytes) != FileKind::kEncrypted) return {};
        const auto master = master_key_of(first, file);
        if (!master || master->fingerprint == keys.of_new_files().fingerprint) return {};
        const auto key = open_file_header(first, keys, file);
        if (!key) return {};
        ++renewed;
        return overwrite_start(file, renew_file_header(keys, *key));
      }));
  if (renewed != 0) TETRAD_TRY_VOID(sync_all(directory));
  return renewed;
}

}  // namespace tetrad::storage
