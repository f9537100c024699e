// SPDX-License-Identifier: Apache-2.0
// The few time zones that timestamp literals may name. Their rules are those in force, and a zone
// is refused for the time before they were.
#include <algorithm>
#include <array>

#include "cql/types/temporal.h"

namespace tetrad::cql {

namespace {

enum class Summer : uint8_t { kNone, kUnitedStates, kEurope };

// A name that Java knows, its offset outside of summer, which rules its summer follows, and from
// which year on these hold: earlier times are refused and not guessed.
struct Zone {
  std::string_view name;
  int32_t standard_minutes;
  Summer summer;
  int32_t since_year;
};

constexpr Summer kNone = Summer::kNone, kUs = Summer::kUnitedStates, kEu = Summer::kEurope;

// The names that clients use; Java knows some six hundred.
constexpr std::array kZones = {
    Zone{"Z", 0, kNone, 0},
    Zone{"UTC", 0, kNone, 0},
    Zone{"GMT", 0, kNone, 0},
    Zone{"UT", 0, kNone, 0},
    Zone{"UCT", 0, kNone, 0},
    Zone{"GMT0", 0, kNone, 0},
    Zone{"Zulu", 0, kNone, 0},
    Zone{"Universal", 0, kNone, 0},
    Zone{"Greenwich", 0, kNone, 0},
    Zone{"Etc/UTC", 0, kNone, 0},
    Zone{"Etc/UCT", 0, kNone, 0},
    Zone{"Etc/GMT", 0, kNone, 0},
    Zone{"Coordinated Universal Time", 0, kNone, 0},
    Zone{"Greenwich Mean Time", 0, kNone, 0},
    Zone{"PST", -480, kUs, 2007},
    Zone{"PDT", -480, kUs, 2007},
    Zone{"PST8PDT", -480, kUs, 2007},
    Zone{"US/Pacific", -480, kUs, 2007},
    Zone{"America/Los_Angeles", -480, kUs, 2007},
    Zone{"Pacific Standard Time", -480, kUs, 2007},
    Zone{"Pacific Daylight Time", -480, kUs, 2007},
    Zone{"MST", -420, kUs, 2007},
    Zone{"MDT", -420, kUs, 2007},
    Zone{"MST7MDT", -420, kUs, 2007},
    Zone{"US/Mountain", -420, kUs, 2007},
    Zone{"America/Denver", -420, kUs, 2007},
    Zone{"CST", -360, kUs, 2007},
    Zone{"CDT", -360, kUs, 2007},
    Zone{"CST6CDT", -360, kUs, 2007},
    Zone{"US/Central", -360, kUs, 2007},
    Zone{"America/Chicago", -360, kUs, 2007},
    Zone{"EST", -300, kUs, 2007},
    Zone{"EDT", -300, kUs, 2007},
    Zone{"EST5EDT", -300, kUs, 2007},
    Zone{"US/Eastern", -300, kUs, 2007},
    Zone{"America/New_York", -300, kUs, 2007},
    Zone{"HST", -600, kNone, 1948},
    Zone{"Pacific/Honolulu", -600, kNone, 1948},
    Zone{"America/Phoenix", -420, kNone, 1968},
    Zone{"Europe/London", 0, kEu, 1996},
    Zone{"Europe/Dublin", 0, kEu, 1996},
    Zone{"WET", 0, kEu, 1996},
    Zone{"Europe/Lisbon", 0, kEu, 1997},
    Zone{"CET", 60, kEu, 1996},
    Zone{"CEST", 60, kEu, 1996},
    Zone{"MET", 60, kEu, 1996},
    Zone{"Europe/Amsterdam", 60, kEu, 1996},
    Zone{"Europe/Berlin", 60, kEu, 1996},
    Zone{"Europe/Brussels", 60, kEu, 1996},
    Zone{"Europe/Budapest", 60, kEu, 1996},
    Zone{"Europe/Copenhagen", 60, kEu, 1996},
    Zone{"Europe/Madrid", 60, kEu, 1996},
    Zone{"Europe/Oslo", 60, kEu, 1996},
    Zone{"Europe/Paris", 60, kEu, 1996},
    Zone{"Europe/Prague", 60, kEu, 1996},
    Zone{"Europe/Rome", 60, kEu, 1996},
    Zone{"Europe/Stockholm", 60, kEu, 1996},
    Zone{"Europe/Vienna", 60, kEu, 1996},
    Zone{"Europe/Warsaw", 60, kEu, 1996},
    Zone{"Europe/Zurich", 60, kEu, 1996},
    Zone{"EET", 120, kEu, 1996},
    Zone{"Europe/Athens", 120, kEu, 1996},
    Zone{"Europe/Helsinki", 120, kEu, 1996},
    Zone{"Asia/Dubai", 240, kNone, 1921},
    Zone{"Asia/Kolkata", 330, kNone, 1946},
    Zone{"Asia/Shanghai", 480, kNone, 1992},
    Zone{"Asia/Hong_Kong", 480, kNone, 1980},
    Zone{"Asia/Singapore", 480, kNone, 1982},
    Zone{"JST", 540, kNone, 1952},
    Zone{"Asia/Tokyo", 540, kNone, 1952},
};

constexpr int64_t kHour = 3600, kDay = 24 * kHour;

/// The n-th Sunday of a month, n from 1; 0 for the last one. In days since the epoch.
int64_t sunday(int64_t year, int month, int n) {
  // Day 3 of the epoch was a Sunday.
  const auto on_or_after = [](int64_t day) { return day + ((3 - day) % 7 + 7) % 7; };
  if (n > 0) return on_or_after(days_from_civil({year, month, 1})) + 7 * (n - 1);
  return on_or_after(days_from_civil({year, month, days_in_month(year, month) - 6}));
}

// United States: from the second Sunday of March to the first of November, at 2 o'clock local time.
// Europe: from the last Sunday of March to the last of October, at 1 o'clock UTC.
bool in_summer(const Zone& zone, int64_t year, int64_t local_s) {
  int64_t start = 0, end = 0;  // in local time: standard time before, summer time after
  if (zone.summer == Summer::kUnitedStates) {
    start = sunday(year, 3, 2) * kDay + 2 * kHour;
    end = sunday(year, 11, 1) * kDay + 2 * kHour;
  } else {
    const int64_t utc_hour = kHour + zone.standard_minutes * 60;
    start = sunday(year, 3, 0) * kDay + utc_hour;
    end = sunday(year, 10, 0) * kDay + utc_hour + kHour;
  }
  // The hour that is skipped counts as standard time, the one that comes twice as summer time.
  return local_s >= start + kHour && local_s < end;
}

}  // namespace

std::optional<int32_t> zone_offset_s(std::string_view zone, int64_t local_s) {
  const auto* const found = std::find_if(kZones.begin(), kZones.end(),
                                         [&](const Zone& known) { return known.name == zone; });
  if (found == kZones.end()) return std::nullopt;
  // Rounded down, also before 1970.
  const int64_t days = local_s / kDay - (local_s % kDay < 0);
  const int64_t year = civil_from_days(days).year;
  if (found->since_year > 0 && year < found->since_year) return std::nullopt;
  const int32_t standard = found->standard_minutes * 60;
  if (found->summer == Summer::kNone || !in_summer(*found, year, local_s)) return standard;
  return standard + static_cast<int32_t>(kHour);
}

}  // namespace tetrad::cql
