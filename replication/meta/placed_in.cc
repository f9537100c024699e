// SPDX-License-Identifier: Apache-2.0
#include "replication/meta/placed_in.h"

namespace tetrad::replication {

std::string placement_key(std::string_view keyspace) {
  return "placement/" + std::string(keyspace) + "/data_centers";
}

std::string placement_text(const std::set<std::string>& data_centers) {
  std::string text;
  for (const std::string& name : data_centers) text += name + "\n";
  return text;
}

std::set<std::string, std::less<>> placed_in(const MetaState& state, std::string_view keyspace) {
  std::set<std::string, std::less<>> names;
  const auto found = state.schema_objects.find(placement_key(keyspace));
  if (found == state.schema_objects.end()) return names;
  std::string_view rest = found->second;
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    if (end != 0) names.emplace(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return names;
}

std::vector<partitioner::RingNode> nodes_for(const std::set<std::string, std::less<>>& data_centers,
                                             std::vector<partitioner::RingNode> nodes) {
  if (!data_centers.empty())
    std::erase_if(nodes, [&](const partitioner::RingNode& node) {
      return !data_centers.contains(node.data_center);
    });
  return nodes;
}

}  // namespace tetrad::replication
