// SPDX-License-Identifier: Apache-2.0
// How a record gets to the disk:
//
// 1. Before a statement runs, check() refuses it if the disk takes nothing or too many bytes wait. So
//    nothing runs unrecorded when the disk is full, and memory stays bounded.
// 2. record(), on the thread of the shard, filters and appends to `waiting_` under the mutex. It
//    never touches the disk.
// 3. The log's own thread takes all that waits, every 200 ms or as soon as 256 KiB wait, and writes
//    it line by line.
// 4. When the disk fails, the thread keeps the records and tries again, from the first one that is
//    not written.
// 5. Once a second the thread looks whether audit.log is still the file that it writes.
#include "server/audit/audit_log.h"

#include <nlohmann/json.hpp>

#include "server/config/name_list.h"
#include "server/config/options.h"

namespace tetrad::server {
namespace {

using cql::AuditCategory;

/// How often records are written that are few, and a disk that failed is tried again.
constexpr std::chrono::milliseconds kWritePeriod{200};
constexpr uint64_t kWriteBytes = 256u << 10;  // written as soon as this much waits
constexpr uint64_t kChunkBytes = 64u << 10;   // of one system call
constexpr std::chrono::seconds kLookPeriod{1};

// What a record takes of memory, about. The same record must always give the same number: it is
// added once and taken off once.
uint64_t bytes_of(const cql::AuditRecord& record) {
  return sizeof(record) + record.user.size() + record.client_address.size() +
         record.subject.keyspace.size() + record.subject.name.size() + record.text.size() +
         record.error.size();
}

/// A name that is not there is not filtered.
bool keeps_name(const std::set<std::string>& included, const std::set<std::string>& excluded,
                const std::string& name) {
  if (name.empty()) return true;
  // Excluded wins over included, as in Cassandra.
  return !excluded.contains(name) && (included.empty() || included.contains(name));
}

std::set<std::string> set_of(const std::string& list) {
  const std::vector<std::string> names = names_in(list, Letters::kKept);
  return {names.begin(), names.end()};
}

Result<std::set<AuditCategory>> categories_in(const std::string& option, const std::string& list) {
  std::set<AuditCategory> out;
  for (const std::string& name : names_in(list, Letters::kUpper)) {
    size_t number = 0;
    while (number < cql::kAuditCategories &&
           cql::name_of(static_cast<AuditCategory>(number)) != name)
      ++number;
    if (number == cql::kAuditCategories) {
      return fail(ErrorCode::kConfig,
                  "{}: {} is none of QUERY, DML, DDL, DCL, OTHER, AUTH, ERROR, PREPARE, ADMIN",
                  option, name);
    }
    out.insert(static_cast<AuditCategory>(number));
  }
  return out;
}

}  // namespace

bool AuditFilter::keeps(const cql::AuditRecord& record) const {
  const AuditCategory category = record.subject.category;
  if (excluded_categories.contains(category)) return false;
  if (!included_categories.empty() && !included_categories.contains(category)) return false;
  return keeps_name(included_keyspaces, excluded_keyspaces, record.subject.keyspace) &&
         keeps_name(included_users, excluded_users, record.user);
}

Result<AuditFilter> audit_filter_of(const Options& options) {
  AuditFilter out;
  TETRAD_TRY(out.included_categories,
             categories_in("audit_log_included_categories", options.audit_log_included_categories));
  TETRAD_TRY(out.excluded_categories,
             categories_in("audit_log_excluded_categories", options.audit_log_excluded_categories));
  out.included_keyspaces = set_of(options.audit_log_included_keyspaces);
  out.excluded_keyspaces = set_of(options.audit_log_excluded_keyspaces);
  out.included_users = set_of(options.audit_log_included_users);
  out.excluded_users = set_of(options.audit_log_excluded_users);
  return out;
}

Result<std::unique_ptr<AuditLog>> open_audit_log(const Options& options, const Logger& logger) {
  if (!options.audit_log_enabled) return nullptr;
  AuditLogOptions out;
  out.folder = options.audit_log_directory.empty() ? options.data_directory + "/audit"
                                                   : options.audit_log_directory;
  out.host = options.listen_address;
  out.file_bytes_max = options.audit_log_file_mb << 20;
  out.files_max = options.audit_log_files;
  TETRAD_TRY(out.filter, audit_filter_of(options));
  return AuditLog::open(std::move(out), logger);
}

std::string audit_line(const cql::AuditRecord& record, const std::string& host) {
  nlohmann::ordered_json line;
  // The order of the fields is part of the format: ordered_json keeps it.
  line["timestamp"] = record.unix_ms;
  line["host"] = host;
  line["source"] = record.client_address;
  line["port"] = record.client_port;
  line["user"] = record.user.empty() ? "anonymous" : record.user;
  line["type"] = record.subject.type;
  line["category"] = cql::name_of(record.subject.category);
  if (record.batch) line["batch"] = record.batch->to_string();
  if (!record.subject.keyspace.empty()) line["ks"] = record.subject.keyspace;
  if (!record.subject.name.empty()) line["scope"] = record.subject.name;
  line["operation"] = record.text;
  if (!record.error.empty()) line["error"] = record.error;
  line["duration_us"] = record.duration_us;
  // Text of clients may be no UTF-8. The default handler would throw; this one writes U+FFFD.
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(AuditLogOptions options, Logger logger) {
  auto file =
      std::make_unique<AuditFile>(options.folder, options.file_bytes_max, options.files_max);
  if (const auto opened = file->open(); !opened)
    return fail(ErrorCode::kIo, "audit_log_directory: {}", opened.error().message);
  return std::unique_ptr<AuditLog>(
      new AuditLog(std::move(options), std::move(logger), std::move(file)));
}

AuditLog::AuditLog(AuditLogOptions options, Logger logger, std::unique_ptr<AuditFile> file)
    : options_(std::move(options)),
      logger_(logger.named("audit")),
      file_(std::move(file)),
      looked_at_(std::chrono::steady_clock::now()) {
  thread_ = std::thread([this] { write(); });
}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  // The thread writes what waits before it ends. If the disk fails then, the records are lost: the
  // end of the process does not wait for a disk.
  changed_.notify_one();
  thread_.join();
}

Result<void> AuditLog::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_.empty() && waiting_bytes_ < options_.waiting_bytes_max) return {};
  // Which of the two errors: a disk that fails is for the operator, a slow one is for the client to
  // retry.
  ++refused_;
  if (!failure_.empty())
    return fail(ErrorCode::kServerError, "The audit log cannot be written: {}", failure_);
  return fail(ErrorCode::kOverloaded, "The audit log cannot keep up with requests; try again");
}

