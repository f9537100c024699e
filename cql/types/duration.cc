// SPDX-License-Identifier: Apache-2.0
// Texts of durations.
// Durations are months, days and nanoseconds apart, since none is a fixed number of another. Three
// notations: units (1y2mo3d), ISO 8601 (P1Y2M3D), and its alternative form (P0001-02-03T04:05:06).
// Texts of errors are those of Cassandra's Duration.
#include <array>
#include <charconv>
#include <limits>

#include "cql/types/temporal.h"

namespace tetrad::cql {

namespace {

struct Unit {
  std::string_view symbol;  // lower case
  std::string_view name;
  int64_t months, days, nanos;  // one of them: how much one unit is
};

// In the order in which a duration must name them.
constexpr std::array kUnits = {
    Unit{"y", "years", 12, 0, 0},
    Unit{"mo", "months", 1, 0, 0},
    Unit{"w", "weeks", 0, 7, 0},
    Unit{"d", "days", 0, 1, 0},
    Unit{"h", "hours", 0, 0, 3600000000000},
    Unit{"m", "minutes", 0, 0, 60000000000},
    Unit{"s", "seconds", 0, 0, 1000000000},
    Unit{"ms", "milliseconds", 0, 0, 1000000},
    Unit{"us", "microseconds", 0, 0, 1000},
    Unit{"ns", "nanoseconds", 0, 0, 1},
};

/// Adds units in their order, within the limits of a duration.
class Builder {
 public:
  Result<void> add(size_t unit_index, uint64_t count) {
    const Unit& unit = kUnits[unit_index];
    // Units must come from large to small, each once.
    const int index = static_cast<int>(unit_index);
    if (index == last_) {
      return fail(ErrorCode::kInvalid, "Invalid duration. The {} are specified multiple times",
                  unit.name);
    }
    if (index < last_) {
      return fail(ErrorCode::kInvalid, "Invalid duration. The {} should be after {}",
                  kUnits[static_cast<size_t>(last_)].name, unit.name);
    }
    last_ = index;
    constexpr auto kInt = std::numeric_limits<int32_t>::max();
    if (unit.months > 0) return add(months_, count, unit.months, kInt, "months");
    if (unit.days > 0) return add(days_, count, unit.days, kInt, "days");
    return add(nanos_, count, unit.nanos, std::numeric_limits<int64_t>::max(), "nanoseconds");
  }
  Duration finish(bool negative) const {
    const int64_t sign = negative ? -1 : 1;
    return {static_cast<int32_t>(sign * months_), static_cast<int32_t>(sign * days_),
            sign * nanos_};
  }

 private:
  static Result<void> add(int64_t& total, uint64_t count, int64_t each, int64_t limit,
                          std::string_view name) {
    // Checked by division, so that nothing overflows.
    if (count > static_cast<uint64_t>((limit - total) / each)) {
      // Cassandra names the limit of the other two for nanoseconds as well.
      return fail(ErrorCode::kInvalid,
                  "Invalid duration. The total number of {} must be less or equal to {}", name,
                  std::numeric_limits<int32_t>::max());
    }
    total += static_cast<int64_t>(count) * each;
    return {};
  }
  // The unit that was added last, by its place in kUnits; units only go on from there.
  int last_ = -1;
  int64_t months_ = 0, days_ = 0, nanos_ = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Digits off the front; nullopt when there are none or too many.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t value = 0;
  if (text.empty() || !is_digit(text[0])) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::unexpected<Error> refuse(std::string_view text) {
  return fail(ErrorCode::kInvalid, "Unable to convert '{}' to a duration", text);
}

/// The unit that the front of the text names; kUnits.size() when none does.
size_t take_symbol(std::string_view& text) {
  constexpr size_t kMicroseconds = 8;
  const auto starts_with = [&](std::string_view symbol) {
    if (text.size() < symbol.size()) return false;
    for (size_t i = 0; i < symbol.size(); ++i) {
      const char c = text[i];
      if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != symbol[i]) return false;
    }
    text.remove_prefix(symbol.size());
    return true;
  };
  for (size_t i = 0; i < kUnits.size(); ++i) {
    // "m" is tried after everything that begins with it.
    if (kUnits[i].symbol != "m" && starts_with(kUnits[i].symbol)) return i;
  }
  if (starts_with("\xc2\xb5s")) return kMicroseconds;  // the micro sign
  return starts_with("m") ? size_t{5} : kUnits.size();
}

Result<Duration> parse_units(std::string_view text, bool negative) {
  Builder builder;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto count = take_number(rest);
    const size_t unit = take_symbol(rest);
    if (!count || unit == kUnits.size()) return refuse(text);
    TETRAD_TRY_VOID(builder.add(unit, *count));
  }
  return builder.finish(negative);
}

/// "P0001-02-03T04:05:06"
Result<Duration> parse_alternative(std::string_view text, bool negative) {
  static constexpr struct {
    size_t at, size, unit;
  } parts[] = {{1, 4, 0}, {6, 2, 1}, {9, 2, 3}, {12, 2, 4}, {15, 2, 5}, {18, 2, 6}};
  constexpr std::string_view form = "P....-..-..T..:..:..";
  if (text.size() != form.size()) return refuse(text);
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '.' ? !is_digit(text[i]) : text[i] != form[i]) return refuse(text);
  }
  Builder builder;
  for (const auto& part : parts) {
    std::string_view digits = text.substr(part.at, part.size);
    TETRAD_TRY_VOID(builder.add(part.unit, *take_number(digits)));
  }
  return builder.finish(negative);
}

