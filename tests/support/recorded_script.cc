// SPDX-License-Identifier: Apache-2.0
#include "tests/support/recorded_script.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/byte_io.h"
#include "cql/protocol/error_code.h"
#include "cql/types/json.h"
#include "cql/types/literal.h"

namespace tetrad::tests {

namespace {

using cql::DataType;
using cql::JsonValue;
using cql::OptionalBytes;
using cql::OptionalView;
using cql::TypeKind;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  TETRAD_ASSERT(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// As answers.py names and shows vectors.
constexpr std::string_view kVectorText = "org.apache.cassandra.db.marshal.VectorType";

/// A type as the Python driver names it.
std::string type_text(const DataType& type) {
  const auto parts = [&](const char* name) {
    std::string text = std::string(name) + "<";
    for (size_t i = 0; i < type.components().size(); ++i)
      text += (i == 0 ? "" : ", ") + type_text(*type.components()[i]);
    return text + ">";
  };
  switch (type.kind()) {
    case TypeKind::kText:
      return "varchar";
    case TypeKind::kList:
      return parts("list");
    case TypeKind::kSet:
      return parts("set");
    case TypeKind::kMap:
      return parts("map");
    case TypeKind::kTuple:
      return parts("tuple");
    case TypeKind::kVector:
      return std::string(kVectorText);
    case TypeKind::kUdt: {
      std::string text = type.name() + "{";
      for (size_t i = 0; i < type.components().size(); ++i) {
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", type.field_names()[i],
                            type_text(*type.components()[i]));
      }
      return text + "}";
    }
    default:
      return type.cql_text();
  }
}

std::string quoted(BytesView text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') out += '\\';
    out += c;
  }
  return out + "'";
}

/// As answers.py, for the types that its callers have; of others the CQL literal.
std::string value_text(const DataType& type, OptionalView value) {
  if (!value) return "null";
  const auto fields = [&](bool named) {
    const auto parts = cql::split_tuple(type, *value);
    TETRAD_ASSERT(parts.has_value());
    std::string text = named ? "{" : "(";
    for (size_t i = 0; i < parts->size(); ++i) {
      if (i != 0) text += ", ";
      if (named) text += type.field_names()[i] + ": ";
      text += value_text(*type.components()[i], (*parts)[i]);
    }
    return text + (named ? "}" : ")");
  };
  if (type.kind() == TypeKind::kText || type.kind() == TypeKind::kAscii) return quoted(*value);
  if (type.kind() == TypeKind::kUdt) return fields(true);
  if (type.kind() == TypeKind::kTuple) return fields(false);
  if (value->empty()) return "<empty>";
  if (type.kind() == TypeKind::kDecimal) {
    const int64_t unscaled = *cql::read_bigint(
        Bytes(12 - value->size(), (*value)[4] < 0 ? '\xff' : '\0') + Bytes(value->substr(4)));
    return fmt::format("{}e{}", unscaled, -base::load_big_endian<int32_t>(value->data()));
  }
  if (type.kind() ==
      TypeKind::kTimestamp) {  // of the first of January 1970, as the scripts have it
    const int64_t ms = *cql::read_bigint(*value);
    return fmt::format("1970-01-01 {:02}:{:02}:{:02}.{:03}", ms / 3'600'000, ms / 60'000 % 60,
                       ms / 1000 % 60, ms % 1000);
  }
  if (type.kind() == TypeKind::kVector)
    return fmt::format("<{} {}>", kVectorText, cql::to_cql_literal(*cql::blob_type(), value));
  if (!type.is_collection()) {
    std::string text = cql::to_cql_literal(type, value);
    if (text.starts_with('\'')) text = text.substr(1, text.size() - 2);
    const bool is_float = type.kind() == TypeKind::kFloat || type.kind() == TypeKind::kDouble;
    return is_float && text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0"
                                                                                  : text;
  }
  auto reader = cql::CollectionReader::open(type, *value);
  TETRAD_ASSERT(reader.has_value());
  std::string text;
  while (!reader->at_end()) {
    if (!text.empty()) text += ", ";
    text += value_text(*type.components()[0], *reader->next());
    if (type.kind() == TypeKind::kMap) text += ": " + value_text(*type.value(), *reader->next());
  }
  return type.kind() == TypeKind::kList ? "[" + text + "]" : "{" + text + "}";
}

void append_sized(Bytes& out, const OptionalBytes& value) {
  base::ByteWriter writer(out);
  writer.u32(value ? static_cast<uint32_t>(value->size()) : 0xffffffffu);
  if (value) out.append(*value);
}

/// A value of a script as the Python driver sends it.
OptionalBytes encoded(const DataType& type, const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kNull) return std::nullopt;
  if (value.kind == JsonValue::Kind::kArray) {
    Bytes out;
    if (!type.is_tuple_like()) {
      base::ByteWriter writer(out);
      writer.u32(static_cast<uint32_t>(value.items.size()));
    }
    for (size_t i = 0; i < value.items.size(); ++i) {
      const size_t part = type.is_tuple_like() ? i : 0;
      OptionalBytes item = encoded(*type.components()[part], value.items[i]);
      if (!item && !type.is_tuple_like()) item = Bytes();  // what the driver makes of null
      append_sized(out, item);
    }
    return out;
  }
  const auto made = cql::from_json(type, value);
  TETRAD_ASSERT(made.has_value());
  return *made;
}

