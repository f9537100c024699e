// SPDX-License-Identifier: Apache-2.0
// CQL values as Cassandra serializes them (native protocol v5 and its files alike): making and
// reading them, taking collections, tuples and vectors apart, joining them, and checking bytes of
// clients (validate; texts in utf8.cc). All integers are big-endian. Views point into the bytes given.
#include "cql/types/value.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"
#include "base/byte_io.h"
#include "cql/types/compare.h"
#include "cql/types/composite_type.h"

namespace tetrad::cql {

namespace {

// Big-endian, as many bytes as the integer has.
template <class Int>
Bytes make_fixed(Int value) {
  Bytes out(sizeof(Int), '\0');
  base::store_big_endian(out.data(), value);
  return out;
}

template <class Int>
std::optional<Int> read_fixed(BytesView bytes) {
  if (bytes.size() != sizeof(Int)) return std::nullopt;
  return base::load_big_endian<Int>(bytes.data());
}

// As base/byte_io.h has it: small numbers of either sign have few bits.
int64_t unzigzag(uint64_t v) { return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1); }
uint64_t zigzag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}

}  // namespace

Bytes make_tinyint(int8_t value) { return Bytes(1, static_cast<char>(value)); }
Bytes make_smallint(int16_t value) { return make_fixed(value); }
Bytes make_int(int32_t value) { return make_fixed(value); }
Bytes make_bigint(int64_t value) { return make_fixed(value); }
Bytes make_timestamp(int64_t unix_ms) { return make_fixed(unix_ms); }
Bytes make_time(int64_t nanos_of_day) { return make_fixed(nanos_of_day); }
Bytes make_date(uint32_t shifted_days) { return make_fixed(shifted_days); }
// Dates are unsigned, with 1970-01-01 at 2^31.
Bytes make_date_of_days(int64_t days_since_epoch) {
  return make_fixed(static_cast<uint32_t>(days_since_epoch + (int64_t{1} << 31)));
}
Bytes make_boolean(bool value) { return Bytes(1, value ? '\1' : '\0'); }
Bytes make_float(float value) { return make_fixed(std::bit_cast<uint32_t>(value)); }
Bytes make_double(double value) { return make_fixed(std::bit_cast<uint64_t>(value)); }
Bytes make_uuid(const Uuid& value) { return Bytes(value.view()); }

// The shortest two's complement with a sign bit, as Java's BigInteger writes it.
Bytes make_varint(int64_t value) {
  char buffer[8];
  base::store_big_endian(buffer, value);
  size_t skip = 0;
  const char filler = value < 0 ? '\xff' : '\0';
  while (skip < 7 && buffer[skip] == filler && ((buffer[skip + 1] ^ filler) & 0x80) == 0) ++skip;
  return Bytes(buffer + skip, 8 - skip);
}

// Three vints, zigzag: months, days, nanoseconds.
Bytes make_duration(const Duration& value) {
  Bytes out;
  append_unsigned_vint(out, zigzag(value.months));
  append_unsigned_vint(out, zigzag(value.days));
  append_unsigned_vint(out, zigzag(value.nanos));
  return out;
}

