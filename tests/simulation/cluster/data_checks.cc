// SPDX-License-Identifier: Apache-2.0
// Checks of the data simulation that stand by themselves: the change feed, and that nothing is left
// of what was deleted.
#include "tests/simulation/cluster/data_cluster.h"

namespace tetrad::simulation {

std::string DataCluster::step_feeds() {
  for (FeedReader& feed : feeds_) {
    if (random_.one_in(3)) continue;
    if (auto wrong = feed.step(cluster_, history_); !wrong.empty()) return wrong;
  }
  return "";
}

std::string DataCluster::check_feeds_at_end() {
  const auto& table = *newest_state()->tables.begin()->second;
  if (!table.change_log) return "";  // nobody could be asked to turn it on
  cluster_.world().run_for(1'000'000);
  for (FeedReader& feed : feeds_)
    if (auto wrong = feed.finish(cluster_, history_); !wrong.empty()) return wrong;
  return "";
}

/// The fewest members that a quorum can be found with tell all that there is.
std::string DataCluster::check_feeds_of_few() {
  if (feeds_.empty() || !newest_state()->tables.begin()->second->change_log) return "";
  const size_t members = std::min<size_t>(4, cluster_.size());
  for (size_t down = 0; down < members / 2;) {
    SimNode& victim = cluster_[random_.below(cluster_.size())];
    if (!victim.is_up()) continue;
    victim.kill();
    ++down;
  }
  FeedReader late(random_.next(), std::nullopt);
  return late.finish(cluster_, history_);
}

std::string DataCluster::check_purged() {
  cluster_.world().run_for(15'000'000);
  const auto& table = *newest_state()->tables.begin()->second;
  for (const auto& tablet : table.tablets.tablets()) {
    std::optional<base::Hash128> first;
    for (const StoreAddress& member : tablet.replicas) {
      if (profile_.one_keeps && node_of_host_.at(member.host) == 0) continue;
      storage::Store& store = cluster_[node_of_host_.at(member.host)].store(member.store);
      std::optional<Result<storage::Store::ExportPage>> page;
      store.export_range(table.incarnation, tablet.range, "", 64 << 20,
                         [&](auto exported) { page = std::move(exported); });
      cluster_.world().run_until([&] { return page.has_value(); }, 1'000'000);
      if (!page || !*page) return "a store does not tell what it holds";
      base::StreamingHash128 hash;
      for (storage::Mutation& mutation : (*page)->mutations) {
        bool dead = !mutation.range_tombstones.empty();
        const auto look = [&](BytesView encoded) {
          if (encoded.empty()) return;
          const auto record = storage::decode_row_record(encoded);
          dead |= !record || record->deletion.present() ||
                  std::any_of(record->cells.begin(), record->cells.end(), [](const auto& cell) {
                    return cell.kind != storage::CellKind::kValue;
                  });
        };
        look(mutation.header);
        for (const auto& row : mutation.rows) look(row.record);
        if (dead) {
          return fmt::format("a tombstone of {} stays in store {} of node {}; {}",
                             mutation.partition_key, member.store, node_of_host_.at(member.host),
                             describe());
        }
        mutation.schema_version = {};
        Bytes encoded;
        storage::encode_mutation(mutation, encoded);
        hash.update(encoded);
      }
      const base::Hash128 digest = hash.digest();
      if (first && digest != *first)
        return fmt::format("members of tablet {} do not hold the same", tablet.id.value);
      first = digest;
    }
  }
  return "";
}

}  // namespace tetrad::simulation