ConsistencyLevel level_named(const std::string& name) {
  for (uint16_t i = 0; i < 11; ++i) {
    const auto level = static_cast<ConsistencyLevel>(i);
    if (base::name_of(level) == name) return level;
  }
  TETRAD_ASSERT(false);
  return {};
}

Bytes bytes_of_hex(const std::string& hex) {
  Bytes out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

std::string error_line(const Error& error) {
  return fmt::format("error 0x{:04x} {}", cql::wire_error_code(error.code), error.message);
}

}  // namespace

std::vector<ScriptStatement> read_script(const std::filesystem::path& path) {
  static const std::regex kDirective(R"(--\s*(page|prepare|wait|level|serial|frame)\b\s*(.*))");
  std::vector<ScriptStatement> statements;
  ScriptStatement next;
  bool in_batch = false;
  for (const std::string& line : lines_of(read_file(path))) {
    if (next.text.empty()) {
      std::smatch found;
      if (std::regex_match(line, found, kDirective)) {
        const std::string what = found[1], rest = found[2];
        if (what == "page") next.page = std::stoi(rest);
        if (what == "wait") next.wait_s = std::stod(rest);
        if (what == "level") next.level = rest;
        if (what == "serial") next.serial = rest;
        if (what == "frame") next.frame = true;
        if (what == "prepare") next.values = cql::parse_json("[" + rest + "]")->items;
        continue;
      }
      if (line.empty() || line.starts_with("--")) continue;
      in_batch = line.starts_with("BEGIN ");
    } else {
      next.text += "\n";
    }
    next.text += line;
    if (in_batch && line.find("APPLY") == std::string::npos) continue;
    if (!line.ends_with(";")) continue;
    next.text.pop_back();
    statements.push_back(std::move(next));
    next = {};
  }
  return statements;
}

std::vector<RecordedAnswer> read_recorded(const std::filesystem::path& path) {
  std::vector<RecordedAnswer> answers;
  bool in_text = false;
  for (const std::string& line : lines_of(read_file(path))) {
    if (line.starts_with("> ")) {
      if (!in_text) answers.emplace_back();
      answers.back().text += (in_text ? "\n" : "") + line.substr(2);
      in_text = true;
      continue;
    }
    in_text = false;
    if (!line.empty()) answers.back().lines.push_back(line);
  }
  return answers;
}

