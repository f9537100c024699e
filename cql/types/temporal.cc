// SPDX-License-Identifier: Apache-2.0
// Texts of timestamp, date and time. Timestamps are milliseconds since 1970 (UTC), dates days with
// 2^31 for 1970-01-01, times nanoseconds of the day. What is taken follows Cassandra: java.time's
// ISO forms, several offsets and zone names behind a timestamp, and plain integers for the value
// itself.
#include "cql/types/temporal.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace tetrad::cql {

namespace {

constexpr int64_t kMsPerSecond = 1000, kMsPerDay = 86400 * kMsPerSecond;
constexpr int64_t kNanosPerSecond = 1000000000, kNanosPerDay = 86400 * kNanosPerSecond;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "-?[0-9]+"
bool is_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// The whole text as a number, nullopt when it does not fit.
std::optional<int64_t> to_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(text.size() > 1 && is_digit(text[1]) ? 1 : 0);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes from the front of a text.
// Takes what fits and leaves the rest; nothing moves on a failure of number().
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  std::string_view rest() const { return rest_; }
  bool at_end() const { return rest_.empty(); }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// As many digits as there are, at least `min`, at most `max`.
  std::optional<int64_t> number(size_t min, size_t max) {
    size_t count = 0;
    while (count < rest_.size() && count < max && is_digit(rest_[count])) ++count;
    if (count < min || count == 0) return std::nullopt;
    const auto value = to_integer(rest_.substr(0, count));
    if (value) rest_.remove_prefix(count);
    return value;
  }

 private:
  std::string_view rest_;
};

// The Gregorian calendar for all years, as java.time has it.
bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

/// [+-]yyyy-mm-dd by the rules of java.time: four digits of the year, more only with a sign, a plus
/// only with more. `clamp_day`: the 31st of a shorter month is its last day.
// Timestamps are read leniently (February 31st is the last of February), dates strictly; both are
// Java's.
std::optional<CivilDate> scan_date(Scanner& in, bool clamp_day) {
  const bool minus = in.take('-');
  const bool plus = !minus && in.take('+');
  const size_t before = in.rest().size();
  const auto year = in.number(4, minus || plus ? 10 : 4);
  if (!year) return std::nullopt;
  if (plus && before - in.rest().size() <= 4) return std::nullopt;
  if ((minus && *year == 0) || *year > 999999999) return std::nullopt;
  if (!in.take('-')) return std::nullopt;
  const auto month = in.number(2, 2);
  if (!month || *month < 1 || *month > 12 || !in.take('-')) return std::nullopt;
  const auto day = in.number(2, 2);
  if (!day || *day < 1 || *day > 31) return std::nullopt;
  CivilDate date{minus ? -*year : *year, static_cast<int>(*month), static_cast<int>(*day)};
  const int last = days_in_month(date.year, date.month);
  if (date.day > last) {
    if (!clamp_day) return std::nullopt;
    date.day = last;
  }
  return date;
}

struct TimeOfDay {
  int64_t ms = 0;  // up to and including 24:00
};

// h:m[:s[.fraction]], any number of digits each; the fraction has nine at most.
std::optional<TimeOfDay> scan_time_of_day(Scanner& in) {
  constexpr size_t kDigitsMax = 19;
  const auto hour = in.number(1, kDigitsMax);
  if (!hour || *hour > 24 || !in.take(':')) return std::nullopt;
  const auto minute = in.number(1, kDigitsMax);
  if (!minute || *minute > 59) return std::nullopt;
  int64_t second = 0, nanos = 0;
  if (in.take(':')) {
    const auto scanned = in.number(1, kDigitsMax);
    if (!scanned || *scanned > 59) return std::nullopt;
    second = *scanned;
    if (in.take('.')) {
      int64_t unit = kNanosPerSecond / 10;
      while (!in.at_end() && is_digit(in.rest()[0])) {
        if (unit == 0) return std::nullopt;
        nanos += *in.number(1, 1) * unit;
        unit /= 10;
      }
    }
  }
  // 24:00 is the end of a day, and nothing is later.
  if (*hour == 24 && (*minute != 0 || second != 0 || nanos != 0)) return std::nullopt;
  return TimeOfDay{((*hour * 60 + *minute) * 60 + second) * kMsPerSecond + nanos / 1000000};
}