std::optional<int8_t> read_tinyint(BytesView bytes) {
  if (bytes.size() != 1) return std::nullopt;
  return static_cast<int8_t>(bytes[0]);
}
std::optional<int16_t> read_smallint(BytesView bytes) { return read_fixed<int16_t>(bytes); }
std::optional<int32_t> read_int(BytesView bytes) { return read_fixed<int32_t>(bytes); }
std::optional<int64_t> read_bigint(BytesView bytes) { return read_fixed<int64_t>(bytes); }
std::optional<uint32_t> read_date(BytesView bytes) { return read_fixed<uint32_t>(bytes); }
// Any byte but 0 is true.
std::optional<bool> read_boolean(BytesView bytes) {
  if (bytes.size() != 1) return std::nullopt;
  return bytes[0] != 0;
}
std::optional<float> read_float(BytesView bytes) {
  const auto bits = read_fixed<uint32_t>(bytes);
  if (!bits) return std::nullopt;
  return std::bit_cast<float>(*bits);
}
std::optional<double> read_double(BytesView bytes) {
  const auto bits = read_fixed<uint64_t>(bytes);
  if (!bits) return std::nullopt;
  return std::bit_cast<double>(*bits);
}
std::optional<Uuid> read_uuid(BytesView bytes) {
  if (bytes.size() != 16) return std::nullopt;
  return Uuid::from_bytes(bytes);
}
std::optional<Duration> read_duration(BytesView bytes) {
  const auto months = take_unsigned_vint(bytes);
  const auto days = take_unsigned_vint(bytes);
  const auto nanos = take_unsigned_vint(bytes);
  if (!months || !days || !nanos) return std::nullopt;
  return Duration{static_cast<int32_t>(unzigzag(*months)), static_cast<int32_t>(unzigzag(*days)),
                  unzigzag(*nanos)};
}

// The number of leading ones in the first byte is the number of bytes behind it; 1 to 9 bytes.
void append_unsigned_vint(Bytes& out, uint64_t value) {
  // Each byte behind the first takes eight bits and costs the first one bit: seven bits a byte, up
  // to 64 in nine.
  const int bits = 64 - std::countl_zero(value | 1);
  const int extra = std::min((bits - 1) / 7, 8);
  char buffer[9];
  for (int i = extra; i > 0; --i) {
    buffer[i] = static_cast<char>(value);
    value >>= 8;
  }
  // The first byte has `extra` ones in front, then as many bits of the value as are left in it. 300
  // is 81 2c.
  buffer[0] = extra == 8 ? '\xff' : static_cast<char>((0xff00 >> extra) | value);
  out.append(buffer, static_cast<size_t>(extra) + 1);
}

