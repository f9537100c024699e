// SPDX-License-Identifier: Apache-2.0
// One login, as a task on the thread of the connection's shard:
//
// 1. Decode the SASL PLAIN token.
// 2. Wait until LoginLimits lets this address and role try. From here on ~Attempt tells them the
//    end.
// 3. Take the role's hash from the schema; for an unknown role take one that no password has.
// 4. Check the password off the loop: it takes tens of milliseconds by design.
// 5. Look at the role again: it may have been dropped or given another password meanwhile.
// 6. Refuse a role without LOGIN, only now: before, the answer would tell who is there.
//
// A wrong name and a wrong password get the same text and take the same time.
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
  const LoginLimits::Id id;
  LoginLimits::Outcome outcome = LoginLimits::Outcome::kGivenUp;
  ~Attempt() { limits.end(id, outcome, reactor.now_us()); }
};

std::unexpected<Error> refused(const std::string& user) {
  return fail(ErrorCode::kBadCredentials, "Provided username {} and/or password are incorrect",
              user);
}

}  // namespace

Task<Result<std::string>> log_in(std::string address, std::optional<Bytes> token,
                                 base::Reactor& reactor, cql::QueryProcessor& processor,
                                 LoginLimits& limits, LoginWait& wait) {
  std::optional<BytesView> view;
  if (token) view = *token;
  TETRAD_CO_TRY(const cql::PlainCredentials given, cql::decode_plain_token(view));
  const std::string user(given.user);
  base::OneShot<Result<void>> turn;
  // Whose thread decides is unknown; the task goes on on its own.
  const auto have_turn = [&reactor, setter = turn.setter()](Result<void> result) {
    reactor.post_from_any_thread(
        [setter, result = std::move(result)]() mutable { setter.set(std::move(result)); });
  };
  Attempt attempt{limits, reactor,
                  limits.begin(limited_part(address), user, reactor.now_us(), have_turn)};
  wait = turn.setter();
  auto has_turn = co_await turn;
  wait.reset();
  TETRAD_CO_TRY_VOID(std::move(has_turn));
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
  // A role that changed meanwhile is refused, but is no failure that counts against the address.
  const bool failed = hash.empty() || !matches;
  attempt.outcome = failed ? LoginLimits::Outcome::kFailed : LoginLimits::Outcome::kPassed;
  if (failed || hash_now() != hash) co_return refused(user);
  const cql::SchemaPtr schema = processor.schema();
  // The role is there: hash_now() has just found its hash, and nothing ran in between.
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
  // Types and texts are those of Cassandra's audit log.
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
