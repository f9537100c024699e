// SPDX-License-Identifier: Apache-2.0
// The warning for options that are kept and shown and have no effect. Only options that the
// statement names and that differ from a new table's are warned of, so a statement that writes out
// defaults gets no warning.
#include "cql/prepare/option_effects.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tetrad::cql {
namespace {

/// An option, why it has no effect, and whether two tables differ in it.
struct IdleOption {
  std::string_view name, reason;
  bool (*differs)(const TableOptions& a, const TableOptions& b);
};

/// Instantiated with a pointer to a member of TableOptions.
template <auto kMember>
bool differs(const TableOptions& a, const TableOptions& b) {
  return a.*kMember != b.*kMember;
}

constexpr std::string_view kOneStore =
    "all tables of a shard share one store, which compacts, compresses and caches by itself";
constexpr std::string_view kOwnReads =
    "the coordinator asks a further replica when 99 in 100 reads would have had their answers, and "
    "reads repair what differs";
constexpr std::string_view kNoSnapshots = "snapshots are taken by order: tetractl snapshot";

// The order of the table is that of the names in the warning. An option that gets an effect leaves
// it.
constexpr std::array kIdleOptions = {
    IdleOption{"compaction", kOneStore, differs<&TableOptions::compaction>},
    IdleOption{"compression", kOneStore, differs<&TableOptions::compression>},
    IdleOption{"caching", kOneStore, differs<&TableOptions::caching>},
    IdleOption{"bloom_filter_fp_chance", kOneStore, differs<&TableOptions::bloom_filter_fp_chance>},
    IdleOption{"crc_check_chance", kOneStore, differs<&TableOptions::crc_check_chance>},
    IdleOption{"min_index_interval", kOneStore, differs<&TableOptions::min_index_interval>},
    IdleOption{"max_index_interval", kOneStore, differs<&TableOptions::max_index_interval>},
    IdleOption{"memtable_flush_period_in_ms", kOneStore,
               differs<&TableOptions::memtable_flush_period_in_ms>},
    IdleOption{"speculative_retry", kOwnReads, differs<&TableOptions::speculative_retry>},
    IdleOption{"additional_write_policy", kOwnReads,
               differs<&TableOptions::additional_write_policy>},
    IdleOption{"read_repair", kOwnReads, differs<&TableOptions::read_repair>},
    IdleOption{"allow_auto_snapshot", kNoSnapshots, differs<&TableOptions::allow_auto_snapshot>},
    IdleOption{"incremental_backups", kNoSnapshots, differs<&TableOptions::incremental_backups>},
};

}  // namespace

std::optional<std::string> no_effect_warning(const ast::Properties& properties,
                                             const TableOptions& now, const TableOptions& fresh) {
  std::string names;
  std::vector<std::string_view> reasons;
  size_t count = 0;
  for (const IdleOption& option : kIdleOptions) {
    const bool is_named = std::ranges::any_of(
        properties, [&](const auto& property) { return property.name.text == option.name; });
    if (!is_named || !option.differs(now, fresh)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", option.name);
    if (std::ranges::find(reasons, option.reason) == reasons.end())
      reasons.push_back(option.reason);
    ++count;
  }
  if (count == 0) return std::nullopt;
  std::string out = fmt::format("{} {} no effect in Tetrad: ", names, count == 1 ? "has" : "have");
  for (size_t i = 0; i < reasons.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : "; ", reasons[i]);
  return out;
}

}  // namespace tetrad::cql
