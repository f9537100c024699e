// SPDX-License-Identifier: Apache-2.0
//
// Everything runs on shard 0. A turn of drain():
//   1. take what the core wants done;
//   2. hand the write to the local log, synced; its end calls persisted() and drains again;
//   3. send messages and images, which the core has held back as long as they rest on a write;
//   4. apply committed entries, in order, and note without a sync up to where: after a power cut
//      they are applied again;
//   5. tell of a change of role.
//
// A write that fails, or a committed command that this program cannot apply, ends the node
// (`fatal`): it must not vote by what it does not have. The local log waits by itself while its
// disk is full.
// The driver of the metadata group's Raft core.
#include "replication/meta/raft_driver.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

namespace {

constexpr BytesView kHardStateKey = "raft/h";
constexpr BytesView kEntryPrefix = "raft/e";
constexpr BytesView kEntryEnd = "raft/f";
constexpr BytesView kSnapshotKey = "raft/s";
constexpr BytesView kAppliedKey = "raft/c";
constexpr RaftGroupId kMetaGroup{1};
// The deadline of an image on its way: two seconds, and a microsecond for every four bytes (4
// MB/s).
constexpr int64_t kImageDeadlineUs = 2'000'000;  // and a microsecond for every four bytes
constexpr size_t kEntryBytesMax = size_t{16} << 20;

using Operation = storage::LocalLog::Operation;

Bytes entry_key(RaftIndex index) {
  Bytes key(kEntryPrefix);
  base::ByteWriter(key).u64(index);
  return key;
}

Bytes encode_image(const RaftSnapshotMeta& meta, BytesView image) {
  Bytes described;
  base::ByteWriter meta_writer(described);
  encode(meta, meta_writer);
  Bytes out;
  base::ByteWriter writer(out);
  writer.bytes(described);
  writer.raw(image);
  return out;
}

Operation put_hard_state(const RaftHardState& state) {
  Bytes value;
  base::ByteWriter writer(value);
  encode(state, writer);
  return {Bytes(kHardStateKey), std::move(value)};
}

Operation put_applied(RaftIndex index) {
  Bytes value;
  base::ByteWriter(value).u64(index);
  return {Bytes(kAppliedKey), std::move(value)};
}

Result<void> load_entries(storage::LocalLog& log, std::vector<RaftEntry>& entries) {
  // A page at a time, so that a long log does not need its memory twice.
  constexpr size_t kPage = 1024;
  Bytes from(kEntryPrefix);
  while (true) {
    TETRAD_TRY(const auto page, log.scan(from, kEntryEnd, kPage));
    for (const auto& [key, value] : page) {
      TETRAD_TRY(RaftEntry entry, decode_raft_entry(BytesView(value)));
      entries.push_back(std::move(entry));
    }
    if (page.size() < kPage) return {};
    from = page.back().first + '\0';
  }
}

}  // namespace

Result<std::optional<RaftDriver::Stored>> RaftDriver::load(storage::LocalLog& log) {
  TETRAD_TRY(const auto hard_state, log.get(kHardStateKey));
  if (!hard_state) return std::optional<Stored>();
  Stored stored;
  TETRAD_TRY(stored.raft.hard_state, decode_raft_hard_state(*hard_state));
  TETRAD_TRY(const auto snapshot, log.get(kSnapshotKey));
  if (snapshot) {
    base::ByteReader in(*snapshot);
    TETRAD_TRY(const BytesView described, in.read_bytes());
    TETRAD_TRY(stored.raft.snapshot, decode_raft_snapshot_meta(described));
    TETRAD_TRY(const BytesView image, in.read_raw(in.remaining()));
    stored.image = Bytes(image);
  }
  TETRAD_TRY_VOID(load_entries(log, stored.raft.entries));
  TETRAD_TRY(const auto applied, log.get(kAppliedKey));
  if (applied) {
    TETRAD_TRY(const uint64_t index, base::ByteReader(*applied).read_u64());
    const RaftIndex last =
        stored.raft.entries.empty() ? stored.raft.snapshot.index : stored.raft.entries.back().index;
    // Without a sync it may be older than the log or, after a power cut, newer than what is left.
    stored.raft.hard_state.commit = std::max(stored.raft.hard_state.commit, std::min(index, last));
  }
  return std::optional<Stored>(std::move(stored));
}

// For the first node of a cluster; written before start().
std::vector<Operation> RaftDriver::founding_state(const RaftConfiguration& configuration) {
  const RaftStored stored = RaftStored::founding(configuration);
  std::vector<Operation> batch;
  batch.push_back(put_hard_state(stored.hard_state));
  batch.push_back({Bytes(kSnapshotKey), encode_image(stored.snapshot, {})});
  return batch;
}

