// SPDX-License-Identifier: Apache-2.0
// Sentences are what --help and conf/tetrad.yaml show.
#include "server/config/audit.h"

namespace tetrad::server {

void append_audit_options(std::vector<OptionEntry>& table) {
  const auto add = [&](const char* name, OptionEntry::Target target, const char* sentence) {
    table.push_back({name, target, 0, 0, {}, sentence});
  };
  const auto add_list = [&](const char* name, std::string Options::*target, const char* sentence) {
    table.push_back({name, target, 0, 0, {}, sentence, OptionUnit::kNone, true});
  };
  add("audit_log_enabled", &Options::audit_log_enabled,
      "Records who asked for what, from where, and with what outcome: a line of JSON for each "
      "statement, login and order of tetractl. Values bound to markers and passwords are never in "
      "it. While the log cannot be written, statements are refused.");
  add("audit_log_directory", &Options::audit_log_directory,
      "Where audit.log is kept; empty: the folder audit in data_directory.");
  table.push_back({"audit_log_file_mb",
                   &Options::audit_log_file_mb,
                   1,
                   1 << 20,
                   {},
                   "MiB of a file of the audit log; then the next is begun."});
  table.push_back({"audit_log_files",
                   &Options::audit_log_files,
                   1,
                   10'000,
                   {},
                   "Files of the audit log that are kept beside the newest."});
  add_list(
      "audit_log_included_categories", &Options::audit_log_included_categories,
      "Only these are recorded, of QUERY, DML, DDL, DCL, OTHER, AUTH, ERROR, PREPARE and ADMIN "
      "(orders of tetractl), separated by commas; empty: all.");
  add_list("audit_log_excluded_categories", &Options::audit_log_excluded_categories,
           "These are not recorded.");
  add_list("audit_log_included_keyspaces", &Options::audit_log_included_keyspaces,
           "Only statements on these keyspaces are recorded, and those on none; empty: all.");
  add_list("audit_log_excluded_keyspaces", &Options::audit_log_excluded_keyspaces,
           "Statements on these keyspaces are not recorded.");
  add_list("audit_log_included_users", &Options::audit_log_included_users,
           "Only statements of these roles are recorded; empty: of all.");
  add_list("audit_log_excluded_users", &Options::audit_log_excluded_users,
           "Statements of these roles are not recorded.");
}

}  // namespace tetrad::server
