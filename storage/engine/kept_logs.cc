// SPDX-License-Identifier: Apache-2.0
// Old logs are deleted by size, oldest first, after each flush.
#include "storage/engine/kept_logs.h"

#include <algorithm>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>

namespace tetrad::storage {
namespace {

struct KeptLog {
  std::string file;
  uint64_t bytes = 0;
};

/// Oldest first: a log's name is its number, of six digits or more.
std::vector<KeptLog> kept_logs(rocksdb::Env& env, const std::string& directory) {
  const std::string folder = directory + "/archive";
  std::vector<std::string> names;
  env.GetChildren(folder, &names).PermitUncheckedError();
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".log"); });
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  std::vector<KeptLog> logs;
  for (const std::string& name : names) {
    KeptLog& log = logs.emplace_back(KeptLog{folder + "/" + name});
    env.GetFileSize(log.file, &log.bytes).PermitUncheckedError();
  }
  return logs;
}

uint64_t bytes_of(const std::vector<KeptLog>& logs) {
  uint64_t bytes = 0;
  for (const KeptLog& log : logs) bytes += log.bytes;
  return bytes;
}

void trim(rocksdb::Env& env, const std::vector<KeptLog>& logs, uint64_t bytes_max) {
  uint64_t bytes = bytes_of(logs);
  for (const KeptLog& log : logs) {
    if (bytes <= bytes_max) return;
    if (env.DeleteFile(log.file).ok()) bytes -= log.bytes;
  }
}

class LogTrimmer final : public rocksdb::EventListener {
 public:
  LogTrimmer(double share, std::shared_ptr<const std::atomic<uint32_t>> stores)
      : share_(share), stores_(std::move(stores)) {}
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo&) override {
    rocksdb::Env& env = *db->GetEnv();
    const std::vector<KeptLog> logs = kept_logs(env, db->GetName());
    uint64_t free_bytes = 0;
    if (logs.empty() || !env.GetFreeSpace(db->GetName(), &free_bytes).ok()) return;
    const double all = static_cast<double>(free_bytes) + static_cast<double>(bytes_of(logs));
    trim(env, logs, static_cast<uint64_t>(share_ * all / std::max(1u, stores_->load())));
  }

 private:
  const double share_;
  const std::shared_ptr<const std::atomic<uint32_t>> stores_;
};

}  // namespace

void trim_kept_logs(rocksdb::Env& env, const std::string& directory, uint64_t bytes_max) {
  trim(env, kept_logs(env, directory), bytes_max);
}

std::shared_ptr<rocksdb::EventListener> make_log_trimmer(
    double share, std::shared_ptr<const std::atomic<uint32_t>> stores) {
  return std::make_shared<LogTrimmer>(share, std::move(stores));
}

}  // namespace tetrad::storage
