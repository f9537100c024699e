// SPDX-License-Identifier: Apache-2.0
#include "replication/paxos/turn_keeper.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::replication {
namespace {

constexpr size_t kWaitingMax = 10'000;
/// Several times what a statement takes where disks sync in milliseconds.
constexpr int64_t kTurnUs = 250'000;
constexpr size_t kKeyBytesMax = 4 + 65'535;

}  // namespace

TurnKeeper::TurnKeeper(base::Reactor& reactor, RpcNode& rpc)
    : reactor_(reactor), rpc_(rpc), last_number_(static_cast<uint64_t>(reactor.now_us())) {
  rpc_.handle(Verb::kPaxosTurn,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                if (body.size() > kKeyBytesMax)
                  return reply.error(Error(ErrorCode::kCorruption, "a turn of a key too long"));
                ask(Bytes(body), context.deadline,
                    [reply = std::move(reply)](Result<GrantedTurn> turn) mutable {
                      if (!turn) return reply.error(turn.error());
                      Bytes answer;
                      base::ByteWriter writer(answer);
                      writer.u64(turn->number);
                      writer.u8(turn->others_wait ? 1 : 0);
                      writer.i64(turn->last_made_us);
                      reply.ok(std::move(answer));
                    });
              });
  rpc_.handle(Verb::kPaxosTurnEnded,
              [this](const RpcContext&, BytesView body, const RpcNode::Reply&) {
                base::ByteReader reader(body);
                const auto number = reader.read_u64();
                const auto last_made_us = reader.read_i64();
                if (number && last_made_us)
                  end(Bytes(reader.position(), reader.remaining()), *number, *last_made_us);
              });
}

TurnKeeper::~TurnKeeper() {
  rpc_.handle(Verb::kPaxosTurn, nullptr);
  rpc_.handle(Verb::kPaxosTurnEnded, nullptr);
  for (const auto& [key, line] : lines_) reactor_.cancel(line.timer);
}

void TurnKeeper::ask(Bytes key, base::Deadline deadline, Granted granted) {
  if (reactor_.now_us() >= deadline.at_us) return;
  const auto [line, is_first] = lines_.try_emplace(std::move(key));
  if (is_first) return grant(line->first, line->second, std::move(granted));
  if (waiting_ >= kWaitingMax)
    return granted(fail(ErrorCode::kOverloaded, "too many wait for turns of partitions"));
  line->second.waiters.push_back({deadline, std::move(granted)});
  ++waiting_;
}

void TurnKeeper::grant(const Bytes& key, Line& line, Granted granted) {
  TETRAD_ASSERT(line.timer == 0);
  const uint64_t number = ++last_number_;
  line.number = number;
  line.timer =
      reactor_.call_at(reactor_.now_us() + kTurnUs, [this, key, number] { end(key, number, 0); });
  granted(GrantedTurn{number, !line.waiters.empty(), line.last_made_us});  // may end it at once
}

void TurnKeeper::end(const Bytes& key, uint64_t number, int64_t last_made_us) {
  const auto line = lines_.find(key);
  if (line == lines_.end() || line->second.number != number) return;
  reactor_.cancel(std::exchange(line->second.timer, 0));
  line->second.last_made_us = std::max(line->second.last_made_us, last_made_us);
  std::deque<Waiter>& waiters = line->second.waiters;
  const base::MonotonicUs now_us = reactor_.now_us();
  TETRAD_ASSERT(waiting_ >= waiters.size());
  while (!waiters.empty() && now_us >= waiters.front().deadline.at_us) {
    waiters.pop_front();
    --waiting_;
  }
  if (waiters.empty()) {
    lines_.erase(line);
    return;
  }
  Waiter next = std::move(waiters.front());
  waiters.pop_front();
  TETRAD_ASSERT(waiting_ != 0);
  --waiting_;
  grant(line->first, line->second, std::move(next.granted));
}

Bytes encode_turn_end(uint64_t number, int64_t last_made_us, BytesView key) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u64(number);
  writer.i64(last_made_us);
  out += key;
  return out;
}

Result<GrantedTurn> decode_turn(BytesView answer) {
  base::ByteReader reader(answer);
  GrantedTurn out;
  TETRAD_TRY(out.number, reader.read_u64());
  TETRAD_TRY(const uint8_t others_wait, reader.read_u8());
  TETRAD_TRY(out.last_made_us, reader.read_i64());
  if (others_wait > 1 || reader.remaining() != 0)
    return fail(ErrorCode::kCorruption, "a turn that does not read");
  out.others_wait = others_wait == 1;
  return out;
}

}  // namespace tetrad::replication
