// SPDX-License-Identifier: Apache-2.0
// What stores lack after power cuts. That a store is behind is on the disk of the local log before it takes
// writes; what has been fetched is noted there tablet by tablet, and the note erased when nothing is lacking.
//
// For each store that is behind: since when, which ranges have been fetched (`done`), floors of
// marks by tablet, and whether the note is on disk (`kept`). What a store may have acknowledged and
// lost it must not deny:
//   - marks: a floor stands for what was seen (mark_floor_us), so that stamps stay above it (rule
//     28);
//   - numbers of change logs go on above a floor, which is kept when the store is not behind any
//     more;
//   - until the note is on disk writes wait, since after a second cut nobody would know of the
//     first.
// Each loss has a generation: what was begun before a later loss notes nothing.
#include "replication/replica/behind.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {

namespace {

constexpr uint8_t kVersion = 1;
constexpr int64_t kHearUs = 1'000'000;  // so long writes wait for other members' clocks
// A bound on what a damaged note may take.
constexpr size_t kRangesMax = 1u << 20;

Bytes key_of(BytesView what, uint32_t store) {
  Bytes key(what);
  base::ByteWriter(key).u32(store);
  return key;
}
Bytes behind_key(uint32_t store) { return key_of("behind/", store); }
Bytes sequence_key(uint32_t store) { return key_of("sequence/", store); }

void put_position(base::ByteWriter& writer, const RingPosition& position) {
  writer.i64(position.token);
  writer.u64(position.hash);
}

Result<RingPosition> read_position(base::ByteReader& in) {
  RingPosition position;
  TETRAD_TRY(position.token, in.read_i64());
  TETRAD_TRY(position.hash, in.read_u64());
  return position;
}

/// Of a set's members without this node: at least R are heard of.
bool hears_quorum(const std::vector<StoreAddress>& set, const MetaService& meta) {
  if (set.empty()) return true;
  const Members others =
      members_that(set, [&](const StoreAddress& member) { return member.host != meta.self(); });
  const Members live = others & members_that(set, [&](const StoreAddress& member) {
                         return meta.is_live(member.host);
                       });
  const MetaSnapshot state = meta.snapshot();
  return live == others || recovering(state->data_centers.get(), set, meta.self()).is_met_by(live);
}

}  // namespace

// Half-open ranges (start, end], disjoint and not adjoining: neighbours are joined.
void RangeSet::add(TableIncarnation incarnation, const RingRange& range) {
  if (range.empty()) return;
  std::vector<RingRange>& known = ranges_[incarnation];
  // The first that touches the new range, and the first that begins behind it.
  const auto first = std::ranges::lower_bound(known, range.start, {}, &RingRange::end);
  const auto last = std::ranges::upper_bound(first, known.end(), range.end, {}, &RingRange::start);
  if (first == last) {
    const auto added = known.insert(first, range);
    TETRAD_ASSERT(added == known.begin() || std::prev(added)->end < added->start);
    TETRAD_ASSERT(std::next(added) == known.end() || added->end < std::next(added)->start);
    return;
  }
  first->start = std::min(first->start, range.start);
  first->end = std::max(std::prev(last)->end, range.end);
  TETRAD_ASSERT(first->start < first->end);
  known.erase(std::next(first), last);
}

bool RangeSet::covers(TableIncarnation incarnation, const RingRange& range) const {
  const auto known = ranges_.find(incarnation);
  if (known == ranges_.end()) return false;
  const auto one = std::ranges::lower_bound(known->second, range.end, {}, &RingRange::end);
  return one != known->second.end() && one->start <= range.start;
}

bool RangeSet::contains(TableIncarnation incarnation, RingPosition position) const {
  const auto known = ranges_.find(incarnation);
  if (known == ranges_.end()) return false;
  const auto one = std::ranges::lower_bound(known->second, position, {}, &RingRange::end);
  return one != known->second.end() && one->contains(position);
}

Bytes encode_behind(const PowerLoss& since, const RangeSet& done) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.u8(since.since_us ? 1 : 0);
  writer.i64(since.since_us.value_or(0));
  size_t count = 0;
  for (const auto& [incarnation, ranges] : done.ranges()) count += ranges.size();
  writer.varint(count);
  for (const auto& [incarnation, ranges] : done.ranges()) {
    for (const RingRange& range : ranges) {
      writer.u32(incarnation.value);
      put_position(writer, range.start);
      put_position(writer, range.end);
    }
  }
  return out;
}

