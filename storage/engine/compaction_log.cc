// SPDX-License-Identifier: Apache-2.0
#include "storage/engine/compaction_log.h"

#include <rocksdb/listener.h>

namespace tetrad::storage {
namespace {

class CompactionListener final : public rocksdb::EventListener {
 public:
  explicit CompactionListener(std::shared_ptr<CompactionLog> log) : log_(std::move(log)) {}
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& job) override {
    if (!job.status.ok() || job.stats.total_input_bytes == 0) return;
    log_->add(job.cf_name, job.stats.total_input_bytes, job.stats.total_output_bytes);
  }

 private:
  const std::shared_ptr<CompactionLog> log_;
};

}  // namespace

void CompactionLog::add(std::string family, uint64_t bytes_in, uint64_t bytes_out) {
  const std::lock_guard lock(mutex_);
  records_.push_back({next_number_++, wall_time_us_(), std::move(family), bytes_in, bytes_out});
  if (records_.size() > kept_max_) records_.pop_front();
}

std::vector<CompactionRecord> CompactionLog::records() const {
  const std::lock_guard lock(mutex_);
  return {records_.begin(), records_.end()};
}

std::shared_ptr<rocksdb::EventListener> make_compaction_listener(
    std::shared_ptr<CompactionLog> log) {
  return std::make_shared<CompactionListener>(std::move(log));
}

}  // namespace tetrad::storage
