// SPDX-License-Identifier: Apache-2.0
// Requests and their price:
//
//   1. Each bucket that this shard has met has an account here, from which requests are paid.
//   2. What runs low is borrowed from the holder of the bucket, a slice at a time, debts first.
//   3. Who finds it empty waits in line, if the line is short enough, and is refused otherwise.
//   4. A holder that does not answer is done without: the account goes on at its last rate, until
//      that holder answers again or another one holds the bucket. So both never lend for longer
//      than the nodes take to agree on who is down.
#include "replication/throughput/throughput_gate.h"

#include <algorithm>

#include "base/assert.h"
#include "base/sleep.h"
#include "base/uuid.h"
#include "storage/row/row_weight.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kAskUs = 200'000;
constexpr int64_t kAloneUs = 1'000'000;  // before a holder that did not answer is asked again
constexpr int64_t kStaleUs = 1'000'000;  // who holds the bucket is not known for longer: alone
constexpr int64_t kStaleRetryUs = 10'000;
constexpr int64_t kStaleAloneUs = 50'000;  // the same, where the shard goes on alone meanwhile
constexpr int64_t kLookEveryUs = 100'000;
constexpr int64_t kUnspentUs = 200'000;  // what is unspent for this long goes back
constexpr int64_t kCountedUs = 1'000'000;
constexpr int64_t kForgottenAfterUs = 60'000'000;
constexpr int64_t kSecondUs = 1'000'000;

}  // namespace

ThroughputGate::ThroughputGate(base::Reactor& reactor, base::Random& random, RpcNode& rpc,
                               MetaService& meta, ThroughputOptions options)
    : reactor_(reactor), random_(random), rpc_(rpc), meta_(meta), options_(options) {
  const auto look = [this](const MetaState& state) { on_ = state.limited_tables != 0; };
  if (const MetaSnapshot state = meta_.snapshot()) look(*state);
  subscription_ = meta_.subscribe([this, look](const MetaSnapshot&, const MetaSnapshot& now) {
    look(*now);
    // Rates and holders may have changed: requests that wait for an empty bucket ask again.
    for (const auto& [key, account] : accounts_) account->nothing_before_us = 0;
  });
}

ThroughputGate::~ThroughputGate() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

bool ThroughputGate::is_limited(TableIncarnation table) const {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* info = state->table(table);
  return info != nullptr && info->throughput.is_limited();
}

ThroughputGate::AccountPtr ThroughputGate::account_of(const MetaState& state,
                                                      TableIncarnation incarnation,
                                                      RingPosition position) {
  const TableInfo* table = state.table(incarnation);
  if (table == nullptr || !table->throughput.is_limited()) return nullptr;
  const TabletId tablet = table->tablets.find(position).id;
  const BucketName name = bucket_of(*table, tablet);
  const base::MonotonicUs now_us = reactor_.now_us();
  AccountPtr& account = accounts_[name.key];
  if (account == nullptr) {
    account = std::make_shared<Account>();
    account->key = name.key;
    account->counted_since_us = now_us;
    if (timer_ == 0) arm();
  }
  set_rate(*account, name.per_s);
  account->table = incarnation;
  account->tablet = tablet;
  account->position = position;
  account->used_us = now_us;
  return account;
}

/// What was lent at a higher rate is that much less at a lower one.
int64_t ThroughputGate::at_rate(int64_t lent, uint64_t was_per_s, uint64_t is_per_s) {
  if (lent <= 0 || is_per_s >= was_per_s) return lent;
  return static_cast<int64_t>(static_cast<double>(lent) * static_cast<double>(is_per_s) /
                              static_cast<double>(was_per_s));
}

void ThroughputGate::set_rate(Account& account, uint64_t per_s) {
  account.balance = at_rate(account.balance, account.per_s, per_s);
  account.per_s = per_s;
}

std::vector<ThroughputGate::Taken> ThroughputGate::sum_up(const std::vector<ThroughputUse>& uses) {
  std::vector<Taken> out;
  const MetaSnapshot state = meta_.snapshot();
  for (const ThroughputUse& use : uses) {
    const AccountPtr account = account_of(*state, use.table, use.position);
    if (account == nullptr) continue;
    const auto weight = static_cast<int64_t>(use.weight);
    const auto same =
        std::ranges::find_if(out, [&](const Taken& taken) { return taken.account == account; });
    if (same == out.end())
      out.push_back({account, weight});
    else
      same->weight += weight;
  }
  return out;
}

void ThroughputGate::spend(const AccountPtr& account, int64_t weight) {
  account->balance -= weight;
  // Asks before the slice is used up, so that a steady stream of requests never waits for the
  // answer.
  if (account->balance < account->slice() / 4 && reactor_.now_us() >= account->nothing_before_us)
    ask(account);
}

