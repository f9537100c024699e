// SPDX-License-Identifier: Apache-2.0
// Values of table options as text. The statement writes them as strings or numbers; from the parser
// on all are text, and each check reads its own.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tetrad::cql {

/// A map of WITH, such as compaction: names and values as they were written.
using OptionMap = std::map<std::string, std::string>;

/// The number that the whole text is, with an optional plus as Java reads it; unset: it is none, or
/// too large for the type. No white space is skipped.
template <class Number>
std::optional<Number> whole(std::string_view text) {
  Number value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// At least one digit and nothing else.
inline bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// ASCII letters only.
inline std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// The value of the option; unset: the statement does not name it.
// A copy: callers change the map while they use the value.
inline std::optional<std::string> value_of(const OptionMap& options, const std::string& name) {
  const auto found = options.find(name);
  if (found == options.end()) return std::nullopt;
  return found->second;
}

}  // namespace tetrad::cql
