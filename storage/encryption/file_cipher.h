// SPDX-License-Identifier: Apache-2.0
// AES-256-CTR over the content of one file, from any offset. One call for a whole range: OpenSSL
// works at the speed of the processor's AES instructions only over many blocks at once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/encryption/file_header.h"

struct evp_cipher_ctx_st;

namespace tetrad::storage {

/// On any thread, several at once.
class FileCipher {
 public:
  /// `keys`: for OpenSSL's cipher; outlives this object's calls.
  FileCipher(std::shared_ptr<const DiskKeys> keys, const FileKey& key);
  ~FileCipher();
  FileCipher(const FileCipher&) = delete;
  FileCipher& operator=(const FileCipher&) = delete;

  /// Encrypts what is plain and decrypts what is not. `offset`: in the content. `from` and `to` may
  /// be the same.
  void apply(uint64_t offset, const char* from, char* to, size_t size) const;

 private:
  /// Frees a context of OpenSSL, which has no destructor of its own.
  struct FreeContext {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_cipher_ctx_st, FreeContext>;
  Context take() const;
  void give_back(Context context) const;

  const std::shared_ptr<const DiskKeys> keys_;
  const FileKey key_;
  mutable std::mutex mutex_;
  mutable std::vector<Context> idle_;  // as many as threads have been inside at once, a few
};

}  // namespace tetrad::storage
