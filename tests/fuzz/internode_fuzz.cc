// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what other nodes send. The stream of frames, envelopes, and the bodies of the
// control plane's messages.
#include <cstddef>
#include <cstdint>

#include "replication/meta/meta_command.h"
#include "replication/meta/raft_messages.h"
#include "replication/rpc/envelope.h"
#include "replication/rpc/frame.h"
#include "replication/tablets/heat_board.h"
#include "replication/tablets/load_report.h"
#include "replication/throughput/throughput_board.h"
#include "replication/throughput/throughput_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tetrad;
  using namespace tetrad::replication;
  const BytesView input(reinterpret_cast<const char*>(data), size);

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