int64_t ThroughputGate::line_us(const Account& account) const {
  const int64_t empty_us = std::max<int64_t>(account.nothing_before_us - reactor_.now_us(), 0);
  // In steps of a millisecond; + 1 keeps the divisor from being zero at rates under 1,000.
  const auto per_ms = static_cast<int64_t>(std::max(account.per_s, account.lent_per_s) / 1000 + 1);
  return empty_us + account.waiting_weight / per_ms * 1000;
}

Task<Result<void>> ThroughputGate::admit(std::vector<ThroughputUse> uses, base::Deadline deadline) {
  const std::vector<Taken> wanted = sum_up(uses);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const AccountPtr account = wanted[i].account;
    const int64_t weight = wanted[i].weight;
    // Who comes does not overtake who waits, even where the balance would do.
    if (account->waiters.empty() && account->balance > 0) {
      spend(account, weight);
      continue;
    }
    const base::MonotonicUs now_us = reactor_.now_us();
    const base::MonotonicUs until_us = std::min(now_us + options_.wait_us, deadline.at_us);
    int64_t retry_us = line_us(*account);
    if (now_us + retry_us <= until_us) {
      Turn turn;
      // It would be let in within the wait: in line. Otherwise it is refused at once, without a
      // timer.
      account->waiters.push_back({weight, until_us, turn.setter()});
      account->waiting_weight += weight;
      ask(account);
      retry_us = co_await turn;
      if (retry_us == 0) {
        if (reactor_.now_us() != now_us) metrics_.waited.add();
        continue;
      }
    }
    metrics_.refused.add();
    ++account->refused;
    account->refused_weight += static_cast<uint64_t>(weight);
    // All or nothing: what other partitions of the same request have taken goes back.
    for (size_t taken = 0; taken < i; ++taken)
      wanted[taken].account->balance += wanted[taken].weight;
    co_return std::unexpected(refusal(*account, retry_us));
  }
  co_return Result<void>();
}

void ThroughputGate::settle(TableIncarnation table, RingPosition position, int64_t weight) {
  if (!on_) return;
  const AccountPtr account = account_of(*meta_.snapshot(), table, position);
  if (account != nullptr) spend(account, weight);
}

void ThroughputGate::ask(const AccountPtr& account) {
  if (account->is_asking) return;
  TETRAD_ASSERT(account->per_s > 0);
  account->is_asking = true;
  tasks_.spawn(borrow(account));
}

