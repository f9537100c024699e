// SPDX-License-Identifier: Apache-2.0
// Gives a store that is behind what this one was given lately. Before the first page the writes that are
// under way must end: one of them may count on an acknowledgement that the other store has lost.
#include "replication/replica/recent_source.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {

namespace {

// A bound on one page, whatever was asked for.
constexpr uint64_t kPageBytesMax = 16 << 20;

/// Where a reading of everything goes on: the tablet, and the place in it.
struct Place {
  uint64_t index = 0;
  Bytes after;
};

Bytes encode_place(const Place& place) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.varint(place.index);
  writer.raw(place.after);
  return out;
}

Result<Place> decode_place(BytesView encoded) {
  Place place;
  if (encoded.empty()) return place;
  base::ByteReader in(encoded);
  TETRAD_TRY(place.index, in.read_varint());
  place.after = Bytes(in.position(), in.remaining());
  return place;
}

/// Where a reading of what is recent goes on.
struct RecentPlace {
  int64_t until_us = 0;
  Bytes after;
};

Bytes encode_recent_place(const RecentPlace& place) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.i64(place.until_us);
  writer.raw(place.after);
  return out;
}

Result<RecentPlace> decode_recent_place(BytesView encoded) {
  RecentPlace place;
  if (encoded.empty()) return place;
  base::ByteReader in(encoded);
  TETRAD_TRY(place.until_us, in.read_i64());
  place.after = Bytes(in.position(), in.remaining());
  return place;
}

}  // namespace

RecentSource::RecentSource(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                           const HybridClock& clock, std::vector<storage::Store*> stores,
                           const Fences& fences, StoreCleanup& cleanup, const BehindStores& behind,
                           int64_t longest_us)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      stores_(std::move(stores)),
      fences_(fences),
      cleanup_(cleanup),
      behind_(behind),
      longest_us_(longest_us) {
  rpc_.handle(Verb::kRecent,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                auto request = decode_recent_request(body);
                if (!request) return reply.error(request.error());
                answer(context.store, std::move(*request), context.deadline,
                       [alive = std::weak_ptr<char>(alive_),
                        reply = std::move(reply)](Result<RecentAnswer> page) mutable {
                         if (alive.expired()) return;
                         if (page)
                           reply.ok(encode_recent_answer(*page));
                         else
                           reply.error(page.error());
                       });
              });
}

RecentSource::~RecentSource() { rpc_.handle(Verb::kRecent, nullptr); }

// Which of the tablets may be answered: those whose epoch and range are the same here (rule 8). A
// tablet of which this store is behind itself is given all the same, and named as such.
std::vector<size_t> RecentSource::judge(uint32_t store, const RecentRequest& request,
                                        RecentAnswer& out) const {
  const MetaSnapshot state = meta_.snapshot();
  const StoreAddress here{meta_.self(), store};
  out.applied = state->applied;
  std::vector<size_t> readable;
  for (size_t i = 0; i < request.tablets.size(); ++i) {
    const RecentTablet& wanted = request.tablets[i];
    const TableInfo* table = state->table(wanted.incarnation);
    const partitioner::Tablet* tablet =
        table == nullptr ? nullptr : &table->tablets.find(wanted.range.end);
    const bool is_known =
        tablet != nullptr && tablet->epoch == wanted.epoch && tablet->range == wanted.range;
    const std::vector<StoreAddress> members =
        is_known ? all_members(*tablet) : std::vector<StoreAddress>();
    if (std::find(members.begin(), members.end(), here) == members.end() ||
        !cleanup_.may_take(wanted.incarnation, *tablet, store)) {
      out.refused.push_back(static_cast<uint32_t>(i));
      continue;
    }
    if (behind_.is_behind(store, wanted.incarnation, wanted.range) &&
        !TETRAD_MUTANT(behind_is_source))
      out.behind.push_back(static_cast<uint32_t>(i));
    readable.push_back(i);
  }
  return readable;
}