RaftDriver::RaftDriver(base::Reactor& reactor, storage::LocalLog& log, RpcNode& rpc,
                       RaftDriverOptions options, RaftDriverHooks hooks, Logger logger)
    : reactor_(reactor),
      log_(log),
      rpc_(rpc),
      options_(options),
      hooks_(std::move(hooks)),
      logger_(std::move(logger)) {}

RaftDriver::~RaftDriver() {
  if (core_) rpc_.handle(Verb::kRaft, nullptr);
  if (timer_ != 0) reactor_.cancel(timer_);
}

Result<void> RaftDriver::start(Stored stored) {
  TETRAD_ASSERT(!core_);
  TETRAD_ASSERT(timer_ == 0);
  RaftOptions options;
  options.self = rpc_.self();
  options.cluster_id = options_.cluster_id;
  options.group_id = kMetaGroup;
  options.seed = options_.seed;
  options.entry_bytes_max = kEntryBytesMax;
  options.uncommitted_bytes_max = 4 * kEntryBytesMax;
  // Where the log on disk begins and ends, for deletions.
  first_stored_ = stored.raft.snapshot.index + 1;
  last_stored_ = stored.raft.snapshot.index;
  if (!stored.raft.entries.empty()) {
    first_stored_ = stored.raft.entries.front().index;
    last_stored_ = stored.raft.entries.back().index;
  }
  applied_ = image_asked_ = stored.raft.snapshot.index;
  // The image first, then the entries behind it, as they commit.
  if (!stored.image.empty()) TETRAD_TRY_VOID(hooks_.install(stored.image, applied_));
  TETRAD_TRY(core_, RaftCore::make(options, std::move(stored.raft)));
  TETRAD_ASSERT(core_->applied_index() == applied_);
  rpc_.handle(Verb::kRaft, [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
    on_message(context, body, std::move(reply));
  });
  drain();
  // The only voter waits for nobody: it leads as soon as its own vote is on disk, without waiting
  // for a timeout in real time.
  const RaftConfiguration& members = core_->configuration();
  if (members.voters.size() == 1 && members.is_voter(rpc_.self())) {
    for (uint32_t i = 0; i < 2 * options.election_ticks && core_->role() == RaftRole::kFollower;
         ++i)
      core_->tick();
    drain();
  }
  timer_ = reactor_.call_at(reactor_.now_us() + options_.tick_us, [this] { tick(); });
  return {};
}

void RaftDriver::tick() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.tick_us, [this] { tick(); });
  if (is_disk_hung()) {
    if (core_->role() == RaftRole::kLeader)
      logger_.warn("gives up leading the metadata group: its disk has not answered for {} ms",
                   (reactor_.now_us() - writing_since_us_.front()) / 1000);
    core_->resign();
  } else {
    core_->tick();
  }
  drain();
}

// A leader whose disk does not answer still sends heartbeats and would hold up the whole group: it
// resigns after an election timeout.
bool RaftDriver::is_disk_hung() const {
  if (TETRAD_MUTANT(hung_leader) || writing_since_us_.empty()) return false;
  // Alone it has nobody to give anything to.
  if (core_->configuration().voters.size() < 2) return false;
  return reactor_.now_us() - writing_since_us_.front() >
         static_cast<int64_t>(core_->options().election_ticks) * options_.tick_us;
}

Result<RaftPosition> RaftDriver::propose(Bytes command) {
  TETRAD_TRY(const RaftPosition position, core_->propose(std::move(command)));
  drain();
  return position;
}

Result<RaftPosition> RaftDriver::change_configuration(RaftMembershipChange change) {
  TETRAD_TRY(const RaftPosition position, core_->change_configuration(change));
  drain();
  return position;
}

Result<void> RaftDriver::transfer_leadership(RaftServerId to) {
  TETRAD_TRY_VOID(core_->transfer_leadership(to));
  drain();
  return {};
}

Result<void> RaftDriver::take_over() {
  TETRAD_TRY_VOID(core_->take_over());
  drain();
  return {};
}

void RaftDriver::learn_committed(RaftPosition position, RaftServerId from) {
  core_->learn_committed(position.index, position.term, from);
  drain();
}

// Rule 29: what is applied here is not forgotten in a power cut, so `done` may be counted as a
// refusal of the old incarnation.
void RaftDriver::sync_applied(std::function<void()> done) {
  std::vector<Operation> batch;
  batch.push_back(put_applied(applied_));
  write_batch(std::move(batch), true, std::move(done));
}