Task<void> ThroughputGate::borrow(AccountPtr account) {
  while (true) {
    // The bucket was empty a moment ago: asking again sooner is a message for nothing.
    if (account->nothing_before_us > reactor_.now_us()) {
      refuse_late(*account);
      if (account->waiters.empty()) break;
      co_await base::sleep_until(reactor_, account->nothing_before_us);
      continue;
    }
    const Answer answer = co_await ask_holder(account);
    const Loan& loan = answer.loan;
    const int64_t granted =
        at_rate(static_cast<int64_t>(loan.granted), answer.per_s, account->per_s);
    // The debt that was reported is the holder's from now on.
    account->balance += static_cast<int64_t>(answer.paid) + granted;
    account->lent_us = reactor_.now_us();
    account->lent_per_s = loan.per_s;
    if (!account->own) count_granted(*account, loan.granted + answer.paid);
    if (loan.granted == 0)
      // At least a millisecond, or a holder that answers 0 would be asked in a loop.
      account->nothing_before_us = reactor_.now_us() + std::max<int64_t>(loan.retry_us, 1'000);
    let_in(*account);
    if (account->waiters.empty()) break;
  }
  TETRAD_ASSERT(account->is_asking);
  TETRAD_ASSERT(account->waiting_weight == 0);
  account->is_asking = false;
}

Task<ThroughputGate::Answer> ThroughputGate::ask_holder(AccountPtr account) {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = table_of(*state, account->key, account->table);
  const uint64_t debt = account->balance < 0 ? static_cast<uint64_t>(-account->balance) : 0;
  // The table is gone, or has no limit any more: release all that wait.
  if (table == nullptr) co_return Answer{{slice_of(account->per_s) + 1, 0}, debt, account->per_s};
  account->table = table->incarnation;
  const partitioner::Tablet& tablet = table->tablets.find(account->position);
  set_rate(*account, bucket_of(*table, tablet.id).per_s);
  const uint64_t per_s = account->per_s;
  const base::MonotonicUs now_us = reactor_.now_us();
  const HostId holder = holder_of(*state, meta_, *table, tablet);
  // A holder that did not answer is left alone for a second; another one is asked at once.
  if (now_us >= account->alone_until_us || holder != account->asked_of) {
    account->asked_of = holder;
    // After a merge the whole lends what waits here, and takes what is owed.
    BorrowRequest request{account->table, tablet.id, debt};
    if (state->format >= kFormatThroughput) {
      request.place = account->position;
      request.shard = rpc_.shard();
      // Each refusal is reported once; if the message is lost, so is the number.
      request.refused = std::exchange(account->refused, 0);
      request.refused_weight = std::exchange(account->refused_weight, 0);
    }
    Bytes body = encode_borrow_request(request);
    const base::Deadline deadline{now_us + kAskUs};
    const Result<Bytes> reply =
        co_await rpc_.ask(holder, 0, Verb::kBorrowThroughput, std::move(body), deadline);
    std::optional<Answer> answer = heard(*account, reply, debt);
    // The throughput may have been lowered meanwhile.
    const MetaSnapshot later = meta_.snapshot();
    if (const TableInfo* now = table_of(*later, account->key, account->table))
      set_rate(*account, bucket_of(*now, tablet.id).per_s);
    if (answer) {
      answer->per_s = per_s;
      co_return *answer;
    }
  }
  co_return lend_alone(*account, debt, *state);
}

/// Unset: the shard is alone.
std::optional<ThroughputGate::Answer> ThroughputGate::heard(Account& account,
                                                            const Result<Bytes>& reply,
                                                            uint64_t debt) {
  const base::MonotonicUs now_us = reactor_.now_us();
  if (reply) {
    const Result<Loan> loan = decode_loan(*reply);
    if (loan) {
      end_alone(account);
      return Answer{*loan, debt};
    }
  } else if (reply.error().code == ErrorCode::kStaleEpoch) {
    // Where a tablet was cut, merged or moved, one of the two has not heard of it yet.
    if (account.own) {
      account.alone_until_us = now_us + kStaleAloneUs;
      return std::nullopt;
    }
    if (!account.stale_since_us) account.stale_since_us = now_us;
    if (now_us - *account.stale_since_us < kStaleUs) return Answer{{0, kStaleRetryUs}, 0};
  }
  account.alone_until_us = now_us + kAloneUs;
  return std::nullopt;
}

/// What it owes to itself it owes to the holder now.
void ThroughputGate::end_alone(Account& account) {
  account.stale_since_us.reset();
  if (!account.own) return;
  account.balance += std::min<int64_t>(account.own->level(reactor_.now_us()), 0);
  account.own.reset();
  account.granted = 0;
  account.counted_since_us = reactor_.now_us();
}

/// The last rate, or an even part (rule 31).
uint64_t ThroughputGate::alone_per_s(const Account& account, const MetaState& state) const {
  uint64_t shards = 0;  // each has a store
  for (const auto& [host, node] : state.nodes)
    if (meta_.is_live(host)) shards += node.store_count;
  // What the holder has granted lately, or the part of one shard among all, whichever is more.
  const uint64_t even = account.per_s / std::max<uint64_t>(shards, 1);
  return std::clamp<uint64_t>(std::max(account.granted_per_s, even), 1, account.per_s);
}

ThroughputGate::Answer ThroughputGate::lend_alone(Account& account, uint64_t debt,
                                                  const MetaState& state) {
  TETRAD_ASSERT(account.per_s > 0);
  const base::MonotonicUs now_us = reactor_.now_us();
  if (!account.own) count_granted(account, 0);
  const uint64_t per_s = alone_per_s(account, state);
  if (!account.own) {
    account.own.emplace(per_s, now_us);
    account.own->take(per_s - slice_of(per_s), now_us);  // what flowed in before is spent
  }
  account.own->set_rate(per_s, now_us);
  account.own->take(debt, now_us);
  const Slice slice = lend(*account.own, per_s, 1, now_us);
  return {{slice.granted, slice.retry_us}, debt, account.per_s};
}

void ThroughputGate::count_granted(Account& account, uint64_t granted) {
  account.granted += granted;
  const int64_t passed_us = reactor_.now_us() - account.counted_since_us;
  // Shorter times would measure single slices.
  if (passed_us < kCountedUs) return;
  account.granted_per_s = account.granted * kSecondUs / static_cast<uint64_t>(passed_us);
  account.granted = 0;
  account.counted_since_us = reactor_.now_us();
}

void ThroughputGate::let_in(Account& account) {
  while (!account.waiters.empty() && account.balance > 0) {
    const Waiter first = std::move(account.waiters.front());
    account.waiters.pop_front();
    TETRAD_ASSERT(account.waiting_weight >= first.weight);
    account.waiting_weight -= first.weight;
    account.balance -= first.weight;
    first.turn.set(0);
  }
}

void ThroughputGate::refuse_late(Account& account) {
  while (!account.waiters.empty() && account.waiters.front().until_us < account.nothing_before_us) {
    const Waiter first = std::move(account.waiters.front());
    account.waiters.pop_front();
    TETRAD_ASSERT(account.waiting_weight >= first.weight);
    account.waiting_weight -= first.weight;
    first.turn.set(std::max<int64_t>(line_us(account), 1));
  }
}

Error ThroughputGate::refusal(const Account& account, int64_t retry_us) {
  // The text is that of Azure Cosmos DB: drivers' retry policies look for its parts.
  const std::string id = base::make_random_uuid(random_).to_string();
  const int64_t retry_ms = std::max<int64_t>((retry_us + 999) / 1000, 1);
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(account.table);
  std::string reason = "the table is gone";
  if (table != nullptr) {
    const double units = static_cast<double>(account.per_s) / storage::kWeightOfUnit;
    reason =
        table->throughput.of_keyspace
            ? fmt::format("keyspace {} has {:.0f} request units a second", table->keyspace, units)
            : fmt::format("physical partition {} of {}.{} has {:.0f} request units a second",
                          account.tablet.value, table->keyspace, table->name, units);
  }
  return Error(
      ErrorCode::kOverloaded,
      fmt::format("Request rate is large: ActivityID={}, RetryAfterMs={}, Additional "
                  "details='Response status code does not indicate success: TooManyRequests "
                  "(429); Substatus: 3200; ActivityId: {}; Reason: ({})'",
                  id, retry_ms, id, reason));
}

void ThroughputGate::arm() {
  timer_ = reactor_.call_at(reactor_.now_us() + kLookEveryUs, [this] {
    timer_ = 0;
    give_back();
    if (!accounts_.empty()) arm();
  });
}

/// Also tells of debts, where no request asks for more.
void ThroughputGate::give_back() {
  const MetaSnapshot state = meta_.snapshot();
  const base::MonotonicUs now_us = reactor_.now_us();
  if (now_us - forgotten_us_ >= kForgottenAfterUs) forget_idle();
  std::vector<std::pair<uint64_t, AccountPtr>> idle;
  for (const auto& [key, account] : accounts_) {
    if (account->is_asking) continue;
    if (account->balance > 0) {
      if (account->lent_us <= now_us - kUnspentUs) idle.emplace_back(key, account);
    } else if ((account->balance < 0 && account->nothing_before_us <= now_us) ||
               (account->refused != 0 &&
                (account->nothing_before_us <= now_us || may_be_given(*state, *account)))) {
      idle.emplace_back(key, account);
    }
  }
  // By key: the order of messages must not depend on a hash map.
  std::ranges::sort(idle, {}, &std::pair<uint64_t, AccountPtr>::first);
  for (const auto& [key, account] : idle) {
    if (account->balance > 0) {
      give_back(*state, *account);
      continue;
    }
    account->nothing_before_us = 0;
    ask(account);
  }
}

/// Whether the holder may have more than flows in, which it did not know of when it answered: what
/// others of the table do not use, and that only while it hears of what is refused.
bool ThroughputGate::may_be_given(const MetaState& state, const Account& account) {
  const TableInfo* table = table_of(state, account.key, account.table);
  return table != nullptr && !table->throughput.of_keyspace &&
         table->tablets.tablets().size() > 1 && state.format >= kFormatThroughput;
}

void ThroughputGate::give_back(const MetaState& state, Account& account) {
  const TableInfo* table = table_of(state, account.key, account.table);
  if (table == nullptr || account.own || state.format < kFormatThroughput) return;
  account.table = table->incarnation;
  const partitioner::Tablet& tablet = table->tablets.find(account.position);
  set_rate(account, bucket_of(*table, tablet.id).per_s);
  // Taken off before it is sent: a return that is lost is lost, it is never spent as well.
  const auto unspent = static_cast<uint64_t>(std::exchange(account.balance, 0));
  const ReturnRequest request{account.table, tablet.id, tablet.range.end, unspent};
  rpc_.one_way(holder_of(state, meta_, *table, tablet), 0, Verb::kReturnThroughput,
               encode_return_request(request));
}

void ThroughputGate::forget_idle() {
  forgotten_us_ = reactor_.now_us();
  std::erase_if(accounts_, [&](const auto& entry) {
    const Account& account = *entry.second;
    return !account.is_asking && account.used_us <= forgotten_us_ - kForgottenAfterUs;
  });
}

}  // namespace tetrad::replication
