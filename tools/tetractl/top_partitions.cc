// SPDX-License-Identifier: Apache-2.0
// The partition keys that get most work, as nodetool's toppartitions is asked for them.
#include <algorithm>
#include <charconv>
#include <thread>

#include <fmt/format.h>

#include "tools/tetractl/orders.h"
#include "tools/tetractl/text_table.h"

namespace tetrad::tools {

using nlohmann::json;

namespace {

// Ten minutes, and a screen of keys.
constexpr uint64_t kDurationMsMax = 600'000;
constexpr uint64_t kTopMax = 1'000;

/// Errors: NodeError, which names `what`.
uint64_t number_of(std::string_view what, const std::string& text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw NodeError(
        fmt::format("{} is a whole number from {} to {}, not '{}'", what, least, most, text));
  return value;
}

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// What is asked: nodetool takes KEYSPACE TABLE DURATION, or a duration alone.
struct Question {
  std::string keyspace, table;
  uint64_t duration_ms = 0, top = 10;
  bool reads = true, writes = true;
};

Question question_of(const Invocation& call) {
  Question asked{call.text("keyspace"), call.text("table")};
  std::string duration = call.text("duration_ms");
  // `toppartitions 5000`: the first word is taken for a keyspace by the table of verbs.
  if (duration.empty() && asked.table.empty() && is_number(asked.keyspace))
    std::swap(duration, asked.keyspace);
  if (!duration.empty()) asked.duration_ms = number_of("duration_ms", duration, 1, kDurationMsMax);
  if (call.has("top")) asked.top = number_of("--top", call.text("top"), 1, kTopMax);
  if (call.has("samplers")) {
    const std::string samplers = "," + call.text("samplers") + ",";
    asked.reads = samplers.find(",READS,") != std::string::npos;
    asked.writes = samplers.find(",WRITES,") != std::string::npos;
    if (!asked.reads && !asked.writes)
      throw NodeError(
          fmt::format("--samplers is of READS and WRITES, not '{}'", call.text("samplers")));
  }
  return asked;
}

}  // namespace

int show_top_partitions(AdminClient& node, const Invocation& call) {
  const Question asked = question_of(call);
  const Parameters named = {{"keyspace", asked.keyspace}, {"table", asked.table}};
  // The node counts all the time: waiting only makes the figures those of the time that was asked
  // for.
  if (asked.duration_ms != 0) {
    node.fact("/hot-keys", named);  // reports a wrong name before the wait
    std::this_thread::sleep_for(std::chrono::milliseconds(asked.duration_ms));
  }
  const auto work_of = [&](const json& key) {
    return (asked.reads ? key.at("reads_ru_per_s").get<double>() : 0) +
           (asked.writes ? key.at("writes_ru_per_s").get<double>() : 0);
  };
  std::vector<json> keys = node.fact("/hot-keys", named).at("hot_keys");
  // Keys whose work is of the other kind only.
  std::erase_if(keys, [&](const json& key) { return work_of(key) <= 0; });
  // Of equal ones the order of the node stays.
  std::ranges::stable_sort(keys, std::greater(), work_of);
  if (keys.size() > asked.top) keys.resize(asked.top);
  if (call.as_json) {
    fmt::print("{}\n", json({{"hot_keys", keys}}).dump(2));
    return 0;
  }
  fmt::print("Request units a second of the node's replicas, over some ten seconds:\n");
  if (keys.empty())
    fmt::print(
        "   no physical partition gets enough to look at its keys: at this replica a quarter of "
        "heat_split_ru_per_s or of heat_split_mb_per_s, by default 2,000 RU/s or 16 MiB/s\n");
  Lines lines = {{"Table", "Partition", "RU/s", "Reads", "Writes", "Share"}};
  for (const json& key : keys) {
    lines.push_back({cell_text(key.at("keyspace")) + "." + cell_text(key.at("table")),
                     cell_text(key.at("key")), fmt::format("{:.0f}", work_of(key)),
                     fmt::format("{:.0f}", key.at("reads_ru_per_s").get<double>()),
                     fmt::format("{:.0f}", key.at("writes_ru_per_s").get<double>()),
                     fmt::format("{:.1f}%", 100 * key.at("share").get<double>())});
  }
  if (keys.size() > 0) print_lines(lines);
  return 0;
}

}  // namespace tetrad::tools
