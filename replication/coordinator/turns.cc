// SPDX-License-Identifier: Apache-2.0
#include "replication/coordinator/turns.h"

#include <algorithm>

namespace tetrad::replication {
namespace {

/// So long after its last contention a partition counts as contended.
constexpr int64_t kContendedUs = 1'000'000;
constexpr size_t kContendedMax = 4'096;

}  // namespace

Turns::Turn& Turns::Turn::operator=(Turn&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  turns_ = std::exchange(other.turns_, nullptr);
  key_ = std::move(other.key_);
  keeper_ = other.keeper_;
  number_ = other.number_;
  last_made_us_ = other.last_made_us_;
  return *this;
}

void Turns::Turn::give_back() {
  Turns* const turns = std::exchange(turns_, nullptr);
  if (turns == nullptr) return;
  if (!keeper_) return turns->keeper_.end(key_, number_, last_made_us_);
  turns->rpc_.one_way(keeper_->host, keeper_->store, Verb::kPaxosTurnEnded,
                      encode_turn_end(number_, last_made_us_, key_));
}

void Turns::note_contention(const Bytes& key) {
  const base::MonotonicUs now_us = reactor_.now_us();
  if (contended_until_us_.size() >= kContendedMax && !contended_until_us_.contains(key)) {
    std::erase_if(contended_until_us_, [&](const auto& entry) { return entry.second <= now_us; });
    if (contended_until_us_.size() >= kContendedMax)
      contended_until_us_.erase(contended_until_us_.begin());
  }
  contended_until_us_[key] = now_us + kContendedUs;
}

bool Turns::is_contended(const Bytes& key) {
  const auto found = contended_until_us_.find(key);
  if (found == contended_until_us_.end()) return false;
  if (reactor_.now_us() < found->second) return true;
  contended_until_us_.erase(found);
  return false;
}

Task<Result<Turns::Turn>> Turns::ask(Bytes key, std::optional<StoreAddress> keeper,
                                     base::Deadline deadline) {
  base::OneShot<Result<GrantedTurn>> granted;
  const auto setter = granted.setter();
  if (!keeper) {
    const base::Reactor::TimerId timer = reactor_.call_at(deadline.at_us, [setter] {
      setter.set(fail(ErrorCode::kTimedOut, "others have had the turn all the time"));
    });
    keeper_.ask(
        key, deadline,
        [this, alive = std::weak_ptr<char>(alive_), setter, timer, key](Result<GrantedTurn> taken) {
          if (alive.expired()) return;
          // Who waits goes on in an event of its own.
          reactor_.post([this, alive, setter, timer, key, taken = std::move(taken)] {
            if (alive.expired()) return;
            if (setter.is_set()) {  // its time is over
              if (taken) keeper_.end(key, taken->number, 0);
              return;
            }
            reactor_.cancel(timer);
            setter.set(taken);
          });
        });
  } else {
    rpc_.call(keeper->host, keeper->store, Verb::kPaxosTurn, key, deadline,
              [setter](Result<Bytes> answer) {
                if (!answer) return setter.set(std::unexpected(std::move(answer.error())));
                setter.set(decode_turn(*answer));
              });
  }
  Result<GrantedTurn> taken = co_await granted;
  if (!taken) co_return std::unexpected(std::move(taken.error()));
  if (taken->others_wait) note_contention(key);
  co_return Turn(this, std::move(key), keeper, *taken);
}

}  // namespace tetrad::replication
