// SPDX-License-Identifier: Apache-2.0
// Making and opening of the header of an encrypted file; the format stands in file_header.h.
#include "storage/encryption/file_header.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::storage {
namespace {

using base::Bytes;
using base::BytesView;

constexpr BytesView kMagic = "\x8ATETRENC";
constexpr uint8_t kVersion = 1, kCipher = 1;
constexpr size_t kVersionAt = 8, kCipherAt = 9, kIdSizeAt = 10, kIdAt = 12, kFingerprintAt = 44;
constexpr size_t kNonceAt = 52, kNonceBytes = 12, kWrappedAt = 64, kWrappedBytes = 48;
constexpr size_t kTagAt = 112, kTagBytes = 16;
constexpr size_t kTornTagBytes = 8;
static_assert(kTagAt + kTagBytes == kFileHeaderUsedBytes);
static_assert(kWrappedAt + kWrappedBytes == kTagAt);
static_assert(kIdAt + kDiskKeyIdMax == kFingerprintAt);
static_assert(sizeof(FileKey::secret) + sizeof(FileKey::counter) == kWrappedBytes);

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

uint8_t* at(Bytes& header, size_t offset) {
  return reinterpret_cast<uint8_t*>(header.data()) + offset;
}
const uint8_t* at(BytesView header, size_t offset) {
  return reinterpret_cast<const uint8_t*>(header.data()) + offset;
}

/// Encrypts `from` behind the nonce and sets the tag.
void wrap(const DiskKeys& keys, const DiskKey& master, const uint8_t* from, Bytes& header) {
  const Context context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  const bool done =
      context != nullptr &&
      EVP_EncryptInit_ex2(context.get(), keys.wrap_cipher(), master.secret.data(),
                          at(header, kNonceAt), nullptr) == 1 &&
      // What stands before the wrapped key is authenticated with it, not encrypted.
      EVP_EncryptUpdate(context.get(), nullptr, &size, at(header, 0), kWrappedAt) == 1 &&
      EVP_EncryptUpdate(context.get(), at(header, kWrappedAt), &size, from, kWrappedBytes) == 1 &&
      EVP_EncryptFinal_ex(context.get(), at(header, kTagAt), &size) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, at(header, kTagAt)) == 1;
  TETRAD_ASSERT(done);
}

/// False: the tag does not fit.
bool unwrap(const DiskKeys& keys, const DiskKey& master, BytesView header, uint8_t* to) {
  const Context context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  TETRAD_ASSERT(context != nullptr);
  Bytes tag(header.substr(kTagAt, kTagBytes));
  int size = 0;
  const bool begun =
      EVP_DecryptInit_ex2(context.get(), keys.wrap_cipher(), master.secret.data(),
                          at(header, kNonceAt), nullptr) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &size, at(header, 0), kWrappedAt) == 1 &&
      EVP_DecryptUpdate(context.get(), to, &size, at(header, kWrappedAt), kWrappedBytes) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1;
  TETRAD_ASSERT(begun);
  return EVP_DecryptFinal_ex(context.get(), to, &size) == 1;
}

/// All but the file's key, with a new nonce: a master key wraps two keys under one nonce never.
Bytes begin_header(const DiskKeys& keys) {
  const DiskKey& master = keys.of_new_files();
  Bytes header(kFileHeaderBytes, '\0');
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  header[kVersionAt] = static_cast<char>(kVersion);
  header[kCipherAt] = static_cast<char>(kCipher);
  base::store_big_endian(header.data() + kIdSizeAt, static_cast<uint16_t>(master.id.size()));
  std::memcpy(header.data() + kIdAt, master.id.data(), master.id.size());
  base::store_big_endian(header.data() + kFingerprintAt, master.fingerprint);
  keys.draw(at(header, kNonceAt), kNonceBytes);
  return header;
}

void end_header(const DiskKeys& keys, const FileKey& key, Bytes& header) {
  std::array<uint8_t, kWrappedBytes> content;
  std::memcpy(content.data(), key.secret.data(), key.secret.size());
  std::memcpy(content.data() + key.secret.size(), key.counter.data(), key.counter.size());
  wrap(keys, keys.of_new_files(), content.data(), header);
  OPENSSL_cleanse(content.data(), content.size());
}

}  // namespace

FileKey::~FileKey() {
  OPENSSL_cleanse(secret.data(), secret.size());
  OPENSSL_cleanse(counter.data(), counter.size());
}

