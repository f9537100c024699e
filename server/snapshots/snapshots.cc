// SPDX-License-Identifier: Apache-2.0
// How a snapshot of tables of this node is taken (`take`):
//
// 1. take() refuses a second order while one is being taken, remembers the metadata of this moment,
//    and lets the folder make a draft, `.new-<tag>` (keep() follows).
// 2. keep() asks each store, on the store's own thread, to put hard links to the files of these
//    tables into the draft.
// 3. Once all stores have answered, finish() looks whether the tables still have the ranges and
//    epochs that they had in step 1. The manifest says which ranges the files belong to; after a
//    split or a move it would be wrong, so the order ends with kConflict.
// 4. The pool writes the manifest and renames the draft to its final name. Only this makes the
//    snapshot visible.
// 5. end() reports. After an error the draft is removed first, so nothing of the snapshot stays.
//
// All members are used on the first shard's thread only. Work that blocks runs on one lane of the
// pool, so two jobs never work on the folder at once.
#include "server/snapshots/snapshots.h"

#include <nlohmann/json.hpp>

#include "cql/schema/schema_snapshot.h"
#include "replication/meta/state_names.h"

namespace tetrad::server {

using nlohmann::json;

namespace {

// "SNAP": any number that no other user of this duty has.
constexpr uint32_t kSnapshotLane = 0x534E4150;  // of the pool
constexpr int64_t kLookAgainUs = 5'000'000;     // for those that are over
constexpr int kStoreFormat = 2;                 // rocks_database.cc

// [token, hash], the hash as 16 hexadecimal digits.
json position_of(RingPosition position) {
  return json::array({position.token, fmt::format("{:016x}", position.hash)});
}

json tablet_json(const partitioner::Tablet& tablet) {
  json replicas = json::array();
  for (const auto& replica : tablet.replicas)
    replicas.push_back({{"host_id", replica.host.to_string()}, {"store", replica.store}});
  return {{"id", tablet.id.value},
          {"start", position_of(tablet.range.start)},
          {"end", position_of(tablet.range.end)},
          {"epoch", tablet.epoch.value},
          {"stage", replication::name_of(tablet.stage)},
          {"replicas", replicas}};
}

json table_json(const replication::TableInfo& table) {
  json tablets = json::array();
  for (const auto& tablet : table.tablets.tablets()) tablets.push_back(tablet_json(tablet));
  return {{"keyspace", table.keyspace},
          {"name", table.name},
          {"id", table.id.to_string()},
          {"incarnation", table.incarnation.value},
          {"partitions", tablets}};
}

json files_json(const storage::KeptFiles& kept) {
  json files = json::array();
  for (const storage::KeptFile& file : kept.files) {
    json tables = json::array();
    for (const TableIncarnation table : file.tables) tables.push_back(table.value);
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"level", file.level},
                     {"smallest_key", base::to_hex(file.smallest_key)},
                     {"largest_key", base::to_hex(file.largest_key)},
                     {"smallest_sequence", file.smallest_sequence},
                     {"largest_sequence", file.largest_sequence},
                     {"tables", tables}});
  }
  return files;
}

/// The keyspaces' objects as the metadata has them: each key has the name of its keyspace.
json schema_json(const replication::MetaState& state, const std::set<std::string>& keyspaces) {
  json out = json::object();
  for (const auto& [key, text] : state.schema_objects) {
    const size_t kind = key.find('/');
    // Keys are "kind/keyspace/…" or "kind/keyspace"; roles and others without a keyspace stay out.
    if (kind == std::string::npos || !cql::is_of_keyspace(key)) continue;
    const size_t end = std::min(key.find('/', kind + 1), key.size());
    if (keyspaces.contains(key.substr(kind + 1, end - kind - 1))) out[key] = text;
  }
  return out;
}

/// Whether the node has still what it had: the same contents in the same places.
bool is_as_before(const replication::TableInfo& before, const replication::TableInfo* now) {
  if (now == nullptr || now->incarnation != before.incarnation) return false;
  // Replicas need no look: each stage of their change raises the tablet's epoch.
  const auto place = [](const partitioner::Tablet& tablet) {
    return std::tie(tablet.range, tablet.epoch);
  };
  return std::ranges::equal(before.tablets.tablets(), now->tablets.tablets(), {}, place, place);
}

}  // namespace

