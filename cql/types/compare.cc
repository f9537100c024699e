// SPDX-License-Identifier: Apache-2.0
// The order of values, as Cassandra's types compare them; ordered_encoding.cc encodes the same
// order, and tests compare the two. An empty value sorts before all others. Never fails: bytes that
// are not of the type compare as bytes, so that sorting stays a total order.
#include "cql/types/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/byte_io.h"
#include "cql/types/number.h"

namespace tetrad::cql {

namespace {

template <class T>
int order_of(T a, T b) {
  return (a > b) - (a < b);
}

// As unsigned bytes; a prefix comes first.
int compare_bytes(BytesView a, BytesView b) {
  const int order = a.compare(b);
  return order_of(order, 0);
}

template <class Int>
int compare_fixed(BytesView a, BytesView b) {
  if (a.size() != sizeof(Int) || b.size() != sizeof(Int)) [[unlikely]]
    return compare_bytes(a, b);
  return order_of(base::load_big_endian<Int>(a.data()), base::load_big_endian<Int>(b.data()));
}

/// Java's Float.compare: -0.0 before 0.0, NaN after everything and equal to itself.
template <class Float>
int compare_floats(Float a, Float b) {
  if (a < b) return -1;
  if (a > b) return 1;
  if (std::isnan(a) || std::isnan(b)) return order_of(std::isnan(a), std::isnan(b));
  return order_of(std::signbit(b), std::signbit(a));
}

uint64_t high_half(BytesView uuid) { return base::load_big_endian<uint64_t>(uuid.data()); }
uint64_t low_half(BytesView uuid) { return base::load_big_endian<uint64_t>(uuid.data() + 8); }

/// Version, time_hi, time_mid, time_low: the order of the timestamps of version 1.
uint64_t by_time(uint64_t high) {
  return high << 48 | ((high << 16) & 0x0000FFFF00000000ULL) | high >> 32;
}

// By version, then by time for version 1, then by bytes, as Cassandra's UUIDType.
int compare_uuids(BytesView a, BytesView b) {
  if (a.size() != 16 || b.size() != 16) [[unlikely]]
    return compare_bytes(a, b);
  const uint64_t high_a = high_half(a), high_b = high_half(b);
  const int version_a = static_cast<int>(high_a >> 12 & 15);
  const int version_b = static_cast<int>(high_b >> 12 & 15);
  if (version_a != version_b) return order_of(version_a, version_b);
  const int order =
      version_a == 1 ? order_of(by_time(high_a), by_time(high_b)) : order_of(high_a, high_b);
  return order != 0 ? order : order_of(low_half(a), low_half(b));
}

// By time, then by the low half.
int compare_timeuuids(BytesView a, BytesView b) {
  if (a.size() != 16 || b.size() != 16) [[unlikely]]
    return compare_bytes(a, b);
  const int order = order_of(by_time(high_half(a)), by_time(high_half(b)));
  if (order != 0) return order;
  constexpr uint64_t kSigned = 0x8080808080808080ULL;  // byte by byte as signed: CASSANDRA-8730
  return order_of(low_half(a) ^ kSigned, low_half(b) ^ kSigned);
}

// Part by part; of two that agree so far the shorter comes first.
int compare_collections(const DataType& type, BytesView a, BytesView b) {
  auto left = CollectionReader::open(type, a), right = CollectionReader::open(type, b);
  // Bytes that do not read sort by themselves: an order all the same, so that sorting ends.
  if (!left || !right) return compare_bytes(a, b);
  while (!left->at_end() && !right->at_end()) {
    for (const TypePtr& part_type : type.components()) {
      const auto x = left->next(), y = right->next();
      if (!x || !y) return compare_bytes(a, b);
      // Parts of maps in turn: key, then value.
      if (const int order = compare_nullable(*part_type, *x, *y); order != 0) return order;
    }
  }
  return order_of(left->size(), right->size());
}

/// Takes the next field off; a field that is missing or cut short is null.
OptionalView take_field(BytesView& bytes) {
  if (bytes.size() < 4) {
    bytes = {};
    return std::nullopt;
  }
  const auto length = base::load_big_endian<int32_t>(bytes.data());
  bytes.remove_prefix(4);
  if (length < 0) return std::nullopt;
  const BytesView field = bytes.substr(0, static_cast<size_t>(length));
  bytes.remove_prefix(field.size());
  return field;
}

// Field by field; fields that one side lacks are null there and so come first.
int compare_tuples(const DataType& type, BytesView a, BytesView b) {
  for (const TypePtr& field : type.components()) {
    // Missing fields at the end are null on both sides.
    if (a.empty() && b.empty()) return 0;
    const OptionalView x = take_field(a), y = take_field(b);
    if (const int order = compare_nullable(*field, x, y); order != 0) return order;
  }
  return 0;
}

// Both have `dimension` elements, so no length is compared.
int compare_vectors(const DataType& type, BytesView a, BytesView b) {
  const DataType& element = *type.element();
  const auto fixed = element.fixed_length();
  for (uint32_t i = 0; i < type.dimension(); ++i) {
    size_t size_a = fixed.value_or(0), size_b = size_a;
    if (!fixed) {
      const auto x = take_unsigned_vint(a), y = take_unsigned_vint(b);
      if (!x || !y) return compare_bytes(a, b);
      size_a = static_cast<size_t>(*x);
      size_b = static_cast<size_t>(*y);
    }
    if (size_a > a.size() || size_b > b.size()) return compare_bytes(a, b);
    const int order = compare(element, a.substr(0, size_a), b.substr(0, size_b));
    if (order != 0) return order;
    a.remove_prefix(size_a);
    b.remove_prefix(size_b);
  }
  return 0;
}

}  // namespace

// One table: each kind of type and what compares its values.
int compare(const DataType& type, BytesView a, BytesView b) {
  if (a.empty() || b.empty()) return order_of(!a.empty(), !b.empty());
  switch (type.kind()) {
    case TypeKind::kAscii:
    case TypeKind::kBlob:
    case TypeKind::kText:
    case TypeKind::kInet:
    case TypeKind::kDate:
    case TypeKind::kTime:
    case TypeKind::kDuration:
    case TypeKind::kCustom:
    case TypeKind::kEmpty:
      return compare_bytes(a, b);
    case TypeKind::kTinyint:
      return compare_fixed<int8_t>(a, b);
    case TypeKind::kSmallint:
      return compare_fixed<int16_t>(a, b);
    case TypeKind::kInt:
      return compare_fixed<int32_t>(a, b);
    case TypeKind::kBigint:
    case TypeKind::kCounter:
    case TypeKind::kTimestamp:
      return compare_fixed<int64_t>(a, b);
    case TypeKind::kBoolean:
      return order_of(a[0] != 0, b[0] != 0);
    case TypeKind::kFloat: {
      const auto x = read_float(a), y = read_float(b);
      return x && y ? compare_floats(*x, *y) : compare_bytes(a, b);
    }
    case TypeKind::kDouble: {
      const auto x = read_double(a), y = read_double(b);
      return x && y ? compare_floats(*x, *y) : compare_bytes(a, b);
    }
    case TypeKind::kVarint:
      return compare_varint(a, b);
    case TypeKind::kDecimal:
      return compare_decimal(a, b);
    case TypeKind::kUuid:
      return compare_uuids(a, b);
    case TypeKind::kTimeuuid:
      return compare_timeuuids(a, b);
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
      return compare_collections(type, a, b);
    case TypeKind::kTuple:
    case TypeKind::kUdt:
      return compare_tuples(type, a, b);
    case TypeKind::kVector:
      return compare_vectors(type, a, b);
  }
  std::unreachable();
}

// Null before every value.
int compare_nullable(const DataType& type, OptionalView a, OptionalView b) {
  if (!a || !b) return order_of(a.has_value(), b.has_value());
  return compare(type, *a, *b);
}

}  // namespace tetrad::cql
