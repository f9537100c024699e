// SPDX-License-Identifier: Apache-2.0
// How a read is narrowed by claims; the steps are in the header.
#include "storage/index/index_reader.h"

#include <algorithm>
#include <set>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "storage/row/reconcile.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

// A bound on what one read keeps of names; beyond it the page ends there.
constexpr size_t kPlaceBytesMax = 4u << 20;  // of places that are kept

/// What a claim names.
struct NamedPlace {
  RingPosition position;
  Bytes partition_key;
  bool of_partition = false;
  Bytes clustering_key;
};

/// The order of a read; a whole partition comes before its rows.
struct ReadOrder {
  bool reversed;
  bool operator()(const NamedPlace& a, const NamedPlace& b) const {
    const int order = compare_partitions(a.position, a.partition_key, b.position, b.partition_key);
    if (order != 0) return order < 0;
    if (a.of_partition != b.of_partition) return a.of_partition;
    return reversed ? a.clustering_key > b.clustering_key : a.clustering_key < b.clustering_key;
  }
};
using NamedPlaces = std::set<NamedPlace, ReadOrder>;

/// The first places of a read that claims name.
// Claims lie by value, reads go by place. So all claims between the bounds are looked at, and the
// first places kept in a set of bounded size: what falls out ends the page (is_cut).
class PlaceCollector {
 public:
  PlaceCollector(KeyView& claims, const ReadCommand& command, const IndexReadLimits& limits)
      : claims_(claims),
        command_(command),
        bounds_(*command.by_index),
        limits_(limits),
        places_(ReadOrder{command.reversed}),
        prefix_(claims_of_index(command.incarnation, bounds_.index_id)) {
    start_ = command.is_range ? command.range.start : command.position;
    end_ = command.is_range ? command.range.end : command.position;
    // The page before has answered all before that.
    if (command.is_range && command.resume_after && start_ < command.resume_after->position)
      start_ = command.resume_after->position;
  }

  /// False: too many claims have been looked at.
  Result<bool> run() {
    // With one value claims of a partition lie together and the rest is skipped by seeks.
    const bool one_value = bounds_.upper && *bounds_.upper == bounds_.lower;
    const Bytes end = bounds_.upper ? past_prefix(prefix_ + *bounds_.upper) : past_prefix(prefix_);
    if (prefix_ + bounds_.lower >= end) return true;
    const std::unique_ptr<KeyIterator> it =
        claims_.iterate({prefix_ + bounds_.lower, end, false, false});
    it->seek(one_value ? place_key(bounds_.lower, start_) : prefix_ + bounds_.lower);
    uint64_t looked_at = 0;
    while (it->valid()) {
      const auto claim = decode_claim(it->key(), it->value());
      if (!claim)
        return fail(ErrorCode::kCorruption, "a key of {} bytes is no claim", it->key().size());
      // The caller reads all rows instead.
      if (++looked_at > limits_.claims_max) return false;
      if (bounds_.upper && claim->value > *bounds_.upper) break;
      // Behind this value's claims of other places.
      if (claim->position < start_) {
        it->seek(place_key(claim->value, start_));
        continue;
      }
      // No more of this value can be kept: go to the next one.
      if (end_ < claim->position || is_past_kept(*claim)) {
        if (one_value) break;
        it->seek(past_prefix(prefix_ + Bytes(claim->value)));
        continue;
      }
      if (is_wanted(*claim)) keep(*claim);
      if (is_cut_ && TETRAD_MUTANT(index_pages_by_value)) break;
      it->next();
    }
    TETRAD_TRY_VOID(it->status());
    return true;
  }

  const NamedPlaces& places() const { return places_; }
  /// More was named behind the last place.
  bool is_cut() const { return is_cut_; }