Result<std::pair<PowerLoss, RangeSet>> decode_behind(BytesView encoded) {
  base::ByteReader in(encoded);
  TETRAD_TRY(const uint8_t version, in.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "what a store lacks is of version {}, known is {}", version,
                kVersion);
  std::pair<PowerLoss, RangeSet> out;
  TETRAD_TRY(const uint8_t is_known, in.read_u8());
  TETRAD_TRY(const int64_t since_us, in.read_i64());
  if (is_known != 0) out.first.since_us = since_us;
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > kRangesMax) return fail(ErrorCode::kCorruption, "{} ranges are too many", count);
  for (uint64_t i = 0; i < count; ++i) {
    TableIncarnation incarnation;
    RingRange range;
    TETRAD_TRY(incarnation.value, in.read_u32());
    TETRAD_TRY(range.start, read_position(in));
    TETRAD_TRY(range.end, read_position(in));
    out.second.add(incarnation, range);
  }
  return out;
}

BehindStores::BehindStores(base::Reactor& reactor, storage::LocalLog& log, MetaService& meta,
                           const HybridClock& clock, const std::vector<bool>& is_own,
                           const std::vector<std::optional<PowerLoss>>& losses, Logger logger)
    : reactor_(reactor), log_(log), meta_(meta), clock_(clock), logger_(std::move(logger)) {
  for (uint32_t store = 0; store < is_own.size(); ++store)
    if (is_own[store]) load(store, store < losses.size() ? losses[store] : std::nullopt);
}

BehindStores::~BehindStores() = default;

// A note of an earlier life, then what this start has found out.
void BehindStores::load(uint32_t store, const std::optional<PowerLoss>& loss) {
  load_sequence_floor(store);
  const auto kept = log_.get(behind_key(store));
  const bool is_kept = (!kept || *kept) && !TETRAD_MUTANT(behind_not_kept);
  if (is_kept) {
    Behind& behind = stores_[store];
    behind.since.heard_us = reactor_.now_us();
    behind.generation = next_generation_++;
    behind.kept = true;
    // What cannot be read may have said anything: everything is fetched.
    auto known = kept ? decode_behind(**kept)
                      : Result<std::pair<PowerLoss, RangeSet>>(std::unexpected(kept.error()));
    if (known) {
      behind.since.time_us = known->first.since_us;
      behind.done = std::move(known->second);
    }
  }
  if (loss) lost(store, *loss);
}

/// Of a floor that cannot be read no more is known than that it was not above what would be one
/// now.
void BehindStores::load_sequence_floor(uint32_t store) {
  const auto floor = log_.get(sequence_key(store));
  if (floor && !*floor) return;
  if (floor && (*floor)->size() == sizeof(uint64_t)) {
    sequence_floors_[store] = base::load_big_endian<uint64_t>((*floor)->data());
    return;
  }
  sequence_floors_[store] = sequence_floor_now();
  logger_.warn("the number that a change log goes on from cannot be read store={} reason=\"{}\"",
               store, floor ? "it has another size" : floor.error().message);
}

uint64_t BehindStores::sequence_floor_now() const {
  return static_cast<uint64_t>(clock_.now_us(reactor_) + clock_.skew_max_us());
}

// At a start, or in the midst of a life; what was fetched since the loss before counts for nothing.
void BehindStores::lost(uint32_t store, const PowerLoss& loss) {
  const bool is_new = !stores_.contains(store);
  Behind& behind = stores_[store];
  // Unknown beats known; of two times the earlier.
  if (is_new || !loss.since_us)
    behind.since.time_us = loss.since_us;
  else if (behind.since.time_us)
    behind.since.time_us = std::min(*behind.since.time_us, *loss.since_us);
  behind.since.heard_us = reactor_.now_us();
  behind.done = {};
  behind.mark_floors_us.clear();
  behind.kept = false;
  behind.generation = next_generation_++;
  // Above every number that readers can have been shown.
  sequence_floors_[store] = std::max(sequence_floors_[store], sequence_floor_now());
  keep(store);
  if (changed_) changed_(store, true);
}

void BehindStores::keep(uint32_t store) {
  const Behind& behind = stores_.at(store);
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({behind_key(store), encode_behind({behind.since.time_us}, behind.done)});
  Bytes floor;
  base::ByteWriter(floor).u64(sequence_floors_[store]);
  batch.push_back({sequence_key(store), std::move(floor)});
  write(std::move(batch), store, behind.generation, [this, store](Result<void> kept) {
    if (kept)
      stores_.at(store).kept = true;
    else
      logger_.error("cannot note that a store is behind store={} error={}", store,
                    kept.error().message);
  });
}

