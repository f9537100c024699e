// SPDX-License-Identifier: Apache-2.0
// What a store knows of indexes, and the keys under which it keeps how far they are built.
#include "storage/index/table_indexes.h"

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

constexpr BytesView kName = "index";

}  // namespace

Bytes index_key(TableIncarnation incarnation, uint16_t index_id) {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw(kName);
  w.u32(incarnation.value);
  w.u16(index_id);
  return key;
}

Bytes index_value(const IndexBuild& build) {
  Bytes value(1, build.built ? '\1' : '\0');
  if (!build.built) value.append(build.after);
  return value;
}

Bytes claims_of_index_key(BytesView index_key) {
  TETRAD_ASSERT(index_key.size() > 6);
  const char* tail = index_key.data() + index_key.size() - 6;
  return claims_of_index({base::load_big_endian<uint32_t>(tail)},
                         base::load_big_endian<uint16_t>(tail + 4));
}

void IndexesKnown::load(BytesView key, BytesView value) {
  constexpr size_t kTailBytes = sizeof(uint32_t) + sizeof(uint16_t);
  if (key.size() != sizeof(uint32_t) + kName.size() + kTailBytes || value.empty()) return;
  const BytesView tail = key.substr(key.size() - kTailBytes);
  const TableIncarnation incarnation{base::load_big_endian<uint32_t>(tail.data())};
  const auto index_id = base::load_big_endian<uint16_t>(tail.data() + sizeof(uint32_t));
  // Other keys of the store's own may have the same length.
  if (key != index_key(incarnation, index_id)) return;
  at(incarnation).builds[index_id] = {value[0] == '\1', Bytes(value.substr(1))};
}

std::vector<Bytes> IndexesKnown::set(TableIncarnation incarnation, ClaimMakerPtr maker) {
  std::vector<Bytes> gone;
  const auto table = tables_.find(incarnation.value);
  // Tables that never had an index get no entry: a write asks for one by a pointer.
  if (table == tables_.end() && (maker == nullptr || maker->index_ids().empty())) return gone;
  TableIndexes& known = at(incarnation);
  known.maker = std::move(maker);
  if (known.maker == nullptr) return gone;
  std::erase_if(known.builds, [&](const auto& build) {
    // A number that this schema has not given yet is of a newer one: what is known of it stays.
    const bool dropped = !known.knows(build.first) && build.first < known.maker->next_index_id();
    if (dropped) gone.push_back(index_key(incarnation, build.first));
    return dropped;
  });
  if (known.maker->index_ids().empty() && known.builds.empty()) tables_.erase(incarnation.value);
  return gone;
}

std::vector<Bytes> IndexesKnown::erase(TableIncarnation incarnation) {
  std::vector<Bytes> gone;
  const auto table = tables_.find(incarnation.value);
  if (table == tables_.end()) return gone;
  for (const auto& [index_id, build] : table->second.builds)
    gone.push_back(index_key(incarnation, index_id));
  tables_.erase(table);
  return gone;
}

std::vector<Bytes> forget_unknown_builds(TableIncarnation incarnation, TableIndexes& table) {
  std::vector<Bytes> gone;
  // A write came that made no claims for this index: what was built of it is not whole any more.
  if (TETRAD_MUTANT(build_forgets_marks)) return gone;
  std::erase_if(table.builds, [&](const auto& build) {
    if (table.knows(build.first)) return false;
    gone.push_back(index_key(incarnation, build.first));
    return true;
  });
  return gone;
}

}  // namespace tetrad::storage