/// body := varint size, message, [image]
void RaftDriver::on_message(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  if (failed_) return;
  base::ByteReader in(body);
  const auto encoded = in.read_bytes();
  // The sender in the envelope is who the connection belongs to; a message of another name is
  // refused.
  auto message = encoded ? decode_raft_message(*encoded)
                         : Result<RaftMessage>(std::unexpected<Error>(encoded.error()));
  if (!message || message->from != context.from) {
    logger_.warn("raft message refused from={}", context.from_endpoint);
    return;
  }
  // It may ask for what it lacks, so that it sees that it was removed.
  if (hooks_.is_removed && !core_->configuration().contains(message->from) &&
      !std::holds_alternative<RaftFetchRequest>(message->body) &&
      hooks_.is_removed(message->from)) {
    say_refused(context.from_endpoint, Error(ErrorCode::kConflict, "this node was removed"));
    return;
  }
  // Kept for the time of drain(): write() installs it if the core takes it.
  received_image_ = Bytes(body.substr(body.size() - in.remaining()));
  if (received_image_.empty() && std::holds_alternative<RaftInstallSnapshot>(message->body)) {
    logger_.warn("raft snapshot without an image refused from={}", context.from_endpoint);
    return;
  }
  const Result<void> taken = core_->receive(std::move(*message));
  if (!taken) say_refused(context.from_endpoint, taken.error());
  drain();
  received_image_.clear();
  if (reply.wanted()) reply.ok({});
}

/// A contradiction stays until an operator mends it, and messages come many times a second.
void RaftDriver::say_refused(const Endpoint& from, const Error& error) {
  constexpr int64_t kSayAgainUs = 10'000'000;
  const bool is_lasting = error.code == ErrorCode::kConflict;
  if (is_lasting && contradicted_us_ && reactor_.now_us() < *contradicted_us_ + kSayAgainUs) return;
  if (is_lasting) contradicted_us_ = reactor_.now_us();
  logger_.warn("raft message refused from={} reason={}", from, error.message);
}

void RaftDriver::drain() {
  // Hooks propose and so come back here: the outer call goes on with what they asked for.
  // (Hooks run inside of apply and role_changed.)
  if (draining_ || failed_) return;
  draining_ = true;
  const std::weak_ptr<Alive> alive = alive_;
  while (core_->has_actions() && !failed_) {
    RaftActions actions = core_->take_actions();
    // Before the messages: in one drain the write is on its way to the disk while they travel.
    if (actions.persist) write(std::move(*actions.persist));
    for (const RaftMessage& message : actions.messages) send(message);
    for (RaftSnapshotSend& image : actions.snapshots) send_image(std::move(image));
    if (!actions.committed.empty()) apply(std::move(actions.committed));
    // A hook may have ended the node.
    if (alive.expired()) return;
    if (actions.role_change) hooks_.role_changed(*actions.role_change);
    if (alive.expired()) return;
  }
  draining_ = false;
  maybe_take_image();
}

void RaftDriver::write(RaftPersist persist) {
  // One batch: the log on disk is never between two states. The order of its parts is that of
  // RaftPersist.
  std::vector<Operation> batch;
  const auto erase = [&](RaftIndex from, RaftIndex through) {
    for (RaftIndex index = from; index <= through; ++index)
      batch.push_back({entry_key(index), std::nullopt});
  };
  if (persist.snapshot) {
    // The core takes an image only for what is beyond all that was committed here.
    TETRAD_ASSERT(persist.snapshot->index > applied_);
    erase(first_stored_, last_stored_);
    first_stored_ = persist.snapshot->index + 1;
    last_stored_ = persist.snapshot->index;
    batch.push_back({Bytes(kSnapshotKey), encode_image(*persist.snapshot, received_image_)});
    const Result<void> installed = hooks_.install(received_image_, persist.snapshot->index);
    if (!installed) {
      fail_fatally(installed.error());
      return;
    }
    applied_ = image_asked_ = persist.snapshot->index;
    batch.push_back(put_applied(applied_));
    logger_.info("metadata snapshot installed index={}", applied_);
  }
  if (persist.truncate_from) {
    erase(*persist.truncate_from, last_stored_);
    last_stored_ = std::min(last_stored_, *persist.truncate_from - 1);
    TETRAD_ASSERT(*persist.truncate_from > applied_);
  }
  for (const RaftEntry& entry : persist.entries) {
    Bytes value;
    base::ByteWriter writer(value);
    encode(entry, writer);
    TETRAD_ASSERT(entry.index == last_stored_ + 1);
    batch.push_back({entry_key(entry.index), std::move(value)});
    last_stored_ = entry.index;
  }
  if (persist.drop_through && *persist.drop_through >= first_stored_) {
    TETRAD_ASSERT(*persist.drop_through <= applied_);
    erase(first_stored_, std::min(*persist.drop_through, last_stored_));
    first_stored_ = *persist.drop_through + 1;
  }
  TETRAD_ASSERT(first_stored_ <= last_stored_ + 1);
  TETRAD_ASSERT(applied_ <= last_stored_);
  TETRAD_ASSERT(persist.hard_state.commit <= last_stored_);
  batch.push_back(put_hard_state(persist.hard_state));
  // For is_disk_hung(): writes end in order, so the front is the oldest.
  writing_since_us_.push_back(reactor_.now_us());
  const bool installed = persist.snapshot.has_value();
  write_batch(std::move(batch), true, [this, sequence = persist.sequence, installed] {
    TETRAD_ASSERT(!writing_since_us_.empty());
    writing_since_us_.pop_front();
    core_->persisted(sequence);
    const std::weak_ptr<Alive> alive = alive_;
    if (installed) hooks_.applied(applied_);
    if (!alive.expired()) drain();
  });
}

