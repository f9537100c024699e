// SPDX-License-Identifier: Apache-2.0
// Reading and writing of bytes, also of bytes that lie; the arena; seeded randomness.
#include <limits>
#include <set>

#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "base/random.h"
#include "tests/support/hex.h"

namespace tetrad::base {
namespace {

template <class T>
bool corrupt(const Result<T>& result) {
  return !result && result.error().code == ErrorCode::kCorruption;
}

TEST_CASE("the example of numbers and bytes is what it says") {
  const Bytes example = tests::from_hex("ac02 03 02 6869");
  ByteReader reader(example);
  CHECK(*reader.read_varint() == 300);
  CHECK(*reader.read_zigzag() == -2);
  CHECK(*reader.read_bytes() == "hi");
  CHECK(reader.at_end());
  Bytes out;
  ByteWriter writer(out);
  writer.varint(300);
  writer.zigzag(-2);
  writer.bytes("hi");
  CHECK(out == example);
}

TEST_CASE("fixed integers are big-endian and come back") {
  Bytes out;
  ByteWriter writer(out);
  writer.u8(0xAB);
  writer.u16(0x0102);
  writer.u32(0x03040506);
  writer.i32(-2);
  writer.u64(0x0102030405060708);
  writer.i64(std::numeric_limits<int64_t>::min());
  CHECK(to_hex(out) == "ab010203040506fffffffe01020304050607088000000000000000");
  ByteReader reader(out);
  CHECK(*reader.read_u8() == 0xAB);
  CHECK(*reader.read_u16() == 0x0102);
  CHECK(*reader.read_u32() == 0x03040506);
  CHECK(*reader.read_i32() == -2);
  CHECK(*reader.read_u64() == 0x0102030405060708);
  CHECK(*reader.read_i64() == std::numeric_limits<int64_t>::min());
  CHECK(reader.at_end());
}

TEST_CASE("varints, zigzags and byte strings of every size come back") {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t value = random.next() >> random.below(64);
    const auto number = static_cast<int64_t>(random.next()) >> random.below(64);
    const Bytes bytes(random.below(300), static_cast<char>(random.next()));
    Bytes out;
    ByteWriter writer(out);
    writer.varint(value);
    writer.zigzag(number);
    writer.bytes(bytes);
    ByteReader reader(out);
    REQUIRE(*reader.read_varint() == value);
    REQUIRE(*reader.read_zigzag() == number);
    REQUIRE(*reader.read_bytes() == bytes);
    REQUIRE(reader.at_end());
    for (size_t cut = 0; cut < std::min<size_t>(out.size(), 12); ++cut) {  // no prefix is whole
      ByteReader part(BytesView(out).substr(0, cut));
      REQUIRE_FALSE((part.read_varint() && part.read_zigzag() && part.read_bytes()));
    }
  }
}

TEST_CASE("the bounds of varints") {
  for (const uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{16383},
                               uint64_t{16384}, std::numeric_limits<uint64_t>::max()}) {
    Bytes out;
    ByteWriter(out).varint(value);
    CHECK(out.size() == (value < 128 ? 1 : value < 16384 ? 2 : value == 16384 ? 3 : 10));
    CHECK(*ByteReader(out).read_varint() == value);
  }
  for (const int64_t value :
       {int64_t{0}, int64_t{-1}, int64_t{1}, std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max()}) {
    Bytes out;
    ByteWriter(out).zigzag(value);
    CHECK(*ByteReader(out).read_zigzag() == value);
  }
}

