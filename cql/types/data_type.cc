// SPDX-License-Identifier: Apache-2.0
// Types are immutable and shared; native ones exist once. Inside collections and tuples everything
// is frozen, whatever was written, so make_collection freezes its parts. Texts of types (cql_text,
// class_name) are Cassandra's, byte for byte: schema tables, DESCRIBE and drivers compare them.
#include "cql/types/data_type.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "cql/types/keyword.h"

namespace tetrad::cql {

namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.db.marshal.";

struct NativeInfo {
  TypeKind kind;
  std::string_view cql, class_name;
  // Cassandra's valueLengthIfFixed. It says "none" for some types of one length (date, smallint);
  // vectors on disk depend on these numbers.
  int fixed_length;  // -1: none
};

// By TypeKind, which the assertion below counts.
constexpr std::array kNatives = {
    NativeInfo{TypeKind::kAscii, "ascii", "AsciiType", -1},
    NativeInfo{TypeKind::kBigint, "bigint", "LongType", 8},
    NativeInfo{TypeKind::kBlob, "blob", "BytesType", -1},
    NativeInfo{TypeKind::kBoolean, "boolean", "BooleanType", 1},
    NativeInfo{TypeKind::kCounter, "counter", "CounterColumnType", -1},
    NativeInfo{TypeKind::kDate, "date", "SimpleDateType", -1},
    NativeInfo{TypeKind::kDecimal, "decimal", "DecimalType", -1},
    NativeInfo{TypeKind::kDouble, "double", "DoubleType", 8},
    NativeInfo{TypeKind::kDuration, "duration", "DurationType", -1},
    NativeInfo{TypeKind::kFloat, "float", "FloatType", 4},
    NativeInfo{TypeKind::kInet, "inet", "InetAddressType", -1},
    NativeInfo{TypeKind::kInt, "int", "Int32Type", 4},
    NativeInfo{TypeKind::kSmallint, "smallint", "ShortType", -1},
    NativeInfo{TypeKind::kText, "text", "UTF8Type", -1},
    NativeInfo{TypeKind::kTime, "time", "TimeType", -1},
    NativeInfo{TypeKind::kTimestamp, "timestamp", "TimestampType", 8},
    NativeInfo{TypeKind::kTimeuuid, "timeuuid", "TimeUUIDType", 16},
    NativeInfo{TypeKind::kTinyint, "tinyint", "ByteType", -1},
    NativeInfo{TypeKind::kUuid, "uuid", "UUIDType", 16},
    NativeInfo{TypeKind::kVarint, "varint", "IntegerType", -1},
    NativeInfo{TypeKind::kEmpty, "empty", "EmptyType", 0},
};
// Native kinds come first in TypeKind.
constexpr size_t kNativeCount = kNatives.size();
static_assert(kNativeCount == static_cast<size_t>(TypeKind::kList));

const NativeInfo& info_of(TypeKind kind) { return kNatives[static_cast<size_t>(kind)]; }

}  // namespace

/// Builds types; everyone else sees them as const.
class DataType::Access {
 public:
  // DataType has no public constructor: Open lets make_shared() call it.
  static std::shared_ptr<DataType> make(TypeKind kind) {
    struct Open : DataType {};
    auto type = std::make_shared<Open>();
    type->kind_ = kind;
    if (kind < TypeKind::kList && info_of(kind).fixed_length >= 0)
      type->fixed_length_ = static_cast<size_t>(info_of(kind).fixed_length);
    return type;
  }
  // Also what follows from the parts: depth and whether a user type is inside, both asked often.
  static void set_components(DataType& type, std::vector<TypePtr> components, bool multi_cell) {
    type.components_ = std::move(components);
    type.multi_cell_ = multi_cell;
    type.references_udt_ = type.kind_ == TypeKind::kUdt;
    int deepest = 0;
    for (const TypePtr& part : type.components_) {
      TETRAD_ASSERT(part != nullptr);
      deepest = std::max(deepest, part->depth_);
      type.references_udt_ = type.references_udt_ || part->references_udt_;
    }
    type.depth_ = deepest + 1;
  }
  // Of user types all; of custom classes the name alone.
  static void set_names(DataType& type, std::string keyspace, std::string name,
                        std::vector<std::string> field_names) {
    type.keyspace_ = std::move(keyspace);
    type.name_ = std::move(name);
    type.field_names_ = std::move(field_names);
  }
  // A vector of elements of a fixed length has one itself.
  static void set_dimension(DataType& type, uint32_t dimension) {
    type.dimension_ = dimension;
    const auto each = type.components_.front()->fixed_length_;
    if (each) type.fixed_length_ = *each * dimension;
  }
};