void RaftDriver::write_batch(std::vector<Operation> batch, bool sync, std::function<void()> done) {
  log_.write(
      std::move(batch), sync,
      [this, alive = std::weak_ptr<Alive>(alive_), done = std::move(done)](Result<void> result) {
        if (alive.expired() || failed_) return;
        if (!result) {
          fail_fatally(result.error());
          return;
        }
        if (done) done();
      });
}

void RaftDriver::fail_fatally(const Error& error) {
  if (failed_) return;
  failed_ = true;
  logger_.error("the metadata group cannot go on here: {}", error.message);
  hooks_.fatal(error);
}

void RaftDriver::apply(std::vector<RaftEntry> entries) {
  const std::weak_ptr<Alive> alive = alive_;
  TETRAD_ASSERT(!entries.empty());
  // Handed out only when they are durable here: what was applied is never lost.
  TETRAD_ASSERT(entries.back().index <= last_stored_);
  for (const RaftEntry& entry : entries) {
    TETRAD_ASSERT(entry.index == applied_ + 1);
    // Set before the hook: the command's listeners ask for the applied index.
    const RaftIndex before = std::exchange(applied_, entry.index);
    if (entry.kind != RaftEntryKind::kCommand) continue;
    const Result<void> applied = hooks_.apply(entry.index, entry.data);
    if (alive.expired()) return;
    if (!applied) {
      applied_ = before;
      fail_fatally(applied.error());
      return;
    }
  }
  // Unsynced: it only saves work after a restart.
  std::vector<Operation> batch;
  batch.push_back(put_applied(applied_));
  write_batch(std::move(batch), false, nullptr);
  hooks_.applied(applied_);
}

// One way: what is lost is sent again by the core's own timers.
void RaftDriver::send(const RaftMessage& message) {
  Bytes encoded;
  base::ByteWriter writer(encoded);
  encode(message, writer);
  Bytes body;
  base::ByteWriter(body).bytes(encoded);
  rpc_.one_way(message.to, 0, Verb::kRaft, body);
}

void RaftDriver::send_image(RaftSnapshotSend send) {
  // By a call, since the core wants to know whether it arrived.
  // A fresh image is at least as new as the one on disk, and all it holds is committed.
  auto* install = std::get_if<RaftInstallSnapshot>(&send.message.body);
  TETRAD_ASSERT(install != nullptr);
  const RaftServerId to = send.message.to;
  auto meta = core_->snapshot_meta(applied_);
  if (!meta) {
    core_->snapshot_sent(to, false);
    return;
  }
  TETRAD_ASSERT(meta->index == applied_);
  install->meta = std::move(*meta);
  Bytes encoded;
  base::ByteWriter writer(encoded);
  encode(send.message, writer);
  Bytes body;
  base::ByteWriter(body).bytes(encoded);
  body.append(hooks_.image());
  rpc_.call(
      to, 0, Verb::kRaft, body,
      base::Deadline{reactor_.now_us() + kImageDeadlineUs + static_cast<int64_t>(body.size() / 4)},
      [this, to, alive = std::weak_ptr<Alive>(alive_)](Result<Bytes> result) {
        if (alive.expired()) return;
        core_->snapshot_sent(to, result.has_value());
        drain();
      });
}

// After `snapshot_every` entries. One at a time, by image_asked_; made on the loop, since the
// metadata is small.
void RaftDriver::maybe_take_image() {
  TETRAD_ASSERT(image_asked_ <= applied_);
  if (failed_ || applied_ < image_asked_ + options_.snapshot_every) return;
  auto meta = core_->snapshot_meta(applied_);
  if (!meta) return;
  TETRAD_ASSERT(meta->index == applied_);
  image_asked_ = applied_;
  std::vector<Operation> batch;
  batch.push_back({Bytes(kSnapshotKey), encode_image(*meta, hooks_.image())});
  // Only when it is on disk may the log before it be dropped.
  write_batch(std::move(batch), true, [this, taken = std::move(*meta)] {
    // Refused when a newer one came from the leader meanwhile: then that one counts.
    (void)core_->snapshot_taken(taken);
    drain();
  });
}

}  // namespace tetrad::replication
