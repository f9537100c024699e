// SPDX-License-Identifier: Apache-2.0
// The audit log of a node: files of JSON lines, one for each record, with the names of Cassandra's
// audit log:
//
//   {"timestamp":1763900000123,"host":"10.0.0.1","source":"10.0.0.9","port":51234,"user":"ann",
//    "type":"UPDATE","category":"DML","ks":"shop","scope":"orders","operation":"INSERT INTO …",
//    "duration_us":412}
//
// "error" is there when it failed, "batch" is the same for the statements of one BATCH. The newest
// file is audit.log; when it is full it becomes audit.1.log, that one audit.2.log, and the oldest is
// removed. Records are on the disk within a second; they are not synced. Where somebody removes or
// renames audit.log, a new one is begun within a second.
//
// check() comes before a statement runs, record() when it has ended: a statement that could not be
// recorded is not run. Both are called by any shard and wait for nothing but a short lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "cql/execute/audit.h"
#include "server/audit/audit_file.h"

namespace tetrad::server {

struct Options;  // config/options.h

/// Which records are kept. An empty `included` set means all; what is excluded is so in any case.
/// Records without a keyspace or user are not filtered by it, as in Cassandra.
struct AuditFilter {
  std::set<cql::AuditCategory> included_categories, excluded_categories;
  std::set<std::string> included_keyspaces, excluded_keyspaces;
  std::set<std::string> included_users, excluded_users;

  bool keeps(const cql::AuditRecord& record) const;
};

/// What an operator has set. Errors: kConfig for a category that there is not.
Result<AuditFilter> audit_filter_of(const Options& options);

class AuditLog;
/// Null: nothing is to be recorded. Errors: kConfig, kIo.
Result<std::unique_ptr<AuditLog>> open_audit_log(const Options& options, const Logger& logger);

/// A line without its end.
std::string audit_line(const cql::AuditRecord& record, const std::string& host);

/// Where and how much.
struct AuditLogOptions {
  std::string folder;
  std::string host;  // of this node, in each line
  uint64_t file_bytes_max = 64u << 20;
  size_t files_max = 16;
  uint64_t waiting_bytes_max = 16u << 20;  // not written yet; then statements are refused
  AuditFilter filter;
};

/// Writes on a thread of its own. What waits when it ends is written.
class AuditLog final : public cql::AuditTrail {
 public:
  /// Makes the folder, which only its owner may read. Errors: kIo.
  static Result<std::unique_ptr<AuditLog>> open(AuditLogOptions options, Logger logger);
  ~AuditLog() override;

  Result<void> check() const override;
  void record(cql::AuditRecord record) override;
  /// Writes to a newly opened audit.log from now on. From any thread.
  void reopen();

  /// From any thread.
  uint64_t recorded() const;
  uint64_t refused() const;
  /// Why the disk takes nothing; "" when it does.
  std::string failure() const;

 private:
  AuditLog(AuditLogOptions options, Logger logger, std::unique_ptr<AuditFile> file);
  /// Of the writing thread: takes what waits, writes it, and tries again when the disk took
  /// nothing.
  void write();
  /// False: they are still to be written.
  bool write_out(const std::vector<cql::AuditRecord>& records, size_t& written);
  /// Of those from `written` on, the lines of as many as go to the file at once.
  std::string next_lines(const std::vector<cql::AuditRecord>& records, size_t written,
                         size_t& end) const;
  /// Whether audit.log is still the file that is written. Errors: kIo.
  Result<void> look_at_file();

  const AuditLogOptions options_;
  const Logger logger_;
  const std::unique_ptr<AuditFile> file_;            // of the thread
  std::chrono::steady_clock::time_point looked_at_;  // of the thread

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::vector<cql::AuditRecord> waiting_;
  uint64_t waiting_bytes_ = 0;  // with those that are being written
  uint64_t recorded_ = 0;
  mutable uint64_t refused_ = 0;
  std::string failure_;  // of the disk; "" when the last write succeeded
  bool reopens_ = false, ending_ = false;

  std::thread thread_;  // last: the others are there when it begins
};

}  // namespace tetrad::server