/// "P1Y2M3DT4H5M6S" and "P4W"
Result<Duration> parse_iso(std::string_view text, bool negative) {
  // Each letter at most once and in this order; M is months before the T and minutes behind it.
  static constexpr std::string_view date_letters = "YMWD", time_letters = "HMS";
  Builder builder;
  std::string_view rest = text.substr(1);
  bool in_time = false, weeks = false, others = false;
  size_t next_letter = 0;
  while (!rest.empty()) {
    if (rest[0] == 'T' && !in_time) {
      rest.remove_prefix(1);
      in_time = true;
      next_letter = 0;
      others = true;
      continue;
    }
    const auto count = take_number(rest);
    if (!count || rest.empty()) return refuse(text);
    const std::string_view letters = in_time ? time_letters : date_letters;
    const size_t letter = letters.find(rest[0], next_letter);
    if (letter == std::string_view::npos) return refuse(text);
    rest.remove_prefix(1);
    next_letter = letter + 1;
    const size_t unit = in_time ? letter + 4 : letter;
    (unit == 2 ? weeks : others) = true;
    TETRAD_TRY_VOID(builder.add(unit, *count));
  }
  // P4W stands alone.
  if (weeks && others) return refuse(text);
  return builder.finish(negative);
}

}  // namespace

// The sign holds for all parts; what begins with P is one of the two ISO forms, and a '-' inside
// tells which.
Result<Duration> parse_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (!text.starts_with('P')) {
    if (text.empty()) return refuse(text);
    return parse_units(text, negative);
  }
  if (text.find('-') != std::string_view::npos) return parse_alternative(text, negative);
  return parse_iso(text, negative);
}

std::string format_duration(const Duration& value) {
  std::string out;
  if (value.months < 0 || value.days < 0 || value.nanos < 0) out += '-';
  const auto magnitude = [](int64_t v) {
    // The smallest int64 has no positive counterpart in int64.
    return v < 0 ? ~static_cast<uint64_t>(v) + 1 : static_cast<uint64_t>(v);
  };
  const auto put = [&out](uint64_t& left, uint64_t each, std::string_view symbol) {
    if (left >= each) out += fmt::format("{}{}", left / each, symbol);
    left %= each;
  };
  // Weeks are not printed: days are, as in Cassandra.
  uint64_t months = magnitude(value.months), days = magnitude(value.days);
  uint64_t nanos = magnitude(value.nanos);
  put(months, 12, "y");
  put(months, 1, "mo");
  put(days, 1, "d");
  for (size_t i = 4; i < kUnits.size(); ++i)
    put(nanos, static_cast<uint64_t>(kUnits[i].nanos), kUnits[i].symbol);
  return out;
}

}  // namespace tetrad::cql
