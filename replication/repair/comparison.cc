// SPDX-License-Identifier: Apache-2.0
// Pages are cut by the first member's rows; the others answer for the same page by digests. A page
// that differs is asked for again a few times: a write may be on its way.
#include "replication/repair/comparison.h"

#include <algorithm>

#include "base/assert.h"
#include "base/sleep.h"
#include "replication/replica/replica_messages.h"

namespace tetrad::replication {

using partitioner::Tablet;

namespace {

constexpr uint64_t kPageBytes = 256 << 10;
constexpr int64_t kPageUs = 10'000'000;
constexpr int64_t kAgainUs = 500'000;  // a write may be on its way to a member
constexpr int kTriesMax = 5;
constexpr size_t kSentencesMax = 100;

// Bounded, since a table may differ in each of its tablets, and all goes into one answer.
void say(std::vector<std::string>& sentences, std::string sentence) {
  if (sentences.size() < kSentencesMax) sentences.push_back(std::move(sentence));
}

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
  for (const Target& target : targets) {
    Result<uint64_t> differing = co_await compare(target);
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

Task<Result<uint64_t>> Comparison::compare(Target target) {
  uint64_t differing = 0;
  std::optional<storage::ReadPosition> after;
  while (true) {
    Page page;
    for (int attempt = 0; attempt < kTriesMax && !page.same; ++attempt) {
      // A write that is on its way to one member makes a difference of a moment, not of the data.
      if (attempt != 0) co_await base::sleep_for(reactor_, kAgainUs);
      Result<Page> compared = co_await compare_page(target.incarnation, target.tablet, after);
      if (!compared) co_return std::unexpected<Error>(compared.error());
      page = std::move(*compared);
    }
    ++progress_.pages;
    differing += page.same ? 0 : 1;
    if (page.exhausted) co_return differing;
    after = std::move(page.end);
  }
}

/// The first member gives the rows, which say where the page ends, the others digests.
Task<Result<Comparison::Page>> Comparison::compare_page(
    TableIncarnation incarnation, Tablet tablet, std::optional<storage::ReadPosition> after) {
  TETRAD_ASSERT(tablet.replicas.size() > 1);
  storage::ReadCommand command;
  command.incarnation = incarnation;
  command.is_range = true;
  command.range = tablet.range;
  command.resume_after = std::move(after);
  command.bytes_limit = kPageBytes;
  command.now_s = clock_.now_us(reactor_) / 1'000'000;
  // All members cut their answers at the same horizon and expire by the same time: so equal data
  // gives equal digests (rule 6).
  command.horizon_s = purge_horizon_s(tablet, slack_);
  const Bytes request = encode_read(tablet.epoch, command);
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
