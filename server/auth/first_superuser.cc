// SPDX-License-Identifier: Apache-2.0
// The first superuser of a cluster. A node that was given one runs this task on its first shard
// once it serves. Several nodes may: the first change of the schema that is accepted decides. The
// steps, repeated until one returns:
//
// 1. Wait until this shard's schema is that of the metadata, and the cluster's format has roles.
// 2. If a superuser can log in with a password, end: another node was faster, or the cluster is
//    old. Not with reset_superuser.
// 3. Hash the password, once, off the loop. Then start again, as the roles may have changed.
// 4. Propose the role, for exactly this version of the schema. A conflict means that somebody
//    changed the schema; look again after a second.
#include "server/auth/first_superuser.h"

#include <cstdio>
#include <cstdlib>

#include "base/secret.h"
#include "base/sleep.h"
#include "cql/execute/password.h"
#include "cql/schema/roles.h"

namespace tetrad::server {
namespace {

constexpr uint32_t kHashLane = 0x4C4F4749;  // that of logins
constexpr size_t kFileBytesMax = 64 << 10;
constexpr int64_t kRetryUs = 1'000'000, kChangeTimeoutUs = 20'000'000;

std::string made_up(base::Random& random) {
  // Without l, I, O, 0 and 1, which are mistaken for each other when read.
  constexpr std::string_view kLetters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
  constexpr size_t kLength = 24;  // 137 bits
  std::string out;
  for (size_t i = 0; i < kLength; ++i) out += kLetters[random.below(kLetters.size())];
  return out;
}

}  // namespace

Result<FirstSuperuser> first_superuser(const std::string& name, const std::string& password_file,
                                       base::Random& random) {
  if (!password_file.empty()) {
    base::SecretText text;
    if (const auto read = base::read_secret_file(password_file, kFileBytesMax, "password", text);
        !read)
      return fail(ErrorCode::kConfig, "init_superuser_password_file: {}", read.error().message);
    std::string password = text.text.substr(0, text.text.find('\n'));
    if (password.empty())
      return fail(ErrorCode::kConfig,
                  "init_superuser_password_file: the first line of {} is no password",
                  password_file);
    return FirstSuperuser{name, password};
  }
  const char* const given = std::getenv("TETRAD_SUPERUSER_PASSWORD");
  if (given != nullptr && *given != '\0') return FirstSuperuser{name, given};
  return FirstSuperuser{name, made_up(random), true};
}

Task<void> make_first_superuser(FirstSuperuser whom, base::Reactor& reactor, base::Random& random,
                                cql::QueryProcessor& processor, replication::MetaService& meta,
                                Logger logger) {
  Result<std::string> hash = std::string();
  while (true) {
    const cql::SchemaPtr schema = processor.schema();
    const replication::MetaSnapshot state = meta.snapshot();
    if (schema != nullptr && schema->version() == state->schema_version &&
        state->format >= replication::kFormatRoles) {
      const cql::RoleSet& roles = *schema->roles();
      if (!whom.replaces && roles.has_usable_superuser()) {
        if (roles.is_superuser(whom.name))
          logger.info("no superuser is made, there is one who can log in role={}", whom.name);
        else
          logger.warn(
              "no superuser is made, another one can log in: role and password are not used "
              "(reset_superuser would make it one all the same) role={}",
              whom.name);
        co_return;
      }
      if (hash->empty()) {
        // A node that does not know Argon2id could not log the role in.
        const bool all_know = state->format >= replication::kFormatArgon2id;
        const std::string salt = cql::new_salt(
            random, all_know ? cql::PasswordHash::kArgon2id : cql::PasswordHash::kBcrypt);
        const std::function<void()> work = [&] { hash = cql::hash_password(whom.password, salt); };
        co_await processor.off_loop().run(kHashLane, work);
        if (!hash) {
          logger.error("no superuser is made error={}", hash.error().message);
          co_return;
        }
        continue;  // the roles may have changed meanwhile
      }
      cql::Role role;
      // The role may be there without LOGIN or a password; its grants stay.
      if (const cql::Role* known = roles.find(whom.name)) role = *known;
      role.name = whom.name;
      role.salted_hash = *hash;
      role.can_login = role.is_superuser = true;
      role.datacenters.clear();
      role.address_groups.clear();
      replication::SchemaChange change;
      change.expected = state->schema_version;
      change.objects.emplace_back(cql::role_key(whom.name), cql::role_text(role));
      const base::Deadline deadline{reactor.now_us() + kChangeTimeoutUs};
      auto changed = co_await meta.change_schema(std::move(change), deadline, nullptr);
      if (changed) {
        logger.info("made a superuser role={}", whom.name);
        // Shown only now: a password that is shown before the change is accepted may never hold.
        if (whom.was_made_up) {
          std::printf("superuser %s has the password %s\n", whom.name.c_str(),
                      whom.password.c_str());
          std::fflush(stdout);
        }
        co_return;
      }
      if (changed.error().code != ErrorCode::kConflict)
        logger.warn("no superuser made yet error={}", changed.error().message);
    }
    co_await base::sleep_for(reactor, kRetryUs);
  }
}

}  // namespace tetrad::server
