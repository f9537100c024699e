// SPDX-License-Identifier: Apache-2.0
// Digests by their Java names, computed by OpenSSL.
#include "base/digest.h"

#include <array>
#include <utility>

#include <openssl/evp.h>

#include "base/assert.h"

namespace tetrad::base {

std::optional<Bytes> digest_named(BytesView name, BytesView bytes) {
  // Functions and not their results: the library's tables are made when they are first asked for.
  using Kind = const EVP_MD* (*)();
  // Names as Java's MessageDigest has them; SHA and SHA1 are its other names for SHA-1.
  constexpr std::array<std::pair<BytesView, Kind>, 14> kKinds = {{
      {"MD5", EVP_md5},
      {"SHA", EVP_sha1},
      {"SHA1", EVP_sha1},
      {"SHA-1", EVP_sha1},
      {"SHA-224", EVP_sha224},
      {"SHA-256", EVP_sha256},
      {"SHA-384", EVP_sha384},
      {"SHA-512", EVP_sha512},
      {"SHA-512/224", EVP_sha512_224},
      {"SHA-512/256", EVP_sha512_256},
      {"SHA3-224", EVP_sha3_224},
      {"SHA3-256", EVP_sha3_256},
      {"SHA3-384", EVP_sha3_384},
      {"SHA3-512", EVP_sha3_512},
  }};
  Bytes upper(name);
  // ASCII only: no name has another letter.
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  for (const auto& [known, kind] : kKinds) {
    if (known != upper) continue;
    std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
    unsigned size = 0;
    // Fails only when the library lacks the digest.
    const int ok = EVP_Digest(bytes.data(), bytes.size(), out.data(), &size, kind(), nullptr);
    TETRAD_ASSERT(ok == 1);
    return Bytes(reinterpret_cast<const char*>(out.data()), size);
  }
  return std::nullopt;
}

}  // namespace tetrad::base
