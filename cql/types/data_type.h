// SPDX-License-Identifier: Apache-2.0
// CQL types: immutable, shared, compared by value; their CQL text, Cassandra class names and the
// type options of the native protocol. "Reversed" is no type here: it belongs to the column.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_io.h"
#include "base/result.h"

namespace tetrad::cql {

/// The kinds of CQL types. DataType::is_native() and is_collection() rely on the order; no format
/// has the numbers.
enum class TypeKind : uint8_t {
  kAscii,
  kBigint,
  kBlob,
  kBoolean,
  kCounter,
  kDate,
  kDecimal,
  kDouble,
  kDuration,
  kFloat,
  kInet,
  kInt,
  kSmallint,
  kText,
  kTime,
  kTimestamp,
  kTimeuuid,
  kTinyint,
  kUuid,
  kVarint,
  kEmpty,  // the type of no value: tables of COMPACT STORAGE without a value column
  // Above: one shared instance each, native_type(). Below: made by the make_ functions.
  kList,
  kSet,
  kMap,
  kTuple,
  kUdt,
  kVector,
  kCustom,  // known by its class name only; its values are opaque bytes
};

/// Types nest at most this deep; parsing and decoding refuse more, so every walk may recurse.
inline constexpr int kTypeDepthMax = 64;
/// Most bytes of a vector whose elements have a fixed length, and most elements of any other one.
inline constexpr size_t kFixedLengthMax = 256u << 20;

class DataType;
using TypePtr = std::shared_ptr<const DataType>;

/// How well a value of one type can stand where another type is expected (function overloads,
/// bind markers, literals).
enum class Assignability : uint8_t { kNotAssignable, kWeak, kExact };

/// A CQL type. Immutable and shared by shards; made by native_type() and the make_ functions only,
/// so that every instance has the components that its kind needs.
class DataType {
 public:
  class Access;  // the make_ functions

  TypeKind kind() const { return kind_; }

  /// list, set: {element}; map: {key, value}; tuple, udt: the fields; vector: {element}; else {}.
  std::span<const TypePtr> components() const { return components_; }
  /// Of a list, set or vector.
  const TypePtr& element() const { return components_.front(); }
  /// Of a map.
  const TypePtr& key() const { return components_.front(); }
  const TypePtr& value() const { return components_.back(); }
  /// Number of elements of a vector, 0 for other types.
  uint32_t dimension() const { return dimension_; }
  /// Of a udt.
  const std::string& keyspace() const { return keyspace_; }
  const std::string& name() const { return name_; }
  std::span<const std::string> field_names() const { return field_names_; }
  /// Unset: it has no such field. Names are compared exactly.
  std::optional<size_t> field_index(std::string_view field) const;
  /// The class name of a custom type.
  const std::string& custom_class() const { return name_; }

  bool is_native() const { return kind_ < TypeKind::kList; }
  bool is_collection() const { return kind_ >= TypeKind::kList && kind_ <= TypeKind::kMap; }
  bool is_tuple_like() const { return kind_ == TypeKind::kTuple || kind_ == TypeKind::kUdt; }
  bool is_counter() const { return kind_ == TypeKind::kCounter; }
  /// Stored cell by cell: a collection or udt that is not frozen.
  bool is_multi_cell() const { return multi_cell_; }
  /// True for everything that is not stored cell by cell, native types included.
  bool is_frozen() const { return !multi_cell_; }
  /// Length of every value, as Cassandra counts it where a vector lays its elements bare. There
  /// tinyint, smallint, date, time, counter and text have no fixed length.
  std::optional<size_t> fixed_length() const { return fixed_length_; }
  bool is_fixed_length() const { return fixed_length_.has_value(); }
  /// False for types whose zero-length value is refused or means something else (text, blob,
  /// tuples, collections, vectors, counters, and the small types).
  bool allows_empty_value() const;

  /// True when this type is, or has inside, a user type / that one user type.
  bool references_udt() const { return references_udt_; }
  bool references_udt(std::string_view keyspace, std::string_view name) const;
  /// True when this type is, or has inside, a counter.
  bool references_counter() const;
  /// As Cassandra: durations inside of vectors do not count.
  bool references_duration() const;
  /// 1 for a native type, one more per level of nesting.
  int depth() const { return depth_; }

  /// As in system_schema.columns and DESCRIBE: `frozen<map<text, int>>`, `"Quoted Udt"`.
  std::string cql_text() const;
  /// As cql_text() without the outermost frozen<>, as Cassandra names types in most error messages.
  std::string cql_text_without_frozen() const;
  /// `org.apache.cassandra.db.marshal.ListType(org.apache.cassandra.db.marshal.Int32Type)`.
  std::string class_name() const;

  friend bool operator==(const DataType& a, const DataType& b);

 private:
  DataType() = default;