 private:
  /// Where claims of a value begin that are at `position` or behind it.
  Bytes place_key(BytesView value, RingPosition position) const {
    Bytes key = prefix_ + Bytes(value);
    Bytes place;
    append_partition_prefix(place, command_.incarnation, position, {});
    key.append(place, sizeof(uint32_t), kKeyPrefixBytes - sizeof(uint32_t));
    return key;
  }

  /// And so are all claims of its value behind it.
  bool is_past_kept(const ClaimView& claim) const {
    if (!is_cut_) return false;
    const NamedPlace& last = *places_.rbegin();
    const int order =
        compare_partitions(claim.position, claim.partition_key, last.position, last.partition_key);
    if (order != 0 || command_.reversed || claim.of_partition) return order > 0;
    return last.of_partition || claim.clustering_key > last.clustering_key;
  }

  // What the command itself leaves out, so that names cost no reads in vain.
  bool is_wanted(const ClaimView& claim) const {
    if (command_.is_range ? !command_.range.contains(claim.position)
                          : claim.partition_key != command_.partition_key)
      return false;
    if (const auto& resume = command_.resume_after) {
      const int order = compare_partitions(claim.position, claim.partition_key, resume->position,
                                           resume->partition_key);
      if (order < 0 || (order == 0 && !resume->clustering_key)) return false;
      if (order == 0 && !claim.of_partition) {
        const int row = claim.clustering_key.compare(*resume->clustering_key);
        if (command_.reversed ? row >= 0 : row <= 0) return false;
      }
    }
    if (claim.of_partition) return true;
    if (!command_.rows.empty())
      return std::ranges::binary_search(command_.rows, claim.clustering_key);
    const auto& ranges = command_.clustering_ranges;
    return ranges.empty() || std::ranges::any_of(ranges, [&](const ClusteringRange& range) {
             return range.contains(claim.clustering_key);
           });
  }

  void keep(const ClaimView& claim) {
    const auto [place, is_new] =
        places_.insert({claim.position, Bytes(claim.partition_key), claim.of_partition,
                        Bytes(claim.of_partition ? BytesView() : claim.clustering_key)});
    if (!is_new) return;
    bytes_ += bytes_of(*place);
    // At least one place stays, so that the page comes forward.
    while (places_.size() > 1 && (places_.size() > limits_.places_max || bytes_ > kPlaceBytesMax)) {
      const auto last = std::prev(places_.end());
      bytes_ -= bytes_of(*last);
      places_.erase(last);
      is_cut_ = true;
    }
  }
  static size_t bytes_of(const NamedPlace& place) {
    return sizeof(NamedPlace) + place.partition_key.size() + place.clustering_key.size();
  }

  KeyView& claims_;
  const ReadCommand& command_;
  const IndexBounds& bounds_;
  const IndexReadLimits& limits_;
  NamedPlaces places_;
  const Bytes prefix_;
  RingPosition start_, end_;
  size_t bytes_ = 0;
  bool is_cut_ = false;
};

/// Whether a row or partition has a value in the bounds, by what the maker says of its values.
class MatchSink final : public ClaimSink {
 public:
  explicit MatchSink(const IndexBounds& bounds) : bounds_(bounds) {}
  void take(uint16_t index_id, BytesView value) override {
    matches = matches || (index_id == bounds_.index_id && bounds_.lower <= value &&
                          (!bounds_.upper || value <= *bounds_.upper));
  }
  bool matches = false;

 private:
  const IndexBounds& bounds_;
};

class IndexReader {
 public:
  IndexReader(const IndexReadSource& source, const ReadCommand& command,
              const IndexReadLimits& limits)
      : source_(source), command_(command), bounds_(*command.by_index), limits_(limits) {}

