// SPDX-License-Identifier: Apache-2.0
// Paging states go to the client and come back, possibly to another node, possibly changed. So they
// carry a MAC with the cluster's key (HMAC-SHA256, 16 bytes of it) and a hash of the statement: a
// state of another statement would begin in a place that means nothing.
//
// A hidden state (version 2) is encrypted as well, where its position has values that the client
// may not see: the body behind the version byte is XORed with HMAC blocks of the MAC and a counter,
// under a key derived for this use. The MAC is over the plain state, so equal states look equal; it
// is the nonce.
#include "cql/protocol/paging_state.h"

#include <algorithm>

#include "base/byte_io.h"
#include "base/hash.h"
#include "base/secret.h"

namespace tetrad::cql {
namespace {

// States live in clients across upgrades: a version that is no longer read must be refused, never
// misread.
constexpr uint8_t kVersion = 1, kHiddenVersion = 2;
constexpr size_t kMacBytes = 16;

/// `mac` must have room for kMacBytes.
void authenticate(BytesView state, BytesView key, char* mac) {
  const auto whole = base::hmac_sha256(key, state);
  std::copy_n(reinterpret_cast<const char*>(whole.data()), kMacBytes, mac);
}

/// Hides what is read, and the other way round. `mac` is that of the state which can be read.
void hide(Bytes& state, BytesView mac, BytesView key) {
  const auto own = base::hmac_sha256(key, "hidden paging state");
  const BytesView own_key(reinterpret_cast<const char*>(own.data()), own.size());
  std::array<uint8_t, 32> block{};
  for (size_t i = 0; i + 1 < state.size(); ++i) {
    if (i % block.size() == 0) {
      Bytes counted(mac);
      base::ByteWriter(counted).u32(static_cast<uint32_t>(i / block.size()));
      block = base::hmac_sha256(own_key, counted);
    }
    state[i + 1] = static_cast<char>(static_cast<uint8_t>(state[i + 1]) ^ block[i % block.size()]);
  }
}

Result<PagingState> read_state(BytesView bytes) {
  base::ByteReader reader(bytes);
  PagingState state;
  TETRAD_TRY(const uint8_t version, reader.read_u8());
  // The MAC is right: a node gave it that is newer than this one.
  if (version != kVersion && version != kHiddenVersion)
    return fail(ErrorCode::kProtocol,
                "Invalid value for the paging state: another version of the server gave it");
  state.is_hidden = version == kHiddenVersion;
  TETRAD_TRY(const BytesView statement, reader.read_raw(state.statement.size()));
  std::copy(statement.begin(), statement.end(), state.statement.begin());
  TETRAD_TRY(state.rows_left, reader.read_zigzag());
  TETRAD_TRY(state.partition_rows_left, reader.read_zigzag());
  TETRAD_TRY(const BytesView position, reader.read_bytes());
  state.position = position;
  if (!reader.at_end()) return fail(ErrorCode::kCorruption, "bytes left");
  return state;
}

}  // namespace

Bytes encode_paging_state(const PagingState& state, BytesView key) {
  Bytes out;
  out.reserve(64 + state.position.size());
  base::ByteWriter writer(out);
  writer.u8(state.is_hidden ? kHiddenVersion : kVersion);
  writer.raw({reinterpret_cast<const char*>(state.statement.data()), state.statement.size()});
  writer.zigzag(state.rows_left);
  writer.zigzag(state.partition_rows_left);
  writer.bytes(state.position);
  char mac[kMacBytes];
  authenticate(out, key, mac);
  if (state.is_hidden) hide(out, {mac, kMacBytes}, key);
  out.append(mac, kMacBytes);
  return out;
}

Result<PagingState> decode_paging_state(BytesView bytes, const StatementHash& statement,
                                        BytesView key) {
  if (bytes.size() <= kMacBytes) return fail(ErrorCode::kProtocol, kForeignPagingState);
  BytesView body = bytes.substr(0, bytes.size() - kMacBytes);
  const BytesView given = bytes.substr(body.size());
  Bytes readable;
  if (static_cast<uint8_t>(body.front()) == kHiddenVersion) {
    readable = body;
    hide(readable, given, key);
    body = readable;
  }
  char mac[kMacBytes];
  authenticate(body, key, mac);
  // Compared in constant time.
  if (!base::is_same_secret({mac, kMacBytes}, given))
    return fail(ErrorCode::kProtocol, kForeignPagingState);
  auto state = read_state(body);
  if (!state) {
    if (state.error().code == ErrorCode::kProtocol) return state;
    return fail(ErrorCode::kProtocol, kForeignPagingState);
  }
  if (state->statement != statement) {
    return fail(ErrorCode::kInvalid,
                "The paging state belongs to another statement, or the schema has changed since: "
                "please start from the first page");
  }
  return state;
}

}  // namespace tetrad::cql
