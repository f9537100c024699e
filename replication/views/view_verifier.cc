// SPDX-License-Identifier: Apache-2.0
// Compares a view with its base table on live data (tetractl verify view):
//
//   1. Every base row is read at QUORUM, and the view at the place where its image should be.
//   2. Every row of the view is read, and the base row that it comes from: a view may show what it
//      should not.
//   3. A row that differs is looked at again a few times, since tasks may be under way; what still
//      differs is counted, and named up to kSentencesMax.
//   4. To mend is to leave a task with the base row's members (rule 24): the executors make the
//      image anew.
#include "replication/views/view_verifier.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/bytes.h"
#include "base/sleep.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/views/view_image_plan.h"
#include "replication/views/view_messages.h"

namespace tetrad::replication {

using storage::ViewOrigin;
using storage::ViewRow;
using storage::ViewStamp;

namespace {

// Looks at one row, half a second apart: views are that far behind at most when all is well.
constexpr int64_t kReadUs = 10'000'000, kAgainUs = 500'000;
constexpr int kLooks = 6;
constexpr uint64_t kPageBytes = 256 << 10;
constexpr size_t kSentencesMax = 100, kShownBytes = 64;
constexpr const char* kStopped = "the comparison was stopped";

/// Live cells of a row by column and path; with its marker, "" at no column. Empty: it is not
/// there.
using Shown = std::map<std::pair<uint32_t, Bytes>, Bytes>;

Shown shown_of(const storage::RowRecord& record, int64_t now_s) {
  Shown shown;
  for (const storage::Cell& cell : record.cells)
    if (cell.kind == storage::CellKind::kValue && cell.live_at(now_s))
      shown[{cell.column_id, Bytes(cell.path)}] = cell.value;
  // The marker of a row shows it even where all columns are null.
  if (record.liveness.live_at(now_s)) shown[{~uint32_t{0}, {}}] = "";
  // By itself the key cell shows nothing.
  if (shown.size() == 1 && shown.begin()->first.first == storage::kKeyCellColumnId) shown.clear();
  return shown;
}

Result<Shown> shown_of(BytesView record, int64_t now_s) {
  if (record.empty()) return Shown();
  TETRAD_TRY(const storage::RowRecord row, storage::decode_row_record(record));
  return shown_of(row, now_s);
}

std::string hex(BytesView bytes) {
  return "0x" + base::to_hex(bytes.substr(0, kShownBytes)) +
         (bytes.size() > kShownBytes ? "..." : "");
}

/// One more sentence for the operator, while there are not too many.
void tell(std::vector<std::string>& sentences, const ViewRow& row, std::string_view what) {
  if (sentences.size() >= kSentencesMax) return;
  sentences.push_back(
      fmt::format("base row {} {}: {}", hex(row.partition_key), hex(row.clustering_key), what));
}

/// How much of the ring lies before the end of the page.
double share_of(const storage::ReadResult& page) {
  if (page.exhausted) return 1;
  const auto below = static_cast<double>(page.complete_up_to.position.token);
  return std::clamp(std::ldexp(below, -64) + 0.5, 0.0, 1.0);
}

Bytes key_cell_of(BytesView record) {
  const auto row = storage::decode_row_record(record);
  if (!row) return {};
  for (const storage::Cell& cell : row->cells)
    if (cell.column_id == storage::kKeyCellColumnId) return Bytes(cell.value);
  return {};
}

}  // namespace

struct ViewVerifier::Compared {
  enum class What : uint8_t { kSame, kMissing, kDiffers, kExtra };
  What what = What::kSame;
  storage::ViewNames names;  // that a task should know
};

ViewVerifier::ViewVerifier(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                           const HybridClock& clock, Coordinator& coordinator,
                           storage::Store* store)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      coordinator_(coordinator),
      store_(store) {}

// One comparison at a time on a node.
Result<void> ViewVerifier::start(const std::string& keyspace, const std::string& view, bool mends) {
  if (progress_.running) {
    if (progress_.keyspace == keyspace && progress_.view == view && mends_ == mends) return {};
    return fail(
        ErrorCode::kConflict,
        "this node is comparing the view {0}.{1} already, {2:.0f} % of it is done; `tetractl "
        "verify {3}view {0} {1}` follows it, `tetractl verify --stop` ends it",
        progress_.keyspace, progress_.view, 50 * (progress_.base_share + progress_.view_share),
        mends_ ? "--mend " : "");
  }
  const MetaSnapshot state = meta_.snapshot();
  for (const auto& [id, table] : state->tables) {
    if (table->keyspace != keyspace || table->name != view || store_ == nullptr) continue;
    for (const TableIncarnation base : store_->views().bases()) {
      const Target target{base, table->incarnation, mends};
      if (maker_of(target) == nullptr) continue;
      progress_ = {};
      progress_.keyspace = keyspace;
      progress_.view = view;
      progress_.running = true;
      mends_ = mends;
      stops_ = false;
      tasks_.spawn(run(target));
      return {};
    }
  }
  return fail(ErrorCode::kNotFound, "there is no materialized view {}.{}", keyspace, view);
}

bool ViewVerifier::stop() {
  if (progress_.running) stops_ = true;
  return progress_.running;
}

storage::ViewMakerPtr ViewVerifier::maker_of(Target target) const {
  const auto makers = store_->views().makers(target.base);
  if (makers == nullptr) return nullptr;
  const auto found = std::ranges::find(*makers, target.view, &storage::ViewMaker::incarnation);
  return found == makers->end() ? nullptr : *found;
}

Task<void> ViewVerifier::run(Target target) {
  Result<void> compared = co_await compare_base(target);
  if (compared) compared = co_await compare_view(target);
  if (!compared) progress_.failed.push_back(compared.error().message);
  progress_.running = false;
}

Task<Result<storage::ReadResult>> ViewVerifier::read(storage::ReadCommand command) {
  command.schema_version = meta_.snapshot()->schema_version;
  command.wants_static = false;
  command.now_s = now_s();
  ReadOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {reactor_.now_us() + kReadUs};
  options.background = true;
  auto result = co_await coordinator_.read(std::move(command), options);
  co_return result;
}

Task<Result<Bytes>> ViewVerifier::read_row(TableIncarnation table, RingPosition position,
                                           Bytes partition_key, Bytes clustering_key) {
  storage::ReadCommand command;
  command.incarnation = table;
  command.position = position;
  command.partition_key = std::move(partition_key);
  command.rows = {clustering_key};
  TETRAD_CO_TRY(const storage::ReadResult found, co_await read(std::move(command)));
  for (const storage::PartitionData& partition : found.partitions)
    for (const storage::RowData& row : partition.rows)
      if (row.clustering_key == clustering_key) co_return Bytes(row.record);
  co_return Bytes();
}

Task<Result<void>> ViewVerifier::compare_base(Target target) {
  storage::ReadCommand command;
  command.incarnation = target.base;
  command.is_range = true;
  command.bytes_limit = kPageBytes;
  while (true) {
    TETRAD_CO_TRY(const storage::ReadResult page, co_await read(command));
    for (const storage::PartitionData& partition : page.partitions) {
      for (const storage::RowData& row : partition.rows) {
        if (stops_) co_return fail(ErrorCode::kCancelled, kStopped);
        ViewRow named{target.base, partition.position, Bytes(partition.partition_key),
                      Bytes(row.clustering_key)};
        TETRAD_CO_TRY_VOID(co_await judge(target, std::move(named), std::nullopt));
        ++progress_.base_rows;
      }
    }
    progress_.base_share = share_of(page);
    if (page.exhausted) co_return Result<void>();
    command.resume_after = page.complete_up_to;
  }
}

Task<Result<void>> ViewVerifier::compare_view(Target target) {
  storage::ReadCommand command;
  command.incarnation = target.view;
  command.is_range = true;
  command.bytes_limit = kPageBytes;
  while (true) {
    TETRAD_CO_TRY(const storage::ReadResult page, co_await read(command));
    const storage::ViewMakerPtr maker = maker_of(target);
    if (maker == nullptr) co_return fail(ErrorCode::kNotFound, "the view was dropped");
    for (const storage::PartitionData& partition : page.partitions) {
      for (const storage::RowData& row : partition.rows) {
        if (stops_) co_return fail(ErrorCode::kCancelled, kStopped);
        ++progress_.view_rows;
        const Bytes key_cell = key_cell_of(row.record);
        auto origin = maker->origin_of({partition.partition_key, row.clustering_key, key_cell});
        if (!origin) co_return fail(ErrorCode::kCorruption, "a row of the view has no base row");
        ViewRow named{target.base, origin->position, origin->partition_key, origin->clustering_key};
        // Of the key alone, so one look is enough. No image is made there, so none mends it.
        if (!maker->place_of({named.partition_key, named.clustering_key, origin->key_cell},
                             origin->key_value)) {
          TETRAD_CO_TRY(const Shown shown, shown_of(BytesView(row.record), now_s()));
          if (shown.empty()) continue;
          ++progress_.extra;
          tell(progress_.differences, named, "the view shows it, and its conditions leave it out");
          continue;
        }
        TETRAD_CO_TRY_VOID(co_await judge(target, std::move(named), std::move(origin)));
      }
    }
    progress_.view_share = share_of(page);
    if (page.exhausted) co_return Result<void>();
    command.resume_after = page.complete_up_to;
  }
}

/// Of one base row: without `extra` what the view shows at its place, with it whether the view may
/// have what it was found under.
Task<Result<ViewVerifier::Compared>> ViewVerifier::compare_row(Target target, ViewRow row,
                                                               std::optional<ViewOrigin> extra) {
  const storage::ViewMakerPtr maker = maker_of(target);
  if (maker == nullptr) co_return fail(ErrorCode::kNotFound, "the view was dropped");
  TETRAD_CO_TRY(const Bytes record,
                co_await read_row(row.base, row.position, row.partition_key, row.clustering_key));
  const int64_t now = now_s();
  TETRAD_CO_TRY(const Bytes values, shown_values(record, now));
  storage::RowRecord base_row;
  if (!values.empty()) {
    TETRAD_CO_TRY(base_row, storage::decode_row_record(values));
  }
  const auto current = storage::view_name_of(*maker, base_row);
  Compared compared;
  storage::ViewName name;
  if (extra)
    name = {extra->key_value, extra->key_cell};
  else if (current)
    name = *current;
  else
    co_return compared;
  const auto place =
      maker->place_of({row.partition_key, row.clustering_key, name.key_cell}, name.key_value);
  if (!place) co_return compared;
  Shown expected;
  // The stamp does not matter here: values are compared, not times.
  if (current && current->key_value == name.key_value) {
    const storage::RowRecord image =
        storage::view_image(*maker, base_row, *current, place->key_cell, ViewStamp{2});
    expected = shown_of(image, now);
  }
  TETRAD_CO_TRY(const Bytes there, co_await read_row(target.view, place->position,
                                                     place->partition_key, place->clustering_key));
  TETRAD_CO_TRY(const Shown shown, shown_of(there, now));
  if (shown == expected) co_return compared;
  compared.names.insert(name);
  compared.what = shown.empty()      ? Compared::What::kMissing
                  : expected.empty() ? Compared::What::kExtra
                                     : Compared::What::kDiffers;
  co_return compared;
}

Task<Result<void>> ViewVerifier::judge(Target target, ViewRow row,
                                       std::optional<ViewOrigin> extra) {
  Compared compared;
  // Where much differs nobody waits for each of it.
  const int looks = progress_.differences.size() < kSentencesMax ? kLooks : 1;
  for (int look = 0; look < looks; ++look) {
    if (look != 0) co_await base::sleep_for(reactor_, kAgainUs);
    TETRAD_CO_TRY(compared, co_await compare_row(target, row, extra));
    if (compared.what == Compared::What::kSame) co_return Result<void>();
  }
  // What the base has was counted when the base was read.
  if (extra && compared.what != Compared::What::kExtra) co_return Result<void>();
  if (!target.mends && progress_.differences.size() >= kSentencesMax)
    co_return fail(ErrorCode::kLimit, "more than {} rows differ", kSentencesMax);
  const bool missing = compared.what == Compared::What::kMissing;
  const bool is_extra = compared.what == Compared::What::kExtra;
  ++(missing ? progress_.missing : is_extra ? progress_.extra : progress_.differing);
  tell(progress_.differences, row,
       missing    ? "the view does not show it"
       : is_extra ? "the view shows it, and should not"
                  : "the view shows other values");
  if (!target.mends) co_return Result<void>();
  TETRAD_CO_TRY_VOID(co_await mend(target, std::move(row), std::move(compared.names)));
  ++progress_.mended;
  co_return Result<void>();
}

Task<Result<void>> ViewVerifier::mend(Target target, ViewRow row, storage::ViewNames names) {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* const table = state->table(row.base);
  if (table == nullptr) co_return fail(ErrorCode::kNotFound, "the base table was dropped");
  const Bytes task = encode_view_settlement({row, {}, {{target.view, std::move(names)}}, {}});
  const std::vector<StoreAddress> members = read_set(table->tablets.find(row.position));
  // Any one member is enough; all of them are quicker.
  size_t taken = 0;
  for (const StoreAddress& member : members) {
    const base::Deadline deadline{reactor_.now_us() + kReadUs};
    const Result<Bytes> reply =
        co_await rpc_.ask(member.host, member.store, Verb::kViewMend, task, deadline);
    taken += reply ? 1 : 0;
  }
  if (taken > 0) co_return Result<void>();
  co_return fail(ErrorCode::kUnavailable, "no member of the base row has taken a task of it");
}

}  // namespace tetrad::replication