  Result<ReadResult> run() {
    PlaceCollector collector(source_.view, command_, limits_);
    TETRAD_TRY(const bool narrowed, collector.run());
    if (!narrowed) return read_all();
    const NamedPlaces& places = collector.places();
    for (auto place = places.begin(); place != places.end() && !stopped_;) {
      // All places of one partition together.
      const auto end = std::find_if(place, places.end(), [&](const NamedPlace& other) {
        return compare_partitions(other.position, other.partition_key, place->position,
                                  place->partition_key) != 0;
      });
      if (bounds_.names_only) {
        name_partition(place, end);
      } else {
        TETRAD_TRY_VOID(read_partition(place, end));
      }
      // Between partitions; inside of one read_partition() looks.
      const bool is_full = result_.live_row_count >= command_.row_limit ||
                           result_.arena.allocated_bytes() >= command_.bytes_limit;
      if (!stopped_ && is_full && (end != places.end() || collector.is_cut()))
        stop_at(*std::prev(end));
      place = end;
    }
    if (!stopped_ && collector.is_cut()) stop_at(*places.rbegin());
    return std::move(result_);
  }

 private:
  using Place = NamedPlaces::const_iterator;

  /// Without the index: slower, and the same answer.
  Result<ReadResult> read_all() {
    ReadCommand command = command_;
    command.by_index.reset();
    TETRAD_TRY(ReadResult all, read_partitions(source_.view, command, source_.contents_of(command),
                                               limits_.keys_max));
    if (!bounds_.names_only) return all;
    all.live_row_count = 0;
    for (PartitionData& partition : all.partitions) {
      // A partition without rows in a list of names stands for all of it.
      partition.header = {};
      partition.range_tombstones.clear();
      partition.rows.clear();  // all of it is named
    }
    return all;
  }

  void stop_at(const NamedPlace& last) {
    stopped_ = true;
    result_.exhausted = false;
    result_.complete_up_to = {last.position, last.partition_key, std::nullopt};
    if (!last.of_partition) result_.complete_up_to.clustering_key = last.clustering_key;
  }

  /// Rows without their records; a partition without rows is named as a whole.
  void name_partition(Place place, Place end) {
    PartitionData named{place->position, result_.arena.copy(place->partition_key), {}, {}, {}};
    for (; place != end; ++place)
      if (!place->of_partition)
        named.rows.push_back({result_.arena.copy(place->clustering_key), {}});
    result_.partitions.push_back(std::move(named));
  }

  // As a read of named rows, or of the whole partition.
  ReadCommand command_of(Place place, Place end) const {
    ReadCommand command = command_;
    command.by_index.reset();
    command.is_range = false;
    command.position = place->position;
    command.partition_key = place->partition_key;
    command.bytes_max = ReadCommand::kNoBytesMax;
    command.per_partition_limit = ReadCommand::kNoLimit;
    command.distinct_partitions = false;
    const auto& resume = command_.resume_after;
    if (resume && compare_partitions(resume->position, resume->partition_key, place->position,
                                     place->partition_key) != 0)
      command.resume_after.reset();
    if (!command.resume_after) command.partition_rows_done = 0;
    if (place->of_partition) return command;
    command.clustering_ranges.clear();
    command.rows.clear();
    for (; place != end; ++place) command.rows.push_back(place->clustering_key);
    std::ranges::sort(command.rows);
    return command;
  }

