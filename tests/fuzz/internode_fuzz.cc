// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what other nodes send. The proof of the cluster's secret, the stream of frames,
// envelopes, and the bodies of the control plane's messages.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "replication/meta/meta_command.h"
#include "replication/meta/raft_messages.h"
#include "replication/rpc/cluster_secret.h"
#include "replication/rpc/envelope.h"
#include "replication/rpc/frame.h"
#include "replication/tablets/heat_board.h"
#include "replication/tablets/load_report.h"
#include "replication/throughput/throughput_board.h"
#include "replication/throughput/throughput_messages.h"

namespace {

/// In two pieces; true: it has passed for a proof.
template <class End>
bool proves(End& end, tetrad::BytesView input) {
  const auto first = end.take(input.substr(0, input.size() / 2));
  if (!first || *first) return first.value_or(false);
  return end.take(input.substr(input.size() / 2)).value_or(false);
}

/// Nobody who has not got the secret comes in, or is taken for a node.
void try_proofs(tetrad::BytesView input) {
  using namespace tetrad::replication;
  const auto secret = std::make_shared<ClusterSecret>();
  secret->secret.text = "0123456789abcdef";
  tetrad::base::Random random(1);
  OpenerProof opener(secret, random), asked(secret, random);
  AcceptorProof acceptor(secret, random), greeted(secret, random);
  if (!greeted.take(opener.out()) || !asked.take(greeted.out())) __builtin_trap();
  if (proves(opener, input) || proves(asked, input)) __builtin_trap();
  if (proves(acceptor, input) || proves(greeted, input)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tetrad;
  using namespace tetrad::replication;
  const BytesView input(reinterpret_cast<const char*>(data), size);

  try_proofs(input);
  FrameReader reader;
  // In two pieces, with the preface in front so that the fuzzer need not find it.
  reader.feed(kStreamPreface);
  reader.feed(input.substr(0, size / 2));
  reader.feed(input.substr(size / 2));
  for (auto message = reader.next(); message && *message; message = reader.next())
    (void)decode_envelope(**message);

  // The bytes as one message, whose checksum would have been right.
  Bytes framed;
  append_frame(input, framed);
  FrameReader whole;
  whole.feed(kStreamPreface);
  whole.feed(framed);
  const auto message = whole.next();
  if (!message || !*message || **message != input) __builtin_trap();

  if (const auto decoded = decode_envelope(input)) {
    Bytes again;
    encode_envelope(decoded->envelope, again);
    if (!decode_envelope(again)) __builtin_trap();
  }
  (void)decode_error(input);
  if (const auto command = decode_meta_command(input)) {
    for (const ClusterFormat format : {kFormatFirst, kFormatNewest})
      if (!decode_meta_command(encode_meta_command(*command, format), format)) __builtin_trap();
  }
  (void)decode_meta_state(input);
  (void)decode_raft_message(input);
  (void)decode_load(input);
  if (const auto report = decode_heat(input)) {
    const auto again = decode_heat(encode_heat(*report));
    if (!again || *again != *report) __builtin_trap();
  }
  if (const auto report = decode_throughput_report(input)) {
    const auto again = decode_throughput_report(encode_throughput_report(*report));
    if (!again || *again != *report) __builtin_trap();
  }
  (void)decode_borrow_request(input);
  (void)decode_loan(input);
  (void)decode_return_request(input);
  (void)decode_share_request(input);
  (void)decode_share(input);
  return 0;
}
