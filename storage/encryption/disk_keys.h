// SPDX-License-Identifier: Apache-2.0
// The master keys of what a node keeps on its disk. They wrap the keys of files (file_header.h) and
// encrypt nothing else.
//
//   key file := line*
//   line     := id blanks key newline | "#" any text newline | newline
//   id       := 1 to 32 letters, digits and "_-."
//   key      := 64 hexadecimal digits: 256 bits that nobody can foresee
//
// New files are made under the first key; the others are there to read what was written before.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"

struct evp_cipher_st;

namespace tetrad::storage {

inline constexpr size_t kDiskKeyBytes = 32;
inline constexpr size_t kDiskKeyIdMax = 32;

/// One master key.
struct DiskKey {
  std::string id;
  std::array<uint8_t, kDiskKeyBytes> secret{};
  uint64_t fingerprint = 0;  // tells another key of the same id; says nothing of the secret
};

/// Immutable, on any thread.
class DiskKeys {
 public:
  /// `random`: of the keys of files. Errors: kConfig, with the line but never with what is in it;
  /// also when somebody but the owner may read or write the file.
  static Result<std::shared_ptr<const DiskKeys>> read(const std::string& path,
                                                      base::Random::Source random);
  /// `path`: for messages. Errors: as read().
  static Result<std::shared_ptr<const DiskKeys>> parse(std::string_view text,
                                                       const std::string& path,
                                                       base::Random::Source random);
  ~DiskKeys();
  DiskKeys(const DiskKeys&) = delete;
  DiskKeys& operator=(const DiskKeys&) = delete;

  const DiskKey& of_new_files() const { return keys_.front(); }
  /// Null: there is none of this id.
  const DiskKey* find(std::string_view id) const;
  const std::vector<DiskKey>& all() const { return keys_; }
  const std::string& path() const { return path_; }

  /// Bytes that nobody can foresee; on any thread.
  void draw(uint8_t* bytes, size_t size) const;
  /// AES-256-CTR and AES-256-GCM, looked up once: OpenSSL's look-up takes locks.
  const evp_cipher_st* stream_cipher() const { return stream_.get(); }
  const evp_cipher_st* wrap_cipher() const { return wrap_.get(); }

 private:
  DiskKeys(std::string path, std::vector<DiskKey> keys, base::Random::Source random);

  const std::string path_;
  std::vector<DiskKey> keys_;  // never empty
  const base::Random::Source random_;
  std::shared_ptr<const evp_cipher_st> stream_, wrap_;
};

}  // namespace tetrad::storage
