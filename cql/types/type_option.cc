// SPDX-License-Identifier: Apache-2.0
// The [option] of a type in result and bind metadata, native protocol v5 §4.2.5.2.
//
//   option := u16 id [body]       0x00 custom: [string] class name     0x20 list, 0x22 set: option
//                                 0x21 map: option option              0x31 tuple: u16 n, option*
//                                 0x30 UDT: [string] keyspace, [string] name, u16 n,
//                                           ([string] option)*
// A type that the version of the client does not know goes as custom, by its class name: duration
// before v5, vectors in all versions.
#include <utility>

#include "cql/types/data_type.h"

namespace tetrad::cql {

namespace {

// A native type's id, and the first version that has it.
struct NativeOption {
  TypeKind kind;
  uint16_t id;
  int since;  // before this version it goes as a custom type
};

constexpr NativeOption kOptions[] = {
    {TypeKind::kAscii, 0x01, 3},     {TypeKind::kBigint, 0x02, 3},   {TypeKind::kBlob, 0x03, 3},
    {TypeKind::kBoolean, 0x04, 3},   {TypeKind::kCounter, 0x05, 3},  {TypeKind::kDecimal, 0x06, 3},
    {TypeKind::kDouble, 0x07, 3},    {TypeKind::kFloat, 0x08, 3},    {TypeKind::kInt, 0x09, 3},
    {TypeKind::kTimestamp, 0x0B, 3}, {TypeKind::kUuid, 0x0C, 3},     {TypeKind::kText, 0x0D, 3},
    {TypeKind::kVarint, 0x0E, 3},    {TypeKind::kTimeuuid, 0x0F, 3}, {TypeKind::kInet, 0x10, 3},
    {TypeKind::kDate, 0x11, 4},      {TypeKind::kTime, 0x12, 4},     {TypeKind::kSmallint, 0x13, 4},
    {TypeKind::kTinyint, 0x14, 4},   {TypeKind::kDuration, 0x15, 5}};

constexpr uint16_t kCustom = 0x00, kListId = 0x20, kMapId = 0x21, kSetId = 0x22, kUdtId = 0x30,
                   kTupleId = 0x31;

// The length has 16 bits: what is longer is cut.
void write_string(base::ByteWriter& writer, std::string_view text) {
  const std::string_view fits = text.substr(0, 0xFFFF);
  writer.u16(static_cast<uint16_t>(fits.size()));
  writer.raw(fits);
}

void write_parts(base::ByteWriter& writer, const DataType& type, int version) {
  for (const TypePtr& part : type.components()) write_type_option(writer, *part, version);
}

}  // namespace

// Frozen or not is not sent: what a client gets is always one value.
void write_type_option(base::ByteWriter& writer, const DataType& type, int protocol_version) {
  switch (type.kind()) {
    case TypeKind::kList:
      writer.u16(kListId);
      return write_parts(writer, type, protocol_version);
    case TypeKind::kMap:
      writer.u16(kMapId);
      return write_parts(writer, type, protocol_version);
    case TypeKind::kSet:
      writer.u16(kSetId);
      return write_parts(writer, type, protocol_version);
    case TypeKind::kTuple:
      writer.u16(kTupleId);
      writer.u16(static_cast<uint16_t>(type.components().size()));
      return write_parts(writer, type, protocol_version);
    case TypeKind::kUdt:
      writer.u16(kUdtId);
      write_string(writer, type.keyspace());
      write_string(writer, type.name());
      writer.u16(static_cast<uint16_t>(type.components().size()));
      for (size_t i = 0; i < type.components().size(); ++i) {
        write_string(writer, type.field_names()[i]);
        write_type_option(writer, *type.components()[i], protocol_version);
      }
      return;
    default:
      break;
  }
  for (const NativeOption& option : kOptions) {
    if (option.kind == type.kind() && protocol_version >= option.since)
      return writer.u16(option.id);
  }
  writer.u16(kCustom);
  write_string(writer, type.class_name());
}

namespace {

Result<std::string_view> read_string(base::ByteReader& reader) {
  TETRAD_TRY(const uint16_t size, reader.read_u16());
  return reader.read_raw(size);
}

// Parts of collections are frozen, and so is what is made here: a value that was sent has no cells.
Result<TypePtr> read_option(base::ByteReader& reader, int depth) {
  if (depth > kTypeDepthMax)
    return fail(ErrorCode::kCorruption, "types may nest {} deep at most", kTypeDepthMax);
  TETRAD_TRY(const uint16_t id, reader.read_u16());
  for (const NativeOption& option : kOptions) {
    if (option.id == id) return native_type(option.kind);
  }
  switch (id) {
    case kCustom: {
      TETRAD_TRY(const std::string_view name, read_string(reader));
      return parse_class_name(name);
    }
    case kListId:
    case kSetId: {
      TETRAD_TRY(TypePtr element, read_option(reader, depth + 1));
      return id == kListId ? make_list(std::move(element), true)
                           : make_set(std::move(element), true);
    }
    case kMapId: {
      TETRAD_TRY(TypePtr key, read_option(reader, depth + 1));
      TETRAD_TRY(TypePtr value, read_option(reader, depth + 1));
      return make_map(std::move(key), std::move(value), true);
    }
    case kTupleId: {
      TETRAD_TRY(const uint16_t count, reader.read_u16());
      std::vector<TypePtr> fields;
      for (uint16_t i = 0; i < count; ++i) {
        TETRAD_TRY(TypePtr field, read_option(reader, depth + 1));
        fields.push_back(std::move(field));
      }
      return make_tuple(std::move(fields));
    }
    case kUdtId: {
      TETRAD_TRY(const std::string_view keyspace, read_string(reader));
      TETRAD_TRY(const std::string_view name, read_string(reader));
      TETRAD_TRY(const uint16_t count, reader.read_u16());
      std::vector<std::string> names;
      std::vector<TypePtr> fields;
      for (uint16_t i = 0; i < count; ++i) {
        TETRAD_TRY(const std::string_view field_name, read_string(reader));
        TETRAD_TRY(TypePtr field, read_option(reader, depth + 1));
        names.emplace_back(field_name);
        fields.push_back(std::move(field));
      }
      return make_udt(std::string(keyspace), std::string(name), std::move(names), std::move(fields),
                      true);
    }
    default:
      return fail(ErrorCode::kCorruption, "no type has the option id {:#x}", id);
  }
}

}  // namespace

Result<TypePtr> read_type_option(base::ByteReader& reader) { return read_option(reader, 1); }

}  // namespace tetrad::cql