FileKind file_kind(BytesView first, uint64_t file_bytes) {
  if (file_bytes == 0 || first.empty()) return FileKind::kPlain;
  // A header that was cut short counts by as much of its magic as is there.
  const size_t compared = std::min(first.size(), kMagic.size());
  const auto ends_in_zeros = [&](size_t count) {
    return first.size() >= kFileHeaderUsedBytes &&
           std::ranges::all_of(first.substr(kFileHeaderUsedBytes - count, count),
                               [](char c) { return c == '\0'; });
  };
  if (first.substr(0, compared) == kMagic.substr(0, compared)) {
    // One tag in 2^64 ends in so many zeros by chance.
    return file_bytes < kFileHeaderBytes || ends_in_zeros(kTornTagBytes) ? FileKind::kCutShort
                                                                         : FileKind::kEncrypted;
  }
  return ends_in_zeros(kFileHeaderUsedBytes) ? FileKind::kZeros : FileKind::kPlain;
}

Bytes make_file_header(const DiskKeys& keys, FileKey& key) {
  Bytes header = begin_header(keys);
  keys.draw(key.secret.data(), key.secret.size());
  keys.draw(key.counter.data(), key.counter.size());
  end_header(keys, key, header);
  return header;
}

Bytes renew_file_header(const DiskKeys& keys, const FileKey& key) {
  Bytes header = begin_header(keys);
  end_header(keys, key, header);
  return header;
}

Result<MasterKeyName> master_key_of(BytesView header, const std::string& file) {
  TETRAD_ASSERT(header.size() >= kFileHeaderUsedBytes);
  if (!header.starts_with(kMagic))
    return fail(ErrorCode::kCorruption, "{} has no header of an encrypted file", file);
  const uint8_t version = *at(header, kVersionAt), cipher = *at(header, kCipherAt);
  if (version != kVersion || cipher != kCipher)
    return fail(ErrorCode::kConfig,
                "{} says that it is encrypted in version {} with cipher {}; this program reads "
                "version {} with cipher {}: it is of a newer program, or its header is damaged",
                file, version, cipher, kVersion, kCipher);
  const auto size = base::load_big_endian<uint16_t>(header.data() + kIdSizeAt);
  if (size == 0 || size > kDiskKeyIdMax)
    return fail(ErrorCode::kCorruption, "the header of {} is damaged", file);
  return MasterKeyName{Bytes(header.substr(kIdAt, size)),
                       base::load_big_endian<uint64_t>(header.data() + kFingerprintAt)};
}

Result<const DiskKey*> find_master_key(const MasterKeyName& name, const DiskKeys* keys,
                                       const std::string& file) {
  // An id of a damaged header may hold anything.
  const bool is_text =
      std::ranges::all_of(name.id, [](char c) { return c > ' ' && c < '\x7F' && c != '"'; });
  const std::string id = is_text ? name.id : "0x" + base::to_hex(name.id);
  if (keys == nullptr)
    return fail(ErrorCode::kConfig,
                "{} is encrypted with key \"{}\" and disk_encryption_key_file is not set", file,
                id);
  const DiskKey* const key = keys->find(name.id);
  if (key == nullptr)
    return fail(ErrorCode::kConfig,
                "{} is encrypted with key \"{}\", which is not in {}: add it as a further line",
                file, id, keys->path());
  if (key->fingerprint != name.fingerprint)
    return fail(ErrorCode::kConfig,
                "{} is encrypted with another key \"{}\" than the one in {}, or its header is "
                "damaged",
                file, id, keys->path());
  return key;
}

Result<FileKey> open_file_header(BytesView header, const DiskKeys& keys, const std::string& file) {
  TETRAD_TRY(const MasterKeyName name, master_key_of(header, file));
  TETRAD_TRY(const DiskKey* const master, find_master_key(name, &keys, file));
  std::array<uint8_t, kWrappedBytes> content;
  if (!unwrap(keys, *master, header, content.data()))
    return fail(ErrorCode::kCorruption, "the header of {} is damaged", file);
  FileKey key;
  std::memcpy(key.secret.data(), content.data(), key.secret.size());
  std::memcpy(key.counter.data(), content.data() + key.secret.size(), key.counter.size());
  OPENSSL_cleanse(content.data(), content.size());
  return key;
}

}  // namespace tetrad::storage
