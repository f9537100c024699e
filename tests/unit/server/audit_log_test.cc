// SPDX-License-Identifier: Apache-2.0
// The audit log: its lines, what filters keep, files that are full, a disk that takes nothing.
#include "server/audit/audit_log.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "server/config/options.h"

namespace tetrad::server {
namespace {

using cql::AuditCategory;
namespace fs = std::filesystem;

cql::AuditRecord record_of(AuditCategory category, std::string keyspace, std::string user) {
  cql::AuditRecord record;
  record.unix_ms = 1'763'900'000'123;
  record.user = std::move(user);
  record.client_address = "10.0.0.9";
  record.client_port = 51'234;
  record.subject = {"UPDATE", category, std::move(keyspace), "orders"};
  record.text = "INSERT INTO shop.orders (id) VALUES (?)";
  record.duration_us = 412;
  return record;
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// A folder that goes at the end.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / "tetrad-audit-XXXXXX") {
    REQUIRE(::mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

AuditLogOptions options_in(const std::string& folder) {
  AuditLogOptions out;
  out.folder = folder;
  out.host = "10.0.0.1";
  return out;
}

template <class Condition>
bool comes(Condition condition) {
  for (int i = 0; i < 2'000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return condition();
}

}  // namespace

TEST_CASE("a line of the audit log has Cassandra's names") {
  cql::AuditRecord record = record_of(AuditCategory::kDml, "shop", "ann");
  CHECK(audit_line(record, "10.0.0.1") ==
        R"x({"timestamp":1763900000123,"host":"10.0.0.1","source":"10.0.0.9","port":51234,)x"
        R"x("user":"ann","type":"UPDATE","category":"DML","ks":"shop","scope":"orders",)x"
        R"x("operation":"INSERT INTO shop.orders (id) VALUES (?)","duration_us":412})x");
  record.user.clear();
  record.subject = {"REQUEST_FAILURE", AuditCategory::kError, "", ""};
  record.text = "SELECT \xFF\n\"";
  record.error = "no";
  record.batch = Uuid::parse("00000000-0000-0001-0000-000000000002");
  const auto line = nlohmann::json::parse(audit_line(record, "h"));
  CHECK(line.at("user") == "anonymous");
  CHECK(line.at("error") == "no");
  CHECK(line.at("batch") == "00000000-0000-0001-0000-000000000002");
  CHECK(line.at("operation") == "SELECT \xEF\xBF\xBD\n\"");
  CHECK_FALSE(line.contains("ks"));
  CHECK_FALSE(line.contains("scope"));
}

TEST_CASE("filters of the audit log") {
  Options options;
  options.audit_log_included_categories = "dml, DDL";
  options.audit_log_included_keyspaces = "shop,Shop2";
  options.audit_log_excluded_users = "batch_job";
  const auto filter = audit_filter_of(options);
  REQUIRE(filter.has_value());
  const auto keeps = [&](AuditCategory category, const char* keyspace, const char* user) {
    return filter->keeps(record_of(category, keyspace, user));
  };
  CHECK(keeps(AuditCategory::kDml, "shop", "ann"));
  CHECK(keeps(AuditCategory::kDdl, "Shop2", "ann"));
  CHECK(keeps(AuditCategory::kDml, "", "ann"));  // of no keyspace
  CHECK(keeps(AuditCategory::kDml, "shop", ""));
  CHECK_FALSE(keeps(AuditCategory::kQuery, "shop", "ann"));
  CHECK_FALSE(keeps(AuditCategory::kDml, "other", "ann"));
  CHECK_FALSE(keeps(AuditCategory::kDml, "shop", "batch_job"));
  const auto all = audit_filter_of(Options());
  CHECK(all->keeps(record_of(AuditCategory::kQuery, "shop", "")));
  CHECK_FALSE(all->keeps(record_of(AuditCategory::kQuery, "system", "")));
  options.audit_log_excluded_categories = "DML,WRITES";
  CHECK(
      audit_filter_of(options).error().message ==
      "audit_log_excluded_categories: WRITES is none of QUERY, DML, DDL, DCL, OTHER, AUTH, ERROR, "
      "PREPARE, ADMIN");
}

TEST_CASE("each filter of the audit log alone, and what is excluded wins") {
  const auto kept = [](std::string Options::*option, const char* list, AuditCategory category,
                       const char* keyspace, const char* user) {
    Options options;
    options.audit_log_excluded_keyspaces.clear();
    options.*option = list;
    return audit_filter_of(options)->keeps(record_of(category, keyspace, user));
  };
  const auto of = [&](std::string Options::*option, const char* list, AuditCategory category) {
    return kept(option, list, category, "shop", "ann");
  };
  const auto without = &Options::audit_log_excluded_categories;
  CHECK_FALSE(of(without, "QUERY, dml", AuditCategory::kQuery));
  CHECK_FALSE(of(without, "QUERY, dml", AuditCategory::kDml));
  CHECK(of(without, "QUERY, dml", AuditCategory::kDdl));
  CHECK(of(without, "", AuditCategory::kDml));
  const auto on = [&](std::string Options::*option, const char* keyspace) {
    return kept(option, "shop,Shop2", AuditCategory::kDml, keyspace, "ann");
  };
  CHECK_FALSE(on(&Options::audit_log_excluded_keyspaces, "shop"));
  CHECK_FALSE(on(&Options::audit_log_excluded_keyspaces, "Shop2"));
  CHECK(on(&Options::audit_log_excluded_keyspaces, "shop2"));
  CHECK(on(&Options::audit_log_excluded_keyspaces, ""));
  CHECK(on(&Options::audit_log_included_keyspaces, "shop"));
  CHECK_FALSE(on(&Options::audit_log_included_keyspaces, "shop2"));
  const auto by = [&](std::string Options::*option, const char* user) {
    return kept(option, "ann,Bob", AuditCategory::kDml, "shop", user);
  };
  CHECK(by(&Options::audit_log_included_users, "ann"));
  CHECK(by(&Options::audit_log_included_users, "Bob"));
  CHECK_FALSE(by(&Options::audit_log_included_users, "bob"));
  CHECK_FALSE(by(&Options::audit_log_included_users, "eve"));
  CHECK(by(&Options::audit_log_included_users, ""));  // nobody has logged in
  CHECK_FALSE(by(&Options::audit_log_excluded_users, "ann"));
  CHECK(by(&Options::audit_log_excluded_users, "eve"));
  Options both;
  both.audit_log_included_users = "ann,bob";
  both.audit_log_excluded_users = "bob";
  both.audit_log_included_categories = "DML,QUERY";
  both.audit_log_excluded_categories = "QUERY";
  both.audit_log_included_keyspaces = "shop,system";  // system is excluded unless that is said
  const auto filter = audit_filter_of(both);
  CHECK(filter->keeps(record_of(AuditCategory::kDml, "shop", "ann")));
  CHECK_FALSE(filter->keeps(record_of(AuditCategory::kDml, "shop", "bob")));
  CHECK_FALSE(filter->keeps(record_of(AuditCategory::kQuery, "shop", "ann")));
  CHECK_FALSE(filter->keeps(record_of(AuditCategory::kDml, "system", "ann")));
}

TEST_CASE("files of the audit log are bounded, and what waits at the end is written") {
  const Folder top;
  AuditLogOptions options = options_in(top / "audit");
  options.file_bytes_max = 10'000;
  options.files_max = 2;
  {
    auto log = AuditLog::open(options, Logger());
    REQUIRE(log.has_value());
    for (int i = 0; i < 300; ++i)
      (*log)->record(record_of(AuditCategory::kDml, "shop", std::to_string(i)));
    CHECK((*log)->recorded() == 300);
    CHECK((*log)->check().has_value());
  }
  CHECK(fs::status(options.folder).permissions() == fs::perms::owner_all);
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(options.folder)) {
    ++files;
    CHECK(entry.file_size() <= options.file_bytes_max);
  }
  CHECK(files == 3);
  const auto newest = lines_of(options.folder + "/audit.log");
  REQUIRE_FALSE(newest.empty());
  CHECK(nlohmann::json::parse(newest.back()).at("user") == "299");
  {  // the next life goes on in the same file
    auto log = AuditLog::open(options, Logger());
    (*log)->record(record_of(AuditCategory::kDml, "shop", "next"));
  }
  CHECK(lines_of(options.folder + "/audit.log").size() == newest.size() + 1);
}

TEST_CASE("an audit log that cannot be written refuses requests, and says why") {
  const Folder top;
  AuditLogOptions options = options_in(top / "audit");
  options.waiting_bytes_max = 2'000;
  fs::create_directories(options.folder);
  fs::create_symlink("/dev/full", options.folder + "/audit.log");
  auto opened = AuditLog::open(options, Logger());
  REQUIRE(opened.has_value());
  AuditLog& log = **opened;
  CHECK(log.check().has_value());
  for (int i = 0; i < 20; ++i) log.record(record_of(AuditCategory::kDml, "shop", "ann"));
  REQUIRE(comes([&] { return !log.failure().empty(); }));
  const auto refused = log.check();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kServerError);
  CHECK(refused.error().message.starts_with("The audit log cannot be written: "));
  CHECK(log.refused() == 1);

  CHECK((fs::status("/dev/full").permissions() & fs::perms::others_write) != fs::perms::none);
  const std::string file = top / "file";
  std::ofstream(file) << "x";
  CHECK(AuditLog::open(options_in(file), Logger()).error().code == ErrorCode::kIo);
}

TEST_CASE(
    "an audit log whose file is removed or replaced goes on in a new one, for its owner only") {
  const Folder top;
  AuditLogOptions options = options_in(top / "audit");
  options.file_bytes_max = 1'000;
  const std::string file = options.folder + "/audit.log";
  // A version before left them so.
  fs::create_directories(options.folder);
  std::ofstream(options.folder + "/audit.1.log") << "x\n";
  fs::permissions(options.folder + "/audit.1.log", fs::perms{0644});
  auto opened = AuditLog::open(options, Logger());
  REQUIRE(opened.has_value());
  AuditLog& log = **opened;
  const auto comes_to = [&](const char* user) {
    log.record(record_of(AuditCategory::kDml, "shop", user));
    return comes([&] {
      const auto lines = lines_of(file);
      return !lines.empty() && nlohmann::json::parse(lines.back()).at("user") == user;
    });
  };
  const auto all_are_private = [&] {
    bool out = fs::status(options.folder).permissions() == fs::perms::owner_all;
    for (const auto& entry : fs::directory_iterator(options.folder))
      out &= entry.status().permissions() == fs::perms{0600};
    return out;
  };
  REQUIRE(comes_to("first"));
  CHECK(all_are_private());
  fs::remove(file);
  CHECK(comes([&] { return fs::exists(file); }));  // also if nothing is to be written
  CHECK(comes_to("second"));
  fs::remove_all(options.folder);
  CHECK(comes([&] { return fs::exists(file); }));
  CHECK(comes_to("third"));
  fs::rename(file, top / "rotated");
  std::ofstream(file) << "{\"user\":\"other\"}\n";
  log.reopen();
  CHECK(comes_to("fourth"));
  CHECK(lines_of(file).size() == 2);
  CHECK(lines_of(top / "rotated").size() == 1);
  for (int i = 0; i < 20; ++i) CHECK(comes_to(std::to_string(i).c_str()));
  CHECK(fs::exists(options.folder + "/audit.2.log"));
  CHECK(all_are_private());
  CHECK(log.failure().empty());
  CHECK(log.check().has_value());

  // Where no file can be made statements are refused, until it can.
  fs::remove_all(options.folder);
  std::ofstream(options.folder) << "x";
  CHECK(comes([&] { return !log.check().has_value(); }));
  CHECK_FALSE(log.failure().empty());
  log.record(record_of(AuditCategory::kDml, "shop", "kept"));
  fs::remove(options.folder);
  CHECK(comes([&] { return log.check().has_value(); }));
  CHECK(comes([&] { return lines_of(file).size() == 1; }));
  CHECK(all_are_private());
}

}  // namespace tetrad::server
