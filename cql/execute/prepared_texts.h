// SPDX-License-Identifier: Apache-2.0
// What was prepared on a node, for its shards: drivers prepare a statement once per node and
// execute it on any connection. A shard that has not got a statement of its own looks here, and
// prepares it from the text.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "cql/protocol/result_metadata.h"

namespace tetrad::cql {

/// A statement as system.prepared_statements shows it.
struct ListedStatement {
  Bytes id;
  std::string keyspace;  // "": none
  std::string text;      // its beginning, up to a password
};

/// What PREPARE has told clients of a statement.
struct AnnouncedColumns {
  MetadataId result{}, markers{};  // as it was sent last
  /// An earlier PREPARE announced other columns of rows. Before v5 a client cannot say which ones it
  /// knows, and may read rows without metadata by those of its first PREPARE.
  bool varied = false;
  friend bool operator==(const AnnouncedColumns&, const AnnouncedColumns&) = default;
};

/// Thread-safe. Bounded: beyond its limits the statement that was prepared or looked for longest
/// ago goes.
class PreparedTexts {
 public:
  /// What it takes to prepare the statement again.
  struct Entry {
    std::string keyspace, text;
    AnnouncedColumns announced;
  };
  PreparedTexts(size_t count_max, uint64_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  /// Also of an id that is there already: its entry is replaced, and counts as used.
  void put(BytesView id, Entry entry);
  /// Counts as a use.
  std::optional<Entry> find(BytesView id);
  /// Of `count_max` at most, those that were used last first. No use.
  std::vector<std::pair<Bytes, std::shared_ptr<const Entry>>> list(size_t count_max);
  size_t count();

 private:
  /// An entry in the list by use.
  struct Kept {
    Bytes id;
    std::shared_ptr<const Entry> entry;  // so that list() copies no text under the lock
    uint64_t bytes() const { return id.size() + entry->keyspace.size() + entry->text.size() + 256; }
  };
  const size_t count_max_;
  const uint64_t bytes_max_;
  std::mutex mutex_;        // guards what follows
  std::list<Kept> by_use_;  // front: used last
  std::unordered_map<Bytes, std::list<Kept>::iterator> by_id_;
  uint64_t bytes_ = 0;
};

}  // namespace tetrad::cql
