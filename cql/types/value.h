// SPDX-License-Identifier: Apache-2.0
// Values are their serialized bytes, in the encoding of the native protocol §6. Null is no value at
// all (std::nullopt); a zero-length value is "empty" and not null.
//
//   list, set       := i32 n, n x (i32 length, bytes)
//   map             := i32 n, n x (i32 length, key, i32 length, value)
//   tuple, udt      := (i32 length | -1 null, bytes)*     trailing fields may be missing: null
//   vector          := n x bytes                          elements of fixed length
//                    | n x (unsigned vint length, bytes)  others
//   duration        := vint months, vint days, vint nanoseconds
//   decimal         := i32 scale, varint unscaled         varint := two's complement, big-endian
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cql/types/data_type.h"

namespace tetrad::cql {

/// A value or null.
using OptionalBytes = std::optional<Bytes>;
using OptionalView = std::optional<BytesView>;

/// Months, days and nanoseconds, all of one sign.
struct Duration {
  int32_t months = 0, days = 0;
  int64_t nanos = 0;
  friend bool operator==(const Duration&, const Duration&) = default;
};

/// Checks a value's bytes against its type, with Cassandra's messages. No allocation unless it
/// fails. Errors: kInvalid, for example "Expected 4 or 0 byte int (3)".
Result<void> validate(const DataType& type, BytesView bytes);

/// True for bytes that are UTF-8 as Cassandra's UTF8Type takes it: with C0 80, surrogates and up to
/// F7 BF BF BF. Stricter than that in one point: the second byte after E0 and F0 must be one that
/// continues a character, where Cassandra lets nearly any byte pass.
bool is_valid_utf8(BytesView bytes);
bool is_valid_ascii(BytesView bytes);

// Making values.
Bytes make_tinyint(int8_t value);
Bytes make_smallint(int16_t value);
Bytes make_int(int32_t value);
Bytes make_bigint(int64_t value);  // counter, timestamp (ms) and time (ns) too
Bytes make_timestamp(int64_t unix_ms);
Bytes make_time(int64_t nanos_of_day);
/// Days since 1970-01-01 shifted by 2^31, as the value stores them.
Bytes make_date(uint32_t shifted_days);
Bytes make_date_of_days(int64_t days_since_epoch);
Bytes make_boolean(bool value);
Bytes make_float(float value);
Bytes make_double(double value);
Bytes make_varint(int64_t value);
Bytes make_duration(const Duration& value);
Bytes make_uuid(const Uuid& value);
inline Bytes make_text(std::string_view value) { return Bytes(value); }

// Reading values: nullopt when the bytes are not of the type's length (so for empty values too).
std::optional<int8_t> read_tinyint(BytesView bytes);
std::optional<int16_t> read_smallint(BytesView bytes);
std::optional<int32_t> read_int(BytesView bytes);
std::optional<int64_t> read_bigint(BytesView bytes);  // counter, timestamp and time too
std::optional<uint32_t> read_date(BytesView bytes);
std::optional<bool> read_boolean(BytesView bytes);
std::optional<float> read_float(BytesView bytes);
std::optional<double> read_double(BytesView bytes);
std::optional<Duration> read_duration(BytesView bytes);
std::optional<Uuid> read_uuid(BytesView bytes);

/// Walks the elements of a list or set, or the keys and values of a map in turn. Views point into
/// the bytes given.
class CollectionReader {
 public:
  /// `parts_per_element`: 1 for lists and sets, 2 for maps. Errors: kInvalid.
  static Result<CollectionReader> open(BytesView bytes, int parts_per_element);
  static Result<CollectionReader> open(const DataType& type, BytesView bytes) {
    return open(bytes, type.kind() == TypeKind::kMap ? 2 : 1);
  }
  /// Elements in all: for a map, pairs.
  size_t size() const { return size_; }
  bool at_end() const { return parts_left_ == 0; }
  /// The next part; null for a length below zero.
  Result<OptionalView> next();
  /// What follows the last part; empty in a valid value.
  BytesView rest() const { return rest_; }

 private:
  BytesView rest_;
  size_t size_ = 0, parts_left_ = 0;
};

/// Builds a list, set or map: add the elements, or keys and values in turn, in their order.
class CollectionBuilder {
 public:
  CollectionBuilder();
  void add(BytesView part);
  /// `parts_per_element`: 2 for a map.
  Bytes finish(int parts_per_element = 1) &&;

 private:
  Bytes out_;
  size_t parts_ = 0;
};

/// The elements of a list or set. Errors: kInvalid, also for a null element.
Result<std::vector<BytesView>> split_list(BytesView bytes);
Result<std::vector<std::pair<BytesView, BytesView>>> split_map(BytesView bytes);
/// The fields of a tuple or udt, exactly as many as the type has; missing ones are null.
/// Errors: kInvalid when there are more, or bytes are cut short.
Result<std::vector<OptionalView>> split_tuple(const DataType& type, BytesView bytes);
/// The elements of a vector, exactly `dimension` of them.
Result<std::vector<BytesView>> split_vector(const DataType& type, BytesView bytes);

Bytes join_list(std::span<const BytesView> elements);
Bytes join_map(std::span<const std::pair<BytesView, BytesView>> entries);
Bytes join_tuple(std::span<const OptionalView> fields);
/// `elements` must be `dimension` values of the right length where the element type fixes it.
Bytes join_vector(const DataType& type, std::span<const BytesView> elements);

/// Sorts and removes duplicates as Cassandra does when a set or map value is made: by the order of
/// the element (key) type. For equal keys of a map the last one given stays.
Bytes join_sorted_set(const DataType& element, std::vector<BytesView> elements);
Bytes join_sorted_map(const DataType& key, std::vector<std::pair<BytesView, BytesView>> entries);

/// Unsigned variable integer of the native protocol: leading 1-bits of the first byte count the
/// bytes that follow.
void append_unsigned_vint(Bytes& out, uint64_t value);
/// Takes one off the front of `bytes`; nullopt when it is cut short.
std::optional<uint64_t> take_unsigned_vint(BytesView& bytes);

}  // namespace tetrad::cql
