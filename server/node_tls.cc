// SPDX-License-Identifier: Apache-2.0
// What is opened, each from its own options: credentials for clients (`client_encryption_*`), for
// the admin port (the clients' certificate and key, no certificate is asked of the peer), for nodes
// (`internode_encryption_*`, an authority is required because nodes prove who they are to each
// other), and the shared secret of a cluster without certificates. An option that would have no
// effect is an error: an operator who sets it believes that something is protected.
//
// CertificateWatch reads files again while the node runs. A pair of files that does not read, or
// that peers would refuse, leaves the old pair in use; connections that are open keep what they
// began with.
#include "server/node_tls.h"

#include "base/guarded.h"
#include "base/secret.h"

namespace tetrad::server {
namespace {

constexpr int64_t kLookAgainUs = 10'000'000;
constexpr int64_t kWarnBefore_s = 30 * 86'400;
/// Of the pool: files are read on a thread of their own.
constexpr uint32_t kFilesLane = 0x43455254;

/// Of the options that begin with `prefix`; a certificate and its key are needed.
Result<base::TlsFiles> files_of(const char* prefix, const std::string& certificate,
                                const std::string& key, const std::string& authority,
                                bool needs_authority) {
  // The error names the option, e.g. client_encryption_key_file.
  const auto missing = [&](const char* name) {
    return fail(ErrorCode::kConfig, "{}_{}: a file is needed to encrypt", prefix, name);
  };
  if (certificate.empty()) return missing("certificate_file");
  if (key.empty()) return missing("key_file");
  if (needs_authority && authority.empty()) return missing("ca_file");
  return base::TlsFiles{certificate, key, authority};
}

Result<std::shared_ptr<base::TlsCredentials>> open_files(const char* prefix, base::TlsFiles files,
                                                         base::TlsPeer peer,
                                                         std::optional<int64_t> now_s) {
  auto opened = base::TlsCredentials::open(std::move(files), peer);
  if (!opened) return fail(ErrorCode::kConfig, "{}: {}", prefix, opened.error().message);
  if (const auto checked = (*opened)->check(now_s); !checked)
    return fail(ErrorCode::kConfig, "{}: {}", prefix, checked.error().message);
  return opened;
}

Result<CertificateIdentity> identity_of(const Options& options) {
  if (options.client_certificate_identity == "none") return CertificateIdentity::kNone;
  const auto missing = [](const char* what) {
    return fail(ErrorCode::kConfig, "client_certificate_identity: without effect without {}", what);
  };
  // Without an authority no certificate of a client is checked, and anybody could write any name
  // into one.
  if (options.client_encryption_ca_file.empty()) return missing("client_encryption_ca_file");
  if (options.authenticator != "PasswordAuthenticator")
    return missing("authenticator PasswordAuthenticator");
  return options.client_certificate_identity == "common_name"
             ? CertificateIdentity::kCommonName
             : CertificateIdentity::kAlternativeName;
}

Result<std::shared_ptr<const ClientTlsRules>> open_client_tls(const Options& options,
                                                              std::optional<int64_t> now_s) {
  constexpr const char* kPrefix = "client_encryption";
  if (!options.client_encryption_enabled) {
    if (options.client_certificate_identity != "none")
      return fail(ErrorCode::kConfig,
                  "client_certificate_identity: without effect while client_encryption_enabled is "
                  "false");
    if (options.client_encryption_optional || options.client_encryption_require_client_auth)
      return fail(ErrorCode::kConfig,
                  "client_encryption_{}: without effect while client_encryption_enabled is false",
                  options.client_encryption_optional ? "optional" : "require_client_auth");
    return nullptr;
  }
  // With an authority but without the demand, a client may give a certificate, which then must be
  // valid.
  const bool demands = options.client_encryption_require_client_auth;
  TETRAD_TRY(auto files, files_of(kPrefix, options.client_encryption_certificate_file,
                                  options.client_encryption_key_file,
                                  options.client_encryption_ca_file, demands));
  const auto peer = demands                    ? base::TlsPeer::kRequired
                    : !files.authority.empty() ? base::TlsPeer::kIfGiven
                                               : base::TlsPeer::kUnasked;
  auto rules = std::make_shared<ClientTlsRules>();
  TETRAD_TRY(rules->credentials, open_files(kPrefix, std::move(files), peer, now_s));
  rules->optional = options.client_encryption_optional;
  TETRAD_TRY(rules->identity, identity_of(options));
  return std::shared_ptr<const ClientTlsRules>(std::move(rules));
}

Result<std::shared_ptr<const replication::ClusterSecret>> open_secret(const Options& options) {
  constexpr size_t kBytesMin = 16, kBytesMax = 4096;
  const std::string& path = options.cluster_secret_file;
  if (path.empty() && !options.cluster_secret_required)
    return fail(ErrorCode::kConfig,
                "cluster_secret_required: without effect without cluster_secret_file");
  if (path.empty()) return nullptr;
  if (options.internode_encryption == "all")
    return fail(ErrorCode::kConfig,
                "cluster_secret_file: without effect while internode_encryption is all: nodes then "
                "know each other by their certificates");
  auto out = std::make_shared<replication::ClusterSecret>();
  out->required = options.cluster_secret_required;
  const auto read = base::read_secret_file(path, kBytesMax, "secret", out->secret);
  if (!read) return fail(ErrorCode::kConfig, "cluster_secret_file: {}", read.error().message);
  Bytes& text = out->secret.text;
  // Editors end a file with a line feed; nodes whose files differ in that only must agree.
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.size() < kBytesMin)
    return fail(ErrorCode::kConfig, "cluster_secret_file: {} has {} bytes, at least {} are needed",
                path, text.size(), kBytesMin);
  return std::shared_ptr<const replication::ClusterSecret>(std::move(out));
}

}  // namespace