/// One that is being taken.
struct Snapshots::Taking {
  SnapshotOrder order;
  Done done;
  replication::MetaSnapshot state;
  int64_t created_ms = 0;
  size_t left = 0;
  std::vector<storage::KeptFiles> kept;  // by store
  std::optional<Error> error;

  /// Once all stores have kept theirs; on any thread.
  json manifest(HostId self, const std::string& version) const;
};

Snapshots::Snapshots(Parts parts)
    : parts_(std::move(parts)), folder_(std::make_shared<SnapshotFolder>(parts_.data_directory)) {}

Snapshots::~Snapshots() {
  *alive_ = false;
  if (timer_ != 0) reactor().cancel(timer_);
}

// `result` is shared by both closures: the pool's thread writes it, the loop reads it after the
// job. The job holds the folder, not `this`, because the object may end while it runs.
template <class T>
void Snapshots::run(std::function<Result<T>(SnapshotFolder&)> work,
                    std::function<void(Result<T>)> done) {
  const auto result =
      std::make_shared<Result<T>>(fail(ErrorCode::kIo, "work on snapshots was not done"));
  parts_.pool.run(
      reactor(), base::IoDuty::kMaintenance, kSnapshotLane,
      [folder = folder_, result, work = std::move(work)] {
        try {
          *result = work(*folder);
        } catch (const std::exception& error) {  // libraries throw, mostly for want of memory
          *result = fail(ErrorCode::kIo, "work on snapshots failed: {}", error.what());
        }
      },
      [result, alive = alive_, done = std::move(done)] {
        if (*alive) done(std::move(*result));
      });
}

void Snapshots::start() {
  run<size_t>(
      [](SnapshotFolder& folder) -> Result<size_t> {
        folder.clean();
        return size_t{0};
      },
      [](const Result<size_t>&) {});
  watch_times();
}

void Snapshots::watch_times() {
  const int64_t now_ms = reactor().wall_time_us() / 1000;
  // The next look is scheduled only when this one is over, so looks never pile up on a slow disk.
  run<size_t>([now_ms](SnapshotFolder& folder) { return folder.expire(now_ms); },
              [this](const Result<size_t>& expired) {
                if (!expired)
                  parts_.logger.warn("an expired snapshot stays error={}", expired.error().message);
                else if (*expired != 0)
                  parts_.logger.info("snapshots expired count={}", *expired);
                timer_ = reactor().call_at(reactor().now_us() + kLookAgainUs, [this] {
                  timer_ = 0;
                  watch_times();
                });
              });
}

void Snapshots::take(SnapshotOrder order, Done done) {
  // One at a time: each makes every store link files, and flush if the order says so.
  if (is_taking_) return done(fail(ErrorCode::kConflict, "another snapshot is being taken"));
  is_taking_ = true;
  const auto taking = std::make_shared<Taking>();
  taking->order = std::move(order);
  taking->done = std::move(done);
  taking->state = parts_.meta();
  taking->created_ms = reactor().wall_time_us() / 1000;
  run<void>([tag = taking->order.tag](SnapshotFolder& folder) { return folder.begin(tag); },
            [this, taking](Result<void> begun) {
              if (begun) return keep(taking);
              is_taking_ = false;
              taking->done(std::move(begun));
            });
}

void Snapshots::keep(const std::shared_ptr<Taking>& taking) {
  taking->left = parts_.stores.size();
  taking->kept.resize(parts_.stores.size());
  std::vector<TableIncarnation> tables;
  for (const auto& table : taking->order.tables) tables.push_back(table->incarnation);
  for (uint32_t number = 0; number < parts_.stores.size(); ++number) {
    storage::KeepCommand command{tables, folder_->draft_of(taking->order.tag, number),
                                 taking->order.flushes};
    const Store& of = parts_.stores[number];
    // There and back: the store answers on its own thread, and the answer is posted to the first
    // shard. `taking` and `*alive` are looked at only there, so they need no lock.
    of.reactor.post_from_any_thread([this, alive = alive_, taking, number, &store = of.store,
                                     &main = reactor(), command = std::move(command)]() mutable {
      store.keep_files(std::move(command), [this, alive, taking, number,
                                            &main](Result<storage::KeptFiles> kept) {
        main.post_from_any_thread([this, alive, taking, number, kept = std::move(kept)]() mutable {
          if (!*alive) return;
          if (kept)
            taking->kept[number] = std::move(*kept);
          else
            taking->error = std::move(kept.error());
          // Also after an error all stores are waited for: a store that still links files into the
          // draft would undo its removal.
          if (--taking->left == 0) finish(taking);
        });
      });
    });
  }
}