/// ±hh | ±hhmm | ±hh:mm and, where seconds are allowed, ±hh:mm:ss. In seconds.
std::optional<int64_t> scan_offset(Scanner& in, bool colon_only, bool seconds) {
  const bool minus = in.take('-');
  if (!minus && !in.take('+')) return std::nullopt;
  const auto hour = in.number(2, 2);
  if (!hour) return std::nullopt;
  int64_t minute = 0, second = 0;
  const bool colon = in.take(':');
  if (colon || !in.at_end() || colon_only) {
    if (!colon && colon_only) return std::nullopt;
    const auto scanned = in.number(2, 2);
    if (!scanned || *scanned > 59) return std::nullopt;
    minute = *scanned;
    if (colon && seconds && in.take(':')) {
      const auto scanned_s = in.number(2, 2);
      if (!scanned_s || *scanned_s > 59) return std::nullopt;
      second = *scanned_s;
    }
  }
  const int64_t offset = (*hour * 60 + minute) * 60 + second;
  // java.time's limit.
  if (offset > 18 * 3600) return std::nullopt;
  return minus ? -offset : offset;
}

/// What follows the time: nothing, an offset, or a space and a zone. Seconds east of UTC.
// Names of zones need the local time: their offset depends on it.
std::optional<int64_t> scan_zone(Scanner& in, int64_t local_ms) {
  if (in.at_end()) return 0;
  std::optional<int64_t> offset;
  if (in.take(' ')) {
    const int64_t local_s = local_ms / kMsPerSecond - (local_ms % kMsPerSecond < 0);
    // First as a name: "UTC" alone is one, "UTC+01:00" is not.
    if (const auto named = zone_offset_s(in.rest(), local_s)) return *named;
    for (const std::string_view prefix : {"UTC", "GMT", "UT"}) {
      if (!in.rest().starts_with(prefix)) continue;
      Scanner after(in.rest().substr(prefix.size()));
      offset = scan_offset(after, true, true);
      return after.at_end() ? offset : std::nullopt;
    }
    offset = scan_offset(in, false, true);
  } else if (in.take('Z')) {
    offset = 0;
  } else {
    offset = scan_offset(in, false, false);
  }
  return in.at_end() ? offset : std::nullopt;
}

/// y-m-d before a time: any number of digits, no sign, the year from 1 on.
std::optional<CivilDate> scan_date_before_time(Scanner& in) {
  constexpr size_t kDigitsMax = 19;
  const auto year = in.number(1, kDigitsMax);
  if (!year || *year < 1 || *year > 999999999 || !in.take('-')) return std::nullopt;
  const auto month = in.number(1, kDigitsMax);
  if (!month || *month < 1 || *month > 12 || !in.take('-')) return std::nullopt;
  const auto day = in.number(1, kDigitsMax);
  if (!day || *day < 1 || *day > 31) return std::nullopt;
  CivilDate date{*year, static_cast<int>(*month), static_cast<int>(*day)};
  date.day = std::min(date.day, days_in_month(date.year, date.month));
  return date;
}

