// SPDX-License-Identifier: Apache-2.0
// Holes in the log. RocksDB hands each record to a filter before it replays it; a record that
// begins behind the number that is next shows that something is missing before it.
#include "storage/engine/log_chain.h"

#include <algorithm>
#include <memory>

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "storage/engine/rocks_status.h"
#include "storage/engine/sync_records.h"

namespace tetrad::storage {
namespace {

using Verdict = rocksdb::WalFilter::WalProcessingOption;

/// The header of a batch in the log: u64 number of its first record, u32 count, both little-endian.
constexpr size_t kNumberBytes = 8;

std::optional<uint64_t> number_of(const rocksdb::WriteBatch& batch) {
  const std::string& data = batch.Data();
  if (data.size() < kNumberBytes) return std::nullopt;
  uint64_t number = 0;
  for (size_t i = kNumberBytes; i-- > 0;) number = number << 8 | static_cast<uint8_t>(data[i]);
  return number;
}

/// The sync record that a batch has, if any.
class RecordOfBatch final : public rocksdb::WriteBatch::Handler {
 public:
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    if (const auto mark = sync_mark_of({key.data(), key.size()}, {value.data(), value.size()}))
      number = std::max(number, mark->number);
    return rocksdb::Status::OK();
  }
  rocksdb::Status MergeCF(uint32_t, const rocksdb::Slice&, const rocksdb::Slice&) override {
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice&) override {
    return rocksdb::Status::OK();
  }
  void LogData(const rocksdb::Slice&) override {}

  uint64_t number = 0;
};

}  // namespace

std::string LogGap::text() const {
  return fmt::format("the log lacks what was written with the numbers {} to {}, before {}", from,
                     to - 1, file);
}

Verdict LogChain::LogRecordFound(unsigned long long, const std::string& file,
                                 const rocksdb::WriteBatch& batch, rocksdb::WriteBatch*, bool*) {
  const auto number = number_of(batch);
  if (!number) return Verdict::kCorruptedRecord;
  if (!gap_ && next_ != 0 && *number > next_) gap_ = LogGap{next_, *number, file};
  next_ = std::max(next_, *number + batch.Count());
  TETRAD_ASSERT(!gap_ || gap_->from < gap_->to);
  if (gap_ && !had_been_synced_) {
    RecordOfBatch record;
    const rocksdb::Status read = batch.Iterate(&record);
    had_been_synced_ = read.ok() && record.number > gap_->from;
  }
  if (at_gap_ == AtGap::kSurvey) return Verdict::kIgnoreCurrentRecord;
  if (!gap_) return Verdict::kContinueProcessing;
  return at_gap_ == AtGap::kStop ? Verdict::kIgnoreCurrentRecord : Verdict::kCorruptedRecord;
}

Result<LogSurvey> survey_log(rocksdb::Options options, const std::string& directory,
                             rocksdb::Env& env) {
  if (!env.FileExists(directory + "/CURRENT").ok()) return LogSurvey();  // a new one
  LogChain chain(LogChain::AtGap::kSurvey);
  options.env = &env;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  options.wal_filter = &chain;
  options.listeners.clear();
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(options, directory, &opened);
  const std::unique_ptr<rocksdb::DB> db(opened);
  if (!status.ok()) return std::unexpected(error_of(status, "looking at the log of " + directory));
  return LogSurvey{chain.gap(), chain.end(), chain.had_been_synced()};
}

}  // namespace tetrad::storage