/// `done` runs if the store is behind as it was then.
void BehindStores::write(std::vector<storage::LocalLog::Operation> batch, uint32_t store,
                         uint64_t generation, Done done) {
  TETRAD_ASSERT(generation < next_generation_);
  // Synced: the answer depends on it after the next cut.
  log_.write(std::move(batch), true,
             [this, alive = std::weak_ptr<char>(alive_), store, generation,
              done = std::move(done)](Result<void> written) mutable {
               if (alive.expired()) return;
               const auto known = stores_.find(store);
               if (known == stores_.end() || known->second.generation != generation)
                 return done(fail(ErrorCode::kConflict, "more was lost meanwhile"));
               done(std::move(written));
             });
}

bool BehindStores::lacks(uint32_t store, TableIncarnation incarnation,
                         RingPosition position) const {
  const auto known = stores_.find(store);
  return known != stores_.end() && !known->second.done.contains(incarnation, position);
}

bool BehindStores::lacks(uint32_t store, TableIncarnation incarnation,
                         const RingRange& range) const {
  const auto known = stores_.find(store);
  return known != stores_.end() && !known->second.done.covers(incarnation, range);
}

bool BehindStores::hears_enough(const partitioner::Tablet& tablet) const {
  return hears_quorum(tablet.replicas, meta_) && hears_quorum(tablet.new_replicas, meta_);
}

bool BehindStores::writes_wait(uint32_t store, const partitioner::Tablet& tablet) {
  const auto known = stores_.find(store);
  if (known == stores_.end()) return false;
  Behind& behind = known->second;
  if (!behind.kept) return true;
  // The floor must be at least what a lost mark could be: the hybrid time once R others are heard,
  // whose clocks it follows; or, after a second without them, the bound of clocks.
  if (behind.mark_floors_us.contains(tablet.id)) return false;
  const bool hears = hears_enough(tablet);
  if (!hears && reactor_.now_us() < behind.since.heard_us + kHearUs) return true;
  behind.mark_floors_us[tablet.id] = hears ? clock_.now_us(reactor_) : highest_mark_us();
  return false;
}

int64_t BehindStores::mark_floor_us(uint32_t store, const partitioner::Tablet& tablet) {
  const auto known = stores_.find(store);
  if (known == stores_.end() || TETRAD_MUTANT(marks_not_raised))
    return std::numeric_limits<int64_t>::min();
  (void)writes_wait(store, tablet);
  const auto& floors_us = known->second.mark_floors_us;
  const auto floor_us = floors_us.find(tablet.id);
  return floor_us != floors_us.end() ? floor_us->second : highest_mark_us();
}

/// That a lost one may have been, by this node's own clock: nothing was taken for so long that
/// others, whose clocks are near, can still stamp above it.
int64_t BehindStores::highest_mark_us() const {
  return std::max(clock_.now_us(reactor_),
                  clock_.own_us(reactor_) + clock_.skew_max_us() - kHearUs);
}

uint64_t BehindStores::sequence_floor(uint32_t store) const {
  const auto known = sequence_floors_.find(store);
  return known == sequence_floors_.end() || TETRAD_MUTANT(feed_sequence_kept) ? 0 : known->second;
}

BehindStores::Since BehindStores::since(uint32_t store) const { return stores_.at(store).since; }

std::vector<uint32_t> BehindStores::stores() const {
  std::vector<uint32_t> out;
  for (const auto& [store, behind] : stores_) out.push_back(store);
  return out;
}

void BehindStores::done(uint32_t store,
                        const std::vector<std::pair<TableIncarnation, RingRange>>& ranges,
                        Done done) {
  const Behind& behind = stores_.at(store);
  // What is known now, with the new ranges; in memory only when it is on disk.
  RangeSet all = behind.done;
  for (const auto& [incarnation, range] : ranges) all.add(incarnation, range);
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({behind_key(store), encode_behind({behind.since.time_us}, all)});
  write(std::move(batch), store, behind.generation,
        [this, store, all = std::move(all), done = std::move(done)](Result<void> noted) mutable {
          if (noted) stores_.at(store).done = std::move(all);
          done(std::move(noted));
        });
}

// The last note goes; the floor of sequences stays.
void BehindStores::finish(uint32_t store, Done done) {
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({behind_key(store), std::nullopt});
  write(std::move(batch), store, stores_.at(store).generation,
        [this, store, done = std::move(done)](Result<void> noted) mutable {
          if (noted) {
            stores_.erase(store);
            if (changed_) changed_(store, false);
          }
          done(std::move(noted));
        });
}

}  // namespace tetrad::replication
