// SPDX-License-Identifier: Apache-2.0
// Range tombstones as sets and as step functions: see range_tombstones.h.
#include "storage/row/range_tombstones.h"

#include <algorithm>
#include <queue>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "storage/row/reconcile.h"

namespace tetrad::storage {
namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kElementBytesMin = 3;

bool later(const Deletion& a, const Deletion& b) {
  if (a.timestamp_us != b.timestamp_us) return a.timestamp_us > b.timestamp_us;
  return a.deletion_time_s > b.deletion_time_s;
}

// Steps are ascending and never overlap; equal neighbours become one.
void append_step(TombstoneSteps& steps, BytesView start, BytesView end, const Deletion& deletion) {
  if (start >= end) return;
  TETRAD_ASSERT(steps.empty() || steps.back().end <= start);  // in order, and apart
  if (!steps.empty() && steps.back().end == start && steps.back().deletion == deletion) {
    steps.back().end = end;
    return;
  }
  steps.push_back({start, end, deletion});
}

}  // namespace

bool is_of_one_prefix(BytesView start, BytesView end) {
  return end.size() == start.size() + 1 && end.back() == '\xFF' && end.starts_with(start);
}

// A tombstone of all keys with one prefix begins where a read of that prefix looks first. Any other
// is filed by how much its ends have in common: a read of a key looks at each such length once.
void append_tombstone_place(BytesView start, BytesView end, Bytes& out) {
  TETRAD_ASSERT(start < end);
  TETRAD_ASSERT(!start.starts_with(kStraddlingPlace));
  if (!is_of_one_prefix(start, end)) {
    const auto common = std::ranges::mismatch(start, end).in1 - start.begin();
    out.push_back(kStraddlingPlace);
    // More than 255 equal bytes are filed as 255: a read looks there as well.
    out.push_back(static_cast<char>(std::min<ptrdiff_t>(common, 255)));
  }
  out.append(start);
}

Result<BytesView> start_at_place(BytesView place) {
  if (!place.starts_with(kStraddlingPlace)) return place;
  if (place.size() < 2) return fail(ErrorCode::kCorruption, "a range tombstone at no place");
  return place.substr(2);
}

void reduce_tombstone_set(std::vector<TombstoneEnd>& set) {
  if (TETRAD_MUTANT(tombstone_start_unique) && set.size() > 1)
    set.erase(set.begin(), set.end() - 1);
  // The form is canonical: equal sets have equal bytes (rule 6).
  // Longest first, of equal length the latest first: an element stays if it is later than all
  // before it.
  std::sort(set.begin(), set.end(), [](const TombstoneEnd& a, const TombstoneEnd& b) {
    if (a.end != b.end) return a.end > b.end;
    return later(a.deletion, b.deletion);
  });
  std::vector<TombstoneEnd> kept;
  for (const TombstoneEnd& element : set)
    // One that reaches no further than an earlier one, and is no later, hides nothing by itself.
    // Any other stays (rule 17).
    if (kept.empty() || later(element.deletion, kept.back().deletion)) kept.push_back(element);
  std::reverse(kept.begin(), kept.end());
  TETRAD_ASSERT(kept.empty() == set.empty());
  set = std::move(kept);
}

void encode_tombstone_set(const std::vector<TombstoneEnd>& set, Bytes& out) {
  base::ByteWriter w(out);
  w.u8(kVersion);
  w.varint(set.size());
  for (const TombstoneEnd& element : set) {
    TETRAD_ASSERT(element.deletion.present());
    w.bytes(element.end);
    w.zigzag(element.deletion.timestamp_us);
    w.zigzag(element.deletion.deletion_time_s);
  }
}

