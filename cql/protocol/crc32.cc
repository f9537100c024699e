// SPDX-License-Identifier: Apache-2.0
// The folding method of Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction" (Intel, 2009), bit-reflected form: four 128 bit lanes are folded over 64 bytes each
// round, then into one, then reduced to 32 bits by Barrett's method.
#include "cql/protocol/crc32.h"

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define TETRAD_CRC32_FOLDING 1
#endif

namespace tetrad::cql {
namespace {

uint32_t crc32_by_table(uint32_t crc, BytesView bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

#ifdef TETRAD_CRC32_FOLDING
constexpr size_t kFoldedBytesMin = 64;

#define TETRAD_FOLDING __attribute__((target("pclmul,sse4.1")))

TETRAD_FOLDING inline __m128i load(const char* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

/// `lane` moved forward by as many bits as the constants stand for, added to `next`.
TETRAD_FOLDING inline __m128i fold(__m128i lane, __m128i constants, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(lane, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/// `size` is a multiple of 16 and at least 64; `state` is the inverted CRC.
TETRAD_FOLDING uint32_t fold_all(uint32_t state, const char* p, size_t size) {
  // x^n mod P for n = 512 + 64 and 512; 128 + 64 and 128; 64. P and floor(x^64 / P).
  const __m128i by_512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i by_128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  const __m128i by_64 = _mm_set_epi64x(0, 0x0163cd6124);
  const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
  const __m128i low_32 = _mm_setr_epi32(-1, 0, -1, 0);

  __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = load(p + 16), c = load(p + 32), d = load(p + 48);
  for (p += 64, size -= 64; size >= 64; p += 64, size -= 64) {
    a = fold(a, by_512, load(p));
    b = fold(b, by_512, load(p + 16));
    c = fold(c, by_512, load(p + 32));
    d = fold(d, by_512, load(p + 48));
  }
  a = fold(a, by_128, b);
  a = fold(a, by_128, c);
  a = fold(a, by_128, d);
  for (; size >= 16; p += 16, size -= 16) a = fold(a, by_128, load(p));

  // 128 to 64 bits, then 64 to 32.
  a = _mm_xor_si128(_mm_clmulepi64_si128(a, by_128, 0x10), _mm_srli_si128(a, 8));
  const __m128i upper = _mm_srli_si128(a, 4);
  a = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(a, low_32), by_64, 0x00), upper);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(a, low_32), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, quotient), 1));
}

bool can_fold() {
  static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return can;
}
#endif

}  // namespace

uint32_t crc32(uint32_t crc, BytesView bytes) {
#ifdef TETRAD_CRC32_FOLDING
  if (bytes.size() >= kFoldedBytesMin && can_fold()) {
    const size_t whole = bytes.size() & ~size_t{15};
    crc = ~fold_all(~crc, bytes.data(), whole);
    bytes.remove_prefix(whole);
  }
#endif
  return bytes.empty() ? crc : crc32_by_table(crc, bytes);
}

}  // namespace tetrad::cql
