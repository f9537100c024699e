// SPDX-License-Identifier: Apache-2.0
// Cells have the width of their bytes: names outside ASCII are padded too little.
#include "tools/tetractl/text_table.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

namespace tetrad::tools {

using nlohmann::json;

// Recursive for arrays only; objects are printed as JSON.
std::string cell_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::string out;
    for (const auto& item : value) out += (out.empty() ? "" : ",") + cell_text(item);
    return out;
  }
  return value.dump();
}

std::string size_text(uint64_t bytes) {
  // As Cassandra's FileUtils.stringifyFileSize.
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.2f} {}", value, units[unit]);
}

std::string load_text(const json& bytes) {
  return bytes.is_null() ? "?" : size_text(bytes.get<uint64_t>());
}

// UTC with milliseconds, as Java's Instant prints itself.
std::string time_text(int64_t time_ms) {
  const std::time_t seconds = time_ms / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, time_ms % 1000);
}

void print_lines(const Lines& lines) {
  std::vector<size_t> widths;
  for (const auto& line : lines) {
    // Lines may have different numbers of cells.
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i)
      text += i + 1 == line.size() ? line[i] : fmt::format("{:<{}}  ", line[i], widths[i]);
    fmt::print("{}\n", text);
  }
}

// `columns` are keys and headings in one: they are names of Tetrad's own.
void print_rows(const json& rows, const std::vector<std::string>& columns) {
  Lines lines = {columns};
  for (const auto& row : rows) {
    std::vector<std::string> line;
    for (const auto& column : columns) {
      const json& value = row.at(column);
      const bool is_size = column.find("bytes") != std::string::npos && value.is_number();
      line.push_back(is_size ? size_text(value.get<uint64_t>()) : cell_text(value));
    }
    lines.push_back(std::move(line));
  }
  print_lines(lines);
}

// Two levels: settings and the like.
void print_object(const json& object) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_object()) {
      for (const auto& [inner, inner_value] : value.items())
        fmt::print("{}.{}: {}\n", name, inner, cell_text(inner_value));
    } else {
      fmt::print("{}: {}\n", name, cell_text(value));
    }
  }
}

}  // namespace tetrad::tools
