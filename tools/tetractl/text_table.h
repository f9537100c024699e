// SPDX-License-Identifier: Apache-2.0
// What the admin port tells, as lines for people.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tetrad::tools {

/// Sizes as nodetool writes them: "757.41 KiB".
/// Powers of 1024, two decimals; below 1 KiB whole bytes.
std::string size_text(uint64_t bytes);
/// Of a node's load; "?" for null, which is not known.
std::string load_text(const nlohmann::json& bytes);
/// An array with commas between, anything else as JSON has it, strings without quotes.
/// What --json shows is not made by this: that is the answer itself.
std::string cell_text(const nlohmann::json& value);
/// Seconds since the epoch as nodetool writes a time: 2026-11-23T13:02:20.823Z.
std::string time_text(int64_t time_ms);

/// Lines of cells under one another, two blanks between; the first line is the heading.
using Lines = std::vector<std::vector<std::string>>;
// All of these print to standard output. The last cell of a line is not padded.
void print_lines(const Lines& lines);

/// Prints objects of one shape as a table; `columns` are their keys.
/// A number in a column with "bytes" in its name is printed as size_text() has it.
void print_rows(const nlohmann::json& rows, const std::vector<std::string>& columns);
/// A line for each of its entries, and of the objects in it.
void print_object(const nlohmann::json& object);

}  // namespace tetrad::tools
