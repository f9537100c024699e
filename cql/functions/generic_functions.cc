// SPDX-License-Identifier: Apache-2.0
// Functions over any type, made for the types they are called with: JSON, collections, masks,
// vectors.
//
// How a call comes to be: at preparation find_generic() takes the function by name, and its Maker
// checks the types and returns a function for exactly these types; errors are those of preparation.
// The body in it runs once for each row and looks at values only. To add one, write a Maker and put
// it into kGenerics.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/byte_io.h"
#include "base/digest.h"
#include "cql/functions/aggregate.h"
#include "cql/functions/function_table.h"
#include "cql/types/compare.h"
#include "cql/types/empty_value.h"
#include "cql/types/json.h"

namespace tetrad::cql {

namespace {

using Types = std::span<const TypePtr>;
using Made = Result<ScalarFunctionPtr>;

/// Of what mask_default makes: that much is made for each row, and of few bytes.
constexpr uint64_t kMaskElementsMax = 1u << 13;
using Maker = Made (*)(std::string_view name, Types arguments, const TypePtr& receiver);

Made share(std::string_view name, ScalarFunction function) {
  function.name = name;
  return std::make_shared<const ScalarFunction>(std::move(function));
}

std::unexpected<Error> wrong_argument(std::string_view name, const TypePtr& type,
                                      std::string_view wanted) {
  return fail(ErrorCode::kInvalid,
              "Function system.{} requires a {} argument, but found argument of type {}", name,
              wanted, type->cql_text());
}

// --- JSON ---

Made make_to_json(std::string_view, Types arguments, const TypePtr&) {
  const TypePtr type = arguments[0];
  ScalarFunction function = pure_function(
      {type}, text_type(),
      [type](const FunctionEnvironment&, FunctionArguments values) -> Result<OptionalBytes> {
        // A tuple or user type without bytes has its fields, all null; SELECT JSON shows them, too.
        const bool is_null = !type->is_tuple_like() && counts_as_null(*type, values[0]);
        return to_json(*type, is_null ? std::nullopt : values[0]);
      });
  function.called_on_null = true;
  return share("to_json", std::move(function));
}

/// As much as an error shows of a text, in whole characters.
BytesView beginning_of(BytesView text) {
  constexpr size_t kShownBytes = 1000;
  size_t size = std::min(text.size(), kShownBytes);
  while (size > 0 && size < text.size() && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80)
    --size;
  return text.substr(0, size);
}

Made make_from_json(std::string_view, Types, const TypePtr& receiver) {
  if (!receiver) {
    return fail(ErrorCode::kInvalid,
                "from_json() cannot be used in the selection clause of a SELECT statement");
  }
  // The type of where the value goes: a column, an argument.
  const TypePtr type = receiver;
  return share("from_json",
               pure_function({text_type()}, type,
                             [type](const FunctionEnvironment& environment,
                                    FunctionArguments values) -> Result<OptionalBytes> {
                               const auto parsed = parse_json(*values[0]);
                               if (!parsed)
                                 return fail(ErrorCode::kFunctionFailure,
                                             "execution of 'system.from_json[text]' failed: Could "
                                             "not decode JSON string '{}': {}",
                                             beginning_of(*values[0]), parsed.error().message);
                               auto value = from_json(*type, *parsed, environment.now_ms);
                               if (!value)
                                 return fail(ErrorCode::kFunctionFailure, "{}",
                                             value.error().message);
                               return value;
                             }));
}

// --- collections ---

Made make_map_keys(std::string_view name, Types arguments, const TypePtr&) {
  const TypePtr type = arguments[0];
  if (type->kind() != TypeKind::kMap) return wrong_argument(name, type, "map");
  const bool keys = name == "map_keys";
  // Keys of a map are ordered and unique already: they are a set as they stand.
  TypePtr result = keys ? make_set(type->key(), true) : make_list(type->value(), true);
  return share(name, pure_function({type}, std::move(result),
                                   [keys](const FunctionEnvironment&,
                                          FunctionArguments values) -> Result<OptionalBytes> {
                                     TETRAD_TRY(const auto entries, split_map(*values[0]));
                                     std::vector<BytesView> parts;
                                     for (const auto& [k, v] : entries)
                                       parts.push_back(keys ? k : v);
                                     return join_list(parts);
                                   }));
}

Made make_collection_count(std::string_view name, Types arguments, const TypePtr&) {
  const TypePtr type = arguments[0];
  if (!type->is_collection()) return wrong_argument(name, type, "collection");
  return share(name, pure_function({type}, int_type(),
                                   [type](const FunctionEnvironment&,
                                          FunctionArguments values) -> Result<OptionalBytes> {
                                     TETRAD_TRY(const CollectionReader reader,
                                                CollectionReader::open(*type, *values[0]));
                                     return make_int(static_cast<int32_t>(reader.size()));
                                   }));
}

Made make_collection_aggregate(std::string_view name, Types arguments, const TypePtr&) {
  const TypePtr type = arguments[0];
  const bool numeric = name.ends_with("sum") || name.ends_with("avg");
  if ((type->kind() != TypeKind::kList && type->kind() != TypeKind::kSet) ||
      (numeric && !is_number(*type->element()))) {
    return wrong_argument(name, type, numeric ? "numeric set/list" : "set or list");
  }
  // collection_sum is the aggregate sum over the elements, and so on: types and overflow are the
  // same.
  const AggregateFunctionPtr aggregate =
      find_aggregate(name.substr(std::string_view("collection_").size()), type->element());
  if (!aggregate) return wrong_argument(name, type, "set or list");
  return share(name, pure_function({type}, aggregate->return_type,
                                   [aggregate](const FunctionEnvironment& environment,
                                               FunctionArguments values) -> Result<OptionalBytes> {
                                     TETRAD_TRY(CollectionReader elements,
                                                CollectionReader::open(*values[0], 1));
                                     const auto state = aggregate->make(environment);
                                     while (!elements.at_end()) {  // of ttl(list) some may be null
                                       TETRAD_TRY(const OptionalView element, elements.next());
                                       TETRAD_TRY_VOID(state->add(std::array{element}));
                                     }
                                     return state->finish();
                                   }));
}

// --- masks ---

Made make_mask_null(std::string_view name, Types arguments, const TypePtr&) {
  return share(
      name, pure_function({arguments[0]}, arguments[0],
                          [](const FunctionEnvironment&,
                             FunctionArguments) -> Result<OptionalBytes> { return std::nullopt; }));
}

/// What mask_default shows instead of any value of the type.
Bytes default_mask(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kText:
    case TypeKind::kAscii:
      return "****";
    case TypeKind::kBoolean:
      return make_boolean(false);
    case TypeKind::kFloat:
      return make_float(0);
    case TypeKind::kDouble:
      return make_double(0);
    case TypeKind::kVarint:
      return make_varint(0);
    case TypeKind::kDecimal:
      return Bytes("\0\0\0\0\0", 5);
    case TypeKind::kDate:
      return make_date_of_days(0);
    case TypeKind::kTime:
    case TypeKind::kTimestamp:
      return make_bigint(0);
    case TypeKind::kUuid:
      return Bytes(16, '\0');
    case TypeKind::kTimeuuid:
      return make_uuid(base::make_time_uuid(base::uuid_ticks_of_unix_us(0), 0, 0));
    case TypeKind::kInet:
      return Bytes(4, '\0');
    case TypeKind::kDuration:
      return make_duration({});
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
      return make_int(0);
    case TypeKind::kTuple:
    case TypeKind::kUdt: {
      std::vector<Bytes> fields;
      for (const TypePtr& field : type.components()) fields.push_back(default_mask(*field));
      const std::vector<OptionalView> views(fields.begin(), fields.end());
      return join_tuple(views);
    }
    case TypeKind::kVector: {
      const Bytes element = default_mask(*type.element());
      const std::vector<BytesView> views(type.dimension(), element);
      return join_vector(type, views);
    }
    case TypeKind::kBlob:
      return {};
    default:
      return is_integer(type) ? make_integer(type, 0) : Bytes();
  }
}

/// Fields and elements of vectors in it, each as often as it stands; past the limit it counts no
/// further.
uint64_t mask_elements(const DataType& type) {
  uint64_t count = 0;
  if (type.is_tuple_like() || type.kind() == TypeKind::kVector) {
    for (const TypePtr& part : type.components()) {
      count = std::min(count + mask_elements(*part), kMaskElementsMax + 1);
      if (count > kMaskElementsMax) break;
    }
  }
  count = std::max<uint64_t>(count, 1);
  if (type.kind() == TypeKind::kVector)
    count = std::min(count * type.dimension(), kMaskElementsMax + 1);
  return count;
}

Made make_mask_default(std::string_view name, Types arguments, const TypePtr&) {
  if (mask_elements(*arguments[0]) > kMaskElementsMax)
    return fail(ErrorCode::kInvalid, "{} makes no value of {}: more than {} elements", name,
                arguments[0]->cql_text(), kMaskElementsMax);
  ScalarFunction function = pure_function(
      {arguments[0]}, arguments[0],
      [type = arguments[0]](const FunctionEnvironment&,
                            FunctionArguments) -> Result<OptionalBytes> {
        return default_mask(*type);  // not kept: a statement may have thousands of calls
      });
  function.called_on_null = true;
  return share(name, std::move(function));
}

Made make_mask_replace(std::string_view name, Types arguments, const TypePtr&) {
  ScalarFunction function = pure_function(
      {arguments[0], arguments[0]}, arguments[0],
      [](const FunctionEnvironment&, FunctionArguments values) -> Result<OptionalBytes> {
        return values[1] ? OptionalBytes(*values[1]) : std::nullopt;
      });
  function.called_on_null = true;
  return share(name, std::move(function));
}

Made make_mask_hash(std::string_view name, Types arguments, const TypePtr&) {
  std::vector<TypePtr> types = {arguments[0]};
  if (arguments.size() == 2) types.push_back(text_type());
  ScalarFunction function = pure_function(
      std::move(types), blob_type(),
      [](const FunctionEnvironment&, FunctionArguments values) -> Result<OptionalBytes> {
        const BytesView algorithm = values.size() == 2 && values[1] ? *values[1] : "SHA-256";
        // Before the test for null: an unknown algorithm is an error for every row.
        auto digest = base::digest_named(algorithm, values[0].value_or(BytesView()));
        if (!digest) {
          return fail(ErrorCode::kInvalid, "Hash algorithm not found: {}", algorithm);
        }
        return values[0] ? digest : std::nullopt;
      });
  function.called_on_null = true;
  return share(name, std::move(function));
}

// --- vectors ---

/// A sum of floats in the order of Cassandra's: eight at a time, those beyond the last eight first
/// or last.
// Sums of floats depend on the order; another one would give other last digits than Cassandra.
template <typename Term>
float sum_in_eights(size_t n, bool rest_first, Term term) {
  const size_t rest = n % 8;
  float sum = 0;
  const auto add_rest = [&](size_t from) {
    for (size_t i = 0; i < rest; ++i) sum += term(from + i);
  };
  if (rest_first) add_rest(0);
  for (size_t first = rest_first ? rest : 0; first + 8 <= n; first += 8) {
    float eight = term(first);
    for (size_t i = 1; i < 8; ++i) eight += term(first + i);
    sum += eight;
  }
  if (!rest_first) add_rest(n - rest);
  return sum;
}

Made make_similarity(std::string_view name, Types arguments, const TypePtr&) {
  TypePtr type;
  for (const TypePtr& argument : arguments) {
    if (argument && argument->kind() == TypeKind::kVector) type = argument;
  }
  if (!type || type->element()->kind() != TypeKind::kFloat) {
    return fail(ErrorCode::kInvalid, "Function system.{} requires a float vector argument", name);
  }
  const std::string what(name);
  return share(
      name,
      pure_function(
          {type, type}, float_type(),
          [what](const FunctionEnvironment&, FunctionArguments values) -> Result<OptionalBytes> {
            const BytesView a = *values[0], b = *values[1];
            if (a.size() != b.size()) {
              return fail(ErrorCode::kInvalid, "Both vectors must be of the same length");
            }
            const size_t n = a.size() / 4;
            const auto at = [](BytesView vector, size_t i) {
              return *read_float(vector.substr(4 * i, 4));
            };
            if (what == "similarity_euclidean") {
              const float distance = sum_in_eights(n, false, [&](size_t i) {
                const float difference = at(a, i) - at(b, i);
                return difference * difference;
              });
              return make_float(1 / (1 + distance));
            }
            if (what == "similarity_dot_product") {
              const float dot =
                  sum_in_eights(n, true, [&](size_t i) { return at(a, i) * at(b, i); });
              return make_float((1 + dot) / 2);
            }
            // The result is of the sums in floats, as in Cassandra. The sums in doubles tell a zero
            // vector, and a result that floats cannot hold.
            float dot = 0, aa = 0, bb = 0;
            double exact_dot = 0, exact_aa = 0, exact_bb = 0;
            for (size_t i = 0; i < n; ++i) {
              const float x = at(a, i), y = at(b, i);
              dot += x * y;
              aa += x * x;
              bb += y * y;
              exact_dot += static_cast<double>(x) * y;
              exact_aa += static_cast<double>(x) * x;
              exact_bb += static_cast<double>(y) * y;
            }
            if (exact_aa == 0 || exact_bb == 0) {
              return fail(ErrorCode::kInvalid,
                          "Function system.{} doesn't support all-zero vectors.", what);
            }
            const double length = std::sqrt(static_cast<double>(aa) * static_cast<double>(bb));
            float cosine = static_cast<float>(dot / length);
            if (!std::isfinite(
                    cosine)) {  // too small or too large for floats, where Cassandra fails
              cosine = static_cast<float>(exact_dot / std::sqrt(exact_aa * exact_bb));
            }
            return make_float((1 + cosine) / 2);
          }));
}

struct Generic {
  std::string_view name;
  size_t least, most;
  Maker make;
  std::string_view parameters;  // as error texts name them
};

constexpr std::string_view kAny = "any", kNumbers = "numeric_set_or_list",
                           kVectors = "vector<float, n>, vector<float, n>";

constexpr std::array kGenerics = {
    Generic{"to_json", 1, 1, make_to_json, kAny},
    Generic{"tojson", 1, 1, make_to_json, kAny},
    Generic{"from_json", 1, 1, make_from_json, "text"},
    Generic{"fromjson", 1, 1, make_from_json, "text"},
    Generic{"map_keys", 1, 1, make_map_keys, "map"},
    Generic{"map_values", 1, 1, make_map_keys, "map"},
    Generic{"collection_count", 1, 1, make_collection_count, "collection"},
    Generic{"collection_min", 1, 1, make_collection_aggregate, kNumbers},
    Generic{"collection_max", 1, 1, make_collection_aggregate, kNumbers},
    Generic{"collection_sum", 1, 1, make_collection_aggregate, kNumbers},
    Generic{"collection_avg", 1, 1, make_collection_aggregate, kNumbers},
    Generic{"mask_null", 1, 1, make_mask_null, kAny},
    Generic{"mask_default", 1, 1, make_mask_default, kAny},
    Generic{"mask_replace", 2, 2, make_mask_replace, "any, any"},
    Generic{"mask_hash", 1, 2, make_mask_hash, "any, [text]"},
    Generic{"similarity_cosine", 2, 2, make_similarity, kVectors},
    Generic{"similarity_euclidean", 2, 2, make_similarity, kVectors},
    Generic{"similarity_dot_product", 2, 2, make_similarity, kVectors},
};

const Generic* find_generic(std::string_view name) {
  const auto found = std::ranges::find(kGenerics, name, &Generic::name);
  return found == kGenerics.end() ? nullptr : &*found;
}

/// Code points of UTF-8 text, each as its bytes.
std::vector<BytesView> characters_of(BytesView text) {
  std::vector<BytesView> characters;
  for (size_t i = 0; i < text.size();) {
    size_t size = 1;
    while (i + size < text.size() && (static_cast<uint8_t>(text[i + size]) & 0xC0) == 0x80) ++size;
    characters.push_back(text.substr(i, size));
    i += size;
  }
  return characters;
}

}  // namespace

