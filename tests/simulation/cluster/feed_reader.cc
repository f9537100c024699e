// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/cluster/feed_reader.h"

#include <map>
#include <set>

#include "partitioner/token.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kPageUs = 2'000'000;
constexpr int64_t kLostUs = 5'000'000;
/// Entries are delivered when they are so old.
constexpr int64_t kSettledUs = 200'000;

}  // namespace

FeedReader::FeedReader(uint64_t seed, std::optional<int> key) : random_(seed), key_(key) {}

Task<void> FeedReader::read_page(SimNode* node, uint32_t shard, replication::ChangesCommand command,
                                 std::shared_ptr<Page> page) {
  replication::ReadOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor(shard).now_us() + kPageUs};
  World* const world = &node->world();
  auto result =
      co_await node->data(shard).coordinator().changes(std::move(command), std::move(options));
  page->ended_us = world->now_us();
  page->result.emplace(std::move(result));
}

void FeedReader::ask(SimCluster& cluster) {
  SimNode& node = cluster[random_.below(cluster.size())];
  if (!node.is_ready() || node.clock().is_frozen()) return;
  const auto state = node.state();
  if (state->tables.empty()) return;
  const replication::TableInfo& table = *state->tables.begin()->second;
  if (!table.change_log) return;
  const bool is_as_old_as_table = *table.change_log < table.incarnation;
  if (!first_us_) {
    first_us_ = is_as_old_as_table ? 0 : cluster.world().now_us();
    since_us_ = is_as_old_as_table ? 0 : node.data().coordinator().now_us();
  }
  replication::ChangesCommand command;
  command.incarnation = table.incarnation;
  command.after = place_;
  command.since_us = since_us_;
  command.changes_max = static_cast<uint32_t>(1 + random_.below(random_.one_in(2) ? 5 : 100));
  if (key_) {
    const std::string text = key_text(*key_);
    command.partition.emplace(partitioner::position_of(text), text);
  }
  page_ = std::make_shared<Page>();
  page_->begun_us = cluster.world().now_us();
  page_->incarnation = table.incarnation;
  const auto shard = static_cast<uint32_t>(random_.below(node.shard_count()));
  node.spawn(read_page(&node, shard, std::move(command), page_));
}

std::string FeedReader::step(SimCluster& cluster, const History& history) {
  if (page_ != nullptr) {
    if (page_->result) {
      const std::shared_ptr<Page> page = std::exchange(page_, nullptr);
      if (auto wrong = take(*page, history); !wrong.empty()) return "the change feed: " + wrong;
    } else if (cluster.world().now_us() > page_->begun_us + kLostUs) {
      page_.reset();  // with its node
    }
  }
  if (page_ == nullptr) ask(cluster);
  return "";
}

std::string FeedReader::finish(SimCluster& cluster, const History& history) {
  complete_ = false;
  exhausted_us_.reset();
  for (int pages = 0; pages < 20'000 && !complete_; ++pages) {
    if (auto wrong = step(cluster, history); !wrong.empty()) return wrong;
    const auto page = page_;
    cluster.world().run_until([&] { return page == nullptr || page->result.has_value(); },
                              kLostUs + 1'000'000);
  }
  return complete_ ? "" : "the change feed has no end";
}

std::string FeedReader::take(const Page& page, const History& history) {
  if (!*page.result) {
    const Error& error = page.result->error();
    if (error.code == ErrorCode::kCorruption) return error.message;
    if (error.code == ErrorCode::kInvalid && !place_.empty()) {
      place_.clear();  // truncated: the new table's from its beginning
      since_us_ = 0;
      exhausted_us_.reset();
    }
    return "";
  }
  const replication::ChangesPage& found = **page.result;
  if (found.next.empty()) return "a page without a place";
  std::set<std::pair<Bytes, std::optional<Bytes>>> seen;
  for (const replication::Change& change : found.changes) {
    if (!seen.emplace(change.partition_key, change.clustering_key).second)
      return "a place twice in one page";
    if (auto wrong = take_change(change, page.ended_us); !wrong.empty()) return wrong;
  }
  changes_ += found.changes.size();
  place_ = found.next;
  if (page.incarnation != incarnation_) exhausted_us_.reset();
  incarnation_ = page.incarnation;
  if (found.must_scan) {
    if (!found.changes.empty()) return "changes although all is to be read";
    scanned_us_ = page.ended_us;
  }
  if (!found.exhausted) {
    exhausted_us_.reset();
    return "";
  }
  const auto before_us = std::exchange(exhausted_us_, page.begun_us);
  if (!before_us) return "";
  complete_ = true;
  return check(history, *before_us - kSettledUs);
}

