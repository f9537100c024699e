// SPDX-License-Identifier: Apache-2.0
// Functions of times, dates and UUIDs.
// Units: timestamps are milliseconds since 1970, dates are days with 1970 at 2^31, times are
// nanoseconds of a day, timeuuids have ticks of 100 ns since 1582. Times before 1970 are negative,
// so divisions round down (floor_div), not towards zero.
#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "cql/functions/function_table.h"
#include "cql/types/temporal.h"

namespace tetrad::cql {

namespace {

constexpr int64_t kMsPerDay = 86'400'000;
constexpr int64_t kNanosPerMs = 1'000'000;
constexpr int64_t kNanosPerDay = 86'400'000'000'000;
constexpr int64_t kDateEpoch = int64_t{1} << 31;

int64_t floor_div(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// Milliseconds since 1970 of a version 1 UUID.
std::optional<int64_t> ms_of_timeuuid(BytesView value) {
  const auto uuid = read_uuid(value);
  if (!uuid) return std::nullopt;
  const auto ticks = static_cast<int64_t>(base::uuid_ticks(*uuid));
  // 10'000 ticks of 100 ns are a millisecond.
  return floor_div(ticks - static_cast<int64_t>(base::uuid_ticks_of_unix_us(0)), 10'000);
}
std::optional<int64_t> ms_of_date(BytesView value) {
  const auto days = read_date(value);
  if (!days) return std::nullopt;
  return (static_cast<int64_t>(*days) - kDateEpoch) * kMsPerDay;
}
Bytes date_of_ms(int64_t ms) { return make_date_of_days(floor_div(ms, kMsPerDay)); }

/// Errors: kInvalid, no version 1 UUID has that time: its 60 bits begin in 1582 and end in 5236.
Result<uint64_t> ticks_of_ms(int64_t ms) {
  int64_t ticks = 0;
  if (__builtin_mul_overflow(ms, int64_t{10'000}, &ticks) ||
      __builtin_add_overflow(ticks, static_cast<int64_t>(base::uuid_ticks_of_unix_us(0)), &ticks) ||
      ticks < 0 || ticks >= int64_t{1} << 60) {
    return fail(ErrorCode::kInvalid, "No timeuuid has the time {}", ms);
  }
  return static_cast<uint64_t>(ticks);
}

/// Times on their way, which may leave the range of milliseconds.
using WideMs = __int128;

/// `ms` plus months and days of the calendar.
WideMs add_calendar(int64_t ms, int64_t months, int64_t days) {
  WideMs out = ms;
  if (months != 0) {
    const int64_t day = floor_div(ms, kMsPerDay);
    const int64_t of_day = (ms % kMsPerDay + kMsPerDay) % kMsPerDay;
    CivilDate date = civil_from_days(day);
    const int64_t month = date.year * 12 + (date.month - 1) + months;
    date.year = floor_div(month, 12);
    date.month = static_cast<int>(month - date.year * 12) + 1;
    // 31 January plus a month is the last day of February, as in Java.
    date.day = std::min(date.day, days_in_month(date.year, date.month));
    out = WideMs{days_from_civil(date)} * kMsPerDay + of_day;
  }
  return out + WideMs{days} * kMsPerDay;
}

Result<Duration> duration_of(BytesView value) {
  const auto duration = read_duration(value);
  if (!duration) return fail(ErrorCode::kFunctionFailure, "not a duration");
  return *duration;
}

Result<int64_t> shifted(int64_t ms, BytesView by, int sign) {
  TETRAD_TRY(const Duration d, duration_of(by));
  const WideMs result = add_calendar(ms, sign * int64_t{d.months}, sign * int64_t{d.days}) +
                        sign * WideMs{d.nanos / kNanosPerMs};
  if (result > INT64_MAX || result < INT64_MIN)
    return fail(ErrorCode::kFunctionFailure, "The result is out of the range of timestamps");
  return static_cast<int64_t>(result);
}

/// How far `ms` is behind the last multiple of `step` after `start`, which is not after it.
int64_t rest_of_step(int64_t ms, int64_t start, int64_t step) {
  // Unsigned: the distance of two timestamps may be more than an int64_t holds.
  const uint64_t distance = static_cast<uint64_t>(ms) - static_cast<uint64_t>(start);
  return static_cast<int64_t>(distance % static_cast<uint64_t>(step));
}

/// The largest point start + n x duration that is not after `ms`.
Result<int64_t> floor_ms(int64_t ms, const Duration& d, int64_t start) {
  if (start > ms) {
    return fail(ErrorCode::kInvalid,
                "The floor function starting time is greater than the provided time");
  }
  if (d.months < 0 || d.days < 0 || d.nanos < 0) {
    return fail(ErrorCode::kInvalid, "Negative durations are not supported by the floor function");
  }
  if (d.months == 0 && d.days == 0) {
    if (d.nanos % kNanosPerMs != 0) {
      return fail(ErrorCode::kInvalid,
                  "The floor cannot be computed for the {} duration as precision is below 1 "
                  "millisecond",
                  format_duration(d));
    }
    const int64_t step = d.nanos / kNanosPerMs;
    return step == 0 ? ms : ms - rest_of_step(ms, start, step);
  }
  if (d.months == 0 && d.nanos == 0) {
    const int64_t step = d.days * kMsPerDay;
    return ms - rest_of_step(ms, start, step);
  }
  // By the calendar: near by division, then exactly.
  // 30.436875 days are a mean month: 365.2425 / 12.
  const double length = d.months * 30.436875 * kMsPerDay + static_cast<double>(d.days) * kMsPerDay +
                        static_cast<double>(d.nanos / kNanosPerMs);
  const double distance = static_cast<double>(ms) - static_cast<double>(start);
  auto n = static_cast<int64_t>(distance / length);
  const auto at = [&](int64_t k) {
    return add_calendar(start, k * d.months, k * d.days) + WideMs{k} * (d.nanos / kNanosPerMs);
  };
  // The division is off by a few steps at most.
  while (n > 0 && at(n) > ms) --n;
  while (at(n + 1) <= ms) ++n;
  return static_cast<int64_t>(at(n));
}

FunctionBody of_ms(std::optional<int64_t> (*read)(BytesView), Bytes (*make)(int64_t)) {
  return [read, make](const FunctionEnvironment&,
                      FunctionArguments arguments) -> Result<OptionalBytes> {
    const auto ms = read(*arguments[0]);
    if (!ms) return std::nullopt;
    return make(*ms);
  };
}

// A function without arguments that answers something else each time.
ScalarFunction impure(TypePtr result, FunctionBody body) {
  ScalarFunction function = pure_function({}, std::move(result), std::move(body));
  function.pure = false;
  return function;
}

// Keeps the order of its first argument: rows with equal results lie together, which GROUP BY
// needs.
ScalarFunction monotonic_function(std::vector<TypePtr> arguments, TypePtr result,
                                  FunctionBody body) {
  ScalarFunction function = pure_function(std::move(arguments), std::move(result), std::move(body));
  function.monotonic = true;
  return function;
}

void add_floor(FunctionTable& table) {
  const auto add = [&](const TypePtr& type, TypePtr result,
                       std::optional<int64_t> (*read)(BytesView), Bytes (*make)(int64_t),
                       bool days_only) {
    for (const bool with_start : {false, true}) {
      std::vector<TypePtr> arguments = {type, duration_type()};
      if (with_start) arguments.push_back(result);
      const ScalarFunction floor = monotonic_function(
          std::move(arguments), result,
          [=](const FunctionEnvironment&, FunctionArguments values) -> Result<OptionalBytes> {
            const auto ms = read(*values[0]);
            if (!ms) return std::nullopt;
            TETRAD_TRY(const Duration duration, duration_of(*values[1]));
            if (days_only && duration.nanos != 0) {
              return fail(ErrorCode::kInvalid,
                          "The floor on date values cannot be computed for the {} duration as "
                          "precision is below 1 day",
                          format_duration(duration));
            }
            int64_t start = 0;
            if (values.size() == 3) {
              const auto given = days_only ? ms_of_date(*values[2]) : read_bigint(*values[2]);
              if (!given) return std::nullopt;
              start = *given;
            }
            TETRAD_TRY(const int64_t floored, floor_ms(*ms, duration, start));
            return make(floored);
          });
      table.add({"floor"}, floor);
    }
  };
  add(timeuuid_type(), timestamp_type(), ms_of_timeuuid, make_timestamp, false);
  add(timestamp_type(), timestamp_type(), read_bigint, make_timestamp, false);
  add(date_type(), date_type(), ms_of_date, date_of_ms, true);
  const ScalarFunction floor = monotonic_function(
      {time_type(), duration_type()}, time_type(),
      [](const FunctionEnvironment&, FunctionArguments values) -> Result<OptionalBytes> {
        const auto nanos = read_bigint(*values[0]);
        if (!nanos) return std::nullopt;
        TETRAD_TRY(const Duration d, duration_of(*values[1]));
        if (d.months != 0 || d.days != 0 || d.nanos >= kNanosPerDay) {
          return fail(ErrorCode::kInvalid,
                      "For time values, the floor can only be computed for durations smaller that "
                      "a day");
        }
        if (d.nanos < 0) {
          return fail(ErrorCode::kInvalid,
                      "Negative durations are not supported by the floor function");
        }
        return make_time(d.nanos == 0 ? *nanos : *nanos - *nanos % d.nanos);
      });
  table.add({"floor"}, floor);
}

}  // namespace

Uuid next_time_uuid(const FunctionEnvironment& environment) {
  // Clock sequence and node are random for each id. The bit 0x0100'0000'0000 marks a node that is
  // no hardware address (RFC 4122, section 4.5).
  const uint64_t noise = environment.random->next();
  return base::make_time_uuid(base::uuid_ticks_of_unix_us(environment.next_timestamp_us()),
                              static_cast<uint16_t>(noise >> 48) & 0x3fff,
                              (noise & 0xffff'ffff'ffffULL) | 0x0100'0000'0000ULL);
}

namespace {

// What time it is, and ids of their own: never the same twice, so none of them is pure.
void add_moments(FunctionTable& table) {
  const FunctionBody now = [](const FunctionEnvironment& environment,
                              FunctionArguments) -> Result<OptionalBytes> {
    return make_uuid(next_time_uuid(environment));
  };
  table.add({"now", "currenttimeuuid", "current_timeuuid"}, impure(timeuuid_type(), now));
  table.add({"uuid"}, impure(uuid_type(),
                             [](const FunctionEnvironment& environment,
                                FunctionArguments) -> Result<OptionalBytes> {
                               return make_uuid(base::make_random_uuid(*environment.random));
                             }));
  table.add({"currenttimestamp", "current_timestamp"},
            impure(timestamp_type(),
                   [](const FunctionEnvironment& environment, FunctionArguments)
                       -> Result<OptionalBytes> { return make_timestamp(environment.now_ms); }));
  table.add({"currentdate", "current_date"}, impure(date_type(),
                                                    [](const FunctionEnvironment& environment,
                                                       FunctionArguments) -> Result<OptionalBytes> {
                                                      return date_of_ms(environment.now_ms);
                                                    }));
  table.add({"currenttime", "current_time"},
            impure(time_type(),
                   [](const FunctionEnvironment& environment,
                      FunctionArguments) -> Result<OptionalBytes> {
                     return make_time((environment.now_ms % kMsPerDay) * kNanosPerMs);
                   }));
}

// The least and the greatest timeuuid of a millisecond, in Cassandra's order of timeuuids: the
// octets behind the time are compared as signed bytes.
void add_bounds(FunctionTable& table) {
  for (const bool max : {false, true}) {
    const ScalarFunction function = pure_function(
        {timestamp_type()}, timeuuid_type(),
        [max](const FunctionEnvironment&, FunctionArguments arguments) -> Result<OptionalBytes> {
          const auto ms = read_bigint(*arguments[0]);
          if (!ms) return std::nullopt;
          TETRAD_TRY(const uint64_t ticks, ticks_of_ms(*ms));
          // The first tick of the millisecond, or the last one.
          Uuid uuid = base::make_time_uuid(ticks + (max ? 9'999 : 0), 0, 0);
          for (size_t i = 8; i < 16; ++i) uuid.octets[i] = max ? 0x7f : 0x80;
          return make_uuid(uuid);
        });
    if (max) {
      table.add({"maxtimeuuid", "max_timeuuid"}, function);
    } else {
      table.add({"mintimeuuid", "min_timeuuid"}, function);
    }
  }
}

// From one type of time to another. The order of times is kept, so they may stand in GROUP BY.
void add_conversions(FunctionTable& table) {
  const auto identity = [](int64_t ms) { return make_bigint(ms); };
  table.add({"todate", "to_date"},
            monotonic_function({timeuuid_type()}, date_type(), of_ms(ms_of_timeuuid, date_of_ms)));
  table.add({"todate", "to_date"},
            monotonic_function({timestamp_type()}, date_type(), of_ms(read_bigint, date_of_ms)));
  table.add({"totimestamp", "to_timestamp"},
            monotonic_function({timeuuid_type()}, timestamp_type(),
                               of_ms(ms_of_timeuuid, make_timestamp)));
  table.add({"totimestamp", "to_timestamp"},
            monotonic_function({date_type()}, timestamp_type(), of_ms(ms_of_date, make_timestamp)));
  table.add({"tounixtimestamp", "to_unix_timestamp"},
            monotonic_function({timeuuid_type()}, bigint_type(), of_ms(ms_of_timeuuid, +identity)));
  table.add({"tounixtimestamp", "to_unix_timestamp"},
            monotonic_function({timestamp_type()}, bigint_type(), of_ms(read_bigint, +identity)));
  table.add({"tounixtimestamp", "to_unix_timestamp"},
            monotonic_function({date_type()}, bigint_type(), of_ms(ms_of_date, +identity)));
}

// timestamp ± duration and date ± duration; the duration may be no finer than the type.
void add_arithmetic(FunctionTable& table) {
  for (const int sign : {1, -1}) {
    table.add({sign > 0 ? "_timestamp_add" : "_timestamp_sub"},
              pure_function({timestamp_type(), duration_type()}, timestamp_type(),
                            [sign](const FunctionEnvironment&,
                                   FunctionArguments arguments) -> Result<OptionalBytes> {
                              const auto ms = read_bigint(*arguments[0]);
                              if (!ms) return std::nullopt;
                              TETRAD_TRY(const Duration d, duration_of(*arguments[1]));
                              if (d.nanos % kNanosPerMs != 0) {
                                return fail(
                                    ErrorCode::kFunctionFailure,
                                    "The duration must have a millisecond precision. Was: {}",
                                    format_duration(d));
                              }
                              TETRAD_TRY(const int64_t result, shifted(*ms, *arguments[1], sign));
                              return make_timestamp(result);
                            }));
    table.add({sign > 0 ? "_date_add" : "_date_sub"},
              pure_function({date_type(), duration_type()}, date_type(),
                            [sign](const FunctionEnvironment&,
                                   FunctionArguments arguments) -> Result<OptionalBytes> {
                              const auto ms = ms_of_date(*arguments[0]);
                              if (!ms) return std::nullopt;
                              TETRAD_TRY(const Duration d, duration_of(*arguments[1]));
                              if (d.nanos != 0) {
                                return fail(ErrorCode::kFunctionFailure,
                                            "The duration must have a day precision. Was: {}",
                                            format_duration(d));
                              }
                              TETRAD_TRY(const int64_t result, shifted(*ms, *arguments[1], sign));
                              return date_of_ms(result);
                            }));
  }
}

}  // namespace

void add_time_functions(FunctionTable& table) {
  add_moments(table);
  add_bounds(table);
  add_conversions(table);
  add_arithmetic(table);
  add_floor(table);
}

}  // namespace tetrad::cql
