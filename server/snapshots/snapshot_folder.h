// SPDX-License-Identifier: Apache-2.0
// Snapshots as they lie on the disk of a node. All of it blocks; one thread at a time.
//
//   <data directory>/snapshots/<tag>/manifest.json    written last but one: before the rename
//   <data directory>/snapshots/<tag>/store-<n>/*.sst  hard links to files of that store
//   <data directory>/snapshots/.new-<tag>/            one that is being made; goes at the next start
//   <data directory>/snapshots/.gone-<tag>/           one that is being removed; as well
//
//   manifest.json := { "format": 1, "tag", "created_ms", "expires_ms"?, "flushed",
//     "cluster": { "id", "name", "metadata_index", "schema_version" },
//     "node": { "host_id", "address", "data_center", "rack", "tokens", "stores", "version" },
//     "schema": { "<key in the metadata>": "<text>" … },        of the keyspaces, with roles of none
//     "tables": [ { "keyspace", "name", "id", "incarnation",
//                   "partitions": [ { "id", "start": [token, hash], "end": [token, hash], "epoch",
//                                     "stage", "replicas": [ { "host_id", "store" } … ] } … ] } … ],
//     "stores": [ { "number", "format", "comparator",
//                   "files": [ { "name", "bytes", "level", "smallest_key", "largest_key",
//                                "smallest_sequence", "largest_sequence", "tables": [incarnation…]
//                              } … ] } … ] }                    keys and hashes in hexadecimal digits
//
// A snapshot of a table has, of each store of the node, the files in which there is something of the
// table: all it had then, of what the node is a replica of, and what other tables have in those
// files. Not in it: indexes, which are built anew of the rows; the change log; conditional statements
// that were under way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace tetrad::server {

inline constexpr int kSnapshotFormat = 1;

/// A table in a snapshot, as `tetractl listsnapshots` shows it.
struct SnapshotRow {
  std::string tag, keyspace, table;
  uint64_t bytes = 0;      // of all files in which there is something of the table
  uint64_t own_bytes = 0;  // of those that the store does not have any more
  int64_t created_ms = 0;
  std::optional<int64_t> expires_ms;
};

/// All snapshots of a node.
struct SnapshotList {
  std::vector<SnapshotRow> rows;  // by tag, keyspace, table
  /// What they cost: tables and snapshots share files, which count once here. And of those alone
  /// that do not expire.
  uint64_t own_bytes = 0, lasting_own_bytes = 0;
  std::vector<std::string> unreadable;  // a sentence for each that was left out
};

/// Letters, digits and "_-." but not in front: a tag is the name of a folder.
bool is_snapshot_tag(std::string_view tag);

/// The folders of snapshots under the data directory. No state but the path. All of it blocks; on
/// any thread, one at a time. Always: a snapshot has its final name only when its manifest is
/// written.
class SnapshotFolder {
 public:
  explicit SnapshotFolder(std::string data_directory);

  /// Removes what a process that has ended left half done.
  void clean();
  /// Makes the draft. Errors: kConflict: there is one of this tag; kIo.
  Result<void> begin(const std::string& tag);
  /// Where the draft keeps files of a store; the folder is not there yet.
  std::string draft_of(const std::string& tag, uint32_t store) const;
  /// From now on it is there, even if the power goes. Errors: kIo.
  Result<void> finish(const std::string& tag, const nlohmann::json& manifest);
  void abandon(const std::string& tag);
  /// A folder without a manifest that reads is left out. Errors: kIo.
  Result<SnapshotList> list() const;
  /// Tables of these keyspaces go, all without any; of one snapshot, or with an empty tag of all.
  /// The number of snapshots that had such. Errors: kIo.
  Result<size_t> clear(const std::string& tag, const std::vector<std::string>& keyspaces);
  /// Those whose time is over.
  Result<size_t> expire(int64_t now_ms);

 private:
  std::string path_of(const std::string& tag) const { return directory_ + "/" + tag; }
  std::vector<std::string> tags() const;
  Result<nlohmann::json> manifest_of(const std::string& tag) const;
  Result<void> write_manifest(const std::string& folder, const nlohmann::json& manifest) const;
  Result<void> remove(const std::string& tag);
  Result<bool> clear_keyspaces(const std::string& tag, const std::vector<std::string>& keyspaces);

  const std::string data_directory_, directory_;
};

}  // namespace tetrad::server
