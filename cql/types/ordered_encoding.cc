// SPDX-License-Identifier: Apache-2.0
// The header has the grammar. Each append_* has its read_*; both must change together, and neither
// may change for values that exist: keys on disk are these bytes.
//
// Decoding believes nothing: a key that no encoder makes (a varint that is not the shortest, an
// unknown tag, a wrong escape) is kCorruption. It gives back one form of each value; where a value
// has several forms (is_lossy), the row keeps the original bytes beside the key.
//
// DESC inverts every byte of a component; OrderedCursor turns them back while it reads, so the readers
// know one direction only.
#include "cql/types/ordered_encoding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/byte_io.h"
#include "cql/types/number.h"
#include "cql/types/ordered_cursor.h"

namespace tetrad::cql {

namespace {

// kEnd is below every tag, so that a collection sorts before the longer ones that begin with it.
// null before empty before values, which is the order of compare_nullable().
constexpr uint8_t kNull = 0x10, kEmpty = 0x20, kValue = 0x30, kEnd = 0x00;
constexpr size_t kShortVarint = 119;  // 0x80 + 119 = 0xF7
constexpr uint8_t kLongPositive = 0xF8, kLongNegative = 0x07;
constexpr uint8_t kDecimalZero = 0x80, kDecimalPositive = 0xC0, kDecimalNegative = 0x40;
constexpr uint64_t kSignBytes = 0x8080808080808080ULL;

void append_u8(Bytes& out, uint8_t byte) { out.push_back(static_cast<char>(byte)); }
template <class Int>
void append_fixed(Bytes& out, Int value) {
  value = base::to_big_endian(value);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Values are validated before they come here; this is for those that came by another way, and for
// types without values.
std::unexpected<Error> wrong_bytes(const DataType& type, BytesView value) {
  return fail(ErrorCode::kInvalid, "{} bytes are no value of the type {}", value.size(),
              type.cql_text());
}

/// Signed integers of a fixed size.
template <class UInt>
Result<void> append_signed(Bytes& out, const DataType& type, BytesView value) {
  if (value.size() != sizeof(UInt)) [[unlikely]]
    return wrong_bytes(type, value);
  // Flipping the sign bit makes two's complement sort as unsigned bytes.
  constexpr UInt kSign = static_cast<UInt>(UInt{1} << (8 * sizeof(UInt) - 1));
  append_fixed<UInt>(out, base::load_big_endian<UInt>(value.data()) ^ kSign);
  return {};
}

// What Java's floatToIntBits and doubleToLongBits give for every NaN.
template <class UInt>
constexpr UInt kCanonicalNan = sizeof(UInt) == 4 ? static_cast<UInt>(0x7fc00000)
                                                 : static_cast<UInt>(0x7ff8000000000000ULL);
template <class UInt>
bool is_nan_pattern(UInt bits) {
  if constexpr (sizeof(UInt) == 4) return std::isnan(std::bit_cast<float>(bits));
  if constexpr (sizeof(UInt) == 8) return std::isnan(std::bit_cast<double>(bits));
}

template <class UInt>
Result<void> append_float(Bytes& out, const DataType& type, BytesView value) {
  if (value.size() != sizeof(UInt)) [[unlikely]]
    return wrong_bytes(type, value);
  constexpr UInt kSign = static_cast<UInt>(UInt{1} << (8 * sizeof(UInt) - 1));
  UInt bits = base::load_big_endian<UInt>(value.data());
  // All NaNs are one value, above everything, as Java compares them.
  if (is_nan_pattern(bits)) bits = kCanonicalNan<UInt>;
  // IEEE numbers sort as integers by magnitude: positive ones get the sign bit, negative ones are
  // inverted.
  append_fixed<UInt>(out, bits & kSign ? ~bits : bits ^ kSign);
  return {};
}

// A zero becomes 00 FF and the end 00 01, so the end sorts below every byte that could follow.
void append_escaped(Bytes& out, BytesView value) {
  while (!value.empty()) {
    const void* const zero = std::memchr(value.data(), 0, value.size());
    if (zero == nullptr) {
      out.append(value);
      break;
    }
    const auto run = static_cast<size_t>(static_cast<const char*>(zero) - value.data());
    out.append(value.substr(0, run));
    out.append("\0\xff", 2);
    value.remove_prefix(run + 1);
  }
  out.append("\0\1", 2);
}

void append_varint(Bytes& out, BytesView value) {
  const BytesView shortest = minimal_varint(value);
  const bool negative = shortest[0] & 0x80;
  const size_t size = shortest.size();
  if (size <= kShortVarint) {
    // The length first: of positive numbers the longer is larger, of negative ones smaller. Equal
    // lengths sort by their bytes.
    append_u8(out, static_cast<uint8_t>(negative ? 0x7F - size : 0x80 + size));
  } else {
    const auto length = static_cast<uint32_t>(size);
    append_u8(out, negative ? kLongNegative : kLongPositive);
    append_fixed<uint32_t>(out, negative ? ~length : length);
  }
  out.append(shortest);
}

Result<void> append_decimal(Bytes& out, BytesView value) {
  TETRAD_TRY(const DecimalDigits parts, decimal_digits(value));
  if (parts.digits.empty()) {
    append_u8(out, kDecimalZero);
    return {};
  }
  append_u8(out, parts.negative ? kDecimalNegative : kDecimalPositive);
  const size_t start = out.size();
  // The exponent decides first, biased so that it sorts as an unsigned number.
  append_fixed<uint64_t>(out, static_cast<uint64_t>(parts.exponent) ^ (uint64_t{1} << 63));
  for (size_t i = 0; i < parts.digits.size(); i += 2) {
    const int high = parts.digits[i] - '0';
    const int low = i + 1 < parts.digits.size() ? parts.digits[i + 1] - '0' : 0;
    // Two digits in a byte, plus one, so that no pair is the end (00).
    append_u8(out, static_cast<uint8_t>(1 + 10 * high + low));
  }
  append_u8(out, kEnd);
  // Larger magnitudes come first among negative numbers.
  if (parts.negative) invert_from(out, start);
  return {};
}

// A version 1 UUID has the low part of its time in front; this puts the high part there.
uint64_t by_time(uint64_t high) {
  return high << 48 | ((high << 16) & 0x0000FFFF00000000ULL) | high >> 32;
}
// Inverses of by_time() and version_first().
uint64_t from_by_time(uint64_t sorted) {
  return sorted << 32 | ((sorted >> 16) & 0x00000000FFFF0000ULL) | sorted >> 48;
}
/// The version nibble (bits 12 to 15) in front of the 48 bits above it and the 12 below.
uint64_t version_first(uint64_t high) {
  return (high << 48 & 0xF000000000000000ULL) | (high >> 4 & 0x0FFFFFFFFFFFF000ULL) |
         (high & 0xFFF);
}
uint64_t from_version_first(uint64_t sorted) {
  return (sorted << 4 & 0xFFFFFFFFFFFF0000ULL) | (sorted >> 48 & 0xF000) | (sorted & 0xFFF);
}

Result<void> append_uuid(Bytes& out, const DataType& type, BytesView value) {
  if (value.size() != 16) [[unlikely]]
    return wrong_bytes(type, value);
  const auto high = base::load_big_endian<uint64_t>(value.data());
  const auto low = base::load_big_endian<uint64_t>(value.data() + 8);
  if (type.kind() == TypeKind::kTimeuuid) {
    append_fixed(out, by_time(high));
    // Cassandra compares the low half of a timeuuid byte by byte as signed (CASSANDRA-8730).
    append_fixed(out, low ^ kSignBytes);
  } else {
    append_fixed(out, (high >> 12 & 15) == 1 ? by_time(high) : version_first(high));
    append_fixed(out, low);
  }
  return {};
}

Result<void> append_component(Bytes& out, const DataType& type, OptionalView value);
Result<void> append_payload(Bytes& out, const DataType& type, BytesView value);

// Elements one after another, each with its tag; kEnd is below all tags.
Result<void> append_collection(Bytes& out, const DataType& type, BytesView value) {
  TETRAD_TRY(CollectionReader reader, CollectionReader::open(type, value));
  while (!reader.at_end()) {
    for (const TypePtr& part_type : type.components()) {
      TETRAD_TRY(const OptionalView part, reader.next());
      TETRAD_TRY_VOID(append_component(out, *part_type, part));
    }
  }
  append_u8(out, kEnd);
  return {};
}

Result<void> append_tuple(Bytes& out, const DataType& type, BytesView value) {
  TETRAD_TRY(const std::vector<OptionalView> fields, split_tuple(type, value));
  size_t count = fields.size();
  // Missing fields at the end equal nulls, so both get the same bytes.
  while (count > 0 && !fields[count - 1]) --count;
  for (size_t i = 0; i < count; ++i)
    TETRAD_TRY_VOID(append_component(out, *type.components()[i], fields[i]));
  append_u8(out, kEnd);
  return {};
}

Result<void> append_vector(Bytes& out, const DataType& type, BytesView value) {
  TETRAD_TRY(const std::vector<BytesView> elements, split_vector(type, value));
  const bool fixed = type.element()->is_fixed_length();
  for (const BytesView element : elements) {
    // Elements of fixed length need no tags: none is null or empty, and all vectors have equally
    // many.
    if (fixed) {
      TETRAD_TRY_VOID(append_payload(out, *type.element(), element));
    } else {
      TETRAD_TRY_VOID(append_component(out, *type.element(), element));
    }
  }
  return {};
}

Result<void> append_payload(Bytes& out, const DataType& type, BytesView value) {
  switch (type.kind()) {
    case TypeKind::kInt:
      return append_signed<uint32_t>(out, type, value);
    case TypeKind::kBigint:
    case TypeKind::kCounter:
    case TypeKind::kTimestamp:
      return append_signed<uint64_t>(out, type, value);
    case TypeKind::kSmallint:
      return append_signed<uint16_t>(out, type, value);
    case TypeKind::kTinyint:
      return append_signed<uint8_t>(out, type, value);
    case TypeKind::kDate:
    case TypeKind::kTime:
      if (value.size() != (type.kind() == TypeKind::kDate ? 4 : 8)) return wrong_bytes(type, value);
      out.append(value);
      return {};
    case TypeKind::kBoolean:
      if (value.size() != 1) return wrong_bytes(type, value);
      append_u8(out, value[0] != 0);
      return {};
    case TypeKind::kFloat:
      return append_float<uint32_t>(out, type, value);
    case TypeKind::kDouble:
      return append_float<uint64_t>(out, type, value);
    case TypeKind::kAscii:
    case TypeKind::kBlob:
    case TypeKind::kText:
    case TypeKind::kInet:
    case TypeKind::kDuration:
    case TypeKind::kCustom:
      append_escaped(out, value);
      return {};
    case TypeKind::kVarint:
      append_varint(out, value);
      return {};
    case TypeKind::kDecimal:
      if (value.size() < 4) return wrong_bytes(type, value);
      return append_decimal(out, value);
    case TypeKind::kUuid:
    case TypeKind::kTimeuuid:
      return append_uuid(out, type, value);
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
      return append_collection(out, type, value);
    case TypeKind::kTuple:
    case TypeKind::kUdt:
      return append_tuple(out, type, value);
    case TypeKind::kVector:
      return append_vector(out, type, value);
    case TypeKind::kEmpty:
      return wrong_bytes(type, value);
  }
  std::unreachable();
}

Result<void> append_component(Bytes& out, const DataType& type, OptionalView value) {
  if (!value) {
    append_u8(out, kNull);
    return {};
  }
  if (value->empty()) {
    append_u8(out, kEmpty);
    return {};
  }
  append_u8(out, kValue);
  return append_payload(out, type, *value);
}

// Each read_* appends the value in Cassandra's serialization to `out`.
template <class UInt>
Result<void> read_signed(Bytes& out, OrderedCursor& in) {
  constexpr UInt kSign = static_cast<UInt>(UInt{1} << (8 * sizeof(UInt) - 1));
  TETRAD_TRY(const UInt value, in.read_fixed<UInt>());
  append_fixed<UInt>(out, value ^ kSign);
  return {};
}

template <class UInt>
Result<void> read_float(Bytes& out, OrderedCursor& in) {
  constexpr UInt kSign = static_cast<UInt>(UInt{1} << (8 * sizeof(UInt) - 1));
  TETRAD_TRY(const UInt value, in.read_fixed<UInt>());
  const UInt bits = value & kSign ? value ^ kSign : static_cast<UInt>(~value);
  if (is_nan_pattern(bits) && bits != kCanonicalNan<UInt>)
    return fail(ErrorCode::kCorruption, "a NaN that is not the canonical one");
  append_fixed<UInt>(out, bits);
  return {};
}

Result<void> read_varint(Bytes& out, OrderedCursor& in) {
  TETRAD_TRY(const uint8_t head, in.read_u8());
  size_t size = 0;
  if (head == kLongPositive || head == kLongNegative) {
    TETRAD_TRY(const uint32_t length, in.read_fixed<uint32_t>());
    size = head == kLongPositive ? length : ~length;
    if (size <= kShortVarint) return fail(ErrorCode::kCorruption, "a varint in its long form");
  } else {
    size = head >= 0x80 ? head - 0x80u : 0x7Fu - head;
    if (size == 0 || size > kShortVarint)
      return fail(ErrorCode::kCorruption, "no varint starts with {:#x}", head);
  }
  const size_t start = out.size();
  TETRAD_TRY_VOID(in.read_raw(out, size));
  const BytesView value = BytesView(out).substr(start);
  if (minimal_varint(value).size() != size || ((value[0] & 0x80) != 0) != (head < 0x80))
    return fail(ErrorCode::kCorruption, "a varint that is not the shortest");
  return {};
}

Result<void> read_decimal(Bytes& out, OrderedCursor& in) {
  TETRAD_TRY(const uint8_t sign, in.read_u8());
  DecimalDigits parts;
  if (sign != kDecimalZero) {
    if (sign != kDecimalPositive && sign != kDecimalNegative)
      return fail(ErrorCode::kCorruption, "no decimal starts with {:#x}", sign);
    parts.negative = sign == kDecimalNegative;
    if (parts.negative) in.toggle_inversion();
    TETRAD_TRY(const uint64_t exponent, in.read_fixed<uint64_t>());
    parts.exponent = static_cast<int64_t>(exponent ^ (uint64_t{1} << 63));
    for (;;) {
      TETRAD_TRY(const uint8_t pair, in.read_u8());
      if (pair == kEnd) break;
      // The first digit is never zero: the exponent would be another.
      if (pair > 100 || (parts.digits.empty() && pair <= 10))
        return fail(ErrorCode::kCorruption, "digit pair {} in a decimal", pair);
      parts.digits += static_cast<char>('0' + (pair - 1) / 10);
      parts.digits += static_cast<char>('0' + (pair - 1) % 10);
    }
    if (parts.digits.empty()) return fail(ErrorCode::kCorruption, "a decimal without digits");
    // The last pair may have been filled with a zero.
    parts.digits.erase(parts.digits.find_last_not_of('0') + 1);
    if (parts.negative) in.toggle_inversion();
  }
  TETRAD_TRY(const Bytes value, decimal_from_digits(parts));
  out.append(value);
  return {};
}

Result<void> read_uuid(Bytes& out, const DataType& type, OrderedCursor& in) {
  TETRAD_TRY(const uint64_t high, in.read_fixed<uint64_t>());
  TETRAD_TRY(const uint64_t low, in.read_fixed<uint64_t>());
  const bool timed = type.kind() == TypeKind::kTimeuuid;
  append_fixed(out, timed || high >> 60 == 1 ? from_by_time(high) : from_version_first(high));
  append_fixed(out, timed ? low ^ kSignBytes : low);
  return {};
}

Result<bool> read_component(Bytes& out, const DataType& type, OrderedCursor& in);
Result<void> read_payload(Bytes& out, const DataType& type, OrderedCursor& in);

/// Reads a component and appends it as a part of a collection or tuple: its length first.
// The length is written as 0 and filled in when the part has been read.
Result<void> read_part(Bytes& out, const DataType& type, OrderedCursor& in) {
  const size_t start = out.size();
  append_fixed<uint32_t>(out, 0);
  TETRAD_TRY(const bool present, read_component(out, type, in));
  const auto size = present ? static_cast<int32_t>(out.size() - start - 4) : -1;
  base::store_big_endian(out.data() + start, size);
  return {};
}

// The count is not in the key: elements are counted until kEnd.
Result<void> read_collection(Bytes& out, const DataType& type, OrderedCursor& in) {
  const size_t start = out.size();
  append_fixed<uint32_t>(out, 0);
  int32_t count = 0;
  for (;; ++count) {
    TETRAD_TRY(const uint8_t next, in.peek());
    if (next == kEnd) break;
    for (const TypePtr& part_type : type.components())
      TETRAD_TRY_VOID(read_part(out, *part_type, in));
  }
  TETRAD_TRY_VOID(in.read_u8());
  base::store_big_endian(out.data() + start, count);
  return {};
}

// A tuple that ended early gets its missing fields back as nulls: one of the forms that are lossy.
Result<void> read_tuple(Bytes& out, const DataType& type, OrderedCursor& in) {
  bool ended = false;
  for (const TypePtr& field : type.components()) {
    TETRAD_TRY(const uint8_t next, in.peek());
    ended = ended || next == kEnd;
    if (ended) {
      append_fixed<uint32_t>(out, 0xFFFFFFFF);
    } else {
      TETRAD_TRY_VOID(read_part(out, *field, in));
    }
  }
  TETRAD_TRY(const uint8_t end, in.read_u8());
  if (end != kEnd) return fail(ErrorCode::kCorruption, "more fields than {} has", type.cql_text());
  return {};
}

Result<void> read_vector(Bytes& out, const DataType& type, OrderedCursor& in) {
  const DataType& element = *type.element();
  for (uint32_t i = 0; i < type.dimension(); ++i) {
    if (element.is_fixed_length()) {
      TETRAD_TRY_VOID(read_payload(out, element, in));
      continue;
    }
    Bytes value;
    TETRAD_TRY(const bool present, read_component(value, element, in));
    if (!present) return fail(ErrorCode::kCorruption, "a null in a vector");
    append_unsigned_vint(out, value.size());
    out.append(value);
  }
  return {};
}

Result<void> read_payload(Bytes& out, const DataType& type, OrderedCursor& in) {
  switch (type.kind()) {
    case TypeKind::kInt:
      return read_signed<uint32_t>(out, in);
    case TypeKind::kBigint:
    case TypeKind::kCounter:
    case TypeKind::kTimestamp:
      return read_signed<uint64_t>(out, in);
    case TypeKind::kSmallint:
      return read_signed<uint16_t>(out, in);
    case TypeKind::kTinyint:
      return read_signed<uint8_t>(out, in);
    case TypeKind::kDate:
      return in.read_raw(out, 4);
    case TypeKind::kTime:
      return in.read_raw(out, 8);
    case TypeKind::kBoolean: {
      TETRAD_TRY(const uint8_t truth, in.read_u8());
      if (truth > 1) return fail(ErrorCode::kCorruption, "the boolean {}", truth);
      append_u8(out, truth);
      return {};
    }
    case TypeKind::kFloat:
      return read_float<uint32_t>(out, in);
    case TypeKind::kDouble:
      return read_float<uint64_t>(out, in);
    case TypeKind::kAscii:
    case TypeKind::kBlob:
    case TypeKind::kText:
    case TypeKind::kInet:
    case TypeKind::kDuration:
    case TypeKind::kCustom:
      return in.read_escaped(out);
    case TypeKind::kVarint:
      return read_varint(out, in);
    case TypeKind::kDecimal:
      return read_decimal(out, in);
    case TypeKind::kUuid:
    case TypeKind::kTimeuuid:
      return read_uuid(out, type, in);
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
      return read_collection(out, type, in);
    case TypeKind::kTuple:
    case TypeKind::kUdt:
      return read_tuple(out, type, in);
    case TypeKind::kVector:
      return read_vector(out, type, in);
    case TypeKind::kEmpty:
      return fail(ErrorCode::kCorruption, "a value of the type empty");
  }
  std::unreachable();
}

Result<bool> read_component(Bytes& out, const DataType& type, OrderedCursor& in) {
  TETRAD_TRY(const uint8_t tag, in.read_u8());
  switch (tag) {
    case kNull:
      return false;
    case kEmpty:
      return true;
    case kValue:
      TETRAD_TRY_VOID(read_payload(out, type, in));
      return true;
    default:
      return fail(ErrorCode::kCorruption, "no component starts with {:#x}", tag);
  }
}

}  // namespace

// On an error `out` has a part of the component: the caller drops it.
Result<void> append_ordered(Bytes& out, const DataType& type, OptionalView value, bool descending) {
  const size_t start = out.size();
  TETRAD_TRY_VOID(append_component(out, type, value));
  if (descending) invert_from(out, start);
  return {};
}

Result<bool> decode_ordered_to(Bytes& out, BytesView& in, const DataType& type, bool descending) {
  OrderedCursor cursor(in, descending);
  TETRAD_TRY(const bool present, read_component(out, type, cursor));
  in = cursor.rest();
  return present;
}

Result<OptionalBytes> decode_ordered(BytesView& in, const DataType& type, bool descending) {
  Bytes value;
  TETRAD_TRY(const bool present, decode_ordered_to(value, in, type, descending));
  if (!present) return std::nullopt;
  return value;
}

// Decodes and drops: a component's end is known only when it has been read.
Result<BytesView> skip_ordered(BytesView& in, const DataType& type, bool descending) {
  const BytesView before = in;
  Bytes value;
  TETRAD_TRY_VOID(decode_ordered_to(value, in, type, descending));
  return before.substr(0, before.size() - in.size());
}

// Types of which two values can have one encoding.
bool can_be_lossy(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kBoolean:
    case TypeKind::kFloat:
    case TypeKind::kDouble:
    case TypeKind::kVarint:
    case TypeKind::kDecimal:
    case TypeKind::kTuple:
    case TypeKind::kUdt:
    // A list of a negative count is a valid empty list; a vint has longer spellings.
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
      return true;
    case TypeKind::kVector:
      return !type.element()->is_fixed_length() || can_be_lossy(*type.element());
    default:
      return false;
  }
}

// Cheap tests first; for nested types the value is encoded and decoded. Values that do not encode
// are not lossy: writing them fails anyway.
bool is_lossy(const DataType& type, BytesView value) {
  if (value.empty()) return false;
  switch (type.kind()) {
    case TypeKind::kBoolean:
      return value.size() == 1 && static_cast<uint8_t>(value[0]) > 1;
    case TypeKind::kFloat: {
      if (value.size() != 4) return false;
      const auto bits = base::load_big_endian<uint32_t>(value.data());
      return is_nan_pattern(bits) && bits != kCanonicalNan<uint32_t>;
    }
    case TypeKind::kDouble: {
      if (value.size() != 8) return false;
      const auto bits = base::load_big_endian<uint64_t>(value.data());
      return is_nan_pattern(bits) && bits != kCanonicalNan<uint64_t>;
    }
    case TypeKind::kVarint:
      return minimal_varint(value).size() != value.size();
    default:
      break;
  }
  if (!can_be_lossy(type)) return false;
  Bytes encoded;
  if (!append_ordered(encoded, type, value, false)) return false;
  BytesView in = encoded;
  const auto decoded = decode_ordered(in, type, false);
  return decoded && *decoded && **decoded != value;
}

}  // namespace tetrad::cql