  Result<void> read_partition(Place place, Place end) {
    ReadCommand command = command_of(place, end);
    const bool of_partition = place->of_partition;
    const TableContents contents = source_.contents_of(command);
    // A partition may take several pages of keys_max.
    while (true) {
      if (command_.row_limit != ReadCommand::kNoLimit)
        command.row_limit = command_.row_limit - result_.live_row_count;
      const uint64_t bytes_done = result_.arena.allocated_bytes();
      command.bytes_limit =
          command_.bytes_limit - std::min<uint64_t>(command_.bytes_limit - 1, bytes_done);
      TETRAD_TRY(ReadResult page,
                 read_partitions(source_.view, command, contents, limits_.keys_max));
      std::vector<Bytes> lacking;
      TETRAD_TRY(const bool keeps, look_for_value(page, of_partition, lacking));
      // This replica's row has another value: it is no match here, by its own record. What hides it
      // is read again without it.
      if (!lacking.empty() && !command_.live_only) {
        // What hides them must not be in the answer either: it is compared with those of others.
        const std::set<Bytes> without(lacking.begin(), lacking.end());
        std::erase_if(command.rows, [&](const Bytes& row) { return without.contains(row); });
        if (command.rows.empty()) return {};
        continue;
      }
      const size_t rows = page.partitions.empty() ? 0 : page.partitions.front().rows.size();
      if (keeps) add(page);
      if (page.exhausted) return {};
      const bool is_full = result_.live_row_count >= command_.row_limit ||
                           result_.arena.allocated_bytes() >= command_.bytes_limit;
      if (is_full) {
        stopped_ = true;
        result_.exhausted = false;
        result_.complete_up_to = page.complete_up_to;
        return {};
      }
      command.resume_after = page.complete_up_to;
      // Else static cells would be taken for a row of their own.
      command.partition_rows_done += static_cast<uint32_t>(rows);
    }
  }

  /// Takes rows out that have no such value here, as far as that is decided here. False: nothing of
  /// the page is to be answered. `lacking`: those that were taken out. With
  /// keeps_disproved none are: the quorum needs them named, too (rule 23).
  Result<bool> look_for_value(ReadResult& page, bool of_partition, std::vector<Bytes>& lacking) {
    if (page.partitions.empty()) return false;
    PartitionData& partition = page.partitions.front();
    if (of_partition) {
      if (bounds_.keeps_disproved) return true;
      MatchSink sink(bounds_);
      source_.maker.of_partition(partition.partition_key, partition.header, true, command_.now_s,
                                 sink);
      return sink.matches;
    }
    if (bounds_.keeps_disproved) return true;
    std::erase_if(partition.rows, [&](const RowData& row) {
      MatchSink sink(bounds_);
      source_.maker.of_row(row.clustering_key, row.record, command_.now_s, sink);
      if (sink.matches) return false;
      lacking.emplace_back(row.clustering_key);
      return true;
    });
    TETRAD_TRY(page.live_row_count, live_rows_of(partition));
    return !partition.rows.empty();
  }

  Result<uint32_t> live_rows_of(const PartitionData& partition) const {
    if (command_.live_only) return static_cast<uint32_t>(partition.rows.size());
    uint32_t live = 0;
    for (const RowData& row : partition.rows) {
      TETRAD_TRY(const RowRecord record, decode_row_record(row.record));
      live += is_live(record, command_.now_s) ? 1 : 0;
    }
    return live;
  }

  /// Pages of one partition are put together.
  void add(ReadResult& page) {
    result_.live_row_count += page.live_row_count;
    result_.tombstones += page.tombstones;
    for (PartitionData& partition : page.partitions) {
      if (!result_.partitions.empty()) {
        PartitionData& last = result_.partitions.back();
        if (compare_partitions(last.position, last.partition_key, partition.position,
                               partition.partition_key) == 0) {
          last.rows.insert(last.rows.end(), partition.rows.begin(), partition.rows.end());
          // By start, in whatever order rows come.
          last.range_tombstones.insert(
              command_.reversed ? last.range_tombstones.begin() : last.range_tombstones.end(),
              partition.range_tombstones.begin(), partition.range_tombstones.end());
          continue;
        }
      }
      result_.partitions.push_back(std::move(partition));
    }
    result_.arena.absorb(std::move(page.arena));
  }

  const IndexReadSource& source_;
  const ReadCommand& command_;
  const IndexBounds& bounds_;
  const IndexReadLimits& limits_;
  ReadResult result_;
  bool stopped_ = false;
};

}  // namespace

Result<ReadResult> read_by_index(const IndexReadSource& source, const ReadCommand& command,
                                 const IndexReadLimits& limits) {
  TETRAD_ASSERT(command.by_index.has_value());
  return IndexReader(source, command, limits).run();
}

}  // namespace tetrad::storage
