// SPDX-License-Identifier: Apache-2.0
// Each check is of its own, so that one start, or one --check-config, tells all that is wrong.
#include "server/start_check.h"

#include <algorithm>

#include "server/audit/audit_log.h"
#include "server/config/guardrails.h"
#include "server/config/seeds.h"
#include "server/runtime/data_folder.h"
#include "server/runtime/os_random.h"
#include "storage/encryption/disk_keys.h"

namespace tetrad::server {
namespace {

/// Drivers and keyspaces name what these are called, so they are called something.
Result<void> check_names(const Options& options) {
  for (const auto& [option, value] :
       {std::pair("cluster_name", &options.cluster_name),
        std::pair("datacenter", &options.datacenter), std::pair("rack", &options.rack)}) {
    if (value->empty()) return fail(ErrorCode::kConfig, "{}: a name is missing", option);
    const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7F; };
    if (std::ranges::any_of(*value, is_control))
      return fail(ErrorCode::kConfig, "{}: a name has no line breaks or control characters",
                  option);
  }
  return {};
}

Result<std::optional<FirstSuperuser>> superuser_of(const Options& options) {
  const bool resets = !options.reset_superuser.empty();
  if (!resets && options.init_superuser.empty()) return std::nullopt;
  base::Random random(os_random);
  TETRAD_TRY(FirstSuperuser out,
             first_superuser(resets ? options.reset_superuser : options.init_superuser,
                             options.init_superuser_password_file, random));
  out.replaces = resets;
  return out;
}

Result<void> check_cidr_authorizer(const Options& options) {
  if (options.cidr_authorizer != "CassandraCIDRAuthorizer" || has_authentication(options))
    return {};
  return fail(ErrorCode::kConfig,
              "cidr_authorizer: CassandraCIDRAuthorizer is about roles: it needs authenticator "
              "PasswordAuthenticator");
}

Result<void> check_disk_keys(const Options& options) {
  if (options.disk_encryption_key_file.empty()) return {};
  const auto keys = storage::DiskKeys::read(options.disk_encryption_key_file, os_random);
  if (keys) return {};
  return fail(ErrorCode::kConfig, "disk_encryption_key_file: {}", keys.error().message);
}

/// Made by a start that needs it, which says then what is wrong.
Result<void> check_audit_folder(const Options& options) {
  if (options.audit_log_directory.empty()) return {};
  const auto checked = check_can_hold_files(options.audit_log_directory);
  if (checked) return {};
  return fail(ErrorCode::kConfig, "audit_log_directory: {}", checked.error().message);
}

/// Paths that options name may lie in the data directory before its node does.
Result<void> check_folder(const Options& options) {
  if (options.data_directory.empty())
    return fail(ErrorCode::kConfig, "data_directory: the name of a folder is missing");
  std::vector<std::string> named;
  for (const OptionEntry& entry : option_table())
    if (std::holds_alternative<std::string Options::*>(entry.target))
      named.push_back(option_text(options, entry));
  return check_data_folder(options.data_directory, named);
}

}  // namespace

Result<CheckedStart> check_start(const Options& options, std::optional<int64_t> now_s) {
  CheckedStart out;
  std::string wrong;
  const auto note = [&](const Error& error) {
    wrong += (wrong.empty() ? "" : "\n") + error.message;
  };
  const auto check = [&](const Result<void>& checked) {
    if (!checked) note(checked.error());
  };
  const auto take = [&](auto& to, auto read) {
    if (read)
      to = std::move(*read);
    else
      note(read.error());
  };
  take(out.addresses, addresses_of(options));
  check(check_names(options));
  check(check_guardrails(options));
  take(out.first_superuser, superuser_of(options));
  check(check_cidr_authorizer(options));
  take(out.tls, open_node_tls(options, now_s));
  take(out.seeds, read_seeds(options.seeds, static_cast<uint16_t>(options.internode_port)));
  if (const auto filter = audit_filter_of(options); !filter) note(filter.error());
  // Who asks whether all is well hears of what is not used yet, too.
  if (now_s) check(check_audit_folder(options));
  check(check_disk_keys(options));
  check(check_folder(options));
  if (!wrong.empty()) return fail(ErrorCode::kConfig, "{}", wrong);
  return out;
}

}  // namespace tetrad::server