void RecentSource::answer(uint32_t store, RecentRequest request, base::Deadline deadline,
                          Answer done) {
  if (store >= stores_.size() || stores_[store] == nullptr)
    return done(fail(ErrorCode::kInvalid, "store {} is not of this shard", store));
  if (!clock_.is_good() && !TETRAD_MUTANT(quarantine_off))
    return done(fail(ErrorCode::kClockOff, "{}", clock_.refusal().message));
  RecentAnswer out;
  std::vector<size_t> readable = judge(store, request, out);
  if (readable.empty()) return done(std::move(out));
  request.bytes_max = std::min(request.bytes_max, kPageBytesMax);
  auto tell = [this, store](const RecentRequest& wanted, const std::vector<size_t>& tablets,
                            RecentAnswer so_far, Answer then) {
    if (wanted.everything || !wanted.since_us)
      answer_everything(store, wanted, tablets, std::move(so_far), std::move(then));
    else
      answer_recent(store, wanted, tablets, std::move(so_far), std::move(then));
  };
  if (!request.after.empty()) return tell(request, readable, std::move(out), std::move(done));
  // What waits for this store's disk may count an acknowledgement of the one that asks, from before
  // the cut: it must be in what the first page begins to tell.
  auto on_drained = [tell, request, readable, out = std::move(out),
                     done = std::move(done)](bool drained) mutable {
    if (!drained) return done(fail(ErrorCode::kBehind, "earlier writes have not ended"));
    tell(request, readable, std::move(out), std::move(done));
  };
  drain(store, request, readable, deadline, std::move(on_drained));
}

void RecentSource::drain(uint32_t store, const RecentRequest& request,
                         const std::vector<size_t>& tablets, base::Deadline deadline,
                         Fence::Then then) {
  struct Tally {
    size_t left;
    bool drained = true;
    Fence::Then then;
  };
  TETRAD_ASSERT(!tablets.empty());
  TETRAD_ASSERT(fences_[store] != nullptr);
  const auto tally = std::make_shared<Tally>(Tally{tablets.size(), true, std::move(then)});
  for (const size_t i : tablets) {
    const RecentTablet& tablet = request.tablets[i];
    fences_[store]->drained_now(tablet.incarnation, tablet.range, deadline,
                                [alive = std::weak_ptr<char>(alive_), tally](bool drained) {
                                  TETRAD_ASSERT(tally->left != 0);
                                  tally->drained &= drained;
                                  if (--tally->left == 0 && !alive.expired())
                                    tally->then(tally->drained);
                                });
  }
}

void RecentSource::answer_recent(uint32_t store, const RecentRequest& request,
                                 const std::vector<size_t>& readable, RecentAnswer out,
                                 Answer done) {
  auto place = decode_recent_place(request.after);
  if (!place) return done(std::unexpected(place.error()));
  TETRAD_ASSERT(request.since_us);
  storage::Store::RecentCommand command;
  command.since_us = *request.since_us;
  // The same for all pages of one reading.
  const int64_t until_us = request.after.empty()
                               ? clock_.now_us(reactor_) - request.ended_ago_us + longest_us_
                               : place->until_us;
  command.until_us = until_us;
  for (const size_t i : readable)
    command.ranges.emplace_back(request.tablets[i].incarnation, request.tablets[i].range);
  stores_[store]->recent(std::move(command), std::move(place->after), request.bytes_max,
                         [until_us, out = std::move(out),
                          done = std::move(done)](Result<storage::Store::RecentPage> page) mutable {
                           if (!page) return done(std::unexpected(std::move(page.error())));
                           out.exhausted = page->exhausted;
                           out.next = encode_recent_place({until_us, std::move(page->next)});
                           out.mutations = std::move(page->mutations);
                           done(std::move(out));
                         });
}

// Tablet after tablet, whole.
void RecentSource::answer_everything(uint32_t store, const RecentRequest& request,
                                     const std::vector<size_t>& readable, RecentAnswer out,
                                     Answer done) {
  auto place = decode_place(request.after);
  if (!place) return done(std::unexpected(place.error()));
  const auto at = std::lower_bound(readable.begin(), readable.end(), place->index);
  if (at == readable.end()) return done(std::move(out));
  if (*at != place->index) place->after.clear();  // the one that it was in is refused now
  const uint64_t index = *at;
  TETRAD_ASSERT(index < request.tablets.size());
  const bool is_last = at + 1 == readable.end();
  const RecentTablet& tablet = request.tablets[index];
  stores_[store]->export_range(
      tablet.incarnation, tablet.range, std::move(place->after), request.bytes_max,
      [index, is_last, out = std::move(out),
       done = std::move(done)](Result<storage::Store::ExportPage> page) mutable {
        if (!page) return done(std::unexpected(std::move(page.error())));
        out.exhausted = page->exhausted && is_last;
        out.next = page->exhausted ? encode_place({index + 1, {}})
                                   : encode_place({index, std::move(page->next)});
        out.mutations = std::move(page->mutations);
        done(std::move(out));
      });
}

}  // namespace tetrad::replication