std::vector<std::regex> read_differences(const std::filesystem::path& path,
                                         const std::string& script) {
  std::vector<std::regex> patterns;
  for (const std::string& line : lines_of(read_file(path))) {
    if (line.starts_with(script + ": ")) patterns.emplace_back(line.substr(script.size() + 2));
  }
  return patterns;
}

std::vector<std::string> comparable(std::vector<std::string> lines) {
  static const std::regex kJson(R"((Could not decode JSON string as a map: ).*)");
  static const std::regex kTablets(R"(warning: ALLOW FILTERING read .*)");
  std::vector<std::string> out;
  for (std::string& line : lines) {
    if (line == "-- next page" || std::regex_match(line, kTablets)) continue;
    if (line.starts_with("error ")) line = std::regex_replace(line, kJson, "$1");
    if (line.starts_with("schema ")) line = "schema";
    out.push_back(std::move(line));
  }
  return out;
}

ScriptRunner::ScriptRunner(const std::string& script) {
  cluster_.cql("CREATE KEYSPACE conf_" + script +
               " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  cluster_.cql("USE conf_" + script);
  cluster_.reactor.advance_us(1'000'000);
}

std::vector<std::string> ScriptRunner::answer(const ScriptStatement& statement) {
  std::vector<std::string> lines;
  cluster_.reactor.advance_us(static_cast<int64_t>(statement.wait_s * 1e6) + 1'000);
  cluster_.options.consistency =
      statement.level.empty() ? ConsistencyLevel::kQuorum : level_named(statement.level);
  cluster_.options.serial_consistency =
      statement.serial.empty() ? ConsistencyLevel::kSerial : level_named(statement.serial);
  if (statement.frame) {
    run_frame(statement, lines);
    return lines;
  }
  const cql::StatementPtr prepared = prepare(statement.text, statement.values.has_value(), lines);
  if (prepared == nullptr) return lines;
  if (!statement.values) {
    run(prepared, {}, statement, lines);
    return lines;
  }
  for (const JsonValue& values : *statement.values)
    run(prepared, bound(*prepared, values), statement, lines);
  return lines;
}

cql::StatementPtr ScriptRunner::prepare(const std::string& text, bool tells,
                                        std::vector<std::string>& lines) {
  auto prepared = cluster_.try_prepare(text);
  if (!prepared) {
    lines.push_back(error_line(prepared.error()));
    return nullptr;
  }
  if (!tells) return *prepared;
  std::string markers, keys;
  for (const cql::ColumnSpec& marker : (*prepared)->bind_variables()) {
    if (!markers.empty()) markers += ", ";
    markers += marker.name + " " + type_text(*marker.type);
  }
  for (const uint16_t index : (*prepared)->partition_key_indexes())
    keys += (keys.empty() ? "" : ", ") + std::to_string(index);
  if (!keys.empty()) keys = " (partition key: " + keys + ")";
  lines.push_back("prepared: " + (markers.empty() ? "nothing" : markers) + keys);
  if ((*prepared)->result_metadata() != nullptr) {
    std::string columns;
    for (const cql::ColumnSpec& column : (*prepared)->result_metadata()->columns)
      columns += (columns.empty() ? "" : ", ") + column.name + " " + type_text(*column.type);
    lines.push_back("result: " + columns);
  }
  return *prepared;
}

std::vector<cql::BoundValue> ScriptRunner::bound(const cql::Statement& statement,
                                                 const JsonValue& values) {
  const auto& markers = statement.bind_variables();
  std::vector<cql::BoundValue> out;
  for (size_t i = 0; i < markers.size(); ++i) {
    const JsonValue* value = nullptr;
    if (values.kind == JsonValue::Kind::kArray) {
      if (i < values.items.size()) value = &values.items[i];
    } else {
      const auto at = std::ranges::find(values.names, markers[i].name);
      if (at != values.names.end())
        value = &values.items[static_cast<size_t>(at - values.names.begin())];
    }
    const bool is_marked = value != nullptr && value->kind == JsonValue::Kind::kObject;
    if (value == nullptr || (is_marked && value->names[0] == "unset")) {
      out.push_back(cql::BoundValue::unset());
    } else if (is_marked && value->names[0] == "raw") {
      out.push_back(cql::BoundValue::of(arena_.adopt(bytes_of_hex(value->items[0].text))));
    } else if (auto bytes = encoded(*markers[i].type, *value)) {
      out.push_back(cql::BoundValue::of(arena_.adopt(std::move(*bytes))));
    } else {
      out.push_back(cql::BoundValue::null());
    }
  }
  return out;
}

void ScriptRunner::run(const cql::StatementPtr& statement,
                       const std::vector<cql::BoundValue>& values, const ScriptStatement& asked,
                       std::vector<std::string>& lines) {
  cluster_.options.page_size = asked.page.value_or(-1);
  cluster_.options.paging_position.reset();
  for (bool first = true;; first = false) {
    const auto result = cluster_.execute(*statement, values);
    tell(result, first, lines);
    const auto* rows = result ? std::get_if<cql::RowsResult>(&*result) : nullptr;
    if (rows == nullptr || !rows->next_position) break;
    cluster_.options.paging_position = rows->next_position;
  }
  cluster_.options.paging_position.reset();
}

void ScriptRunner::run_frame(const ScriptStatement& asked, std::vector<std::string>& lines) {
  static const std::regex kBatch(R"(BEGIN (UNLOGGED |COUNTER )?BATCH (.*)APPLY BATCH)");
  std::smatch found;
  TETRAD_ASSERT(std::regex_match(asked.text, found, kBatch));
  const std::string kind = found[1];
  std::vector<cql::BatchEntry> entries;
  std::stringstream texts(found[2]);
  for (std::string text; std::getline(texts, text, ';');) {
    if (text.find_first_not_of(' ') == std::string::npos) continue;
    text = text.substr(text.find_first_not_of(' '));
    const cql::StatementPtr prepared = prepare(text, asked.values.has_value(), lines);
    if (prepared == nullptr) return;
    cql::BatchEntry entry;
    if (asked.values) entry.values = bound(*prepared, (*asked.values)[entries.size()]);
    entry.statement = prepared;
    entries.push_back(std::move(entry));
  }
  const cql::BatchType type = kind == "UNLOGGED "  ? cql::BatchType::kUnlogged
                              : kind == "COUNTER " ? cql::BatchType::kCounter
                                                   : cql::BatchType::kLogged;
  tell(cluster_.execute_batch(type, entries), true, lines);
}

void ScriptRunner::tell(const Result<cql::StatementResult>& result, bool first_page,
                        std::vector<std::string>& lines) {
  for (const std::string& warning : cluster_.warnings) lines.push_back("warning: " + warning);
  if (!result) {
    lines.push_back(error_line(result.error()));
    return;
  }
  if (const auto* rows = std::get_if<cql::RowsResult>(&*result)) {
    const auto& columns = rows->metadata->columns;
    std::string header;
    for (const cql::ColumnSpec& column : columns)
      header += (header.empty() ? "" : ", ") + column.name + " " + type_text(*column.type);
    lines.push_back(first_page ? "columns: " + header : "-- next page");
    base::ByteReader reader(rows->cells);
    for (uint32_t row = 0; row < rows->row_count; ++row) {
      std::string line;
      for (const cql::ColumnSpec& column : columns) {
        const int32_t size = *reader.read_i32();
        OptionalView value;
        if (size >= 0) value = *reader.read_raw(static_cast<size_t>(size));
        line += (line.empty() ? "| " : " | ") + value_text(*column.type, value);
      }
      lines.push_back(line);
    }
    return;
  }
  lines.push_back(std::holds_alternative<cql::SchemaChange>(*result) ? "schema" : "OK");
}

}  // namespace tetrad::tests