const TypePtr& native_type(TypeKind kind) {
  // Never destroyed: types of other static objects may outlive it.
  static const auto* const all = [] {
    auto* types = new std::array<TypePtr, kNativeCount>();
    for (size_t i = 0; i < kNativeCount; ++i)
      (*types)[i] = DataType::Access::make(static_cast<TypeKind>(i));
    return types;
  }();
  TETRAD_ASSERT(kind < TypeKind::kList);
  return (*all)[static_cast<size_t>(kind)];
}

// Lower case; varchar is another name of text.
TypePtr native_type_named(std::string_view name) {
  if (name == "varchar") return text_type();
  for (const NativeInfo& native : kNatives) {
    if (native.cql == name) return native_type(native.kind);
  }
  return nullptr;
}

namespace {

// Parts of a collection have no cells of their own, so they are frozen.
TypePtr make_collection(TypeKind kind, std::vector<TypePtr> parts, bool frozen) {
  for (TypePtr& part : parts) part = freeze(part);
  auto type = DataType::Access::make(kind);
  DataType::Access::set_components(*type, std::move(parts), !frozen);
  return type;
}

}  // namespace

TypePtr make_list(TypePtr element, bool frozen) {
  return make_collection(TypeKind::kList, {std::move(element)}, frozen);
}
TypePtr make_set(TypePtr element, bool frozen) {
  return make_collection(TypeKind::kSet, {std::move(element)}, frozen);
}
TypePtr make_map(TypePtr key, TypePtr value, bool frozen) {
  return make_collection(TypeKind::kMap, {std::move(key), std::move(value)}, frozen);
}
TypePtr make_tuple(std::vector<TypePtr> fields) {
  return make_collection(TypeKind::kTuple, std::move(fields), true);
}

TypePtr make_udt(std::string keyspace, std::string name, std::vector<std::string> field_names,
                 std::vector<TypePtr> field_types, bool frozen) {
  TETRAD_ASSERT(field_names.size() == field_types.size());
  // A user type that is not frozen may hold collections that are not.
  if (frozen) {
    for (TypePtr& field : field_types) field = freeze(field);
  }
  auto type = DataType::Access::make(TypeKind::kUdt);
  DataType::Access::set_components(*type, std::move(field_types), !frozen);
  DataType::Access::set_names(*type, std::move(keyspace), std::move(name), std::move(field_names));
  return type;
}

// Never of many cells: a vector is written and read as one value.
TypePtr make_vector(TypePtr element, uint32_t dimension) {
  auto type = DataType::Access::make(TypeKind::kVector);
  DataType::Access::set_components(*type, {std::move(element)}, false);
  DataType::Access::set_dimension(*type, dimension);
  return type;
}

// A class that Cassandra would load and Tetrad keeps by name: its values are bytes.
TypePtr make_custom(std::string class_name) {
  auto type = DataType::Access::make(TypeKind::kCustom);
  DataType::Access::set_names(*type, "", std::move(class_name), {});
  return type;
}

