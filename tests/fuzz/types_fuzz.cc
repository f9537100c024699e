// SPDX-License-Identifier: Apache-2.0
// A type's text, a zero byte, then bytes. The text parses or not, and reads back when it does. The
// bytes are validated; a valid value is compared, written as JSON and CQL, and encoded in order and
// back; the bytes as they are are decoded from the ordered encoding, from JSON and from text.
#include "base/assert.h"
#include "cql/types/compare.h"
#include "cql/types/json.h"
#include "cql/types/literal.h"
#include "cql/types/number.h"
#include "cql/types/ordered_encoding.h"
#include "tests/fuzz/seeds.h"

using namespace tetrad;
using namespace tetrad::cql;

namespace {

Result<TypePtr> one_user_type(std::string_view, std::string_view name) {
  if (name != "u") return TypePtr();
  return make_udt("ks", "u", {"a", "B"}, {int_type(), make_list(text_type(), true)}, false);
}

void check_type(const TypePtr& type) {
  const auto again = parse_type(type->cql_text(), one_user_type);
  TETRAD_ASSERT(again.has_value() && **again == *type);
  TETRAD_ASSERT(parse_class_name(type->class_name()).has_value());
  Bytes option;
  base::ByteWriter writer(option);
  write_type_option(writer, *type, 4);
}

void check_decoding(const DataType& type, BytesView bytes) {
  for (const bool descending : {false, true}) {
    BytesView in = bytes;
    const auto value = decode_ordered(in, type, descending);
    if (!value) continue;
    OptionalView view;
    if (*value) view = **value;
    Bytes encoded;
    TETRAD_ASSERT(append_ordered(encoded, type, view, descending).has_value());
    BytesView rest = encoded;
    const auto second = decode_ordered(rest, type, descending);
    TETRAD_ASSERT(second.has_value() && *second == *value && rest.empty());
  }
}

void check_value(const DataType& type, BytesView value) {
  TETRAD_ASSERT(compare(type, value, value) == 0);
  (void)to_cql_literal(type, value);
  (void)to_string(type, value);
  const std::string json = to_json(type, value);
  const auto back = from_json(type, json);
  Bytes encoded[2];
  for (const bool descending : {false, true}) {
    Bytes& out = encoded[descending];
    if (!append_ordered(out, type, value, descending)) {
      TETRAD_ASSERT(value.size() > kNumberBytesMax);  // only a long decimal may fail
      return;
    }
    TETRAD_ASSERT(out[0] != '\0' && out[0] != '\xff');
    BytesView in = out;
    const auto decoded = decode_ordered(in, type, descending);
    TETRAD_ASSERT(decoded.has_value() && decoded->has_value() && in.empty());
    TETRAD_ASSERT(compare(type, **decoded, value) == 0);
    TETRAD_ASSERT(is_lossy(type, value) == (**decoded != value));
  }
  // Two values of one type: whatever JSON gave back, or half of the bytes.
  const BytesView other = back && *back ? BytesView(**back) : value.substr(0, value.size() / 2);
  if (!validate(type, other)) return;
  const int order = compare(type, value, other);
  TETRAD_ASSERT(compare(type, other, value) == -order);
  Bytes second;
  if (!append_ordered(second, type, other, false)) return;
  const int by_bytes = encoded[0].compare(second);
  TETRAD_ASSERT((by_bytes > 0) - (by_bytes < 0) == order);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const BytesView input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const BytesView text = input.substr(0, zero);
  const BytesView bytes = zero == BytesView::npos ? BytesView() : input.substr(zero + 1);
  (void)parse_class_name(text);
  base::ByteReader reader(input);
  (void)read_type_option(reader);
  const auto type = parse_type(text, one_user_type);
  if (!type) return 0;
  check_type(*type);
  check_decoding(**type, bytes);
  (void)from_json(**type, bytes, 0);
  (void)from_string(**type, bytes, 0);
  (void)split_json_object(bytes);
  if (validate(**type, bytes)) check_value(**type, bytes);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const auto seed = [](std::string_view type, BytesView bytes) {
    return std::string(type) + '\0' + std::string(bytes);
  };
  std::vector<std::string> out;
  for (const char* const type : {"int",
                                 "text",
                                 "varint",
                                 "decimal",
                                 "timeuuid",
                                 "uuid",
                                 "duration",
                                 "float",
                                 "inet",
                                 "boolean",
                                 "timestamp",
                                 "date",
                                 "time",
                                 "frozen<list<int>>",
                                 "frozen<set<text>>",
                                 "frozen<map<text, decimal>>",
                                 "tuple<int, text>",
                                 "frozen<u>",
                                 "vector<float, 2>",
                                 "vector<text, 2>",
                                 "frozen<list<frozen<map<int, u>>>>"}) {
    out.push_back(seed(type, BytesView("\0\0\0\1\0\0\0\4\0\0\0\1", 12)));
    out.push_back(seed(type, BytesView("\x30\x80\0\0\1\x30\x61\0\1\0\0\1", 12)));
    out.push_back(seed(type, "{\"a\": [1, \"x\"], \"B\": null}"));
    out.push_back(seed(type, "\"2011-02-03 04:05:06.789+0100\""));
    out.push_back(seed(type, "P1Y2M3DT4H5M6S"));
    out.push_back(
        seed(type, BytesView("\0\0\0\2\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c", 16)));
  }
  return out;
}
