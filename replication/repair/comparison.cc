// SPDX-License-Identifier: Apache-2.0
// 1. Pages are cut by the first member's rows; the others answer for the same page by digests.
// 2. Of a page whose digests differ all members' rows are looked at. Where clients write, some row
//    differs at any moment: its write is on its way to a member.
// 3. So their cells are looked at again, each time a while later. What differs each time, and has
//    not changed from the last but one time to the last, differs; all else was on its way. Of
//    ranges that are deleted anew all the time a lost one may be passed over.
#include "replication/repair/comparison.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/sleep.h"
#include "replication/replica/replica_messages.h"

namespace tetrad::replication {

using partitioner::Tablet;

namespace {

constexpr uint64_t kPageBytes = 256 << 10;
constexpr int64_t kPageUs = 10'000'000;
// Between two looks at a page that differs, in order: 3 s in all, longer than a write may take.
constexpr int64_t kLookAgainUs[] = {20'000, 200'000, 800'000, 2'000'000};
constexpr uint64_t kDifferingLookedAt = 20;  // of a tablet; of later pages the digests decide
constexpr size_t kSentencesMax = 100;
// A tablet whose members, range or epoch change is begun anew as it is then.
constexpr int kChangesMax = 10;
constexpr int64_t kChangedUs = 500'000;

bool has_changed(const Error& error) {
  return error.code == ErrorCode::kStaleEpoch || error.code == ErrorCode::kBehind;
}

// Bounded, since a table may differ in each of its tablets, and all goes into one answer.
void say(std::vector<std::string>& sentences, std::string sentence) {
  if (sentences.size() < kSentencesMax) sentences.push_back(std::move(sentence));
}

/// For comparing where answers end: without a clustering key all of the partition is done.
auto order(const storage::ReadPosition& end) {
  return std::tuple(end.position, BytesView(end.partition_key), !end.clustering_key.has_value(),
                    end.clustering_key ? BytesView(*end.clustering_key) : BytesView());
}

/// Of an answer that ends inside a partition: where its deleted ranges are cut. The rest of them is
/// the next page's.
Bytes cut_of(const storage::ReadPosition& end) { return *end.clustering_key + '\0'; }

/// Whether an answer that ends at `end` says something of the place.
bool reaches(const storage::ReadPosition& end, const Comparison::Place& place) {
  if (place.position != end.position) return place.position < end.position;
  if (place.partition_key != end.partition_key) return place.partition_key < end.partition_key;
  if (!end.clustering_key) return true;
  if (!place.at) return false;
  return *place.at <= (place.kind == Comparison::Kind::kRange ? cut_of(end) : *end.clustering_key);
}

/// Visits what an answer has, each with its place and hash: cell by cell, since of a row that is
/// written all the time one cell may have been lost long ago.
template <class Visit>
class Items {
 public:
  explicit Items(Visit visit) : visit_(std::move(visit)) {}

  /// `end`: of the page; null: the answer is the last one.
  void of(const storage::ReadResult& answer, const storage::ReadPosition* end) {
    for (const storage::PartitionData& partition : answer.partitions) {
      const bool is_cut = end != nullptr && end->clustering_key &&
                          end->position == partition.position &&
                          end->partition_key == partition.partition_key;
      const Bytes cut = is_cut ? cut_of(*end) : Bytes();
      place_.position = partition.position;
      place_.partition_key.assign(partition.partition_key);
      place_.at.reset();
      if (!partition.header.empty()) of_record(partition.header);
      for (const storage::RangeTombstoneView& range : partition.range_tombstones) {
        if (is_cut && range.start >= BytesView(cut)) continue;
        place_.at.emplace(is_cut ? std::min(range.end, BytesView(cut)) : range.end);
        writer_.bytes(range.start);
        of_deletion(Comparison::Kind::kRange, range.deletion);
      }
      for (const storage::RowData& row : partition.rows) {
        place_.at.emplace(row.clustering_key);
        of_record(row.record);
      }
    }
  }

 private:
  void of_record(BytesView record) {
    storage::RowRecordReader reader;
    if (!reader.open(record)) return of_damaged(record);
    if (const storage::Liveness& liveness = reader.liveness(); liveness.present()) {
      writer_.i64(liveness.timestamp_us);
      writer_.varint(static_cast<uint64_t>(liveness.ttl_s));
      writer_.i64(liveness.expiry_s);
      visit(Comparison::Kind::kLiveness);
    }
    if (reader.deletion().present()) of_deletion(Comparison::Kind::kDeletion, reader.deletion());
    storage::Cell cell;
    while (reader.next(cell)) {
      place_.column_id = cell.column_id;
      place_.path.assign(cell.path);
      writer_.u8(static_cast<uint8_t>(cell.kind));
      writer_.i64(cell.timestamp_us);
      writer_.varint(static_cast<uint64_t>(cell.ttl_s));
      writer_.i64(cell.expiry_s);
      writer_.raw(cell.value);
      visit(cell.has_path ? Comparison::Kind::kElement : Comparison::Kind::kCell);
    }
    place_.column_id = 0;
    place_.path.clear();
    if (!reader.status()) of_damaged(record);
  }
  void of_deletion(Comparison::Kind kind, const storage::Deletion& deletion) {
    writer_.i64(deletion.timestamp_us);
    writer_.i64(deletion.deletion_time_s);
    visit(kind);
  }
  void of_damaged(BytesView record) {
    writer_.raw(record);
    visit(Comparison::Kind::kDamaged);
  }
  void visit(Comparison::Kind kind) {
    place_.kind = kind;
    visit_(place_, base::xxh3_128(buffer_));
    buffer_.clear();
  }

  Visit visit_;
  Comparison::Place place_;
  Bytes buffer_;
  base::ByteWriter writer_{buffer_};
};

}  // namespace

Comparison::Comparison(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                       const HybridClock& clock, HorizonSlack slack)
    : reactor_(reactor), rpc_(rpc), meta_(meta), clock_(clock), slack_(slack) {}

bool Comparison::start(const std::string& keyspace, const std::string& table) {
  if (progress_.running) return false;
  std::vector<Target> targets;
  const MetaSnapshot state = meta_.snapshot();
  for (const auto& [id, info] : state->tables) {
    if ((!keyspace.empty() && info->keyspace != keyspace) ||
        (!table.empty() && info->name != table))
      continue;
    for (const Tablet& tablet : info->tablets.tablets())
      if (tablet.replicas.size() > 1)
        targets.push_back({info->incarnation, info->keyspace + "." + info->name, tablet});
  }
  progress_ = {};
  progress_.partitions = targets.size();
  progress_.running = true;
  tasks_.spawn(run(std::move(targets)));
  return true;
}

Task<void> Comparison::run(std::vector<Target> targets) {
  // More may come at the end meanwhile.
  for (size_t i = 0; i < targets.size(); ++i) {
    const Target target = targets[i];
    Result<uint64_t> differing = co_await compare(target);
    if (!differing && target.changes < kChangesMax && has_changed(differing.error())) {
      co_await base::sleep_for(reactor_, kChangedUs);
      --progress_.partitions;
      add_as_it_is(target, targets);
      continue;
    }
    ++progress_.compared;
    TETRAD_ASSERT(progress_.compared <= progress_.partitions);
    const std::string name =
        fmt::format("physical partition {} of {}", target.tablet.id.value, target.name);
    if (!differing) {
      say(progress_.failed, fmt::format("{}: {}", name, differing.error().message));
    } else if (*differing != 0) {
      progress_.differing_pages += *differing;
      say(progress_.differing, fmt::format("{}: {} pages", name, *differing));
    }
  }
  TETRAD_ASSERT(progress_.running);
  progress_.running = false;
}

void Comparison::add_as_it_is(const Target& target, std::vector<Target>& targets) {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* const table = state->table(target.incarnation);
  if (table == nullptr) return;  // dropped
  const RingRange& range = target.tablet.range;
  for (const Tablet& tablet : table->tablets.tablets()) {
    // Of its own part only: the rest belongs to another target.
    const RingRange part{std::max(range.start, tablet.range.start),
                         std::min(range.end, tablet.range.end)};
    if (tablet.replicas.size() < 2 || part.empty()) continue;
    targets.push_back({target.incarnation, target.name, tablet, target.changes + 1});
    targets.back().tablet.range = part;
    ++progress_.partitions;
  }
}

Task<Result<uint64_t>> Comparison::compare(Target target) {
  uint64_t differing = 0;
  std::optional<storage::ReadPosition> after;
  while (true) {
    Result<Page> page = co_await compare_page(target.incarnation, target.tablet, after);
    // Where much differs it is no write on its way, and 3 s for each page would be days.
    if (page && !page->same && differing < kDifferingLookedAt)
      page = co_await compare_rows(target.incarnation, target.tablet, after);
    if (!page) co_return std::unexpected<Error>(page.error());
    ++progress_.pages;
    differing += page->same ? 0 : 1;
    if (page->exhausted) co_return differing;
    after = std::move(page->end);
  }
}

Task<Result<Comparison::Page>> Comparison::compare_rows(
    TableIncarnation incarnation, Tablet tablet, std::optional<storage::ReadPosition> after) {
  Result<Look> look = co_await look_at(incarnation, tablet, after);
  if (!look) co_return std::unexpected<Error>(look.error());
  bool has_unchanged = false;
  for (const int64_t wait_us : kLookAgainUs) {
    if (look->differing.empty()) break;
    co_await base::sleep_for(reactor_, wait_us);
    Result<Look> next = co_await look_at(incarnation, tablet, after);
    if (!next) co_return std::unexpected<Error>(next.error());
    has_unchanged = false;
    // What lies behind the end of an earlier look was not looked at then: it is the next page's.
    if (!look->exhausted && (next->exhausted || order(look->end) < order(next->end))) {
      next->exhausted = false;
      next->end = look->end;
      std::erase_if(next->differing,
                    [&](const auto& item) { return !reaches(next->end, item.first); });
    }
    std::erase_if(next->differing, [&](const auto& item) {
      const auto before = look->differing.find(item.first);
      if (before == look->differing.end()) return true;
      has_unchanged |= before->second == item.second;
      return false;
    });
    look = std::move(next);
  }
  co_return Page{!has_unchanged, look->exhausted, std::move(look->end)};
}

Task<Result<Comparison::Look>> Comparison::look_at(TableIncarnation incarnation, Tablet tablet,
                                                   std::optional<storage::ReadPosition> after) {
  const Bytes request = encode_read(tablet.epoch, page_command(incarnation, tablet, after));
  const base::Deadline deadline{reactor_.now_us() + kPageUs};
  std::vector<storage::ReadResult> answers;
  Look look;
  for (const StoreAddress member : tablet.replicas) {
    Result<Bytes> rows =
        co_await rpc_.ask(member.host, member.store, Verb::kRead, request, deadline);
    if (!rows) co_return std::unexpected<Error>(rows.error());
    TETRAD_CO_TRY(storage::ReadResult answer, storage::decode_read_result(std::move(*rows)));
    // The page ends where the first answer ends.
    const storage::ReadPosition& end = answer.complete_up_to;
    if (!answer.exhausted && (look.exhausted || order(end) < order(look.end))) {
      look.exhausted = false;
      look.end = end;
    }
    answers.push_back(std::move(answer));
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    Items items([&](const Place& place, const base::Hash128& hash) {
      if (!look.exhausted && !reaches(look.end, place)) return;
      auto& hashes = look.differing[place];
      hashes.resize(answers.size());
      hashes[i] = hash;
    });
    items.of(answers[i], look.exhausted ? nullptr : &look.end);
    // Of many small rows a member's part takes some ten milliseconds.
    co_await base::sleep_for(reactor_, 0);
  }
  std::erase_if(look.differing, [](const auto& item) {
    return std::ranges::adjacent_find(item.second, std::not_equal_to()) == item.second.end();
  });
  co_return look;
}

/// All members cut their answers at the same horizon and expire by the same time: so equal data
/// gives equal digests (rule 6).
storage::ReadCommand Comparison::page_command(TableIncarnation incarnation, const Tablet& tablet,
                                              std::optional<storage::ReadPosition> after) const {
  storage::ReadCommand command;
  command.incarnation = incarnation;
  command.is_range = true;
  command.range = tablet.range;
  command.resume_after = std::move(after);
  command.bytes_limit = kPageBytes;
  command.now_s = clock_.now_us(reactor_) / 1'000'000;
  command.live_only = false;
  command.horizon_s = purge_horizon_s(tablet, slack_);
  return command;
}

/// The first member gives the rows, which say where the page ends, the others digests.
Task<Result<Comparison::Page>> Comparison::compare_page(
    TableIncarnation incarnation, Tablet tablet, std::optional<storage::ReadPosition> after) {
  TETRAD_ASSERT(tablet.replicas.size() > 1);
  const Bytes request = encode_read(tablet.epoch, page_command(incarnation, tablet, after));
  const base::Deadline deadline{reactor_.now_us() + kPageUs};
  const StoreAddress first = tablet.replicas.front();
  Result<Bytes> rows = co_await rpc_.ask(first.host, first.store, Verb::kRead, request, deadline);
  if (!rows) co_return std::unexpected<Error>(rows.error());
  TETRAD_CO_TRY(const storage::ReadResult data, storage::decode_read_result(std::move(*rows)));
  // Computed here of the rows of the first member, as the others compute theirs.
  const DigestReply own = digest_reply_of(data);
  Page page;
  page.same = true;
  page.exhausted = data.exhausted;
  page.end = data.complete_up_to;
  for (size_t i = 1; i < tablet.replicas.size(); ++i) {
    const StoreAddress member = tablet.replicas[i];
    Result<Bytes> answer =
        co_await rpc_.ask(member.host, member.store, Verb::kReadDigest, request, deadline);
    if (!answer) co_return std::unexpected<Error>(answer.error());
    TETRAD_CO_TRY(const DigestReply reply, decode_digest_reply(*answer));
    page.same = page.same && reply.digest == own.digest && reply.exhausted == own.exhausted &&
                reply.end == own.end;
  }
  co_return page;
}

}  // namespace tetrad::replication