json Snapshots::Taking::manifest(HostId self, const std::string& version) const {
  std::set<std::string> keyspaces;
  json tables = json::array(), stores = json::array();
  for (const auto& table : order.tables) {
    keyspaces.insert(table->keyspace);
    tables.push_back(table_json(*table));
  }
  for (uint32_t number = 0; number < kept.size(); ++number) {
    stores.push_back({{"number", number},
                      {"format", kStoreFormat},
                      {"comparator", kept[number].comparator},
                      {"files", files_json(kept[number])}});
  }
  // A node that has not joined yet has no entry; then these fields are empty.
  const replication::NodeInfo own =
      state->node(self) == nullptr ? replication::NodeInfo() : *state->node(self);
  json out = {{"format", kSnapshotFormat},
              {"tag", order.tag},
              {"created_ms", created_ms},
              {"flushed", order.flushes},
              {"cluster",
               {{"id", state->cluster_id.to_string()},
                {"name", state->cluster_name},
                {"metadata_index", state->applied.value},
                {"schema_version", state->schema_version_uuid().to_string()}}},
              {"node",
               {{"host_id", self.to_string()},
                {"address", own.address},
                {"data_center", own.data_center},
                {"rack", own.rack},
                {"tokens", own.tokens},
                {"stores", kept.size()},
                {"version", version}}},
              {"schema", schema_json(*state, keyspaces)},
              {"tables", tables},
              {"stores", stores}};
  if (order.ttl_s) out["expires_ms"] = created_ms + *order.ttl_s * 1000;
  return out;
}

void Snapshots::finish(const std::shared_ptr<Taking>& taking) {
  if (taking->error) return end(taking, std::unexpected(std::move(*taking->error)));
  const replication::MetaSnapshot now = parts_.meta();
  for (const auto& table : taking->order.tables) {
    if (is_as_before(*table, now->table(table->id))) continue;
    return end(taking, fail(ErrorCode::kConflict,
                            "{}.{} has changed while its snapshot was taken: try again",
                            table->keyspace, table->name));
  }
  // Off the loop: there may be many ranges and files.
  run<void>(
      [taking = std::shared_ptr<const Taking>(taking), self = parts_.self(),
       version = parts_.version](SnapshotFolder& folder) {
        return folder.finish(taking->order.tag, taking->manifest(self, version));
      },
      [this, taking](Result<void> finished) { end(taking, std::move(finished)); });
}

void Snapshots::end(const std::shared_ptr<Taking>& taking, Result<void> result) {
  if (result) {
    is_taking_ = false;
    parts_.logger.info("snapshot taken tag={} tables={}", taking->order.tag,
                       taking->order.tables.size());
    return taking->done({});
  }
  run<void>(
      [tag = taking->order.tag](SnapshotFolder& folder) -> Result<void> {
        folder.abandon(tag);
        return {};
      },
      [this, taking, result = std::move(result)](const Result<void>&) {
        is_taking_ = false;
        parts_.logger.warn("snapshot not taken tag={} error={}", taking->order.tag,
                           result.error().message);
        taking->done(result);
      });
}

void Snapshots::list(Listed done) {
  run<SnapshotList>([](SnapshotFolder& folder) { return folder.list(); },
                    [this, done = std::move(done)](Result<SnapshotList> found) {
                      if (found)
                        for (const std::string& sentence : found->unreadable)
                          parts_.logger.warn("a snapshot is left out of the list: {}", sentence);
                      done(std::move(found));
                    });
}

void Snapshots::clear(std::string tag, std::vector<std::string> keyspaces, Cleared done) {
  run<size_t>([tag = std::move(tag), keyspaces = std::move(keyspaces)](
                  SnapshotFolder& folder) { return folder.clear(tag, keyspaces); },
              std::move(done));
}

}  // namespace tetrad::server