  TypeKind kind_ = TypeKind::kEmpty;
  bool multi_cell_ = false;
  bool references_udt_ = false;
  int depth_ = 1;
  uint32_t dimension_ = 0;
  std::optional<size_t> fixed_length_;
  std::vector<TypePtr> components_;
  std::vector<std::string> field_names_;
  std::string keyspace_, name_;
};

/// The shared instance of a native type. `kind` is kEmpty or before.
const TypePtr& native_type(TypeKind kind);
inline const TypePtr& ascii_type() { return native_type(TypeKind::kAscii); }
inline const TypePtr& bigint_type() { return native_type(TypeKind::kBigint); }
inline const TypePtr& blob_type() { return native_type(TypeKind::kBlob); }
inline const TypePtr& boolean_type() { return native_type(TypeKind::kBoolean); }
inline const TypePtr& counter_type() { return native_type(TypeKind::kCounter); }
inline const TypePtr& date_type() { return native_type(TypeKind::kDate); }
inline const TypePtr& decimal_type() { return native_type(TypeKind::kDecimal); }
inline const TypePtr& double_type() { return native_type(TypeKind::kDouble); }
inline const TypePtr& duration_type() { return native_type(TypeKind::kDuration); }
inline const TypePtr& float_type() { return native_type(TypeKind::kFloat); }
inline const TypePtr& inet_type() { return native_type(TypeKind::kInet); }
inline const TypePtr& int_type() { return native_type(TypeKind::kInt); }
inline const TypePtr& smallint_type() { return native_type(TypeKind::kSmallint); }
inline const TypePtr& text_type() { return native_type(TypeKind::kText); }
inline const TypePtr& time_type() { return native_type(TypeKind::kTime); }
inline const TypePtr& timestamp_type() { return native_type(TypeKind::kTimestamp); }
inline const TypePtr& timeuuid_type() { return native_type(TypeKind::kTimeuuid); }
inline const TypePtr& tinyint_type() { return native_type(TypeKind::kTinyint); }
inline const TypePtr& uuid_type() { return native_type(TypeKind::kUuid); }
inline const TypePtr& varint_type() { return native_type(TypeKind::kVarint); }

/// The native type of a CQL name in lower case (`int`, `text`, `varchar`), or null.
TypePtr native_type_named(std::string_view name);

// Composite types. What a frozen type holds is frozen too, as is what any type but a user type
// holds, so callers need not freeze the parts.
TypePtr make_list(TypePtr element, bool frozen);
TypePtr make_set(TypePtr element, bool frozen);
TypePtr make_map(TypePtr key, TypePtr value, bool frozen);
TypePtr make_tuple(std::vector<TypePtr> fields);
/// `field_names` and `field_types` have the same size.
TypePtr make_udt(std::string keyspace, std::string name, std::vector<std::string> field_names,
                 std::vector<TypePtr> field_types, bool frozen);
/// `dimension`: 1 or more; parse_type() checks the bounds.
TypePtr make_vector(TypePtr element, uint32_t dimension);
/// `class_name` in full, with its parameters.
TypePtr make_custom(std::string class_name);

/// The frozen form of a type (itself when it has no other).
TypePtr freeze(const TypePtr& type);
/// A collection or udt stored cell by cell; what it holds stays frozen. Others: itself.
TypePtr unfreeze(const TypePtr& type);

/// Finds a user type. `keyspace` is empty when the text does not name one. The type it returns is
/// not frozen; a null pointer means that there is none; an error is handed on as it is.
using UdtResolver =
    std::function<Result<TypePtr>(std::string_view keyspace, std::string_view name)>;

/// Parses CQL text with Cassandra's checks and messages: what may stand in a collection, frozen<>
/// on the right types, vector sizes. Quoted class names give the type of that class.
/// Errors: kSyntax, kInvalid ("Unknown type ks.name").
Result<TypePtr> parse_type(std::string_view cql_text, const UdtResolver& resolve_udt = nullptr);

/// Parses a Cassandra class name, with parameters (`…VectorType(…FloatType , 3)`,
/// `…UserType(ks,…)`); ReversedType gives its inner type. An unknown class gives a custom type.
/// Errors: kInvalid.
Result<TypePtr> parse_class_name(std::string_view class_name);

/// Whether a value of type `from` may stand where `to` is expected: Cassandra's
/// AbstractType.testAssignment. kExact: equal types (frozen or not); kWeak: every value of `from`
/// is one of `to` (int to bigint is not; ascii to text is).
Assignability test_assignment(const DataType& to, const DataType& from);
/// Every valid value of `from` is a valid value of `to`, if with another order
/// (AbstractType.isValueCompatibleWith).
bool is_value_compatible(const DataType& to, const DataType& from);
/// As is_value_compatible, and sorted alike (AbstractType.isCompatibleWith).
bool is_order_compatible(const DataType& to, const DataType& from);

/// Writes the type option of a result or bind column (native protocol §4.2.5.2). Types newer than
/// the version are written as custom types with their class name.
void write_type_option(base::ByteWriter& writer, const DataType& type, int protocol_version);
/// The inverse, for clients and tools. Errors: kCorruption.
Result<TypePtr> read_type_option(base::ByteReader& reader);

}  // namespace tetrad::cql
