// SPDX-License-Identifier: Apache-2.0
// Measuring tablets.
#include "replication/tablets/load_report.h"

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::replication {

namespace {
constexpr uint8_t kLoadFormat = 1;
constexpr uint64_t kFullReportRounds = 30;  // the rounds between only tell what has changed
constexpr size_t kTabletsPerSlice = 128;
constexpr int64_t kSlicePauseUs = 50'000;
}  // namespace

Bytes encode_load(const TabletSizes& sizes) {
  Bytes body;
  base::ByteWriter writer(body);
  writer.u8(kLoadFormat);
  writer.varint(sizes.size());
  for (const auto& [tablet, bytes] : sizes) {
    writer.varint(tablet.value);
    writer.varint(bytes);
  }
  return body;
}

Result<TabletSizes> decode_load(BytesView body) {
  base::ByteReader in(body);
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format != kLoadFormat) return fail(ErrorCode::kCorruption, "load report format {}", format);
  TETRAD_TRY(const uint64_t count, in.read_varint());
  TabletSizes sizes;
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint64_t tablet, in.read_varint());
    TETRAD_TRY(const uint64_t bytes, in.read_varint());
    sizes.emplace_back(TabletId{tablet}, bytes);
  }
  return sizes;
}

StoreAddress acting_member(const partitioner::Tablet& tablet, const MetaService& meta) {
  for (const StoreAddress& member : tablet.replicas)
    if (meta.is_replica_live(member)) return member;
  TETRAD_ASSERT(!tablet.replicas.empty());
  return tablet.replicas.front();
}

storage::Store* acting_store(const partitioner::Tablet& tablet, const MetaService& meta,
                             const std::vector<storage::Store*>& stores) {
  if (tablet.replicas.empty()) return nullptr;
  const StoreAddress acting = acting_member(tablet, meta);
  return acting.host == meta.self() && acting.store < stores.size() ? stores[acting.store]
                                                                    : nullptr;
}

LoadReporter::LoadReporter(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                           std::vector<storage::Store*> stores, int64_t period_us)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      stores_(std::move(stores)),
      period_us_(period_us) {}

LoadReporter::~LoadReporter() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void LoadReporter::start() {
  timer_ = reactor_.call_at(reactor_.now_us() + period_us_, [this] { slice(); });
}

void LoadReporter::measure(const std::shared_ptr<const TableInfo>& table,
                           std::vector<MeasuredTablet>& measured, TabletSizes& changed) {
  for (const partitioner::Tablet& tablet : table->tablets.tablets()) {
    storage::Store* const store = acting_store(tablet, meta_, stores_);
    if (store == nullptr) continue;
    const uint64_t bytes = store->approximate_bytes(table->incarnation, tablet.range);
    // What has not changed is not told again until the next full round.
    const auto [known, fresh] = reported_.try_emplace(tablet.id, bytes);
    if (fresh || known->second != bytes) {
      known->second = bytes;
      changed.emplace_back(tablet.id, bytes);
    }
    measured.push_back({table, tablet, store, bytes});
  }
}

/// Not all at once: thousands of tablets would hold up the loop.
void LoadReporter::slice() {
  // All again from time to time: one-way messages may be lost, and nodes join.
  if (!after_ && rounds_++ % kFullReportRounds == 0) reported_.clear();
  const MetaSnapshot state = meta_.snapshot();
  std::vector<MeasuredTablet> measured;
  TabletSizes changed;
  auto next = after_ ? state->tables.upper_bound(*after_) : state->tables.begin();
  for (; next != state->tables.end() && measured.size() < kTabletsPerSlice; ++next) {
    measure(next->second, measured, changed);
    after_ = next->first;
  }
  const bool round_ends = next == state->tables.end();
  if (round_ends) after_.reset();
  timer_ = reactor_.call_at(reactor_.now_us() + (round_ends ? period_us_ : kSlicePauseUs),
                            [this] { slice(); });
  if (!changed.empty()) rpc_.one_way(meta_.self(), 0, Verb::kLoad, encode_load(changed));
  if (listener_ && !measured.empty()) listener_(measured);
}

}  // namespace tetrad::replication
