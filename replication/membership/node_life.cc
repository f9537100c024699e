// SPDX-License-Identifier: Apache-2.0
#include "replication/membership/node_life.h"

#include "base/byte_io.h"
#include "base/data_mutants.h"

namespace tetrad::replication {
namespace {

constexpr BytesView kLifeKey = "node/l", kCleanKey = "node/ok";
constexpr uint8_t kVersion = 1, kAfterCut = 1;

}  // namespace

Bytes NodeLife::encode() const {
  Bytes out;
  base::ByteWriter w(out);
  w.u8(kVersion);
  w.u64(start_number);
  w.u8(after_cut ? kAfterCut : 0);
  w.u64(machine.device);
  w.raw(machine.boot_id);
  return out;
}

Result<NodeLife> NodeLife::decode(BytesView encoded) {
  base::ByteReader r(encoded);
  NodeLife life;
  TETRAD_TRY(const uint8_t version, r.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "node/l is of version {}; {} is known", version, kVersion);
  TETRAD_TRY(life.start_number, r.read_u64());
  TETRAD_TRY(const uint8_t flags, r.read_u8());
  if (flags > kAfterCut) return fail(ErrorCode::kCorruption, "node/l has flags {}", flags);
  life.after_cut = flags == kAfterCut;
  TETRAD_TRY(life.machine.device, r.read_u64());
  TETRAD_TRY(const BytesView boot_id, r.read_raw(r.remaining()));
  life.machine.boot_id = std::string(boot_id);
  return life;
}

LastEnd end_of(const std::optional<NodeLife>& last, std::optional<uint64_t> clean_mark,
               const MachineStart& now) {
  if (!last) return LastEnd::kUnknown;
  if (clean_mark == last->start_number) return LastEnd::kClean;
  const bool same_boot = !now.boot_id.empty() && last->machine.boot_id == now.boot_id;
  const bool same_machine = same_boot && last->machine.device == now.device;
  if (!same_machine && !TETRAD_MUTANT(boot_id_ignored)) return LastEnd::kCut;
  return last->after_cut ? LastEnd::kCut : LastEnd::kKilled;
}

NodeLife next_life(const std::optional<NodeLife>& last, LastEnd end, const MachineStart& now) {
  return {(last ? last->start_number : 0) + 1, end == LastEnd::kCut, now};
}

Result<LivesKept> load_lives(storage::LocalLog& log) {
  LivesKept kept;
  TETRAD_TRY(const auto life, log.get(kLifeKey));
  if (life) {
    TETRAD_TRY(kept.last, NodeLife::decode(*life));
  }
  TETRAD_TRY(const auto mark, log.get(kCleanKey));
  if (mark) {
    TETRAD_TRY(kept.clean_mark, base::ByteReader(*mark).read_u64());
  }
  return kept;
}

std::vector<storage::LocalLog::Operation> begin_life(const NodeLife& life) {
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({Bytes(kLifeKey), life.encode()});
  batch.push_back({Bytes(kCleanKey), std::nullopt});
  return batch;
}

std::vector<storage::LocalLog::Operation> end_life(const NodeLife& life) {
  Bytes mark;
  base::ByteWriter(mark).u64(life.start_number);
  std::vector<storage::LocalLog::Operation> batch;
  batch.push_back({Bytes(kCleanKey), std::move(mark)});
  return batch;
}

}  // namespace tetrad::replication