Result<void> decode_tombstone_set(BytesView encoded, std::vector<TombstoneEnd>& set) {
  base::ByteReader r(encoded);
  TETRAD_TRY(const uint8_t version, r.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "range tombstones of format {}, this program reads {}",
                version, kVersion);
  TETRAD_TRY(const uint64_t count, r.read_varint());
  // Tested before memory is reserved: a damaged count must not take any.
  if (count > r.remaining() / kElementBytesMin)
    return fail(ErrorCode::kCorruption, "set of {} range tombstones in {} bytes", count,
                r.remaining());
  set.reserve(set.size() + count);
  for (uint64_t i = 0; i < count; ++i) {
    TombstoneEnd element;
    TETRAD_TRY(element.end, r.read_bytes());
    TETRAD_TRY(element.deletion.timestamp_us, r.read_zigzag());
    TETRAD_TRY(element.deletion.deletion_time_s, r.read_zigzag());
    if (!element.deletion.present())
      return fail(ErrorCode::kCorruption, "range tombstone without a timestamp");
    set.push_back(element);
  }
  if (!r.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after the range tombstones", r.remaining());
  return {};
}

// A walk over all bounds in order: between two neighbours the same tombstones are open, and the
// latest of them is in force.
TombstoneSteps make_steps(std::vector<RangeTombstoneView> tombstones, const Deletion& partition) {
  std::erase_if(tombstones, [&](const RangeTombstoneView& t) {
    return t.start >= t.end || partition.hides(t.deletion.timestamp_us);
  });
  TombstoneSteps steps;
  if (tombstones.empty()) return steps;
  std::sort(
      tombstones.begin(), tombstones.end(),
      [](const RangeTombstoneView& a, const RangeTombstoneView& b) { return a.start < b.start; });
  std::vector<BytesView> bounds;
  bounds.reserve(tombstones.size() * 2);
  for (const RangeTombstoneView& t : tombstones) {
    bounds.push_back(t.start);
    bounds.push_back(t.end);
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());

  const auto older = [&](size_t a, size_t b) {
    return later(tombstones[b].deletion, tombstones[a].deletion);
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(older)> open(older);  // latest on top
  size_t next = 0;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    // Every tombstone is pushed and popped once: n log n.
    while (next < tombstones.size() && tombstones[next].start <= bounds[i]) open.push(next++);
    while (!open.empty() && tombstones[open.top()].end <= bounds[i]) open.pop();
    if (!open.empty())
      append_step(steps, bounds[i], bounds[i + 1], tombstones[open.top()].deletion);
  }
  return steps;
}

Deletion deletion_at(const TombstoneSteps& steps, BytesView key) {
  const auto after =
      std::upper_bound(steps.begin(), steps.end(), key,
                       [](BytesView k, const RangeTombstoneView& t) { return k < t.start; });
  if (after == steps.begin()) return {};
  const RangeTombstoneView& step = *std::prev(after);
  TETRAD_ASSERT(step.start <= key && step.deletion.present());
  return key < step.end ? step.deletion : Deletion{};
}

void append_cut_steps(const TombstoneSteps& steps, BytesView start, BytesView end,
                      TombstoneSteps& out) {
  auto step = std::partition_point(steps.begin(), steps.end(),
                                   [&](const RangeTombstoneView& t) { return t.end <= start; });
  for (; step != steps.end() && step->start < end; ++step)
    append_step(out, std::max(step->start, start), std::min(step->end, end), step->deletion);
}

// Both are step functions, so one walk over both finds where they differ.
TombstoneSteps missing_steps(const TombstoneSteps& wanted, const TombstoneSteps& held) {
  TombstoneSteps missing;
  auto have = held.begin();
  for (const RangeTombstoneView& step : wanted) {
    BytesView from = step.start;
    while (have != held.end() && have->end <= from) ++have;
    for (auto h = have; h != held.end() && h->start < step.end; ++h) {
      if (h->deletion != step.deletion) continue;
      append_step(missing, from, std::max(from, h->start), step.deletion);
      from = std::max(from, std::min(h->end, step.end));
    }
    append_step(missing, from, step.end, step.deletion);
  }
  return missing;
}

}  // namespace tetrad::storage