// Two forms of dates: with a time behind it a date may have any number of digits; alone it has
// java.time's form.
std::optional<int64_t> scan_timestamp(std::string_view text) {
  Scanner in(text);
  std::optional<CivilDate> date = scan_date_before_time(in);
  const bool has_time =
      date && (in.rest().starts_with('T') ||
               (in.rest().size() > 1 && in.rest()[0] == ' ' && is_digit(in.rest()[1])));
  if (!has_time) {
    in = Scanner(text);
    date = scan_date(in, true);
  }
  // Years of nine digits do not fit milliseconds: refused, as in Java, and not wrapped around.
  int64_t local_ms = 0;
  if (!date || __builtin_mul_overflow(days_from_civil(*date), kMsPerDay, &local_ms))
    return std::nullopt;
  if (has_time) {
    in = Scanner(in.rest().substr(1));
    const auto time = scan_time_of_day(in);
    if (!time || __builtin_add_overflow(local_ms, time->ms, &local_ms)) return std::nullopt;
  }
  const auto offset_s = scan_zone(in, local_ms);
  int64_t ms = 0;
  if (!offset_s || __builtin_sub_overflow(local_ms, *offset_s * kMsPerSecond, &ms))
    return std::nullopt;
  return ms;
}

/// Quotient and remainder towards minus infinity.
// Times before 1970 are negative.
std::pair<int64_t, int64_t> floor_divide(int64_t a, int64_t b) {
  int64_t quotient = a / b, rest = a % b;
  if (rest < 0) {
    --quotient;
    rest += b;
  }
  return {quotient, rest};
}

bool equals_ignoring_case(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(),
                    [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y; });
}

}  // namespace

