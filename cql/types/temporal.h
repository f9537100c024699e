// SPDX-License-Identifier: Apache-2.0
// Texts of timestamp, date, time and duration, as Cassandra reads and writes them. Text without a
// time zone is UTC. Nothing here reads a clock: "now" is handed in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// A day of the proleptic Gregorian calendar; the year 0 is 1 BC.
struct CivilDate {
  int64_t year = 1970;
  int month = 1, day = 1;
};
int64_t days_from_civil(const CivilDate& date);
CivilDate civil_from_days(int64_t days_since_epoch);
int days_in_month(int64_t year, int month);

/// Milliseconds since the epoch, from
///   an integer | "now" (any case; needs `now_ms`)
///   | yyyy-mm-dd[zone] | y-m-d{' '|T}H:m[:s[.fraction]][zone]
///   zone := Z | ±hh | ±hhmm | ±hh:mm | ' ' (one of these | UTC | GMT[±hh:mm] | a zone's name)
/// Errors: kInvalid "Unable to parse a date/time from '…'".
Result<int64_t> parse_timestamp(std::string_view text,
                                std::optional<int64_t> now_ms = std::nullopt);
/// "2011-02-03T04:05:06.789Z"; JSON has a space for the T.
std::string format_timestamp(int64_t unix_ms, char separator = 'T');

/// Days shifted by 2^31, from "yyyy-mm-dd" (years past 9999 with +, before 0 with -) or the shifted
/// number itself. Errors: kInvalid "Unable to coerce '…' to a formatted date (long)".
Result<uint32_t> parse_date(std::string_view text);
std::string format_date(uint32_t shifted_days);

/// Nanoseconds of the day, from "hh:mm:ss[.fffffffff]" or the number itself.
/// Errors: kInvalid "(TimeType) Unable to coerce '…' to a formatted time (long)".
Result<int64_t> parse_time(std::string_view text);
/// Always with nine digits of fraction.
std::string format_time(int64_t nanos_of_day);

/// "1y2mo3w4d5h6m7s8ms9us10ns", ISO 8601 "P1Y2M3DT4H5M6S", "P4W", "P0001-02-03T04:05:06", all with
/// an optional minus in front. Errors: kInvalid "Unable to convert '…' to a duration" and others.
Result<Duration> parse_duration(std::string_view text);
/// "1y2mo3d4h5m6s7ms8us9ns"; "" for the zero duration, as Cassandra.
std::string format_duration(const Duration& value);

/// The offset of a time zone from UTC in seconds at a local time given in seconds since the epoch.
/// Known are the fixed zones, those of the United States from 2007 and of the European Union from
/// 1996, by their names and abbreviations. nullopt: not known, or not for that time.
std::optional<int32_t> zone_offset_s(std::string_view zone, int64_t local_s);

}  // namespace tetrad::cql
