// SPDX-License-Identifier: Apache-2.0
// Answers about the cluster and its disks; those about a node are in node_views.cc.
#include "tools/tetractl/views.h"

#include <fmt/format.h>

#include "tools/tetractl/text_table.h"

namespace tetrad::tools {

using nlohmann::json;

int print_nothing(const json&, const Invocation&) { return 0; }

int print_partitions(const json& partitions, const Invocation&) {
  print_rows(partitions, {"keyspace", "table", "id", "range_start", "range_end", "size_bytes",
                          "state", "replicas"});
  return 0;
}

int print_moves(const json& plan, const Invocation&) {
  print_rows(plan.at("moves"), {"keyspace", "table", "id", "bytes", "from", "to", "reason"});
  fmt::print("{} moves, {} bytes\n", plan.at("moves").size(), plan.at("bytes").dump());
  return 0;
}

int print_certificates(const json& answer, const Invocation&) {
  for (const auto& line : answer.at("certificates")) fmt::print("{}\n", cell_text(line));
  return 0;
}

int print_disk_encryption(const json& answer, const Invocation&) {
  const std::string id = cell_text(answer.at("key_of_new_files"));
  fmt::print("new files: {}\n", id.empty() ? "plain" : "key " + id);
  for (const auto& key : answer.at("keys")) {
    const std::string name = cell_text(key.at("key"));
    fmt::print("{}: {} files, {} bytes\n", name.empty() ? "plain" : "key " + name,
               key.at("files").dump(), key.at("bytes").dump());
  }
  return 0;
}

int print_losses(const json& answer, const Invocation&) {
  for (const auto& store : answer.at("may_have_lost")) {
    fmt::print("store {}: acknowledged writes of {} physical partitions may be lost\n",
               store.at("store").dump(), store.at("count").dump());
    for (const auto& line : store.at("partitions")) fmt::print("  {}\n", cell_text(line));
  }
  return 0;
}

}  // namespace tetrad::tools