int days_in_month(int64_t year, int month) {
  if (month == 2) return is_leap(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

int64_t days_from_civil(const CivilDate& date) {
  // Years counted from March, so that the leap day is the last one; eras of 400 years.
  const int64_t year = date.year - (date.month <= 2);
  const auto [era, year_of_era] = floor_divide(year, 400);
  const int64_t month_from_march = (date.month + 9) % 12;
  // Months from March have 31, 30, 31, 30, 31 days in turn: 153 in five months.
  const int64_t day_of_year = (153 * month_from_march + 2) / 5 + date.day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  // 146,097 days in 400 years; 719,468 days from 0000-03-01 to 1970-01-01.
  return era * 146097 + day_of_era - 719468;
}

CivilDate civil_from_days(int64_t days_since_epoch) {
  const auto [era, day_of_era] = floor_divide(days_since_epoch + 719468, 146097);
  // The inverse of days_from_civil(): the divisors are the days of 4 years less one, of 100 years,
  // and of 400 years less one.
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month_from_march = (5 * day_of_year + 2) / 153;
  CivilDate date;
  date.day = static_cast<int>(day_of_year - (153 * month_from_march + 2) / 5 + 1);
  date.month =
      static_cast<int>(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
  date.year = era * 400 + year_of_era + (date.month <= 2);
  return date;
}

Result<int64_t> parse_timestamp(std::string_view text, std::optional<int64_t> now_ms) {
  if (is_integer(text)) {
    if (const auto ms = to_integer(text)) return *ms;
    return fail(ErrorCode::kInvalid, "Unable to make long (for date) from: '{}'", text);
  }
  // Where no time is given, as for schema texts, "now" is no timestamp.
  if (now_ms && equals_ignoring_case(text, "now")) return *now_ms;
  if (const auto ms = scan_timestamp(text)) return *ms;
  return fail(ErrorCode::kInvalid, "Unable to parse a date/time from '{}'", text);
}

std::string format_timestamp(int64_t unix_ms, char separator) {
  const auto [days, ms] = floor_divide(unix_ms, kMsPerDay);
  const CivilDate date = civil_from_days(days);
  // The year of its era, without the era: 1 BC reads 0001, as Cassandra's pattern has it.
  const int64_t year = date.year > 0 ? date.year : 1 - date.year;
  return fmt::format("{}{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}.{:03}Z", year > 9999 ? "+" : "", year,
                     date.month, date.day, separator, ms / 3600000, ms / 60000 % 60, ms / 1000 % 60,
                     ms % 1000);
}

// A number is the value itself, with 2^31 for 1970-01-01, and no count of days from then.
Result<uint32_t> parse_date(std::string_view text) {
  if (is_integer(text)) {
    const auto days = to_integer(text);
    if (days && *days >= 0 && *days <= std::numeric_limits<uint32_t>::max())
      return static_cast<uint32_t>(*days);
    return fail(ErrorCode::kInvalid, "Unable to make unsigned int (for date) from: '{}'", text);
  }
  Scanner in(text);
  const auto date = scan_date(in, false);
  int64_t ms = 0;
  // Cassandra goes through milliseconds: a date that these cannot hold gets this error and not the
  // next ones.
  if (!date || !in.at_end() || __builtin_mul_overflow(days_from_civil(*date), kMsPerDay, &ms)) {
    return fail(ErrorCode::kInvalid, "Unable to coerce '{}' to a formatted date (long)", text);
  }
  const int64_t days = days_from_civil(*date) + (int64_t{1} << 31);
  if (days < 0) {
    return fail(ErrorCode::kInvalid,
                "Input date {} is less than min supported date -5877641-06-23T00:00Z", text);
  }
  if (days > std::numeric_limits<uint32_t>::max()) {
    return fail(ErrorCode::kInvalid,
                "Input date {} is greater than max supported date +5881580-07-11T00:00Z", text);
  }
  return static_cast<uint32_t>(days);
}

std::string format_date(uint32_t shifted_days) {
  const CivilDate date = civil_from_days(int64_t{shifted_days} - (int64_t{1} << 31));
  // As java.time prints years: four digits, a sign beyond them.
  const char* const sign = date.year < 0 ? "-" : date.year > 9999 ? "+" : "";
  return fmt::format("{}{:04}-{:02}-{:02}", sign, std::abs(date.year), date.month, date.day);
}

Result<int64_t> parse_time(std::string_view text) {
  if (is_integer(text)) {
    const auto nanos = to_integer(text);
    if (nanos && *nanos >= 0 && *nanos < kNanosPerDay) return *nanos;
    return fail(ErrorCode::kInvalid, "Unable to make long (for time) from: '{}'", text);
  }
  const auto refuse = [&] {
    return fail(ErrorCode::kInvalid, "(TimeType) Unable to coerce '{}' to a formatted time (long)",
                text);
  };
  std::string_view rest = text;
  while (!rest.empty() && static_cast<uint8_t>(rest.front()) <= ' ') rest.remove_prefix(1);
  while (!rest.empty() && static_cast<uint8_t>(rest.back()) <= ' ') rest.remove_suffix(1);
  // hh:mm:ss[.fffffffff]; blanks around the numbers are errors, around the whole text they are not.
  const size_t first = rest.find(':');
  if (first == std::string_view::npos) return refuse();
  const size_t second = rest.find(':', first + 1);
  if (second == std::string_view::npos) return refuse();
  const size_t period = rest.find('.', second + 1);
  const auto hours = to_integer(rest.substr(0, first));
  const auto minutes = to_integer(rest.substr(first + 1, second - first - 1));
  const auto seconds = to_integer(rest.substr(
      second + 1, period == std::string_view::npos ? std::string_view::npos : period - second - 1));
  int64_t nanos = 0;
  if (period != std::string_view::npos) {
    std::string fraction(rest.substr(period + 1));
    if (fraction.empty() || fraction.size() > 9 ||
        !std::all_of(fraction.begin(), fraction.end(), is_digit))
      return refuse();
    // Digits of a fraction count from the left: ".5" is 500,000,000 nanoseconds.
    fraction.append(9 - fraction.size(), '0');
    nanos = *to_integer(fraction);
  }
  if (!hours || !minutes || !seconds || *hours < 0 || *hours > 23 || *minutes < 0 ||
      *minutes > 59 || *seconds < 0 || *seconds > 59)
    return refuse();
  return ((*hours * 60 + *minutes) * 60 + *seconds) * kNanosPerSecond + nanos;
}

std::string format_time(int64_t nanos_of_day) {
  const int64_t seconds = nanos_of_day / kNanosPerSecond;
  return fmt::format("{:02}:{:02}:{:02}.{:09}", seconds / 3600 % 24, seconds / 60 % 60,
                     seconds % 60, nanos_of_day % kNanosPerSecond);
}

}  // namespace tetrad::cql