namespace {

// A new type with the same parts: types never change.
TypePtr with_frozen(const TypePtr& type, bool frozen) {
  std::vector<TypePtr> parts(type->components().begin(), type->components().end());
  if (type->kind() != TypeKind::kUdt)
    return make_collection(type->kind(), std::move(parts), frozen);
  return make_udt(type->keyspace(), type->name(),
                  {type->field_names().begin(), type->field_names().end()}, std::move(parts),
                  frozen);
}

}  // namespace

// The same type if it is frozen already; only the outermost mark is looked at, since all inside is
// frozen.
TypePtr freeze(const TypePtr& type) {
  return type->is_multi_cell() ? with_frozen(type, true) : type;
}

// The same type for those that have no other form.
TypePtr unfreeze(const TypePtr& type) {
  const bool can = type->is_collection() || type->kind() == TypeKind::kUdt;
  return can && !type->is_multi_cell() ? with_frozen(type, false) : type;
}

// Linear: user types have few fields.
std::optional<size_t> DataType::field_index(std::string_view field) const {
  const auto at = std::find(field_names_.begin(), field_names_.end(), field);
  if (at == field_names_.end()) return std::nullopt;
  return static_cast<size_t>(at - field_names_.begin());
}

// Whether a value of no bytes is one of the type; it is not null then (types/empty_value.h).
bool DataType::allows_empty_value() const {
  switch (kind_) {
    case TypeKind::kTinyint:
    case TypeKind::kSmallint:
    case TypeKind::kDate:
    case TypeKind::kTime:
    case TypeKind::kDuration:
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
    case TypeKind::kVector:
    case TypeKind::kEmpty:
      return false;
    default:
      return true;
  }
}

namespace {

// The type itself or one that it holds, at any depth.
template <class Predicate>
bool any_inside(const DataType& type, const Predicate& predicate) {
  if (predicate(type)) return true;
  return std::any_of(type.components().begin(), type.components().end(),
                     [&](const TypePtr& part) { return any_inside(*part, predicate); });
}

}  // namespace

// references_udt_ spares most types the walk.
bool DataType::references_udt(std::string_view keyspace, std::string_view name) const {
  return references_udt_ && any_inside(*this, [&](const DataType& t) {
           return t.kind_ == TypeKind::kUdt && t.keyspace_ == keyspace && t.name_ == name;
         });
}
// Counters may be inside of what a client writes, where they are refused.
bool DataType::references_counter() const {
  return any_inside(*this, [](const DataType& t) { return t.kind_ == TypeKind::kCounter; });
}
bool DataType::references_duration() const {
  // As Cassandra, whose VectorType does not look inside.
  if (kind_ == TypeKind::kVector) return false;
  return kind_ == TypeKind::kDuration || std::ranges::any_of(components_, [](const TypePtr& t) {
           return t->references_duration();
         });
}