Result<NodeTls> open_node_tls(const Options& options, std::optional<int64_t> now_s) {
  NodeTls out;
  TETRAD_TRY(out.clients, open_client_tls(options, now_s));
  if (options.admin_encryption_enabled) {
    TETRAD_TRY(auto own, files_of("client_encryption", options.client_encryption_certificate_file,
                                  options.client_encryption_key_file, "", false));
    TETRAD_TRY(out.admin,
               open_files("client_encryption", std::move(own), base::TlsPeer::kUnasked, now_s));
  }
  TETRAD_TRY(out.secret, open_secret(options));
  if (options.internode_encryption == "none") return out;
  constexpr const char* kPrefix = "internode_encryption";
  TETRAD_TRY(auto files, files_of(kPrefix, options.internode_encryption_certificate_file,
                                  options.internode_encryption_key_file,
                                  options.internode_encryption_ca_file, true));
  TETRAD_TRY(out.nodes,
             open_files(kPrefix, std::move(files), base::TlsPeer::kServerRequired, now_s));
  out.internode = options.internode_encryption == "all"
                      ? replication::InternodeEncryption::kAll
                      : replication::InternodeEncryption::kOptional;
  return out;
}

CertificateWatch::CertificateWatch(const NodeTls& tls, base::Reactor& reactor, base::IoPool& pool,
                                   Logger logger)
    : reactor_(reactor), pool_(pool), logger_(std::move(logger)) {
  if (tls.clients != nullptr) watched_.push_back({"clients", tls.clients->credentials, ""});
  if (tls.admin != nullptr) watched_.push_back({"the admin port", tls.admin, ""});
  if (tls.nodes != nullptr) watched_.push_back({"nodes", tls.nodes, ""});
}

CertificateWatch::~CertificateWatch() = default;

void CertificateWatch::start() {
  for (const Watched& watched : watched_) look_at_dates(watched);
  if (!watched_.empty()) look_later();
}

void CertificateWatch::look_later() {
  reactor_.call_at(reactor_.now_us() + kLookAgainUs, [this, alive = std::weak_ptr<char>(alive_)] {
    // The timer is not cancelled when the object ends; it must not touch it.
    if (alive.expired()) return;
    look([](bool, const std::vector<std::string>&) {});
    look_later();
  });
}

void CertificateWatch::reload_now(Done done) { look(std::move(done)); }

