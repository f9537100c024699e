// SPDX-License-Identifier: Apache-2.0
// Reads every block of a store's files and compares the checksums, so that rot is found while other
// replicas still have what it hit. File by file, oldest first, each on a maintenance thread, with
// pauses that make a round last the period; where it is stays in the store.
//
//   key "scrub" of the store's own := u64 number of the last file read, i64 wall clock (us) then,
//                                     u64 bytes of that file
//   example: 0000000000000011 000000003b9aca00 0000000000001000   file 17 of 4 KiB, at 1000 s
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/io_pool.h"
#include "base/log.h"
#include "base/reactor.h"
#include "storage/engine/rocks_database.h"
#include "storage/engine/store.h"

namespace tetrad::storage {

/// How far the round over all files has come; kept in the store, so that the next life goes on
/// there.
struct ScrubPlace {
  uint64_t file = 0;   // number of the last file read; 0: none yet
  int64_t at_us = 0;   // wall clock then
  uint64_t bytes = 0;  // of that file: what the pause after it goes by

  Bytes encode() const;
  /// What is missing is 0: a place that does not read only begins the round anew.
  static ScrubPlace decode(BytesView encoded);
};

/// The scrub of one store. Belongs to the store's thread; files are read on a maintenance thread.
class Scrub {
 public:
  /// What the store does for it, on its own thread.
  struct Actions {
    /// Null: not now.
    std::function<std::shared_ptr<RocksDatabase>()> database;
    /// A file does not read.
    std::function<void(const std::string& what)> damaged;
  };
  /// What rounds and pages of this life have read; they only rise.
  struct Figures {
    uint64_t files = 0, bytes = 0, damaged_files = 0;  // of this life
  };

  /// `period_us`: of a round over all files; 0: only when asked. The references outlive this.
  Scrub(int64_t period_us, uint32_t lane, base::Reactor& reactor, base::IoPool& pool,
        Actions actions, Logger logger);
  ~Scrub();
  Scrub(const Scrub&) = delete;
  Scrub& operator=(const Scrub&) = delete;

  /// Goes on where the last life was. Nothing happens where the period is 0.
  void start();
  /// No other file of the round is begun, and what is being read is not taken.
  void stop();
  /// All files now, whatever the pace.
  void run_now(std::move_only_function<void(Result<ScrubSummary>)> done);
  const Figures& figures() const { return figures_; }

 private:
  struct Page;
  struct Round;
  /// On a maintenance thread: the file with the next number. `only_place`: no file is read, only
  /// where the last life was.
  static Page read_next(RocksDatabase& database, uint64_t after, bool keep_place, int64_t now_us,
                        bool only_place);
  void look_after(int64_t us);
  void begin();
  void next();
  void take(const Page& page);
  void note(const Page& page);
  /// As long as the file is a part of all bytes, so that a round lasts the period.
  int64_t pause_us(const Page& page) const;
  void next_of(std::shared_ptr<Round> round);

  const int64_t period_us_;
  const uint32_t lane_;
  base::Reactor& reactor_;
  base::IoPool& pool_;
  const Actions actions_;
  const Logger logger_;
  Figures figures_;
  /// Files are numbered in the order in which they were made: a round goes from the oldest on.
  uint64_t last_file_ = 0;
  bool stopped_ = false;
  base::Reactor::TimerId timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tetrad::storage