std::string FeedReader::take_change(const replication::Change& change, base::MonotonicUs at_us) {
  for (int key = 0; key < kKeys; ++key) {
    if (change.partition_key != key_text(key)) continue;
    if (key_ && key != *key_) return "a change of another partition";
    if (change.position != partitioner::position_of(change.partition_key))
      return "a change of no position";
    auto& rows = delivered_us_[static_cast<size_t>(key)];
    if (!change.clustering_key) {
      rows[kStatic] = at_us;
      return "";
    }
    for (int row = 0; row < kRows; ++row) {
      if (*change.clustering_key != clustering_of(row)) continue;
      rows[static_cast<size_t>(row)] = at_us;
      return "";
    }
  }
  return "a change of what was never written";
}

/// It wrote values that nobody deletes and that do not end.
bool FeedReader::must_be_known(const History& history, const Operation& write, int row) const {
  const auto& effects = write.effects[static_cast<size_t>(row)];
  if (std::find(effects.begin(), effects.end(), Operation::Effect::kValue) == effects.end())
    return false;
  for (const auto& other : history.operations()) {
    if (!other->is_write || other->key != write.key || other->timestamp < write.timestamp) continue;
    const auto& later = other->effects[static_cast<size_t>(row)];
    if (std::find(later.begin(), later.end(), Operation::Effect::kDelete) != later.end())
      return false;
  }
  return true;
}

std::string FeedReader::check(const History& history, base::MonotonicUs known_by_us) const {
  std::map<int64_t, const Operation*> writes;  // by timestamp
  const auto check_row = [&](const Operation& write, int row, base::MonotonicUs known_us) {
    if (write.expiry_s != 0 || write.incarnation != incarnation_) return std::string();
    if ((key_ && write.key != *key_) || write.begun_us < *first_us_) return std::string();
    if (known_us > known_by_us || known_us <= scanned_us_) return std::string();
    const base::MonotonicUs at_us =
        delivered_us_[static_cast<size_t>(write.key)][static_cast<size_t>(row)];
    if (at_us >= write.begun_us || !must_be_known(history, write, row)) return std::string();
    return fmt::format(
        "the write {} of {} row {}, begun {}, known at {}, did not come in a page asked for after "
        "{}; the row came last at {}",
        write.timestamp, key_text(write.key), row, write.begun_us, known_us, known_by_us, at_us);
  };
  for (const auto& write : history.operations()) {
    if (!write->is_write) continue;
    writes[write->timestamp] = write.get();
    if (write->state != Operation::State::kOk) continue;
    for (int row = 0; row <= kRows; ++row)
      if (auto wrong = check_row(*write, row, write->ended_us); !wrong.empty()) return wrong;
  }
  for (const auto& read : history.operations()) {
    if (read->is_write || read->state != Operation::State::kOk ||
        read->level == ConsistencyLevel::kOne)
      continue;
    for (const PartitionOf<int64_t>& partition : read->seen) {
      for (int row = 0; row <= kRows; ++row) {
        for (const int64_t timestamp : partition[static_cast<size_t>(row)]) {
          const auto write = writes.find(timestamp);
          if (write == writes.end()) continue;
          const Operation& written = *write->second;
          // What began before a scan it may have seen, unless it was acknowledged later: see above.
          const bool is_later =
              written.state == Operation::State::kOk && written.ended_us > scanned_us_;
          if (written.begun_us <= scanned_us_ && !is_later) continue;
          if (auto wrong = check_row(written, row, read->ended_us); !wrong.empty())
            return wrong + ", and was read";
        }
      }
    }
  }
  return "";
}

}  // namespace tetrad::simulation
