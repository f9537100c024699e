// SPDX-License-Identifier: Apache-2.0
#include "server/auth/login.h"

#include "cql/execute/password.h"

namespace tetrad::server {
namespace {

/// On one thread of the node: what logins cost is bounded.
constexpr uint32_t kLoginLane = 0x4C4F4749;

/// Ends what begin() began, also when the task is dropped.
struct Attempt {
  LoginLimits& limits;
  base::Reactor& reactor;
  const std::string &address, &user;
  bool failed = false;
  ~Attempt() { limits.end(address, user, failed, reactor.now_us()); }
};

std::unexpected<Error> refused(const std::string& user) {
  return fail(ErrorCode::kBadCredentials, "Provided username {} and/or password are incorrect",
              user);
}

}  // namespace

Task<Result<std::string>> log_in(std::string address, std::optional<Bytes> token,
                                 base::Reactor& reactor, cql::QueryProcessor& processor,
                                 LoginLimits& limits) {
  std::optional<BytesView> view;
  if (token) view = *token;
  TETRAD_CO_TRY(const cql::PlainCredentials given, cql::decode_plain_token(view));
  const std::string user(given.user);
  TETRAD_CO_TRY_VOID(limits.begin(address, user, reactor.now_us()));
  Attempt attempt{limits, reactor, address, user};
  const auto hash_now = [&]() -> std::string {
    const cql::SchemaPtr schema = processor.schema();
    const cql::Role* const role = schema == nullptr ? nullptr : schema->roles()->find(user);
    return role == nullptr ? std::string() : role->salted_hash;
  };
  const std::string hash = hash_now();
  // As long for a role that is not there.
  const std::string& checked = hash.empty() ? cql::hash_of_nobody() : hash;
  bool matches = false;
  const std::function<void()> work = [&] {
    matches = cql::is_password_of(given.password, checked);
  };
  co_await processor.off_loop().run(kLoginLane, work);
  attempt.failed = hash.empty() || !matches;
  if (attempt.failed || hash_now() != hash) co_return refused(user);
  const cql::SchemaPtr schema = processor.schema();
  if (!schema->roles()->find(user)->can_login)
    co_return fail(ErrorCode::kBadCredentials, "{} is not permitted to log in", user);
  co_return user;
}

void record_login(cql::AuditTrail* trail, const cql::ClientState& client, const std::string& user,
                  const Error* error, base::Reactor& reactor) {
  if (trail == nullptr) return;
  cql::AuditRecord record;
  record.unix_ms = reactor.wall_time_us() / 1000;
  record.user = user;
  record.client_address = client.client_address;
  record.client_port = client.client_port;
  record.subject = {error == nullptr ? "LOGIN_SUCCESS" : "LOGIN_ERROR", cql::AuditCategory::kAuth,
                    "", ""};
  record.text = error == nullptr ? "LOGIN SUCCESSFUL" : "LOGIN FAILURE";
  if (error != nullptr) record.error = error->message;
  trail->record(std::move(record));
}

std::string user_in_token(const std::optional<Bytes>& token) {
  std::optional<BytesView> view;
  if (token) view = *token;
  const auto given = cql::decode_plain_token(view);
  return given ? std::string(given->user) : std::string();
}

}  // namespace tetrad::server
