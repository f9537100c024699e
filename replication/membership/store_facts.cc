// SPDX-License-Identifier: Apache-2.0
#include "replication/membership/store_facts.h"

#include <algorithm>
#include <limits>

namespace tetrad::replication {

namespace {

constexpr size_t kStoresTold = 255;
constexpr size_t kTextBytesMax = 200;
constexpr uint8_t kBehind = 1;

}  // namespace

void put_facts(base::ByteWriter& writer, const FactsTold& told) {
  writer.u64(told.nonce);
  const size_t count = std::min(told.stores.size(), kStoresTold);
  writer.u8(static_cast<uint8_t>(count));
  for (size_t i = 0; i < count; ++i) {
    const StoreFacts& store = told.stores[i];
    writer.u64(store.written);
    writer.u64(store.durable);
    writer.u8(store.behind ? kBehind : 0);
    if (!store.behind) continue;
    writer.varint(store.tablets_left);
    writer.bytes(BytesView(store.waits_for).substr(0, kTextBytesMax));
  }
  writer.u64(told.known.nonce);
  if (told.known.nonce == 0) return;
  writer.u64(told.known.start_number);
  const size_t known = std::min(told.known.stores.size(), kStoresTold);
  writer.u8(static_cast<uint8_t>(known));
  for (size_t i = 0; i < known; ++i) {
    writer.u64(told.known.stores[i].written);
    writer.u64(told.known.stores[i].durable);
  }
}

namespace {

Result<StoreFacts> read_store(base::ByteReader& in) {
  StoreFacts store;
  TETRAD_TRY(store.written, in.read_u64());
  TETRAD_TRY(store.durable, in.read_u64());
  TETRAD_TRY(const uint8_t flags, in.read_u8());
  store.behind = (flags & kBehind) != 0;
  if (!store.behind) return store;
  TETRAD_TRY(store.tablets_left, in.read_varint());
  TETRAD_TRY(const BytesView text, in.read_bytes());
  store.waits_for = std::string(text.substr(0, kTextBytesMax));
  return store;
}

Result<LifeHeard> read_known(base::ByteReader& in) {
  LifeHeard known;
  TETRAD_TRY(known.nonce, in.read_u64());
  if (known.nonce == 0) return known;
  TETRAD_TRY(known.start_number, in.read_u64());
  TETRAD_TRY(const uint8_t count, in.read_u8());
  for (size_t i = 0; i < count; ++i) {
    StoreFacts& store = known.stores.emplace_back();
    TETRAD_TRY(store.written, in.read_u64());
    TETRAD_TRY(store.durable, in.read_u64());
  }
  return known;
}

Result<FactsTold> read_all(base::ByteReader& in) {
  FactsTold told;
  TETRAD_TRY(told.nonce, in.read_u64());
  TETRAD_TRY(const uint8_t count, in.read_u8());
  for (size_t i = 0; i < count; ++i) {
    TETRAD_TRY(StoreFacts store, read_store(in));
    told.stores.push_back(std::move(store));
  }
  TETRAD_TRY(told.known, read_known(in));
  return told;
}

}  // namespace

FactsTold read_facts(base::ByteReader& in) {
  auto told = read_all(in);
  return told ? std::move(*told) : FactsTold();
}

uint64_t whole_to_compare(const storage::Recovered& recovered, bool is_cut) {
  const bool is_new = recovered.life <= 1;
  return is_new || is_cut ? std::numeric_limits<uint64_t>::max() : recovered.whole;
}

}  // namespace tetrad::replication