TEST_CASE("bytes that lie are corruption, and nothing is read past the end") {
  CHECK(corrupt(ByteReader("").read_u8()));
  CHECK(corrupt(ByteReader("a").read_u16()));
  CHECK(corrupt(ByteReader("abc").read_u32()));
  CHECK(corrupt(ByteReader("abcdefg").read_u64()));
  CHECK(corrupt(ByteReader("").read_varint()));
  CHECK(corrupt(ByteReader("\x80\x80").read_varint()));
  CHECK(corrupt(ByteReader(Bytes(10, '\xff')).read_varint()));          // 70 bits
  CHECK(corrupt(ByteReader(Bytes(9, '\xff') + "\x02").read_varint()));  // bit 64
  CHECK(*ByteReader(Bytes(9, '\xff') + "\x01").read_varint() ==
        std::numeric_limits<uint64_t>::max());
  CHECK(corrupt(ByteReader(Bytes(100, '\x80')).read_varint()));
  CHECK(corrupt(ByteReader("\x05"
                           "abcd")
                    .read_bytes()));
  CHECK(corrupt(ByteReader(Bytes(9, '\xff') + "\x01"
                                              "abcd")
                    .read_bytes()));  // 2^64-1 bytes
  CHECK(corrupt(ByteReader("abcd").read_raw(std::numeric_limits<size_t>::max())));
  ByteReader reader("abcd");
  CHECK(corrupt(reader.read_raw(5)));
  CHECK(reader.remaining() == 4);  // a refused read takes nothing
  CHECK(*reader.read_raw(4) == "abcd");
  CHECK(*reader.read_raw(0) == "");
  Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    Bytes noise(random.below(40), '\0');
    for (char& c : noise) c = static_cast<char>(random.next() >> 32);
    ByteReader noisy(noise);
    for (bool good = true; good && !noisy.at_end();) {
      const size_t before = noisy.remaining();
      switch (random.below(4)) {
        case 0:
          good = noisy.read_varint().has_value();
          break;
        case 1:
          good = noisy.read_bytes().has_value();
          break;
        case 2:
          good = noisy.read_zigzag().has_value();
          break;
        default:
          good = noisy.read_u32().has_value();
          break;
      }
      REQUIRE(noisy.remaining() <= before);
    }
  }
}

TEST_CASE("views of an arena stay, whatever comes after them") {
  Random random(3);
  Arena arena;
  std::vector<std::pair<BytesView, Bytes>> kept;
  size_t total = 0;
  for (int i = 0; i < 3'000; ++i) {
    Bytes bytes(random.below(i % 100 == 0 ? 10'000 : 60), static_cast<char>('a' + i % 26));
    total += bytes.size();
    if (i % 7 == 0) {
      kept.emplace_back(arena.adopt(bytes), bytes);
    } else if (i % 11 == 0) {
      Arena other;
      const BytesView view = other.copy(bytes);
      arena.absorb(std::move(other));
      kept.emplace_back(view, bytes);
    } else {
      kept.emplace_back(arena.copy(bytes), bytes);
    }
    if (i % 500 == 499) {
      Arena moved = std::move(arena);
      arena = std::move(moved);
    }
  }
  for (const auto& [view, bytes] : kept) REQUIRE(view == bytes);
  CHECK(arena.allocated_bytes() == total);
}

TEST_CASE("an arena that was moved from is empty and shares no memory") {
  Arena first;
  first.copy("kept");
  Arena second = std::move(first);
  const BytesView anew = first.copy("anew");  // NOLINT: the moved-from one is the matter here
  const BytesView more = second.copy("more");
  CHECK(first.allocated_bytes() == 4);
  CHECK(second.allocated_bytes() == 8);
  CHECK(anew == "anew");
  CHECK(more == "more");
}

TEST_CASE("randomness is that of its seed, and even") {
  Random a(42), b(42), c(43);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t value = a.next();
    REQUIRE(value == b.next());
    REQUIRE(value != c.next());
    seen.insert(value);
  }
  CHECK(seen.size() == 1'000);
  size_t counts[10] = {};
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t value = a.below(10);
    REQUIRE(value < 10);
    ++counts[value];
    const double unit = a.unit();
    REQUIRE((unit >= 0 && unit < 1));
    sum += unit;
  }
  for (const size_t count : counts) CHECK((count > 9'500 && count < 10'500));
  CHECK((sum > 49'000 && sum < 51'000));
  for (int i = 0; i < 100; ++i) CHECK(a.below(1) == 0);
  CHECK(a.one_in(1));
}

}  // namespace
}  // namespace tetrad::base