void CertificateWatch::look(Done done) {
  auto results = std::make_shared<std::vector<Result<bool>>>();
  std::vector<std::shared_ptr<base::TlsCredentials>> all;
  for (const Watched& watched : watched_) all.push_back(watched.credentials);
  // Files are read off the loop. Looks of the timer and of an operator follow each other on one
  // lane.
  pool_.run(
      reactor_, base::IoDuty::kParse, kFilesLane,
      [all = std::move(all), results, now_s = reactor_.wall_time_us() / 1'000'000] {
        for (const auto& credentials : all)
          results->push_back(
              base::guarded("reading certificates", [&] { return credentials->reload(now_s); }));
      },
      [this, results, done = std::move(done), alive = std::weak_ptr<char>(alive_)] {
        if (!alive.expired()) looked(*results, done);
      });
}

void CertificateWatch::looked(const std::vector<Result<bool>>& results, const Done& done) {
  std::vector<std::string> lines;
  bool is_well = true;
  for (size_t i = 0; i < watched_.size(); ++i) {
    Watched& watched = watched_[i];
    const auto& result = results[i];
    if (!result) {
      is_well = false;
      lines.push_back(fmt::format("{}: {}; the certificate from before goes on to hold",
                                  watched.whose, result.error().message));
      // Every ten seconds the same error: logged once, but told to each operator who asks.
      if (watched.last_error != result.error().message)
        logger_.error("certificates are not taken, those from before hold of={} error={}",
                      watched.whose, result.error().message);
      watched.last_error = result.error().message;
      continue;
    }
    watched.last_error.clear();
    const auto now = watched.credentials->current();
    // A node may have started with one that has expired.
    const bool has_expired = now->not_after_s() <= reactor_.wall_time_us() / 1'000'000;
    is_well = is_well && !has_expired;
    lines.push_back(fmt::format("{}: {} (subject {}){}", watched.whose,
                                *result ? "read anew" : "unchanged", now->subject(),
                                has_expired ? "; it has expired, peers refuse it" : ""));
    if (!*result) continue;
    constexpr int64_t kDayS = 86'400;
    logger_.info("certificates read anew of={} subject=\"{}\" days_left={}", watched.whose,
                 now->subject(),
                 (now->not_after_s() - reactor_.wall_time_us() / 1'000'000) / kDayS);
    look_at_dates(watched);
  }
  done(is_well, std::move(lines));
}

std::vector<std::string> CertificateWatch::complaints() const {
  std::vector<std::string> lines;
  const int64_t now_s = reactor_.wall_time_us() / 1'000'000;
  for (const Watched& watched : watched_) {
    if (!watched.last_error.empty())
      lines.push_back(fmt::format("certificates of {} are not taken, those from before hold: {}",
                                  watched.whose, watched.last_error));
    if (watched.credentials->current()->not_after_s() <= now_s)
      lines.push_back(fmt::format("the certificate of {} has expired: {}", watched.whose,
                                  watched.credentials->files().certificate));
  }
  return lines;
}

void CertificateWatch::look_at_dates(const Watched& watched) const {
  const auto current = watched.credentials->current();
  const int64_t now_s = reactor_.wall_time_us() / 1'000'000;
  const int64_t left_s = current->not_after_s() - now_s;
  const std::string& path = watched.credentials->files().certificate;
  // The node goes on in all three cases: peers decide whether they accept the certificate.
  if (current->not_before_s() > now_s)
    logger_.error("the certificate is not valid yet of={} file={}", watched.whose, path);
  else if (left_s <= 0)
    logger_.error("the certificate has expired, peers refuse it of={} file={}", watched.whose,
                  path);
  else if (left_s < kWarnBefore_s)
    logger_.warn("the certificate expires soon of={} file={} days_left={}", watched.whose, path,
                 left_s / 86'400);
}

void CertificateWatch::register_metrics(base::MetricsRegistry& metrics) {
  for (const Watched& watched : watched_)
    metrics.add_gauge("tetrad_server_certificate_expiry_seconds",
                      "When the certificate expires, since the epoch.",
                      fmt::format("of=\"{}\"", watched.whose), [credentials = watched.credentials] {
                        return static_cast<double>(credentials->current()->not_after_s());
                      });
}

}  // namespace tetrad::server
