// SPDX-License-Identifier: Apache-2.0
// AES-256 in counter mode: block n of a file is encrypted with the file's first counter plus n, so
// that any part of it can be read or written by itself.
#include "storage/encryption/file_cipher.h"

#include <algorithm>
#include <array>

#include <openssl/evp.h>

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::storage {
namespace {

constexpr size_t kBlockBytes = 16;
constexpr size_t kIdleMax = 4;
constexpr size_t kCallBytesMax = 1 << 30;  // OpenSSL counts in int

/// `first` + `blocks`, as a number of 128 bits.
std::array<uint8_t, 16> counter_at(const std::array<uint8_t, 16>& first, uint64_t blocks) {
  const char* const from = reinterpret_cast<const char*>(first.data());
  const auto high = base::load_big_endian<uint64_t>(from);
  const auto low = base::load_big_endian<uint64_t>(from + 8);
  std::array<uint8_t, 16> out;
  char* const to = reinterpret_cast<char*>(out.data());
  base::store_big_endian<uint64_t>(to, high + (low + blocks < low ? 1 : 0));
  base::store_big_endian<uint64_t>(to + 8, low + blocks);
  return out;
}

}  // namespace

void FileCipher::FreeContext::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

FileCipher::FileCipher(std::shared_ptr<const DiskKeys> keys, const FileKey& key)
    : keys_(std::move(keys)), key_(key) {}

FileCipher::~FileCipher() = default;

FileCipher::Context FileCipher::take() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Context context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  Context context(EVP_CIPHER_CTX_new());
  TETRAD_ASSERT(context != nullptr);
  const int begun = EVP_EncryptInit_ex2(context.get(), keys_->stream_cipher(), key_.secret.data(),
                                        key_.counter.data(), nullptr);
  TETRAD_ASSERT(begun == 1);
  return context;
}

void FileCipher::give_back(Context context) const {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(context));
}

void FileCipher::apply(uint64_t offset, const char* from, char* to, size_t size) const {
  if (size == 0) return;
  Context context = take();
  const auto counter = counter_at(key_.counter, offset / kBlockBytes);
  // The key stays as it is: only the counter is set.
  int done = EVP_EncryptInit_ex2(context.get(), nullptr, nullptr, counter.data(), nullptr);
  TETRAD_ASSERT(done == 1);
  int written = 0;
  const int skipped = static_cast<int>(offset % kBlockBytes);
  // In the middle of a block: what comes before is computed and thrown away.
  if (skipped > 0) {
    const std::array<uint8_t, kBlockBytes> before{};
    std::array<uint8_t, kBlockBytes> ignored;
    done = EVP_EncryptUpdate(context.get(), ignored.data(), &written, before.data(), skipped);
    TETRAD_ASSERT(done == 1);
  }
  for (size_t at = 0; at < size;) {
    const size_t part = std::min(size - at, kCallBytesMax);
    done = EVP_EncryptUpdate(context.get(), reinterpret_cast<uint8_t*>(to) + at, &written,
                             reinterpret_cast<const uint8_t*>(from) + at, static_cast<int>(part));
    TETRAD_ASSERT(done == 1);
    TETRAD_ASSERT(written == static_cast<int>(part));
    at += part;
  }
  give_back(std::move(context));
}

}  // namespace tetrad::storage
