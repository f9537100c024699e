// SPDX-License-Identifier: Apache-2.0
// Whether the write-ahead log of a database is whole. RocksDB numbers all that it writes without a
// hole, but replays a log that has one: it passes over a block of zeros, and goes on with the next
// log where one ends too early.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <rocksdb/wal_filter.h>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/engine/sync_mark.h"

namespace rocksdb {
class Env;
struct Options;
}  // namespace rocksdb

namespace tetrad::storage {

/// What was written with the numbers from <= n < to is not in the log; what is behind it is there.
struct LogGap {
  uint64_t from = 0, to = 0;
  std::string file;  // of what is behind it

  /// For a log line: which numbers are missing, and before which file.
  std::string text() const;
};

/// Sees every record of the log that an open replays, in order.
class LogChain final : public rocksdb::WalFilter {
 public:
  /// What a hole in the log means for the open that replays it.
  enum class AtGap : uint8_t {
    kRefuse,  // the open fails
    kStop,    // what is behind the first one is left out
    kSurvey,  // nothing at all is replayed
  };
  explicit LogChain(AtGap at_gap) : at_gap_(at_gap) {}

  const char* Name() const override { return "LogChain"; }
  /// RocksDB calls it for each record before it replays that.
  WalProcessingOption LogRecordFound(unsigned long long log, const std::string& file,
                                     const rocksdb::WriteBatch& batch, rocksdb::WriteBatch*,
                                     bool*) override;

  /// The first one.
  const std::optional<LogGap>& gap() const { return gap_; }
  /// Below it, from the first record on, all is there; 0: there are no records.
  uint64_t end() const { return gap_ ? gap_->from : next_; }
  /// A sync record behind the gap says that what is missing had been synced: the disk has lost what
  /// it said it had.
  bool had_been_synced() const { return had_been_synced_; }

 private:
  const AtGap at_gap_;
  uint64_t next_ = 0;  // number of the next record; 0: none was seen
  std::optional<LogGap> gap_;
  bool had_been_synced_ = false;
};

/// What the log of a store has that is not in its files, read past all damage; nothing is changed.
/// For an open after a power cut: of what had not been synced, any part may be missing.
struct LogSurvey {
  std::optional<LogGap> gap;
  uint64_t end = 0;  // as LogChain::end()
  bool had_been_synced = false;
};
/// Errors: those of opening the database. Blocks.
Result<LogSurvey> survey_log(rocksdb::Options options, const std::string& directory,
                             rocksdb::Env& env);

}  // namespace tetrad::storage