void AuditLog::record(cql::AuditRecord record) {
  if (!options_.filter.keeps(record)) return;
  bool is_much = false;
  {
    const std::lock_guard lock(mutex_);
    ++recorded_;
    waiting_bytes_ += bytes_of(record);
    waiting_.push_back(std::move(record));
    // While the disk fails nobody is woken: each request would make the thread try once more.
    is_much = waiting_bytes_ > kWriteBytes && failure_.empty();
  }
  if (is_much) changed_.notify_one();
}

void AuditLog::reopen() {
  {
    const std::lock_guard lock(mutex_);
    reopens_ = true;
  }
  changed_.notify_one();
}

uint64_t AuditLog::recorded() const {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

uint64_t AuditLog::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

std::string AuditLog::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void AuditLog::write() {
  std::vector<cql::AuditRecord> records;
  size_t written = 0;
  for (bool ended = false; !ended;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kWritePeriod, [this] {
        return ending_ || reopens_ || (waiting_bytes_ > kWriteBytes && failure_.empty());
      });
      ended = ending_;
      // Not empty: the disk took only a part. These first, to keep the order.
      if (records.empty()) records.swap(waiting_);
    }
    // Without the lock: shards append meanwhile.
    const bool all = write_out(records, written);
    if (!all) continue;
    uint64_t bytes = 0;
    for (const cql::AuditRecord& record : records) bytes += bytes_of(record);
    records.clear();
    written = 0;
    const std::lock_guard lock(mutex_);
    waiting_bytes_ -= bytes;
    // Records that came since the swap are written, too.
    ended = ended && waiting_.empty();
  }
}

std::string AuditLog::next_lines(const std::vector<cql::AuditRecord>& records, size_t written,
                                 size_t& end) const {
  // A file is never larger than it may be but for a line that is so alone.
  const uint64_t bytes_max = std::min(kChunkBytes, options_.file_bytes_max);
  std::string out;
  for (end = written; end < records.size(); ++end) {
    const std::string line = audit_line(records[end], options_.host);
    if (end != written && out.size() + line.size() + 1 > bytes_max) break;
    out += line;
    out.push_back('\n');
  }
  return out;
}

Result<void> AuditLog::look_at_file() {
  const auto now = std::chrono::steady_clock::now();
  bool reopens = false;
  {
    const std::lock_guard lock(mutex_);
    std::swap(reopens, reopens_);
  }
  if (reopens) {
    looked_at_ = now;
    return file_->open();
  }
  if (now - looked_at_ < kLookPeriod) return {};
  looked_at_ = now;
  TETRAD_TRY(const bool is_new, file_->look());
  if (is_new)
    logger_.warn("audit.log was removed or is another file: a new one is opened folder={}",
                 options_.folder);
  return {};
}

bool AuditLog::write_out(const std::vector<cql::AuditRecord>& records, size_t& written) {
  std::string failure;
  if (const auto looked = look_at_file(); !looked) failure = looked.error().message;
  while (failure.empty() && written < records.size()) {
    size_t end = written;
    const auto appended = file_->append(next_lines(records, written, end));
    if (appended)
      written = end;
    else
      failure = appended.error().message;
  }
  const std::lock_guard lock(mutex_);
  // Logged when it changes, not on each try.
  if (failure != failure_) {
    if (failure.empty()) {
      logger_.info("the audit log is written again");
    } else {
      logger_.error("the audit log cannot be written error={}", failure);
    }
    failure_ = failure;
  }
  return failure.empty();
}

}  // namespace tetrad::server