namespace {

/// Bare it would be read as another type.
// A user type called "int" must be quoted.
bool reads_otherwise(std::string_view udt) {
  constexpr std::array<std::string_view, 6> kMade = {"list",  "set",    "map",
                                                     "tuple", "vector", "frozen"};
  return native_type_named(udt) || std::ranges::find(kMade, udt) != kMade.end();
}

// `with_frozen_marks`: of the outermost type only; parts always have theirs.
void append_cql(std::string& out, const DataType& type, bool with_frozen_marks) {
  const auto parts = [&] {
    bool first = true;
    for (const TypePtr& part : type.components()) {
      if (!first) out += ", ";
      first = false;
      append_cql(out, *part, true);
    }
  };
  if (type.is_native()) {
    out += info_of(type.kind()).cql;
    return;
  }
  const bool frozen =
      with_frozen_marks && (type.is_collection() || type.is_tuple_like()) && type.is_frozen();
  if (frozen) out += "frozen<";
  switch (type.kind()) {
    case TypeKind::kList:
      out += "list<";
      break;
    case TypeKind::kSet:
      out += "set<";
      break;
    case TypeKind::kMap:
      out += "map<";
      break;
    case TypeKind::kTuple:
      out += "tuple<";
      break;
    case TypeKind::kVector:
      out += "vector<";
      break;
    case TypeKind::kUdt:
      out += reads_otherwise(type.name()) ? fmt::format("\"{}\"", type.name())
                                          : quote_identifier(type.name());
      break;
    default:
      out += '\'';
      for (const char c : type.custom_class()) out.append(c == '\'' ? 2 : 1, c);
      out += '\'';
      break;
  }
  if (type.kind() != TypeKind::kUdt && type.kind() != TypeKind::kCustom) {
    parts();
    if (type.kind() == TypeKind::kVector) out += fmt::format(", {}", type.dimension());
    out += '>';
  }
  if (frozen) out += '>';
}

/// `inside_frozen`: an outer FrozenType (or a tuple) already says that all of this is frozen.
void append_class(std::string& out, const DataType& type, bool inside_frozen) {
  if (type.kind() == TypeKind::kCustom) {
    out += type.custom_class();
    return;
  }
  const bool frozen_mark =
      !inside_frozen && type.is_frozen() && (type.is_collection() || type.kind() == TypeKind::kUdt);
  if (frozen_mark) out.append(kPackage).append("FrozenType(");
  out += kPackage;
  if (type.is_native()) {
    out += info_of(type.kind()).class_name;
    return;
  }
  const bool inner = inside_frozen || (type.is_frozen() && type.kind() != TypeKind::kVector);
  switch (type.kind()) {
    case TypeKind::kList:
      out += "ListType(";
      break;
    case TypeKind::kSet:
      out += "SetType(";
      break;
    case TypeKind::kMap:
      out += "MapType(";
      break;
    case TypeKind::kTuple:
      out += "TupleType(";
      break;
    case TypeKind::kVector:
      out += "VectorType(";
      break;
    default:
      // UserType(keyspace,name in hex,field in hex:class,…): hexadecimal, so that any character may
      // be in a name.
      out.append("UserType(").append(type.keyspace()).append(",").append(base::to_hex(type.name()));
      break;
  }
  for (size_t i = 0; i < type.components().size(); ++i) {
    if (type.kind() == TypeKind::kUdt) {
      out.append(",").append(base::to_hex(type.field_names()[i])).append(":");
    } else if (i > 0) {
      out += ',';
    }
    append_class(out, *type.components()[i], inner);
  }
  // With the blank before the comma, as Cassandra's VectorType prints itself.
  if (type.kind() == TypeKind::kVector) out += fmt::format(" , {}", type.dimension());
  out += ')';
  if (frozen_mark) out += ')';
}

}  // namespace

std::string DataType::cql_text() const {
  std::string out;
  append_cql(out, *this, true);
  return out;
}
std::string DataType::cql_text_without_frozen() const {
  std::string out;
  append_cql(out, *this, false);
  return out;
}
std::string DataType::class_name() const {
  std::string out;
  append_class(out, *this, false);
  return out;
}

namespace {

// By pointer first: snapshots share most types.
bool same_components(const DataType& a, const DataType& b) {
  return std::equal(a.components().begin(), a.components().end(), b.components().begin(),
                    b.components().end(),
                    [](const TypePtr& x, const TypePtr& y) { return x == y || *x == *y; });
}

/// Field by field; `from` may have fewer fields, never more.
template <class Compatible>
bool prefix_compatible(const DataType& to, const DataType& from, const Compatible& compatible) {
  if (from.components().size() > to.components().size()) return false;
  for (size_t i = 0; i < from.components().size(); ++i) {
    if (!compatible(*to.components()[i], *from.components()[i])) return false;
  }
  return true;
}

}  // namespace

// By value; native types are the same object.
bool operator==(const DataType& a, const DataType& b) {
  if (&a == &b) return true;
  return a.kind_ == b.kind_ && a.multi_cell_ == b.multi_cell_ && a.dimension_ == b.dimension_ &&
         a.keyspace_ == b.keyspace_ && a.name_ == b.name_ && a.field_names_ == b.field_names_ &&
         same_components(a, b);
}

