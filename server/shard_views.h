// SPDX-License-Identifier: Apache-2.0
// How a table of this process is put together from what its shards hold.
//
// A statement reads such a table on whatever shard it runs: so the rows cross threads twice, and
// nothing is locked.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/recent_histogram.h"
#include "cql/types/strict_utf8.h"
#include "server/node_views.h"

namespace tetrad::server {

/// Calls `part` on each shard's thread, then `join` on the first one's with the results, by shard,
/// and gives its rows to the asker on the asker's thread.
template <class T>
void ask_shards(const NodeViewSources& from, base::Reactor& asker, std::function<T(Shard&)> part,
                std::function<cql::VirtualRows(const std::vector<T>&)> join,
                cql::NodeTable::Done done) {
  struct Round {
    size_t left;
    // By shard. Only the first shard's thread touches a round.
    std::vector<T> parts;
    std::function<cql::VirtualRows(const std::vector<T>&)> join;
    cql::NodeTable::Done done;
  };
  const auto round = std::make_shared<Round>(Round{
      from.shards.size(), std::vector<T>(from.shards.size()), std::move(join), std::move(done)});
  base::Reactor& main = from.shards.front()->reactor;
  for (const auto& shard : from.shards) {
    shard->reactor.post_from_any_thread([round, part, &main, &asker, shard = shard.get()] {
      T found = part(*shard);
      main.post_from_any_thread(
          [round, &asker, number = shard->number, found = std::move(found)]() mutable {
            round->parts[number] = std::move(found);
            if (--round->left != 0) return;
            asker.post_from_any_thread([round, rows = round->join(round->parts)]() mutable {
              round->done(std::move(rows));
            });
          });
    });
  }
}

/// The number that a part of those recorded do not exceed: a bucket's bound is above them by one at
/// least.
inline double number_at(const base::RecentFigures& of, double part) {
  return std::max(of.at(part) - 1, 0.0);
}

/// Rows that the first shard's thread can make at once.
inline auto on_first(const NodeViewSources& from, std::function<cql::VirtualRows()> make) {
  return [&main = from.shards.front()->reactor, make = std::move(make)](base::Reactor& asker,
                                                                        cql::NodeTable::Done done) {
    main.post_from_any_thread([make, &asker, done = std::move(done)]() mutable {
      asker.post_from_any_thread(
          [rows = make(), done = std::move(done)]() mutable { done(std::move(rows)); });
    });
  };
}

/// For a text column: what was cut may end within a letter.
inline std::string utf8(std::string text) {
  for (int i = 0; i < 3 && !cql::is_strict_utf8(text); ++i) text.pop_back();
  if (!cql::is_strict_utf8(text))
    std::ranges::replace_if(
        text, [](char c) { return (c & 0x80) != 0; }, '?');
  return text;
}

/// Of views and indexes: what is built.
std::vector<cql::NodeTable> build_views(const NodeViewSources& from);
/// Of system_views: latencies of tables, and what their reads find.
std::vector<cql::NodeTable> table_views(const NodeViewSources& from);
/// Of system_views: messages to and from each other node.
std::vector<cql::NodeTable> peer_views(const NodeViewSources& from);
/// Of system_views: batches.
std::vector<cql::NodeTable> batch_views(const NodeViewSources& from);
/// Of `system`: prepared statements, logged batches, compactions; system_views.streaming.
std::vector<cql::NodeTable> history_views(const NodeViewSources& from);
/// system_tetrad.hot_keys: what gets most work.
cql::NodeTable hot_keys_table(const NodeViewSources& from);
/// system_tetrad.advice: what is uneven, and what would change it.
cql::NodeTable advice_table(const NodeViewSources& from);

}  // namespace tetrad::server