// Longer spellings of a number than the shortest are taken, as in Cassandra.
std::optional<uint64_t> take_unsigned_vint(BytesView& bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto first = static_cast<uint8_t>(bytes[0]);
  const auto extra = static_cast<size_t>(std::countl_one(first));
  if (bytes.size() < extra + 1) return std::nullopt;
  uint64_t value = extra >= 7 ? 0 : first & (0xff >> (extra + 1));
  for (size_t i = 1; i <= extra; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  bytes.remove_prefix(extra + 1);
  return value;
}

// Collections.

Result<CollectionReader> CollectionReader::open(BytesView bytes, int parts_per_element) {
  const auto too_short = [] {
    return fail(ErrorCode::kInvalid, "Not enough bytes to read a collection");
  };
  if (bytes.size() < 4) return too_short();
  // A negative count is an empty collection, as Java's loops have it.
  const auto count = base::load_big_endian<int32_t>(bytes.data());
  CollectionReader reader;
  reader.rest_ = bytes.substr(4);
  reader.size_ = count < 0 ? 0 : static_cast<size_t>(count);
  reader.parts_left_ = reader.size_ * static_cast<size_t>(parts_per_element);
  // Each part has a length of 4 bytes at least, so a count that the bytes cannot hold is refused
  // before memory is reserved for it.
  if (reader.parts_left_ * 4 > reader.rest_.size()) return too_short();
  return reader;
}

Result<OptionalView> CollectionReader::next() {
  if (parts_left_ == 0 || rest_.size() < 4)
    return fail(ErrorCode::kInvalid, "Not enough bytes to read a collection");
  --parts_left_;
  const auto length = base::load_big_endian<int32_t>(rest_.data());
  rest_.remove_prefix(4);
  if (length < 0) return std::nullopt;
  if (static_cast<size_t>(length) > rest_.size())
    return fail(ErrorCode::kInvalid, "Not enough bytes to read a collection");
  const BytesView part = rest_.substr(0, static_cast<size_t>(length));
  rest_.remove_prefix(part.size());
  return part;
}

// collection := i32 count, part*; part := i32 size (-1: null), bytes; a map has two parts for each
// entry.
CollectionBuilder::CollectionBuilder() : out_(4, '\0') {}
void CollectionBuilder::add(BytesView part) {
  base::ByteWriter writer(out_);
  writer.i32(static_cast<int32_t>(part.size()));
  writer.raw(part);
  ++parts_;
}
// The four bytes at the front were kept for the count.
Bytes CollectionBuilder::finish(int parts_per_element) && {
  const size_t count = parts_ / static_cast<size_t>(parts_per_element);
  base::store_big_endian(out_.data(), static_cast<int32_t>(count));
  return std::move(out_);
}

// Also of sets.
Result<std::vector<BytesView>> split_list(BytesView bytes) {
  TETRAD_TRY(CollectionReader reader, CollectionReader::open(bytes, 1));
  std::vector<BytesView> out;
  out.reserve(reader.size());
  while (!reader.at_end()) {
    TETRAD_TRY(const OptionalView element, reader.next());
    if (!element) return fail(ErrorCode::kInvalid, "Null value read when not allowed");
    out.push_back(*element);
  }
  return out;
}

Result<std::vector<std::pair<BytesView, BytesView>>> split_map(BytesView bytes) {
  TETRAD_TRY(CollectionReader reader, CollectionReader::open(bytes, 2));
  std::vector<std::pair<BytesView, BytesView>> out;
  out.reserve(reader.size());
  while (!reader.at_end()) {
    TETRAD_TRY(const OptionalView key, reader.next());
    TETRAD_TRY(const OptionalView value, reader.next());
    if (!key || !value) return fail(ErrorCode::kInvalid, "Null value read when not allowed");
    out.emplace_back(*key, *value);
  }
  return out;
}

namespace {

/// Takes a field off the front. nullopt inside: null. `what` names it in messages.
template <class Name>
Result<OptionalView> take_field(BytesView& bytes, const Name& what) {
  if (bytes.size() < 4)
    return fail(ErrorCode::kInvalid, "Not enough bytes to read size of {}", what());
  const auto length = base::load_big_endian<int32_t>(bytes.data());
  bytes.remove_prefix(4);
  if (length < 0) return std::nullopt;
  if (bytes.size() < static_cast<size_t>(length))
    return fail(ErrorCode::kInvalid, "Not enough bytes to read {}", what());
  const BytesView field = bytes.substr(0, static_cast<size_t>(length));
  bytes.remove_prefix(field.size());
  return field;
}

// "0th field a" or "0th component", as Cassandra's errors count.
std::string field_name(const DataType& type, size_t index) {
  return type.kind() == TypeKind::kUdt
             ? fmt::format("{}th field {}", index, type.field_names()[index])
             : fmt::format("{}th component", index);
}

/// Calls `visit(index, field)` for the fields that are there.
// Fields that are missing at the end are null: the type may have got them later.
template <class Visit>
Result<void> for_each_field(const DataType& type, BytesView bytes, const Visit& visit) {
  for (size_t i = 0; i < type.components().size() && !bytes.empty(); ++i) {
    TETRAD_TRY(const OptionalView field, take_field(bytes, [&] { return field_name(type, i); }));
    TETRAD_TRY_VOID(visit(i, field));
  }
  if (bytes.empty()) return {};
  return fail(ErrorCode::kInvalid, "Invalid remaining data after end of {} value",
              type.kind() == TypeKind::kUdt ? "UDT" : "tuple");
}

/// Calls `visit(element)` for every element of a vector.
template <class Visit>
Result<void> for_each_element(const DataType& type, BytesView bytes, const Visit& visit) {
  if (bytes.empty()) return fail(ErrorCode::kInvalid, "Invalid empty vector value");
  const auto too_short = [&] {
    return fail(ErrorCode::kInvalid, "Not enough bytes to read a {}", type.cql_text());
  };
  const auto fixed = type.element()->fixed_length();
  // Elements of fixed length have no lengths of their own, others a vint before each.
  if (fixed && *fixed != 0 && bytes.size() / *fixed < type.dimension()) return too_short();
  for (uint32_t i = 0; i < type.dimension(); ++i) {
    size_t length = 0;
    if (fixed) {
      length = *fixed;
    } else {
      const auto size = take_unsigned_vint(bytes);
      if (!size || *size > bytes.size()) return too_short();
      length = static_cast<size_t>(*size);
    }
    TETRAD_TRY_VOID(visit(bytes.substr(0, length)));
    bytes.remove_prefix(length);
  }
  if (bytes.empty()) return {};
  return fail(ErrorCode::kInvalid, "Unexpected {} extraneous bytes after {} value", bytes.size(),
              type.cql_text());
}

}  // namespace

// As many fields as the type has; those that the value lacks are null.
Result<std::vector<OptionalView>> split_tuple(const DataType& type, BytesView bytes) {
  std::vector<OptionalView> out(type.components().size());
  TETRAD_TRY_VOID(for_each_field(type, bytes, [&](size_t i, OptionalView field) -> Result<void> {
    out[i] = field;
    return {};
  }));
  return out;
}

Result<std::vector<BytesView>> split_vector(const DataType& type, BytesView bytes) {
  std::vector<BytesView> out;
  out.reserve(std::min<size_t>(type.dimension(), bytes.size()));
  TETRAD_TRY_VOID(for_each_element(type, bytes, [&](BytesView element) -> Result<void> {
    out.push_back(element);
    return {};
  }));
  return out;
}

Bytes join_list(std::span<const BytesView> elements) {
  CollectionBuilder builder;
  for (const BytesView element : elements) builder.add(element);
  return std::move(builder).finish();
}

Bytes join_map(std::span<const std::pair<BytesView, BytesView>> entries) {
  CollectionBuilder builder;
  for (const auto& [key, value] : entries) {
    builder.add(key);
    builder.add(value);
  }
  return std::move(builder).finish(2);
}

// tuple := (i32 size (-1: null), bytes)*; a user type is the same. Fields at the end may be left
// out.
Bytes join_tuple(std::span<const OptionalView> fields) {
  Bytes out;
  base::ByteWriter writer(out);
  for (const OptionalView& field : fields) {
    writer.i32(field ? static_cast<int32_t>(field->size()) : -1);
    if (field) writer.raw(*field);
  }
  return out;
}

// As for_each_element() reads them: no count, and a length only where the elements' own may differ.
Bytes join_vector(const DataType& type, std::span<const BytesView> elements) {
  TETRAD_ASSERT(elements.size() == type.dimension());
  Bytes out;
  const bool fixed = type.element()->is_fixed_length();
  for (const BytesView element : elements) {
    if (!fixed) append_unsigned_vint(out, element.size());
    out.append(element);
  }
  return out;
}

// Of equal elements the first stays; the sort is stable.
Bytes join_sorted_set(const DataType& element, std::vector<BytesView> elements) {
  std::stable_sort(elements.begin(), elements.end(),
                   [&](BytesView a, BytesView b) { return compare(element, a, b) < 0; });
  const auto end = std::unique(elements.begin(), elements.end(), [&](BytesView a, BytesView b) {
    return compare(element, a, b) == 0;
  });
  elements.erase(end, elements.end());
  return join_list(elements);
}

// Keys in the order of their type.
Bytes join_sorted_map(const DataType& key, std::vector<std::pair<BytesView, BytesView>> entries) {
  std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
    return compare(key, a.first, b.first) < 0;
  });
  std::vector<std::pair<BytesView, BytesView>> kept;
  kept.reserve(entries.size());
  for (const auto& entry : entries) {
    if (!kept.empty() && compare(key, kept.back().first, entry.first) == 0) {
      kept.back().second = entry.second;  // as a Java map: the first key, the last value
    } else {
      kept.push_back(entry);
    }
  }
  return join_map(kept);
}

