// SPDX-License-Identifier: Apache-2.0
// What an encrypted file begins with: the key of the file, wrapped by a master key.
//
//   file    := header, content encrypted with AES-256-CTR under the file's key
//   header  := magic, version, cipher, id size, id, fingerprint, nonce, wrapped, tag, zeros
//   magic   := 8A "TETRENC"                         at 0
//   version := u8 1                                 at 8
//   cipher  := u8 1: AES-256-CTR, wrapped by AES-256-GCM
//   id size := u16; id := 32 bytes, zeros behind it     the master key's
//   fingerprint := u64                              of the master key, at 44
//   nonce   := 12 bytes                             of the wrapping, at 52
//   wrapped := 48 bytes: the file's key, then the counter of its first block of 16 bytes
//   tag     := 16 bytes                             over all that is before it
//   zeros   := up to 4096 bytes, so that pages of the content stay pages
//
//   example: 8a54455452454e43 01 01 0002 6b31 (30 zeros) e461fb3540fcce34 010101010101010101010101
//            26b8df409735bf110fde704bb8851a61f447ba36896253868a1a4bcde440decf
//            12393595fd330fb9f11799ce71720244
//            a5844497d2212d8eed6ecee0122d69d8
//            under the key "k1" of the bytes 1 to 32, where all that is drawn is 01
//
// Key and counter are drawn for each file, so no key stream is ever used twice: a file is written
// once, from its start to its end, and what replaces it has another key. When the master key changes
// the header alone is written anew; what is of use of it lies in one sector of a disk. The tag makes an altered
// header show; the content has RocksDB's checksums.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/encryption/disk_keys.h"

namespace tetrad::storage {

inline constexpr size_t kFileHeaderBytes = 4096;
/// The zeros behind say nothing.
inline constexpr size_t kFileHeaderUsedBytes = 128;

/// Of one file; wiped when it goes.
struct FileKey {
  std::array<uint8_t, kDiskKeyBytes> secret{};
  std::array<uint8_t, 16> counter{};

  FileKey() = default;
  FileKey(const FileKey&) = default;
  FileKey& operator=(const FileKey&) = default;
  ~FileKey();
};

/// What the first bytes of a file say that it is.
enum class FileKind : uint8_t {
  kPlain,
  kEncrypted,
  /// It ends in its header, or zeros follow from the tag or before on: a power cut came before the
  /// file was synced for the first time, so nothing behind it counts.
  kCutShort,
  /// Zeros are where the header would be. After a power cut the disk may have later pages of a file
  /// and not its first.
  kZeros,
};
/// By its first bytes, kFileHeaderUsedBytes if it has that many, and its size.
FileKind file_kind(base::BytesView first, uint64_t file_bytes);

/// Draws a key for a new file. The bytes are kFileHeaderBytes.
base::Bytes make_file_header(const DiskKeys& keys, FileKey& key);
/// Of a file that is there, under the key of new files: its content stays as it is.
base::Bytes renew_file_header(const DiskKeys& keys, const FileKey& key);

/// The master key that an encrypted file names; nobody has compared the tag yet.
struct MasterKeyName {
  std::string id;
  uint64_t fingerprint = 0;
};
/// Errors: kConfig: a version that this program does not read; kCorruption.
Result<MasterKeyName> master_key_of(base::BytesView header, const std::string& file);
/// The key that the file was made under. `keys` null: there are none. Errors: kConfig: it is not
/// there, or another one has its id.
Result<const DiskKey*> find_master_key(const MasterKeyName& name, const DiskKeys* keys,
                                       const std::string& file);
/// Errors: as those of the two above; kCorruption when the tag does not fit.
Result<FileKey> open_file_header(base::BytesView header, const DiskKeys& keys,
                                 const std::string& file);

}  // namespace tetrad::storage
