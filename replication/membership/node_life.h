// SPDX-License-Identifier: Apache-2.0
// The lives of a node: how the last one ended decides whether its stores have all they acknowledged
// (design, rule 20).
//
//   local log, synced:
//   node/l  := u8 version (1), u64 start number, u8 flags (1: begun after a power cut), u64 device,
//              boot id           before anybody is listened to
//   node/ok := u64 start number  after all stores have closed; erased with the writing of the next
//                                node/l
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/engine/local_log.h"

namespace tetrad::replication {

/// What a process runs on. Equal in two lives: what the first had handed to the operating system
/// the second finds.
struct MachineStart {
  std::string boot_id;  // of the machine; "": not known, no two are equal
  uint64_t device = 0;  // that the data is on: another after it was mounted anew elsewhere
};

/// What a life of the node writes down when it begins.
struct NodeLife {
  uint64_t start_number = 0;  // rises by one
  bool after_cut = false;     // it, or one before that did not end well either
  MachineStart machine;

  Bytes encode() const;
  /// Errors: kCorruption.
  static Result<NodeLife> decode(BytesView encoded);
};

/// How the node's last life ended, as far as can be said.
enum class LastEnd : uint8_t {
  kUnknown,  // there was none, or its program kept no account
  kClean,    // all stores closed
  kKilled,   // the process ended, the machine went on: nothing is lost
  kCut,      // the machine may have lost what was not synced
};

/// `clean_mark`: the start number in node/ok. A life that was killed after a cut counts as cut:
/// nobody knows whether it came to note what its stores lack. Pure.
LastEnd end_of(const std::optional<NodeLife>& last, std::optional<uint64_t> clean_mark,
               const MachineStart& now);

/// The life that begins on `now`, after `last`.
NodeLife next_life(const std::optional<NodeLife>& last, LastEnd end, const MachineStart& now);

/// What the local log holds of former lives.
struct LivesKept {
  std::optional<NodeLife> last;
  std::optional<uint64_t> clean_mark;
};
/// Errors: kIo, kCorruption.
Result<LivesKept> load_lives(storage::LocalLog& log);
/// To be synced before the life writes anything else.
std::vector<storage::LocalLog::Operation> begin_life(const NodeLife& life);
/// To be synced after all stores have closed without an error.
std::vector<storage::LocalLog::Operation> end_life(const NodeLife& life);

}  // namespace tetrad::replication
