// SPDX-License-Identifier: Apache-2.0
#include "cql/types/type_size.h"

#include <algorithm>
#include <unordered_map>

namespace tetrad::cql {
namespace {

// Of a type with all that it holds.
struct Size {
  uint64_t parts = 1, name_bytes = 0;
};

/// Stops counting where any bound is long passed, so that no sum overflows.
constexpr uint64_t kCountedMax = 1u << 30;

Size size_of(const DataType& type, std::unordered_map<const DataType*, Size>& known) {
  if (type.components().empty()) return {1, type.name().size()};
  // By identity: a user type that is held many times is counted many times and walked once.
  if (const auto found = known.find(&type); found != known.end()) return found->second;
  Size size{1, type.keyspace().size() + type.name().size()};
  for (const std::string& field : type.field_names()) size.name_bytes += field.size();
  for (const TypePtr& part : type.components()) {
    const Size of_part = size_of(*part, known);
    size.parts = std::min(size.parts + of_part.parts, kCountedMax);
    size.name_bytes = std::min(size.name_bytes + of_part.name_bytes, kCountedMax);
  }
  known.emplace(&type, size);
  return size;
}

}  // namespace

// What its description takes in an answer, about: four bytes for each part and all names.
uint64_t spelled_bytes(const DataType& type) {
  std::unordered_map<const DataType*, Size> known;
  const Size size = size_of(type, known);
  return 4 * size.parts + size.name_bytes;
}

Result<void> check_type_size(const DataType& type) {
  if (type.depth() > kTypeDepthMax)
    return fail(ErrorCode::kInvalid, "types may nest {} deep at most", kTypeDepthMax);
  std::unordered_map<const DataType*, Size> known;
  const Size size = size_of(type, known);
  if (size.parts > kTypePartsMax) {
    return fail(ErrorCode::kInvalid,
                "types may have {} parts at most, those of the user types they hold counted",
                kTypePartsMax);
  }
  if (size.name_bytes > kTypeNameBytesMax) {
    return fail(ErrorCode::kInvalid,
                "types may have {} bytes of names at most, those of the user types they hold "
                "counted",
                kTypeNameBytesMax);
  }
  return {};
}

Result<TypePtr> make_checked_vector(TypePtr element, int64_t dimension) {
  if (dimension <= 0) {
    return fail(ErrorCode::kInvalid, "vectors may only have positive dimensions; given {}",
                dimension);
  }
  // An element takes a byte at least, so that nothing walks longer than a value has bytes.
  const size_t each = element->fixed_length().value_or(1);
  if (each == 0) {
    return fail(ErrorCode::kInvalid, "vectors of {} are not supported: its values have no bytes",
                element->cql_text());
  }
  if (static_cast<size_t>(dimension) > kFixedLengthMax / each) {
    return fail(ErrorCode::kInvalid, "vectors of {} may have {} dimensions at most; given {}",
                element->cql_text(), kFixedLengthMax / each, dimension);
  }
  return make_vector(std::move(element), static_cast<uint32_t>(dimension));
}

}  // namespace tetrad::cql
