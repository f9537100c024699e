// SPDX-License-Identifier: Apache-2.0
// Values of table options as text.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tetrad::cql {

using OptionMap = std::map<std::string, std::string>;

template <class Number>
std::optional<Number> whole(std::string_view text) {
  Number value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

inline bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

inline std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// A value of an option that is there.
inline std::optional<std::string> value_of(const OptionMap& options, const std::string& name) {
  const auto found = options.find(name);
  if (found == options.end()) return std::nullopt;
  return found->second;
}

}  // namespace tetrad::cql