bool is_generic_function(std::string_view name) { return find_generic(name) != nullptr; }

std::pair<size_t, size_t> generic_function_arity(std::string_view name) {
  const Generic* generic = find_generic(name);
  return {generic->least, generic->most};
}

std::string_view generic_function_parameters(std::string_view name) {
  return find_generic(name)->parameters;
}

Result<ScalarFunctionPtr> make_generic_function(std::string_view name,
                                                std::span<const TypePtr> arguments,
                                                const TypePtr& receiver) {
  return find_generic(name)->make(name, arguments, receiver);
}

void add_mask_functions(FunctionTable& table) {
  for (const bool inner : {true, false}) {
    for (const TypePtr& type : {text_type(), ascii_type()}) {
      for (const bool with_padding : {false, true}) {
        std::vector<TypePtr> arguments = {type, int_type(), int_type()};
        if (with_padding) arguments.push_back(text_type());
        ScalarFunction function = pure_function(
            std::move(arguments), type,
            [inner](const FunctionEnvironment&, FunctionArguments values) -> Result<OptionalBytes> {
              if (!values[0]) return std::nullopt;
              const auto characters = characters_of(*values[0]);
              const BytesView padding =
                  values.size() == 4 && values[3] ? *values[3] : BytesView("*");
              // Also where nothing would be masked.
              if (characters_of(padding).size() != 1) {
                return fail(ErrorCode::kInvalid,
                            "The padding argument for function system.mask_{} should be "
                            "single-character, but '{}' has {} characters.",
                            inner ? "inner" : "outer", padding, characters_of(padding).size());
              }
              const auto edge = [&](size_t i) {
                const int64_t n = values[i] ? read_int(*values[i]).value_or(0) : 0;
                return static_cast<size_t>(std::max<int64_t>(n, 0));
              };
              const size_t begin = edge(1), end = edge(2);
              Bytes masked;
              for (size_t i = 0; i < characters.size(); ++i) {
                const bool is_inner = i >= begin && i + end < characters.size();
                masked += is_inner == inner ? padding : characters[i];
              }
              return masked;
            });
        function.called_on_null = true;
        table.add({inner ? "mask_inner" : "mask_outer"}, function);
      }
    }
  }
}

}  // namespace tetrad::cql