// Validation.

namespace {

constexpr auto kBad = ErrorCode::kInvalid;

// Three vints, zigzag: months, days, nanoseconds. Bytes behind them are not looked at.
Result<void> validate_duration(BytesView bytes) {
  if (bytes.size() < 3)
    return fail(kBad, "Expected at least 3 bytes for a duration ({})", bytes.size());
  BytesView rest = bytes;
  int64_t parts[3];
  for (int64_t& part : parts) {
    const auto value = take_unsigned_vint(rest);
    if (!value) return fail(kBad, "Not enough bytes to read a duration");
    part = unzigzag(*value);
  }
  const auto [months, days, nanos] = parts;
  if (months != static_cast<int32_t>(months))
    return fail(kBad, "The duration months must be a 32 bits integer but was: {}", months);
  if (days != static_cast<int32_t>(days))
    return fail(kBad, "The duration days must be a 32 bits integer but was: {}", days);
  const bool negative = months < 0 || days < 0 || nanos < 0;
  const bool positive = months > 0 || days > 0 || nanos > 0;
  if (negative && positive) {
    return fail(kBad,
                "The duration months, days and nanoseconds must be all of the same sign ({}, {}, "
                "{})",
                months, days, nanos);
  }
  return {};
}

// Every part, to any depth; null parts are refused although the encoding has them.
Result<void> validate_collection(const DataType& type, BytesView bytes) {
  const char* const name = type.kind() == TypeKind::kList  ? "list"
                           : type.kind() == TypeKind::kSet ? "set"
                                                           : "map";
  const auto too_short = [name] { return fail(kBad, "Not enough bytes to read a {}", name); };
  if (bytes.size() < 4) return too_short();
  const auto count = base::load_big_endian<int32_t>(bytes.data());
  bytes.remove_prefix(4);
  // Part by part, as in Cassandra: a wrong element goes before the bytes that are missing.
  for (int32_t i = 0; i < count; ++i) {
    for (const TypePtr& part_type : type.components()) {
      const auto part = take_field(bytes, [name] { return name; });
      if (!part) return too_short();
      if (!*part) return fail(kBad, "Null value read when not allowed");
      TETRAD_TRY_VOID(validate(*part_type, **part));
    }
  }
  if (!bytes.empty()) return fail(kBad, "Unexpected extraneous bytes after {} value", name);
  return {};
}

Result<void> validate_fields(const DataType& type, BytesView bytes) {
  return for_each_field(type, bytes, [&](size_t i, OptionalView field) -> Result<void> {
    if (!field) return {};
    Result<void> valid = validate(*type.components()[i], *field);
    // Only of user types Cassandra's text names the field.
    if (valid || type.kind() == TypeKind::kTuple) return valid;
    return fail(valid.error().code, "Failure validating the {}; {}", field_name(type, i),
                valid.error().message);
  });
}

// Of the types whose values are known by their size.
// The texts are those of Cassandra's serializers, with its wording for each type.
Result<void> validate_size(TypeKind kind, size_t size) {
  switch (kind) {
    case TypeKind::kInt:
      if (size == 4 || size == 0) return {};
      return fail(kBad, "Expected 4 or 0 byte int ({})", size);
    case TypeKind::kBigint:
    case TypeKind::kCounter:
      if (size == 8 || size == 0) return {};
      return fail(kBad, "Expected 8 or 0 byte long ({})", size);
    case TypeKind::kTimestamp:
      if (size == 8 || size == 0) return {};
      return fail(kBad, "Expected 8 or 0 byte long for date ({})", size);
    case TypeKind::kBoolean:
      if (size == 1 || size == 0) return {};
      return fail(kBad, "Expected 1 or 0 byte value ({})", size);
    case TypeKind::kDouble:
      if (size == 8 || size == 0) return {};
      return fail(kBad, "Expected 8 or 0 byte value for a double ({})", size);
    case TypeKind::kFloat:
      if (size == 4 || size == 0) return {};
      return fail(kBad, "Expected 4 or 0 byte value for a float ({})", size);
    case TypeKind::kDate:
      if (size == 4) return {};
      return fail(kBad, "Expected 4 byte long for date ({})", size);
    case TypeKind::kTime:
      if (size == 8) return {};
      return fail(kBad, "Expected 8 byte long for time ({})", size);
    case TypeKind::kSmallint:
      if (size == 2) return {};
      return fail(kBad, "Expected 2 bytes for a smallint ({})", size);
    case TypeKind::kTinyint:
      if (size == 1) return {};
      return fail(kBad, "Expected 1 byte for a tinyint ({})", size);
    case TypeKind::kDecimal:
      if (size == 0 || size >= 4) return {};
      return fail(kBad, "Expected 0 or at least 4 bytes ({})", size);
    default:
      std::unreachable();
  }
}

// Also version 1 of a timeuuid, which no other uuid may pretend to be.
Result<void> validate_uuid(TypeKind kind, BytesView bytes) {
  const size_t size = bytes.size();
  if (size != 16 && size != 0) return fail(kBad, "UUID should be 16 or 0 bytes ({})", size);
  if (kind == TypeKind::kTimeuuid && size == 16 && (bytes[6] & 0xf0) != 0x10) {
    // Cassandra prints the first digit of the value, not the version.
    return fail(kBad, "Invalid version for TimeUUID type: {:#x}",
                static_cast<uint8_t>(bytes[0]) >> 4);
  }
  return {};
}

// Java's text: the first byte that is none, with its sign.
Result<void> validate_ascii(BytesView bytes) {
  if (is_valid_ascii(bytes)) return {};
  const auto bad = std::ranges::find_if(bytes, [](char c) { return (c & 0x80) != 0; });
  return fail(kBad, "Invalid byte for ascii: {}", static_cast<int>(static_cast<int8_t>(*bad)));
}

// The message quotes 64 bytes at most.
Result<void> validate_inet(BytesView bytes) {
  const size_t size = bytes.size();
  if (size == 0 || size == 4 || size == 16) return {};
  return fail(kBad, "Expected 4 or 16 byte inetaddress; got {}", base::to_hex(bytes.substr(0, 64)));
}

}  // namespace