// Whether a clustering column of type `from` may become `to`: all stored values must be valid and
// sort alike. Cassandra's isCompatibleWith.
bool is_order_compatible(const DataType& to, const DataType& from) {
  if (to == from) return true;
  const TypeKind t = to.kind(), f = from.kind();
  if (t == TypeKind::kText) return f == TypeKind::kAscii;
  if (t == TypeKind::kBlob) return f == TypeKind::kAscii || f == TypeKind::kText;
  if (to.is_collection()) {
    if (t != f || to.is_multi_cell() != from.is_multi_cell()) return false;
    if (to.is_multi_cell() && t == TypeKind::kList)  // the cells are named by time, not by value
      return is_value_compatible(*to.element(), *from.element());
    if (t != TypeKind::kMap) return is_order_compatible(*to.element(), *from.element());
    return is_order_compatible(*to.key(), *from.key()) &&
           (to.is_multi_cell() ? is_value_compatible(*to.value(), *from.value())
                               : is_order_compatible(*to.value(), *from.value()));
  }
  if (to.is_tuple_like()) {
    return from.is_tuple_like() && prefix_compatible(to, from, is_order_compatible);
  }
  return false;
}

// Whether bytes of `from` may be read as `to`, sorted or not. Cassandra's isValueCompatibleWith.
bool is_value_compatible(const DataType& to, const DataType& from) {
  if (to == from) return true;
  const TypeKind t = to.kind(), f = from.kind();
  switch (t) {
    case TypeKind::kBlob:
      return true;
    case TypeKind::kText:
      return f == TypeKind::kAscii;
    case TypeKind::kBigint:
      return f == TypeKind::kTimestamp;
    case TypeKind::kTimestamp:
    case TypeKind::kTime:
      return f == TypeKind::kBigint;
    case TypeKind::kDate:
      return f == TypeKind::kInt;
    case TypeKind::kUuid:
      return f == TypeKind::kTimeuuid;
    case TypeKind::kVarint:
      return f == TypeKind::kBigint || f == TypeKind::kInt || f == TypeKind::kTimestamp;
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
      if (to.is_multi_cell()) return is_order_compatible(to, from);
      if (t != f || from.is_multi_cell()) return false;
      if (t == TypeKind::kList) return is_value_compatible(*to.element(), *from.element());
      if (t == TypeKind::kSet) return is_order_compatible(*to.element(), *from.element());
      return is_order_compatible(*to.key(), *from.key()) &&
             is_value_compatible(*to.value(), *from.value());
    case TypeKind::kTuple:
      return from.is_tuple_like() && prefix_compatible(to, from, is_value_compatible);
    case TypeKind::kUdt:
      return f == TypeKind::kUdt && to.is_multi_cell() == from.is_multi_cell() &&
             prefix_compatible(to, from, is_value_compatible);
    default:
      return false;
  }
}

// Cassandra's testAssignment: exact for equal types, weak for those whose bytes can be read.
Assignability test_assignment(const DataType& to, const DataType& from) {
  // Frozen or not makes no difference to a value that is frozen.
  TypePtr frozen_to;
  const DataType* target = &to;
  if (from.is_frozen() && to.is_multi_cell() && !from.is_native()) {
    std::vector<TypePtr> parts(to.components().begin(), to.components().end());
    if (to.kind() == TypeKind::kUdt) {
      frozen_to = make_udt(to.keyspace(), to.name(),
                           {to.field_names().begin(), to.field_names().end()}, parts, true);
    } else {
      frozen_to = make_collection(to.kind(), std::move(parts), true);
    }
    target = frozen_to.get();
  }
  if (*target == from) return Assignability::kExact;
  return is_value_compatible(*target, from) ? Assignability::kWeak : Assignability::kNotAssignable;
}

}  // namespace tetrad::cql