// Recursion is bounded by the depth of the type (kTypeDepthMax), work by the length of the bytes.
Result<void> validate(const DataType& type, BytesView bytes) {
  switch (type.kind()) {
    case TypeKind::kText:
      if (is_valid_utf8(bytes)) return {};
      return fail(kBad, "String didn't validate.");
    case TypeKind::kBlob:
    case TypeKind::kVarint:
      return {};
    case TypeKind::kCustom: {
      if (!is_composite_class(type.custom_class())) return {};
      TETRAD_TRY(const CompositeClass composite, parse_composite_class(type.custom_class()));
      return validate_composite(composite, bytes);
    }
    case TypeKind::kUuid:
    case TypeKind::kTimeuuid:
      return validate_uuid(type.kind(), bytes);
    case TypeKind::kAscii:
      return validate_ascii(bytes);
    case TypeKind::kInet:
      return validate_inet(bytes);
    case TypeKind::kInt:
    case TypeKind::kBigint:
    case TypeKind::kCounter:
    case TypeKind::kTimestamp:
    case TypeKind::kBoolean:
    case TypeKind::kDouble:
    case TypeKind::kFloat:
    case TypeKind::kDate:
    case TypeKind::kTime:
    case TypeKind::kSmallint:
    case TypeKind::kTinyint:
    case TypeKind::kDecimal:
      return validate_size(type.kind(), bytes.size());
    case TypeKind::kDuration:
      return validate_duration(bytes);
    case TypeKind::kEmpty:
      if (bytes.empty()) return {};
      return fail(kBad, "EmptyType only accept empty values");
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
      return validate_collection(type, bytes);
    case TypeKind::kTuple:
    case TypeKind::kUdt:
      return validate_fields(type, bytes);
    case TypeKind::kVector:
      return for_each_element(
          type, bytes, [&](BytesView element) { return validate(*type.element(), element); });
  }
  std::unreachable();
}

}  // namespace tetrad::cql
